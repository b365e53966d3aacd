//! Submitting to a group from async code: the slot and the capacity are awaited, then the task is
//! submitted.

use std::fmt;
#[cfg(feature = "async")]
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use futures_channel::oneshot;

use super::TaskGroup;
use super::inside::is_inside;
use super::state::{Acquisition, GroupState, Inner};
use super::submit::Admitted;
use crate::error::{Refusal, RejectReason, Rejected, or_hand_back};
use crate::join_handle::{JoinHandle, or_refused};
use crate::sched::may_block_own;
use crate::submit::{Reservation, wait_for_grant};
use crate::task::{Closure, Line};
use crate::token::CancellationToken;
use crate::wait::Call;

/// A slot of a [`TaskGroup`] for one task, which the pool has accepted, and which is submitted
/// later. Returned by [`TaskGroup::ready`].
///
/// Its methods submit the task at once, without a wait. The task is refused only if the group was
/// cancelled meanwhile, or after [`shutdown_now`](crate::ThreadPool::shutdown_now). Dropping the
/// permit gives the slot and the capacity to the next submitter.
///
/// A permit counts like a task that has not ended: a [wait](TaskGroup::wait) for the group waits
/// for its slot too, and a [`join`](crate::ThreadPool::join) of the pool for the permit. So do not
/// await the group while you hold one, or a future of `ready` that you no longer poll: it may have
/// been given a slot.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group::<()>().limit(2);
/// futures::executor::block_on(async {
///     for i in 0..10 {
///         let permit = group.ready().await.unwrap(); // waits for one of two slots, and blocks no thread
///         permit.execute(move || Ok(println!("{i}"))).unwrap();
///     }
///     group.await.unwrap();
/// });
/// ```
#[must_use = "dropping the permit gives its slot back"]
pub struct GroupPermit<E> {
    slot: HeldSlot<E>,
    // Dropped after the slot: what takes the slot next is in flight before this ends.
    reservation: Reservation,
}

/// A slot of the group, which is released when this is dropped.
struct HeldSlot<E> {
    inner: Arc<Inner<E>>,
    /// The token of its round. `None` if a task of the group asked for it: the new task waits in
    /// line for its slot. Also once the slot is a task's.
    token: Option<CancellationToken>,
}

impl<E> HeldSlot<E> {
    fn check(&self) -> Result<(), Refusal> {
        let is_cancelled = self.token.as_ref().is_some_and(CancellationToken::is_cancelled);
        if is_cancelled { Err(Refusal::Cancelled) } else { Ok(()) }
    }
}

impl<E> Drop for HeldSlot<E> {
    fn drop(&mut self) {
        if self.token.is_some() {
            self.inner.update(GroupState::release_slot);
        }
    }
}

/// # Waiting for a slot in async code
impl<E: Send + 'static> TaskGroup<E> {
    /// Waits until the group has a free slot and the pool's queue has capacity for one more task,
    /// without blocking the thread. Returns a permit for that task. Works on any executor.
    ///
    /// Futures wait in one line with the threads that wait in [`execute`](Self::execute). Each is
    /// given its slot in turn, whether or not it is polled soon. Dropping the future gives up its
    /// place, and a slot that it was given: so it can be used in `select!` and under a timeout. The
    /// future borrows the group: for a spawned task, move a clone of the group into it.
    ///
    /// In one of the group's own tasks it does not wait for a slot, since that task's own may be
    /// the next to become free. Nor does it where that would [block one of the pool's
    /// workers](crate::ThreadPool::ready), in a future of `complete` or a hook. What is submitted
    /// by the permit then waits in line for its slot, as [with `execute`](Self::execute). A closure
    /// that blocks on `ready` by another crate's executor does so inside
    /// [`blocking`](crate::blocking()). Do not await its handle in a task of the group, which keeps
    /// a slot: if all slots are kept like that, none becomes free.
    ///
    /// While the pool has no worker, so no task and no permit is in flight, a
    /// [deadline](Self::deadline) does not end the wait.
    ///
    /// # Errors
    /// If the group is cancelled or the pool is closed, or either happens meanwhile, or if the pool
    /// has no worker and the system refuses a thread.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let group = pool.group::<()>().limit(1);
    /// futures::executor::block_on(async {
    ///     let permit = group.ready().await.unwrap();
    ///     assert_eq!(group.try_execute(|| Ok(())).unwrap_err().reason(), RejectReason::Full);
    ///     drop(permit);
    ///     assert!(group.try_execute(|| Ok(())).is_ok());
    /// });
    /// group.wait().unwrap();
    /// ```
    pub async fn ready(&self) -> Result<GroupPermit<E>, RejectReason> {
        self.acquire_permit().await.map_err(|refusal| refusal.reason())
    }

    async fn acquire_permit(&self) -> Result<GroupPermit<E>, Refusal> {
        let inner = &self.inner;
        let route = inner.route.clone();
        let acquired = inner.acquire_slot(true, || inner.must_not_wait());
        let token = match acquired.inspect_err(|_| inner.route().count_rejection())? {
            Acquisition::Slot(token) => Some(token),
            Acquisition::Deferred(_) => None,
            Acquisition::Queued(slot) => {
                let shared = inner.route().shared;
                let (must_not_wait, give_up) =
                    (|| inner.must_not_wait(), |slot| inner.give_up(slot));
                let granted = wait_for_grant(shared, slot, must_not_wait, give_up).await;
                granted.transpose().map_err(|_| inner.refuse())?
            }
        };
        let slot = HeldSlot { inner: Arc::clone(inner), token };
        let reservation = match &slot.token {
            Some(_) => Reservation::with_permit(route).await?,
            None => Reservation::deferred(route)?,
        };
        // The wait for capacity may have taken a while.
        slot.check().inspect_err(|_| _ = inner.refuse())?;
        Ok(GroupPermit { slot, reservation })
    }
}

impl<E> Inner<E> {
    /// Ends the wait for a slot. Releases one that was granted meanwhile.
    fn give_up(&self, mut slot: oneshot::Receiver<CancellationToken>) {
        slot.close();
        if let Ok(Some(_)) = slot.try_recv() {
            return self.update(GroupState::release_slot);
        }
        let own = self.state.lock().forget(&slot);
        // Forget the waker, which is user code: the sender's drop would call it.
        drop(slot);
        drop(own);
    }

    /// Whether a wait for a slot may never end: the caller's own may be the next to become free, or
    /// it would block a worker.
    fn must_not_wait(&self) -> bool {
        is_inside(self.id()) || may_block_own(self.route().id())
    }

    fn refuse(&self) -> Refusal {
        self.route().count_rejection();
        Refusal::Cancelled
    }
}

impl<E: Send + 'static> GroupPermit<E> {
    /// Runs a closure on a worker, as [`TaskGroup::execute`] does, but without a wait.
    ///
    /// # Errors
    /// The closure comes back if the group was cancelled, or
    /// [`shutdown_now`](crate::ThreadPool::shutdown_now) was called meanwhile.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let permit = futures::executor::block_on(group.ready()).unwrap();
    /// permit.execute(|| Ok(println!("hello"))).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[track_caller]
    pub fn execute<F>(mut self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        or_hand_back!(self.admit(Location::caller()), task).task(Call(Closure::new(task)), false);
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result, as [`TaskGroup::evaluate`]
    /// does, but without a wait. Where [`execute`](Self::execute) returns an error, the handle
    /// resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let permit = futures::executor::block_on(group.ready()).unwrap();
    /// assert_eq!(permit.evaluate(|| 6 * 7).await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn evaluate<F, T>(mut self, task: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        or_refused!(self.admit(Location::caller()), self.slot.inner.route(), task)
            .task_with_handle(Call(Closure::new(task)), false)
    }

    /// Spawns a future as a task of the group, as [`TaskGroup::spawn`] does, but without a wait.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let permit = futures::executor::block_on(group.ready()).unwrap();
    /// permit.spawn(async { Ok(println!("hello")) }).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn<F>(mut self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        or_hand_back!(self.admit(Location::caller()), future).task(future, true);
        Ok(())
    }

    /// Spawns a future as a task of the group and returns a handle to its output, as
    /// [`TaskGroup::spawn_await`] does, but without a wait. Where [`spawn`](Self::spawn) returns an
    /// error, the handle resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let permit = futures::executor::block_on(group.ready()).unwrap();
    /// assert_eq!(permit.spawn_await(async { 6 * 7 }).await_complete(), 42);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn_await<F>(mut self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        or_refused!(self.admit(Location::caller()), self.slot.inner.route(), future)
            .task_with_handle(future, true)
    }

    /// Admits the task with the permit's slot. Without a slot, as a task of the group would submit
    /// it.
    fn admit(&mut self, line: Line) -> Result<Admitted<'_, E>, Refusal> {
        let GroupPermit { slot, reservation } = self;
        let inner = &slot.inner;
        if slot.token.is_none() {
            match inner.acquire_slot(true, || true).inspect_err(|_| _ = inner.refuse())? {
                Acquisition::Slot(token) => {
                    reservation.exceed_capacity();
                    slot.token = Some(token);
                }
                Acquisition::Deferred(token) => {
                    reservation.begin_use()?;
                    return Ok(Admitted { inner, token, line, accepted: None });
                }
                Acquisition::Queued(_) => unreachable!("its submitter must not wait"),
            }
        }
        slot.check().inspect_err(|_| _ = inner.refuse())?;
        let accepted = Some(reservation.accept(line)?);
        let token = slot.token.take().expect("a permit is used once");
        Ok(Admitted { inner, token, line, accepted })
    }
}

impl<E> fmt::Debug for GroupPermit<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPermit").finish_non_exhaustive()
    }
}
