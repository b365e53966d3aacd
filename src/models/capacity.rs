//! Bounded queues.

use std::array;
use std::pin::Pin;
use std::sync::Arc;

use super::{Gate, HOUR, Relaxed, builder, counting, explore, thread};
use crate::runtime::capacity::Capacity;
use crate::runtime::policy::DEFAULT_VIEW;
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::sizes::Sizes;

/// Submitters wait for a permit, with a capacity of one and of zero.
#[test]
fn submit_versus_a_full_queue() {
    for capacity in [0, 1] {
        explore(2, move || {
            let pool = builder(1, 1).queue_capacity(capacity).build();
            let ran = Relaxed::new();
            for _ in 0..3 {
                pool.execute(counting(&ran));
            }
            pool.join();
            assert_eq!(ran.get(), 3);
            pool.shutdown_join();
        });
    }
}

/// Two threads wait for a permit at once.
#[test]
fn two_submitters_versus_a_full_queue() {
    explore(1, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let ran = Relaxed::new();
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.execute(task))
        };
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        other.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), 3);
    });
}

/// Two submitters wait for a permit while two are released, and keep theirs. The second one is released while the first submitter
/// wakes up, or while neither waits yet.
#[test]
fn each_free_permit_is_granted() {
    explore(3, each_permit_is_granted);
}

fn each_permit_is_granted() {
    let sizes = Sizes::new(0, 2, HOUR);
    let capacity = Arc::new(Capacity::new(0));
    capacity.acquire_over_limit();
    capacity.acquire_over_limit();
    let submitters: [_; 2] = array::from_fn(|_| {
        let capacity = Arc::clone(&capacity);
        thread::spawn(move || acquire(&capacity, &Sizes::new(0, 2, HOUR)))
    });
    capacity.release(&sizes);
    capacity.release(&sizes);
    for submitter in submitters {
        submitter.join().unwrap();
    }
    assert!(!capacity.try_acquire(&sizes));
}

/// Waits for a permit.
fn acquire(capacity: &Capacity, sizes: &Sizes) {
    if !capacity.try_acquire(sizes) {
        let mut granted = capacity.begin_wait(sizes, DEFAULT_VIEW, false, || false);
        let outcome = wait_for(Pin::new(&mut granted), None, Dependency::Other);
        assert!(capacity.end_wait(sizes, granted, outcome));
    }
}

/// A task submits to the full queue of its own pool of one.
#[test]
fn a_worker_waits_for_room() {
    explore(1, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let (ran, inner) = (Relaxed::new(), pool.clone());
        let tasks = [counting(&ran), counting(&ran)];
        pool.execute(move || tasks.into_iter().for_each(|task| inner.execute(task)));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// The pool is closed while a submitter waits for a permit.
#[test]
fn close_versus_a_full_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.evaluate(|| ()).try_await_complete().is_ok())
        };
        pool.close();
        gate.open();
        let accepted = other.join().unwrap();
        pool.join();
        assert_eq!(pool.stats().completed, 1 + usize::from(accepted));
        pool.shutdown_join();
    });
}

/// `max_size` is raised while a submitter waits for a permit, or before.
#[test]
fn a_raised_max_size_versus_a_full_queue() {
    explore(1, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let gate = Gate::new();
        let (waiting, opened) = (gate.clone(), gate.clone());
        pool.execute(move || waiting.pass());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.set_max_size(2).unwrap())
        };
        pool.execute(move || opened.open());
        other.join().unwrap();
        pool.shutdown_join();
    });
}
