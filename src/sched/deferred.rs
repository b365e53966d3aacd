//! For how long woken futures wait for the end of the poll that has woken them (race 22).
//!
//! The polling worker will take them next, mostly, so no other is notified. But the poll may block,
//! unseen by the pool, until one of them has run. So while such futures are left behind and another
//! worker could take them, the keeper looks every [`PAUSE`]. It moves those whose worker has asked
//! for no task since the look before to the injector, and notifies: after one pause, or two at
//! most. Those of coarse polls lie in the injector: it notifies of them at each look.
//!
//! A wake reads one flag, which each look clears. If it is clear, the wake sets it, and then asks
//! for the next look: in this order, since the thread may lose its CPU in between, and others rely
//! on the flag. The keeper sleeps if no wake has set it again and no future waits. It looks once
//! more before that: a wake may have read the flag just before it was cleared.
//!
//! In the same way the keeper looks at the extra worker while ready futures rely on it. If its poll
//! has gone on since the look before, and sleeps now, it is one of the others from then on. Another
//! worker polls beside it.

use std::sync::Arc;
use std::time::Instant;

use crate::crew::{MustLook, WorkerMetrics};
use crate::keeper::{Deferred, KeeperJob, PAUSE};
use crate::sched::notify::Notifier;
use crate::sched::shared::Shared;
use crate::sync::Ordering;

impl Shared {
    /// The calling worker has left a woken future in its local queue, and goes on with its poll.
    #[inline]
    pub(super) fn watch_deferred(self: &Arc<Self>) {
        if !self.deferred.has_come.get() && self.may_take_deferred() {
            self.begin_to_watch();
        }
    }

    /// Whether another worker may take the future. Without spare capacity none may, and whichever
    /// becomes idle looks; but a measurement may find that the others sleep.
    #[inline]
    fn may_take_deferred(&self) -> bool {
        self.sizes.follows_measurements()
            || self.counts.load().has_spare_capacity(self.sizes.limit())
    }

    /// Ready futures rely on the extra worker, whose poll may block.
    #[cold]
    pub(crate) fn watch_extra(&self) {
        if !self.deferred.has_come.get() && self.has_ready_future() {
            self.begin_to_watch();
        }
    }

    #[cold]
    fn begin_to_watch(&self) {
        self.deferred.has_come.set(true);
        self.keeper.ask(KeeperJob::Deferred, Instant::now() + PAUSE);
    }

    /// [`KeeperJob::Deferred`].
    pub(super) fn look_for_deferred(self: &Arc<Self>) {
        let Deferred { has_come, seen } = &self.deferred;
        let is_used = has_come.get();
        has_come.set(false);
        let mut now = self.queue.observe_woken();
        let is_watched = self.has_ready_future() && self.counts.load().extra() > 0;
        let busy = if is_watched { self.registry.lock().busy() } else { Vec::new() };
        let extra = busy.into_iter().find(|worker| worker.is_extra.load(Ordering::Relaxed));
        // No worker has this place in the list of local queues.
        let of_extra = extra.as_ref().map(|extra| (usize::MAX, extra.taken()));
        now.extend(of_extra);
        // The extra worker may be between two polls just now.
        let goes_on = (is_used || is_watched || !now.is_empty()) && self.may_take_deferred();
        let stalled: Vec<_> = {
            let mut seen = seen.lock();
            let stalled = now.iter().filter(|observed| seen.contains(observed)).copied().collect();
            *seen = now;
            stalled
        };
        // A poll that computes keeps its worker the extra one: another one would need a CPU more.
        let sleeps = |extra: &Arc<WorkerMetrics>| (self.config.growing.is_asleep)(extra);
        if of_extra.is_some_and(|observed| stalled.contains(&observed)) {
            let _: Option<MustLook> = extra.filter(sleeps).and_then(|it| self.end_extra(&it));
        }
        if !stalled.is_empty() || self.queue.has_future() {
            // Elsewhere a worker that comes for them would take a queued closure first, and no
            // extra worker would come.
            stalled.iter().for_each(|&(place, _)| self.queue.share_woken_of(place));
            // The last worker may have cleared the queues meanwhile.
            self.clear_if_over(self.in_flight.is_over());
            self.look_as(Notifier::KeeperLook);
        }
        if goes_on {
            self.keeper.ask(KeeperJob::Deferred, Instant::now() + PAUSE);
        }
    }
}
