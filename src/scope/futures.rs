//! Futures that borrow (feature `async`).
#![deny(unsafe_code)]

use std::future::Future;

use super::{ErasedFuture, Scope, ScopedJoinHandle};
use crate::error::{Rejected, or_hand_back};
use crate::join_handle::JoinHandle;
use crate::sched::TaskRoute;
use crate::submit::{Accepted, Patience};
use crate::sync::unwind::discard;
use crate::task::{Job, Line, Outcome, Reporter, ScopedFuture, TaskId, settle};
use crate::wait::FutureTask;

/// # Futures that borrow (feature `async`)
///
/// The scope ends when its futures have ended: until then it blocks, however long they wait. A
/// future whose last waker is dropped can never be woken, and is dropped. Futures that wait for
/// each other in a circle, or one that keeps its own waker, end the scope never.
impl<'scope> Scope<'scope, '_> {
    /// Spawns a future, as [`ThreadPool::spawn`](crate::ThreadPool::spawn) does.
    ///
    /// If the scope is going to panic, its futures are cancelled when the body has ended: they are
    /// dropped, unless they are ready before they are pending. So the scope ends, also if they wait
    /// for something that will not happen.
    ///
    /// # Panics
    /// If the pool is closed. [`try_spawn`](Self::try_spawn) returns the future instead.
    ///
    /// ```
    /// use futures::StreamExt;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let (sender, mut receiver) = futures::channel::mpsc::unbounded::<u32>();
    /// let (numbers, mut sum) = ([1, 2, 3], 0);
    /// pool.scope(|scope| {
    ///     scope.spawn(async {
    ///         while let Some(number) = receiver.next().await {
    ///             sum += number;
    ///         }
    ///     });
    ///     scope.execute(|| {
    ///         numbers.iter().for_each(|number| sender.unbounded_send(*number).unwrap());
    ///         sender.close_channel();
    ///     });
    /// });
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn spawn<F>(&'scope self, future: F)
    where
        F: Future<Output = ()> + Send + 'scope,
    {
        match self.pool.accept(Patience::Endless) {
            Ok(accepted) => self.add_detached(accepted, future),
            Err(refusal) => {
                discard(Box::new(future));
                refusal.panic("try_spawn");
            }
        }
    }

    /// Like [`spawn`](Self::spawn), but hands the future back if it is not accepted. Does not wait
    /// for capacity.
    ///
    /// # Errors
    /// As for [`ThreadPool::try_spawn`](crate::ThreadPool::try_spawn).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut count = 0;
    /// pool.scope(|scope| {
    ///     if let Err(rejected) = scope.try_spawn(async { count += 1 }) {
    ///         futures::executor::block_on(rejected.into_task()); // on this thread
    ///     }
    /// });
    /// assert_eq!(count, 1);
    /// ```
    #[track_caller]
    pub fn try_spawn<F>(&'scope self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = ()> + Send + 'scope,
    {
        let accepted = or_hand_back!(self.pool.accept(Patience::None), future);
        self.add_detached(accepted, future);
        Ok(())
    }

    /// Spawns a future and returns a handle to its output, as
    /// [`ThreadPool::spawn_await`](crate::ThreadPool::spawn_await) does. The handle can be awaited
    /// by another future of the scope. If the scope [cancels](Self::spawn) the future, the handle
    /// resolves to "cancelled".
    ///
    /// If the pool is closed, the handle resolves to "cancelled", and the call does not panic.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let text = String::from("a few words");
    /// let length = pool.scope(|scope| {
    ///     let words = scope.spawn_await(async { text.split(' ') });
    ///     let length = scope.spawn_await(async { words.await.unwrap().map(str::len).sum::<usize>() });
    ///     length.await_complete()
    /// });
    /// assert_eq!(length, 9);
    /// ```
    ///
    /// # What does not compile
    /// The future cannot borrow what the body owns:
    ///
    /// ```compile_fail,E0373
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     let inside = 1;
    ///     scope.spawn(async { println!("{inside}") });
    /// });
    /// ```
    ///
    /// The handle cannot leave the scope:
    ///
    /// ```compile_fail,E0521
    /// let pool = elastipool::ThreadPool::default();
    /// let mut kept = None;
    /// pool.scope(|scope| kept = Some(scope.spawn_await(async { 42 })));
    /// ```
    ///
    /// What is borrowed cannot be moved before the end of the scope:
    ///
    /// ```compile_fail,E0505
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = vec![1];
    /// pool.scope(|scope| {
    ///     scope.spawn(async { println!("{numbers:?}") });
    ///     drop(numbers);
    /// });
    /// ```
    ///
    /// What the future keeps across an await must be `Send`:
    ///
    /// ```compile_fail
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     scope.spawn(async {
    ///         let counted = std::rc::Rc::new(1);
    ///         std::future::ready(()).await;
    ///         println!("{counted}");
    ///     });
    /// });
    /// ```
    #[doc(alias = "spawn_with_handle")]
    #[track_caller]
    pub fn spawn_await<F>(&'scope self, future: F) -> ScopedJoinHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        match self.pool.accept(Patience::Endless) {
            Ok(accepted) => self.add_with_handle(accepted, future),
            Err(refusal) => {
                self.scoped(JoinHandle::refused(self.route(), &refusal, Box::new(future)), None)
            }
        }
    }

    /// Like [`spawn_await`](Self::spawn_await), but hands the future back if it is not accepted.
    /// Does not wait for capacity.
    ///
    /// # Errors
    /// As for [`ThreadPool::try_spawn_await`](crate::ThreadPool::try_spawn_await).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = [1, 2, 3];
    /// let sum: i32 = pool.scope(|scope| match scope.try_spawn_await(async { numbers.iter().sum() }) {
    ///     Ok(handle) => handle.await_complete(),
    ///     Err(rejected) => futures::executor::block_on(rejected.into_task()), // on this thread
    /// });
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn try_spawn_await<F>(
        &'scope self,
        future: F,
    ) -> Result<ScopedJoinHandle<'scope, F::Output>, Rejected<F>>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        let accepted = or_hand_back!(self.pool.accept(Patience::None), future);
        Ok(self.add_with_handle(accepted, future))
    }

    fn future_route(&self, line: Line) -> TaskRoute {
        TaskRoute::own_or(self.route(), line, true, || self.pool.owned_route())
    }

    fn add_detached<F>(&self, accepted: Accepted<'_>, future: F)
    where
        F: Future<Output = ()> + Send + 'scope,
    {
        let own = self.future_route(accepted.line);
        self.add_future(accepted, own, Self::erase_future(future, Outcome::of), false);
    }

    fn add_with_handle<F>(
        &'scope self,
        accepted: Accepted<'_>,
        future: F,
    ) -> ScopedJoinHandle<'scope, F::Output>
    where
        F: Future<Output: Send> + Send + 'scope,
    {
        let own = self.future_route(accepted.line);
        let (promise, handle) = JoinHandle::new(self.route(), own.expiry());
        let future = Self::erase_future(future, move |result| settle(promise, result));
        let id = self.add_future(accepted, own, future, true);
        self.scoped(handle, Some(id))
    }

    /// Adds an accepted future to the scope's unstarted tasks.
    fn add_future(
        &self,
        accepted: Accepted<'_>,
        own: TaskRoute,
        future: ErasedFuture,
        has_handle: bool,
    ) -> TaskId {
        let task = FutureTask::task(future, ScopedFuture::new(self.tasks, has_handle), own);
        accepted.enqueue_unstarted(self.tasks, Job::task(task), Reporter::Future)
    }
}
