//! Which tasks are accepted and have not ended.
//!
//! Others use
//!
//! - `InFlight`: accept, finish and close, in one word, and the wait until it is quiet.
//! - `Status`: that word at one moment.
//! - `RunningMark`: counts a task that runs outside the loop of a worker.
//! - `Capacity`: the permits of a bounded queue, and the submitters that wait for them.
//! - `Permits`: what a pool knows of it.
//! - `Waits`, `Granted`: a submitter that waits for a permit, and what it receives.
//! - `OwnWaits`: how many workers of the pool wait for a permit or a slot.

mod capacity;
mod in_flight;

pub(crate) use capacity::{Capacity, Granted, OwnWaits, Permits, Waits};
pub(crate) use in_flight::{InFlight, RunningMark, Status};
