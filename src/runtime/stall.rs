//! [`Growth::Stalled`]: the keeper starts workers for queued tasks when the others make no progress.
//!
//! A thread that would start a worker for queued work leaves that to the keeper, unless no worker is running that could make
//! progress, or fewer than `core_size` exist. It asks the keeper for a look after the delay, or relies on one that is asked for.
//! A look compares how many tasks were taken since the one before. Without progress it starts workers: one, then two, then four. It
//! asks for the next look as if it had pushed the tasks that are queued. So if none are left, or another thread will look at them,
//! the keeper sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::runtime::counts::Snapshot;
use crate::runtime::keeper::KeeperJob;
use crate::runtime::notify::Notifier;
use crate::runtime::shared::Shared;
use crate::runtime::sizes::Growth;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// What the keeper knows of the queued work. See the [module's documentation](self).
pub(crate) struct Stall {
    /// Whether a look is asked for. Set under the lock of `progress`.
    is_asked: AtomicBool,
    /// `None` while no look is asked for.
    progress: Mutex<Option<Progress>>,
}

/// How the workers get on between two looks.
struct Progress {
    /// How many jobs the workers had begun at the last look.
    taken: usize,
    /// How many workers the next look starts, if there was no progress.
    step: usize,
    /// How many of the workers that were started have taken no task yet. Their first ones are no progress of the others.
    expected: usize,
}

impl Stall {
    pub(super) fn new() -> Self {
        Stall { is_asked: AtomicBool::new(false), progress: Mutex::new(None) }
    }
}

impl Progress {
    fn since(taken: usize) -> Self {
        Progress { taken, step: 1, expected: 0 }
    }

    /// Returns how many workers a look starts that finds `taken` jobs begun and `queued` tasks.
    fn count_starts(&mut self, taken: usize, queued: usize) -> usize {
        let progress = taken.wrapping_sub(mem::replace(&mut self.taken, taken));
        if progress > self.expected {
            // Not one at once: the new workers may have taken several tasks, and the others none.
            self.step = cmp::max(self.step / 2, 1);
            self.expected = 0;
            return 0;
        }
        let expected = self.expected - progress;
        let starts = cmp::min(self.step, queued.saturating_sub(expected));
        self.step = self.step.saturating_mul(2);
        // Halved each time: a worker that takes nothing must not hide the others' progress for ever.
        self.expected = expected / 2 + starts;
        starts
    }
}

impl Shared {
    /// The delay after which the keeper starts a worker for queued work. `None` if a worker is started at once.
    pub(super) fn start_delay(&self, now: Snapshot) -> Option<Duration> {
        match self.config.growth {
            Growth::Stalled(delay) if now.running() > 0 && !self.is_below_core(now) => Some(delay),
            _ => None,
        }
    }

    /// Makes the keeper look at the queue after the delay. The caller notifies.
    #[cold]
    pub(super) fn leave_to_keeper(&self, delay: Duration) {
        // Race 42: relies on the look that is asked for, which comes after the end of that request.
        if self.stall.is_asked.load(Ordering::Relaxed) || !self.has_work() {
            return;
        }
        let taken = self.registry.lock().taken();
        let mut progress = self.stall.progress.lock();
        if !self.stall.is_asked.swap(true, Ordering::Relaxed) {
            progress.get_or_insert_with(|| Progress::since(taken));
            drop(progress);
            self.keeper.ask(KeeperJob::Growth, Instant::now() + delay);
        }
    }

    /// [`KeeperJob::Growth`].
    pub(super) fn look_for_progress(self: &Arc<Self>) {
        let (taken, queued) = (self.registry.lock().taken(), self.work_len());
        let starts = {
            let mut progress = self.stall.progress.lock();
            self.stall.is_asked.store(false, Ordering::Relaxed);
            progress.as_mut().map_or(0, |progress| progress.count_starts(taken, queued))
        };
        for _ in 0..starts {
            self.look_as(Notifier::Keeper);
        }
        // A thread that was refused is asked for after a pause, and not in between.
        if !self.keeper.is_starved() {
            // Race 42: the request has ended, now it fences and looks. Submitters do it in the reverse order.
            self.look();
        }
        let mut progress = self.stall.progress.lock();
        if !self.stall.is_asked.load(Ordering::Relaxed) {
            *progress = None;
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::Progress;

    #[test]
    fn the_starts_double_without_progress_and_become_fewer_with_it() {
        let mut progress = Progress::since(10);
        assert_eq!(progress.count_starts(10, 100), 1);
        // The new worker has taken its task, and none of the others has.
        assert_eq!(progress.count_starts(11, 100), 2);
        assert_eq!(progress.count_starts(13, 100), 4);
        assert_eq!(progress.count_starts(18, 100), 0, "five tasks: one of them by another worker");
        assert_eq!(progress.count_starts(18, 100), 4);
        assert_eq!(progress.count_starts(18, 5), 1, "four are on their way to five tasks");
    }

    #[test]
    fn a_worker_that_takes_nothing_hides_no_progress_for_ever() {
        let mut progress = Progress::since(0);
        assert_eq!(progress.count_starts(0, 1), 1);
        assert_eq!(progress.count_starts(0, 1), 0, "the new worker is on its way");
        assert_eq!(progress.count_starts(1, 1), 0, "another one has taken a task");
    }
}
