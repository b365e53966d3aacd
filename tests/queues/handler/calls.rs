//! What a call does.

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::{Gate, HOUR, LIMIT};
use crate::handler::{MOMENT, busy, one, pool, worker_of, writer, written};
use elastipool::{ThreadPool, worker_index};

#[test]
fn each_argument_is_given_to_the_handlers_function_once() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let (handler, log) = writer(&pool);
    for number in 0..1000 {
        if number % 2 == 0 {
            handler.invoke(number);
        } else {
            handler.try_invoke(number).unwrap();
        }
    }
    let mut numbers = written(&pool, &log);
    numbers.sort();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[test]
fn the_function_of_a_handler_runs_on_a_worker() {
    let pool = pool();
    let (sender, receiver) = mpsc::channel();
    let handler =
        pool.handler(move |()| sender.send((thread::current().id(), worker_index())).unwrap());
    handler.invoke(());
    let (id, index) = receiver.recv_timeout(LIMIT).unwrap();
    assert_eq!((id, index), (worker_of(&pool), Some(0)));
    handler.try_invoke(()).unwrap();
    assert_eq!(receiver.recv_timeout(LIMIT), Ok((id, index)));
}

#[test]
fn calls_of_a_handler_run_at_the_same_time() {
    let pool = ThreadPool::new(0, 3, HOUR);
    let table = Gate::new();
    let meets = Arc::clone(&table);
    let handler = pool.handler(move |party| meets.meet(party));
    (0..3).for_each(|_| handler.invoke(3));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((table.arrived(), pool.stats().panicked), (3, 0));
}

#[test]
fn clones_of_a_handler_call_the_same_function() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let clone = handler.clone();
    handler.invoke(1);
    clone.invoke(2);
    drop(handler);
    clone.clone().invoke(3);
    assert_eq!(written(&pool, &log), [1, 2, 3]);
}

#[test]
fn several_threads_share_a_handler() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let (handler, log) = writer(&pool);
    thread::scope(|scope| {
        for thread in 0..4 {
            let handler = &handler;
            scope.spawn(move || (0..100).for_each(|number| handler.invoke(100 * thread + number)));
        }
    });
    let mut numbers = written(&pool, &log);
    numbers.sort();
    assert_eq!(numbers, (0..400).collect::<Vec<_>>());
}

#[test]
fn a_handler_is_send_and_sync_whatever_its_argument_is() {
    fn is_all<T: Send + Sync + UnwindSafe + RefUnwindSafe + Clone + 'static>(_: &T) {}

    let pool = pool();
    let (handler, log) = writer::<Cell<u8>>(&pool);
    is_all(&handler);
    thread::scope(|scope| {
        scope.spawn(|| handler.invoke(Cell::new(1)));
    });
    assert_eq!(written(&pool, &log), [Cell::new(1)]);
}

#[test]
fn the_debug_text_of_a_handler_names_the_pool() {
    let pool = one().name("of-the-handler").build();
    let handler = pool.handler(|_: u8| ());
    assert_eq!(format!("{handler:?}"), "Handler { pool: \"of-the-handler\", .. }");
}

#[test]
fn join_waits_for_calls_of_a_handler() {
    let (pool, gate) = busy(one());
    let passes = Arc::clone(&gate);
    let handler = pool.handler(move |()| passes.pass());
    handler.invoke(());
    // Queued,
    assert!(!pool.join_timeout(MOMENT));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    // and running.
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handler = pool.handler(move |()| passes.pass());
    handler.invoke(());
    gate.wait_for(1);
    assert!(!pool.join_timeout(MOMENT));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

#[test]
fn what_a_handlers_function_writes_is_visible_after_join() {
    let pool = ThreadPool::new(4, 4, HOUR);
    let sum = Arc::new(AtomicUsize::new(0));
    let adds = Arc::clone(&sum);
    // Relaxed: it is the join that makes it visible.
    let handler = pool.handler(move |number| {
        adds.fetch_add(number, Ordering::Relaxed);
    });
    for round in 1..=200 {
        (0..10).for_each(|_| handler.invoke(1));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(sum.load(Ordering::Relaxed), 10 * round);
    }
}
