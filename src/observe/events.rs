//! What happens to a pool's workers and tasks, for the feature `tracing`. Without the feature, or
//! in a pool without `Builder::tracing`, an event costs nothing or one test.

use crate::crew::Asleep;

/// See the [module's documentation](self).
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "nothing reads the fields"))]
pub(crate) enum Event<'a> {
    /// A thread was started for one more worker.
    Grown { index: usize, workers: usize },
    /// Measurements have changed the number of workers that may run.
    Sized { allowed: usize, running: usize, asleep: Asleep },
    /// The system refused a thread, for this reason.
    Refused(String),
    /// A worker begins, on its own thread.
    WorkerStarted(usize),
    /// A worker has run its last task, for this reason.
    Retired(usize, &'static str),
    /// A worker's thread ends.
    WorkerStopped(usize),
    /// A task panicked, with this text. `None` if there is none, or a handle has received the
    /// payload.
    Panicked(Option<&'a str>),
    /// A task was not started within its view's queue timeout.
    Expired,
}

/// Reports an event of the pool of this name.
#[cfg(feature = "tracing")]
pub(crate) fn emit(pool: &str, event: Event<'_>) {
    use tracing::{debug, error, warn};

    const TARGET: &str = "elastipool";

    match event {
        Event::Grown { index, workers } => {
            debug!(target: TARGET, pool, worker = index, workers, "the pool grows");
        }
        Event::Sized { allowed, running, asleep: Asleep { all: asleep, on_threads, on_disks } } => {
            debug!(target: TARGET, pool, allowed, running, asleep, asleep_on_threads = on_threads, asleep_on_disks = on_disks,
                "the number of workers follows the load");
        }
        Event::Refused(error) => {
            warn!(target: TARGET, pool, %error, "the system refused a thread");
        }
        Event::WorkerStarted(index) => {
            debug!(target: TARGET, pool, worker = index, "worker starts");
        }
        Event::Retired(index, why) => {
            debug!(target: TARGET, pool, worker = index, why, "worker retires");
        }
        Event::WorkerStopped(index) => {
            debug!(target: TARGET, pool, worker = index, "worker stops");
        }
        Event::Panicked(text) => {
            error!(target: TARGET, pool, panic = text, "a task panicked");
        }
        Event::Expired => warn!(target: TARGET, pool, "a task expired in the queue"),
    }
}
