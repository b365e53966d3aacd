//! Waiting a moment before waiting properly: to block a thread and to wake it takes some microseconds, which is
//! longer than many a task.
//!
//! Spinning pays if whoever is waited for runs meanwhile. If it does not, because there are more threads than CPUs, it is
//! better to let it: a worker that runs out of work then yields some times before it rests. So one that is faster than
//! its only submitter finds many tasks when it runs again, instead of being woken for each. Whoever waits for a single
//! result does not yield: the system prefers a thread that was blocked to one that was merely polite, and it has only
//! that one result to wait for.
//!
//! Both are bounded: an idle pool uses no CPU (law 5). The two steps are those of crossbeam's `Backoff`.

/// Looks again and again whether `condition` holds, for a few microseconds, and then after each of so many `yields`; says
/// whether it did. With one CPU there is no spinning.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_until(yields: u32, condition: impl Fn() -> bool) -> bool {
    use std::hint;
    use std::thread;
    use std::time::{Duration, Instant};

    /// About what it costs to wake a thread: who spins for so long has lost no more than it might have won.
    const LIMIT: Duration = Duration::from_micros(5);
    /// Looks between two looks at the clock.
    const LOOKS: u32 = 16;

    if condition() {
        return true;
    }
    if has_many_cpus() {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            for _ in 0..LOOKS {
                hint::spin_loop();
                if condition() {
                    return true;
                }
            }
        }
    }
    (0..yields).any(|_| {
        thread::yield_now();
        condition()
    })
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
pub(crate) fn spin_until(_yields: u32, condition: impl Fn() -> bool) -> bool {
    condition()
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;

    use super::{has_many_cpus, spin_until};

    #[test]
    fn it_looks_before_it_waits() {
        let looks = Cell::new(0);
        assert!(spin_until(0, || looks.replace(looks.get() + 1) == 0));
        assert_eq!(looks.get(), 1);
    }

    #[test]
    fn it_gives_up() {
        let looks = Cell::new(0);
        assert!(!spin_until(3, || looks.replace(looks.get() + 1) > 1_000_000_000));
        assert!(looks.get() >= 4, "once, and after each yield");
        if has_many_cpus() {
            assert!(looks.get() > 4, "and in between");
        }
    }

    #[test]
    fn it_sees_what_happens_meanwhile() {
        for look in [2, 5] {
            let looks = Cell::new(0);
            let seen = spin_until(8, || looks.replace(looks.get() + 1) + 1 == look);
            assert!(seen, "at look {look}");
            assert_eq!(looks.get(), look);
        }
    }
}
