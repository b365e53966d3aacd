//! `execute_all` and `try_execute_all`: many closures in one step.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Drops, Gate, HOUR, LIMIT, block, panic_text, refused, value, wait_until};
use elastipool::{Growth, RejectReason, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

fn bounded(max_size: usize, capacity: usize) -> ThreadPool {
    ThreadPool::builder().core_size(1).max_size(max_size).queue_capacity(capacity).build()
}

/// The numbers that ran, in their order.
type Ran = Arc<Mutex<Vec<usize>>>;

/// Closures that note their numbers.
fn notes(ran: &Ran, numbers: std::ops::Range<usize>) -> Vec<impl FnOnce() + Send + 'static> {
    let note = |number| {
        let ran = Arc::clone(ran);
        move || ran.lock().unwrap().push(number)
    };
    numbers.map(note).collect()
}

/// Waits until the pool is quiet, which must not take for ever.
#[track_caller]
fn joined(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT), "{pool:?}");
}

#[test]
fn all_run_in_their_order_beside_others() {
    for view in [false, true] {
        let pool = pool(1);
        let pool = if view { (*pool.view().build()).clone() } else { pool };
        let gate = block(&pool);
        let ran = Ran::default();
        pool.execute_all(notes(&ran, 0..100));
        notes(&ran, 100..101).into_iter().for_each(|note| pool.execute(note));
        pool.try_execute_all(notes(&ran, 101..300)).unwrap();
        pool.execute_all(notes(&ran, 0..0));
        assert_eq!(pool.queued_count(), 300);
        gate.open();
        joined(&pool);
        assert!(ran.lock().unwrap().iter().copied().eq(0..300));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.queued, stats.in_flight()), (301, 0, 0));
    }
}

#[test]
fn a_closed_pool_hands_all_back() {
    let pool = pool(2);
    pool.close();
    let ran = Ran::default();
    let rejected = refused(pool.try_execute_all(notes(&ran, 0..5)), RejectReason::Closed);
    rejected.into_task().into_iter().for_each(|note| note());
    assert!(ran.lock().unwrap().iter().copied().eq(0..5));
    let drops = Drops::default();
    let tasks = [drops.issue(), drops.issue()].map(|issued| move || drop(issued));
    let text = panic_text(|| pool.execute_all(tasks));
    assert!(text.contains("the pool is closed; `try_execute_all` hands it back"), "{text}");
    assert_eq!((drops.count(), pool.stats().rejected), (2, 7));
    // There is nothing that is not accepted.
    pool.execute_all(notes(&ran, 0..0));
    assert!(pool.try_execute_all(notes(&ran, 0..0)).is_ok());

    let view = self::pool(1).view().build();
    view.close();
    refused(view.try_execute_all(notes(&ran, 0..3)), RejectReason::Closed);
    assert_eq!(view.stats().rejected, 3);
}

#[test]
fn a_full_queue_accepts_the_first_ones_and_hands_the_others_back() {
    let pool = bounded(1, 5);
    let gate = block(&pool);
    let ran = Ran::default();
    pool.try_execute_all(notes(&ran, 0..3)).unwrap();
    let rejected = refused(pool.try_execute_all(notes(&ran, 3..9)), RejectReason::Full);
    let rest = rejected.into_task();
    assert_eq!((rest.len(), pool.queued_count(), pool.stats().rejected), (4, 5, 4));
    let rest = refused(pool.try_execute_all(rest), RejectReason::Full).into_task();
    assert_eq!((rest.len(), pool.stats().rejected), (4, 8));
    gate.open();
    pool.execute_all(rest);
    joined(&pool);
    assert!(ran.lock().unwrap().iter().copied().eq(0..9));
}

#[test]
fn more_than_the_capacity_wait_for_it() {
    for (max_size, capacity) in [(1, 0), (2, 3)] {
        let pool = bounded(max_size, capacity);
        let ran = Ran::default();
        let (outside, other) = (pool.clone(), notes(&ran, 0..500));
        let outside = thread::spawn(move || outside.execute_all(other));
        let (inner, tasks) = (pool.clone(), notes(&ran, 500..1_000));
        value(pool.evaluate(move || inner.execute_all(tasks)));
        outside.join().unwrap();
        joined(&pool);
        let mut ran = std::mem::take(&mut *ran.lock().unwrap());
        ran.sort_unstable();
        assert!(ran.into_iter().eq(0..1_000));
        assert_eq!(pool.stats().rejected, 0);
        // All permits are free again.
        let gate = block(&pool);
        let ran = Ran::default();
        let tasks = notes(&ran, 0..100);
        let rest = refused(pool.try_execute_all(tasks), RejectReason::Full).into_task();
        assert_eq!(rest.len(), 100 - (max_size - 1 + capacity));
        gate.open();
    }
}

#[test]
fn closing_ends_a_wait_for_capacity() {
    let pool = bounded(1, 1);
    let gate = block(&pool);
    let ran = Ran::default();
    let (waits, tasks) = (pool.clone(), notes(&ran, 0..4));
    let waits = thread::spawn(move || panic_text(|| waits.execute_all(tasks)));
    wait_until("one is queued", || pool.queued_count() == 1);
    pool.close();
    let text = waits.join().unwrap();
    assert!(text.contains("the pool is closed"), "{text}");
    gate.open();
    joined(&pool);
    assert_eq!((ran.lock().unwrap().len(), pool.stats().rejected), (1, 3));
}

/// Runs tasks that all need each other to run at the same time.
fn meet(pool: &ThreadPool, count: usize) {
    let table = Gate::new();
    let seat = |_| {
        let table = Arc::clone(&table);
        move || table.meet(count)
    };
    pool.execute_all((0..count).map(seat));
}

/// Law 1: one notification reaches as many workers as there are tasks.
#[test]
fn each_task_has_a_worker_at_once() {
    let stalled = Growth::Stalled(common::millis(1));
    for (core_size, growth) in [(0, Growth::Eager), (1, Growth::Eager), (4, stalled), (24, stalled)]
    {
        let builder = ThreadPool::builder().core_size(core_size).max_size(24).keep_alive(HOUR);
        let pool = builder.growth(growth).build();
        for view in [None, Some(pool.view().build())] {
            let handle = view.as_deref().unwrap_or(&pool);
            meet(handle, 24);
            joined(handle);
            let inner = handle.clone();
            handle.execute(move || meet(&inner, 23));
            joined(handle);
        }
        assert_eq!(pool.stats().panicked, 0);
    }
}

#[test]
fn below_the_core_size_each_task_starts_a_worker() {
    for (count, expected) in [(1, 1), (3, 3), (4, 4), (9, 4)] {
        let pool = ThreadPool::new(4, 8, HOUR);
        pool.execute_all((0..count).map(|_| || ()));
        joined(&pool);
        let started = pool.stats().threads_started;
        // As many workers as tasks are enough, and one may start for a task that another one has just taken.
        assert!((expected..=4).contains(&started), "{started} for {count} tasks");
    }
}

#[test]
fn each_task_has_a_context_of_its_own() {
    let (made, entered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (makes, enters) = (Arc::clone(&made), Arc::clone(&entered));
    let pool = ThreadPool::builder()
        .core_size(1)
        .max_size(2)
        .task_context(move || {
            makes.fetch_add(1, Ordering::SeqCst);
            let enters = Arc::clone(&enters);
            move || {
                enters.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build();
    pool.execute_all((0..10).map(|_| || ()));
    joined(&pool);
    assert_eq!((made.load(Ordering::SeqCst), entered.load(Ordering::SeqCst)), (10, 10));
}

#[test]
fn nothing_is_queued_if_the_iterator_panics() {
    let pool = pool(1);
    let drops = Drops::default();
    let tasks = (0..5).map(|number| {
        assert!(number < 3, "no more");
        let issued = drops.issue();
        move || drop(issued)
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.execute_all(tasks)));
    assert!(result.is_err());
    assert_eq!((drops.count(), pool.stats().accepted()), (3, 0));
    meet(&pool, 1);
    joined(&pool);
}

#[test]
fn a_panic_is_contained_for_each() {
    let pool = pool(2);
    pool.execute_all((0..10).map(|number| move || assert!(number % 2 == 0, "odd")));
    joined(&pool);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked), (5, 5));
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_thread_they_come_back_or_run_on_the_caller() {
    common::refusal::in_a_child("without_a_thread_they_come_back_or_run_on_the_caller", || {
        let pool = pool(2);
        let _refusal = common::refusal::Refusal::begin();
        let ran = Ran::default();
        let rejected = refused(pool.try_execute_all(notes(&ran, 0..5)), RejectReason::NoThread);
        assert_eq!((rejected.into_task().len(), pool.stats().rejected), (5, 5));
        pool.execute_all(notes(&ran, 0..5));
        assert!(ran.lock().unwrap().iter().copied().eq(0..5));
        joined(&pool);
    });
}

#[test]
fn closures_of_different_types_need_a_box() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = sender.clone();
    let tasks: [Box<dyn FnOnce() + Send>; 2] = [
        Box::new(move || sender.send(1).unwrap()),
        Box::new(move || assert!(other.send(2).is_ok())),
    ];
    pool.execute_all(tasks);
    assert!(receiver.iter().eq([1, 2]));
    pool.shutdown_join();
}
