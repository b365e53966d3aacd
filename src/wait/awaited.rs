//! A thread that waits for a task runs that task itself (law 10).
//!
//! A worker that waits for an unstarted task of its own pool claims that task and runs it on its
//! own stack. So a wait costs a thread only if its task already runs. A thread outside the pool
//! does the same for a scope that it waits for. The waiter runs no other task: it depends on this
//! one anyway, so a lock that it holds deadlocks neither more nor less than if it blocked.
//!
//! If the task's entry is the newest in the worker's local queue, the worker takes it back. So
//! nested waits leave nothing behind, unless other workers take part. Otherwise the entry stays in
//! the queue, stale, until a worker takes and drops it, or another task of its scope or group
//! relies on it. A claim moves no count of tasks in flight: the task is, until it ends.

use std::sync::Weak;

use crate::sched::{
    Below, CallerMark, Origin, OutsideOfRegion, Route, WorkerContext, is_caller_of, off_trampoline,
};
use crate::task::{
    Action, Begin, Claim, Entry, Job, Moment, Outcome, Run, ScopeRecord, TaskId, UnstartedList,
};
use crate::thread::{may_nest, nest};

/// Runs a handle's task if the caller is a worker of its pool and the task has not been started. Not
/// while the task's view has no place: then it stays queued, and can expire, be cancelled and be
/// handed back. Of a paused view no worker takes it: so the caller claims it and waits for the
/// place, unless it may wait `at_once` only. It has a deadline then, or waits for others too.
pub(crate) fn run_awaited_task(origin: &Origin, task: &Weak<dyn Run>, at_once: bool) {
    if task.strong_count() == 0 {
        return;
    }
    let Some(worker) = WorkerContext::of_pool(origin.pool).filter(|_| may_nest()) else { return };
    let Ok(view) = origin.view() else { return };
    let route = Route { shared: &worker.shared, view: view.as_ref() };
    if let Some((group, Some(id))) = origin.line() {
        // By the list: neither the task nor an entry for it stays behind.
        return run_awaited_scoped_task(route, group.unstarted(), id, at_once);
    }
    if has_no_place(Some(&worker), route, at_once) {
        return;
    }
    on_top(Some(&worker), route, |claimer| {
        // By its address, which is no other task's while the handle exists: the entry has a
        // reference to the task.
        match claimer.take_back(|job| job.is_entry_of(task.as_ptr())) {
            Some(entry) => claimer.run(Entry::TakenBack, || entry.run()),
            None => {
                let Some(task) = task.upgrade() else { return };
                let begin: Begin<'_> = &mut |moment| {
                    if moment == Moment::Taken {
                        claimer.begin(Entry::Stale);
                    }
                };
                let outcome = task.advance(Action::RunAwaited, Some(begin));
                if let Some(outcome) = outcome.unless_skipped() {
                    claimer.end(outcome);
                }
            }
        }
    });
}

/// Runs one task of a scope or group if it has not been started, and the caller is a worker of its
/// pool, or a thread outside that runs a task of the pool. `at_once`: as of [`run_awaited_task`].
pub(crate) fn run_awaited_scoped_task(
    route: Route<'_>,
    unstarted: &UnstartedList,
    id: TaskId,
    at_once: bool,
) {
    let worker = WorkerContext::current(route.shared);
    if !may_nest() || has_no_place(worker.as_deref(), route, at_once) {
        return;
    }
    if worker.is_some() || is_caller_of(route.shared) {
        on_top(worker.as_deref(), route, |claimer| {
            let claimed = unstarted.claim(id, |wanted| claimer.take_back(wanted));
            if let Some((task, entry)) = claimed {
                claimer.run(entry, || task.run());
            }
        });
    }
}

/// Runs the unstarted tasks of a scope or group, newest first, while the caller `depends` on them.
/// Runs none if the caller is no worker of their pool, unless `nest_outside` is set. Returns what
/// a scope has learned if all its tasks have ended then. `at_once`: as of [`run_awaited_task`].
pub(crate) fn run_awaited_tasks(
    route: Route<'_>,
    unstarted: &UnstartedList,
    nest_outside: bool,
    at_once: bool,
    depends: impl Fn() -> bool,
) -> Option<ScopeRecord> {
    let worker = WorkerContext::current(route.shared);
    let may_run = nest_outside || worker.is_some();
    if !may_nest() || !may_run || has_no_place(worker.as_deref(), route, at_once) {
        return None;
    }
    on_top(worker.as_deref(), route, |claimer| {
        loop {
            match unstarted.claim_newest(&depends, |wanted| claimer.take_back(wanted)) {
                Claim::Task(task, entry) => claimer.run(entry, || task.run()),
                Claim::Ended(record) => return Some(record),
                Claim::Cancel(futures) => route.cancel_futures(&futures),
                Claim::Nothing => return None,
            }
        }
    })
}

/// Whether the calling worker, if it is one, leaves tasks of the view to others.
fn has_no_place(worker: Option<&WorkerContext>, route: Route<'_>, at_once: bool) -> bool {
    worker.is_some_and(|worker| !route.shared.may_begin_on_top(worker, route.view, at_once))
}

/// Calls `f`, which runs claimed tasks on top of the one that the thread runs already. Their
/// follow-up work runs now: the trampoline's loop is below them and may depend on it.
fn on_top<'a, R>(
    worker: Option<&'a WorkerContext>,
    route: Route<'a>,
    f: impl FnOnce(&mut Claimer<'a>) -> R,
) -> R {
    let mut claimer = Claimer { worker, route, below: None, outside: None, ended: 0 };
    let result = nest(|| off_trampoline(|| f(&mut claimer)));
    claimer.leave();
    result
}

/// A thread that runs claimed tasks of one view, one after the other, on top of the task that waits
/// for them.
struct Claimer<'a> {
    /// `None` for a thread outside of the pool, which runs tasks of its scope as their caller.
    worker: Option<&'a WorkerContext>,
    route: Route<'a>,
    /// `None` until a worker has a task to run: leaving a region, and getting a place, may wait.
    below: Option<Below<'a>>,
    /// As `below`, for a thread outside.
    outside: Option<(CallerMark<'a>, OutsideOfRegion)>,
    /// How many tasks a thread outside has ended. As a worker with its credit, it returns them when
    /// it stops.
    ended: usize,
}

impl Claimer<'_> {
    /// Takes the newest entry of the worker's local queue back if it is `wanted`.
    fn take_back(&self, wanted: impl FnOnce(&Job) -> bool) -> Option<Job> {
        self.worker?.take_back(wanted)
    }

    fn run(&mut self, entry: Entry, run: impl FnOnce() -> Outcome) {
        self.begin(entry);
        self.end(run());
    }

    /// Begins a claimed task. It holds a place of its own view, and the task below it none
    /// meanwhile.
    fn begin(&mut self, entry: Entry) {
        let Route { shared, view } = self.route;
        if let Some(worker) = self.worker {
            self.below.get_or_insert_with(|| shared.begin_on_top(worker, view));
            worker.begin_awaited(entry);
        } else {
            self.outside
                .get_or_insert_with(|| (CallerMark::begin(shared, view), OutsideOfRegion::enter()));
            shared.caller_metrics.lock().begin_awaited(entry);
        }
        // The waiter has one already, that of the task below; or it is no worker. So nested tasks
        // hold one together.
        match entry {
            Entry::TakenBack => shared.release_permit(),
            Entry::Stale => shared.leave_entry(false),
        }
        if let Some(view) = view {
            view.metrics.lock().begin_awaited(entry);
            self.route.skip_stale(self.worker);
        }
    }

    /// Ends a claimed task, or its poll.
    fn end(&mut self, mut outcome: Outcome) {
        let Route { shared, view } = self.route;
        shared.handle_failure(&mut outcome);
        if let Some(worker) = self.worker {
            worker.end_awaited(&outcome);
            if let Some(view) = view {
                view.end(&outcome);
            }
        } else {
            self.route.count_on_caller(&|metrics| metrics.record(&outcome));
            self.ended += usize::from(outcome.is_end());
        }
        match outcome {
            Outcome::Skipped => {
                shared.acquire_over_limit();
                shared.release_permits_of_entries(1);
            }
            Outcome::Yielded(task) => {
                // There may be no worker beside a thread outside, and the system may refuse one.
                if let Err(job) = self.route.requeue(Job::woken(task)) {
                    self.route.run_on_caller(job);
                }
            }
            _ => {}
        }
    }

    /// Goes back to the task below, if a claimed one was run.
    fn leave(&mut self) {
        if let Some(worker) = self.worker {
            if let Some(below) = self.below.take() {
                self.route.shared.end_on_top(worker, below);
            }
        } else if self.ended > 0 {
            drop(self.outside.take());
            self.route.report_on_caller(self.ended);
        }
    }
}
