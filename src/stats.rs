//! The statistics of a pool.

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
