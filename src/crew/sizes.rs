//! The pool's sizes and keep-alive, which may change while it runs.
//!
//! Both sizes share one word, so no thread ever reads a pair that was never set. The word publishes
//! no other data, so all accesses are `Relaxed`. After a change come a recheck of the idle workers,
//! which the idle list's lock orders, and a look at the queue behind a fence (`protocol.md`, race
//! 15). The *limit* is `max_size` or, under [`Growth::Measured`](crate::Growth::Measured), less. It
//! changes under the policy's lock too, and a look follows. The word is a `std` atomic, so models
//! do not explore stale values of it: that would slow all of them down for the sake of one.
//!
//! # Where reserves count
//! Measurements set the *number*, which no reserve changes. The limit is the number and on top of
//! it all reserves, within `max_size`. A place within the reserve of its view is bounded by
//! `max_size` only: beside a queued task that would take one, all gates for workers let `max_size`
//! run (`Shared::run_limit`). All other places share the limit less the reserves.
//!
//! # Which number bounds what
//! | number | bounds | where |
//! |---|---|---|
//! | `core_size` | the workers that submissions start, whatever else is idle (not with `prefer_idle`), and those that stay for ever | `submit/mod.rs`, `notify.rs`, `spawn.rs`, `retire.rs`, `stall.rs`, `measured.rs`; the least limit, `set_number` |
//! | limit, or `max_size` beside a task with a reserved place | the workers that run when one is woken, is started, takes a task or stays awake without one | `notify.rs`, `worker.rs`, `worker/rest.rs` |
//! | limit, and one more while a worker has the place for ready futures | the places of views, for a take, and what counts as work of a view | `policy.rs`, `limit` |
//! | limit | the permits of a bounded queue, beside its capacity | `capacity.rs` |
//! | limit | the running workers beyond which one polls futures only, the extra one, within `max_size` | `worker/extra.rs`; `measured.rs`, `run_limit` and `own_limit` |
//! | limit | whether another worker may be woken: coarse tasks share, deferred futures wait | `context.rs`, `deferred.rs` |
//! | limit | the parts of `for_each`, and the inputs ahead of the reader of `map` | `scope.rs`, `map.rs` |
//! | `max_size` | the number that measurements set: none is asked for if it cannot grow | `measured.rs`, `measure_after` |
//! | `max_size` | the workers that run when one returns from a region: one more may | `compensate.rs`, `return_from_region` |
//! | `max_size` | the places of views, when a worker returns or begins a claimed task, or polls beyond the limit | `policy.rs`, `try_acquire`, `has_futures_place` |
//! | `max_size` | the runnable workers after it was lowered: those above leave | `Excess` in `worker/rest.rs` and `retire.rs` |
//! | `max_size` | the workers whose wait in a start hook is a region | `compensate.rs`, `may_wait` |
//! | the smaller of `max_size` and `wanted_awake` | the workers that wait for permits and slots | `capacity.rs`, `OwnWaits` |
//! | `wanted_awake` | the workers that run without a measurement while tasks are queued | `measured.rs`, `ask_if_all_run` |
//!
//! Every program contains a number and the code that obeys it. So that code is a branch, or a
//! function that only the builder's method names (`cargo xtask weight`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::crew::counts::MAX_WORKERS;
use crate::error::BuildError;
use crate::sync::Mutex;

const HALF: u32 = usize::BITS / 2;
const LOW_HALF: usize = (1 << HALF) - 1;

/// See the [module's documentation](self).
pub(crate) struct Sizes {
    word: AtomicUsize,
    /// How many workers measurements let run, beside those of reserves: at most `max_size`.
    number: AtomicUsize,
    /// How many workers may run: at most `max_size`.
    limit: AtomicUsize,
    /// How many workers measurements keep awake. `usize::MAX` without measurements: then the least
    /// limit is `max_size`.
    wanted_awake: usize,
    keep_alive: Mutex<Duration>,
}

impl Sizes {
    /// The caller has checked the arguments with [`check_sizes`].
    pub(crate) fn new(core_size: usize, max_size: usize, keep_alive: Duration) -> Self {
        let word = AtomicUsize::new(pack(core_size, max_size));
        let [number, limit] = [max_size; 2].map(AtomicUsize::new);
        Sizes { word, number, limit, wanted_awake: usize::MAX, keep_alive: Mutex::new(keep_alive) }
    }

    /// Makes the limit follow measurements, so that this many workers are awake.
    pub(crate) fn measured(mut self, wanted_awake: usize) -> Self {
        self.wanted_awake = wanted_awake;
        self.set_number(0, 0);
        self
    }

    #[inline]
    pub(crate) fn wanted_awake(&self) -> usize {
        self.wanted_awake
    }

    /// Whether measurements may change the limit.
    pub(crate) fn follows_measurements(&self) -> bool {
        self.wanted_awake < usize::MAX
    }

    /// How many workers may run now.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// How many workers measurements let run, beside those of reserves.
    pub(crate) fn number(&self) -> usize {
        self.number.load(Ordering::Relaxed)
    }

    /// Sets the number, to at least as many workers as are wanted awake, and with it the limit:
    /// what views have `reserved` comes on top, so a reserved worker runs while all CPUs are busy.
    /// Both within `max_size`, and the limit at least `core_size`. Returns the limit.
    pub(crate) fn set_number(&self, number: usize, reserved: usize) -> usize {
        let (core_size, max_size) = self.both();
        let number = number.max(self.wanted_awake).min(max_size);
        let limit = (number + reserved).max(core_size).min(max_size);
        self.number.store(number, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
        limit
    }

    #[inline]
    pub(crate) fn core(&self) -> usize {
        self.both().0
    }

    #[inline]
    pub(crate) fn max(&self) -> usize {
        self.both().1
    }

    /// Returns `core_size` and `max_size`, as they were set together.
    #[inline]
    pub(crate) fn both(&self) -> (usize, usize) {
        unpack(self.word.load(Ordering::Relaxed))
    }

    pub(crate) fn keep_alive(&self) -> Duration {
        *self.keep_alive.lock()
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) {
        *self.keep_alive.lock() = keep_alive;
    }

    /// Sets both sizes to what `change` makes of them, beside views that have `reserved` that many
    /// workers. Returns whether `max_size` was lowered. The caller holds the lock of the policy, so
    /// one thread at a time changes them.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(usize, usize) -> (usize, usize),
        reserved: usize,
    ) -> Result<bool, BuildError> {
        let (core_before, max_before) = self.both();
        let (core_size, max_size) = change(core_before, max_before);
        check_sizes(core_size, max_size)?;
        check_reserves(reserved, max_size)?;
        self.word.store(pack(core_size, max_size), Ordering::Relaxed);
        self.set_number(self.number(), reserved);
        Ok(max_size < max_before)
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

/// Returns an error unless the reserves of all views leave at least one worker to the tasks without
/// a reserve.
pub(crate) fn check_reserves(reserved: usize, max_size: usize) -> Result<(), BuildError> {
    if reserved > 0 && reserved >= max_size {
        return Err(BuildError::ReservesTooLarge { reserved, max_size });
    }
    Ok(())
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::Duration;

    use super::Sizes;
    use crate::crew::counts::MAX_WORKERS;
    use crate::error::BuildError;

    fn set_core(sizes: &Sizes, core_size: usize) -> Result<bool, BuildError> {
        sizes.change(|_, max_size| (core_size, max_size), 0)
    }

    fn set_max(sizes: &Sizes, max_size: usize) -> Result<bool, BuildError> {
        sizes.change(|core_size, _| (core_size, max_size), 0)
    }

    #[test]
    fn a_pair_that_makes_no_sense_changes_nothing() {
        let sizes = Sizes::new(2, 4, Duration::from_secs(1));
        let misfit = |max_size, core_size| Err(BuildError::MaxBelowCore { max_size, core_size });
        assert_eq!(set_core(&sizes, 5), misfit(4, 5));
        assert_eq!(set_max(&sizes, 1), misfit(1, 2));
        assert_eq!(set_max(&sizes, 0), Err(BuildError::MaxSizeZero));
        assert_eq!(sizes.change(|_, _| (9, 8), 0), misfit(8, 9));
        assert_eq!(sizes.both(), (2, 4));
    }

    #[test]
    fn only_a_smaller_max_size_is_reported() {
        let sizes = Sizes::new(2, 4, Duration::from_secs(1));
        assert_eq!(set_core(&sizes, 0), Ok(false));
        assert_eq!(set_max(&sizes, 4), Ok(false));
        assert_eq!(set_max(&sizes, 5), Ok(false));
        assert_eq!(set_max(&sizes, 4), Ok(true));
        assert_eq!(sizes.change(|_, _| (1, 3), 0), Ok(true));
    }

    #[test]
    fn the_largest_sizes_fit() {
        let sizes = Sizes::new(0, 1, Duration::from_secs(1));
        set_max(&sizes, MAX_WORKERS).unwrap();
        set_core(&sizes, MAX_WORKERS).unwrap();
        assert_eq!(sizes.both(), (MAX_WORKERS, MAX_WORKERS));
        set_core(&sizes, 0).unwrap();
        assert_eq!(sizes.both(), (0, MAX_WORKERS));
        let size = MAX_WORKERS + 1;
        let too_large = BuildError::SizeTooLarge { size, limit: MAX_WORKERS };
        assert_eq!(set_max(&sizes, size), Err(too_large));
    }
}
