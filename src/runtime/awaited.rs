//! A thread that waits for a task runs that task (law 10).
//!
//! A worker that waits for a task of its own pool takes that very task, if it has not been started, and runs it on its own
//! stack: a task that waits for others costs no thread. A thread that waits for a scope does so from outside of the pool as
//! well. No other task is run there. The waiter depends on the one that it runs in any case, so a lock that it holds
//! deadlocks neither more nor less than if it blocked.
//!
//! The task's entry stays in the queue: the worker that takes it skips it. Until then it counts as in flight, like any
//! entry. The task counts for itself from before it is run. A future needs that: if it has to wait after its first poll, it
//! goes on without its entry, and another thread may end it before the poll has returned here.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use crate::runtime::block_on::outside_of_executor;
use crate::runtime::context::{self, WorkerContext, is_worker_of};
use crate::runtime::context::{is_caller_of, mark_caller};
use crate::runtime::region::OutsideOfRegion;
use crate::runtime::shared::PoolId;
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::off_trampoline;
use crate::task::job::{Outcome, Run};
use crate::task::unstarted::{Owner, Taken, TaskId, Unstarted};

/// Runs the task of a handle, if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_task(pool: PoolId, task: Arc<dyn Run>) {
    if let Some(worker) = worker_of(pool) {
        run_on_worker(&worker, |begin| task.run_awaited(begin));
    }
}

/// Runs one task of a scope, if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_scoped_task<T: Owner>(
    shared: &Arc<Shared>,
    unstarted: &Unstarted<T>,
    id: TaskId,
) {
    if let Some(worker) = worker_of(shared.id()) {
        run_on_worker(&worker, |begin| claimed(unstarted.claim(id), begin));
    }
}

/// Runs those tasks of a group that have not been started, the newest first, if the caller is a worker of its pool. Stops
/// when the caller no longer `depends` on them.
pub(crate) fn run_awaited_group<T: Owner>(
    shared: &Arc<Shared>,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) {
    if let Some(worker) = worker_of(shared.id()) {
        run_newest(&worker, unstarted, depends);
    }
}

/// Runs those tasks of a scope that have not been started, the newest first.
pub(crate) fn run_awaited_scope<T: Owner>(shared: &Arc<Shared>, unstarted: &Unstarted<T>) {
    if let Some(worker) = worker_of(shared.id()) {
        run_newest(&worker, unstarted, || true);
    } else if !thread::panicking() {
        // Inside of another task of the pool one is in flight already.
        let was_held = is_caller_of(shared);
        let mut is_held = was_held;
        let mut hold = || {
            if !mem::replace(&mut is_held, true) {
                shared.hold_on_caller();
            }
            true
        };
        while let Some(task) = unstarted.claim_newest(&mut hold) {
            let _outside = OutsideOfRegion::enter();
            let _visit = mark_caller(shared);
            outside_of_executor(|| off_trampoline(|| shared.run_awaited_on_caller(|| task.run())));
        }
        if is_held && !was_held {
            shared.release_on_caller();
        }
    }
}

fn run_newest<T: Owner>(
    worker: &WorkerContext,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) {
    while run_on_worker(worker, |begin| claimed(unstarted.claim_newest(&depends), begin)) {}
}

/// The calling thread's context, if the thread runs a task of the pool as one of its workers. A thread that unwinds runs no
/// other task: the task would find that [`panicking`](thread::panicking).
fn worker_of(pool: PoolId) -> Option<Rc<WorkerContext>> {
    context::of_pool(pool).filter(|_| is_worker_of(pool) && !thread::panicking())
}

fn claimed<T: Owner>(task: Option<Taken<'_, T>>, begin: &mut dyn FnMut()) -> Option<Outcome> {
    task.map(|task| {
        begin();
        task.run()
    })
}

/// Runs what `run` claims, on top of the task that the worker runs already. `false` if that is nothing.
fn run_on_worker(
    worker: &WorkerContext,
    run: impl FnOnce(&mut dyn FnMut()) -> Option<Outcome>,
) -> bool {
    let shared = worker.shared();
    if worker.stop_deferring() {
        // The task may take its time: what the poll below it has woken must not wait for it.
        shared.notify_next(None);
    }
    let mut outside = None;
    let mut begin = || {
        // Not before it is known that there is a task to run: to come back from a region may take a while.
        outside = Some(OutsideOfRegion::enter());
        worker.begin_awaited();
    };
    // Follow-up work of the task runs at once: the task below cannot go on before.
    let outcome = off_trampoline(|| outside_of_executor(|| run(&mut begin)));
    let Some(mut outcome) = outcome else { return false };
    shared.handle_panic(&mut outcome);
    worker.end_awaited(&outcome);
    #[cfg(feature = "async")]
    if let Outcome::Woken(task) = outcome {
        shared.enqueue_woken(worker, task);
    }
    true
}
