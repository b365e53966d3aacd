//! The ring buffer of a local queue by itself. The checker sees conflicting accesses to slots.

use super::{Arc, AtomicBool, Ordering, explore, thread};
use crate::queue::ring::{Ring, Steal, Stealer};

impl<T> Ring<T> {
    fn push(&self, item: T) -> Result<(), T> {
        self.push_with(|| item).map_err(|make| make())
    }
}

/// A ring of two slots, whose positions overflow after two items.
fn ring() -> Ring<usize> {
    Ring::starting_at(0_usize.wrapping_sub(2 * 2))
}

/// Items in the order in which one thread took them.
type Taken = Vec<usize>;

/// Adds items while no thread steals.
fn fill(ring: &Ring<usize>, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        assert!(ring.push(number).is_ok());
    }
}

/// Tries to steal `times` times, at most `limit` items each.
fn steal(stealer: &Stealer<usize>, times: usize, limit: usize) -> Taken {
    let mut taken = Taken::new();
    for _ in 0..times {
        let mut rest = Taken::new();
        if let Steal::Success(first) = stealer.steal(limit, |number| rest.push(number)) {
            taken.push(first);
            taken.append(&mut rest);
        }
    }
    taken
}

/// What the owner has taken from the old end; and, in any order, what it took from the new end or
/// could not push.
#[derive(Default)]
struct Own {
    taken: Taken,
    kept: Taken,
}

impl Own {
    fn pop(&mut self, ring: &Ring<usize>, times: usize) {
        self.taken.extend((0..times).filter_map(|_| ring.pop()));
    }

    fn pop_newest(&mut self, ring: &Ring<usize>) {
        self.kept.extend(ring.pop_newest_if(|_| true));
    }

    fn push(&mut self, ring: &Ring<usize>, number: usize) {
        if let Err(number) = ring.push(number) {
            self.kept.push(number);
        }
    }
}

/// Runs the owner against stealers, each with its number of attempts and its limit. Of `count`
/// items, each was taken once or is still there, and each thread took them in order.
///
/// Runs twice, with the owner or a stealer on the first thread. The checker misses a write before a
/// read if the writer has also read, and comes later in the order that is tried first.
fn race<const N: usize>(
    preemptions: usize,
    count: usize,
    begin: fn(&Ring<usize>, &mut Own),
    owner: fn(&Ring<usize>, &mut Own),
    thieves: [(usize, usize); N],
) {
    for is_owner_first in [true, false] {
        explore(preemptions, move || {
            let ring = ring();
            let mut own = Own::default();
            begin(&ring, &mut own);
            let mut thieves = Vec::from(thieves.map(|(times, limit)| {
                let stealer = ring.stealer();
                move || steal(&stealer, times, limit)
            }));
            let owner = move || {
                owner(&ring, &mut own);
                (ring, own)
            };
            let (ring, own, mut taken);
            if is_owner_first {
                let others = Vec::from_iter(thieves.into_iter().map(thread::spawn));
                (ring, own) = owner();
                taken = others.into_iter().map(|other| other.join().unwrap()).collect();
            } else {
                let first = thieves.remove(0);
                let owner = thread::spawn(owner);
                let others = Vec::from_iter(thieves.into_iter().map(thread::spawn));
                taken = vec![first()];
                taken.extend(others.into_iter().map(|other| other.join().unwrap()));
                (ring, own) = owner.join().unwrap();
            }
            taken.push(own.taken);
            check(&ring, count, taken, own.kept);
        });
    }
}

fn check(ring: &Ring<usize>, count: usize, mut taken: Vec<Taken>, kept: Taken) {
    // At most one too many: a head beyond the tail would never end.
    taken.push(std::iter::from_fn(|| ring.pop()).take(count + 1).collect());
    assert!(ring.is_empty());
    for part in &taken {
        assert!(part.is_sorted(), "in their order");
    }
    taken.push(kept);
    let mut all = taken.concat();
    all.sort_unstable();
    assert_eq!(all, Taken::from_iter(0..count), "each of them once");
}

/// The owner adds and takes while a batch is stolen.
#[test]
fn add_and_take_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.pop(ring, 1);
        own.push(ring, 3);
        own.pop(ring, 2);
    };
    race(4, 4, |ring, _| fill(ring, 0..3), owner, [(1, 2)]);
}

/// The owner adds more items than there are slots.
#[test]
fn growth_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.push(ring, 2);
        own.push(ring, 3);
    };
    race(4, 4, |ring, _| fill(ring, 0..2), owner, [(2, 2)]);
}

/// The owner writes into slots that a stealer has read, or is about to read.
#[test]
fn a_slot_again_versus_steal() {
    let begin = |ring: &Ring<_>, own: &mut Own| {
        fill(ring, 0..2);
        own.pop(ring, 1);
    };
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.push(ring, 2);
        own.pop(ring, 1);
        own.push(ring, 3);
    };
    race(4, 4, begin, owner, [(2, 1)]);
}

/// Two threads steal while the owner takes and adds.
#[test]
fn two_thieves_versus_the_owner() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.pop(ring, 1);
        own.push(ring, 3);
        own.push(ring, 4);
    };
    race(2, 5, |ring, _| fill(ring, 0..3), owner, [(1, 2), (1, 2)]);
}

/// Two threads steal while the owner needs more slots.
#[test]
fn two_thieves_versus_growth() {
    let owner = |ring: &Ring<_>, own: &mut Own| own.push(ring, 2);
    race(3, 3, |ring, _| fill(ring, 0..2), owner, [(1, 1), (1, 1)]);
}

/// The owner shrinks the ring, then needs all remaining slots and more.
#[test]
fn shrink_versus_steal() {
    let begin = |ring: &Ring<_>, own: &mut Own| {
        fill(ring, 0..3);
        own.pop(ring, 2);
    };
    let owner = |ring: &Ring<_>, own: &mut Own| {
        ring.shrink();
        for number in 3..6 {
            own.push(ring, number);
        }
        own.pop(ring, 1);
    };
    race(3, 6, begin, owner, [(1, 2)]);
}

/// The owner takes the newest items after a stealer has counted them.
#[test]
fn take_newest_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.pop_newest(ring);
        own.pop_newest(ring);
    };
    race(4, 3, |ring, _| fill(ring, 0..3), owner, [(1, 2)]);
}

/// The owner takes the newest item and adds another in its slot: the head is what it was before.
#[test]
fn newest_again_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.pop_newest(ring);
        own.push(ring, 2);
        own.pop_newest(ring);
    };
    race(4, 3, |ring, _| fill(ring, 0..2), owner, [(2, 1)]);
}

/// As above, with two stealers and a full ring.
#[test]
fn two_stealers_versus_newest_again() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.pop_newest(ring);
        own.push(ring, 2);
    };
    race(2, 3, |ring, _| fill(ring, 0..2), owner, [(1, 1), (1, 1)]);
}

/// A look changes nothing.
#[test]
fn look_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        assert_eq!(ring.pop_newest_if(|_| false), None);
        own.pop(ring, 1);
    };
    race(4, 3, |ring, _| fill(ring, 0..3), owner, [(1, 2)]);
}

/// The owner takes from both ends; the stealer sees the added items, and the new slots.
#[test]
fn both_ends_and_growth_versus_steal() {
    let owner = |ring: &Ring<_>, own: &mut Own| {
        own.push(ring, 2);
        own.pop_newest(ring);
        own.pop(ring, 1);
        own.push(ring, 3);
    };
    race(3, 4, |ring, _| fill(ring, 0..2), owner, [(2, 2)]);
}

/// The owner adds an item before it takes one: a look finds an item at every moment.
#[test]
fn never_empty_if_one_is_always_there() {
    explore(5, || {
        let ring = ring();
        fill(&ring, 0..1);
        let stealer = ring.stealer();
        let other = thread::spawn(move || {
            assert!(!stealer.is_empty());
            assert_ne!(stealer.len(), 0);
        });
        fill(&ring, 1..2);
        assert_eq!(ring.pop(), Some(0));
        other.join().unwrap();
    });
}

/// As above, with an owner that takes from both ends, and two threads that look.
#[test]
fn never_empty_although_the_newest_is_taken() {
    for is_owner_first in [true, false] {
        explore(2, move || {
            let ring = ring();
            fill(&ring, 0..1);
            let looks = [ring.stealer(), ring.stealer()]
                .map(|stealer| move || assert!((1..=2).contains(&stealer.len())));
            let owner = move || {
                fill(&ring, 1..2);
                assert_eq!(ring.pop_newest_if(|_| true), Some(1));
                fill(&ring, 2..3);
                assert_eq!(ring.pop(), Some(0));
                // Dropped by the first thread.
                ring
            };
            let [first, second] = looks;
            if is_owner_first {
                let others = [thread::spawn(first), thread::spawn(second)];
                let _ring = owner();
                others.into_iter().for_each(|other| other.join().unwrap());
            } else {
                let owner = thread::spawn(owner);
                let second = thread::spawn(second);
                first();
                second.join().unwrap();
                drop(owner.join().unwrap());
            }
        });
    }
}

/// As above, for a thread that steals.
#[test]
fn never_nothing_to_steal_although_the_newest_is_taken() {
    explore(4, || {
        let ring = ring();
        fill(&ring, 0..1);
        let stealer = ring.stealer();
        let other = thread::spawn(move || {
            let stolen = stealer.steal(1, |_| unreachable!("one is one"));
            assert_ne!(stolen, Steal::Empty);
            assert_ne!(stolen, Steal::Success(1), "it was never the oldest");
        });
        fill(&ring, 1..2);
        // The ring has no free slot while the stealer holds it.
        if ring.pop_newest_if(|_| true).is_some() {
            fill(&ring, 2..3);
            ring.pop();
        }
        other.join().unwrap();
    });
}

/// As above, for a thread that steals.
#[test]
fn never_nothing_to_steal_if_one_is_always_there() {
    explore(5, || {
        let ring = ring();
        fill(&ring, 0..1);
        let stealer = ring.stealer();
        let other = thread::spawn(move || {
            assert_ne!(stealer.steal(1, |_| unreachable!("one is one")), Steal::Empty);
        });
        fill(&ring, 1..2);
        assert!(ring.pop().is_some());
        other.join().unwrap();
    });
}

/// A thread that finds nothing after a steal sees what the stealer wrote before: a steal in
/// transit.
#[test]
fn a_thread_that_finds_nothing_sees_what_the_thief_did() {
    after_a_theft(|stealer| stealer.is_empty());
}

/// As above, for another stealer.
#[test]
fn a_thread_that_can_steal_nothing_sees_what_the_thief_did() {
    after_a_theft(|stealer| stealer.steal(1, |_| unreachable!("one is one")) == Steal::Empty);
}

fn after_a_theft(finds_nothing: fn(&Stealer<usize>) -> bool) {
    explore(3, move || {
        let ring = ring();
        fill(&ring, 0..1);
        let (thief, other) = (ring.stealer(), ring.stealer());
        let begun = Arc::new(AtomicBool::new(false));
        let announced = Arc::clone(&begun);
        // Not on the first thread: see `race`.
        let other = thread::spawn(move || {
            if finds_nothing(&other) {
                assert!(announced.load(Ordering::Relaxed));
            }
        });
        begun.store(true, Ordering::Relaxed);
        steal(&thief, 1, 1);
        other.join().unwrap();
    });
}

/// As above, but the owner takes the other item after the steal, by a store.
#[test]
fn a_stealer_that_finds_nothing_sees_a_theft_before_the_owner_took_the_newest() {
    explore(3, || {
        let ring = ring();
        fill(&ring, 0..2);
        let (thief, other) = (ring.stealer(), ring.stealer());
        let begun = Arc::new(AtomicBool::new(false));
        let announced = Arc::clone(&begun);
        let other = thread::spawn(move || {
            if other.is_empty() {
                assert!(announced.load(Ordering::Relaxed));
            }
        });
        let owner = thread::spawn(move || {
            ring.pop_newest_if(|_| true);
            ring
        });
        begun.store(true, Ordering::Relaxed);
        steal(&thief, 1, 1);
        other.join().unwrap();
        drop(owner.join().unwrap());
    });
}
