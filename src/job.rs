//! What the queue holds: a task without its type.
//!
//! A job is accepted work. Whoever has it either runs it, which contains the task's panics, or drops
//! it, which cancels the task's handle.

use std::future::Future;
use std::sync::Arc;

use crate::join_handle::{Cancel, Promise, Receiver};
use crate::sync::Mutex;
use crate::unwind::{contain, discard};

/// See the [module's documentation](self).
pub(crate) enum Job {
    /// A closure whose result nobody waits for.
    Closure(Box<dyn FnOnce() + Send>),
    /// A task that is shared with its handle or its wakers.
    Shared(Arc<dyn Run>),
}

/// A task that may be run by whoever takes it from the queue.
pub(crate) trait Run: Send + Sync {
    /// Runs the task, or the part of it that can run now. Does not panic.
    fn run(self: Arc<Self>) -> Outcome;
}

/// What became of a job that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "async"), expect(dead_code, reason = "only spawned futures wait"))]
pub(crate) enum Outcome {
    /// The task ran to its end.
    Completed,
    /// The task ended in a panic.
    Panicked,
    /// The task was cancelled; this run has ended it.
    Cancelled,
    /// The task is a future that waits to be woken, or is in the queue again.
    Pending,
    /// There was nothing left to run: the task has ended, and been counted, elsewhere.
    Stale,
}

impl Outcome {
    /// Whether this run has ended the task, so that it is no longer in flight.
    pub(crate) fn is_end(self) -> bool {
        match self {
            Outcome::Completed | Outcome::Panicked | Outcome::Cancelled => true,
            Outcome::Pending | Outcome::Stale => false,
        }
    }
}

impl Job {
    pub(crate) fn run(self) -> Outcome {
        match self {
            Job::Closure(closure) => match contain(closure) {
                Ok(()) => Outcome::Completed,
                Err(payload) => {
                    discard(payload);
                    Outcome::Panicked
                }
            },
            Job::Shared(task) => task.run(),
        }
    }
}

/// A closure with a result, and its handle's promise. The handle can reach it to cancel it.
pub(crate) struct Evaluation<F, R> {
    stage: Mutex<Stage<F, R>>,
}

enum Stage<F, R> {
    Queued(F, Promise<R>),
    Running,
    Settled,
}

impl<F, R> Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(closure: F) -> (Arc<Self>, Receiver<R>) {
        let (promise, receiver) = Promise::new();
        let stage = Mutex::new(Stage::Queued(closure, promise));
        (Arc::new(Evaluation { stage }), receiver)
    }

    /// Moves on from the queue. `None` if the task is not there any more.
    fn take(&self, next: Stage<F, R>) -> Option<(F, Promise<R>)> {
        let mut stage = self.stage.lock();
        if !matches!(*stage, Stage::Queued(..)) {
            return None;
        }
        match std::mem::replace(&mut *stage, next) {
            Stage::Queued(closure, promise) => Some((closure, promise)),
            Stage::Running | Stage::Settled => unreachable!("looked at under the same lock"),
        }
    }
}

impl<F, R> Run for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn run(self: Arc<Self>) -> Outcome {
        let Some((closure, promise)) = self.take(Stage::Running) else {
            return Outcome::Cancelled;
        };
        let result = contain(closure);
        let outcome = if result.is_ok() { Outcome::Completed } else { Outcome::Panicked };
        promise.settle(result);
        *self.stage.lock() = Stage::Settled;
        outcome
    }
}

impl<F, R> Cancel for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn cancel(&self) {
        if let Some((closure, promise)) = self.take(Stage::Settled) {
            discard(closure);
            discard(promise);
        }
    }

    fn is_settled(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Settled)
    }
}

/// Drives a future to its end on this thread.
pub(crate) fn block_on<T: Future>(future: T) -> T::Output {
    let mut future = Box::pin(future);
    let result = contain(|| futures_executor::block_on(future.as_mut()));
    // Not dropped by the unwinding of its own panic: if its destructor panics as well, that would
    // abort the process.
    discard(future);
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}
