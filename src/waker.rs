//! Futures on the pool: a woken future goes back into the queue (feature `async`).
//!
//! Where the future lies, and who may touch it when, is the matter of [`future_cell`](crate::task::future_cell).
//!
//! Unless a future runs, a canceller settles its handle at once (or finds whoever comes to drop the
//! future about to do so); but the future is dropped by whoever takes it from the queue: what is in the queue is in
//! flight, and what is dropped is dropped before a join returns.
//!
//! A wake that comes during the poll is served after it, from the end of the queue: the others that wait
//! come first.
//!
//! The scheduler is a trait, so the task knows no pool (and a model checks it without one).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_task::{ArcWake, waker_ref};

use crate::error::Rejected;
use crate::join_handle::JoinHandle;
use crate::pool::ThreadPool;
use crate::runtime::context::mark_caller;
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::shared::Shared;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::future_cell::{AfterPoll, Cancelled, Ended, FutureCell, Owner, Taken};
use crate::task::job::{Job, Outcome, Run, Sink};
use crate::task::pending::PendingKey;
use crate::task::promise::{Cancel, Promise};

/// What a task needs of an executor.
pub(crate) trait Scheduler: Send + Sync + 'static {
    /// Queues a task that can make progress. `false` if there is nobody to run it.
    #[must_use]
    fn schedule(&self, task: Arc<dyn Run>) -> bool;

    /// Lets `drop_task` drop a task outside of [`Run::run`], and counts it as cancelled.
    fn drop_elsewhere(&self, drop_task: impl FnOnce());

    /// Enters a future that waits. `None` if all of them have been cancelled, and so is this one.
    fn enter(&self, future: Weak<dyn Cancel>) -> Option<PendingKey>;

    /// Strikes it out.
    fn deregister(&self, entry: PendingKey);
}

impl Scheduler for Arc<Shared> {
    fn schedule(&self, task: Arc<dyn Run>) -> bool {
        self.wake(task).is_ok()
    }

    fn drop_elsewhere(&self, drop_task: impl FnOnce()) {
        // Still in flight: a destructor that joins the pool would wait for itself.
        let mark_caller = mark_caller(self);
        drop_task();
        drop(mark_caller);
        self.cancelled_on_caller();
    }

    fn enter(&self, future: Weak<dyn Cancel>) -> Option<PendingKey> {
        self.pending.register(future)
    }

    fn deregister(&self, entry: PendingKey) {
        self.pending.deregister(entry);
    }
}

/// A future, what waits for its output, and its way back to the executor.
pub(crate) struct FutureTask<F: Future, S: Scheduler, K: Sink<F::Output>> {
    cell: FutureCell<F, Ties<K>>,
    scheduler: S,
}

/// How large a future may be that lies in its task. A larger one lies in a box of its own: it would be copied more often
/// on its way there, and its memory be kept as long as there is a waker or the handle.
const LARGEST: usize = 2048;

/// Makes the task of a future.
pub(crate) fn task<F, K>(future: F, sink: K, shared: &Arc<Shared>) -> Arc<dyn Run>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    if const { size_of::<F>() <= LARGEST } {
        FutureTask::new(future, sink, Arc::clone(shared))
    } else {
        FutureTask::new(Box::pin(future), sink, Arc::clone(shared))
    }
}

/// What ties a future to others.
struct Ties<K> {
    sink: K,
    /// Where it is entered as pending: since the end of its first poll.
    entry: Option<PendingKey>,
}

impl<F: Future, K: Sink<F::Output>> Ended<'_, F, Ties<K>> {
    /// Settles the handle as cancelled, then drops the future, whatever its destructor does.
    fn discard(self, scheduler: &impl Scheduler) -> Outcome {
        let Ties { mut sink, entry } = self.rest;
        if let Some(entry) = entry {
            scheduler.deregister(entry);
        }
        discard(sink.take_promise());
        sink.call(|| discard(self.future));
        discard(sink);
        Outcome::Cancelled
    }

    /// Delivers the result of the future, which is dropped first.
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

    /// After the first poll: from now on those who cancel pending futures know this one. `false` if they have been.
    fn enter_pending(self: &Arc<Self>, ties: &mut Ties<K>) -> bool {
        let this = Arc::downgrade(self) as Weak<dyn Cancel>;
        ties.entry = self.scheduler.enter(Weak::clone(&this));
        ties.entry.is_some() && ties.sink.enter_pending(&this)
    }

    /// Brings a task that was made `SCHEDULED` into the queue.
    fn submit(self: &Arc<Self>) {
        if !self.scheduler.schedule(Arc::clone(self) as Arc<dyn Run>) {
            self.scheduler.drop_elsewhere(|| self.discard());
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
            if is_first && !self.enter_pending(ties) {
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

    fn skip(&self) -> bool {
        self.cell.skip()
    }

    fn withdraw(self: Arc<Self>, is_new: bool) -> Result<Job, Job> {
        let is_withdrawn = is_new && self.cell.withdraw();
        if !is_withdrawn {
            // By another thread that does the same at the same time, if not by us.
            Arc::clone(&self).cancel();
        }
        let job = Job::Shared { task: self, is_new };
        if is_withdrawn { Ok(job) } else { Err(job) }
    }

    fn run_away(self: Arc<Self>) -> Outcome {
        let mut owner = match self.cell.take() {
            Taken::ToPoll(owner) => owner,
            Taken::ToDrop(owner) => return owner.end().discard(&self.scheduler),
        };
        // With wakers of another executor: those of this one would bring it back into the pool.
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
        // Whoever comes to drop the future may be quicker, and settles the handle himself then.
        let Cancelled { found, is_to_submit } = self.cell.cancel(|ties| ties.sink.take_promise());
        discard(found);
        if is_to_submit {
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

/// The last reference is gone: nobody can wake the future any more. (Or the pool ended with it.)
impl<F: Future, S: Scheduler, K: Sink<F::Output>> Drop for FutureTask<F, S, K> {
    fn drop(&mut self) {
        let FutureTask { cell, scheduler } = self;
        if let Some(owner) = cell.last() {
            scheduler.drop_elsewhere(|| {
                owner.end().discard(scheduler);
            });
        }
    }
}

/// Futures (feature `async`).
impl ThreadPool {
    /// Spawns a future: the workers poll it, and whenever it is woken it goes back into the queue. While
    /// it waits it occupies no worker. A future that blocks (that reads files, or waits for a handle
    /// without `.await`) does occupy one: leave as many workers below `max_size` for the others. What a poll wakes may have
    /// to wait for its end, or for its next [blocking region](crate::blocking()).
    ///
    /// It counts as accepted work until it is ready: [`join`](Self::join) waits for it. If all of its
    /// wakers are dropped, nobody can wake it any more, and it is dropped.
    ///
    /// Waits for room first if the queue is [bounded](crate::Builder::queue_capacity) and full; when it is woken
    /// later the future needs none.
    ///
    /// If the pool has no worker and the system refuses a thread, the future is polled on the calling thread until it
    /// has to wait; its wake tries again to start a thread, and refused again, it is cancelled.
    ///
    /// # Panics
    /// If the pool is closed; [`try_spawn`](Self::try_spawn) returns the future instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
    /// pool.spawn(async move { println!("received {:?}", receiver.await) });
    /// sender.send(42).unwrap();
    /// pool.join();
    /// ```
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Err(rejected) = self.shared().submit_or_run(future, |future| self.detached(future)) {
            rejected.panic("try_spawn");
        }
    }

    /// Like [`spawn`](Self::spawn), but hands the future back if it is not accepted.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared().try_submit(future, |future| self.detached(future))
    }

    /// Like [`spawn`](Self::spawn), with a handle to wait for the future's output.
    ///
    /// The handle of a future that is not accepted, because the pool is closed, resolves to
    /// "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(async { 6 * 7 });
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.submit_or_cancel(future, |future| self.with_handle(future))
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a thread.
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.shared().try_submit(future, |future| self.with_handle(future))
    }

    fn detached<F>(&self, future: F) -> (Job, ())
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let nobody: Option<Promise<()>> = None;
        (Job::task(task(future, nobody, self.shared())), ())
    }

    pub(crate) fn with_handle<F>(&self, future: F) -> (Job, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (promise, receiver) = Promise::new();
        let task = task(future, Some(promise), self.shared());
        let handle = JoinHandle::new(receiver, Some(Arc::downgrade(&task)), self.shared().id());
        (Job::task(task), handle)
    }
}
