//! Futures that are tasks, and the waits for them: how they are polled, claimed by a waiter, and driven to their end.
//!
//! It knows `task`, `thread`, `flight`, `sched` and `submit`.

pub(crate) mod awaited;
pub(crate) mod block_on;
pub(crate) mod future_task;
