use std::sync::mpsc;

use executors::Executor as _;
use executors::crossbeam_workstealing_pool::{ThreadPool, pool_with_auto_parker};
use executors::parker::DynParker;

use super::{Pool, leak};

/// With more it parks its workers in another way, and does not wake all of them: of 512 tasks that
/// block, some never start.
pub(super) const MOST_WORKERS: usize = 64;

pub(crate) struct Executors(ThreadPool<DynParker>);

impl Executors {
    pub(crate) fn fixed(workers: usize) -> &'static Self {
        leak(Executors(pool_with_auto_parker(workers)))
    }
}

impl Pool for Executors {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.execute(task);
    }

    /// Only its futures have handles. Its documentation gets the results of closures by a channel.
    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (sender, receiver) = mpsc::channel();
        self.0.execute(move || {
            // Each caller waits for the result.
            let _ = sender.send(task());
        });
        receiver.recv().expect("the task does not panic")
    }
}
