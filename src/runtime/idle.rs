//! The idle workers: a stack. The newest one is woken first, so the others go cold and retire (law
//! 5).
//!
//! - [`publish`](IdleStack::publish) pushes a worker: from then on it may be claimed.
//! - [`claim`](IdleStack::claim) pops the newest one for a search, if there is spare capacity.
//! - [`withdraw`](IdleStack::withdraw) removes the calling worker; it fails if the worker was
//!   claimed.
//! - [`recheck_all`](IdleStack::recheck_all) makes all of them evaluate their state again.
//!
//! A worker is on the stack if and only if it is counted as idle: both change under the stack's
//! lock. Outside of it, two workers and two submitters could carry the idle count below zero, into
//! the bits of its neighbour.
//!
//! The order and its effect on caches and on shrinking are those of folly's `LifoSem`.

use std::sync::Arc;

use crate::runtime::counts::{Counts, MustLook};
use crate::sync::Mutex;
use crate::sync::parker::Parker;

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct IdleStack {
    /// The newest last.
    parkers: Mutex<Vec<Arc<Parker>>>,
}

/// The outcome of [`IdleStack::withdraw`].
#[must_use]
pub(crate) enum IdleWithdrawal {
    /// The worker is off the stack.
    Done,
    /// The worker was claimed: its parker has been or will be unparked, and it holds a search.
    Claimed,
    /// The worker stays on the stack.
    Stays,
}

impl IdleStack {
    /// Pushes the worker. The submitter of an earlier task did not see this worker.
    pub(crate) fn publish(&self, counts: &Counts, parker: &Arc<Parker>) -> MustLook {
        let mut parkers = self.parkers.lock();
        parkers.push(Arc::clone(parker));
        counts.add_idle()
    }

    /// Removes the worker, if `change` has changed the counts for that.
    pub(crate) fn withdraw(
        &self,
        parker: &Arc<Parker>,
        change: impl FnOnce() -> bool,
    ) -> IdleWithdrawal {
        let mut parkers = self.parkers.lock();
        // Searches from the end: a worker that leaves soon after it was added is found at once.
        let place = parkers.iter().rposition(|other| Arc::ptr_eq(other, parker));
        let Some(place) = place else { return IdleWithdrawal::Claimed };
        if !change() {
            return IdleWithdrawal::Stays;
        }
        parkers.remove(place);
        IdleWithdrawal::Done
    }

    /// Pops the newest idle worker for a search; the caller must unpark it. `None` if no worker is
    /// idle, if `max` workers are running, or if `enough` search already.
    #[must_use]
    pub(crate) fn claim(&self, counts: &Counts, max: usize, enough: usize) -> Option<Arc<Parker>> {
        let mut parkers = self.parkers.lock();
        if counts.claim_idle(max, enough) { parkers.pop() } else { None }
    }

    /// Makes every worker on the stack evaluate again whether it may stay, and for how long.
    ///
    /// A worker that is published later sees, after taking the lock, what the caller did before.
    pub(crate) fn recheck_all(&self) {
        // Unlock first: otherwise each worker would wake and block on the lock, to leave the stack.
        let parkers = self.parkers.lock().clone();
        parkers.iter().for_each(|parker| parker.recheck());
    }

    /// Lets the keep-alive of every worker on the stack pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        self.parkers.lock().iter().for_each(|parker| parker.expire());
    }
}
