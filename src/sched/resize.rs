//! Changing the sizes of a live pool (`protocol.md`, race 15).

use std::sync::Arc;
use std::time::Duration;

use crate::error::BuildError;
use crate::sched::shared::Shared;

impl Shared {
    /// Sets both sizes to what `change` makes of them.
    pub(crate) fn resize(
        self: &Arc<Self>,
        change: impl Fn(usize, usize) -> (usize, usize),
    ) -> Result<(), BuildError> {
        // Race 15: the reserves change under the same lock.
        let is_lower = self.policy.resize(&self.sizes, change)?;
        if is_lower {
            // Idle workers above the limit leave now, busy ones when they become idle.
            self.shrinks.increment();
        }
        // Parked workers compute their deadline again.
        self.idle.recheck_all();
        self.admit_returning();
        self.grant_permits();
        // The first worker that comes for queued work notifies the next one.
        self.look();
        Ok(())
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) {
        self.sizes.set_keep_alive(keep_alive);
        self.idle.recheck_all();
    }
}
