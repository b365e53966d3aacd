//! Waiting a moment before waiting properly: to block a thread and to wake it takes some microseconds, which is
//! longer than many a task.
//!
//! Spinning pays if whoever is waited for runs meanwhile. If it does not, because there are more threads than CPUs, it is
//! better to let it: a worker that runs out of work yields some times before it blocks. So one that is faster than its
//! only submitter finds many tasks when it runs again, instead of being woken for each. Whoever waits for a single
//! result does not yield: the system prefers a thread that was blocked to one that was merely polite.
//!
//! Both are bounded: an idle pool uses no CPU (law 5). The two steps are those of crossbeam's `Backoff`.

/// Looks again and again whether `condition` holds, for some microseconds; says whether it did. Looks once if there is
/// only one CPU.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    use std::hint;
    use std::time::{Duration, Instant};

    /// Less than it costs to wake a thread. What is waited for either runs, and then it is there in less time than that,
    /// or it does not, and each moment is lost.
    const LIMIT: Duration = Duration::from_micros(2);

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

/// Lets others run until `condition` holds, a few times at most; says whether it does.
#[cfg(not(elastipool_loom))]
pub(crate) fn yield_until(condition: impl Fn() -> bool) -> bool {
    /// It may take long until the thread runs again, while what it waits for waits for it: not too often.
    const YIELDS: u32 = 3;

    condition()
        || (0..YIELDS).any(|_| {
            std::thread::yield_now();
            condition()
        })
}

/// In a model time does not pass.
#[cfg(elastipool_loom)]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    condition()
}

/// See [`spin_until`].
#[cfg(elastipool_loom)]
pub(crate) fn yield_until(condition: impl Fn() -> bool) -> bool {
    condition()
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;

    use super::{has_many_cpus, spin_until, yield_until};

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

    #[test]
    fn yielding_looks_first_and_ends() {
        assert_eq!(looks(1, |condition| yield_until(condition)), (true, 1));
        assert_eq!(looks(3, |condition| yield_until(condition)), (true, 3));
        assert_eq!(looks(u32::MAX, |condition| yield_until(condition)), (false, 4));
    }
}
