//! Scopes that a thread outside opens beside busy workers: it runs their tasks, whose entries stay
//! in the queue.

use std::sync::Arc;

use crate::bounded_queue::pool;
use crate::common::Gate;

const CAPACITY: usize = 3;

// The defect: after as many scopes as the queue holds, each further one waited for the worker.
#[test]
fn scopes_that_ran_on_their_opener_do_not_fill_the_queue() {
    let [pool, other] = [pool(1, CAPACITY), pool(1, CAPACITY)];
    for _ in 0..3 {
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        gate.wait_for(1);
        for number in 0..10 * CAPACITY {
            let mut ran = None;
            pool.scope(|scope| {
                scope.try_execute(|| ran = Some(number)).expect("nothing is queued");
                drop(scope.try_evaluate(|| ()).expect("one task is queued"));
                scope.execute(|| ());
            });
            assert_eq!(ran, Some(number));
            // Leaves a list without entries.
            other.scope(|_| ());
            assert_eq!(pool.queued_count(), 0);
        }
        gate.open();
        pool.join();
        // Each permit is free again, and there are no others.
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        gate.wait_for(1);
        let accepted = (0..10).filter(|_| pool.try_execute(|| ()).is_ok()).count();
        assert_eq!(accepted, CAPACITY);
        gate.open();
        pool.join();
    }
    pool.shutdown_join();
    other.shutdown_join();
}

#[test]
fn a_scope_fills_the_queue() {
    let pool = pool(1, CAPACITY);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    gate.wait_for(1);
    for _ in 0..3 {
        pool.scope(|scope| {
            let accepted = (0..10).filter(|_| scope.try_execute(|| ()).is_ok()).count();
            assert_eq!(accepted, CAPACITY, "the tasks are queued, not only their entries");
        });
    }
    gate.open();
    pool.shutdown_join();
}
