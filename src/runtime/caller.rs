//! What the pool counts for tasks that end outside the workers: awaited by a thread outside, handed back, cancelled, or
//! dropped.
//!
//! A canceller drops a task that no thread runs, and ends what the task counts for: its place in flight, and the permit of its
//! entry. The entry stays in the queue, *hollow*: the thread that takes it counts nothing.

use std::sync::Arc;

use crate::runtime::context::{caller_depth, mark_caller};
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::route::{Origin, Route};
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::unwind::discard;
use crate::task::job::{Action, Job, Moment, Outcome, Run};

/// How deep a thread nests the drops of cancelled tasks, whose destructors may cancel others in turn. A worker drops those
/// beyond. Each level takes a few hundred bytes of the stack, and more in a user's destructor.
const MAX_DEPTH: usize = 32;

/// Cancels a handle's task, and drops it on the calling thread if no thread runs it. Otherwise the thread that runs or owns
/// the task drops it.
pub(crate) fn cancel_task(origin: &Origin, task: Arc<dyn Run>) {
    let shared = Shared::find(origin.pool);
    let view = origin.in_view().map(|in_view| in_view.view.upgrade());
    match (&shared, &view) {
        (Some(shared), None) => Route { shared, view: None }.cancel(task),
        (Some(shared), Some(Some(view))) => Route { shared, view: Some(view) }.cancel(task),
        // The pool or the view is gone: then the task was started, or handed back.
        _ => drop(task.cancel()),
    }
    // Either may be the last reference, and run a user's destructor.
    discard(view);
    discard(shared);
}

/// What [`Action::Cancel`] tells of a task whose entry is the one that it was submitted with.
const HOLLOWED: Moment = Moment::Hollowed { is_new: true };

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

    /// As [`cancel_task`].
    pub(crate) fn cancel(self, task: Arc<dyn Run>) {
        let may_drop = Self::may_drop_cancelled();
        if may_drop {
            // As in `drop_on_caller`.
            let mark = mark_caller(self.shared);
            let begin = &mut |moment| self.begin_cancelled(moment);
            let outcome = off_trampoline(|| Arc::clone(&task).advance(Action::Cancel, Some(begin)));
            drop(mark);
            if let Some(outcome) = outcome.unless_skipped() {
                return self.end_cancelled(outcome);
            }
        }
        // A task of a group that waits for a slot, or has waited for one. The group is dropped here if this was its last task.
        if let Some(line) = Arc::clone(&task).cancel().filter(|_| may_drop) {
            line.leave(Arc::as_ptr(&task).cast());
        }
    }

    /// Drops the tasks of a cancelled group, which the caller has taken out of its list. Their entries are hollow.
    pub(crate) fn cancel_all(self, jobs: impl Iterator<Item = Job>) {
        for job in jobs {
            let mark = mark_caller(self.shared);
            let outcome = match job.withdraw() {
                Ok(job) => {
                    self.begin_cancelled(HOLLOWED);
                    job.abandon();
                    Outcome::Cancelled
                }
                // Claimed or cancelled through its handle, or a future that has waited for a slot.
                Err(job) => job.run_telling(|| self.begin_cancelled(HOLLOWED)),
            };
            drop(mark);
            match outcome {
                // Its waiter runs it, and has counted it on its own. The entry is no longer in flight.
                Outcome::Skipped => {
                    self.shared.release_permit();
                    self.count_on_caller(|metrics| metrics.report(1));
                    self.finish_on_caller();
                }
                // Another canceller has dropped it, and ended what it counts for.
                Outcome::Hollow => {}
                outcome => self.end_cancelled(outcome),
            }
        }
    }

    /// Whether the calling thread may drop tasks that it has cancelled.
    pub(crate) fn may_drop_cancelled() -> bool {
        caller_depth() < MAX_DEPTH
    }

    /// Begins to drop a cancelled task: nothing of it is queued any more.
    fn begin_cancelled(self, moment: Moment) {
        let is_hollowed = matches!(moment, Moment::Hollowed { .. });
        self.count_on_caller(|metrics| {
            metrics.take();
            if is_hollowed {
                metrics.claim();
            }
        });
        // Only the entry that a task was submitted with has a permit.
        if moment == HOLLOWED {
            self.shared.release_permit();
        }
    }

    /// Ends a cancelled task that the calling thread has dropped.
    fn end_cancelled(self, mut outcome: Outcome) {
        self.shared.handle_failure(&mut outcome);
        self.count_on_caller(|metrics| {
            metrics.record(&outcome);
            metrics.report(1);
        });
        self.finish_on_caller();
    }

    /// Ends what an immediate shutdown has taken from the queue and does not hand back. It runs no task.
    pub(crate) fn end_drained(self, job: Job) {
        let mark = mark_caller(self.shared);
        let is_new = job.is_new();
        self.count_on_caller(WorkerMetrics::take);
        let mut outcome = job.run();
        drop(mark);
        self.shared.handle_failure(&mut outcome);
        self.count_on_caller(|metrics| metrics.record(&outcome));
        if outcome.is_end() {
            // A hollow entry has no permit, so only now.
            if is_new {
                self.shared.release_permit();
            }
            self.count_on_caller(|metrics| metrics.report(1));
            self.finish_on_caller();
        }
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
