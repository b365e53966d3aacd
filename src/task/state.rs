//! The state word of a future's cell. A closure with a handle is a future that is ready at its
//! first poll.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | `IDLE` | waits for a wake | a waker or a canceller moves it to `SCHEDULED` |
//! | `SCHEDULED` | is in the queue once, or about to be pushed | the thread that takes it moves it to `RUNNING` |
//! | `RUNNING` | its owner polls or drops it | a waker moves it to `NOTIFIED`, its owner to `IDLE` or `DONE` |
//! | `NOTIFIED` | as `RUNNING`, and woken since the poll began | its owner moves it to `SCHEDULED` or `DONE` |
//! | `DONE` | its last owner drops the future, or has dropped it | none |
//!
//! Four bits stand beside these states:
//!
//! | bit | beside | means | set, cleared |
//! |---|---|---|---|
//! | `CANCELLED` | any state but `IDLE` | the owner drops the future instead of polling it (again), unless the poll that goes on is ready | set by a canceller |
//! | `HAS_ENTRY` | any state | the first entry is not stale | set at first; cleared when that entry is taken, or the future claimed or cancelled |
//! | `FRESH` | the first `SCHEDULED` | the thread that waits for the future may claim it | set at first; cleared with `HAS_ENTRY`, or when the future is withdrawn; no effect beside `CANCELLED` |
//! | `HAS_LEFT` | `DONE` | the last owner has left its reference to the task to the wakers | set by that owner, if there are wakers |
//!
//! `HAS_ENTRY` without `FRESH` says that the future is *withdrawn*: a canceller leaves it to its
//! owner, a `Task` or a group.
//!
//! The bits above count the wakers, without the one that a poll lends.
//!
//! A task has one reference that passes from state to state: the queue's while it is `SCHEDULED`,
//! its owner's while it is `RUNNING` or `NOTIFIED`, the state's own while it is `IDLE` (the owner
//! forgets it, and the thread that ends `IDLE` takes it), and the wakers' after `HAS_LEFT`. So
//! wakers change the count in this word only, and one change of it decides that the last waker of
//! an idle future is dropped: that thread queues the future as cancelled, and does not drop it
//! (race 46). A poll without a waker that was kept ends the future too. A canceller that takes the
//! future from `SCHEDULED` is its owner by a reference of its own: the entry keeps the queue's.
//!
//! The thread that moves the word to `SCHEDULED` submits the future, and the thread that moves it
//! from there to `RUNNING` owns the future: the one that takes the entry or, without the entry, a
//! waiter that claims the future or a canceller. These leave the entry in the queue, or about to be
//! pushed: it is *stale*, and the thread that takes it drops it. A wake during a poll moves the
//! word to `NOTIFIED`, and the owner submits the future after the poll (race 33). So a future is in
//! the queue at most once, but for a stale entry, and polled by one thread at a time (law 11).
//!
//! A first entry is stale without `HAS_ENTRY`: a claimed future may be `SCHEDULED` again, with
//! another entry. Any other entry is stale unless the word is `SCHEDULED`: after a canceller has
//! taken the future it never is again.
//!
//! Every transition but [`add_waker`](Header::add_waker) is a read-modify-write that acquires and
//! releases, even a wake that changes nothing. So the poll that a wake leads to sees what the
//! waker's thread wrote before the wake.
//!
//! The word is modelled on those of async-task and tokio.
#![cfg_attr(
    not(feature = "async"),
    allow(dead_code, reason = "only a future that was spawned has wakers")
)]

use std::sync::atomic;
use std::task::Waker;

use crate::sync::{AtomicU32, Mutex, Ordering, latest};
use crate::task::job::{Action, Moment};
use crate::task::pending::PendingKey;

const IDLE: u32 = 0;
const SCHEDULED: u32 = 1;
const RUNNING: u32 = 2;
const NOTIFIED: u32 = 3;
const DONE: u32 = 4;
const CANCELLED: u32 = 8;
const FRESH: u32 = 16;
const HAS_LEFT: u32 = 64;
const HAS_ENTRY: u32 = 128;
const ONE_WAKER: u32 = 256;

/// The bits that [`Header::update`] changes. `FRESH` and `HAS_ENTRY` belong to the first entry, and
/// `HAS_LEFT` comes last.
const STATE: u32 = 15;

/// The state word, and what else of a [cell](super::future_cell) does not depend on the type of the
/// future. Its methods are compiled once, those of the cell for each future.
#[repr(C)]
pub(crate) struct Header {
    /// Woken when the future is cancelled ([`listen`](Self::listen)). In a box, because it is rare.
    listener: Mutex<Option<Box<Waker>>>,
    word: AtomicU32,
    /// The key among the pending futures, or zero. Only the owner uses it. Atomic, since any thread
    /// may borrow the header. Here it fits behind the word.
    pending_key: atomic::AtomicU32,
}

/// Owns the future of the cell with this header, which has not ended. Does not depend on the type
/// of the future, like the header. Made by the transitions to `RUNNING` alone.
#[must_use]
pub(crate) struct FutureOwner<'a>(pub(super) &'a Header);

/// The reference to the task that the owner of an idle future has forgotten. Made by the
/// transitions from `IDLE` alone.
#[must_use]
pub(crate) struct Left<'a>(pub(super) &'a Header);

/// What a thread has that has taken, claimed or cancelled a future.
#[must_use]
pub(crate) enum Taken<'a> {
    ToPoll(FutureOwner<'a>),
    /// The future was cancelled.
    ToDrop(FutureOwner<'a>, Moment),
    /// The caller has cancelled the future, which waited for a wake, and was in no queue.
    Idle(FutureOwner<'a>, Left<'a>),
    /// The caller does not own the future: the entry is stale, or the future was withdrawn, is
    /// running, was polled or cancelled before, or has ended.
    Nothing,
}

/// The outcome of a poll that was not ready. The caller no longer owns the future.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransitionToIdle {
    /// The future waits for a wake.
    Idle,
    /// The future was woken during the poll: the caller submits it.
    Submit,
}

/// The outcome of the drop of a waker.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakerDropped {
    Other,
    /// The future waited for a wake, and no waker is left: it is cancelled, and the caller submits
    /// it.
    Submit,
    /// The future has ended, and no waker is left: the caller drops the reference that its last
    /// owner has left.
    Free,
}

impl Header {
    /// The header of a new future, which is about to be pushed for the first time.
    pub(super) fn new() -> Self {
        Header {
            listener: Mutex::new(None),
            word: AtomicU32::new(SCHEDULED | FRESH | HAS_ENTRY),
            pending_key: atomic::AtomicU32::new(0),
        }
    }

    /// Changes the word, unless `next` returns `None`. Returns the word before.
    #[inline(always)]
    fn change(&self, next: impl FnMut(u32) -> Option<u32>) -> Result<u32, u32> {
        // AcqRel: see the module's documentation. Acquire on failure: the caller may own the
        // future, and be about to drop it.
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
    }

    /// Changes the state, keeps the bits above it, and returns the state before.
    fn update(&self, mut next: impl FnMut(u32) -> u32) -> u32 {
        match self.change(|now| Some(next(now & STATE) | (now & !STATE))) {
            Ok(before) | Err(before) => before & STATE,
        }
    }

    /// Wakes the future. Returns whether the caller submits it: it was idle. Otherwise it is
    /// queued, its owner queues it after the poll, or it has ended.
    #[must_use]
    #[inline]
    pub(crate) fn transition_to_scheduled(&self) -> bool {
        let before = self.update(|now| match now {
            IDLE => SCHEDULED,
            RUNNING => NOTIFIED,
            other => other,
        });
        before == IDLE
    }

    /// Takes the future, unless the entry is stale, or the future cannot be claimed: it was polled,
    /// cancelled or withdrawn before.
    #[inline]
    pub(crate) fn take(&self, action: Action) -> Taken<'_> {
        match action {
            Action::Run => self.transition_to_running_first(),
            // The entry stays in the queue, stale, as after a cancellation.
            Action::RunAwaited => self.transition_to_claimed(),
            Action::Cancel => self.transition_to_dropping(),
            Action::RunWoken | Action::RunWithdrawn | Action::Abandon => {
                self.transition_from_scheduled(taken)
            }
        }
    }

    /// Takes the future of a first entry that was taken from the queue.
    #[inline]
    fn transition_to_running_first(&self) -> Taken<'_> {
        let next = |now| taken(now).filter(|_| !is_first_stale(now));
        self.transition_from_scheduled(|now| next(now).map(|next| next & !(FRESH | HAS_ENTRY)))
    }

    /// Takes the future of an entry that was taken from the queue.
    #[inline(always)]
    fn transition_from_scheduled(&self, next: impl FnMut(u32) -> Option<u32>) -> Taken<'_> {
        match self.change(next) {
            Ok(before) if before & CANCELLED == 0 => Taken::ToPoll(FutureOwner(self)),
            Ok(_) => Taken::ToDrop(FutureOwner(self), Moment::Taken),
            Err(_) => Taken::Nothing,
        }
    }

    /// Cancels the future, and takes it if no thread runs it: the owner of a running one drops it
    /// after the poll, unless that is ready. One that was withdrawn is left as it is.
    fn transition_to_dropping(&self) -> Taken<'_> {
        let change = |now: u32| match now & STATE & !CANCELLED {
            _ if now & (FRESH | HAS_ENTRY) == HAS_ENTRY => None,
            IDLE => Some(now - IDLE + RUNNING),
            SCHEDULED => Some((now - SCHEDULED + RUNNING) & !(FRESH | HAS_ENTRY)),
            RUNNING | NOTIFIED if now & CANCELLED == 0 => Some(now),
            _ => None,
        };
        match self.change(|now| change(now).map(|next| next | CANCELLED)) {
            Err(_) => Taken::Nothing,
            Ok(before) => match before & STATE & !CANCELLED {
                IDLE => Taken::Idle(FutureOwner(self), Left(self)),
                SCHEDULED => {
                    let is_new = before & FRESH != 0;
                    Taken::ToDrop(FutureOwner(self), Moment::TakenFromQueue { is_new })
                }
                _ => Taken::Nothing,
            },
        }
    }

    /// Claims a fresh future, whose entry is stale then.
    fn transition_to_claimed(&self) -> Taken<'_> {
        let fresh = SCHEDULED | FRESH | HAS_ENTRY;
        // AcqRel: see the module's documentation. Relaxed on failure: the caller touches nothing.
        match self.word.compare_exchange(fresh, RUNNING, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Taken::ToPoll(FutureOwner(self)),
            Err(_) => Taken::Nothing,
        }
    }

    /// Withdraws the future: no thread may claim it any more. For an immediate shutdown, which has
    /// taken it from the queue and gives it back, and before it enters its group's line for a slot.
    /// Returns `false` if the future was polled, claimed or cancelled before.
    #[must_use]
    pub(crate) fn transition_to_withdrawn(&self) -> bool {
        let withdrawn = SCHEDULED | HAS_ENTRY;
        self.change(|now| (now & !FRESH == withdrawn).then_some(withdrawn)).is_ok()
    }

    /// Ends the owner's poll, which was not ready. `None`: the future was cancelled during the
    /// poll, or no waker is left. Then the caller still owns it, and drops it.
    #[inline]
    pub(super) fn transition_to_idle(&self) -> Option<TransitionToIdle> {
        let change = |now: u32| match now & STATE {
            RUNNING if now >= ONE_WAKER => Some(now - RUNNING + IDLE),
            NOTIFIED => Some(now - NOTIFIED + SCHEDULED),
            _ => None,
        };
        let before = self.change(change).ok()?;
        let was_woken = before & STATE == NOTIFIED;
        Some(if was_woken { TransitionToIdle::Submit } else { TransitionToIdle::Idle })
    }

    /// Counts one more waker. The caller polls the future, or has another waker.
    #[inline]
    pub(crate) fn add_waker(&self) {
        // Relaxed: as a reference count. The caller's access keeps the task meanwhile.
        if is_full(self.word.fetch_add(ONE_WAKER, Ordering::Relaxed)) {
            self.word.fetch_sub(ONE_WAKER, Ordering::Relaxed);
        }
    }

    /// Counts one waker less. The caller does not use the task any more, unless the outcome gives
    /// it a reference.
    #[inline]
    pub(crate) fn remove_waker(&self) -> WakerDropped {
        let change = |now: u32| {
            let rest = if is_full(now) { return None } else { now - ONE_WAKER };
            // Race 46: together, so that no thread takes an idle future without wakers before it is
            // cancelled.
            Some(if is_abandoned(rest) { rest + (SCHEDULED | CANCELLED) } else { rest })
        };
        match self.change(change).map(|before| before - ONE_WAKER) {
            Ok(rest) if is_abandoned(rest) => WakerDropped::Submit,
            Ok(rest) if rest & HAS_LEFT != 0 && rest < ONE_WAKER => WakerDropped::Free,
            Ok(_) | Err(_) => WakerDropped::Other,
        }
    }

    /// Leaves the last owner's reference to the wakers, if there are any. The caller has ended the
    /// future, and does not use the task any more. Returns `false` if it keeps the reference.
    #[must_use]
    #[inline]
    pub(crate) fn leave_to_wakers(&self) -> bool {
        // Acquire: what other threads did through their wakers comes before the caller frees the
        // task. Without a waker there will be none. Otherwise the last one of them sees `HAS_LEFT`,
        // or this sees that there is none.
        self.word.load(Ordering::Acquire) >= ONE_WAKER
            && self.word.fetch_or(HAS_LEFT, Ordering::AcqRel) >= ONE_WAKER
    }

    /// Whether there is a waker.
    pub(super) fn has_wakers(&mut self) -> bool {
        latest!(self.word) >= ONE_WAKER
    }

    /// Cancels the future, which its owner drops, and wakes the waker of [`listen`](Self::listen).
    /// Returns whether the caller must submit the task, by this reference: it was idle.
    #[must_use]
    pub(crate) fn cancel(&self) -> Option<Left<'_>> {
        let before = self.update(|now| match now {
            IDLE | SCHEDULED => SCHEDULED | CANCELLED,
            RUNNING | NOTIFIED => now | CANCELLED,
            other => other,
        });
        if let Some(waker) = &*self.listener.lock() {
            waker.wake_by_ref();
        }
        (before == IDLE).then_some(Left(self))
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the future is cancelled.
    /// Returns whether it is cancelled already. For the future's owner.
    pub(crate) fn listen(&self, waker: &Waker) -> bool {
        // Register, then check. A canceller changes the state first and then reads the waker, so
        // one sees the other.
        let mut listener = self.listener.lock();
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(Box::new(waker.clone()));
        }
        drop(listener);
        self.is_cancelled()
    }

    /// Returns the key among the pending futures, if it was set. For the future's owner.
    #[inline]
    pub(crate) fn pending_key(&self) -> Option<PendingKey> {
        // Relaxed, here and below: the state orders one owner after the other.
        PendingKey::new(self.pending_key.load(atomic::Ordering::Relaxed))
    }

    /// For the future's owner.
    pub(crate) fn set_pending_key(&self, key: PendingKey) {
        self.pending_key.store(key.get(), atomic::Ordering::Relaxed);
    }

    /// Ends the future. Only for its owner, who is the last one.
    pub(super) fn transition_to_done(&self) {
        self.update(|now| DONE | (now & CANCELLED));
    }

    /// Whether the first entry is stale, for a thread that has that entry.
    #[must_use]
    pub(crate) fn is_first_stale(&self) -> bool {
        // Relaxed: the caller touches nothing of the future. An entry that is stale stays so.
        is_first_stale(self.word.load(Ordering::Relaxed))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: the caller is about to drop the future.
        self.word.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// Whether the future has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        latest!(self.word) & STATE & !CANCELLED == DONE
    }
}

/// Returns the word after an entry was taken from the queue, or `None` if the future is not there.
fn taken(now: u32) -> Option<u32> {
    (now & STATE & !CANCELLED == SCHEDULED).then(|| now - SCHEDULED + RUNNING)
}

/// Whether the first entry is stale, if it has not been taken.
fn is_first_stale(now: u32) -> bool {
    now & HAS_ENTRY == 0
}

/// Whether there are too many wakers to count, some 8 million. The count then stays as it is, and
/// the task is never freed.
fn is_full(now: u32) -> bool {
    now > u32::MAX / 2
}

/// Whether the future is idle, and has no waker.
fn is_abandoned(now: u32) -> bool {
    now < ONE_WAKER && now & STATE == IDLE
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{Header, Taken, TransitionToIdle};

    #[test]
    fn the_entry_of_a_claimed_future_stays_stale() {
        let state = Header::new();
        assert!(!state.is_first_stale());
        assert!(matches!(state.transition_to_claimed(), Taken::ToPoll(_)));
        state.add_waker();
        assert!(state.is_first_stale(), "its waiter polls it");
        // Woken meanwhile, so it is queued again, by another entry.
        assert!(!state.transition_to_scheduled());
        assert_eq!(state.transition_to_idle(), Some(TransitionToIdle::Submit));
        assert!(state.is_first_stale(), "the first entry does not become that of the wake");
    }
}
