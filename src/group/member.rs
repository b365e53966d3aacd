//! A task's membership in its group: the slot that it holds.

use std::mem;
use std::sync::Arc;
use std::task::Waker;

use super::error::GroupError;
use super::inside::call_inside;
use super::state::{Inner, TaskEnd};
use crate::error::JoinError;
use crate::join_handle::JoinHandle;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::unwind::{Payload, contain, discard, quietly};
use crate::task::attachment::Line;
use crate::task::evaluation::Body;
use crate::task::job::{Job, Outcome, settle};
use crate::task::promise::Promise;
use crate::token::CancellationToken;

/// Holds a task's slot. Dropping it ends the task's membership and releases the slot.
pub(super) struct Member<E> {
    pub(super) inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// The key among the group's pending futures, if the task is a future that has been pending.
    pub(super) entry: Option<usize>,
    /// How the task has ended so far.
    end: TaskEnd<E>,
}

impl<E> Member<E> {
    pub(super) fn new(inner: Arc<Inner<E>>, token: CancellationToken) -> Self {
        Member { inner, token, entry: None, end: TaskEnd::Dropped { has_handle: false } }
    }

    /// Makes this the membership of a task with a handle.
    pub(super) fn with_handle(mut self) -> Self {
        self.end = TaskEnd::Dropped { has_handle: true };
        self
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Calls `f`, which runs or drops part of the task, as code of the group.
    pub(super) fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        call_inside(self.inner.id(), f)
    }

    /// Returns the group, which has the route of its tasks.
    pub(super) fn group(&self) -> Arc<Inner<E>> {
        Arc::clone(&self.inner)
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

    /// Delivers the result to the task's handle. The group receives only whether the task panicked, and the panic itself if
    /// the handle is gone.
    pub(super) fn settle_handle<T>(
        &mut self,
        promise: Promise<T>,
        result: Result<T, Payload>,
    ) -> Outcome {
        // This may call a foreign executor's waker, or the destructor of the value: as code of the group, which still holds
        // the slot.
        let outcome = self.call(|| settle(promise, result));
        let (outcome, end) = match outcome {
            Outcome::Panicked(Some(payload)) => {
                (Outcome::Panicked(None), TaskEnd::panicked(payload))
            }
            Outcome::Panicked(None) => (Outcome::Panicked(None), TaskEnd::PanickedForHandle),
            outcome => (outcome, TaskEnd::Succeeded),
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
        let (end, entry) = (mem::replace(&mut self.end, TaskEnd::Succeeded), self.entry.take());
        self.inner.update(|state, after| state.end_task(end, entry, after));
    }
}

/// A queued closure of a group. The closure is dropped before its membership ends.
pub(super) struct GroupTask<F, E: Send + 'static> {
    /// Taken when it is called.
    task: Option<F>,
    member: Member<E>,
}

impl<F, E: Send + 'static> GroupTask<F, E> {
    pub(super) fn new(task: F, member: Member<E>) -> Self {
        GroupTask { task: Some(task), member }
    }

    /// Calls the closure unless the group was cancelled.
    fn call<T>(&mut self) -> Option<Result<T, Payload>>
    where
        F: FnOnce() -> T,
    {
        let task = self.task.take_if(|_| !self.member.is_cancelled())?;
        Some(contain(|| self.member.call(task)))
    }

    /// Drops a closure that was not called, as code of the group.
    fn discard_task(&mut self) {
        if let Some(task) = self.task.take() {
            self.member.call(|| discard(task));
        }
    }
}

/// A closure with a handle. The handle is settled before the group gets the slot back.
impl<F, T, E> Body<T> for GroupTask<F, E>
where
    F: FnOnce() -> T + Send + 'static,
    E: Send + 'static,
{
    fn run(mut self, promise: Promise<T>) -> Outcome {
        match self.call() {
            Some(result) => self.member.settle_handle(promise, result),
            None => {
                self.discard(Some(promise));
                Outcome::Cancelled
            }
        }
    }

    fn discard(mut self, promise: Option<Promise<T>>) {
        self.discard_task();
        // A foreign executor's waker, as in `wake`.
        off_trampoline(|| discard(promise));
        discard(self);
    }

    /// Lets the waker run its own follow-up work.
    fn wake(waker: Waker) {
        off_trampoline(|| quietly(|| waker.wake()));
    }
}

impl<F, E: Send + 'static> Drop for GroupTask<F, E> {
    fn drop(&mut self) {
        self.discard_task();
    }
}

/// Makes a closure into a job.
pub(super) fn closure_job<E: Send + 'static>(
    task: impl FnOnce() -> Result<(), E> + Send + 'static,
    member: Member<E>,
    line: Line,
) -> Job {
    let group = member.group();
    let mut task = GroupTask::new(task, member);
    let call = move || match task.call() {
        Some(result) => task.member.store_result(result),
        None => Outcome::Cancelled,
    };
    group.route().wrap(Job::running(call), group.route().expiry(), line)
}

/// Makes a closure with a handle into a job.
pub(super) fn evaluation_job<E: Send + 'static, T: Send + 'static>(
    task: impl FnOnce() -> T + Send + 'static,
    member: Member<E>,
    line: Line,
) -> (Job, JoinHandle<T>) {
    let group = member.group();
    let task = GroupTask::new(task, member.with_handle());
    let (job, mut handle) = JoinHandle::of_evaluation(task, group.route(), line);
    handle.set_line(&group);
    (job, handle)
}
