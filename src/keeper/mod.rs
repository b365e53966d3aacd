//! What is due at a certain time: the jobs of the keeper, and what it saw when it last looked.
//!
//! What the jobs do stands in `sched` and `sizing`. Others use
//!
//! - `Keeper`: `ask` for a job at a time; its state under a lock, for the threads that do the jobs;
//! - `Deadlines`: what expires at a certain time;
//! - `Deferred`, `Stall` and `Sizing`: what the keeper saw when it last looked.

mod due;

pub(crate) use due::{
    Deadlines, Deferred, End, Keeper, KeeperJob, KeeperState, PAUSE, Previous, Progress, Sizing,
    SizingState, Stall, UserCode,
};
