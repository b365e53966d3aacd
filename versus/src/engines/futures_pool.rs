use futures::executor::ThreadPool;

use super::{Executor, leak};
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
