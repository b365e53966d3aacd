//! A view of a pool, as the scheduler sees it: what its tasks and handles share. The public type is
//! `crate::View`.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use crate::crew::{CallerMetrics, Sums};
use crate::flight::InFlight;
use crate::stats::Stats;
use crate::sync::{Counter, Hint};
use crate::task::{Job, Outcome, ViewId};

/// The pool as its views see it: it uses this module, and not the reverse.
pub(crate) trait ViewPool: Send + Sync {
    /// Gives a view's reserve to others: it has no handle and no task.
    fn end_reserve(self: Arc<Self>, id: ViewId);

    /// Removes a view that nothing refers to any more.
    fn remove_view(self: Arc<Self>, id: ViewId);
}

/// See the [module's documentation](self).
///
/// Handles, entries and the memory of tasks refer to it. Dropping the last reference removes it
/// from its pool. Its reserve ends before, with its last handle and task: the memory of an ended
/// task stays while a user keeps one of its wakers.
pub(crate) struct ViewCore {
    pub(crate) id: ViewId,
    pub(crate) name: String,
    /// Whether its tasks may have a queue timeout. A submission reads it without a lock, and may
    /// find an older value: what depends on it has to stand in the task.
    pub(crate) may_expire: Hint,
    /// Its own tasks, accepted and not ended. Each also counts in the pool's: from after the count
    /// here to before its end.
    pub(crate) in_flight: InFlight,
    /// How many of its tasks run. Never closed.
    pub(crate) running: InFlight,
    pub(crate) metrics: CallerMetrics,
    pub(crate) rejected: Counter,
    pool: Weak<dyn ViewPool>,
    /// Its handles, and its own tasks in flight. None is added to zero.
    holders: Counter,
}

/// What a handle keeps of its view, and of its reserve.
pub(crate) struct ViewHandle(Arc<ViewCore>);

impl ViewHandle {
    /// The caller has a handle of the view, or runs a task of it.
    pub(crate) fn new(view: Arc<ViewCore>) -> Self {
        view.holders.increment();
        ViewHandle(view)
    }
}

impl Clone for ViewHandle {
    fn clone(&self) -> Self {
        ViewHandle::new(Arc::clone(&self.0))
    }
}

impl Drop for ViewHandle {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl Deref for ViewHandle {
    type Target = Arc<ViewCore>;

    fn deref(&self) -> &Arc<ViewCore> {
        &self.0
    }
}

impl Drop for ViewCore {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.remove_view(self.id);
        }
    }
}

impl ViewCore {
    pub(crate) fn new<P: ViewPool + 'static>(id: ViewId, name: String, pool: &Arc<P>) -> Self {
        let pool: Weak<P> = Arc::downgrade(pool);
        ViewCore {
            id,
            name,
            may_expire: Hint::default(),
            in_flight: InFlight::default(),
            running: InFlight::default(),
            metrics: CallerMetrics::default(),
            rejected: Counter::default(),
            pool,
            holders: Counter::default(),
        }
    }

    /// Accepts a task. `false` if the view is closed.
    #[must_use]
    pub(crate) fn accept(&self) -> bool {
        let is_accepted = self.in_flight.accept(1);
        if is_accepted {
            self.holders.increment();
        }
        is_accepted
    }

    /// Ends `count` accepted tasks.
    pub(crate) fn finish(&self, count: usize) {
        self.in_flight.finish(count);
        self.release(count);
    }

    /// The last one ends the reserve.
    fn release(&self, count: usize) {
        if self.holders.subtract(count) > 0 {
            return;
        }
        if let Some(pool) = self.pool.upgrade() {
            pool.end_reserve(self.id);
        }
    }

    /// Counts the outcome of a job that was run. What follows may be the end of a join.
    pub(crate) fn end(&self, outcome: &Outcome) {
        let is_end = outcome.is_end();
        self.metrics.lock().record(outcome);
        if is_end {
            self.metrics.lock().count_returned(1);
            self.finish(1);
        }
    }

    /// How many stale entries of its tasks are queued.
    pub(crate) fn stale(&self) -> usize {
        let mut sums = Sums::default();
        self.metrics.lock().add_to(&mut sums);
        sums.stale()
    }

    /// Fills in the statistics of the view's tasks. `queued` entries are in its queue.
    pub(crate) fn describe(&self, stats: &mut Stats, queued: impl FnOnce() -> usize) {
        let mut sums = Sums::default();
        self.metrics.lock().add_to(&mut sums);
        sums.describe(stats, self.in_flight.count(), queued());
        stats.rejected = self.rejected.get();
    }
}

/// What a worker takes: a job, and the view that it belongs to unless that is the default view.
pub(crate) struct ViewJob {
    pub(crate) job: Job,
    pub(crate) view: Option<Arc<ViewCore>>,
}
