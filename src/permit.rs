//! Submitting from async code to a bounded queue: the capacity is awaited, then the task is submitted.

use std::fmt;
#[cfg(feature = "async")]
use std::future::Future;
use std::panic::Location;

use crate::error::{Refusal, Rejected};
use crate::join_handle::JoinHandle;
use crate::pool::ThreadPool;
use crate::runtime::capacity::Waits;
use crate::runtime::submit::{Accepted, Acquire, Patience};
use crate::sync::unwind::discard;
use crate::task::closure::Closure;
use crate::task::job::Job;

/// Capacity for one task of a [bounded queue](crate::Builder::queue_capacity). Returned by [`ThreadPool::ready`].
///
/// Its methods submit the task at once: they do not wait, and the queue cannot be full. The task may still be refused if the pool
/// is closed meanwhile. Dropping the permit gives the capacity to the next submitter.
///
/// A permit takes capacity from other submitters while it is held, and it holds a handle of the pool, which therefore does not close
/// by itself. It does not count as a task: [`join`](ThreadPool::join) does not wait for it.
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
pub struct Permit {
    /// Of the view that was waited for. `None` once the task has the permit.
    pool: Option<ThreadPool>,
}

/// # Waiting for capacity in async code
impl ThreadPool {
    /// Waits until the queue has capacity for one more task, without blocking the thread, and returns a permit for that task. Works
    /// on any executor. If the queue is not [bounded](crate::Builder::queue_capacity), there is always capacity.
    ///
    /// Futures wait in one line with the threads that wait in [`execute`](Self::execute). Each gets its permit in turn, whether or not
    /// it is polled soon. Dropping the future gives up its place, and a permit that it was given: so it can be used in `select!` and
    /// under a timeout. The future borrows the handle: for a spawned task, move a clone into it.
    ///
    /// # Errors
    /// If the pool or the view is closed, or is closed meanwhile. The [reason](Rejected::reason) says so; there is no task to hand back.
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
    ///     assert_eq!(pool.ready().await.unwrap_err().reason(), RejectReason::Closed);
    /// });
    /// ```
    pub async fn ready(&self) -> Result<Permit, Rejected<()>> {
        let acquired = Acquire::new(self.route(), Waits::AsFuture).await;
        let permit = acquired.map(|()| Permit { pool: Some(self.clone()) });
        // Also without a wait. The permit is given back.
        let checked = permit.and_then(|permit| self.route().check_open().map(|()| permit));
        checked.map_err(|refusal| Rejected { task: (), refusal })
    }
}

impl Permit {
    /// Runs a closure on a worker, as [`ThreadPool::execute`] does, but without a wait.
    ///
    /// # Errors
    /// If the pool or the view was closed, the closure comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// permit.execute(|| println!("hello")).unwrap();
    /// ```
    #[track_caller]
    pub fn execute<F>(self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let pool = self.into_pool();
        match accept(&pool) {
            Ok(accepted) => accepted.enqueue_closure(Job::closure(task)),
            Err(refusal) => return Err(Rejected { task, refusal }),
        }
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result, as [`ThreadPool::evaluate`] does, but without a wait. If the pool
    /// or the view was closed, the handle resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let answer = futures::executor::block_on(async {
    ///     pool.ready().await.unwrap().evaluate(|| 6 * 7).await.unwrap()
    /// });
    /// assert_eq!(answer, 42);
    /// ```
    #[track_caller]
    pub fn evaluate<F, R>(self, task: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let pool = self.into_pool();
        match accept(&pool) {
            Ok(accepted) => accepted.evaluation(Closure::new(task)),
            Err(refusal) => {
                discard(Box::new(task));
                JoinHandle::refused(pool.route(), &refusal)
            }
        }
    }

    /// Spawns a future, as [`ThreadPool::spawn`] does, but without a wait.
    ///
    /// # Errors
    /// If the pool or the view was closed, the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// permit.spawn(async { println!("hello") }).unwrap();
    /// pool.join();
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let pool = self.into_pool();
        match accept(&pool) {
            Ok(accepted) => pool.enqueue_detached(accepted, future),
            Err(refusal) => return Err(Rejected { task: future, refusal }),
        }
        Ok(())
    }

    /// Spawns a future and returns a handle to its output, as [`ThreadPool::spawn_await`] does, but without a wait. If the pool or the
    /// view was closed, the handle resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().queue_capacity(100).build();
    /// let permit = futures::executor::block_on(pool.ready()).unwrap();
    /// assert_eq!(permit.spawn_await(async { 6 * 7 }).await_complete(), 42);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn_await<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let pool = self.into_pool();
        match accept(&pool) {
            Ok(accepted) => pool.enqueue_with_handle(accepted, future),
            Err(refusal) => {
                discard(Box::new(future));
                JoinHandle::refused(pool.route(), &refusal)
            }
        }
    }

    /// Returns the pool without giving the permit back.
    fn into_pool(mut self) -> ThreadPool {
        self.pool.take().expect("only this takes it, once")
    }
}

/// Accepts a task that has the permit of a caller.
#[track_caller]
fn accept(pool: &ThreadPool) -> Result<Accepted<'_>, Refusal> {
    pool.route().accept_with_permit(Patience::Endless, Location::caller())
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.shared().release_permit();
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
