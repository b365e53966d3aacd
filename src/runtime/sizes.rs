//! How large a pool may be, and how it grows: what may change while it works.
//!
//! Both sizes are in one word, so that nobody ever sees a pair that was not set. The word carries no data, so all
//! accesses are `Relaxed`; a change is followed by a recheck of the idle workers, which the idle stack's lock orders,
//! and by a look at the queue behind a fence (`protocol.md`, "A limit is changed"). Models explore when it is read,
//! but not how old the value may be: it would make all of them slower for the sake of one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::BuildError;
use crate::runtime::counts::MAX_WORKERS;
use crate::sync::Mutex;

const HALF: u32 = usize::BITS / 2;
const LOW_HALF: usize = (1 << HALF) - 1;

/// Far beyond what anybody means, and far below what a clock cannot add.
pub(crate) const MAX_KEEP_ALIVE: Duration = Duration::from_secs(u32::MAX as u64);

/// When a pool above its `core_size` starts a thread for a task that no worker is free for. Set by
/// [`Builder::growth`](crate::Builder::growth).
///
/// Below `core_size` each submission starts a worker, and idle workers are woken at once, whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Growth {
    /// At once. No task waits while the pool may have more workers; but a burst of tiny tasks can start more
    /// threads than it is worth.
    #[default]
    Eager,
    /// When the queued tasks have made no progress for this long. Then one thread is started; if there is
    /// no progress for as long again, two, then four, and so on. A burst of tiny tasks is left to those that work
    /// already, a burst of tasks that block gets all the workers that the pool may have within a few steps.
    ///
    /// The time is kept by a worker, not by a thread of its own: of the workers above `core_size`, the last one that is
    /// free (it is started if there is none) does not take a task when it is woken but *keeps the watch*, while the
    /// others work. If they make no progress for this long it starts more; if it cannot, it takes a task itself. It
    /// wakes up once in this time, or in `keep_alive` if that is shorter, as long as tasks are queued, and goes to rest
    /// like any other worker when none are. With `max_size` workers there is nothing to watch for, and all of them take
    /// tasks.
    ///
    /// A worker in its start hook counts as one that is about to come: as long as there is one, no other is started.
    ///
    /// 100 microseconds to some milliseconds make sense: below that, the system's own delays look like a lack of
    /// progress.
    Stalled(Duration),
}

/// See the [module's documentation](self).
pub(crate) struct Sizes {
    word: AtomicUsize,
    keep_alive: Mutex<Duration>,
}

impl Sizes {
    /// Takes what [`check_sizes`] and [`check_keep_alive`] have approved of.
    pub(crate) fn new(core_size: usize, max_size: usize, keep_alive: Duration) -> Self {
        let word = AtomicUsize::new(pack(core_size, max_size));
        Sizes { word, keep_alive: Mutex::new(keep_alive) }
    }

    #[inline]
    pub(crate) fn core(&self) -> usize {
        unpack(self.word.load(Ordering::Relaxed)).0
    }

    #[inline]
    pub(crate) fn max(&self) -> usize {
        unpack(self.word.load(Ordering::Relaxed)).1
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        *self.keep_alive.lock()
    }

    pub(crate) fn set_core(&self, core_size: usize) -> Result<(), BuildError> {
        self.set(|_, max_size| (core_size, max_size)).map(drop)
    }

    /// Returns the one before.
    pub(crate) fn set_max(&self, max_size: usize) -> Result<usize, BuildError> {
        self.set(|core_size, _| (core_size, max_size)).map(|(_, before)| before)
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), BuildError> {
        check_keep_alive(keep_alive)?;
        *self.keep_alive.lock() = keep_alive;
        Ok(())
    }

    /// Returns the sizes before.
    fn set(
        &self,
        change: impl Fn(usize, usize) -> (usize, usize),
    ) -> Result<(usize, usize), BuildError> {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let (core_size, max_size) = unpack(now);
            let (core_size, max_size) = change(core_size, max_size);
            check_sizes(core_size, max_size)?;
            let next = pack(core_size, max_size);
            match self.word.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(before) => return Ok(unpack(before)),
                Err(newer) => now = newer,
            }
        }
    }
}

fn pack(core_size: usize, max_size: usize) -> usize {
    (max_size << HALF) | core_size
}

fn unpack(word: usize) -> (usize, usize) {
    (word & LOW_HALF, word >> HALF)
}

/// Whether a pool can have these sizes.
pub(crate) fn check_sizes(core_size: usize, max_size: usize) -> Result<(), BuildError> {
    if let Some(&size) = [core_size, max_size].iter().find(|&&size| size > MAX_WORKERS) {
        return Err(BuildError::SizeTooLarge { size, limit: MAX_WORKERS });
    }
    if max_size == 0 {
        return Err(BuildError::MaxSizeZero);
    }
    if max_size < core_size {
        return Err(BuildError::MaxBelowCore { max_size, core_size });
    }
    Ok(())
}

/// Whether a pool can have this keep-alive.
pub(crate) fn check_keep_alive(keep_alive: Duration) -> Result<(), BuildError> {
    if keep_alive.is_zero() {
        return Err(BuildError::KeepAliveZero);
    }
    if keep_alive > MAX_KEEP_ALIVE {
        return Err(BuildError::KeepAliveTooLong { keep_alive, limit: MAX_KEEP_ALIVE });
    }
    Ok(())
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::Duration;

    use super::Sizes;
    use crate::error::BuildError;
    use crate::runtime::counts::MAX_WORKERS;

    #[test]
    fn a_pair_that_makes_no_sense_changes_nothing() {
        let sizes = Sizes::new(2, 4, Duration::from_secs(1));
        assert_eq!(sizes.set_core(5), Err(BuildError::MaxBelowCore { max_size: 4, core_size: 5 }));
        assert_eq!(sizes.set_max(1), Err(BuildError::MaxBelowCore { max_size: 1, core_size: 2 }));
        assert_eq!(sizes.set_max(0), Err(BuildError::MaxSizeZero));
        assert_eq!(sizes.set_keep_alive(Duration::ZERO), Err(BuildError::KeepAliveZero));
        assert_eq!((sizes.core(), sizes.max()), (2, 4));
        assert_eq!(sizes.keep_alive(), Duration::from_secs(1));
    }

    #[test]
    fn the_largest_sizes_fit() {
        let sizes = Sizes::new(0, 1, Duration::from_secs(1));
        sizes.set_max(MAX_WORKERS).unwrap();
        sizes.set_core(MAX_WORKERS).unwrap();
        assert_eq!((sizes.core(), sizes.max()), (MAX_WORKERS, MAX_WORKERS));
        sizes.set_core(0).unwrap();
        assert_eq!((sizes.core(), sizes.max()), (0, MAX_WORKERS));
        let size = MAX_WORKERS + 1;
        let too_large = BuildError::SizeTooLarge { size, limit: MAX_WORKERS };
        assert_eq!(sizes.set_max(size), Err(too_large));
    }
}
