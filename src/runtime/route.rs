//! Where a task is submitted to: a pool and, unless it is the default one, a view of it.

use std::sync::{Arc, Weak};

use crate::runtime::policy::{DEFAULT_VIEW, ViewId};
use crate::runtime::shared::{PoolId, Shared};
use crate::runtime::view::View;
use crate::task::expiry::Expiry;
use crate::task::job::Job;

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

    pub(crate) fn to_owned(self) -> OwnedRoute {
        OwnedRoute { shared: Arc::clone(self.shared), view: self.view.cloned() }
    }
}

/// A [`Route`] that keeps the pool's state and the view, but does not keep the pool open.
#[derive(Clone)]
pub(crate) struct OwnedRoute {
    shared: Arc<Shared>,
    view: Option<Arc<View>>,
}

/// What has a route.
pub(crate) trait AsRoute {
    fn route(&self) -> Route<'_>;
}

impl AsRoute for OwnedRoute {
    fn route(&self) -> Route<'_> {
        Route { shared: &self.shared, view: self.view.as_ref() }
    }
}

/// To the default view.
impl AsRoute for Arc<Shared> {
    fn route(&self) -> Route<'_> {
        Route::to_pool(self)
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
