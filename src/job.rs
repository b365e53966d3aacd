//! What the queue holds: a task without its type.
//!
//! A job is accepted work. Whoever has it either runs it, which contains the task's panics, or drops
//! it, which cancels the task's handle.

use std::future::Future;
use std::mem;
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
pub(crate) enum Outcome {
    /// The task ran to its end.
    Completed,
    /// The task ended in a panic.
    Panicked,
    /// The task was cancelled; this run has ended it.
    Cancelled,
    /// The task is a future that waits to be woken, or is in the queue again.
    #[cfg(feature = "async")]
    Pending,
}

impl Outcome {
    /// Whether this run has ended the task, so that it is no longer in flight.
    pub(crate) fn is_end(self) -> bool {
        match self {
            Outcome::Completed | Outcome::Panicked | Outcome::Cancelled => true,
            #[cfg(feature = "async")]
            Outcome::Pending => false,
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
    /// The handle is settled; the closure is dropped when its turn comes.
    Cancelled(F),
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
}

impl<F, R> Run for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn run(self: Arc<Self>) -> Outcome {
        let before = mem::replace(&mut *self.stage.lock(), Stage::Running);
        let (closure, promise) = match before {
            Stage::Queued(closure, promise) => (closure, promise),
            Stage::Cancelled(closure) => {
                discard(closure);
                *self.stage.lock() = Stage::Settled;
                return Outcome::Cancelled;
            }
            Stage::Running | Stage::Settled => unreachable!("a job is run once"),
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
    fn cancel(self: Arc<Self>) {
        let mut stage = self.stage.lock();
        match mem::replace(&mut *stage, Stage::Running) {
            Stage::Queued(closure, promise) => {
                *stage = Stage::Cancelled(closure);
                drop(stage);
                discard(promise);
            }
            other => *stage = other,
        }
    }

    fn is_settled(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Cancelled(_) | Stage::Settled)
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
