//! `shutdown_now` hands back what was queued.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{Drops, HOUR, LIMIT, block, refused, settled, value};
use crate::{busy, cancelled, cancelled_by_now, ends};
use elastipool::{Builder, RejectReason, Task, ThreadPool};

#[test]
fn shutdown_now_hands_queued_tasks_back_in_order() {
    let (pool, gate) = busy();
    let log = Arc::new(Mutex::new(Vec::new()));
    for number in 0..5 {
        let log = Arc::clone(&log);
        pool.execute(move || log.lock().unwrap().push(number));
    }
    let other = pool.clone();
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 5);
    assert!(pool.is_closed() && other.is_closed());
    refused(other.try_execute(|| ()), RejectReason::Closed);
    let stats = pool.stats();
    assert_eq!((stats.handed_back, stats.queued, stats.active), (5, 0, 1));
    assert_eq!(stats.accepted(), 6);
    gate.open();
    ends(other);
    assert!(log.lock().unwrap().is_empty(), "none has run");
    tasks.into_iter().for_each(Task::run);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4]);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.handed_back, stats.accepted()), (1, 5, 6));
}

#[test]
fn a_handed_back_task_that_is_run_settles_its_handle() {
    let (pool, gate) = busy();
    let here = thread::current().id();
    let handles =
        [pool.evaluate(|| thread::current().id()), pool.complete(async { thread::current().id() })];
    for task in pool.shutdown_now() {
        task.run();
    }
    for handle in handles {
        assert!(handle.is_finished());
        assert_eq!(value(handle), here);
    }
    gate.open();
    ends(pool);
}

#[test]
fn a_handed_back_task_that_is_dropped_cancels_its_handle() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    let (one, other) = (drops.issue(), drops.issue());
    let handles = [pool.evaluate(move || drop(one)), pool.complete(async move { drop(other) })];
    let tasks = pool.shutdown_now();
    assert_eq!((tasks.len(), drops.count()), (2, 0));
    assert!(handles.iter().all(|handle| !handle.is_finished()));
    drop(tasks);
    assert_eq!(drops.count(), 2);
    handles.into_iter().for_each(cancelled_by_now);
    gate.open();
    ends(pool);
}

#[test]
fn a_handed_back_task_whose_handle_is_cancelled_does_not_run() {
    let (pool, gate) = busy();
    let handle = pool.evaluate(|| panic!("it runs"));
    let tasks = pool.shutdown_now();
    handle.cancel();
    assert!(!handle.is_finished(), "its new owner drops it");
    tasks.into_iter().for_each(Task::run);
    cancelled_by_now(handle);
    gate.open();
    ends(pool);
}

#[test]
fn shutdown_now_hands_back_no_task_that_was_cancelled_before() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    let guard = drops.issue();
    let handle = pool.evaluate(move || drop(guard));
    handle.cancel();
    let stays = pool.evaluate(|| 1);
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    tasks.into_iter().for_each(Task::run);
    assert_eq!(value(stays), 1);
    cancelled(handle);
    gate.open();
    ends(pool.clone());
    assert_eq!(drops.count(), 1);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.handed_back), (1, 1, 1));
}

#[test]
fn no_join_waits_for_what_was_given_back() {
    let (pool, gate) = busy();
    let handle = pool.evaluate(|| 1);
    let tasks = pool.shutdown_now();
    assert!(!pool.join_timeout(Duration::ZERO), "it waits for what runs");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    ends(pool);
    assert!(!handle.is_finished());
    tasks.into_iter().for_each(Task::run);
    assert_eq!(value(handle), 1);
}

#[test]
fn a_handed_back_task_names_its_pool_and_may_go_anywhere() {
    fn goes_anywhere<T: Send + Debug + 'static>(_: &T) {}

    let pool = ThreadPool::new_named("givers", 1, 1, HOUR);
    let gate = block(&pool);
    let handle = pool.evaluate(|| thread::current().id());
    let task = pool.shutdown_now().pop().unwrap();
    goes_anywhere(&task);
    let text = format!("{task:?}");
    assert!(text.contains("Task") && text.contains("givers"), "{text}");
    let other = thread::spawn(move || {
        task.run();
        thread::current().id()
    });
    assert_eq!(value(handle), other.join().unwrap());
    gate.open();
    ends(pool);
}

#[test]
fn a_panic_of_a_handed_back_task_does_not_reach_its_runner() {
    let payloads = Arc::new(Mutex::new(Vec::new()));
    let gets = Arc::clone(&payloads);
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let handled = sizes.panic_handler(move |payload| gets.lock().unwrap().push(payload)).build();
    for (pool, is_handled) in [(handled, true), (ThreadPool::new(1, 1, HOUR), false)] {
        let gate = block(&pool);
        let handle = pool.evaluate(|| -> u8 { panic!("for the handle") });
        pool.execute(|| panic!("for the handler"));
        drop(pool.evaluate(|| -> u8 { panic!("for the handler") }));
        pool.shutdown_now().into_iter().for_each(Task::run);
        let payload = settled(handle).unwrap_err().into_panic();
        assert_eq!(payload.downcast_ref(), Some(&"for the handle"));
        let payloads = std::mem::take(&mut *payloads.lock().unwrap());
        assert_eq!(payloads.len(), if is_handled { 2 } else { 0 });
        for payload in payloads {
            assert_eq!(payload.downcast_ref(), Some(&"for the handler"));
        }
        gate.open();
        ends(pool);
    }
}

#[test]
fn a_handed_back_task_whose_destructor_panics_can_be_dropped() {
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("dropped the bomb");
        }
    }

    let (pool, gate) = busy();
    let count = Arc::new(AtomicUsize::new(0));
    let (one, other) = (Bomb(Arc::clone(&count)), Bomb(Arc::clone(&count)));
    pool.execute(move || std::mem::forget(one));
    let handle = pool.evaluate(move || std::mem::forget(other));
    drop(pool.shutdown_now());
    cancelled_by_now(handle);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    gate.open();
    ends(pool);
}
