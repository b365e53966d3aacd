//! Submitting: a task is accepted, then enqueued. A task that is not accepted is handed back. If there is no worker and
//! the system refuses a thread, the submitter may choose to run the task itself.
//!
//! A task is made into a job only after it was accepted, so a rejected task comes back untouched.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Refusal, Rejected};
use crate::runtime::awaited::notify_deferred;
use crate::runtime::capacity::{Capacity, NoPermit, Patience};
use crate::runtime::context::{self, WorkerContext, mark_caller};
use crate::runtime::region::Region;
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::trampoline;
use crate::sync::parker::{Parker, Signal};
use crate::sync::{Ordering, fence};
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::{Outcome, Run};

/// What to do with a task if there is no worker and the system refuses a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WithoutThread {
    HandBack,
    RunOnCaller,
}

/// The largest task, in bytes, that a submission moves. A larger one is boxed first: an unoptimised build copies the task in
/// each function that it passes through, and a dozen copies of a few hundred KiB overflow a stack. A box for each future of
/// more than 2 KiB also frees its memory when it ends, even if a waker or the handle still exists.
const MAX_MOVED_SIZE: usize = 2048;

/// Makes a task that was accepted into a job and its handle.
pub(crate) trait Prepare<F> {
    type Handle;

    fn prepare(self, task: F) -> (Job, Self::Handle);

    /// Prepares a task of more than [`MAX_MOVED_SIZE`].
    fn prepare_boxed(self, task: Box<F>) -> (Job, Self::Handle);
}

/// Whether a task of this type is boxed before it is moved.
pub(crate) const fn is_boxed<F>() -> bool {
    size_of::<F>() > MAX_MOVED_SIZE
}

/// A task that was accepted and is not enqueued yet.
#[derive(Debug)]
#[must_use = "an accepted task is in flight until it is enqueued or retracted"]
pub(crate) enum Accepted {
    /// A worker will run it. The last worker does not leave before the task has ended.
    ByWorker {
        /// Whether to start a worker if there are fewer than `core_size`. Each submission starts at most one, so this
        /// is `false` if it has started the first.
        fills_core: bool,
    },
    /// The submitter will run it: there is no worker, and the system has refused a thread.
    ByCaller,
}

impl Shared {
    /// Submits a task, or hands it back.
    pub(crate) fn submit<F, P: Prepare<F>>(
        self: &Arc<Self>,
        task: F,
        prepare: P,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<P::Handle, Rejected<F>> {
        if const { is_boxed::<F>() } {
            let prepare = |task| prepare.prepare_boxed(task);
            self.submit_moved(Box::new(task), prepare, patience, without_thread)
                .map_err(Rejected::unbox)
        } else {
            self.submit_moved(task, |task| prepare.prepare(task), patience, without_thread)
        }
    }

    /// Accepts and enqueues a task, or hands it back. `prepare` makes the accepted task into a job.
    fn submit_moved<F, H>(
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
    pub(crate) fn try_submit<F, P: Prepare<F>>(
        self: &Arc<Self>,
        task: F,
        prepare: P,
    ) -> Result<P::Handle, Rejected<F>> {
        self.submit(task, prepare, Patience::None, WithoutThread::HandBack)
    }

    /// Submits a task. Waits for capacity and, if the system refuses the first thread, runs the task on the caller. Drops a
    /// task that is not accepted.
    pub(crate) fn submit_or_run<F, P: Prepare<F>>(
        self: &Arc<Self>,
        task: F,
        prepare: P,
    ) -> Result<P::Handle, Rejected<()>> {
        let (patience, without_thread) = (Patience::Until(None), WithoutThread::RunOnCaller);
        // Not by `submit`, which would move a large task out of its box before it is dropped.
        if const { is_boxed::<F>() } {
            let prepare = |task| prepare.prepare_boxed(task);
            self.submit_moved(Box::new(task), prepare, patience, without_thread)
                .map_err(Rejected::drop_task)
        } else {
            self.submit_moved(task, |task| prepare.prepare(task), patience, without_thread)
                .map_err(Rejected::drop_task)
        }
    }

    /// Accepts a task, which is in flight from now on: the caller must [enqueue](Self::enqueue) or
    /// [retract](Self::retract) it. Waits for a permit of a bounded queue as long as `patience` allows.
    pub(crate) fn accept(
        self: &Arc<Self>,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        self.accept_from(context::current(self).as_deref(), patience, without_thread)
    }

    /// Like [`accept`](Self::accept), with the calling worker's context.
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
        // A thread with a worker context is a worker, so there is one.
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

    /// Counts the task as in flight. `false` if the pool is closed.
    #[inline]
    #[must_use]
    fn count_accepted(&self, context: Option<&WorkerContext>) -> bool {
        match context {
            Some(context) => context.accept(self),
            None => self.in_flight.accept(1),
        }
    }

    /// Acquires a permit of a bounded queue. Waits for one as long as `patience` allows.
    fn acquire_permit(
        self: &Arc<Self>,
        capacity: &Capacity,
        patience: Patience,
    ) -> Result<(), Refusal> {
        let mut acquired = capacity.try_acquire(&self.sizes);
        if acquired == Err(NoPermit::Full) {
            // After a refused thread, the next submission tries again: this one may be it.
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

    /// Waits for a permit. A worker waits in a blocking region.
    ///
    /// If the system refuses a thread and no worker is runnable, no permit would ever become free. Then a worker of
    /// this pool goes on over the limit, which is better than a pool that waits for itself. Submitters from outside ask
    /// for the thread again.
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
        // Enter the region only now, as a waiting submitter: the worker's own blocking may free the permit that it
        // needs.
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

    /// Reverts an acceptance: the task is handed back to its submitter.
    pub(crate) fn retract(&self) {
        self.release_permit();
        self.rejected.increment();
        self.finish_on_caller();
    }

    /// Releases the permit of a task that no worker will start.
    pub(super) fn release_permit(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.release_permit(&self.sizes);
        }
    }

    /// Queues an accepted task and notifies a worker, or runs it on the caller if it was accepted for that.
    pub(crate) fn enqueue(self: &Arc<Self>, accepted: Accepted, job: Job) {
        self.enqueue_from(context::current(self).as_deref(), accepted, || job);
    }

    /// Like [`enqueue`](Self::enqueue), with the calling worker's context.
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

    /// Queues a job and notifies a worker. If `fills_core`, also starts one if there are fewer than `core_size`.
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
        self.notify_queued(fills_core);
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

    pub(crate) fn count_rejection(&self) {
        self.rejected.increment();
    }

    /// Accepts a task that the caller will [enqueue later](Self::enqueue_deferred) or [drop](Self::drop_on_caller).
    /// `false` if the pool is closed.
    #[must_use]
    pub(crate) fn accept_deferred(self: &Arc<Self>) -> bool {
        let accepted = self.count_accepted(context::current(self).as_deref());
        if !accepted {
            self.count_rejection();
        }
        accepted
    }

    /// Queues a task that was accepted earlier, whether or not there is capacity. After an immediate shutdown the task
    /// is cancelled instead, like those that the shutdown found in the queue (race 32).
    ///
    /// `entry` turns the job into the entry that is queued.
    pub(crate) fn enqueue_deferred(self: &Arc<Self>, job: Job, entry: impl FnOnce(Job) -> Job) {
        if self.is_stopped() {
            return trampoline(self, job, Shared::drop_on_caller);
        }
        if let Some(capacity) = &self.capacity {
            capacity.acquire_over_limit();
        }
        if let Err(job) = self.requeue(entry(job)) {
            trampoline(self, job, Shared::run_on_caller);
        }
    }

    /// Queues a woken future. If another future's poll wakes it, notifying is deferred to the end of that poll. Returns
    /// the future if there is [no worker to run it](Self::requeue).
    #[cfg(feature = "async")]
    pub(crate) fn wake(self: &Arc<Self>, task: Arc<dyn Run>) -> Result<(), Arc<dyn Run>> {
        let context = context::current(self);
        if let Some(context) = context.as_ref().filter(|context| context.is_in_poll()) {
            context.push_deferring_notify(&self.queue, || Job::woken(task));
        } else if !self.ensure_worker() {
            return Err(task);
        } else {
            self.enqueue_woken(task);
        }
        Ok(())
    }

    /// Queues a task that was accepted earlier, also if the pool has been closed since. Returns the job if there is no
    /// worker and the system refuses one.
    ///
    /// While a task is in flight there is a worker, except after the system refused the first one and the submitter ran
    /// the task, or polled the future, itself.
    pub(crate) fn requeue(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        if !self.ensure_worker() {
            return Err(job);
        }
        self.enqueue_for_worker(context::current(self).as_deref(), false, || job);
        Ok(())
    }

    /// Starts the first worker if there is none. `false` if the system refuses the thread.
    #[must_use]
    fn ensure_worker(self: &Arc<Self>) -> bool {
        self.counts.load().total() > 0 || self.start_first().is_ok()
    }

    /// Queues a woken future where every worker finds it, and notifies one.
    #[cfg(feature = "async")]
    pub(crate) fn enqueue_woken(self: &Arc<Self>, task: Arc<dyn Run>) {
        self.queue.push_woken(Job::woken(task));
        self.notify_queued(false);
    }

    /// Runs an accepted task that is not queued on the calling thread, marked as the task's caller.
    pub(crate) fn run_on_caller(self: &Arc<Self>, job: Job) {
        notify_deferred();
        let _mark = mark_caller(self);
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
                // If there is still no worker, poll the future again here.
                again = self.wake(task).err().map(Job::woken);
            }
        }
    }

    /// Drops an accepted task that is not queued, as cancelled.
    pub(crate) fn drop_on_caller(self: &Arc<Self>, job: Job) {
        // The task is in flight until it is dropped. The mark keeps its destructor from joining the pool, which would
        // wait for itself.
        let mark = mark_caller(self);
        job.abandon();
        drop(mark);
        self.cancelled_on_caller();
    }
}
