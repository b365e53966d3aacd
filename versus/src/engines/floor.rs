use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use futures::channel::oneshot;
use futures::executor::block_on;

use super::{Handles, Pool, leak};

type Task = Box<dyn FnOnce() + Send>;

/// What is left of a pool without everything that makes it one: it contains no panic, tells no
/// count, never stops.
pub(crate) struct Floor(Sender<Task>);

impl Floor {
    /// With room for that many tasks. Without room for any, each goes straight to a thread.
    pub(crate) fn bounded(workers: usize, capacity: usize) -> &'static Self {
        Floor::with(workers, bounded(capacity))
    }

    pub(crate) fn fixed(workers: usize) -> &'static Self {
        Floor::with(workers, unbounded())
    }

    fn with(workers: usize, (sender, receiver): (Sender<Task>, Receiver<Task>)) -> &'static Self {
        for _ in 0..workers {
            let receiver = receiver.clone();
            thread::spawn(move || receiver.into_iter().for_each(|task| task()));
        }
        leak(Floor(sender))
    }
}

impl Pool for Floor {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static) {
        self.0.send(Box::new(task)).expect("the workers never end");
    }

    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (sender, receiver) = bounded(1);
        self.execute(move || {
            // Each caller waits for the result.
            let _ = sender.send(task());
        });
        receiver.recv().expect("the task does not panic")
    }
}

/// With the channel that elastipool and rusty_pool have too.
impl Handles for Floor {
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R {
        let (sender, receiver) = oneshot::channel();
        self.execute(move || {
            // Each result is awaited.
            let _ = sender.send(task());
        });
        move || block_on(receiver).expect("the task does not panic")
    }
}
