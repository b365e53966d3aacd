//! What the pool counts for tasks that end outside the workers: awaited by a thread outside, handed back, or dropped.

use crate::runtime::shared::Shared;
use crate::task::job::Outcome;

impl Shared {
    /// Counts one more task as in flight, before a thread outside the workers runs tasks without their entries. Some
    /// entry must be in flight.
    pub(crate) fn hold_on_caller(&self) {
        self.in_flight.hold();
        self.caller_metrics.lock().add_credit(1);
    }

    /// Runs a task of a scope on the thread that waits for it. The caller has called
    /// [`hold_on_caller`](Self::hold_on_caller).
    pub(crate) fn run_awaited_on_caller(&self, run: impl FnOnce() -> Outcome) {
        let metrics = self.caller_metrics.lock();
        metrics.take();
        metrics.claim();
        drop(metrics);
        let mut outcome = run();
        self.handle_panic(&mut outcome);
        debug_assert!(outcome.is_end(), "a scope has closures only");
        self.caller_metrics.lock().record(&outcome);
    }

    /// Reverts one [`hold_on_caller`](Self::hold_on_caller).
    pub(crate) fn release_on_caller(&self) {
        self.caller_metrics.lock().report(1);
        self.finish_on_caller();
    }

    /// Ends a queued task that is handed back to the user.
    pub(crate) fn hand_back(&self) {
        self.release_permit();
        let metrics = self.caller_metrics.lock();
        metrics.hand_back();
        metrics.report(1);
        drop(metrics);
        self.finish_on_caller();
    }

    /// Ends a task that was dropped outside the workers.
    pub(crate) fn cancelled_on_caller(&self) {
        let metrics = self.caller_metrics.lock();
        metrics.take();
        metrics.record(&Outcome::Cancelled);
        metrics.report(1);
        drop(metrics);
        self.finish_on_caller();
    }

    pub(super) fn finish_on_caller(&self) {
        if self.in_flight.finish(1).is_quiet() {
            // Race 4: the last worker, or every worker of a closed pool, may have stayed for this task alone.
            self.recheck_all();
        }
    }
}
