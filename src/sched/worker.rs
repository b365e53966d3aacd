//! A worker's life: start, work, rest, leave. What it does without a task is in `rest.rs`.
//!
//! Between two jobs a worker looks at its quota, the limit, the gate of views, the queues, the gate
//! again, whether there are woken futures, and whether it owes a look. A new reason to stop or to
//! call a hook there should be part of one of these: each load is paid for every task. Jobs also
//! run in `extra.rs`, without the gate and the local queue, and on the stack of a waiter
//! (`wait/awaited.rs`), where a worker looks at none of these.

mod extra;
mod rest;

use std::mem;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use crate::crew::{Count, Exit, MustLook, Search, ThreadKey, WorkerMetrics};
use crate::observe::Event;
use crate::queue::Kind;
use crate::sched::context::{RunningTask, WorkerContext, replace_task, set_worker};
use crate::sched::shared::Shared;
use crate::sync::inherit::show_index;
use crate::sync::parker::Parker;
use crate::sync::unwind::discard;
use crate::sync::{Mutex, at_thread_exit};
use crate::task::{DEFAULT_VIEW, Job, Outcome};
use crate::thread::{begin_worker, set_identity};
use crate::views::{Gate, Place, ViewCore, ViewJob};

/// What a new worker's thread is given.
pub(crate) struct Start {
    pub(super) shared: Arc<Shared>,
    /// Locked by the starter until the worker is registered.
    pub(super) gate: Arc<Mutex<()>>,
    pub(super) key: ThreadKey,
    pub(super) index: usize,
    /// Not one that the user's hook gave.
    pub(super) has_default_name: bool,
    pub(super) metrics: Arc<WorkerMetrics>,
    pub(super) search: Option<Search>,
    /// The value of `shrinks` when its start was decided.
    pub(super) shrinks: usize,
}

/// Why a worker leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retire {
    /// Its keep-alive is over and `total` is above `core_size`.
    Surplus,
    /// `max_size` was lowered, and more workers are runnable.
    Excess,
    /// It has used its task quota.
    Recycled,
    /// The pool is over.
    Over,
}

impl Retire {
    /// As events call it.
    fn name(self) -> &'static str {
        match self {
            Retire::Surplus => "surplus",
            Retire::Excess => "excess",
            Retire::Recycled => "recycled",
            Retire::Over => "closed",
        }
    }
}

/// The body of a worker's thread.
pub(crate) fn run(start: Start) {
    // Before any user code, so that it is the last thread-local to be destroyed.
    let _exit =
        at_thread_exit(Exit { registry: Arc::clone(&start.shared.registry), key: start.key });
    // The starter holds the gate until this worker is registered and counted. A gate of its own,
    // because the starter's thread may hold the registry again by now, for the next worker.
    drop(start.gate.lock());
    start.shared.inherited.apply();
    if start.has_default_name {
        show_index(&start.shared.config.name, start.index);
    }
    begin_worker(start.shared.config.stack_size);
    let shared = Arc::clone(&start.shared);
    let mut worker = Worker::new(start);
    worker.become_worker();
    shared.config.hooks.call_around(|| {
        worker.start();
        let why = worker.work();
        worker.stop(why);
    });
    // This may drop the last reference to the pool, and with it the user's hooks.
    discard(shared);
}

/// [`Worker::run_next_of_views`]. A program without views sets no function here, and so does not
/// contain it.
static RUN_NEXT_OF_VIEWS: OnceLock<fn(&mut Worker, Option<Job>) -> bool> = OnceLock::new();

/// Called before a worker of any pool may have to ask the policy.
pub(super) fn enable_views() {
    RUN_NEXT_OF_VIEWS.get_or_init(|| Worker::run_next_of_views);
}

/// [`Worker::poll_as_extra`], if the program has a pool that measures.
static POLL_AS_EXTRA: OnceLock<fn(&mut Worker) -> bool> = OnceLock::new();

/// Called before there is a pool that measures, from another room: a door.
pub(crate) fn enable_extra() {
    POLL_AS_EXTRA.get_or_init(|| Worker::poll_as_extra);
}

struct Worker {
    shared: Arc<Shared>,
    key: ThreadKey,
    index: usize,
    parker: Arc<Parker>,
    context: Rc<WorkerContext>,
    /// The value of `shrinks` when the worker last looked.
    shrinks: usize,
    search: Option<Search>,
    /// Whether it has taken no job since it started, rested or spun.
    is_woken: bool,
    /// Beside which gate it may take jobs without the policy. Unless that is none, it is counted as
    /// a running task of the default view, also between two of them.
    passes: Gate,
}

impl Worker {
    fn new(start: Start) -> Self {
        let Start { shared, key, index, metrics, search, shrinks, .. } = start;
        metrics.thread.set_current();
        Worker {
            parker: Arc::new(Parker::default()),
            context: WorkerContext::new(&shared, metrics),
            shared,
            key,
            index,
            shrinks,
            search,
            is_woken: true,
            passes: Gate::None,
        }
    }

    /// Before any code of the user.
    fn become_worker(&mut self) {
        set_identity(self.shared.id(), Some(self.index), None);
        set_worker(Some(Rc::clone(&self.context)));
        if self.shared.config.hooks.has_start_hook() {
            let search = self.search.take();
            self.shared.enter_start_hook(search);
        }
    }

    fn start(&mut self) {
        if self.shared.config.hooks.has_start_hook() {
            self.shared.emit(Event::WorkerStarted(self.index));
            let hooks = &self.shared.config.hooks;
            if let Some(hook) = &hooks.on_worker_start {
                hooks.call(|| hook(self.index));
            }
            self.search = Some(self.shared.exit_start_hook());
        }
        self.context.runs_tasks.set(true);
        if !self.shared.policy.is_used() {
            // Before its first pop: a joiner may have to wait for what it takes.
            self.shared.running.add();
            self.passes = Gate::Unused;
        }
    }

    fn stop(self, why: Retire) {
        let Worker { shared, context, key, index, .. } = self;
        if let Some(moved) = context.close() {
            // Race 19: what it has moved was in no queue for a moment.
            moved.look(&shared);
        }
        shared.emit(Event::Retired(index, why.name()));
        let hooks = &shared.config.hooks;
        if let Some(hook) = &hooks.on_worker_stop {
            set_identity(shared.id(), Some(index), Some(key));
            hooks.call(|| hook(index));
            shared.registry.lock().return_index(index);
        }
        shared.emit(Event::WorkerStopped(index));
        // For the destructors of thread-locals: another worker may have the index now.
        set_identity(shared.id(), None, Some(key));
        drop(shared.registry.lock_reaped());
        // Race 8: a waker may push a stale entry later. Then it finds no worker, and clears the
        // queue itself.
        shared.clear_if_over(shared.in_flight.is_over());
    }

    /// Runs tasks until the worker leaves, and returns why it does.
    fn work(&mut self) -> Retire {
        loop {
            // BUSY
            if self.is_quota_used() {
                if self.try_recycle() {
                    return Retire::Recycled;
                }
                // The successor was refused.
                self.context.renew_quota();
            }
            // Checked by new and woken workers as well: a worker may have returned from a region
            // since.
            if !self.shared.is_above_limit(self.shared.counts.load()) {
                let passes = self.may_pass();
                let mut next = if passes { self.context.pop(&self.shared.queue) } else { None };
                // Read after the pop: a job that was queued behind a pause or a view's task is
                // taken by the policy. Otherwise it could pass them.
                if !passes || !self.may_pass() {
                    let run_next = RUN_NEXT_OF_VIEWS.get();
                    if run_next.expect("set before the gate was shut")(self, next) {
                        continue;
                    }
                } else if let Some(job) = &mut next {
                    // Run where it lies: a move is a copy.
                    self.notify_before_run(job.is_new());
                    self.run(job);
                    // Nothing is left of it.
                    mem::forget(next);
                    continue;
                }
                // It keeps no place without a task: it asks the policy.
                if self.gives_up_place() {
                    continue;
                }
                if self.spin_for_work() {
                    self.is_woken = true;
                    self.context.forget_task_time();
                    continue;
                }
            } else if POLL_AS_EXTRA.get().is_some_and(|poll| poll(self)) {
                continue;
            }
            // IDLE
            if let Some(why) = self.rest_or_leave() {
                return why;
            }
        }
    }

    /// Ends the worker's search, and notifies another one if more work is queued than the job that
    /// it has taken.
    #[inline]
    fn notify_before_run(&mut self, is_new: bool) {
        if is_new && self.shared.queue.may_have_woken() {
            self.context.share_woken_before_task();
        }
        let is_woken = mem::take(&mut self.is_woken);
        let owed = self.context.take_owed();
        if owed.is_some() || is_woken {
            self.look_before_run(owed, is_woken);
        }
    }

    #[inline(never)]
    fn look_before_run(&mut self, owed: Option<MustLook>, is_woken: bool) {
        let owed = self.end_search().and(owed);
        if is_woken {
            owed.look_as_woken(&self.shared);
        } else {
            owed.look(&self.shared);
        }
    }

    fn end_search(&mut self) -> MustLook {
        self.shared.counts.end_search(self.search.take())
    }

    /// Whether the worker may take a job without the policy.
    #[inline]
    fn may_pass(&self) -> bool {
        self.shared.policy.has_gate(self.passes)
    }

    /// Takes the next job through the policy, and runs it. Puts one back that it has `taken`
    /// without the policy. Returns whether there was a job.
    #[cold]
    fn run_next_of_views(&mut self, taken: Option<Job>) -> bool {
        if let Some(job) = taken {
            self.shared.push_to_view(None, job);
        }
        let Some(ViewJob { mut job, view }) = self.next_of_views() else { return false };
        let metrics = &self.context.metrics;
        let ended = metrics.has_futures_place.get().then(|| metrics.ended());
        self.notify_before_run(job.is_new());
        let is_default = view.is_none();
        match view {
            Some(view) => self.run_of_view(&mut job, view),
            None => self.run(&mut job),
        }
        if let Some(ended) = ended {
            let metrics = &self.context.metrics;
            // Not if it has given the place back meanwhile.
            if metrics.has_futures_place.get() {
                metrics.add(Count::OfExtra, metrics.ended() - ended);
            }
            if is_default {
                self.shared.running.finish(1);
            }
        }
        // Nothing is left of it.
        mem::forget(job);
        true
    }

    /// The worker has no job. Ends its being counted as running, unless it may take jobs without a
    /// place.
    fn end_running(&mut self) {
        if self.passes != Gate::Unused || self.shared.policy.is_used() {
            self.stop_running();
        }
    }

    /// Whether it has kept its place for a task that is not there. Then it asks the policy.
    #[cold]
    fn gives_up_place(&mut self) -> bool {
        self.passes == Gate::Open && self.stop_running() == Gate::Open
    }

    /// Returns what it could pass before.
    #[cold]
    fn stop_running(&mut self) -> Gate {
        let passed = mem::replace(&mut self.passes, Gate::None);
        if passed != Gate::None {
            self.shared.running.finish(1);
        }
        passed
    }

    /// Releases the worker's place, and takes the next job with its place.
    fn next_of_views(&mut self) -> Option<ViewJob> {
        self.end_running();
        let (shared, context) = (&self.shared, &self.context);
        let pop_default = |polls| {
            let queue = &shared.queue;
            let job = if polls { queue.pop_injected(Kind::Woken) } else { context.pop(queue) };
            Some(ViewJob { job: job?, view: None })
        };
        let queued = || (usize::from(!shared.queue.is_empty()), shared.queue.has_future());
        let held = context.replace_place(None);
        if held.is_some_and(|held| held.is_for_futures) {
            // Those of its own poll stand in line with the others.
            context.share_woken();
        }
        let begin = |taken: &ViewJob| shared.running_of(taken.view.as_ref()).add();
        let (taken, has_more) = shared.policy.take(held, pop_default, queued, begin);
        let (taken, place) = taken?;
        if place == Place::of(DEFAULT_VIEW) {
            self.passes = Gate::Open;
        }
        context.replace_place(Some(place));
        if has_more && !self.is_woken {
            // Race 35: the worker leaves work that another one may take. Before the first job since
            // it was woken it looks anyway.
            MustLook::owed().look(shared);
        }
        Some(taken)
    }

    /// Always inlined, as are its parts: it is most of what a worker does for a task.
    #[inline(always)]
    fn run(&mut self, job: &mut Job) {
        self.begin(job.is_new());
        let mut outcome = job.run_in_place();
        self.end(&mut outcome);
        if let Outcome::Yielded(task) = outcome {
            // Race 22: to the end of the queue, without a notification. This worker looks at the
            // queue next; if it takes another entry there, a worker was notified of that one.
            self.context.push_yielded(&self.shared.queue, task);
        }
    }

    /// Runs the job of a view other than the default one.
    fn run_of_view(&mut self, job: &mut Job, view: Arc<ViewCore>) {
        self.begin(job.is_new());
        view.metrics.lock().count_begin();
        let task = RunningTask { pool: self.shared.id(), view: Some(view) };
        replace_task(Some(task));
        let mut outcome = job.run_in_place();
        let ended = replace_task(None).and_then(|task| task.view);
        let view = ended.expect("what ran on top of it has put it back");
        self.end(&mut outcome);
        view.end(&outcome);
        if let Outcome::Yielded(task) = outcome {
            self.shared.push_to_view(Some(&view), Job::woken(task));
        }
        view.running.finish(1);
    }

    #[inline(always)]
    fn begin(&self, is_new: bool) {
        if !is_new {
            self.shared.acquire_over_limit();
        }
        self.context.begin(!is_new);
    }

    #[inline(always)]
    fn end(&self, outcome: &mut Outcome) {
        self.context.end(outcome);
        self.shared.release_permit();
    }

    /// Returns the credit: the tasks that have ended here are no longer in flight.
    fn return_credit(&mut self) {
        let finished = self.context.take_credit();
        if finished > 0 {
            self.shared.finish(finished);
        }
    }

    fn is_quota_used(&self) -> bool {
        let max = self.shared.config.max_tasks_per_worker;
        max.is_some_and(|max| self.context.run_count() >= max)
    }

    /// Leaves because the quota is used, if the worker has a successor or needs none.
    fn try_recycle(&mut self) -> bool {
        if let Some(freed) = self.shared.release_place(&self.context) {
            freed.look(&self.shared);
        }
        self.end_running();
        // Before the decision: a worker with something in flight may not be the last to leave.
        self.return_credit();
        self.leave(Retire::Recycled)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
