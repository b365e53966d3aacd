use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Fork, Pool, Scopes, leak};
use crate::Result;

pub(crate) struct Rayon(ThreadPool);

impl Rayon {
    pub(crate) fn fixed(workers: usize) -> Result<&'static Self> {
        Ok(leak(Rayon(ThreadPoolBuilder::new().num_threads(workers).build()?)))
    }
}

impl Pool for Rayon {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.spawn(task);
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        self.0.install(task)
    }
}

impl Fork for Rayon {
    fn fork<R: Send + 'static>(
        &'static self,
        half: impl FnOnce() -> R + Send + 'static,
        other: impl FnOnce() -> R + Send + 'static,
    ) -> (R, R) {
        // It runs the first closure itself and offers the second one to others.
        let (other, half) = self.0.join(other, half);
        (half, other)
    }
}

impl Scopes for Rayon {
    fn scope<T: FnOnce() + Send>(
        &'static self,
        tasks: impl IntoIterator<Item = T> + Send,
        other: impl FnOnce() + Send,
    ) {
        self.0.scope(|scope| {
            tasks.into_iter().for_each(|task| scope.spawn(|_| task()));
            other();
        });
    }
}
