//! The idle workers: a stack, so that the one that went idle last is woken first and the others
//! go cold and retire (law 5).
//!
//! - [`publish`](IdleStack::publish) puts a worker on the stack: from then on it may be claimed.
//! - [`claim`](IdleStack::claim) takes the newest one off and gives it the search for work, unless as many workers are
//!   running as may be.
//! - [`withdraw`](IdleStack::withdraw) takes a worker off by its own wish; fails if it was claimed.
//!   [`withdraw_for_work`](IdleStack::withdraw_for_work) is the same for one that is going to search.
//! - [`recheck_all`](IdleStack::recheck_all) makes everybody on the stack look around again.
//!
//! A worker is on the stack if and only if it is counted as idle: both change under the stack's lock
//! (outside of it, two workers and two submitters can carry the idle count below zero, into its
//! neighbour's bits).
//!
//! The idea of waking the newest first, and what it does for caches and for shrinking, is that of
//! folly's `LifoSem`.

use std::sync::Arc;

use crate::runtime::counts::{Counts, Search, Snapshot};
use crate::sync::Mutex;
use crate::sync::parker::Parker;

/// See the [module's documentation](self).
pub(crate) struct IdleStack {
    parkers: Mutex<Vec<Arc<Parker>>>,
}

/// What has become of a worker that wants to leave the stack for queued work.
#[must_use]
pub(crate) enum Withdrawal {
    /// It is off the stack, with the search unless another worker has it.
    Done(Option<Search>),
    /// It has been claimed: its parker has been or will be unparked.
    Claimed,
    /// It stays on the stack: as many workers are running as may be.
    AtLimit,
}

/// Searches from the top: a worker that changes its mind at once is there.
fn position(parkers: &[Arc<Parker>], parker: &Arc<Parker>) -> Option<usize> {
    parkers.iter().rposition(|other| Arc::ptr_eq(other, parker))
}

impl IdleStack {
    pub(crate) fn new() -> Self {
        IdleStack { parkers: Mutex::new(Vec::new()) }
    }

    /// Puts the worker on the stack and ends the search that it held.
    ///
    /// The caller must then look at the queue once more, behind a `SeqCst` fence: work that came
    /// before it was visible here has woken somebody else or nobody.
    pub(crate) fn publish(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        search: Option<Search>,
    ) -> Snapshot {
        let mut parkers = self.parkers.lock();
        parkers.push(Arc::clone(parker));
        counts.add_idle(search)
    }

    /// Takes the worker off the stack. `false` if it has been claimed: then its parker has been or
    /// will be unparked, and the worker holds [`Search::Awake`].
    #[must_use]
    pub(crate) fn withdraw(&self, counts: &Counts, parker: &Arc<Parker>) -> bool {
        let mut parkers = self.parkers.lock();
        let Some(place) = position(&parkers, parker) else { return false };
        parkers.remove(place);
        counts.remove_idle();
        true
    }

    /// As [`withdraw`](Self::withdraw), by a worker that has seen work, while fewer than `max` workers are running: it
    /// takes the search as well, unless another worker has it.
    pub(crate) fn withdraw_for_work(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        max: usize,
    ) -> Withdrawal {
        let mut parkers = self.parkers.lock();
        let Some(place) = position(&parkers, parker) else { return Withdrawal::Claimed };
        let Some(search) = counts.search_from_idle(max) else { return Withdrawal::AtLimit };
        parkers.remove(place);
        Withdrawal::Done(search)
    }

    /// Takes the newest idle worker for a search. The caller must unpark it. `None` if there is none, if `max` workers
    /// are running, or if a woken worker is searching already.
    #[must_use]
    pub(crate) fn claim(&self, counts: &Counts, max: usize) -> Option<Arc<Parker>> {
        let mut parkers = self.parkers.lock();
        if counts.claim_idle(max) { parkers.pop() } else { None }
    }

    /// Makes every worker on the stack look again whether it may stay, and for how long.
    ///
    /// A worker that is published later sees, after taking the lock, whatever the caller did before.
    pub(crate) fn recheck_all(&self) {
        for parker in self.parkers.lock().iter() {
            parker.recheck();
        }
    }

    /// Lets the keep-alive of every worker on the stack pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        for parker in self.parkers.lock().iter() {
            parker.expire();
        }
    }
}
