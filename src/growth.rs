//! [`Growth`].

use std::time::Duration;

/// When a pool with at least `core_size` workers starts another for a task, if no worker is idle.
/// Set by [`Builder::growth`](crate::Builder::growth).
///
/// With any growth, each submission below `core_size` starts a worker (with
/// [`prefer_idle`](crate::Builder::prefer_idle): if none is idle). Idle workers are woken at once,
/// under [`Measured`](Self::Measured) while as many as measured may run.
///
/// ```
/// use std::time::Duration;
/// use elastipool::{Growth, ThreadPool};
///
/// let stalled = Growth::Stalled(Duration::from_millis(1));
/// let pool = ThreadPool::builder().core_size(1).max_size(64).growth(stalled).build();
/// for _ in 0..1_000 {
///     pool.execute(|| ());
/// }
/// pool.join();
/// println!("at most {} workers at a time", pool.stats().peak_workers);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Growth {
    /// At once: the default of a pool with a size, and `Growth::default()`. No task waits while the
    /// pool may have more workers. A burst of tiny tasks may start more threads than it is worth.
    #[default]
    Eager,
    /// When no worker has taken a queued task for this long. Then one thread is started. After as
    /// long again without progress two more are started, then four, and so on. So existing workers
    /// handle a burst of tiny tasks, while a burst of blocking tasks gets all the workers that the
    /// pool may have within a few steps.
    ///
    /// If all workers are in [blocking regions](crate::blocking()), one is started at once. The
    /// pool's keeper keeps the time, a thread of each pool with a worker: while tasks are queued it
    /// wakes up once per this duration, and otherwise it sleeps.
    ///
    /// While a worker is in its start hook, no other is started: it is about to take a task.
    ///
    /// Choose 100 microseconds to a few milliseconds. Below that, delays of the operating system
    /// look like a lack of progress.
    Stalled(Duration),
    /// When fewer workers are awake than there are CPUs: the pool measures what its tasks do. The
    /// default of a pool whose sizes are not set, with a `max_size` of 512 (511 on a 32-bit
    /// system).
    ///
    /// A worker is *awake* while its task computes or waits for a CPU. It is asleep while its task
    /// waits for anything else: in a lock, a read, a channel or `thread::sleep`, whether or not
    /// that is marked as [`blocking`](crate::blocking()). Within `max_size` the pool lets as many
    /// workers run as keep the CPUs busy: a few for tasks that compute, hundreds for tasks that
    /// wait, and what is right for a mixture of them, as far as more have helped.
    /// [`measured`](Self::measured) sets another number than that of the CPUs.
    ///
    /// More workers do not help tasks that wait for one lock, or for one of ten connections. If an
    /// eighth of the sleepers or more wait for another thread, the pool tries a larger number, or a
    /// smaller one, and keeps it if that pays: by how many tasks end in a time. It repeats that
    /// after growing pauses. Tasks that wait for queued ones end all the same: if no task ends at
    /// all, the number grows. So tasks that hold a lock for longer than some 8 milliseconds may
    /// first get hundreds of workers, and come down to a few as they end. In the queue of a disk it
    /// keeps about sixteen workers for each CPU, or eight for each of `core_size` if that is more.
    /// Only Linux and Android tell what a thread sleeps for; elsewhere, and beside the tasks of a
    /// view's reserve, the pool takes every sleeper for one that more workers help.
    ///
    /// Several such pools in one process do not know of each other: with tasks that compute, each
    /// keeps as many workers awake as there are CPUs. A quota of CPU time (a cgroup's) that is used
    /// up is no reason for more: a thread that waits for the next period is awake.
    ///
    /// While tasks are queued and as many workers run, the keeper measures every millisecond or
    /// more. That takes under 1 % of a CPU, and up to ten times as much while the number changes.
    /// Otherwise the keeper sleeps. After a measurement the number of workers that may run at most
    /// doubles. So in a pool that was idle, 64 tasks that wait for each other all run after about
    /// ten milliseconds, and a task behind 20 that sleep starts after about five. What is marked as
    /// blocking does not wait for a measurement. A worker in its start hook counts as awake. If
    /// clearly more workers are awake than there are CPUs, the number is lowered: those above it go
    /// idle when they end their task.
    ///
    /// Linux, Android and Apple's systems tell which threads sleep. Linux without `/proc`, or while
    /// the process may open no more files, tells which have used a CPU: then the pool looks every
    /// 20 milliseconds, and takes the others for asleep. Elsewhere the pool looks every 20
    /// milliseconds whether any worker has taken a task, and takes all workers for asleep if none
    /// has. There, set the sizes of a pool whose tasks compute for longer than that.
    ///
    /// A spawned or woken future comes before queued closures, and waits for none: while these keep
    /// as many workers busy as may run, one more polls futures, within `max_size`. It shares the
    /// CPUs with the others. If its poll sleeps for a millisecond or two, another worker polls
    /// beside it. (Where the system does not tell who sleeps, also if it computes for as long.)
    /// While a worker is in its start hook, none is added: it is about to poll them.
    /// Futures of groups and scopes, and those that a closure of the pool spawns, wait for their
    /// first poll as closures do.
    ///
    /// [Views](crate::View): a limit bounds the workers that run tasks of the view, asleep or not.
    /// The worker that polls futures serves all views, takes no worker from a reserve, and polls to
    /// the end: while its poll sleeps, other futures wait for closures.
    /// A reserve comes on top of the measured number, within `max_size`: its tasks find a worker
    /// also while more workers run than that number.
    Measured,
    /// [`Measured`](Self::Measured) with this number of workers awake instead of the number of
    /// CPUs. See [`measured`](Self::measured).
    Awake(usize),
}

impl Growth {
    /// Returns [`Measured`](Self::Measured) growth that keeps `awake` workers awake, instead of as
    /// many as there are CPUs. 0 is taken for 1.
    ///
    /// ```
    /// use elastipool::{Growth, ThreadPool};
    ///
    /// // Leaves the other CPUs to the rest of the program.
    /// let pool = ThreadPool::builder().core_size(0).growth(Growth::measured(1)).build();
    /// assert_eq!((pool.max_size(), pool.stats().allowed), (512, 1));
    /// ```
    pub fn measured(awake: usize) -> Self {
        Growth::Awake(awake)
    }
}
