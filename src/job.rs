//! What the queue holds: a task without its type.
//!
//! A job is accepted work. Whoever has it either runs it, which contains the task's panics, or abandons
//! it, which cancels the task's handle.

use std::future::Future;
use std::mem;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Weak;

use crate::blocking::wait_for;
use crate::closure::Closure;
use crate::join_handle::{Cancel, Promise, Receiver};
use crate::sync::Mutex;
use crate::unwind::{Payload, contain, discard};

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

    /// Whether running it will only drop it.
    fn is_cancelled(&self) -> bool;

    /// Whether others wait for its end, so that it is not given away.
    fn is_tied(&self) -> bool {
        false
    }
}

/// What became of a job that was run.
pub(crate) enum Outcome {
    /// The task ran to its end.
    Completed,
    /// The task ended in a panic. The payload is there if no handle has received it.
    Panicked(Option<Payload>),
    /// The task was cancelled; this run has ended it.
    Cancelled,
    /// The task is a future that waits to be woken.
    #[cfg(feature = "async")]
    Pending,
    /// The task is a future that was woken while it was polled: whoever ran it brings it back into the queue.
    #[cfg(feature = "async")]
    Woken(Arc<dyn Run>),
}

impl Outcome {
    /// Whether this run has ended the task, so that it is no longer in flight.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Outcome::Completed | Outcome::Panicked(_) | Outcome::Cancelled => true,
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
            Job::Shared { task, .. } => task.run(),
        }
    }

    /// Whether nobody has run it before.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            Job::Closure(_) => true,
            Job::Shared { is_new, .. } => *is_new,
        }
    }

    /// Takes it out of the pool: `Ok` if it was not started and may go anywhere. Otherwise it is cancelled, and the job
    /// that is returned only drops it.
    pub(crate) fn withdraw(self) -> Result<Job, Job> {
        match self {
            Job::Closure(closure) if closure.is_tied() => {
                Err(Job::Closure(Closure::new(move || {
                    discard(closure);
                    Outcome::Cancelled
                })))
            }
            Job::Closure(_) => Ok(self),
            Job::Shared { ref task, is_new } => {
                if !is_new || task.is_tied() {
                    // By whoever else does the same at the same time, if not by us.
                    Arc::clone(task).cancel();
                }
                if !is_new || task.is_cancelled() { Err(self) } else { Ok(self) }
            }
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
    /// See [`Run::is_tied`].
    const IS_TIED: bool = false;

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

/// A closure with a result, and its handle's promise. The handle can reach it to cancel it.
pub(crate) struct Evaluation<F, R> {
    stage: Mutex<Stage<F, R>>,
}

enum Stage<F, R> {
    Queued(F, Promise<R>),
    /// The handle is settled; the closure is dropped when its turn comes.
    Cancelled(F),
    /// Somebody runs it, or it has ended.
    Begun,
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
        // Taken out first: no lock is held while user code runs.
        let before = mem::replace(&mut *self.stage.lock(), Stage::Begun);
        match before {
            Stage::Queued(closure, promise) => settle(promise, contain(closure)),
            Stage::Cancelled(closure) => {
                discard(closure);
                Outcome::Cancelled
            }
            Stage::Begun => unreachable!("a job is run once"),
        }
    }

    fn run_away(self: Arc<Self>) -> Outcome {
        self.run()
    }

    fn abandon(self: Arc<Self>) {
        // Taken out first: no lock is held while user code runs.
        let before = mem::replace(&mut *self.stage.lock(), Stage::Begun);
        match before {
            Stage::Queued(closure, promise) => {
                discard(promise);
                discard(closure);
            }
            Stage::Cancelled(closure) => discard(closure),
            Stage::Begun => unreachable!("a job is abandoned or run"),
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Cancelled(_))
    }
}

impl<F, R> Cancel for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn cancel(self: Arc<Self>) {
        let mut stage = self.stage.lock();
        match mem::replace(&mut *stage, Stage::Begun) {
            Stage::Queued(closure, promise) => {
                *stage = Stage::Cancelled(closure);
                drop(stage);
                discard(promise);
            }
            other => *stage = other,
        }
    }
}

/// Drives a future to its end on this thread, in a blocking region while it waits.
pub(crate) fn block_on<T: Future>(future: T) -> T::Output {
    let mut future = Box::pin(future);
    // Tells the executors of that crate not to run inside of this one. If the thread is inside of one of them already,
    // for want of a worker, that does no harm.
    let entered = futures_executor::enter();
    let result = contain(|| wait_for(future.as_mut(), None));
    drop(entered);
    // Not dropped by the unwinding of its own panic: if its destructor panics as well, that would
    // abort the process.
    discard(future);
    match result {
        Ok(output) => output.expect("a wait without a limit does not time out"),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
