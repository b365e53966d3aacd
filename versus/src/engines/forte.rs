use forte::{ThreadPool, Worker};

use super::{Fork, Pool, Scopes};
use crate::Result;

/// Its pools are statics.
static POOL: ThreadPool = ThreadPool::new();

pub(crate) struct Forte;

impl Forte {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        match POOL.resize_to(workers) {
            size if size == workers => Ok(&Forte),
            size => Err(format!("only {size} of {workers} workers").into()),
        }
    }
}

impl Pool for Forte {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        POOL.spawn(|_: &Worker| task());
    }

    /// Only its futures have results.
    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        POOL.block_on(POOL.spawn(async { task() }))
    }
}

impl Fork for Forte {
    fn fork<R: Send + 'static>(
        &'static self,
        half: impl FnOnce() -> R + Send + 'static,
        other: impl FnOnce() -> R + Send + 'static,
    ) -> (R, R) {
        // It offers the first closure to others and runs the second one itself.
        POOL.join(|_| half(), |_| other())
    }
}

impl Scopes for Forte {
    fn scope<T: FnOnce() + Send>(
        &'static self,
        tasks: impl IntoIterator<Item = T> + Send,
        other: impl FnOnce() + Send,
    ) {
        POOL.scope(|scope| {
            tasks.into_iter().for_each(|task| scope.spawn(|_: &Worker| task()));
            other();
        });
    }
}
