//! What code finds about the thread that runs it: which pool's worker the thread is, what that
//! worker is doing, and the local queue and credit that its tasks submit through. In one file,
//! since a submission reads all of it at once.
//!
//! A task submits others through the context of its worker. Apart from its fence, such a submission
//! writes nothing that other workers write too:
//!
//! - The new task goes to the worker's [local queue](crate::queue), where other workers find it; if
//!   its tasks are coarse, mostly to the injector (below).
//! - The new task is counted by *credit*: the worker does not subtract each ended task from the
//!   in-flight count, and the new task takes over the count of an ended one. A worker without
//!   credit accepts a batch of tasks at once. So the in-flight count may be too high, but only
//!   while the worker is busy: it returns its credit before it rests or leaves (race 20). Each
//!   submission also checks whether the pool is closed. One that finds it open comes before the
//!   close (race 20).
//!
//! A future that another future's poll wakes goes to the worker's local queue of woken futures, and
//! no worker is notified: the polling worker takes from that queue next, and notifies another
//! worker if it leaves something there. There are three exceptions. A first poll may be as long as
//! any new task, and so may a task that a poll waits for and runs itself; a blocking region may
//! wait for the woken future. Each makes the wake like one from outside.
//!
//! If the worker's tasks are *coarse* and no idle worker may be woken, what they submit and what
//! their polls wake goes to the injectors instead, behind all that came before: in local queues of
//! different lengths some would wait many times as long as others.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::crew::{MustLook, Snapshot, ThreadKey, WorkerMetrics};
use crate::flight::RunningMark;
use crate::queue::{Kind, Local};
use crate::sched::shared::{Shared, TaskQueue};
use crate::sync::thread_local;
use crate::sync::unwind::{OnDrop, discard};
use crate::task::{Entry, Job, Outcome, Run};
use crate::thread::{Identity, PoolId, identity};
use crate::views::{Place, ViewCore};

/// How many tasks a worker without credit accepts at once. Each batch costs one write to the shared
/// in-flight count, so 16 makes that cost small beside the rest of a submission. More would keep
/// the count too high by more until the worker rests. In a model 2, so that a few submissions use
/// up a batch.
const CREDIT_BATCH: usize = if cfg!(elastipool_loom) { 2 } else { 16 };

thread_local! {
    static THREAD: ThreadContext = ThreadContext::default();
}

/// The calling thread's context, without its identity (`thread`).
#[derive(Default)]
struct ThreadContext {
    /// Set while the thread is a worker that runs its start hook or tasks.
    worker: RefCell<Option<Rc<WorkerContext>>>,
    /// Whether the thread runs a hook [outside of the worker](outside_of_worker).
    is_outside: Cell<bool>,
    /// The pools whose tasks run on this thread as their caller.
    caller_of: RefCell<Vec<PoolId>>,
    /// The task that the thread runs. `None` if it runs none, or as a worker one of its pool's
    /// default view.
    task: RefCell<Option<RunningTask>>,
}

/// To which pool and view a running task belongs. `None`: the default view.
#[derive(Clone)]
pub(super) struct RunningTask {
    pub(crate) pool: PoolId,
    pub(crate) view: Option<Arc<ViewCore>>,
}

/// What the end of a blocking region depends on. A region inside of another one of this kind or a
/// later one changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegionKind {
    /// Something outside the pool: the worker is replaced unless `max_blocked` others are.
    Declared,
    /// The worker's own pool: the worker is always replaced. A wait in a start hook is of this kind
    /// too, since the number of those is limited anyway.
    Own,
}

/// Reads the calling thread's context. `None` once the thread-locals have been destroyed.
fn with_thread<R>(read: impl FnOnce(&ThreadContext) -> R) -> Option<R> {
    THREAD.try_with(read).ok()
}

/// What the calling thread is to a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Neither a worker of the pool nor the caller of one of its tasks.
    Outside,
    /// It runs a task or the start hook of the pool, or is its keeper or helper.
    Busy,
    /// A worker of the pool, in its stop hook or past it.
    Leaving(ThreadKey),
}

impl Caller {
    /// Returns what the calling thread is to the pool.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        match identity() {
            _ if is_caller_of(shared) => Caller::Busy,
            Some(Identity { pool, leaving, .. }) if pool == shared.id() => {
                leaving.map_or(Caller::Busy, Caller::Leaving)
            }
            _ => Caller::Outside,
        }
    }

    /// Returns the key of the calling thread, if it is one of the pool's that must not wait for
    /// itself.
    pub(crate) fn leaving(self) -> Option<ThreadKey> {
        match self {
            Caller::Leaving(key) => Some(key),
            Caller::Outside | Caller::Busy => None,
        }
    }
}

/// Whether the calling thread runs an in-flight task of the pool as its caller.
pub(crate) fn is_caller_of(shared: &Arc<Shared>) -> bool {
    with_thread(|thread| thread.caller_of.borrow().contains(&shared.id())).unwrap_or(false)
}

/// Returns how many tasks, of any pools, the calling thread runs or drops as their caller, each on
/// top of the one before.
pub(crate) fn caller_depth() -> usize {
    with_thread(|thread| thread.caller_of.borrow().len()).unwrap_or(0)
}

/// Marks the calling thread as the caller of a task of this pool and view, which runs, until this
/// is dropped.
pub(crate) struct CallerMark<'a> {
    _task: Option<TaskMark>,
    _running: RunningMark<'a>,
}

impl<'a> CallerMark<'a> {
    pub(crate) fn begin(shared: &'a Shared, view: Option<&'a Arc<ViewCore>>) -> Self {
        // Once the thread-locals are destroyed, no later call can look for the mark.
        let _ = with_thread(|thread| thread.caller_of.borrow_mut().push(shared.id()));
        let running = RunningMark::begin(shared.running_of(view));
        CallerMark { _task: enter_task(shared, view), _running: running }
    }
}

impl Drop for CallerMark<'_> {
    fn drop(&mut self) {
        let _ = with_thread(|thread| thread.caller_of.borrow_mut().pop());
    }
}

/// Makes this the task that the calling thread runs. Returns the one before.
pub(super) fn replace_task(task: Option<RunningTask>) -> Option<RunningTask> {
    with_thread(|thread| thread.task.replace(task)).flatten()
}

/// Makes a task of this pool and view the one that the calling thread runs, on top of another one,
/// until the guard is dropped. `None` if that changes nothing: a worker's tasks are mostly of the
/// default view.
#[inline]
pub(super) fn enter_task(shared: &Shared, view: Option<&Arc<ViewCore>>) -> Option<TaskMark> {
    let has_task = with_thread(|thread| thread.task.borrow().is_some()).unwrap_or(false);
    if view.is_none() && !has_task && works_for(shared.id()) {
        return None;
    }
    let task = RunningTask { pool: shared.id(), view: view.cloned() };
    Some(TaskMark { outer: replace_task(Some(task)) })
}

/// See [`enter_task`].
pub(super) struct TaskMark {
    outer: Option<RunningTask>,
}

impl Drop for TaskMark {
    fn drop(&mut self) {
        // May be the last reference to the view.
        discard(replace_task(self.outer.take()));
    }
}

/// What keeps a pool open, and a view of the pool.
type HandleAndView = (Arc<dyn Any + Send + Sync>, Option<Arc<ViewCore>>);

/// Returns what keeps the pool open, while it exists, that the running task belongs to, and the
/// task's view. A hook, on whichever thread of the pool, belongs to the default view. `None` outside
/// of the pools.
pub(crate) fn running_handle() -> Option<HandleAndView> {
    let task = with_thread(|thread| thread.task.borrow().clone()).flatten();
    let hook = || identity().map(|identity| RunningTask { pool: identity.pool, view: None });
    let RunningTask { pool, view } = task.or_else(hook)?;
    // A worker does not lock the table of all pools.
    if let Some(worker) = worker().filter(|worker| worker.shared.id() == pool) {
        return Some((worker.shared.handle.upgrade()?, view));
    }
    let shared = Shared::find(pool)?;
    let handle = shared.handle.upgrade();
    // It may be the last reference.
    discard(shared);
    Some((handle?, view))
}

/// Makes this the calling thread's worker, or makes it none. Returns the one before for the caller
/// to drop: dropping it may run user code, which must not find the context borrowed.
pub(super) fn set_worker(worker: Option<Rc<WorkerContext>>) -> Option<Rc<WorkerContext>> {
    with_thread(|thread| thread.worker.replace(worker)).flatten()
}

/// Makes the calling thread no worker until what it returns is dropped, for a hook.
pub(super) fn outside_of_worker() -> impl Drop {
    let was_outside = with_thread(|thread| thread.is_outside.replace(true)).unwrap_or(true);
    let mut worker = set_worker(None);
    OnDrop(move || {
        drop(set_worker(worker.take()));
        let _ = with_thread(|thread| thread.is_outside.set(was_outside));
    })
}

/// Whether the calling thread is the pool's keeper or helper, in a start hook of the pool, or in a
/// hook [outside of the worker](outside_of_worker): of this pool, or of another one that a task or
/// submitter of this pool has called. Not a worker that is leaving, which no longer counts.
pub(crate) fn is_hook_of(pool: PoolId) -> bool {
    let is_own = |identity: Identity| identity.pool == pool && identity.leaving.is_none();
    let is_outside = || with_thread(|thread| thread.is_outside.get()).unwrap_or(false);
    let runs_tasks = worker().is_some_and(|worker| worker.runs_tasks.get());
    !runs_tasks && (is_outside() || identity().is_some_and(is_own))
}

/// Whether the calling thread runs a hook [outside of the worker](outside_of_worker).
pub(super) fn is_outside_of_worker() -> bool {
    with_thread(|thread| thread.is_outside.get()).unwrap_or(true)
}

/// Returns the context of the calling worker, which runs its start hook or tasks, of whichever
/// pool.
#[inline]
pub(super) fn worker() -> Option<Rc<WorkerContext>> {
    with_thread(|thread| thread.worker.borrow().clone()).flatten()
}

/// Whether the calling thread runs tasks of the pool, or its start hook, as one of its workers.
pub(super) fn works_for(pool: PoolId) -> bool {
    worker().is_some_and(|worker| worker.shared.id() == pool)
}

/// What a worker is doing, and what its tasks submit through. See the [module's
/// documentation](self).
pub(crate) struct WorkerContext {
    pub(crate) shared: Arc<Shared>,
    /// Whether it runs tasks. Otherwise it runs its start hook.
    pub(super) runs_tasks: Cell<bool>,
    /// The blocking region that it is in.
    pub(super) region: Cell<Option<RegionKind>>,
    /// `None` in most models, which it makes slow.
    local: Option<Local<Job>>,
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// By how many tasks the in-flight count is too high because of this worker.
    credit: Cell<usize>,
    /// Tasks run since the worker started, or since its quota was renewed.
    run: Cell<usize>,
    /// How long the queue of new tasks was when the newest one was last found not to be stale:
    /// stale ones may be under it. Zero if there are none.
    covered: Cell<usize>,
    /// Whether the worker polls a woken future outside of blocking regions. If so, notifying is
    /// deferred.
    in_poll: Cell<bool>,
    /// Whether the queue may hold work that no worker was notified of.
    needs_notify: Cell<bool>,
    /// Whether the last poll has yielded, so that a new task comes next.
    has_yielded: Cell<bool>,
    /// The place that the worker holds or, in a blocking region, takes at the end. `None` in a pool
    /// without views, and for a task that was taken before there was one.
    pub(super) place: Cell<Option<Place>>,
}

impl WorkerContext {
    /// Returns the calling worker's context, if it is a worker of this pool that runs tasks.
    #[inline]
    pub(crate) fn current(shared: &Arc<Shared>) -> Option<Rc<Self>> {
        worker().filter(|worker| Arc::ptr_eq(&worker.shared, shared) && worker.runs_tasks.get())
    }

    /// Returns the calling worker's context, if it is a worker of the pool with this
    /// [identity](Shared::id) that runs tasks.
    pub(crate) fn of_pool(pool: PoolId) -> Option<Rc<Self>> {
        worker().filter(|worker| worker.shared.id() == pool && worker.runs_tasks.get())
    }

    pub(crate) fn new(shared: &Arc<Shared>, metrics: Arc<WorkerMetrics>) -> Rc<Self> {
        let local = shared.config.has_local_queues.then(|| Local::open(&shared.queue));
        Rc::new(WorkerContext {
            shared: Arc::clone(shared),
            runs_tasks: Cell::new(false),
            region: Cell::new(None),
            local,
            metrics,
            credit: Cell::new(0),
            run: Cell::new(0),
            covered: Cell::new(0),
            in_poll: Cell::new(false),
            needs_notify: Cell::new(false),
            has_yielded: Cell::new(false),
            place: Cell::new(None),
        })
    }

    /// Takes the next job: from the local queue, the injector or another worker.
    #[inline]
    pub(crate) fn pop(&self, queue: &TaskQueue) -> Option<Job> {
        let has_yielded = self.has_yielded.take();
        let Some(local) = &self.local else {
            let new = has_yielded.then(|| queue.pop_injected(Kind::New)).flatten();
            return new.or_else(|| queue.pop());
        };
        if local.begin_request(self.run.get()) {
            if let Some(job) = self.steal(|| local.check(queue)) {
                return Some(job);
            }
        }
        if let Some(job) = local.pop(queue, has_yielded) {
            return Some(job);
        }
        self.steal(|| local.steal(queue))
    }

    /// Before a new task: woken futures come first, and this worker may be busy for long. In a pool
    /// that measures, they wait for no closure, however short the others were.
    pub(super) fn share_woken_before_task(&self) {
        let is_long = |local: &Local<Job>| local.pacing.are_tasks_long();
        if self.local.as_ref().is_some_and(is_long) || self.shared.sizes.follows_measurements() {
            self.share_woken();
        }
    }

    /// Lets other workers take the futures that the worker's polls have woken.
    pub(super) fn share_woken(&self) {
        if self.local.as_ref().is_some_and(|local| local.share_woken(&self.shared.queue)) {
            self.needs_notify.set(true);
        }
    }

    #[cold]
    fn steal(&self, steal: impl FnOnce() -> Option<Job>) -> Option<Job> {
        let stolen = steal();
        if stolen.is_some() {
            // Race 1: the rest of the stolen batch was in no queue for a moment, so another worker
            // may have rested.
            self.owe(MustLook::owed());
        }
        stolen
    }

    /// The worker looks before it runs the job that it takes next.
    fn owe(&self, _: MustLook) {
        self.needs_notify.set(true);
    }

    /// Returns the look that the worker owes, if it does.
    #[inline]
    pub(crate) fn take_owed(&self) -> Option<MustLook> {
        // Mostly clear: then it is not written.
        if !self.needs_notify.get() {
            return None;
        }
        self.needs_notify.set(false);
        let leaves_items = match &self.local {
            Some(local) => local.leaves_items(&self.shared.queue),
            // A yielded future, beside a closure that this worker has taken.
            None => self.shared.has_ready_future(),
        };
        leaves_items.then(MustLook::owed)
    }

    /// Whether what the worker's tasks submit or wake goes to the injectors: its tasks are
    /// *coarse*, and no idle worker may be woken.
    #[inline]
    fn prefers_injector(&self, local: &Local<Job>) -> bool {
        local.pacing.are_tasks_coarse()
            && !may_wake(self.shared.counts.load(), self.shared.sizes.limit())
    }

    /// Forgets how long the worker's tasks take: the time since the last one is not that of tasks.
    pub(super) fn forget_task_time(&self) {
        if let Some(local) = &self.local {
            local.pacing.forget();
        }
    }

    /// Queues a job, without notifying a worker. If the worker's own poll has woken it, the worker
    /// notifies after that poll, if it must (race 22). Always inlined: it would copy the job to
    /// pass it on.
    #[inline(always)]
    pub(crate) fn push(&self, queue: &TaskQueue, kind: Kind, job: Job) {
        self.push_with(queue, kind, || job);
    }

    /// As [`push`](Self::push), of the job that `make` makes.
    #[inline(always)]
    fn push_with(&self, queue: &TaskQueue, kind: Kind, make: impl FnOnce() -> Job) {
        let is_local = match self.local.as_ref().filter(|local| !self.prefers_injector(local)) {
            Some(local) => local.push_with(queue, kind, make),
            None => inject(queue, kind, make()),
        };
        if !is_local {
            // It went to the injector, and this worker takes from its local queue first.
            self.needs_notify.set(true);
        }
    }

    /// Returns the place that the worker had before.
    pub(super) fn replace_place(&self, place: Option<Place>) -> Option<Place> {
        self.metrics.has_futures_place.set(place.is_some_and(|place| place.is_for_futures));
        self.place.replace(place)
    }

    /// Whether the worker polls a woken future, and so will look at its queue soon.
    pub(crate) fn is_in_poll(&self) -> bool {
        self.local.is_some() && self.in_poll.get()
    }

    /// Pushes a future that was woken during its own poll: mostly it yields. It gives way to one
    /// new task, unless the worker knows that a few polls more do not delay these.
    #[inline(always)]
    pub(crate) fn push_yielded(&self, queue: &TaskQueue, task: Arc<dyn Run>) {
        if self.local.as_ref().is_none_or(|local| local.pacing.are_tasks_long()) {
            self.has_yielded.set(true);
        }
        self.push_with(queue, Kind::Woken, || Job::woken(task));
    }

    /// Pushes a future that the poll of another one has woken. The worker notifies of it after that
    /// poll, or the keeper if the poll does not end.
    #[inline]
    pub(crate) fn push_deferring_notify(&self, task: Arc<dyn Run>) {
        self.push_with(&self.shared.queue, Kind::Woken, || Job::woken(task));
        self.needs_notify.set(true);
        self.shared.watch_deferred();
    }

    /// Counts a job that the worker begins to run. If `is_poll`, the poll of a woken future,
    /// notifying is deferred to its end.
    #[inline]
    pub(super) fn begin(&self, is_poll: bool) {
        self.in_poll.set(is_poll);
        self.run.set(self.run.get().wrapping_add(1));
        self.metrics.count_begin();
    }

    /// Makes futures that the worker's task wakes from now on notify at once, and lets other
    /// workers take the ones that it has woken. The caller looks.
    pub(super) fn stop_deferring(&self) {
        self.share_woken();
        self.in_poll.set(false);
        self.needs_notify.set(false);
    }

    /// Counts the end of the job.
    #[inline]
    pub(super) fn end(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Completed | Outcome::Pending | Outcome::Yielded(_) => {
                self.end_awaited(outcome);
            }
            _ => self.end_rare(outcome),
        }
        self.in_poll.set(false);
    }

    /// Ends a job whose outcome is rare. Not inlined, so that the usual ones do not pay for tests
    /// of these.
    #[cold]
    #[inline(never)]
    fn end_rare(&self, outcome: &mut Outcome) {
        self.shared.handle_failure(outcome);
        self.end_awaited(outcome);
        if let Outcome::Skipped = outcome {
            if !self.in_poll.get() {
                // It has no permit that the worker could release. That of a woken future has the
                // worker's.
                self.shared.acquire_over_limit();
                self.shared.release_permits_of_entries(1);
            }
            self.run.set(self.run.get().wrapping_sub(1));
        }
    }

    /// Takes the newest entry of the local queue back if it is `wanted`.
    pub(crate) fn take_back(&self, wanted: impl FnOnce(&Job) -> bool) -> Option<Job> {
        self.local.as_ref()?.pop_newest_if(wanted)
    }

    /// Counts a claimed task that the worker begins to run on top of another one. If its entry was
    /// not taken back, drops it now if it is the newest in the local queue. Otherwise it stays
    /// queued until it is the newest, or a worker takes it.
    pub(crate) fn begin_awaited(&self, entry: Entry) {
        self.run.set(self.run.get().wrapping_add(1));
        self.metrics.begin_awaited(entry);
        // On top of a poll, perhaps: what the claimed task wakes does not wait for the end of that.
        self.in_poll.set(false);
        if entry == Entry::TakenBack {
            self.skip_uncovered();
            return;
        }
        // What this task submits goes to the local queue from now on, where the waiting worker can
        // take it back. In the injector each task that it waits for would leave an entry behind.
        self.forget_task_time();
        self.skip_stale();
        self.covered.set(self.local_len());
    }

    /// Drops stale entries that were under the one which was taken back.
    #[inline]
    fn skip_uncovered(&self) {
        if self.covered.get() > 0 && self.local_len() < self.covered.get() {
            self.skip_stale();
            self.covered.set(self.local_len());
        }
    }

    /// Returns how many entries of new tasks the local queue has, stale ones among them.
    pub(crate) fn local_len(&self) -> usize {
        self.local.as_ref().map_or(0, Local::len_of_new)
    }

    /// Drops the newest entries of the local queue as long as they are stale.
    #[cold]
    fn skip_stale(&self) {
        while self.take_back(Job::take_if_stale).map(discard).is_some() {
            self.drop_entries(1);
        }
    }

    /// Counts stale entries that are no longer in the queue, or no longer stale.
    pub(crate) fn drop_entries(&self, count: usize) {
        self.metrics.drop_entries(count);
        self.shared.release_permits_of_entries(count);
    }

    /// Counts the end of a job that was run, or of a claimed task.
    #[inline]
    pub(crate) fn end_awaited(&self, outcome: &Outcome) {
        self.metrics.record(outcome);
        if outcome.is_end() {
            self.credit.set(self.credit.get() + 1);
        }
    }

    /// Takes the credit, which the caller subtracts from the in-flight count next.
    pub(super) fn take_credit(&self) -> usize {
        let credit = self.credit.take();
        // Counted before: afterwards the pool may be quiet.
        self.metrics.count_returned(credit);
        credit
    }

    /// Returns how many tasks the worker has run of its quota.
    pub(super) fn run_count(&self) -> usize {
        self.run.get()
    }

    /// Begins the task quota anew.
    pub(super) fn renew_quota(&self) {
        self.run.set(0);
    }

    /// Prepares for a rest. The local queues are empty, unless more workers run than may: then the
    /// others find woken futures here only if they are shared. Stale entries that are left are
    /// skipped when they are taken.
    pub(super) fn rest(&self) {
        self.share_woken();
        self.covered.set(0);
        if let Some(local) = &self.local {
            local.rest();
        }
    }

    /// Gives up the local queue. Returns the look for tasks that it has moved, if there are any.
    /// The credit was taken before: if it was wrong, `InFlight::finish` asserts, or no join
    /// returns.
    #[must_use]
    pub(crate) fn close(self: Rc<Self>) -> Option<MustLook> {
        debug_assert_eq!(self.credit.get(), 0);
        match Rc::into_inner(self) {
            Some(WorkerContext { shared, local: Some(local), .. }) => {
                local.close(&shared.queue).then(MustLook::owed)
            }
            _ => None,
        }
    }

    /// Accepts a task against the worker's credit. `false` if the pool is closed.
    #[inline]
    #[must_use]
    pub(crate) fn accept(&self, shared: &Shared) -> bool {
        if shared.in_flight.is_closed() {
            return false;
        }
        if self.credit.get() == 0 {
            if !shared.in_flight.accept(CREDIT_BATCH) {
                return false;
            }
            self.metrics.count_returned(CREDIT_BATCH.wrapping_neg());
            self.credit.set(CREDIT_BATCH);
        }
        self.credit.set(self.credit.get() - 1);
        self.metrics.count_returned(1);
        true
    }
}

/// Queues a job in line with all others. Not inlined: most jobs go to a local queue.
#[cold]
#[inline(never)]
fn inject(queue: &TaskQueue, kind: Kind, job: Job) -> bool {
    queue.push(kind, job);
    false
}

/// Whether an idle worker may be woken.
#[cold]
fn may_wake(now: Snapshot, limit: usize) -> bool {
    now.idle() > 0 && now.has_spare_capacity(limit)
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::may_wake;
    use crate::crew::Counts;

    #[test]
    fn an_idle_worker_is_woken_below_the_limit() {
        let counts = Counts::default();
        for _ in 0..100 {
            counts.add_worker();
        }
        assert!(!may_wake(counts.load(), 200), "a thread may be started");
        _ = counts.add_idle(false);
        assert!(may_wake(counts.load(), 100));
        assert!(!may_wake(counts.load(), 99));
    }
}
