use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Pool, leak};
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
