//! Workers that have come to the end of a blocking region and wait to be runnable again.
//!
//! A pool may be one worker over its limit: one that comes back need not wait until another has ended its task. If it is
//! over already, the next ones wait here, in line: each worker that stops to run lets the first one in. So a crowd that
//! comes back at the same time does not run at the same time (law 4).
//!
//! Those that run may need what a worker in line holds, such as a lock, and the pool cannot know. If a worker sees the line
//! stand still for [`PATIENCE`], its first worker goes on all the same; if the line stands still again the next two,
//! then four, and so on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::parker::{Parker, Signal};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// How long a worker sees the line stand still before its first goes on: so the line does for twice as long at most. Long
/// beside what a task takes that is about to end; short beside what a user notices as a standstill.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// See the [module's documentation](self).
pub(crate) struct Returning {
    line: Mutex<Line>,
    /// How many are in line: read without the lock by each worker that stops to run.
    length: AtomicUsize,
}

struct Line {
    /// The first in front.
    parkers: VecDeque<Arc<Parker>>,
    /// How many have left the line.
    passed: usize,
    /// How many go on when the line stands still.
    step: usize,
}

impl Returning {
    pub(crate) fn new() -> Self {
        let line = Line { parkers: VecDeque::new(), passed: 0, step: 1 };
        Returning { line: Mutex::new(line), length: AtomicUsize::new(0) }
    }

    /// Whether there is no line. Behind a fence after the caller has stopped to run: either it sees the line, or the worker
    /// that gets in line sees that it has stopped.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }

    /// Lets workers out of the line as long as `admit`, which counts one as runnable again, does so.
    #[cold]
    pub(crate) fn admit(&self, mut admit: impl FnMut() -> bool) {
        let mut line = self.line.lock();
        while !line.parkers.is_empty() && admit() {
            line.step = 1;
            if let Some(parker) = line.pass() {
                parker.unpark();
            }
        }
        self.length.store(line.parkers.len(), Ordering::Relaxed);
    }

    /// Gets the calling worker in line.
    pub(crate) fn join(&self) -> Arc<Parker> {
        let parker = Arc::new(Parker::new());
        let mut line = self.line.lock();
        line.parkers.push_back(Arc::clone(&parker));
        self.length.store(line.parkers.len(), Ordering::Relaxed);
        parker
    }

    /// Waits to be let out of the line. If it stands still for too long, and the caller is the first, lets the caller and
    /// perhaps some others out, for each of which it calls `force`.
    pub(crate) fn wait(&self, parker: &Arc<Parker>, mut force: impl FnMut()) {
        let mut passed = self.line.lock().passed;
        loop {
            match parker.park(Some(Instant::now() + PATIENCE)) {
                Signal::Unparked => return,
                Signal::Recheck => {}
                Signal::Expired => {
                    let mut line = self.line.lock();
                    let is_first =
                        line.parkers.front().is_some_and(|first| Arc::ptr_eq(first, parker));
                    if is_first && line.passed == passed {
                        for _ in 0..line.step {
                            if let Some(parker) = line.pass() {
                                force();
                                parker.unpark();
                            }
                        }
                        line.step = line.step.saturating_mul(2);
                        self.length.store(line.parkers.len(), Ordering::Relaxed);
                        return;
                    }
                    passed = line.passed;
                }
            }
        }
    }
}

impl Line {
    fn pass(&mut self) -> Option<Arc<Parker>> {
        self.passed = self.passed.wrapping_add(1);
        self.parkers.pop_front()
    }
}
