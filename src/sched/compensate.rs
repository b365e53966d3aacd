//! Compensation: other workers run in the place of blocked ones, and blocked workers return.

use crate::crew::{MustLook, Snapshot};
use crate::sched::context::{RegionKind, WorkerContext};
use crate::sched::shared::Shared;
use crate::sync::{Ordering, fence};

impl WorkerContext {
    /// Whether a wait of this worker is a region. In a start hook it is only if no more than
    /// `max_size` workers are in theirs.
    pub(super) fn may_wait(&self) -> bool {
        // The calling worker is one of them. Relaxed: an estimate.
        let in_hooks = || self.shared.in_start_hook.load(Ordering::Relaxed);
        self.runs_tasks.get() || in_hooks() <= self.shared.sizes.max()
    }

    /// Changes the blocking region of the calling worker, which has this context, or begins or ends
    /// one. The order matters:
    ///
    /// 1. Sets the region, before the pool is told, which may call user code.
    /// 2. If the worker was in none: shares the futures that its poll has woken, and releases its
    ///    place. Both before it counts as blocked: the worker that runs instead takes them.
    /// 3. If the worker will be in none: takes its place again, while it still counts as blocked.
    ///    It may have to wait for it.
    /// 4. Tells the observers.
    /// 5. Leaves the region before: counts as runnable, for which it may have to wait too, then
    ///    acquires a permit. Not if it keeps its unit of `blocked`.
    /// 6. Enters the next region, after 5, so that it never has two units: counts as blocked, then
    ///    releases its permit. The submitter that gets the permit finds spare capacity.
    /// 7. If the worker is in a region now, looks, after all changes that others may rely on: one
    ///    look for 2 and 6 (rule A).
    pub(crate) fn change_region(&self, to: Option<RegionKind>) {
        let shared = &self.shared;
        // Set before the pool is told, which may call user code.
        let from = self.region.replace(to);
        self.metrics.is_in_region.set(to.is_some());
        let mut owed = MustLook::owed();
        if from.is_none() {
            // Another worker may run the futures that the worker's poll has deferred, and have its
            // place.
            self.stop_deferring();
            owed = owed.and(shared.lend_place(self));
            owed = owed.and(shared.end_extra(&self.metrics));
        }
        if to.is_none() {
            shared.take_place_back(self);
        }
        for observer in &shared.observers {
            observer.set_blocked(to.is_some());
        }
        let is_counted = from.is_some_and(|kind| shared.leave_counted(kind));
        if !(is_counted && to.is_some_and(|kind| shared.keep_counted(kind))) {
            if is_counted {
                // Before it enters: a worker that is in a declared region and waits to return would
                // have two units, its own and one that another worker leaves to it.
                shared.return_from_region();
                if self.runs_tasks.get() {
                    shared.acquire_over_limit();
                }
            }
            if to.is_some_and(|kind| shared.enter_counted(kind)) {
                owed = owed.and(shared.counts.add_blocked());
                if self.runs_tasks.get() {
                    shared.release_permit();
                }
            }
        }
        if to.is_some() {
            shared.peak_blocked.raise(shared.blocked_count(shared.counts.load()));
            owed.look(shared);
        }
    }
}

impl Shared {
    /// Whether a worker that is counted as blocked stays so in the region that begins. Otherwise it
    /// has not entered that one.
    fn keep_counted(&self, kind: RegionKind) -> bool {
        let enter = |declared| (declared < self.config.max_blocked).then_some(declared + 1);
        kind == RegionKind::Own
            || self.declared.fetch_update(Ordering::AcqRel, Ordering::Relaxed, enter).is_ok()
    }

    /// Whether the count of blocked workers grows by a region that begins.
    fn enter_counted(&self, kind: RegionKind) -> bool {
        kind == RegionKind::Own
            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked
    }

    /// Whether the count of blocked workers shrinks by a region that ends. Not while more declared
    /// regions than `max_blocked` go on: the count that this one had is that of another one then,
    /// whose worker was not counted before.
    ///
    /// Each change of the declared count decides alone about one unit of `blocked`, so that is not
    /// subtracted twice. It is subtracted later, once the worker has returned: meanwhile another
    /// declared region may be counted as well.
    ///
    /// `max_blocked` never changes: with a higher one, this would subtract a unit that was never
    /// added.
    ///
    /// Release and acquire, as in each change of that count: a worker that leaves its unit to
    /// another one has added it to `blocked` before, so the other subtracts it afterwards.
    fn leave_counted(&self, kind: RegionKind) -> bool {
        kind == RegionKind::Own
            || self.declared.fetch_sub(1, Ordering::AcqRel) <= self.config.max_blocked
    }

    /// Counts the calling worker as runnable again.
    pub(crate) fn return_from_region(&self) {
        let may_run = || self.counts.return_from_region(self.sizes.max());
        if !self.returning.is_empty() || !may_run() {
            self.wait_to_return();
        }
    }

    #[cold]
    fn wait_to_return(&self) {
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

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
