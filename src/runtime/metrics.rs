//! Counters per worker, summed when read: no counter is written by all workers.
//!
//! Only its worker writes a [`WorkerMetrics`]. No protocol depends on metrics, so models do not explore their accesses.

use std::sync::{Mutex, MutexGuard};

use crossbeam_utils::CachePadded;

use crate::sync::Counter;
use crate::task::job::Outcome;

/// The counters of one worker, padded to a cache line of their own.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    counters: CachePadded<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    /// Jobs taken from the queue: tasks, and futures for another poll.
    taken: Counter,
    /// Jobs that have ended or returned pending.
    returned: Counter,
    completed: Counter,
    panicked: Counter,
    cancelled: Counter,
    handed_back: Counter,
    /// Tasks that their waiter claimed. Their entries stay in the queue.
    claimed: Counter,
    /// Entries of claimed tasks that were taken from the queue.
    skipped: Counter,
    /// Ended tasks subtracted from the in-flight count, less the credit added to it. Wraps around below zero.
    reported: Counter,
}

/// The sums over all workers. The fields are those of [`Counters`].
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

    /// By how much the in-flight count is too high: ended tasks not subtracted yet, and unused credit.
    pub(crate) fn unreported(self) -> usize {
        (self.ended().wrapping_sub(self.reported) as isize).max(0) as usize
    }

    /// Entries in the queue whose tasks have been claimed by their waiters.
    pub(crate) fn stale(self) -> usize {
        (self.claimed.wrapping_sub(self.skipped) as isize).max(0) as usize
    }

    /// Jobs that a worker runs at the moment.
    pub(crate) fn active(self) -> usize {
        self.taken.saturating_sub(self.returned)
    }
}

/// What the metrics' owner records. Only the owner may call these: the counters are written without read-modify-writes.
impl WorkerMetrics {
    /// Counts a job taken from the queue.
    pub(crate) fn take(&self) {
        self.counters.taken.add_alone(1);
    }

    /// Counts the outcome of a job that was run.
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

    /// Counts a task claimed by its waiter.
    pub(crate) fn claim(&self) {
        self.counters.claimed.add_alone(1);
    }

    /// Counts entries of claimed tasks that were taken from the queue.
    pub(crate) fn skip(&self, count: usize) {
        self.counters.skipped.add_alone(count);
    }

    /// Counts a queued task handed back to the user.
    pub(crate) fn hand_back(&self) {
        self.counters.handed_back.add_alone(1);
    }

    /// Counts ended tasks that are subtracted from the in-flight count.
    #[inline]
    pub(crate) fn report(&self, count: usize) {
        self.counters.reported.add_alone(count);
    }

    /// Counts credit: tasks added to the in-flight count before they are submitted.
    pub(crate) fn add_credit(&self, count: usize) {
        self.counters.reported.add_alone(count.wrapping_neg());
    }
}

/// What any thread may read.
impl WorkerMetrics {
    /// Adds these counters to `sums`.
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        let counters = &self.counters;
        // Read the counters of later events first: no event is then counted without the one before it.
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

/// The metrics of all threads that are not workers, behind a lock: such tasks are rare.
#[derive(Debug, Default)]
pub(crate) struct CallerMetrics(Mutex<WorkerMetrics>);

impl CallerMetrics {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WorkerMetrics> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}
