//! Submitting tasks to a group.

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;

use super::TaskGroup;
use super::inside::is_inside;
use super::member::Member;
use super::state::{Acquisition, GroupState, Inner};
use crate::error::{Refusal, Rejected, or_hand_back};
use crate::join_handle::JoinHandle;
use crate::sched::wait_for;
use crate::submit::{Accepted, Patience};
use crate::task::{Closure, Job, Line, Reporter, TaskId};
use crate::token::CancellationToken;
use crate::wait::{Call, FutureTask};

/// # Submitting
impl<E: Send + 'static> TaskGroup<E> {
    /// Runs a closure on a worker, as a task of this group.
    ///
    /// Blocks while the group is at its [limit](Self::limit), and while the pool's queue is
    /// [bounded](crate::Builder::queue_capacity) and full. A worker waits in a [blocking
    /// region](crate::blocking()). Submitters get slots in the order of their calls. In async code,
    /// where other futures may need the calling thread, await [`ready`](Self::ready).
    ///
    /// In one of the group's own tasks the call does not wait for a slot, since the caller's own
    /// slot may be the next to become free. If the group is full, the new task waits for the slot,
    /// in the same line, and the call returns. (This holds only for the task's own code. If the
    /// task waits for another task, and that one waits for a slot of the same full group, neither
    /// continues. Use [`try_execute`](Self::try_execute) in the other task.) Nor does a worker wait
    /// if as many do already as [may wait for capacity](crate::Builder::queue_capacity).
    ///
    /// If the pool has no worker and the system refuses a thread, the closure runs on the calling
    /// thread.
    ///
    /// # Errors
    /// If the group was cancelled or the pool is closed, the closure comes back. A call that waits
    /// for a slot returns at once when the group is cancelled. When the pool is closed, it returns
    /// as soon as it gets a slot.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<std::num::ParseIntError>();
    /// group.execute(|| "42".parse::<u32>().map(drop)).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[track_caller]
    pub fn execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        or_hand_back!(self.admit(true), task).task(Call(Closure::new(task)), false);
        Ok(())
    }

    /// Like [`execute`](Self::execute), but does not wait for a slot or for capacity.
    ///
    /// # Errors
    /// The closure comes back if the group was cancelled or is full, also for a caller that is one
    /// of its own tasks. It also comes back if the pool is closed, if its queue is full, or if it
    /// has no worker and the system refuses to start a thread.
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
    #[track_caller]
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        or_hand_back!(self.admit(false), task).task(Call(Closure::new(task)), false);
        Ok(())
    }

    /// Spawns a future as a task of this group, as [`ThreadPool::spawn`](crate::ThreadPool::spawn)
    /// does. It keeps its slot until it is ready.
    ///
    /// When the group is cancelled, a pending future is dropped. A future that is being polled is
    /// dropped at the end of that poll, unless it is ready then.
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does. In async code, where other
    /// futures may need that thread, await [`ready`](Self::ready).
    ///
    /// # Errors
    /// As for [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// let (_sender, receiver) = futures::channel::oneshot::channel::<()>();
    /// // This one would be pending forever:
    /// group.spawn(async move { receiver.await.map_err(|_| "hung up") }).unwrap();
    /// group.spawn(async { Err("no such host") }).unwrap();
    /// assert_eq!(group.wait().unwrap_err().to_string(), "no such host");
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        or_hand_back!(self.admit(true), future).task(future, true);
        Ok(())
    }

    /// Like [`spawn`](Self::spawn), but does not wait for a slot or for capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the future comes back.
    ///
    /// ```
    /// use elastipool::RejectReason;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<&str>().limit(1);
    /// let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    /// let waits = async move { receiver.await.map_err(|_| "hung up") };
    /// group.try_spawn(waits).expect("there is a free slot");
    /// let rejected = group.try_spawn(async { Ok(()) }).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Full);
    /// sender.send(()).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        or_hand_back!(self.admit(false), future).task(future, true);
        Ok(())
    }

    /// Admits a task that the calling method submits. If it `waits`, it waits for a slot and for
    /// capacity.
    #[track_caller]
    pub(super) fn admit(&self, waits: bool) -> Result<Admitted<'_, E>, Refusal> {
        let (inner, route, line) = (&self.inner, self.inner.route(), Location::caller());
        let mut own_wait = None;
        // Its own slot may be the next to become free, or too many wait already.
        let must_defer =
            || is_inside(inner.id()) || route.begin_own_wait().map(|wait| own_wait = wait).is_err();
        let acquired = match inner.acquire_slot(waits, must_defer) {
            Ok(Acquisition::Slot(token)) => Ok(token),
            Ok(Acquisition::Deferred(token)) => {
                route.count_accepted().inspect_err(|_| route.count_rejection())?;
                return Ok(Admitted { inner, token, line, accepted: None });
            }
            Ok(Acquisition::Queued(slot)) => {
                let granted = wait_for(pin!(slot), None, self.pool());
                drop(own_wait);
                granted.and_then(Result::ok).ok_or(Refusal::Cancelled)
            }
            Err(refusal) => Err(refusal),
        };
        let token = acquired.inspect_err(|_| route.count_rejection())?;
        let patience = if waits { Patience::Endless } else { Patience::None };
        let accepted = match route.accept(patience, line) {
            // Check again: the wait for capacity may have taken a while.
            Ok(accepted) if token.is_cancelled() => {
                route.count_rejection();
                accepted.route.retract();
                Err(Refusal::Cancelled)
            }
            accepted => accepted,
        };
        let accepted = Some(accepted.inspect_err(|_| inner.update(GroupState::release_slot))?);
        Ok(Admitted { inner, token, line, accepted })
    }
}

/// A task that the pool has accepted, and that has a slot of the group or will wait for one.
#[must_use = "an admitted task is in flight until it is enqueued"]
pub(super) struct Admitted<'a, E> {
    pub(super) inner: &'a Arc<Inner<E>>,
    pub(super) token: CancellationToken,
    /// The line of the user's program that submits it.
    pub(super) line: Line,
    /// `None` for a task without a slot.
    pub(super) accepted: Option<Accepted<'a>>,
}

impl<E: Send + 'static> Admitted<'_, E> {
    /// Makes the membership of the task. The caller makes one, and then enqueues the task.
    pub(super) fn task<F>(self, future: F, is_future: bool)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let own = self.inner.task_route(self.line, is_future);
        let sink = Member::new(self.inner, self.token.clone());
        self.enqueue(Job::task(FutureTask::task(future, sink, own)));
    }

    pub(super) fn task_with_handle<F>(self, future: F, is_future: bool) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let own = self.inner.task_route(self.line, is_future);
        let (promise, mut handle) = JoinHandle::new(self.inner.route(), own.expiry());
        let inner = self.inner;
        let sink = Member::with_promise(inner, self.token.clone(), Some(promise));
        let task = FutureTask::task(future, sink, own);
        handle.set_task(&task);
        handle.set_line(inner, self.enqueue(Job::task(task)));
        handle
    }

    /// Enqueues the task's job, and returns its number in the list. Without a slot, puts it in the
    /// line for one.
    fn enqueue(self, job: Job) -> Option<TaskId> {
        let Admitted { inner, token, accepted, .. } = self;
        let Some(accepted) = accepted else {
            // Withdrawn: a thread that waits for its handle may not run it, since it has no slot
            // yet.
            let _ = job.withdraw();
            inner.update(|state, after| state.defer(job, after));
            return None;
        };
        let id = accepted.enqueue_unstarted(&inner.unstarted, job, Reporter::Handle);
        inner.drop_if_late(id, &token);
        Some(id)
    }
}
