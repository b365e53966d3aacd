//! The ring buffer of a local queue. One thread owns it, pushes and pops; other threads steal. It
//! is first in, first out, and it grows. In one file, since its unsafe code rests on the same
//! invariants.
//!
//! The buffer has a ring of slots and two words, `head` and `tail`. Each word holds a position,
//! which counts up and wraps around. `tail` is the position of the next item to push; only the
//! owner writes it. `head` is the position of the oldest item; the owner and stealers advance it.
//! Bit 0 of `head` is the *lock bit*. A stealer holds it while it takes items. The owner holds it
//! while it replaces the slots, and while it examines an item before it takes it. A thread that
//! finds the bit set does not wait. `push` and `pop` do not need the bit.
//!
//! | operation | needs the bit | does | touches |
//! |---|---|---|---|
//! | owner, [`push`](Ring::push_with) | no | writes the slot, then stores `tail` (release) | a free slot, see below |
//! | owner, [`pop`](Ring::pop) | no | advances `head` by one, then reads the slot | the slot that `head` has passed |
//! | stealer, [`steal`](Stealer::steal) | yes | loads `tail`, advances `head`, reads the slots, clears the bit (release) | the slots that `head` has passed |
//! | owner, [`pop_newest_if`](Ring::pop_newest_if) | yes | examines the newest item and may read it out; then decrements `tail` and clears the bit (release) | the slot before `tail` |
//! | owner, resize | yes | replaces the slots, with the items between `head` and `tail`; clears the bit (release) | all slots |
//!
//! So each item is read out once: by the thread that has advanced `head` past it, or by the owner
//! while it holds the bit. A slot is *free* for the next round once its item has been read out:
//! `head` was past it at a moment at which the bit was clear. The owner remembers the last such
//! `head` that it has seen. It loads `head` again (acquire) when the ring seems full. Only the
//! owner replaces the slots, with the bit, and stealers touch them only with the bit.
//!
//! **`tail` goes back only with the bit, and a stealer counts the items only with the bit.**
//! Between a stealer's load of `tail` and its change of `head`, `tail` can only grow. If the owner
//! pops in between, `head` changes, and the stealer counts again. Without this rule a stealer could
//! count the items and lose its CPU while the owner takes the newest ones. That does not change
//! `head`, so the stealer would advance `head` beyond `tail`.
//!
//! While the bit is set, only its holder and the owner's `pop` write `head`. So if the owner holds
//! the bit, a plain store clears it. That store passes on what stealers have released before,
//! because setting the bit was an acquire.
//!
//! `len` needs no bit. It loads `head`, then a `tail` that is no older. A `tail` is never below the
//! `head` of its time, and `head` never goes back, so the difference is not negative. It is zero
//! only if the ring was empty at some moment.
//!
//! `push` fails if no slot is known to be free while a stealer holds the bit, and a steal while the
//! owner or another stealer does. So no call waits for a thread that may have no CPU; its caller
//! decides whether to try again.
//!
//! Taking an item is a release: a thread that sees by an acquire that an item was taken sees what
//! was pushed before.
//!
//! This is an unbounded variant of tokio's queue, with the lock bit in place of its second index.
//! In the deque of Chase and Lev (crossbeam's) a stealer reads an item before it knows whether it
//! gets it. Here no thread reads a slot that it has not claimed. So the slots need no atomics, and
//! replaced slots are freed at once.
#![allow(unsafe_code, reason = "a queue without a lock; see the SAFETY comments")]

mod slot;

use std::cell::Cell;
use std::sync::Arc;
use std::{cmp, mem};

use crossbeam_utils::CachePadded;

use crate::queue::ring::slot::Slot;
use crate::sync::unwind::OnDrop;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell, latest};

/// The lock bit of `head`.
const LOCKED: usize = 1;

/// The distance between two positions. An even number keeps bit 0 free for the lock bit.
const ONE: usize = 2;

/// Slots of a ring with its first item, and the fewest to which it shrinks. 64 jobs take 2 KiB,
/// little enough for each worker. A model affords few tasks and covers growth, so it starts with
/// two.
const INITIAL_CAPACITY: usize = if cfg!(elastipool_loom) { 2 } else { 64 };

/// A stealer's side, which the owner shares. See the [module's documentation](self).
pub(crate) struct Stealer<T> {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    /// Their number is a power of two, or zero before the first push and after
    /// [`release`](Ring::release).
    slots: UnsafeCell<Box<[Slot<T>]>>,
}

// SAFETY: items move between threads, hence `T: Send`. As the module's documentation shows, one
// thread at a time touches a slot, and no thread reads the boxed slice while the owner replaces it.
unsafe impl<T: Send> Sync for Stealer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Stealer<T> {}

/// The owner's side.
pub(crate) struct Ring<T> {
    shared: Arc<Stealer<T>>,
    capacity: Cell<usize>,
    /// The slots of the previous round are free up to this position.
    free: Cell<usize>,
    /// Set while an item is examined, which [`pop`](Ring::pop) might take.
    is_examining: Cell<bool>,
}

/// The outcome of [`Stealer::steal`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Steal<T> {
    /// The ring was empty.
    Empty,
    /// Another thread holds the lock bit.
    Retry,
    Success(T),
}

/// Returns the slot of a position of either word.
#[inline]
fn at<T>(slots: &[Slot<T>], position: usize) -> &Slot<T> {
    // The number of slots is a power of two. The check tells the compiler that it is not zero: the
    // index is in bounds.
    let last = slots.len().checked_sub(1).expect("there are slots");
    &slots[(position / ONE) & last]
}

/// Counts the items between a `head` and a `tail` that is no older.
fn between(head: usize, tail: usize) -> usize {
    let distance = tail.wrapping_sub(head & !LOCKED);
    debug_assert!(distance <= isize::MAX as usize);
    distance / ONE
}

impl<T> Stealer<T> {
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with the releases that change `head`, so that `tail` is no older. Relaxed
        // for `tail`: no item is read.
        let head = self.head.load(Ordering::Acquire);
        between(head, self.tail.load(Ordering::Relaxed))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Steals half of the items, rounded up, but `limit` at most. Returns the oldest and passes the
    /// others to `rest`, in their order.
    pub(crate) fn steal(&self, limit: usize, mut rest: impl FnMut(T)) -> Steal<T> {
        // Setting the bit would disturb the owner, so an empty ring is found without it. Acquire,
        // then Relaxed: as in `len`.
        let seen = self.head.load(Ordering::Acquire);
        if limit == 0 || between(seen, self.tail.load(Ordering::Relaxed)) == 0 {
            return Steal::Empty;
        }
        let Some((mut head, lock_bit)) = self.lock(seen) else { return Steal::Retry };
        let count = loop {
            // Acquire: pairs with the release in `push`, for the items. The stealer holds the bit,
            // so `tail` only grows from here on.
            let tail = self.tail.load(Ordering::Acquire);
            let count = between(head, tail).div_ceil(2).min(limit);
            if count == 0 {
                return Steal::Empty;
            }
            let after = head.wrapping_add(count * ONE);
            // Release: a thread that sees the new `head` (`len`) sees what this thread did before.
            // Acquire on failure: the owner has popped; the next load of `tail` sees what it had
            // pushed before.
            let taken = self.head.compare_exchange_weak(
                head | LOCKED,
                after | LOCKED,
                Ordering::Release,
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => break count,
                Err(now) => head = now & !LOCKED,
            }
        };
        let mut position = head;
        let mut next = |slots: &[Slot<T>]| {
            let slot = at(slots, position);
            position = position.wrapping_add(ONE);
            // SAFETY: the item was pushed. This thread alone has advanced `head` past it, and reads
            // it out once. The slot is not free before the bit is clear.
            unsafe { slot.read() }
        };
        // SAFETY: the owner replaces the slots only with the bit, which this thread holds.
        let first = unsafe {
            self.with_slots(|slots| {
                let first = next(slots);
                (1..count).for_each(|_| rest(next(slots)));
                first
            })
        };
        drop(lock_bit);
        Steal::Success(first)
    }

    /// Sets the lock bit, or writes nothing and returns `None` if it is set. Starts from the `head`
    /// that the caller has seen, and returns the `head` at which it set the bit.
    #[inline]
    fn lock(&self, mut head: usize) -> Option<(usize, LockBit<'_>)> {
        while head & LOCKED == 0 {
            // Acquire: pairs with the release that last cleared the bit. This thread sees the slots
            // of the last resize, a `tail` no older than the last `pop_newest_if`, and all reads of
            // the stealers before it. Relaxed on failure: the loop checks the value.
            let locked = self.head.compare_exchange_weak(
                head,
                head | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match locked {
                Ok(_) => return Some((head, LockBit(&self.head))),
                Err(now) => head = now,
            }
        }
        None
    }

    /// # Safety
    /// No thread replaces the slots during the call.
    #[inline]
    unsafe fn with_slots<R>(&self, f: impl FnOnce(&[Slot<T>]) -> R) -> R {
        self.slots.with(|slots| {
            // SAFETY: the caller's promise.
            f(unsafe { &*slots })
        })
    }
}

impl<T> Ring<T> {
    pub(super) fn new() -> Self {
        Ring::starting_at(0)
    }

    /// Makes a ring whose words start at `position`, an even number. Tests pass a large one to see
    /// the words overflow.
    pub(crate) fn starting_at(position: usize) -> Self {
        // A worker that submits nothing pays for no slots. A model spares itself one resize.
        let capacity = if cfg!(elastipool_loom) { INITIAL_CAPACITY } else { 0 };
        let shared = Stealer {
            head: CachePadded::new(AtomicUsize::new(position)),
            tail: CachePadded::new(AtomicUsize::new(position)),
            slots: UnsafeCell::new((0..capacity).map(|_| Slot::new()).collect()),
        };
        Ring {
            shared: Arc::new(shared),
            capacity: Cell::new(capacity),
            free: Cell::new(position),
            is_examining: Cell::new(false),
        }
    }

    pub(crate) fn stealer(&self) -> Arc<Stealer<T>> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// Pushes the item that `make` makes in its slot: one that was just written is slow to copy.
    /// `make` must not use the ring. If the ring is full and a stealer holds the lock bit, returns
    /// `make`.
    #[inline(always)]
    pub(crate) fn push_with<F: FnOnce() -> T>(&self, make: F) -> Result<(), F> {
        debug_assert!(!self.is_examining.get(), "no push while an item is examined");
        // Relaxed: only the owner writes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        if self.is_full(tail) && !self.make_room(tail) {
            return Err(make);
        }
        // SAFETY: only the owner replaces the slots. This one is free, so no other thread touches
        // it. `make` does not use the ring.
        unsafe { self.shared.with_slots(|slots| at(slots, tail).write(make())) };
        debug_assert!(
            cfg!(elastipool_loom) || self.shared.tail.load(Ordering::Relaxed) == tail,
            "`make` uses the ring"
        );
        // Release: publishes the item to the stealer that takes it.
        self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);
        Ok(())
    }

    /// Whether the slot at `tail` is not known to be free.
    #[inline]
    fn is_full(&self, tail: usize) -> bool {
        tail.wrapping_sub(self.free.get()) == self.capacity.get() * ONE
    }

    /// Finds slots that have become free, or doubles the slots. Returns `false` if a stealer holds
    /// the lock bit.
    #[cold]
    fn make_room(&self, tail: usize) -> bool {
        // Acquire: if the bit is clear, all stealers have read what they took.
        let head = self.shared.head.load(Ordering::Acquire);
        if head & LOCKED == 0 {
            self.free.set(head);
        }
        !self.is_full(tail) || self.resize(cmp::max(2 * self.capacity.get(), INITIAL_CAPACITY))
    }

    /// Pops the oldest item.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        debug_assert!(!self.is_examining.get(), "the item is borrowed");
        // Relaxed: only the owner writes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        // Relaxed: the compare-exchange checks the value.
        let mut head = self.shared.head.load(Ordering::Relaxed);
        while head & !LOCKED != tail {
            let next = head.wrapping_add(ONE);
            // Release: a thread that sees the new `head` sees the `tail` of earlier pushes. No
            // acquire: the owner itself has pushed the item. Relaxed on failure: the loop checks
            // the value.
            let taken = self.shared.head.compare_exchange_weak(
                head,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => {
                    // SAFETY: only the owner replaces the slots. It has pushed this item, and it
                    // alone has advanced `head` past it.
                    return Some(unsafe { self.shared.with_slots(|slots| at(slots, head).read()) });
                }
                Err(now) => head = now,
            }
        }
        None
    }

    /// Pops the newest item if `wanted` returns `true` for it.
    ///
    /// Returns `None` without a call of `wanted` if the ring is empty or a stealer holds the lock
    /// bit. `wanted` must not use this ring.
    #[inline]
    pub(crate) fn pop_newest_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        // Relaxed: only the owner writes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        // Relaxed: an outdated `head` is too low, so a ring that looks empty is empty.
        let seen = self.shared.head.load(Ordering::Relaxed);
        if seen & !LOCKED == tail {
            return None;
        }
        // A stealer may have taken the last item since.
        let (head, lock_bit) = self.shared.lock(seen).filter(|(head, _)| *head != tail)?;
        let newest = tail.wrapping_sub(ONE);
        self.is_examining.set(true);
        let examining = OnDrop(|| self.is_examining.set(false));
        let read_if_wanted = |slots: &[Slot<T>]| {
            let slot = at(slots, newest);
            // SAFETY: the ring is not empty. With the bit, only the owner takes items, and `wanted`
            // does not use the ring. The owner writes to no slot that holds an item.
            let is_wanted = unsafe { slot.peek(wanted) };
            // SAFETY: as above. `tail` goes below the item, so it is not read out again.
            is_wanted.then(|| unsafe { slot.read() })
        };
        // SAFETY: only the owner replaces the slots, and `wanted` cannot: the owner holds the bit.
        let item = unsafe { self.shared.with_slots(read_if_wanted) };
        drop(examining);
        // Relaxed: a stealer relies on `tail` only once it has the bit, which `clear_at` releases.
        // Other readers only count.
        if item.is_some() {
            self.shared.tail.store(newest, Ordering::Relaxed);
        }
        lock_bit.clear_at(head);
        item
    }

    /// Frees memory if fewer than one slot in [`INITIAL_CAPACITY`] holds an item: growth doubles
    /// the slots, so a queue of varying length does not resize back and forth.
    pub(crate) fn shrink(&self) {
        let (len, capacity) = (self.shared.len(), self.capacity.get());
        if capacity > INITIAL_CAPACITY && len * INITIAL_CAPACITY < capacity {
            // A quarter of the slots in use leaves room before the next growth. If a stealer holds
            // the bit, a later call shrinks.
            self.resize((4 * len).next_power_of_two().max(INITIAL_CAPACITY));
        }
    }

    /// Frees all slots; the next push allocates new ones. Returns `false`, and frees nothing, if
    /// the ring holds items or a stealer holds the lock bit.
    #[must_use]
    pub(super) fn release(&self) -> bool {
        self.is_empty() && (self.capacity.get() == 0 || self.resize(0))
    }

    /// Replaces the slots by `capacity` others. Allocates nothing and returns `false` if the lock
    /// bit is set.
    fn resize(&self, capacity: usize) -> bool {
        // Relaxed: `lock` checks the value.
        let seen = self.shared.head.load(Ordering::Relaxed);
        let Some((head, lock_bit)) = self.shared.lock(seen) else { return false };
        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();
        // Relaxed: only the owner writes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        self.shared.slots.with_mut(|slots| {
            // SAFETY: stealers touch the slots only with the bit, which the owner holds.
            let slots = unsafe { &mut *slots };
            let mut position = head;
            while position != tail {
                // SAFETY: the item was pushed and has not been taken. The old slots are freed below
                // without a second read.
                let item = unsafe { at(slots, position).read() };
                // SAFETY: no other thread knows the new slots.
                unsafe { at(&new, position).write(item) };
                position = position.wrapping_add(ONE);
            }
            *slots = new;
        });
        self.free.set(head);
        self.capacity.set(capacity);
        drop(lock_bit);
        true
    }
}

/// Holds the lock bit of `head`, and clears it on drop.
struct LockBit<'a>(&'a AtomicUsize);

impl LockBit<'_> {
    /// Sets `head` to `position` and clears the bit, in one store. Only for the owner: while a
    /// stealer holds the bit, the owner may change `head`.
    #[inline]
    fn clear_at(self, position: usize) {
        // Release: pairs with the acquires in `lock` and `len`. Publishes `tail`, and passes on
        // what stealers have released before.
        self.0.store(position, Ordering::Release);
        mem::forget(self);
    }
}

impl Drop for LockBit<'_> {
    fn drop(&mut self) {
        // Release: publishes that a stealer has read what it took, or the owner's new slots.
        self.0.fetch_and(!LOCKED, Ordering::Release);
    }
}

impl<T> Drop for Stealer<T> {
    fn drop(&mut self) {
        let mut head = latest!(self.head) & !LOCKED;
        let tail = latest!(self.tail);
        self.slots.with_mut(|slots| {
            // SAFETY: no other thread has a reference any more.
            let slots = unsafe { &*slots };
            while head != tail {
                // SAFETY: the item was pushed and has not been taken.
                drop(unsafe { at(slots, head).read() });
                head = head.wrapping_add(ONE);
            }
        });
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
