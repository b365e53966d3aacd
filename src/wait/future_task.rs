//! Tasks that other threads than the one which runs them may have too: futures, and closures with a
//! handle. Such a closure is a future that is ready at its first poll ([`Call`]), so one set of
//! transitions decides who runs, claims, cancels or drops either.
//!
//! `task/future_cell.rs` stores a future, and decides which thread may touch it
//! when. A future that waits is queued again by its [waker](crate::waker).
//!
//! **Cancelling.** A canceller drops a future that no thread runs ([`Action::Cancel`], race 8). An
//! immediate shutdown does not, nor the canceller of one that was withdrawn ([`Run::cancel`]): it
//! queues the future if it was in no queue, and the thread that takes it from there, or its new
//! owner, drops it. The handle is settled after the future has been dropped.
//!
//! **A wake during the poll** queues the future after that poll, behind the other woken futures.
//!
//! **Types.** Each call site has a future of its own type, so little here depends on it:
//! [`Pollable`], [`end`] and what only forgets the type are compiled for each future.

use std::any::TypeId;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use crate::sched::{Dependency, NO_LIMIT, Route, TaskRoute, trampoline, wait_for};
use crate::submit::is_boxed;
use crate::sync::thread_local;
use crate::sync::unwind::{OnDrop, Payload, contain, discard};
use crate::task::{
    Action, Attachment, Begin, Closure, FutureCell, FutureOwner, Header, Job, Left, Moment,
    Outcome, PendingKey, Run, Sink, Taken, TransitionToIdle, Wakeable, Withdrawal,
};
use crate::thread::inside_executor;
#[cfg(feature = "async")]
use crate::waker::lend_waker;

/// A closure, as a future that is ready at its first poll. Its type is forgotten, so what runs it
/// is compiled once for each type of result.
pub(crate) struct Call<R: 'static>(pub(crate) Closure<R>);

impl<R: 'static> Future for Call<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        Poll::Ready(self.0.call_in_place())
    }
}

/// The sink of a job that was wrapped: what the job returns is the outcome of the task.
struct Unwrapped;

impl Sink<Outcome> for Unwrapped {
    fn settle(self, result: Result<Outcome, Payload>) -> Outcome {
        result.unwrap_or_else(|payload| Outcome::Panicked(Some(payload)))
    }
}

/// [`Job::wrapped`]. A program whose tasks neither expire nor have attachments sets no function
/// here, and so does not contain it.
static WRAP: OnceLock<fn(Job, TaskRoute) -> Job> = OnceLock::new();

/// Called by what lets tasks expire, or gives them attachments, before any task has either.
pub(crate) fn enable_wrapping() {
    WRAP.get_or_init(|| Job::wrapped);
}

impl Job {
    /// Wraps the job of a closure without a handle if it expires, or has an attachment.
    #[inline]
    pub(crate) fn with_route(self, own: TaskRoute) -> Self {
        if own.route().is_none() {
            return self;
        }
        WRAP.get().expect("set before a task had a route")(self, own)
    }

    /// Not inlined, so that the job of most tasks is not copied: the CPU waits when it reads what
    /// it has just written.
    #[cold]
    fn wrapped(self, own: TaskRoute) -> Self {
        let call = Call(Closure::new(|| self.run()));
        Job::task(FutureTask::task(call, Unwrapped, own))
    }
}

thread_local! {
    /// The address of the task with a handle that the thread runs or drops, or zero. Read when a
    /// wait for a handle is about to block.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// The task with the header runs, or is dropped, on the calling thread until what this returns is
/// dropped.
#[inline(always)]
fn begin_own(header: &Header) -> impl Drop + use<> {
    let below = OWN.try_with(|own| own.replace(ptr::from_ref(header).addr())).unwrap_or(0);
    OnDrop(move || _ = OWN.try_with(|own| own.set(below)))
}

/// Whether the calling thread runs or drops this task, so that a wait for its end would never
/// return.
pub(crate) fn is_own_task(task: &Weak<dyn Run>) -> bool {
    OWN.try_with(|own| own.get() == task.as_ptr().addr()).unwrap_or(false)
}

/// Drives a future to its end on the calling thread, in a blocking region while it waits, for
/// [`complete`](crate::ThreadPool::complete).
///
/// Meanwhile the thread is marked (`thread`) as inside an executor of the `futures` crate, whose own
/// executors then refuse to run.
pub(crate) fn block_on<T: Future>(mut future: Pin<Box<T>>) -> T::Output {
    let result = inside_executor(|| wait_for(future.as_mut(), None, Dependency::Future));
    // Drop it before unwinding: a destructor that panics while its future's panic unwinds aborts
    // the process.
    discard(future);
    match result {
        Ok(output) => output.expect(NO_LIMIT),
        Err(payload) => resume_unwind(payload),
    }
}

/// A future and the receiver of its output. The address of its header is its own.
#[repr(transparent)]
pub(crate) struct FutureTask<F: Future, K: Sink<F::Output>> {
    cell: FutureCell<F, K, TaskRoute>,
}

impl<F: Future<Output: Send> + Send + 'static, K: Sink<F::Output>> FutureTask<F, K> {
    /// Makes a task of a future, in a box if it is large.
    #[inline]
    pub(crate) fn task(future: F, sink: K, route: TaskRoute) -> Arc<dyn Run> {
        if const { is_boxed::<F>() } {
            FutureTask::in_place(Box::into_pin(Box::new(future)), sink, route)
        } else {
            FutureTask::in_place(future, sink, route)
        }
    }

    fn in_place(future: F, sink: K, route: TaskRoute) -> Arc<dyn Run> {
        Arc::new(FutureTask { cell: FutureCell::new(future, sink, route) })
    }
}

/// A future of any type, as its owner polls and drops it. None of these methods panics.
///
/// An outcome is written where the caller wants it: copying one that was just written is slow.
trait Pollable {
    /// Polls the future inside of its attachment, if it has one. Returns the owner if it is
    /// pending. Otherwise ends the future: it is ready, or must not be polled, since it was
    /// cancelled or has expired.
    fn poll<'a>(
        &'a self,
        owner: FutureOwner<'a>,
        context: &mut Context<'_>,
        outcome: &mut Outcome,
    ) -> Option<FutureOwner<'a>>;

    /// Registers the future as pending, after its first poll, so that a shutdown or its group can
    /// cancel it. Returns `false` if that has happened already.
    fn register_pending(&self, owner: &mut FutureOwner<'_>) -> bool;

    /// Drops the future.
    fn end<'a>(&'a self, owner: FutureOwner<'a>, outcome: &mut Outcome);
}

impl<F: Future<Output: Send> + Send + 'static, K: Sink<F::Output>> Pollable
    for Arc<FutureTask<F, K>>
{
    fn poll<'a>(
        &'a self,
        mut owner: FutureOwner<'a>,
        context: &mut Context<'_>,
        outcome: &mut Outcome,
    ) -> Option<FutureOwner<'a>> {
        let route = self.cell.shared();
        let polled = self.cell.with(&mut owner, |future, sink| {
            if sink.is_cancelled() || route.expiry().is_some_and(|expiry| expiry.is_late()) {
                return None;
            }
            // Left before the future is dropped, and its result delivered.
            let _entered = route.attachment().map(Attachment::enter);
            Some(sink.call(|| contain(|| future.poll(context))))
        });
        let result = match polled {
            Some(Ok(Poll::Pending)) => return Some(owner),
            Some(Ok(Poll::Ready(value))) => Some(Ok(value)),
            Some(Err(payload)) => Some(Err(payload)),
            None => None,
        };
        end(&self.cell, owner, result, outcome);
        None
    }

    fn register_pending(&self, owner: &mut FutureOwner<'_>) -> bool {
        let this = || Arc::downgrade(self) as Weak<dyn Run>;
        let route = self.cell.shared().route();
        let key = route.and_then(|route| route.shared.pending.register(this()));
        key.map(|key| self.cell.header().set_pending_key(key)).is_some()
            && self.cell.with(owner, |_, sink| sink.register_pending(this))
    }

    fn end<'a>(&'a self, owner: FutureOwner<'a>, outcome: &mut Outcome) {
        end(&self.cell, owner, None, outcome);
    }
}

/// What [`drive`] has done.
#[must_use]
enum Driven<'a> {
    /// The future is pending.
    Pending(FutureOwner<'a>),
    /// It has ended. With the reference that was left, if a canceller has ended one that waited for
    /// a wake.
    Ended(Option<Left<'a>>),
    /// The entry is stale, or the future cannot be claimed.
    Skipped,
}

/// Takes a future, and polls or drops it: see [`Run::advance`]. `outcome` is [`Outcome::Skipped`]
/// at first.
fn drive<'a>(
    header: &'a Header,
    (action, begin): (Action, Option<Begin<'_>>),
    waker: &Waker,
    future: &'a dyn Pollable,
    outcome: &mut Outcome,
) -> Driven<'a> {
    let _own = begin_own(header);
    let (mut owner, moment, polls, left) = match header.take(action) {
        Taken::ToPoll(owner) => (owner, Moment::Taken, action != Action::Abandon, None),
        Taken::ToDrop(owner, moment) => (owner, moment, false, None),
        Taken::Idle(owner, left) => (owner, Moment::Taken, false, Some(left)),
        Taken::Nothing => return Driven::Skipped,
    };
    if let Some(begin) = begin {
        begin(moment);
    }
    if polls && action == Action::RunWithdrawn {
        complete(header, owner, future, outcome);
        return Driven::Ended(None);
    }
    if polls {
        let polled = future.poll(owner, &mut Context::from_waker(waker), outcome);
        let Some(pending) = polled else { return Driven::Ended(None) };
        owner = pending;
        // After its first poll it is registered as pending.
        if header.pending_key().is_some() || future.register_pending(&mut owner) {
            return Driven::Pending(owner);
        }
    }
    future.end(owner, outcome);
    Driven::Ended(left)
}

/// Drops the future, and then delivers its result; without one, settles the handle as cancelled.
/// Contains panics.
#[inline(never)]
fn end<'a, F: Future, K: Sink<F::Output>>(
    cell: &'a FutureCell<F, K, TaskRoute>,
    owner: FutureOwner<'a>,
    result: Option<Result<F::Output, Payload>>,
    outcome: &mut Outcome,
) {
    let route = cell.shared();
    let pending_key = cell.header().pending_key();
    let (future, sink) = cell.end(owner);
    if pending_key.is_some() || route.attachment().is_some() {
        deregister(route, pending_key);
    }
    sink.call(|| discard(future));
    settle(sink, route, result, outcome);
}

/// Delivers the result of a future that has been dropped.
///
/// Not inlined: it depends on the types of the result and the sink only, and many futures have the
/// same.
#[inline(never)]
fn settle<R, K: Sink<R>>(
    sink: K,
    route: &TaskRoute,
    result: Option<Result<R, Payload>>,
    outcome: &mut Outcome,
) {
    *outcome = match result {
        Some(result) => sink.settle(result),
        None => {
            discard(sink);
            let is_expired = route.expiry().is_some_and(|expiry| expiry.is_expired());
            if is_expired { Outcome::Expired } else { Outcome::Cancelled }
        }
    };
}

/// Polls a future that was handed back until it is ready or cancelled, and ends it.
fn complete<'a>(
    header: &Header,
    owner: FutureOwner<'a>,
    future: &'a dyn Pollable,
    outcome: &mut Outcome,
) {
    // With the caller's waker: the task's own waker would put it back into the pool's queue.
    let mut pending = Some(owner);
    let running = poll_fn(|context| {
        let owner = pending.take().expect("it is pending");
        if header.listen(context.waker()) {
            future.end(owner, outcome);
        } else {
            pending = future.poll(owner, context, outcome);
        }
        if pending.is_some() { Poll::Pending } else { Poll::Ready(()) }
    });
    _ = wait_for(pin!(running), None, Dependency::Other);
}

/// Ends the attachment of a future that has ended, and removes the future from the pending ones.
fn deregister(route: &TaskRoute, key: Option<PendingKey>) {
    if let Some(attachment) = route.attachment() {
        attachment.end();
    }
    if let Some((key, route)) = key.zip(route.route()) {
        route.shared.pending.deregister(key);
    }
}

/// Queues a task whose state has become `SCHEDULED`, or drops it if it cannot run.
fn submit(task: Arc<dyn Run>, route: &TaskRoute) {
    let Some(route) = route.route() else { unreachable!("only a future is queued again") };
    if let Some(worker) = route.polling_worker() {
        worker.push_deferring_notify(task);
    } else if let Err(job) = route.requeue(Job::woken(task)) {
        // What its destructor wakes is dropped on top of it, or after it if that is too deep: a
        // destructor at that depth cannot wait for what it wakes.
        if Route::may_drop_cancelled() {
            route.drop_on_caller(job);
        } else {
            trampoline(route, job, |route, job| route.drop_on_caller(job));
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static, K: Sink<F::Output>> Run for FutureTask<F, K> {
    /// Takes the future, and polls or drops it.
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        let header = self.cell.header();
        // `Skipped` unless it is returned: nothing to drop.
        let mut outcome = ManuallyDrop::new(Outcome::Skipped);
        #[cfg(feature = "async")]
        let waker = &lend_waker(&self);
        #[cfg(not(feature = "async"))]
        let waker = Waker::noop();
        match drive(header, (action, begin), waker, &self, &mut outcome) {
            Driven::Skipped => return Outcome::Skipped,
            Driven::Ended(left) => drop(left.map(|left| left.take(&self))),
            Driven::Pending(owner) => match owner.after_poll() {
                Ok(TransitionToIdle::Idle) => {
                    // Another thread may have it already.
                    mem::forget(self);
                    return Outcome::Pending;
                }
                Ok(TransitionToIdle::Submit) => return Outcome::Yielded(self),
                Err(owner) => {
                    let _own = begin_own(header);
                    self.end(owner, &mut outcome);
                }
            },
        }
        if self.cell.header().leave_to_wakers() {
            mem::forget(self);
        }
        ManuallyDrop::into_inner(outcome)
    }

    fn take_if_stale(&self) -> bool {
        self.cell.header().is_first_stale()
    }

    fn is_future(&self) -> bool {
        TypeId::of::<F>() != TypeId::of::<Call<F::Output>>()
    }

    fn withdraw(&self, is_new: bool) -> Withdrawal {
        let is_withdrawn = is_new && self.cell.header().transition_to_withdrawn();
        if is_withdrawn { Withdrawal::HandBack } else { Withdrawal::Cancel }
    }

    fn cancel(self: Arc<Self>) {
        if let Some(left) = self.cell.header().cancel() {
            self.submit(left.take(&self));
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static, K: Sink<F::Output>> Wakeable for FutureTask<F, K> {
    fn header(&self) -> &Header {
        self.cell.header()
    }

    fn submit(&self, task: Arc<Self>) {
        submit(task, self.cell.shared());
    }
}

/// No path drops the last reference before the task is over.
impl<F: Future, K: Sink<F::Output>> Drop for FutureTask<F, K> {
    /// Not inlined: the compiler emits several copies of what drops a task.
    #[inline(never)]
    fn drop(&mut self) {
        self.cell.abort_if_it_has_wakers();
    }
}
