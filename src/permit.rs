//! Submitting from async code to a bounded queue: the capacity is awaited, then the task is
//! submitted.

use std::fmt;
#[cfg(feature = "async")]
use std::future::Future;
use std::panic::Location;

use crate::error::{RejectReason, Rejected, or_hand_back};
#[cfg(feature = "async")]
use crate::futures::enqueue_detached;
use crate::join_handle::{JoinHandle, or_refused};
use crate::pool::ThreadPool;
use crate::submit::Reservation;
use crate::task::{Closure, Job};

/// The acceptance of one task, which is submitted later. Returned by [`ThreadPool::ready`].
///
/// Its methods submit the task at once: they do not wait, and the queue cannot be full. Nor can the
/// pool be closed: what a permit submits was accepted when [`ready`](ThreadPool::ready) returned.
/// Only [`shutdown_now`](ThreadPool::shutdown_now) in between refuses it. Dropping the permit gives
/// its capacity to the next submitter.
///
/// A permit counts like a task that has not ended. While it is held, [`join`](ThreadPool::join),
/// [`quiet`](ThreadPool::quiet), [`shutdown_join`](ThreadPool::shutdown_join) and
/// [`terminated`](ThreadPool::terminated) wait for it, also after
/// [`shutdown_now`](ThreadPool::shutdown_now); one worker stays; and the
/// [`stats`](ThreadPool::stats) show it as pending. So ask for it when the work is at hand, not
/// before a wait that may take long, such as for a client. It does not keep the pool open.
///
/// ```
/// use elastipool::ThreadPool;
///
/// /// Waits for capacity, and blocks no thread.
/// async fn resize(pool: &ThreadPool, image: Vec<u8>) -> usize {
///     let permit = pool.ready().await.expect("the pool is open");
///     permit.evaluate(move || image.len() / 2).await.expect("it does not panic")
/// }
///
/// let pool = ThreadPool::builder().queue_capacity(100).build();
/// assert_eq!(futures::executor::block_on(resize(&pool, vec![0; 10])), 5);
/// ```
#[must_use = "dropping the permit gives its capacity back"]
pub struct Permit(Reservation);

/// # Waiting for capacity in async code
impl ThreadPool {
    /// Waits until the queue has capacity for one more task, without blocking the thread, and
    /// returns a permit for that task. Works on any executor. If the queue is not
    /// [bounded](crate::Builder::queue_capacity), there is always capacity.
    ///
    /// Futures wait in one line with the threads that wait in [`execute`](Self::execute). Each gets
    /// its permit in turn, whether or not it is polled soon. Dropping the future gives up its
    /// place, and a permit that it was given: so it can be used in `select!` and under a timeout.
    /// The future borrows the handle: for a spawned task, move a clone into it.
    ///
    /// A [spawned](Self::spawn) future waits like any other. But in a future that
    /// [`complete`](Self::complete) drives, and in a hook, it never waits, since that would block
    /// one of the pool's own workers: the permit exceeds the capacity, and a loop there fills the
    /// queue without a bound. Call [`execute`](Self::execute) in closures and inside of `complete`:
    /// it waits, and another worker runs meanwhile. A closure that blocks on `ready` by another
    /// crate's executor does so inside [`blocking`](crate::blocking()).
    ///
    /// The pool's helper, a thread for user code that belongs to no task, wakes the futures. A
    /// waker that takes long holds up no task, but other such wakers,
    /// [deadlines](crate::TaskGroup::deadline) of groups, and [stall
    /// reports](crate::Builder::stall_report): one that never returns holds up all of them for
    /// good.
    ///
    /// # Errors
    /// If the pool or the view is closed, or is closed meanwhile, or if the pool has no worker and
    /// the system refuses a thread.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    /// futures::executor::block_on(async {
    ///     let (open, gate) = std::sync::mpsc::channel::<()>();
    ///     pool.execute(move || gate.recv().unwrap());
    ///     assert!(pool.try_execute(|| ()).is_err()); // the only worker is busy
    ///     open.send(()).unwrap();
    ///     let permit = pool.ready().await.unwrap(); // until it is free
    ///     permit.execute(|| println!("hello")).unwrap();
    ///
    ///     pool.close();
    ///     assert_eq!(pool.ready().await.unwrap_err(), RejectReason::Closed);
    /// });
    /// ```
    pub async fn ready(&self) -> Result<Permit, RejectReason> {
        let reservation = Reservation::with_permit(self.owned_route()).await;
        reservation.map(Permit).map_err(|refusal| refusal.reason())
    }
}

impl Permit {
    /// Runs a closure on a worker, as [`ThreadPool::execute`] does, but without a wait.
    ///
    /// # Errors
    /// The closure comes back if [`shutdown_now`](ThreadPool::shutdown_now) was called meanwhile.
    /// The reason is [`Closed`](RejectReason::Closed).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// permit.execute(|| println!("hello")).unwrap();
    /// ```
    #[track_caller]
    pub fn execute<F>(mut self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        or_hand_back!(self.0.accept(Location::caller()), task).enqueue_closure(Job::closure(task));
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result, as [`ThreadPool::evaluate`]
    /// does, but without a wait. If [`shutdown_now`](ThreadPool::shutdown_now) was called
    /// meanwhile, the handle resolves to "cancelled", and
    /// [`is_closed`](crate::JoinError::is_closed) is `true`.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let answer = futures::executor::block_on(async {
    ///     pool.ready().await.unwrap().evaluate(|| 6 * 7).await.unwrap()
    /// });
    /// assert_eq!(answer, 42);
    /// ```
    #[track_caller]
    pub fn evaluate<F, R>(mut self, task: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let accepted = or_refused!(self.0.accept(Location::caller()), self.0.route(), task);
        JoinHandle::of_closure(accepted, Closure::new(task))
    }

    /// Spawns a future, as [`ThreadPool::spawn`] does, but without a wait.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// permit.spawn(async { println!("hello") }).unwrap();
    /// pool.join();
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn<F>(mut self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let route = self.0.owned_route();
        let accepted = or_hand_back!(self.0.accept(Location::caller()), future);
        enqueue_detached(accepted, future, || route);
        Ok(())
    }

    /// Spawns a future and returns a handle to its output, as [`ThreadPool::spawn_await`] does, but
    /// without a wait. If [`shutdown_now`](ThreadPool::shutdown_now) was called meanwhile, the
    /// handle resolves to "cancelled", and [`is_closed`](crate::JoinError::is_closed) is `true`.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// assert_eq!(permit.spawn_await(async { 6 * 7 }).await_complete(), 42);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn_await<F>(mut self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let route = self.0.owned_route();
        let accepted = or_refused!(self.0.accept(Location::caller()), self.0.route(), future);
        JoinHandle::of_future(accepted, future, || route)
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
