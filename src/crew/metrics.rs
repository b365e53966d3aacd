//! Counters per worker, summed when read: no counter is written by all workers.
//!
//! Only one thread counts in a [`WorkerMetrics`], mostly its worker. (The keeper writes which CPU
//! time it has seen, and ends that the worker is the extra one.) No race depends on a counter, so
//! models do not explore their accesses. Some are read to decide something: how many tasks were
//! taken (when the keeper starts threads, whether a poll goes on), how many have ended, less those
//! of the extra worker (the number under measurements), which workers have a task (who is measured
//! and watched), and how many entries are stale (whether a join would wait for paused tasks).
//!
//! A new counter needs a variant of [`Count`], before that of the event which it follows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::stats::Stats;
use crate::sync::probe::ThreadId;
use crate::sync::{AtomicBool, Counter, Hint, Ordering};
use crate::task::{Entry, Outcome};

/// What is counted, in the order in which it is read: a later event before the one that it follows.
/// So no event is counted without the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Ended tasks subtracted from the in-flight count, less the credit added to it. Wraps around
    /// below zero.
    Returned,
    /// Jobs that were begun and are over without an end: polls that returned pending, and stale
    /// entries.
    Paused,
    /// Tasks that have ended on the worker while it ran beyond the limit.
    OfExtra,
    Completed,
    Panicked,
    Cancelled,
    Expired,
    /// Queued tasks handed back to the user.
    HandedBack,
    /// Stale entries: those left in the queue, less those taken from it or relied on by new tasks.
    /// Wraps around below zero.
    Stale,
    /// Jobs begun: entries taken from the queue, and tasks claimed by their waiters. Both are
    /// progress.
    Taken,
}

/// The counters of one worker, padded to a cache line of their own.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    counters: CachePadded<[Counter; Count::Taken as usize + 1]>,
    pub(crate) thread: ThreadId,
    /// Whether the worker is in a blocking region.
    pub(crate) is_in_region: Hint,
    /// Whether the worker is the extra one ([`end_extra`](Self::end_extra)).
    pub(crate) is_extra: AtomicBool,
    /// Whether it has the place of views for ready futures.
    pub(crate) has_futures_place: Hint,
    /// The CPU time that the worker had used at the last measurement, in nanoseconds.
    used: Counter,
}

/// The sums over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums([usize; Count::Taken as usize + 1]);

impl Sums {
    pub(super) fn of(self, count: Count) -> usize {
        self.0[count as usize]
    }

    /// Tasks that ran or were dropped. Wraps around like each of the sums.
    fn ended(self) -> usize {
        [Count::Completed, Count::Panicked, Count::Cancelled, Count::Expired]
            .into_iter()
            .fold(0, |sum, count| sum.wrapping_add(self.of(count)))
    }

    /// Those that have not ended on a worker beyond the limit.
    pub(crate) fn ended_within_limit(self) -> usize {
        self.ended().wrapping_sub(self.of(Count::OfExtra))
    }

    /// By how much the in-flight count is too high: ended tasks not subtracted yet, and unused
    /// credit.
    fn unreported(self) -> usize {
        let ended = self.ended().wrapping_add(self.of(Count::HandedBack));
        above_zero(ended.wrapping_sub(self.of(Count::Returned)))
    }

    /// Jobs that a thread runs at the moment.
    fn active(self) -> usize {
        let over = self.ended().wrapping_add(self.of(Count::Paused));
        above_zero(self.of(Count::Taken).wrapping_sub(over))
    }

    /// Stale entries in the queues.
    pub(crate) fn stale(self) -> usize {
        above_zero(self.of(Count::Stale))
    }

    /// Fills in the counts of tasks, given how many are in flight and how many entries are queued.
    pub(crate) fn describe(self, stats: &mut Stats, in_flight: usize, queued: usize) {
        let in_flight = in_flight.saturating_sub(self.unreported());
        stats.queued = queued.saturating_sub(self.stale());
        // A worker may not have returned yet from a future that another worker has completed since.
        stats.active = self.active().min(in_flight.saturating_sub(stats.queued));
        stats.pending = in_flight.saturating_sub(stats.queued + stats.active);
        stats.completed = self.of(Count::Completed);
        stats.panicked = self.of(Count::Panicked);
        stats.cancelled = self.of(Count::Cancelled);
        stats.expired = self.of(Count::Expired);
        stats.handed_back = self.of(Count::HandedBack);
    }
}

/// Returns a count that wraps around below zero, or zero if it has.
pub(crate) fn above_zero(count: usize) -> usize {
    (count as isize).max(0) as usize
}

/// What the metrics' owner records. Only the owner may call these: the counters are written without
/// read-modify-writes.
impl WorkerMetrics {
    #[inline]
    pub(crate) fn add(&self, count: Count, number: usize) {
        self.counters[count as usize].add_alone(number);
    }

    /// Whether the worker was the extra one: then the caller changes the counts.
    pub(crate) fn end_extra(&self) -> bool {
        // AcqRel: the change of the counts by which it became the extra one comes before.
        self.is_extra.load(Ordering::Relaxed) && self.is_extra.swap(false, Ordering::AcqRel)
    }

    /// Whether the worker runs beyond the limit, for ready futures only.
    pub(crate) fn polls_only(&self) -> bool {
        self.is_extra.load(Ordering::Relaxed) || self.has_futures_place.get()
    }

    /// Counts a job that begins.
    #[inline]
    pub(crate) fn count_begin(&self) {
        self.add(Count::Taken, 1);
    }

    /// Counts the outcome of a job that was begun.
    #[inline]
    pub(crate) fn record(&self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Completed => Count::Completed,
            Outcome::Panicked(_) => Count::Panicked,
            Outcome::Cancelled => Count::Cancelled,
            Outcome::Expired => Count::Expired,
            Outcome::Skipped => {
                self.drop_entries(1);
                Count::Paused
            }
            Outcome::Pending | Outcome::Yielded(_) => Count::Paused,
        };
        self.add(count, 1);
    }

    /// Counts a job that its waiter begins.
    pub(crate) fn begin_awaited(&self, entry: Entry) {
        self.count_begin();
        if entry == Entry::Stale {
            self.add(Count::Stale, 1);
        }
    }

    /// Counts stale entries that are no longer in the queue, or no longer stale.
    pub(crate) fn drop_entries(&self, count: usize) {
        self.add(Count::Stale, count.wrapping_neg());
    }

    /// Counts ended tasks that are subtracted from the in-flight count.
    #[inline]
    pub(crate) fn count_returned(&self, count: usize) {
        self.add(Count::Returned, count);
    }
}

/// What any thread may read.
impl WorkerMetrics {
    /// Adds these counters to `sums`.
    pub(crate) fn add_to(&self, sums: &mut Sums) {
        for (sum, counter) in sums.0.iter_mut().zip(&*self.counters) {
            *sum = sum.wrapping_add(counter.get());
        }
    }

    pub(crate) fn taken(&self) -> usize {
        self.counters[Count::Taken as usize].get()
    }

    /// How many tasks have ended on the worker.
    pub(crate) fn ended(&self) -> usize {
        self.sums().ended()
    }

    /// Whether the worker has a task.
    pub(super) fn is_busy(&self) -> bool {
        self.sums().active() > 0
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.add_to(&mut sums);
        sums
    }

    /// Returns the CPU time that the worker has used since the last call. Only the keeper calls it.
    /// `None`: the system does not tell.
    pub(crate) fn take_cpu_time(&self) -> Option<Duration> {
        // On a 32-bit machine it wraps around.
        let used = self.thread.cpu_nanos()? as usize;
        Some(Duration::from_nanos(used.wrapping_sub(self.used.replace_alone(used)) as u64))
    }
}

/// The metrics of all threads that are not workers, behind a lock: such tasks are rare. Also those
/// of a view, whose tasks are taken under a lock anyway.
#[derive(Debug, Default)]
pub(crate) struct CallerMetrics(Mutex<WorkerMetrics>);

impl CallerMetrics {
    /// Locks the metrics, for what happens on the calling thread.
    pub(crate) fn lock(&self) -> MutexGuard<'_, WorkerMetrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{Count, Sums, WorkerMetrics};
    use crate::stats::Stats;

    #[test]
    fn counters_wrap_around() {
        let (mut sums, metrics) = (Sums::default(), WorkerMetrics::default());
        for count in [Count::Taken, Count::Completed, Count::Stale, Count::Returned] {
            metrics.add(count, usize::MAX);
        }
        metrics.add(Count::Taken, 3);
        metrics.add(Count::Completed, 2);
        metrics.add(Count::Stale, 2);
        metrics.add_to(&mut sums);
        metrics.add_to(&mut sums);
        assert_eq!((sums.of(Count::Taken), sums.of(Count::Completed)), (4, 2));
        // Each of the two has one job that runs, one stale entry, one ended task that was not
        // returned, and credit for one.
        let mut stats = Stats::default();
        sums.describe(&mut stats, 13, 7);
        assert_eq!((stats.active, stats.queued, stats.pending), (2, 5, 2));
        metrics.drop_entries(6);
        metrics.add_to(&mut sums);
        sums.describe(&mut stats, 99, 7);
        assert_eq!(stats.queued, 7, "another thread's metrics have those entries");
    }
}
