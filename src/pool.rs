//! The facade: submitting, waiting, stopping, looking.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(doc)]
use crate::Builder;
use crate::error::{BuildError, Rejected};
use crate::handed_back::Task;
use crate::join_handle::JoinHandle;
use crate::runtime::block_on::block_on;
use crate::runtime::capacity::Patience;
use crate::runtime::context::{self, Caller};
use crate::runtime::shared::PoolId;
use crate::runtime::shared::{Config, Shared};
use crate::runtime::sizes::Sizes;
use crate::runtime::submit::WithoutThread;
use crate::runtime::worker;
use crate::stats::Stats;
#[cfg(feature = "async")]
use crate::sync::unwind::{discard, quietly};
use crate::task::evaluation::Evaluation;
use crate::task::job::Job;

/// A self-sizing thread pool that is also a futures executor.
///
/// This is a handle: clones refer to the same pool, from any thread. No thread exists before the first
/// submission. Dropping the last handle closes the pool without blocking: everything accepted is still
/// done, in the background, and then its threads end. See the [crate's documentation](crate) for what it
/// promises and how it sizes itself.
///
/// # What becomes of a task that is not accepted
/// The pool does not accept a task if it is closed, if its queue is [bounded](Builder::queue_capacity) and full, or
/// if it has no worker at all and the operating system refuses to start a thread. No way of submitting loses a task
/// without a word:
///
/// | | closed | full | no worker, and no thread to be had |
/// |---|---|---|---|
/// | `try_*` | hand the task back | hand the task back | hand the task back |
/// | `try_execute_for`, `try_evaluate_for` | hand the task back | wait, for so long | hand the task back |
/// | `evaluate`, `complete`, `spawn_await` | the handle resolves to "cancelled" | wait | run it on the calling thread |
/// | `execute`, `spawn`, [`Handler::invoke`](crate::Handler::invoke) | panic | wait | run it on the calling thread |
/// | `execute` and `spawn` of a [`TaskGroup`](crate::TaskGroup) | hand the task back | wait | run it on the calling thread |
///
/// Those of a [`Scope`](crate::Scope) do as those of the pool.
///
/// Those who wait for room are let in one after another, in the order in which they came, and use no CPU. If the pool
/// is closed meanwhile they are told so.
///
/// ```
/// use std::time::Duration;
/// use elastipool::ThreadPool;
///
/// let pool = ThreadPool::new(2, 16, Duration::from_secs(5));
/// pool.execute(|| println!("on a worker"));
/// let answer = pool.evaluate(|| 6 * 7);
/// assert_eq!(answer.await_complete(), 42);
/// pool.shutdown_join();
/// ```
#[derive(Clone)]
pub struct ThreadPool {
    handle: Arc<Handle>,
}

/// Closes the pool when the last [`ThreadPool`] is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl ThreadPool {
    pub(crate) fn from_config(config: Config, sizes: Sizes) -> Self {
        let shared = Shared::new(config, sizes, worker::run);
        ThreadPool { handle: Arc::new(Handle { shared }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    fn id(&self) -> PoolId {
        self.shared().id()
    }

    // ----- submitting -----

    /// Submits a task; one that is not accepted is cancelled.
    pub(crate) fn submit_or_cancel<F, R>(
        &self,
        task: F,
        prepare: impl FnOnce(F) -> (Job, JoinHandle<R>),
    ) -> JoinHandle<R> {
        self.shared().submit_or_run(task, prepare).unwrap_or_else(|rejected| {
            discard(rejected);
            JoinHandle::cancelled(self.id())
        })
    }

    /// Accepts a task or hands it back, after waiting for room in a bounded queue. `prepare` makes a job of it.
    fn try_submit_for<F, H>(
        &self,
        task: F,
        timeout: Duration,
        prepare: impl FnOnce(F) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        // A time that the clock cannot hold never comes.
        let patience = Patience::Until(Instant::now().checked_add(timeout));
        self.shared().submit(task, prepare, patience, WithoutThread::HandBack)
    }

    /// Runs a closure on a worker.
    ///
    /// Does not block, but to start a thread when that is called for, and to wait for room if the queue is
    /// [bounded](Builder::queue_capacity) and full. A panic of the closure is contained, counted in the
    /// [`stats`](Self::stats), and given to the [panic handler](Builder::panic_handler).
    ///
    /// If the pool has no worker and the system refuses a thread, the closure runs on the calling thread
    /// before `execute` returns. Where that will not do, because the caller holds a lock that the closure needs
    /// or because the closure submits itself again, use [`try_execute`](Self::try_execute).
    ///
    /// # Panics
    /// If the pool is closed, also while the call waits for room; [`try_execute`](Self::try_execute) returns the
    /// closure instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| println!("hello"));
    /// pool.join();
    /// ```
    pub fn execute<F>(&self, task: F)
    where
        F: FnOnce() + Send + 'static,
    {
        if let Err(rejected) = self.shared().submit_or_run(task, closure) {
            rejected.panic("try_execute");
        }
    }

    /// Like [`execute`](Self::execute), but hands the closure back if it is not accepted. Does not wait.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    ///
    /// ```
    /// # let pool = elastipool::ThreadPool::default();
    /// if let Err(rejected) = pool.try_execute(|| println!("hello")) {
    ///     eprintln!("{rejected}: doing it here");
    ///     rejected.into_task()();
    /// }
    /// ```
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.shared().try_submit(task, closure)
    }

    /// Like [`try_execute`](Self::try_execute), but waits for room in a bounded queue, for at most `timeout`.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full for so long, or if it has no worker and the system refuses to start
    /// a thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// // The only worker is busy, and nothing may wait for it.
    /// let rejected = pool.try_execute_for(|| println!("late"), Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Full);
    /// open.send(()).unwrap();
    /// pool.try_execute_for(rejected.into_task(), Duration::from_secs(60)).unwrap();
    /// pool.shutdown_join();
    /// ```
    pub fn try_execute_for<F>(&self, task: F, timeout: Duration) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.try_submit_for(task, timeout, closure)
    }

    /// Runs a closure on a worker, with a handle to wait for its result.
    ///
    /// To wait for many short tasks, [`join`](Self::join) first and read the handles then: waiting for them
    /// one by one wakes the waiting thread as often.
    ///
    /// The handle of a closure that is not accepted, because the pool is closed, resolves to
    /// "cancelled". Without a worker and without a thread to be had the closure runs on the calling
    /// thread, as with [`execute`](Self::execute).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let sum = pool.evaluate(|| (1..=100).sum::<u32>());
    /// assert_eq!(sum.await_complete(), 5050);
    /// ```
    pub fn evaluate<F, R>(&self, task: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.submit_or_cancel(task, |task| evaluation(task, self.id()))
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does not wait.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    pub fn try_evaluate<F, R>(&self, task: F) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.shared().try_submit(task, |task| evaluation(task, self.id()))
    }

    /// Like [`try_evaluate`](Self::try_evaluate), but waits for room in a bounded queue, for at most `timeout`.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full for so long, or if it has no worker and the system refuses to start
    /// a thread.
    pub fn try_evaluate_for<F, R>(
        &self,
        task: F,
        timeout: Duration,
    ) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.try_submit_for(task, timeout, |task| evaluation(task, self.id()))
    }

    /// Drives a future to its end on one worker, which it blocks meanwhile. For futures that mostly compute, for builds
    /// without the feature `async`, and to limit how many futures are under way; others are better off with
    /// [`spawn`](Self::spawn).
    ///
    /// While the future waits for something outside of the pool, such as a timer or a socket, the worker keeps its place: at
    /// most [`max_size`](Self::max_size) such futures are driven at a time, as in rusty_pool. Only while it waits for a
    /// [handle](JoinHandle) or [group](crate::TaskGroup) of the same pool, which it has polled and which was not ready, is
    /// the wait a [blocking region](crate::blocking()), so another worker can run what the future waits for. A future that depends on
    /// tasks of the pool in a way that the pool cannot see, such as a channel that they fill, may wait for ever on a pool
    /// whose workers all wait like that.
    ///
    /// A future that is not accepted is treated as the closure of [`evaluate`](Self::evaluate). The worker (or,
    /// without a thread to be had, the caller) counts as being inside of an executor of `futures`: that crate's own
    /// `block_on` refuses to be called by the future.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.complete(async { 6 * 7 });
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    pub fn complete<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.submit_or_cancel(future, |future| completion(future, self.id()))
    }

    /// Like [`complete`](Self::complete), but hands the future back if it is not accepted. Does not wait.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    pub fn try_complete<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.shared().try_submit(future, |future| completion(future, self.id()))
    }

    // ----- waiting and stopping -----

    /// Blocks until the pool is quiet: until, at some moment after the call, no accepted task is queued or
    /// running and no spawned future is pending. What those tasks wrote is then visible to the caller.
    ///
    /// Tasks that are submitted meanwhile count too. The pool remains open.
    ///
    /// The destructors of a worker's thread-locals may call this: the worker has left the pool by then.
    ///
    /// # Panics
    /// If called by one of the pool's own tasks or worker hooks, which would wait for itself. A destructor that runs
    /// while such a task or hook unwinds gets no second panic, which would abort the process: there `join` returns at
    /// once, without having waited.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let count = Arc::new(AtomicUsize::new(0));
    /// for _ in 0..100 {
    ///     let count = Arc::clone(&count);
    ///     pool.execute(move || { count.fetch_add(1, Ordering::Relaxed); });
    /// }
    /// pool.join();
    /// assert_eq!(count.load(Ordering::Relaxed), 100);
    /// ```
    #[track_caller]
    pub fn join(&self) {
        if self.would_wait_for_caller(false) {
            return self.panic_unless_unwinding("join");
        }
        self.shared().in_flight.wait_quiet(None);
    }

    /// Like [`join`](Self::join), for at most `timeout`. `true` if the pool was quiet in time.
    ///
    /// Does not panic. If called by one of the pool's own tasks or worker hooks, which would wait for itself, it returns
    /// `false` at once.
    #[must_use = "`false` says that the tasks have not ended"]
    pub fn join_timeout(&self, timeout: Duration) -> bool {
        if self.would_wait_for_caller(false) {
            return false;
        }
        self.shared().in_flight.wait_quiet(Instant::now().checked_add(timeout))
    }

    /// Closes the pool, for all handles: it accepts no more tasks. Everything accepted before is still
    /// done, including futures that are still to be woken; then the workers end. Does not block.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.evaluate(|| 1);
    /// pool.close();
    /// assert!(pool.try_execute(|| ()).is_err());
    /// assert_eq!(handle.await_complete(), 1);
    /// ```
    pub fn close(&self) {
        self.shared().close();
    }

    /// Whether the pool has been closed.
    pub fn is_closed(&self) -> bool {
        self.shared().in_flight.is_closed()
    }

    /// Gives up this handle. If it is the last one, the pool closes and ends in the background, as
    /// if it were dropped. Does not block.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Gives up this handle and blocks until the pool is quiet. If no other handle is left by then, or the
    /// pool was closed, blocks until all of its threads have exited, including their stop hooks and the
    /// destructors of their thread-locals.
    ///
    /// Several threads may call this at the same time, each with its handle.
    ///
    /// In a stop hook, also while the hook unwinds, and in the destructors of a worker's thread-locals, it waits until all
    /// other threads have exited or wait like this.
    ///
    /// # Panics
    /// If called by one of the pool's own tasks or start hooks, which would wait for itself. The handle is given up all
    /// the same: if it is the last one, the pool closes and ends in the background. A destructor that runs while such
    /// a task or hook unwinds gets no second panic, which would abort the process: there `shutdown_join` gives up the
    /// handle and returns at once.
    #[track_caller]
    pub fn shutdown_join(self) {
        if self.would_wait_for_caller(true) {
            return self.panic_unless_unwinding("shutdown_join");
        }
        self.shut_down(None);
    }

    /// Like [`shutdown_join`](Self::shutdown_join), for at most `timeout`. `true` if it was done in time;
    /// otherwise it goes on in the background.
    ///
    /// Does not panic. If called by one of the pool's own tasks or start hooks, which would wait for itself, it gives up
    /// the handle and returns `false` at once. So a destructor may call it, on whichever thread it runs:
    ///
    /// ```
    /// use std::time::Duration;
    /// use elastipool::ThreadPool;
    ///
    /// struct Service {
    ///     pool: Option<ThreadPool>,
    /// }
    ///
    /// impl Drop for Service {
    ///     fn drop(&mut self) {
    ///         let pool = self.pool.take().expect("it is taken once");
    ///         if !pool.shutdown_join_timeout(Duration::from_secs(5)) {
    ///             eprintln!("the service ends in the background");
    ///         }
    ///     }
    /// }
    /// # drop(Service { pool: Some(ThreadPool::default()) });
    /// ```
    #[must_use = "`false` says that the threads have not exited"]
    pub fn shutdown_join_timeout(self, timeout: Duration) -> bool {
        if self.would_wait_for_caller(true) {
            return false;
        }
        self.shut_down(Instant::now().checked_add(timeout))
    }

    /// Closes the pool and gives the queued tasks back instead of running them: those that came from outside first, in the
    /// order of their submission, then (most of) those that were submitted by tasks. Does not block.
    ///
    /// Tasks that run now are not interrupted. Spawned futures that have been polled are cancelled: their handles
    /// resolve at once, they are dropped by a worker or by the caller, those that are being polled at the end of that
    /// poll. Futures that have not been polled yet are among the tasks. After this,
    /// [`shutdown_join`](Self::shutdown_join) waits for the tasks that still run.
    ///
    /// Tasks of a [`scope`](Self::scope) or a [`group`](Self::group) are not given back but dropped: others wait for
    /// them, and are told.
    ///
    /// A submission by another thread that is under way at the same time is handed back, or still runs.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let queued = pool.evaluate(|| println!("never printed"));
    /// let tasks = pool.shutdown_now();
    /// assert_eq!(tasks.len(), 1);
    /// drop(tasks);
    /// assert!(queued.try_await_complete().unwrap_err().is_cancelled());
    /// open.send(()).unwrap();
    /// pool.shutdown_join();
    /// ```
    #[must_use = "dropping the tasks cancels them"]
    pub fn shutdown_now(&self) -> Vec<Task> {
        let shared = self.shared();
        shared.close();
        // First the futures that wait: they come through the queue, and are dropped there.
        #[cfg(feature = "async")]
        for future in shared.pending.shut() {
            if let Some(future) = future.upgrade() {
                // Contained: this may be the last reference by now.
                quietly(|| future.cancel());
            }
        }
        shared.stop();
        let mut tasks = Vec::new();
        shared.queue.drain(|job| match job.withdraw() {
            Ok(job) => {
                tasks.push(Task::new(job, Arc::clone(shared)));
                shared.hand_back();
            }
            Err(cancelled) => shared.run_on_caller(cancelled),
        });
        tasks
    }

    fn shut_down(self, deadline: Option<Instant>) -> bool {
        let shared = Arc::clone(self.shared());
        let leaving = match context::caller(&shared) {
            Caller::Leaving(key) => Some(key),
            Caller::Outside | Caller::Busy => None,
        };
        drop(self);
        // A worker in its stop hook waits for the other threads, which end when there is no work left. It does not wait
        // for quiet, and need not: others see to that.
        let wait_quiet = || leaving.is_some() || shared.in_flight.wait_quiet(deadline);
        if !wait_quiet() {
            return false;
        }
        // Looked at when it is quiet: the last handle may have been that of a task.
        if !shared.in_flight.is_closed() {
            return true;
        }
        // If it was closed after that moment, something may have been accepted in between.
        wait_quiet() && shared.registry.wait_gone(leaving, deadline)
    }

    /// Whether a wait for the pool could not end before the calling code does, which belongs to the pool.
    fn would_wait_for_caller(&self, stop_hook_may: bool) -> bool {
        match context::caller(self.shared()) {
            Caller::Outside => false,
            Caller::Busy => true,
            // Without an index it is past its stop hook, in the destructor of a thread-local. The pool does not need
            // this thread any more.
            Caller::Leaving(_) => !stop_hook_may && context::worker_index().is_some(),
        }
    }

    /// Panics because `what` does not wait for its own caller. Returns if the thread unwinds already: a destructor that
    /// panics then aborts the process.
    #[track_caller]
    fn panic_unless_unwinding(&self, what: &str) {
        assert!(
            thread::panicking(),
            "`{what}` was called by one of the tasks or hooks of the pool `{}` itself: it would wait for its own end. \
             Call it from a thread outside of the pool, or wait for the handles of the tasks you depend on",
            self.name()
        );
    }

    // ----- sizing -----

    /// Starts workers until there are [`core_size`](Self::core_size), and returns how many it started:
    /// fewer than were missing if the system refuses a thread, none if the pool is closed. Later
    /// submissions start what is missing.
    pub fn start_core_threads(&self) -> usize {
        self.shared().start_core()
    }

    /// Changes [`core_size`](Self::core_size), for all handles and at once: if it grows, workers are started for tasks
    /// that are queued; if it shrinks, idle workers that have become surplus and have been idle for longer than
    /// `keep_alive` end.
    ///
    /// # Errors
    /// If it would be above `max_size`; the error names both, and nothing is changed.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(2, 4, std::time::Duration::from_secs(60));
    /// let error = pool.set_core_size(8).unwrap_err();
    /// assert_eq!(error.to_string(), "max_size is 4; it must be at least core_size, which is 8");
    /// pool.set_max_size(8).unwrap();
    /// pool.set_core_size(8).unwrap();
    /// ```
    pub fn set_core_size(&self, core_size: usize) -> Result<(), BuildError> {
        self.shared().set_core_size(core_size)
    }

    /// Changes [`max_size`](Self::max_size), for all handles and at once: if it grows, workers are started for tasks
    /// that are queued; if it shrinks, idle workers above it end now, and busy ones when they have ended their tasks.
    ///
    /// # Errors
    /// If it would be below `core_size`, or zero; the error names both, and nothing is changed.
    pub fn set_max_size(&self, max_size: usize) -> Result<(), BuildError> {
        self.shared().set_max_size(max_size)
    }

    /// Changes [`keep_alive`](Self::keep_alive), for all handles and at once: also for workers that are idle now.
    ///
    /// # Errors
    /// If it is zero, or longer than 2³² − 1 seconds; nothing is changed then.
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), BuildError> {
        self.shared().set_keep_alive(keep_alive)
    }

    // ----- looking -----

    /// The pool's name: its threads are named `{name}-{index}`.
    pub fn name(&self) -> &str {
        &self.shared().config.name
    }

    /// The number of workers below which each submission starts one, and to which the pool shrinks.
    pub fn core_size(&self) -> usize {
        self.shared().sizes.core()
    }

    /// The number of workers that may run at once. There are more workers only while some are in
    /// [blocking regions](crate::blocking()), and for [`keep_alive`](Self::keep_alive) after that: idle ones, which are kept
    /// for the next regions. A worker that drives a future by [`complete`](Self::complete) counts while the future waits for
    /// something outside of the pool.
    pub fn max_size(&self) -> usize {
        self.shared().sizes.max()
    }

    /// How long a surplus worker stays without work.
    pub fn keep_alive(&self) -> Duration {
        self.shared().sizes.keep_alive()
    }

    /// The number of workers, idle and blocked ones included, and those that have run their last task not. May be out
    /// of date as soon as it is returned, like all counts.
    pub fn current_worker_count(&self) -> usize {
        self.shared().counts.load().total()
    }

    /// The number of workers that wait for work.
    pub fn idle_worker_count(&self) -> usize {
        self.shared().counts.load().idle()
    }

    /// The number of tasks that wait for a worker, woken futures included. There are several queues: a future that is
    /// taken from one and woken into another meanwhile may be counted twice. Takes a lock, as [`stats`](Self::stats) does.
    pub fn queued_count(&self) -> usize {
        self.shared().queued_count()
    }

    /// What the pool has done and is doing. Takes a lock that submissions do not take, unless they start
    /// a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// assert_eq!(pool.stats().completed, 1);
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared().stats()
    }
}

fn closure<F>(task: F) -> (Job, ())
where
    F: FnOnce() + Send + 'static,
{
    (Job::closure(task), ())
}

fn evaluation<F, R>(task: F, pool: PoolId) -> (Job, JoinHandle<R>)
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let (task, receiver) = Evaluation::new(task);
    let handle = JoinHandle::new(receiver, Some(Arc::downgrade(&task) as _), pool);
    (Job::task(task), handle)
}

fn completion<F>(future: F, pool: PoolId) -> (Job, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    evaluation(move || block_on(future), pool)
}

/// A panic, wherever it happens, leaves the pool as valid as it was.
impl UnwindSafe for ThreadPool {}

/// See [`UnwindSafe`].
impl RefUnwindSafe for ThreadPool {}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("name", &self.name())
            .field("core_size", &self.core_size())
            .field("max_size", &self.max_size())
            .field("keep_alive", &self.keep_alive())
            .field("workers", &self.current_worker_count())
            .field("idle", &self.idle_worker_count())
            .field("queued", &self.queued_count())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
