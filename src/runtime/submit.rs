//! Submitting: a task is accepted, then enqueued. It is handed back if it is not accepted; where there is neither a worker
//! nor a thread for one, the submitter runs it if it wants to.
//!
//! What makes a job of the task is called after the task was accepted, so a task that is not accepted comes back untouched.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Refusal, Rejected};
use crate::runtime::capacity::{Capacity, NoPermit, Patience};
use crate::runtime::context::mark_caller;
use crate::runtime::context::{self, WorkerContext};
use crate::runtime::region::Region;
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::trampoline;
use crate::sync::parker::{Parker, Signal};
use crate::sync::{Ordering, fence};
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::{Outcome, Run};

/// What to do with a task for which there is no worker and no thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WithoutThread {
    HandBack,
    RunOnCaller,
}

/// A task that was accepted and is not enqueued yet.
#[derive(Debug)]
#[must_use = "an accepted task is in flight until it is enqueued or retracted"]
pub(crate) enum Accepted {
    /// A worker will run it: there is one that may not leave before the task has ended.
    ByWorker {
        /// Whether the task starts a worker if there are fewer than `core_size`. Each submission starts one, so not if it had
        /// to start the very first.
        fills_core: bool,
    },
    /// The submitter will run it: there is no worker, and the system refused a thread.
    ByCaller,
}

impl Shared {
    /// Accepts a task or hands it back. `prepare` makes a job of it, once it is accepted.
    pub(crate) fn submit<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<H, Rejected<F>> {
        let context = context::current(self);
        match self.accept_from(context.as_deref(), patience, without_thread) {
            Ok(accepted) => {
                let mut handle = None;
                self.enqueue_from(context.as_deref(), accepted, || {
                    let (job, its_handle) = prepare(task);
                    handle = Some(its_handle);
                    job
                });
                Ok(handle.expect("made with the job"))
            }
            Err(refusal) => Err(Rejected::new(task, refusal)),
        }
    }

    /// Submits a task without waiting for capacity, and without running it on the caller.
    pub(crate) fn try_submit<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        self.submit(task, prepare, Patience::None, WithoutThread::HandBack)
    }

    /// Submits a task. Waits for capacity, and runs the task on the caller if the system refuses the first thread.
    pub(crate) fn submit_or_run<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        self.submit(task, prepare, Patience::Until(None), WithoutThread::RunOnCaller)
    }

    /// Accepts a task: from here on it is in flight, and is yet to be [enqueued](Self::enqueue) or
    /// [retracted](Self::retract). Waits for capacity in a bounded queue as long as `patience` says.
    pub(crate) fn accept(
        self: &Arc<Self>,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        self.accept_from(context::current(self).as_deref(), patience, without_thread)
    }

    /// As [`accept`](Self::accept), by a caller whose worker context is known.
    #[inline]
    fn accept_from(
        self: &Arc<Self>,
        context: Option<&WorkerContext>,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        if let Some(capacity) = &self.capacity {
            self.acquire_permit(capacity, patience)?;
        }
        if !self.count_accepted(context) {
            self.release_permit();
            self.rejected.increment();
            return Err(Refusal::Closed);
        }
        // A worker context belongs to a worker.
        if context.is_some() || self.counts.load().total() > 0 {
            return Ok(Accepted::ByWorker { fills_core: true });
        }
        match (self.start_first(), without_thread) {
            (Ok(started), _) => Ok(Accepted::ByWorker { fills_core: !started }),
            (Err(_), WithoutThread::RunOnCaller) => Ok(Accepted::ByCaller),
            (Err(error), WithoutThread::HandBack) => {
                self.retract();
                Err(Refusal::NoThread(error))
            }
        }
    }

    /// Counts one more task as in flight. `false` if the pool is closed.
    #[inline]
    #[must_use]
    fn count_accepted(&self, context: Option<&WorkerContext>) -> bool {
        match context {
            Some(context) => context.accept(self),
            None => self.in_flight.accept(1),
        }
    }

    /// Acquires a permit of a bounded queue. Waits for one as long as `patience` says.
    fn acquire_permit(
        self: &Arc<Self>,
        capacity: &Capacity,
        patience: Patience,
    ) -> Result<(), Refusal> {
        let mut acquired = capacity.try_acquire(&self.sizes);
        if acquired == Err(NoPermit::Full) {
            // If a thread was refused, this submission is the next one, which tries again.
            self.notify_next(None);
            if let Patience::Until(deadline) = patience {
                acquired = self.wait_for_permit(capacity, deadline);
            }
        }
        acquired.map_err(|reason| {
            self.rejected.increment();
            match reason {
                NoPermit::Full => Refusal::Full,
                NoPermit::Closed => Refusal::Closed,
            }
        })
    }

    /// Waits for a permit; a worker waits in a blocking region.
    ///
    /// If the system refuses the thread that would have to make room, and no runnable worker is left, then a worker of this
    /// pool goes on without a permit: better a task too many than a pool that waits for itself. Other submitters ask for the
    /// thread again.
    fn wait_for_permit(
        self: &Arc<Self>,
        capacity: &Capacity,
        deadline: Option<Instant>,
    ) -> Result<(), NoPermit> {
        let parker = Arc::new(Parker::new());
        let acquired = capacity.acquire_or_wait(&self.sizes, &parker);
        if acquired != Err(NoPermit::Full) {
            return acquired;
        }
        // Not before it is in line: the permit that becomes free may be the caller's own.
        let mut region = Region::enter_to_wait_for(Arc::clone(self), &parker);
        loop {
            let verdict = if !region.waits_for_own() {
                let is_late = region.park(&parker, deadline) == Signal::Expired;
                is_late.then_some(Err(NoPermit::Full))
            } else if region.is_starved() && self.counts.load().runnable() == 0 {
                Some(Ok(()))
            } else {
                let is_late = region.park_once(&parker, deadline) == Signal::Expired;
                is_late.then_some(Err(NoPermit::Full))
            };
            if let Some(ended) = capacity.end_wait(&parker, verdict) {
                return ended;
            }
        }
    }

    /// Takes back an acceptance: the task goes back to its submitter.
    pub(crate) fn retract(&self) {
        self.release_permit();
        self.rejected.increment();
        self.finish_on_caller();
    }

    /// Gives back the permit of a task that no worker will start.
    pub(super) fn release_permit(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.release_permit(&self.sizes);
        }
    }

    /// Queues an accepted task and notifies a worker, or runs it on the caller if there is no worker.
    pub(crate) fn enqueue(self: &Arc<Self>, accepted: Accepted, job: Job) {
        self.enqueue_from(context::current(self).as_deref(), accepted, || job);
    }

    /// As [`enqueue`](Self::enqueue), by a caller whose worker context is known.
    #[inline]
    fn enqueue_from(
        self: &Arc<Self>,
        context: Option<&WorkerContext>,
        accepted: Accepted,
        job: impl FnOnce() -> Job,
    ) {
        match accepted {
            Accepted::ByWorker { fills_core } => self.enqueue_for_worker(context, fills_core, job),
            Accepted::ByCaller => self.run_on_caller(job()),
        }
    }

    #[inline]
    fn enqueue_for_worker(
        self: &Arc<Self>,
        context: Option<&WorkerContext>,
        fills_core: bool,
        job: impl FnOnce() -> Job,
    ) {
        match context {
            Some(context) => context.push(&self.queue, job),
            None => self.queue.push(job()),
        }
        // Race 1: pushed first, then looked for idle workers; they look the other way round.
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        if now.total() < self.sizes.core() || now.has_spare_capacity(self.sizes.max()) {
            self.wake_or_start(fills_core);
        }
    }

    pub(crate) fn count_rejection(&self) {
        self.rejected.increment();
    }

    /// Accepts a task that will be [queued later](Self::enqueue_deferred) or [dropped](Self::drop_on_caller). `false` if the
    /// pool is closed.
    #[must_use]
    pub(crate) fn accept_deferred(self: &Arc<Self>) -> bool {
        let accepted = self.count_accepted(context::current(self).as_deref());
        if !accepted {
            self.count_rejection();
        }
        accepted
    }

    /// Queues a task that was accepted earlier, whether or not there is capacity. If an immediate shutdown has emptied the
    /// queue meanwhile, this task is cancelled like those that it found.
    ///
    /// What lies in the queue is what `entry` makes of the job.
    pub(crate) fn enqueue_deferred(self: &Arc<Self>, job: Job, entry: impl FnOnce(Job) -> Job) {
        if self.is_stopped() {
            return trampoline(self, job, Shared::drop_on_caller);
        }
        self.acquire_permit_over_limit();
        if let Err(job) = self.requeue(entry(job)) {
            trampoline(self, job, Shared::run_on_caller);
        }
    }

    /// Counts a task that comes into the queue whether or not there is capacity: it was accepted earlier.
    pub(crate) fn acquire_permit_over_limit(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.acquire_over_limit();
        }
    }

    /// Queues a future that was woken. If it is woken by the poll of another one, nobody is told of it before that has
    /// ended. The future comes back if there is [nobody to run it](Self::requeue).
    #[cfg(feature = "async")]
    pub(crate) fn wake(self: &Arc<Self>, task: Arc<dyn Run>) -> Result<(), Arc<dyn Run>> {
        let context = context::current(self);
        if let Some(context) = context.as_ref().filter(|context| context.is_in_poll()) {
            context.push_deferring_notify(&self.queue, || Job::woken(task));
        } else if !self.ensure_worker() {
            return Err(task);
        } else {
            self.enqueue_for_worker(context.as_deref(), false, || Job::woken(task));
        }
        Ok(())
    }

    /// Queues a task that was accepted before, and had to wait for others. A closed pool takes it as well.
    ///
    /// There is a worker as long as anything is in flight, but for one case: the system refused the first one
    /// when the future was spawned, and its first poll was the spawner's. If it refuses again there is nobody to
    /// run it, and the job comes back.
    pub(crate) fn requeue(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        if !self.ensure_worker() {
            return Err(job);
        }
        self.enqueue_for_worker(context::current(self).as_deref(), false, || job);
        Ok(())
    }

    /// Starts the first worker if there is none. `false` if the system refused the thread.
    #[must_use]
    fn ensure_worker(self: &Arc<Self>) -> bool {
        self.counts.load().total() > 0 || self.start_first().is_ok()
    }

    /// Queues a future that was woken during its first poll, which the calling worker has made without its entry.
    #[cfg(feature = "async")]
    pub(crate) fn enqueue_woken(self: &Arc<Self>, context: &WorkerContext, task: Arc<dyn Run>) {
        self.enqueue_for_worker(Some(context), false, || Job::woken(task));
    }

    /// Runs an accepted task that is not queued on the calling thread, which counts as a thread of the pool meanwhile.
    pub(crate) fn run_on_caller(self: &Arc<Self>, job: Job) {
        let _visit = mark_caller(self);
        self.run_job_on_caller(job);
    }

    /// Runs an admitted task on the calling thread, for want of any other.
    pub(crate) fn run_job_on_caller(self: &Arc<Self>, job: Job) {
        if job.is_new() {
            self.release_permit();
        }
        let mut again = Some(job);
        while let Some(job) = again.take() {
            self.caller_metrics.lock().take();
            let mut outcome = job.run();
            self.handle_panic(&mut outcome);
            let metrics = self.caller_metrics.lock();
            metrics.record(&outcome);
            if outcome.is_end() {
                metrics.report(1);
                drop(metrics);
                self.finish_on_caller();
                return;
            }
            drop(metrics);
            #[cfg(feature = "async")]
            if let Outcome::Woken(task) = outcome {
                // Without a thread it is polled again at once.
                again = self.wake(task).err().map(Job::woken);
            }
        }
    }

    /// Drops an accepted task that is not queued, as cancelled.
    pub(crate) fn drop_on_caller(self: &Arc<Self>, job: Job) {
        // Still in flight: a destructor that joins the pool would wait for itself.
        let mark_caller = mark_caller(self);
        job.abandon();
        drop(mark_caller);
        self.cancelled_on_caller();
    }
}
