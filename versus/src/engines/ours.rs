use std::time::Duration;

use elastipool::{Growth, ThreadPool};

use super::{Executor, Pool, leak};

pub(crate) struct Ours(ThreadPool);

impl Ours {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        let pool = ThreadPool::builder().core_size(workers).max_size(workers).build();
        pool.start_core_threads();
        leak(Ours(pool))
    }

    pub(crate) fn elastic(limit: usize, keep_alive: Duration, growth: Growth) -> &'static Self {
        let builder = ThreadPool::builder().core_size(0).max_size(limit);
        leak(Ours(builder.keep_alive(keep_alive).growth(growth).build()))
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

impl Executor for Ours {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}
