//! The returning queue: workers at the end of a blocking region that wait to count as runnable.
//!
//! A pool may run one worker above its `max_size`, so that one worker returns without a wait.
//! Further ones wait here. Each worker that stops running admits the first, so workers that return
//! at the same time do not all run at the same time (law 4).
//!
//! The running workers may wait for something that a returning worker holds, such as a lock; the
//! pool cannot know. If the queue does not move for [`PATIENCE`], its first worker proceeds anyway,
//! then two, then four, and so on.
//!
//! A view has two queues of the same kind, in which workers wait for a place (`policy.rs`): one for
//! workers that return, and one without patience for those that have claimed a task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::parker::{Parker, Signal};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Bounds how long a worker sees the queue not move before it proceeds; the queue stops for at most
/// twice as long. 100 ms: longer than most tasks, shorter than a stop that a user notices.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Returning {
    queue: Mutex<ReturnQueue>,
    /// Read without the lock by each worker that stops running. Relaxed: the fences of race 7 order
    /// it.
    length: AtomicUsize,
}

/// The workers that wait, under the lock of the queue's owner.
#[derive(Default)]
pub(crate) struct ReturnQueue {
    /// The first one in front.
    parkers: Vec<Arc<Parker>>,
    /// How many workers have left the queue.
    released: usize,
    /// How many others proceed with the first one, the next time the queue does not move.
    others: usize,
}

impl Returning {
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
        while !queue.is_empty() && admit() {
            queue.release_first();
        }
        self.length.store(queue.parkers.len(), Ordering::Relaxed);
    }

    /// Appends the calling worker.
    pub(crate) fn enqueue(&self) -> Arc<Parker> {
        let mut queue = self.queue.lock();
        let parker = queue.enqueue();
        self.length.store(queue.parkers.len(), Ordering::Relaxed);
        parker
    }

    /// Waits until the worker is released. If the queue does not move, its first worker releases
    /// itself and perhaps others, and calls `force` for each.
    pub(crate) fn wait(&self, parker: &Arc<Parker>, mut force: impl FnMut()) {
        wait_until_released(parker, |seen| {
            let mut queue = self.queue.lock();
            let forced = queue.force(parker, seen);
            (0..forced).for_each(|_| force());
            self.length.store(queue.parkers.len(), Ordering::Relaxed);
            forced > 0
        });
    }
}

impl ReturnQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.parkers.is_empty()
    }

    /// Appends the calling worker.
    pub(crate) fn enqueue(&mut self) -> Arc<Parker> {
        let parker = Arc::new(Parker::default());
        self.parkers.push(Arc::clone(&parker));
        parker
    }

    /// Releases the first worker, because it may run.
    pub(crate) fn release_first(&mut self) {
        self.others = 0;
        self.pop();
    }

    /// Releases workers although they may not run, if the one with this parker is the first and
    /// none has left the queue since the last call with the same `seen`. Returns how many.
    pub(crate) fn force(&mut self, parker: &Arc<Parker>, seen: &mut Option<usize>) -> usize {
        let is_first = self.parkers.first().is_some_and(|first| Arc::ptr_eq(first, parker));
        let is_still = seen.replace(self.released) == Some(self.released);
        if !is_first || !is_still {
            return 0;
        }
        let forced = self.others.saturating_add(1).min(self.parkers.len());
        (0..forced).for_each(|_| self.pop());
        self.others = self.others.saturating_mul(2).saturating_add(1);
        forced
    }

    fn pop(&mut self) {
        self.released = self.released.wrapping_add(1);
        if !self.parkers.is_empty() {
            self.parkers.remove(0).unpark();
        }
    }
}

/// Waits until the worker with this parker was released from its queue. Calls `force` each time the
/// [`PATIENCE`] is over, until it returns that it has released the worker.
pub(crate) fn wait_until_released(
    parker: &Arc<Parker>,
    mut force: impl FnMut(&mut Option<usize>) -> bool,
) {
    let mut seen = None;
    // This call only looks how many have left the queue so far.
    force(&mut seen);
    loop {
        match parker.park(Some(Instant::now() + PATIENCE)) {
            Signal::Unparked => return,
            Signal::Recheck => {}
            Signal::Expired if force(&mut seen) => return,
            Signal::Expired => {}
        }
    }
}
