//! The CPU that a thread runs on, and how many CPUs the process may use.

use crate::sync::Counter;

/// The largest [count](count_cpus) of CPUs so far. Zero before the first one.
static CPUS: Counter = Counter::new(0);

/// Returns how many CPUs the process may use: the largest [count](count_cpus) so far. In a model
/// they bound nothing.
pub(crate) fn cpus() -> usize {
    match CPUS.get() {
        _ if cfg!(elastipool_loom) => usize::MAX,
        0 => count_cpus(),
        count => count,
    }
}

/// Counts the CPUs that the process may use: the only place that does. It is the number of those
/// that the calling thread may run on or, if that is larger, the main thread: either may be pinned
/// to one. The quota of the control group, rounded up, limits it.
///
/// The speed of all pools follows the largest count so far.
pub(crate) fn count_cpus() -> usize {
    let count = count_as_main_thread().unwrap_or_else(num_cpus::get);
    CPUS.raise(count);
    count
}

/// Counts the CPUs on a thread that may run where the main thread may. `None` if the calling thread
/// may run on as many. `num_cpus` counts those of its thread, and with a quota it keeps the first
/// answer.
#[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
#[allow(
    unsafe_code,
    reason = "the standard library does not tell on which CPUs another thread may run"
)]
fn count_as_main_thread() -> Option<usize> {
    use std::process;
    use std::sync::Arc;

    use crate::sync::inherit::{affinity_of, set_affinity};
    use crate::sync::start_thread;

    // SAFETY: it only reads the set.
    let number_of = |cpus: &_| unsafe { libc::CPU_COUNT(cpus) };
    // The main thread has the number of the process.
    let main = libc::pid_t::try_from(process::id()).ok().and_then(affinity_of)?;
    let count = number_of(&main);
    if affinity_of(0).is_none_or(|own| number_of(&own) >= count) {
        return None;
    }
    // On a thread of its own: the caller stays where it is pinned.
    let counted = Arc::new(Counter::default());
    let there = Arc::clone(&counted);
    let count_there = move || {
        set_affinity(&main);
        there.raise(num_cpus::get());
    };
    let thread = start_thread("elastipool-cpus".into(), None, Box::new(count_there));
    let is_counted = thread.is_ok_and(|thread| thread.join().is_ok());
    // Without a thread, and so without the quota.
    if is_counted { Some(counted.get()) } else { usize::try_from(count).ok() }
}

/// As above, where threads have no affinity that `num_cpus` looks at.
#[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
fn count_as_main_thread() -> Option<usize> {
    None
}

/// Returns the number of the CPU that the calling thread runs on, which may change at any time.
/// `None` if the system does not tell.
#[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
#[allow(
    unsafe_code,
    reason = "the standard library does not tell; see docs/performance-history.md for what it buys"
)]
pub(super) fn current_cpu() -> Option<usize> {
    // SAFETY: it has no arguments, and returns a number.
    let number = unsafe { libc::sched_getcpu() };
    // Negative if the system does not tell.
    usize::try_from(number).ok()
}

/// As above.
#[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
pub(super) fn current_cpu() -> Option<usize> {
    None
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::current_cpu;

    #[test]
    fn some_systems_tell_the_cpu() {
        assert_eq!(current_cpu().is_some(), cfg!(all(target_os = "linux", not(miri))));
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
            assert_eq!(current_cpu(), Some(number));
            assert_eq!(count_cpus(), count, "of the process");
            assert_eq!(sched_getaffinity(None), Ok(only), "it is still pinned");
        };
        for number in (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number)) {
            thread::spawn(move || pinned(number)).join().unwrap();
        }
    }
}
