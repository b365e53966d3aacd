//! Submitting: a task is accepted and queued, or handed back, or, where the caller wants it and there is no thread
//! for it, run on the spot.
//!
//! What makes a job of the task is called once it is accepted, and not otherwise: so it comes back untouched.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::desk::{self, Desk};
use crate::error::{Refusal, Rejected};
use crate::job::Job;
use crate::join_handle::JoinHandle;
use crate::room::Patience;
use crate::shared::{Admitted, Shared};
use crate::sync::thread_local;
use crate::unwind::discard;
use crate::worker::visit;

/// What to do with a task for which there is no worker and no thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WithoutThread {
    HandBack,
    RunHere,
}

/// A task was accepted, by a worker that may not leave before it has ended, or for want of any by the caller.
#[must_use = "an accepted task is in flight until it is brought or retracted"]
pub(crate) struct Accepted(Option<Admitted>);

impl Shared {
    /// Accepts a task or hands it back. `prepare` makes a job of it, once it is accepted.
    pub(crate) fn submit<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<H, Rejected<F>> {
        let desk = desk::current(self);
        match self.accept_at(desk.as_deref(), patience, without_thread) {
            Ok(accepted) => {
                let mut handle = None;
                self.bring_at(desk.as_deref(), accepted, || {
                    let (job, its_handle) = prepare(task);
                    handle = Some(its_handle);
                    job
                });
                Ok(handle.expect("made with the job"))
            }
            Err(refusal) => Err(Rejected::new(task, refusal)),
        }
    }

    /// The first half of a submission: accepts a task that is yet to be [brought](Self::bring) or
    /// [retracted](Self::retract).
    pub(crate) fn accept(
        self: &Arc<Self>,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        self.accept_at(desk::current(self).as_deref(), patience, without_thread)
    }

    #[inline]
    fn accept_at(
        self: &Arc<Self>,
        desk: Option<&Desk>,
        patience: Patience,
        without_thread: WithoutThread,
    ) -> Result<Accepted, Refusal> {
        match (self.admit(desk, patience), without_thread) {
            (Ok(admitted), _) => Ok(Accepted(Some(admitted))),
            (Err(Refusal::NoThread(_)), WithoutThread::RunHere) => Ok(Accepted(None)),
            (Err(refusal), _) => {
                if let Refusal::NoThread(_) = refusal {
                    self.retract();
                }
                Err(refusal)
            }
        }
    }

    /// The second half: queues the task, or runs it here if there is nobody else to do it.
    pub(crate) fn bring(self: &Arc<Self>, accepted: Accepted, job: Job) {
        self.bring_at(desk::current(self).as_deref(), accepted, || job);
    }

    #[inline]
    fn bring_at(
        self: &Arc<Self>,
        desk: Option<&Desk>,
        accepted: Accepted,
        job: impl FnOnce() -> Job,
    ) {
        match accepted {
            Accepted(Some(admitted)) => self.enqueue(desk, admitted, job),
            Accepted(None) => self.run_as_visitor(job()),
        }
    }

    /// Without waiting, and without running it here.
    pub(crate) fn try_submit<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        self.submit(task, prepare, Patience::None, WithoutThread::HandBack)
    }

    /// Waits for room, and runs the task here if there is no thread to be had.
    pub(crate) fn submit_or_run<F, H>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, H),
    ) -> Result<H, Rejected<F>> {
        self.submit(task, prepare, Patience::Until(None), WithoutThread::RunHere)
    }

    /// As [`submit_or_run`](Self::submit_or_run); a task that is not accepted is cancelled.
    pub(crate) fn submit_or_cancel<F, R>(
        self: &Arc<Self>,
        task: F,
        prepare: impl FnOnce(F) -> (Job, JoinHandle<R>),
    ) -> JoinHandle<R> {
        self.submit_or_run(task, prepare).unwrap_or_else(|rejected| {
            discard(rejected);
            JoinHandle::cancelled(self.id())
        })
    }

    /// Accepts a task that will be [queued later](Self::enqueue_deferred) or [dropped](Self::drop_here). `false` if the
    /// pool is closed.
    #[must_use]
    pub(crate) fn accept_deferred(self: &Arc<Self>) -> bool {
        let accepted = self.count_in(desk::current(self).as_deref());
        if !accepted {
            self.count_rejection();
        }
        accepted
    }

    /// Queues a task that was accepted earlier, whether or not there is room. If an immediate shutdown has emptied the
    /// queue meanwhile, this task is cancelled like those that it found.
    ///
    /// What lies in the queue is what `entry` makes of the job.
    pub(crate) fn enqueue_deferred(self: &Arc<Self>, job: Job, entry: impl FnOnce(Job) -> Job) {
        if self.is_stopped() {
            return in_turn(self, job, Shared::drop_here);
        }
        self.enter_over_capacity();
        if let Err(job) = self.requeue(entry(job)) {
            in_turn(self, job, Shared::run_as_visitor);
        }
    }

    /// Drops an accepted task that is not queued, as cancelled.
    pub(crate) fn drop_here(self: &Arc<Self>, job: Job) {
        // Still in flight: a destructor that joins the pool would wait for itself.
        let visit = visit(self);
        job.abandon();
        drop(visit);
        self.cancelled_elsewhere();
    }

    /// Runs an accepted task that is not queued on the calling thread, which counts as a thread of the pool meanwhile.
    pub(crate) fn run_as_visitor(self: &Arc<Self>, job: Job) {
        let _visit = visit(self);
        self.run_here(job);
    }
}

/// A task that the calling thread is to do something with.
type Turn = (Arc<Shared>, Job, fn(&Arc<Shared>, Job));

thread_local! {
    /// What [`in_turn`] has yet to do, while it does something.
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static TURNS: RefCell<Option<VecDeque<Turn>>> = RefCell::new(None);
}

/// Does something with a task on the calling thread, after all that has led to it: each may lead to the next, and on
/// top of each other they would fill the stack.
fn in_turn(shared: &Arc<Shared>, job: Job, what: fn(&Arc<Shared>, Job)) {
    let mut next = Some((Arc::clone(shared), job, what));
    let _ = TURNS.try_with(|turns| match &mut *turns.borrow_mut() {
        Some(turns) => turns.extend(next.take()),
        none => *none = Some(VecDeque::new()),
    });
    let is_outermost = next.is_some();
    while let Some((shared, job, what)) = next {
        what(&shared, job);
        next = TURNS.try_with(|turns| turns.borrow_mut().as_mut()?.pop_front()).ok().flatten();
    }
    if is_outermost {
        let _ = TURNS.try_with(RefCell::take);
    }
}

/// Runs a task's code. If that has others run [in turn](in_turn), and waits for them, they are not to come after it.
pub(crate) fn out_of_turn<R>(f: impl FnOnce() -> R) -> R {
    struct Return(Option<VecDeque<Turn>>);

    impl Drop for Return {
        fn drop(&mut self) {
            let _ = TURNS.try_with(|turns| turns.replace(self.0.take()));
        }
    }

    let Some(turns) = TURNS.try_with(RefCell::take).ok().flatten() else { return f() };
    let _return = Return(Some(turns));
    f()
}
