//! What is counted per worker and summed when read, so that no counter is written by every task.
//!
//! Each worker alone writes its [`WorkerMetrics`]. No protocol depends on them, so models do not explore them.

use std::sync::{Mutex, MutexGuard};

use crossbeam_utils::CachePadded;

use crate::sync::Counter;
use crate::task::job::Outcome;

/// What one worker has done, in a cache line of its own.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    counters: CachePadded<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    /// Jobs taken from the queue: tasks, and futures for another poll.
    taken: Counter,
    /// Jobs that the worker is done with: ended, or pending.
    returned: Counter,
    completed: Counter,
    panicked: Counter,
    cancelled: Counter,
    handed_back: Counter,
    /// Tasks that were run by the thread that waits for them, whose entries stay in the queue.
    claimed: Counter,
    /// Entries of such tasks that were taken from the queue.
    skipped: Counter,
    /// Ended tasks that the pool has been told of, less those that it was told of in advance: may be below zero, that
    /// is, wrapped around.
    reported: Counter,
}

/// The sums over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) taken: usize,
    pub(crate) returned: usize,
    pub(crate) completed: usize,
    pub(crate) panicked: usize,
    pub(crate) cancelled: usize,
    pub(crate) handed_back: usize,
    pub(crate) claimed: usize,
    pub(crate) skipped: usize,
    pub(crate) reported: usize,
}

impl Sums {
    fn ended(self) -> usize {
        self.completed + self.panicked + self.cancelled + self.handed_back
    }

    /// Tasks that have ended without the pool having been told, and those that it was told of in advance.
    pub(crate) fn unreported(self) -> usize {
        (self.ended().wrapping_sub(self.reported) as isize).max(0) as usize
    }

    /// Entries in the queue whose tasks have been started by the threads that wait for them.
    pub(crate) fn stale(self) -> usize {
        (self.claimed.wrapping_sub(self.skipped) as isize).max(0) as usize
    }

    /// Jobs that are being run.
    pub(crate) fn active(self) -> usize {
        self.taken.saturating_sub(self.returned)
    }
}

/// Only the owner of the metrics calls these.
impl WorkerMetrics {
    pub(crate) fn take(&self) {
        self.counters.taken.add_alone(1);
    }

    pub(crate) fn record(&self, outcome: &Outcome) {
        let ended = match outcome {
            Outcome::Completed => Some(&self.counters.completed),
            Outcome::Panicked(_) => Some(&self.counters.panicked),
            Outcome::Cancelled => Some(&self.counters.cancelled),
            Outcome::Skipped => Some(&self.counters.skipped),
            #[cfg(feature = "async")]
            Outcome::Pending | Outcome::Woken(_) => None,
        };
        if let Some(counter) = ended {
            counter.add_alone(1);
        }
        self.counters.returned.add_alone(1);
    }

    /// A task has been started by the thread that waits for it.
    pub(crate) fn claim(&self) {
        self.counters.claimed.add_alone(1);
    }

    /// The entries of such tasks have been taken from the queue.
    pub(crate) fn skip(&self, count: usize) {
        self.counters.skipped.add_alone(count);
    }

    pub(crate) fn hand_back(&self) {
        self.counters.handed_back.add_alone(1);
    }

    #[inline]
    pub(crate) fn report(&self, count: usize) {
        self.counters.reported.add_alone(count);
    }

    /// The pool has been told of tasks that are still to come.
    pub(crate) fn add_credit(&self, count: usize) {
        self.counters.reported.add_alone(count.wrapping_neg());
    }
}

impl WorkerMetrics {
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        let counters = &self.counters;
        // What comes later first: then it is never ahead of what must come before it.
        sums.reported = sums.reported.wrapping_add(counters.reported.get());
        sums.returned += counters.returned.get();
        sums.completed += counters.completed.get();
        sums.panicked += counters.panicked.get();
        sums.cancelled += counters.cancelled.get();
        sums.handed_back += counters.handed_back.get();
        sums.skipped += counters.skipped.get();
        sums.claimed += counters.claimed.get();
        sums.taken += counters.taken.get();
    }

    pub(crate) fn taken(&self) -> usize {
        self.counters.taken.get()
    }
}

/// The metrics of everybody who is no worker. They take steps, which is rare enough.
#[derive(Debug, Default)]
pub(crate) struct CallerMetrics(Mutex<WorkerMetrics>);

impl CallerMetrics {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WorkerMetrics> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}
