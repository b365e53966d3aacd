use std::time::Duration;
use std::{future, mem, thread};

use elastipool::{Growth, Priority, ThreadPool, View};
use tokio::runtime::Handle;

use super::{
    Calls, Complete, Ends, Executor, FOR_EVER, Fork, FutureHandles, Handles, Joins, Pool, Scopes,
    Waits, leak,
};
use crate::Result;

pub(crate) struct Ours(ThreadPool);

impl Ours {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        let pool = ThreadPool::builder().core_size(workers).max_size(workers).build();
        pool.start_core_threads();
        leak(Ours(pool))
    }

    pub(crate) fn bounded(workers: usize, capacity: usize) -> &'static Self {
        let builder = ThreadPool::builder().core_size(workers).max_size(workers);
        let pool = builder.queue_capacity(capacity).build();
        pool.start_core_threads();
        leak(Ours(pool))
    }

    pub(crate) fn elastic(limit: usize, keep_alive: Duration, growth: Growth) -> &'static Self {
        let builder = ThreadPool::builder().core_size(0).max_size(limit);
        leak(Ours(builder.keep_alive(keep_alive).growth(growth).build()))
    }

    /// With no sizes at all.
    pub(crate) fn measured() -> &'static Self {
        leak(Ours(ThreadPool::default()))
    }

    /// Grows under load, and does not shrink during a row.
    pub(crate) fn between(core: usize, limit: usize) -> &'static Self {
        leak(Ours(ThreadPool::new(core, limit, FOR_EVER)))
    }

    /// With a view that reserves one worker for its tasks.
    pub(crate) fn with_reserve(workers: usize) -> (&'static Self, &'static OurView) {
        let ours = Ours::fixed(workers);
        (ours, leak(OurView(ours.0.view().reserve(1).build())))
    }

    /// Whose futures may use tokio's sockets: a thread of its own waits for all of them, and wakes
    /// the futures.
    pub(crate) fn with_tokio_io(workers: usize) -> Result<&'static Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let handle: &Handle = leak(runtime.handle().clone());
        thread::spawn(move || runtime.block_on(future::pending::<()>()));
        let builder = ThreadPool::builder().core_size(workers).max_size(workers);
        let pool = builder.on_worker_start(|_| mem::forget(handle.enter())).build();
        pool.start_core_threads();
        Ok(leak(Ours(pool)))
    }

    pub(crate) fn view_of_priority(&self, priority: Priority) -> &'static OurView {
        leak(OurView(self.0.view().priority(priority).build()))
    }

    pub(crate) fn view_of_weight(&self, weight: usize) -> &'static OurView {
        leak(OurView(self.0.view().weight(weight).build()))
    }

    /// The most threads at any moment.
    pub(crate) fn peak_threads(&self) -> u64 {
        self.0.stats().peak_workers as u64
    }

    /// All threads that were ever started.
    pub(crate) fn threads_started(&self) -> u64 {
        self.0.stats().threads_started as u64
    }
}

impl Pool for Ours {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.execute(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.0.evaluate(task).await_complete()
    }

    fn handler<T, F>(&'static self, function: F) -> impl Fn(T)
    where
        T: Send + 'static,
        F: Fn(T) + Copy + Send + Sync + 'static,
    {
        let handler = self.0.handler(function);
        move |argument| handler.invoke(argument)
    }
}

/// A view of this crate's pool.
pub(crate) struct OurView(View);

impl Pool for OurView {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.execute(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.0.evaluate(task).await_complete()
    }
}

impl Executor for OurView {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

impl Ends for Ours {
    fn run_all<T: FnOnce() + Send + 'static>(workers: usize, tasks: impl Iterator<Item = T>) {
        let pool = ThreadPool::new(workers, workers, FOR_EVER);
        tasks.for_each(|task| pool.execute(task));
        pool.shutdown_join();
    }
}

impl Joins for Ours {
    fn join(&'static self) {
        self.0.join();
    }
}

impl Handles for Ours {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let handle = self.0.evaluate(task);
        move || handle.await_complete()
    }
}

impl Calls for Ours {
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        let handle = self.0.evaluate(task);
        async { handle.await.expect("the task does not panic") }
    }
}

/// By handles.
impl Fork for Ours {
    fn fork<R: Send + 'static>(
        &'static self,
        half: impl FnOnce() -> R + Send + 'static,
        other: impl FnOnce() -> R + Send + 'static,
    ) -> (R, R) {
        let half = self.0.evaluate(half);
        let other = other();
        (half.await_complete(), other)
    }
}

impl Scopes for Ours {
    fn scope<T: FnOnce() + Send>(
        &'static self,
        tasks: impl IntoIterator<Item = T> + Send,
        other: impl FnOnce() + Send,
    ) {
        self.0.scope(|scope| {
            tasks.into_iter().for_each(|task| scope.execute(task));
            other();
        });
    }
}

impl Waits for Ours {
    fn blocking(wait: impl FnOnce()) {
        elastipool::blocking(wait);
    }
}

impl Complete for Ours {
    fn complete(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.complete(future));
    }
}

impl Executor for Ours {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

impl FutureHandles for Ours {
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        let handle = self.0.spawn_await(future);
        async { handle.await.expect("the future does not panic") }
    }
}
