//! Tasks that a pool has handed back.

use std::fmt;
use std::sync::Arc;

use crate::sched::Shared;
use crate::task::{Action, Job};

/// A task that was accepted, never started, and handed back by
/// [`shutdown_now`](crate::ThreadPool::shutdown_now).
///
/// It no longer belongs to the pool: no join waits for it. Its handle, if it has one, resolves when
/// the task is [run](Self::run), and resolves to "cancelled" when the task is dropped.
///
/// ```
/// use std::time::Duration;
///
/// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
/// let (open, gate) = std::sync::mpsc::channel::<()>();
/// pool.execute(move || gate.recv().unwrap());
/// while pool.stats().active == 0 {
///     std::thread::yield_now();
/// }
/// let queued = pool.evaluate(|| 42);
/// for task in pool.shutdown_now() {
///     drop(task); // or `task.run()`
/// }
/// open.send(()).unwrap();
/// assert!(queued.try_await_complete().unwrap_err().is_cancelled());
/// ```
#[must_use = "dropping a task cancels it"]
pub struct Task {
    job: Option<Job>,
    shared: Arc<Shared>,
}

impl Task {
    pub(crate) fn new(job: Job, shared: Arc<Shared>) -> Self {
        Task { job: Some(job), shared }
    }

    /// Runs the task on the calling thread. A future is driven to its end, and blocks the thread
    /// while it waits.
    ///
    /// A panic does not reach the caller. It goes to the task's handle or, if there is none, to the
    /// pool's [panic handler](crate::Builder::panic_handler), as in the pool.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// let first = pool.evaluate(move || gate.recv().is_ok());
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let second = pool.evaluate(|| 42);
    /// for task in pool.shutdown_now() {
    ///     task.run();
    /// }
    /// assert_eq!(second.await_complete(), 42);
    /// open.send(()).unwrap();
    /// assert!(first.await_complete());
    /// ```
    pub fn run(mut self) {
        if let Some(job) = self.job.take() {
            let mut outcome = job.advance(Action::RunWithdrawn, &mut |_| ());
            self.shared.handle_failure(&mut outcome);
        }
    }
}

/// Cancels the task.
impl Drop for Task {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            drop(job.abandon());
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("pool", &self.shared.config.name).finish_non_exhaustive()
    }
}
