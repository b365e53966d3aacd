//! The scheduler of one pool: which worker runs, and what it runs next.
//!
//! The right to run (blocked workers, places) and the threads (starting, leaving) are parts of this
//! room: both change the state of the whole pool. Others use
//!
//! - `Shared`, the state of a pool, and `Config`;
//! - `Route`: where a task goes; `OwnedRoute`, `TaskRoute` and `Origin` keep that;
//! - `wait_for`: blocks the calling thread until a future is ready, in a region if it is a worker;
//! - `context.rs`: what the calling thread is to the pool, and what it runs;
//! - `relayed`: a future that threads of the pool wake.

#![doc = include_str!("protocol.md")]

mod compensate;
pub(crate) mod context;
mod deferred;
mod helper;
mod keeper;
mod notify;
mod place;
mod poll_wait;
mod region;
mod retire;
mod route;
mod shared;
mod spawn;
mod trampoline;
mod worker;

// Only models name it.
#[cfg(all(test, elastipool_loom))]
pub(crate) use context::RegionKind;
pub(crate) use context::{
    Caller, CallerMark, WorkerContext, caller_depth, find_handle, is_caller_of, mark_caller,
    running_task,
};
pub(crate) use helper::relayed;
pub(crate) use notify::Notifier;
pub(crate) use place::Below;
pub(crate) use poll_wait::{PollWait, may_block_own};
pub(crate) use region::{Dependency, NO_LIMIT, OutsideOfRegion, Region, has_passed, wait_for};
pub(crate) use route::{Origin, OwnedRoute, Route, TaskRoute};
pub(crate) use shared::{Bounded, Config, EAGER, Growing, Shared};
pub(crate) use trampoline::{off_trampoline, trampoline};
pub(crate) use worker::enable_extra;
