//! Waiting for a task's result, and cancelling the task.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use super::abort::cancel;
use super::{HAS_RESOLVED, JoinHandle};
use crate::error::JoinError;
use crate::sched::{Dependency, NO_LIMIT, has_passed, wait_for};
use crate::wait::{is_own_task, run_awaited_task};

/// The panic of a wait that would never return.
const IS_OWN: &str = "a task waits for its own handle, which resolves when the task is gone: it \
    would wait for its own end";

/// What a task's wait for its own end returns, until the deadline or without a limit.
#[track_caller]
pub(crate) fn wait_for_itself<T>(deadline: Option<Instant>) -> Option<Result<T, JoinError>> {
    if deadline.is_some() {
        return None;
    }
    assert!(thread::panicking(), "{IS_OWN}");
    Some(Err(JoinError::CANCELLED))
}

/// # Waiting and cancelling
impl<T> JoinHandle<T> {
    /// Blocks until the task has ended and returns its value. On a worker of the task's pool, a
    /// task that has not been started [runs on the calling
    /// thread](crate::guide::blocking#tasks-that-wait-for-tasks).
    ///
    /// # Panics
    /// If the task panicked, resumes that panic. If the task was cancelled or expired, panics.
    /// [`try_await_complete`](Self::try_await_complete) returns an error in each of these cases.
    ///
    /// Panics also if a poll has returned the result, or if the task itself waits, whose end it
    /// would wait for.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// assert_eq!(pool.evaluate(|| 6 * 7).await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn await_complete(mut self) -> T {
        Self::value_of(self.wait(None).expect(NO_LIMIT))
    }

    #[track_caller]
    pub(crate) fn value_of(result: Result<T, JoinError>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(error) => panic!(
                    "await_complete has no value to return: {error}; `try_await_complete` returns \
                     this error"
                ),
            },
        }
    }

    /// Blocks until the task has ended and returns its result. On a worker of the task's pool, a
    /// task that has not been started [runs on the calling
    /// thread](crate::guide::blocking#tasks-that-wait-for-tasks).
    ///
    /// # Errors
    /// If the task panicked, was cancelled or expired.
    ///
    /// # Panics
    /// If a poll has returned the result, or if the task itself waits, whose end it would wait for.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let error = pool.evaluate(|| panic!("lost my keys")).try_await_complete().unwrap_err();
    /// assert!(error.is_panic());
    /// ```
    #[track_caller]
    pub fn try_await_complete(mut self) -> Result<T, JoinError> {
        self.wait(None).expect(NO_LIMIT)
    }

    /// Blocks until the task has ended, for at most `timeout`. On a worker of the task's pool, a
    /// task that has not been started [runs on the calling
    /// thread](crate::guide::blocking#tasks-that-wait-for-tasks), however long it takes: the
    /// timeout bounds only the wait for a task that runs elsewhere. A timeout of zero runs nothing.
    /// In the task itself, which cannot end meanwhile, returns the handle at once.
    ///
    /// # Errors
    /// Returns the handle if the task has not ended in time. The result inside `Ok` is that of
    /// [`try_await_complete`](Self::try_await_complete).
    ///
    /// # Panics
    /// If a poll has returned the result, and in the task itself if the clock cannot represent the
    /// deadline.
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
    #[track_caller]
    pub fn await_complete_timeout(
        mut self,
        timeout: Duration,
    ) -> Result<Result<T, JoinError>, JoinHandle<T>> {
        // No deadline if the clock cannot represent it.
        self.wait(Instant::now().checked_add(timeout)).ok_or(self)
    }

    /// Returns whether the handle has resolved, to a value or an error. Then waiting does not
    /// block. The task may still count as accepted work for a moment.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.evaluate(|| 6 * 7);
    /// while !handle.is_finished() {
    ///     std::thread::yield_now(); // something useful
    /// }
    /// assert_eq!(handle.await_complete(), 42); // does not block
    /// ```
    pub fn is_finished(&self) -> bool {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).look(self.origin.expiry())
    }

    /// Cancels the task, unless it is a running closure. Does not wait for a worker. The handle
    /// resolves when the task is gone: its closure or future has been dropped, with all that it
    /// holds, and no thread runs it. So to wait for that, wait for the handle, or `.await` it.
    ///
    /// - A task that is queued or waits for a slot of its [group](crate::TaskGroup::limit), or a
    ///   future that is not being polled: this call drops it, with all that it holds, and its
    ///   handle resolves to "cancelled". So the destructors run on the calling thread: do not hold
    ///   a lock that they take. (In a destructor that runs so itself, 32 levels deep, the call
    ///   leaves the task to a worker.)
    /// - A future that is being polled: it is dropped when that poll returns, unless it is ready
    ///   then.
    /// - A closure that runs, or a task that has ended: nothing changes, and the handle resolves to
    ///   the result.
    /// - A task that was [handed back](crate::ThreadPool::shutdown_now): its new owner drops it.
    /// - A task that has [expired](crate::ViewBuilder::queue_timeout): it is dropped, and the
    ///   handle resolves to "expired".
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(std::future::pending::<()>());
    /// handle.cancel();
    /// assert!(handle.try_await_complete().unwrap_err().is_cancelled());
    /// # }
    /// ```
    #[doc(alias = "abort")]
    pub fn cancel(&self) {
        if let Some(task) = &self.task {
            cancel(&self.origin, task);
        }
    }

    /// [Cancels](Self::cancel) the task and blocks until it is gone. Of a closure that runs, waits
    /// for the end.
    ///
    /// A worker waits in a [blocking region](crate::blocking()). In async code, call `cancel`, then
    /// `.await` the handle.
    ///
    /// # Errors
    /// "Cancelled", unless the task ended by itself: then this returns its value, or its panic as
    /// the error.
    ///
    /// # Panics
    /// If a poll of the handle has returned the result, or in the task itself, which would wait for
    /// its own end.
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
    pub fn cancel_and_wait(self) -> Result<T, JoinError> {
        self.cancel();
        self.try_await_complete()
    }

    /// Blocks for the result until `deadline`, or without a limit if there is none. Before the
    /// deadline, first runs an unstarted task.
    #[track_caller]
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> Option<Result<T, JoinError>> {
        let mailbox = self.mailbox.get_mut().unwrap_or_else(PoisonError::into_inner);
        assert!(!mailbox.is_taken(), "{HAS_RESOLVED}");
        let result = mailbox.take(self.origin.expiry());
        if result.is_some() {
            return result;
        }
        if let Some(task) = self.task.as_ref().filter(|_| !has_passed(deadline)) {
            let at_once = deadline.is_some() || self.origin.expiry().is_some();
            run_awaited_task(&self.origin, task, at_once);
            let result = mailbox.take(self.origin.expiry());
            if result.is_some() {
                return result;
            }
        }
        self.wait_for_others(deadline)
    }

    /// Whether the task may expire before it is started.
    pub(crate) fn may_expire(&self) -> bool {
        self.origin.expiry().is_some()
    }

    /// Runs the task if it was not started, and the calling thread is a worker of its pool. Returns
    /// whether the handle has resolved then.
    pub(super) fn run_if_unstarted(&mut self) -> bool {
        if let Some(task) = &self.task {
            run_awaited_task(&self.origin, task, true);
        }
        self.is_finished()
    }

    /// Like [`wait`](Self::wait), but runs no task.
    #[track_caller]
    pub(crate) fn wait_for_others(
        &mut self,
        deadline: Option<Instant>,
    ) -> Option<Result<T, JoinError>> {
        if self.task.as_ref().is_some_and(is_own_task) {
            return wait_for_itself(deadline);
        }
        let pool = Dependency::Pool(self.origin.pool);
        let expiry = self.origin.expiry().cloned();
        if let Some(it) = expiry.filter(|it| deadline.is_none_or(|end| it.deadline < end)) {
            let waited = wait_for(Pin::new(&mut *self), Some(it.deadline), pool);
            if waited.is_some() {
                return waited;
            }
            // Race 8: either the task is expired now, or it was started before.
            if it.is_late() {
                self.cancel();
                return Some(Err(JoinError::EXPIRED));
            }
        }
        wait_for(Pin::new(self), deadline, pool)
    }
}
