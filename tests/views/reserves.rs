//! `reserve`: capacity that others leave free.

use std::thread;
use std::time::Duration;

use crate::common::{Gate, wait_until};
use crate::{Level, at_gate, pool};

/// Others never occupy the reserved worker, and the view's task finds it at once.
#[test]
fn others_leave_the_reserve_free() {
    let pool = pool(0, 3);
    let urgent = pool.view().reserve(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..50).for_each(|_| at_gate(&pool, &gate, &level));
    gate.wait_for(2);
    for _ in 0..20 {
        assert_eq!(urgent.evaluate(|| 7).await_complete(), 7);
    }
    assert_eq!((level.now(), level.peak()), (2, 2));
    gate.open();
    pool.join();
    assert_eq!(level.peak(), 2);
    pool.shutdown_join();
}

/// Two reserves at once: neither view takes the other's.
#[test]
fn reserves_add_up() {
    let pool = pool(0, 4);
    let [one, other] = [1, 2].map(|reserve| pool.view().reserve(reserve).build());
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let levels: [Level; 3] = Default::default();
    // The default view gets the one worker that is not reserved.
    (0..10).for_each(|_| at_gate(&pool, &gates[0], &levels[0]));
    gates[0].wait_for(1);
    (0..10).for_each(|_| at_gate(&one, &gates[1], &levels[1]));
    gates[1].wait_for(1);
    (0..10).for_each(|_| at_gate(&other, &gates[2], &levels[2]));
    gates[2].wait_for(2);
    // Time for another one to start, which must not happen.
    thread::sleep(Duration::from_millis(5));
    assert_eq!(levels.each_ref().map(Level::now), [1, 1, 2]);
    gates.iter().for_each(|gate| gate.open());
    pool.shutdown_join();
}

/// A view uses the shared capacity as well as its reserve.
#[test]
fn a_view_is_not_confined_to_its_reserve() {
    let pool = pool(0, 4);
    let view = pool.view().reserve(1).build();
    let gate = Gate::new();
    for _ in 0..4 {
        let gate = std::sync::Arc::clone(&gate);
        view.execute(move || gate.meet(4));
    }
    view.join();
    pool.shutdown_join();
}

/// It reserves capacity, not threads.
#[test]
fn no_thread_is_started_or_kept_for_a_reserve() {
    let pool = elastipool::ThreadPool::new(0, 4, Duration::from_millis(1));
    let view = pool.view().reserve(3).build();
    assert_eq!(pool.current_worker_count(), 0);
    view.evaluate(|| ()).await_complete();
    wait_until("the worker has left", || pool.current_worker_count() == 0);
    // Tasks that may not use the reserve start no thread for it.
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&pool, &gate, &level);
    gate.wait_for(1);
    let before = pool.stats().threads_started;
    (0..1000).for_each(|_| pool.execute(|| ()));
    assert!(pool.stats().threads_started <= before + 1, "{:?}", pool.stats());
    gate.open();
    pool.join();
}

/// When the reserve is gone, tasks that waited for it start.
#[test]
fn the_end_of_a_reserve_lets_others_start() {
    for _ in 0..100 {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let (gate, level) = (Gate::new(), Level::default());
        (0..2).for_each(|_| at_gate(&pool, &gate, &level));
        gate.wait_for(1);
        drop(view);
        gate.wait_for(2);
        gate.open();
        pool.shutdown_join();
    }
}

/// A larger `max_size` is shared capacity.
#[test]
fn a_larger_max_size_lets_others_start() {
    let pool = pool(0, 2);
    let view = pool.view().reserve(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..3).for_each(|_| at_gate(&pool, &gate, &level));
    gate.wait_for(1);
    pool.set_max_size(4).unwrap();
    gate.wait_for(3);
    assert_eq!(view.evaluate(|| 7).await_complete(), 7);
    gate.open();
    pool.shutdown_join();
}

/// Tasks that may not run yet wake no idle worker either.
#[test]
fn tasks_that_may_not_run_wake_no_worker() {
    let pool = pool(2, 2);
    let view = pool.view().reserve(1).build();
    assert_eq!(pool.start_core_threads(), 2);
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&pool, &gate, &level);
    gate.wait_for(1);
    wait_until("the other worker is idle", || pool.idle_worker_count() == 1);
    for _ in 0..100 {
        pool.execute(|| ());
        assert_eq!(pool.idle_worker_count(), 1);
    }
    gate.open();
    pool.join();
    drop(view);
    pool.shutdown_join();
}
