use std::convert::Infallible;
use std::time::Duration;

use qubit_executor::{ExecutorService, TaskHandle};
use qubit_thread_pool::{FixedThreadPool, ThreadPool};

use super::{Ends, Handles, Joins, Pool, leak};
use crate::Result;

/// Its pool of a fixed size.
pub(crate) struct Qubit(FixedThreadPool);

impl Qubit {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        Ok(leak(Qubit(FixedThreadPool::new(workers)?)))
    }

    fn call<R: Send + 'static>(
        &self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> TaskHandle<R, Infallible> {
        self.0.submit_callable(once(task)).expect(UNBOUNDED)
    }
}

/// Its pool that grows and shrinks. It grows beyond its core size only while a bounded queue is
/// full. So all threads are core threads, which may end.
pub(crate) struct QubitElastic(ThreadPool);

impl QubitElastic {
    pub(crate) fn new(limit: usize, keep_alive: Duration) -> Result<&'static Self> {
        let builder = ThreadPool::builder().core_pool_size(limit).maximum_pool_size(limit);
        let builder = builder.keep_alive(keep_alive).allow_core_thread_timeout(true);
        Ok(leak(QubitElastic(builder.build()?)))
    }
}

const UNBOUNDED: &str = "the queue is not bounded";
const NO_PANIC: &str = "the task does not panic";

/// Its pools take closures that return a `Result` and could be called again. They call them once.
fn once<R>(task: impl FnOnce() -> R) -> impl FnMut() -> std::result::Result<R, Infallible> {
    let mut task = Some(task);
    move || {
        let task = task.take().expect("a task is called once");
        Ok(task())
    }
}

impl Pool for Qubit {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.submit(once(task)).expect(UNBOUNDED);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.call(task).get().expect(NO_PANIC)
    }
}

impl Pool for QubitElastic {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.submit(once(task)).expect(UNBOUNDED);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.0.submit_callable(once(task)).expect(UNBOUNDED).get().expect(NO_PANIC)
    }
}

impl Handles for Qubit {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let handle = self.call(task);
        move || handle.get().expect(NO_PANIC)
    }
}

impl Joins for Qubit {
    fn join(&'static self) {
        self.0.join();
    }
}

impl Ends for Qubit {
    fn run_all<T: FnOnce() + Send + 'static>(workers: usize, tasks: impl Iterator<Item = T>) {
        let pool = FixedThreadPool::new(workers).expect("the system has threads");
        tasks.for_each(|task| pool.submit(once(task)).expect(UNBOUNDED));
        pool.shutdown();
        pool.wait_termination();
    }
}
