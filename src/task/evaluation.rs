//! A closure with a result: the task of [`evaluate`](crate::ThreadPool::evaluate) and
//! [`complete`](crate::ThreadPool::complete).

use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::sync::Mutex;
use crate::sync::unwind::{contain, discard, quietly};
use crate::task::expiry::{Expiry, Timed};
use crate::task::job::{Job, Outcome, Run, settle};
use crate::task::promise::{Cancel, Promise, Receiver};

/// What an evaluation runs: a closure, or a closure of a group with its membership.
pub(crate) trait Body<R>: Send + 'static {
    /// Runs it and settles the promise. Contains panics.
    fn run(self, promise: Promise<R>) -> Outcome;

    /// Drops it, then the promise, unless a canceller has that. Contains panics.
    fn discard(self, promise: Option<Promise<R>>);

    /// Wakes what waits until the task is gone: perhaps a foreign executor. Contains panics.
    fn wake(waker: Waker) {
        quietly(|| waker.wake());
    }
}

impl<F, R> Body<R> for F
where
    F: FnOnce() -> R + Send + 'static,
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

impl<R, B: Body<R>> Body<R> for Timed<B> {
    fn run(self, promise: Promise<R>) -> Outcome {
        if self.settle() {
            return self.inner.run(promise);
        }
        self.inner.discard(Some(promise));
        Outcome::Expired
    }

    fn discard(self, promise: Option<Promise<R>>) {
        self.inner.discard(promise);
    }

    fn wake(waker: Waker) {
        B::wake(waker);
    }
}

/// A closure and its handle's promise. The handle can cancel it.
pub(crate) struct Evaluation<F, R> {
    stage: Mutex<Stage<F, R>>,
}

/// Each transition is one change under the lock, so only one of the threads that compete for a task gets it (race 8).
///
/// | stage | held by | next transition by |
/// |---|---|---|
/// | `Queued` | a queue entry | the worker that takes the entry, the waiter, a canceller, an immediate shutdown |
/// | `Withdrawn` | a [`Task`](crate::Task), or a group | the owner of the `Task`, the worker that takes the group's entry, a canceller |
/// | `Cancelled` | an entry, a `Task`, or a group | as of the stage before, except a canceller |
/// | `Dropping` | the thread that drops the closure | that thread |
/// | `Claimed` | an entry | the worker that takes the entry, which skips it |
/// | `Begun` | nothing | none |
enum Stage<F, R> {
    Queued(F, Promise<R>),
    /// Without an entry, or with one that its waiter must leave alone: handed back by an immediate shutdown, or waiting for
    /// a slot of its group.
    Withdrawn(F, Promise<R>),
    /// The handle is settled. The closure is dropped when its entry is taken. Then the waker is woken. Its waiter may claim
    /// it only if it `was_queued`.
    Cancelled {
        closure: F,
        waker: Option<Box<Waker>>,
        was_queued: bool,
    },
    /// A cancelled closure is being dropped. Then the waker is woken.
    Dropping(Option<Box<Waker>>),
    /// The waiter runs it or has run it.
    Claimed,
    /// It runs or has ended.
    Begun,
}

impl<F, R> Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    /// Makes a task of a closure, which may expire.
    pub(crate) fn task(closure: F, expiry: Option<&Arc<Expiry>>) -> (Arc<dyn Run>, Receiver<R>) {
        match expiry {
            Some(expiry) => {
                Evaluation::queued(Timed { inner: closure, expiry: Some(Arc::clone(expiry)) })
            }
            None => Evaluation::queued(closure),
        }
    }

    fn queued(closure: F) -> (Arc<dyn Run>, Receiver<R>) {
        let (promise, receiver) = Promise::new();
        let stage = Mutex::new(Stage::Queued(closure, promise));
        (Arc::new(Evaluation { stage }), receiver)
    }

    /// Replaces the stage by what `next` returns. `next` is called under the lock and must run no user code.
    fn transition<T>(&self, next: impl FnOnce(Stage<F, R>) -> (Stage<F, R>, T)) -> T {
        let mut stage = self.stage.lock();
        let (after, result) = next(mem::replace(&mut *stage, Stage::Begun));
        *stage = after;
        result
    }

    /// Begins, skips or drops the task of a taken entry. Returns the stage before, which says which of these.
    fn transition_to_begun(&self) -> Stage<F, R> {
        self.transition(|before| match before {
            Stage::Cancelled { closure, waker, was_queued } => {
                (Stage::Dropping(waker), Stage::Cancelled { closure, waker: None, was_queued })
            }
            other => (Stage::Begun, other),
        })
    }

    /// Drops a cancelled closure and wakes the thread that waits for that.
    fn drop_cancelled(&self, closure: F) -> Outcome {
        closure.discard(None);
        let waker = self.transition(|before| match before {
            Stage::Dropping(waker) => (Stage::Begun, waker),
            other => (other, None),
        });
        if let Some(waker) = waker {
            F::wake(*waker);
        }
        Outcome::Cancelled
    }

    /// Claims the task for its waiter, unless it has been started, withdrawn or cancelled.
    fn transition_to_claimed(&self) -> Option<(F, Promise<R>)> {
        self.transition(|before| match before {
            Stage::Queued(closure, promise) => (Stage::Claimed, Some((closure, promise))),
            other => (other, None),
        })
    }
}

impl<F, R> Run for Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    fn run(self: Arc<Self>) -> Outcome {
        match self.transition_to_begun() {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                closure.run(promise)
            }
            Stage::Cancelled { closure, .. } => self.drop_cancelled(closure),
            Stage::Claimed => Outcome::Skipped,
            Stage::Dropping(_) | Stage::Begun => unreachable!("a job is run once"),
        }
    }

    fn run_withdrawn(self: Arc<Self>) -> Outcome {
        self.run()
    }

    fn abandon(self: Arc<Self>) {
        match self.transition_to_begun() {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                closure.discard(Some(promise));
            }
            Stage::Cancelled { closure, .. } => drop(self.drop_cancelled(closure)),
            Stage::Claimed | Stage::Dropping(_) | Stage::Begun => {
                unreachable!("a job is abandoned or run")
            }
        }
    }

    fn run_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome> {
        let (closure, promise) = self.transition_to_claimed()?;
        begin();
        Some(closure.run(promise))
    }

    fn drop_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome> {
        let claimed = self.transition(|before| match before {
            Stage::Queued(closure, promise) => (Stage::Claimed, Some((closure, Some(promise)))),
            Stage::Cancelled { closure, was_queued: true, .. } => {
                (Stage::Claimed, Some((closure, None)))
            }
            other => (other, None),
        });
        let (closure, promise) = claimed?;
        begin();
        closure.discard(promise);
        Some(Outcome::Cancelled)
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        let waker = Some(Box::new(waker.clone()));
        let (unused, polled) = self.transition(|before| match before {
            Stage::Cancelled { closure, waker: before, was_queued } => {
                (Stage::Cancelled { closure, waker, was_queued }, (before, Poll::Pending))
            }
            Stage::Dropping(before) => (Stage::Dropping(waker), (before, Poll::Pending)),
            other => (other, (waker, Poll::Ready(()))),
        });
        discard(unused);
        polled
    }

    fn skip(&self) -> bool {
        self.transition(|before| match before {
            Stage::Claimed => (Stage::Begun, true),
            other => (other, false),
        })
    }

    fn withdraw(self: Arc<Self>, is_new: bool) -> Result<Job, Job> {
        let is_withdrawn = self.transition(|before| match before {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                (Stage::Withdrawn(closure, promise), true)
            }
            other => (other, false),
        });
        let job = Job::Shared { task: self, is_new };
        if is_withdrawn { Ok(job) } else { Err(job) }
    }
}

impl<F, R> Cancel for Evaluation<F, R>
where
    F: Body<R>,
    R: Send + 'static,
{
    fn cancel(self: Arc<Self>) {
        let cancelled = |closure, was_queued| Stage::Cancelled { closure, waker: None, was_queued };
        let promise = self.transition(|before| match before {
            Stage::Queued(closure, promise) => (cancelled(closure, true), Some(promise)),
            Stage::Withdrawn(closure, promise) => (cancelled(closure, false), Some(promise)),
            other => (other, None),
        });
        discard(promise);
    }
}
