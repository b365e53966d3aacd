//! Whether the pool is closed, and how much accepted work has not ended, in one word.
//!
//! A task is in flight from its acceptance to its end: queued, running or, for a future, pending. (Entries in queues are not
//! counted.)
//! Bit 0 is the closed flag, the other bits are the count. One word makes acceptance and closing
//! one atomic decision: a task is accepted before the close and counted, or it is rejected (law 8,
//! race 10).
//! The pool is *quiet* at a count of zero (law 3).
//!
//! # Orderings
//! All changes are read-modify-writes, so they form one release sequence. [`InFlight::finish`]
//! releases what the tasks wrote. A thread that acquires a count of zero sees all of it.
//!
//! Two more pairs rely on the word's modification order instead of fences. One thread writes
//! elsewhere, then changes this word; the other changes this word, then reads elsewhere. The later
//! one in this word's order sees the other. So the last task sees a joiner that registered
//! (`protocol.md`, race 12), and a last worker that leaves sees an accepted task (race 3).
//! [`InFlight::status`] is therefore a read-modify-write.

use std::time::Instant;

use crossbeam_utils::CachePadded;

use crate::sync::cpu::current_cpu;
use crate::sync::spin::spin_until;
use crate::sync::waking::Waking;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering};

const CLOSED: usize = 1;
const ONE_TASK: usize = 2;

/// The word at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(usize);

impl Status {
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// No accepted task is queued, running or pending.
    pub(crate) fn is_quiet(self) -> bool {
        self.0 / ONE_TASK == 0
    }

    /// Closed and quiet: the pool never has work again.
    pub(crate) fn is_over(self) -> bool {
        self.0 == CLOSED
    }
}

/// See the [module's documentation](self).
pub(crate) struct InFlight {
    word: CachePadded<AtomicUsize>,
    /// Threads that wait for quiet. At zero the finisher need not take the lock.
    joiners: AtomicUsize,
    moments: Mutex<Moments>,
    /// Whether joiners spin before they block. Among the models only the one about this does: it makes models slow.
    pub(crate) spins: bool,
    quiet: Condvar,
}

#[derive(Default)]
struct Moments {
    /// Counts the moments of quiet. A joiner that is slow to wake sees that its moment passed, even
    /// if new tasks are in flight by then.
    passed: usize,
    /// Joiners that wait on the condition variable. Without one, a notification would be a wasted system call.
    parked: usize,
    /// Where the last of them ran before it waited.
    cpu: Option<usize>,
    /// From a moment until the first of these joiners runs.
    waking: Option<Waking>,
}

impl InFlight {
    pub(crate) fn new() -> Self {
        InFlight {
            word: CachePadded::new(AtomicUsize::new(0)),
            joiners: AtomicUsize::new(0),
            moments: Mutex::new(Moments::default()),
            spins: cfg!(not(elastipool_loom)),
            quiet: Condvar::new(),
        }
    }

    /// Accepts `count` tasks. `false` if the pool is closed.
    #[must_use]
    #[inline]
    pub(crate) fn accept(&self, count: usize) -> bool {
        let accept = |word| (word & CLOSED == 0).then_some(word + count * ONE_TASK);
        // Acquire: sees that the last worker has left (race 3). Release: part of the release
        // sequence.
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, accept).is_ok()
    }

    /// Ends `count` accepted tasks. Wakes the joiners if the pool is quiet now.
    pub(crate) fn finish(&self, count: usize) -> Status {
        let change = count * ONE_TASK;
        // Release: publishes what the tasks wrote to the thread that sees a count of zero. Acquire:
        // sees the registration of a joiner, and what other tasks wrote, so that the release
        // includes it.
        let before = self.word.fetch_sub(change, Ordering::AcqRel);
        debug_assert!(before >= change);
        let now = Status(before - change);
        // Relaxed: ordered by the word, see the module's documentation.
        if now.is_quiet() && self.joiners.load(Ordering::Relaxed) > 0 {
            self.notify_joiners();
        }
        now
    }

    #[cold]
    fn notify_joiners(&self) {
        let mut moments = self.moments.lock();
        // Checked again under the lock: the joiner may have registered after the moment of quiet,
        // and after another task was accepted. All joiners that registered so far did so under the
        // lock.
        if self.status().is_quiet() {
            moments.passed += 1;
            if moments.parked > 0 {
                moments.waking = moments.cpu.map(Waking::begin);
                // Unlock first: otherwise a joiner would wake and block on the lock.
                drop(moments);
                Waking::during(|| self.quiet.notify_all());
            }
        }
    }

    /// Closes the pool for new tasks.
    pub(crate) fn close(&self) -> Status {
        Status(self.word.fetch_or(CLOSED, Ordering::AcqRel) | CLOSED)
    }

    /// Returns the newest status. Takes a position in the word's order: see the module's
    /// documentation.
    pub(crate) fn status(&self) -> Status {
        Status(self.word.fetch_or(0, Ordering::AcqRel))
    }

    /// Whether the pool is closed and quiet, for good. May be outdated, but a lock orders each
    /// caller's read:
    ///
    /// - a worker on the idle stack reads after the change, or before the recheck that follows the
    ///   change (race 4);
    /// - a thread that starts a worker reads after a shutdown that has seen the last thread exit
    ///   (race 16).
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: the worker exits and drops things that the tasks may have used.
        Status(self.word.load(Ordering::Acquire)).is_over()
    }

    /// May be outdated, except for a thread that knows of the close (race 20): Relaxed is enough,
    /// since coherence orders its read.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        Status(self.word.load(Ordering::Relaxed)).is_closed()
    }

    /// Whether a joiner waits. May be outdated.
    pub(crate) fn is_awaited(&self) -> bool {
        self.joiners.load(Ordering::Relaxed) > 0
    }

    /// The number in flight. May be outdated.
    pub(crate) fn count(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE_TASK
    }

    /// Blocks until the pool was quiet at some moment since the call, or until `deadline`. Returns
    /// `true` in the first case: what the finished tasks wrote is then visible.
    pub(crate) fn wait_quiet(&self, deadline: Option<Instant>) -> bool {
        let mut moments = self.moments.lock();
        let before = moments.passed;
        self.joiners.fetch_add(1, Ordering::Relaxed);
        // Race 12: registers first, looks second. The last task precedes this look, or sees the
        // joiner.
        let mut quiet = self.status().is_quiet();
        if !quiet && self.spins && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            // Without the lock: the thread that ends the last task takes it.
            drop(moments);
            if self.spin_until_quiet() {
                self.joiners.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            moments = self.moments.lock();
            // A moment that passed between two looks of the spin was counted, since this joiner had registered.
            quiet = moments.passed != before;
        }
        let mut in_time = true;
        moments.parked += 1;
        while !quiet && in_time {
            moments.cpu = current_cpu();
            (moments, in_time) = self.quiet.wait(moments, deadline);
            moments.waking = None;
            quiet = moments.passed != before;
        }
        moments.parked -= 1;
        self.joiners.fetch_sub(1, Ordering::Relaxed);
        quiet
    }

    fn spin_until_quiet(&self) -> bool {
        // Acquire: the release sequence of all changes ends in what this sees, so it sees what the tasks wrote.
        spin_until(|| Status(self.word.load(Ordering::Acquire)).is_quiet())
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Instant;

    use super::InFlight;
    use crate::sync::cpu::{cpus, current_cpu};
    use crate::sync::spin::gives_way;

    #[test]
    fn closing_and_accepting_are_one_decision() {
        let in_flight = InFlight::new();
        assert!(in_flight.accept(1));
        assert!(!in_flight.close().is_quiet());
        assert!(!in_flight.accept(1));
        assert_eq!(in_flight.count(), 1);
        assert!(in_flight.finish(1).is_over());
        assert!(in_flight.is_closed());
    }

    #[test]
    fn a_wait_for_quiet_has_a_limit() {
        let in_flight = InFlight::new();
        assert!(in_flight.wait_quiet(Some(Instant::now())));
        assert!(in_flight.accept(1));
        assert!(!in_flight.wait_quiet(Some(Instant::now())));
        assert!(in_flight.finish(1).is_quiet());
        assert!(in_flight.wait_quiet(None));
    }

    #[test]
    fn a_joiner_counts_as_woken_until_it_runs() {
        let in_flight = InFlight::new();
        let is_waking = || in_flight.moments.lock().waking.is_some();
        let finish = || assert!(in_flight.accept(1) && in_flight.finish(1).is_quiet());
        in_flight.joiners.fetch_add(1, Ordering::Relaxed);
        finish();
        assert!(!is_waking(), "it does not wait on the condition variable");
        in_flight.moments.lock().parked += 1;
        in_flight.moments.lock().cpu = Some(0);
        finish();
        assert!(is_waking());
        in_flight.moments.lock().parked -= 1;
        in_flight.moments.lock().cpu = None;
        assert!(in_flight.accept(1));
        thread::scope(|scope| {
            scope.spawn(|| assert!(in_flight.wait_quiet(None)));
            while in_flight.moments.lock().parked == 0 {
                thread::yield_now();
            }
            assert!(in_flight.finish(1).is_quiet());
        });
        assert!(!is_waking() && in_flight.moments.lock().parked == 0);
        assert_eq!(in_flight.moments.lock().cpu.is_some(), current_cpu().is_some());
    }

    #[test]
    fn the_spin_of_a_joiner_gives_way() {
        let in_flight = InFlight::new();
        assert!(in_flight.accept(1));
        let gives_way = gives_way(|| assert!(!in_flight.spin_until_quiet()));
        // With a single CPU there is no spin.
        assert_eq!(gives_way, current_cpu().is_some() || cpus() == 1);
    }
}
