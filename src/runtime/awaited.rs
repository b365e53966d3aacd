//! A thread that waits for a task runs that task itself (law 10).
//!
//! A worker that waits for an unstarted task of its own pool claims that task and runs it on its own stack. So a
//! wait costs a thread only if its task already runs. A thread outside the pool does the same for a scope that it
//! waits for. The waiter runs no other task: it depends on this one anyway, so a lock that it holds deadlocks neither
//! more nor less than if it blocked.
//!
//! The task's entry stays in the queue, counted as in flight, until a worker takes and skips it. The task itself is
//! counted separately from before it runs. A future needs this: if its first poll is pending, it goes on without its
//! entry, and another thread may end it before that poll has returned here.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use crate::runtime::block_on::outside_of_executor;
use crate::runtime::context::{self, WorkerContext, is_worker_of};
use crate::runtime::context::{is_caller_of, mark_caller};
use crate::runtime::region::OutsideOfRegion;
use crate::runtime::route::{Origin, Route};
use crate::runtime::shared::PoolId;
use crate::runtime::trampoline::off_trampoline;
use crate::runtime::view::View;
use crate::task::job::{Outcome, Run};
use crate::task::unstarted::{Owner, Taken, TaskId, Unstarted};

/// Runs a handle's task if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_task(origin: &Origin, task: Arc<dyn Run>) {
    if let Some((worker, view)) = worker_and_view(origin) {
        run_on_worker(&worker, view.as_ref(), |begin| task.run_awaited(begin));
    }
}

/// Drops a handle's task as cancelled, if the caller is a worker of its pool and the task has not been started.
pub(crate) fn drop_awaited_task(origin: &Origin, task: Arc<dyn Run>) {
    if let Some((worker, view)) = worker_and_view(origin) {
        run_on_worker(&worker, view.as_ref(), |begin| task.drop_awaited(begin));
    }
}

/// Runs one task of a scope if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_scoped_task<T: Owner>(
    route: Route<'_>,
    unstarted: &Unstarted<T>,
    id: TaskId,
) {
    if let Some(worker) = worker_of(route.id()) {
        run_on_worker(&worker, route.view, |begin| claimed(unstarted.claim(id), begin));
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

/// Runs the unstarted tasks of a scope, newest first.
pub(crate) fn run_awaited_scope<T: Owner>(route: Route<'_>, unstarted: &Unstarted<T>) {
    if let Some(worker) = worker_of(route.id()) {
        run_newest(&worker, route, unstarted, || true);
    } else if !thread::panicking() {
        notify_deferred();
        // A caller that already runs a task of the pool holds an in-flight task.
        let shared = route.shared;
        let was_held = is_caller_of(shared);
        let mut is_held = was_held;
        let mut hold = || {
            if !mem::replace(&mut is_held, true) {
                route.hold_on_caller();
            }
            true
        };
        while let Some(task) = unstarted.claim_newest(&mut hold) {
            let _outside = OutsideOfRegion::enter();
            let _mark = mark_caller(shared);
            outside_of_executor(|| off_trampoline(|| route.run_awaited_on_caller(|| task.run())));
        }
        if is_held && !was_held {
            route.release_on_caller();
        }
    }
}

fn run_newest<T: Owner>(
    worker: &WorkerContext,
    route: Route<'_>,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) {
    let claim = || unstarted.claim_newest(&depends);
    while run_on_worker(worker, route.view, |begin| claimed(claim(), begin)) {}
}

/// Returns the calling thread's context if the thread runs a task of the pool as one of its workers. `None` while it
/// unwinds: a task run now would see [`panicking`](thread::panicking) return `true`.
fn worker_of(pool: PoolId) -> Option<Rc<WorkerContext>> {
    context::of_pool(pool).filter(|_| is_worker_of(pool) && !thread::panicking())
}

/// Returns the calling worker's context, and the view of the task that it waits for. `None` if the caller is no worker of
/// the task's pool, or if the view is gone: then the task was started.
fn worker_and_view(origin: &Origin) -> Option<(Rc<WorkerContext>, Option<Arc<View>>)> {
    let worker = worker_of(origin.pool)?;
    match &origin.in_view {
        Some(in_view) => in_view.view.upgrade().map(|view| (worker, Some(view))),
        None => Some((worker, None)),
    }
}

fn claimed<T: Owner>(task: Option<Taken<'_, T>>, begin: &mut dyn FnMut()) -> Option<Outcome> {
    task.map(|task| {
        begin();
        task.run()
    })
}

/// Lets other workers poll the futures that a poll on this thread has woken, of whichever pool. The task that runs next, on
/// top of that poll, may take long or wait for them.
pub(super) fn notify_deferred() {
    if let Some(worker) = context::of_thread().filter(|worker| worker.stop_deferring()) {
        worker.shared().notify_next(None);
    }
}

/// Runs the task that `run` claims, on top of the one that the worker runs already. `false` if it claims none. The claimed
/// task holds a place of its own view, and the task below it none meanwhile.
fn run_on_worker(
    worker: &WorkerContext,
    view: Option<&Arc<View>>,
    run: impl FnOnce(&mut dyn FnMut()) -> Option<Outcome>,
) -> bool {
    notify_deferred();
    let shared = worker.shared();
    let mut below = None;
    let mut begin = || {
        // Leaving a region may wait, so leave it only once there is a task to run.
        below = Some(shared.begin_on_top(worker, view.map(|view| view.id)));
        worker.begin_awaited();
        if let Some(view) = view {
            view.begin_awaited();
        }
    };
    if let Some(view) = view {
        // Before the claim: once the task is claimed, another worker may skip its entry, and with it end the view's last task.
        view.in_flight.hold_view();
    }
    // Run the task's follow-up work now: the trampoline's loop is below this task and may depend on it.
    let outcome = off_trampoline(|| outside_of_executor(|| run(&mut begin)));
    let Some(mut outcome) = outcome else {
        if let Some(view) = view {
            view.in_flight.finish(1);
        }
        return false;
    };
    shared.handle_panic(&mut outcome);
    worker.end_awaited(&outcome);
    if let Some(view) = view {
        view.end(&outcome);
    }
    #[cfg(feature = "async")]
    if let Outcome::Woken(task) = outcome {
        Route { shared, view }.enqueue_woken(task);
    }
    if let Some(below) = below {
        shared.end_on_top(worker, below);
    }
    true
}
