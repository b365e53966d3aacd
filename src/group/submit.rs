//! Submitting tasks to a group.

#[cfg(feature = "async")]
use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;

use futures_channel::oneshot;

use super::TaskGroup;
use super::inside::is_inside;
#[cfg(feature = "async")]
use super::member::GroupFutures;
use super::member::{GroupClosures, Member};
use super::state::{Acquisition, GroupState};
use crate::error::{Refusal, Rejected};
use crate::join_handle::JoinHandle;
use crate::runtime::capacity::Patience;
use crate::runtime::region::wait_for;
use crate::runtime::submit::{Prepare, WithoutThread, is_boxed};
use crate::task::job::Job;
use crate::token::CancellationToken;

/// # Submitting
impl<E: Send + 'static> TaskGroup<E> {
    /// Runs a closure on a worker, as a task of this group.
    ///
    /// Blocks while the group is at its [limit](Self::limit), and while the pool's queue is
    /// [bounded](crate::Builder::queue_capacity) and full. A worker waits in a [blocking region](crate::blocking()).
    /// Submitters get slots in the order of their calls. In async code, where other futures may need the calling thread,
    /// use [`try_execute`](Self::try_execute).
    ///
    /// In one of the group's own tasks the call does not wait for a slot, since the caller's own slot may be the next to
    /// become free. If the group is full, the new task waits for the slot, in the same line, and the call returns. (This
    /// holds only for the task's own code. If the task waits for another task, and that one waits for a slot of the same
    /// full group, neither continues. Use [`try_execute`](Self::try_execute) in the other task.) Nor does a worker wait if
    /// [`max_size`](crate::ThreadPool::max_size) workers do already.
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
    #[track_caller]
    pub fn execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        let line = Location::caller();
        self.submit(task, true, |member| GroupClosures(member, line))
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
    #[track_caller]
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        let line = Location::caller();
        self.submit(task, false, |member| GroupClosures(member, line))
    }

    /// Spawns a future as a task of this group, as [`ThreadPool::spawn`](crate::ThreadPool::spawn) does. It keeps its slot
    /// until it is ready.
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
        let line = Location::caller();
        self.submit(future, true, |member| GroupFutures(member, line))
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
        let line = Location::caller();
        self.submit(future, false, |member| GroupFutures(member, line))
    }

    /// Submits a task, in a box if it is large, or hands it back. `prepare` gets the task's membership.
    pub(super) fn submit<F, P: Prepare<F>>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(Member<E>) -> P,
    ) -> Result<P::Handle, Rejected<F>> {
        if const { is_boxed::<F>() } {
            let prepare = |task, member| prepare(member).prepare_boxed(task);
            self.submit_moved(Box::new(task), waits, prepare).map_err(Rejected::unbox)
        } else {
            self.submit_moved(task, waits, |task, member| prepare(member).prepare(task))
        }
    }

    /// Submits a task, and waits for a slot and for capacity. Drops a task that is not accepted, and cancels its handle.
    pub(super) fn submit_or_cancel<F, T, P: Prepare<F, Handle = JoinHandle<T>>>(
        &self,
        task: F,
        prepare: impl FnOnce(Member<E>) -> P,
    ) -> JoinHandle<T> {
        // Not by `submit`, which would move a large task out of its box before it is dropped.
        let submitted = if const { is_boxed::<F>() } {
            let prepare = |task, member| prepare(member).prepare_boxed(task);
            self.submit_moved(Box::new(task), true, prepare).map_err(Rejected::drop_task)
        } else {
            let prepare = |task, member| prepare(member).prepare(task);
            self.submit_moved(task, true, prepare).map_err(Rejected::drop_task)
        };
        submitted.unwrap_or_else(|rejected| {
            JoinHandle::refused(self.inner.route(), &rejected.into_refusal())
        })
    }

    /// Submits a task, or hands it back. `prepare` makes the accepted task into a job, and its handle.
    fn submit_moved<F, H>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(F, Member<E>) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        let reject = |task, refusal| {
            self.inner.route().count_rejection();
            Err(Rejected::new(task, refusal))
        };
        let route = self.inner.route();
        let mut own_wait = None;
        // Its own slot may be the next to become free, or too many wait already.
        let must_defer = || {
            is_inside(self.inner.id())
                || route.begin_own_wait().map(|wait| own_wait = wait).is_err()
        };
        let acquired = self.inner.state.lock().acquire_slot(waits, must_defer);
        let token = match acquired {
            Ok(Acquisition::Slot(token)) => token,
            Ok(Acquisition::Deferred(token)) => return self.defer(task, token, prepare),
            Ok(Acquisition::Queued(slot)) => {
                let granted = wait_for(pin!(slot), None, self.pool());
                drop(own_wait);
                match granted {
                    Some(Ok(token)) => token,
                    Some(Err(oneshot::Canceled)) | None => return reject(task, Refusal::Cancelled),
                }
            }
            Err(refusal) => return reject(task, refusal),
        };
        let (patience, without_thread) = if waits {
            (Patience::Until(None), WithoutThread::RunOnCaller)
        } else {
            (Patience::None, WithoutThread::HandBack)
        };
        let refusal = match self.inner.route().accept(patience, without_thread) {
            // Check again: the wait for capacity may have taken a while.
            Ok(_) if token.is_cancelled() => {
                self.inner.route().retract();
                Refusal::Cancelled
            }
            Ok(accepted) => {
                let (job, handle) = prepare(task, self.member(token.clone()));
                let unstarted = &self.inner.unstarted;
                let id = self.inner.route().enqueue_unstarted(accepted, unstarted, job, true);
                // Race 48: adds the task, then looks again. The canceller sets the token, then takes the tasks.
                if token.is_cancelled() {
                    self.inner.cancel_late(id);
                }
                return Ok(handle);
            }
            Err(refusal) => refusal,
        };
        self.inner.update(GroupState::release_slot);
        Err(Rejected::new(task, refusal))
    }

    /// Accepts a task and puts it in the line for a slot.
    fn defer<F, H>(
        &self,
        task: F,
        token: CancellationToken,
        prepare: impl FnOnce(F, Member<E>) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        if let Err(refusal) = self.inner.route().accept_deferred() {
            return Err(Rejected::new(task, refusal));
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
}
