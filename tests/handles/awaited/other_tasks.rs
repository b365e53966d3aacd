//! A thread that waits for a task runs no other task.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::awaited::{assert_ended_on, at_work, in_task, pool};
use crate::common::{Gate, value};
use elastipool::{JoinHandle, ThreadPool};

/// The worker waits for a task that another one runs; there are others before and after it in the
/// queue, which another worker runs meanwhile. All of them take a lock that the waiting task holds.
#[test]
fn a_worker_runs_no_other_task_than_the_awaited_one() {
    let pool = pool(2);
    let lock = Arc::new(Mutex::new(()));
    let (begun, awaited) = (Gate::new(), Gate::new());
    begun.open();
    // Notes that it has begun, takes the lock, and says where.
    let takes = || {
        let (lock, begun) = (Arc::clone(&lock), Arc::clone(&begun));
        move || {
            begun.pass();
            drop(lock.lock().unwrap());
            thread::current().id()
        }
    };
    let passes = Arc::clone(&awaited);
    let target = pool.evaluate(move || passes.pass());
    awaited.wait_for(1);
    let (holds, waits) = (Arc::clone(&lock), Gate::new());
    let goes = Arc::clone(&waits);
    let (own, inside) = (pool.clone(), takes());
    let waiter = pool.evaluate(move || {
        let held = holds.lock().unwrap();
        goes.pass();
        // In its own queue.
        let from_inside = own.evaluate(inside);
        target.await_complete();
        drop(held);
        (thread::current().id(), from_inside)
    });
    waits.wait_for(1);
    let before = pool.evaluate(takes());
    waits.open();
    let after = pool.evaluate(takes());
    // It is another worker that comes for them, and waits for the lock.
    begun.wait_for(1);
    awaited.open();
    let (_, from_inside) = value(waiter);
    for other in [before, from_inside, after] {
        value(other);
    }
    assert_ended_on(3, &pool, 5);
}

/// The only worker waits, for one task after another, with others around it in the queue.
#[test]
fn the_only_worker_leaves_other_tasks_in_the_queue() {
    let pool = pool(1);
    let (sender, receiver) = mpsc::channel::<JoinHandle<u32>>();
    let ran = Arc::new(AtomicUsize::new(0));
    let own = pool.clone();
    let foreign = |pool: &ThreadPool, ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        pool.execute(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    };
    let counted = Arc::clone(&ran);
    let first = pool.evaluate(move || {
        let from_outside = receiver.recv().unwrap();
        foreign(&own, &counted);
        let from_inside = own.evaluate(|| 2);
        foreign(&own, &counted);
        let sum = from_outside.await_complete() + from_inside.await_complete();
        let mut scoped = 0;
        own.scope(|scope| {
            scope.execute(|| scoped = 3);
            foreign(&own, &counted);
        });
        let group = own.group::<()>();
        group.execute(|| Ok(())).unwrap();
        foreign(&own, &counted);
        group.wait().unwrap();
        let stats = own.stats();
        assert_eq!(at_work(&stats), (1, 6, 0), "{stats:?}");
        (sum, scoped, counted.load(Ordering::SeqCst))
    });
    foreign(&pool, &ran);
    let from_outside = pool.evaluate(|| 1);
    foreign(&pool, &ran);
    sender.send(from_outside).unwrap();
    assert_eq!(value(first), (3, 3, 0));
    assert_ended_on(1, &pool, 11);
    assert_eq!(ran.load(Ordering::SeqCst), 6);
}

/// The lock is one that the awaited task does not need.
#[test]
fn a_lock_is_held_across_the_wait() {
    let pool = pool(1);
    let lock = Arc::new(Mutex::new(0));
    let others: Vec<_> = in_task(&pool, {
        let lock = Arc::clone(&lock);
        move |own| {
            let mut held = lock.lock().unwrap();
            let others = (0..5).map(|_| {
                let lock = Arc::clone(&lock);
                own.evaluate(move || *lock.lock().unwrap() += 1)
            });
            let others = others.collect();
            *held += own.evaluate(|| 10).await_complete();
            others
        }
    });
    others.into_iter().for_each(value);
    assert_eq!(*lock.lock().unwrap(), 15);
    assert_ended_on(1, &pool, 7);
}

/// As if the awaited task were called.
#[test]
fn a_thread_local_that_is_borrowed_across_the_wait_is_seen_borrowed() {
    thread_local! {
        static LOCAL: RefCell<u32> = const { RefCell::new(0) };
    }

    let pool = pool(1);
    in_task(&pool, |own| {
        let is_borrowed = || LOCAL.with(|local| local.try_borrow_mut().is_err());
        LOCAL.with(|local| {
            let _borrowed = local.borrow_mut();
            assert!(own.evaluate(is_borrowed).await_complete());
        });
        assert!(!own.evaluate(is_borrowed).await_complete());
    });
}
