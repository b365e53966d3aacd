//! Submitting to a group from async code: the slot and the capacity are awaited, then the task is submitted.

use std::fmt;
#[cfg(feature = "async")]
use std::future::Future;
use std::panic::Location;

use super::TaskGroup;
use super::inside::is_inside;
use super::state::{Acquisition, GroupState};
use super::submit::{Admitted, SlotWait};
use crate::error::{Refusal, Rejected};
use crate::join_handle::JoinHandle;
use crate::runtime::capacity::Waits;
use crate::runtime::future_task::Call;
use crate::runtime::submit::{Acquire, Patience};
use crate::sync::unwind::discard;
use crate::task::closure::Closure;
use crate::token::CancellationToken;

/// A slot of a [`TaskGroup`] for one task, and capacity of the pool's queue for it. Returned by [`TaskGroup::ready`].
///
/// Its methods submit the task at once, without a wait. The task may still be refused if the group is cancelled or the pool is closed
/// meanwhile. Dropping the permit gives the slot and the capacity to the next submitter.
///
/// While it is held, the group is not at its end: a [wait](TaskGroup::wait) waits for the permit too. So do not await the group while
/// you hold one.
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
    group: TaskGroup<E>,
    /// The token of the slot's round. `None` if a task of the group waited: the new task waits in line for its slot. Also once the
    /// permit was used.
    slot: Option<CancellationToken>,
    /// Whether it holds a permit of a bounded queue, besides its slot.
    has_capacity: bool,
}

/// # Waiting for a slot in async code
impl<E: Send + 'static> TaskGroup<E> {
    /// Waits until the group has a free slot and the pool's queue has capacity for one more task, without blocking the thread. Returns a
    /// permit for that task. Works on any executor.
    ///
    /// Futures wait in one line with the threads that wait in [`execute`](Self::execute). Dropping the future gives up its place,
    /// and a slot that it was given: so it can be used in `select!` and under a timeout.
    ///
    /// The future borrows the group. For a spawned task, move a clone of the group into it.
    ///
    /// In one of the group's own tasks it does not wait, since that task's own slot may be the next to become free. What is submitted
    /// by the permit then waits in line for its slot, as [with `execute`](Self::execute).
    ///
    /// # Errors
    /// If the group is cancelled or the pool is closed, or either happens meanwhile. The [reason](Rejected::reason) says which; there is
    /// no task to hand back.
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
    pub async fn ready(&self) -> Result<GroupPermit<E>, Rejected<()>> {
        self.acquire_permit().await.map_err(|refusal| Rejected { task: (), refusal })
    }

    async fn acquire_permit(&self) -> Result<GroupPermit<E>, Refusal> {
        let (inner, route) = (&self.inner, self.inner.route());
        let is_inside = || is_inside(inner.id());
        let acquired = inner.update(|state, after| state.expire_or_acquire(after, true, is_inside));
        let slot = match acquired? {
            Acquisition::Slot(token) => Some(token),
            Acquisition::Queued(slot) => Some(SlotWait::new(inner, slot).await?),
            Acquisition::Deferred(_) => None,
        };
        // Before the next wait: dropping it releases the slot.
        let mut permit = GroupPermit { group: self.clone(), slot, has_capacity: false };
        if permit.slot.is_some() {
            Acquire::new(route, Waits::AsFuture).await?;
            permit.has_capacity = true;
        }
        let is_cancelled = permit.slot.as_ref().is_some_and(CancellationToken::is_cancelled);
        if is_cancelled { Err(Refusal::Cancelled) } else { route.check_open().map(|()| permit) }
    }
}

impl<E: Send + 'static> GroupPermit<E> {
    /// Runs a closure on a worker, as [`TaskGroup::execute`] does, but without a wait.
    ///
    /// # Errors
    /// If the group was cancelled or the pool was closed, the closure comes back.
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
        let slot = self.use_slot();
        match self.admit(slot) {
            Ok(admitted) => admitted.task(Call(Closure::new(task)), false),
            Err(refusal) => return Err(Rejected { task, refusal }),
        }
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result, as [`TaskGroup::evaluate`] does, but without a wait. If the group
    /// was cancelled or the pool was closed, the handle resolves to "cancelled".
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
        let slot = self.use_slot();
        match self.admit(slot) {
            Ok(admitted) => admitted.task_with_handle(Call(Closure::new(task)), false),
            Err(refusal) => {
                discard(Box::new(task));
                JoinHandle::refused(self.group.inner.route(), &refusal)
            }
        }
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
        let slot = self.use_slot();
        match self.admit(slot) {
            Ok(admitted) => admitted.task(future, true),
            Err(refusal) => return Err(Rejected { task: future, refusal }),
        }
        Ok(())
    }

    /// Spawns a future as a task of the group and returns a handle to its output, as [`TaskGroup::spawn_await`] does, but without a
    /// wait. If the group was cancelled or the pool was closed, the handle resolves to "cancelled".
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
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let slot = self.use_slot();
        match self.admit(slot) {
            Ok(admitted) => admitted.task_with_handle(future, true),
            Err(refusal) => {
                discard(Box::new(future));
                JoinHandle::refused(self.group.inner.route(), &refusal)
            }
        }
    }

    /// Returns the slot, which is the task's from now on, as is the capacity.
    fn use_slot(&mut self) -> Option<CancellationToken> {
        self.has_capacity = false;
        self.slot.take()
    }

    /// Admits a task with the permit's slot and capacity. Without a slot, as a task of the group would submit it.
    #[track_caller]
    fn admit(&self, slot: Option<CancellationToken>) -> Result<Admitted<'_, E>, Refusal> {
        let (inner, route, line) =
            (&self.group.inner, self.group.inner.route(), Location::caller());
        let slot = match slot {
            Some(slot) => slot,
            None => {
                let acquired =
                    inner.update(|state, after| state.expire_or_acquire(after, true, || true));
                match acquired.inspect_err(|_| route.count_rejections(1))? {
                    Acquisition::Deferred(token) => return Admitted::deferred(inner, token, line),
                    Acquisition::Queued(_) => unreachable!("its submitter must not wait"),
                    // As a task that has waited in line.
                    Acquisition::Slot(slot) => {
                        route.shared.acquire_over_limit();
                        slot
                    }
                }
            }
        };
        Admitted::with_slot(inner, slot, line, route.accept_with_permit(Patience::Endless, line))
    }
}

impl<E> Drop for GroupPermit<E> {
    fn drop(&mut self) {
        let inner = &self.group.inner;
        if self.has_capacity {
            inner.route().shared.release_permit();
        }
        if self.slot.is_some() {
            inner.update(GroupState::release_slot);
        }
    }
}

impl<E> fmt::Debug for GroupPermit<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPermit").finish_non_exhaustive()
    }
}
