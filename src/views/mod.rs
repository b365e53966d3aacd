//! Views: which one's task is taken next, and how many workers may run tasks of each.
//!
//! It knows `queue`, `task`, `crew` and `flight`. `sched` takes and gives back places (`place.rs`).

#![doc = include_str!("protocol.md")]

pub(crate) mod policy;
pub(crate) mod view;
