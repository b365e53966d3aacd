//! What the calling thread is: a worker of which pool, inside which executor, and with how much of its stack left.
//!
//! It knows `sync` and, for the key of a worker's thread, `crew`. What needs more than that stands in `sched/context.rs`.

pub(crate) mod executor;
pub(crate) mod identity;
pub(crate) mod nesting;
