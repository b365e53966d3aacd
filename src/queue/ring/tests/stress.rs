//! Random steps, and several threads at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::{fill, pop_all, steal};
use crate::queue::ring::{INITIAL_CAPACITY, ONE, Ring, Steal};

/// Compares random steps with those of a `VecDeque`. The words overflow at once, soon, or later.
#[test]
fn random_steps_match_a_deque() {
    let mut random = fastrand::Rng::with_seed(42);
    for distance in [0, 1, INITIAL_CAPACITY / 2, INITIAL_CAPACITY, 1000] {
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
                        Steal::Retry => panic!("no other thread steals"),
                    }
                }
                9 => ring.shrink(),
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

/// Each item reaches one thread, and each thread gets its items in the order of the pushes.
#[test]
fn three_stealers_and_the_owner() {
    const COUNT: usize = 200_000;
    let taken = Vec::from_iter((0..COUNT).map(|_| AtomicUsize::new(0)));
    let is_over = AtomicBool::new(false);
    // A box that is read twice is freed twice.
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
                    // Loaded before the steal, which then finds all that was pushed.
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
            // Mostly short bursts, rarely long ones, and about as many pops.
            let burst = if random.u8(..) < 8 { 4000 } else { random.usize(..200) };
            for number in numbers.by_ref().take(burst) {
                if ring.push(Box::new(number)).is_err() {
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

/// The owner takes from both ends while another thread steals: each item is taken once. The ring is
/// short most of the time, so that both compete for the same items.
#[test]
fn both_ends_versus_a_stealer() {
    const COUNT: usize = 200_000;
    let taken = Vec::from_iter((0..COUNT).map(|_| AtomicUsize::new(0)));
    let is_over = AtomicBool::new(false);
    // A box that is read twice is freed twice.
    let note = |item: Box<usize>| taken[*item].fetch_add(1, Ordering::Relaxed);
    let ring = Ring::<Box<usize>>::starting_at(0_usize.wrapping_sub(COUNT / 4 * ONE));
    thread::scope(|scope| {
        let (stealer, is_over, note) = (ring.stealer(), &is_over, &note);
        scope.spawn(move || {
            let mut last = None;
            let mut random = fastrand::Rng::with_seed(3);
            loop {
                // Loaded before the steal, which then finds all that was pushed.
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
                if ring.push(Box::new(number)).is_err() {
                    taken[number].fetch_add(1, Ordering::Relaxed);
                }
            }
            for _ in 0..random.usize(..=burst + 1) {
                let is_wanted = random.u8(..4) > 0;
                let look = |number: usize| {
                    assert_eq!(taken[number].load(Ordering::Relaxed), 0, "not taken yet");
                    is_wanted
                };
                let item = match random.bool() {
                    true => ring.pop_newest_if(|number| look(**number)),
                    false => ring.pop(),
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
