//! Started work first: a woken future is polled before tasks that were queued earlier, wherever the
//! wake comes from and wherever those tasks are queued. Neither of the two starves the other.

#![cfg(feature = "async")]

use crate::common;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use std::{hint, thread};

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
}

/// Waits for the futures, then for the pool, and asserts that the new tasks waited for all woken
/// futures.
#[track_caller]
fn end(pool: ThreadPool, order: &Order, handles: impl IntoIterator<Item = JoinHandle<()>>) {
    handles.into_iter().for_each(value);
    pool.join();
    let order = order.0.lock().unwrap();
    let last = order.iter().rposition(|is_woken| *is_woken).expect("a woken future ran");
    let new = order[..last].iter().filter(|is_woken| !**is_woken).count();
    assert!(new <= TURNS_OF_NEW, "{new} came first");
    assert_eq!(order.iter().filter(|is_woken| !**is_woken).count(), BACKLOG);
    drop(order);
    pool.shutdown_join();
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
        end(pool, &order, [handle]);
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
    end(pool, &order, [handle]);
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
    end(pool, &order, [handle]);
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
    // The waking task ends only after the future.
    value(handle);
    gate.open();
    end(pool, &order, []);
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
    end(pool, &order, []);
}

// A worker that takes a new task in its turn may be busy with it for long.
#[test]
fn a_long_task_in_its_turn_does_not_keep_woken_futures() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let other = block(&pool);
    let order = Order::default();
    let (triggers, handles): (Vec<_>, Vec<_>) =
        (0..24).map(|_| pending_future(&pool, &order)).unzip();
    // A worker that has rested takes no task for a short one.
    wait_until("it rests", || pool.idle_worker_count() == 1);
    let (inner, gate) = (pool.clone(), Gate::new());
    let (passes, fires) = (Arc::clone(&gate), triggers.clone());
    pool.spawn(async move {
        yielding(1).await;
        inner.execute(move || passes.pass());
        fires.iter().for_each(|trigger| trigger.fire());
    });
    gate.wait_for(1);
    let polled = order.0.lock().unwrap().len();
    queue_backlog(&pool, &order);
    other.open();
    // The worker of the long task has shared a few. The other one takes the rest when it finds that
    // worker stalled.
    handles.into_iter().for_each(value);
    gate.open();
    pool.join();
    let order = order.0.lock().unwrap();
    let first = order.iter().position(|is_woken| !is_woken).expect("a new task ran");
    assert!(first > polled, "no woken future came before the new tasks: {polled}");
    drop(order);
    pool.shutdown_join();
}

// A worker has come back from a blocking region, so the one that ran in its place rests, and the
// other one never steals.
#[test]
fn another_worker_with_a_backlog_polls_what_a_spare_one_has_woken() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let order = Order::default();
    let (triggers, handles): (Vec<_>, Vec<_>) =
        (0..4).map(|_| pending_future(&pool, &order)).unzip();
    let (inside, outside, is_polled) = (Gate::new(), Gate::new(), Gate::new());
    let (waits, then_waits) = (Arc::clone(&inside), Arc::clone(&outside));
    pool.execute(move || {
        blocking(|| waits.pass());
        then_waits.pass();
    });
    inside.wait_for(1);
    let (polled, returned, fires) =
        (Arc::clone(&is_polled), Arc::clone(&outside), triggers.clone());
    pool.spawn(async move {
        yielding(1).await;
        polled.open();
        returned.wait_for(1);
        fires.iter().for_each(|trigger| trigger.fire());
    });
    is_polled.pass();
    inside.open();
    wait_until("the one that polled rests", || pool.idle_worker_count() == 1);
    queue_backlog(&pool, &order);
    outside.open();
    end(pool, &order, handles);
}

#[test]
fn futures_that_always_wake_themselves_leave_turns_to_new_tasks() {
    let pools = [
        ThreadPool::new(1, 1, HOUR),
        ThreadPool::builder().core_size(1).max_size(1).queue_capacity(BACKLOG).build(),
        // The quota is smaller than the number of takes from one turn to the next.
        ThreadPool::builder()
            .core_size(1)
            .max_size(1)
            .queue_capacity(BACKLOG)
            .max_tasks_per_worker(2)
            .build(),
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

// The defect: a new task waited for the polls of sixteen turns, and in a pool with local queues for
// 200 us of them.
#[test]
fn a_future_that_yields_after_some_work_gives_way_to_new_tasks() {
    /// Long enough that looking for a new task costs little beside it.
    const WORK: Duration = Duration::from_micros(20);

    for pool in [
        ThreadPool::new(1, 1, HOUR),
        ThreadPool::builder().core_size(1).max_size(1).queue_capacity(BACKLOG + 1).build(),
    ] {
        let gate = block(&pool);
        let (ran, polls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (ended, counted) = (Arc::clone(&ran), Arc::clone(&polls));
        let handle = pool.spawn_await(poll_fn(move |context| {
            if ended.load(Ordering::Relaxed) == BACKLOG {
                return Poll::Ready(());
            }
            add_one(&counted);
            let begin = Instant::now();
            while begin.elapsed() < WORK {
                hint::spin_loop();
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        for _ in 0..BACKLOG {
            let ran = Arc::clone(&ran);
            pool.execute(move || add_one(&ran));
        }
        gate.open();
        value(handle);
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls <= 2 * BACKLOG, "{polls} polls beside {BACKLOG} new tasks");
        pool.shutdown_join();
    }
}

// The defect: each first poll that yields began a turn of new tasks, so all of these came first.
#[test]
fn new_futures_that_yield_do_not_come_before_woken_ones() {
    const FUTURES: usize = 20_000;

    let pool = ThreadPool::new(1, 1, HOUR);
    let begun = Arc::new(AtomicUsize::new(0));
    let (trigger, triggered) = triggered();
    let trigger = Arc::new(trigger);
    let counted = Arc::clone(&begun);
    let woken = pool.spawn_await(async move {
        triggered.await;
        counted.load(Ordering::Relaxed)
    });
    wait_until("it is pending", || trigger.waker().is_some());
    let gate = block(&pool);
    for number in 0..FUTURES {
        let (begun, trigger) = (Arc::clone(&begun), Arc::clone(&trigger));
        pool.spawn(async move {
            add_one(&begun);
            if number == 100 {
                trigger.fire();
            }
            yielding(1).await;
        });
    }
    gate.open();
    let begun_before = value(woken);
    assert!(begun_before < FUTURES / 2, "{begun_before} new futures came first");
    pool.shutdown_join();
}

// The defect: those that a worker had shared came back only at intervals, while the others stayed
// local.
#[test]
fn futures_that_always_wake_themselves_share_the_worker() {
    const FUTURES: usize = 10;
    const POLLS: usize = 3000;

    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let total = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..FUTURES)
        .map(|_| {
            let (total, mut polls) = (Arc::clone(&total), 0);
            pool.spawn_await(poll_fn(move |context| {
                if total.fetch_add(1, Ordering::Relaxed) >= POLLS {
                    return Poll::Ready(polls);
                }
                polls += 1;
                context.waker().wake_by_ref();
                Poll::Pending
            }))
        })
        .collect();
    gate.open();
    let polls: Vec<usize> = handles.into_iter().map(value).collect();
    assert!(polls.iter().all(|polls| *polls >= POLLS / FUTURES / 3), "{polls:?}");
    pool.shutdown_join();
}

// Each poll leaves a stale entry behind: the worker has run the awaited task on its own stack.
#[test]
fn stale_entries_use_up_no_turns_of_new_tasks() {
    /// As many stale entries would be in the queue.
    const POLLS: usize = 20_000;

    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1_000_000).build();
    let (end, polls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let wakers = Arc::new([const { Mutex::new(None::<Waker>) }; 2]);
    for number in 0..2 {
        let (inner, end, polls) = (pool.downgrade(), Arc::clone(&end), Arc::clone(&polls));
        let wakers = Arc::clone(&wakers);
        // They wake each other: one that yields would give way to the stale entries.
        pool.spawn(poll_fn(move |context| {
            *wakers[number].lock().unwrap() = Some(context.waker().clone());
            let other = wakers[1 - number].lock().unwrap().clone();
            other.as_ref().unwrap_or(context.waker()).wake_by_ref();
            let Some(pool) = inner.upgrade().filter(|_| !end.load(Ordering::Relaxed)) else {
                return Poll::Ready(());
            };
            add_one(&polls);
            pool.evaluate(|| ()).await_complete();
            Poll::Pending
        }));
    }
    wait_until("they are polled", || polls.load(Ordering::Relaxed) > POLLS);
    let waits = (0..10).map(|_| {
        let (polls, before) = (Arc::clone(&polls), polls.load(Ordering::Relaxed));
        pool.evaluate(move || polls.load(Ordering::Relaxed) - before)
    });
    // The shortest: this thread may lose its CPU before it submits.
    let shortest = waits.collect::<Vec<_>>().into_iter().map(value).min();
    assert!(shortest.unwrap() < POLLS / 2, "{shortest:?} polls came first");
    end.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    pool.shutdown_join();
}

// The defect: the worker ran the other pool's task, which needs the future, on top of the poll that
// had woken the future.
#[test]
fn a_scope_of_another_pool_needs_what_the_poll_below_it_has_woken() {
    let (pool, other) = (ThreadPool::new(2, 2, HOUR), ThreadPool::new(1, 1, HOUR));
    assert_eq!(pool.start_core_threads(), 2);
    // So that the worker runs the scope's task itself.
    let busy = block(&other);
    let (trigger, triggered) = triggered();
    let gate = Gate::new();
    let opens = Arc::clone(&gate);
    pool.spawn(async move {
        triggered.await;
        opens.open();
    });
    wait_until("it is pending", || trigger.waker().is_some());
    let (inner, scopes) = (pool.clone(), other.clone());
    let handle = pool.spawn_await(async move {
        yielding(1).await;
        wait_until("the other worker rests", || inner.idle_worker_count() == 1);
        trigger.fire();
        scopes.scope(|scope| scope.execute(|| gate.pass()));
    });
    value(handle);
    busy.open();
    pool.shutdown_join();
    other.shutdown_join();
}

// The defect: the idle worker was not told of the other future until the end of the poll, which
// waited for it.
#[test]
fn a_poll_that_was_woken_waits_for_a_future_that_it_wakes() {
    let pool = ThreadPool::new(2, 2, HOUR);
    for _ in 0..50 {
        let (first, is_woken) = triggered();
        let (second, is_awaited) = triggered();
        let (answer, answered) = mpsc::channel();
        let answering = pool.spawn_await(async move {
            is_awaited.await;
            answer.send(()).unwrap();
        });
        wait_until("it is pending", || second.waker().is_some());
        let asking = pool.spawn_await(async move {
            is_woken.await;
            second.fire();
            answered.recv_timeout(LIMIT).expect("the other future answers");
        });
        wait_until("it is pending", || first.waker().is_some());
        wait_until("both workers are idle", || pool.stats().idle == 2 || pool.stats().workers < 2);
        first.fire();
        value(asking);
        value(answering);
    }
    pool.shutdown_join();
}
