//! A list of parked threads that recheck when something changes.

use std::sync::Arc;

use crate::sync::parker::Parker;
use crate::sync::{Mutex, MutexGuard};

/// See the [module's documentation](self).
///
/// A waiting thread adds itself and then evaluates its state; another thread changes that state and then rechecks all.
/// The lock orders the two: either the waiting thread sees the change, or it is rechecked.
pub(crate) struct Waiters {
    parkers: Mutex<Vec<Arc<Parker>>>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Waiters { parkers: Mutex::new(Vec::new()) }
    }

    pub(crate) fn add(&self, parker: &Arc<Parker>) {
        self.parkers.lock().push(Arc::clone(parker));
    }

    pub(crate) fn remove(&self, parker: &Arc<Parker>) {
        let mut parkers = self.parkers.lock();
        if let Some(index) = position(&parkers, parker) {
            parkers.swap_remove(index);
        }
    }

    /// Locks the list, for a change that must be made together with another one.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Arc<Parker>>> {
        self.parkers.lock()
    }

    /// Makes all threads in the list evaluate their state again.
    pub(crate) fn recheck_all(&self) {
        // Unlock first: otherwise each thread would wake and block on the lock, to leave the list.
        let parkers = self.parkers.lock().clone();
        for parker in parkers {
            parker.recheck();
        }
    }

    /// As [`recheck_all`](Self::recheck_all), if the list has only one thread.
    pub(crate) fn recheck_only(&self) {
        let only = match self.parkers.lock().as_slice() {
            [only] => Arc::clone(only),
            _ => return,
        };
        only.recheck();
    }

    /// Expires the deadlines of all threads in the list.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        for parker in self.parkers.lock().iter() {
            parker.expire();
        }
    }
}

/// Finds the thread in the list. Searches from the end: a thread that leaves soon after it was added is found at once.
pub(crate) fn position(parkers: &[Arc<Parker>], parker: &Arc<Parker>) -> Option<usize> {
    parkers.iter().rposition(|other| Arc::ptr_eq(other, parker))
}
