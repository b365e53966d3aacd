//! Threads of this process that were woken and have no CPU yet.
//!
//! A kernel may leave a woken thread on the CPU of the one that woke it, even if another CPU is idle. If that one spins, the
//! woken thread waits for the end of the spin. So a spin may [give way](crate::sync::spin). The count is the process's: threads of
//! several pools share its CPUs.
//!
//! It affects only speed, so it may be read late, and models do not explore it.

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

static COUNT: CachePadded<Counter> = CachePadded::new(Counter::new(0));

/// Counts one woken thread until it is dropped, which that thread does as soon as it runs.
#[derive(Debug)]
pub(crate) struct Waking(());

impl Waking {
    pub(crate) fn begin() -> Self {
        COUNT.increment();
        Waking(())
    }

    /// Whether any thread is counted.
    pub(crate) fn is_any() -> bool {
        COUNT.get() > 0
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        COUNT.decrement();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::thread;

    use super::Waking;

    #[test]
    fn a_thread_counts_until_the_end() {
        let waking = Waking::begin();
        assert!(Waking::is_any());
        drop(waking);
        // Those of other tests run soon.
        while Waking::is_any() {
            thread::yield_now();
        }
    }
}
