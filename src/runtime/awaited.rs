//! A thread that waits for a task runs that task itself (law 10).
//!
//! A worker that waits for an unstarted task of its own pool claims that task and runs it on its own stack. So a
//! wait costs a thread only if its task already runs. A thread outside the pool does the same for a scope that it
//! waits for. The waiter runs no other task: it depends on this one anyway, so a lock that it holds deadlocks neither
//! more nor less than if it blocked.
//!
//! If the task's entry is the newest in the worker's local queue, the worker takes it back. So nested waits leave nothing
//! behind, unless other workers take part. Otherwise the entry stays in the queue, counted as in flight, until a worker takes
//! and skips it, or another task of its scope relies on it. The task itself is counted separately from before it runs. A future needs this: if its first poll is
//! pending, it goes on without its entry, and another thread may end it before that poll has returned here.

use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use crate::runtime::block_on::outside_of_executor;
use crate::runtime::context::{self, WorkerContext};
use crate::runtime::context::{is_caller_of, is_worker_of, mark_caller};
use crate::runtime::identity::PoolId;
use crate::runtime::nesting::{may_nest, nest};
use crate::runtime::place::Below;
use crate::runtime::poll_wait::end_waits;
use crate::runtime::region::OutsideOfRegion;
use crate::runtime::route::{Origin, Route};
use crate::runtime::trampoline::off_trampoline;
use crate::runtime::view::View;
use crate::task::job::{Action, Begin, Job, Moment, Outcome, Run};
use crate::task::unstarted::{Claim, Entry, Owner, TaskId, Unstarted};

/// Runs a handle's task if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_task(origin: &Origin, task: &Weak<dyn Run>) {
    if task.strong_count() == 0 {
        return;
    }
    if let Some((worker, view)) = worker_and_view(origin) {
        run_on_worker(&worker, view.as_ref(), |begin| {
            // By its address, which is no other task's while the handle exists: the entry has a reference to the task.
            match worker.take_back(|job| job.is_entry_of(task.as_ptr())) {
                Some(entry) => {
                    begin(Entry::TakenBack);
                    Some(entry.run())
                }
                None => {
                    let begin: Begin<'_> = &mut |moment| begin_taken(moment, begin);
                    let task = task.upgrade()?;
                    task.advance(Action::RunAwaited, Some(begin)).unless_skipped()
                }
            }
        });
    }
}

/// Begins a claimed task, whose entry stays in the queue.
fn begin_taken(moment: Moment, begin: &mut dyn FnMut(Entry)) {
    if moment == Moment::Taken {
        begin(Entry::Stale);
    }
}

/// Runs one task of a scope if it has not been started, and the caller is a worker of its pool, or a thread outside that runs a
/// task of the pool.
pub(crate) fn run_awaited_scoped_task<T: Owner>(
    route: Route<'_>,
    unstarted: &Unstarted<T>,
    id: TaskId,
) {
    if !may_nest() {
        return;
    }
    if let Some(worker) = context::of_worker(route.id()) {
        run_on_worker(&worker, route.view, |begin| {
            let (task, entry) = unstarted.claim(id, |wanted| worker.take_back(wanted))?;
            begin(entry);
            Some(task.run())
        });
    } else if route.view.is_none() && is_caller_of(route.shared) {
        // The task below is in flight. (It may be of another view, whose in-flight word says nothing of this one's.)
        notify_deferred();
        on_top(|| {
            let Some((task, _stale)) = unstarted.claim(id, |_| None) else { return };
            let _outside = OutsideOfRegion::enter();
            route.run_awaited_on_caller(|| task.run());
        });
    }
}

/// Runs the unstarted tasks of a group, newest first, if the caller is a worker of its pool. Stops when the caller no
/// longer `depends` on them.
pub(crate) fn run_awaited_group<T: Owner>(
    route: Route<'_>,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) {
    if let Some(worker) = worker_of(route.id()) {
        run_newest(&worker, route, unstarted, depends);
    }
}

/// Runs the unstarted tasks of a scope, newest first. Returns what the scope has learned if all its tasks have ended then.
pub(crate) fn run_awaited_scope<T: Owner>(route: Route<'_>, unstarted: &Unstarted<T>) -> Option<T> {
    if !may_nest() {
        return None;
    }
    if let Some(worker) = context::of_worker(route.id()) {
        return run_newest(&worker, route, unstarted, || true);
    }
    notify_deferred();
    // A caller that already runs a task of the pool holds an in-flight task, but perhaps none of the view.
    let was_held = route.view.is_none() && is_caller_of(route.shared);
    let mut is_held = was_held;
    let mut hold = || {
        if !mem::replace(&mut is_held, true) {
            route.hold_on_caller();
        }
        true
    };
    let mut marks = None;
    let ended = on_top(|| {
        loop {
            let claim = unstarted.claim_newest(&mut hold, |_| None);
            let Claim::Task(task, _stale, last) = claim else { return claim.ended() };
            marks.get_or_insert_with(|| (mark_caller(route.shared), OutsideOfRegion::enter()));
            if let Some(view) = route.view {
                route.skip_on_caller(route.shared.skip_in_view(view));
            }
            route.run_awaited_on_caller(|| task.run());
            if unstarted.is_unchanged_since(last) {
                return Some(T::default());
            }
        }
    });
    drop(marks);
    if is_held && !was_held {
        route.release_on_caller();
    }
    ended
}

/// Whether what the body of a scope submits on the calling thread goes to the injector, from which the thread takes no entry back.
pub(crate) fn submits_to_injector(route: Route<'_>) -> bool {
    route.view.is_none() && !is_worker_of(route.id())
}

fn run_newest<T: Owner>(
    worker: &WorkerContext,
    route: Route<'_>,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) -> Option<T> {
    notify_deferred_of(worker);
    let mut on_worker = OnWorker::new(worker, route.view);
    let take_back = |wanted: &dyn Fn(&Job) -> bool| worker.take_back(wanted);
    let ended = on_top(|| {
        loop {
            on_worker.hold();
            let claim = unstarted.claim_newest(&depends, take_back);
            if let Claim::Task(task, entry, last) = claim {
                on_worker.begin(entry);
                on_worker.end(task.run());
                notify_deferred_of(worker);
                if unstarted.is_unchanged_since(last) {
                    return Some(T::default());
                }
                continue;
            }
            on_worker.release();
            return claim.ended();
        }
    });
    on_worker.leave();
    ended
}

/// Returns the calling thread's context if the thread runs a task of the pool as one of its workers, and may run another one
/// on top of it.
fn worker_of(pool: PoolId) -> Option<Rc<WorkerContext>> {
    context::of_worker(pool).filter(|_| may_nest())
}

/// Returns the calling worker's context, and the view of the task that it waits for. `None` if the caller is no worker of
/// the task's pool, or if the view is gone: then the task was started.
fn worker_and_view(origin: &Origin) -> Option<(Rc<WorkerContext>, Option<Arc<View>>)> {
    let worker = worker_of(origin.pool)?;
    match origin.in_view() {
        Some(in_view) => in_view.view.upgrade().map(|view| (worker, Some(view))),
        None => Some((worker, None)),
    }
}

/// Lets other workers poll the futures that a poll on this thread has woken, of whichever pool. The task that runs next, on
/// top of that poll, may take long or wait for them.
pub(super) fn notify_deferred() {
    if let Some(worker) = context::of_thread() {
        notify_deferred_of(&worker);
    }
}

/// As [`notify_deferred`], for a thread that works in this context.
fn notify_deferred_of(worker: &WorkerContext) {
    if worker.stop_deferring() {
        worker.shared().look();
    }
}

/// Runs the task that `run` claims, on top of the one that the worker runs already.
fn run_on_worker(
    worker: &WorkerContext,
    view: Option<&Arc<View>>,
    run: impl FnOnce(&mut dyn FnMut(Entry)) -> Option<Outcome>,
) {
    notify_deferred_of(worker);
    let mut on_worker = OnWorker::new(worker, view);
    on_worker.hold();
    match on_top(|| run(&mut |entry| on_worker.begin(entry))) {
        Some(outcome) => on_worker.end(outcome),
        None => on_worker.release(),
    }
    on_worker.leave();
}

/// Calls `f`, which runs tasks on top of the one that the thread runs already. Their follow-up work runs now: the
/// trampoline's loop is below them and may depend on it.
fn on_top<R>(f: impl FnOnce() -> R) -> R {
    nest(|| off_trampoline(|| outside_of_executor(f)))
}

/// A worker that runs claimed tasks of one view, one after the other, on top of the task that waits for them.
struct OnWorker<'a> {
    worker: &'a WorkerContext,
    view: Option<&'a Arc<View>>,
    /// `None` until there is a task to run: leaving a region, and getting a place, may wait.
    below: Option<Below>,
}

impl<'a> OnWorker<'a> {
    fn new(worker: &'a WorkerContext, view: Option<&'a Arc<View>>) -> Self {
        OnWorker { worker, view, below: None }
    }

    /// Race 40: counts one more task of the view as in flight, before a claim. Once the task is claimed, another worker may skip its
    /// entry, and with it end the view's last task.
    fn hold(&self) {
        if let Some(view) = self.view {
            view.in_flight.hold_view();
        }
    }

    /// Reverts [`hold`](Self::hold) if no task was claimed.
    fn release(&self) {
        if let Some(view) = self.view {
            view.in_flight.finish(1);
        }
    }

    /// Begins a claimed task. It holds a place of its own view, and the task below it none meanwhile.
    fn begin(&mut self, entry: Entry) {
        let OnWorker { worker, view, below } = self;
        below.get_or_insert_with(|| worker.shared().begin_on_top(worker, view.map(|view| view.id)));
        worker.begin_awaited(entry);
        let Some(view) = view else { return };
        view.begin_awaited();
        let shared = worker.shared();
        let skipped = shared.skip_in_view(view);
        if skipped > 0 {
            (0..skipped).for_each(|_| shared.release_permit());
            worker.count_skipped(skipped);
            view.skip(skipped);
        }
    }

    /// Ends a claimed task.
    fn end(&mut self, mut outcome: Outcome) {
        let OnWorker { worker, view, .. } = *self;
        let shared = worker.shared();
        shared.handle_failure(&mut outcome);
        end_waits();
        worker.end_awaited(&outcome);
        if let Some(view) = view {
            view.end(&outcome);
        }
        #[cfg(feature = "async")]
        if let Outcome::Woken(task) = outcome {
            Route { shared, view }.enqueue_woken(task);
        }
    }

    /// Goes back to the task below, if a claimed one was run.
    fn leave(self) {
        if let Some(below) = self.below {
            self.worker.shared().end_on_top(self.worker, below);
        }
    }
}
