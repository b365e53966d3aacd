//! Rounds of tasks, of which the last one wakes the thread that waits for the round.
//!
//! For rounds that are too short for looks at the tally: the workers go idle in between, or the
//! round takes a millisecond.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::engines::leak;

/// Counts down once in each task that a round waits for.
pub(crate) struct Latch {
    left: AtomicU64,
    waiter: Thread,
}

impl Latch {
    /// The time of that many rounds, one after another. Each calls `start`, and ends when its latch
    /// was counted down `tasks` times.
    pub(crate) fn rounds(rounds: u64, tasks: u64, start: impl Fn(&'static Self)) -> Duration {
        let latch = leak(Latch { left: AtomicU64::new(0), waiter: thread::current() });
        let begin = Instant::now();
        for _ in 0..rounds {
            latch.left.store(tasks, Ordering::Relaxed);
            start(latch);
            while latch.left.load(Ordering::Acquire) > 0 {
                thread::park();
            }
        }
        begin.elapsed()
    }

    pub(crate) fn count_down(&self) {
        if self.left.fetch_sub(1, Ordering::Release) == 1 {
            self.waiter.unpark();
        }
    }
}
