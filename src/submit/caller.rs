//! What the pool counts for tasks that end outside the workers: awaited by a thread outside, handed
//! back, cancelled, or dropped.
//!
//! A canceller drops a task that no thread runs, and ends what the task counts for: its place in
//! flight, and its permit. The entry stays in the queue, stale: the thread that takes it counts
//! nothing.

use std::mem;
use std::sync::{Arc, Weak};

use crate::crew::{Count, WorkerMetrics};
use crate::sched::{
    CallerMark, Origin, Route, Shared, WorkerContext, caller_depth, off_trampoline,
};
use crate::sync::unwind::discard;
use crate::task::{
    Action, Begin, Job, Moment, Outcome, Run, TaskId, UnstartedList, mark_cancelled,
};

/// How deep a thread nests the drops of cancelled tasks, whose destructors may cancel others in
/// turn. A worker drops those beyond. Each level takes a few hundred bytes of the stack, and more
/// in a user's destructor.
const MAX_DEPTH: usize = 32;

/// Cancels a handle's task, and drops it on the calling thread if no thread runs it. Otherwise the
/// thread that runs or owns the task drops it.
pub(crate) fn cancel_task(origin: &Origin, task: Arc<dyn Run>) {
    let shared = Shared::find(origin.pool);
    let view = origin.view();
    let address = Arc::as_ptr(&task).cast();
    let is_dropped = match (&shared, &view) {
        (Some(shared), Ok(view)) => Route { shared, view: view.as_ref() }.cancel(task),
        // The pool or the view is gone: then the task was started, or handed back.
        _ => {
            task.cancel();
            true
        }
    };
    match origin.line() {
        // The next task of the group relies on its entry.
        Some((group, Some(id))) if is_dropped => drop(group.unstarted().take(id)),
        Some((group, _)) if !is_dropped && Route::may_drop_cancelled() => group.leave(address),
        _ => {}
    }
    // Either may be the last reference, and run a user's destructor.
    discard(view);
    discard(shared);
}

impl Route<'_> {
    /// Counts what happens on the calling thread: for the pool, and for the view.
    pub(crate) fn count_on_caller(self, count: &dyn Fn(&WorkerMetrics)) {
        count(&self.shared.caller_metrics.lock());
        if let Some(view) = self.view {
            count(&view.metrics.lock());
        }
    }

    /// Counts stale entries that are no longer in the queue, or no longer stale. `worker` is the
    /// calling thread, if it is one.
    pub(super) fn drop_entries(self, worker: Option<&WorkerContext>, count: usize) {
        if count == 0 {
            return;
        }
        match worker {
            Some(worker) => worker.drop_entries(count),
            None => {
                self.shared.caller_metrics.lock().drop_entries(count);
                self.shared.release_permits_of_entries(count);
            }
        }
        if let Some(view) = self.view {
            view.metrics.lock().drop_entries(count);
        }
    }

    /// Drops stale entries at the ends of the view's queue: unlike a channel, that can give entries
    /// back. `worker` is the calling thread, if it is one.
    pub(crate) fn skip_stale(self, worker: Option<&WorkerContext>) {
        let Some(view) = self.view else { return };
        let skipped = self.shared.policy.skip(view.id, |queued| queued.job.take_if_stale());
        self.drop_entries(worker, skipped.into_iter().map(discard).count());
    }

    /// Ends `count` tasks that ended on the calling thread.
    pub(crate) fn report_on_caller(self, count: usize) {
        self.count_on_caller(&|metrics| metrics.count_returned(count));
        self.finish_on_caller(count);
    }

    pub(super) fn finish_on_caller(self, count: usize) {
        if let Some(view) = self.view {
            view.finish(count);
        }
        let status = self.shared.finish(count);
        if status.is_quiet() && self.shared.counts.load().total() == 1 {
            // Race 4: the only worker may have stayed for these tasks, without a deadline.
            self.shared.idle.recheck_all();
        }
    }

    /// Ends a job that is over on the calling thread. Counts it first, and then removes the thread's
    /// mark: who finds nothing marked as running reads metrics that say the same.
    fn end_on_caller(self, mark: Option<CallerMark<'_>>, outcome: &mut Outcome) {
        self.count_on_caller(&|metrics| metrics.record(outcome));
        drop(mark);
        self.shared.handle_failure(outcome);
        // A stale entry was no task.
        if outcome.is_end() {
            self.report_on_caller(1);
        }
    }

    /// Drops a cancelled task by `drop_task`. Returns `false` if there was nothing to drop: another
    /// canceller has ended it (race 8).
    fn drop_cancelled(self, drop_task: impl FnOnce() -> Outcome) -> bool {
        // The task is in flight until it is dropped. The mark keeps its destructor from joining the
        // pool, which would wait for itself.
        let mark = CallerMark::begin(self.shared, self.view);
        let Some(mut outcome) = drop_task().unless_skipped() else { return false };
        self.end_on_caller(Some(mark), &mut outcome);
        true
    }

    /// Ends a queued task that holds a permit, if the queue is bounded, and is handed back.
    pub(crate) fn hand_back(self) {
        self.shared.release_permit();
        self.count_on_caller(&|metrics| metrics.add(Count::HandedBack, 1));
        self.report_on_caller(1);
    }

    /// Cancels the task if it has not been started, and drops what it captured, unless the drops on
    /// this thread are nested too deep. Returns `false` if it has not dropped that: another thread
    /// will, or has.
    pub(crate) fn cancel(self, task: Arc<dyn Run>) -> bool {
        if Self::may_drop_cancelled() {
            let begin = &mut |moment| self.begin_cancelled(moment);
            let cancel = || Arc::clone(&task).advance(Action::Cancel, Some(begin));
            if self.drop_cancelled(|| off_trampoline(cancel)) {
                return true;
            }
        }
        task.cancel();
        false
    }

    /// Cancels futures of a scope that is going to panic, which the caller waits for.
    pub(crate) fn cancel_futures(self, futures: &[Weak<dyn Run>]) {
        // All of them first: the destructor of one may wait for another, which a worker drops then.
        mark_cancelled(futures);
        for future in futures.iter().filter_map(Weak::upgrade) {
            self.cancel(future);
        }
    }

    /// Drops cancelled tasks of a group, which the caller has taken out of its list. Their entries
    /// stay in the queue.
    pub(crate) fn cancel_all(self, jobs: impl Iterator<Item = Job>) {
        for job in jobs {
            self.cancel_taken(|begin| job.advance(Action::Abandon, begin));
        }
    }

    /// Drops a late task of a scope, unless it was started, or the drops on this thread are nested
    /// too deep. Its entry stays in the queue.
    pub(crate) fn drop_expired(self, tasks: &UnstartedList, id: TaskId) {
        let claimed = Self::may_drop_cancelled().then(|| tasks.claim(id, |_| None));
        if let Some((task, _)) = claimed.flatten() {
            let drop = |begin: Begin<'_>| task.end(|job| job.advance(Action::Abandon, begin));
            self.cancel_taken(|begin| off_trampoline(|| drop(begin)));
        }
    }

    /// Drops a task of a scope or group that the caller has taken out of its list.
    fn cancel_taken(self, drop_task: impl FnOnce(Begin<'_>) -> Outcome) {
        let begin = &mut |_| self.begin_cancelled(Moment::TakenFromQueue { is_new: true });
        self.drop_cancelled(|| drop_task(begin));
    }

    /// Whether the calling thread may drop tasks that it has cancelled.
    pub(crate) fn may_drop_cancelled() -> bool {
        caller_depth() < MAX_DEPTH
    }

    /// Begins to drop a cancelled task: nothing of it is queued any more.
    fn begin_cancelled(self, moment: Moment) {
        self.count_on_caller(&|metrics| {
            metrics.count_begin();
            if let Moment::TakenFromQueue { .. } = moment {
                metrics.add(Count::Stale, 1);
            }
        });
        // A woken future has no permit.
        if moment == (Moment::TakenFromQueue { is_new: true }) {
            self.shared.leave_entry(true);
            self.skip_stale(None);
        }
    }

    /// Runs an accepted task that is not queued on the calling thread, marked as the task's caller.
    pub(crate) fn run_on_caller(self, job: Job) {
        self.advance_on_caller(job, Action::Run);
    }

    /// Runs an entry that is not queued any more on the calling thread, or drops its task.
    pub(crate) fn advance_on_caller(self, job: Job, action: Action) {
        let shared = self.shared;
        let _mark = CallerMark::begin(self.shared, self.view);
        // A new task has a permit.
        let mut has_permit = job.is_new();
        let mut again = Some(job);
        while let Some(job) = again.take() {
            self.count_on_caller(&WorkerMetrics::count_begin);
            let mut outcome = job.advance(action, &mut |_| {
                if mem::take(&mut has_permit) {
                    shared.release_permit();
                }
            });
            if mem::take(&mut has_permit) {
                shared.release_permits_of_entries(1);
            }
            self.end_on_caller(None, &mut outcome);
            if let Outcome::Yielded(task) = outcome {
                // If there is still no worker, poll the future again here.
                again = self.requeue(Job::woken(task)).err();
            }
        }
    }

    /// Drops an accepted task that is not queued, as cancelled.
    pub(crate) fn drop_on_caller(self, job: Job) {
        let begin = &mut |_| self.count_on_caller(&WorkerMetrics::count_begin);
        self.drop_cancelled(|| job.advance(Action::Abandon, begin));
    }
}
