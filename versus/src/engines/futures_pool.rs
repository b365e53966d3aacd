use futures::executor::ThreadPool;
use futures::task::SpawnExt;

use super::{Executor, FutureHandles, leak};
use crate::Result;

pub(crate) struct FuturesPool(ThreadPool);

impl FuturesPool {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        Ok(leak(FuturesPool(ThreadPool::builder().pool_size(workers).create()?)))
    }
}

impl Executor for FuturesPool {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_ok(future);
    }
}

impl FutureHandles for FuturesPool {
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R> {
        self.0.spawn_with_handle(future).expect("the pool is never shut down")
    }
}
