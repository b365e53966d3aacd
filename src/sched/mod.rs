//! The scheduler of one pool: which worker runs, and what it runs next.
//!
//! It knows all rooms below it: `sync`, `queue`, `task`, `crew`, `thread`, `flight`, `keeper`, `observe` and `views`. The right to run
//! (blocked workers, places) and the threads (starting, leaving) are part of this room, since both change the state of the whole pool.

#![doc = include_str!("protocol.md")]

pub(crate) mod attach;
pub(crate) mod compensate;
pub(crate) mod context;
pub(crate) mod deferred;
pub(crate) mod helper;
pub(crate) mod keeper;
pub(crate) mod look;
pub(crate) mod notify;
pub(crate) mod place;
pub(crate) mod poll_wait;
pub(crate) mod region;
pub(crate) mod resize;
pub(crate) mod retire;
pub(crate) mod route;
pub(crate) mod shared;
pub(crate) mod spawn;
pub(crate) mod trampoline;
pub(crate) mod worker;
