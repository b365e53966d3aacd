//! The CPU that a thread runs on.

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

/// The number of a CPU. On a machine with more than [`COUNT`](Self::COUNT) of them several share a number, which affects only
/// speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu(usize);

impl Cpu {
    /// How many numbers there are.
    pub(crate) const COUNT: usize = 64;

    /// How many more the tests use, on which no thread runs.
    const UNUSUAL: usize = if cfg!(test) { 16 } else { 0 };

    /// Returns where the calling thread runs, which may change at any time. `None` if the system does not tell.
    #[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
    #[allow(
        unsafe_code,
        reason = "the standard library does not tell; see docs/performance.md for what it buys"
    )]
    pub(crate) fn current() -> Option<Self> {
        // SAFETY: it has no arguments, and returns a number.
        let number = unsafe { libc::sched_getcpu() };
        // Negative if the system does not tell.
        Some(Cpu(usize::try_from(number).ok()? % Self::COUNT))
    }

    /// As above.
    #[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
    pub(crate) fn current() -> Option<Self> {
        None
    }

    /// One that no thread runs on, for one test.
    #[cfg(all(test, not(elastipool_loom)))]
    pub(crate) const fn unusual(test: usize) -> Self {
        Cpu(Self::COUNT + test)
    }
}

/// Where a thread ran when it last noted that.
#[derive(Debug, Default)]
pub(crate) struct LastCpu(
    /// One more than its number. Zero: unknown.
    Counter,
);

impl LastCpu {
    /// The thread runs here. Only one thread calls this.
    pub(crate) fn note(&self) {
        self.set(Cpu::current());
    }

    pub(crate) fn get(&self) -> Option<Cpu> {
        self.0.get().checked_sub(1).map(Cpu)
    }

    pub(crate) fn set(&self, cpu: Option<Cpu>) {
        self.0.replace_alone(cpu.map_or(0, |cpu| cpu.0 + 1));
    }
}

/// Counts threads by CPU. Such counts are the process's: threads of several pools share its CPUs. They affect only speed, so
/// they may be read late, or be those of the parent in a child process, and models do not explore them.
pub(crate) struct CountsByCpu([CachePadded<Counter>; Cpu::COUNT + Cpu::UNUSUAL]);

impl CountsByCpu {
    pub(crate) const fn new() -> Self {
        CountsByCpu([const { CachePadded::new(Counter::new(0)) }; Cpu::COUNT + Cpu::UNUSUAL])
    }

    pub(crate) fn of(&self, cpu: Cpu) -> &Counter {
        &self.0[cpu.0]
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{CountsByCpu, Cpu, LastCpu};

    #[test]
    fn some_systems_tell_the_cpu() {
        assert_eq!(Cpu::current().is_some(), cfg!(all(target_os = "linux", not(miri))));
    }

    #[test]
    fn a_cpu_is_noted_and_counted() {
        let last = LastCpu::default();
        assert_eq!(last.get(), None);
        last.note();
        assert_eq!(last.get().is_some(), Cpu::current().is_some());
        for cpu in [Cpu(0), Cpu(Cpu::COUNT - 1)] {
            last.set(Some(cpu));
            assert_eq!(last.get(), Some(cpu));
        }
        let counts = CountsByCpu::new();
        counts.of(Cpu(1)).increment();
        assert_eq!([0, 1, 3].map(|number| counts.of(Cpu(number)).get()), [0, 1, 0]);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_pinned_thread_runs_on_its_cpu() {
        use std::thread;

        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        let allowed = sched_getaffinity(None).unwrap();
        let pinned = |number: usize| {
            let mut only = CpuSet::new();
            only.set(number);
            sched_setaffinity(None, &only).unwrap();
            assert_eq!(Cpu::current(), Some(Cpu(number % Cpu::COUNT)));
        };
        for number in (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number)) {
            thread::spawn(move || pinned(number)).join().unwrap();
        }
    }
}
