//! Spins for a moment before a thread blocks: blocking and waking takes longer than many tasks.
//!
//! [`LIMIT`] is about the time of a wake-up. With a shorter one, two threads that wait for each
//! other in turn would park every time: each one's wake-up takes longer than the other one spins. A
//! longer one wastes CPU time (law 5) on an event that is not near. A submitter that waits for
//! capacity does not spin: it needs no answer from one thread, but CPUs for the workers.
//!
//! A spin may give way: it ends once another thread of the process waits for the CPU. That one may
//! be needed for what the thread spins for: see [`Waking`].
//!
//! A spinning thread does not yield. Beside another busy process `sched_yield` can give up the CPU
//! for a time slice of about 3 ms, while submitters rely on the searching worker.

use std::hint;
use std::time::{Duration, Instant};

use crate::sync::cpu::cpus;
use crate::sync::waking::Waking;

/// Bounds the time of spinning. Linux 6 takes about this long to wake a parked thread on a CPU that
/// sleeps.
const LIMIT: Duration = Duration::from_micros(25);

/// Evaluates `condition` until it holds, [`LIMIT`] has passed, or the spin gives way. Returns
/// whether it held. With a single CPU, evaluates it once. So does a model, which has no time.
pub(crate) fn spin_until(mut condition: impl FnMut() -> bool) -> bool {
    if condition() {
        return true;
    }
    if cfg!(elastipool_loom) || cpus() == 1 {
        return false;
    }
    let begin = Instant::now();
    // Asked at each look: the thread may have moved to another CPU.
    while begin.elapsed() < LIMIT && !Waking::is_any_here() {
        hint::spin_loop();
        if condition() {
            return true;
        }
    }
    false
}

#[cfg(all(test, not(elastipool_loom)))]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::sync::cpu::current_cpu;

    /// Whether a vain spin ends before its limit while another thread waits for the CPU. Tried often:
    /// the thread may move to another CPU meanwhile, and may lose its CPU.
    pub(in crate::sync) fn gives_way(mut spin: impl FnMut()) -> bool {
        (0..100).any(|_| {
            let _waking = current_cpu().map(Waking::begin);
            let begin = Instant::now();
            spin();
            begin.elapsed() < LIMIT
        })
    }

    #[test]
    fn a_spin_gives_way_to_a_thread_that_waits_for_its_cpu() {
        // With a single CPU there is no spin.
        let expected = current_cpu().is_some() || cpus() == 1;
        assert_eq!(gives_way(|| assert!(!spin_until(|| false))), expected);
    }

    /// Waits for a condition that holds at its evaluation number `holds_at`. Returns the outcome
    /// and the number of evaluations.
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
        let in_vain = || evaluations(u32::MAX, |condition| spin_until(condition));
        let second = || evaluations(2, |condition| spin_until(condition)) == (true, 2);
        assert_eq!(evaluations(1, |condition| spin_until(condition)), (true, 1));
        assert!(!in_vain().0);
        // Tried often: it may give way.
        assert_eq!((0..100).any(|_| in_vain().1 > 1), cpus() > 1);
        assert_eq!((0..100).any(|_| second()), cpus() > 1);
    }
}
