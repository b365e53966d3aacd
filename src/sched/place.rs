//! Places of views: a worker releases its place while it blocks, and exchanges it when it runs a
//! claimed task (`views/protocol.md`). Does nothing in a pool that has never had a view.

use std::sync::Arc;

use crate::crew::MustLook;
use crate::error::BuildError;
use crate::flight::RunningMark;
use crate::queue::Kind;
use crate::sched::context::{RegionKind, TaskMark, WorkerContext, enter_task};
use crate::sched::region::OutsideOfRegion;
use crate::sched::shared::Shared;
use crate::sched::worker::enable_views;
use crate::task::{DEFAULT_VIEW, Job, ViewId};
use crate::views::{Place, Terms, ViewCore, ViewJob, ViewPool};

impl Shared {
    /// From now on a worker takes each task with a place, and those of the default view as well.
    /// Called before a view can have a task. What runs by then has no place: until it ends, a worker
    /// that comes for a ready future may take a closure beyond the number.
    pub(crate) fn expect_views(&self) {
        if !self.policy.is_used() {
            enable_views();
            self.policy.begin_use(&self.sizes);
            // Race 4: an idle worker counts as running until it has seen that.
            self.idle.recheck_all();
        }
    }

    /// Adds a view, unless the reserves would leave no worker to the others.
    pub(crate) fn add_view(&self, terms: Terms) -> Result<ViewId, BuildError> {
        terms.check()?;
        self.expect_views();
        self.policy.add(&self.sizes, terms)
    }

    /// Changes what a view asks for, unless no view can have that. `change` is called under the
    /// policy's lock.
    pub(crate) fn change_view(
        self: &Arc<Self>,
        id: ViewId,
        change: &dyn Fn(&mut Terms),
    ) -> Result<(), BuildError> {
        if let Some(owed) = self.policy.change(&self.sizes, id, change)? {
            // Race 15: more of its tasks may start, or more of others beside a smaller reserve.
            // Permits follow reserves.
            self.grant_permits();
            owed.look(self);
        }
        Ok(())
    }

    /// Resumes all views of a pool that was closed.
    pub(crate) fn resume_all(self: &Arc<Self>) {
        if let Some(owed) = self.policy.resume_all() {
            owed.look(self);
        }
    }

    /// Whether tasks wait in the queue until their view is resumed: tasks of one view, or of any.
    pub(crate) fn has_paused_work(&self, view: Option<&Arc<ViewCore>>) -> bool {
        if !self.policy.is_used() {
            return false;
        }
        // The stale entries first: of each that is dropped meanwhile, the second number is lower.
        let mut sums = self.registry.lock().sums();
        self.caller_metrics.lock().add_to(&mut sums);
        let stale = |job: &ViewJob| job.view.as_ref().map_or(0, |view| view.stale());
        let id = view.map(|view| view.id);
        self.policy.has_paused(id, || self.queue.len(), sums.stale(), stale)
    }

    /// Whether a worker that looks would find work that it may take. Queued tasks of a view that
    /// may have no more workers are none: the next worker that releases a place looks (race 35).
    pub(crate) fn has_work(&self) -> bool {
        self.policy.eligible(usize::from(!self.queue.is_empty()), || self.queue.has_future()) > 0
    }

    /// How many queued tasks could be taken now, if that many workers came.
    pub(crate) fn work_len(&self) -> usize {
        self.policy.eligible(self.queue.len(), || self.queue.has_future())
    }

    /// Queues a job of a view, or one of the default view that a worker has taken without a place.
    /// Returns whether a worker may take work of the view now.
    pub(crate) fn push_to_view(&self, view: Option<&Arc<ViewCore>>, job: Job) -> bool {
        // In a pool that measures, futures wait for no closures before their first poll either.
        let is_new = job.is_new() && !(self.sizes.follows_measurements() && job.is_future());
        if !is_new {
            self.queue.expect(Kind::Woken);
        }
        let id = view.map_or(DEFAULT_VIEW, |view| view.id);
        self.policy.push(id, ViewJob { job, view: view.cloned() }, is_new)
    }

    /// How many entries are queued, of all views.
    pub(crate) fn queue_len(&self) -> usize {
        self.queue.len() + self.policy.len(None)
    }

    /// Releases the calling worker's place, if it has one.
    #[must_use]
    pub(super) fn release_place(&self, context: &WorkerContext) -> Option<MustLook> {
        context.replace_place(None).map(|held| self.policy.release(held))
    }

    /// The calling worker enters a region: releases its place, if it has one, to take it again at
    /// the end of the region.
    #[must_use]
    pub(super) fn lend_place(&self, context: &WorkerContext) -> Option<MustLook> {
        let held = context.place.get()?;
        context.replace_place(Some(Place::of(held.view)));
        Some(self.policy.release(held))
    }

    /// Takes the place again that the calling worker had before its region. The worker is still
    /// counted as blocked, if it was.
    pub(super) fn take_place_back(&self, context: &WorkerContext) {
        let lent = context.place.get().map(|lent| lent.view);
        if let Some(wait) = lent.and_then(|_| self.policy.exchange(None, lent, false)) {
            self.policy.wait(&wait);
        }
    }

    /// Exchanges the calling worker's place for one of another view, if there is such a view. Waits
    /// as a blocked worker if there is no place.
    #[inline(never)]
    fn exchange_place(self: &Arc<Self>, context: &WorkerContext, to: Option<ViewId>, claims: bool) {
        // In the region that it may enter it has none to lend.
        if let Some(wait) = self.policy.exchange(context.replace_place(None), to, claims) {
            context.change_region(Some(RegionKind::Own));
            self.policy.wait(&wait);
            context.change_region(None);
        }
        context.replace_place(to.map(Place::of));
        // Race 35: a task may have waited for the place that is free now.
        MustLook::owed().look(self);
    }

    /// Makes the calling worker's place one of the view `to`: at the end of its region if it is in
    /// one, and otherwise at once. `claims`: for a task that it has claimed.
    fn set_place(self: &Arc<Self>, context: &WorkerContext, to: Option<ViewId>, claims: bool) {
        if context.region.get().is_some() {
            context.replace_place(to.map(Place::of));
        } else if context.place.get() != to.map(Place::of) {
            self.exchange_place(context, to, claims);
        }
    }
}

/// The state of the task that a worker runs a claimed task on top of.
pub(crate) struct Below<'a> {
    /// The view whose place it has, or takes at the end of its region.
    place: Option<ViewId>,
    region: OutsideOfRegion,
    /// Of the claimed task. Without views the task below counts.
    marks: (Option<TaskMark>, Option<RunningMark<'a>>),
}

impl Shared {
    /// The calling worker begins to run a claimed task on top of another one: leaves its region,
    /// and exchanges its place for one of the claimed task's `view`, or of the default view.
    pub(crate) fn begin_on_top<'a>(
        self: &'a Arc<Self>,
        context: &WorkerContext,
        view: Option<&'a Arc<ViewCore>>,
    ) -> Below<'a> {
        // A claimed closure is none of the polls that the extra worker is for: another worker polls
        // ready futures meanwhile.
        if let Some(owed) = self.end_extra(&context.metrics) {
            owed.look(self);
        }
        let place = context.place.get().map(|place| place.view);
        // Before it waits for a place.
        let running = self.policy.is_used().then(|| RunningMark::begin(self.running_of(view)));
        if running.is_some() {
            self.set_place(context, Some(view.map_or(DEFAULT_VIEW, |view| view.id)), true);
        }
        let region = OutsideOfRegion::enter();
        Below { place, region, marks: (enter_task(self, view), running) }
    }

    /// Whether the calling worker, which waits for a task of the view, gets a place for it at once
    /// or, unless `at_once` is set, no worker takes the task since the view is paused.
    #[inline]
    pub(crate) fn may_begin_on_top(
        &self,
        context: &WorkerContext,
        view: Option<&Arc<ViewCore>>,
        at_once: bool,
    ) -> bool {
        !self.policy.is_used() || self.may_exchange_place(context, view, at_once)
    }

    #[cold]
    fn may_exchange_place(
        &self,
        context: &WorkerContext,
        view: Option<&Arc<ViewCore>>,
        at_once: bool,
    ) -> bool {
        let held = context.place.get().filter(|_| context.region.get().is_none());
        let id = view.map_or(DEFAULT_VIEW, |view| view.id);
        held.is_some_and(|held| held.view == id) || self.policy.may_exchange(held, id, at_once)
    }

    /// Reverts [`begin_on_top`](Self::begin_on_top).
    pub(crate) fn end_on_top(self: &Arc<Self>, context: &WorkerContext, below: Below<'_>) {
        let Below { place, region, marks } = below;
        drop(marks);
        drop(region);
        self.set_place(context, place, false);
    }
}

impl ViewPool for Shared {
    fn end_reserve(self: Arc<Self>, id: ViewId) {
        // A view may have no reserve.
        _ = self.change_view(id, &|terms| terms.reserve = 0);
    }

    fn remove_view(self: Arc<Self>, id: ViewId) {
        // Race 15: its places are free for others.
        self.policy.remove(id).look(&self);
    }
}
