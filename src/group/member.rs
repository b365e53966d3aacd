//! What a task of a group holds: its slot.

use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Weak;

use super::error::GroupError;
use super::inside::call_inside;
use super::state::Inner;
use crate::error::JoinError;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::closure::Closure;
#[cfg(feature = "async")]
use crate::task::job::Sink;
use crate::task::job::{Job, Outcome};
#[cfg(feature = "async")]
use crate::task::promise::Cancel;
use crate::token::CancellationToken;

/// A task's place in its group: as long as it exists, so does its slot.
pub(super) struct Member<E> {
    inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// Where it is entered, if it is a future that has had to wait.
    entry: Option<usize>,
    /// What has become of it, if it has ended.
    result: Option<Result<(), GroupError<E>>>,
}

impl<E> Member<E> {
    pub(super) fn new(inner: Arc<Inner<E>>, token: CancellationToken) -> Self {
        Member { inner, token, entry: None, result: None }
    }

    /// Runs or drops a part of the task, as code of its group.
    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        call_inside(self.inner.id(), f)
    }

    /// The task has ended: its group hears of it when this is dropped.
    fn note(&mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
        let (outcome, result) = match result {
            Ok(Ok(())) => (Outcome::Completed, Ok(())),
            Ok(Err(error)) => (Outcome::Completed, Err(GroupError::Failed(error))),
            Err(payload) => {
                (Outcome::Panicked(None), Err(GroupError::Join(JoinError::panicked(payload))))
            }
        };
        self.result = Some(result);
        outcome
    }
}

#[cfg(feature = "async")]
impl<E: Send + 'static> Sink<Result<(), E>> for Member<E> {
    fn settle(mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
        self.note(result)
    }

    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        self.call(f)
    }

    fn enter_pending(&mut self, future: &Weak<dyn Cancel>) -> bool {
        self.entry = self.inner.state.lock().enter_pending(Weak::clone(future));
        self.entry.is_some()
    }
}

impl<E> Drop for Member<E> {
    fn drop(&mut self) {
        let (result, entry) = (self.result.take(), self.entry.take());
        self.inner.update(|state, after| state.leave(result, entry, after));
    }
}

/// A closure of a group, as it lies in the queue. Its membership ends after it.
struct GroupTask<F, E: Send + 'static> {
    /// Until it is called.
    task: Option<F>,
    member: Member<E>,
}

impl<F, E> GroupTask<F, E>
where
    F: FnOnce() -> Result<(), E>,
    E: Send + 'static,
{
    fn call(mut self) -> Outcome {
        match self.task.take_if(|_| !self.member.token.is_cancelled()) {
            Some(task) => {
                let result = contain(|| self.member.call(task));
                self.member.note(result)
            }
            None => Outcome::Cancelled,
        }
    }
}

/// A task that was not called is dropped as one of the group.
impl<F, E: Send + 'static> Drop for GroupTask<F, E> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.member.call(|| discard(task));
        }
    }
}

/// Makes a job of a closure.
pub(super) fn closure<F, E>(task: F, member: Member<E>) -> Job
where
    F: FnOnce() -> Result<(), E> + Send + 'static,
    E: Send + 'static,
{
    let task = GroupTask { task: Some(task), member };
    Job::Closure(Closure::new(move || task.call()))
}
