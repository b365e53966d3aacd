//! Tasks that end outside of workers: run on the caller, handed back, or dropped.

use crate::runtime::shared::Shared;
use crate::task::job::Outcome;

impl Shared {
    /// Counts one more task as in flight, for a thread that is about to run some outside of the workers without their
    /// entries. The caller knows of an entry that is in flight.
    pub(crate) fn hold_on_caller(&self) {
        self.in_flight.hold();
        self.caller_metrics.lock().add_credit(1);
    }

    /// Runs a task of a scope on the calling thread, which waits for it and [holds](Self::hold_on_caller) it.
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

    /// Undoes one [`hold_on_caller`](Self::hold_on_caller).
    pub(crate) fn release_on_caller(&self) {
        self.caller_metrics.lock().report(1);
        self.finish_on_caller();
    }

    /// Takes a task out of the queue for somebody who will not run it here.
    pub(crate) fn hand_back(&self) {
        self.release_permit();
        let metrics = self.caller_metrics.lock();
        metrics.hand_back();
        metrics.report(1);
        drop(metrics);
        self.finish_on_caller();
    }

    /// Ends a task that was dropped by somebody else than a worker.
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
            // The last worker may have stayed for this task alone (race 4), and all workers of a
            // closed pool have.
            self.recheck_all();
        }
    }
}
