//! A queue that one thread adds to and takes from, and that others steal from: first in, first out, and it grows.
//!
//! A ring of slots, and two words that count them on and on: `tail` counts what was added and is changed by the owner alone;
//! `head` counts what was taken, by anybody. Bit 0 of `head` says that somebody is *at it*: a thief who reads what it
//! has taken, or the owner who replaces the slots by more or fewer. Meanwhile nobody else begins to steal; the owner can
//! take all the same.
//!
//! | who | does | to |
//! |---|---|---|
//! | owner, adds | writes the slot, then stores `tail` (release) | a slot that is free, see below |
//! | owner, takes | moves `head` on by one, then reads the slot | the slot that it has moved over |
//! | thief | moves `head` on and sets the bit, in one step; reads the slots; clears the bit (release) | the slots that it has moved over |
//! | owner, resizes | sets the bit; replaces the slots, with what is between `head` and `tail`; clears the bit (release) | all slots |
//!
//! So each slot is read once, by whoever has moved `head` over it. It is *free* for the next round when it has been read:
//! when `head` was beyond it at a moment at which the bit was not set. The owner remembers how far that was when it last
//! looked, and looks again (acquire) when the ring seems to be full. The slots are replaced by the owner while the bit
//! is its own, and touched by thieves only while the bit is theirs.
//!
//! If no slot is known to be free and a thief is at it, nothing can be added. The owner is told so, and need not wait for a
//! thread that may have no CPU. A thief that comes while somebody is at it is told so as well.
//!
//! Whoever sees that something was taken (acquire) sees what was added before that: taking is a release too.
//!
//! The bit does what a second index does in tokio's queue, of which this is a variant that is not bounded. It differs from
//! the deque of Chase and Lev (crossbeam's) in that nobody reads what may not be his: so the slots need no
//! atomics, and those that are replaced can be freed at once.
#![allow(unsafe_code, reason = "a queue without a lock; see the SAFETY comments")]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell, latest};

/// Somebody is at it.
const BUSY: usize = 1;
/// One slot, in both words.
const ONE: usize = 2;

/// How many slots there are at first. (A model has time for few tasks, and is to see more slots coming.)
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
    /// Whether an item is being made for the slot at the tail.
    is_adding: Cell<bool>,
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
        let adding = Adding(&self.is_adding);
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

    /// Replaces the slots by so many others, unless somebody is at it.
    fn resize(&self, capacity: usize) -> bool {
        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();
        let head = self.shared.head.fetch_or(BUSY, Ordering::Acquire);
        if head & BUSY != 0 {
            return false;
        }
        let at_it = AtIt(&self.shared.head);
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
        // Acquire: as in `len`.
        let head = self.shared.head.load(Ordering::Acquire);
        // Acquire: the items.
        let count = between(head, self.shared.tail.load(Ordering::Acquire)).div_ceil(2).min(limit);
        if count == 0 {
            return Steal::Empty;
        }
        if head & BUSY != 0 {
            return Steal::Retry;
        }
        let after = head.wrapping_add(count * ONE);
        // Acquire: the slots, if they were replaced.
        let taken = self.shared.head.compare_exchange(
            head,
            after | BUSY,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return Steal::Retry;
        }
        let at_it = AtIt(&self.shared.head);
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

/// Says that nothing is being added any more when it is dropped.
struct Adding<'a>(&'a Cell<bool>);

impl Drop for Adding<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Clears the bit when it is dropped.
struct AtIt<'a>(&'a AtomicUsize);

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
    use crate::unwind::contain;

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
                match random.usize(..10) {
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
                    _ => ring.shrink(),
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
}
