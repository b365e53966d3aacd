//! Accepting a task before there is one, in async code. A [`Reservation`] is in flight like the
//! task that it stands for, so there is a worker for it, and a closed pool still takes that task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_channel::oneshot;

use crate::error::Refusal;
use crate::flight::Waits;
use crate::sched::{OwnedRoute, Route, Shared, WorkerContext, may_block_own, relayed};
use crate::submit::{Accepted, Patience};
use crate::task::Line;

/// See the [module's documentation](self). Dropping it reverts the acceptance.
pub(crate) struct Reservation {
    route: OwnedRoute,
    /// Whether it holds a permit of a bounded queue.
    has_permit: bool,
    /// Whether the task was submitted.
    is_used: bool,
}

impl Reservation {
    /// Waits for a permit of a bounded queue, then accepts a task.
    pub(crate) async fn with_permit(route: OwnedRoute) -> Result<Self, Refusal> {
        let acquired = acquire(route.route()).await;
        let accepted = acquired.and_then(|()| route.route().accept_with_permit(Patience::None));
        accepted.inspect_err(|_| route.route().count_rejection())?;
        Ok(Reservation { route, has_permit: true, is_used: false })
    }

    pub(crate) fn route(&self) -> Route<'_> {
        self.route.route()
    }

    /// Accepts a task that will wait for a slot of its group.
    pub(crate) fn deferred(route: OwnedRoute) -> Result<Self, Refusal> {
        route.route().count_accepted().inspect_err(|_| route.route().count_rejection())?;
        Ok(Reservation { route, has_permit: false, is_used: false })
    }

    /// Takes a permit, free or not: the task does not wait for a slot after all.
    pub(crate) fn exceed_capacity(&mut self) {
        self.route.route().shared.acquire_over_limit();
        self.has_permit = true;
    }

    /// Returns the acceptance for the task, unless an immediate shutdown has come before: race 24.
    pub(crate) fn accept(&mut self, line: Line) -> Result<Accepted<'_>, Refusal> {
        self.begin_use()?;
        let route = self.route.route();
        // There is no worker if a task that ran on its submitter has asked for a slot.
        let runner = route.find_runner(WorkerContext::current(route.shared), Patience::Endless)?;
        Ok(Accepted { route, line, runner })
    }

    /// The acceptance is that of a task from now on, which waits for a slot unless it is
    /// [enqueued](Self::accept).
    pub(crate) fn begin_use(&mut self) -> Result<(), Refusal> {
        let route = self.route.route();
        if route.shared.is_stopped() {
            route.count_rejection();
            return Err(Refusal::Closed);
        }
        self.is_used = true;
        Ok(())
    }

    /// Returns the route that the futures of this reservation may share.
    #[cfg(feature = "async")]
    pub(crate) fn owned_route(&self) -> OwnedRoute {
        self.route.clone()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let route = self.route.route();
        if self.has_permit {
            route.shared.release_permit();
        }
        route.finish_on_caller(1);
    }
}

/// Acquires a permit of a bounded queue.
async fn acquire(route: Route<'_>) -> Result<(), Refusal> {
    let shared = route.shared;
    let Some(capacity) = shared.capacity.as_deref() else { return Ok(()) };
    if capacity.try_acquire(&shared.sizes) {
        return Ok(());
    }
    let granted = route.begin_permit_wait(capacity, Waits::Future);
    let must_not_wait = || may_block_own(route.id());
    let give_up = |granted| capacity.give_up(&shared.sizes, granted);
    match wait_for_grant(shared, granted, must_not_wait, give_up).await {
        Some(outcome) => outcome.map_err(|_| route.refuse_permit()),
        None => {
            // The permit may be one that is free only when the calling worker goes on.
            capacity.acquire_over_limit();
            Ok(())
        }
    }
}

/// Waits for what a thread of the pool grants to a future of the user's. `None` where it
/// `must_not_wait`. If the wait ends without a grant, calls `give_up`: a grant that comes meanwhile
/// is for another one.
pub(crate) async fn wait_for_grant<T>(
    shared: &Arc<Shared>,
    granted: oneshot::Receiver<T>,
    must_not_wait: impl Fn() -> bool + Unpin,
    give_up: impl Fn(oneshot::Receiver<T>) + Unpin,
) -> Option<Result<T, oneshot::Canceled>> {
    let mut wait = GrantWait { granted: Some(granted), give_up };
    let poll = move |context: &mut Context<'_>| {
        let granted = wait.granted.as_mut().expect("it is not polled after its end");
        match Pin::new(granted).poll(context) {
            Poll::Ready(outcome) => {
                wait.granted = None;
                Poll::Ready(Some(outcome))
            }
            Poll::Pending if must_not_wait() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    };
    relayed(shared, poll_fn(poll)).await
}

/// Gives the wait up when it is dropped before its end.
struct GrantWait<T, G: Fn(oneshot::Receiver<T>)> {
    /// `None` at the end.
    granted: Option<oneshot::Receiver<T>>,
    give_up: G,
}

impl<T, G: Fn(oneshot::Receiver<T>)> Drop for GrantWait<T, G> {
    fn drop(&mut self) {
        if let Some(granted) = self.granted.take() {
            (self.give_up)(granted);
        }
    }
}
