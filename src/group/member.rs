//! A task's membership in its group: the slot that it holds.

use std::mem;
use std::sync::{Arc, Weak};

use super::error::GroupError;
use super::inside::call_inside;
use super::state::{Inner, TaskEnd};
use crate::error::JoinError;
use crate::sched::off_trampoline;
use crate::sync::unwind::{Payload, discard};
use crate::task::job::{Outcome, Run, Sink, settle};
use crate::task::promise::Promise;
use crate::token::CancellationToken;

/// Holds a task's slot. Dropping it ends the task's membership and releases the slot.
pub(super) struct Member<E> {
    inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// The key among the group's pending futures, if the task is a future that has been pending.
    entry: Option<usize>,
    /// How the task has ended so far.
    end: TaskEnd<E>,
}

impl<E> Member<E> {
    pub(super) fn new(inner: Arc<Inner<E>>, token: CancellationToken) -> Self {
        Member { inner, token, entry: None, end: TaskEnd::Dropped { has_handle: false } }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Calls `f`, which runs or drops part of the task, as code of the group.
    pub(super) fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        call_inside(self.inner.id(), f)
    }

    /// Stores the task's result, which the group receives when this is dropped.
    pub(super) fn store_result(&mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
        let (outcome, end) = match result {
            Ok(Ok(())) => (Outcome::Completed, TaskEnd::Succeeded),
            Ok(Err(error)) => (Outcome::Completed, TaskEnd::Failed(GroupError::Failed(error))),
            Err(payload) => (Outcome::Panicked(None), TaskEnd::panicked(payload)),
        };
        self.end = end;
        outcome
    }

    /// Delivers the result to the task's handle. The group receives only whether the task panicked,
    /// and the panic itself if the handle is gone.
    pub(super) fn settle_handle<T>(
        &mut self,
        promise: Promise<T>,
        result: Result<T, Payload>,
    ) -> Outcome {
        // This may call a foreign executor's waker, or the destructor of the value: as code of the
        // group, which still holds the slot.
        let outcome = self.call(|| settle(promise, result));
        let (outcome, end) = match outcome {
            Outcome::Panicked(Some(payload)) => {
                (Outcome::Panicked(None), TaskEnd::panicked(payload))
            }
            Outcome::Panicked(None) => (Outcome::Panicked(None), TaskEnd::PanickedForHandle),
            outcome => (outcome, TaskEnd::Delivered),
        };
        self.end = end;
        outcome
    }
}

impl<E> TaskEnd<E> {
    fn panicked(payload: Payload) -> Self {
        TaskEnd::Failed(GroupError::Join(JoinError::panicked(payload)))
    }
}

impl<E> Drop for Member<E> {
    fn drop(&mut self) {
        let (end, entry) = (mem::replace(&mut self.end, TaskEnd::Delivered), self.entry.take());
        let lost = self.inner.update(|state, after| state.end_task(end, entry, after));
        lost.into_iter().for_each(|failure| self.inner.discard_failure(failure));
    }
}

/// Delivers the result to the handle or, without one, to the group.
type Settle<E, T> = fn(&mut Member<E>, Option<Promise<T>>, Result<T, Payload>) -> Outcome;

/// The membership of a task, and the promise of its handle, if it has one.
pub(super) struct MemberSink<E, T> {
    promise: Option<Promise<T>>,
    member: Member<E>,
    settle: Settle<E, T>,
}

impl<E> Member<E> {
    /// Returns the receiver of the result of a task without a handle.
    pub(super) fn sink(self) -> MemberSink<E, Result<(), E>> {
        MemberSink {
            promise: None,
            member: self,
            settle: |member, _, result| member.store_result(result),
        }
    }

    /// Returns the receiver of the result of a task with a handle.
    pub(super) fn sink_with_handle<T>(mut self, promise: Promise<T>) -> MemberSink<E, T> {
        let settle = |member: &mut Member<E>, promise: Option<Promise<_>>, result| {
            member.settle_handle(promise.expect("a task has one result"), result)
        };
        self.end = TaskEnd::Dropped { has_handle: true };
        MemberSink { promise: Some(promise), member: self, settle }
    }
}

impl<E: Send + 'static, T: Send + 'static> Sink<T> for MemberSink<E, T> {
    fn settle(mut self, result: Result<T, Payload>) -> Outcome {
        (self.settle)(&mut self.member, self.promise.take(), result)
    }

    fn is_cancelled(&self) -> bool {
        self.member.is_cancelled()
    }

    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        self.member.call(f)
    }

    fn register_pending(&mut self, future: impl FnOnce() -> Weak<dyn Run>) -> bool {
        let entry = self.member.inner.state.lock().register_pending(future());
        self.member.entry = entry;
        entry.is_some()
    }
}

/// The promise first: the slot is free after the handle has resolved.
impl<E, T> Drop for MemberSink<E, T> {
    fn drop(&mut self) {
        let promise = self.promise.take();
        // This may call a foreign executor's waker: let it run its own follow-up work.
        off_trampoline(|| discard(promise));
    }
}
