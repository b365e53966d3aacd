//! Futures on the pool: a wake puts a future back into the queue (feature `async`).
//!
//! [`future_cell`](crate::task::future_cell) stores the future, and decides which thread may touch it when.
//!
//! **Cancelling.** A canceller settles the handle of a future that is not running at once, unless the thread that drops the
//! future is about to. It does not drop the future: it queues it, and the worker that takes it from the queue drops
//! it. A queued future is in flight, so it is dropped before a join returns (race 23). In all other cases the handle is
//! settled after the future has been dropped. A waiter that must know of the drop asks the cell as well
//! ([`poll_gone`](crate::task::job::Run::poll_gone)).
//!
//! **A wake during the poll** queues the future after that poll, behind the other woken futures.
//!
//! The scheduler is a trait, so the task does not depend on the pool, and models check it without one.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures_task::{ArcWake, FutureObj, Spawn, SpawnError, waker_ref};

use crate::error::Rejected;
use crate::join_handle::JoinHandle;
use crate::pool::ThreadPool;
use crate::runtime::context::mark_caller;
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::route::{AsRoute, Route};
use crate::runtime::submit::Prepare;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::expiry::{Expiry, Timed};
use crate::task::future_cell::{AfterPoll, Cancelled, Ended, FutureCell, Owner, Taken};
use crate::task::job::{Job, Outcome, Run, Sink};
use crate::task::pending::PendingKey;
use crate::task::promise::{Cancel, Promise};

/// What a future's task needs of an executor.
pub(crate) trait Scheduler: Send + Sync + 'static {
    /// Queues a task that can make progress. Returns `false` if there is no worker and no thread to run it.
    #[must_use]
    fn schedule(&self, task: Arc<dyn Run>) -> bool;

    /// Calls `drop_task`, which drops a task outside [`Run::run`], and counts the task as cancelled.
    fn drop_on_caller(&self, drop_task: impl FnOnce());

    /// Registers a pending future. Returns `None` if all pending futures were cancelled, and this one with them.
    fn register(&self, future: Weak<dyn Cancel>) -> Option<PendingKey>;

    /// Removes a future from the pending ones.
    fn deregister(&self, entry: PendingKey);
}

impl<R: AsRoute + Send + Sync + 'static> Scheduler for R {
    fn schedule(&self, task: Arc<dyn Run>) -> bool {
        self.route().wake(task).is_ok()
    }

    fn drop_on_caller(&self, drop_task: impl FnOnce()) {
        // The task is in flight until it is dropped. The mark keeps its destructor from joining the pool, which would
        // wait for itself.
        let mark = mark_caller(self.route().shared);
        drop_task();
        drop(mark);
        self.route().cancelled_on_caller();
    }

    fn register(&self, future: Weak<dyn Cancel>) -> Option<PendingKey> {
        self.route().shared.pending.register(future)
    }

    fn deregister(&self, entry: PendingKey) {
        self.route().shared.pending.deregister(entry);
    }
}

/// A future, the receiver of its output, and its executor.
pub(crate) struct FutureTask<F: Future, S: Scheduler, K: Sink<F::Output>> {
    cell: FutureCell<F, Ties<K>>,
    scheduler: S,
}

/// Makes a future into a task, which may expire.
pub(crate) fn task<F, K>(
    future: F,
    sink: K,
    route: Route<'_>,
    expiry: Option<&Arc<Expiry>>,
) -> Arc<dyn Run>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    // A future of the default view has no place for a view or an expiry: it would be larger.
    if route.view.is_none() {
        return FutureTask::new(future, sink, Arc::clone(route.shared));
    }
    FutureTask::new(future, Timed { inner: sink, expiry: expiry.cloned() }, route.to_owned())
}

/// What a future refers to outside itself.
struct Ties<K> {
    sink: K,
    /// Its key among the pending futures, from the end of its first poll on.
    entry: Option<PendingKey>,
}

impl<F: Future, K: Sink<F::Output>> Ended<'_, F, Ties<K>> {
    /// Drops the future, then settles the handle as cancelled. Contains panics of its destructor.
    fn discard(self, scheduler: &impl Scheduler) -> Outcome {
        let Ties { sink, entry } = self.rest;
        if let Some(entry) = entry {
            scheduler.deregister(entry);
        }
        sink.call(|| discard(self.future));
        let outcome = sink.dropped();
        discard(sink);
        outcome
    }

    /// Drops the future, then delivers its result.
    fn settle(self, scheduler: &impl Scheduler, result: Result<F::Output, Payload>) -> Outcome {
        let Ties { sink, entry } = self.rest;
        if let Some(entry) = entry {
            scheduler.deregister(entry);
        }
        sink.call(|| discard(self.future));
        sink.settle(result)
    }
}

impl<F, S, K> FutureTask<F, S, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    S: Scheduler,
    K: Sink<F::Output>,
{
    pub(crate) fn new(future: F, sink: K, scheduler: S) -> Arc<Self> {
        let cell = FutureCell::new(future, Ties { sink, entry: None });
        Arc::new(FutureTask { cell, scheduler })
    }

    /// Registers the future as pending, after its first poll, so that a shutdown or its group can cancel it. Returns `false`
    /// if that has happened already.
    fn register_pending(self: &Arc<Self>, ties: &mut Ties<K>) -> bool {
        let this = Arc::downgrade(self) as Weak<dyn Cancel>;
        ties.entry = self.scheduler.register(Weak::clone(&this));
        ties.entry.is_some() && ties.sink.register_pending(&this)
    }

    /// Queues a task whose state has become `SCHEDULED`, or drops it if it cannot run.
    fn submit(self: &Arc<Self>) {
        if !self.scheduler.schedule(Arc::clone(self) as Arc<dyn Run>) {
            self.scheduler.drop_on_caller(|| self.discard());
        }
    }

    fn run_taken(self: &Arc<Self>, taken: Taken<'_, F, Ties<K>>) -> Outcome {
        match taken {
            Taken::ToPoll(owner) => self.poll(owner),
            Taken::ToDrop(owner) => owner.end().discard(&self.scheduler),
        }
    }

    /// Polls the future, which the caller owns.
    fn poll(self: &Arc<Self>, mut owner: Owner<'_, F, Ties<K>>) -> Outcome {
        let waker = waker_ref(self);
        let polled = owner.with(|future, ties| {
            if ties.sink.is_cancelled() {
                return None;
            }
            let poll = || ties.sink.call(|| future.poll(&mut Context::from_waker(&waker)));
            let polled = contain(poll);
            let is_first = ties.entry.is_none() && matches!(polled, Ok(Poll::Pending));
            if is_first && !self.register_pending(ties) {
                return None;
            }
            Some(polled)
        });
        let result = match polled {
            None => return owner.end().discard(&self.scheduler),
            Some(Ok(Poll::Ready(value))) => Ok(value),
            Some(Err(payload)) => Err(payload),
            Some(Ok(Poll::Pending)) => {
                return match owner.after_poll() {
                    AfterPoll::Wait => Outcome::Pending,
                    AfterPoll::Reschedule => Outcome::Woken(Arc::clone(self) as Arc<dyn Run>),
                    AfterPoll::Drop(owner) => owner.end().discard(&self.scheduler),
                };
            }
        };
        owner.end().settle(&self.scheduler, result)
    }

    /// Drops the future of a task that was taken from the queue.
    fn discard(&self) {
        let (Taken::ToPoll(owner) | Taken::ToDrop(owner)) = self.cell.take();
        owner.end().discard(&self.scheduler);
    }
}

impl<F, S, K> Run for FutureTask<F, S, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    S: Scheduler,
    K: Sink<F::Output>,
{
    fn run(self: Arc<Self>) -> Outcome {
        self.cell.take_first().map_or(Outcome::Skipped, |taken| self.run_taken(taken))
    }

    fn run_woken(self: Arc<Self>) -> Outcome {
        self.run_taken(self.cell.take())
    }

    fn run_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome> {
        let owner = self.cell.claim()?;
        begin();
        Some(self.poll(owner))
    }

    fn drop_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome> {
        let owner = self.cell.claim()?;
        begin();
        Some(owner.end().discard(&self.scheduler))
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        self.cell.poll_gone(waker)
    }

    fn skip(&self) -> bool {
        self.cell.skip()
    }

    fn withdraw(self: Arc<Self>, is_new: bool) -> Result<Job, Job> {
        let is_withdrawn = is_new && self.cell.withdraw();
        if !is_withdrawn {
            // Another thread may withdraw or cancel it at the same time; cancelling twice changes nothing.
            Arc::clone(&self).cancel();
        }
        let job = Job::Shared { task: self, is_new };
        if is_withdrawn { Ok(job) } else { Err(job) }
    }

    fn run_withdrawn(self: Arc<Self>) -> Outcome {
        let mut owner = match self.cell.take() {
            Taken::ToPoll(owner) => owner,
            Taken::ToDrop(owner) => return owner.end().discard(&self.scheduler),
        };
        // It may have expired since it was handed back. If not, it counts as started now.
        if owner.with(|_, ties| ties.sink.is_cancelled()) {
            return owner.end().discard(&self.scheduler);
        }
        // Poll with the caller's waker: this task's own waker would put it back into the pool's queue.
        let result = contain(|| {
            let running = poll_fn(|context| {
                if owner.listen(context.waker()) {
                    return Poll::Ready(None);
                }
                owner.with(|future, _| future.poll(context)).map(Some)
            });
            wait_for(pin!(running), None, Dependency::Other).flatten()
        });
        match result.transpose() {
            Some(result) => owner.end().settle(&self.scheduler, result),
            None => owner.end().discard(&self.scheduler),
        }
    }

    fn abandon(self: Arc<Self>) {
        self.discard();
    }
}

impl<F, S, K> Cancel for FutureTask<F, S, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    S: Scheduler,
    K: Sink<F::Output>,
{
    fn cancel(self: Arc<Self>) {
        // The thread that drops the future may be faster. Then it settles the handle, and `found` is `None`.
        let Cancelled { found, should_submit } = self.cell.cancel(|ties| ties.sink.take_promise());
        discard(found);
        if should_submit {
            self.submit();
        }
    }
}

impl<F, S, K> ArcWake for FutureTask<F, S, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    S: Scheduler,
    K: Sink<F::Output>,
{
    fn wake_by_ref(this: &Arc<Self>) {
        if this.cell.transition_to_scheduled() {
            this.submit();
        }
    }
}

/// The last reference is dropped: no waker of the future is left, or the pool has ended.
impl<F: Future, S: Scheduler, K: Sink<F::Output>> Drop for FutureTask<F, S, K> {
    fn drop(&mut self) {
        let FutureTask { cell, scheduler } = self;
        if let Some(owner) = cell.last() {
            scheduler.drop_on_caller(|| {
                owner.end().discard(scheduler);
            });
        }
    }
}

/// # Submitting futures (feature `async`)
impl ThreadPool {
    /// Spawns a future: the workers poll it, and each wake puts it back into the queue.
    ///
    /// A pending future occupies no worker. A future that blocks its thread does, such as one that reads files: set
    /// `max_size` high enough that other futures still get workers. A future woken during another future's poll may have to
    /// wait for the end of that poll, or for its next [blocking region](crate::blocking()).
    ///
    /// A woken future was accepted before any task that is still queued, and comes first: it waits for a worker to end its
    /// current task, and for the polls of futures that were woken before it, but not for the tasks in the queue. So that
    /// futures which always wake themselves do not starve new tasks, each worker takes a new task first once in 16 times.
    /// So a future that submits tasks and then yields does not wait for them: bound the queue, or await their handles.
    ///
    /// The future counts as accepted work until it is ready, so [`join`](Self::join) waits for it. When its last waker is
    /// dropped, nothing can wake it, and it is dropped too.
    ///
    /// Blocks only while it starts a thread, and while it waits for capacity if the queue is
    /// [bounded](crate::Builder::queue_capacity) and full. A woken future needs no capacity.
    ///
    /// If the pool has no worker and the system refuses a thread, the calling thread polls the future until it is pending.
    /// Its wake tries again to start a thread. If the system refuses again, the future is cancelled.
    ///
    /// # Panics
    /// If the pool is closed, or is closed while the call waits for capacity. [`try_spawn`](Self::try_spawn) returns the
    /// future instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
    /// pool.spawn(async move { println!("received {:?}", receiver.await) });
    /// sender.send(42).unwrap();
    /// pool.join();
    /// ```
    #[doc(alias = "spawn_ok")]
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Err(rejected) = self.route().submit_or_run(future, Futures(self)) {
            rejected.panic("try_spawn");
        }
    }

    /// Like [`spawn`](Self::spawn), but hands the future back if it is not accepted. Does not wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.close();
    /// let rejected = pool.try_spawn(async { println!("never printed") }).unwrap_err();
    /// assert_eq!(rejected.reason(), elastipool::RejectReason::Closed);
    /// ```
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.route().try_submit(future, Futures(self))
    }

    /// Like [`spawn`](Self::spawn), but returns a handle to the future's output.
    ///
    /// If the pool is closed, the handle resolves to "cancelled", and the call does not panic.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(async { 6 * 7 });
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[doc(alias = "spawn_with_handle")]
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.route().submit_or_cancel(future, FuturesWithHandle(self))
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted. Does not wait for
    /// capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.try_spawn_await(async { 6 * 7 }).expect("the pool is open");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.route().try_submit(future, FuturesWithHandle(self))
    }

    fn detached<F>(&self, future: F) -> (Job, ())
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let promise: Option<Promise<()>> = None;
        (Job::task(task(future, promise, self.route(), self.route().expiry().as_ref())), ())
    }

    pub(crate) fn with_handle<F>(&self, future: F) -> (Job, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (promise, receiver) = Promise::new();
        let expiry = self.route().expiry();
        let task = task(future, Some(promise), self.route(), expiry.as_ref());
        let handle = JoinHandle::new(receiver, Some(Arc::downgrade(&task)), self.route(), expiry);
        (Job::task(task), handle)
    }
}

/// The executor trait of the crate `futures`, under `futures::task`, for code that takes any executor.
///
/// Spawns like [`ThreadPool::spawn`], and waits for capacity like it. If the pool is closed, the result is an error, and
/// the future is dropped.
///
/// ```
/// use futures::task::SpawnExt;
///
/// let pool = elastipool::ThreadPool::default();
/// let handle = pool.spawn_with_handle(async { 6 * 7 }).unwrap();
/// assert_eq!(pool.complete(handle).await_complete(), 42);
/// ```
impl Spawn for ThreadPool {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.route().submit_or_run(future, Futures(self)).map_err(|_| SpawnError::shutdown())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.is_closed() { Err(SpawnError::shutdown()) } else { Ok(()) }
    }
}

/// Futures without a handle.
struct Futures<'a>(&'a ThreadPool);

impl<F> Prepare<F> for Futures<'_>
where
    F: Future<Output = ()> + Send + 'static,
{
    type Handle = ();

    fn prepare(self, future: F) -> (Job, ()) {
        self.0.detached(future)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, ()) {
        self.0.detached(Box::into_pin(future))
    }
}

/// Futures with a handle.
struct FuturesWithHandle<'a>(&'a ThreadPool);

impl<F> Prepare<F> for FuturesWithHandle<'_>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Handle = JoinHandle<F::Output>;

    fn prepare(self, future: F) -> (Job, JoinHandle<F::Output>) {
        self.0.with_handle(future)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, JoinHandle<F::Output>) {
        self.0.with_handle(Box::into_pin(future))
    }
}
