//! Tasks that belong together: the first error cancels the rest, and one wait is for all of them.
//!
//! What a group knows and how it works is in `state.rs`, what one of its tasks holds in `member.rs`.

mod error;
mod inside;
mod member;
mod state;

use std::any::type_name;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

pub use self::error::GroupError;
use self::inside::is_inside;
use self::member::{Member, closure};
use self::state::{Entrance, Inner, Quiet, State};
use crate::error::{Refusal, Rejected};
use crate::pool::ThreadPool;
use crate::runtime::awaited::run_awaited_group;
use crate::runtime::capacity::Patience;
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::submit::WithoutThread;
use crate::sync::Mutex;
use crate::task::job::Job;
use crate::task::unstarted::Unstarted;
use crate::token::CancellationToken;
#[cfg(feature = "async")]
use crate::waker;

/// Tasks that belong together, on a pool that they share with others: from [`ThreadPool::group`].
///
/// Its tasks return a `Result`. The first error, or panic, cancels the group: tasks that have not been started are
/// dropped without being run, running ones see it by the [`token`](Self::token), futures are dropped as soon as they
/// have to wait. [`wait`](Self::wait) returns when all tasks have ended, with that first error; then the group can be
/// used again.
///
/// With a [`limit`](Self::limit), no more than so many of its tasks are under way at the same time, whatever else the
/// pool does. Then [`execute`](Self::execute) waits for a place and [`try_execute`](Self::try_execute) says
/// [`Full`](crate::RejectReason::Full).
///
/// Clones are the same group. Dropping the last one detaches the tasks, which run all the same; use
/// [`cancel`](Self::cancel) to be rid of them. A group does not keep the pool open.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group();
/// for text in ["1", "2", "three", "4"] {
///     // After the first failure, tasks come back: there is no point in submitting the rest.
///     if group.execute(move || text.parse::<u32>().map(drop)).is_err() {
///         break;
///     }
/// }
/// assert_eq!(group.wait().unwrap_err().to_string(), "invalid digit found in string");
///
/// // Used again.
/// group.execute(|| "5".parse::<u32>().map(drop)).unwrap();
/// assert!(group.wait().is_ok());
/// ```
pub struct TaskGroup<E> {
    inner: Arc<Inner<E>>,
}

impl ThreadPool {
    /// Makes an empty group. `E` is the error type of its tasks.
    ///
    /// See [`TaskGroup`] for what it does, and an example.
    pub fn group<E>(&self) -> TaskGroup<E>
    where
        E: Send + 'static,
    {
        let inner = Inner {
            shared: Arc::clone(self.shared()),
            state: Mutex::new(State::new()),
            unstarted: Unstarted::new(()),
        };
        TaskGroup { inner: Arc::new(inner) }
    }
}

impl<E: Send + 'static> TaskGroup<E> {
    /// Sets how many of the group's tasks may be under way at the same time: queued, running or, if they are futures,
    /// pending. A group has no limit unless it is given one.
    ///
    /// # Panics
    /// If `limit` is 0: no task could ever run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(4);
    /// for i in 0..100 {
    ///     group.execute(move || Ok(println!("{i}"))).unwrap(); // waits for one of four places
    /// }
    /// group.wait().unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[track_caller]
    pub fn limit(self, limit: usize) -> Self {
        self.set_limit(limit);
        self
    }

    /// Changes the [limit](Self::limit), for all clones and at once: if it grows, those in line are let in; if it
    /// shrinks, the tasks that are under way go on.
    ///
    /// # Panics
    /// If `limit` is 0: no task could ever run.
    #[track_caller]
    pub fn set_limit(&self, limit: usize) {
        assert!(
            limit > 0,
            "the limit of a group is 0; it must be at least 1, or no task could ever run (for no limit, do not set it)"
        );
        self.inner.update(|state, after| {
            state.limit = limit;
            state.grant(after);
        });
    }

    /// Does not cancel the group when a task fails: all tasks run, and [`wait_all`](Self::wait_all) returns every
    /// error.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group().keep_going();
    /// for text in ["1", "two", "three", "4"] {
    ///     group.execute(move || text.parse::<u32>().map(drop).map_err(|_| text)).unwrap();
    /// }
    /// let mut failed: Vec<_> = group.wait_all().iter().map(|error| error.to_string()).collect();
    /// failed.sort();
    /// assert_eq!(failed, ["three", "two"]);
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    pub fn keep_going(self) -> Self {
        self.inner.state.lock().keeps_going = true;
        self
    }

    /// Runs a closure on a worker, as a task of this group.
    ///
    /// Waits for a place if the group has a [limit](Self::limit) and is full, and for room if the pool's queue is
    /// [bounded](crate::Builder::queue_capacity) and full; a worker waits in a [blocking region](crate::blocking()).
    /// Those who wait for a place are let in one after another, in the order in which they came.
    ///
    /// Called by one of the group's own tasks, it does not wait for a place, which it may be the one to make: if the
    /// group is full, the new task waits in the same line instead of its submitter. (That holds for the task's own code.
    /// A task that waits for something else, such as a handle, which in turn waits for a place in a full group, waits
    /// for itself. Use [`try_execute`](Self::try_execute) there.)
    ///
    /// Without a worker and without a thread to be had, the closure runs on the calling thread.
    ///
    /// # Errors
    /// If the group has been cancelled or the pool is closed: the closure comes back. Who waits in line hears of a
    /// cancellation at once, and of a close when it is its turn.
    pub fn execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        self.submit(task, true, closure)
    }

    /// Like [`execute`](Self::execute), but does not wait.
    ///
    /// # Errors
    /// If the group has been cancelled or is full, also if the caller is one of its own tasks; if the pool is closed,
    /// or its queue full; or if it has no worker and the system refuses to start a thread. The closure comes back.
    ///
    /// ```
    /// use elastipool::RejectReason;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.cancel();
    /// let rejected = group.try_execute(|| Ok(())).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Cancelled);
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        self.submit(task, false, closure)
    }

    /// Spawns a future as a task of this group, as [`ThreadPool::spawn`] does: it is under way until it is ready.
    ///
    /// When the group is cancelled, a future that waits is dropped, and one that is being polled is dropped at the end
    /// of that poll, unless it is ready then. Waits like [`execute`](Self::execute), which blocks the calling thread;
    /// in async code that other futures of the thread depend on, use [`try_spawn`](Self::try_spawn).
    ///
    /// # Errors
    /// As [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// let (_sender, receiver) = futures::channel::oneshot::channel::<()>();
    /// group.spawn(async move { receiver.await.map_err(|_| "hung up") }).unwrap(); // would wait for long
    /// group.spawn(async { Err("no such host") }).unwrap();
    /// assert_eq!(group.wait().unwrap_err().to_string(), "no such host");
    /// ```
    #[cfg(feature = "async")]
    pub fn spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit(future, true, |future, member| self.future(future, member))
    }

    /// Like [`spawn`](Self::spawn), but does not wait.
    ///
    /// # Errors
    /// As [`try_execute`](Self::try_execute): the future comes back.
    #[cfg(feature = "async")]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit(future, false, |future, member| self.future(future, member))
    }

    #[cfg(feature = "async")]
    fn future<F>(&self, future: F, member: Member<E>) -> Job
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        Job::task(waker::task(future, member, &self.inner.shared))
    }

    fn submit<F>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(F, Member<E>) -> Job,
    ) -> Result<(), Rejected<F>> {
        let reject = |task, refusal| {
            self.inner.shared.count_rejection();
            Err(Rejected::new(task, refusal))
        };
        let is_inside = waits && is_inside(self.inner.id());
        let entrance = self.inner.state.lock().enter(waits, is_inside);
        let token = match entrance {
            Ok(Entrance::Slot(token)) => token,
            Ok(Entrance::Deferred(token)) => return self.defer(task, token, prepare),
            Ok(Entrance::Line(slot)) => match wait_for(pin!(slot), None, self.pool()) {
                Some(Ok(token)) => token,
                Some(Err(oneshot::Canceled)) | None => return reject(task, Refusal::Cancelled),
            },
            Err(refusal) => return reject(task, refusal),
        };
        let (patience, without_thread) = if waits {
            (Patience::Until(None), WithoutThread::RunOnCaller)
        } else {
            (Patience::None, WithoutThread::HandBack)
        };
        let refusal = match self.inner.shared.accept(patience, without_thread) {
            // Looked at again: it may have taken its time.
            Ok(_) if token.is_cancelled() => {
                self.inner.shared.retract();
                Refusal::Cancelled
            }
            Ok(accepted) => {
                let job = prepare(task, self.member(token));
                let (entry, _) = self.inner.unstarted.add(job, true);
                self.inner.shared.enqueue(accepted, entry);
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        self.inner.update(State::release_permit);
        Err(Rejected::new(task, refusal))
    }

    /// Accepts a task and puts it in line.
    fn defer<F>(
        &self,
        task: F,
        token: CancellationToken,
        prepare: impl FnOnce(F, Member<E>) -> Job,
    ) -> Result<(), Rejected<F>> {
        let shared = &self.inner.shared;
        if !shared.accept_deferred() {
            return Err(Rejected::new(task, Refusal::Closed));
        }
        let job = prepare(task, self.member(token));
        self.inner.update(|state, after| state.defer(job, after));
        Ok(())
    }

    fn member(&self, token: CancellationToken) -> Member<E> {
        Member::new(Arc::clone(&self.inner), token)
    }

    /// Cancels the group, as an error of a task does: [`wait`](Self::wait) will say so, unless a task has failed.
    /// Tasks that come from now on are handed back, until somebody has waited.
    pub fn cancel(&self) {
        self.inner.update(State::cancel);
    }

    /// Whether the group has been cancelled, by an error, a panic or [`cancel`](Self::cancel), since it was made or was
    /// last waited for.
    pub fn is_cancelled(&self) -> bool {
        self.inner.state.lock().token.is_cancelled()
    }

    /// What tells the tasks that the group has been cancelled. When a cancelled group has been waited for, it has a new
    /// one.
    pub fn token(&self) -> CancellationToken {
        self.inner.state.lock().token.clone()
    }

    /// How many of the group's tasks were dropped without having run to their end, since the group was made.
    pub fn dropped_count(&self) -> usize {
        self.inner.state.lock().dropped
    }

    /// Blocks until there is a moment, after the call, at which all tasks of the group have ended. What they wrote is
    /// then visible to the caller, and the group can be used again.
    ///
    /// A worker of the pool that waits runs those of the group's tasks that have not been started, the newest first and
    /// within the group's limit. Then it is in a [blocking region](crate::blocking()). A group is also a future: `group.await` is this
    /// without blocking. If several wait at the same time, one of them receives the error, and the others that the group
    /// was cancelled. Later panics than the first go to the pool's [panic handler](crate::Builder::panic_handler), as do
    /// all those of a group that nobody waits for.
    ///
    /// # Errors
    /// The first error of a task, or the first panic, whichever came first; or that the group was cancelled.
    ///
    /// # Panics
    /// If called by one of the group's own tasks, which would wait for itself. A destructor that runs while such a task
    /// unwinds gets no second panic, which would abort the process: there the wait returns at once, with an error that
    /// [says "cancelled"](GroupError::is_cancelled).
    #[track_caller]
    pub fn wait(&self) -> Result<(), GroupError<E>> {
        self.inner.first(self.wait_all())
    }

    /// Like [`wait`](Self::wait), for at most `timeout`, and without running tasks. `None` if the tasks have not all ended in time.
    ///
    /// Does not panic. If called by one of the group's own tasks, which would wait for itself, it returns `None` at once.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<(), GroupError<E>>> {
        if is_inside(self.inner.id()) {
            return None;
        }
        self.wait_until(Instant::now().checked_add(timeout), false)
            .map(|errors| self.inner.first(errors))
    }

    /// Like [`wait`](Self::wait), but returns the errors of all tasks, in the order in which they came: those that were
    /// running when the group was cancelled may have failed as well. None if all is well.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_all(&self) -> Vec<GroupError<E>> {
        if self.inner.refuses_own_task("wait") {
            return vec![GroupError::cancelled()];
        }
        match self.wait_until(None, true) {
            Some(errors) => errors,
            None => unreachable!("a wait without a limit does not time out"),
        }
    }

    fn wait_until(
        &self,
        deadline: Option<Instant>,
        runs_tasks: bool,
    ) -> Option<Vec<GroupError<E>>> {
        let mut quiet = Quiet::new(Arc::clone(&self.inner));
        if runs_tasks {
            // Entered as a waiter first: the caller does not depend on tasks that come after the group was quiet.
            if let Poll::Ready(errors) = quiet.look(Waker::noop()) {
                return Some(errors);
            }
            let depends = || !quiet.is_over();
            run_awaited_group(&self.inner.shared, &self.inner.unstarted, depends);
        }
        wait_for(Pin::new(&mut quiet), deadline, self.pool())
    }

    /// What a wait for this group's tasks depends on.
    fn pool(&self) -> Dependency {
        Dependency::Pool(self.inner.shared.id())
    }
}

/// Resolves when all tasks of a group have ended: what `group.await` waits for. As [`TaskGroup::wait`], on any executor.
///
/// # Panics
/// If it is polled by one of the group's own tasks, which would wait for itself; while the task unwinds it is ready
/// instead, as [`TaskGroup::wait`] returns then.
#[must_use = "futures do nothing unless they are polled"]
pub struct GroupWait<E> {
    quiet: Quiet<E>,
}

impl<E> Future for GroupWait<E> {
    type Output = Result<(), GroupError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.quiet.inner.refuses_own_task("await") {
            return Poll::Ready(Err(GroupError::cancelled()));
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

impl<E> Clone for TaskGroup<E> {
    fn clone(&self) -> Self {
        TaskGroup { inner: Arc::clone(&self.inner) }
    }
}

/// A panic, wherever it happens, leaves the group as valid as it was.
impl<E> UnwindSafe for TaskGroup<E> {}

/// See [`UnwindSafe`].
impl<E> RefUnwindSafe for TaskGroup<E> {}

impl<E> fmt::Debug for TaskGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state.lock();
        let limit = (state.limit < usize::MAX).then_some(state.limit);
        let (under_way, in_line) = (state.slots, state.in_line());
        let is_cancelled = state.token.is_cancelled();
        // Not under the lock: who knows what it is written to.
        drop(state);
        f.debug_struct("TaskGroup")
            .field("pool", &self.inner.shared.config.name)
            .field("error", &type_name::<E>())
            .field("limit", &limit)
            .field("under_way", &under_way)
            .field("in_line", &in_line)
            .field("is_cancelled", &is_cancelled)
            .finish()
    }
}

impl<E> fmt::Debug for GroupWait<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWait").finish_non_exhaustive()
    }
}
