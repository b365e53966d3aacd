//! Which tasks are accepted and have not ended.
//!
//! Others use
//!
//! - `InFlight`: accept, finish and close, in one word, and the wait until it is quiet;
//! - `Capacity`: the permits of a bounded queue, and the submitters that wait for them. `Permits` is
//!   what others know of it.

mod capacity;
mod in_flight;

pub(crate) use capacity::{Capacity, Granted, OwnWaits, Permits, Waits};
pub(crate) use in_flight::{InFlight, RunningMark, Status};
