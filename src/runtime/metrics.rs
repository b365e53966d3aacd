//! Counters per worker, summed when read: no counter is written by all workers.
//!
//! Only one thread writes a [`WorkerMetrics`], mostly its worker. Correctness depends on no metric, so models do not explore
//! their accesses. The keeper reads `taken`, which affects only when it starts threads.
//!
//! A new counter needs a field here and in [`Sums`], and a line in [`WorkerMetrics::add_to`] before that of the event which
//! it follows.

use std::sync::{Mutex, MutexGuard};

use crossbeam_utils::CachePadded;

use crate::stats::Stats;
use crate::sync::Counter;
use crate::task::job::Outcome;
use crate::task::unstarted::Entry;

/// The counters of one worker, padded to a cache line of their own.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    counters: CachePadded<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    /// Jobs begun: entries taken from the queue, and tasks claimed by their waiters. Both are progress.
    taken: Counter,
    /// Of these, the jobs that have ended or returned pending.
    returned: Counter,
    completed: Counter,
    panicked: Counter,
    cancelled: Counter,
    expired: Counter,
    handed_back: Counter,
    /// Stale entries: those left in the queue, less those taken from it or relied on by new tasks. Wraps around below zero.
    stale: Counter,
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
    pub(crate) expired: usize,
    pub(crate) handed_back: usize,
    pub(crate) stale: usize,
    pub(crate) reported: usize,
}

impl Sums {
    fn ended(self) -> usize {
        // Wraps around like each of them.
        [self.panicked, self.cancelled, self.expired, self.handed_back]
            .into_iter()
            .fold(self.completed, usize::wrapping_add)
    }

    /// By how much the in-flight count is too high: ended tasks not subtracted yet, and unused credit.
    pub(crate) fn unreported(self) -> usize {
        (self.ended().wrapping_sub(self.reported) as isize).max(0) as usize
    }

    /// Returns how many of the `queued` entries have a task.
    pub(crate) fn queued_tasks(self, queued: usize) -> usize {
        queued.saturating_sub((self.stale as isize).max(0) as usize)
    }

    /// Fills in the counts of tasks, given how many are in flight and how many entries are queued.
    pub(crate) fn describe(self, stats: &mut Stats, in_flight: usize, queued: usize) {
        let in_flight = in_flight.saturating_sub(self.unreported());
        stats.queued = self.queued_tasks(queued);
        // A worker may not have returned yet from a future that another worker has completed since.
        stats.active = self.active().min(in_flight.saturating_sub(stats.queued));
        stats.pending = in_flight.saturating_sub(stats.queued + stats.active);
        stats.completed = self.completed;
        stats.panicked = self.panicked;
        stats.cancelled = self.cancelled;
        stats.expired = self.expired;
        stats.handed_back = self.handed_back;
    }

    /// Jobs that a worker runs at the moment.
    pub(crate) fn active(self) -> usize {
        (self.taken.wrapping_sub(self.returned) as isize).max(0) as usize
    }
}

/// What the metrics' owner records. Only the owner may call these: the counters are written without read-modify-writes.
impl WorkerMetrics {
    /// Counts a job that begins.
    pub(crate) fn take(&self) {
        self.counters.taken.add_alone(1);
    }

    /// Counts the outcome of a job that was run.
    pub(crate) fn record(&self, outcome: &Outcome) {
        let ended = match outcome {
            Outcome::Completed => return self.record_completed(),
            #[cfg(feature = "async")]
            Outcome::Pending | Outcome::Woken(_) => return self.record_pending(),
            Outcome::Panicked(_) => &self.counters.panicked,
            Outcome::Cancelled => &self.counters.cancelled,
            Outcome::Expired => &self.counters.expired,
            Outcome::Skipped => {
                self.drop_entries(1);
                return self.counters.returned.add_alone(1);
            }
        };
        ended.add_alone(1);
        self.counters.returned.add_alone(1);
    }

    /// Counts the end of a task that ran to its end.
    #[inline]
    pub(crate) fn record_completed(&self) {
        self.counters.completed.add_alone(1);
        self.counters.returned.add_alone(1);
    }

    /// Counts the end of a poll whose future has not ended.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn record_pending(&self) {
        self.counters.returned.add_alone(1);
    }

    /// Counts a job that its waiter begins.
    pub(crate) fn begin_awaited(&self, entry: Entry) {
        self.take();
        if entry == Entry::Stale {
            self.leave_entry();
        }
    }

    /// Counts an entry that is stale from now on: its task was claimed by its waiter or canceller.
    pub(crate) fn leave_entry(&self) {
        self.counters.stale.add_alone(1);
    }

    /// Counts stale entries that are no longer in the queue, or no longer stale.
    pub(crate) fn drop_entries(&self, count: usize) {
        self.counters.stale.add_alone(count.wrapping_neg());
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
        let add = |sum: &mut usize, counter: &Counter| *sum = sum.wrapping_add(counter.get());
        // Read the counters of later events first: no event is then counted without the one before it.
        add(&mut sums.reported, &counters.reported);
        add(&mut sums.returned, &counters.returned);
        add(&mut sums.completed, &counters.completed);
        add(&mut sums.panicked, &counters.panicked);
        add(&mut sums.cancelled, &counters.cancelled);
        add(&mut sums.expired, &counters.expired);
        add(&mut sums.handed_back, &counters.handed_back);
        add(&mut sums.stale, &counters.stale);
        add(&mut sums.taken, &counters.taken);
    }

    pub(crate) fn taken(&self) -> usize {
        self.counters.taken.get()
    }
}

/// The metrics of all threads that are not workers, behind a lock: such tasks are rare. Also those of a view, whose tasks are
/// taken under a lock anyway.
#[derive(Debug, Default)]
pub(crate) struct CallerMetrics(Mutex<WorkerMetrics>);

impl CallerMetrics {
    fn lock(&self) -> MutexGuard<'_, WorkerMetrics> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Counts what happens on the calling thread.
    pub(crate) fn count(&self, count: impl FnOnce(&WorkerMetrics)) {
        count(&self.lock());
    }

    /// Adds these counters to `sums`.
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        self.lock().add_to(sums);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{Sums, WorkerMetrics};

    #[test]
    fn counters_wrap_around() {
        let (mut sums, metrics) = (Sums::default(), WorkerMetrics::default());
        let counters = &metrics.counters;
        for counter in
            [&counters.taken, &counters.returned, &counters.completed, &counters.panicked]
        {
            counter.add_alone(usize::MAX);
        }
        for counter in [&counters.taken, &counters.returned, &counters.completed, &counters.stale] {
            counter.add_alone(2);
        }
        metrics.take();
        metrics.report(usize::MAX);
        metrics.add_to(&mut sums);
        metrics.add_to(&mut sums);
        assert_eq!((sums.taken, sums.returned, sums.completed), (4, 2, 2));
        // Each of the two has one job that runs, two stale entries, and one ended task that was not reported.
        assert_eq!((sums.active(), sums.queued_tasks(9), sums.unreported()), (2, 5, 2));
        metrics.drop_entries(6);
        metrics.add_to(&mut sums);
        assert_eq!(sums.queued_tasks(9), 9, "another thread's metrics have those entries");
    }
}
