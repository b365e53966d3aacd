//! The counts and the order of calls.

use std::sync::Arc;

use crate::common::LIMIT;
use crate::handler::{busy, one, pool, writer, written};

#[test]
fn calls_are_counted_as_tasks() {
    let (pool, gate) = busy(one());
    let handler = pool.handler(|fails: bool| assert!(!fails, "on purpose"));
    [false, true, false, false].into_iter().for_each(|fails| handler.invoke(fails));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.active, stats.in_flight()), (4, 1, 5));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled, stats.rejected), (4, 1, 0, 0));
    assert_eq!((stats.accepted(), stats.in_flight()), (5, 0));
}

#[test]
fn one_worker_runs_calls_in_order() {
    let (pool, gate) = busy(one());
    let (handler, log) = writer(&pool);
    (0..5000).for_each(|number| handler.invoke(number));
    gate.open();
    assert_eq!(written(&pool, &log), (0..5000).collect::<Vec<_>>());
}

#[test]
fn calls_and_other_tasks_come_in_the_order_of_one_thread() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let add = |number| {
        let log = Arc::clone(&log);
        move || log.lock().unwrap().push(number)
    };
    let other = {
        let log = Arc::clone(&log);
        pool.handler(move |number: usize| log.lock().unwrap().push(number))
    };
    for _ in 0..20 {
        for number in 0..100 {
            match fastrand::u8(0..4) {
                0 => handler.invoke(number),
                1 => other.try_invoke(number).unwrap(),
                2 => pool.execute(add(number)),
                _ => drop(pool.evaluate(add(number))),
            }
            // So that the worker is met at work, about to rest, and at rest.
            crate::common::dawdle(3000);
        }
        assert_eq!(written(&pool, &log), (0..100).collect::<Vec<_>>());
    }
}
