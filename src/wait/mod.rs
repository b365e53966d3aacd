//! Futures that are tasks, and the waits for them: how they are polled, claimed and driven to their
//! end.
//!
//! Others use
//!
//! - `FutureTask` and `Call`: the task of a future, and of a closure with a handle;
//! - `enable_wrapping`: called by what makes closures without a handle expire, or observes them;
//! - `run_awaited_task`, and its forms for scopes and groups: runs what the calling thread waits
//!   for;
//! - `block_on`: drives a future to its end.

mod awaited;
mod future_task;

pub(crate) use awaited::{
    run_awaited_group, run_awaited_scope, run_awaited_scoped_task, run_awaited_task,
};
pub(crate) use future_task::{Call, FutureTask, block_on, enable_wrapping, is_own_task};
