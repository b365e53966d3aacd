//! Whether the pool is closed, and how much accepted work has not ended, in one word.
//! A word of the same type, never closed, counts the tasks that [run](RunningMark).
//!
//! A task is in flight from its acceptance to its end: queued, running or, for a future, pending.
//! (Entries in queues are not counted.) Bit 0 is the closed flag, the other bits are the count. One
//! word makes acceptance and closing one atomic decision: a task is accepted before the close and
//! counted, or it is rejected (law 8, race 10). The pool is *quiet* at a count of zero (law 3).
//!
//! In flight, and yet in no queue, are:
//!
//! - a task that runs, and one that its submitter is about to queue;
//! - a future that is pending (`task/pending.rs`);
//! - a task that waits for a slot of its group (`group/state.rs`);
//! - a task of a scope or group: the queue holds an entry for it (`task/unstarted.rs`);
//! - a permit, for the task that its owner will submit (`submit/reserve.rs`);
//! - the credit of a worker (race 20).
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

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use futures_channel::oneshot;

use crate::sync::parker::Parker;
use crate::sync::{AtomicUsize, Mutex, Ordering};

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
#[derive(Default)]
pub(crate) struct InFlight {
    word: CachePadded<AtomicUsize>,
    /// The length of `joiners`. At zero the finisher need not take the lock.
    joiner_count: AtomicUsize,
    /// What waits for quiet.
    joiners: Mutex<Vec<oneshot::Sender<()>>>,
}

impl InFlight {
    /// Accepts `count` tasks. `false` if the pool is closed.
    #[must_use]
    #[inline]
    pub(crate) fn accept(&self, count: usize) -> bool {
        let accept = |word| (word & CLOSED == 0).then_some(word + count * ONE_TASK);
        // Acquire: sees that the last worker has left (race 3). Release: part of the release
        // sequence.
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, accept).is_ok()
    }

    /// Counts one more, also if the pool is closed.
    pub(crate) fn add(&self) {
        // Acquire: a worker that counts itself sees what a joiner did before it found the count at
        // zero.
        self.word.fetch_add(ONE_TASK, Ordering::AcqRel);
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
        if now.is_quiet() && self.is_awaited() {
            self.notify_joiners();
        }
        now
    }

    #[cold]
    fn notify_joiners(&self) {
        let mut joiners = self.joiners.lock();
        // Checked again under the lock: the joiner may have registered after the moment of quiet,
        // and after another task was accepted. All joiners that registered so far did so under the
        // lock.
        if self.status().is_quiet() {
            let quiet = mem::take(&mut *joiners);
            self.joiner_count.store(0, Ordering::Relaxed);
            // Unlock first: the joiners may take the lock when they are awake.
            drop(joiners);
            for joiner in quiet {
                // An error: it has given up meanwhile.
                let _ = joiner.send(());
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
    /// - a worker on the idle list reads after the change, or before the recheck that follows the
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
        self.joiner_count.load(Ordering::Relaxed) > 0
    }

    /// The number in flight. May be outdated.
    pub(crate) fn count(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE_TASK
    }

    /// Blocks until the pool was quiet at some moment since the call, or until `deadline`. Returns
    /// `true` in the first case: what the finished tasks wrote is then visible.
    pub(crate) fn wait_quiet(&self, deadline: Option<Instant>) -> bool {
        let Some(mut quiet) = self.begin_wait() else { return true };
        let parker = Arc::new(Parker::default());
        let waker = Waker::from(Arc::clone(&parker));
        let context = &mut Context::from_waker(&waker);
        let is_quiet = Pin::new(&mut quiet).poll(context).is_ready();
        if !is_quiet && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            parker.spin();
            parker.park(deadline);
        }
        is_quiet || Pin::new(&mut quiet).poll(context).is_ready()
    }

    /// Begins to wait as [`wait_quiet`](Self::wait_quiet) does. `None`: the pool is quiet.
    pub(crate) fn begin_wait(&self) -> Option<QuietMoment<'_>> {
        let (joiner, moment) = oneshot::channel();
        // Removed by its drop.
        let quiet = QuietMoment { in_flight: self, moment };
        let mut joiners = self.joiners.lock();
        joiners.push(joiner);
        self.joiner_count.store(joiners.len(), Ordering::Relaxed);
        drop(joiners);
        // Race 12: registers first, looks second. The last task precedes this look, or sees the
        // joiner.
        (!self.status().is_quiet()).then_some(quiet)
    }
}

/// Counts a task that runs outside the loop of a worker, until it is dropped.
pub(crate) struct RunningMark<'a>(&'a InFlight);

impl<'a> RunningMark<'a> {
    pub(crate) fn begin(running: &'a InFlight) -> Self {
        running.add();
        RunningMark(running)
    }
}

impl Drop for RunningMark<'_> {
    fn drop(&mut self) {
        self.0.finish(1);
    }
}

/// Is ready when the pool was quiet at some moment since it was made.
pub(crate) struct QuietMoment<'a> {
    in_flight: &'a InFlight,
    moment: oneshot::Receiver<()>,
}

impl Future for QuietMoment<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.moment).poll(context).map(drop)
    }
}

impl Drop for QuietMoment<'_> {
    fn drop(&mut self) {
        // Replaces the waker, which the sender's drop calls.
        if Pin::new(&mut *self).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            let is_own = |joiner: &oneshot::Sender<()>| joiner.is_connected_to(&self.moment);
            let mut joiners = self.in_flight.joiners.lock();
            let own = joiners.iter().position(is_own).map(|own| joiners.swap_remove(own));
            self.in_flight.joiner_count.store(joiners.len(), Ordering::Relaxed);
            drop(joiners);
            drop(own);
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::time::Instant;

    use super::InFlight;

    #[test]
    fn closing_and_accepting_are_one_decision() {
        let in_flight = InFlight::default();
        assert!(in_flight.accept(1));
        assert!(!in_flight.close().is_quiet());
        assert!(!in_flight.accept(1));
        assert_eq!(in_flight.count(), 1);
        assert!(in_flight.finish(1).is_over());
        assert!(in_flight.is_closed());
    }

    #[test]
    fn a_wait_for_quiet_has_a_limit() {
        let in_flight = InFlight::default();
        assert!(in_flight.wait_quiet(Some(Instant::now())));
        assert!(in_flight.accept(1));
        assert!(!in_flight.wait_quiet(Some(Instant::now())));
        assert!(in_flight.finish(1).is_quiet());
        assert!(in_flight.wait_quiet(None));
    }

    #[test]
    fn a_joiner_that_gives_up_leaves_nothing_behind() {
        let in_flight = InFlight::default();
        assert!(in_flight.accept(1));
        assert!(!in_flight.wait_quiet(Some(Instant::now())));
        assert!(!in_flight.is_awaited());
        assert_eq!(in_flight.joiners.lock().len(), 0);
    }
}
