//! The stall monitor of `Growth::Stalled`.

use super::{HOUR, Relaxed, builder, counting, explore, thread};
use crate::Growth;

/// Tasks are queued and the stall monitor's delay may pass: all of them run.
#[test]
fn stall_monitor_without_progress() {
    explore(1, || {
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
