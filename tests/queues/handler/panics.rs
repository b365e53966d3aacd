//! Panics of the function, and of destructors.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, mpsc};

use crate::common::{Dropped, Drops, LIMIT};
use crate::handler::{Bomb, Log, busy, one, pool, worker_of, written};

#[test]
fn a_panic_of_a_handlers_function_goes_to_the_panic_handler_and_costs_no_worker() {
    let (sender, payloads) = mpsc::channel();
    let pool = one().panic_handler(move |payload| sender.send(payload).unwrap()).build();
    let worker = worker_of(&pool);
    let handler = pool.handler(|number: u32| panic_any(number));
    handler.invoke(1);
    handler.try_invoke(2).unwrap();
    for number in [1_u32, 2] {
        let payload = payloads.recv_timeout(LIMIT).expect("it receives the payload");
        assert_eq!(payload.downcast_ref(), Some(&number));
    }
    assert!(pool.join_timeout(LIMIT));
    assert!(payloads.try_recv().is_err());
    assert_eq!((pool.stats().panicked, pool.stats().completed), (2, 1));
    assert_eq!((worker_of(&pool), pool.stats().threads_started), (worker, 1));
}

#[test]
fn a_handlers_function_is_called_again_after_a_panic() {
    let pool = pool();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |number: u32| {
        assert!(number % 2 == 0, "on purpose");
        logs.lock().unwrap().push(number);
    });
    (0..6).for_each(|number| handler.invoke(number));
    assert_eq!(written(&pool, &log), [0, 2, 4]);
    assert_eq!((pool.stats().panicked, pool.stats().completed), (3, 3));
}

#[test]
fn a_panic_drops_the_argument_once() {
    let pool = pool();
    let drops = Drops::default();
    let handler = pool.handler(|_guard: Dropped| panic!("on purpose"));
    handler.invoke(drops.issue());
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_destructor_of_the_argument_that_panics_costs_no_worker() {
    let pool = pool();
    let worker = worker_of(&pool);
    let handler = pool.handler(|_bomb: Bomb| ());
    (0..3).for_each(|_| handler.invoke(Bomb));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().panicked, pool.stats().completed), (3, 1));
    assert_eq!((worker_of(&pool), pool.stats().threads_started), (worker, 1));
}

#[test]
fn a_destructor_of_the_function_that_panics_costs_no_worker() {
    let (pool, gate) = busy(one());
    let log = Log::default();
    let (logs, bomb) = (Arc::clone(&log), Bomb);
    let handler = pool.handler(move |number| {
        let _captured = &bomb;
        logs.lock().unwrap().push(number);
    });
    handler.invoke(1);
    // The call is the last to hold the function.
    drop(handler);
    gate.open();
    assert_eq!(written(&pool, &log), [1]);
    assert_eq!(pool.stats().panicked, 1);
    worker_of(&pool);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.threads_started, stats.in_flight()), (1, 1, 0));
}

#[test]
fn a_panic_of_a_destructor_that_the_caller_runs_is_the_callers() {
    let pool = pool();
    let bomb = Bomb;
    let handler = pool.handler(move |()| {
        let _captured = &bomb;
    });
    handler.invoke(());
    assert!(pool.join_timeout(LIMIT));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(handler)));
    assert_eq!(dropped.unwrap_err().downcast_ref(), Some(&"a destructor's, on purpose"));
    assert_eq!((pool.stats().panicked, pool.stats().completed), (0, 1));
}
