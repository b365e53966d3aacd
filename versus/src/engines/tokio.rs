use std::time::Duration;

use futures_lite::future::block_on;
use tokio::runtime::{Builder, Runtime};
use tokio::task;

use super::{Calls, Executor, FOR_EVER, FutureHandles, Handles, Pool, Waits, leak};
use crate::Result;

/// Threads of `TokioBoth` for futures.
const FUTURE_THREADS: usize = 2;

/// `spawn_blocking` alone: the runtime has no other threads.
pub(crate) struct TokioBlocking(Runtime);

impl TokioBlocking {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        TokioBlocking::elastic(workers, FOR_EVER)
    }

    pub(crate) fn elastic(limit: usize, keep_alive: Duration) -> Result<&'static Self> {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(limit).thread_keep_alive(keep_alive).build()?;
        Ok(leak(TokioBlocking(runtime)))
    }
}

impl Pool for TokioBlocking {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.spawn_blocking(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        block_on(self.0.spawn_blocking(task)).expect("the task does not panic")
    }
}

impl Handles for TokioBlocking {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let handle = self.0.spawn_blocking(task);
        move || block_on(handle).expect("the task does not panic")
    }
}

/// Its threads are made for it.
impl Waits for TokioBlocking {
    fn blocking(wait: impl FnOnce()) {
        wait();
    }
}

pub(crate) struct Tokio(Runtime);

impl Tokio {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        Ok(leak(Tokio(Builder::new_multi_thread().worker_threads(workers).build()?)))
    }

    /// With so many more threads for `spawn_blocking`.
    pub(crate) fn with_blocking(workers: usize, limit: usize) -> Result<&'static Self> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(workers).max_blocking_threads(limit);
        Ok(leak(Tokio(builder.thread_keep_alive(FOR_EVER).build()?)))
    }

    /// With I/O, and so many more threads for `spawn_blocking`.
    pub(crate) fn with_io_and_blocking(workers: usize, limit: usize) -> Result<&'static Self> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(workers).max_blocking_threads(limit).enable_io();
        Ok(leak(Tokio(builder.thread_keep_alive(FOR_EVER).build()?)))
    }

    pub(crate) fn with_io(workers: usize) -> Result<&'static Self> {
        let mut builder = Builder::new_multi_thread();
        Ok(leak(Tokio(builder.worker_threads(workers).enable_io().build()?)))
    }
}

impl Executor for Tokio {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        task::yield_now()
    }
}

impl FutureHandles for Tokio {
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        let handle = self.0.spawn(future);
        async { handle.await.expect("the future does not panic") }
    }
}

/// Closures as futures that never wait.
impl Pool for Tokio {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.spawn(async { task() });
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        block_on(self.0.spawn(async { task() })).expect("the task does not panic")
    }
}

impl Waits for Tokio {
    fn blocking(wait: impl FnOnce()) {
        task::block_in_place(wait);
    }
}

/// A runtime with two kinds of threads: for futures and for closures.
pub(crate) struct TokioBoth(Runtime);

impl TokioBoth {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(FUTURE_THREADS).max_blocking_threads(workers);
        Ok(leak(TokioBoth(builder.thread_keep_alive(FOR_EVER).build()?)))
    }
}

impl Executor for TokioBoth {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

impl Pool for TokioBoth {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.spawn_blocking(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        block_on(self.0.spawn_blocking(task)).expect("the task does not panic")
    }
}

/// By `spawn_blocking`.
impl Calls for Tokio {
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        let handle = self.0.spawn_blocking(task);
        async { handle.await.expect("the task does not panic") }
    }
}
