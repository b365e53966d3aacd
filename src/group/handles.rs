//! Tasks of a group whose results come through handles.

#[cfg(feature = "async")]
use std::future::Future;

use super::TaskGroup;
use crate::error::{Rejected, or_hand_back};
use crate::join_handle::{JoinHandle, or_refused};
use crate::task::Closure;
use crate::wait::Call;

/// # Submitting tasks with handles
impl<E: Send + 'static> TaskGroup<E> {
    /// Runs a closure on a worker, as a task of this group, and returns a handle to its result.
    /// Under a [`limit`](Self::limit), this runs at most that many at a time, each with its result.
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does, and runs the closure there in
    /// the same case. In async code, where other futures may need that thread, await
    /// [`ready`](Self::ready).
    ///
    /// If a group task submits to its own full group, the call returns at once, and the new task
    /// waits for a slot. Do not wait for its handle in the submitting task, which keeps a slot: if
    /// all slots are kept like that, none becomes free.
    ///
    /// - **A value** goes to the handle, also if it is an `Err`: it does not fail the group.
    /// - **A panic** cancels the group, as one of `execute` does. The handle receives it, and
    ///   [`wait`](Self::wait) returns "cancelled". If the handle was dropped, `wait` returns the
    ///   panic.
    /// - **Cancelling the group** drops unstarted tasks. Their handles resolve to "cancelled".
    /// - **Cancelling the handle**, or dropping the task otherwise, does not fail the group.
    ///   [`dropped_count`](Self::dropped_count) counts it.
    ///
    /// A wait for the group ends when the tasks with handles have ended too. If the group was
    /// cancelled or the pool is closed, the closure is dropped and its handle resolves to
    /// "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let squares: Vec<_> = (0..10).map(|i| group.evaluate(move || i * i)).collect();
    /// let sum: u32 = squares.into_iter().map(|handle| handle.await_complete()).sum();
    /// assert_eq!(sum, 285);
    /// ```
    #[track_caller]
    pub fn evaluate<F, T>(&self, task: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        or_refused!(self.admit(true), self.inner.route(), task)
            .task_with_handle(Call(Closure::new(task)), false)
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does
    /// not wait for a slot or for capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the closure comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handle = group.try_evaluate(|| 6 * 7).expect("there is a free slot");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_evaluate<F, T>(&self, task: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(or_hand_back!(self.admit(false), task).task_with_handle(Call(Closure::new(task)), false))
    }

    /// Spawns a future as a task of this group, as [`spawn`](Self::spawn) does, and returns a
    /// handle to its output. It keeps its slot until it is ready. Values, panics and cancellations
    /// are those of [`evaluate`](Self::evaluate).
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does. In async code, where other
    /// futures may need that thread, await [`ready`](Self::ready).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handles: Vec<_> = (0..10).map(|i| group.spawn_await(async move { i * i })).collect();
    /// let sum: u32 = handles.into_iter().map(|handle| handle.await_complete()).sum();
    /// assert_eq!(sum, 285);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        or_refused!(self.admit(true), self.inner.route(), future).task_with_handle(future, true)
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted.
    /// Does not wait for a slot or for capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handle = group.try_spawn_await(async { 6 * 7 }).expect("there is a free slot");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Ok(or_hand_back!(self.admit(false), future).task_with_handle(future, true))
    }
}
