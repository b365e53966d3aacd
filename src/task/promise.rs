//! What connects a task and its handle: the [`Promise`] that delivers the result.
//!
//! Dropping a promise without settling it resolves the handle to cancelled, so no handle waits for
//! ever (law 2).

use futures_channel::oneshot;

use crate::sync::unwind::{Payload, quietly};

/// A group, in which tasks wait for a slot.
pub(crate) trait SlotQueue: Send + Sync {
    /// Drops a cancelled task that waits for a slot, or for a worker after that. `task` is its
    /// address.
    fn leave(&self, task: *const ());
}

/// The handle's end of a [`Promise`].
pub(crate) type Receiver<T> = oneshot::Receiver<Result<T, Payload>>;

/// The task's end: settle it with the result, or drop it to resolve the handle to cancelled.
pub(crate) struct Promise<T>(oneshot::Sender<Result<T, Payload>>);

impl<T> Promise<T> {
    /// Not inlined: many tasks have results of one type.
    #[inline(never)]
    pub(crate) fn new() -> (Self, Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Promise(sender), receiver)
    }

    /// Delivers the result, or returns it if the handle is gone. Contains panics, since this may
    /// call the waker of a foreign executor that polls the handle.
    pub(crate) fn settle(self, result: Result<T, Payload>) -> Option<Result<T, Payload>> {
        let mut refused = None;
        quietly(|| refused = self.0.send(result).err());
        refused
    }
}
