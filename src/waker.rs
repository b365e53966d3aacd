//! Futures on the pool: a wake puts a future back into the queue (feature `async`).
//!
//! [`futures`](crate::futures) submits futures. [`future_cell`](crate::task::future_cell) stores one, and decides which
//! thread may touch it when.
//!
//! **Cancelling.** A canceller settles the handle of a future that is not running at once, unless the thread that drops the
//! future is about to. It does not drop the future: it queues it, and the worker that takes it from the queue drops
//! it. A queued future is in flight, so it is dropped before a join returns (race 23). In all other cases the handle is
//! settled after the future has been dropped. A waiter that must know of the drop asks the cell as well
//! ([`poll_gone`](crate::task::job::Run::poll_gone)).
//!
//! **A wake during the poll** queues the future after that poll, behind the other woken futures.
//!
//! **Types.** Each call site has a future of its own type, so little here depends on it: [`advance`](Run::advance), [`Polling`]
//! and [`end`] are the part that is compiled for each future.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures_task::{ArcWake, waker_ref};

use crate::runtime::context::{CallerMark, mark_caller};
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::route::OwnedRoute;
use crate::sync::unwind::{Payload, contain, discard};
use crate::task::attachment::Attachment;
use crate::task::future_cell::{AfterPoll, Cancelled, Ended, FutureCell, Header, Owner, Taken};
use crate::task::job::{Action, Begin, Job, Moment, Outcome, Run, Sink, Withdrawal};
use crate::task::pending::PendingKey;
use crate::task::promise::Cancel;

/// A future and the receiver of its output.
pub(crate) struct FutureTask<F: Future, K: Sink<F::Output>> {
    cell: FutureCell<F, K, OwnedRoute>,
}

impl<F, K> FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    /// Makes a task of a future.
    pub(crate) fn task(future: F, sink: K, route: OwnedRoute) -> Arc<dyn Run> {
        Arc::new(FutureTask { cell: FutureCell::new(future, sink, route) })
    }

    /// Registers the future as pending, after its first poll, so that a shutdown or its group can cancel it. Returns `false`
    /// if that has happened already.
    fn register_pending(self: &Arc<Self>, sink: &mut K) -> bool {
        let this = Arc::downgrade(self) as Weak<dyn Cancel>;
        register(self.cell.header(), self.cell.shared(), &this) && sink.register_pending(&this)
    }
}

/// A future that is polled by its owner, of any type.
trait Pollable {
    /// Polls the future and keeps its result. Contains panics.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

struct Polling<'a, F: Future, K> {
    future: Pin<&'a mut F>,
    sink: &'a K,
    result: &'a mut Option<Result<F::Output, Payload>>,
}

impl<F: Future, K: Sink<F::Output>> Pollable for Polling<'_, F, K> {
    #[inline(never)]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Polling { future, sink, result } = self;
        let polled = contain(|| sink.call(|| future.as_mut().poll(context)));
        **result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Some(Ok(value)),
            Err(payload) => Some(Err(payload)),
        };
        Poll::Ready(())
    }
}

/// Polls a future with an attachment.
#[cold]
fn poll_attached(
    attachment: &Attachment,
    future: &mut dyn Pollable,
    context: &mut Context<'_>,
) -> Poll<()> {
    let entered = attachment.enter();
    let polled = future.poll(context);
    drop(entered);
    polled
}

/// Drops the future, then delivers its result. `None`: settles the handle as cancelled. Contains panics of the future's
/// destructor.
#[inline(never)]
fn end<F: Future, K: Sink<F::Output>>(
    owner: Owner<'_, F, K, OwnedRoute>,
    result: Option<Result<F::Output, Payload>>,
) -> Outcome {
    let route = owner.shared();
    let Ended { future, rest: sink, pending_key } = owner.end();
    if pending_key.is_some() || route.attachment().is_some() {
        deregister(route, pending_key);
    }
    sink.call(|| discard(future));
    settle(sink, route, result)
}

/// Delivers the result of a future that has been dropped.
///
/// Not inlined: it depends on the types of the result and the sink only, and many futures have the same.
#[inline(never)]
fn settle<R, K: Sink<R>>(
    sink: K,
    route: &OwnedRoute,
    result: Option<Result<R, Payload>>,
) -> Outcome {
    match result {
        Some(result) => sink.settle(result),
        None => {
            discard(sink);
            route.outcome_of_drop()
        }
    }
}

/// Polls a future that was handed back until it is ready. `None` if it is cancelled meanwhile.
fn complete(header: &Header, route: &OwnedRoute, future: &mut dyn Pollable) -> Option<Poll<()>> {
    // With the caller's waker: the task's own waker would put it back into the pool's queue.
    let running = poll_fn(|context| {
        if header.listen(context.waker()) {
            return Poll::Ready(None);
        }
        let polled = match route.attachment() {
            None => future.poll(context),
            Some(attachment) => poll_attached(attachment, future, context),
        };
        polled.map(Some)
    });
    let waited = contain(|| wait_for(pin!(running), None, Dependency::Other).flatten());
    let is_ready = waited.unwrap_or_else(|payload| {
        discard(payload);
        None
    });
    is_ready.map(Poll::Ready)
}

/// See [`FutureTask::register_pending`].
fn register(header: &Header, route: &OwnedRoute, future: &Weak<dyn Cancel>) -> bool {
    let key = route.route().shared.pending.register(Weak::clone(future));
    if let Some(key) = key {
        header.set_pending_key(key);
    }
    key.is_some()
}

/// Removes a future that has ended from the pending ones, and from what is attached to it.
fn deregister(route: &OwnedRoute, key: Option<PendingKey>) {
    if let Some(attachment) = route.attachment() {
        attachment.end();
    }
    if let Some(key) = key {
        route.route().shared.pending.deregister(key);
    }
}

/// Queues a task whose state has become `SCHEDULED`, or drops it if it cannot run.
fn submit(task: Arc<dyn Run>, route: &OwnedRoute) {
    if let Some(worker) = route.route().polling_worker() {
        worker.push_deferring_notify(task);
    } else if let Err(task) = route.route().wake(task) {
        route.route().drop_on_caller(Job::woken(task));
    }
}

impl<F, K> Run for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    /// Takes the future, and polls or drops it.
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        let Some(taken) = self.cell.take_for(action) else { return Outcome::Skipped };
        if let Some(begin) = begin {
            begin(Moment::Taken);
        }
        let (route, mut result) = (self.cell.shared(), None);
        let owner = match taken {
            Taken::ToPoll(mut owner)
                if !matches!(action, Action::DropAwaited | Action::Abandon) =>
            {
                let polled = owner.with(|future, sink| {
                    if sink.is_cancelled() || !route.may_poll() {
                        return None;
                    }
                    let polling = &mut Polling { future, sink: &*sink, result: &mut result };
                    if action == Action::RunWithdrawn {
                        return complete(self.cell.header(), route, polling);
                    }
                    let waker = waker_ref(&self);
                    let context = &mut Context::from_waker(&waker);
                    let polled = match route.attachment() {
                        None => polling.poll(context),
                        Some(attachment) => poll_attached(attachment, polling, context),
                    };
                    let is_first =
                        polled.is_pending() && self.cell.header().pending_key().is_none();
                    if is_first && !self.register_pending(sink) {
                        return None;
                    }
                    Some(polled)
                });
                match polled {
                    Some(Poll::Pending) => match owner.after_poll() {
                        AfterPoll::Wait => return Outcome::Pending,
                        AfterPoll::Reschedule => return Outcome::Woken(self),
                        AfterPoll::Drop(owner) => owner,
                    },
                    Some(Poll::Ready(())) | None => owner,
                }
            }
            Taken::ToPoll(owner) | Taken::ToDrop(owner) => owner,
        };
        end(owner, result)
    }

    fn poll_gone(&self, waker: &Waker) -> Poll<()> {
        self.cell.header().poll_gone(waker)
    }

    fn skip(&self) -> bool {
        self.cell.header().skip()
    }

    fn withdraw(&self, is_new: bool) -> Withdrawal {
        let is_withdrawn = is_new && self.cell.header().withdraw();
        if is_withdrawn { Withdrawal::HandBack } else { Withdrawal::Cancel }
    }
}

impl<F, K> Cancel for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    fn cancel(self: Arc<Self>) {
        // The thread that drops the future may be faster. Then it settles the handle, and `found` is `None`.
        let Cancelled { found, should_submit } = self.cell.cancel(|sink| sink.take_promise());
        discard(found);
        if should_submit {
            submit(Arc::clone(&self) as Arc<dyn Run>, self.cell.shared());
        }
    }
}

impl<F, K> ArcWake for FutureTask<F, K>
where
    F: Future + Send + 'static,
    F::Output: Send,
    K: Sink<F::Output>,
{
    /// Passes the waker's reference on to the queue, if another poll wakes the future. Otherwise the submission borrows the
    /// route from it.
    fn wake(self: Arc<Self>) {
        let (header, route) = (self.cell.header(), self.cell.shared());
        if header.transition_to_scheduled() {
            match route.route().polling_worker() {
                Some(worker) => worker.push_deferring_notify(self),
                None => submit(Arc::clone(&self) as Arc<dyn Run>, route),
            }
        }
    }

    fn wake_by_ref(this: &Arc<Self>) {
        if this.cell.header().transition_to_scheduled() {
            submit(Arc::clone(this) as Arc<dyn Run>, this.cell.shared());
        }
    }
}

/// The last reference is dropped: no waker of the future is left, or the pool has ended.
impl<F: Future, K: Sink<F::Output>> Drop for FutureTask<F, K> {
    fn drop(&mut self) {
        if let Some(owner) = self.cell.last() {
            let _dropping = DroppingOnCaller::begin(owner.shared());
            end(owner, None);
        }
    }
}

/// Counts a future as cancelled when it has been dropped outside [`Run::advance`]. It is in flight until then. The mark
/// keeps its destructor from joining the pool, which would wait for itself.
struct DroppingOnCaller<'a> {
    route: &'a OwnedRoute,
    mark: Option<CallerMark>,
}

impl<'a> DroppingOnCaller<'a> {
    fn begin(route: &'a OwnedRoute) -> Self {
        DroppingOnCaller { route, mark: Some(mark_caller(route.route().shared)) }
    }
}

impl Drop for DroppingOnCaller<'_> {
    fn drop(&mut self) {
        self.mark = None;
        self.route.route().cancelled_on_caller();
    }
}
