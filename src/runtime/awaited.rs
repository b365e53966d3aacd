//! A thread that waits for a task runs that task itself (law 10).
//!
//! A worker that waits for an unstarted task of its own pool claims that task and runs it on its own stack. So a
//! wait costs a thread only if its task already runs. A thread outside the pool does the same for a scope that it
//! waits for. The waiter runs no other task: it depends on this one anyway, so a lock that it holds deadlocks neither
//! more nor less than if it blocked.
//!
//! If the task's entry is the newest in the worker's local queue, the worker takes it back. So nested waits leave nothing
//! behind, unless other workers take part. Otherwise the entry stays in the queue, counted as in flight, until a worker
//! takes and skips it. The task itself is counted separately from before it runs. A future needs this: if its first poll is
//! pending, it goes on without its entry, and another thread may end it before that poll has returned here.

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
use crate::task::job::{Job, Outcome, Run};
use crate::task::unstarted::{Claim, Entry, Owner, TaskId, Unstarted};

/// Runs a handle's task if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_task(pool: PoolId, task: Arc<dyn Run>) {
    if let Some(worker) = worker_of(pool) {
        run_on_worker(&worker, |begin| match worker.take_back(|job| job.is_entry_of(&*task)) {
            Some(entry) => {
                begin(Entry::TakenBack);
                Some(entry.run())
            }
            None => task.run_awaited(&mut || begin(Entry::Stale)),
        });
    }
}

/// Drops a handle's task as cancelled, if the caller is a worker of its pool and the task has not been started.
pub(crate) fn drop_awaited_task(pool: PoolId, task: Arc<dyn Run>) {
    if let Some(worker) = worker_of(pool) {
        run_on_worker(&worker, |begin| task.drop_awaited(&mut || begin(Entry::Stale)));
    }
}

/// Runs one task of a scope if the caller is a worker of its pool and the task has not been started.
pub(crate) fn run_awaited_scoped_task<T: Owner>(
    shared: &Arc<Shared>,
    unstarted: &Unstarted<T>,
    id: TaskId,
) {
    if let Some(worker) = worker_of(shared.id()) {
        run_on_worker(&worker, |begin| {
            let (task, entry) = unstarted.claim(id, |wanted| worker.take_back(wanted))?;
            begin(entry);
            Some(task.run())
        });
    }
}

/// Runs the unstarted tasks of a group, newest first, if the caller is a worker of its pool. Stops when the caller no
/// longer `depends` on them.
pub(crate) fn run_awaited_group<T: Owner>(
    shared: &Arc<Shared>,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) {
    if let Some(worker) = worker_of(shared.id()) {
        run_newest(&worker, unstarted, depends);
    }
}

/// Runs the unstarted tasks of a scope, newest first. Returns what the scope has learned if all its tasks have ended then.
pub(crate) fn run_awaited_scope<T: Owner>(
    shared: &Arc<Shared>,
    unstarted: &Unstarted<T>,
) -> Option<T> {
    if let Some(worker) = worker_of(shared.id()) {
        return run_newest(&worker, unstarted, || true);
    }
    if thread::panicking() {
        return None;
    }
    notify_deferred();
    // A caller that already runs a task of the pool holds an in-flight task.
    let was_held = is_caller_of(shared);
    let mut is_held = was_held;
    let mut hold = || {
        if !mem::replace(&mut is_held, true) {
            shared.hold_on_caller();
        }
        true
    };
    let mut marks = None;
    let ended = on_top(|| {
        loop {
            match unstarted.claim_newest(&mut hold, |_| None) {
                Claim::Task(task, _) => {
                    marks.get_or_insert_with(|| (mark_caller(shared), OutsideOfRegion::enter()));
                    shared.run_awaited_on_caller(|| task.run());
                }
                Claim::Ended(owner) => return Some(owner),
                Claim::Nothing => return None,
            }
        }
    });
    drop(marks);
    if is_held && !was_held {
        shared.release_on_caller();
    }
    ended
}

fn run_newest<T: Owner>(
    worker: &WorkerContext,
    unstarted: &Unstarted<T>,
    depends: impl Fn() -> bool,
) -> Option<T> {
    notify_deferred_of(worker);
    let mut outside = None;
    let take_back = |wanted: &dyn Fn(&Job) -> bool| worker.take_back(wanted);
    on_top(|| {
        loop {
            match unstarted.claim_newest(&depends, take_back) {
                Claim::Task(task, entry) => {
                    // Once for all of them, and only once there is one: leaving a region may wait.
                    outside.get_or_insert_with(OutsideOfRegion::enter);
                    worker.begin_awaited(entry);
                    end(worker, task.run());
                    notify_deferred_of(worker);
                }
                Claim::Ended(owner) => return Some(owner),
                Claim::Nothing => return None,
            }
        }
    })
}

/// Returns the calling thread's context if the thread runs a task of the pool as one of its workers. `None` while it
/// unwinds: a task run now would see [`panicking`](thread::panicking) return `true`.
fn worker_of(pool: PoolId) -> Option<Rc<WorkerContext>> {
    context::of_pool(pool).filter(|_| is_worker_of(pool) && !thread::panicking())
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
        worker.shared().notify_next(None);
    }
}

/// Runs the task that `run` claims, on top of the one that the worker runs already.
fn run_on_worker(
    worker: &WorkerContext,
    run: impl FnOnce(&mut dyn FnMut(Entry)) -> Option<Outcome>,
) {
    notify_deferred_of(worker);
    let mut outside = None;
    let mut begin = |entry| {
        // Leaving a region may wait, so leave it only once there is a task to run.
        outside = Some(OutsideOfRegion::enter());
        worker.begin_awaited(entry);
    };
    if let Some(outcome) = on_top(|| run(&mut begin)) {
        end(worker, outcome);
    }
}

/// Calls `f`, which runs tasks on top of the one that the thread runs already. Their follow-up work runs now: the
/// trampoline's loop is below them and may depend on it.
fn on_top<R>(f: impl FnOnce() -> R) -> R {
    off_trampoline(|| outside_of_executor(f))
}

/// Ends a claimed task of the worker.
fn end(worker: &WorkerContext, mut outcome: Outcome) {
    let shared = worker.shared();
    shared.handle_panic(&mut outcome);
    worker.end_awaited(&outcome);
    #[cfg(feature = "async")]
    if let Outcome::Woken(task) = outcome {
        shared.enqueue_woken(task);
    }
}
