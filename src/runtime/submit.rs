//! Submitting: a task is accepted, then enqueued. A task that is not accepted is handed back. If there is no worker and
//! the system refuses a thread, the submitter may choose to run the task itself.
//!
//! A task that may come back is made into a job only after the pool has decided, so it comes back untouched. So is a scope's
//! task (see [`Route::enqueue_unstarted`]). Any other task is made into a job first, and dropped with it if it is rejected:
//! the closure of `execute` or of a handler at once, others after the wait for capacity. What follows does not depend on the
//! task's type, and is compiled once.

use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Refusal, Rejected};
use crate::runtime::awaited::notify_deferred;
use crate::runtime::capacity::{Capacity, NoPermit, OwnWait, Patience};
use crate::runtime::context::{self, WorkerContext, mark_caller};
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::region::{Dependency, has_passed, wait_for};
use crate::runtime::route::Route;
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::trampoline;
use crate::runtime::view::{ViewCore, ViewJob};
use crate::sync::unwind::discard;
use crate::sync::{Ordering, fence};
use crate::task::attachment::Line;
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::{Outcome, Run};
use crate::task::unstarted::{TaskId, Unstarted};

/// What to do with a task if there is no worker and the system refuses a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WithoutThread {
    HandBack,
    RunOnCaller,
}

/// As many workers as may run wait for capacity and slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowded;

/// The largest task, in bytes, that a submission moves. A larger one is boxed first: an unoptimised build copies the task in
/// each function that it passes through, and a dozen copies of a few hundred KiB overflow a stack. A box for each future of
/// more than 2 KiB also frees its memory when it ends, even if a waker or the handle still exists. A closure of `execute` is made
/// into a job at once, which boxes it if it has more than three words.
const MAX_MOVED_SIZE: usize = 2048;

/// Makes a task into a job and its handle.
pub(crate) trait Prepare<F>: Sized {
    type Handle;

    /// Makes a task into a job and its handle. Abandoning the job must drop this task and no other, unless it is submitted
    /// only by ways that make no job of a task that is not accepted ([`Route::submit`]).
    fn prepare(self, task: F) -> (Job, Self::Handle);

    /// Prepares a task of more than [`MAX_MOVED_SIZE`].
    fn prepare_boxed(self, task: Box<F>) -> (Job, Self::Handle);
}

/// The handle of a task that may turn out not to be accepted.
pub(crate) trait Refuse {
    /// The task was not accepted, and has been dropped.
    fn refuse(&mut self, refusal: &Refusal);
}

/// Whether a task of this type is boxed before it is moved on.
pub(crate) const fn is_boxed<F>() -> bool {
    size_of::<F>() > MAX_MOVED_SIZE
}

/// A task that was accepted and is not enqueued yet.
#[must_use = "an accepted task is in flight until it is enqueued or retracted"]
pub(crate) enum Accepted {
    /// A worker will run it. The last worker does not leave before the task has ended.
    ByWorker {
        /// The submitter's context, if it is a worker of the pool.
        context: Option<Rc<WorkerContext>>,
        /// Whether to start a worker if there are fewer than `core_size`. Each submission starts at most one, so this
        /// is `false` if it has started the first.
        fills_core: bool,
    },
    /// The submitter will run it: there is no worker, and the system has refused a thread.
    ByCaller,
}

/// The outcome of [`Route::accept_fast`].
#[must_use = "an accepted task is in flight until it is enqueued"]
enum FastAcceptance {
    /// In the submitter's context: it is a worker.
    InContext(Rc<WorkerContext>),
    /// From outside. There is a worker.
    FromOutside,
    /// From outside. There is no worker yet, or there are fewer than `core_size`.
    BelowCore,
    Refused,
}

/// Whether a task has the permit that a bounded queue demands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permit {
    /// The queue is unbounded.
    NotNeeded,
    Acquired,
    /// There is none: the view was closed.
    ViewClosed,
    /// There is none: the pool was closed.
    Closed,
}

/// Makes a task into a job and its handle.
fn make_job<F, P: Prepare<F>>(task: F, prepare: P) -> (Job, P::Handle) {
    if const { is_boxed::<F>() } {
        prepare.prepare_boxed(Box::new(task))
    } else {
        prepare.prepare(task)
    }
}

/// Enqueues an accepted task, or hands it back. `prepare` makes the task into a job.
fn submit_moved<F, H>(
    task: F,
    prepare: impl FnOnce(F) -> (Job, H),
    accepted: Result<Accepted, Refusal>,
    enqueue: impl FnOnce(Accepted, Job),
) -> Result<H, Rejected<F>> {
    match accepted {
        Ok(accepted) => {
            let (job, handle) = prepare(task);
            enqueue(accepted, job);
            Ok(handle)
        }
        Err(refusal) => Err(Rejected::new(task, refusal)),
    }
}

/// # Submitting
impl<'a> Route<'a> {
    /// Submits a task, or hands it back.
    pub(crate) fn submit<F, P: Prepare<F>>(
        self,
        task: F,
        prepare: P,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<P::Handle, Rejected<F>> {
        if const { is_boxed::<F>() } {
            let prepare = |task| prepare.prepare_boxed(task);
            let accepted = self.accept(patience, without_thread);
            let enqueue = |accepted, job| self.enqueue(accepted, job);
            submit_moved(Box::new(task), prepare, accepted, enqueue).map_err(Rejected::unbox)
        } else {
            let accepted = self.accept(patience, without_thread);
            let enqueue = |accepted, job| self.enqueue(accepted, job);
            submit_moved(task, |task| prepare.prepare(task), accepted, enqueue)
        }
    }

    /// Submits a task without waiting for capacity, and without running it on the caller.
    pub(crate) fn try_submit<F, P: Prepare<F>>(
        self,
        task: F,
        prepare: P,
    ) -> Result<P::Handle, Rejected<F>> {
        self.submit(task, prepare, Patience::None, WithoutThread::HandBack)
    }

    /// As [`submit_closure`](Self::submit_closure), for a future without a handle.
    #[cfg(feature = "async")]
    pub(crate) fn submit_or_run<F, P: Prepare<F>>(
        self,
        task: F,
        prepare: P,
    ) -> Result<P::Handle, Rejected<()>> {
        let permit = self.await_permit();
        let (job, handle) = make_job(task, prepare);
        self.submit_job(job, permit)?;
        Ok(handle)
    }

    /// As [`submit_closure`](Self::submit_closure), for a task with a handle. Returns the handle also if the task is not accepted:
    /// it is cancelled.
    pub(crate) fn submit_or_cancel<F, P: Prepare<F>>(self, task: F, prepare: P) -> P::Handle
    where
        P::Handle: Refuse,
    {
        let permit = self.await_permit();
        let (job, mut handle) = make_job(task, prepare);
        if let Err(rejected) = self.submit_job(job, permit) {
            handle.refuse(&rejected.into_refusal());
        }
        handle
    }

    /// Adds an accepted task of a scope or group to its list, and queues an entry for it unless one is left over. If the task was
    /// accepted for the caller, the caller runs the oldest one of the list.
    #[inline(never)]
    pub(crate) fn enqueue_unstarted(
        self,
        accepted: Accepted,
        list: &Arc<Unstarted>,
        job: Job,
        has_handle: bool,
    ) -> TaskId {
        let (entry, id) = list.add(job, has_handle);
        match (accepted, entry) {
            (Accepted::ByWorker { context: Some(context), fills_core }, Some(entry))
                if self.view.is_none() =>
            {
                context.push(&self.shared.queue, entry);
                self.shared.notify_queued(fills_core);
            }
            (Accepted::ByWorker { context, fills_core }, None) => {
                // As if it were pushed now.
                self.drop_entries(context.as_deref(), 1);
                self.shared.notify_queued(fills_core);
            }
            (Accepted::ByCaller, None) => self.run_on_caller(list.surplus_entry()),
            (accepted, Some(entry)) => self.enqueue(accepted, entry),
        }
        id
    }

    /// Waits for a permit of a bounded queue. The task's expiry is made afterwards: its time in the queue begins then.
    #[inline]
    fn await_permit(self) -> Permit {
        match &self.shared.capacity {
            None => Permit::NotNeeded,
            Some(capacity) => self.await_permit_of(capacity),
        }
    }

    #[inline(never)]
    fn await_permit_of(self, capacity: &Capacity) -> Permit {
        match self.acquire_permit(capacity, Patience::Until(None)) {
            Ok(()) => Permit::Acquired,
            Err(Refusal::ViewClosed) => Permit::ViewClosed,
            // The wait has no other end.
            Err(_) => Permit::Closed,
        }
    }

    /// As [`submit_closure`](Self::submit_closure), but panics if the pool is closed. `instead` is the function that hands the task
    /// back.
    #[track_caller]
    pub(crate) fn execute(self, job: Job, instead: &str) {
        if let Err(rejected) = self.submit_closure(job, Location::caller()) {
            rejected.panic(instead);
        }
    }

    /// Submits the job of a closure without a handle. Waits for capacity and, if the system refuses the first thread, runs the
    /// job on the caller. Drops a job that is not accepted.
    ///
    /// The job stays where its closure was stored, until it is copied to its slot in the queue: an earlier copy would wait for
    /// the words that were just written.
    #[inline(never)]
    fn submit_closure(self, job: Job, line: Line) -> Result<(), Rejected<()>> {
        if self.shared.capacity.is_some() || !self.is_default_without_attachers() {
            return self.submit_closure_slow(job, line);
        }
        match self.accept_fast() {
            FastAcceptance::InContext(context) => context.push(&self.shared.queue, job),
            FastAcceptance::FromOutside => self.shared.queue.push(job),
            FastAcceptance::BelowCore => return self.submit_below_core(job),
            FastAcceptance::Refused => return self.submit_job_slow(job, Permit::NotNeeded),
        }
        self.shared.notify_queued(true);
        Ok(())
    }

    /// As [`submit_closure`](Self::submit_closure), for bounded queues, views, and pools with attachments.
    #[inline(never)]
    fn submit_closure_slow(self, job: Job, line: Line) -> Result<(), Rejected<()>> {
        let permit = self.await_permit();
        let job = self.wrap_expiring(job, self.expiry(), line);
        self.submit_job(job, permit)
    }

    /// Accepts the task of a job, and queues the job. Abandons the job of a task that is refused.
    ///
    /// The steps for a task of the default view of an unbounded pool come first, without the branches of the others: they are
    /// those of [`accept_with_permit`](Self::accept_with_permit) and [`enqueue`](Self::enqueue).
    fn submit_job(self, job: Job, permit: Permit) -> Result<(), Rejected<()>> {
        if self.view.is_some() || permit != Permit::NotNeeded {
            return self.submit_job_slow(job, permit);
        }
        match self.accept_fast() {
            FastAcceptance::InContext(context) => context.push(&self.shared.queue, job),
            FastAcceptance::FromOutside => self.shared.queue.push(job),
            FastAcceptance::BelowCore => return self.submit_below_core(job),
            FastAcceptance::Refused => return self.submit_job_slow(job, permit),
        }
        self.shared.notify_queued(true);
        Ok(())
    }

    /// Accepts a task of the default view of an unbounded pool, if the pool is open.
    #[inline(always)]
    fn accept_fast(self) -> FastAcceptance {
        match context::current(self.shared) {
            Some(context) if context.accept(self.shared) => FastAcceptance::InContext(context),
            Some(_) => FastAcceptance::Refused,
            None if !self.shared.in_flight.accept(1) => FastAcceptance::Refused,
            None if self.shared.counts.load().total() < self.shared.sizes.core().max(1) => {
                FastAcceptance::BelowCore
            }
            None => FastAcceptance::FromOutside,
        }
    }

    #[inline(never)]
    fn submit_job_slow(self, job: Job, permit: Permit) -> Result<(), Rejected<()>> {
        let accepted = match permit {
            Permit::NotNeeded | Permit::Acquired => {
                self.accept_with_permit(WithoutThread::RunOnCaller)
            }
            Permit::ViewClosed => Err(Refusal::ViewClosed),
            Permit::Closed => Err(Refusal::Closed),
        };
        match accepted {
            Ok(accepted) => {
                self.enqueue(accepted, job);
                Ok(())
            }
            Err(refusal) => {
                drop(job.abandon());
                Err(Rejected::new((), refusal))
            }
        }
    }

    /// Queues the job of a task that was accepted from outside, and starts a worker for it. Runs it on the caller if there is none.
    #[cold]
    fn submit_below_core(self, job: Job) -> Result<(), Rejected<()>> {
        if self.shared.counts.load().total() > 0 {
            self.enqueue_for_worker(None, true, job);
            return Ok(());
        }
        match self.shared.start_first() {
            Ok(started) => self.enqueue_for_worker(None, !started, job),
            Err(_) => self.run_on_caller(job),
        }
        Ok(())
    }

    /// Accepts a task, which is in flight from now on: the caller must [enqueue](Self::enqueue) or
    /// [retract](Self::retract) it. Waits for a permit of a bounded queue as long as `patience` allows.
    #[inline(never)]
    pub(crate) fn accept(
        self,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        match &self.shared.capacity {
            Some(capacity) => self.acquire_permit(capacity, patience)?,
            None if self.view.is_none() => {
                // As in `accept_fast`.
                let context = context::current(self.shared);
                if let Some(context) = context.filter(|context| context.accept(self.shared)) {
                    return Ok(Accepted::ByWorker { context: Some(context), fills_core: true });
                }
            }
            None => {}
        }
        self.accept_with_permit(without_thread)
    }

    /// As [`accept`](Self::accept), for a submitter that has a permit, if it needs one.
    fn accept_with_permit(self, without_thread: WithoutThread) -> Result<Accepted, Refusal> {
        let context = context::current(self.shared);
        if let Err(refusal) = self.count_accepted(context.as_deref()) {
            self.shared.release_permit();
            self.count_rejection();
            return Err(refusal);
        }
        // A thread with a worker context is a worker, so there is one.
        if context.is_some() || self.shared.counts.load().total() > 0 {
            return Ok(Accepted::ByWorker { context, fills_core: true });
        }
        match (self.shared.start_first(), without_thread) {
            (Ok(started), _) => Ok(Accepted::ByWorker { context, fills_core: !started }),
            (Err(_), WithoutThread::RunOnCaller) => Ok(Accepted::ByCaller),
            (Err(error), WithoutThread::HandBack) => {
                self.retract();
                Err(Refusal::NoThread(error))
            }
        }
    }

    /// Counts the task as in flight, unless the view or the pool is closed.
    #[inline]
    fn count_accepted(self, context: Option<&WorkerContext>) -> Result<(), Refusal> {
        if let Some(view) = self.view {
            // Race 10: the view's word decides, as the pool's does.
            if !view.in_flight.accept(1) {
                return Err(Refusal::ViewClosed);
            }
        }
        let is_accepted = match context {
            Some(context) => context.accept(self.shared),
            None => self.shared.in_flight.accept(1),
        };
        if is_accepted {
            return Ok(());
        }
        if let Some(view) = self.view {
            view.in_flight.finish(1);
        }
        Err(Refusal::Closed)
    }

    /// Acquires a permit of a bounded queue. Waits for one as long as `patience` allows.
    fn acquire_permit(self, capacity: &Capacity, patience: Patience) -> Result<(), Refusal> {
        let mut acquired = capacity.try_acquire(&self.shared.sizes);
        if acquired == Err(NoPermit::Full) {
            if let Patience::Until(deadline) = patience {
                acquired = self.wait_for_permit(capacity, deadline);
            }
        }
        acquired.map_err(|reason| {
            self.count_rejection();
            let is_view_closed = self.view.is_some_and(|view| view.in_flight.is_closed());
            match reason {
                NoPermit::Closed if self.shared.in_flight.is_closed() => Refusal::Closed,
                NoPermit::Full if !is_view_closed => Refusal::Full,
                // Also without a wait: the caller must not try again until there is capacity.
                NoPermit::Closed | NoPermit::Full => Refusal::ViewClosed,
            }
        })
    }

    /// Waits for a permit. A thread that is no worker of the pool spins for a moment first. A worker goes on over the limit if as many workers
    /// [wait](super::capacity::OwnWaits) as may run.
    fn wait_for_permit(
        self,
        capacity: &Capacity,
        deadline: Option<Instant>,
    ) -> Result<(), NoPermit> {
        let sizes = &self.shared.sizes;
        let Ok(own_wait) = self.begin_own_wait() else {
            capacity.acquire_over_limit();
            return Ok(());
        };
        if own_wait.is_none() && !has_passed(deadline) && capacity.spin_to_acquire(sizes) {
            return Ok(());
        }
        let is_closed = || self.view.is_some_and(|view| view.in_flight.is_closed());
        let queued =
            capacity.acquire_or_wait(sizes, self.view_id(), own_wait.is_some(), is_closed)?;
        let Some(mut granted) = queued else { return Ok(()) };
        // Race 27: queued first. Most workers count as blocked later, and look then.
        self.shared.admit_if_starved();
        // Its region begins after the submitter was queued: the worker's own blocking may free the permit that it needs.
        let outcome =
            wait_for(Pin::new(&mut granted), deadline, Dependency::Capacity(self.shared.id()));
        capacity.end_wait(sizes, granted, outcome)
    }

    /// Counts the caller as a worker that waits for a permit or a slot, if it is one. An error if it
    /// [must not wait](super::capacity::OwnWaits): its task is accepted without.
    pub(crate) fn begin_own_wait(self) -> Result<Option<OwnWait<'a>>, Crowded> {
        let shared = self.shared;
        let is_worker = context::current(shared).is_some();
        is_worker.then(|| shared.own_waits.begin(&shared.sizes).ok_or(Crowded)).transpose()
    }

    /// Reverts an acceptance: the task is handed back to its submitter.
    pub(crate) fn retract(self) {
        self.shared.release_permit();
        self.count_rejection();
        self.finish_on_caller(1);
    }

    /// Queues an accepted task and notifies a worker, or runs it on the caller if it was accepted for that.
    pub(crate) fn enqueue(self, accepted: Accepted, job: Job) {
        match accepted {
            Accepted::ByWorker { context, fills_core } => {
                self.enqueue_for_worker(context.as_deref(), fills_core, job);
            }
            Accepted::ByCaller => self.run_on_caller(job),
        }
    }

    /// Queues a job and notifies a worker. If `fills_core`, also starts one if there are fewer than `core_size`.
    fn enqueue_for_worker(self, context: Option<&WorkerContext>, fills_core: bool, job: Job) {
        let shared = self.shared;
        if let Some(view) = self.view {
            return self.enqueue_in_view(view, fills_core, job);
        }
        let starts = fills_core && shared.expect_start();
        match context {
            Some(context) => context.push(&shared.queue, job),
            None => shared.queue.push(job),
        }
        if starts {
            shared.start_for_core();
        } else {
            shared.notify_queued(fills_core);
        }
    }

    /// Queues a job of a view other than the default one, and notifies a worker if one may take work of the view now.
    fn enqueue_in_view(self, view: &Arc<ViewCore>, fills_core: bool, job: Job) {
        let shared = self.shared;
        let is_eligible = shared.push_to_view(view, job);
        // Race 35: otherwise the next worker that releases a place looks.
        if is_eligible || shared.is_below_core(shared.counts.load()) {
            shared.notify_queued(fills_core);
        }
    }

    pub(crate) fn count_rejection(self) {
        self.shared.rejected.increment();
        if let Some(view) = self.view {
            view.rejected.increment();
        }
    }

    /// Accepts a task that the caller will [enqueue later](Self::enqueue_deferred) or [drop](Self::drop_on_caller), unless
    /// the view or the pool is closed.
    pub(crate) fn accept_deferred(self) -> Result<(), Refusal> {
        let accepted = self.count_accepted(context::current(self.shared).as_deref());
        if accepted.is_err() {
            self.count_rejection();
        }
        accepted
    }

    /// Queues a task that was accepted earlier, whether or not there is capacity. After an immediate shutdown the task
    /// is cancelled instead, like those that the shutdown found in the queue (race 24).
    ///
    /// Returns the task's number in its `list`, unless it is cancelled.
    pub(crate) fn enqueue_deferred(self, list: &Arc<Unstarted>, job: Job) -> Option<TaskId> {
        if self.shared.is_stopped() {
            trampoline(self, job, |route, job| route.drop_on_caller(job));
            return None;
        }
        self.shared.acquire_over_limit();
        if self.shared.ensure_worker() {
            let context = context::current(self.shared);
            let accepted = Accepted::ByWorker { context, fills_core: false };
            return Some(self.enqueue_unstarted(accepted, list, job, true));
        }
        let (entry, id) = list.add(job, true);
        let entry = entry.unwrap_or_else(|| list.surplus_entry());
        trampoline(self, entry, |route, entry| route.run_on_caller(entry));
        Some(id)
    }

    /// Returns the calling worker if it polls a woken future, and this is not the route of a view. Then notifying of a future
    /// with this route, which the poll wakes, is deferred to the end of the poll.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn polling_worker(self) -> Option<Rc<WorkerContext>> {
        let worker = context::current(self.shared).filter(|_| self.view.is_none());
        worker.filter(|worker| worker.is_in_poll())
    }

    /// Queues a woken future, and notifies a worker. Returns the future if there is [no worker to run it](Self::requeue).
    #[cfg(feature = "async")]
    pub(crate) fn requeue_woken(self, task: Arc<dyn Run>) -> Result<(), Arc<dyn Run>> {
        if !self.shared.ensure_worker() {
            return Err(task);
        }
        self.enqueue_woken(task);
        Ok(())
    }

    /// Queues a task that was accepted earlier, also if the pool has been closed since. Returns the job if there is no
    /// worker and the system refuses one.
    ///
    /// While a task is in flight there is a worker, except after the system refused the first one and the submitter ran
    /// the task, or polled the future, itself.
    pub(crate) fn requeue(self, job: Job) -> Result<(), Job> {
        if !self.shared.ensure_worker() {
            return Err(job);
        }
        self.enqueue_for_worker(context::current(self.shared).as_deref(), false, job);
        Ok(())
    }

    /// Queues a woken future where every worker finds it, and notifies one.
    #[cfg(feature = "async")]
    pub(crate) fn enqueue_woken(self, task: Arc<dyn Run>) {
        if let Some(view) = self.view {
            return self.enqueue_in_view(view, false, Job::woken(task));
        }
        self.shared.queue.push_woken(task);
        self.shared.notify_queued(false);
    }

    /// Runs an accepted task that is not queued on the calling thread, marked as the task's caller.
    pub(crate) fn run_on_caller(self, job: Job) {
        let shared = self.shared;
        notify_deferred();
        let _mark = mark_caller(shared);
        // A new task has a permit.
        let mut has_permit = job.is_new();
        let mut again = Some(job);
        while let Some(job) = again.take() {
            self.count_on_caller(WorkerMetrics::take);
            let mut outcome = job.run_telling(&mut || {
                if mem::take(&mut has_permit) {
                    shared.release_permit();
                }
            });
            shared.handle_failure(&mut outcome);
            self.count_on_caller(|metrics| metrics.record(&outcome));
            if outcome.is_end() {
                return self.report_on_caller(1);
            }
            #[cfg(feature = "async")]
            if let Outcome::Woken(task) = outcome {
                // If there is still no worker, poll the future again here.
                again = self.requeue_woken(task).err().map(Job::woken);
            }
        }
    }

    /// Drops an accepted task that is not queued, as cancelled.
    pub(crate) fn drop_on_caller(self, job: Job) {
        // The task is in flight until it is dropped. The mark keeps its destructor from joining the pool, which would
        // wait for itself.
        let mark = mark_caller(self.shared);
        let is_ended = job.abandon().unless_skipped().is_some();
        drop(mark);
        // Race 8: a canceller may have ended the task meanwhile.
        if is_ended {
            self.cancelled_on_caller();
        }
    }
}

impl Shared {
    /// Queues a job of a view other than the default one. Returns whether a worker may take work of the view now.
    pub(super) fn push_to_view(&self, view: &Arc<ViewCore>, job: Job) -> bool {
        let is_new = job.is_new();
        let job = ViewJob { job, view: Some(Arc::clone(view)) };
        self.policy.push(view.id, job, is_new)
    }

    /// Removes stale entries at the ends of a view's queue. Returns how many there were.
    pub(super) fn skip_in_view(&self, view: &ViewCore) -> usize {
        let skipped = self.policy.skip(view.id, |queued| queued.job.skip());
        skipped.into_iter().map(discard).count()
    }

    /// Notifies a worker of a task that was just queued, if there may be one that waits. If `fills_core`, also starts one
    /// if there are fewer than `core_size`.
    #[inline]
    fn notify_queued(self: &Arc<Self>, fills_core: bool) {
        // Race 1: the submitter pushes, then reads the counts. A worker that rests publishes itself in the counts, then
        // looks at the queue. With a fence in between on both sides, at least one sees the other.
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        if now.total() < self.sizes.core() || now.has_spare_capacity(self.sizes.max()) {
            self.wake_or_start(fills_core);
        }
    }

    /// Starts the first worker if there is none. `false` if the system refuses the thread.
    #[must_use]
    fn ensure_worker(self: &Arc<Self>) -> bool {
        self.counts.load().total() > 0 || self.start_first().is_ok()
    }
}
