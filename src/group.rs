//! Task groups: the first error cancels the other tasks, and one wait is for all of them.
//!
//! A group's state and how it changes is in `state.rs`, what each of its tasks holds in `member.rs`, and the tasks with
//! handles are in `handles.rs`. This file is the public type, and nearly half of it is documentation.

mod error;
mod handles;
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
#[cfg(feature = "async")]
use self::member::Futures;
use self::member::{Closures, Member};
use self::state::{Acquisition, Inner, Quiet, State};
use crate::error::{Refusal, Rejected};
use crate::pool::ThreadPool;
use crate::runtime::awaited::run_awaited_group;
use crate::runtime::capacity::Patience;
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::submit::{Prepare, WithoutThread, is_boxed};
use crate::sync::Mutex;
use crate::task::job::Job;
use crate::task::unstarted::Unstarted;
use crate::token::CancellationToken;

/// A group of tasks that can fail. Created by [`ThreadPool::group`]; shares the pool with other tasks.
///
/// The tasks return a `Result`. The first error or panic cancels the group: unstarted tasks are dropped, running closures
/// can see it through the [`token`](Self::token), and futures are dropped as soon as they are pending. When all tasks have
/// ended, [`wait`](Self::wait) returns that first error. Then the group can be used again.
///
/// A [`limit`](Self::limit) gives the group a number of slots: at most that many of its tasks are queued, running or pending
/// at the same time, whatever else the pool does. [`execute`](Self::execute) waits for a slot, while
/// [`try_execute`](Self::try_execute) returns [`Full`](crate::RejectReason::Full).
///
/// Tasks of [`evaluate`](Self::evaluate) return any value, through a handle. Under a limit that runs at most that many at a
/// time, each with its result.
///
/// Clones share the group. Dropping the last clone detaches the tasks, which still run; to stop them, call
/// [`cancel`](Self::cancel). A group does not keep the pool open.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group();
/// for text in ["1", "2", "three", "4"] {
///     // After the first error the group hands tasks back: stop submitting.
///     if group.execute(move || text.parse::<u32>().map(drop)).is_err() {
///         break;
///     }
/// }
/// assert_eq!(group.wait().unwrap_err().to_string(), "invalid digit found in string");
///
/// // Use the group again.
/// group.execute(|| "5".parse::<u32>().map(drop)).unwrap();
/// assert!(group.wait().is_ok());
/// ```
pub struct TaskGroup<E> {
    inner: Arc<Inner<E>>,
}

/// # Tasks that can fail
impl ThreadPool {
    /// Creates an empty group. `E` is the error type of its tasks. [`TaskGroup`] has an example.
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

/// # Submitting
impl<E: Send + 'static> TaskGroup<E> {
    /// Sets the number of slots: how many of the group's tasks may be queued, running or pending at the same time. By
    /// default a group has no limit.
    ///
    /// # Panics
    /// If `limit` is 0: no task could run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(4);
    /// for i in 0..100 {
    ///     group.execute(move || Ok(println!("{i}"))).unwrap(); // waits for one of four slots
    /// }
    /// group.wait().unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[track_caller]
    pub fn limit(self, limit: usize) -> Self {
        self.set_limit(limit);
        self
    }

    /// Changes the [limit](Self::limit), for all clones and at once. If it grows, waiting submitters and tasks get the new
    /// slots. If it shrinks, tasks that have a slot keep it.
    ///
    /// # Panics
    /// If `limit` is 0: no task could run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(1);
    /// group.set_limit(4);
    /// group.execute(|| Ok(())).unwrap();
    /// group.wait().unwrap();
    /// ```
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

    /// Keeps the group going when a task fails, instead of cancelling it. All tasks run, and [`wait_all`](Self::wait_all)
    /// returns every error.
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
    /// Blocks while the group is at its [limit](Self::limit), and while the pool's queue is
    /// [bounded](crate::Builder::queue_capacity) and full. A worker waits in a [blocking region](crate::blocking()).
    /// Submitters get slots in the order of their calls.
    ///
    /// In one of the group's own tasks the call does not wait for a slot, since the caller's own slot may be the next to
    /// become free. If the group is full, the new task waits for the slot, in the same line, and the call returns. (This
    /// holds only for the task's own code. Suppose that it waits for another task, which in turn waits for a slot of this
    /// full group: then it waits for itself. Use [`try_execute`](Self::try_execute) in the other task.)
    ///
    /// If the pool has no worker and the system refuses a thread, the closure runs on the calling thread.
    ///
    /// # Errors
    /// If the group was cancelled or the pool is closed, the closure comes back. A call that waits for a slot returns at
    /// once when the group is cancelled. When the pool is closed, it returns as soon as it gets a slot.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<std::num::ParseIntError>();
    /// group.execute(|| "42".parse::<u32>().map(drop)).unwrap();
    /// group.wait().unwrap();
    /// ```
    pub fn execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        self.submit_as(task, true, Closures)
    }

    /// Like [`execute`](Self::execute), but does not wait for a slot or for capacity.
    ///
    /// # Errors
    /// The closure comes back if the group was cancelled or is full, also for a caller that is one of its own tasks. It also
    /// comes back if the pool is closed, if its queue is full, or if it has no worker and the system refuses to start a
    /// thread.
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
        self.submit_as(task, false, Closures)
    }

    /// Spawns a future as a task of this group, as [`ThreadPool::spawn`] does. It keeps its slot until it is ready.
    ///
    /// When the group is cancelled, a pending future is dropped. A future that is being polled is dropped at the end of that
    /// poll, unless it is ready then.
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does. In async code, where other futures may need that
    /// thread, use [`try_spawn`](Self::try_spawn).
    ///
    /// # Errors
    /// As for [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// let (_sender, receiver) = futures::channel::oneshot::channel::<()>();
    /// group.spawn(async move { receiver.await.map_err(|_| "hung up") }).unwrap(); // would be pending forever
    /// group.spawn(async { Err("no such host") }).unwrap();
    /// assert_eq!(group.wait().unwrap_err().to_string(), "no such host");
    /// ```
    #[cfg(feature = "async")]
    pub fn spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit_as(future, true, Futures)
    }

    /// Like [`spawn`](Self::spawn), but does not wait for a slot or for capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the future comes back.
    #[cfg(feature = "async")]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit_as(future, false, Futures)
    }
}

/// # Cancelling and waiting
impl<E: Send + 'static> TaskGroup<E> {
    /// Submits a task, in a box if it is large. `prepare` gets the task's membership.
    fn submit_as<F, P: Prepare<F>>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(Member<E>) -> P,
    ) -> Result<P::Handle, Rejected<F>> {
        if const { is_boxed::<F>() } {
            let prepare = |task, member| prepare(member).prepare_boxed(task);
            self.submit(Box::new(task), waits, prepare).map_err(Rejected::unbox)
        } else {
            self.submit(task, waits, |task, member| prepare(member).prepare(task))
        }
    }

    /// Submits a task, or hands it back. `prepare` makes the accepted task into a job, and its handle.
    fn submit<F, H>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(F, Member<E>) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        let reject = |task, refusal| {
            self.inner.shared.count_rejection();
            Err(Rejected::new(task, refusal))
        };
        let is_inside = waits && is_inside(self.inner.id());
        let acquired = self.inner.state.lock().acquire_slot(waits, is_inside);
        let token = match acquired {
            Ok(Acquisition::Slot(token)) => token,
            Ok(Acquisition::Deferred(token)) => return self.defer(task, token, prepare),
            Ok(Acquisition::Queued(slot)) => match wait_for(pin!(slot), None, self.pool()) {
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
            // Check again: the wait for capacity may have taken a while.
            Ok(_) if token.is_cancelled() => {
                self.inner.shared.retract();
                Refusal::Cancelled
            }
            Ok(accepted) => {
                let (job, handle) = prepare(task, self.member(token));
                let (entry, _) = self.inner.unstarted.add(job, true);
                self.inner.shared.enqueue(accepted, entry);
                return Ok(handle);
            }
            Err(refusal) => refusal,
        };
        self.inner.update(State::release_slot);
        Err(Rejected::new(task, refusal))
    }

    /// Accepts a task and puts it in the line for a slot.
    fn defer<F, H>(
        &self,
        task: F,
        token: CancellationToken,
        prepare: impl FnOnce(F, Member<E>) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        let shared = &self.inner.shared;
        if !shared.accept_deferred() {
            return Err(Rejected::new(task, Refusal::Closed));
        }
        let (job, handle) = prepare(task, self.member(token));
        // Withdrawn: a thread that waits for its handle may not run it, since it has no slot yet.
        let (Ok(job) | Err(job)) = job.withdraw();
        self.inner.update(|state, after| state.defer(job, after));
        Ok(handle)
    }

    fn member(&self, token: CancellationToken) -> Member<E> {
        Member::new(Arc::clone(&self.inner), token)
    }

    /// Cancels the group, as an error of a task does. Does not block.
    ///
    /// The next [`wait`](Self::wait) returns an error: that of a failed task, or "cancelled" if none has failed. Until
    /// then the group hands new tasks back.
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
        self.inner.update(State::cancel);
    }

    /// Returns whether the group was cancelled, by an error, a panic or [`cancel`](Self::cancel), since it was created or
    /// since the last wait.
    pub fn is_cancelled(&self) -> bool {
        self.inner.state.lock().token.is_cancelled()
    }

    /// Returns the token by which tasks see that the group was cancelled. After a wait for a cancelled group, the group has
    /// a new token.
    pub fn token(&self) -> CancellationToken {
        self.inner.state.lock().token.clone()
    }

    /// Returns how many of the group's tasks were dropped before their end, since the group was created.
    pub fn dropped_count(&self) -> usize {
        self.inner.state.lock().dropped
    }

    /// Blocks until, at some moment after the call, all tasks of the group have ended. What they wrote is then visible to
    /// the caller, and the group can be used again.
    ///
    /// A worker of the pool first runs the group's unstarted tasks, the newest first and within the group's limit. Then it
    /// waits in a [blocking region](crate::blocking()). A group is also a future: `group.await` waits without blocking.
    ///
    /// If several threads wait at the same time, one of them receives the error, and the others receive "cancelled". Panics
    /// after the first go to the pool's [panic handler](crate::Builder::panic_handler), as do all panics of a group for
    /// which no thread waits.
    ///
    /// # Errors
    /// Returns the first error or panic of a task, or "cancelled" if the group was cancelled without one.
    ///
    /// # Panics
    /// If one of the group's own tasks calls it: it would wait for itself. While the thread unwinds, a second panic would
    /// abort the process. So in a destructor that runs while such a task unwinds, the call returns at once, with an error
    /// that [is "cancelled"](GroupError::is_cancelled).
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

    /// Like [`wait`](Self::wait), but blocks for at most `timeout`, and runs no task. Returns `None` if the tasks have not
    /// all ended in time.
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
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<(), GroupError<E>>> {
        if is_inside(self.inner.id()) {
            return None;
        }
        self.wait_until(Instant::now().checked_add(timeout), false)
            .map(|errors| self.inner.first(errors))
    }

    /// Like [`wait`](Self::wait), but returns the errors of all tasks, in the order in which they occurred. Empty if the
    /// group succeeded. There may be several: tasks that ran when the group was cancelled may fail too.
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
            // Registers as a waiter first: the caller does not depend on tasks submitted after the group was quiet.
            if let Poll::Ready(errors) = quiet.poll_outcome(Waker::noop()) {
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

/// A future that resolves when all tasks of a group have ended: what `group.await` waits for. Works on any executor.
/// Otherwise like [`TaskGroup::wait`], except that it runs no task.
///
/// # Panics
/// If one of the group's own tasks polls it: it would wait for itself. While that task unwinds, the future is ready with
/// "cancelled" instead.
#[must_use = "futures do nothing unless they are polled"]
pub struct GroupWait<E> {
    quiet: Quiet<E>,
}

impl<E> Future for GroupWait<E> {
    type Output = Result<(), GroupError<E>>;

    #[track_caller]
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

/// No panic leaves the group in an invalid state.
impl<E> UnwindSafe for TaskGroup<E> {}

/// As for [`UnwindSafe`].
impl<E> RefUnwindSafe for TaskGroup<E> {}

impl<E> fmt::Debug for TaskGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state.lock();
        let limit = (state.limit < usize::MAX).then_some(state.limit);
        let (under_way, in_line) = (state.slots, state.queue_len());
        let is_cancelled = state.token.is_cancelled();
        // Release the lock first: the formatter may call user code.
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
