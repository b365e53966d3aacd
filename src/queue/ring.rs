//! A worker's local queue: one thread owns it, adds and takes; others steal. First in, first out, and it grows.
//!
//! A ring of slots, and two words that count positions on and on. Only the owner changes `tail`, the position of the next
//! item. `head` is the position of the oldest item; the owner and stealers move it. Bit 0 of `head` is the *lock bit*. It
//! is set while a stealer takes items, and while the owner replaces the slots or looks at an item before it takes it. A
//! second thread that wants the bit does not wait for it. Adding and taking the oldest do without the bit.
//!
//! | operation | needs the bit | does | touches |
//! |---|---|---|---|
//! | owner, [`push`](Ring::push) | no | writes the slot, then stores `tail` (release) | a slot that is free, see below |
//! | owner, [`pop`](Ring::pop) | no | moves `head` on by one, then reads the slot | the slot that `head` has passed |
//! | stealer, [`steal`](Stealer::steal) | yes | reads `tail`, moves `head` on, reads the slots, clears the bit (release) | the slots that `head` has passed |
//! | owner, [`pop_oldest_if`](Ring::pop_oldest_if) | yes | looks at the oldest item and perhaps reads it out; then moves `head` on and clears the bit in one store (release) | the slot at `head` |
//! | owner, [`pop_newest_if`](Ring::pop_newest_if) | yes | looks at the newest item and perhaps reads it out; then stores `tail`, one less, and clears the bit (release) | the slot before `tail` |
//! | owner, resize | yes | replaces the slots, with the items between `head` and `tail`; clears the bit (release) | all slots |
//!
//! So each item is read once: by the thread that has moved `head` over it, or by the owner while it holds the bit. A slot
//! is *free* for the next round once it has been read: when `head` was beyond it at a moment at which the bit was not set.
//! The owner remembers how far that was when it last looked, and looks again (acquire) when the ring seems to be full. The
//! owner replaces the slots only with the bit, and stealers touch them only with the bit.
//!
//! **`tail` goes back only with the bit, and a stealer counts the items only with the bit.** Between the moment at which a
//! stealer reads `tail` and the one at which it moves `head`, `tail` can only grow. Meanwhile the owner may take the
//! oldest; then `head` has changed, and the stealer counts again. Without this rule a stealer could count the items and
//! fall asleep while the owner takes the newest ones. `head` would not change by that, and the stealer would move it beyond
//! `tail`.
//!
//! While the bit is set, only its holder and the owner's `pop` write to `head`: a thread that finds the bit set writes
//! nothing. So if the owner holds it, a plain store clears it. That store carries on what stealers have released before,
//! since setting the bit was an acquire.
//!
//! `len` needs no bit. It reads `head`, then `tail`, which is no older than `head`. A position of `tail` is never below the
//! `head` of that time, and `head` never goes back: so the difference is not negative. It is zero only if the ring was
//! empty at some moment.
//!
//! If no slot is known to be free and a stealer holds the bit, `push` fails. The owner does not wait for a thread that may
//! have no CPU; neither does a stealer that finds the bit set.
//!
//! A thread that sees that an item was taken (acquire) sees what was added before that: taking is a release too.
//!
//! The bit does what a second index does in tokio's queue, of which this is a variant that is not bounded. In the deque of
//! Chase and Lev (crossbeam's), a stealer reads an item that it may not get. Here no thread reads a slot that it has not
//! claimed: so the slots need no atomics, and those that are replaced can be freed at once.
#![allow(unsafe_code, reason = "a queue without a lock; see the SAFETY comments")]

use std::cell::Cell;
use std::mem::{self, MaybeUninit};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell, latest};

/// The lock bit of `head`.
const BUSY: usize = 1;
/// One slot, in both words.
const ONE: usize = 2;

/// How many slots there are at first. (A model has time for few tasks, and is to see more slots starting.)
const SMALLEST: usize = if cfg!(elastipool_loom) { 2 } else { 64 };

/// So many are not worth giving back.
const SMALL: usize = if cfg!(elastipool_loom) { 2 } else { 1024 };

/// So many times as many slots as items are too many.
const SPARSE: usize = if cfg!(elastipool_loom) { 1 } else { 64 };

/// See the [module's documentation](self).
struct Shared<T> {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    /// A power of two of them.
    slots: UnsafeCell<Box<[Slot<T>]>>,
}

/// Holds something if it is between `head` and `tail`.
struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: items go from one thread to another, and each slot, and all of them, are touched by one thread at a time, as the
// module's documentation says. (They are read by several if these only look where the slots are.)
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

/// The owner's end.
pub(crate) struct Ring<T> {
    shared: Arc<Shared<T>>,
    capacity: Cell<usize>,
    /// The slots of the last round are free up to this one.
    free: Cell<usize>,
    /// Whether an item is being made for the slot at the tail, or the newest item is looked at.
    is_adding: Cell<bool>,
    /// Whether an item is looked at that [`pop`](Ring::pop) might take.
    is_looking: Cell<bool>,
}

/// The end of all others.
pub(crate) struct Stealer<T> {
    shared: Arc<Shared<T>>,
}

/// What [`Stealer::steal`] has come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Steal<T> {
    /// There was nothing to take.
    Empty,
    /// Somebody else was quicker, or is at it.
    Retry,
    Success(T),
}

impl<T> Slot<T> {
    fn new() -> Self {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The slot holds an item, nobody else touches the slot, and the item is read once.
    #[inline]
    unsafe fn read(&self) -> T {
        self.0.with_mut(|slot| {
            // SAFETY: the caller's promise.
            unsafe { (*slot).assume_init_read() }
        })
    }

    /// # Safety
    /// The slot holds an item, and no thread writes to the slot or reads the item out before `look` returns.
    #[inline]
    unsafe fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.0.with(|slot| {
            // SAFETY: the caller's promise.
            look(unsafe { (*slot).assume_init_ref() })
        })
    }

    /// # Safety
    /// Nobody else touches the slot.
    #[inline]
    unsafe fn write(&self, item: T) {
        self.0.with_mut(|slot| {
            // SAFETY: the caller's promise.
            unsafe { (*slot).write(item) };
        });
    }
}

/// Where the slot is that a position, of either word, stands for.
#[inline]
fn at<T>(slots: &[Slot<T>], position: usize) -> &Slot<T> {
    // A power of two, and more than none, as the compiler is told here.
    let last = slots.len().checked_sub(1).expect("there are slots");
    &slots[(position / ONE) & last]
}

/// How many are between two positions: the tail as it was when the head was, or later.
fn between(head: usize, tail: usize) -> usize {
    let distance = tail.wrapping_sub(head & !BUSY);
    debug_assert!(distance <= isize::MAX as usize);
    distance / ONE
}

impl<T> Shared<T> {
    fn len(&self) -> usize {
        // Acquire: what was added before something else was taken, that is, no older a tail. Nothing more is read.
        let head = self.head.load(Ordering::Acquire);
        between(head, self.tail.load(Ordering::Relaxed))
    }

    /// Sets the lock bit, unless it is set; then it writes nothing. Starts with the `head` that the caller has seen, and
    /// returns the one at the moment at which the bit was set.
    #[inline]
    fn lock(&self, mut head: usize) -> Option<(usize, AtIt<'_>)> {
        while head & BUSY == 0 {
            // Acquire: pairs with the release that cleared the bit last. The slots are those of the last resize, the tail is
            // no older than after the last `pop_newest_if`, and all stealers have read what they took.
            let locked = self.head.compare_exchange_weak(
                head,
                head | BUSY,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match locked {
                Ok(_) => return Some((head, AtIt(&self.head))),
                Err(now) => head = now,
            }
        }
        None
    }

    /// # Safety
    /// Nobody replaces the slots meanwhile.
    #[inline]
    unsafe fn with_slots<R>(&self, f: impl FnOnce(&[Slot<T>]) -> R) -> R {
        self.slots.with(|slots| {
            // SAFETY: the caller's promise.
            f(unsafe { &*slots })
        })
    }
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Ring::starting_at(0)
    }

    /// The words may begin with any even number: with a large one, tests see them overflow.
    pub(crate) fn starting_at(position: usize) -> Self {
        let shared = Shared {
            head: CachePadded::new(AtomicUsize::new(position)),
            tail: CachePadded::new(AtomicUsize::new(position)),
            slots: UnsafeCell::new((0..SMALLEST).map(|_| Slot::new()).collect()),
        };
        Ring {
            shared: Arc::new(shared),
            capacity: Cell::new(SMALLEST),
            free: Cell::new(position),
            is_adding: Cell::new(false),
            is_looking: Cell::new(false),
        }
    }

    pub(crate) fn stealer(&self) -> Stealer<T> {
        Stealer { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shared.len() == 0
    }

    /// Adds to the end what `make` makes. If there is no room and somebody is stealing, it is not called, and comes back.
    ///
    /// (Made here: the compiler can write it where it is to be. An item that has just been written word by word is slow
    /// to copy.)
    #[inline]
    pub(crate) fn push<F: FnOnce() -> T>(&self, make: F) -> Result<(), F> {
        // Relaxed: only we change it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        if self.is_full(tail) && !self.make_room(tail) {
            return Err(make);
        }
        // Or the slot might not be free any more.
        assert!(!self.is_adding.replace(true), "nothing else is added meanwhile");
        let adding = FlagGuard(&self.is_adding);
        let item = make();
        // SAFETY: only we replace the slots. This one is free, so nobody else touches it.
        unsafe { self.shared.with_slots(|slots| at(slots, tail).write(item)) };
        drop(adding);
        // Release: the item, for whoever takes it.
        self.shared.tail.store(tail.wrapping_add(ONE), Ordering::Release);
        Ok(())
    }

    /// Whether the slot at the tail is not known to be free.
    #[inline]
    fn is_full(&self, tail: usize) -> bool {
        tail.wrapping_sub(self.free.get()) == self.capacity.get() * ONE
    }

    #[cold]
    fn make_room(&self, tail: usize) -> bool {
        // Acquire: if nobody is at it, all thieves have read what they took.
        let head = self.shared.head.load(Ordering::Acquire);
        if head & BUSY == 0 {
            self.free.set(head);
        }
        !self.is_full(tail) || self.resize(2 * self.capacity.get())
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        debug_assert!(!self.is_looking.get(), "the item is borrowed");
        // Relaxed: only we change it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        let mut head = self.shared.head.load(Ordering::Relaxed);
        while head & !BUSY != tail {
            let next = head.wrapping_add(ONE);
            // Release: what we have added before. Nothing to acquire: the item is our own.
            let taken = self.shared.head.compare_exchange_weak(
                head,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => {
                    // SAFETY: only we replace the slots. We have added this one and moved the head over it, once.
                    return Some(unsafe { self.shared.with_slots(|slots| at(slots, head).read()) });
                }
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes the newest item if `wanted` says so.
    ///
    /// Returns `None` without calling `wanted` if the ring is empty, or if a stealer holds the lock bit at this moment.
    /// `wanted` only looks at the item: it must not use this ring.
    ///
    /// # Panics
    /// If called while an item is made for [`push`](Self::push), which has chosen its slot.
    pub(crate) fn pop_newest_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        assert!(!self.is_adding.replace(true), "no item is made meanwhile");
        let _adding = FlagGuard(&self.is_adding);
        // Relaxed: only the owner changes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        let (head, at_it) = self.lock_unless_empty(tail)?;
        let newest = tail.wrapping_sub(ONE);
        // SAFETY: the bit is ours, and the ring is not empty. If the item is read, the tail moves below it.
        let item = unsafe { self.read_if(newest, wanted) };
        // Relaxed: a stealer relies on the tail only once it has the bit, which `end_at` releases. To all others it is a
        // number.
        if item.is_some() {
            self.shared.tail.store(newest, Ordering::Relaxed);
        }
        at_it.end_at(head);
        item
    }

    /// Takes the oldest item if `wanted` says so.
    ///
    /// Returns `None` without calling `wanted` if the ring is empty, or if a stealer holds the lock bit at this moment.
    /// `wanted` only looks at the item: it must not use this ring.
    pub(crate) fn pop_oldest_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        // Relaxed: only the owner changes it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        let (head, at_it) = self.lock_unless_empty(tail)?;
        // SAFETY: the bit is ours, and the ring is not empty. If the item is read, the head moves over it.
        let item = unsafe { self.read_if(head, wanted) };
        let next = if item.is_some() { head.wrapping_add(ONE) } else { head };
        at_it.end_at(next);
        item
    }

    /// Sets the lock bit, unless it is set or the ring is empty. Returns the head, which no other thread changes then.
    #[inline]
    fn lock_unless_empty(&self, tail: usize) -> Option<(usize, AtIt<'_>)> {
        // Relaxed: a head that is out of date is too low, and makes no ring look empty that is not.
        let seen = self.shared.head.load(Ordering::Relaxed);
        if seen & !BUSY == tail {
            return None;
        }
        // A stealer may have taken the last item since.
        self.shared.lock(seen).filter(|(head, _)| *head != tail)
    }

    /// Looks at the item at a position, and reads it out if it is wanted.
    ///
    /// # Safety
    /// The owner holds the lock bit, and there is an item at `position`. If the item is returned, it is not read again.
    #[inline]
    unsafe fn read_if(&self, position: usize, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.is_looking.set(true);
        let _looking = FlagGuard(&self.is_looking);
        let read_if = |slots: &[Slot<T>]| {
            let slot = at(slots, position);
            // SAFETY: with the bit, only the owner takes items; it does not here, since `wanted` does not use the ring.
            // The owner writes to no slot that holds an item.
            let is_wanted = unsafe { slot.peek(wanted) };
            // SAFETY: as above; and the caller promises that it is not read again.
            is_wanted.then(|| unsafe { slot.read() })
        };
        // SAFETY: only the owner replaces the slots.
        unsafe { self.shared.with_slots(read_if) }
    }

    /// Gives back memory, if a queue of this length needs much less.
    #[inline]
    pub(crate) fn shrink(&self) {
        let capacity = self.capacity.get();
        if capacity > SMALL && self.shared.len() * SPARSE < capacity {
            self.shrink_now();
        }
    }

    #[cold]
    fn shrink_now(&self) {
        // With a quarter of the slots in use it need not grow again soon.
        let enough = (4 * self.shared.len()).next_power_of_two().max(SMALL);
        // If somebody is at it, another time.
        self.resize(enough);
    }

    /// Replaces the slots by so many others, unless the lock bit is set. Allocates nothing in that case.
    fn resize(&self, capacity: usize) -> bool {
        // Relaxed: only what `lock` starts with.
        let seen = self.shared.head.load(Ordering::Relaxed);
        let Some((head, at_it)) = self.shared.lock(seen) else { return false };
        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();
        // Relaxed: only we change it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        self.shared.slots.with_mut(|slots| {
            // SAFETY: nobody else touches the slots while we are at it.
            let slots = unsafe { &mut *slots };
            let mut position = head;
            while position != tail {
                // SAFETY: it was added and has not been taken; here it is not read again.
                let item = unsafe { at(slots, position).read() };
                // SAFETY: nobody else knows of it.
                unsafe { at(&new, position).write(item) };
                position = position.wrapping_add(ONE);
            }
            *slots = new;
        });
        self.free.set(head);
        self.capacity.set(capacity);
        drop(at_it);
        true
    }
}

impl<T> Stealer<T> {
    pub(crate) fn len(&self) -> usize {
        self.shared.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shared.len() == 0
    }

    /// Takes half of what is there, but `limit` at most: returns the oldest and gives the others to `rest`, in their order.
    pub(crate) fn steal(&self, limit: usize, mut rest: impl FnMut(T)) -> Steal<T> {
        // A look before the bit is set, which would disturb the owner. Acquire: as in `len`.
        let seen = self.shared.head.load(Ordering::Acquire);
        if limit == 0 || between(seen, self.shared.tail.load(Ordering::Relaxed)) == 0 {
            return Steal::Empty;
        }
        let Some((mut head, at_it)) = self.shared.lock(seen) else { return Steal::Retry };
        let count = loop {
            // Acquire: the items. From here on the tail does not go back: the bit is ours.
            let tail = self.shared.tail.load(Ordering::Acquire);
            let count = between(head, tail).div_ceil(2).min(limit);
            if count == 0 {
                return Steal::Empty;
            }
            let after = head.wrapping_add(count * ONE);
            // Release: what was done before this taking, for a thread that sees the head (`len`).
            // Acquire: the owner has taken one; the next look at the tail sees what the owner had added before.
            let taken = self.shared.head.compare_exchange_weak(
                head | BUSY,
                after | BUSY,
                Ordering::Release,
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => break count,
                Err(now) => head = now & !BUSY,
            }
        };
        let mut position = head;
        let mut next = |slots: &[Slot<T>]| {
            let slot = at(slots, position);
            position = position.wrapping_add(ONE);
            // SAFETY: it was added, and the head has been moved over it by us alone, for one read.
            unsafe { slot.read() }
        };
        // SAFETY: nobody replaces the slots while we are at it.
        let first = unsafe {
            self.shared.with_slots(|slots| {
                let first = next(slots);
                (1..count).for_each(|_| rest(next(slots)));
                first
            })
        };
        drop(at_it);
        Steal::Success(first)
    }
}

/// Clears the owner's flag when it is dropped.
struct FlagGuard<'a>(&'a Cell<bool>);

impl Drop for FlagGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Holds the lock bit of `head`, and clears it when it is dropped.
struct AtIt<'a>(&'a AtomicUsize);

impl AtIt<'_> {
    /// Sets the head to `position` and clears the bit, both in one store. For the owner: if a stealer holds the bit, the
    /// owner may move the head at any moment.
    #[inline]
    fn end_at(self, position: usize) {
        // Release: pairs with the acquire in `lock`, and in `len`: the tail, and all that stealers have released before.
        self.0.store(position, Ordering::Release);
        mem::forget(self);
    }
}

impl Drop for AtIt<'_> {
    fn drop(&mut self) {
        // Release: we have read what we took, and there may be new slots.
        self.0.fetch_and(!BUSY, Ordering::Release);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let mut head = latest(&mut self.head) & !BUSY;
        let tail = latest(&mut self.tail);
        self.slots.with_mut(|slots| {
            // SAFETY: this is nobody else's any more.
            let slots = unsafe { &*slots };
            while head != tail {
                // SAFETY: it was added and has not been taken.
                drop(unsafe { at(slots, head).read() });
                head = head.wrapping_add(ONE);
            }
        });
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use super::{ONE, Ring, SMALL, SMALLEST, Steal, Stealer};
    use crate::sync::unwind::contain;

    /// Adds them, one after the other.
    #[track_caller]
    fn fill(ring: &Ring<usize>, numbers: Range<usize>) {
        for number in numbers {
            assert!(ring.push(|| number).is_ok(), "nobody steals");
        }
    }

    /// Steals once. What is returned is in the order in which it was added, if all is well.
    fn steal<T>(stealer: &Stealer<T>, limit: usize) -> Steal<Vec<T>> {
        let mut rest = Vec::new();
        match stealer.steal(limit, |item| rest.push(item)) {
            Steal::Success(first) => {
                rest.insert(0, first);
                Steal::Success(rest)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
        }
    }

    fn pop_all(ring: &Ring<usize>) -> Vec<usize> {
        std::iter::from_fn(|| ring.pop()).collect()
    }

    /// How many slots there are; the owner knows it too.
    #[track_caller]
    fn capacity<T>(ring: &Ring<T>) -> usize {
        // SAFETY: this is the owner's thread, and it does nothing else meanwhile.
        let slots = unsafe { ring.shared.with_slots(<[_]>::len) };
        assert_eq!(slots, ring.capacity.get());
        slots
    }

    /// Counts how often it is dropped.
    struct Part<'a>(&'a Cell<usize>);

    impl Drop for Part<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn counters(count: usize) -> Vec<Cell<usize>> {
        vec![Cell::new(0); count]
    }

    fn add_parts<'a>(ring: &Ring<Part<'a>>, counters: &'a [Cell<usize>]) {
        for counter in counters {
            assert!(ring.push(|| Part(counter)).is_ok(), "nobody steals");
        }
    }

    #[track_caller]
    fn all_dropped_once(counters: &[Cell<usize>]) {
        for (number, counter) in counters.iter().enumerate() {
            assert_eq!(counter.get(), 1, "item {number}");
        }
    }

    #[test]
    fn the_order_is_kept_while_it_grows() {
        let ring = Ring::new();
        assert!(ring.is_empty());
        assert_eq!(ring.pop(), None);
        // Neither the oldest nor the newest is in the first slot when the slots are replaced.
        fill(&ring, 0..40);
        assert_eq!((0..30).map_while(|_| ring.pop()).collect::<Vec<_>>(), Vec::from_iter(0..30));
        fill(&ring, 40..10 * SMALLEST);
        assert!(capacity(&ring) > 4 * SMALLEST);
        assert_eq!(ring.stealer().len(), 10 * SMALLEST - 30);
        assert_eq!(pop_all(&ring), Vec::from_iter(30..10 * SMALLEST));
        assert!(ring.is_empty());
    }

    #[test]
    fn what_was_taken_makes_room() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        for round in 0..100 {
            fill(&ring, round * SMALLEST..(round + 1) * SMALLEST);
            assert!(matches!(steal(&stealer, 10), Steal::Success(stolen) if stolen.len() == 10));
            assert_eq!(pop_all(&ring).len(), SMALLEST - 10);
        }
        assert_eq!(capacity(&ring), SMALLEST);
    }

    #[test]
    fn half_is_stolen_and_the_oldest_first() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        assert_eq!(steal(&stealer, 9), Steal::Empty);
        fill(&ring, 0..21);
        assert_eq!(steal(&stealer, 0), Steal::Empty, "nothing is wanted");
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]));
        assert_eq!(steal(&stealer, 3), Steal::Success(vec![1, 2, 3]));
        // Half of 17, rounded up.
        assert_eq!(steal(&stealer, 100), Steal::Success(Vec::from_iter(4..13)));
        assert_eq!(stealer.len(), 8);
        assert_eq!(steal(&stealer, 4), Steal::Success(Vec::from_iter(13..17)));
        assert_eq!(ring.pop(), Some(17));
        assert_eq!(steal(&stealer, usize::MAX), Steal::Success(vec![18, 19]));
        assert_eq!(steal(&stealer, usize::MAX), Steal::Success(vec![20]));
        assert_eq!(steal(&stealer, usize::MAX), Steal::Empty);
        assert!(stealer.is_empty());
    }

    #[test]
    fn nothing_is_added_if_it_is_full_and_somebody_steals() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..SMALLEST);
        let made = Cell::new(0);
        let make = || {
            made.set(made.get() + 1);
            SMALLEST
        };
        let mut given_back = None;
        let stolen = stealer.steal(2, |item| {
            assert_eq!(item, 1);
            given_back = ring.push(make).err();
        });
        assert_eq!(stolen, Steal::Success(0));
        assert_eq!(made.get(), 0, "it was not called");
        let make = given_back.expect("there was no room");
        assert!(ring.push(make).is_ok(), "there is room now");
        assert_eq!(made.get(), 1);
        assert_eq!(capacity(&ring), SMALLEST, "in the slots of those that were stolen");
        assert_eq!(pop_all(&ring), Vec::from_iter(2..=SMALLEST));
    }

    #[test]
    fn while_somebody_steals_the_owner_can_add_and_take() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..10);
        let stolen = stealer.steal(2, |item| {
            assert_eq!(item, 1);
            assert_eq!(steal(&stealer, 1), Steal::Retry, "one at a time");
            assert_eq!(ring.pop(), Some(2));
            fill(&ring, 10..SMALLEST);
            assert_eq!(stealer.len(), SMALLEST - 3);
            assert_eq!(pop_all(&ring), Vec::from_iter(3..SMALLEST));
            assert!(stealer.is_empty());
            assert_eq!(steal(&stealer, 1), Steal::Empty, "nor is there a reason to try again");
        });
        assert_eq!(stolen, Steal::Success(0));
        fill(&ring, 0..1);
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]));
    }

    #[test]
    fn memory_is_given_back() {
        let ring = Ring::new();
        fill(&ring, 0..70_000);
        let large = capacity(&ring);
        for number in 0..68_500 {
            ring.shrink();
            assert_eq!(ring.pop(), Some(number));
        }
        assert!(large >= 70_000);
        // More is left than the smallest size that it shrinks to could hold.
        assert!(ring.stealer().len() > SMALL);
        ring.shrink();
        assert!((1500..large / 8).contains(&capacity(&ring)));
        fill(&ring, 70_000..90_000);
        assert_eq!(pop_all(&ring), Vec::from_iter(68_500..90_000));
        ring.shrink();
        assert_eq!(capacity(&ring), SMALL);
        ring.shrink();
        assert_eq!(capacity(&ring), SMALL);
        // All of the new slots are free, and no more than these.
        fill(&ring, 0..3 * SMALL);
        assert_eq!(pop_all(&ring), Vec::from_iter(0..3 * SMALL));
    }

    #[test]
    fn memory_is_kept_while_somebody_steals() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..4 * SMALL);
        for number in 0..4 * SMALL - 2 {
            assert_eq!(ring.pop(), Some(number));
        }
        fill(&ring, 0..2);
        let large = capacity(&ring);
        let stolen = stealer.steal(2, |_| {
            ring.shrink();
            assert_eq!(capacity(&ring), large);
        });
        assert_eq!(stolen, Steal::Success(4 * SMALL - 2));
        ring.shrink();
        assert_eq!(capacity(&ring), SMALL);
        assert_eq!(pop_all(&ring), [0, 1]);
    }

    #[test]
    fn each_item_is_dropped_once() {
        let counters = counters(3 * SMALLEST);
        let ring = Ring::new();
        let stealer = ring.stealer();
        add_parts(&ring, &counters);
        assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 0, "not by growing");
        drop(ring.pop());
        drop(steal(&stealer, 5));
        assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 6);
        drop(ring);
        assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 6, "others can still steal");
        drop(steal(&stealer, 5));
        drop(stealer);
        all_dropped_once(&counters);
    }

    /// The items that were on their way are lost then, the others are not.
    #[test]
    fn a_thief_may_panic() {
        let counters = counters(2 * SMALLEST);
        let ring = Ring::new();
        let stealer = ring.stealer();
        add_parts(&ring, &counters[..10]);
        let mut count = 0;
        let panicked = contain(|| {
            drop(stealer.steal(5, |_part| {
                count += 1;
                assert_ne!(count, 2, "on purpose");
            }));
        });
        assert!(panicked.is_err());
        // The first one was to be returned, and two were given away.
        all_dropped_once(&counters[..3]);
        assert_eq!(ring.stealer().len(), 5);
        // Nobody is at it any more: there is somebody else's turn, and it can grow.
        assert!(matches!(steal(&stealer, 1), Steal::Success(_)));
        add_parts(&ring, &counters[10..]);
        assert!(capacity(&ring) > SMALLEST);
        drop((ring, stealer));
        assert_eq!(counters[3..5], [Cell::new(0), Cell::new(0)], "leaked");
        all_dropped_once(&counters[5..]);
    }

    #[test]
    fn what_is_not_made_is_not_added() {
        let ring = Ring::new();
        fill(&ring, 0..1);
        assert!(contain(|| ring.push(|| panic!("on purpose")).is_ok()).is_err());
        fill(&ring, 1..2);
        assert_eq!(pop_all(&ring), [0, 1]);
    }

    /// Whoever makes an item may use the queue in all other ways, also such that the slots are replaced.
    #[test]
    fn an_item_is_made_while_others_are_taken() {
        let ring = Ring::new();
        fill(&ring, 0..4 * SMALL);
        let large = capacity(&ring);
        let make = || {
            assert_eq!(pop_all(&ring).len(), 4 * SMALL);
            ring.shrink();
            7
        };
        assert!(ring.push(make).is_ok());
        assert!(capacity(&ring) < large);
        assert_eq!(pop_all(&ring), [7]);
    }

    #[test]
    fn an_item_may_not_add_another() {
        let ring = Ring::new();
        let outer = contain(|| {
            let make = || {
                assert!(ring.push(|| 1).is_ok());
                2
            };
            ring.push(make).is_ok()
        });
        assert!(outer.is_err());
        assert!(ring.is_empty());
        assert!(ring.push(|| 3).is_ok());
        assert_eq!(pop_all(&ring), [3]);
    }

    #[test]
    fn what_is_not_wanted_stays() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        assert_eq!(ring.pop_oldest_if(|_| unreachable!("it is empty")), None);
        assert_eq!(ring.pop_newest_if(|_| unreachable!("it is empty")), None);
        fill(&ring, 0..3);
        assert_eq!(ring.pop_oldest_if(|&item| item != 0), None);
        assert_eq!(ring.pop_newest_if(|&item| item != 2), None);
        assert_eq!(stealer.len(), 3);
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]), "the bit is clear");
        assert_eq!(ring.pop_newest_if(|&item| item == 2), Some(2));
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![1]), "the bit is clear");
        assert!(ring.is_empty());
        fill(&ring, 3..5);
        assert_eq!(ring.pop_oldest_if(|&item| item == 3), Some(3));
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![4]), "the bit is clear");
        assert_eq!(ring.pop_oldest_if(|_| unreachable!("it is empty")), None);
        assert_eq!(ring.pop_newest_if(|_| unreachable!("it is empty")), None);
    }

    #[test]
    fn nothing_is_looked_at_while_a_stealer_holds_the_bit() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..10);
        let stolen = stealer.steal(2, |_| {
            assert_eq!(ring.pop_oldest_if(|_| unreachable!("the bit is set")), None);
            assert_eq!(ring.pop_newest_if(|_| unreachable!("the bit is set")), None);
            assert_eq!(steal(&stealer, 1), Steal::Retry, "it is still set");
        });
        assert_eq!(stolen, Steal::Success(0));
        assert_eq!(ring.pop_oldest_if(|_| true), Some(2));
        assert_eq!(ring.pop_newest_if(|_| true), Some(9));
        assert_eq!(pop_all(&ring), Vec::from_iter(3..9));
    }

    #[test]
    fn no_stealer_begins_while_an_item_is_looked_at() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..2);
        let is_kept_from_stealers = |_: &_| {
            assert_eq!(steal(&stealer, 1), Steal::Retry);
            assert_eq!(stealer.len(), 2);
            ring.shrink();
            false
        };
        assert_eq!(ring.pop_oldest_if(is_kept_from_stealers), None);
        assert_eq!(ring.pop_newest_if(is_kept_from_stealers), None);
        assert_eq!(pop_all(&ring), [0, 1]);
    }

    /// The slot of the newest is used again at once: the ring does not grow.
    #[test]
    fn the_newest_makes_room() {
        let ring = Ring::starting_at(0_usize.wrapping_sub(2 * ONE));
        fill(&ring, 0..SMALLEST);
        for number in SMALLEST..10 * SMALLEST {
            assert_eq!(ring.pop_newest_if(|_| true), Some(number - 1));
            fill(&ring, number..number + 1);
        }
        assert_eq!(capacity(&ring), SMALLEST);
        assert_eq!(ring.stealer().len(), SMALLEST);
        let items = pop_all(&ring);
        assert_eq!(items[..SMALLEST - 1], Vec::from_iter(0..SMALLEST - 1));
        assert_eq!(items[SMALLEST - 1..], [10 * SMALLEST - 1]);
    }

    #[test]
    fn either_end_is_dropped_once() {
        let counters = counters(2 * SMALLEST);
        let ring = Ring::new();
        let stealer = ring.stealer();
        add_parts(&ring, &counters);
        let dropped = || counters.iter().map(Cell::get).sum::<usize>();
        assert!(ring.pop_newest_if(|_| false).is_none());
        assert!(ring.pop_oldest_if(|_| false).is_none());
        assert_eq!(dropped(), 0, "not by a look");
        drop(ring.pop_newest_if(|_| true));
        drop(ring.pop_oldest_if(|_| true));
        assert_eq!(dropped(), 2);
        all_dropped_once(&counters[..1]);
        all_dropped_once(&counters[2 * SMALLEST - 1..]);
        drop(steal(&stealer, 5));
        drop((ring, stealer));
        all_dropped_once(&counters);
    }

    #[test]
    fn a_look_may_panic() {
        let ring = Ring::new();
        let stealer = ring.stealer();
        fill(&ring, 0..4);
        let look = |_: &_| panic!("on purpose");
        assert!(contain(|| ring.pop_newest_if(look)).is_err());
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]), "the bit is clear");
        assert!(contain(|| ring.pop_oldest_if(look)).is_err());
        assert_eq!(steal(&stealer, 1), Steal::Success(vec![1]), "the bit is clear");
        fill(&ring, 4..5);
        assert_eq!(ring.pop_newest_if(|_| true), Some(4));
        assert_eq!(pop_all(&ring), [2, 3]);
    }

    /// An item that is being made has its slot already.
    #[test]
    fn the_newest_stays_while_an_item_is_made() {
        let ring = Ring::new();
        fill(&ring, 0..2);
        let make = || ring.pop_newest_if(|_| true).expect("there is one");
        assert!(contain(|| ring.push(make).is_ok()).is_err());
        let make = || ring.pop_oldest_if(|_| true).expect("there is one") + 10;
        assert!(ring.push(make).is_ok());
        assert_eq!(pop_all(&ring), [1, 10]);
    }

    #[test]
    fn a_look_at_the_newest_adds_nothing() {
        let ring = Ring::new();
        fill(&ring, 0..1);
        assert!(contain(|| ring.pop_newest_if(|_| ring.push(|| 1).is_ok())).is_err());
        fill(&ring, 1..2);
        assert_eq!(pop_all(&ring), [0, 1]);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_look_takes_nothing() {
        let ring = Ring::new();
        fill(&ring, 0..1);
        assert!(contain(|| ring.pop_newest_if(|_| ring.pop().is_some())).is_err());
        assert!(contain(|| ring.pop_oldest_if(|_| ring.pop().is_some())).is_err());
        assert_eq!(pop_all(&ring), [0]);
    }

    /// Random steps, compared with those of a queue that is right. The words overflow at once, soon, or later.
    #[test]
    fn as_a_deque_would_do_it() {
        let mut random = fastrand::Rng::with_seed(42);
        for distance in [0, 1, SMALLEST / 2, SMALLEST, 1000] {
            let ring = Ring::starting_at(0_usize.wrapping_sub(distance * ONE));
            let stealer = ring.stealer();
            let mut expected = VecDeque::new();
            let mut last = 0;
            for _ in 0..2000 {
                match random.usize(..14) {
                    0..4 => {
                        let next = last + random.usize(..40);
                        fill(&ring, last..next);
                        expected.extend(last..next);
                        last = next;
                    }
                    4..7 => {
                        for _ in 0..random.usize(..40) {
                            assert_eq!(ring.pop(), expected.pop_front());
                        }
                    }
                    7..9 => {
                        let limit = random.usize(1..40);
                        let count = expected.len().div_ceil(2).min(limit);
                        let oldest = Vec::from_iter(expected.drain(..count));
                        let stolen = steal(&stealer, limit);
                        match stolen {
                            Steal::Success(stolen) => assert_eq!(stolen, oldest),
                            Steal::Empty => assert_eq!(count, 0),
                            Steal::Retry => panic!("nobody else is there"),
                        }
                    }
                    9 => ring.shrink(),
                    10..12 => {
                        for _ in 0..random.usize(..40) {
                            let is_wanted = random.u8(..8) > 0;
                            let oldest = ring.pop_oldest_if(|item| {
                                assert_eq!(Some(item), expected.front());
                                is_wanted
                            });
                            let front = if is_wanted { expected.pop_front() } else { None };
                            assert_eq!(oldest, front);
                        }
                    }
                    _ => {
                        for _ in 0..random.usize(..40) {
                            let is_wanted = random.u8(..8) > 0;
                            let newest = ring.pop_newest_if(|item| {
                                assert_eq!(Some(item), expected.back());
                                is_wanted
                            });
                            let back = if is_wanted { expected.pop_back() } else { None };
                            assert_eq!(newest, back);
                        }
                    }
                }
                assert_eq!(stealer.len(), expected.len());
                assert_eq!(ring.is_empty(), expected.is_empty());
            }
            assert_eq!(pop_all(&ring), Vec::from(expected));
        }
    }

    /// Each item comes to one of them, and to each of them in the order of their addition.
    #[test]
    fn three_steal_from_one() {
        const COUNT: usize = 200_000;
        let taken = Vec::from_iter((0..COUNT).map(|_| AtomicUsize::new(0)));
        let is_over = AtomicBool::new(false);
        // Boxes: what is read twice is freed twice.
        let note = |last: &mut Option<usize>, item: Box<usize>| {
            assert!(last.replace(*item) < Some(*item), "in order");
            taken[*item].fetch_add(1, Ordering::Relaxed);
        };
        let ring = Ring::starting_at(0_usize.wrapping_sub(COUNT / 2 * ONE));
        thread::scope(|scope| {
            for limit in [1, 5, 32] {
                let (stealer, is_over) = (ring.stealer(), &is_over);
                scope.spawn(move || {
                    let mut last = None;
                    loop {
                        // Seen before the look at the queue: whatever was added is there.
                        let was_over = is_over.load(Ordering::Acquire);
                        match steal(&stealer, limit) {
                            Steal::Success(stolen) => {
                                stolen.into_iter().for_each(|item| note(&mut last, item));
                            }
                            Steal::Empty if was_over => break,
                            Steal::Empty | Steal::Retry => thread::yield_now(),
                        }
                    }
                });
            }
            let mut random = fastrand::Rng::with_seed(7);
            let mut numbers = 0..COUNT;
            let mut last = None;
            while !numbers.is_empty() {
                // Often some, rarely many; and as many are taken.
                let burst = if random.u8(..) < 8 { 4000 } else { random.usize(..200) };
                for number in numbers.by_ref().take(burst) {
                    if ring.push(|| Box::new(number)).is_err() {
                        taken[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
                let count = if random.bool() { burst } else { random.usize(..=burst) };
                for item in std::iter::from_fn(|| ring.pop()).take(count) {
                    note(&mut last, item);
                }
                ring.shrink();
            }
            is_over.store(true, Ordering::Release);
        });
        assert!(ring.is_empty());
        for (number, taken) in taken.iter().enumerate() {
            assert_eq!(taken.load(Ordering::Relaxed), 1, "item {number}");
        }
    }

    /// A stealer, and an owner that takes from both ends: each item is taken once. The ring is short most of the time, so
    /// that both want the same items.
    #[test]
    fn both_ends_versus_a_stealer() {
        const COUNT: usize = 200_000;
        let taken = Vec::from_iter((0..COUNT).map(|_| AtomicUsize::new(0)));
        let is_over = AtomicBool::new(false);
        // Boxes: what is read twice is freed twice.
        let note = |item: Box<usize>| taken[*item].fetch_add(1, Ordering::Relaxed);
        let ring = Ring::<Box<usize>>::starting_at(0_usize.wrapping_sub(COUNT / 4 * ONE));
        thread::scope(|scope| {
            let (stealer, is_over, note) = (ring.stealer(), &is_over, &note);
            scope.spawn(move || {
                let mut last = None;
                let mut random = fastrand::Rng::with_seed(3);
                loop {
                    // Seen before the look at the queue: what was added before is there.
                    let was_over = is_over.load(Ordering::Acquire);
                    match steal(&stealer, random.usize(1..8)) {
                        Steal::Success(stolen) => stolen.into_iter().for_each(|item| {
                            assert!(last.replace(*item) < Some(*item), "in order");
                            note(item);
                        }),
                        Steal::Empty if was_over => break,
                        Steal::Empty | Steal::Retry => thread::yield_now(),
                    }
                }
            });
            let mut random = fastrand::Rng::with_seed(8);
            let mut numbers = 0..COUNT;
            while !numbers.is_empty() {
                let burst = if random.u8(..) < 8 { 1000 } else { random.usize(..6) };
                for number in numbers.by_ref().take(burst) {
                    if ring.push(|| Box::new(number)).is_err() {
                        taken[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
                for _ in 0..random.usize(..=burst + 1) {
                    let is_wanted = random.u8(..4) > 0;
                    let look = |number: usize| {
                        assert_eq!(taken[number].load(Ordering::Relaxed), 0, "not taken yet");
                        is_wanted
                    };
                    let item = match random.u8(..3) {
                        0 => ring.pop_newest_if(|number| look(**number)),
                        1 => ring.pop_oldest_if(|number| look(**number)),
                        _ => ring.pop(),
                    };
                    item.map(note);
                }
                ring.shrink();
            }
            is_over.store(true, Ordering::Release);
        });
        assert!(ring.is_empty());
        for (number, taken) in taken.iter().enumerate() {
            assert_eq!(taken.load(Ordering::Relaxed), 1, "item {number}");
        }
    }
}
