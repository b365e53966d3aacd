use std::future;
use std::{env, thread};

use futures_lite::future::block_on;

use super::{BLOCKING_LIMIT, Calls, Executor, FutureHandles, Handles, Pool, leak};
use crate::Result;

pub(crate) struct Blocking;

impl Blocking {
    /// The crate has one pool for the whole process, which reads its size from the environment.
    pub(crate) fn limited(limit: usize) -> Result<&'static Self> {
        if env::var(BLOCKING_LIMIT).ok() != Some(limit.to_string()) {
            return Err(format!("{BLOCKING_LIMIT} must be {limit}").into());
        }
        Ok(&Blocking)
    }
}

impl Pool for Blocking {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        blocking::unblock(task).detach();
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        block_on(blocking::unblock(task))
    }
}

impl Handles for Blocking {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let task = blocking::unblock(task);
        move || block_on(task)
    }
}

impl Calls for Blocking {
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        blocking::unblock(task)
    }
}

pub(crate) struct AsyncExecutor(async_executor::Executor<'static>);

impl AsyncExecutor {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        let executor = leak(AsyncExecutor(async_executor::Executor::new()));
        for _ in 0..workers {
            thread::spawn(|| block_on(executor.0.run(future::pending::<()>())));
        }
        executor
    }

    /// As the crate smol runs it: threads without work wait for I/O.
    pub(crate) fn with_io(workers: usize) -> &'static Self {
        let executor = leak(AsyncExecutor(async_executor::Executor::new()));
        for _ in 0..workers {
            thread::spawn(|| async_io::block_on(executor.0.run(future::pending::<()>())));
        }
        executor
    }
}

impl Executor for AsyncExecutor {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future).detach();
    }
}

impl FutureHandles for AsyncExecutor {
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        self.0.spawn(future)
    }
}
