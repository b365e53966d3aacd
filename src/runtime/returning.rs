//! The returning queue: workers at the end of a blocking region that wait to count as runnable.
//!
//! A pool may run one worker above its limit, so that one worker returns without a wait. Further
//! ones wait here. Each worker that stops running admits the first, so workers that return at the
//! same time do not all run at the same time (law 4).
//!
//! The running workers may wait for something that a returning worker holds, such as a lock; the
//! pool cannot know. If the queue does not move for [`PATIENCE`], its first worker proceeds anyway,
//! then two, then four, and so on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::parker::{Parker, Signal};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Bounds how long a worker sees the queue not move before it proceeds; the queue stops for at most
/// twice as long. 100 ms: longer than most tasks, shorter than a stop that a user notices.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// See the [module's documentation](self).
pub(crate) struct Returning {
    queue: Mutex<ReturnQueue>,
    /// Read without the lock by each worker that stops running. Relaxed: the fences of race 7 order
    /// it.
    length: AtomicUsize,
}

struct ReturnQueue {
    /// The first one in front.
    parkers: VecDeque<Arc<Parker>>,
    /// How many workers have left the queue.
    released: usize,
    /// How many proceed the next time the queue does not move.
    step: usize,
}

impl Returning {
    pub(crate) fn new() -> Self {
        let queue = ReturnQueue { parkers: VecDeque::new(), released: 0, step: 1 };
        Returning { queue: Mutex::new(queue), length: AtomicUsize::new(0) }
    }

    /// Whether the queue is empty. The caller has stopped running and has fenced: it sees a
    /// returning worker, or that worker sees that it has stopped (race 7).
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }

    /// Releases workers from the front while `admit`, which counts one as runnable, returns `true`.
    #[cold]
    pub(crate) fn admit(&self, mut admit: impl FnMut() -> bool) {
        let mut queue = self.queue.lock();
        while !queue.parkers.is_empty() && admit() {
            queue.step = 1;
            if let Some(parker) = queue.pop() {
                parker.unpark();
            }
        }
        self.length.store(queue.parkers.len(), Ordering::Relaxed);
    }

    /// Appends the calling worker.
    pub(crate) fn enqueue(&self) -> Arc<Parker> {
        let parker = Arc::new(Parker::new());
        let mut queue = self.queue.lock();
        queue.parkers.push_back(Arc::clone(&parker));
        self.length.store(queue.parkers.len(), Ordering::Relaxed);
        parker
    }

    /// Waits until the worker is released. If the queue does not move, its first worker releases
    /// itself and perhaps others, and calls `force` for each.
    pub(crate) fn wait(&self, parker: &Arc<Parker>, mut force: impl FnMut()) {
        let mut released = self.queue.lock().released;
        loop {
            match parker.park(Some(Instant::now() + PATIENCE)) {
                Signal::Unparked => return,
                Signal::Recheck => {}
                Signal::Expired => {
                    let mut queue = self.queue.lock();
                    let is_first =
                        queue.parkers.front().is_some_and(|first| Arc::ptr_eq(first, parker));
                    if is_first && queue.released == released {
                        for _ in 0..queue.step {
                            if let Some(parker) = queue.pop() {
                                force();
                                parker.unpark();
                            }
                        }
                        queue.step = queue.step.saturating_mul(2);
                        self.length.store(queue.parkers.len(), Ordering::Relaxed);
                        return;
                    }
                    released = queue.released;
                }
            }
        }
    }
}

impl ReturnQueue {
    fn pop(&mut self) -> Option<Arc<Parker>> {
        self.released = self.released.wrapping_add(1);
        self.parkers.pop_front()
    }
}
