//! Tasks of a scope that the pool does not accept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{Drops, Gate, HOUR, block, refused, value};
use crate::{MOMENT, assert_works, hosted, in_time, panic_of, pool, wait_for_wait};
use elastipool::{Builder, RejectReason};

#[test]
fn a_closed_pool_makes_execute_panic_and_the_scope_waits_for_the_others() {
    hosted(|host| {
        let (pool, drops) = (pool(1), Drops::default());
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
                pool.close();
                let guard = drops.issue();
                scope.execute(move || drop(guard));
            });
        });
        assert!(text.contains("closed") && text.contains("`try_execute`"), "{text}");
        assert!(ended.into_inner());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_closed_pool_cancels_what_a_scope_evaluates() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        pool.close();
        pool.scope(|scope| {
            let guard = drops.issue();
            let handle = scope.evaluate(move || drop(guard));
            assert!(handle.is_finished());
            assert_eq!(drops.count(), 1);
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_closed_pool_hands_scoped_closures_back() {
    in_time(|| {
        let (pool, mut numbers) = (pool(1), (0, 0));
        pool.close();
        pool.scope(|scope| {
            let (left, right) = (&mut numbers.0, &mut numbers.1);
            refused(scope.try_execute(|| *left = 1), RejectReason::Closed).into_task()();
            let rejected = refused(scope.try_evaluate(|| *right = 2), RejectReason::Closed);
            rejected.into_task()();
        });
        assert_eq!(numbers, (1, 2));
        assert_eq!(pool.stats().rejected, 2);
    });
}

#[test]
fn a_full_queue_hands_scoped_closures_back() {
    in_time(|| {
        let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
        let pool = sizes.queue_capacity(1).build();
        let (mut queued, mut back) = (false, false);
        let gate = block(&pool);
        pool.scope(|scope| {
            let handle = scope.try_evaluate(|| queued = true).unwrap();
            refused(scope.try_execute(|| back = true), RejectReason::Full).into_task()();
            refused(scope.try_evaluate(|| 7), RejectReason::Full);
            gate.open();
            handle.await_complete();
        });
        assert!(queued && back);
        assert_works(pool);
    });
}

#[test]
fn a_scope_in_a_worker_of_its_pool_waits_for_capacity_of_the_queue() {
    in_time(|| {
        for capacity in [0, 1] {
            let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
            let pool = sizes.queue_capacity(capacity).build();
            let own = pool.clone();
            let handle = pool.evaluate(move || {
                let mut numbers = [0; 20];
                own.scope(|scope| {
                    for number in &mut numbers {
                        scope.execute(move || *number = 1);
                    }
                });
                numbers
            });
            assert_eq!(value(handle), [1; 20]);
            assert_works(pool);
        }
    });
}
