//! Spins for a moment before a thread blocks: blocking and waking takes longer than many tasks.
//!
//! [`LIMIT`] is about the time of a wake-up. With a shorter one, two threads that wait for each other in turn would
//! park every time: each one's wake-up takes longer than the other one spins. A longer one wastes CPU time (law 5) on
//! an event that is not near. A submitter that waits for capacity spins for a shorter time: it needs no answer from one
//! thread, but CPUs for the workers.
//!
//! On a virtual machine, and beside busy processes, a wake-up can take twice as long. So a worker whose rest was shorter than
//! a wake-up spins for up to [`LONG_LIMIT`] the next time, and goes on so until it has spun in vain: [`WorkSpin`].
//!
//! A spinning thread does not yield. Beside another busy process `sched_yield` can give up the CPU for a time slice of
//! about 3 ms, while submitters rely on the searching worker.

use std::time::Duration;

/// Bounds the time of spinning. Linux 6 takes about this long to wake a parked thread on a CPU that sleeps.
const LIMIT: Duration = Duration::from_micros(25);

/// Bounds the time of a worker's spin if it was woken soon after the last one.
const LONG_LIMIT: Duration = Duration::from_micros(75);

/// A worker's spins for work.
#[derive(Debug, Default)]
pub(crate) struct WorkSpin {
    is_long: bool,
}

impl WorkSpin {
    /// The worker was woken for work that long after it had begun to rest. If a longer spin would have seen the work, the next
    /// one is longer.
    pub(crate) fn woken_after(&mut self, rest: Duration) {
        self.is_long = rest < LONG_LIMIT;
    }

    /// As [`spin_until`]. A longer spin is followed by another one only if it was not in vain.
    pub(crate) fn until(&mut self, condition: impl Fn() -> bool) -> bool {
        let is_met = spin_for(self.limit(), condition);
        self.is_long &= is_met;
        is_met
    }

    fn limit(&self) -> Duration {
        if self.is_long { LONG_LIMIT } else { LIMIT }
    }
}

/// Evaluates `condition` until it holds or some microseconds have passed, and returns whether it held. With a single
/// CPU, evaluates it once.
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    spin_for(LIMIT, condition)
}

/// As [`spin_until`], for `limit` at most.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_for(limit: Duration, condition: impl Fn() -> bool) -> bool {
    use std::hint;
    use std::time::Instant;

    if condition() {
        return true;
    }
    if cpus() == 1 {
        return false;
    }
    let begin = Instant::now();
    while begin.elapsed() < limit {
        hint::spin_loop();
        if condition() {
            return true;
        }
    }
    false
}

/// Returns how many CPUs the process may use, as of the first call. 1 if that is unknown.
#[cfg(not(elastipool_loom))]
pub(crate) fn cpus() -> usize {
    use std::sync::OnceLock;
    use std::thread;

    static CPUS: OnceLock<usize> = OnceLock::new();

    *CPUS.get_or_init(|| thread::available_parallelism().map_or(1, |cpus| cpus.get()))
}

/// In a model there are as many as threads.
#[cfg(elastipool_loom)]
pub(crate) fn cpus() -> usize {
    usize::MAX
}

/// A model has no time: evaluates `condition` once.
#[cfg(elastipool_loom)]
pub(crate) fn spin_for(_limit: Duration, condition: impl Fn() -> bool) -> bool {
    condition()
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;

    use super::{LIMIT, LONG_LIMIT, WorkSpin, cpus, spin_until};

    /// Waits for a condition that holds at its evaluation number `holds_at`. Returns the outcome and the number of
    /// evaluations.
    fn evaluations(holds_at: u32, wait: impl Fn(&dyn Fn() -> bool) -> bool) -> (bool, u32) {
        let count = Cell::new(0);
        let is_met = wait(&|| {
            count.set(count.get() + 1);
            count.get() == holds_at
        });
        (is_met, count.get())
    }

    #[test]
    fn spinning_evaluates_first_and_ends() {
        assert_eq!(evaluations(1, |condition| spin_until(condition)), (true, 1));
        let (is_met, count) = evaluations(u32::MAX, |condition| spin_until(condition));
        assert!(!is_met);
        assert_eq!(count > 1, cpus() > 1, "{count} evaluations");
        if cpus() > 1 {
            assert_eq!(evaluations(2, |condition| spin_until(condition)), (true, 2));
        }
    }
    #[test]
    fn a_worker_that_is_woken_soon_spins_longer_until_that_is_in_vain() {
        let mut spin = WorkSpin::default();
        assert_eq!(spin.limit(), LIMIT);
        spin.woken_after(LONG_LIMIT);
        assert_eq!(spin.limit(), LIMIT);
        spin.woken_after(LONG_LIMIT / 2);
        assert_eq!(spin.limit(), LONG_LIMIT);
        assert!(spin.until(|| true));
        assert_eq!(spin.limit(), LONG_LIMIT);
        assert!(!spin.until(|| false));
        assert_eq!(spin.limit(), LIMIT);
        assert!(spin.until(|| true));
        assert_eq!(spin.limit(), LIMIT);
        spin.woken_after(LONG_LIMIT / 2);
        spin.woken_after(LONG_LIMIT);
        assert_eq!(spin.limit(), LIMIT);
    }
}
