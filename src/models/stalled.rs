//! The stall monitor of `Growth::Stalled`.

use super::{Arc, Gate, HOUR, Mutex, Relaxed, builder, counting, explore, explore_both, thread};
use crate::{Growth, ThreadPool, blocking};

/// Tasks are queued and the stall monitor's delay may pass: all of them run.
#[test]
fn stall_monitor_without_progress() {
    explore_both(1, 1, || {
        let pool = builder(0, 3).growth(Growth::Stalled(HOUR)).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.shared().stall_monitor.expire_all();
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Race 30: monitoring ends with the queue, before the delay has passed.
/// Only reduced: shipped it would take minutes, and a worker that spins in between only delays the recheck.
#[test]
fn stall_monitor_versus_an_empty_queue() {
    explore(1, || {
        let pool = builder(0, 3).growth(Growth::Stalled(HOUR)).build();
        for _ in 0..2 {
            pool.execute(|| ());
        }
        pool.join();
        while pool.idle_worker_count() < pool.current_worker_count() {
            thread::yield_now();
        }
        pool.evaluate(|| ()).await_complete();
        pool.shutdown_join();
    });
}

/// Race 30: the only other running worker enters a region. What it waits for is queued, and the monitor, which may hold
/// it back, takes it.
#[test]
fn a_region_versus_the_stall_monitor() {
    explore_both(1, 1, || {
        let pool = builder(0, 3).growth(Growth::Stalled(HOUR)).build();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// Race 17: a worker in its start hook waits for a task of its pool. That needs a second worker, whose hook returns at
/// once. No preemptions: if the first worker kept the second one from being started, every order would deadlock, and
/// with one preemption the model would take minutes.
#[test]
fn a_wait_in_a_start_hook() {
    for growth in [Growth::Eager, Growth::Stalled(HOUR)] {
        explore(0, move || {
            let slot = Arc::new(Mutex::new(None::<ThreadPool>));
            let address = Arc::clone(&slot);
            let pool = builder(0, 2)
                .growth(growth)
                .on_worker_start(move |index| {
                    let pool = if index == 0 { address.lock().unwrap().take() } else { None };
                    if let Some(pool) = pool {
                        assert_eq!(pool.evaluate(|| 7).await_complete(), 7);
                    }
                })
                .build();
            *slot.lock().unwrap() = Some(pool.clone());
            pool.execute(|| ());
            pool.shutdown_join();
        });
    }
}
