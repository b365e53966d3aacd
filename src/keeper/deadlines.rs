//! What the keeper ends at a certain time, whatever the workers do and whether a thread waits:
//! groups with a deadline.

use std::collections::VecDeque;
use std::sync::Weak;
use std::time::Instant;

use crate::sync::Mutex;

/// Something with a deadline.
pub(crate) trait Expires: Send + Sync {
    /// Its deadline may have passed.
    fn expire(&self);
}

/// A deadline, and the address of what has it.
pub(crate) type DeadlineKey = (Instant, usize);

/// See the [module's documentation](self). In the order of the keys. Mostly, the latest is added
/// and one of the earliest removed, which moves few others.
#[derive(Default)]
pub(crate) struct Deadlines(Mutex<VecDeque<(DeadlineKey, Weak<dyn Expires>)>>);

impl Deadlines {
    pub(crate) fn add(&self, key: DeadlineKey, what: Weak<dyn Expires>) {
        let mut deadlines = self.0.lock();
        let index = deadlines.partition_point(|(other, _)| *other < key);
        deadlines.insert(index, (key, what));
    }

    pub(crate) fn remove(&self, key: DeadlineKey) {
        let mut deadlines = self.0.lock();
        if let Ok(index) = deadlines.binary_search_by_key(&key, |(key, _)| *key) {
            deadlines.remove(index);
        }
    }

    /// Takes one that is due. Otherwise returns when the first one is.
    pub(crate) fn take_due(&self) -> Result<Weak<dyn Expires>, Option<Instant>> {
        let mut deadlines = self.0.lock();
        let first = deadlines.front().map(|((at, _), _)| *at);
        // A model has no time: all are due.
        let is_due = first.is_some_and(|at| cfg!(elastipool_loom) || at <= Instant::now());
        let due = if is_due { deadlines.pop_front() } else { None };
        due.map(|(_, what)| what).ok_or(first)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
