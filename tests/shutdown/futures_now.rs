//! `shutdown_now` and futures.

use std::future::poll_fn;
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread;

use crate::common::{
    Drops, Gate, HOUR, LIMIT, Trigger, block, settled, triggered, value, wait_until,
};
use crate::{busy, cancelled, cancelled_by_now, ends};
use elastipool::{JoinHandle, Task, ThreadPool};

/// A future that waits, and counts when it is dropped.
fn spawn_triggered(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<()>, Trigger) {
    let (trigger, triggered) = triggered();
    let guard = drops.issue();
    let handle = pool.spawn_await(async move {
        let _captured = guard;
        triggered.await;
    });
    (handle, trigger)
}

#[test]
fn shutdown_now_hands_back_an_unpolled_future_that_can_be_run() {
    let (pool, gate) = busy();
    let ready = pool.spawn_await(async { 1 });
    let (trigger, triggered) = triggered();
    let waits = pool.spawn_await(async move {
        triggered.await;
        2
    });
    let drops = Drops::default();
    let (dropped, _teller) = spawn_triggered(&pool, &drops);
    let mut tasks = pool.shutdown_now().into_iter();
    assert_eq!(tasks.len(), 3);
    tasks.next().unwrap().run();
    assert_eq!(value(ready), 1);

    let second = tasks.next().unwrap();
    let runner = thread::spawn(move || second.run());
    wait_until("it is polled", || trigger.polls() == 1);
    assert!(!waits.is_finished() && !runner.is_finished());
    trigger.fire();
    assert_eq!(value(waits), 2);
    runner.join().unwrap();

    assert_eq!(drops.count(), 0);
    drop(tasks);
    assert_eq!(drops.count(), 1);
    cancelled_by_now(dropped);
    gate.open();
    ends(pool.clone());
    assert_eq!(pool.stats().handed_back, 3);
}

#[test]
fn a_handed_back_future_whose_handle_is_cancelled_is_not_polled() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    // Before the shutdown, and after it.
    let (before, first) = spawn_triggered(&pool, &drops);
    let (after, second) = spawn_triggered(&pool, &drops);
    before.cancel();
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    after.cancel();
    cancelled_by_now(before);
    assert!(!after.is_finished(), "its new owner drops it");
    tasks.into_iter().for_each(Task::run);
    cancelled_by_now(after);
    gate.open();
    ends(pool);
    assert_eq!((first.polls(), second.polls(), drops.count()), (0, 0, 2));
}

/// Its new owner drops it.
#[test]
fn a_handed_back_future_can_be_cancelled_while_it_waits() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    let (handle, trigger) = spawn_triggered(&pool, &drops);
    let task = pool.shutdown_now().pop().unwrap();
    let runner = thread::spawn(move || task.run());
    wait_until("it is pending", || trigger.waker().is_some());
    handle.cancel();
    let result = handle.await_complete_timeout(LIMIT / 10);
    trigger.fire();
    runner.join().unwrap();
    gate.open();
    ends(pool);
    assert!(result.expect("cancelled").unwrap_err().is_cancelled());
}

#[test]
fn a_panic_of_a_handed_back_future_goes_to_its_handle() {
    let (pool, gate) = busy();
    let handle = pool.spawn_await(async { panic!("for the handle") });
    pool.spawn(async { panic!("without a handle") });
    pool.shutdown_now().into_iter().for_each(Task::run);
    let error = settled(handle).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: for the handle");
    gate.open();
    ends(pool);
}

#[test]
fn shutdown_now_cancels_pending_futures() {
    const COUNT: usize = 40;
    let pool = ThreadPool::new(1, 2, HOUR);
    let drops = Drops::default();
    let (handles, triggers): (Vec<_>, Vec<_>) =
        (0..COUNT).map(|_| spawn_triggered(&pool, &drops)).unzip();
    wait_until("all are polled", || triggers.iter().all(|trigger| trigger.polls() == 1));
    // And not being polled any more.
    wait_until("no worker is busy", || {
        pool.queued_count() == 0 && pool.idle_worker_count() == pool.current_worker_count()
    });
    assert!(pool.shutdown_now().is_empty());
    handles.into_iter().for_each(cancelled);
    ends(pool.clone());
    assert_eq!(drops.count(), COUNT, "dropped before that returned");
    triggers.iter().for_each(Trigger::fire);
    assert!(triggers.iter().all(|trigger| trigger.polls() == 1));
    let stats = pool.stats();
    assert_eq!((stats.cancelled, stats.completed, stats.handed_back), (COUNT, 0, 0));
}

#[test]
fn shutdown_now_cancels_woken_futures() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let drops = Drops::default();
    let (handles, triggers): (Vec<_>, Vec<_>) =
        (0..5).map(|_| spawn_triggered(&pool, &drops)).unzip();
    wait_until("all are pending", || {
        triggers.iter().all(|trigger| trigger.polls() == 1) && pool.stats().pending == 5
    });
    let gate = block(&pool);
    triggers.iter().for_each(Trigger::fire);
    assert_eq!(pool.stats().queued, 5);
    assert!(pool.shutdown_now().is_empty(), "they have begun");
    assert!(handles.iter().all(|handle| !handle.is_finished()));
    assert_eq!(drops.count(), 0, "they are dropped by a worker");
    gate.open();
    handles.into_iter().for_each(cancelled);
    ends(pool.clone());
    assert!(triggers.iter().all(|trigger| trigger.polls() == 1));
    assert_eq!((drops.count(), pool.stats().cancelled), (5, 5));
}

/// One thread finds the futures among those that wait, another one in the queue.
#[test]
fn a_second_shutdown_now_polls_no_woken_future() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let drops = Drops::default();
    let (handles, triggers): (Vec<_>, Vec<_>) =
        (0..5).map(|_| spawn_triggered(&pool, &drops)).unzip();
    wait_until("all are pending", || {
        triggers.iter().all(|trigger| trigger.polls() == 1) && pool.stats().pending == 5
    });
    let gate = block(&pool);
    triggers.iter().for_each(Trigger::fire);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        let stop = || {
            both.wait();
            assert!(pool.shutdown_now().is_empty());
        };
        scope.spawn(stop);
        stop();
    });
    gate.open();
    handles.into_iter().for_each(cancelled);
    assert!(triggers.iter().all(|trigger| trigger.polls() == 1));
    ends(pool);
    assert_eq!(drops.count(), 5);
}

/// In its first poll, or in a later one.
#[test]
fn shutdown_now_drops_a_future_after_its_poll() {
    for held_in in [1, 2] {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (gate, drops) = (Gate::new(), Drops::default());
        let (passes, guard) = (Arc::clone(&gate), drops.issue());
        let mut polls = 0;
        let handle = pool.spawn_await(poll_fn(move |context| -> Poll<()> {
            let _captured = &guard;
            polls += 1;
            context.waker().wake_by_ref();
            if polls == held_in {
                passes.pass();
            }
            assert!(polls <= held_in);
            Poll::Pending
        }));
        gate.wait_for(1);
        assert!(pool.shutdown_now().is_empty());
        assert_eq!((drops.count(), handle.is_finished()), (0, false));
        gate.open();
        cancelled(handle);
        ends(pool.clone());
        assert_eq!((drops.count(), pool.stats().cancelled), (1, 1));
    }
}

#[test]
fn a_future_that_becomes_ready_during_shutdown_now_has_its_output() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.spawn_await(async move {
        passes.pass();
        1
    });
    gate.wait_for(1);
    assert!(pool.shutdown_now().is_empty());
    gate.open();
    assert_eq!(value(handle), 1);
    ends(pool);
}

/// Wakes, first polls and the shutdown, all at once.
#[test]
fn a_shutdown_among_wakes_settles_every_handle() {
    for round in 0..200 {
        let pool = ThreadPool::new(round % 2, 2, HOUR);
        let drops = Drops::default();
        let (handles, triggers): (Vec<_>, Vec<_>) =
            (0..10).map(|_| spawn_triggered(&pool, &drops)).unzip();
        let start = Gate::new();
        let mut tasks = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                start.meet(2);
                triggers.iter().for_each(Trigger::fire);
            });
            start.meet(2);
            crate::common::dawdle(500);
            tasks = pool.shutdown_now();
        });
        ends(pool.clone());
        let given_back = tasks.len();
        assert_eq!(drops.count(), 10 - given_back);
        drop(tasks);
        let ready = handles.into_iter().map(settled).filter(Result::is_ok).count();
        assert_eq!(drops.count(), 10);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.handed_back), (ready, given_back));
        assert_eq!(stats.cancelled, 10 - ready - given_back);
    }
}
