//! Bounded queues.

use std::array;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};

use super::{Gate, HOUR, Relaxed, builder, counting, explore, thread};
use crate::crew::Sizes;
use crate::flight::{Capacity, Granted, Permits, Waits};
use crate::sched::{Dependency, wait_for};
use crate::task::DEFAULT_VIEW;

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

/// A task is cancelled while a worker takes its entry, and another task needs the permit. In the
/// end all permits are free, and no more.
#[test]
fn a_cancelled_task_versus_its_entry() {
    for capacity in [0, 1] {
        explore(2, move || {
            let pool = builder(1, 1).queue_capacity(capacity).build();
            let (shared, ran) = (Arc::clone(pool.shared()), Relaxed::new());
            (0..1 + capacity).for_each(|_| pool.evaluate(|| ()).cancel());
            pool.execute(counting(&ran));
            pool.shutdown_join();
            assert_eq!(ran.get(), 1);
            let permits = shared.capacity.as_ref().unwrap();
            (0..1 + capacity).for_each(|_| assert!(permits.try_acquire(&shared.sizes)));
            assert!(!permits.try_acquire(&shared.sizes));
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

/// Two submitters wait for a permit while two are released, and keep theirs. The second one is
/// released while the first submitter wakes up, or while neither waits yet.
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
        thread::spawn(move || acquire(&*capacity, &Sizes::new(0, 2, HOUR)))
    });
    capacity.release(&sizes);
    capacity.release(&sizes);
    for submitter in submitters {
        submitter.join().unwrap();
    }
    assert!(!capacity.try_acquire(&sizes));
}

/// Two futures wait, of which one is not polled while two permits are released: each is granted
/// one.
#[test]
fn a_future_that_is_not_polled_versus_releases() {
    explore(3, || {
        let sizes = Sizes::new(0, 2, HOUR);
        let capacity = Arc::new(Capacity::new(0));
        capacity.acquire_over_limit();
        capacity.acquire_over_limit();
        let mut sleeps = begin_wait(&*capacity, &sizes, Waits::Future);
        let releasers: [_; 2] = array::from_fn(|_| {
            let capacity = Arc::clone(&capacity);
            thread::spawn(move || capacity.release(&Sizes::new(0, 2, HOUR)))
        });
        let mut polled = begin_wait(&*capacity, &sizes, Waits::Future);
        let outcome = wait_for(Pin::new(&mut polled), None, Dependency::Other);
        assert_eq!(outcome, Some(Ok(())));
        for releaser in releasers {
            releaser.join().unwrap();
        }
        assert_eq!(sleeps.try_recv(), Ok(Some(())));
        assert!(!capacity.try_acquire(&sizes));
    });
}

/// A future gives up while a permit is released: the thread behind it gets that.
#[test]
fn a_future_that_gives_up_versus_a_release() {
    explore(3, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let capacity = pool.shared().capacity.as_deref().unwrap();
        capacity.acquire_over_limit();
        let inner = pool.clone();
        let mut gives_up = Box::pin(async move { inner.ready().await.map(drop) });
        assert!(gives_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let behind = {
            let pool = pool.clone();
            thread::spawn(move || {
                acquire(pool.shared().capacity.as_deref().unwrap(), &pool.shared().sizes);
            })
        };
        // Only the start of a thread is a step of the model here: the channel's are not.
        let dropper = thread::spawn(move || drop(gives_up));
        pool.shared().release_permit();
        dropper.join().unwrap();
        behind.join().unwrap();
        assert!(!capacity.try_acquire(&pool.shared().sizes));
    });
}

/// A future waits for a permit while a task ends, and submits by it to a pool that is closed
/// meanwhile.
#[test]
fn ready_versus_a_full_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let permit = wait_for(pin!(pool.ready()), None, Dependency::Other).unwrap().unwrap();
        pool.close();
        permit.execute(counting(&ran)).unwrap();
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

fn begin_wait(capacity: &dyn Permits, sizes: &Sizes, waits: Waits) -> Granted {
    capacity.begin_wait(sizes, DEFAULT_VIEW, waits)
}

/// Waits for a permit.
fn acquire(capacity: &dyn Permits, sizes: &Sizes) {
    if !capacity.try_acquire(sizes) {
        let mut granted = begin_wait(capacity, sizes, Waits::Outside);
        let outcome = wait_for(Pin::new(&mut granted), None, Dependency::Other);
        assert!(capacity.end_wait(sizes, granted, outcome == Some(Ok(()))));
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
