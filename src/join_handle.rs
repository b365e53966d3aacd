//! The two ends of a task's result: the [`Promise`] that the task holds and the [`JoinHandle`] that its
//! submitter waits for. Between them is a oneshot channel: a promise that is dropped unfulfilled, for
//! whatever reason, cancels its handle, so no handle waits for ever (law 2).

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use crate::error::JoinError;
use crate::runtime::awaited::run_awaited_task;
use crate::runtime::region::{Dependency, PollWait, wait_for};
use crate::runtime::shared::PoolId;
use crate::sync::unwind::{Payload, quietly};
use crate::task::job::Run;
use crate::task::promise::{Promise, Receiver};

/// A handle to wait for the result of a task, from
/// [`evaluate`](crate::ThreadPool::evaluate), [`complete`](crate::ThreadPool::complete) and
/// [`spawn_await`](crate::ThreadPool::spawn_await).
///
/// It always resolves: to the task's value, to the payload of its panic, or to "cancelled". Dropping it
/// detaches the task, which runs all the same.
///
/// Wait for it by blocking, or `.await` it: it is a [`Future`] for any executor. Blocking works
/// anywhere, also inside [`complete`](crate::ThreadPool::complete) or another crate's `block_on`; but as
/// always in async code it blocks the executor's thread.
///
/// A worker that blocks without a limit for a task of its own pool runs that task on its own stack, if it has not been
/// started (for a spawned future, its first poll). Then, and in all other cases, the wait is a
/// [blocking region](crate::blocking()): the worker's place is filled if there is work.
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
#[must_use = "dropping a handle detaches its task; use `execute` or `spawn` if the result is of no interest"]
pub struct JoinHandle<T> {
    /// Behind a lock for [`is_finished`](Self::is_finished), which has to look without taking.
    mailbox: Mutex<Mailbox<T>>,
    /// A [`Cancel`], as which a `Run` cannot be passed on before Rust 1.86.
    task: Option<Weak<dyn Run>>,
    /// The task's pool.
    pool: PoolId,
    poll_wait: PollWait,
}

/// What the channel has delivered, or will.
struct Mailbox<T> {
    receiver: oneshot::Receiver<Result<T, Payload>>,
    /// What somebody found in the channel who only looked.
    delivered: Option<Result<T, JoinError>>,
}

impl<T> Mailbox<T> {
    fn new(receiver: oneshot::Receiver<Result<T, Payload>>) -> Self {
        Mailbox { receiver, delivered: None }
    }

    fn look(&mut self) -> bool {
        if self.delivered.is_none() {
            self.delivered = self.receiver.try_recv().transpose().map(resolve);
        }
        self.delivered.is_some()
    }
}

impl<T> JoinHandle<T> {
    /// The handle does not keep the task alive: a future that no waker refers to any more goes away, whether or not a thread
    /// waits for it. `task` is `None` if the handle need not reach it.
    pub(crate) fn new(
        receiver: Receiver<T>,
        task: Option<Weak<dyn Run>>,
        pool: PoolId,
    ) -> JoinHandle<T> {
        JoinHandle {
            mailbox: Mutex::new(Mailbox::new(receiver)),
            task,
            pool,
            poll_wait: PollWait::default(),
        }
    }

    /// The handle of a task that the pool has not accepted.
    pub(crate) fn cancelled(pool: PoolId) -> Self {
        JoinHandle::new(Promise::new().1, None, pool)
    }

    /// Blocks until the task has ended and returns its value.
    ///
    /// # Panics
    /// Resumes the task's panic, and panics if the task was cancelled:
    /// [`try_await_complete`](Self::try_await_complete) returns both instead.
    pub fn await_complete(self) -> T {
        match self.try_await_complete() {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(error) => panic!("await_complete has no value to return: {error}"),
            },
        }
    }

    /// Blocks until the task has ended.
    ///
    /// # Errors
    /// If the task panicked or was cancelled.
    pub fn try_await_complete(mut self) -> Result<T, JoinError> {
        match self.wait(None, true) {
            Some(result) => result,
            None => unreachable!("a wait without a limit does not time out"),
        }
    }

    /// Blocks until the task has ended, for at most `timeout`. Does not run the task, which might take longer.
    ///
    /// # Errors
    /// The handle comes back if the task has not ended in time. The result inside of `Ok` is that of
    /// [`try_await_complete`](Self::try_await_complete).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// let handle = pool.evaluate(move || gate.recv().is_ok());
    /// let handle = handle.await_complete_timeout(Duration::from_millis(1)).unwrap_err();
    /// open.send(()).unwrap();
    /// assert_eq!(handle.await_complete(), true);
    /// ```
    pub fn await_complete_timeout(
        mut self,
        timeout: Duration,
    ) -> Result<Result<T, JoinError>, JoinHandle<T>> {
        // A time that the clock cannot hold never comes.
        self.wait(Instant::now().checked_add(timeout), false).ok_or(self)
    }

    /// Whether the handle has resolved, in whichever way: then waiting does not block. That may be a moment before the
    /// task stops to count as accepted work.
    pub fn is_finished(&self) -> bool {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).look()
    }

    /// Asks the task not to run.
    ///
    /// The handle of a task that is still queued, and of a future that is not being polled, resolves to
    /// "cancelled" at once; the task itself is dropped when a worker comes to it, and counts as accepted work
    /// until then. A future that is being polled is dropped when that poll returns, if it is not ready by
    /// then. A closure that already runs is not interrupted, and its handle resolves to its result; so it does
    /// if the task has ended.
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(std::future::pending::<()>());
    /// handle.cancel();
    /// assert!(handle.try_await_complete().unwrap_err().is_cancelled());
    /// # }
    /// ```
    pub fn cancel(&self) {
        if let Some(task) = self.task.as_ref().and_then(Weak::upgrade) {
            // Contained: this may be the task's last reference by now.
            quietly(|| task.cancel());
        }
    }

    /// Gives the handle up. If the task has panicked, and nobody has heard of it, the payload comes back.
    pub(crate) fn close(mut self) -> Option<Payload> {
        let mailbox = self.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Closed first, then looked: either the task finds it closed, or its result is here.
        mailbox.receiver.close();
        mailbox.look();
        mailbox.delivered.take()?.err()?.try_into_panic().ok()
    }

    /// Blocks for the result until `deadline`, without a limit if there is none. Runs the task first if it may.
    fn wait(&mut self, deadline: Option<Instant>, runs_task: bool) -> Option<Result<T, JoinError>> {
        let mailbox = self.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        if mailbox.look() {
            return mailbox.delivered.take();
        }
        if let (true, Some(task)) = (runs_task, self.task.as_ref().and_then(Weak::upgrade)) {
            run_awaited_task(self.pool, task);
            if mailbox.look() {
                return mailbox.delivered.take();
            }
        }
        let pool = Dependency::Pool(self.pool);
        wait_for(Pin::new(self), deadline, pool)
    }
}

/// The value is never pinned.
impl<T> Unpin for JoinHandle<T> {}

/// Resolves when the task has ended. Not to be polled again after that.
impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mailbox = self.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        let polled = match mailbox.delivered.take() {
            Some(result) => Poll::Ready(result),
            None => Pin::new(&mut mailbox.receiver).poll(context).map(resolve),
        };
        let pool = self.pool;
        match polled {
            Poll::Ready(_) => self.poll_wait.end(),
            Poll::Pending => self.poll_wait.begin(pool),
        }
        polled
    }
}

/// What the channel delivered, as the user sees it.
fn resolve<T>(received: Result<Result<T, Payload>, oneshot::Canceled>) -> Result<T, JoinError> {
    match received {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(payload)) => Err(JoinError::panicked(payload)),
        Err(oneshot::Canceled) => Err(JoinError::cancelled()),
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("is_finished", &self.is_finished()).finish()
    }
}
