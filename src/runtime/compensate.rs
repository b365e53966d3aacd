//! Blocking regions as the pool sees them: other workers run in the place of blocked ones, and blocked workers come back.

use std::sync::Arc;

use crate::runtime::context::{self, Kind, Phase};
use crate::runtime::counts::Snapshot;
use crate::runtime::shared::Shared;
use crate::sync::parker::Parker;
use crate::sync::{Ordering, fence};

/// What a pool is to its workers while they block.
impl Shared {
    /// The calling worker blocks: others run in its place. `false` if that would have taken a thread that the system refused.
    pub(super) fn enter_region(self: &Arc<Self>, phase: Phase, kind: Kind) -> bool {
        if let Some(context) = context::current(self) {
            context.stop_deferring();
        }
        let is_replaced = kind == Kind::Own
            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked;
        if is_replaced {
            let now = self.counts.add_blocked();
            self.recheck_stall_monitor(now);
            if phase == Phase::Tasks {
                self.end_work();
            }
        }
        self.peak_blocked.raise(self.blocked_count(self.counts.load()));
        self.stopped_running(self.counts.load());
        // As race 1: the place is free first, then the look at the queue; submitters do it the other way round.
        self.notify_next(None)
    }

    pub(super) fn exit_region(self: &Arc<Self>, phase: Phase, kind: Kind) {
        match kind {
            Kind::Own => self.return_from_region(phase),
            Kind::Declared => self.return_from_declared_region(),
        }
    }

    pub(super) fn begin_own_wait(self: &Arc<Self>) -> bool {
        if self.declared.fetch_sub(1, Ordering::AcqRel) <= self.config.max_blocked {
            // Away as before.
            return true;
        }
        // As many are away for their declared regions as before: one more for its own pool.
        self.replace_another()
    }

    pub(super) fn end_own_wait(self: &Arc<Self>) {
        if self.declared.fetch_add(1, Ordering::AcqRel) >= self.config.max_blocked {
            self.return_from_region(Phase::Tasks);
        }
    }

    pub(super) fn may_wait_in_hook(&self) -> bool {
        // The calling worker is one of them.
        self.in_start_hook.load(Ordering::Relaxed) <= self.sizes.max()
    }

    pub(super) fn listen_for_refusals(&self, parker: &Arc<Parker>) {
        self.blocked.add(parker);
    }

    pub(super) fn stop_listening(&self, parker: &Arc<Parker>) {
        self.blocked.remove(parker);
    }

    pub(super) fn retry(self: &Arc<Self>) -> bool {
        // With a running worker there is hope; should it block too, it asks itself, and tells us.
        self.counts.load().running() > 0 || self.notify_next(None)
    }
}

impl Shared {
    /// Counts the calling worker as runnable again; waits in line if more are running than may be.
    pub(super) fn return_from_region(&self, phase: Phase) {
        let max_size = self.sizes.max();
        let returned =
            if self.returning.is_empty() { self.counts.return_from_region(max_size) } else { None };
        match returned {
            Some(now) => self.recheck_stall_monitor(now),
            None => self.return_in_line(),
        }
        match &self.capacity {
            Some(capacity) if phase == Phase::Tasks => capacity.begin_work(),
            _ => {}
        }
    }

    /// Counts one more worker as away, which runs a task and is in a region already. `false` as for
    /// [`enter_region`](Self::enter_region).
    pub(super) fn replace_another(self: &Arc<Self>) -> bool {
        let now = self.counts.add_blocked();
        self.recheck_stall_monitor(now);
        self.end_work();
        self.stopped_running(self.counts.load());
        self.notify_next(None)
    }

    #[cold]
    pub(super) fn return_in_line(&self) {
        let parker = self.returning.join();
        // In line first, then a look whether there is a place; workers that stop to run do it the other way round.
        fence(Ordering::SeqCst);
        self.admit_returning();
        self.returning.wait(&parker, || {
            self.counts.remove_blocked();
        });
        self.recheck_stall_monitor(self.counts.load());
    }

    /// As [`return_from_region`](Self::return_from_region), for one of those that `max_blocked` limits: the number of
    /// them that count as away is never larger than that, nor than the number of them all.
    pub(super) fn return_from_declared_region(self: &Arc<Self>) {
        let one_less = |declared| (declared > self.config.max_blocked).then(|| declared - 1);
        // One that is not counted takes the place of this one, which need not wait then.
        if self.declared.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        self.return_from_region(Phase::Tasks);
        if self.declared.fetch_sub(1, Ordering::AcqRel) > self.config.max_blocked {
            // Another one has come meanwhile, and was not counted.
            self.replace_another();
        }
    }

    /// A worker has stopped to run: it is idle, has left, or is away, by a change of the counts to `now`. Fences, then lets
    /// out a worker that is in line.
    #[inline]
    pub(crate) fn stopped_running(&self, now: Snapshot) {
        fence(Ordering::SeqCst);
        // A worker in line counts as away.
        if now.blocked() > 0 && !self.returning.is_empty() {
            self.admit_returning();
        }
    }

    #[cold]
    pub(super) fn admit_returning(&self) {
        let max_size = self.sizes.max();
        self.returning.admit(|| self.counts.return_from_region(max_size).is_some());
        self.recheck_stall_monitor(self.counts.load());
    }

    /// How many workers are in blocking regions, whether or not they are counted as away.
    pub(super) fn blocked_count(&self, now: Snapshot) -> usize {
        let declared = self.declared.load(Ordering::Relaxed);
        now.blocked() + declared.saturating_sub(self.config.max_blocked)
    }
}
