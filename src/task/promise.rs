//! What connects a task and its handle: the [`Promise`] that delivers the result.
//!
//! Dropping a promise without settling it resolves the handle to cancelled, so no handle waits for
//! ever (law 2).

use futures_channel::oneshot;

use crate::sync::unwind::Payload;

/// A group, in which tasks wait for a slot.
pub(crate) trait SlotQueue: Send + Sync {
    /// Drops a cancelled task that waits for a slot, or for a worker after that. `task` is its
    /// address.
    fn leave(&self, task: *const ());
}

/// The task's end: settle it with the result, or drop it to resolve the handle to cancelled.
pub(crate) type Promise<T> = oneshot::Sender<Result<T, Payload>>;

/// The handle's end of a [`Promise`].
pub(crate) type Receiver<T> = oneshot::Receiver<Result<T, Payload>>;
