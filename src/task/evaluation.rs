//! A closure with a result: the task of [`evaluate`](crate::ThreadPool::evaluate) and
//! [`complete`](crate::ThreadPool::complete).
//!
//! Each call site has a closure of its own type, so little here depends on that type: [`Evaluated`] is the part that is
//! compiled for each closure. The transitions are compiled once.

use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::sync::Mutex;
use crate::sync::unwind::{contain, discard, quietly};
use crate::task::attachment::Attachment;
use crate::task::expiry::Expiry;
use crate::task::job::{Action, Begin, Moment, Outcome, Run, Withdrawal, settle};
use crate::task::promise::Promise;

/// What an evaluation runs: a closure, or a closure of a group with its membership.
pub(crate) trait Body<R>: Send + 'static {
    /// Runs it and settles the promise. Contains panics.
    fn run(self, promise: Promise<R>) -> Outcome;

    /// Drops it, then the promise, unless a canceller has that. Contains panics.
    fn discard(self, promise: Option<Promise<R>>);

    /// Wakes what waits until the task is gone: perhaps a foreign executor. Contains panics.
    fn wake(waker: Waker) {
        wake_quietly(waker);
    }
}

fn wake_quietly(waker: Waker) {
    quietly(|| waker.wake());
}

impl<F, R> Body<R> for F
where
    F: FnOnce() -> R + Send + 'static,
    R: 'static,
{
    fn run(self, promise: Promise<R>) -> Outcome {
        settle(promise, contain(self))
    }

    fn discard(self, promise: Option<Promise<R>>) {
        // The closure first: a handle that was not cancelled resolves when the task is gone.
        discard(self);
        discard(promise);
    }
}

/// A closure and its handle's promise. The handle can cancel it.
pub(crate) struct Evaluation<F, R> {
    state: Mutex<EvaluationState<F, R>>,
}

struct EvaluationState<F, R> {
    stage: Stage,
    /// Taken by the thread that runs or drops it.
    closure: Option<F>,
    /// Taken with the closure, or by a canceller before.
    promise: Option<Promise<R>>,
    /// Taken with the closure.
    extras: Option<Box<Extras>>,
}

/// What few tasks have.
pub(crate) struct Extras {
    pub(crate) expiry: Option<Arc<Expiry>>,
    /// Entered on the thread that runs the closure.
    pub(crate) attachment: Option<Attachment>,
}

/// Each transition is one change under the lock, so only one of the threads that compete for a task gets it (race 8).
///
/// | stage | held by | next transition by |
/// |---|---|---|
/// | `Queued` | a queue entry | the worker that takes the entry, the waiter, a canceller, an immediate shutdown |
/// | `Withdrawn` | a [`Task`](crate::Task), or a group | the owner of the `Task`, the worker that takes the group's entry, a canceller, which then takes the task out of the group |
/// | `Cancelled` | an entry, a `Task`, or a group | those of the stage before, but no waiter and no canceller |
/// | `Dropping` | the thread that drops the closure | that thread |
/// | `Begun` | nothing | none |
///
/// A waiter and a canceller leave the entry in the queue. It is stale then: the worker that takes it finds `Dropping` or `Begun`.
enum Stage {
    Queued,
    /// Without an entry, or with one that its waiter must leave alone: handed back by an immediate shutdown, or waiting for
    /// a slot of its group.
    Withdrawn,
    /// The handle is settled. The owner of the task drops the closure. Then the waker is woken.
    Cancelled(Option<Box<Waker>>),
    /// A cancelled closure is being dropped. Then the waker is woken.
    Dropping(Option<Box<Waker>>),
    /// It runs or has ended.
    Begun,
}

/// What the thread that has changed the stage does next, outside of the lock.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing: the closure is another thread's, or stays where it is.
    Leave,
    /// Drops the promise, which settles the handle as cancelled.
    Settle,
    /// Drops the closure, and the promise if it is still there.
    Drop,
    /// As `Drop`, for a canceller, which leaves the entry in the queue.
    Cancel,
    /// Runs the closure, unless it has expired.
    Run,
}

/// The part of an evaluation that depends on the type of its closure.
trait Evaluated: Send + Sync {
    /// Changes the stage, and does what `change` returns. If that is to run or drop the closure, calls `begin` first and
    /// returns the outcome, otherwise `Skipped`. `change` is called under the lock and must run no user code.
    fn change(
        &self,
        change: &mut dyn FnMut(&mut Stage) -> Step,
        begin: Option<Begin<'_>>,
    ) -> Outcome;

    /// See [`Body::wake`].
    fn wake(&self, waker: Waker);
}

impl<F, R> Evaluated for Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    fn change(
        &self,
        change: &mut dyn FnMut(&mut Stage) -> Step,
        begin: Option<Begin<'_>>,
    ) -> Outcome {
        let mut state = self.state.lock();
        let step = change(&mut state.stage);
        let promise = if step == Step::Leave { None } else { state.promise.take() };
        let takes_closure = matches!(step, Step::Drop | Step::Cancel | Step::Run);
        let (closure, extras) =
            if takes_closure { (state.closure.take(), state.extras.take()) } else { (None, None) };
        drop(state);
        let Some(closure) = closure else {
            discard(promise);
            return Outcome::Skipped;
        };
        if let Some(begin) = begin {
            begin(if step == Step::Cancel {
                Moment::TakenFromQueue { is_new: true }
            } else {
                Moment::Taken
            });
        }
        let expiry = extras.as_ref().and_then(|extras| extras.expiry.as_ref());
        if step == Step::Run && expiry.is_none_or(|expiry| expiry.settle()) {
            // Race 8: entered by the winner of the task. Left when the closure has ended.
            let attachment = extras.as_ref().and_then(|extras| extras.attachment.as_ref());
            let _entered = attachment.map(Attachment::enter);
            return closure.run(promise.expect("a cancelled task is not run"));
        }
        closure.discard(promise);
        let is_expired = expiry.is_some_and(|expiry| expiry.is_expired());
        if is_expired { Outcome::Expired } else { Outcome::Cancelled }
    }

    fn wake(&self, waker: Waker) {
        F::wake(waker);
    }
}

/// Replaces the stage by what `next` returns.
fn transition<T>(stage: &mut Stage, next: impl FnOnce(Stage) -> (Stage, T)) -> T {
    let (after, result) = next(mem::replace(stage, Stage::Begun));
    *stage = after;
    result
}

/// The transitions. An [`Evaluation`] of any type calls them.
impl dyn Evaluated {
    /// Makes a transition that leaves the closure where it is.
    fn transition<T>(&self, next: impl FnOnce(Stage) -> (Stage, T)) -> T {
        let (mut next, mut result) = (Some(next), None);
        let change = &mut |stage: &mut Stage| {
            result = next.take().map(|next| transition(stage, next));
            Step::Leave
        };
        self.change(change, None);
        result.expect("it is called once")
    }

    /// See [`Run::advance`].
    fn act(&self, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        let next = |before| match (action, before) {
            (Action::RunAwaited, Stage::Queued) => (Stage::Begun, Step::Run),
            (Action::Cancel, Stage::Queued) => (Stage::Dropping(None), Step::Cancel),
            // Started, withdrawn or cancelled before.
            (Action::RunAwaited | Action::Cancel, other) => (other, Step::Leave),
            (Action::Abandon, Stage::Queued | Stage::Withdrawn) => (Stage::Begun, Step::Drop),
            (_, Stage::Queued | Stage::Withdrawn) => (Stage::Begun, Step::Run),
            (_, Stage::Cancelled(waker)) => (Stage::Dropping(waker), Step::Drop),
            // The entry is stale.
            (_, other) => (other, Step::Leave),
        };
        let outcome = self.change(&mut |stage| transition(stage, next), begin);
        // A task that has expired may have been cancelled as well.
        if matches!(outcome, Outcome::Cancelled | Outcome::Expired) {
            self.wake_waiter();
        }
        outcome
    }

    /// Wakes the thread that waits until the cancelled closure has been dropped.
    fn wake_waiter(&self) {
        let waker = self.transition(|before| match before {
            Stage::Dropping(waker) => (Stage::Begun, waker),
            other => (other, None),
        });
        if let Some(waker) = waker {
            self.wake(*waker);
        }
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        let waker = Some(Box::new(waker.clone()));
        let (unused, polled) = self.transition(|before| match before {
            Stage::Cancelled(before) => (Stage::Cancelled(waker), (before, Poll::Pending)),
            Stage::Dropping(before) => (Stage::Dropping(waker), (before, Poll::Pending)),
            other => (other, (waker, Poll::Ready(()))),
        });
        discard(unused);
        polled
    }

    fn skip(&self) -> bool {
        self.transition(|before| match before {
            stage @ (Stage::Begun | Stage::Dropping(_)) => (stage, true),
            other => (other, false),
        })
    }

    fn withdraw(&self) -> Withdrawal {
        self.transition(|before| match before {
            Stage::Queued | Stage::Withdrawn => (Stage::Withdrawn, Withdrawal::HandBack),
            other => (other, Withdrawal::Cancel),
        })
    }

    fn cancel(&self) {
        let cancel = |before| match before {
            Stage::Queued | Stage::Withdrawn => (Stage::Cancelled(None), Step::Settle),
            other => (other, Step::Leave),
        };
        self.change(&mut |stage| transition(stage, cancel), None);
    }
}

impl<F, R> Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    /// Makes a task of a closure.
    pub(crate) fn task(
        closure: F,
        promise: Promise<R>,
        extras: Option<Box<Extras>>,
    ) -> Arc<dyn Run> {
        let state = EvaluationState {
            stage: Stage::Queued,
            closure: Some(closure),
            promise: Some(promise),
            extras,
        };
        Arc::new(Evaluation { state: Mutex::new(state) })
    }
}

/// Each method only forgets the type: all of them are compiled for each closure.
impl<F, R> Run for Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        (&*self as &dyn Evaluated).act(action, begin)
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        (self as &dyn Evaluated).poll_gone(waker)
    }

    fn skip(&self) -> bool {
        (self as &dyn Evaluated).skip()
    }

    fn withdraw(&self, _is_new: bool) -> Withdrawal {
        (self as &dyn Evaluated).withdraw()
    }

    fn cancel(self: Arc<Self>) {
        (&*self as &dyn Evaluated).cancel();
    }
}
