//! A closure with a result: the task of [`evaluate`](crate::ThreadPool::evaluate) and
//! [`complete`](crate::ThreadPool::complete).

use std::mem;
use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::unwind::{contain, discard};
use crate::task::job::{Job, Outcome, Run, settle};
use crate::task::promise::{Cancel, Promise, Receiver};

/// A closure with a result, and its handle's promise. The handle can reach it to cancel it.
pub(crate) struct Evaluation<F, R> {
    stage: Mutex<Stage<F, R>>,
}

/// | stage | entry in the queue | who moves on from here |
/// |---|---|---|
/// | `Queued` | one | a worker that takes the entry, the thread that waits for the task, a canceller, an immediate shutdown |
/// | `Withdrawn` | none | the owner of the [`Task`](crate::Task) |
/// | `Cancelled` | one, or a `Task` | a worker that takes the entry |
/// | `Claimed` | one | a worker that takes the entry, and skips it |
/// | `Begun` | none | no thread |
enum Stage<F, R> {
    Queued(F, Promise<R>),
    /// Given back by an immediate shutdown: its handle's owner may not run it any more.
    Withdrawn(F, Promise<R>),
    /// The handle is settled; the closure is dropped when its turn comes.
    Cancelled(F),
    /// The thread that waits for it runs it, or has run it.
    Claimed,
    /// It runs, or has ended.
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

    /// Moves the task from its stage to `next`, which runs no user code: no lock is held then.
    fn transition<T>(&self, next: impl FnOnce(Stage<F, R>) -> (Stage<F, R>, T)) -> T {
        let mut stage = self.stage.lock();
        let (after, result) = next(mem::replace(&mut *stage, Stage::Begun));
        *stage = after;
        result
    }

    /// The entry, or the task that was given back, has been taken.
    fn transition_to_begun(&self) -> Stage<F, R> {
        self.transition(|before| (Stage::Begun, before))
    }

    /// The thread that waits for the task takes it, if it has not been started.
    fn transition_to_claimed(&self) -> Option<(F, Promise<R>)> {
        self.transition(|before| match before {
            Stage::Queued(closure, promise) => (Stage::Claimed, Some((closure, promise))),
            other => (other, None),
        })
    }
}

impl<F, R> Run for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn run(self: Arc<Self>) -> Outcome {
        match self.transition_to_begun() {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                settle(promise, contain(closure))
            }
            Stage::Cancelled(closure) => {
                discard(closure);
                Outcome::Cancelled
            }
            Stage::Claimed => Outcome::Skipped,
            Stage::Begun => unreachable!("a job is run once"),
        }
    }

    fn run_away(self: Arc<Self>) -> Outcome {
        self.run()
    }

    fn abandon(self: Arc<Self>) {
        match self.transition_to_begun() {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                discard(promise);
                discard(closure);
            }
            Stage::Cancelled(closure) => discard(closure),
            Stage::Claimed | Stage::Begun => unreachable!("a job is abandoned or run"),
        }
    }

    fn run_awaited(self: Arc<Self>, begin: &mut dyn FnMut()) -> Option<Outcome> {
        let (closure, promise) = self.transition_to_claimed()?;
        begin();
        Some(settle(promise, contain(closure)))
    }

    fn skip(&self) -> bool {
        self.transition(|before| match before {
            Stage::Claimed => (Stage::Begun, true),
            other => (other, false),
        })
    }

    fn withdraw(self: Arc<Self>, is_new: bool) -> Result<Job, Job> {
        let is_withdrawn = self.transition(|before| match before {
            Stage::Queued(closure, promise) => (Stage::Withdrawn(closure, promise), true),
            other => (other, false),
        });
        let job = Job::Shared { task: self, is_new };
        if is_withdrawn { Ok(job) } else { Err(job) }
    }
}

impl<F, R> Cancel for Evaluation<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn cancel(self: Arc<Self>) {
        let promise = self.transition(|before| match before {
            Stage::Queued(closure, promise) | Stage::Withdrawn(closure, promise) => {
                (Stage::Cancelled(closure), Some(promise))
            }
            other => (other, None),
        });
        discard(promise);
    }
}
