//! Each operation of the ring on one thread.

mod stress;

use std::cell::Cell;
use std::ops::Range;

use super::{INITIAL_CAPACITY, ONE, Ring, Steal, Stealer};
use crate::sync::unwind::contain;

impl<T> Ring<T> {
    fn push(&self, item: T) -> Result<(), T> {
        self.push_with(|| item).map_err(|make| make())
    }

    pub(in crate::queue) fn has_slots(&self) -> bool {
        self.capacity.get() > 0
    }
}

/// Pushes the numbers in their order.
#[track_caller]
fn fill(ring: &Ring<usize>, numbers: Range<usize>) {
    for number in numbers {
        assert!(ring.push(number).is_ok(), "no steal is in progress");
    }
}

/// Steals once. Returns the items with the oldest first.
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

/// Returns the number of slots, which the owner must know too.
#[track_caller]
fn capacity<T>(ring: &Ring<T>) -> usize {
    // SAFETY: this is the owner's thread, and only the owner replaces the slots.
    let slots = unsafe { ring.shared.with_slots(<[_]>::len) };
    assert_eq!(slots, ring.capacity.get());
    slots
}

/// Counts its drops.
struct Part<'a>(&'a Cell<usize>);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn counters(count: usize) -> Vec<Cell<usize>> {
    vec![Cell::new(0); count]
}

fn push_parts<'a>(ring: &Ring<Part<'a>>, counters: &'a [Cell<usize>]) {
    for counter in counters {
        assert!(ring.push(Part(counter)).is_ok(), "no steal is in progress");
    }
}

#[track_caller]
fn all_dropped_once(counters: &[Cell<usize>]) {
    for (number, counter) in counters.iter().enumerate() {
        assert_eq!(counter.get(), 1, "item {number}");
    }
}

#[test]
fn growth_keeps_the_order() {
    let ring = Ring::new();
    assert!(ring.is_empty());
    assert_eq!(ring.pop(), None);
    // When the ring grows, neither the oldest nor the newest item is in the first slot.
    fill(&ring, 0..40);
    assert_eq!((0..30).map_while(|_| ring.pop()).collect::<Vec<_>>(), Vec::from_iter(0..30));
    fill(&ring, 40..10 * INITIAL_CAPACITY);
    assert!(capacity(&ring) > 4 * INITIAL_CAPACITY);
    assert_eq!(ring.stealer().len(), 10 * INITIAL_CAPACITY - 30);
    assert_eq!(pop_all(&ring), Vec::from_iter(30..10 * INITIAL_CAPACITY));
    assert!(ring.is_empty());
}

#[test]
fn slots_of_taken_items_are_reused() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    for round in 0..100 {
        fill(&ring, round * INITIAL_CAPACITY..(round + 1) * INITIAL_CAPACITY);
        assert!(matches!(steal(&stealer, 10), Steal::Success(stolen) if stolen.len() == 10));
        assert_eq!(pop_all(&ring).len(), INITIAL_CAPACITY - 10);
    }
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
}

#[test]
fn half_is_stolen_with_the_oldest_first() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    assert_eq!(steal(&stealer, 9), Steal::Empty);
    fill(&ring, 0..21);
    assert_eq!(steal(&stealer, 0), Steal::Empty, "the limit is zero");
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
fn a_full_ring_rejects_a_push_during_a_steal() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..INITIAL_CAPACITY);
    let mut rejected = None;
    let stolen = stealer.steal(2, |item| {
        assert_eq!(item, 1);
        rejected = ring.push(INITIAL_CAPACITY).err();
    });
    assert_eq!(stolen, Steal::Success(0));
    let rejected = rejected.expect("the ring was full");
    assert!(ring.push(rejected).is_ok(), "slots are free now");
    assert_eq!(capacity(&ring), INITIAL_CAPACITY, "the stolen items' slots are reused");
    assert_eq!(pop_all(&ring), Vec::from_iter(2..=INITIAL_CAPACITY));
}

/// An allocation of this many slots panics.
#[test]
fn a_resize_during_a_steal_allocates_nothing() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..4);
    let mut resized = None;
    let stolen = stealer.steal(2, |_| resized = Some(ring.resize(usize::MAX)));
    assert_eq!(stolen, Steal::Success(0));
    assert_eq!(resized, Some(false));
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
}

#[test]
fn the_owner_pushes_and_pops_during_a_steal() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..10);
    let stolen = stealer.steal(2, |item| {
        assert_eq!(item, 1);
        assert_eq!(steal(&stealer, 1), Steal::Retry, "the bit is set");
        assert_eq!(ring.pop(), Some(2));
        fill(&ring, 10..INITIAL_CAPACITY);
        assert_eq!(stealer.len(), INITIAL_CAPACITY - 3);
        assert_eq!(pop_all(&ring), Vec::from_iter(3..INITIAL_CAPACITY));
        assert!(stealer.is_empty());
        assert_eq!(steal(&stealer, 1), Steal::Empty, "an empty ring needs no retry");
    });
    assert_eq!(stolen, Steal::Success(0));
    fill(&ring, 0..1);
    assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]));
}

#[test]
fn memory_is_freed() {
    let ring = Ring::new();
    fill(&ring, 0..70_000);
    let large = capacity(&ring);
    for number in 0..68_500 {
        ring.shrink();
        assert_eq!(ring.pop(), Some(number));
    }
    assert!(large >= 70_000);
    // The items that are left need more than the smallest capacity.
    assert!(ring.stealer().len() > INITIAL_CAPACITY);
    ring.shrink();
    assert!((1500..large / 8).contains(&capacity(&ring)));
    fill(&ring, 70_000..90_000);
    assert_eq!(pop_all(&ring), Vec::from_iter(68_500..90_000));
    ring.shrink();
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
    ring.shrink();
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
    // Exactly the new slots are free.
    fill(&ring, 0..3 * INITIAL_CAPACITY);
    assert_eq!(pop_all(&ring), Vec::from_iter(0..3 * INITIAL_CAPACITY));
}

#[test]
fn a_new_or_released_ring_has_no_slots_until_the_next_push() {
    let ring = Ring::starting_at(0_usize.wrapping_sub(70 * ONE));
    assert_eq!((capacity(&ring), ring.pop()), (0, None));
    fill(&ring, 0..40);
    assert!(!ring.release(), "it holds items");
    assert_eq!(pop_all(&ring), Vec::from_iter(0..40));
    for _ in 0..2 {
        assert!(ring.release());
        assert_eq!((capacity(&ring), ring.pop(), ring.stealer().len()), (0, None, 0));
        assert_eq!(ring.stealer().steal(8, |_| unreachable!("it is empty")), Steal::Empty);
        assert_eq!(ring.pop_newest_if(|_| true), None);
        ring.shrink();
    }
    fill(&ring, 0..200);
    assert_eq!(
        ring.stealer().steal(1, |_| unreachable!("a steal of one item has no rest")),
        Steal::Success(0)
    );
    assert_eq!(pop_all(&ring), Vec::from_iter(1..200));
}

#[test]
fn a_ring_does_not_shrink_during_a_steal() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..4 * INITIAL_CAPACITY);
    for number in 0..4 * INITIAL_CAPACITY - 2 {
        assert_eq!(ring.pop(), Some(number));
    }
    fill(&ring, 0..2);
    let large = capacity(&ring);
    let stolen = stealer.steal(2, |_| {
        ring.shrink();
        assert_eq!(capacity(&ring), large);
    });
    assert_eq!(stolen, Steal::Success(4 * INITIAL_CAPACITY - 2));
    ring.shrink();
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
    assert_eq!(pop_all(&ring), [0, 1]);
}

#[test]
fn each_item_is_dropped_once() {
    let counters = counters(3 * INITIAL_CAPACITY);
    let ring = Ring::new();
    let stealer = ring.stealer();
    push_parts(&ring, &counters);
    assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 0, "growth drops nothing");
    drop(ring.pop());
    drop(steal(&stealer, 5));
    assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 6);
    drop(ring);
    assert_eq!(counters.iter().map(Cell::get).sum::<usize>(), 6, "the stealer keeps the items");
    drop(steal(&stealer, 5));
    drop(stealer);
    all_dropped_once(&counters);
}

/// Items that were claimed and not read out leak. The others stay.
#[test]
fn a_panic_during_a_steal_leaks_only_claimed_items() {
    let counters = counters(2 * INITIAL_CAPACITY);
    let ring = Ring::new();
    let stealer = ring.stealer();
    push_parts(&ring, &counters[..10]);
    let mut count = 0;
    let panicked = contain(|| {
        drop(stealer.steal(5, |_part| {
            count += 1;
            assert_ne!(count, 2, "on purpose");
        }));
    });
    assert!(panicked.is_err());
    // The first one was held for the return, and two were passed to `rest`.
    all_dropped_once(&counters[..3]);
    assert_eq!(ring.stealer().len(), 5);
    // The bit is clear: another steal succeeds, and the ring can grow.
    assert!(matches!(steal(&stealer, 1), Steal::Success(_)));
    push_parts(&ring, &counters[10..]);
    assert!(capacity(&ring) > INITIAL_CAPACITY);
    drop((ring, stealer));
    assert_eq!(counters[3..5], [Cell::new(0), Cell::new(0)], "leaked");
    all_dropped_once(&counters[5..]);
}

#[test]
fn an_unwanted_item_stays() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    assert_eq!(ring.pop_newest_if(|_| unreachable!("it is empty")), None);
    fill(&ring, 0..3);
    assert_eq!(ring.pop_newest_if(|&item| item != 2), None);
    assert_eq!(stealer.len(), 3);
    assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]), "the bit is clear");
    assert_eq!(ring.pop_newest_if(|&item| item == 2), Some(2));
    assert_eq!(steal(&stealer, 1), Steal::Success(vec![1]), "the bit is clear");
    assert!(ring.is_empty());
    assert_eq!(ring.pop_newest_if(|_| unreachable!("it is empty")), None);
}

#[test]
fn no_item_is_examined_while_a_stealer_holds_the_bit() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..10);
    let stolen = stealer.steal(2, |_| {
        assert_eq!(ring.pop_newest_if(|_| unreachable!("the bit is set")), None);
        assert_eq!(steal(&stealer, 1), Steal::Retry, "the bit is still set");
    });
    assert_eq!(stolen, Steal::Success(0));
    assert_eq!(ring.pop_newest_if(|_| true), Some(9));
    assert_eq!(pop_all(&ring), Vec::from_iter(2..9));
}

#[test]
fn no_steal_succeeds_while_an_item_is_examined() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..2);
    let refuse_stealers = |_: &_| {
        assert_eq!(steal(&stealer, 1), Steal::Retry);
        assert_eq!(stealer.len(), 2);
        ring.shrink();
        false
    };
    assert_eq!(ring.pop_newest_if(refuse_stealers), None);
    assert_eq!(pop_all(&ring), [0, 1]);
}

/// The next push reuses the slot of the newest item, so the ring does not grow.
#[test]
fn the_newest_items_slot_is_reused() {
    let ring = Ring::starting_at(0_usize.wrapping_sub(2 * ONE));
    fill(&ring, 0..INITIAL_CAPACITY);
    for number in INITIAL_CAPACITY..10 * INITIAL_CAPACITY {
        assert_eq!(ring.pop_newest_if(|_| true), Some(number - 1));
        fill(&ring, number..number + 1);
    }
    assert_eq!(capacity(&ring), INITIAL_CAPACITY);
    assert_eq!(ring.stealer().len(), INITIAL_CAPACITY);
    let items = pop_all(&ring);
    assert_eq!(items[..INITIAL_CAPACITY - 1], Vec::from_iter(0..INITIAL_CAPACITY - 1));
    assert_eq!(items[INITIAL_CAPACITY - 1..], [10 * INITIAL_CAPACITY - 1]);
}

#[test]
fn examined_items_are_dropped_once() {
    let counters = counters(2 * INITIAL_CAPACITY);
    let ring = Ring::new();
    let stealer = ring.stealer();
    push_parts(&ring, &counters);
    let dropped = || counters.iter().map(Cell::get).sum::<usize>();
    assert!(ring.pop_newest_if(|_| false).is_none());
    assert_eq!(dropped(), 0, "examining drops nothing");
    drop(ring.pop_newest_if(|_| true));
    assert_eq!(dropped(), 1);
    all_dropped_once(&counters[2 * INITIAL_CAPACITY - 1..]);
    drop(steal(&stealer, 5));
    drop((ring, stealer));
    all_dropped_once(&counters);
}

#[test]
fn a_panic_in_wanted_clears_the_bit() {
    let ring = Ring::new();
    let stealer = ring.stealer();
    fill(&ring, 0..4);
    let look = |_: &_| panic!("on purpose");
    assert!(contain(|| ring.pop_newest_if(look)).is_err());
    assert_eq!(steal(&stealer, 1), Steal::Success(vec![0]), "the bit is clear");
    fill(&ring, 4..5);
    assert_eq!(ring.pop_newest_if(|_| true), Some(4));
    assert_eq!(pop_all(&ring), [1, 2, 3]);
}

#[test]
#[cfg(debug_assertions)]
fn wanted_may_not_push() {
    let ring = Ring::new();
    fill(&ring, 0..1);
    assert!(contain(|| ring.pop_newest_if(|_| ring.push(1).is_ok())).is_err());
    fill(&ring, 1..2);
    assert_eq!(pop_all(&ring), [0, 1]);
}

#[test]
#[cfg(debug_assertions)]
fn wanted_may_not_pop() {
    let ring = Ring::new();
    fill(&ring, 0..1);
    assert!(contain(|| ring.pop_newest_if(|_| ring.pop().is_some())).is_err());
    assert_eq!(pop_all(&ring), [0]);
}
