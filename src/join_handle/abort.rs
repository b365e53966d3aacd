//! Cancelling a task without its handle: from elsewhere, or when the handle is dropped.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};

use super::JoinHandle;
use crate::sched::Origin;
use crate::submit::cancel_task;
use crate::sync::unwind::{OnDrop, quietly};
use crate::task::Run;

/// Cancels a task from elsewhere. Returned by [`JoinHandle::abort_handle`].
///
/// It neither waits for the task nor receives its result, and keeps neither the result nor anything
/// that the task has captured. Of a task that has ended it keeps at most 2 KiB. Clones cancel the
/// same task. Dropping it does nothing.
///
/// ```
/// # #[cfg(feature = "async")] {
/// let pool = elastipool::ThreadPool::default();
/// let handle = pool.spawn_await(std::future::pending::<()>());
/// let stop = handle.abort_handle();
/// std::thread::spawn(move || stop.cancel()); // on Ctrl-C, say
/// assert!(handle.try_await_complete().unwrap_err().is_cancelled());
/// # }
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    /// `None` if the pool did not accept the task.
    canceller: Option<Arc<Canceller>>,
}

struct Canceller {
    task: Weak<dyn Run>,
    origin: Origin,
}

/// Cancels the task, if it is there. Race 8: if it is late, its handle reports that it has expired.
pub(super) fn cancel(origin: &Origin, task: &Weak<dyn Run>) {
    let Some(task) = task.upgrade() else { return };
    let _ = origin.expiry().is_some_and(|expiry| expiry.is_late());
    // Contained: this may run user code.
    quietly(|| cancel_task(origin, task));
}

impl AbortHandle {
    /// Cancels the task, as [`JoinHandle::cancel`] does: it drops a task that no thread runs on the
    /// calling thread, at once, however busy the workers are. Does nothing to a closure that runs,
    /// or to a task that has ended.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::new(1, 1, std::time::Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// let file = std::sync::Arc::new("a file");
    /// let user = std::sync::Arc::clone(&file);
    /// let stop = pool.evaluate(move || user.len()).abort_handle(); // the handle is dropped
    /// stop.cancel();
    /// assert_eq!(std::sync::Arc::strong_count(&file), 1);
    /// open.send(()).unwrap();
    /// ```
    #[doc(alias = "abort")]
    pub fn cancel(&self) {
        if let Some(Canceller { task, origin }) = self.canceller.as_deref() {
            cancel(origin, task);
        }
    }
}

/// # Cancelling from elsewhere
impl<T> JoinHandle<T> {
    /// Returns a handle that can only cancel the task: `Clone`, `Send` and `Sync`, of whatever type
    /// the result is.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (number, text) = (pool.evaluate(|| 42), pool.evaluate(|| "text"));
    /// for stop in [number.abort_handle(), text.abort_handle()] {
    ///     stop.cancel(); // unless it has started
    /// }
    /// ```
    #[must_use = "it cancels nothing by itself: call its `cancel`"]
    pub fn abort_handle(&self) -> AbortHandle {
        let canceller = |task| Arc::new(Canceller { task, origin: self.origin.for_canceller() });
        AbortHandle { canceller: self.task.clone().map(canceller) }
    }

    /// Makes the handle [cancel](Self::cancel) its task when it is dropped, instead of detaching
    /// it. So code that is left early, by `?`, a panic or a dropped future, leaves no task behind.
    /// A closure that runs goes on: tell it by a [token](crate::CancellationToken). A second call
    /// changes nothing.
    ///
    /// The drop runs the destructors of what it cancels: do not drop the handle with a lock that
    /// they take. A wait that takes the handle ends this, since the task has ended then.
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let handle = pool.spawn_await(std::future::pending::<()>()).cancel_on_drop();
    /// drop(handle);
    /// pool.join(); // would wait forever for a future that is only detached
    /// # }
    /// ```
    #[doc(alias = "abort_on_drop")]
    pub fn cancel_on_drop(mut self) -> Self {
        let abort = self.abort_handle();
        self.origin.set_on_drop(|| Box::new(OnDrop(move || abort.cancel())));
        self
    }
}

/// As for [`JoinHandle`].
impl UnwindSafe for AbortHandle {}

/// As for [`UnwindSafe`].
impl RefUnwindSafe for AbortHandle {}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").finish_non_exhaustive()
    }
}
