//! When the keeper starts workers, and how many may run: `Growth::Stalled` and `Growth::Measured`.
//!
//! It knows `crew`, `keeper`, `observe` and `sched`, and no room knows it by name: it adds methods to the pool's state.

pub(crate) mod measured;
pub(crate) mod stall;
