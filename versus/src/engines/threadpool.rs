use std::sync::mpsc;

use futures::channel::oneshot;
use threadpool::ThreadPool;

use super::{Calls, Ends, Joins, Pool, leak};

pub(crate) struct Threadpool(ThreadPool);

impl Threadpool {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        leak(Threadpool(ThreadPool::new(workers)))
    }
}

impl Pool for Threadpool {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.execute(task);
    }

    /// It has no handles. Its documentation gets results by a channel.
    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (sender, receiver) = mpsc::channel();
        self.0.execute(move || {
            // Each caller waits for the result.
            let _ = sender.send(task());
        });
        receiver.recv().expect("the task does not panic")
    }
}

impl Ends for Threadpool {
    /// The threads end some time after the drop.
    fn run_all<T: FnOnce() + Send + 'static>(workers: usize, tasks: impl Iterator<Item = T>) {
        let pool = ThreadPool::new(workers);
        tasks.for_each(|task| pool.execute(task));
        pool.join();
    }
}

impl Joins for Threadpool {
    fn join(&'static self) {
        self.0.join();
    }
}

impl Calls for Threadpool {
    /// It has no handles.
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        let (sender, receiver) = oneshot::channel();
        self.0.execute(move || {
            // Each caller awaits the result.
            let _ = sender.send(task());
        });
        async { receiver.await.expect("the task does not panic") }
    }
}
