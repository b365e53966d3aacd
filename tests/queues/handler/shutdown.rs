//! The end of the pool, and of the handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crate::common::{Dropped, Drops, Gate, LIMIT, panic_text, refused, wait_until};
use crate::handler::{Bomb, Log, busy, heard, one, pool, writer, written};
use elastipool::{Builder, RejectReason, Task};

#[test]
fn a_handler_does_not_keep_the_pool_open() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let clone = pool.clone();
    drop(pool);
    handler.invoke("open");
    assert_eq!(written(&clone, &log), ["open"]);
    drop(clone);
    assert_eq!(refused(handler.try_invoke("late"), RejectReason::Closed).into_task(), "late");
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn invoke_on_a_closed_pool_panics_with_a_message() {
    let pool = pool();
    let drops = Drops::default();
    let handler = pool.handler(drop::<Dropped>);
    drop(pool);
    assert_eq!(
        panic_text(|| handler.invoke(drops.issue())),
        "the task was not accepted: the pool is closed; `try_invoke` hands it back"
    );
    assert_eq!(drops.count(), 1);
    // The destructor runs apart from the panic, or this would abort.
    let handler = {
        let pool = self::pool();
        pool.handler(drop::<Bomb>)
    };
    assert!(panic_text(|| handler.invoke(Bomb)).contains("closed"));
}

#[test]
fn calls_that_were_accepted_are_made_after_the_pool_was_dropped() {
    let (pool, gate) = busy(one());
    let (handler, log) = writer(&pool);
    (0..100).for_each(|number| handler.invoke(number));
    drop(pool);
    refused(handler.try_invoke(100), RejectReason::Closed);
    gate.open();
    wait_until("all calls are made", || log.lock().unwrap().len() == 100);
    assert_eq!(*log.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn the_pool_ends_while_there_is_a_handler() {
    let pool = Builder::new().name("h-ends").core_size(2).max_size(2).build();
    let (handler, log) = writer(&pool);
    (0..100).for_each(|number| handler.invoke(number));
    let clone = handler.clone();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(log.lock().unwrap().len(), 100);
    #[cfg(target_os = "linux")]
    wait_until("its threads are gone", || crate::common::threads_named("h-ends") == 0);
    for handler in [handler, clone] {
        refused(handler.try_invoke(100), RejectReason::Closed);
    }
}

#[test]
fn shutdown_now_gives_the_calls_back_to_be_made_or_not() {
    let (builder, heard) = heard();
    let (pool, gate) = busy(builder);
    let drops = Drops::default();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |(number, _guard): (u32, Dropped)| {
        logs.lock().unwrap().push((number, thread::current().id()));
        assert!(number != 1, "on purpose");
    });
    (0..4).for_each(|number| handler.invoke((number, drops.issue())));
    let mut tasks = pool.shutdown_now();
    assert_eq!((tasks.len(), pool.stats().handed_back, drops.count()), (4, 4, 0));
    refused(handler.try_invoke((4, drops.issue())), RejectReason::Closed);
    assert_eq!(drops.count(), 1, "that of the refused one");
    // The last two are not made, and drop their arguments.
    drop(tasks.split_off(2));
    assert_eq!(drops.count(), 3);
    assert!(log.lock().unwrap().is_empty());
    tasks.into_iter().for_each(Task::run);
    assert_eq!(drops.count(), 5);
    let here = thread::current().id();
    assert_eq!(*log.lock().unwrap(), [(0, here), (1, here)]);
    assert_eq!(heard.load(Ordering::SeqCst), 1, "its panic goes where it would have gone");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 4));
}

#[test]
fn a_call_that_was_given_back_may_be_dropped_with_whatever_destructor() {
    let (pool, gate) = busy(one());
    let handler = pool.handler(|_bomb: Bomb| ());
    (0..3).for_each(|_| handler.invoke(Bomb));
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 3);
    drop(tasks);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_function_is_dropped_after_the_last_handler_and_the_last_call() {
    let (pool, gate) = busy(one());
    let drops = Drops::default();
    let guard = drops.issue();
    let handler = pool.handler(move |passes: Arc<Gate>| {
        let _captured = &guard;
        passes.pass();
    });
    let (first, second) = (Gate::new(), Gate::new());
    handler.invoke(Arc::clone(&first));
    handler.clone().invoke(Arc::clone(&second));
    drop(handler);
    assert_eq!(drops.count(), 0, "two calls are queued");
    gate.open();
    first.wait_for(1);
    first.open();
    second.wait_for(1);
    assert_eq!(drops.count(), 0, "a call is made");
    second.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1, "as part of the call, so before the join");
    // And by the last handler if there is no call.
    let guard = drops.issue();
    let handler = pool.handler(move |()| {
        let _captured = &guard;
    });
    handler.invoke(());
    let clone = handler.clone();
    drop(handler);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
    drop(clone);
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_call_that_was_given_back_keeps_the_function() {
    let (pool, gate) = busy(one());
    let drops = Drops::default();
    let guard = drops.issue();
    let handler = pool.handler(move |()| {
        let _captured = &guard;
    });
    handler.invoke(());
    drop(handler);
    let tasks = pool.shutdown_now();
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!((tasks.len(), drops.count()), (1, 0));
    drop(tasks);
    assert_eq!(drops.count(), 1);
}
