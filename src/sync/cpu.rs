//! The CPU that a thread runs on.

/// The number of a CPU. On a machine with more than [`COUNT`](Self::COUNT) of them several share a number, which affects only
/// speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu(usize);

impl Cpu {
    /// How many numbers there are.
    pub(crate) const COUNT: usize = 64;

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

    pub(crate) fn index(self) -> usize {
        self.0
    }

    /// One that few threads run on, for one test.
    #[cfg(all(test, not(elastipool_loom)))]
    pub(crate) const fn unusual(test: usize) -> Self {
        Cpu(Self::COUNT - 1 - test)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::Cpu;

    #[test]
    fn some_systems_tell_the_cpu() {
        assert_eq!(Cpu::current().is_some(), cfg!(all(target_os = "linux", not(miri))));
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
            assert_eq!(Cpu::current().map(Cpu::index), Some(number % Cpu::COUNT));
        };
        for number in (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number)) {
            thread::spawn(move || pinned(number)).join().unwrap();
        }
    }
}
