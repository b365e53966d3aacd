//! Threads of this process that wait for a CPU, as far as it is known:
//!
//! - one that was woken, until it runs, on the CPU where it went to sleep;
//! - one that wakes another, until that call returns. The woken thread may take its CPU meanwhile.
//!
//! A kernel may leave a woken thread on a CPU that is in use, even if another one is idle. If a
//! thread spins there, the woken one waits for the end of the spin, perhaps to do what the other
//! one spins for. So a spin [gives way](crate::sync::spin) to the threads that wait for its own
//! CPU. It does not give way to those that wake up on another CPU: two threads that wait for each
//! other in turn would park every time.

use crossbeam_utils::CachePadded;

use crate::sync::Counter;
use crate::sync::cpu::current_cpu;

/// How many threads of the process wait for each CPU; on a machine with more CPUs several share a
/// count. The counts affect only speed, so they may be read late, or be those of the parent in a
/// child process, and models do not explore them.
static COUNTS: [CachePadded<Counter>; 64] = [const { CachePadded::new(Counter::new(0)) }; 64];

fn count_of(cpu: usize) -> &'static Counter {
    &COUNTS[cpu % COUNTS.len()]
}

/// Counts one thread until it is dropped.
#[derive(Debug)]
pub(super) struct Waking(usize);

impl Waking {
    /// Counts a thread that waits for this CPU.
    pub(super) fn begin(cpu: usize) -> Self {
        count_of(cpu).increment();
        Waking(cpu)
    }

    /// Calls `wake`, which wakes another thread, and counts the calling thread meanwhile.
    pub(super) fn during(wake: impl FnOnce()) {
        let _waking = current_cpu().map(Self::begin);
        wake();
    }

    /// Whether any thread waits for the CPU of the calling thread.
    pub(super) fn is_any_here() -> bool {
        current_cpu().is_some_and(|cpu| count_of(cpu).get() > 0)
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        count_of(self.0).subtract(1);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{COUNTS, Waking, count_of};
    use crate::sync::cpu::current_cpu;

    #[test]
    fn a_thread_counts_until_the_end_on_its_cpu() {
        let [cpu, other] = [COUNTS.len() - 1, COUNTS.len() - 2];
        let counts = || [cpu, other, cpu + COUNTS.len()].map(|cpu| count_of(cpu).get());
        // Tried often: on a large machine other tests run on these CPUs.
        let is_counted = |_| {
            let [before, other, same] = counts();
            let waking = Waking::begin(cpu);
            let is_counted = counts() == [before + 1, other, same + 1];
            drop(waking);
            is_counted && counts() == [before, other, same]
        };
        assert!((0..100).any(is_counted));
    }

    #[test]
    fn a_thread_that_wakes_another_counts_on_its_cpu() {
        let mut is_counted = false;
        // Tried often: the thread may move to another CPU meanwhile.
        for _ in 0..100 {
            Waking::during(|| is_counted |= Waking::is_any_here());
        }
        assert_eq!(is_counted, current_cpu().is_some());
    }
}
