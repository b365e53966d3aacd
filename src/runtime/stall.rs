//! The stall monitor: under `Growth::Stalled` one worker keeps time over queued work.

use std::sync::Arc;

use crate::runtime::counts::Snapshot;
use crate::runtime::shared::Shared;

impl Shared {
    /// Whether a worker that came for queued work should become the stall monitor.
    pub(crate) fn should_monitor(&self) -> bool {
        let now = self.counts.load();
        !now.has_stall_monitor() && self.is_worth_monitoring(now)
    }

    /// Whether monitoring can have an effect: the monitor is above `core_size`, other workers are
    /// running, and one more could be started.
    pub(crate) fn is_worth_monitoring(&self, now: Snapshot) -> bool {
        now.total() > self.sizes.core() && now.running() > 1 && now.may_start(self.sizes.max())
    }

    /// How many jobs the workers have begun: entries taken from the queue, and tasks claimed by their waiters.
    pub(crate) fn taken(&self) -> usize {
        self.registry.lock().taken()
    }

    /// Starts up to `count` workers, while there is spare capacity. Returns how many.
    pub(crate) fn start_up_to(self: &Arc<Self>, count: usize) -> usize {
        (0..count).take_while(|_| self.report_start(self.start_for_queue(None))).count()
    }

    /// Rechecks the stall monitor, whose reason to wait may have ended (race 30).
    pub(crate) fn recheck_stall_monitor(&self, now: Snapshot) {
        if now.has_stall_monitor() {
            self.stall_monitor.recheck_all();
        }
    }
}
