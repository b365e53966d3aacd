//! Submitting futures (feature `async`). `wait/future_task.rs` runs them.

use std::future::Future;

use futures_task::{FutureObj, Spawn, SpawnError};

use crate::error::{Refusal, Rejected, or_hand_back};
use crate::join_handle::{JoinHandle, or_refused};
use crate::pool::ThreadPool;
use crate::sched::{OwnedRoute, TaskRoute};
use crate::submit::{Accepted, Patience};
use crate::sync::unwind::{Payload, discard};
use crate::task::{Job, Outcome, Sink};
use crate::wait::FutureTask;

/// # Submitting futures (feature `async`)
impl ThreadPool {
    /// Spawns a future: the workers poll it, and each wake puts it back into the queue.
    ///
    /// A pending future occupies no worker. A future that blocks its thread does, such as one that
    /// reads files: set `max_size` high enough that other futures still get workers. A future woken
    /// during another future's poll may have to wait for the end of that poll, or for its next
    /// [blocking region](crate::blocking()).
    ///
    /// A woken future was accepted before any task that is still queued, and comes first: it waits
    /// for a worker to end its current task, and for the polls of futures that were woken before
    /// it, but not for all tasks in the queue. There are two exceptions:
    ///
    /// - Each worker takes a new task first at intervals. So futures that always wake themselves do
    ///   not starve new tasks.
    /// - A future that yields, that is, wakes itself during its poll, lets new tasks go first: at
    ///   least one, and a few unless the queue is bounded. This does not apply while tasks take
    ///   only a few microseconds.
    ///
    /// So a future that submits tasks and then yields does not wait for all of them: bound the
    /// queue, or await their handles.
    ///
    /// The future counts as accepted work until it is ready, so [`join`](Self::join) waits for it.
    /// When its last waker is dropped, nothing can wake it, and a worker drops it too.
    ///
    /// Blocks only while it starts a thread, and while it waits for capacity if the queue is
    /// [bounded](crate::Builder::queue_capacity) and full. The wait blocks the thread also [in
    /// async code](Self#when-a-task-is-not-accepted): await [`ready`](Self::ready) there. A woken
    /// future needs no capacity.
    ///
    /// If the pool has no worker and the system refuses a thread, the calling thread polls the
    /// future until it is pending. Its wake tries again to start a thread. If the system refuses
    /// again, the future is cancelled.
    ///
    /// # Panics
    /// If the pool is closed, or is closed while the call waits for capacity.
    /// [`try_spawn`](Self::try_spawn) returns the future instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
    /// pool.spawn(async move { println!("received {:?}", receiver.await) });
    /// sender.send(42).unwrap();
    /// pool.join();
    /// ```
    #[doc(alias = "spawn_ok")]
    #[track_caller]
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Err(refusal) = self.spawn_or_drop(future) {
            refusal.panic("try_spawn");
        }
    }

    /// Like [`spawn`](Self::spawn), but hands the future back if it is not accepted. Does not wait
    /// for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.close();
    /// let rejected = pool.try_spawn(async { println!("never printed") }).unwrap_err();
    /// assert_eq!(rejected.reason(), elastipool::RejectReason::Closed);
    /// ```
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let accepted = or_hand_back!(self.accept(Patience::None), future);
        enqueue_detached(accepted, future, || self.owned_route());
        Ok(())
    }

    /// Like [`spawn`](Self::spawn), but returns a handle to the future's output.
    ///
    /// If the pool is closed, the handle resolves to "cancelled", and the call does not panic.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(async { 6 * 7 });
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[doc(alias = "spawn_with_handle")]
    #[track_caller]
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let accepted = or_refused!(self.accept(Patience::Endless), self.route(), future);
        JoinHandle::of_future(accepted, future, || self.owned_route())
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted.
    /// Does not wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.try_spawn_await(async { 6 * 7 }).expect("the pool is open");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let accepted = or_hand_back!(self.accept(Patience::None), future);
        Ok(JoinHandle::of_future(accepted, future, || self.owned_route()))
    }

    /// Spawns a future, after waiting for capacity in a bounded queue. Drops it if the pool is
    /// closed.
    #[track_caller]
    pub(crate) fn spawn_or_drop<F>(&self, future: F) -> Result<(), Refusal>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match self.accept(Patience::Endless) {
            Ok(accepted) => enqueue_detached(accepted, future, || self.owned_route()),
            Err(refusal) => {
                discard(Box::new(future));
                return Err(refusal);
            }
        }
        Ok(())
    }
}

/// The sink of a future without a handle.
struct Detached;

impl Sink<()> for Detached {
    fn settle(self, result: Result<(), Payload>) -> Outcome {
        Outcome::of(result)
    }
}

/// Enqueues a future without a handle. It may share the `common` route.
pub(crate) fn enqueue_detached(
    accepted: Accepted<'_>,
    future: impl Future<Output = ()> + Send + 'static,
    common: impl FnOnce() -> OwnedRoute,
) {
    let own = TaskRoute::own_or(accepted.route, accepted.line, true, common);
    accepted.enqueue_spawned(Job::task(FutureTask::task(future, Detached, own)));
}

/// The executor trait of the crate `futures`, under `futures::task`, for code that takes any
/// executor.
///
/// Spawns like [`ThreadPool::spawn`], and waits for capacity like it. If the pool is closed, the
/// result is an error, and the future is dropped.
///
/// ```
/// use futures::task::SpawnExt;
///
/// let pool = elastipool::ThreadPool::default();
/// let handle = pool.spawn_with_handle(async { 6 * 7 }).unwrap();
/// assert_eq!(pool.complete(handle).await_complete(), 42);
/// ```
impl Spawn for ThreadPool {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_or_drop(future).map_err(|_| SpawnError::shutdown())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.is_closed() { Err(SpawnError::shutdown()) } else { Ok(()) }
    }
}
