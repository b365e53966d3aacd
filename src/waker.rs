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
//! **Types.** Each call site has a future of its own type, so little here depends on it: [`FutureTask::advance`], [`Polling`]
//! and [`end`] are the part that is compiled for each future.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures_task::{ArcWake, FutureObj, Spawn, SpawnError, waker_ref};

use crate::error::Rejected;
use crate::join_handle::JoinHandle;
use crate::pool::ThreadPool;
use crate::runtime::context::{CallerMark, mark_caller};
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::route::OwnedRoute;
use crate::runtime::submit::Prepare;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::attachment::Attachment;
use crate::task::attachment::Line;
use crate::task::future_cell::{
    Access, AfterPoll, Cancelled, Ended, FutureCell, Header, Owner, Taken,
};
use crate::task::job::{Begin, Job, Moment, Outcome, Run, Sink, Withdrawal};
use crate::task::pending::PendingKey;
use crate::task::promise::{Cancel, Promise};

/// A future and the receiver of its output.
pub(crate) struct FutureTask<F: Future, K: Sink<F::Output>> {
    cell: FutureCell<F, Ties<K>>,
    route: OwnedRoute,
}

/// What a future refers to outside itself.
struct Ties<K> {
    sink: K,
    /// Its key among the pending futures, from the end of its first poll on.
    entry: Option<PendingKey>,
}

/// What the owner of a future does with it, unless the future was cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Polls it once, with the task's own waker.
    Poll,
    /// Polls it until it is ready, with the waker of the calling thread.
    Complete,
    /// Drops it.
    Drop,
}

impl<F, K> FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    /// Makes a task of a future.
    pub(crate) fn task(future: F, sink: K, route: OwnedRoute) -> Arc<dyn Run> {
        let cell = FutureCell::new(future, Ties { sink, entry: None });
        Arc::new(FutureTask { cell, route })
    }

    /// Takes the future, calls `begin`, and polls or drops the future. `Skipped` if the thread cannot have it.
    ///
    /// Not inlined: each way to run or drop a task calls it.
    #[inline(never)]
    fn advance(self: Arc<Self>, access: Access, action: Action, begin: Begin<'_>) -> Outcome {
        let Some(taken) = self.cell.take_by(access) else { return Outcome::Skipped };
        begin(Moment::Taken);
        let mut result = None;
        let owner = match taken {
            Taken::ToPoll(mut owner) if action != Action::Drop => {
                let polled = owner.with(|future, ties| {
                    if ties.sink.is_cancelled() || !self.route.may_poll() {
                        return None;
                    }
                    let (sink, result) = (&ties.sink, &mut result);
                    let polling = &mut Polling { future, sink, result };
                    if action == Action::Complete {
                        return complete(self.cell.header(), &self.route, polling);
                    }
                    let waker = waker_ref(&self);
                    let context = &mut Context::from_waker(&waker);
                    let polled = match self.route.attachment() {
                        None => polling.poll(context),
                        Some(attachment) => poll_attached(attachment, polling, context),
                    };
                    let is_first = ties.entry.is_none() && polled.is_pending();
                    if is_first && !self.register_pending(ties) {
                        return None;
                    }
                    Some(polled)
                });
                match polled {
                    Some(Poll::Pending) => match owner.after_poll() {
                        AfterPoll::Wait => return Outcome::Pending,
                        AfterPoll::Reschedule => return Outcome::Woken(self),
                        AfterPoll::Drop(owner) => owner,
                    },
                    Some(Poll::Ready(())) | None => owner,
                }
            }
            Taken::ToPoll(owner) | Taken::ToDrop(owner) => owner,
        };
        end(owner, &self.route, result)
    }

    /// Registers the future as pending, after its first poll, so that a shutdown or its group can cancel it. Returns `false`
    /// if that has happened already.
    fn register_pending(self: &Arc<Self>, ties: &mut Ties<K>) -> bool {
        let this = Arc::downgrade(self) as Weak<dyn Cancel>;
        ties.entry = register(&self.route, &this);
        ties.entry.is_some() && ties.sink.register_pending(&this)
    }
}

/// A future that is polled by its owner, of any type.
trait Pollable {
    /// Polls the future and keeps its result. Contains panics.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

struct Polling<'a, F: Future, K> {
    future: Pin<&'a mut F>,
    sink: &'a K,
    result: &'a mut Option<Result<F::Output, Payload>>,
}

impl<F: Future, K: Sink<F::Output>> Pollable for Polling<'_, F, K> {
    #[inline(never)]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Polling { future, sink, result } = self;
        let polled = contain(|| sink.call(|| future.as_mut().poll(context)));
        **result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Some(Ok(value)),
            Err(payload) => Some(Err(payload)),
        };
        Poll::Ready(())
    }
}

/// Polls a future with an attachment.
#[cold]
fn poll_attached(
    attachment: &Attachment,
    future: &mut dyn Pollable,
    context: &mut Context<'_>,
) -> Poll<()> {
    let entered = attachment.enter();
    let polled = future.poll(context);
    drop(entered);
    polled
}

/// Drops the future, then delivers its result. `None`: settles the handle as cancelled. Contains panics of the future's
/// destructor.
#[inline(never)]
fn end<F: Future, K: Sink<F::Output>>(
    owner: Owner<'_, F, Ties<K>>,
    route: &OwnedRoute,
    result: Option<Result<F::Output, Payload>>,
) -> Outcome {
    let Ended { future, rest: Ties { sink, entry } } = owner.end();
    deregister(route, entry);
    sink.call(|| discard(future));
    settle(sink, route, result)
}

/// Delivers the result of a future that has been dropped.
///
/// Not inlined: it depends on the types of the result and the sink only, and many futures have the same.
#[inline(never)]
fn settle<R, K: Sink<R>>(
    sink: K,
    route: &OwnedRoute,
    result: Option<Result<R, Payload>>,
) -> Outcome {
    match result {
        Some(result) => sink.settle(result),
        None => {
            discard(sink);
            route.outcome_of_drop()
        }
    }
}

/// Polls a future that was handed back until it is ready. `None` if it is cancelled meanwhile.
fn complete(header: &Header, route: &OwnedRoute, future: &mut dyn Pollable) -> Option<Poll<()>> {
    // With the caller's waker: the task's own waker would put it back into the pool's queue.
    let running = poll_fn(|context| {
        if header.listen(context.waker()) {
            return Poll::Ready(None);
        }
        let polled = match route.attachment() {
            None => future.poll(context),
            Some(attachment) => poll_attached(attachment, future, context),
        };
        polled.map(Some)
    });
    let waited = contain(|| wait_for(pin!(running), None, Dependency::Other).flatten());
    let is_ready = waited.unwrap_or_else(|payload| {
        discard(payload);
        None
    });
    is_ready.map(Poll::Ready)
}

/// See [`FutureTask::register_pending`].
fn register(route: &OwnedRoute, future: &Weak<dyn Cancel>) -> Option<PendingKey> {
    route.route().shared.pending.register(Weak::clone(future))
}

/// Removes a future that has ended from the pending ones, and from what is attached to it.
fn deregister(route: &OwnedRoute, entry: Option<PendingKey>) {
    if let Some(attachment) = route.attachment() {
        attachment.end();
    }
    if let Some(entry) = entry {
        route.route().shared.pending.deregister(entry);
    }
}

/// Queues a task whose state has become `SCHEDULED`, or drops it if it cannot run.
fn submit(task: Arc<dyn Run>, route: &OwnedRoute) {
    if let Err(task) = route.route().wake(task) {
        route.route().drop_on_caller(Job::woken(task));
    }
}

impl<F, K> Run for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    fn run(self: Arc<Self>, begin: Begin<'_>) -> Outcome {
        self.advance(Access::First, Action::Poll, begin)
    }

    fn run_woken(self: Arc<Self>) -> Outcome {
        self.advance(Access::Woken, Action::Poll, &mut |_| ())
    }

    fn run_awaited(self: Arc<Self>, begin: Begin<'_>) -> Outcome {
        self.advance(Access::Awaited, Action::Poll, begin)
    }

    fn drop_awaited(self: Arc<Self>, begin: Begin<'_>) -> Outcome {
        self.advance(Access::Awaited, Action::Drop, begin)
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        self.cell.header().poll_gone(waker)
    }

    fn skip(&self) -> bool {
        self.cell.header().skip()
    }

    fn withdraw(&self, is_new: bool) -> Withdrawal {
        let is_withdrawn = is_new && self.cell.header().withdraw();
        if is_withdrawn { Withdrawal::HandBack } else { Withdrawal::Cancel }
    }

    fn run_withdrawn(self: Arc<Self>, begin: Begin<'_>) -> Outcome {
        self.advance(Access::Woken, Action::Complete, begin)
    }

    fn abandon(self: Arc<Self>) -> Outcome {
        self.advance(Access::Woken, Action::Drop, &mut |_| ())
    }
}

impl<F, K> Cancel for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    fn cancel(self: Arc<Self>) {
        // The thread that drops the future may be faster. Then it settles the handle, and `found` is `None`.
        let Cancelled { found, should_submit } = self.cell.cancel(|ties| ties.sink.take_promise());
        discard(found);
        if should_submit {
            submit(Arc::clone(&self) as Arc<dyn Run>, &self.route);
        }
    }
}

impl<F, K> ArcWake for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    fn wake_by_ref(this: &Arc<Self>) {
        if this.cell.header().transition_to_scheduled() {
            submit(Arc::clone(this) as Arc<dyn Run>, &this.route);
        }
    }
}

/// The last reference is dropped: no waker of the future is left, or the pool has ended.
impl<F: Future, K: Sink<F::Output>> Drop for FutureTask<F, K> {
    fn drop(&mut self) {
        let FutureTask { cell, route } = self;
        if let Some(owner) = cell.last() {
            let _dropping = DroppingOnCaller::begin(route);
            end(owner, route, None);
        }
    }
}

/// Counts a future as cancelled when it has been dropped outside [`Run::run`]. It is in flight until then. The mark keeps its
/// destructor from joining the pool, which would wait for itself.
struct DroppingOnCaller<'a> {
    route: &'a OwnedRoute,
    mark: Option<CallerMark>,
}

impl<'a> DroppingOnCaller<'a> {
    fn begin(route: &'a OwnedRoute) -> Self {
        DroppingOnCaller { route, mark: Some(mark_caller(route.route().shared)) }
    }
}

impl Drop for DroppingOnCaller<'_> {
    fn drop(&mut self) {
        self.mark = None;
        self.route.route().cancelled_on_caller();
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
    /// futures which always wake themselves do not starve new tasks, each worker takes a new task first at intervals.
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
        if let Err(rejected) = self.spawn_or_drop(future) {
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
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.route().try_submit(future, Futures(self, Location::caller()))
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
    #[track_caller]
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.route().submit_or_cancel(future, FuturesWithHandle(self, Location::caller()))
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
    #[track_caller]
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.route().try_submit(future, FuturesWithHandle(self, Location::caller()))
    }

    /// Returns the route of a future that is spawned now.
    fn future_route(&self, line: Line) -> OwnedRoute {
        OwnedRoute::for_future(self.route(), line, || self.owned_route())
    }

    fn detached<F>(&self, future: F, line: Line) -> (Job, ())
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let promise: Option<Promise<()>> = None;
        (Job::task(FutureTask::task(future, promise, self.future_route(line))), ())
    }

    /// Spawns a future, after waiting for capacity in a bounded queue. Drops it if the pool is closed.
    #[track_caller]
    pub(crate) fn spawn_or_drop<F>(&self, future: F) -> Result<(), Rejected<()>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.route().submit_or_run(future, Futures(self, Location::caller()))
    }

    pub(crate) fn with_handle<F>(&self, future: F, line: Line) -> (Job, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (promise, receiver) = Promise::new();
        let route = self.future_route(line);
        let expiry = route.expiry().cloned();
        let task = FutureTask::task(future, Some(promise), route);
        JoinHandle::with_job(task, receiver, self.route(), expiry)
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
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_or_drop(future).map_err(|_| SpawnError::shutdown())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.is_closed() { Err(SpawnError::shutdown()) } else { Ok(()) }
    }
}

/// Futures without a handle.
struct Futures<'a>(&'a ThreadPool, Line);

impl<F> Prepare<F> for Futures<'_>
where
    F: Future<Output = ()> + Send + 'static,
{
    type Handle = ();

    fn prepare(self, future: F) -> (Job, ()) {
        self.0.detached(future, self.1)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, ()) {
        self.0.detached(Box::into_pin(future), self.1)
    }
}

/// Futures with a handle.
struct FuturesWithHandle<'a>(&'a ThreadPool, Line);

impl<F> Prepare<F> for FuturesWithHandle<'_>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Handle = JoinHandle<F::Output>;

    fn prepare(self, future: F) -> (Job, JoinHandle<F::Output>) {
        self.0.with_handle(future, self.1)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, JoinHandle<F::Output>) {
        self.0.with_handle(Box::into_pin(future), self.1)
    }
}
