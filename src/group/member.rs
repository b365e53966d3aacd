//! A task's membership in its group: the slot that it holds.

use std::mem;
use std::sync::{Arc, Weak};

use super::error::GroupError;
use super::inside::call_inside;
use super::state::{Inner, TaskEnd};
use crate::error::JoinError;
use crate::sched::off_trampoline;
use crate::sync::unwind::{Payload, discard};
use crate::task::{Outcome, Promise, Run, Sink, settle};
use crate::token::CancellationToken;

/// A task's membership, and the promise of its handle, if it has one. Holds the task's slot:
/// dropping it ends the membership and releases the slot.
pub(super) struct Member<E, T> {
    inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// The key among the group's pending futures, if the task is a future that has been pending.
    entry: Option<usize>,
    promise: Option<Promise<T>>,
    /// How the task has ended, by its value, if it has no handle.
    end_of: fn(T) -> TaskEnd<E>,
    /// How the task has ended so far.
    end: TaskEnd<E>,
}

impl<E> Member<E, Result<(), E>> {
    /// Makes the member of a task without a handle.
    pub(super) fn new(inner: &Arc<Inner<E>>, token: CancellationToken) -> Self {
        let mut member = Member::with_promise(inner, token, None);
        member.end_of = |result| match result {
            Ok(()) => TaskEnd::Succeeded,
            Err(error) => TaskEnd::Failed(GroupError::Failed(error)),
        };
        member
    }
}

impl<E, T> Member<E, T> {
    /// Makes the member of a task with a handle, or the parts that all members have.
    pub(super) fn with_promise(
        inner: &Arc<Inner<E>>,
        token: CancellationToken,
        promise: Option<Promise<T>>,
    ) -> Self {
        let end = TaskEnd::Dropped { has_handle: promise.is_some() };
        let (inner, end_of) = (Arc::clone(inner), |_| TaskEnd::Delivered);
        Member { inner, token, entry: None, promise, end_of, end }
    }
}

impl<E> TaskEnd<E> {
    fn panicked(payload: Payload) -> Self {
        TaskEnd::Failed(GroupError::Join(JoinError::panicked(payload)))
    }
}

impl<E> Inner<E> {
    fn end_task(&self, end: TaskEnd<E>, entry: Option<usize>) {
        let lost = self.update(|state, after| state.end_task(end, entry, after));
        lost.into_iter().for_each(|failure| self.discard_failure(failure));
    }
}

impl<E: Send + 'static, T: Send + 'static> Sink<T> for Member<E, T> {
    /// Delivers the result to the task's handle. Then the group receives only whether the task
    /// panicked, and the panic itself if the handle is gone. Without a handle it receives the
    /// result, when this is dropped.
    fn settle(mut self, result: Result<T, Payload>) -> Outcome {
        let (outcome, end) = match (self.promise.take(), result) {
            // This may call a foreign executor's waker, or the destructor of the value: as code of
            // the group, which still holds the slot.
            (Some(promise), result) => match self.call(|| settle(promise, result)) {
                Outcome::Panicked(Some(payload)) => {
                    (Outcome::Panicked(None), TaskEnd::panicked(payload))
                }
                Outcome::Panicked(None) => (Outcome::Panicked(None), TaskEnd::PanickedForHandle),
                outcome => (outcome, TaskEnd::Delivered),
            },
            (None, Ok(value)) => (Outcome::Completed, (self.end_of)(value)),
            (None, Err(payload)) => (Outcome::Panicked(None), TaskEnd::panicked(payload)),
        };
        self.end = end;
        outcome
    }

    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Calls `f`, which runs or drops part of the task, as code of the group.
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        call_inside(self.inner.id(), f)
    }

    fn register_pending(&mut self, future: impl FnOnce() -> Weak<dyn Run>) -> bool {
        self.entry = self.inner.state.lock().register_pending(future());
        self.entry.is_some()
    }
}

impl<E, T> Drop for Member<E, T> {
    fn drop(&mut self) {
        // The promise first: the slot is free after the handle has resolved. This may call a
        // foreign executor's waker: let it run its own follow-up work.
        let promise = self.promise.take();
        off_trampoline(|| discard(promise));
        self.inner.end_task(mem::replace(&mut self.end, TaskEnd::Delivered), self.entry.take());
    }
}
