//! Compensation: other workers run in the place of blocked ones, and blocked workers return.

use std::sync::Arc;

use crate::runtime::context::{self, Phase, RegionKind};
use crate::runtime::counts::{MustLook, Snapshot};
use crate::runtime::shared::Shared;
use crate::sync::{Ordering, fence};

/// How a worker returns from a region while too many others run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// It waits for its turn.
    InTurn,
    /// It runs at once, because it polls, and a poll must not block. Each such return may exceed `max_size` by one, until the next
    /// worker ends its task.
    AtOnce,
}

impl Shared {
    /// The calling worker changes `from` a region to another one, or begins or ends to be in any.
    pub(crate) fn change_region(
        self: &Arc<Self>,
        phase: Phase,
        from: Option<RegionKind>,
        to: Option<RegionKind>,
        returns: Return,
    ) {
        let mut relied = MustLook::owed();
        if from.is_none() {
            // Another worker may run the futures that the worker's poll has deferred, and have its place.
            if let Some(context) = context::current(self) {
                let _ = context.stop_deferring();
                relied = relied.and(self.lend_place(&context));
            }
        }
        if to.is_none() {
            self.take_place_back(returns);
        }
        if let Some(tracker) = &self.tracker {
            tracker.set_blocked(to.is_some());
        }
        let was_counted = from.is_some_and(|kind| self.leave_counted(kind));
        let is_counted = to.is_some_and(|kind| self.enter_counted(kind));
        if is_counted && !was_counted {
            relied = relied.and(self.counts.add_blocked());
            if phase == Phase::Tasks {
                self.release_permit();
            }
        } else if was_counted && !is_counted {
            self.return_from_region(phase, returns);
        }
        if to.is_some() {
            self.peak_blocked.raise(self.blocked_count(self.counts.load()));
            relied.look(self);
        }
    }

    /// Whether the count of blocked workers grows by a region that begins.
    fn enter_counted(&self, kind: RegionKind) -> bool {
        kind == RegionKind::Own
            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked
    }

    /// Whether the count of blocked workers shrinks by a region that ends. Not while more declared regions than `max_blocked` go on:
    /// the count that this one had is that of another one then, whose worker was not counted before.
    ///
    /// Each change of the declared count decides alone about one unit of `blocked`, so that is not subtracted twice. It is
    /// subtracted later, once the worker has returned: meanwhile another declared region may be counted as well.
    fn leave_counted(&self, kind: RegionKind) -> bool {
        kind == RegionKind::Own
            || self.declared.fetch_sub(1, Ordering::AcqRel) <= self.config.max_blocked
    }

    /// Whether a wait in a start hook is a region: only for as many hooks as `max_size`.
    pub(super) fn may_wait_in_hook(&self) -> bool {
        // The calling worker is one of them. Relaxed: an estimate.
        self.in_start_hook.load(Ordering::Relaxed) <= self.sizes.max()
    }

    /// Counts the calling worker as runnable again.
    pub(crate) fn return_from_region(&self, phase: Phase, returns: Return) {
        let may_run = || self.counts.return_from_region(self.sizes.max());
        if returns == Return::AtOnce {
            self.counts.remove_blocked();
        } else if !self.returning.is_empty() || !may_run() {
            self.wait_to_return();
        }
        if phase == Phase::Tasks {
            self.acquire_over_limit();
        }
    }

    #[cold]
    pub(super) fn wait_to_return(&self) {
        let parker = self.returning.enqueue();
        // Race 7: queued first, then looks for capacity; workers that stop running do it in
        // reverse.
        fence(Ordering::SeqCst);
        self.admit_returning();
        self.returning.wait(&parker, || self.counts.remove_blocked());
    }

    #[cold]
    pub(super) fn admit_returning(&self) {
        let max_size = self.sizes.max();
        self.returning.admit(|| self.counts.return_from_region(max_size));
    }

    /// How many workers are in blocking regions, counted in `blocked` or not. For statistics only.
    pub(crate) fn blocked_count(&self, now: Snapshot) -> usize {
        let declared = self.declared.load(Ordering::Relaxed);
        now.blocked() + declared.saturating_sub(self.config.max_blocked)
    }
}
