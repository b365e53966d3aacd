//! The stall monitor: under `Growth::Stalled` one worker keeps time over queued work.

use std::sync::Arc;

use crate::runtime::counts::Snapshot;
use crate::runtime::shared::Shared;

impl Shared {
    /// Whether a worker that has come for work should keep the watch instead: under [`Growth::Stalled`], the last one
    /// above the core that is free, while others are at work and more could be started.
    pub(crate) fn should_monitor(&self) -> bool {
        let now = self.counts.load();
        !now.has_stall_monitor() && self.is_worth_monitoring(now)
    }

    /// Whether a watch can have a consequence.
    pub(crate) fn is_worth_monitoring(&self, now: Snapshot) -> bool {
        now.total() > self.sizes.core() && now.running() > 1 && now.may_start(self.sizes.max())
    }

    /// How often a task or future has been taken from the queue.
    pub(crate) fn taken(&self) -> usize {
        self.registry.lock().taken()
    }

    /// Starts up to `count` workers, as long as there is capacity. Returns how many.
    pub(crate) fn start_stalled(self: &Arc<Self>, count: usize) -> usize {
        (0..count).take_while(|_| self.start_for_queue(None).is_ok()).count()
    }

    /// Perhaps there is nothing to watch for any more: others have gone, there is no capacity, or no task is queued.
    pub(crate) fn recheck_stall_monitor(&self, now: Snapshot) {
        if now.has_stall_monitor() {
            self.stall_monitor.recheck_all();
        }
    }
}
