//! Threads of this process that wait for a CPU, as far as it is known:
//!
//! - one that was woken, until it runs, on the CPU where it went to sleep;
//! - one that wakes another, until that call returns. The woken thread may take its CPU meanwhile.
//!
//! A kernel may leave a woken thread on a CPU that is in use, even if another one is idle. If a thread spins there, the woken
//! one waits for the end of the spin, perhaps to do what the other one spins for. So a spin [gives way](crate::sync::spin) to
//! the threads that wait for its own CPU. It does not give way to those that wake up on another CPU: two threads that wait for
//! each other in turn would park every time.

use crate::sync::cpu::{CountsByCpu, Cpu};

static COUNTS: CountsByCpu = CountsByCpu::new();

/// Counts one thread until it is dropped.
#[derive(Debug)]
pub(crate) struct Waking(Cpu);

impl Waking {
    /// The thread waits for that CPU.
    pub(crate) fn begin(cpu: Cpu) -> Self {
        COUNTS.of(cpu).increment();
        Waking(cpu)
    }

    /// Calls what wakes another thread, and counts the calling one meanwhile.
    pub(crate) fn during(wake: impl FnOnce()) {
        let _waking = Cpu::current().map(Self::begin);
        wake();
    }

    /// Whether any thread waits for that CPU.
    pub(crate) fn is_any(cpu: Cpu) -> bool {
        COUNTS.of(cpu).get() > 0
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        COUNTS.of(self.0).decrement();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::Waking;
    use crate::sync::cpu::Cpu;

    #[test]
    fn a_thread_counts_until_the_end_on_its_cpu() {
        let cpu = Cpu::unusual(0);
        let waking = Waking::begin(cpu);
        assert!(Waking::is_any(cpu));
        drop(waking);
        assert!(!Waking::is_any(cpu));
    }

    #[test]
    fn a_thread_that_wakes_another_counts_on_its_cpu() {
        let mut is_counted = false;
        // Tried often: the thread may move to another CPU meanwhile.
        for _ in 0..100 {
            Waking::during(|| is_counted |= Cpu::current().is_some_and(Waking::is_any));
        }
        assert_eq!(is_counted, Cpu::current().is_some());
    }
}
