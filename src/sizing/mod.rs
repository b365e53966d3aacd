//! When the keeper starts workers, and how many may run: `Growth::Stalled`, `Growth::Measured`.
//!
//! No room names it: it adds methods to the pool's state, which the scheduler calls: `start_delay`,
//! `may_run_another`, `run_limit` and `ask_if_all_run`. The rest it calls through a table of
//! functions (`Growing`). The builder uses
//!
//! - `measured`, `stalled`: that table, for each of the two.

mod measured;
mod stall;

pub(crate) use measured::measured;
pub(crate) use stall::stalled;
