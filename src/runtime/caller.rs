//! What the pool counts for tasks that end outside the workers: awaited by a thread outside, handed back, or dropped.

use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::route::Route;
use crate::task::job::Outcome;

impl Route<'_> {
    /// Counts what happens on the calling thread: for the pool, and for the view.
    pub(super) fn count_on_caller(self, count: impl Fn(&WorkerMetrics)) {
        self.shared.caller_metrics.count(&count);
        if let Some(view) = self.view {
            view.count(count);
        }
    }

    /// Counts one more task as in flight, before a thread outside the workers runs tasks without their entries. Some
    /// entry must be in flight.
    pub(crate) fn hold_on_caller(self) {
        if let Some(view) = self.view {
            view.in_flight.hold();
        }
        self.shared.in_flight.hold();
        self.count_on_caller(|metrics| metrics.add_credit(1));
    }

    /// Runs a task of a scope on the thread that waits for it. The caller has called
    /// [`hold_on_caller`](Self::hold_on_caller).
    pub(crate) fn run_awaited_on_caller(self, run: impl FnOnce() -> Outcome) {
        self.count_on_caller(|metrics| {
            metrics.take();
            metrics.claim();
        });
        let mut outcome = run();
        self.shared.handle_failure(&mut outcome);
        debug_assert!(outcome.is_end(), "a scope has closures only");
        self.count_on_caller(|metrics| metrics.record(&outcome));
    }

    /// Reverts one [`hold_on_caller`](Self::hold_on_caller).
    pub(crate) fn release_on_caller(self) {
        self.count_on_caller(|metrics| metrics.report(1));
        self.finish_on_caller();
    }

    /// Ends stale entries that no worker has to take any more.
    pub(super) fn skip_on_caller(self, count: usize) {
        for _ in 0..count {
            self.shared.release_permit();
            self.count_on_caller(|metrics| {
                metrics.skip(1);
                metrics.report(1);
            });
            self.finish_on_caller();
        }
    }

    /// Ends a queued task that is handed back to the user.
    pub(crate) fn hand_back(self) {
        self.shared.release_permit();
        self.count_on_caller(|metrics| {
            metrics.hand_back();
            metrics.report(1);
        });
        self.finish_on_caller();
    }

    /// Ends a task that was dropped outside the workers.
    pub(crate) fn cancelled_on_caller(self) {
        self.count_on_caller(|metrics| {
            metrics.take();
            metrics.record(&Outcome::Cancelled);
            metrics.report(1);
        });
        self.finish_on_caller();
    }

    pub(super) fn finish_on_caller(self) {
        if let Some(view) = self.view {
            view.in_flight.finish(1);
        }
        let status = self.shared.in_flight.finish(1);
        if status.is_quiet() {
            self.shared.recheck_quiet(status);
        }
    }
}
