//! Whether the pool accepts work, and how much of what it accepted is unfinished, in one word.
//!
//! A task is in flight from its acceptance until its end: while it is queued, while it runs and, for
//! a future, while it waits to be woken. Bit 0 says that the pool is closed, the others count. Having
//! both in one word makes acceptance and closing one atomic decision: whatever was accepted before
//! the close is counted, nothing is accepted after it (law 8). "Quiet" is a count of zero (law 3).
//!
//! # Orderings
//! All changes are read-modify-writes, so they form one release sequence. [`InFlight::finish`]
//! releases what the task wrote; whoever acquires a count of zero sees all of it. Two more pairs rely
//! on the word's modification order instead of fences: *a* writes caller_metrics and then does a
//! read-modify-write here, *b* does a read-modify-write here and then reads caller_metrics; whichever is
//! second in this word's order sees the other. That is how a joiner that registers cannot be
//! overlooked by the last task, and how a last worker that leaves cannot overlook an accepted task
//! (`protocol.md`, race 3). It is why [`InFlight::status`] is a read-modify-write.

use std::time::Instant;

use crossbeam_utils::CachePadded;

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

    /// No accepted task is queued, running or waiting to be woken.
    pub(crate) fn is_quiet(self) -> bool {
        self.0 / ONE_TASK == 0
    }

    /// Closed and quiet: there will never be work again.
    pub(crate) fn is_over(self) -> bool {
        self.0 == CLOSED
    }
}

/// See the [module's documentation](self).
pub(crate) struct InFlight {
    word: CachePadded<AtomicUsize>,
    /// How many threads wait for quiet: spares the finisher the lock when there is none.
    joiners: AtomicUsize,
    /// Counts the moments of quiet that a joiner was there for, so that one that is slow to wake
    /// does not miss its moment because work has come again.
    moments: Mutex<usize>,
    quiet: Condvar,
}

impl InFlight {
    pub(crate) fn new() -> Self {
        InFlight {
            word: CachePadded::new(AtomicUsize::new(0)),
            joiners: AtomicUsize::new(0),
            moments: Mutex::new(0),
            quiet: Condvar::new(),
        }
    }

    /// Accepts `count` tasks, unless the pool is closed.
    #[must_use]
    #[inline]
    pub(crate) fn accept(&self, count: usize) -> bool {
        let accept = |word| (word & CLOSED == 0).then_some(word + count * ONE_TASK);
        // Acquire: the count of workers that a last worker left behind (race 3).
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, accept).is_ok()
    }

    /// Counts one more, of a pool that may be closed: only while the caller knows of a task in flight.
    pub(crate) fn hold(&self) {
        // AcqRel: part of the release sequence, like all changes; nothing else is ordered by it.
        let before = self.word.fetch_add(ONE_TASK, Ordering::AcqRel);
        debug_assert!(!Status(before).is_quiet(), "nothing comes into a pool that may be over");
    }

    /// Ends `count` accepted tasks and tells the joiners if that was the last of them.
    pub(crate) fn finish(&self, count: usize) -> Status {
        let change = count * ONE_TASK;
        // Release: what the tasks wrote, for whoever sees the count at zero. Acquire: that a joiner
        // has registered, and what the other tasks wrote, so that it is passed on.
        let before = self.word.fetch_sub(change, Ordering::AcqRel);
        debug_assert!(before >= change);
        let now = Status(before - change);
        // Relaxed: ordered by the word, see the module's documentation.
        if now.is_quiet() && self.joiners.load(Ordering::Relaxed) > 0 {
            self.announce_quiet();
        }
        now
    }

    #[cold]
    fn announce_quiet(&self) {
        let mut moments = self.moments.lock();
        // Looked at again: the joiner that was seen may have come after the moment that was seen, and
        // after a task that is still in flight. Those who hold the lock's last value came before now.
        if self.status().is_quiet() {
            *moments += 1;
            self.quiet.notify_all();
        }
    }

    /// Closes the pool for new work.
    pub(crate) fn close(&self) -> Status {
        Status(self.word.fetch_or(CLOSED, Ordering::AcqRel) | CLOSED)
    }

    /// The newest status, and a place in the word's order: see the module's documentation.
    pub(crate) fn status(&self) -> Status {
        Status(self.word.fetch_or(0, Ordering::AcqRel))
    }

    /// Closed and quiet, now and for ever. May be out of date, but not behind a lock's back: for a worker on
    /// the idle stack, that lock orders its look behind the change or puts it in the way of the recheck that
    /// follows the change; for whoever starts a thread, the registry's lock orders its look behind that of a
    /// shutdown that has seen the last thread go.
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: the worker ends, and what it drops then may be what the tasks used.
        Status(self.word.load(Ordering::Acquire)).is_over()
    }

    /// A glance: may be out of date.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        Status(self.word.load(Ordering::Relaxed)).is_closed()
    }

    /// Whether somebody waits for quiet. A glance: may be out of date.
    pub(crate) fn is_awaited(&self) -> bool {
        self.joiners.load(Ordering::Relaxed) > 0
    }

    /// A glance: may be out of date.
    pub(crate) fn count(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE_TASK
    }

    /// Blocks until there was a moment of quiet since the call, or until `deadline`. Says which: `true`
    /// if it was quiet, and then everything that the finished tasks wrote is visible.
    pub(crate) fn wait_quiet(&self, deadline: Option<Instant>) -> bool {
        let mut moments = self.moments.lock();
        let at_first = *moments;
        self.joiners.fetch_add(1, Ordering::Relaxed);
        // Registered first, looked second: the last task either comes before this look or sees us.
        let mut quiet = self.status().is_quiet();
        let mut in_time = true;
        while !quiet && in_time {
            (moments, in_time) = self.quiet.wait(moments, deadline);
            quiet = *moments != at_first;
        }
        self.joiners.fetch_sub(1, Ordering::Relaxed);
        quiet
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::Instant;

    use super::InFlight;

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
}
