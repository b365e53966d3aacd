//! Changing the sizes of a live pool (`protocol.md`, race 15).

use std::sync::Arc;
use std::time::Duration;

use crate::error::BuildError;
use crate::runtime::shared::Shared;
use crate::sync::{Ordering, fence};

impl Shared {
    pub(crate) fn set_core_size(self: &Arc<Self>, core_size: usize) -> Result<(), BuildError> {
        self.sizes.set_core(core_size)?;
        // Parked workers compute their deadline again.
        self.recheck_all();
        fence(Ordering::SeqCst);
        while !self.queue.is_empty()
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok()
        {}
        Ok(())
    }

    pub(crate) fn set_max_size(self: &Arc<Self>, max_size: usize) -> Result<(), BuildError> {
        if max_size < self.sizes.set_max(max_size)? {
            // Idle workers above the limit leave now, busy ones when they become idle.
            self.shrinks.increment();
        }
        self.recheck_all();
        self.admit_returning();
        if let Some(capacity) = &self.capacity {
            capacity.resize(&self.sizes);
        }
        self.notify_next(None);
        Ok(())
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), BuildError> {
        self.sizes.set_keep_alive(keep_alive)?;
        self.recheck_all();
        Ok(())
    }
}
