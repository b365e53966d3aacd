//! Futures that are tasks, and the waits for them: how they are polled, claimed and driven to their
//! end.
//!
//! It knows `task`, `thread`, `flight`, `sched` and `submit`. Others use
//!
//! - `FutureTask` and `Call`: the task of a future, and of a closure with a handle;
//! - `run_awaited_task`, and its forms for scopes and groups: runs what the calling thread waits
//!   for;
//! - `block_on`: drives a future to its end.

pub(crate) mod awaited;
pub(crate) mod block_on;
pub(crate) mod future_task;
