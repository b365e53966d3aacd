//! Rule A, "rely, then look": the look that a thread owes after a change by which it stops being one that others rely on
//! (`protocol.md`, race 1).

use std::sync::Arc;

use crate::runtime::counts::{MustLook, Snapshot};
use crate::runtime::shared::Shared;
use crate::sync::{Ordering, fence};

impl MustLook {
    /// For a caller that looks at the queue itself, right after this: an idle worker, and [`Shared::notify`]. Returns the counts.
    #[inline]
    pub(crate) fn fence(self, shared: &Shared) -> Snapshot {
        shared.fence_and_admit()
    }

    /// Notifies if work is queued.
    pub(crate) fn look(self, shared: &Arc<Shared>) {
        shared.look();
    }

    /// As [`look`](Self::look), for a caller that knows of more work: the queue, which other workers write to, is not read.
    pub(super) fn look_for_more(self, shared: &Arc<Shared>) {
        if self.fence(shared).has_spare_capacity(shared.sizes.max()) {
            shared.notify(true);
        }
    }

    /// As [`look`](Self::look), before a worker runs the first task that it has taken since it started, rested or spun. Wakes up to
    /// two others for what is left, or one in a stream of tasks.
    pub(crate) fn look_as_woken(self, shared: &Arc<Shared>) {
        if self.fence(shared).has_spare_capacity(shared.sizes.max()) && shared.has_work() {
            shared.fan_out();
        }
    }
}

impl Shared {
    /// Admits returning workers, and notifies if work is queued. For any thread, also for one that owes no look.
    pub(crate) fn look(self: &Arc<Self>) {
        if self.fence_and_admit().has_spare_capacity(self.sizes.max()) && self.has_work() {
            self.notify(true);
        }
    }

    /// Fences, then admits workers from the returning queue. Returns the counts.
    #[inline]
    pub(super) fn fence_and_admit(&self) -> Snapshot {
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        // A returning worker is still counted as blocked.
        if now.blocked() > 0 && !self.returning.is_empty() {
            self.admit_returning();
        }
        now
    }
}
