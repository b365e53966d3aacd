//! The statistics of a pool.

/// What a pool has done and is doing. Returned by [`ThreadPool::stats`](crate::ThreadPool::stats).
///
/// There are three kinds of fields:
/// - **Totals** only grow, and wrap around at `usize::MAX`: `completed`, `panicked`, `cancelled`,
///   `expired`, `handed_back`, `rejected` and the counts of threads. A task counts in one of the
///   first five when it has ended.
/// - **Peaks** say how many there were at most: `peak_workers` and `peak_blocked`.
/// - **The others** say how many there are now.
///
/// The counts of tasks are exact while no task moves: when the pool is quiet, such as after
/// [`join`](crate::ThreadPool::join), and when all of its tasks wait. These are `queued`, `active`,
/// `pending`, `blocked`, `completed`, `panicked`, `cancelled`, `expired`, `handed_back` and
/// `rejected`. While the pool works, the fields are read one after another and may be off by what
/// happens meanwhile. (A worker accepts tasks that its tasks submit in batches, so `pending` may be
/// too high for a moment.)
///
/// `workers`, `idle` and the counts of threads say how it is at the moment of the call. A worker is
/// idle once it has looked for work and found none. So a worker that has just been started is not
/// idle yet, nor is one that has just ended its task or was woken for a task that another worker
/// took. Soon after the pool has become quiet, `idle` equals `workers`.
///
/// # Relations
/// Always:
/// - `accepted() == queued + active + pending + completed + panicked + cancelled + expired + handed_back`:
///   `accepted` adds them up.
/// - `threads_started == workers + threads_retired`.
/// - `peak_workers >= workers`, and `peak_blocked >= blocked`.
/// - `workers >= idle + blocked`, if at most [`max_blocked`](crate::Builder::max_blocked) workers
///   are in calls of [`blocking`](crate::blocking()). With more of them, only while no worker
///   moves.
///
/// While no task moves:
/// - Each accepted task counts in exactly one of the eight fields above, so `accepted` is exact.
///   When the pool is quiet the first three are 0.
/// - `workers >= idle + active`. This does not count tasks that run on another thread's stack: on a
///   submitter's, because the system refused a thread, or on that of the thread that waits for
///   them.
/// - `workers - blocked - idle` exceeds `max_size` in two cases: after `max_size` was lowered, and
///   by one after a worker came back from a [blocking region](crate::blocking()), until the next
///   worker ends its task (by more if no worker ends one for a while).
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// pool.execute(|| ());
/// pool.join();
/// let stats = pool.stats();
/// assert_eq!((stats.completed, stats.queued, stats.active, stats.pending), (1, 0, 0, 0));
/// assert_eq!(stats.threads_started, stats.workers + stats.threads_retired);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Workers alive now, including idle and blocked ones.
    pub workers: usize,
    /// Workers that have found no work and wait for it now.
    pub idle: usize,
    /// Tasks that run now, including those in blocking regions, and futures that are being polled.
    #[doc(alias = "active_count")]
    pub active: usize,
    /// Workers in a [blocking region](crate::blocking()) now.
    pub blocked: usize,
    /// Workers that may run tasks now: [`max_size`](crate::ThreadPool::max_size) or, under
    /// [`Growth::Measured`](crate::Growth::Measured), as many of them as keep the CPUs busy.
    pub allowed: usize,
    /// Under [`Growth::Measured`](crate::Growth::Measured), workers that sleep in their tasks,
    /// outside of blocking regions: in a lock, a read, a channel or a sleep. As measured last, a
    /// few milliseconds ago. 0 while nothing is measured: while no task is queued, or if `max_size`
    /// is no larger than the number of workers that the pool wants awake.
    pub asleep: usize,
    /// Of those `asleep`, the ones that wait for another thread: in a lock, a channel or a
    /// condition variable. Only Linux and Android tell.
    pub asleep_on_threads: usize,
    /// Of those `asleep`, the ones that wait for a disk. Only Linux and Android tell.
    pub asleep_on_disks: usize,
    /// Workers that are not idle, blocked or `asleep`. While that is measured, they run or wait for
    /// a CPU.
    pub awake: usize,
    /// The most workers that were in blocking regions at the same time. May be off by workers that
    /// entered or left one at the moment of counting, and one too high if that was at the bound
    /// [`max_blocked`](crate::Builder::max_blocked).
    pub peak_blocked: usize,
    /// Tasks that wait for a worker now, including woken futures.
    #[doc(alias = "queued_count")]
    pub queued: usize,
    /// Spawned futures that wait to be woken now, tasks that wait for a slot in their
    /// [group](crate::TaskGroup), and [permits](crate::Permit) that are held. A
    /// [`Report`](crate::Report) calls the tasks queued.
    pub pending: usize,
    /// The most workers that were alive at the same time.
    pub peak_workers: usize,
    /// Workers started, each with a thread of its own.
    pub threads_started: usize,
    /// Threads that the system refused to start.
    pub threads_refused: usize,
    /// Workers that have run their last task: they were surplus, too many for a lower `max_size`,
    /// or [recycled](crate::Builder::max_tasks_per_worker), or they left a closed pool.
    pub threads_retired: usize,
    /// Tasks that ran to their end.
    pub completed: usize,
    /// Tasks that ended in a panic.
    #[doc(alias = "panic_count")]
    pub panicked: usize,
    /// Tasks that were accepted and dropped before their end.
    pub cancelled: usize,
    /// Tasks of a [view](crate::View) that were accepted, and dropped because they were not started
    /// within its [`queue_timeout`](crate::ViewBuilder::queue_timeout). Counted when they are
    /// dropped: by a worker, or by a thread that waits for the handle or cancels it.
    pub expired: usize,
    /// Tasks that were accepted and handed back by
    /// [`shutdown_now`](crate::ThreadPool::shutdown_now).
    pub handed_back: usize,
    /// Tasks that were not accepted.
    pub rejected: usize,
}

impl Stats {
    /// Returns the number of tasks accepted so far.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// let stats = pool.stats();
    /// assert_eq!((stats.accepted(), stats.completed, stats.in_flight()), (1, 1, 0));
    /// ```
    pub fn accepted(&self) -> usize {
        // Wraps around like the counters.
        [self.completed, self.panicked, self.cancelled, self.expired, self.handed_back]
            .into_iter()
            .fold(self.in_flight(), usize::wrapping_add)
    }

    /// Returns the number of tasks accepted and not ended: queued, active and pending.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// assert_eq!(pool.stats().in_flight(), 1); // queued or active
    /// open.send(()).unwrap();
    /// pool.join();
    /// assert_eq!(pool.stats().in_flight(), 0);
    /// ```
    pub fn in_flight(&self) -> usize {
        self.queued + self.active + self.pending
    }
}
