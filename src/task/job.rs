//! What the queue holds: a task without its type.
//!
//! A job is accepted work. Whoever has it either runs it, which contains the task's panics, or abandons
//! it, which cancels the task's handle.

use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Weak;

use crate::sync::unwind::{Payload, contain, discard};
use crate::task::closure::Closure;
use crate::task::promise::{Cancel, Promise};

/// See the [module's documentation](self).
pub(crate) enum Job {
    /// A closure that nobody but its runner can reach.
    Closure(Closure<Outcome>),
    /// A task that is shared with its handle, or its wakers.
    Shared {
        task: Arc<dyn Run>,
        /// Whether nobody has run it before: it is no future that was polled before and has been woken.
        is_new: bool,
    },
}

// Jobs are copied a lot. There is no room for a tag, and none is needed.
const _: () = assert!(size_of::<Job>() == size_of::<Closure<Outcome>>());

/// A task that may be run by whoever takes it from the queue. Nothing here panics.
pub(crate) trait Run: Cancel {
    /// Runs the task, or the part of it that can run now.
    fn run(self: Arc<Self>) -> Outcome;

    /// Runs a task that has not been run before to its end, away from the pool that it was accepted by.
    fn run_away(self: Arc<Self>) -> Outcome;

    /// Drops a task that has not been run before, away from the pool that it was accepted by.
    fn abandon(self: Arc<Self>);

    /// Runs a future that was polled before and has been woken.
    #[cfg(feature = "async")]
    fn run_woken(self: Arc<Self>) -> Outcome {
        self.run()
    }

    /// Runs the task if it has not been started, for the thread that waits for it, while its entry stays in the queue.
    /// Calls `begin` first. `None` if it has been started or cancelled.
    fn run_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome>;

    /// Whether an entry of the task in the queue is left over from a task that was [awaited](Self::run_awaited). If so,
    /// the caller must take it from there: it is not told so again.
    fn skip(&self) -> bool;

    /// Takes a task out of the pool whose entry `is_new` or not: `Ok` if it was not started and may go anywhere. Otherwise
    /// it is cancelled, and the job that is returned only drops it.
    fn withdraw(self: Arc<Self>, is_new: bool) -> Result<Job, Job>;
}

/// What became of a job that was run.
pub(crate) enum Outcome {
    /// The task ran to its end.
    Completed,
    /// The task ended in a panic. The payload is there if no handle has received it.
    Panicked(Option<Payload>),
    /// The task was cancelled; this run has ended it.
    Cancelled,
    /// Nothing was run: the entry was left over from a task that has been started by the thread that waits for it.
    Skipped,
    /// The task is a future that waits to be woken.
    #[cfg(feature = "async")]
    Pending,
    /// The task is a future that was woken while it was polled: whoever ran it brings it back into the queue.
    #[cfg(feature = "async")]
    Woken(Arc<dyn Run>),
}

impl Outcome {
    /// Whether what came from the queue is no longer in flight.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Outcome::Completed | Outcome::Panicked(_) | Outcome::Cancelled | Outcome::Skipped => {
                true
            }
            #[cfg(feature = "async")]
            Outcome::Pending | Outcome::Woken(_) => false,
        }
    }
}

impl Job {
    /// A closure whose result nobody waits for.
    pub(crate) fn closure(closure: impl FnOnce() + Send + 'static) -> Self {
        Job::Closure(Closure::new(move || run_closure(closure)))
    }

    /// A task that is shared.
    pub(crate) fn task(task: Arc<dyn Run>) -> Self {
        Job::Shared { task, is_new: true }
    }

    /// A future that was polled before and has been woken.
    #[cfg(feature = "async")]
    pub(crate) fn woken(task: Arc<dyn Run>) -> Self {
        Job::Shared { task, is_new: false }
    }

    pub(crate) fn run(self) -> Outcome {
        match self {
            Job::Closure(closure) => closure.call(),
            #[cfg(feature = "async")]
            Job::Shared { task, is_new: false } => task.run_woken(),
            Job::Shared { task, .. } => task.run(),
        }
    }

    /// See [`Run::skip`].
    pub(crate) fn skip(&self) -> bool {
        match self {
            Job::Shared { task, is_new: true } => task.skip(),
            _ => false,
        }
    }

    /// Whether nobody has run it before.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            Job::Closure(_) => true,
            Job::Shared { is_new, .. } => *is_new,
        }
    }

    /// See [`Run::withdraw`].
    pub(crate) fn withdraw(self) -> Result<Job, Job> {
        match self {
            Job::Closure(_) => Ok(self),
            Job::Shared { task, is_new } => task.withdraw(is_new),
        }
    }

    /// See [`Run::run_away`].
    pub(crate) fn run_away(self) -> Outcome {
        match self {
            Job::Closure(closure) => closure.call(),
            Job::Shared { task, .. } => task.run_away(),
        }
    }

    /// See [`Run::abandon`].
    pub(crate) fn abandon(self) {
        match self {
            Job::Closure(closure) => discard(closure),
            Job::Shared { task, .. } => task.abandon(),
        }
    }
}

/// Runs a task's closure for its effect.
pub(crate) fn run_closure(closure: impl FnOnce()) -> Outcome {
    match contain(closure) {
        Ok(()) => Outcome::Completed,
        Err(payload) => Outcome::Panicked(Some(payload)),
    }
}

/// What waits for the output of a future. Dropped without one, it knows that the future was cancelled.
#[cfg(feature = "async")]
pub(crate) trait Sink<R>: Send + 'static {
    /// Takes the result. By now the task itself has been dropped.
    fn settle(self, result: Result<R, Payload>) -> Outcome;

    /// Whether the task should not be run, or not be polled again.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What is to be dropped as soon as the task is cancelled, and not only after the task.
    fn take_promise(&mut self) -> Option<Promise<R>> {
        None
    }

    /// Calls a part of the task's code, or drops it.
    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        f()
    }

    /// Hears that a future waits to be woken for the first time. `false` if it should not.
    fn enter_pending(&mut self, _future: &Weak<dyn Cancel>) -> bool {
        true
    }
}

/// The promise for a handle, or for none.
#[cfg(feature = "async")]
impl<R: Send + 'static> Sink<R> for Option<Promise<R>> {
    fn settle(self, result: Result<R, Payload>) -> Outcome {
        match (self, result) {
            (Some(promise), result) => settle(promise, result),
            (None, Ok(value)) => {
                discard(value);
                Outcome::Completed
            }
            (None, Err(payload)) => Outcome::Panicked(Some(payload)),
        }
    }

    fn take_promise(&mut self) -> Option<Promise<R>> {
        self.take()
    }
}

/// Delivers a task's result to its handle.
pub(crate) fn settle<R>(promise: Promise<R>, result: Result<R, Payload>) -> Outcome {
    let panicked = result.is_err();
    match promise.settle(result) {
        Some(Ok(value)) => discard(value),
        Some(Err(payload)) => return Outcome::Panicked(Some(payload)),
        None if panicked => return Outcome::Panicked(None),
        None => {}
    }
    Outcome::Completed
}
