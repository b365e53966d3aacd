//! Waiting for a group and cancelling it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::TaskGroup;
use super::error::GroupError;
use super::inside::is_inside;
use super::state::{GroupState, Inner, Quiet};
use crate::sched::{Dependency, NO_LIMIT, has_passed, wait_for};
use crate::token::CancellationToken;
use crate::wait::run_awaited_tasks;

/// # Waiting and cancelling
impl<E: Send + 'static> TaskGroup<E> {
    /// Blocks until, at some moment after the call, all tasks of the group have ended. What they
    /// wrote is then visible to the caller, and the group can be used again.
    ///
    /// A worker of the pool first runs the group's unstarted tasks, the newest first and within the
    /// group's limit. Then it waits in a [blocking region](crate::blocking()). A group is also a
    /// future: `group.await` waits without blocking.
    ///
    /// If several threads wait at the same time, one of them receives the error, and the others
    /// receive "cancelled". Panics after the first go to the pool's [panic
    /// handler](crate::Builder::panic_handler), as do all panics of a group for which no thread
    /// waits.
    ///
    /// # Errors
    /// Returns the first error or panic of a task. Without one, "expired" if the
    /// [deadline](Self::deadline) has cancelled the group, or "cancelled" if something else has. Of
    /// a [race](Self::first_success) that a task has won, `Ok`.
    ///
    /// # Panics
    /// If one of the group's own tasks calls it: it would wait for itself. While the thread
    /// unwinds, a second panic would abort the process. So in a destructor that runs while such a
    /// task unwinds, the call returns at once, with an error that [is
    /// "cancelled"](GroupError::is_cancelled).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// group.execute(|| Err("no such file")).unwrap();
    /// assert_eq!(group.wait().unwrap_err().to_string(), "no such file");
    /// ```
    #[track_caller]
    pub fn wait(&self) -> Result<(), GroupError<E>> {
        self.inner.first(self.wait_all())
    }

    /// Like [`wait`](Self::wait), but blocks for at most `timeout`. Returns `None` if the tasks
    /// have not all ended in time.
    ///
    /// A worker begins no task after the timeout. It ends the one that it runs: the timeout bounds
    /// only the wait for tasks that run elsewhere.
    ///
    /// Does not panic. If one of the group's own tasks calls it, it returns `None` at once.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// group.execute(move || gate.recv().map_err(drop)).unwrap();
    /// assert!(group.wait_timeout(Duration::from_millis(1)).is_none());
    /// open.send(()).unwrap();
    /// assert!(group.wait_timeout(Duration::from_secs(60)).unwrap().is_ok());
    /// ```
    #[must_use = "`None` says that the tasks have not ended; otherwise it holds the group's result"]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<(), GroupError<E>>> {
        if is_inside(self.inner.id()) {
            return None;
        }
        self.wait_until(Instant::now().checked_add(timeout)).map(|errors| self.inner.first(errors))
    }

    /// Like [`wait`](Self::wait), but returns the errors of all tasks, in the order in which they
    /// occurred. Empty if the group succeeded. There may be several: tasks that ran when the group
    /// was cancelled may fail too.
    ///
    /// # Panics
    /// As for [`wait`](Self::wait).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// group.execute(|| Err("no such file")).unwrap();
    /// assert_eq!(group.wait_all().len(), 1);
    /// ```
    #[must_use = "these are the errors of the tasks; `wait` returns the first of them"]
    #[track_caller]
    pub fn wait_all(&self) -> Vec<GroupError<E>> {
        if self.inner.refuses_own_task("wait") {
            return vec![GroupError::CANCELLED];
        }
        self.wait_until(None).expect(NO_LIMIT)
    }

    /// Cancels the group, as an error of a task does. Does not wait for a worker: this call drops
    /// the tasks that no thread runs, with all that they hold, whatever the workers do. So the
    /// destructors run on the calling thread (after an error, on that of the task which has
    /// failed): do not hold a lock that they take. (In a destructor that runs so itself, 32 levels
    /// deep, the call leaves the tasks to a worker.)
    ///
    /// The next [`wait`](Self::wait) returns an error: that of a failed task, or "cancelled" if
    /// none has failed. Until then the group hands new tasks back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.cancel();
    /// assert!(group.execute(|| Ok(())).is_err());
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// assert!(group.execute(|| Ok(())).is_ok());
    /// ```
    pub fn cancel(&self) {
        self.inner.update(GroupState::cancel);
    }

    /// Returns whether the group was cancelled, by an error, a panic or [`cancel`](Self::cancel),
    /// since it was created or since the last wait.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.cancel();
    /// assert!(group.is_cancelled());
    /// assert!(group.wait().is_err());
    /// assert!(!group.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.inner.state.lock().token.is_cancelled()
    }

    /// Returns the token by which tasks see that the group was cancelled, and may
    /// [cancel](CancellationToken::cancel) it. After a wait for a cancelled group, the group has a
    /// new token.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// let token = group.token();
    /// group.execute(move || {
    ///     while !token.is_cancelled() {
    ///         std::thread::yield_now(); // a piece of work
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// group.cancel();
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn token(&self) -> CancellationToken {
        let token = self.inner.state.lock().token.clone();
        let inner: Weak<Inner<E>> = Arc::downgrade(&self.inner);
        token.set_owner(inner);
        token
    }

    /// Returns how many of the group's tasks were dropped before their end, since the group was
    /// created.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// let group = pool.group::<()>();
    /// group.execute(|| Ok(println!("never printed"))).unwrap();
    /// group.cancel();
    /// open.send(()).unwrap();
    /// assert!(group.wait().is_err());
    /// assert_eq!(group.dropped_count(), 1);
    /// ```
    pub fn dropped_count(&self) -> usize {
        self.inner.state.lock().dropped
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<Vec<GroupError<E>>> {
        let mut quiet = Quiet::new(Arc::clone(&self.inner));
        if !has_passed(deadline) {
            // Registers as a waiter first: the caller does not depend on tasks submitted after the
            // group was quiet.
            if let Poll::Ready(errors) = quiet.poll_outcome(Waker::noop()) {
                return Some(errors);
            }
            let depends = || !quiet.is_over() && !has_passed(deadline);
            // Its own deadline may end the wait as well.
            let at_once = deadline.is_some() || self.inner.state.lock().deadline.is_some();
            let route = self.inner.route();
            run_awaited_tasks(route, &self.inner.unstarted, false, at_once, depends);
        }
        wait_for(Pin::new(&mut quiet), deadline, self.pool())
    }

    /// What a wait for this group's tasks depends on.
    pub(super) fn pool(&self) -> Dependency {
        Dependency::Pool(self.inner.route().id())
    }
}

/// A future that resolves when all tasks of a group have ended: what `group.await` waits for. Works
/// on any executor. Otherwise like [`TaskGroup::wait`], except that it runs no task.
///
/// # Panics
/// If one of the group's own tasks polls it: it would wait for itself. While that task unwinds, the
/// future is ready with "cancelled" instead.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group();
/// group.execute(|| Err("no such file")).unwrap();
/// let waited = pool.complete(async move { group.await });
/// assert_eq!(waited.await_complete().unwrap_err().to_string(), "no such file");
/// ```
#[must_use = "futures do nothing unless they are polled"]
pub struct GroupWait<E> {
    quiet: Quiet<E>,
}

impl<E> Future for GroupWait<E> {
    type Output = Result<(), GroupError<E>>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.quiet.inner.refuses_own_task("await") {
            return Poll::Ready(Err(GroupError::CANCELLED));
        }
        let polled = Pin::new(&mut self.quiet).poll(context);
        polled.map(|errors| self.quiet.inner.first(errors))
    }
}

impl<E> IntoFuture for TaskGroup<E> {
    type Output = Result<(), GroupError<E>>;
    type IntoFuture = GroupWait<E>;

    fn into_future(self) -> GroupWait<E> {
        GroupWait { quiet: Quiet::new(self.inner) }
    }
}

impl<E> IntoFuture for &TaskGroup<E> {
    type Output = Result<(), GroupError<E>>;
    type IntoFuture = GroupWait<E>;

    fn into_future(self) -> GroupWait<E> {
        self.clone().into_future()
    }
}

impl<E> fmt::Debug for GroupWait<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWait").finish_non_exhaustive()
    }
}
