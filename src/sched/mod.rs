//! The scheduler of one pool: which worker runs, and what it runs next.
//!
//! The right to run (blocked workers, places) and the threads (starting, leaving) are parts of this
//! room: both change the state of the whole pool. Others use
//!
//! - `Shared`: the state of a pool.
//! - `Config`: the settings that a pool keeps for its whole life.
//! - `Growing`, `EAGER`, `enable_extra`: how the keeper takes part in growth.
//! - `Bounded`: what a bounded queue needs.
//! - `Route`: where a task goes.
//! - `OwnedRoute`, `TaskRoute`, `Origin`: what keeps that: of a future, of a task, of a handle.
//! - `Notifier`: who notifies a worker.
//! - `wait_for`: blocks the calling thread until a future is ready, in a region if it is a worker.
//! - `Dependency`, `NO_LIMIT`, `has_passed`: what such a wait depends on, and how long it may last.
//! - `Region`, `OutsideOfRegion`: keeps the thread in a blocking region, or takes it out for a task.
//! - `PollWait`, `may_block_own`: a wait that a poll begins.
//! - `Caller`, `is_hook_of`: what the calling thread is to a pool.
//! - `WorkerContext`: what the calling worker does, and what its tasks submit through.
//! - `CallerMark`, `is_caller_of`, `caller_depth`: a thread that runs a task outside of the workers.
//! - `running_handle`: what keeps the pool of the running task open.
//! - `Below`: the task that a worker runs a claimed one on top of.
//! - `trampoline`, `off_trampoline`: defers what follows a task to the call below, or does not.
//! - `relayed`: a future that threads of the pool wake.

#![doc = include_str!("protocol.md")]

mod compensate;
mod context;
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
    Caller, CallerMark, WorkerContext, caller_depth, is_caller_of, is_hook_of, running_handle,
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
