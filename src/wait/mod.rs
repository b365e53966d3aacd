//! Futures that are tasks, and the waits for them: how they are polled, claimed and driven to their
//! end.
//!
//! Others use
//!
//! - `FutureTask`, `Call`: the task of a future, and a closure with a handle as such a future.
//! - `enable_wrapping`: called by what makes closures without a handle expire, or observes them.
//! - `run_awaited_task`, `run_awaited_tasks`, `run_awaited_scoped_task`: run what the calling
//!   thread waits for.
//! - `is_own_task`: whether the calling thread runs or drops this very task.
//! - `block_on`: drives a future to its end.

mod awaited;
mod future_task;

pub(crate) use awaited::{run_awaited_scoped_task, run_awaited_task, run_awaited_tasks};
pub(crate) use future_task::{Call, FutureTask, block_on, enable_wrapping, is_own_task};
