//! Threads that are parked for a reason of their own and want to be told when they should look again.

use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::parker::Parker;

/// See the [module's documentation](self).
///
/// Whoever changes something and then nudges is seen by whoever adds itself and then looks: the order is
/// that of the lock.
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
        if let Some(place) = parkers.iter().rposition(|other| Arc::ptr_eq(other, parker)) {
            parkers.swap_remove(place);
        }
    }

    /// Makes everybody look again.
    pub(crate) fn recheck_all(&self) {
        for parker in self.parkers.lock().iter() {
            parker.recheck();
        }
    }

    /// Lets everybody's deadline pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        for parker in self.parkers.lock().iter() {
            parker.expire();
        }
    }
}
