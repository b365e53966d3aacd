//! Threads of this process that were woken and have no CPU yet.
//!
//! A kernel may leave a woken thread on the CPU of the one that woke it, even if another CPU is idle. If that one spins, the
//! woken thread waits for the end of the spin. So a spin may [give way](crate::sync::spin). The counts are the process's: threads
//! of several pools share its CPUs.
//!
//! They affect only speed, so they may be read late, and models do not explore them.

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

/// How many there are, by [`Sleep`].
static COUNTS: CachePadded<[Counter; 2]> = CachePadded::new([Counter::new(0), Counter::new(0)]);

/// Why a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// A worker without work rests.
    Rest,
    /// Any other: a thread waits for a task or another future, for quiet, a permit or a place, or to return from a region.
    Wait,
}

/// Counts one woken thread until it is dropped, which that thread does as soon as it runs.
#[derive(Debug)]
pub(crate) struct Waking(Sleep);

impl Waking {
    pub(crate) fn begin(sleep: Sleep) -> Self {
        COUNTS[sleep as usize].increment();
        Waking(sleep)
    }

    /// Whether any thread is counted that slept for this reason.
    pub(crate) fn is_any(sleep: Sleep) -> bool {
        COUNTS[sleep as usize].get() > 0
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        COUNTS[self.0 as usize].decrement();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::thread;

    use super::{Sleep, Waking};

    #[test]
    fn a_thread_counts_until_the_end() {
        for sleep in [Sleep::Rest, Sleep::Wait] {
            let waking = Waking::begin(sleep);
            assert!(Waking::is_any(sleep));
            drop(waking);
            // Those of other tests run soon.
            while Waking::is_any(sleep) {
                thread::yield_now();
            }
        }
    }
}
