//! Tasks that are worth running only for a time: those of a view with a queue timeout.
//!
//! Such a task has an [`Expiry`], which its handle shares. One change of its state decides whether
//! the task is started, cancelled or expired (`protocol.md`, race 8). The thread that runs the task
//! asks before each poll; a closure is called by its first one.

use std::sync::Arc;
use std::time::Instant;

use crate::sync::{AtomicUsize, Ordering};

/// Not started, not cancelled, not expired.
const WAITING: usize = 0;
/// Started or cancelled: the deadline no longer matters.
const SETTLED: usize = 1;
/// Never started.
const EXPIRED: usize = 2;

/// When a task expires, and whether it has. See the [module's documentation](self).
#[derive(Debug)]
pub(crate) struct Expiry {
    deadline: Instant,
    state: AtomicUsize,
}

impl Expiry {
    pub(crate) fn new(deadline: Instant) -> Arc<Self> {
        Arc::new(Expiry { deadline, state: AtomicUsize::new(WAITING) })
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The caller starts or cancels the task. Returns `false` if it may not, since the deadline has
    /// passed: then the task is expired.
    #[must_use]
    pub(crate) fn settle_or_expire(&self) -> bool {
        // Each poll of a future asks. Only the first one reads the clock. Relaxed: `change` checks
        // the value.
        let state = self.state.load(Ordering::Relaxed);
        if state != WAITING {
            return state == SETTLED;
        }
        let next = if self.is_due() { EXPIRED } else { SETTLED };
        self.change(next) == SETTLED
    }

    /// Expires a task whose deadline has passed, unless it was started or cancelled. Returns
    /// whether it is expired.
    pub(crate) fn expire(&self) -> bool {
        if self.is_due() { self.change(EXPIRED) == EXPIRED } else { self.is_expired() }
    }

    pub(crate) fn is_expired(&self) -> bool {
        // Relaxed: it orders nothing else. A handle reads it after its channel was closed, which
        // orders the change before this.
        self.state.load(Ordering::Relaxed) == EXPIRED
    }

    /// Changes the state of a task that waits (race 8). Returns the state afterwards.
    fn change(&self, next: usize) -> usize {
        // Relaxed: the state publishes nothing but itself.
        let changed =
            self.state.compare_exchange(WAITING, next, Ordering::Relaxed, Ordering::Relaxed);
        changed.map_or_else(|other| other, |_| next)
    }

    fn is_due(&self) -> bool {
        #[cfg(elastipool_loom)]
        if IS_DUE.get() {
            return true;
        }
        self.deadline <= Instant::now()
    }
}

#[cfg(elastipool_loom)]
std::thread_local! {
    /// Whether all deadlines have passed. All threads of a model run on one thread of the system,
    /// so this belongs to the model.
    pub(crate) static IS_DUE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
