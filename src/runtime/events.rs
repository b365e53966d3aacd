//! What happens to a pool's workers and tasks, for the feature `tracing`. Without the feature, or in a pool without
//! [`Builder::tracing`], an event costs nothing or one test.

use std::io;

use crate::runtime::retire::Retire;
use crate::runtime::shared::Shared;
use crate::sync::unwind::Payload;

/// See the [module's documentation](self).
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "nothing reads the fields"))]
pub(crate) enum Event<'a> {
    /// A thread was started for one more worker.
    Grown { index: usize, workers: usize },
    /// The system refused a thread.
    Refused(&'a io::Error),
    /// A worker begins, on its own thread.
    WorkerStarted(usize),
    /// A worker has run its last task.
    Retired(usize, Retire),
    /// A worker's thread ends.
    WorkerStopped(usize),
    /// A task panicked. `None` if a handle has received the payload.
    Panicked(Option<&'a Payload>),
    /// A task was not started within its view's queue timeout.
    Expired,
}

impl Shared {
    /// Reports an event. Runs the user's subscriber: no lock may be held.
    #[cfg(feature = "tracing")]
    #[inline]
    pub(crate) fn emit(&self, event: Event<'_>) {
        if self.config.hooks.traces {
            crate::sync::unwind::quietly(|| {
                crate::integrations::tracing::emit(&self.config.name, event);
            });
        }
    }

    #[cfg(not(feature = "tracing"))]
    #[inline]
    pub(crate) fn emit(&self, _event: Event<'_>) {}
}
