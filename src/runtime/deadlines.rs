//! What the keeper ends at a certain time, whatever the workers do and whether a thread waits: groups with a deadline.

use std::collections::BTreeMap;
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

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Deadlines(Mutex<BTreeMap<DeadlineKey, Weak<dyn Expires>>>);

impl Deadlines {
    pub(crate) fn add(&self, key: DeadlineKey, what: Weak<dyn Expires>) {
        self.0.lock().insert(key, what);
    }

    pub(crate) fn remove(&self, key: DeadlineKey) {
        self.0.lock().remove(&key);
    }

    /// Takes one that is due. Otherwise returns when the first one is.
    pub(super) fn take_due(&self) -> Result<Weak<dyn Expires>, Option<Instant>> {
        let mut deadlines = self.0.lock();
        let Some(first) = deadlines.first_entry() else { return Err(None) };
        let (at, _) = *first.key();
        // A model has no time: all are due.
        if cfg!(elastipool_loom) || at <= Instant::now() {
            Ok(first.remove())
        } else {
            Err(Some(at))
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use crate::ThreadPool;

    #[test]
    fn a_group_that_is_dropped_leaves_none() {
        let pool = ThreadPool::new(1, 1, Duration::MAX);
        let count = || pool.shared().deadlines.0.lock().len();
        let at = Instant::now() + Duration::from_secs(3600);
        let groups = [(); 3].map(|()| pool.group::<()>().deadline(at));
        assert_eq!(count(), 3);
        groups[0].set_deadline(at + Duration::from_secs(1));
        assert_eq!(count(), 3, "it replaces the earlier one");
        drop(groups);
        assert_eq!(count(), 0);
    }
}
