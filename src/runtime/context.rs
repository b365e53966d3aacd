//! What a worker has at hand: its own queue, and tasks that it has accepted in advance.
//!
//! A task that submits others does so through the context of the worker it runs on. That costs no write to anything that
//! other workers write too, but for the fence that each submission needs:
//!
//! - The new task goes to the worker's [own queue](crate::queue), where the others find it.
//! - It is counted as in flight without being counted: the worker does not report each task that ends, so the count is
//!   too high by those, its *credit*, and a new task takes the place of one of them. If there is none the worker accepts
//!   several at once. The count is only ever too high, and only while the worker is busy; before it rests or leaves it
//!   gives the rest back. Whether the pool is closed is looked at for each task: a submission that finds it open comes
//!   before the close.
//!
//! A future that is woken by another one's poll goes to the same queue, and nobody else is woken for it: the worker's
//! next look is at that queue. If it takes something else from there, it sees to it that somebody comes. (A first poll may
//! be long, as any new task may, and a blocking region may wait for what was woken: there everybody hears of it.)
//!
//! In a pool with a bounded queue there is no queue at the context: there each task needs capacity.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::queue::{Local, Queue};
use crate::runtime::region::PoolId;
use crate::runtime::shared::Shared;
use crate::stats::WorkerMetrics;
use crate::sync::thread_local;
use crate::task::job::{Job, Outcome};

/// So many tasks are accepted at once.
const CREDIT_BATCH: usize = 16;

thread_local! {
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static DESK: RefCell<Option<Rc<WorkerContext>>> = RefCell::new(None);
}

/// See the [module's documentation](self).
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
            local: shared.config.has_local_queues.then(|| shared.queue.open_local()),
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
        DESK.with(|place| *place.borrow_mut() = Some(Rc::clone(self)));
    }

    /// Nobody uses it any more: no user code of the calling thread finds it.
    pub(crate) fn shut(&self) {
        DESK.with(|place| *place.borrow_mut() = None);
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
            shared.queue.close_local(local);
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

/// The context of the calling thread, if it works for the pool and has one.
#[inline]
pub(crate) fn current(shared: &Arc<Shared>) -> Option<Rc<WorkerContext>> {
    of_pool(shared.id())
}

/// As [`current`], for the pool with this [identity](Shared::id).
#[inline]
pub(crate) fn of_pool(pool: PoolId) -> Option<Rc<WorkerContext>> {
    DESK.try_with(|place| {
        place.borrow().as_ref().filter(|context| context.shared.id() == pool).cloned()
    })
    .ok()
    .flatten()
}
