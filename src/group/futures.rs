//! Futures of a group.

use std::future::Future;
use std::sync::Weak;

use super::member::Member;
use crate::join_handle::JoinHandle;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::unwind::{Payload, discard};
use crate::task::attachment::Line;
use crate::task::job::{Job, Outcome, Run, Sink};
use crate::task::promise::Promise;
use crate::waker::FutureTask;

/// Makes a future into a job.
pub(super) fn future_job<E: Send + 'static>(
    future: impl Future<Output = Result<(), E>> + Send + 'static,
    member: Member<E>,
    line: Line,
) -> Job {
    let route = member.inner.future_route(line);
    let settle = |member: &mut Member<E>, _, result| member.store_result(result);
    let sink = MemberSink { promise: None, member, settle };
    Job::task(FutureTask::task(future, sink, route))
}

/// Makes a future with a handle into a job.
pub(super) fn future_job_with_handle<E, F>(
    future: F,
    member: Member<E>,
    line: Line,
) -> (Job, JoinHandle<F::Output>)
where
    E: Send + 'static,
    F: Future<Output: Send> + Send + 'static,
{
    let group = member.group();
    let route = group.future_route(line);
    let expiry = route.expiry().cloned();
    let (promise, receiver) = Promise::new();
    let (promise, member) = (Some(promise), member.with_handle());
    let settle = |member: &mut Member<E>, promise: Option<Promise<_>>, result| {
        member.settle_handle(promise.expect("a cancelled future has no result"), result)
    };
    let sink = MemberSink { promise, member, settle };
    let task = FutureTask::task(future, sink, route);
    let (job, mut handle) = JoinHandle::with_job(task, receiver, group.route(), expiry);
    handle.set_line(&group);
    (job, handle)
}

/// Delivers the result to the handle or, without one, to the group.
type Settle<E, T> = fn(&mut Member<E>, Option<Promise<T>>, Result<T, Payload>) -> Outcome;

/// The membership of a future, and the promise of its handle, if it has one.
struct MemberSink<E, T> {
    /// Also `None` once a canceller has taken it.
    promise: Option<Promise<T>>,
    member: Member<E>,
    settle: Settle<E, T>,
}

impl<E: Send + 'static, T: Send + 'static> Sink<T> for MemberSink<E, T> {
    fn settle(mut self, result: Result<T, Payload>) -> Outcome {
        (self.settle)(&mut self.member, self.promise.take(), result)
    }

    fn is_cancelled(&self) -> bool {
        self.member.is_cancelled()
    }

    fn take_promise(&mut self) -> Option<Promise<T>> {
        self.promise.take()
    }

    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        self.member.call(f)
    }

    fn register_pending(&mut self, future: &Weak<dyn Run>) -> bool {
        let entry = self.member.inner.state.lock().register_pending(Weak::clone(future));
        self.member.entry = entry;
        entry.is_some()
    }
}

/// The promise first, as for [`GroupTask`](super::member::GroupTask): the slot is free after the handle has resolved.
impl<E, T> Drop for MemberSink<E, T> {
    fn drop(&mut self) {
        let promise = self.promise.take();
        // This may call a foreign executor's waker: let it run its own follow-up work.
        off_trampoline(|| discard(promise));
    }
}
