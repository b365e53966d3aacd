use std::time::Duration;

use rusty_pool::ThreadPool;

use super::{Calls, Complete, Ends, Executor, FOR_EVER, FutureHandles, Handles, Joins, Pool, leak};

pub(crate) struct RustyPool(ThreadPool);

impl RustyPool {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        let pool = ThreadPool::new(workers, workers, FOR_EVER);
        pool.start_core_threads();
        leak(RustyPool(pool))
    }

    pub(crate) fn elastic(limit: usize, keep_alive: Duration) -> &'static Self {
        leak(RustyPool(ThreadPool::new(0, limit, keep_alive)))
    }

    /// Grows under load, and does not shrink during a row.
    pub(crate) fn between(core: usize, limit: usize) -> &'static Self {
        leak(RustyPool(ThreadPool::new(core, limit, FOR_EVER)))
    }
}

impl Calls for RustyPool {
    /// Its handle is no future, but the channel inside it is.
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        let receiver = self.0.evaluate(task).receiver;
        async { receiver.await.expect("the task does not panic") }
    }
}

impl Pool for RustyPool {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.execute(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.0.evaluate(task).await_complete()
    }
}

impl Ends for RustyPool {
    fn run_all<T: FnOnce() + Send + 'static>(workers: usize, tasks: impl Iterator<Item = T>) {
        let pool = ThreadPool::new(workers, workers, FOR_EVER);
        tasks.for_each(|task| pool.execute(task));
        pool.shutdown_join();
    }
}

impl Joins for RustyPool {
    /// It looks for an empty channel and idle workers. A worker that has just taken a task still
    /// counts as idle.
    const MAY_BE_EARLY: bool = true;

    fn join(&'static self) {
        self.0.join();
    }
}

impl Handles for RustyPool {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let handle = self.0.evaluate(task);
        move || handle.await_complete()
    }
}

impl Complete for RustyPool {
    fn complete(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.complete(future);
    }
}

impl Executor for RustyPool {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

impl FutureHandles for RustyPool {
    /// As `call` does.
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        let receiver = self.0.spawn_await(future).receiver;
        async { receiver.await.expect("the future does not panic") }
    }
}
