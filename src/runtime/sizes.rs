//! The pool's sizes and keep-alive, which may change while it runs, and its growth policy.
//!
//! Both sizes share one word, so no thread ever reads a pair that was never set. The word publishes no other data, so
//! all accesses are `Relaxed`. After a change come a recheck of the idle workers, which the idle stack's lock orders,
//! and a look at the queue behind a fence (`protocol.md`, race 15). The word is a `std` atomic, so models
//! do not explore stale values of it: that would slow all of them down for the sake of one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::BuildError;
use crate::runtime::counts::MAX_WORKERS;
use crate::sync::Mutex;

const HALF: u32 = usize::BITS / 2;
const LOW_HALF: usize = (1 << HALF) - 1;

/// The longest `keep_alive`, about 136 years: more than any pool needs, and short enough to be added to any `Instant`.
pub(crate) const MAX_KEEP_ALIVE: Duration = Duration::from_secs(u32::MAX as u64);

/// When a pool with at least `core_size` workers starts another for a task, if no worker is idle. Set by
/// [`Builder::growth`](crate::Builder::growth).
///
/// With any policy, each submission below `core_size` starts a worker (with
/// [`prefer_idle`](crate::Builder::prefer_idle): if none is idle), and idle workers are woken at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Growth {
    /// At once. No task waits while the pool may have more workers. A burst of tiny tasks may start more threads than
    /// it is worth.
    #[default]
    Eager,
    /// When no worker has taken a queued task for this long. Then one thread is started. After as long again without
    /// progress two more are started, then four, and so on. So existing workers handle a burst of tiny tasks, while a
    /// burst of blocking tasks gets all the workers that the pool may have within a few steps.
    ///
    /// No extra thread keeps the time. The *stall monitor* is a worker: the last free one above `core_size`, started if
    /// there is none. It takes no task but parks while the others work. If they make no progress for this long it
    /// starts more workers. If it cannot start one, it takes a task itself. While tasks are queued it wakes up once per
    /// this duration, or per `keep_alive` if that is shorter. When none are queued it rests like any other worker. A
    /// pool with `max_size` workers needs no monitor, and all of them take tasks.
    ///
    /// While a worker is in its start hook, no other is started: it is about to take a task.
    ///
    /// Choose 100 microseconds to a few milliseconds. Below that, delays of the operating system look like a lack of
    /// progress.
    Stalled(Duration),
}

/// See the [module's documentation](self).
pub(crate) struct Sizes {
    word: AtomicUsize,
    keep_alive: Mutex<Duration>,
}

impl Sizes {
    /// The caller has checked the arguments with [`check_sizes`] and [`check_keep_alive`].
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

    /// Returns the previous `max_size`.
    pub(crate) fn set_max(&self, max_size: usize) -> Result<usize, BuildError> {
        self.set(|core_size, _| (core_size, max_size)).map(|(_, before)| before)
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), BuildError> {
        check_keep_alive(keep_alive)?;
        *self.keep_alive.lock() = keep_alive;
        Ok(())
    }

    /// Returns the previous sizes.
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

/// Returns an error if no pool can have these sizes.
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

/// Returns an error if no pool can have this keep-alive.
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
