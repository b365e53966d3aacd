//! The laws about tasks hold for a view as well: the same tests, with a view's handle in the place
//! of the pool's.

#![allow(clippy::duplicate_mod, reason = "each of the files is a test crate of its own, too")]

#[path = "law_01_prompt.rs"]
mod law_01_prompt;
#[path = "law_03_quiet.rs"]
mod law_03_quiet;
#[path = "law_04_bounded.rs"]
mod law_04_bounded;
#[path = "law_08_closed.rs"]
mod law_08_closed;
#[path = "law_12_in_order.rs"]
mod law_12_in_order;
