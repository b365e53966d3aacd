//! Tasks of a group whose results come through handles.

use std::panic::Location;
#[cfg(feature = "async")]
use std::{
    future::Future,
    sync::{Arc, Weak},
};

use super::TaskGroup;
use super::member::{GroupTask, Member};
use crate::error::Rejected;
use crate::join_handle::JoinHandle;
use crate::runtime::submit::Prepare;
#[cfg(feature = "async")]
use crate::runtime::trampoline::off_trampoline;
#[cfg(feature = "async")]
use crate::sync::unwind::{Payload, discard};
use crate::task::attachment::Line;
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::{Outcome, Sink};
#[cfg(feature = "async")]
use crate::task::promise::{Cancel, Promise, SlotLine};
#[cfg(feature = "async")]
use crate::waker::FutureTask;

/// # Submitting tasks with handles
impl<E: Send + 'static> TaskGroup<E> {
    /// Runs a closure on a worker, as a task of this group, and returns a handle to its result. Under a
    /// [`limit`](Self::limit), this runs at most that many at a time, each with its result.
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does, and runs the closure there in the same case. In async
    /// code, where other futures may need that thread, use [`try_evaluate`](Self::try_evaluate).
    ///
    /// If a group task submits to its own full group, the call returns at once, and the new task waits for a slot. Do not
    /// wait for its handle in the submitting task, which keeps a slot: if all slots are kept like that, none becomes free.
    ///
    /// - **A value** goes to the handle, also if it is an `Err`: it does not fail the group.
    /// - **A panic** cancels the group, as one of `execute` does. The handle receives it, and [`wait`](Self::wait) returns
    ///   "cancelled". If the handle was dropped, `wait` returns the panic.
    /// - **Cancelling the group** drops unstarted tasks. Their handles resolve to "cancelled".
    /// - **Cancelling the handle**, or dropping the task otherwise, does not fail the group.
    ///   [`dropped_count`](Self::dropped_count) counts it.
    ///
    /// A wait for the group ends when the tasks with handles have ended too. If the group was cancelled or the pool is
    /// closed, the closure is dropped and its handle resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let squares: Vec<_> = (0..10).map(|i| group.evaluate(move || i * i)).collect();
    /// let sum: u32 = squares.into_iter().map(|handle| handle.await_complete()).sum();
    /// assert_eq!(sum, 285);
    /// ```
    #[track_caller]
    pub fn evaluate<F, T>(&self, task: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let line = Location::caller();
        self.submit_or_cancel(task, |member| GroupEvaluations(member, line))
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does not wait for a slot or for
    /// capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the closure comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handle = group.try_evaluate(|| 6 * 7).expect("there is a free slot");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[track_caller]
    pub fn try_evaluate<F, T>(&self, task: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let line = Location::caller();
        self.submit(task, false, |member| GroupEvaluations(member, line))
    }

    /// Spawns a future as a task of this group, as [`spawn`](Self::spawn) does, and returns a handle to its output. It keeps
    /// its slot until it is ready. Values, panics and cancellations are those of [`evaluate`](Self::evaluate).
    ///
    /// Blocks the calling thread as [`execute`](Self::execute) does. In async code, where other futures may need that
    /// thread, use [`try_spawn_await`](Self::try_spawn_await).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handles: Vec<_> = (0..10).map(|i| group.spawn_await(async move { i * i })).collect();
    /// let sum: u32 = handles.into_iter().map(|handle| handle.await_complete()).sum();
    /// assert_eq!(sum, 285);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn spawn_await<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let line = Location::caller();
        self.submit_or_cancel(future, |member| GroupFuturesWithHandle(member, line))
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted. Does not wait for a slot or
    /// for capacity.
    ///
    /// # Errors
    /// As for [`try_execute`](Self::try_execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(2);
    /// let handle = group.try_spawn_await(async { 6 * 7 }).expect("there is a free slot");
    /// assert_eq!(handle.await_complete(), 42);
    /// ```
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn try_spawn_await<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let line = Location::caller();
        self.submit(future, false, |member| GroupFuturesWithHandle(member, line))
    }
}

/// Makes a closure into a job and its handle.
struct GroupEvaluations<E>(Member<E>, Line);

impl<E: Send + 'static> GroupEvaluations<E> {
    fn job<F, T>(self, task: F) -> (Job, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let group = self.0.group();
        let task = GroupTask::new(task, self.0.with_handle());
        JoinHandle::of_evaluation(task, group.route(), self.1)
    }
}

impl<F, T, E> Prepare<F> for GroupEvaluations<E>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    type Handle = JoinHandle<T>;

    fn prepare(self, task: F) -> (Job, JoinHandle<T>) {
        self.job(task)
    }

    fn prepare_boxed(self, task: Box<F>) -> (Job, JoinHandle<T>) {
        self.job(task)
    }
}

/// Makes a future into a job and its handle.
#[cfg(feature = "async")]
struct GroupFuturesWithHandle<E>(Member<E>, Line);

#[cfg(feature = "async")]
impl<E: Send + 'static> GroupFuturesWithHandle<E> {
    fn job<F>(self, future: F) -> (Job, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let group = self.0.group();
        let route = group.future_route(self.1);
        let expiry = route.expiry().cloned();
        let (promise, receiver) = Promise::new();
        let sink = MemberWithPromise { promise: Some(promise), member: self.0.with_handle() };
        let task = FutureTask::task(future, sink, route);
        JoinHandle::with_job(task, receiver, group.route(), expiry)
    }
}

#[cfg(feature = "async")]
impl<F, E> Prepare<F> for GroupFuturesWithHandle<E>
where
    F: Future + Send + 'static,
    F::Output: Send,
    E: Send + 'static,
{
    type Handle = JoinHandle<F::Output>;

    fn prepare(self, future: F) -> (Job, JoinHandle<F::Output>) {
        self.job(future)
    }

    fn prepare_boxed(self, future: Box<F>) -> (Job, JoinHandle<F::Output>) {
        self.job(Box::into_pin(future))
    }
}

/// The sink of a future: its handle is settled before the group gets the slot back.
#[cfg(feature = "async")]
struct MemberWithPromise<E, T> {
    promise: Option<Promise<T>>,
    member: Member<E>,
}

#[cfg(feature = "async")]
impl<E: Send + 'static, T: Send + 'static> Sink<T> for MemberWithPromise<E, T> {
    fn settle(mut self, result: Result<T, Payload>) -> Outcome {
        self.member.settle_handle(self.promise.take(), result)
    }

    fn is_cancelled(&self) -> bool {
        self.member.is_cancelled()
    }

    fn take_promise(&mut self) -> Option<Promise<T>> {
        self.promise.take()
    }

    fn slot_line(&self) -> Option<Arc<dyn SlotLine>> {
        Some(self.member.group())
    }

    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        self.member.call(f)
    }

    fn register_pending(&mut self, future: &Weak<dyn Cancel>) -> bool {
        self.member.register_pending(future)
    }
}

/// The future was dropped before. The promise comes first, then the membership.
#[cfg(feature = "async")]
impl<E, T> Drop for MemberWithPromise<E, T> {
    fn drop(&mut self) {
        let promise = self.promise.take();
        // This may call a foreign executor's waker: let it run its own follow-up work.
        off_trampoline(|| discard(promise));
    }
}
