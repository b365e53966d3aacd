//! Counting what happened, without a shared counter that every task writes.
//!
//! Each worker has a [`Tally`] that it alone writes; reading sums them up. They are no part of any
//! protocol, so models do not explore them.

use crate::job::Outcome;
use crate::sync::Tick;

/// What became of the tasks that one worker ran (or of those that ended outside of any worker).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    completed: Tick,
    panicked: Tick,
    cancelled: Tick,
}

impl Tally {
    pub(crate) fn count(&self, outcome: Outcome) {
        let tick = match outcome {
            Outcome::Completed => &self.completed,
            Outcome::Panicked => &self.panicked,
            Outcome::Cancelled => &self.cancelled,
            #[cfg(feature = "async")]
            Outcome::Pending => return,
        };
        tick.increment();
    }

    pub(crate) fn add_to(&self, stats: &mut Stats) {
        stats.completed += self.completed.get();
        stats.panicked += self.panicked.get();
        stats.cancelled += self.cancelled.get();
    }
}

/// What a pool has done so far and what it is doing, from [`ThreadPool::stats`](crate::ThreadPool::stats).
///
/// The counters only grow (and wrap around at `usize::MAX`). They are exact when the pool is quiet, for
/// instance after [`join`](crate::ThreadPool::join); while it works they are read one after another.
///
/// When the pool is quiet, every task that was ever accepted is in exactly one of `completed`,
/// `panicked` and `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Workers alive now, idle ones included.
    pub workers: usize,
    /// Workers that wait for work now.
    pub idle: usize,
    /// Tasks that wait for a worker now.
    pub queued: usize,
    /// Tasks accepted and not ended: queued, running, and futures that wait to be woken. A worker that is
    /// busy reports the tasks that it has ended when it rests: until then they are included.
    pub in_flight: usize,
    /// The most workers that were alive at the same time.
    pub peak_workers: usize,
    /// Threads started.
    pub threads_started: usize,
    /// Threads that the system refused to start.
    pub threads_refused: usize,
    /// Workers that ended.
    pub workers_stopped: usize,
    /// Tasks that ran to their end.
    pub completed: usize,
    /// Tasks that ended in a panic.
    pub panicked: usize,
    /// Tasks that were accepted and then dropped before their end.
    pub cancelled: usize,
    /// Tasks that were not accepted.
    pub rejected: usize,
}
