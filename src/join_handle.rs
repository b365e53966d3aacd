//! The handle of a task: the receiving end of a oneshot channel, whose sending end is the task's
//! [`Promise`].

// The documentation of `JoinHandle` shows its methods in the order of these modules. The empty line
// keeps rustfmt from sorting them.
mod waiting;

pub(crate) mod abort;

pub(crate) mod set;

pub(crate) use waiting::wait_for_itself;

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_channel::oneshot;
use futures_core::future::FusedFuture;

use crate::error::{JoinError, Refusal};
#[cfg(feature = "async")]
use crate::sched::OwnedRoute;
use crate::sched::{Origin, Route, TaskRoute};
use crate::submit::Accepted;
use crate::sync::unwind::{Payload, discard};
use crate::task::{AnyGroup, Closure, Expiry, Job, Promise, Receiver, Run, TaskId};
use crate::wait::{Call, FutureTask, block_on};

/// A handle to the result of a task. Returned by [`evaluate`](crate::ThreadPool::evaluate),
/// [`complete`](crate::ThreadPool::complete) and [`spawn_await`](crate::ThreadPool::spawn_await).
///
/// It always resolves: to the task's value, to the payload of its panic, to "cancelled", or to
/// "expired" (only a task of a [view](crate::View) with a [queue
/// timeout](crate::ViewBuilder::queue_timeout)). Dropping it detaches the task, which still runs
/// ([`cancel_on_drop`](Self::cancel_on_drop): cancels it). The result is then dropped by the thread
/// that drops the handle or, if the task ends later, by the task's thread. Either contains a panic
/// of the result's destructor.
///
/// Block on it, or `.await` it: it is a [`Future`] for any executor. Blocking works on any thread,
/// also inside [`complete`](crate::ThreadPool::complete) or another crate's `block_on`. In async
/// code it blocks the executor's thread, as any blocking call does.
///
/// A worker that blocks on a task of its own pool first runs that task on its own stack, if no
/// worker has started it (of a spawned future, the first poll). Otherwise, and after that, the wait
/// is a [blocking region](crate::blocking()): if there is work, another worker runs in its place.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let handle = pool.evaluate(|| 6 * 7);
/// assert_eq!(handle.await_complete(), 42);
///
/// let handle = pool.evaluate(|| -> u32 { panic!("lost my keys") });
/// let error = handle.try_await_complete().unwrap_err();
/// assert_eq!(error.to_string(), "the task panicked: lost my keys");
/// ```
///
/// In async code, on any executor:
///
/// ```
/// async fn sum(pool: &elastipool::ThreadPool) -> Result<u32, elastipool::JoinError> {
///     let low = pool.evaluate(|| (1..=50).sum::<u32>());
///     let high = pool.evaluate(|| (51..=100).sum::<u32>());
///     Ok(low.await? + high.await?) // neither blocks the thread
/// }
///
/// let pool = elastipool::ThreadPool::default();
/// # let block_on = async_io::block_on;
/// assert_eq!(block_on(sum(&pool)).unwrap(), 5050);
/// ```
#[must_use = "a dropped handle detaches its task, or cancels it after `cancel_on_drop`; use \
    `execute` or `spawn` if the result is of no interest"]
pub struct JoinHandle<T> {
    /// Behind a lock because [`is_finished`](Self::is_finished), which takes `&self`, may receive
    /// the result.
    mailbox: Mutex<Mailbox<T>>,
    /// To cancel or run the task. `None` if the handle cannot reach it.
    task: Option<Weak<dyn Run>>,
    /// The task's pool and view.
    origin: Origin,
}

/// The receiving end of the channel, and the result once it was received.
struct Mailbox<T> {
    /// `None` once a poll has returned the result.
    receiver: Option<Receiver<T>>,
    /// A result that was received by [`look`](Self::look) and not taken yet. In a box: few handles
    /// are asked whether the task has finished, and a handle with space for a large result would be
    /// slow to move.
    delivered: Option<Box<Result<T, JoinError>>>,
}

/// The panic of a poll, or a wait, for a result that a poll has returned.
pub(crate) const HAS_RESOLVED: &str = "a handle was polled or waited for after a poll had \
    returned its task's result: keep that, or \
     ask `is_terminated` before";

impl<T> Mailbox<T> {
    /// Whether the task has finished.
    fn look(&mut self, expiry: Option<&Arc<Expiry>>) -> bool {
        if self.delivered.is_none() {
            self.delivered = self.receive(expiry).map(Box::new);
        }
        self.delivered.is_some() || self.is_taken()
    }

    /// Takes the result, if it is there.
    fn take(&mut self, expiry: Option<&Arc<Expiry>>) -> Option<Result<T, JoinError>> {
        match self.delivered.take() {
            Some(result) => Some(*result),
            None => self.receive(expiry),
        }
    }

    fn receive(&mut self, expiry: Option<&Arc<Expiry>>) -> Option<Result<T, JoinError>> {
        // In one match: each step of a chain of calls would copy the value.
        Some(match self.receiver.as_mut()?.try_recv() {
            Ok(None) => return None,
            Ok(Some(Ok(value))) => Ok(value),
            Ok(Some(Err(payload))) => Err(JoinError::panicked(payload)),
            Err(oneshot::Canceled) => Err(without_result(expiry)),
        })
    }

    fn is_taken(&self) -> bool {
        self.receiver.is_none()
    }
}

/// Contains panics of a result that was not taken, as the task's thread does if the handle is gone
/// before: which of them drops the result is a matter of chance.
impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        discard((self.receiver.take(), self.delivered.take()));
    }
}

/// Returns what the pool or group has granted to a task. If it has refused the task, the function
/// that calls this drops the task, and returns its handle.
macro_rules! or_refused {
    ($granted:expr, $route:expr, $task:ident) => {
        match $granted {
            Ok(granted) => granted,
            Err(refusal) => return JoinHandle::refused($route, &refusal, Box::new($task)),
        }
    };
}

pub(crate) use or_refused;

impl<T> JoinHandle<T> {
    /// Makes the handle of a task, and the promise for it. The handle cannot reach its task before
    /// [`set_task`](Self::set_task).
    ///
    /// Not inlined: it depends on the type of the result only, and many tasks have results of one
    /// type.
    #[inline(never)]
    pub(crate) fn new(route: Route<'_>, expiry: Option<&Arc<Expiry>>) -> (Promise<T>, Self) {
        let (promise, receiver) = oneshot::channel();
        let mailbox = Mutex::new(Mailbox { receiver: Some(receiver), delivered: None });
        (promise, JoinHandle { mailbox, task: None, origin: route.origin(expiry.cloned()) })
    }

    /// Enqueues a closure that was accepted.
    ///
    /// Not inlined: it does not depend on the type of the closure.
    #[inline(never)]
    pub(crate) fn of_closure(accepted: Accepted<'_>, closure: Closure<T>) -> Self
    where
        T: Send,
    {
        let own = TaskRoute::own(accepted.route, accepted.line, false);
        let (promise, mut handle) = JoinHandle::new(accepted.route, own.expiry());
        let task: Arc<dyn Run> = FutureTask::task(Call(closure), promise, own);
        handle.set_task(&task);
        accepted.enqueue(Job::task(task));
        handle
    }

    /// Enqueues a future that one worker drives to its end. It is boxed to be pinned.
    pub(crate) fn of_completion<F>(accepted: Accepted<'_>, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let future = Box::pin(future);
        JoinHandle::of_closure(accepted, Closure::new(|| block_on(future)))
    }

    /// Enqueues a future that was accepted. It may share the `common` route.
    #[cfg(feature = "async")]
    pub(crate) fn of_future(
        accepted: Accepted<'_>,
        future: impl Future<Output = T> + Send + 'static,
        common: impl FnOnce() -> OwnedRoute,
    ) -> Self
    where
        T: Send + 'static,
    {
        let own = TaskRoute::own_or(accepted.route, accepted.line, true, common);
        let (promise, mut handle) = JoinHandle::new(accepted.route, own.expiry());
        let task: Arc<dyn Run> = FutureTask::task(future, promise, own);
        handle.set_task(&task);
        accepted.enqueue_spawned(Job::task(task));
        handle
    }

    /// The handle does not keep the task alive: a future whose last waker is dropped is dropped,
    /// even while a thread waits for it.
    pub(crate) fn set_task(&mut self, task: &Arc<dyn Run>) {
        self.task = Some(Arc::downgrade(task));
    }

    /// The task may wait for a slot of this group: a canceller takes it out of the line.
    pub(crate) fn set_line(&mut self, group: &Arc<impl AnyGroup + 'static>, id: Option<TaskId>) {
        let line = Arc::downgrade(group);
        self.origin.set_line(line, id);
    }

    /// Drops a task that the pool did not accept, and makes its handle. In a box: it may be large,
    /// and is moved once.
    pub(crate) fn refused<F>(route: Route<'_>, refusal: &Refusal, task: Box<F>) -> Self {
        discard(task);
        let error = JoinError::refused(refusal);
        let mut handle = JoinHandle::new(route, None).1;
        let mailbox = handle.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        mailbox.delivered = Some(Box::new(Err(error)));
        handle
    }

    /// Detaches the task. If it has panicked, returns the payload, which no wait has received.
    pub(crate) fn close(&mut self) -> Option<Payload> {
        let mailbox = self.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Close first, then look: either the task finds the channel closed, or its result is here.
        if let Some(receiver) = &mut mailbox.receiver {
            receiver.close();
        }
        match mailbox.take(self.origin.expiry())? {
            Ok(value) => {
                discard(value);
                None
            }
            Err(error) => error.try_into_panic().ok(),
        }
    }
}

/// No panic leaves a handle in an invalid state (law 6). Its value was never shared with the code
/// that panics.
impl<T> UnwindSafe for JoinHandle<T> {}

/// As for [`UnwindSafe`].
impl<T> RefUnwindSafe for JoinHandle<T> {}

/// A result is never pinned.
impl<T> Unpin for JoinHandle<T> {}

/// Resolves when the task has ended. A poll after that panics: [`FusedFuture`] says whether a poll
/// has returned the result, and the `select!` of the crate `futures` asks it.
///
/// ```
/// use futures::select;
///
/// let pool = elastipool::ThreadPool::default();
/// let (mut half, mut double) = (pool.evaluate(|| 84 / 2), pool.evaluate(|| 42 * 2));
/// let sum = pool.complete(async move {
///     let mut sum = 0;
///     loop {
///         select! {
///             result = half => sum += result.unwrap(),
///             result = double => sum += result.unwrap(),
///             complete => break sum,
///         }
///     }
/// });
/// assert_eq!(sum.await_complete(), 126);
/// ```
impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mailbox = this.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = &mut mailbox.receiver else { panic!("{HAS_RESOLVED}") };
        let expiry = this.origin.expiry();
        let polled = match mailbox.delivered.take() {
            Some(result) => Poll::Ready(*result),
            // In one match, as in `Mailbox::receive`.
            None => match Pin::new(receiver).poll(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(Ok(value))) => Poll::Ready(Ok(value)),
                Poll::Ready(Ok(Err(payload))) => Poll::Ready(Err(JoinError::panicked(payload))),
                Poll::Ready(Err(oneshot::Canceled)) => Poll::Ready(Err(without_result(expiry))),
            },
        };
        if polled.is_ready() {
            mailbox.receiver = None;
        }
        this.origin.note_poll(polled.is_pending(), context.waker());
        polled
    }
}

/// Terminated once a poll has returned the result.
impl<T> FusedFuture for JoinHandle<T> {
    fn is_terminated(&self) -> bool {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).is_taken()
    }
}

/// Why a task ended without a result.
fn without_result(expiry: Option<&Arc<Expiry>>) -> JoinError {
    let is_expired = expiry.is_some_and(|expiry| expiry.is_expired());
    if is_expired { JoinError::EXPIRED } else { JoinError::CANCELLED }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("is_finished", &self.is_finished()).finish()
    }
}
