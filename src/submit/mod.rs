//! Submitting, in three steps: a task is **accepted** (it gets a permit of a bounded queue, and is
//! counted in flight), then **enqueued**, then a worker is **notified**. None of these steps
//! depends on the task's type, so they are compiled once.
//!
//! | call | waits for capacity | if the system refuses the first thread | a task that is not accepted |
//! |---|---|---|---|
//! | `execute`, `spawn`, `invoke`, also of a scope | as long as it takes | the caller runs the task | is dropped, and the call panics |
//! | `evaluate`, `spawn_await`, `complete`, also of a scope or group | as long as it takes | the caller runs the task | is dropped, and its handle is cancelled |
//! | `execute` and `spawn` of a group | as long as it takes, and before for a slot | the caller runs the task | comes back |
//! | `try_*` | no | comes back | comes back |
//! | `try_*_for` | until the time is over | comes back | comes back |
//! | a task that its group has let wait for a slot | no: it may exceed the capacity | the thread that frees the slot runs it | was accepted before; after an immediate shutdown it is dropped |
//! | a woken future | no: its worker takes a permit for the poll | the waker drops it as cancelled | was accepted before |
//!
//! A task that runs on its caller starts at once, beside whatever limit: a new kind of task that must
//! wait for something has to come back instead.
//!
//! A closure of `execute` or of a handler is a job at once ([`Route::execute`]). Any other task is
//! made into a job once it is accepted ([`Route::accept`]): a job cannot come back as what it was
//! made of. Between the first two steps each job of a pool with observers, or of a view with a
//! timeout, is wrapped (`Accepted::enqueue_closure`). A task that was accepted before is queued by
//! [`Route::requeue`]. Others use these methods, and
//!
//! - `Accepted`: a task that was accepted and is not enqueued yet.
//! - `Reservation`: that, before there is a task.
//! - `Patience`: what a submission does to have its task accepted.
//! - `wait_for_grant`: waits for a permit or a slot.
//! - `bounded`: what a pool needs for a bounded queue.
//! - `is_boxed`: whether a task of this type is boxed.
//! - `cancel_task`: cancels a handle's task, and drops it if no thread runs it.
//!
//! A submission runs this code of the user on its own thread, under no lock:
//!
//! - what an observer does in `submitted`, once for each accepted task, also for one that waits for
//!   a slot (`sched/route.rs`);
//! - the hook that names a thread, and the subscriber of events, if the submission starts a thread;
//! - the destructor of a task that is dropped, and the task itself in place of a refused thread.

mod caller;
mod reserve;

pub(crate) use caller::cancel_task;
pub(crate) use reserve::{Reservation, wait_for_grant};

use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Refusal;
use crate::flight::{Capacity, Granted, Permits, Waits};
use crate::queue::Kind;
use crate::sched::{
    Bounded, Dependency, Route, TaskRoute, WorkerContext, is_hook_of, trampoline, wait_for,
};
use crate::sync::{Ordering, fence};
use crate::task::{Job, Line, Reporter, TaskId, UnstartedList};

/// What a submission does to have its task accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Nothing. The task comes back if there is no capacity, or if there is no worker and the
    /// system refuses a thread.
    None,
    /// Waits for capacity until this time. `None` waits for ever: the clock cannot represent the
    /// time.
    Until(Option<Instant>),
    /// Waits for capacity as long as it takes. If there is no worker and the system refuses a
    /// thread, the caller runs the task.
    Endless,
}

impl Patience {
    /// Waits for capacity for at most this time.
    pub(crate) fn for_at_most(timeout: Duration) -> Self {
        Patience::Until(Instant::now().checked_add(timeout))
    }
}

/// As many workers wait for capacity and slots as [may](crate::flight::OwnWaits): no other may
/// wait. Nor may a hook, which keeps its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowded;

/// The largest task, in bytes, that is stored in place. A larger one is boxed as soon as it is
/// accepted: an unoptimised build copies the task in each function that it passes through, and a
/// dozen copies of a few hundred KiB overflow a stack. A box for each future of more than 2 KiB
/// also frees its memory when it ends, even if a waker or the handle still exists. A closure
/// without a handle is boxed anyway if it has more than three words.
const MAX_MOVED_SIZE: usize = 2048;

/// Returns what a queue of this capacity needs.
pub(crate) fn bounded(capacity: usize) -> Bounded {
    Bounded {
        capacity,
        permits: |capacity| Box::new(Capacity::new(capacity)),
        wait: |shared, view, capacity, deadline| {
            Route { shared, view }.wait_for_permit(capacity, deadline)
        },
    }
}

/// Whether a task of this type is boxed.
pub(crate) const fn is_boxed<F>() -> bool {
    size_of::<F>() > MAX_MOVED_SIZE
}

/// A task that was accepted and is not enqueued yet.
#[must_use = "an accepted task is in flight until it is enqueued or retracted"]
pub(crate) struct Accepted<'a> {
    pub(crate) route: Route<'a>,
    /// The line of the user's program that submits it.
    pub(crate) line: Line,
    runner: Runner,
}

/// Who runs an accepted task.
pub(super) enum Runner {
    /// A worker. The last one does not leave before the task has ended.
    Worker {
        /// The submitter's context, if it is a worker of the pool.
        context: Option<Rc<WorkerContext>>,
        /// Whether to start a worker if there are fewer than `core_size`, after the push. Not for a
        /// task for which [`Route::find_runner`] has started the first worker, or which was
        /// accepted earlier.
        fills_core: bool,
    },
    /// The submitter: there is no worker, and the system has refused a thread.
    Caller,
}

impl Accepted<'_> {
    /// Queues the task and notifies a worker, or runs it on the caller if it was accepted for that.
    pub(crate) fn enqueue(self, job: Job) {
        self.route.enqueue_for(self.runner, job);
    }

    /// Queues a spawned future. In a pool that measures, it does not wait for closures, unless a
    /// closure spawns it: that may wait for it, and then takes it back from its local queue.
    #[cfg(feature = "async")]
    pub(crate) fn enqueue_spawned(self, job: Job) {
        let is_apart = self.route.view.is_none()
            && self.route.shared.sizes.follows_measurements()
            && match &self.runner {
                Runner::Worker { context: Some(context), .. } => {
                    context.is_in_poll() || context.metrics.polls_only()
                }
                Runner::Worker { context: None, .. } | Runner::Caller => true,
            };
        if is_apart { self.enqueue_apart(job) } else { self.enqueue(job) }
    }

    #[cfg(feature = "async")]
    #[cold]
    fn enqueue_apart(self, job: Job) {
        let shared = self.route.shared;
        match self.runner {
            Runner::Worker { fills_core, .. } => {
                shared.queue.push(Kind::Woken, job);
                self.route.notify_queued(fills_core);
            }
            Runner::Caller => self.route.run_on_caller(job),
        }
    }

    /// Enqueues the job of a closure without a handle.
    pub(crate) fn enqueue_closure(self, job: Job) {
        let own = TaskRoute::own(self.route, self.line, false);
        self.enqueue(job.with_route(own));
    }

    /// Adds a task of a scope or group to its list, and queues an entry for it unless one is left
    /// over. If the task was accepted for the caller, the caller runs the oldest one of the list.
    #[inline(never)]
    pub(crate) fn enqueue_unstarted(
        self,
        list: &Arc<UnstartedList>,
        job: Job,
        reporter: Reporter,
    ) -> TaskId {
        let (entry, id) = list.add(job, reporter);
        match (entry, self.runner) {
            (Some(entry), runner) => self.route.enqueue_for(runner, entry),
            (None, Runner::Worker { context, fills_core }) => {
                // As if it were pushed now.
                self.route.drop_entries(context.as_deref(), 1);
                self.route.notify_queued(fills_core);
            }
            (None, Runner::Caller) => self.route.run_on_caller(list.surplus_entry()),
        }
        id
    }
}

/// # Submitting
impl<'a> Route<'a> {
    /// Submits the job of a closure without a handle, as patiently as can be. Panics if it is not
    /// accepted, and has dropped it then. `instead` is the function that hands the task back.
    #[track_caller]
    pub(crate) fn execute(self, job: Job, instead: &str) {
        if let Err(refusal) = self.submit_closure(job, Location::caller()) {
            refusal.panic(instead);
        }
    }

    /// Submits the job of a closure without a handle, or drops it. Takes the three steps for a task
    /// of the default view of an unbounded pool, without the branches of other tasks.
    ///
    /// The job stays where its closure was stored, until it is copied to its slot in the queue: an
    /// earlier copy would wait for the words that were just written.
    #[inline(never)]
    fn submit_closure(self, job: Job, line: Line) -> Result<(), Refusal> {
        let shared = self.shared;
        if shared.capacity.is_some() || self.view.is_some() || !shared.observers.is_empty() {
            return self.submit_other_closure(job, line);
        }
        match WorkerContext::current(shared) {
            Some(context) if context.accept(shared) => {
                context.push(&shared.queue, Kind::New, job);
            }
            None if shared.in_flight.accept(1) => {
                if shared.counts.load().total() < shared.sizes.core().max(1) {
                    return self.enqueue_below_core(job);
                }
                shared.queue.push(Kind::New, job);
            }
            _ => return self.refuse_closure(job),
        }
        self.notify_queued(true);
        Ok(())
    }

    #[inline(never)]
    fn submit_other_closure(self, job: Job, line: Line) -> Result<(), Refusal> {
        match self.accept(Patience::Endless, line) {
            Ok(accepted) => {
                // After the wait for capacity: its time in the queue begins now.
                accepted.enqueue_closure(job);
                Ok(())
            }
            Err(refusal) => {
                drop(job.abandon());
                Err(refusal)
            }
        }
    }

    #[cold]
    fn enqueue_below_core(self, job: Job) -> Result<(), Refusal> {
        let runner = self.find_runner(None, Patience::Endless)?;
        self.enqueue_for(runner, job);
        Ok(())
    }

    #[cold]
    fn refuse_closure(self, job: Job) -> Result<(), Refusal> {
        self.count_rejection();
        drop(job.abandon());
        Err(Refusal::Closed)
    }

    fn enqueue_for(self, runner: Runner, job: Job) {
        match runner {
            Runner::Worker { context, fills_core } => {
                self.enqueue(context.as_deref(), fills_core, job);
            }
            Runner::Caller => self.run_on_caller(job),
        }
    }

    /// Accepts a task, which is in flight from now on: the caller must [enqueue](Accepted::enqueue)
    /// or [retract](Self::retract) it. Waits for a permit of a bounded queue as long as
    /// `patience` allows. Counts a rejection.
    #[inline(never)]
    pub(crate) fn accept(self, patience: Patience, line: Line) -> Result<Accepted<'a>, Refusal> {
        self.accept_uncounted(patience, line).inspect_err(|_| self.count_rejection())
    }

    /// As [`accept`](Self::accept), for a submitter whose caller does not get the rejection: counts
    /// none.
    pub(crate) fn accept_uncounted(
        self,
        patience: Patience,
        line: Line,
    ) -> Result<Accepted<'a>, Refusal> {
        if let Some(capacity) = self.shared.capacity.as_deref() {
            self.acquire_permit(capacity, patience)?;
        }
        let runner = self.accept_with_permit(patience)?;
        Ok(Accepted { route: self, line, runner })
    }

    /// Accepts a task, for which the caller has acquired a permit. Counts no rejection.
    #[inline(always)]
    fn accept_with_permit(self, patience: Patience) -> Result<Runner, Refusal> {
        match self.count_accepted() {
            Ok(context) => self.find_runner(context, patience),
            Err(refusal) => {
                self.shared.release_permit();
                Err(refusal)
            }
        }
    }

    /// Counts a task as in flight, unless the view or the pool is closed. Returns the submitter's
    /// context, if it is a worker of the pool. A task that waits for a slot of its group needs no
    /// more to be accepted: it will be [enqueued](Self::enqueue_deferred) or
    /// [dropped](Self::drop_on_caller). Counts no rejection.
    #[inline]
    pub(crate) fn count_accepted(self) -> Result<Option<Rc<WorkerContext>>, Refusal> {
        // Race 10: the view's word decides, as the pool's does.
        if self.view.is_some_and(|view| !view.accept()) {
            return Err(Refusal::ViewClosed);
        }
        let context = WorkerContext::current(self.shared);
        let is_accepted = match &context {
            Some(context) => context.accept(self.shared),
            None => self.shared.in_flight.accept(1),
        };
        if is_accepted {
            return Ok(context);
        }
        if let Some(view) = self.view {
            view.finish(1);
        }
        Err(Refusal::Closed)
    }

    /// Finds out who runs *one* accepted task, which holds a permit unless `patience` is endless:
    /// a refusal retracts it. Starts the first worker if there is none.
    fn find_runner(
        self,
        context: Option<Rc<WorkerContext>>,
        patience: Patience,
    ) -> Result<Runner, Refusal> {
        // A thread with a worker context is a worker, so there is one.
        if context.is_some() || self.shared.counts.load().total() > 0 {
            return Ok(Runner::Worker { context, fills_core: true });
        }
        match self.shared.start_first() {
            Ok(started) => Ok(Runner::Worker { context, fills_core: !started }),
            Err(_) if matches!(patience, Patience::Endless) => Ok(Runner::Caller),
            Err(error) => {
                self.retract();
                Err(Refusal::NoThread(error))
            }
        }
    }

    /// Acquires a permit of a bounded queue. Waits for one as long as `patience` allows.
    fn acquire_permit(self, capacity: &dyn Permits, patience: Patience) -> Result<(), Refusal> {
        let bounded = self.shared.config.bounded;
        let wait = |deadline| {
            bounded.is_some_and(|it| (it.wait)(self.shared, self.view, capacity, deadline))
        };
        let is_acquired = capacity.try_acquire(&self.shared.sizes)
            || match patience {
                Patience::None => false,
                Patience::Until(deadline) => wait(deadline),
                Patience::Endless => wait(None),
            };
        if is_acquired { Ok(()) } else { Err(self.refuse_permit()) }
    }

    /// Returns why there is no permit.
    fn refuse_permit(self) -> Refusal {
        // Also without a wait: the caller of a closed view must not try again until there is
        // capacity.
        if self.shared.in_flight.is_closed() {
            Refusal::Closed
        } else if self.is_view_closed() {
            Refusal::ViewClosed
        } else {
            let has_rejected = &self.shared.sizing.has_rejected;
            if !has_rejected.get() && self.shared.policy.may_start_another(self.view_id()) {
                has_rejected.set(true);
            }
            self.shared.ask_if_all_run(self.shared.counts.load());
            Refusal::Full
        }
    }

    fn is_view_closed(self) -> bool {
        self.view.is_some_and(|view| view.in_flight.is_closed())
    }

    /// Waits for a permit. A worker goes on over the limit if [too many](crate::flight::OwnWaits)
    /// wait.
    fn wait_for_permit(self, capacity: &dyn Permits, deadline: Option<Instant>) -> bool {
        let Ok(own_wait) = self.begin_own_wait() else {
            capacity.acquire_over_limit();
            return true;
        };
        let waits = if own_wait.is_some() { Waits::Worker } else { Waits::Outside };
        let mut granted = self.begin_permit_wait(capacity, waits);
        // Its region begins after the submitter was queued: the worker's own blocking may free the
        // permit that it needs.
        let dependency = Dependency::Capacity(self.shared.id());
        let outcome = wait_for(Pin::new(&mut granted), deadline, dependency);
        capacity.end_wait(&self.shared.sizes, granted, outcome == Some(Ok(())))
    }

    fn begin_permit_wait(self, capacity: &dyn Permits, waits: Waits) -> Granted {
        let shared = self.shared;
        let granted = capacity.begin_wait(&shared.sizes, self.view_id(), waits);
        // Race 10: queued first, under the lock. A closer takes that after it has closed the view
        // or the pool.
        if shared.in_flight.is_closed() || self.is_view_closed() {
            capacity.close(Some(self.view_id()));
        }
        // Race 42: queued first. The keeper ends a request for a measurement, fences, and looks
        // whether a submitter waits.
        fence(Ordering::SeqCst);
        shared.ask_if_all_run(shared.counts.load());
        granted
    }

    /// Counts the caller as a worker that waits for a permit or a slot, if it is one. An error if
    /// it [must not wait](crate::flight::OwnWaits): its task is accepted without.
    pub(crate) fn begin_own_wait(self) -> Result<Option<impl Drop + use<'a>>, Crowded> {
        let shared = self.shared;
        if is_hook_of(shared.id()) {
            return Err(Crowded);
        }
        let is_worker = WorkerContext::current(shared).is_some();
        is_worker.then(|| shared.own_waits.begin(&shared.sizes).ok_or(Crowded)).transpose()
    }

    /// Reverts the acceptance of a task that holds a permit, if the queue is bounded.
    pub(crate) fn retract(self) {
        self.shared.release_permit();
        self.finish_on_caller(1);
    }

    /// Queues a job and notifies a worker. If `fills_core`, also starts one if there are fewer than
    /// `core_size`.
    fn enqueue(self, context: Option<&WorkerContext>, fills_core: bool, job: Job) {
        let shared = self.shared;
        if let Some(view) = self.view {
            // Race 35: if no worker may take it now, the next worker that releases a place looks.
            if shared.push_to_view(Some(view), job) || shared.is_below_core(shared.counts.load()) {
                self.notify_queued(fills_core);
            } else {
                // Race 42: with more workers one might take it. No fence is needed: the push and
                // the keeper's look after a measurement take the policy's lock. So the keeper finds
                // the task, or its request has ended before this.
                shared.ask_to_measure();
            }
            return;
        }
        let kind = if job.is_new() { Kind::New } else { Kind::Woken };
        match context {
            Some(context) => context.push(&shared.queue, kind, job),
            None => shared.queue.push(kind, job),
        }
        self.notify_queued(fills_core);
    }

    pub(crate) fn count_rejection(self) {
        self.shared.rejected.increment();
        if let Some(view) = self.view {
            view.rejected.increment();
        }
    }

    /// Under no lock: queues a task that was accepted earlier, whether or not there is capacity.
    /// After an immediate shutdown the task is cancelled instead, like those that the shutdown
    /// found in the queue (race 24).
    ///
    /// Returns the task's number in its `list`, unless it is cancelled.
    pub(crate) fn enqueue_deferred(self, list: &Arc<UnstartedList>, job: Job) -> Option<TaskId> {
        if self.shared.is_stopped() {
            trampoline(self, job, |route, job| route.drop_on_caller(job));
            return None;
        }
        Some(self.enqueue_over_limit(list, job))
    }

    /// As [`enqueue_deferred`](Self::enqueue_deferred), also after an immediate shutdown: for a
    /// task that must not run any more.
    pub(crate) fn enqueue_over_limit(self, list: &Arc<UnstartedList>, job: Job) -> TaskId {
        self.shared.acquire_over_limit();
        if self.ensure_worker() {
            let context = WorkerContext::current(self.shared);
            let runner = Runner::Worker { context, fills_core: false };
            let accepted = Accepted { route: self, line: Location::caller(), runner };
            return accepted.enqueue_unstarted(list, job, Reporter::Handle);
        }
        let (entry, id) = list.add(job, Reporter::Handle);
        let entry = entry.unwrap_or_else(|| list.surplus_entry());
        trampoline(self, entry, |route, entry| route.run_on_caller(entry));
        id
    }

    /// Returns the calling worker if it polls a woken future, and this is not the route of a view.
    /// Then notifying of a future with this route, which the poll wakes, is deferred to the end of
    /// the poll.
    #[inline]
    pub(crate) fn polling_worker(self) -> Option<Rc<WorkerContext>> {
        let worker = WorkerContext::current(self.shared).filter(|_| self.view.is_none());
        worker.filter(|worker| worker.is_in_poll())
    }

    /// Queues a task that was accepted earlier, also if the pool has been closed since. Returns the
    /// job if there is no worker and the system refuses one.
    ///
    /// While a task is in flight there is a worker, except after the system refused the first one
    /// and the submitter ran the task, or polled the future, itself.
    pub(crate) fn requeue(self, job: Job) -> Result<(), Job> {
        if !self.ensure_worker() {
            return Err(job);
        }
        let context = WorkerContext::current(self.shared).filter(|_| job.is_new());
        self.enqueue(context.as_deref(), false, job);
        Ok(())
    }

    /// Notifies a worker of a task that was just queued, if there may be one that waits. If
    /// `fills_core`, also starts one if there are fewer than `core_size`.
    #[inline]
    fn notify_queued(self, fills_core: bool) {
        let shared = self.shared;
        // Race 1: the submitter pushes, then reads the counts. A worker that rests publishes itself
        // in the counts, then looks at the queue. With a fence in between on both sides, at least
        // one sees the other.
        fence(Ordering::SeqCst);
        let now = shared.counts.load();
        if now.total() < shared.sizes.core() || shared.may_run_another(now) {
            shared.wake_or_start(fills_core);
        }
    }

    /// Starts the first worker if there is none. `false` if the system refuses the thread: who
    /// returns its error calls `start_first`.
    #[must_use]
    fn ensure_worker(self) -> bool {
        self.shared.counts.load().total() > 0 || self.shared.start_first().is_ok()
    }
}
