//! hyper's executor trait (feature `hyper`).

use std::future::Future;

use hyper::rt::Executor;

use crate::pool::ThreadPool;
use crate::weak::WeakThreadPool;

// Its example needs more of hyper, and is tested in `demos`.
#[cfg_attr(not(doctest), doc = include_str!("hyper.md"))]
impl<F> Executor<F> for ThreadPool
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        // hyper does not look at the output. Its own futures have none.
        let _closed = self.spawn_or_drop(async move { drop(future.await) });
    }
}

/// As for [`ThreadPool`]. If no handle of the pool is left, the future is dropped.
impl<F> Executor<F> for WeakThreadPool
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        if let Some(pool) = self.upgrade() {
            Executor::execute(&pool, future);
        }
    }
}
