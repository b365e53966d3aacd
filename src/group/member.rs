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
        let end_of = |result: Result<(), E>| match result {
            Ok(()) => TaskEnd::Succeeded,
            Err(error) => TaskEnd::Failed(GroupError::Failed(error)),
        };
        Member { end_of, ..Member::with_promise(inner, token, None) }
    }
}

impl<E, T> Member<E, T> {
    /// Makes the member of a task with a handle.
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
