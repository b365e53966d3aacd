//! Tasks that are worth running only for a time: those of a view with a queue timeout.
//!
//! Such a task has an [`Expiry`], which its handle shares. The first thread that asks decides
//! whether the task is started or cancelled, or has expired (`protocol.md`, race 8). The thread that
//! runs the task asks before each poll; a closure is called by its first one.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// When a task expires, and whether it has. See the [module's documentation](self).
#[derive(Debug)]
pub(crate) struct Expiry {
    pub(crate) deadline: Instant,
    is_late: OnceLock<bool>,
}

impl Expiry {
    pub(crate) fn new(deadline: Instant) -> Arc<Self> {
        Arc::new(Expiry { deadline, is_late: OnceLock::new() })
    }

    /// The caller starts or cancels the task, or has waited until the deadline. Returns whether the
    /// deadline had passed when the first thread called this: then the task is expired.
    #[must_use]
    pub(crate) fn is_late(&self) -> bool {
        // Each poll of a future asks. Only the first one reads the clock.
        *self.is_late.get_or_init(|| {
            #[cfg(elastipool_loom)]
            if crate::sync::models::IS_DUE.get() {
                return true;
            }
            self.deadline <= Instant::now()
        })
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.is_late.get() == Some(&true)
    }
}
