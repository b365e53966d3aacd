use std::mem;

use affinitypool::Threadpool;
use futures_lite::future::block_on;

use super::{Calls, Handles, Pool, leak};

/// It starts no more, without an error.
pub(super) const MOST_WORKERS: usize = affinitypool::MAX_THREADS;

pub(crate) struct Affinitypool(Threadpool);

impl Affinitypool {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        leak(Affinitypool(Threadpool::new(workers)))
    }
}

impl Pool for Affinitypool {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        // Dropped, it would cancel the task. There is no way to detach it.
        mem::forget(self.0.spawn(task));
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        block_on(self.0.spawn(task))
    }
}

impl Handles for Affinitypool {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let future = self.0.spawn(task);
        move || block_on(future)
    }
}

impl Calls for Affinitypool {
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send {
        self.0.spawn(task)
    }
}
