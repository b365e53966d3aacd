//! Where a task is submitted to: a pool and, unless it is the default one, a view of it.

use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use crate::flight::InFlight;
use crate::sched::poll_wait::{PollWait, may_count};
use crate::sched::shared::Shared;
use crate::sync::unwind::{contain, discard};
use crate::task::{AnyGroup, Attachment, DEFAULT_VIEW, Expiry, Line, Submission, TaskId, ViewId};
use crate::thread::PoolId;
use crate::views::ViewCore;

/// See the [module's documentation](self). Borrows, since a submission must not write reference
/// counts that other CPUs write too.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) view: Option<&'a Arc<ViewCore>>,
}

impl<'a> Route<'a> {
    pub(crate) fn id(self) -> PoolId {
        self.shared.id()
    }

    pub(crate) fn view_id(self) -> ViewId {
        self.view.map_or(DEFAULT_VIEW, |view| view.id)
    }

    /// What is in flight of the view, or for the default one in the whole pool.
    pub(crate) fn in_flight(self) -> &'a InFlight {
        self.view.map_or(&self.shared.in_flight, |view| &view.in_flight)
    }

    /// What runs of the view. Each worker that may have taken a task that is not counted counts
    /// until it has passed the policy.
    pub(crate) fn running(self) -> &'a InFlight {
        self.shared.expect_views();
        self.shared.running_of(self.view)
    }

    /// Returns the attachment of a task that is submitted now: a part
    /// for each [observer](crate::observe::Observe) of the pool. Mostly there is none. A part that
    /// panics is left out.
    #[inline]
    fn attachment(self, line: Line, is_future: bool) -> Option<Attachment> {
        if self.shared.observers.is_empty() { None } else { self.attach(line, is_future) }
    }

    #[cold]
    fn attach(self, line: Line, is_future: bool) -> Option<Attachment> {
        let submission = Submission { pool: &self.shared.config.name, line, is_future };
        let mut parts = Vec::new();
        for observer in &self.shared.observers {
            let part = contain(|| observer.submitted(submission));
            parts.extend(part.map_err(discard).ok().flatten());
        }
        Attachment::new(parts)
    }

    /// Returns the expiry of a task that is submitted now. `None` unless its view has a queue
    /// timeout, which ends at some time.
    fn expiry(self) -> Option<Arc<Expiry>> {
        let view = self.view.filter(|view| view.may_expire.get())?;
        let timeout = self.shared.policy.terms(view.id).queue_timeout?;
        Some(Expiry::new(Instant::now().checked_add(timeout)?))
    }

    /// Returns what the handle of a task needs to know of it.
    pub(crate) fn origin(self, expiry: Option<Arc<Expiry>>) -> Origin {
        let rare =
            |view| Box::new(Rare { view: Some(Arc::downgrade(view)), expiry, ..Rare::default() });
        Origin { pool: self.id(), rare: self.view.map(rare) }
    }
}

/// A [`Route`] that keeps the pool's state and the view, but does not keep the pool open. Clones
/// share one allocation, so a pending future pays one word for it.
#[derive(Clone)]
pub(crate) struct OwnedRoute(Arc<Destination>);

struct Destination {
    shared: Arc<Shared>,
    view: Option<Arc<ViewCore>>,
    /// Of the one task that has this route. `None` for tasks that do not expire.
    expiry: Option<Arc<Expiry>>,
    /// Of the one task that has this route.
    attachment: Option<Attachment>,
}

impl OwnedRoute {
    pub(crate) fn new(route: Route<'_>) -> Self {
        OwnedRoute::with(route, None, None)
    }

    fn with(route: Route<'_>, expiry: Option<Arc<Expiry>>, attachment: Option<Attachment>) -> Self {
        let (shared, view) = (Arc::clone(route.shared), route.view.cloned());
        OwnedRoute(Arc::new(Destination { shared, view, expiry, attachment }))
    }

    pub(crate) fn route(&self) -> Route<'_> {
        Route { shared: &self.0.shared, view: self.0.view.as_ref() }
    }
}

/// The route of a task that has a cell. `None` for a closure of no group that neither expires nor
/// has an attachment: nothing asks for it.
pub(crate) struct TaskRoute(Option<OwnedRoute>);

impl TaskRoute {
    /// Returns the route of a closure that is submitted now, which it has to itself.
    #[inline]
    pub(crate) fn own(route: Route<'_>, line: Line, is_future: bool) -> Self {
        // Most tasks are of no view.
        let expiry = route.view.and_then(|_| route.expiry());
        let attachment = route.attachment(line, is_future);
        let is_needed = expiry.is_some() || attachment.is_some();
        TaskRoute(is_needed.then(|| OwnedRoute::with(route, expiry, attachment)))
    }

    /// Returns the route of a task that is submitted now: one of its own if it expires or has an
    /// attachment, otherwise the `common` one.
    pub(crate) fn own_or(
        route: Route<'_>,
        line: Line,
        is_future: bool,
        common: impl FnOnce() -> OwnedRoute,
    ) -> Self {
        let TaskRoute(own) = TaskRoute::own(route, line, is_future);
        TaskRoute(Some(own.unwrap_or_else(common)))
    }

    /// `None` for some closures. A future, which may be queued again, has one.
    pub(crate) fn route(&self) -> Option<Route<'_>> {
        self.0.as_ref().map(OwnedRoute::route)
    }

    #[inline]
    pub(crate) fn expiry(&self) -> Option<&Arc<Expiry>> {
        self.0.as_ref()?.0.expiry.as_ref()
    }

    #[inline]
    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.0.as_ref()?.0.attachment.as_ref()
    }
}

/// Where a task was submitted to, for its handle: keeps neither the pool nor the view.
pub(crate) struct Origin {
    pub(crate) pool: PoolId,
    /// In a box, because handles are moved a lot and few have any of it.
    rare: Option<Box<Rare>>,
}

/// Nothing refers to it any more.
pub(crate) struct Gone;

/// What few handles have.
#[derive(Default)]
struct Rare {
    /// `None`: the default view.
    view: Option<Weak<ViewCore>>,
    /// `None` for a task that does not expire.
    expiry: Option<Arc<Expiry>>,
    poll_wait: PollWait,
    /// The group in which the task may wait for a slot. If it has not, its number in the list.
    line: Option<(Weak<dyn AnyGroup>, Option<TaskId>)>,
    /// What the drop of the handle does.
    on_drop: Option<Box<dyn Send + Sync>>,
}

impl Origin {
    /// `Ok(None)` for the default view. An error if the view is gone: then the task was started, or
    /// handed back.
    pub(crate) fn view(&self) -> Result<Option<Arc<ViewCore>>, Gone> {
        let view = self.rare.as_ref().and_then(|rare| rare.view.as_ref());
        view.map(|view| view.upgrade().ok_or(Gone)).transpose()
    }

    pub(crate) fn expiry(&self) -> Option<&Arc<Expiry>> {
        self.rare.as_ref()?.expiry.as_ref()
    }

    /// Returns the group in which the task may wait for a slot, if it is there. If the task had one
    /// at once, with its number in the list of unstarted tasks.
    pub(crate) fn line(&self) -> Option<(Arc<dyn AnyGroup>, Option<TaskId>)> {
        let (line, id) = self.rare.as_ref()?.line.as_ref()?;
        Some((line.upgrade()?, *id))
    }

    pub(crate) fn set_line(&mut self, line: Weak<dyn AnyGroup>, id: Option<TaskId>) {
        self.rare.get_or_insert_default().line = Some((line, id));
    }

    /// What `on_drop` makes is dropped with the handle. Does nothing if that was set before.
    pub(crate) fn set_on_drop(&mut self, on_drop: impl FnOnce() -> Box<dyn Send + Sync>) {
        self.rare.get_or_insert_default().on_drop.get_or_insert_with(on_drop);
    }

    /// Returns what a canceller needs to know of the task.
    pub(crate) fn for_canceller(&self) -> Origin {
        let copy = |rare: &Rare| {
            let (view, expiry, line) = (rare.view.clone(), rare.expiry.clone(), rare.line.clone());
            Box::new(Rare { view, expiry, line, ..Rare::default() })
        };
        Origin { pool: self.pool, rare: self.rare.as_deref().map(copy) }
    }

    /// After a poll of the handle: counts it among the waits of the thread, if it was pending and
    /// the thread is a worker of the task's pool.
    pub(crate) fn note_poll(&mut self, is_pending: bool, waker: &Waker) {
        if self.rare.is_some() || is_pending && may_count(self.pool) {
            self.rare.get_or_insert_default().poll_wait.note(is_pending, self.pool, waker);
        }
    }
}
