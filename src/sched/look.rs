//! Rule A, "rely, then look": the look that a thread owes after a change by which it stops being
//! one that others rely on (`protocol.md`, race 1).

use std::sync::Arc;

use crate::crew::{MustLook, Snapshot};
use crate::sched::notify::Notifier;
use crate::sched::shared::Shared;
use crate::sync::{Ordering, fence};

impl MustLook {
    /// For a caller that looks at the queue itself, right after this: an idle worker, and
    /// [`Shared::notify`]. Returns the counts.
    #[inline]
    pub(crate) fn fence(self, shared: &Shared) -> Snapshot {
        shared.fence_and_admit()
    }

    /// Notifies if work is queued.
    pub(crate) fn look(self, shared: &Arc<Shared>) {
        shared.look_as(Notifier::Submitter);
    }

    /// Notifies if work is queued beside the task that a worker has taken, the first one since it
    /// started, rested or spun. Wakes up to two other workers for what is left.
    pub(crate) fn look_as_woken(self, shared: &Arc<Shared>) {
        let is_notified = shared.look_as(Notifier::Woken);
        // For a second task, if there is one: the first one is that of the worker which was woken.
        // Without this, `notify` finds the same.
        if is_notified && shared.work_len() > 1 {
            shared.notify(Notifier::Woken);
        }
    }
}

impl Shared {
    /// Admits returning workers, and notifies if work is queued. For any thread, also for one that
    /// owes no look.
    pub(crate) fn look(self: &Arc<Self>) {
        self.look_as(Notifier::Submitter);
    }

    /// Returns whether there was anything to notify of.
    pub(crate) fn look_as(self: &Arc<Self>, notifier: Notifier) -> bool {
        let now = self.fence_and_admit();
        let is_needed = self.may_run_another(now) && self.has_work();
        if is_needed {
            self.notify(notifier);
        }
        is_needed
    }

    /// Fences, then admits workers from the returning queue. Returns the counts.
    #[inline]
    fn fence_and_admit(&self) -> Snapshot {
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        // A returning worker is still counted as blocked.
        if now.blocked() > 0 && !self.returning.is_empty() {
            self.admit_returning();
        }
        now
    }
}
