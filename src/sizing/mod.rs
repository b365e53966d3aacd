//! When the keeper starts workers, and how many may run: `Growth::Stalled`, `Growth::Measured`.
//!
//! It knows `crew`, `keeper`, `observe` and `sched`. No room names it: it adds methods to the
//! pool's state, which the scheduler calls. These are `start_delay` and `leave_to_keeper`,
//! `may_run_another` and `run_limit`.

pub(crate) mod measured;
pub(crate) mod stall;
