//! The idle workers: a list. The one with the lowest index is woken first. So the others go cold
//! and retire (law 5), and each worker that is woken again and again keeps its role, and with it
//! the CPU on which it ran last.
//!
//! - [`publish`](IdleList::publish) adds a worker: from then on it may be claimed.
//! - [`claim`](IdleList::claim) takes the one with the lowest index for a search, if there is spare
//!   capacity.
//! - [`withdraw`](IdleList::withdraw) removes the calling worker; it fails if the worker was
//!   claimed.
//! - [`recheck_all`](IdleList::recheck_all) makes all of them evaluate their state again.
//!
//! A worker is on the list if and only if it is counted as idle: both change under the list's
//! lock. Outside of it, two workers and two submitters could carry the idle count below zero, into
//! the bits of its neighbour.
//!
//! # Who reads how many are idle
//! | reader | to decide |
//! |---|---|
//! | `notify`, `wake_or_start` (with `prefer_idle`) | whether a worker is woken, or a thread started |
//! | `may_start` in `counts.rs`, `needs_successor` | whether one is needed beside the idle ones |
//! | `may_wake` in `context.rs` | whether coarse tasks go to a local queue: not while one may be woken |
//! | `start_worker` | whether idle workers get a deadline: the first one above `core_size` gives it to them |
//! | `measure_workers`, `stats` | how many run |

use std::sync::Arc;

use crate::crew::counts::{Counts, MustLook};
use crate::sync::Mutex;
use crate::sync::parker::Parker;

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct IdleList {
    workers: Mutex<Vec<IdleWorker>>,
}

/// The list is sorted by the index, the lowest one last. No two workers on it have the same index:
/// one with a successor has left before.
#[derive(Clone)]
struct IdleWorker {
    index: usize,
    parker: Arc<Parker>,
}

impl IdleList {
    /// Adds the worker, which `was_extra` until now. The submitter of an earlier task did not see
    /// this worker.
    pub(crate) fn publish(
        &self,
        counts: &Counts,
        index: usize,
        parker: &Arc<Parker>,
        was_extra: bool,
    ) -> MustLook {
        let worker = IdleWorker { index, parker: Arc::clone(parker) };
        let mut workers = self.workers.lock();
        let found = find(&workers, index);
        debug_assert!(found.is_err(), "the worker is on the list already");
        let place = found.unwrap_or_else(|place| place);
        workers.insert(place, worker);
        counts.add_idle(was_extra)
    }

    /// Removes the worker with this index. `false` if it was claimed: its parker has been or will
    /// be unparked, and it holds a search.
    #[must_use]
    pub(crate) fn withdraw(&self, counts: &Counts, index: usize) -> bool {
        let mut workers = self.workers.lock();
        let Ok(place) = find(&workers, index) else { return false };
        workers.remove(place);
        counts.remove_idle();
        true
    }

    /// Takes the idle worker with the lowest index for a search; the caller must unpark it. `None`
    /// if no worker is idle, if `max` workers are running, or if `enough` search already.
    #[must_use]
    pub(crate) fn claim(&self, counts: &Counts, max: usize, enough: usize) -> Option<Arc<Parker>> {
        let mut workers = self.workers.lock();
        let worker = if counts.claim_idle(max, enough) { workers.pop() } else { None };
        worker.map(|worker| worker.parker)
    }

    /// Makes every worker on the list evaluate again whether it may stay, and for how long.
    ///
    /// A worker that is published later sees, after taking the lock, what the caller did before.
    pub(crate) fn recheck_all(&self) {
        // Unlock first: otherwise each worker would wake and block on the lock, to leave the list.
        let workers = self.workers.lock().clone();
        workers.iter().for_each(|worker| worker.parker.recheck());
    }

    /// Lets the keep-alive of every worker on the list pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        self.workers.lock().iter().for_each(|worker| worker.parker.expire());
    }
}

/// Returns the place of the worker with this index, or the place for it.
fn find(workers: &[IdleWorker], index: usize) -> Result<usize, usize> {
    workers.binary_search_by(|worker| index.cmp(&worker.index))
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::*;

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "on the list already")]
    fn no_two_workers_have_the_same_index() {
        let (list, counts, parker) =
            (IdleList::default(), Counts::default(), Arc::new(Parker::default()));
        for _ in 0..2 {
            counts.add_worker();
            _ = list.publish(&counts, 7, &parker, false);
        }
    }

    #[test]
    fn the_lowest_index_comes_first() {
        let (list, counts) = (IdleList::default(), Counts::default());
        let parkers = [(); 6].map(|()| Arc::new(Parker::default()));
        let publish = |index: usize| {
            counts.add_worker();
            _ = list.publish(&counts, index, &parkers[index], false);
        };
        // Returns the index of the worker that is claimed.
        let claim = || {
            let claimed = list.claim(&counts, usize::MAX, usize::MAX)?;
            parkers.iter().position(|parker| Arc::ptr_eq(parker, &claimed))
        };
        [3, 0, 5, 1].into_iter().for_each(publish);
        assert_eq!(claim(), Some(0));
        [4, 2].into_iter().for_each(publish);
        assert_eq!([claim(), claim()], [Some(1), Some(2)]);
        assert!(list.withdraw(&counts, 4));
        assert!(!list.withdraw(&counts, 1), "it was claimed");
        assert_eq!([claim(), claim(), claim()], [Some(3), Some(5), None]);
    }
}
