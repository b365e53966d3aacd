//! A task's membership in its group: the slot that it holds.

#[cfg(feature = "async")]
use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Weak;

use super::error::GroupError;
use super::inside::call_inside;
use super::state::Inner;
use crate::error::JoinError;
use crate::runtime::submit::Prepare;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::closure::Closure;
#[cfg(feature = "async")]
use crate::task::job::Sink;
use crate::task::job::{Job, Outcome};
#[cfg(feature = "async")]
use crate::task::promise::Cancel;
use crate::token::CancellationToken;
#[cfg(feature = "async")]
use crate::waker;

/// Holds a task's slot. Dropping it ends the task's membership and releases the slot.
pub(super) struct Member<E> {
    inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// The key among the group's pending futures, if the task is a future that has been pending.
    entry: Option<usize>,
    /// The task's result, if it ran to its end.
    result: Option<Result<(), GroupError<E>>>,
}

impl<E> Member<E> {
    pub(super) fn new(inner: Arc<Inner<E>>, token: CancellationToken) -> Self {
        Member { inner, token, entry: None, result: None }
    }

    /// Calls `f`, which runs or drops part of the task, as code of the group.
    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        call_inside(self.inner.id(), f)
    }

    /// Stores the task's result, which the group receives when this is dropped.
    fn store_result(&mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
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
        self.store_result(result)
    }

    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        self.call(f)
    }

    fn register_pending(&mut self, future: &Weak<dyn Cancel>) -> bool {
        self.entry = self.inner.state.lock().register_pending(Weak::clone(future));
        self.entry.is_some()
    }
}

impl<E> Drop for Member<E> {
    fn drop(&mut self) {
        let (result, entry) = (self.result.take(), self.entry.take());
        self.inner.update(|state, after| state.end_task(result, entry, after));
    }
}

/// A queued closure of a group. The closure is dropped before its membership ends.
struct GroupTask<F, E: Send + 'static> {
    /// Taken when it is called.
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
                self.member.store_result(result)
            }
            None => Outcome::Cancelled,
        }
    }
}

/// Drops a closure that was not called as code of the group.
impl<F, E: Send + 'static> Drop for GroupTask<F, E> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.member.call(|| discard(task));
        }
    }
}

/// Makes a closure into a job.
pub(super) struct Closures<E>(pub(super) Member<E>);

impl<E: Send + 'static> Closures<E> {
    fn job<F>(self, task: F) -> (Job, ())
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        let task = GroupTask { task: Some(task), member: self.0 };
        (Job::Closure(Closure::new(move || task.call())), ())
    }
}

impl<F, E> Prepare<F> for Closures<E>
where
    F: FnOnce() -> Result<(), E> + Send + 'static,
    E: Send + 'static,
{
    type Handle = ();

    fn prepare(self, task: F) -> (Job, ()) {
        self.job(task)
    }

    fn prepare_boxed(self, task: Box<F>) -> (Job, ()) {
        self.job(task)
    }
}

/// Makes a future into a job.
#[cfg(feature = "async")]
pub(super) struct Futures<E>(pub(super) Member<E>);

#[cfg(feature = "async")]
impl<E: Send + 'static> Futures<E> {
    fn job<F>(self, future: F) -> (Job, ())
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let shared = Arc::clone(&self.0.inner.shared);
        (Job::task(waker::task(future, self.0, &shared)), ())
    }
}

#[cfg(feature = "async")]
impl<F, E> Prepare<F> for Futures<E>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Send + 'static,
{
    type Handle = ();

    fn prepare(self, future: F) -> (Job, ()) {
        self.job(future)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, ()) {
        self.job(Box::into_pin(future))
    }
}
