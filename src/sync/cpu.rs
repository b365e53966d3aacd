//! The CPU that a thread runs on, and how many CPUs the process may use.

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

/// The largest [count](count_cpus) of CPUs so far. Zero before the first one.
#[cfg(not(elastipool_loom))]
static CPUS: Counter = Counter::new(0);

/// Returns how many CPUs the process may use: the largest [count](count_cpus) so far.
#[cfg(not(elastipool_loom))]
pub(crate) fn cpus() -> usize {
    match CPUS.get() {
        0 => count_cpus(),
        count => count,
    }
}

/// In a model there are as many as threads.
#[cfg(elastipool_loom)]
pub(crate) fn cpus() -> usize {
    usize::MAX
}

/// Counts the CPUs that the process may use: the only place that does. It is the number of those that the calling thread may run
/// on or, if that is larger, the main thread: either may be pinned to one. The quota of the control group, rounded up, limits it.
///
/// The speed of all pools follows the largest count so far.
pub(crate) fn count_cpus() -> usize {
    let count = count_as_main_thread().unwrap_or_else(num_cpus::get);
    #[cfg(not(elastipool_loom))]
    CPUS.set(count.max(CPUS.get()));
    count
}

/// Counts the CPUs on a thread that may run where the main thread may. `None` if the calling thread may run on as many.
/// `num_cpus` counts those of its thread, and with a quota it keeps the first answer.
#[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
#[allow(
    unsafe_code,
    reason = "the standard library does not tell on which CPUs another thread may run"
)]
fn count_as_main_thread() -> Option<usize> {
    use std::{mem, process, thread};

    const SIZE: usize = size_of::<libc::cpu_set_t>();

    let affinity_of = |thread| {
        // SAFETY: it is an array of integers, for which zero is valid.
        let mut cpus: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the pointer is valid for writes of this size during the call.
        let failed = unsafe { libc::sched_getaffinity(thread, SIZE, &raw mut cpus) };
        // SAFETY: it only reads the set.
        let count = unsafe { libc::CPU_COUNT(&cpus) };
        (failed == 0).then_some((cpus, count))
    };
    // The main thread has the number of the process, and zero stands for the calling thread.
    let (main, count) = libc::pid_t::try_from(process::id()).ok().and_then(affinity_of)?;
    if affinity_of(0).is_none_or(|(_, own)| own >= count) {
        return None;
    }
    // On a thread of its own: the caller stays where it is pinned.
    let count_there = move || {
        // If the system refuses, the thread keeps the caller's affinity.
        // SAFETY: the pointer is valid for reads of this size during the call.
        let _ = unsafe { libc::sched_setaffinity(0, SIZE, &raw const main) };
        num_cpus::get()
    };
    let counted = thread::Builder::new().name("elastipool-cpus".into()).spawn(count_there);
    // Without a thread, and so without the quota.
    let of_main = || usize::try_from(count).ok();
    counted.ok().and_then(|thread| thread.join().ok()).or_else(of_main)
}

/// As above, where threads have no affinity that `num_cpus` looks at.
#[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
fn count_as_main_thread() -> Option<usize> {
    None
}

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
        reason = "the standard library does not tell; see docs/performance-history.md for what it buys"
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
    fn a_pinned_thread_runs_on_its_cpu_and_counts_all() {
        use std::thread;

        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        use super::count_cpus;

        let count = count_cpus();
        let allowed = sched_getaffinity(None).unwrap();
        let pinned = move |number: usize| {
            let mut only = CpuSet::new();
            only.set(number);
            sched_setaffinity(None, &only).unwrap();
            assert_eq!(Cpu::current(), Some(Cpu(number % Cpu::COUNT)));
            assert_eq!(count_cpus(), count, "of the process");
            assert_eq!(sched_getaffinity(None), Ok(only), "it is still pinned");
        };
        for number in (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number)) {
            thread::spawn(move || pinned(number)).join().unwrap();
        }
    }
}
