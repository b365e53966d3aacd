//! Spinning for a moment before blocking: to block a thread and to wake it again takes longer than many a task.
//!
//! A thread spins for about as long as a wake-up takes. Shorter is wrong: once both sides of a round trip have parked, each
//! finds that the other one's wake-up takes longer than it spins, and both park every time. Longer is wrong as well: what
//! is waited for will take its time, and an idle pool uses no CPU (law 5).
//!
//! Nothing here yields. Beside another busy process `sched_yield` gives up the CPU for a whole time slice of 3 ms or so,
//! during which submitters rely on the worker that searches.

/// Looks again and again whether `condition` holds, for some microseconds; says whether it did. Looks once if there is
/// only one CPU.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    use std::hint;
    use std::time::{Duration, Instant};

    /// About what it takes from waking a parked thread until it runs, on Linux 6 and a CPU that is asleep.
    const LIMIT: Duration = Duration::from_micros(25);

    if condition() {
        return true;
    }
    if !has_many_cpus() {
        return false;
    }
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        hint::spin_loop();
        if condition() {
            return true;
        }
    }
    false
}

#[cfg(not(elastipool_loom))]
fn has_many_cpus() -> bool {
    use std::sync::OnceLock;
    use std::thread;

    static HAS_MANY_CPUS: OnceLock<bool> = OnceLock::new();

    let many = || thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    *HAS_MANY_CPUS.get_or_init(many)
}

/// In a model time does not pass.
#[cfg(elastipool_loom)]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    condition()
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;

    use super::{has_many_cpus, spin_until};

    /// A condition that holds at the given look, and how often it was looked at.
    fn looks(holds_at: u32, wait: impl Fn(&dyn Fn() -> bool) -> bool) -> (bool, u32) {
        let looks = Cell::new(0);
        let is_met = wait(&|| {
            looks.set(looks.get() + 1);
            looks.get() == holds_at
        });
        (is_met, looks.get())
    }

    #[test]
    fn spinning_looks_first_and_ends() {
        assert_eq!(looks(1, |condition| spin_until(condition)), (true, 1));
        let (is_met, count) = looks(u32::MAX, |condition| spin_until(condition));
        assert!(!is_met);
        assert_eq!(count > 1, has_many_cpus(), "{count} looks");
        if has_many_cpus() {
            assert_eq!(looks(2, |condition| spin_until(condition)), (true, 2));
        }
    }
}
