//! When a worker leaves, and who replaces it.

use std::sync::Arc;
use std::time::Instant;

use crate::runtime::counts::Snapshot;
use crate::runtime::registry::{RegistryState, ThreadKey};
use crate::runtime::shared::Shared;
use crate::runtime::spawn::StartError;

impl Shared {
    /// How long an idle worker may stay: `None` is for ever, or until it is nudged.
    pub(crate) fn rest_until(&self, now: Snapshot, since: Instant) -> Option<Instant> {
        let total = now.total();
        if total <= self.sizes.core() || (total == 1 && !self.in_flight.status().is_quiet()) {
            return None;
        }
        since.checked_add(self.sizes.keep_alive())
    }

    /// Whether more workers are running than may be: some have come back from blocking regions, or the limit has been
    /// lowered.
    #[inline]
    pub(crate) fn is_above_limit(&self, now: Snapshot) -> bool {
        now.running() > self.sizes.max()
    }

    /// Lets a worker that is not on the idle stack leave, if that is right: it is counted no longer, and its place
    /// can be filled. Whatever it was relied on for must then be [passed on](Self::notify_next).
    #[must_use]
    pub(crate) fn try_retire(self: &Arc<Self>, why: Retire, key: ThreadKey, index: usize) -> bool {
        let mut registry = loop {
            if why == Retire::Recycled {
                match self.start_successor(key, index) {
                    Ok(()) => return true,
                    Err(StartError::Refused(_)) => return false,
                    // Nobody needs to follow.
                    Err(StartError::AtLimit | StartError::Over) => {}
                }
            }
            let registry = self.registry.lock();
            // Looked at again under the lock: two workers may be used up at the same time.
            if why != Retire::Recycled || !self.needs_successor() {
                break registry;
            }
        };
        let now = self.counts.load();
        let may = match why {
            Retire::Surplus => now.total() > self.sizes.core(),
            Retire::Excess => now.runnable() > self.sizes.max(),
            Retire::Recycled | Retire::Over => true,
        };
        if !may {
            return false;
        }
        // Races 3 and 4: the last worker stays as long as anything is in flight. It is counted off before that is
        // looked at.
        let now = self.counts.remove_worker();
        if now.total() == 0 && !self.in_flight.status().is_quiet() {
            self.counts.add_worker();
            return false;
        }
        self.recheck_stall_monitor(now);
        registry.deregister(key);
        if !self.config.hooks.has_stop_hook() {
            registry.return_index(index);
        }
        true
    }

    /// Starts a worker in the place of the calling one, which leaves: the counts do not change. Only if there is work
    /// for it, or the pool would fall below `core_size`.
    pub(super) fn start_successor(
        self: &Arc<Self>,
        key: ThreadKey,
        index: usize,
    ) -> Result<(), StartError> {
        // In its stop hook the old worker still has its index.
        let keeps_index = self.config.hooks.has_stop_hook();
        let its_index =
            |registry: &RegistryState| if keeps_index { registry.next_index() } else { index };
        let (mut registry, its_index, name) =
            self.prepare_start(its_index, || self.needs_successor())?;
        let entered =
            self.start_named(&mut registry, its_index, name, None, |registry, handle, metrics| {
                if keeps_index {
                    registry.take_index();
                }
                registry.register(handle, metrics, self.counts.load().total());
                registry.deregister(key);
            });
        entered.map_err(StartError::Refused)
    }

    /// Whether a worker that leaves is missed: there is work for it, or the pool would fall below `core_size`.
    pub(super) fn needs_successor(&self) -> bool {
        let now = self.counts.load();
        let others = now.total() - 1;
        let status = self.in_flight.status();
        !self.is_above_limit(now)
            && ((others < self.sizes.core() && !status.is_closed())
                || (others == 0 && !status.is_quiet())
                || (!self.queue.is_empty() && now.idle() == 0))
    }
}

/// Why a worker would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retire {
    /// It was idle for too long, and is not of the core.
    Surplus,
    /// `max_size` has been lowered, and more workers than that are not blocked.
    Excess,
    /// It has run as many tasks as a worker may.
    Recycled,
    /// The pool is closed and has nothing left to do.
    Over,
}
