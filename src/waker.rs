//! Futures on the pool: a woken future goes back into the queue (feature `async`).
//!
//! # The state word
//!
//! | state | meaning | who may change it |
//! |---|---|---|
//! | `IDLE` | waits to be woken | a waker or a canceller, to `SCHEDULED` |
//! | `SCHEDULED` | in the queue, or on its way there, once | the worker that takes it, to `RUNNING` |
//! | `RUNNING` | somebody polls or drops it | wakers, to `NOTIFIED`; its runner, to any |
//! | `NOTIFIED` | running, and woken since the poll began | its runner |
//! | `DONE` | there is no future any more | nobody |
//!
//! `CANCELLED` is a bit beside `SCHEDULED`, `RUNNING` and `NOTIFIED`: the runner is to drop the future and not
//! to poll it (again). Unless it runs, a canceller settles the handle at once (or finds whoever comes to drop the
//! future about to do so); but the future is dropped by whoever takes it from the queue: what is in the queue is in
//! flight, and what is dropped is dropped before a join returns.
//!
//! Whoever moves the word to `SCHEDULED` submits the future and whoever moves it to `RUNNING` owns it, so it is
//! in the queue at most once and polled by one thread at a time (law 11).
//!
//! Every change is a read-modify-write that acquires and releases, even a wake that changes nothing: what
//! the waker's thread wrote before it woke is visible to the poll that this wake leads to.
//!
//! A wake that comes during the poll is served after it, from the end of the queue: the others that wait
//! come first.
//!
//! The word is modelled on those of async-task and tokio; the scheduler is a trait, so the task knows no
//! pool (and a model checks it without one).

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::blocking::wait_for;
use crate::error::Rejected;
use crate::job::{Job, Outcome, Run, Sink};
use crate::join_handle::{Cancel, JoinHandle, Promise};
use crate::pending::Entry;
use crate::pool::ThreadPool;
use crate::shared::Shared;
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::unwind::{Payload, contain, discard};
use crate::worker::visit;

const IDLE: usize = 0;
const SCHEDULED: usize = 1;
const RUNNING: usize = 2;
const NOTIFIED: usize = 3;
const DONE: usize = 4;
const CANCELLED: usize = 8;

/// What a task needs of an executor.
pub(crate) trait Scheduler: Send + Sync + 'static {
    /// Queues a task that can make progress. `false` if there is nobody to run it.
    #[must_use]
    fn schedule(&self, job: Job) -> bool;

    /// Lets `drop_task` drop a task outside of [`Run::run`], and counts it as cancelled.
    fn drop_elsewhere(&self, drop_task: impl FnOnce());

    /// Enters a future that waits. `None` if all of them have been cancelled, and so is this one.
    fn enter(&self, future: Weak<dyn Cancel>) -> Option<Entry>;

    /// Strikes it out.
    fn strike_out(&self, entry: Entry);
}

impl Scheduler for Arc<Shared> {
    fn schedule(&self, job: Job) -> bool {
        self.requeue(job).is_ok()
    }

    fn drop_elsewhere(&self, drop_task: impl FnOnce()) {
        // Still in flight: a destructor that joins the pool would wait for itself.
        let visit = visit(self);
        drop_task();
        drop(visit);
        self.cancelled_elsewhere();
    }

    fn enter(&self, future: Weak<dyn Cancel>) -> Option<Entry> {
        self.pending.enter(future)
    }

    fn strike_out(&self, entry: Entry) {
        self.pending.strike_out(entry);
    }
}

/// See the [module's documentation](self).
struct State(AtomicUsize);

/// What a runner does after a poll that was not ready.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
enum AfterPoll {
    Wait,
    Reschedule,
    Drop,
}

impl State {
    /// A new task is on its way into the queue.
    fn new() -> Self {
        State(AtomicUsize::new(SCHEDULED))
    }

    fn update(&self, next: impl FnMut(usize) -> usize) -> usize {
        let mut next = next;
        let change = |now| Some(next(now));
        match self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(before) | Err(before) => before,
        }
    }

    /// A wake. `true` if the caller must submit the task.
    #[must_use]
    fn transition_to_scheduled(&self) -> bool {
        let before = self.update(|now| match now {
            IDLE => SCHEDULED,
            RUNNING => NOTIFIED,
            other => other,
        });
        before == IDLE
    }

    /// The task was taken from the queue: the caller owns the future. `false` if it was cancelled.
    #[must_use]
    fn transition_to_running(&self) -> bool {
        let before = self.update(|now| (now & CANCELLED) | RUNNING);
        debug_assert_eq!(before & !CANCELLED, SCHEDULED);
        before == SCHEDULED
    }

    /// The poll was not ready and the future is back in its cell.
    fn transition_after_poll(&self) -> AfterPoll {
        let before = self.update(|now| match now {
            RUNNING => IDLE,
            NOTIFIED => SCHEDULED,
            // Cancelled: the runner goes on owning it.
            other => other,
        });
        match before {
            RUNNING => AfterPoll::Wait,
            NOTIFIED => AfterPoll::Reschedule,
            _ => AfterPoll::Drop,
        }
    }

    /// A cancellation. Returns the state before it.
    fn transition_to_cancelled(&self) -> usize {
        self.update(|now| match now {
            IDLE | SCHEDULED => SCHEDULED | CANCELLED,
            RUNNING | NOTIFIED => now | CANCELLED,
            other => other,
        })
    }

    /// The owner has dropped the future.
    fn transition_to_done(&self) {
        self.update(|_| DONE);
    }

    fn is_cancelled(&self) -> bool {
        // Acquire: whoever asks is about to drop it.
        self.0.load(Ordering::Acquire) & CANCELLED != 0
    }
}

/// A future, what waits for its output, and its way back to the executor.
pub(crate) struct FutureTask<F: Future, S: Scheduler, K: Sink<F::Output>> {
    state: State,
    /// No lock is held while the future is being polled: then it is not in here.
    cell: Mutex<Cell<F, K>>,
    scheduler: S,
}

/// Where a future is that has not ended.
enum Cell<F, K> {
    /// Here, for its owner.
    Here(Contents<F, K>),
    /// In its owner's hands, or nowhere any more.
    Taken,
    /// In the hands of somebody who runs it to its end, and can be woken to hear that it is cancelled.
    Away(Waker),
}

struct Contents<F, K> {
    future: Pin<Box<F>>,
    sink: K,
    /// Where it is entered as pending: since the end of its first poll.
    entry: Option<Entry>,
}

impl<F: Future, K: Sink<F::Output>> Contents<F, K> {
    /// Settles the handle as cancelled, then drops the future, whatever its destructor does.
    fn discard(mut self, scheduler: &impl Scheduler) {
        if let Some(entry) = self.entry {
            scheduler.strike_out(entry);
        }
        discard(self.sink.take_promise());
        self.sink.call(|| discard(self.future));
        discard(self.sink);
    }

    /// Delivers the result of the future, which is dropped first.
    fn settle(self, result: Result<F::Output, Payload>) -> Outcome {
        self.sink.call(|| discard(self.future));
        self.sink.settle(result)
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
        let contents = Contents { future: Box::pin(future), sink, entry: None };
        Arc::new(FutureTask {
            state: State::new(),
            cell: Mutex::new(Cell::Here(contents)),
            scheduler,
        })
    }

    /// Takes the future out: for its owner only.
    fn take(&self) -> Contents<F, K> {
        match mem::replace(&mut *self.cell.lock(), Cell::Taken) {
            Cell::Here(contents) => contents,
            Cell::Taken | Cell::Away(_) => {
                unreachable!("a task that is not done has its future here")
            }
        }
    }

    /// Drops the future: for its owner only.
    fn discard(&self) {
        self.end(self.take());
    }

    /// Drops the future, which its owner has taken.
    fn end(&self, contents: Contents<F, K>) -> Outcome {
        contents.discard(&self.scheduler);
        self.state.transition_to_done();
        Outcome::Cancelled
    }

    /// After the first poll: from now on those who cancel pending futures know this one. `false` if they have been.
    fn enter_pending(self: &Arc<Self>, contents: &mut Contents<F, K>) -> bool {
        let this = Arc::downgrade(self) as Weak<dyn Cancel>;
        contents.entry = self.scheduler.enter(Weak::clone(&this));
        contents.entry.is_some() && contents.sink.enter_pending(&this)
    }

    /// Brings a task that was made `SCHEDULED` into the queue.
    fn submit(self: &Arc<Self>) {
        if !self.scheduler.schedule(Job::woken(Arc::clone(self) as Arc<dyn Run>)) {
            let _ = self.state.transition_to_running();
            self.scheduler.drop_elsewhere(|| self.discard());
        }
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
        if !self.state.transition_to_running() {
            self.discard();
            return Outcome::Cancelled;
        }
        let mut contents = self.take();
        if contents.sink.is_cancelled() {
            return self.end(contents);
        }
        let waker = Waker::from(Arc::clone(&self));
        let Contents { future, sink, .. } = &mut contents;
        let polled =
            contain(|| sink.call(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let result = match polled {
            Ok(Poll::Pending) => {
                if contents.entry.is_none() && !self.enter_pending(&mut contents) {
                    return self.end(contents);
                }
                // Back into its cell before anybody else may own it.
                *self.cell.lock() = Cell::Here(contents);
                return match self.state.transition_after_poll() {
                    AfterPoll::Wait => Outcome::Pending,
                    AfterPoll::Reschedule => Outcome::Woken(self),
                    AfterPoll::Drop => {
                        self.discard();
                        Outcome::Cancelled
                    }
                };
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(payload) => Err(payload),
        };
        if let Some(entry) = contents.entry {
            self.scheduler.strike_out(entry);
        }
        let outcome = contents.settle(result);
        self.state.transition_to_done();
        outcome
    }

    fn run_away(self: Arc<Self>) -> Outcome {
        if !self.state.transition_to_running() {
            self.discard();
            return Outcome::Cancelled;
        }
        // With wakers of another executor: those of this one would bring it back into the pool.
        let mut contents = self.take();
        let result = contain(|| {
            let running = poll_fn(|context| {
                // First told how to be woken, then looked; a canceller does it the other way round.
                *self.cell.lock() = Cell::Away(context.waker().clone());
                if self.state.is_cancelled() {
                    return Poll::Ready(None);
                }
                contents.future.as_mut().poll(context).map(Some)
            });
            wait_for(pin!(running), None).flatten()
        });
        *self.cell.lock() = Cell::Taken;
        let outcome = match result.transpose() {
            Some(result) => contents.settle(result),
            None => {
                contents.discard(&self.scheduler);
                Outcome::Cancelled
            }
        };
        self.state.transition_to_done();
        outcome
    }

    fn abandon(self: Arc<Self>) {
        let _ = self.state.transition_to_running();
        self.discard();
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }

    fn is_tied(&self) -> bool {
        K::IS_TIED
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
        let before = self.state.transition_to_cancelled();
        if matches!(before, IDLE | SCHEDULED) {
            // Whoever comes to drop the future may be quicker, and settles the handle himself then.
            let promise = match &mut *self.cell.lock() {
                Cell::Here(contents) => contents.sink.take_promise(),
                Cell::Taken | Cell::Away(_) => None,
            };
            discard(promise);
        } else if let Cell::Away(waker) = &*self.cell.lock() {
            waker.wake_by_ref();
        }
        if before == IDLE {
            self.submit();
        }
    }
}

impl<F, S, K> Wake for FutureTask<F, S, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    S: Scheduler,
    K: Sink<F::Output>,
{
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.transition_to_scheduled() {
            self.submit();
        }
    }
}

/// The last reference is gone: nobody can wake the future any more. (Or the pool ended with it.)
impl<F: Future, S: Scheduler, K: Sink<F::Output>> Drop for FutureTask<F, S, K> {
    fn drop(&mut self) {
        let cell = mem::replace(&mut *self.cell.lock(), Cell::Taken);
        if let Cell::Here(contents) = cell {
            self.scheduler.drop_elsewhere(|| contents.discard(&self.scheduler));
        }
    }
}

/// Futures (feature `async`).
impl ThreadPool {
    /// Spawns a future: the workers poll it, and whenever it is woken it goes back into the queue. While
    /// it waits it occupies no worker. A future that blocks (that reads files, or waits for a handle
    /// without `.await`) does occupy one: leave as many workers below `max_size` for the others.
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
        self.shared().submit_or_cancel(future, |future| self.with_handle(future))
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
        let task = FutureTask::new(future, nobody, Arc::clone(self.shared()));
        (Job::task(task), ())
    }

    fn with_handle<F>(&self, future: F) -> (Job, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (promise, receiver) = Promise::new();
        let task = FutureTask::new(future, Some(promise), Arc::clone(self.shared()));
        let weak = Arc::downgrade(&task);
        (Job::task(task), receiver.for_task(weak as Weak<dyn Cancel>))
    }
}
