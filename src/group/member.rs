//! What a task of a group holds: its slot.

use std::cell::RefCell;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Weak;

use super::GroupError;
use super::state::Inner;
use crate::error::JoinError;
#[cfg(feature = "async")]
use crate::join_handle::Cancel;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::thread_local;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::closure::Closure;
#[cfg(feature = "async")]
use crate::task::job::Sink;
use crate::task::job::{Job, Outcome};
use crate::token::CancellationToken;

thread_local! {
    /// The groups whose tasks the thread runs, by their addresses.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static INSIDE: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

fn address<E>(group: &Inner<E>) -> usize {
    std::ptr::from_ref(group).addr()
}

/// Whether the calling code is that of a task of this group.
pub(super) fn is_inside<E>(group: &Inner<E>) -> bool {
    INSIDE.try_with(|groups| groups.borrow().contains(&address(group))).unwrap_or(false)
}

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
        struct Outside;

        impl Drop for Outside {
            fn drop(&mut self) {
                let _ = INSIDE.try_with(|groups| groups.borrow_mut().pop());
            }
        }

        let _ = INSIDE.try_with(|groups| groups.borrow_mut().push(address(&self.inner)));
        let _outside = Outside;
        off_trampoline(f)
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
