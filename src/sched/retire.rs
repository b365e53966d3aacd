//! When a worker leaves, and which worker replaces it.

use std::sync::Arc;
use std::time::Instant;

use crate::crew::{MustLook, Snapshot, ThreadKey};
use crate::sched::shared::Shared;
use crate::sched::worker::Retire;

impl Shared {
    /// Until when an idle worker may park. `None`: until it is rechecked.
    pub(super) fn rest_until(&self, now: Snapshot, since: Instant) -> Option<Instant> {
        let total = now.total();
        if total <= self.sizes.core() || (total == 1 && !self.in_flight.status().is_quiet()) {
            return None;
        }
        since.checked_add(self.sizes.keep_alive())
    }

    /// Whether more workers are running than may: some have returned from regions, or the limit was
    /// lowered.
    #[inline]
    pub(super) fn is_above_limit(&self, now: Snapshot) -> bool {
        now.running() > self.sizes.limit()
            && now.running() > self.own_limit(now)
            && !(self.policy.is_used()
                && now.running() <= self.sizes.max()
                && self.has_ready_future())
    }

    /// Counts the calling worker as gone, if `why` still holds. The worker is not on the idle
    /// list. `None`: it stays.
    #[must_use]
    pub(super) fn try_retire(
        self: &Arc<Self>,
        why: Retire,
        key: ThreadKey,
        index: usize,
    ) -> Option<MustLook> {
        loop {
            // Decided under the lock under which the count changes, so no two workers leave where
            // one may.
            let mut registry = self.registry.lock();
            let now = self.counts.load();
            if why == Retire::Recycled && self.needs_successor(now) {
                drop(registry);
                // Started before this worker leaves, under one hold of the lock: if the thread is
                // refused, this worker stays (law 7), and no submitter finds the pool one worker
                // short.
                let may = |now: Snapshot| self.needs_successor(now);
                match self.start_worker(None, Some((key, index)), &may) {
                    Ok(true) => return Some(MustLook::owed()),
                    // Not needed any more. In a pool that is over, the start has dropped the
                    // entries that are left.
                    Ok(false) => continue,
                    // It is still registered and counted.
                    Err(error) => {
                        self.report_refusal(&error);
                        return None;
                    }
                }
            }
            let is_allowed = match why {
                Retire::Surplus => now.total() > self.sizes.core(),
                Retire::Excess => now.runnable() > self.sizes.max(),
                Retire::Recycled | Retire::Over => true,
            };
            if !is_allowed {
                return None;
            }
            // Races 3 and 4: the last worker stays while anything is in flight. It subtracts itself
            // before it looks.
            let (now, owed) = self.counts.remove_worker();
            if now.total() == 0 && !self.in_flight.status().is_quiet() {
                self.counts.add_worker();
                if why == Retire::Recycled {
                    // The quota is used: the task that came just now needs a successor.
                    continue;
                }
                return None;
            }
            if now.total() == 0 {
                self.keeper.recheck();
            }
            registry.deregister(key);
            if self.config.hooks.on_worker_stop.is_none() {
                registry.return_index(index);
            }
            return Some(owed);
        }
    }

    /// Whether a worker that leaves needs a successor: there is work for it, or the pool would fall
    /// below `core_size`.
    fn needs_successor(&self, now: Snapshot) -> bool {
        let others = now.total() - 1;
        let status = self.in_flight.status();
        !self.is_above_limit(now)
            && ((others < self.sizes.core() && !status.is_closed())
                || (others == 0 && !status.is_quiet())
                || (self.has_work() && now.idle() == 0))
    }
}
