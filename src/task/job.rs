//! What the queue holds: a type-erased task.
//!
//! A job is accepted work. Its owner must either run it, which contains the task's panics, or
//! abandon it, which cancels the task's handle.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::Weak;

use futures_channel::oneshot;

use crate::sync::unwind::{Payload, discard, quietly};
use crate::task::closure::{Closure, ClosureOr};

/// See the [module's documentation](self).
///
/// A closure that only the job's owner can reach, or a task with a cell, which its handle, its
/// wakers or its group may have too. The flag says whether this is the entry that the task was
/// submitted with. It is `false` for a woken future.
pub(crate) struct Job(ClosureOr<Outcome, Arc<dyn Run>>);

// Jobs are moved a lot between queues, so neither they nor an option of one may need space for a
// tag.
const _: () = assert!(size_of::<Option<Job>>() == size_of::<Closure<Outcome>>());

/// Called once when the calling thread has a task, and no other thread has.
pub(crate) type Begin<'a> = &'a mut dyn FnMut(Moment);

/// How a thread has got a task. It may still expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// By its entry, or the task had none.
    Taken,
    /// As a canceller of a task in a queue: the entry stays there, stale.
    /// `is_new`: it is the entry that the task was submitted with.
    TakenFromQueue { is_new: bool },
}

/// What a thread does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It has taken the entry that the task was submitted with. It runs the closure to its end, or
    /// the future until it is pending. [`Skipped`](Outcome::Skipped) if the entry is stale.
    Run,
    /// It has taken the entry of a woken future, and polls it.
    RunWoken,
    /// It has a withdrawn task, and runs it to its end, outside of its pool.
    RunWithdrawn,
    /// It waits for the task: claims it, and runs it. The entry stays in the queue.
    /// [`Skipped`](Outcome::Skipped) if the task has been started or cancelled.
    RunAwaited,
    /// It cancels the task: claims and drops it, if no thread runs it. The entry stays in the
    /// queue, if there is one. [`Skipped`](Outcome::Skipped) if it has dropped nothing: then
    /// [`cancel`](Run::cancel) does what is left.
    Cancel,
    /// It drops a task that no thread runs and that is not queued any more.
    Abandon,
}

impl Action {
    fn of_entry(is_new: bool) -> Self {
        if is_new { Action::Run } else { Action::RunWoken }
    }
}

/// A task that the thread which takes it from the queue can run. None of these methods panics.
pub(crate) trait Run: Send + Sync {
    /// Runs or drops the task, after a call of `begin`. Does not call `begin` if it returns
    /// [`Skipped`](Outcome::Skipped).
    ///
    /// One method for all actions, since it is compiled for each type of closure or future.
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome;

    /// Whether the entry that the task was submitted with is stale: the task was claimed or dropped
    /// without it. If it returns `true`, the caller must remove the entry from the queue.
    fn take_if_stale(&self) -> bool;

    /// Whether it is a future of the user's.
    fn is_future(&self) -> bool {
        false
    }

    /// Withdraws the task of a removed entry from the pool, if it was not started.
    fn withdraw(&self, is_new: bool) -> Withdrawal;

    /// Cancels the task: it is not started, or not polled again. Its owner drops it.
    fn cancel(self: Arc<Self>);
}

/// What follows a try to withdraw a task.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// The task is withdrawn: it may be run anywhere.
    HandBack,
    /// The task was started or cancelled: it must be cancelled, as [`Job::withdraw`] does. Running
    /// its job then only drops it.
    Cancel,
    /// The entry is that of any task of its scope or group: it must be abandoned, and drops one.
    Abandon,
}

/// The outcome of running a job.
pub(crate) enum Outcome {
    /// The task ran to its end.
    Completed,
    /// The task panicked. Holds the payload if no handle has received it.
    Panicked(Option<Payload>),
    /// The task had been cancelled, and this run has dropped it.
    Cancelled,
    /// The task was not started within the queue timeout of its view, and this run has dropped it.
    Expired,
    /// Nothing was run: the entry is stale, its task was claimed by its waiter or dropped by its
    /// canceller. Or the caller could not claim the task. Nothing is in flight for it, and no
    /// permit is held.
    Skipped,
    /// The future waits to be woken.
    Pending,
    /// The future was woken during its poll: the thread that polled it must queue it again.
    Yielded(Arc<dyn Run>),
}

impl Outcome {
    /// Returns the outcome of a closure or future without a handle.
    #[inline]
    pub(crate) fn of(result: Result<(), Payload>) -> Self {
        match result {
            Ok(()) => Outcome::Completed,
            Err(payload) => Outcome::Panicked(Some(payload)),
        }
    }

    /// Returns `None` if nothing was run.
    pub(crate) fn unless_skipped(self) -> Option<Self> {
        if let Outcome::Skipped = self { None } else { Some(self) }
    }

    /// Whether the task was in flight, and is no longer.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Outcome::Completed | Outcome::Panicked(_) | Outcome::Cancelled | Outcome::Expired => {
                true
            }
            Outcome::Skipped | Outcome::Pending | Outcome::Yielded(_) => false,
        }
    }
}

impl Job {
    /// Makes a job of a closure without a handle.
    pub(crate) fn closure(closure: impl FnOnce() + Send + 'static) -> Self {
        Job::stored(Closure::contained(closure))
    }

    /// Makes a job of a stored closure that runs a task.
    #[inline]
    pub(crate) fn stored(closure: Closure<Outcome>) -> Self {
        Job(ClosureOr::closure(closure))
    }

    /// Makes the job that a shared task is submitted with.
    pub(crate) fn task(task: Arc<dyn Run>) -> Self {
        Job(ClosureOr::value(task, true))
    }

    /// Makes a job of a woken future.
    #[inline]
    pub(crate) fn woken(task: Arc<dyn Run>) -> Self {
        Job(ClosureOr::value(task, false))
    }

    /// Runs the task ([`Action::Run`], also of a woken future; [`Action::RunWithdrawn`]), or drops
    /// it ([`Action::Abandon`]). Calls `begin` first, unless there is nothing to run or drop.
    pub(crate) fn advance(self, action: Action, begin: Begin<'_>) -> Outcome {
        match self.0.into_value() {
            Ok((task, is_new)) => {
                let action = if action == Action::Run { Action::of_entry(is_new) } else { action };
                task.advance(action, Some(begin))
            }
            Err(closure) => {
                begin(Moment::Taken);
                if action == Action::Abandon {
                    discard(closure);
                    return Outcome::Cancelled;
                }
                Job(closure).run()
            }
        }
    }

    /// Runs it: see [`Action::Run`] and [`Action::RunWoken`].
    #[inline]
    pub(crate) fn run(self) -> Outcome {
        ManuallyDrop::new(self).run_in_place()
    }

    /// Like [`run`](Self::run), without moving this. What is left does nothing when it is dropped.
    ///
    /// # Panics
    /// If called twice.
    #[inline]
    pub(crate) fn run_in_place(&mut self) -> Outcome {
        let run_task = |task: Arc<dyn Run>, is_new| task.advance(Action::of_entry(is_new), None);
        self.0.call_in_place_or(Outcome::of, run_task)
    }

    /// Returns the task that this is the first entry of, if it is shared.
    fn as_new_task(&self) -> Option<&Arc<dyn Run>> {
        let (task, is_new) = self.0.as_value()?;
        is_new.then_some(task)
    }

    /// Whether this is the first entry of a shared task, and stale: the task was claimed or dropped
    /// without it. If it returns `true`, the caller must remove the entry from the queue.
    pub(crate) fn take_if_stale(&self) -> bool {
        self.as_new_task().is_some_and(|task| task.take_if_stale())
    }

    /// Whether this is an entry of `task` that it was submitted with. `task` is what the entry
    /// holds, or its address.
    pub(crate) fn is_entry_of<T: ?Sized>(&self, task: *const T) -> bool {
        self.as_new_task().is_some_and(|own| ptr::addr_eq(Arc::as_ptr(own), task))
    }

    /// Whether this is a task's first entry, not one of a woken future.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.0.as_value().is_none_or(|(_, is_new)| is_new)
    }

    /// Whether it polls a future of the user's.
    pub(crate) fn is_future(&self) -> bool {
        self.0.as_value().is_some_and(|(task, _)| task.is_future())
    }

    /// Withdraws the task of a removed entry from the pool, if it was not started. Otherwise
    /// cancels it, if it is the task of this entry alone.
    pub(crate) fn withdraw(&self) -> Withdrawal {
        let Some((task, is_new)) = self.0.as_value() else { return Withdrawal::HandBack };
        let withdrawal = task.withdraw(is_new);
        if withdrawal == Withdrawal::Cancel {
            // Another thread may withdraw or cancel it at the same time; cancelling twice changes
            // nothing.
            Arc::clone(task).cancel();
        }
        withdrawal
    }

    /// Drops a task that has not been started and is no longer queued, as cancelled.
    pub(crate) fn abandon(self) -> Outcome {
        self.advance(Action::Abandon, &mut |_| ())
    }
}

/// The receiver of the output of a future, or of a closure with a cell: a handle's promise, a
/// group's member. Dropping it without a result cancels it.
pub(crate) trait Sink<R>: Send + 'static {
    /// Delivers the result. The future has been dropped before.
    fn settle(self, result: Result<R, Payload>) -> Outcome;

    /// Whether the future must not be polled any more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Calls `f`, which polls or drops the future.
    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        f()
    }

    /// Registers the future after its first poll, if that was pending. `false` if it was cancelled
    /// and must be dropped.
    fn register_pending(&mut self, _future: impl FnOnce() -> Weak<dyn Run>) -> bool {
        true
    }
}

/// The promise of a handle.
impl<R: Send + 'static> Sink<R> for Promise<R> {
    fn settle(self, result: Result<R, Payload>) -> Outcome {
        settle(self, result)
    }
}

/// A task's end of the channel to its handle. Settle it with the result, or drop it to resolve the
/// handle to cancelled: no handle waits for ever (law 2).
pub(crate) type Promise<T> = oneshot::Sender<Result<T, Payload>>;

/// The handle's end of a [`Promise`].
pub(crate) type Receiver<T> = oneshot::Receiver<Result<T, Payload>>;

/// Delivers a task's result to its handle. Returns the payload of a panic if the handle is gone.
///
/// Not inlined: it depends on the type of the result only, and many closures have results of one
/// type.
#[inline(never)]
pub(crate) fn settle<R>(promise: Promise<R>, result: Result<R, Payload>) -> Outcome {
    let panicked = result.is_err();
    let mut refused = None;
    // Contained: this may call the waker of a foreign executor that polls the handle.
    quietly(|| refused = promise.send(result).err());
    match refused {
        Some(Ok(value)) => discard(value),
        Some(Err(payload)) => return Outcome::Panicked(Some(payload)),
        None if panicked => return Outcome::Panicked(None),
        None => {}
    }
    Outcome::Completed
}
