//! When the keeper starts workers, and how many may run: `Growth::Stalled`, `Growth::Measured`.
//!
//! It knows `sync`, `task`, `crew`, `keeper`, `observe` and `sched`. No room names it: it adds
//! methods to the pool's state, which the scheduler calls: `start_delay`, `may_run_another` and
//! `run_limit`. The rest it calls through a table of functions (`Growing`).

pub(crate) mod measured;
pub(crate) mod stall;
