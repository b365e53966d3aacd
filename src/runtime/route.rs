//! Where a task is submitted to: a pool and, unless it is the default one, a view of it.

use std::sync::{Arc, Weak};

use crate::runtime::policy::{DEFAULT_VIEW, ViewId};
use crate::runtime::shared::{PoolId, Shared};
use crate::runtime::view::View;
use crate::task::expiry::Expiry;
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::Outcome;

/// See the [module's documentation](self). Borrows, since a submission must not write reference counts that other CPUs write
/// too.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) view: Option<&'a Arc<View>>,
}

impl<'a> Route<'a> {
    /// Returns the route to the default view.
    pub(crate) fn to_pool(shared: &'a Arc<Shared>) -> Self {
        Route { shared, view: None }
    }

    pub(crate) fn id(self) -> PoolId {
        self.shared.id()
    }

    pub(crate) fn view_id(self) -> ViewId {
        self.view.map_or(DEFAULT_VIEW, |view| view.id)
    }

    /// See [`View::expiry`].
    pub(crate) fn expiry(self) -> Option<Arc<Expiry>> {
        self.view?.expiry()
    }

    /// Wraps the job of a closure without a handle, if it is of a view with a queue timeout.
    #[inline]
    pub(crate) fn expiring(self, job: Job) -> Job {
        if self.view.is_none() { job } else { self.expiring_in_view(job) }
    }

    #[cold]
    fn expiring_in_view(self, job: Job) -> Job {
        match self.expiry() {
            Some(expiry) => job.expiring(expiry),
            None => job,
        }
    }

    /// Returns what the handle of a task needs to know of it.
    pub(crate) fn origin(self, expiry: Option<Arc<Expiry>>) -> Origin {
        let in_view = |view| Box::new(InView { view: Arc::downgrade(view), expiry });
        Origin { pool: self.id(), in_view: self.view.map(in_view) }
    }
}

/// A [`Route`] that keeps the pool's state and the view, but does not keep the pool open. Clones share one allocation, so a
/// pending future pays one word for it.
#[derive(Clone)]
pub(crate) struct OwnedRoute(Arc<Destination>);

struct Destination {
    shared: Arc<Shared>,
    view: Option<Arc<View>>,
    /// Of the one future that has this route. `None` for tasks that do not expire.
    #[cfg(feature = "async")]
    expiry: Option<Arc<Expiry>>,
}

impl OwnedRoute {
    pub(crate) fn new(route: Route<'_>) -> Self {
        let (shared, view) = (Arc::clone(route.shared), route.view.cloned());
        OwnedRoute(Arc::new(Destination {
            shared,
            view,
            #[cfg(feature = "async")]
            expiry: None,
        }))
    }

    /// Makes the route of one future, which expires.
    #[cfg(feature = "async")]
    pub(crate) fn expiring(route: Route<'_>, expiry: Arc<Expiry>) -> Self {
        let (shared, view) = (Arc::clone(route.shared), route.view.cloned());
        OwnedRoute(Arc::new(Destination { shared, view, expiry: Some(expiry) }))
    }

    /// Returns the route of a future that is spawned now.
    #[cfg(feature = "async")]
    pub(crate) fn for_future(&self) -> Self {
        match self.route().expiry() {
            Some(expiry) => OwnedRoute::expiring(self.route(), expiry),
            None => self.clone(),
        }
    }

    pub(crate) fn route(&self) -> Route<'_> {
        Route { shared: &self.0.shared, view: self.0.view.as_ref() }
    }

    #[cfg(feature = "async")]
    pub(crate) fn expiry(&self) -> Option<&Arc<Expiry>> {
        self.0.expiry.as_ref()
    }

    /// Whether the task may be polled, or polled again. See [`Expiry::settle`].
    #[cfg(feature = "async")]
    #[must_use]
    pub(crate) fn may_poll(&self) -> bool {
        self.expiry().is_none_or(|expiry| expiry.settle())
    }

    /// Returns the outcome of a task that is dropped before its end.
    #[cfg(feature = "async")]
    pub(crate) fn outcome_of_drop(&self) -> Outcome {
        let is_expired = self.expiry().is_some_and(|expiry| expiry.is_expired());
        if is_expired { Outcome::Expired } else { Outcome::Cancelled }
    }
}

/// Where a task was submitted to, for its handle: keeps neither the pool nor the view.
pub(crate) struct Origin {
    pub(crate) pool: PoolId,
    /// `None`: the default view. In a box, because handles are moved a lot and few are of views.
    pub(crate) in_view: Option<Box<InView>>,
}

/// What the handle of a view's task knows of it.
pub(crate) struct InView {
    pub(crate) view: Weak<View>,
    /// `None` for a task that does not expire.
    expiry: Option<Arc<Expiry>>,
}

impl Origin {
    pub(crate) fn expiry(&self) -> Option<&Arc<Expiry>> {
        self.in_view.as_ref()?.expiry.as_ref()
    }
}
