//! The scheduler of one pool: which worker runs, and what it runs next.
//!
//! It knows all rooms below it: `sync`, `queue`, `task`, `crew`, `thread`, `flight`, `keeper`,
//! `observe` and `views`. The right to run (blocked workers, places) and the threads (starting,
//! leaving) are parts of this room: both change the state of the whole pool. Others use
//!
//! - `Shared`, the state of a pool, and `Config`;
//! - `Route`: where a task goes; `OwnedRoute`, `TaskRoute` and `Origin` keep that;
//! - `wait_for`: blocks the calling thread until a future is ready, in a region if it is a worker;
//! - `context.rs`: what the calling thread is to the pool, and what it runs;
//! - `relayed`: a future that threads of the pool wake.

#![doc = include_str!("protocol.md")]

mod attach;
pub(crate) mod compensate;
pub(crate) mod context;
mod deferred;
pub(crate) mod helper;
mod keeper;
mod look;
pub(crate) mod notify;
pub(crate) mod place;
pub(crate) mod poll_wait;
pub(crate) mod region;
mod resize;
mod retire;
pub(crate) mod route;
pub(crate) mod shared;
mod spawn;
pub(crate) mod trampoline;
mod worker;
