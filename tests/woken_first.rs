//! Started work first: a woken future is polled before tasks that were queued earlier, wherever the wake comes from and
//! wherever those tasks are queued. Neither of the two starves the other.

#![cfg(feature = "async")]

mod common;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use common::{Gate, HOUR, LIMIT, Trigger, block, triggered, value, wait_until};
use elastipool::{JoinHandle, ThreadPool, blocking};

/// More tasks than any batch or interval.
const BACKLOG: usize = 300;

/// How many new tasks one worker may take before a woken future: at intervals they come first.
const TURNS_OF_NEW: usize = 2;

/// What ran, in order. `true` stands for a woken future.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<bool>>>);

impl Order {
    fn record(&self, is_woken: bool) {
        self.0.lock().unwrap().push(is_woken);
    }

    /// Returns how many new tasks ran before the last woken future.
    #[track_caller]
    fn new_before_woken(&self, woken: usize) -> usize {
        let order = self.0.lock().unwrap();
        assert_eq!(order.iter().filter(|is_woken| **is_woken).count(), woken);
        let last = order.iter().rposition(|is_woken| *is_woken).unwrap();
        last + 1 - woken
    }
}

/// Spawns a future that is pending when this returns. The trigger must live until it is ready.
fn pending_future(pool: &ThreadPool, order: &Order) -> (Arc<Trigger>, JoinHandle<()>) {
    let (trigger, triggered) = triggered();
    let trigger = Arc::new(trigger);
    let order = order.clone();
    let handle = pool.spawn_await(async move {
        triggered.await;
        order.record(true);
    });
    wait_until("it is pending", || trigger.waker().is_some());
    (trigger, handle)
}

fn queue_backlog(pool: &ThreadPool, order: &Order) {
    for _ in 0..BACKLOG {
        let order = order.clone();
        pool.execute(move || order.record(false));
    }
}

fn add_one(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn yielding(mut times: usize) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_wake_from_outside_comes_before_the_backlog() {
    for pool in [
        ThreadPool::new(1, 1, HOUR),
        ThreadPool::builder().core_size(1).max_size(1).queue_capacity(BACKLOG + 1).build(),
    ] {
        let order = Order::default();
        let (trigger, handle) = pending_future(&pool, &order);
        let gate = block(&pool);
        queue_backlog(&pool, &order);
        trigger.fire();
        gate.open();
        value(handle);
        pool.join();
        let before = order.new_before_woken(1);
        assert!(before <= TURNS_OF_NEW, "{before} came first");
        pool.shutdown_join();
    }
}

#[test]
fn a_wake_by_a_task_comes_before_the_tasks_that_it_submitted() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let order = Order::default();
    let (trigger, handle) = pending_future(&pool, &order);
    let (inner, orders, fires) = (pool.clone(), order.clone(), Arc::clone(&trigger));
    pool.execute(move || {
        queue_backlog(&inner, &orders);
        fires.fire();
    });
    value(handle);
    pool.join();
    let before = order.new_before_woken(1);
    assert!(before <= TURNS_OF_NEW, "{before} came first");
    pool.shutdown_join();
}

#[test]
fn a_wake_by_a_poll_comes_before_the_tasks_that_the_poll_submitted() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let order = Order::default();
    let (trigger, handle) = pending_future(&pool, &order);
    let (inner, orders, fires) = (pool.clone(), order.clone(), Arc::clone(&trigger));
    pool.spawn(async move {
        yielding(1).await;
        queue_backlog(&inner, &orders);
        fires.fire();
    });
    value(handle);
    pool.join();
    let before = order.new_before_woken(1);
    assert!(before <= TURNS_OF_NEW, "{before} came first");
    pool.shutdown_join();
}

// The waking task does not end: its worker cannot poll the future, and the other one never steals.
#[test]
fn another_worker_with_a_backlog_polls_what_a_busy_one_has_woken() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let order = Order::default();
    let (trigger, handle) = pending_future(&pool, &order);
    let other = block(&pool);
    let gate = Gate::new();
    let (passes, fires) = (Arc::clone(&gate), Arc::clone(&trigger));
    pool.execute(move || {
        fires.fire();
        passes.pass();
    });
    gate.wait_for(1);
    queue_backlog(&pool, &order);
    other.open();
    value(handle);
    gate.open();
    pool.join();
    let before = order.new_before_woken(1);
    assert!(before <= TURNS_OF_NEW, "{before} came first");
    pool.shutdown_join();
}

// The same for a poll that wakes others and then waits for something else.
#[test]
fn another_worker_with_a_backlog_polls_what_a_blocked_one_has_woken() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let order = Order::default();
    let (triggers, handles): (Vec<_>, Vec<_>) =
        (0..4).map(|_| pending_future(&pool, &order)).unzip();
    let gate = Gate::new();
    let (inner, orders, passes) = (pool.clone(), order.clone(), Arc::clone(&gate));
    let fires = triggers.clone();
    pool.spawn(async move {
        yielding(1).await;
        // From outside, or it would be behind the woken futures in the same local queues.
        thread::spawn(move || queue_backlog(&inner, &orders)).join().unwrap();
        fires.iter().for_each(|trigger| trigger.fire());
        blocking(|| passes.pass());
    });
    handles.into_iter().for_each(value);
    gate.open();
    pool.join();
    let before = order.new_before_woken(4);
    assert!(before <= TURNS_OF_NEW, "{before} came first");
    pool.shutdown_join();
}

// A worker that takes a new task in its turn may be busy with it for long.
#[test]
fn a_long_task_in_its_turn_does_not_keep_woken_futures() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let other = block(&pool);
    let order = Order::default();
    let (triggers, handles): (Vec<_>, Vec<_>) =
        (0..24).map(|_| pending_future(&pool, &order)).unzip();
    let (inner, gate) = (pool.clone(), Gate::new());
    let (passes, fires) = (Arc::clone(&gate), triggers.clone());
    pool.spawn(async move {
        yielding(1).await;
        inner.execute(move || passes.pass());
        fires.iter().for_each(|trigger| trigger.fire());
    });
    gate.wait_for(1);
    queue_backlog(&pool, &order);
    other.open();
    handles.into_iter().for_each(value);
    gate.open();
    pool.join();
    let before = order.new_before_woken(24);
    assert!(before <= TURNS_OF_NEW, "{before} came first");
    pool.shutdown_join();
}

#[test]
fn futures_that_always_wake_themselves_leave_turns_to_new_tasks() {
    let pools = [
        ThreadPool::new(1, 1, HOUR),
        ThreadPool::builder().core_size(1).max_size(1).queue_capacity(BACKLOG).build(),
    ];
    for pool in pools {
        let end = Arc::new(AtomicBool::new(false));
        for _ in 0..10 {
            let end = Arc::clone(&end);
            pool.spawn(poll_fn(move |context| {
                if end.load(Ordering::Relaxed) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            }));
        }
        let ran = Arc::new(AtomicUsize::new(0));
        let (inner, inside) = (pool.clone(), Arc::clone(&ran));
        pool.execute(move || {
            // From inside, from outside below.
            let ran = Arc::clone(&inside);
            inner.execute(move || add_one(&ran));
            add_one(&inside);
        });
        for _ in 0..100 {
            let ran = Arc::clone(&ran);
            pool.execute(move || add_one(&ran));
        }
        // And a future that is woken from outside has its turn as well.
        let (trigger, handle) = pending_future(&pool, &Order::default());
        trigger.fire();
        value(handle);
        wait_until("all ran", || ran.load(Ordering::Relaxed) == 102);
        end.store(true, Ordering::Relaxed);
        assert!(pool.join_timeout(LIMIT));
        pool.shutdown_join();
    }
}
