//! Cancelling a task and waiting until it is gone.
//!
//! A canceller may settle a handle before the closure or future is dropped. So the waiter first asks the task
//! ([`Run::poll_gone`]), then the handle. If the task has no reference any more, or is not cancelled, the handle is enough: it
//! resolves after the drop.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_core::future::FusedFuture;

use super::JoinHandle;
use super::abort::settle_and_cancel;
use crate::error::JoinError;
use crate::runtime::region::{Dependency, NO_LIMIT, wait_for};
use crate::sync::unwind::discard;
use crate::task::job::Run;

/// Waits until a cancelled task is gone. Returned by [`JoinHandle::cancelling`].
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let handle = pool.evaluate(|| 6 * 7);
/// let stopped = pool.complete(async move {
///     match handle.cancelling().await {
///         Ok(value) => assert_eq!(value, 42), // too late: the task had started
///         Err(error) => assert!(error.is_cancelled()),
///     }
/// });
/// stopped.await_complete();
/// ```
#[must_use = "the task is cancelled, but it is gone only when this future resolves"]
pub struct Cancelling<T> {
    handle: JoinHandle<T>,
    /// The task, while it may hold its closure or future.
    task: Option<Arc<dyn Run>>,
}

/// # Waiting until the task is gone
impl<T> JoinHandle<T> {
    /// Cancels the task and blocks until it is gone: its closure or future has been dropped, with all that it holds, and no
    /// thread runs it. [`cancel`](Self::cancel) and a wait for the handle promise less: a cancelled handle may resolve
    /// before that.
    ///
    /// - A queued closure or future, or one that waits for a wake or for a slot of its [group](crate::TaskGroup::limit): the
    ///   call itself drops it.
    /// - A future that is being polled: it is dropped when that poll returns.
    /// - A closure that runs: the call waits for its end.
    /// - A task that [`shutdown_now`](crate::ThreadPool::shutdown_now) has handed back: the call waits until its
    ///   [`Task`](crate::Task) is dropped or run.
    ///
    /// A worker waits in a [blocking region](crate::blocking()). A task that waits for its own end waits forever. In async code,
    /// use [`cancelling`](Self::cancelling).
    ///
    /// # Errors
    /// "Cancelled", unless the task ended by itself: then this returns its value, or its panic as the error.
    ///
    /// # Panics
    /// If a poll of the handle has returned the result.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let file = std::sync::Arc::new("a file");
    /// let user = std::sync::Arc::clone(&file);
    /// let handle = pool.evaluate(move || user.len());
    /// let _ = handle.cancel_and_wait(); // the length, or "cancelled"
    /// assert_eq!(std::sync::Arc::strong_count(&file), 1);
    /// ```
    #[track_caller]
    pub fn cancel_and_wait(mut self) -> Result<T, JoinError> {
        self.assert_not_taken();
        let pool = Dependency::Pool(self.origin.pool);
        let mut cancelling = self.cancelling();
        wait_for(Pin::new(&mut cancelling), None, pool).expect(NO_LIMIT)
    }

    /// Cancels the task as [`cancel`](Self::cancel) does, and returns a future that resolves when the task is gone.
    ///
    /// What "gone" means, who drops the task, and the result are those of [`cancel_and_wait`](Self::cancel_and_wait).
    /// Dropping the future detaches the task, which stays cancelled.
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let file = std::sync::Arc::new("a file");
    /// let user = std::sync::Arc::clone(&file);
    /// let reader = pool.spawn_await(async move { (std::future::pending::<()>().await, *user) });
    /// let closer = pool.spawn_await(async move {
    ///     assert!(reader.cancelling().await.unwrap_err().is_cancelled());
    ///     assert_eq!(std::sync::Arc::strong_count(&file), 1);
    /// });
    /// closer.await_complete();
    /// # }
    /// ```
    pub fn cancelling(self) -> Cancelling<T> {
        let task = self.task.as_ref().and_then(Weak::upgrade);
        if let Some(task) = &task {
            settle_and_cancel(&self.origin, Arc::clone(task));
        }
        Cancelling { handle: self, task }
    }
}

/// Resolves when the task is gone. A poll after that panics, as does one after a poll of the handle had returned the result.
impl<T> Future for Cancelling<T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(task) = &self.task {
            if task.poll_gone(context.waker()).is_pending() {
                self.handle.origin.begin_poll_wait();
                return Poll::Pending;
            }
            discard(self.task.take());
        }
        Pin::new(&mut self.handle).poll(context)
    }
}

/// Terminated once a poll, of this or of the handle before, has returned the result.
impl<T> FusedFuture for Cancelling<T> {
    fn is_terminated(&self) -> bool {
        self.handle.is_terminated()
    }
}

/// As for [`JoinHandle`].
impl<T> UnwindSafe for Cancelling<T> {}

/// As for [`UnwindSafe`].
impl<T> RefUnwindSafe for Cancelling<T> {}

impl<T> fmt::Debug for Cancelling<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelling").finish_non_exhaustive()
    }
}
