//! Compensation: other workers run in the place of blocked ones, and blocked workers return.

use std::sync::Arc;

use crate::runtime::context::{self, Phase, RegionKind};
use crate::runtime::counts::{MustLook, Snapshot};
use crate::runtime::shared::Shared;
use crate::sync::{Ordering, fence};

impl Shared {
    /// Counts the calling worker as blocked.
    pub(crate) fn enter_region(self: &Arc<Self>, phase: Phase, kind: RegionKind) {
        // Also for the futures that the worker's poll has deferred, and for its place.
        let mut relied = MustLook::owed();
        if let Some(context) = context::current(self) {
            let _ = context.stop_deferring();
            relied = relied.and(self.lend_place(&context));
        }
        self.track_blocked(true);
        let is_replaced = kind == RegionKind::Own
            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked;
        if is_replaced {
            relied = relied.and(self.counts.add_blocked());
            if phase == Phase::Tasks {
                self.release_permit();
            }
        }
        self.peak_blocked.raise(self.blocked_count(self.counts.load()));
        relied.look(self);
    }

    pub(crate) fn exit_region(self: &Arc<Self>, phase: Phase, kind: RegionKind) {
        self.take_place_back();
        self.track_blocked(false);
        match kind {
            RegionKind::Own => self.return_from_region(phase),
            RegionKind::Declared => self.return_from_declared_region(),
        }
    }

    /// For a pool that tracks its tasks: the calling worker's innermost task is in a region or not.
    fn track_blocked(&self, is_blocked: bool) {
        if let Some(tracker) = &self.tracker {
            tracker.set_blocked(is_blocked);
        }
    }

    /// A worker in a declared region begins a wait for its own pool.
    pub(crate) fn begin_own_wait(self: &Arc<Self>) {
        // Within the bound it was counted for its declared region, and is now counted for its own wait.
        if self.declared.fetch_sub(1, Ordering::AcqRel) > self.config.max_blocked {
            // Another declared region keeps the count that this one had: its own wait needs one more.
            self.replace_counted(self.counts.add_blocked());
        }
    }

    /// Undoes [`begin_own_wait`](Self::begin_own_wait): the worker is in its declared region again.
    pub(crate) fn end_own_wait(self: &Arc<Self>) {
        if self.declared.fetch_add(1, Ordering::AcqRel) >= self.config.max_blocked {
            // It counts as running during the rest of its declared region.
            self.return_from_region(Phase::Tasks);
        }
    }

    /// As [`exit_region`](Self::exit_region), for a region that polls have begun. Does not wait: a poll must not block. Each such
    /// return may exceed `max_size` by one, until the next worker ends its task.
    pub(super) fn exit_region_at_once(self: &Arc<Self>, phase: Phase) {
        self.take_place_at_once();
        self.track_blocked(false);
        self.return_at_once(phase);
    }

    /// As [`end_own_wait`](Self::end_own_wait), without waiting.
    pub(super) fn end_own_wait_at_once(self: &Arc<Self>) {
        if self.declared.fetch_add(1, Ordering::AcqRel) >= self.config.max_blocked {
            self.return_at_once(Phase::Tasks);
        }
    }

    fn return_at_once(&self, phase: Phase) {
        self.counts.remove_blocked();
        if phase == Phase::Tasks {
            self.acquire_over_limit();
        }
    }

    /// Whether a wait in a start hook is a region: only for as many hooks as `max_size`.
    pub(super) fn may_wait_in_hook(&self) -> bool {
        // The calling worker is one of them. Relaxed: an estimate.
        self.in_start_hook.load(Ordering::Relaxed) <= self.sizes.max()
    }

    /// Counts the calling worker as runnable again. Waits while too many are running.
    pub(crate) fn return_from_region(&self, phase: Phase) {
        let max_size = self.sizes.max();
        let returned =
            if self.returning.is_empty() { self.counts.return_from_region(max_size) } else { None };
        if returned.is_none() {
            self.wait_to_return();
        }
        if phase == Phase::Tasks {
            self.acquire_over_limit();
        }
    }

    /// One more worker in a region has just been counted as blocked. Releases its permit, and looks for work for another one in
    /// its place.
    fn replace_counted(self: &Arc<Self>, blocked: MustLook) {
        self.release_permit();
        blocked.look(self);
    }

    #[cold]
    pub(super) fn wait_to_return(&self) {
        let parker = self.returning.enqueue();
        // Race 7: queued first, then looks for capacity; workers that stop running do it in
        // reverse.
        fence(Ordering::SeqCst);
        self.admit_returning();
        self.returning.wait(&parker, || {
            self.counts.remove_blocked();
        });
    }

    /// As [`return_from_region`](Self::return_from_region), for a declared region. Keeps the share
    /// of `blocked` for declared regions at or below both `max_blocked` and the declared count.
    pub(super) fn return_from_declared_region(self: &Arc<Self>) {
        let max_blocked = self.config.max_blocked;
        let one_less = |declared| (declared > max_blocked).then(|| declared - 1);
        // A worker that was not counted takes over the share of this one, which need not wait. Acquire if not: this worker may
        // have taken over a share itself, and sees then that it is counted.
        if self.declared.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).is_ok() {
            return;
        }
        self.return_from_region(Phase::Tasks);
        // Race 28: while the declared count is above the bound, another worker is in a region without being counted. Counted
        // first: once the declared count has changed, that worker takes itself for counted, and may leave and subtract itself.
        let mut declared = self.declared.load(Ordering::Relaxed);
        loop {
            let counted = (declared > max_blocked).then(|| self.counts.add_blocked());
            let changed = self.declared.compare_exchange(
                declared,
                declared - 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match (changed, counted) {
                (Ok(_), Some(blocked)) => return self.replace_counted(blocked),
                (Ok(_), None) => return,
                (Err(now), counted) => {
                    declared = now;
                    if counted.is_some() {
                        self.counts.remove_blocked();
                    }
                }
            }
        }
    }

    #[cold]
    pub(super) fn admit_returning(&self) {
        let max_size = self.sizes.max();
        self.returning.admit(|| self.counts.return_from_region(max_size).is_some());
    }

    /// How many workers are in blocking regions, counted in `blocked` or not. For statistics only.
    pub(crate) fn blocked_count(&self, now: Snapshot) -> usize {
        let declared = self.declared.load(Ordering::Relaxed);
        now.blocked() + declared.saturating_sub(self.config.max_blocked)
    }
}
