//! The facade: submitting tasks. `control.rs` waits, closes, resizes and inspects.

use std::fmt;
use std::future::Future;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Refusal, Rejected, or_hand_back};
use crate::join_handle::{JoinHandle, or_refused};
use crate::sched::{OwnedRoute, Route, Shared};
use crate::submit::{Accepted, Patience};
use crate::task::{Closure, Job};
use crate::views::ViewHandle;

/// A self-sizing thread pool that is also a futures executor.
///
/// This is a handle: clones refer to the same pool and work on any thread. The pool has no thread
/// before the first submission. Dropping the last handle closes the pool and does not block: the
/// pool runs everything it has accepted in the background, then its threads end. A [weak
/// handle](Self::downgrade) does not keep the pool open. A [view](Self::view) is a handle whose
/// tasks have a priority, a limit or a reserve of their own. The [crate's documentation](crate)
/// says what the pool promises and how it sizes itself.
///
/// ```
/// use elastipool::ThreadPool;
///
/// let pool = ThreadPool::default();
/// pool.execute(|| println!("on a worker"));
/// let answer = pool.evaluate(|| 6 * 7);
/// assert_eq!(answer.await_complete(), 42);
/// pool.shutdown_join();
/// ```
///
/// # When a task is not accepted
/// The pool does not accept a task in three cases: it is closed, its queue is
/// [bounded](crate::Builder::queue_capacity) and full, or it has no worker and the operating system
/// refuses to start a thread. No call loses a task silently:
///
/// | call | closed | full | no worker, thread refused |
/// |---|---|---|---|
/// | `try_*` | hands the task back | hands the task back | hands the task back |
/// | `try_execute_for`, `try_evaluate_for` | hand the task back | wait, at most for the timeout | hand the task back |
/// | `evaluate`, `complete`, `spawn_await` | the handle resolves to "cancelled" | wait | run it on the calling thread |
/// | `execute`, `spawn`, [`Handler::invoke`](crate::Handler::invoke), the results of [`map`](Self::map) | panic | wait | run it on the calling thread |
/// | `execute` and `spawn` of a [`TaskGroup`](crate::TaskGroup) | hand the task back | wait | run it on the calling thread |
///
/// The methods of a [`Scope`](crate::Scope), and `evaluate` and `spawn_await` of a group, do the
/// same as those of the pool. A group hands tasks back, or cancels their handles, also while it is
/// [cancelled](crate::TaskGroup::cancel).
///
/// Submitters that wait for capacity use no CPU, and are admitted in the order in which they began
/// to wait. While one of them wakes up, other submissions may come before it. If the pool is closed
/// meanwhile, their calls end as in the column "closed".
///
/// A submitter that waits blocks its thread, also in async code, where other futures may need that
/// thread. If the queue is bounded, await [`ready`](Self::ready) there, or use the `try_` forms.
#[derive(Clone)]
pub struct ThreadPool {
    pub(crate) handle: Arc<Handle>,
    /// `None`: the default view.
    pub(crate) view: Option<ViewHandle>,
}

/// Closes the pool when the last [`ThreadPool`] is dropped.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    /// To the default view. All futures that are spawned there share it.
    route: OwnedRoute,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl ThreadPool {
    /// `make` makes the state of the pool that this handle keeps open.
    pub(crate) fn new_with(make: impl FnOnce(Weak<Handle>) -> Arc<Shared>) -> Self {
        let handle = Arc::new_cyclic(|handle: &Weak<Handle>| {
            let shared = make(handle.clone());
            let route = OwnedRoute::new(Route { shared: &shared, view: None });
            Handle { shared, route }
        });
        ThreadPool { handle, view: None }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Returns where tasks go that are submitted through this handle.
    pub(crate) fn route(&self) -> Route<'_> {
        Route { shared: self.shared(), view: self.view.as_deref() }
    }

    /// Returns where tasks go that are submitted later, without a handle of the pool.
    pub(crate) fn owned_route(&self) -> OwnedRoute {
        match self.view {
            Some(_) => OwnedRoute::new(self.route()),
            None => self.handle.route.clone(),
        }
    }

    /// Accepts a task that the calling method submits.
    #[inline]
    #[track_caller]
    pub(crate) fn accept(&self, patience: Patience) -> Result<Accepted<'_>, Refusal> {
        self.route().accept(patience, Location::caller())
    }
}

/// # Submitting closures
impl ThreadPool {
    /// Runs a closure on a worker.
    ///
    /// Blocks only while it starts a thread, and while it waits for capacity if the queue is
    /// [bounded](crate::Builder::queue_capacity) and full. The wait blocks the thread also [in
    /// async code](Self#when-a-task-is-not-accepted): await [`ready`](Self::ready) there.
    ///
    /// A panic of the closure is contained, counted in the [`stats`](Self::stats), and passed to
    /// the [panic handler](crate::Builder::panic_handler).
    ///
    /// If the pool has no worker and the system refuses a thread, the closure runs on the calling
    /// thread before `execute` returns. Use [`try_execute`](Self::try_execute) where that would
    /// deadlock or recurse: when the caller holds a lock that the closure takes, or when the
    /// closure submits itself again.
    ///
    /// # Panics
    /// If the pool is closed, or is closed while the call waits for capacity.
    /// [`try_execute`](Self::try_execute) returns the closure instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| println!("hello"));
    /// pool.join();
    /// ```
    #[track_caller]
    pub fn execute<F>(&self, task: F)
    where
        F: FnOnce() + Send + 'static,
    {
        self.execute_job(Job::closure(task));
    }

    /// Does not depend on the closure's type, so it is compiled once.
    #[track_caller]
    fn execute_job(&self, job: Job) {
        self.route().execute(job, "try_execute");
    }

    /// Like [`execute`](Self::execute), but hands the closure back if it is not accepted. Does not
    /// wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// # let pool = elastipool::ThreadPool::default();
    /// if let Err(rejected) = pool.try_execute(|| println!("hello")) {
    ///     eprintln!("{rejected}: doing it here");
    ///     rejected.into_task()();
    /// }
    /// ```
    #[track_caller]
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        or_hand_back!(self.accept(Patience::None), task).enqueue_closure(Job::closure(task));
        Ok(())
    }

    /// Like [`try_execute`](Self::try_execute), but waits for capacity in a bounded queue, for at
    /// most `timeout`.
    ///
    /// # Errors
    /// If the pool is closed, if its queue stays full for `timeout`, or if it has no worker and the
    /// system refuses to start a thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap());
    /// // The only worker is busy, and the queue holds no waiting task.
    /// let late = || println!("late");
    /// let rejected = pool.try_execute_for(late, Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Full);
    /// open.send(()).unwrap();
    /// pool.try_execute_for(rejected.into_task(), Duration::from_secs(60)).unwrap();
    /// pool.shutdown_join();
    /// ```
    #[track_caller]
    pub fn try_execute_for<F>(&self, task: F, timeout: Duration) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        or_hand_back!(self.accept(Patience::for_at_most(timeout)), task)
            .enqueue_closure(Job::closure(task));
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result.
    ///
    /// Blocks as [`execute`](Self::execute) does: if the queue is bounded, await
    /// [`ready`](Self::ready) in async code.
    ///
    /// To wait for many short tasks, call [`join`](Self::join) first and read the handles after it:
    /// waiting for the handles one by one can wake the waiting thread once for each.
    ///
    /// If the pool is closed, the handle resolves to "cancelled". If the pool has no worker and the
    /// system refuses a thread, the closure runs on the calling thread, as with
    /// [`execute`](Self::execute).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let sum = pool.evaluate(|| (1..=100).sum::<u32>());
    /// assert_eq!(sum.await_complete(), 5050);
    /// ```
    #[doc(alias = "spawn_blocking")]
    #[track_caller]
    pub fn evaluate<F, R>(&self, task: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let accepted = or_refused!(self.accept(Patience::Endless), self.route(), task);
        JoinHandle::of_closure(accepted, Closure::new(task))
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does
    /// not wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.try_evaluate(|| 6 * 7).expect("the pool is open");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_evaluate<F, R>(&self, task: F) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let accepted = or_hand_back!(self.accept(Patience::None), task);
        Ok(JoinHandle::of_closure(accepted, Closure::new(task)))
    }

    /// Like [`try_evaluate`](Self::try_evaluate), but waits for capacity in a bounded queue, for at
    /// most `timeout`.
    ///
    /// # Errors
    /// If the pool is closed, if its queue stays full for `timeout`, or if it has no worker and the
    /// system refuses to start a thread.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let submitted = pool.try_evaluate_for(|| 6 * 7, Duration::from_secs(1));
    /// let handle = submitted.expect("the queue has capacity");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_evaluate_for<F, R>(
        &self,
        task: F,
        timeout: Duration,
    ) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let accepted = or_hand_back!(self.accept(Patience::for_at_most(timeout)), task);
        Ok(JoinHandle::of_closure(accepted, Closure::new(task)))
    }
}

/// # Submitting futures that compute
impl ThreadPool {
    /// Drives a future to its end on one worker and returns a handle to its output. The worker runs
    /// nothing else meanwhile.
    ///
    /// Use it for futures that mostly compute, in builds without the feature `async`, and to limit
    /// how many futures run at a time. For other futures use [`spawn`](Self::spawn).
    ///
    /// While the future waits for something outside the pool, such as a timer or a socket, its
    /// worker counts as running. So at most [`max_size`](Self::max_size) such futures are driven at
    /// a time, as in rusty_pool. One kind of wait is a [blocking region](crate::blocking())
    /// instead: the future has polled a [handle](JoinHandle) or a [group](crate::TaskGroup) of the
    /// same pool, which was not ready. Then another worker can run what the future waits for. The
    /// pool cannot see other dependencies on its tasks, such as a channel that they fill: if all
    /// workers wait like that, they wait forever.
    ///
    /// A future that is not accepted is treated like a closure of [`evaluate`](Self::evaluate).
    /// While the future runs, its thread counts as inside an executor of the crate `futures`, whose
    /// `block_on` panics if the future calls it.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.complete(async { 6 * 7 });
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn complete<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let accepted = or_refused!(self.accept(Patience::Endless), self.route(), future);
        JoinHandle::of_completion(accepted, future)
    }

    /// Like [`complete`](Self::complete), but hands the future back if it is not accepted. Does not
    /// wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.try_complete(async { 6 * 7 }).expect("the pool is open");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_complete<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let accepted = or_hand_back!(self.accept(Patience::None), future);
        Ok(JoinHandle::of_completion(accepted, future))
    }
}

impl PartialEq for ThreadPool {
    fn eq(&self, other: &Self) -> bool {
        let view = |pool: &Self| pool.view.as_deref().map(|view| view.id);
        Arc::ptr_eq(&self.handle, &other.handle) && view(self) == view(other)
    }
}

impl Eq for ThreadPool {}

/// No panic leaves the pool in an invalid state (law 6).
impl UnwindSafe for ThreadPool {}

/// As for [`UnwindSafe`].
impl RefUnwindSafe for ThreadPool {}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (core_size, max_size) = self.shared().sizes.both();
        f.debug_struct("ThreadPool")
            .field("name", &self.name())
            .field("core_size", &core_size)
            .field("max_size", &max_size)
            .field("keep_alive", &self.keep_alive())
            .field("workers", &self.current_worker_count())
            .field("idle", &self.idle_worker_count())
            .field("queued", &self.queued_count())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::ThreadPool;
    use crate::crew::Search;
    use crate::queue::Kind;
    use crate::sync::cpu::cpus;
    use crate::sync::parker::Parker;
    use crate::task::Job;

    /// The lowest index of a worker without a thread. Those with threads have lower ones.
    const FIRST: usize = 100;

    /// Adds idle workers without threads to the pool: they notice nothing. Their indices are in the
    /// order of the result.
    fn with_idle_workers<const N: usize>(pool: &ThreadPool) -> [Arc<Parker>; N] {
        let shared = pool.shared();
        let workers = [(); N].map(|()| Arc::new(Parker::default()));
        for (index, parker) in workers.iter().enumerate() {
            shared.counts.add_worker();
            _ = shared.idle.publish(&shared.counts, FIRST + index, parker, false);
        }
        workers
    }

    /// Which of the workers have been woken since the last call.
    fn woken<const N: usize>(workers: &[Arc<Parker>; N]) -> [bool; N] {
        workers.each_ref().map(|parker| parker.try_park().is_some())
    }

    #[test]
    fn submissions_wake_one_worker_until_it_has_taken_its_task() {
        let pool = ThreadPool::new(4, 4, Duration::MAX);
        let workers = with_idle_workers::<4>(&pool);
        pool.execute(|| ());
        assert_eq!(woken(&workers), [true, false, false, false]);
        (0..3).for_each(|_| pool.execute(|| ()));
        assert_eq!(woken(&workers), [false; 4], "one searches");
        // It takes its task.
        let shared = pool.shared();
        assert!(shared.queue.pop().is_some_and(|job| job.run().is_end()));
        shared.counts.end_search(Search::Searching).look_as_woken(shared);
        assert_eq!(woken(&workers), [false, true, true, false]);
        pool.execute(|| ());
        assert_eq!(woken(&workers), [false; 4], "two search");
        // One of them takes its task, and one is left for the other.
        (0..3).for_each(|_| assert!(shared.queue.pop().is_some_and(|job| job.run().is_end())));
        shared.counts.end_search(Search::Searching).look_as_woken(shared);
        assert_eq!(woken(&workers), [false; 4], "one searches for one task");
        assert_eq!(pool.stats().threads_started, 0);
    }

    #[test]
    fn a_task_is_left_to_a_worker_that_spins() {
        let pool = ThreadPool::new(2, 2, Duration::MAX);
        let workers = with_idle_workers::<1>(&pool);
        let counts = &pool.shared().counts;
        counts.add_worker();
        assert!(counts.begin_search());
        (0..2).for_each(|_| pool.execute(|| ()));
        assert_eq!(woken(&workers), [false]);
    }

    #[test]
    fn a_woken_worker_wakes_two_others() {
        for (max_size, queued, expected) in [(9, 3, 2), (9, 2, 2), (9, 1, 1), (9, 0, 0), (2, 3, 1)]
        {
            let pool = ThreadPool::new(1, max_size, Duration::MAX);
            let workers = with_idle_workers::<4>(&pool);
            let shared = pool.shared();
            // The woken worker, which has taken a task.
            shared.counts.add_worker();
            assert!(shared.counts.begin_search());
            (0..queued).for_each(|_| shared.queue.push(Kind::New, Job::closure(|| ())));
            shared.counts.end_search(Search::Searching).look_as_woken(shared);
            let lowest = [0, 1, 2, 3].map(|index| index < expected);
            assert_eq!(woken(&workers), lowest, "{queued} queued");
        }
    }

    /// The thread that opens the scopes runs their tasks. The second one's relies on the entry of
    /// the first.
    #[test]
    fn a_task_that_relies_on_an_entry_wakes_a_worker() {
        let pool = ThreadPool::new(1, 1, Duration::MAX);
        let workers = with_idle_workers::<1>(&pool);
        let shared = pool.shared();
        for _ in 0..2 {
            pool.scope(|scope| scope.execute(|| ()));
            assert_eq!((woken(&workers), shared.queue.len()), ([true], 1));
            _ = shared.idle.publish(&shared.counts, FIRST, &workers[0], false);
            _ = shared.counts.end_search(Search::Searching);
        }
    }

    #[test]
    fn a_thread_instead_of_a_second_worker() {
        let pool = ThreadPool::new(3, 3, Duration::MAX);
        let workers = with_idle_workers::<1>(&pool);
        let counts = &pool.shared().counts;
        counts.add_worker();
        assert!(counts.begin_search());
        pool.execute(|| ());
        assert_eq!(pool.stats().threads_started, 1, "below the core size");
        assert_eq!(woken(&workers), [false]);
    }

    #[test]
    fn no_more_threads_are_starting_than_there_are_cpus() {
        let pool = ThreadPool::new(0, 16, Duration::MAX);
        let counts = &pool.shared().counts;
        counts.add_worker();
        while counts.begin_starting_below(cpus()).is_some() {}
        (0..8).for_each(|_| pool.execute(|| ()));
        assert_eq!(pool.stats().threads_started, 0);
        _ = counts.end_search(Search::Starting);
        pool.execute(|| ());
        assert!(pool.stats().threads_started > 0);
    }

    #[test]
    fn a_coarse_task_leaves_few_entries_of_the_tasks_that_it_waits_for() {
        let pool = ThreadPool::new(1, 1, Duration::MAX);
        let inner = pool.clone();
        let left = pool.evaluate(move || {
            // Queued at once: the worker does not rest before the last one. Time is the subject.
            (0..60).for_each(|_| inner.execute(|| thread::sleep(Duration::from_millis(1))));
            let waiting = inner.clone();
            inner.evaluate(move || {
                (0..100).for_each(|_| waiting.evaluate(|| ()).await_complete());
                waiting.shared().queue_len()
            })
        });
        let left = left.await_complete().await_complete();
        assert!(left <= 1, "{left} entries");
        pool.shutdown_join();
    }
}
