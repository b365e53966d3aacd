//! The *extra* worker of a pool that measures: it runs beyond the limit, for ready futures only,
//! while closures keep all others busy (`protocol.md`). In a pool with views the worker that has
//! the place for ready futures does (`views/protocol.md`).

use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use super::Worker;
use crate::crew::{Count, MustLook, WorkerMetrics};
use crate::queue::Kind;
use crate::sched::shared::Shared;
use crate::sync::Ordering;

impl Worker {
    /// More workers run than may. Makes this one the extra one if a future is ready and there is
    /// none, and polls futures until none is ready or it may take any task. Returns whether it may.
    /// Otherwise it rests next, and is the extra one until it is counted as idle: no other thread
    /// starts for a future meanwhile.
    #[cold]
    pub(super) fn poll_as_extra(&mut self) -> bool {
        let (shared, context) = (Arc::clone(&self.shared), Rc::clone(&self.context));
        context.share_woken();
        let (limit, max_size) = (shared.sizes.limit(), shared.sizes.max());
        if !shared.has_ready_future() || !shared.counts.begin_extra(limit, max_size) {
            return false;
        }
        // Release: the thread that clears it finds the worker counted as the extra one.
        context.metrics.is_extra.store(true, Ordering::Release);
        // Its look asks the keeper to watch it.
        self.is_woken = true;
        while let Some(mut job) = shared.queue.pop_injected(Kind::Woken) {
            let ended = context.metrics.ended();
            // Read after the pop: the future may have been spawned behind a pause.
            if shared.policy.is_used() {
                shared.push_to_view(None, job);
                break;
            }
            self.notify_before_run(job.is_new());
            self.run(&mut job);
            mem::forget(job);
            let is_extra = context.metrics.is_extra.load(Ordering::Relaxed);
            if is_extra {
                context.metrics.add(Count::OfExtra, context.metrics.ended() - ended);
            }
            let goes_on = is_extra
                && shared.counts.load().is_extra_needed(shared.sizes.limit(), shared.sizes.max())
                && !self.is_quota_used();
            if !goes_on {
                // Race 1: submitters of futures have relied on it. If there is room, the worker that
                // has stopped looks, or the keeper does after a raise. If the keeper has ended this,
                // it has looked. If the quota is used or even more run than may, this worker leaves
                // or rests next, and looks.
                let _: Option<MustLook> = shared.end_extra(&context.metrics);
                return true;
            }
            // Those of its own polls stand in line with the others.
            context.share_woken();
        }
        false
    }
}

impl Shared {
    /// Whether one more worker would find a future to poll beyond the limit, which follows
    /// measurements.
    pub(crate) fn has_ready_future(&self) -> bool {
        let has_injected = || self.queue.has_future();
        let in_views = || self.queue.may_have_woken() && self.policy.may_poll(has_injected());
        cfg!(feature = "async")
            && self.sizes.follows_measurements()
            && if self.policy.is_used() { in_views() } else { has_injected() }
    }

    /// Makes the worker with these metrics one of the others, if it is the extra one.
    pub(in crate::sched) fn end_extra(&self, metrics: &WorkerMetrics) -> Option<MustLook> {
        metrics.end_extra().then(|| self.counts.end_extra())
    }
}
