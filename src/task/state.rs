//! The state word of a future's cell (feature `async`).
//!
//! | state | meaning | next |
//! |---|---|---|
//! | `IDLE` | waits for a wake | a waker or a canceller moves it to `SCHEDULED` |
//! | `SCHEDULED` | is in the queue once, or about to be pushed | the thread that takes it moves it to `RUNNING` |
//! | `RUNNING` | its owner polls or drops it | a waker moves it to `NOTIFIED`, its owner to `IDLE` or `DONE` |
//! | `NOTIFIED` | as `RUNNING`, and woken since the poll began | its owner moves it to `SCHEDULED` or `DONE` |
//! | `DONE` | its last owner drops the future, or has dropped it | none |
//!
//! Five bits stand beside these states:
//!
//! | bit | beside | means | set, cleared |
//! |---|---|---|---|
//! | `CANCELLED` | any state but `IDLE` | the owner drops the future instead of polling it (again), or it has ended so | set by a canceller |
//! | `GONE` | `DONE` and `CANCELLED` | the future has been dropped | set by its last owner, under the cell's lock |
//! | `FRESH` | the first `SCHEDULED` | the thread that waits for the future may claim it | set at first; cleared when the first entry is taken, or the future claimed, withdrawn or dropped; no effect beside `CANCELLED` |
//! | `LEFT` | `DONE` | the last owner has left its reference to the task to the wakers | set by that owner, if there are wakers |
//! | `WITHDRAWN` | any state | a canceller leaves the future to its owner, a `Task` or a group | set by the withdrawal, cleared when the first entry is taken |
//!
//! The bits above count the wakers, without the one that a poll lends.
//!
//! A task has one reference that passes from state to state: the queue's while it is `SCHEDULED`, its owner's while it is
//! `RUNNING` or `NOTIFIED`, the state's own while it is `IDLE` (the owner forgets it, and the thread that ends `IDLE` takes it), and
//! the wakers' after `LEFT`. So wakers change the count in this word only, and one change of it decides that the last waker of an
//! idle future is dropped: that thread queues the future as cancelled, and does not drop it (race 46). A poll without a waker that
//! was kept ends the future too. A canceller that takes the future from `SCHEDULED` is its owner by a reference of its own: the
//! entry keeps the queue's.
//!
//! The thread that moves the word to `SCHEDULED` submits the future, and the thread that moves it from there to
//! `RUNNING` owns the future: the one that takes the entry or, without the entry, a waiter that claims the future or a canceller.
//! These leave the entry in the queue, or about to be pushed: it is *stale*, and the thread that takes it drops it. A wake during a
//! poll moves the word to `NOTIFIED`, and the owner submits the future after the poll (race 33). So a future is in the queue at most
//! once, but for a stale entry, and polled by one thread at a time (law 11).
//!
//! A first entry is stale without `FRESH` and `WITHDRAWN`: a claimed future may be `SCHEDULED` again, with another entry. Any other
//! entry is stale unless the word is `SCHEDULED`: after a canceller has taken the future it never is again.
//!
//! The last reference takes a future that has not ended from any state to `RUNNING`, by a plain store: no other thread has
//! access. Every other transition but [`add_waker`](State::add_waker) is a read-modify-write that acquires and releases, even a
//! wake that changes nothing. So the poll that a wake leads to sees what the waker's thread wrote before the wake.
//!
//! The word is modelled on those of async-task and tokio.

use crate::sync::{AtomicU32, Ordering, latest};

const IDLE: u32 = 0;
const SCHEDULED: u32 = 1;
const RUNNING: u32 = 2;
const NOTIFIED: u32 = 3;
const DONE: u32 = 4;
const CANCELLED: u32 = 8;
const FRESH: u32 = 16;
const GONE: u32 = 32;
const LEFT: u32 = 64;
const WITHDRAWN: u32 = 128;
/// One waker.
const WAKER: u32 = 256;
/// From this number of wakers on, some 8 million, the count stays as it is: the task is then never freed.
const UNCOUNTED: u32 = 1 << 31;

/// The bits that [`State::update`] changes. `FRESH` belongs to the first entry, and `GONE` and `LEFT` come last.
const STATE: u32 = 15;

/// See the [module's documentation](self).
pub(super) struct State {
    word: AtomicU32,
}

/// The outcome of a wake.
#[must_use]
#[derive(PartialEq, Eq)]
pub(super) enum TransitionToScheduled {
    /// The future was idle: the caller submits it.
    Submit,
    /// The future is queued, its owner queues it after the poll, or it has ended.
    DoNothing,
}

/// The outcome of taking an entry from the queue: the caller owns the future.
#[must_use]
pub(super) enum TransitionToRunning {
    /// The caller polls the future.
    Poll,
    /// The caller drops the future. A canceller may still touch its contents, under the cell's lock.
    Drop,
}

/// The thread that has taken an entry from the queue does not own the future: the entry is stale.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stale;

/// The outcome of a cancellation by a thread that drops the future, if it may.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransitionToDropping {
    /// The caller owns the future. It was in no queue.
    Idle,
    /// The caller owns the future. Its entry is stale now. `is_new`: it is the first one.
    Scheduled { is_new: bool },
    /// The future is running: its owner drops it after the poll.
    Running,
    /// It was withdrawn, is cancelled and running, or has ended.
    DoNothing,
}

/// The outcome of a poll that was not ready.
#[must_use]
pub(super) enum TransitionToIdle {
    /// The future waits for a wake. The caller no longer owns it.
    Idle,
    /// The future was woken during the poll: the caller submits it, and no longer owns it.
    Submit,
    /// The future was cancelled during the poll, or no waker is left: the caller still owns it, and drops it.
    Drop,
}

/// The outcome of the drop of a waker.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakerDropped {
    Other,
    /// The future waited for a wake, and no waker is left: it is cancelled, and the caller submits it.
    Submit,
    /// The future has ended, and no waker is left: the caller drops the reference that its last owner has left.
    Free,
}

/// The outcome of a cancellation.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransitionToCancelled {
    /// The future was idle: the caller submits it.
    Submit,
    /// The future was queued or running.
    Cancelled,
    /// The future was cancelled before and is running, or had ended.
    DoNothing,
}

impl State {
    /// The state of a new future, which is about to be pushed for the first time.
    pub(super) fn new() -> Self {
        State { word: AtomicU32::new(SCHEDULED | FRESH) }
    }

    /// Changes the state, keeps the bits above it, and returns the state before.
    fn update(&self, mut next: impl FnMut(u32) -> u32) -> u32 {
        let change = |now| Some(next(now & STATE) | (now & !STATE));
        // AcqRel: see the module's documentation.
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(before) | Err(before) => before & STATE,
        }
    }

    /// Wakes the future.
    #[inline]
    pub(super) fn transition_to_scheduled(&self) -> TransitionToScheduled {
        let before = self.update(|now| match now {
            IDLE => SCHEDULED,
            RUNNING => NOTIFIED,
            other => other,
        });
        if before == IDLE {
            TransitionToScheduled::Submit
        } else {
            TransitionToScheduled::DoNothing
        }
    }

    /// Takes the future of a first entry that was taken from the queue.
    #[inline]
    pub(super) fn transition_to_running_first(&self) -> Result<TransitionToRunning, Stale> {
        self.transition_from_scheduled(|now| {
            let next = taken(now).filter(|_| !is_first_stale(now));
            next.map(|next| next & !(FRESH | WITHDRAWN))
        })
    }

    /// Takes the future of another entry that was taken from the queue: that of a woken or withdrawn future.
    #[inline]
    pub(super) fn transition_to_running(&self) -> Result<TransitionToRunning, Stale> {
        self.transition_from_scheduled(taken)
    }

    #[inline(always)]
    fn transition_from_scheduled(
        &self,
        next: impl FnMut(u32) -> Option<u32>,
    ) -> Result<TransitionToRunning, Stale> {
        // AcqRel: see the module's documentation. Relaxed on failure: the caller touches nothing.
        let before = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
        before.map(poll_or_drop).map_err(|_| Stale)
    }

    /// Cancels the future, and takes it if no thread runs it. One that was withdrawn is left as it is.
    pub(super) fn transition_to_dropping(&self) -> TransitionToDropping {
        let change = |now: u32| match now & STATE {
            _ if now & WITHDRAWN != 0 => None,
            IDLE => Some((now - IDLE + RUNNING) | CANCELLED),
            state if state & !CANCELLED == SCHEDULED => {
                let taken = (now - SCHEDULED + RUNNING) & !FRESH;
                Some(taken | CANCELLED)
            }
            RUNNING | NOTIFIED => Some(now | CANCELLED),
            _ => None,
        };
        // AcqRel: see the module's documentation. Relaxed on failure: the caller touches nothing.
        let updated = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, change);
        let Ok(before) = updated else {
            return TransitionToDropping::DoNothing;
        };
        match before & STATE & !CANCELLED {
            IDLE => TransitionToDropping::Idle,
            SCHEDULED => TransitionToDropping::Scheduled { is_new: before & FRESH != 0 },
            _ => TransitionToDropping::Running,
        }
    }

    /// Claims a fresh future, whose entry is stale then. Returns `true` if the caller owns the future, `false` if it
    /// was polled, cancelled or withdrawn before.
    #[must_use]
    pub(super) fn transition_to_claimed(&self) -> bool {
        let (fresh, claimed) = (SCHEDULED | FRESH, RUNNING);
        // AcqRel: see the module's documentation. Relaxed on failure: the caller touches nothing.
        self.word.compare_exchange(fresh, claimed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Lets no thread claim a fresh future any more. Returns `false` if it was polled, claimed or cancelled before.
    #[must_use]
    pub(super) fn transition_to_withdrawn(&self) -> bool {
        let (fresh, withdrawn) = (SCHEDULED | FRESH, SCHEDULED | WITHDRAWN);
        // AcqRel: see the module's documentation. Relaxed on failure: the caller touches nothing.
        self.word.compare_exchange(fresh, withdrawn, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends the owner's poll, which was not ready.
    #[inline]
    pub(super) fn transition_to_idle(&self) -> TransitionToIdle {
        let change = |now: u32| match now & STATE {
            RUNNING if now >= WAKER => Some(now - RUNNING + IDLE),
            NOTIFIED => Some(now - NOTIFIED + SCHEDULED),
            // The caller still owns it.
            _ => None,
        };
        // AcqRel: see the module's documentation. Acquire on failure: the caller is about to drop the future.
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(before) if before & STATE == RUNNING => TransitionToIdle::Idle,
            Ok(_) => TransitionToIdle::Submit,
            Err(_) => TransitionToIdle::Drop,
        }
    }

    /// Counts one more waker. The caller polls the future, or has another waker.
    #[inline]
    pub(super) fn add_waker(&self) {
        // Relaxed: as a reference count. The caller's access keeps the task meanwhile.
        if self.word.fetch_add(WAKER, Ordering::Relaxed) & UNCOUNTED != 0 {
            self.word.fetch_sub(WAKER, Ordering::Relaxed);
        }
    }

    /// Counts one waker less. The caller does not use the task any more, unless the outcome gives it a reference.
    #[inline]
    pub(super) fn remove_waker(&self) -> WakerDropped {
        let change = |now: u32| {
            let rest = if now & UNCOUNTED == 0 { now - WAKER } else { return None };
            // Race 46: together, so that no thread takes an idle future without wakers before it is cancelled.
            Some(if is_abandoned(rest) { rest + (SCHEDULED | CANCELLED) } else { rest })
        };
        // AcqRel: see the module's documentation. Release also for the thread that frees the task.
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(before) if is_abandoned(before - WAKER) => WakerDropped::Submit,
            Ok(before) if before & LEFT != 0 && before - WAKER < WAKER => WakerDropped::Free,
            Ok(_) | Err(_) => WakerDropped::Other,
        }
    }

    /// Leaves the last owner's reference to the wakers, if there are any. The caller has ended the future, and does not use the task
    /// any more. Returns `false` if it keeps the reference.
    #[must_use]
    #[inline]
    pub(super) fn leave_to_wakers(&self) -> bool {
        // Acquire: what other threads did through their wakers comes before the caller frees the task. Without a waker there will
        // be none. Otherwise the last one of them sees `LEFT`, or this sees that there is none.
        self.word.load(Ordering::Acquire) >= WAKER
            && self.word.fetch_or(LEFT, Ordering::AcqRel) >= WAKER
    }

    /// Whether there is a waker.
    pub(super) fn has_wakers(&mut self) -> bool {
        latest!(self.word) >= WAKER
    }

    /// Cancels the future.
    pub(super) fn transition_to_cancelled(&self) -> TransitionToCancelled {
        /// Perhaps by the drop of its last waker, which settles no handle (race 46).
        const CANCELLED_IN_QUEUE: u32 = SCHEDULED | CANCELLED;
        let before = self.update(|now| match now {
            IDLE | SCHEDULED => SCHEDULED | CANCELLED,
            RUNNING | NOTIFIED => now | CANCELLED,
            other => other,
        });
        match before {
            IDLE => TransitionToCancelled::Submit,
            SCHEDULED | CANCELLED_IN_QUEUE | RUNNING | NOTIFIED => TransitionToCancelled::Cancelled,
            _ => TransitionToCancelled::DoNothing,
        }
    }

    /// Ends the future. Only for its owner, who is the last one. Returns whether the future was cancelled: then the caller
    /// calls [`set_gone`](Self::set_gone) when it has dropped the future.
    pub(super) fn transition_to_done(&self) -> bool {
        self.update(|now| DONE | (now & CANCELLED)) & CANCELLED != 0
    }

    /// A cancelled future has been dropped. The caller holds the cell's lock.
    pub(super) fn set_gone(&self) {
        // Relaxed: `awaits_drop` comes before or after it under the lock.
        self.word.fetch_or(GONE, Ordering::Relaxed);
    }

    /// Whether the future was cancelled and has not been dropped. The caller holds the cell's lock.
    pub(super) fn awaits_drop(&self) -> bool {
        // Relaxed: the caller has cancelled the future, or found it cancelled, by a read-modify-write. For the rest, as
        // in `set_gone`.
        self.word.load(Ordering::Relaxed) & (CANCELLED | GONE) == CANCELLED
    }

    /// Whether the first entry is stale, for a thread that has that entry.
    #[must_use]
    pub(super) fn is_first_stale(&self) -> bool {
        // Relaxed: the caller touches nothing of the future. An entry that is stale stays so.
        is_first_stale(self.word.load(Ordering::Relaxed))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: the caller is about to drop the future.
        self.word.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// Whether the future is cancelled and has no owner. For a canceller that holds the cell's lock.
    pub(super) fn is_cancelled_in_queue(&self) -> bool {
        // Relaxed: an owner that held the lock before had left `SCHEDULED` by then, and the lock orders that change
        // before this load. A later owner waits for the lock before it touches the contents.
        self.word.load(Ordering::Relaxed) & STATE == SCHEDULED | CANCELLED
    }

    /// Takes the future from wherever it is, unless it has ended. For the last reference.
    pub(super) fn transition_to_running_last(&mut self) -> bool {
        let now = latest!(self.word);
        if now & STATE & !CANCELLED == DONE {
            return false;
        }
        // Relaxed: no other thread has access.
        self.word.store((now & !STATE) | (now & CANCELLED) | RUNNING, Ordering::Relaxed);
        true
    }
}

/// Returns the word after an entry was taken from the queue, or `None` if the future is not there.
fn taken(now: u32) -> Option<u32> {
    (now & STATE & !CANCELLED == SCHEDULED).then(|| now - SCHEDULED + RUNNING)
}

/// Whether the first entry is stale, if it has not been taken.
fn is_first_stale(now: u32) -> bool {
    now & (FRESH | WITHDRAWN) == 0
}

/// Whether the future is idle, and has no waker.
fn is_abandoned(now: u32) -> bool {
    now < WAKER && now & STATE == IDLE
}

fn poll_or_drop(before: u32) -> TransitionToRunning {
    if before & CANCELLED == 0 { TransitionToRunning::Poll } else { TransitionToRunning::Drop }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{State, TransitionToIdle, TransitionToScheduled};

    #[test]
    fn the_entry_of_a_claimed_future_stays_stale() {
        let state = State::new();
        assert!(!state.is_first_stale());
        assert!(state.transition_to_claimed());
        state.add_waker();
        assert!(state.is_first_stale(), "its waiter polls it");
        // Woken meanwhile, so it is queued again, by another entry.
        assert!(state.transition_to_scheduled() != TransitionToScheduled::Submit);
        assert!(matches!(state.transition_to_idle(), TransitionToIdle::Submit));
        assert!(state.is_first_stale(), "the first entry does not become that of the wake");
    }
}
