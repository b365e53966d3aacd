//! [`Growth::Stalled`](crate::Growth::Stalled): the keeper starts workers for queued tasks when the
//! others make no progress.
//!
//! A thread that would start a worker for queued work leaves that to the keeper, unless no worker
//! is running that could make progress, or fewer than `core_size` exist. It asks the keeper for a
//! look after the delay, or relies on one that is asked for. A look compares how many tasks were
//! taken since the one before. Without progress it starts workers: one, then two, then four. It
//! asks for the next look as if it had pushed the tasks that are queued. So if none are left, or
//! another thread will look at them, the keeper sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::crew::{MustLook, Snapshot};
use crate::keeper::{KeeperJob, Progress};
use crate::sched::{EAGER, Growing, Notifier, Shared};
use crate::sync::Ordering;

/// Returns what the keeper does under [`Growth::Stalled`](crate::Growth::Stalled).
pub(crate) fn stalled(delay: Duration) -> Growing {
    let (ask, look) = (Shared::leave_to_keeper, Shared::look_for_progress);
    Growing { delay: Some(delay), ask, look, ..EAGER }
}

impl Shared {
    /// The delay after which the keeper starts a worker for queued work. `None` if a worker is
    /// started at once.
    pub(crate) fn start_delay(&self, now: Snapshot) -> Option<Duration> {
        self.config.growing.delay.filter(|_| now.running() > 0 && !self.is_below_core(now))
    }

    /// Makes the keeper look at the queue after the delay. The caller notifies.
    #[cold]
    fn leave_to_keeper(&self, delay: Duration) {
        // Race 42: relies on the look that is asked for, which comes after the end of that request.
        if self.stall.is_asked.load(Ordering::Relaxed) || !self.has_work() {
            return;
        }
        let taken = self.registry.lock().taken();
        let mut progress = self.stall.progress.lock();
        if !self.stall.is_asked.swap(true, Ordering::Relaxed) {
            progress.get_or_insert_with(|| Progress::since(taken));
            drop(progress);
            // A delay that the clock cannot represent never ends.
            if let Some(at) = Instant::now().checked_add(delay) {
                self.keeper.ask(KeeperJob::Growth, at);
            }
        }
    }

    /// [`KeeperJob::Growth`].
    fn look_for_progress(self: &Arc<Self>) {
        let (taken, queued) = (self.registry.lock().taken(), self.work_len());
        let starts = {
            let mut progress = self.stall.progress.lock();
            self.stall.is_asked.store(false, Ordering::Relaxed);
            progress.as_mut().map_or(0, |progress| progress.count_starts(taken, queued))
        };
        for _ in 0..starts {
            self.look_as(Notifier::Keeper);
        }
        // Race 42: the request has ended, now it fences and looks. Submitters do it in the reverse
        // order.
        MustLook::owed().look(self);
        let mut progress = self.stall.progress.lock();
        if !self.stall.is_asked.load(Ordering::Relaxed) {
            *progress = None;
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
