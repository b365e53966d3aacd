//! Accepting a task before there is one, in async code. A [`Reservation`] is in flight like the
//! task that it stands for, so there is a worker for it, and a closed pool still takes that task.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Refusal;
use crate::flight::{Granted, Permits, Waits};
#[cfg(feature = "async")]
use crate::sched::TaskRoute;
use crate::sched::{OwnedRoute, Route, context, may_block_own, relayed};
use crate::submit::{Accepted, Patience, Runner};
use crate::task::attachment::Line;

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
        let context = context::current(route.shared);
        // There is none if a task that ran on its submitter has asked for a slot.
        let is_there = route.shared.ensure_worker();
        let runner =
            if is_there { Runner::Worker { context, fills_core: true } } else { Runner::Caller };
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

    /// Returns the route of a future that is submitted now.
    #[cfg(feature = "async")]
    pub(crate) fn future_route(&self, line: Line) -> TaskRoute {
        TaskRoute::own_or(self.route.route(), line, true, || self.route.clone())
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
    let granted = Some(route.begin_permit_wait(capacity, Waits::Future));
    let is_acquired = relayed(shared, PermitWait { route, capacity, granted }).await;
    if is_acquired { Ok(()) } else { Err(route.refuse_permit()) }
}

/// Waits for a permit. Resolves to `false` if the view or the pool was closed.
struct PermitWait<'a> {
    route: Route<'a>,
    capacity: &'a dyn Permits,
    /// `None` at the end.
    granted: Option<Granted>,
}

impl Future for PermitWait<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let granted = self.granted.as_mut().expect("it is not polled after its end");
        let polled = Pin::new(granted).poll(context).map(|outcome| outcome.is_ok());
        if polled.is_ready() {
            self.granted = None;
        } else if may_block_own(self.route.id()) {
            // The permit may be one that is free only when the calling worker goes on.
            self.give_up();
            self.capacity.acquire_over_limit();
            return Poll::Ready(true);
        }
        polled
    }
}

impl PermitWait<'_> {
    fn give_up(&mut self) {
        if let Some(granted) = self.granted.take() {
            self.capacity.give_up(&self.route.shared.sizes, granted);
        }
    }
}

impl Drop for PermitWait<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}
