//! What is due at a certain time: the jobs of the keeper, and what it saw when it last looked.
//!
//! What the jobs do stands in `sched`, `sizing` and `observe`. Others use
//!
//! - `Keeper`: is asked for a job at a time.
//! - `KeeperJob`: the kinds of that.
//! - `PAUSE`: after how long it looks again at what may be over in a moment.
//! - `KeeperState`: what the threads know that do the jobs.
//! - `UserCode`, `End`: what the helper runs, and what the end of the pool is sent to.
//! - `Deadlines`: what expires at a certain time.
//! - `Deferred`, `Stall`, `Progress`, `Sizing`, `SizingState`, `Previous`: what the keeper saw when
//!   it last looked.

mod due;

pub(crate) use due::{
    Deadlines, Deferred, End, Keeper, KeeperJob, KeeperState, PAUSE, Previous, Progress, Sizing,
    SizingState, Stall, UserCode,
};
