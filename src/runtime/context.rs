//! What code that runs on a thread finds about it: whose worker it is, what that worker is doing, and the local queue and
//! credit that the worker's tasks submit through.
//!
//! A task that submits others does so through the context of the worker that it runs on. Apart from the fence that each
//! submission needs, that costs no write to anything that other workers write too:
//!
//! - The new task goes to the worker's [local queue](crate::queue), where other workers find it.
//! - The new task takes an in-flight place that the worker already holds. The worker does not report each task that ends, so
//!   the in-flight count is too high by those tasks: the worker's *credit*. Without credit the worker accepts several tasks
//!   at once. The count is only ever too high, and only while the worker is busy: before it rests or leaves, the worker gives
//!   its credit back. Each submission looks whether the pool is closed: one that finds it open comes before the close.
//!
//! A future that is woken by another one's poll goes to the same queue, and no other worker is notified: the polling worker
//! looks at that queue next. If it takes something else from there, it notifies another worker. A first poll may be long, as
//! any new task may, and a blocking region may wait for what was woken: both notify at once.
//!
//! A bounded pool has no local queues: each task needs a permit.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::queue::Queue;
use crate::queue::local::Local;
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::registry::ThreadKey;
use crate::runtime::shared::{PoolId, Shared};
use crate::sync::{Counter, thread_local};
use crate::task::job::{Job, Outcome};

/// How many tasks a worker accepts at once. Each batch costs a write to the shared in-flight count; unused credit shows in
/// `Stats::pending` until the worker rests.
const CREDIT_BATCH: usize = 16;

thread_local! {
    /// The worker that the thread is. Without a destructor: the destructors of users' thread-locals may ask for it.
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static IDENTITY: Cell<Option<Identity>> = Cell::new(None);

    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static THREAD: ThreadContext = ThreadContext::default();
}

/// What a thread has to do with a pool, from its first user code to its last.
#[derive(Clone, Copy)]
struct Identity {
    pool: PoolId,
    /// `None` after the stop hook: another worker may have the index by then.
    index: Option<usize>,
    /// Of a worker that is past its last task.
    leaving: Option<ThreadKey>,
}

/// The rest of what describes the calling thread.
#[derive(Default)]
struct ThreadContext {
    /// What the thread works as, if it is a worker.
    role: RefCell<Option<WorkerRole>>,
    /// What its tasks submit through, while it runs tasks.
    worker: RefCell<Option<Rc<WorkerContext>>>,
    /// Pools of which the thread runs a task without being one of their workers.
    caller_of: RefCell<Vec<PoolId>>,
    /// Counts what the future that the thread polls waits for in the thread's own pool.
    poll_waits: RefCell<Option<Arc<Counter>>>,
}

/// What a worker is doing, and for which pool.
#[derive(Clone)]
pub(super) struct WorkerRole {
    pub(super) pool: Arc<Shared>,
    pub(super) phase: Phase,
    /// The blocking region that the worker is in.
    pub(super) region: Option<Kind>,
}

/// What a region's end depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The worker's own pool: the worker is always replaced. (So is one that waits in a start hook: the number of those is
    /// limited in any case.)
    Own,
    /// Something else: the worker is not replaced if `max_blocked` are already.
    Declared,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It runs its start hook.
    StartHook,
    /// It runs tasks.
    Tasks,
}

/// Reads the calling thread's context. `None` when the thread's locals have been destroyed.
fn with_thread<R>(read: impl FnOnce(&ThreadContext) -> R) -> Option<R> {
    THREAD.try_with(read).ok()
}

fn identity() -> Option<Identity> {
    IDENTITY.try_with(Cell::get).ok().flatten()
}

/// Sets which worker of the pool the calling thread is.
pub(super) fn set_identity(shared: &Arc<Shared>, index: Option<usize>, leaving: Option<ThreadKey>) {
    let identity = Identity { pool: shared.id(), index, leaving };
    IDENTITY.with(|place| place.set(Some(identity)));
}

/// The index of the worker that the calling code runs on, in its own pool: the smallest one that was free when
/// the worker started, and reused when it has ended. `None` outside of workers.
///
/// It is below the pool's `max_size`, unless workers were started in the place of others that were in
/// [blocking regions](crate::blocking()) or still in their stop hooks, or `max_size` has been lowered since. A task of a
/// [scope](crate::ThreadPool::scope) that its opener runs has the opener's index.
///
/// ```
/// let pool = elastipool::ThreadPool::new(1, 4, std::time::Duration::from_secs(1));
/// assert_eq!(pool.evaluate(elastipool::worker_index).await_complete(), Some(0));
/// assert_eq!(elastipool::worker_index(), None);
/// ```
pub fn worker_index() -> Option<usize> {
    identity()?.index
}

/// The calling thread, as seen from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It does not belong to the pool.
    Outside,
    /// It runs a task or the start hook of the pool.
    Busy,
    /// It is a worker of the pool in its stop hook, or past it.
    Leaving(ThreadKey),
}

/// What the calling thread is to the pool.
pub(crate) fn caller(shared: &Arc<Shared>) -> Caller {
    match identity() {
        _ if is_caller_of(shared) => Caller::Busy,
        Some(Identity { pool, leaving, .. }) if pool == shared.id() => {
            leaving.map_or(Caller::Busy, Caller::Leaving)
        }
        _ => Caller::Outside,
    }
}

/// Whether the calling thread runs a task of the pool that is in flight, without being one of its workers.
pub(crate) fn is_caller_of(shared: &Arc<Shared>) -> bool {
    with_thread(|thread| thread.caller_of.borrow().contains(&shared.id())).unwrap_or(false)
}

/// Marks the calling thread as one that runs a task of the pool, whatever else it is, until the guard is dropped.
pub(crate) fn mark_caller(shared: &Arc<Shared>) -> CallerMark {
    // Without thread-locals no later call can ask for the mark.
    let _ = with_thread(|thread| thread.caller_of.borrow_mut().push(shared.id()));
    CallerMark(())
}

/// See [`mark_caller`].
pub(crate) struct CallerMark(());

impl Drop for CallerMark {
    fn drop(&mut self) {
        let _ = with_thread(|thread| thread.caller_of.borrow_mut().pop());
    }
}

/// What the calling thread works as.
pub(super) fn role() -> Option<WorkerRole> {
    with_thread(|thread| thread.role.borrow().clone()).flatten()
}

pub(super) fn is_worker() -> bool {
    with_thread(|thread| thread.role.borrow().is_some()).unwrap_or(false)
}

/// Whether the calling thread runs tasks of the pool as one of its workers.
pub(super) fn is_worker_of(pool: PoolId) -> bool {
    let is_of_pool = |role: &WorkerRole| role.phase == Phase::Tasks && role.pool.id() == pool;
    with_thread(|thread| thread.role.borrow().as_ref().is_some_and(is_of_pool)).unwrap_or(false)
}

/// Notes which blocking region the calling worker is in.
pub(super) fn set_region(region: Option<Kind>) {
    let _ = with_thread(|thread| {
        if let Some(role) = thread.role.borrow_mut().as_mut() {
            role.region = region;
        }
    });
}

/// Sets what the calling thread works as.
pub(super) fn set_worker(worker: Option<(Arc<Shared>, Phase)>) {
    let role = worker.map(|(pool, phase)| WorkerRole { pool, phase, region: None });
    drop(replace_role(role));
}

/// Runs `f` as if the calling thread were no worker.
pub(super) fn outside_of_worker<R>(f: impl FnOnce() -> R) -> R {
    struct Return(Option<WorkerRole>);

    impl Drop for Return {
        fn drop(&mut self) {
            replace_role(self.0.take());
        }
    }

    let _return = Return(replace_role(None));
    f()
}

/// Returns the role before: nothing is dropped while the context is borrowed.
fn replace_role(role: Option<WorkerRole>) -> Option<WorkerRole> {
    with_thread(|thread| thread.role.replace(role)).flatten()
}

/// What the future that the calling thread polls counts its waits in.
pub(super) fn poll_waits() -> Option<Arc<Counter>> {
    with_thread(|thread| thread.poll_waits.borrow().clone()).flatten()
}

pub(super) fn replace_poll_waits(poll_waits: Option<Arc<Counter>>) -> Option<Arc<Counter>> {
    with_thread(|thread| thread.poll_waits.replace(poll_waits)).flatten()
}

/// The context of the calling thread, if it is a worker of the pool that runs tasks.
#[inline]
pub(crate) fn current(shared: &Arc<Shared>) -> Option<Rc<WorkerContext>> {
    current_if(|context| Arc::ptr_eq(&context.shared, shared))
}

/// As [`current`], for the pool with this [identity](Shared::id).
#[inline]
pub(super) fn of_pool(pool: PoolId) -> Option<Rc<WorkerContext>> {
    current_if(|context| context.shared.id() == pool)
}

#[inline]
fn current_if(is_wanted: impl FnOnce(&WorkerContext) -> bool) -> Option<Rc<WorkerContext>> {
    with_thread(|thread| {
        thread.worker.borrow().as_ref().filter(|context| is_wanted(context)).cloned()
    })
    .flatten()
}

/// What the tasks of one worker submit through. See the [module's documentation](self).
pub(crate) struct WorkerContext {
    shared: Arc<Shared>,
    /// None in a pool with a bounded queue.
    local: Option<Local<Job>>,
    metrics: Arc<WorkerMetrics>,
    /// How much higher the count of tasks in flight is than it should be because of this worker.
    credit: Cell<usize>,
    /// How many tasks the worker has run since it started, or since its quota was renewed.
    run: Cell<usize>,
    /// How many entries may be in the worker's own queue, at most, of tasks that it has run without them.
    stale: Cell<usize>,
    /// Whether the worker polls a future, not for the first time and not in a blocking region.
    in_poll: Cell<bool>,
    /// Whether there may be something in the queue that nobody but the worker knows of.
    needs_notify: Cell<bool>,
}

impl WorkerContext {
    pub(crate) fn new(shared: &Arc<Shared>, metrics: Arc<WorkerMetrics>) -> Rc<Self> {
        Rc::new(WorkerContext {
            shared: Arc::clone(shared),
            local: shared.config.has_local_queues.then(|| Local::open(&shared.queue)),
            metrics,
            credit: Cell::new(0),
            run: Cell::new(0),
            stale: Cell::new(0),
            in_poll: Cell::new(false),
            needs_notify: Cell::new(false),
        })
    }

    /// The calling worker's tasks use it from now on.
    pub(crate) fn open(self: &Rc<Self>) {
        THREAD.with(|thread| *thread.worker.borrow_mut() = Some(Rc::clone(self)));
    }

    /// User code on the calling thread finds it no more.
    pub(crate) fn shut(&self) {
        THREAD.with(|thread| *thread.worker.borrow_mut() = None);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes the next task, from wherever there is one.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<Job>) -> Option<Job> {
        let Some(local) = &self.local else { return queue.pop() };
        if local.begin_stalled_check_if_due() {
            if let Some(job) = self.steal(|| local.steal_from_stalled(queue)) {
                return Some(job);
            }
        }
        if let Some(job) = local.pop(queue) {
            return Some(job);
        }
        self.steal(|| local.steal(queue))
    }

    #[cold]
    fn steal(&self, steal: impl FnOnce() -> Option<Job>) -> Option<Job> {
        let stolen = steal();
        if stolen.is_some() {
            // What came with it was in nobody's reach for a moment.
            self.needs_notify.set(true);
        }
        stolen
    }

    /// Whether somebody has to be told of what is in the queue. Asked once.
    #[inline]
    pub(crate) fn take_needs_notify(&self) -> bool {
        self.needs_notify.replace(false)
            && self.local.as_ref().is_some_and(Local::take_needs_notify)
    }

    /// Queues the job that `make` makes. Nobody is told.
    #[inline]
    pub(crate) fn push(&self, queue: &Queue<Job>, make: impl FnOnce() -> Job) {
        let Some(local) = &self.local else { return queue.push(make()) };
        if !local.push(queue, make) {
            // It is in the channel, and the worker looks into its own queue first.
            self.needs_notify.set(true);
        }
    }

    /// Whether the worker will look at its queue soon: as soon as a poll has ended.
    #[cfg(feature = "async")]
    pub(crate) fn is_in_poll(&self) -> bool {
        self.local.is_some() && self.in_poll.get()
    }

    /// Queues a future that is woken by the poll of another one: the worker will see to it after that.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn push_deferring_notify(&self, queue: &Queue<Job>, make: impl FnOnce() -> Job) {
        self.push(queue, make);
        self.needs_notify.set(true);
    }

    /// The worker runs a job. If that is a poll, and not the first one of the future, others hear of what it wakes only
    /// after it.
    #[inline]
    pub(crate) fn begin(&self, is_poll: bool) {
        self.in_poll.set(is_poll);
        self.run.set(self.run.get() + 1);
        self.metrics.take();
    }

    /// From now on others have to hear at once of whatever the worker's task wakes. Returns whether they had not to until
    /// now.
    pub(crate) fn stop_deferring(&self) -> bool {
        self.in_poll.replace(false)
    }

    /// It has run it.
    #[inline]
    pub(crate) fn end(&self, outcome: &Outcome) {
        self.metrics.record(outcome);
        self.in_poll.set(false);
        if outcome.is_end() {
            self.credit.set(self.credit.get() + 1);
        }
        if let Outcome::Skipped = outcome {
            self.run.set(self.run.get() - 1);
        }
    }

    /// The worker runs a task that it waits for, on top of one that it runs already. The task's entry stays in the
    /// queue, unless it is at hand; it counts as in flight until another worker passes over it. The task counts for
    /// itself: a future that has to wait goes on without its entry, and may end in the same moment.
    pub(crate) fn begin_awaited(&self) {
        self.run.set(self.run.get() + 1);
        self.metrics.take();
        self.metrics.claim();
        self.stale.set(self.stale.get() + 1);
        if let Some(local) = &self.local {
            let skipped = local.skip(self.stale.get(), Job::skip);
            // What is dropped here may wait for a task in turn, and skip as well.
            self.stale.set(self.stale.get().saturating_sub(skipped));
            self.metrics.skip(skipped);
            self.credit.set(self.credit.get() + skipped);
        }
        match self.credit.get().checked_sub(1) {
            Some(rest) => self.credit.set(rest),
            None => {
                self.shared.in_flight.hold();
                self.metrics.add_credit(1);
            }
        }
    }

    /// It has run it.
    pub(crate) fn end_awaited(&self, outcome: &Outcome) {
        self.metrics.record(outcome);
        if outcome.is_end() {
            self.credit.set(self.credit.get() + 1);
        }
    }

    /// How much is to be reported. The caller reports it.
    pub(crate) fn take_credit(&self) -> usize {
        self.credit.take()
    }

    /// How many tasks the worker has run since the quota was renewed.
    pub(crate) fn run_count(&self) -> usize {
        self.run.get()
    }

    pub(crate) fn renew_quota(&self) {
        self.run.set(0);
    }

    /// The worker has nothing to do.
    pub(crate) fn rest(&self) {
        self.stale.set(0);
        if let Some(local) = &self.local {
            local.shrink();
        }
    }

    /// Gives up the queue: what is in it is for others.
    pub(crate) fn close(self: Rc<Self>) {
        debug_assert_eq!(self.credit.get(), 0);
        if let Some(WorkerContext { shared, local: Some(local), .. }) = Rc::into_inner(self) {
            local.close(&shared.queue);
        }
    }

    /// Accepts a task. `false` if the pool is closed.
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
            self.metrics.add_credit(CREDIT_BATCH);
            self.credit.set(CREDIT_BATCH);
        }
        self.credit.set(self.credit.get() - 1);
        self.metrics.report(1);
        true
    }
}
