//! The task's end of its handle: the [`Promise`] to deliver a result, and the way to cancel the task.
//!
//! A promise that is dropped unfulfilled, for whatever reason, cancels its handle: no handle waits for ever (law 2).

use std::sync::Arc;

use futures_channel::oneshot;

use crate::sync::unwind::{Payload, quietly};

/// A task as its handle sees it.
pub(crate) trait Cancel: Send + Sync {
    /// Keeps the task from running, or a future from being polled again. Settles the promise at once unless
    /// the task is running.
    fn cancel(self: Arc<Self>);
}

/// The end that a [`Promise`] delivers to.
pub(crate) type Receiver<T> = oneshot::Receiver<Result<T, Payload>>;

/// Fulfil it, or drop it to cancel the handle.
pub(crate) struct Promise<T>(oneshot::Sender<Result<T, Payload>>);

impl<T> Promise<T> {
    pub(crate) fn new() -> (Self, Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Promise(sender), receiver)
    }

    /// Delivers the result, or hands it back if the handle is gone. Contained: if the handle is polled by
    /// another executor, that one's waker runs here.
    pub(crate) fn settle(self, result: Result<T, Payload>) -> Option<Result<T, Payload>> {
        let mut refused = None;
        quietly(|| refused = self.0.send(result).err());
        refused
    }
}
