//! The idle workers: a stack. The newest one is woken first, so the others go cold and retire (law
//! 5).
//!
//! - [`publish`](IdleStack::publish) pushes a worker: from then on it may be claimed.
//! - [`claim`](IdleStack::claim) pops the newest one for a search, if there is spare capacity.
//! - [`withdraw`](IdleStack::withdraw) removes the calling worker; it fails if the worker was
//!   claimed.
//! - [`withdraw_for_work`](IdleStack::withdraw_for_work) also begins a search.
//! - [`recheck_all`](IdleStack::recheck_all) makes all of them evaluate their state again.
//!
//! A worker is on the stack if and only if it is counted as idle: both change under the stack's
//! lock. Outside of it, two workers and two submitters could carry the idle count below zero, into
//! the bits of its neighbour.
//!
//! The order and its effect on caches and on shrinking are those of folly's `LifoSem`.

use std::sync::Arc;

use crate::runtime::counts::{Counts, MustLook, Search};
use crate::sync::Mutex;
use crate::sync::parker::Parker;

/// See the [module's documentation](self).
pub(crate) struct IdleStack {
    /// The newest last.
    parkers: Mutex<Vec<Arc<Parker>>>,
}

/// The outcome of [`IdleStack::withdraw_for_work`].
#[must_use]
pub(crate) enum IdleWithdrawal {
    /// The worker is off the stack. `None` for its search if `searching` is full.
    Done(Option<Search>),
    /// The worker was claimed: its parker has been or will be unparked.
    Claimed,
    /// The worker stays on the stack: there is no spare capacity.
    AtLimit,
}

impl IdleStack {
    pub(crate) fn new() -> Self {
        IdleStack { parkers: Mutex::new(Vec::new()) }
    }

    /// Pushes the worker and ends the search that it held. The submitter of an earlier task did not see this worker.
    pub(crate) fn publish(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        search: Option<Search>,
    ) -> MustLook {
        let mut parkers = self.parkers.lock();
        parkers.push(Arc::clone(parker));
        counts.add_idle(search)
    }

    /// Removes the worker. `false` if it was claimed: its parker has been or will be unparked, and
    /// it holds [`Search::Awake`].
    #[must_use]
    pub(crate) fn withdraw(&self, counts: &Counts, parker: &Arc<Parker>) -> bool {
        let mut parkers = self.parkers.lock();
        let Some(place) = position(&parkers, parker) else { return false };
        parkers.remove(place);
        counts.remove_idle();
        true
    }

    /// As [`withdraw`](Self::withdraw), for a worker that has seen work: only while fewer than
    /// `max` workers are running, and with a search ([`Counts::search_from_idle`]).
    pub(crate) fn withdraw_for_work(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        max: usize,
    ) -> IdleWithdrawal {
        let mut parkers = self.parkers.lock();
        let Some(place) = position(&parkers, parker) else { return IdleWithdrawal::Claimed };
        let Some(search) = counts.search_from_idle(max) else {
            return IdleWithdrawal::AtLimit;
        };
        parkers.remove(place);
        IdleWithdrawal::Done(search)
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

    /// As [`recheck_all`](Self::recheck_all), if only one worker is on the stack.
    pub(crate) fn recheck_only(&self) {
        let only = match self.parkers.lock().as_slice() {
            [only] => Arc::clone(only),
            _ => return,
        };
        only.recheck();
    }

    /// Lets the keep-alive of every worker on the stack pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        self.parkers.lock().iter().for_each(|parker| parker.expire());
    }
}

/// Finds the worker in the stack. Searches from the end: a worker that leaves soon after it was added is found at once.
fn position(parkers: &[Arc<Parker>], parker: &Arc<Parker>) -> Option<usize> {
    parkers.iter().rposition(|other| Arc::ptr_eq(other, parker))
}
