//! What the calling thread is: a worker of which pool, inside which executor, with how much stack.
//!
//! What needs more than a thread's identity stands in `sched/context.rs`. Others use
//!
//! - `identity`, `set_identity`: which worker of which pool (`PoolId`) the thread is;
//! - `begin_worker`, `nest`, `may_nest`: whether an awaited task may run on its stack;
//! - `inside_executor`, `outside_of_executor`: whether executors of the `futures` crate run in it.

mod executor;
mod identity;
mod nesting;

pub(crate) use executor::{inside_executor, outside_of_executor};
pub(crate) use identity::{
    Identity, PoolId, identity, is_own_thread, set_identity, worker_index_of,
};
pub(crate) use nesting::{begin_worker, may_nest, nest};
