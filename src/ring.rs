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
//! If the ring is full and a thief is at it, nothing can be added. The owner is told so, and need not wait for a thread
//! that may have no CPU.
//!
//! Whoever sees that something was taken (acquire) sees what was added before that: taking is a release too.
//!
//! The bit does what a second index does in tokio's queue, of which this is a variant that is not bounded. It differs from
//! the deque of Chase and Lev (crossbeam's) in that nobody reads what may not be his: so the slots need no
//! atomics, and those that are replaced can be freed at once.
#![allow(unsafe_code, reason = "a queue without a lock; see the SAFETY comments")]

use std::cell::Cell;
use std::marker::PhantomData;
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
    /// There is one owner, on one thread at a time.
    _alone: PhantomData<Cell<T>>,
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

/// How many are between two positions. None if they do not belong together: the words are not read at the same time.
fn between(head: usize, tail: usize) -> usize {
    let distance = tail.wrapping_sub(head & !BUSY);
    if distance > isize::MAX as usize { 0 } else { distance / ONE }
}

impl<T> Shared<T> {
    fn len(&self) -> usize {
        // Acquire: what was added before something else was taken.
        let head = self.head.load(Ordering::Acquire);
        between(head, self.tail.load(Ordering::Acquire))
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
        let shared = Shared {
            head: CachePadded::new(AtomicUsize::new(0)),
            tail: CachePadded::new(AtomicUsize::new(0)),
            slots: UnsafeCell::new((0..SMALLEST).map(|_| Slot::new()).collect()),
        };
        Ring {
            shared: Arc::new(shared),
            capacity: Cell::new(SMALLEST),
            free: Cell::new(0),
            _alone: PhantomData,
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
    /// (Made where it is to be: an item that has just been written word by word is slow to copy.)
    #[inline]
    pub(crate) fn push<F: FnOnce() -> T>(&self, make: F) -> Result<(), F> {
        // Relaxed: only we change it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        if self.is_full(tail) && !self.make_room(tail) {
            return Err(make);
        }
        let item = make();
        // Or the slot might not be free any more.
        assert_eq!(
            self.shared.tail.load(Ordering::Relaxed),
            tail,
            "nothing else is added meanwhile"
        );
        // SAFETY: only we replace the slots. This one is free, so nobody else touches it.
        unsafe { self.shared.with_slots(|slots| at(slots, tail).write(item)) };
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
        let head = self.shared.head.fetch_or(BUSY, Ordering::Acquire);
        if head & BUSY != 0 {
            return false;
        }
        // Relaxed: only we change it.
        let tail = self.shared.tail.load(Ordering::Relaxed);
        let new: Box<[Slot<T>]> = (0..capacity).map(|_| Slot::new()).collect();
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
        // Release: the slots, for the next thief.
        self.shared.head.fetch_and(!BUSY, Ordering::Release);
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

/// Clears the bit when it is dropped.
struct AtIt<'a>(&'a AtomicUsize);

impl Drop for AtIt<'_> {
    fn drop(&mut self) {
        // Release: we have read what we took.
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
