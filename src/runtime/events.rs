//! What happens to a pool's workers and tasks, for the feature `tracing`. Without the feature, or in a pool without
//! [`Builder::tracing`], an event costs nothing or one test.

use std::io;

#[cfg(feature = "tracing")]
use crate::runtime::context::outside_of_worker;
use crate::runtime::retire::Retire;
use crate::runtime::shared::Shared;
use crate::sync::unwind::Payload;
#[cfg(feature = "tracing")]
use crate::sync::unwind::quietly;

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
            let emit = || emit(&self.config.name, event);
            quietly(|| match event {
                Event::Panicked(_) | Event::Expired => emit(),
                // A worker that starts another, or leaves, is no worker meanwhile: its counts do not fit a blocking region.
                _ => outside_of_worker(emit),
            });
        }
    }

    #[cfg(not(feature = "tracing"))]
    #[inline]
    pub(crate) fn emit(&self, _event: Event<'_>) {}
}

/// Reports an event of the pool of this name.
#[cfg(feature = "tracing")]
fn emit(pool: &str, event: Event<'_>) {
    use tracing::{debug, error, warn};

    const TARGET: &str = "elastipool";

    match event {
        Event::Grown { index, workers } => {
            debug!(target: TARGET, pool, worker = index, workers, "the pool grows");
        }
        Event::Refused(error) => {
            warn!(target: TARGET, pool, %error, "the system refused a thread");
        }
        Event::WorkerStarted(index) => {
            debug!(target: TARGET, pool, worker = index, "worker starts");
        }
        Event::Retired(index, why) => {
            let why = match why {
                Retire::Surplus => "surplus",
                Retire::Excess => "excess",
                Retire::Recycled => "recycled",
                Retire::Over => "closed",
            };
            debug!(target: TARGET, pool, worker = index, why, "worker retires");
        }
        Event::WorkerStopped(index) => {
            debug!(target: TARGET, pool, worker = index, "worker stops");
        }
        Event::Panicked(payload) => {
            let text = payload.and_then(|payload| {
                let literal = payload.downcast_ref::<&str>().copied();
                literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            });
            error!(target: TARGET, pool, panic = text, "a task panicked");
        }
        Event::Expired => warn!(target: TARGET, pool, "a task expired in the queue"),
    }
}
