//! Waiting a moment before waiting properly: to block a thread and to wake it takes some microseconds, which is
//! longer than many a task.

/// Looks again and again whether `condition` holds, for a few microseconds; says whether it did. With one CPU it looks
/// once: nobody else runs meanwhile.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    use std::hint;
    use std::sync::OnceLock;
    use std::thread;
    use std::time::{Duration, Instant};

    /// About what it costs to wake a thread: who spins for so long has lost no more than it might have won.
    const LIMIT: Duration = Duration::from_micros(5);
    /// Looks between two looks at the clock.
    const LOOKS: u32 = 16;

    static HAS_MANY_CPUS: OnceLock<bool> = OnceLock::new();

    if condition() {
        return true;
    }
    let many = || thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !*HAS_MANY_CPUS.get_or_init(many) {
        return false;
    }
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        for _ in 0..LOOKS {
            hint::spin_loop();
            if condition() {
                return true;
            }
        }
    }
    false
}

/// In a model time does not pass.
#[cfg(elastipool_loom)]
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> bool {
    condition()
}
