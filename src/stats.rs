//! Counting what happened, without a shared counter that every task writes.
//!
//! Each worker has a [`WorkerMetrics`] that it alone writes; reading sums them up. They are no part of any
//! protocol, so models do not explore them.

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
    /// Jobs that were put down again: ended, or pending.
    record: Counter,
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

/// The sums of metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) taken: usize,
    pub(crate) record: usize,
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

    /// Jobs in somebody's hands.
    pub(crate) fn active(self) -> usize {
        self.taken.saturating_sub(self.record)
    }
}

/// Only ever called by the one that the metrics belongs to.
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
        if let Some(tick) = ended {
            tick.add_alone(1);
        }
        self.counters.record.add_alone(1);
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
        sums.record += counters.record.get();
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

/// What a pool has done so far and what it is doing, from [`ThreadPool::stats`](crate::ThreadPool::stats).
///
/// Tasks are counted in `completed`, `panicked`, `cancelled` and `handed_back` when they have ended; these four,
/// `rejected` and the counts of threads only grow (and wrap around at `usize::MAX`). The others say how
/// many there are now.
///
/// Everything is exact when nothing moves: when the pool is quiet, for instance after
/// [`join`](crate::ThreadPool::join), and also when all that it does is to wait. While it works, the numbers are
/// read one after another, and may be off by what happens meanwhile. (A worker accepts what its tasks submit several at a
/// time, so for a moment there may be some more in `pending`.)
///
/// # Relations
/// - `accepted() == queued + active + pending + completed + panicked + cancelled + handed_back`: every task that was
///   ever accepted is in exactly one of these. When the pool is quiet the first three are 0.
/// - `threads_started == workers + threads_retired`.
/// - `workers >= idle + blocked`, and `workers >= idle + active` but for tasks that run on the stack of another thread: of
///   a submitter because the system refused one, or of the thread that waits for them.
/// - `workers - blocked - idle` exceeds `max_size` only after that was lowered, and by one when a worker has come back from
///   a [blocking region](crate::blocking()), until the next one ends its task (by more if no worker ends one for 100 ms).
/// - `peak_blocked >= blocked`.
/// - `peak_workers >= workers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Workers alive now, idle and blocked ones included.
    pub workers: usize,
    /// Workers that wait for work now.
    pub idle: usize,
    /// Tasks that run now, those in blocking regions included, and futures that are being polled.
    pub active: usize,
    /// Workers in a [blocking region](crate::blocking()) now.
    pub blocked: usize,
    /// The most workers that were in blocking regions at the same time, as far as was seen: it may be off by those that
    /// entered or left one in the same moment.
    pub peak_blocked: usize,
    /// Tasks that wait for a worker now, woken futures included.
    pub queued: usize,
    /// Spawned futures that wait to be woken now, and tasks in line for a place in their [group](crate::TaskGroup).
    pub pending: usize,
    /// The most workers that were alive at the same time.
    pub peak_workers: usize,
    /// Workers started, each with a thread of its own.
    pub threads_started: usize,
    /// Threads that the system refused to start.
    pub threads_refused: usize,
    /// Workers that have run their last task: surplus, [recycled](crate::Builder::max_tasks_per_worker), or because
    /// the pool was closed.
    pub threads_retired: usize,
    /// Tasks that ran to their end.
    pub completed: usize,
    /// Tasks that ended in a panic.
    pub panicked: usize,
    /// Tasks that were accepted and then dropped before their end.
    pub cancelled: usize,
    /// Tasks that were accepted and given back by [`shutdown_now`](crate::ThreadPool::shutdown_now).
    pub handed_back: usize,
    /// Tasks that were not accepted.
    pub rejected: usize,
}

impl Stats {
    /// Tasks accepted so far.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// let stats = pool.stats();
    /// assert_eq!((stats.accepted(), stats.completed, stats.in_flight()), (1, 1, 0));
    /// ```
    pub fn accepted(&self) -> usize {
        self.in_flight() + self.completed + self.panicked + self.cancelled + self.handed_back
    }

    /// Tasks accepted and not ended: queued, active and pending.
    pub fn in_flight(&self) -> usize {
        self.queued + self.active + self.pending
    }
}
