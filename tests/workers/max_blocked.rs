//! `Builder::max_blocked`: for how many workers in declared blocking regions others run at a time,
//! and that waits for tasks of the worker's own pool are not among them.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{
    Gate, HOUR, LIMIT, refused, submit_region, value, value_of_others, wait_until, waited,
};
use elastipool::{RejectReason, ThreadPool, blocking};

fn pool(max_size: usize, max_blocked: usize) -> ThreadPool {
    let builder = ThreadPool::builder().core_size(0).max_size(max_size).keep_alive(HOUR);
    builder.max_blocked(max_blocked).build()
}

/// The bound leaves nothing behind: `max_size` tasks run at once, and no more.
#[track_caller]
fn assert_is_itself_again(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT));
    let max_size = pool.max_size();
    common::submit_interdependent(pool, max_size, || ()).into_iter().for_each(value);
    let gates: Vec<_> = (0..max_size).map(|_| common::block(pool)).collect();
    let queued = pool.evaluate(|| ());
    // Time for a defect.
    thread::sleep(Duration::from_millis(5));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.active, stats.blocked), (1, max_size, 0));
    gates.iter().for_each(|gate| gate.open());
    value(queued);
}

#[test]
fn max_blocked_bounds_the_threads() {
    const TASKS: usize = 300;
    for (max_size, max_blocked) in [(1, 0), (2, 0), (1, 1), (2, 1), (1, 3), (2, 3)] {
        let pool = pool(max_size, max_blocked);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            let ran = Arc::clone(&ran);
            pool.execute(move || {
                blocking(|| thread::sleep(Duration::from_millis(1)));
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(ran.load(Ordering::Relaxed), TASKS);
        let stats = pool.stats();
        assert!(stats.peak_workers <= max_size + max_blocked, "{stats:?}");
        assert!((1..=max_size + max_blocked).contains(&stats.peak_blocked), "{stats:?}");
        assert_is_itself_again(&pool);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn at_max_blocked_no_other_task_runs_until_one_returns() {
    for (max_size, max_blocked) in [(1, 0), (2, 0), (1, 1), (2, 1), (2, 3)] {
        let pool = pool(max_size, max_blocked);
        let blocked = max_size + max_blocked;
        let mut regions: Vec<_> = (0..blocked).map(|_| submit_region(&pool)).collect();
        for _ in 0..3 {
            let queued = pool.evaluate(|| ());
            // Time for a defect.
            thread::sleep(Duration::from_millis(10));
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.blocked, stats.queued), (blocked, blocked, 1));
            assert_eq!((stats.peak_workers, stats.peak_blocked), (blocked, blocked));
            // Whichever it is: the first, which was replaced, or the last, which was not.
            let which = fastrand::usize(0..regions.len());
            let (task, gate) = regions.swap_remove(which);
            gate.open();
            value(task);
            value(queued);
            regions.push(submit_region(&pool));
        }
        for (task, gate) in regions {
            gate.open();
            value(task);
        }
        assert_eq!(pool.stats().threads_started, blocked);
        assert_is_itself_again(&pool);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Also one that is not replaced.
#[test]
fn a_blocked_worker_is_not_awake() {
    for max_blocked in [0, 1] {
        let pool = pool(1, max_blocked);
        let (task, gate) = submit_region(&pool);
        assert_eq!((pool.stats().blocked, pool.stats().awake), (1, 0));
        gate.open();
        value(task);
        assert_is_itself_again(&pool);
    }
}

#[test]
fn max_blocked_is_512_by_default() {
    let pool = ThreadPool::new(0, 1, HOUR);
    // On a 32-bit machine there are not that many.
    let workers = (1 + 512).min(ThreadPool::MAX_SIZE);
    let region = Gate::new();
    for _ in 0..520 {
        let region = Arc::clone(&region);
        pool.execute(move || blocking(|| region.pass()));
    }
    region.wait_for(workers);
    // Time for a defect.
    thread::sleep(Duration::from_millis(20));
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.blocked, stats.queued), (workers, workers, 520 - workers));
    region.open();
    assert!(pool.join_timeout(LIMIT));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- what is exempt -----

/// Waits for what another task of the same pool has to do, and cannot be done on the waiting
/// worker's stack.
type Wait = fn(&ThreadPool);

fn wait_for_others(pool: &ThreadPool) {
    value_of_others(pool.evaluate(|| ()));
}

fn wait_for_a_running_task(pool: &ThreadPool) {
    let (begun, own) = (Gate::new(), pool.clone());
    let begins = Arc::clone(&begun);
    let mut handle = pool.evaluate(move || {
        begins.open();
        wait_for_others(&own);
    });
    while begun.arrived() == 0 {
        let _inside = futures_executor::enter().unwrap();
        match handle.await_complete_timeout(Duration::from_millis(1)) {
            Ok(settled) => return settled.unwrap(),
            Err(again) => handle = again,
        }
    }
    handle.await_complete();
}

fn wait_for_a_group(pool: &ThreadPool) {
    let group = pool.group::<()>();
    let own = pool.clone();
    let submitted = group.execute(move || {
        wait_for_others(&own);
        Ok(())
    });
    submitted.unwrap();
    waited(&group).unwrap();
}

fn wait_for_a_scope(pool: &ThreadPool) {
    pool.scope(|scope| {
        let handle = scope.evaluate(|| wait_for_others(pool));
        // Time for another worker to begin with it.
        let _inside = futures_executor::enter().unwrap();
        drop(handle.await_complete_timeout(Duration::from_millis(1)));
    });
}

#[cfg(feature = "async")]
fn wait_for_a_future_that_a_task_wakes(pool: &ThreadPool) {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let handle = pool.spawn_await(async move { receiver.await.unwrap() });
    let Err(handle) = handle.await_complete_timeout(Duration::ZERO) else { return };
    pool.execute(move || sender.send(()).unwrap());
    handle.await_complete();
}

fn wait_in_complete(pool: &ThreadPool) {
    let own = pool.clone();
    value(pool.complete(async move {
        let inner = own.clone();
        own.complete(async move { inner.evaluate(|| ()).await.unwrap() }).await.unwrap();
    }));
}

const WAITS: &[(&str, Wait)] = &[
    ("with a limit", wait_for_others),
    ("for a running task", wait_for_a_running_task),
    ("for a group", wait_for_a_group),
    ("for a scope", wait_for_a_scope),
    #[cfg(feature = "async")]
    ("for a future that a task wakes", wait_for_a_future_that_a_task_wakes),
    ("in `complete`", wait_in_complete),
];

/// Where no compensation is left: with a bound of zero, and of one that another task uses.
#[track_caller]
fn assert_exempt(name: &str, task: impl Fn(&ThreadPool) + Copy + Send + 'static) {
    for max_blocked in [0, 1] {
        let pool = pool(1, max_blocked);
        let foreign: Vec<_> = (0..max_blocked).map(|_| submit_region(&pool)).collect();
        for _ in 0..20 {
            let (sender, receiver) = mpsc::channel();
            let own = pool.clone();
            pool.execute(move || {
                task(&own);
                sender.send(()).unwrap();
            });
            assert_eq!(receiver.recv_timeout(LIMIT), Ok(()), "{name}, {max_blocked}");
        }
        for (task, gate) in foreign {
            gate.open();
            value(task);
        }
        assert_is_itself_again(&pool);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn waits_for_tasks_of_the_same_pool_are_exempt_from_max_blocked() {
    for &(name, wait) in WAITS {
        assert_exempt(name, wait);
    }
}

/// Also inside of a region that is itself at the bound.
#[test]
fn waits_for_tasks_of_the_same_pool_in_a_region_are_exempt_from_max_blocked() {
    for &(name, wait) in WAITS {
        assert_exempt(name, move |pool| blocking(|| wait(pool)));
    }
}

#[test]
fn a_wait_for_capacity_of_the_own_queue_is_exempt_from_max_blocked() {
    for capacity in [0, 2] {
        let builder = ThreadPool::builder().core_size(0).max_size(1).keep_alive(HOUR);
        let pool = builder.max_blocked(0).queue_capacity(capacity).build();
        for in_region in [false, true] {
            let (own, ran) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
            let counts = Arc::clone(&ran);
            let submit = move || {
                for _ in 0..20 {
                    let ran = Arc::clone(&counts);
                    own.execute(move || _ = ran.fetch_add(1, Ordering::SeqCst));
                }
            };
            let task = pool.evaluate(move || if in_region { blocking(submit) } else { submit() });
            value(task);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(ran.load(Ordering::SeqCst), 20);
            assert_eq!(pool.stats().blocked, 0);
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// They do not use up the bound, either: a declared region is replaced beside them.
#[test]
fn an_exempt_wait_does_not_count_for_max_blocked() {
    let pool = pool(1, 1);
    let (own, region) = (pool.clone(), Gate::new());
    let blocks = Arc::clone(&region);
    let waits =
        pool.evaluate(move || value_of_others(own.evaluate(move || blocking(|| blocks.pass()))));
    region.wait_for(1);
    wait_until("both are blocked", || pool.stats().blocked == 2);
    // Nor does a wait that begins now.
    let own = pool.clone();
    assert_eq!(value(pool.evaluate(move || value_of_others(own.evaluate(|| 7)))), 7);
    // The bound is reached: the next one is not replaced.
    let (last, gate) = submit_region(&pool);
    let queued = pool.evaluate(|| ());
    // Time for a defect.
    thread::sleep(Duration::from_millis(10));
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.queued), (3, 1));
    // A worker that was not compensated is, when another one returns.
    region.open();
    value(waits);
    value(queued);
    assert_eq!(pool.stats().blocked, 1);
    gate.open();
    value(last);
    assert_is_itself_again(&pool);
}

/// In a declared region, a wait for the own pool is replaced even if the region was not; and the
/// region afterwards is not again.
#[test]
fn a_region_at_max_blocked_is_compensated_only_while_it_waits_for_its_own_pool() {
    let pool = pool(1, 0);
    let (own, before, after) = (pool.clone(), Gate::new(), Gate::new());
    let (passes_before, passes_after) = (Arc::clone(&before), Arc::clone(&after));
    let task = pool.evaluate(move || {
        blocking(|| {
            passes_before.pass();
            let number = value_of_others(own.evaluate(|| 7));
            passes_after.pass();
            number
        })
    });
    before.wait_for(1);
    let queued = pool.evaluate(|| ());
    // Time for a defect.
    thread::sleep(Duration::from_millis(10));
    assert_eq!((pool.stats().queued, pool.stats().workers), (1, 1));
    before.open();
    after.wait_for(1);
    // It was before the task that it waited for.
    value(queued);
    let queued = pool.evaluate(|| ());
    // Time for a defect.
    thread::sleep(Duration::from_millis(10));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.blocked, stats.workers), (1, 1, 2));
    after.open();
    assert_eq!(value(task), 7);
    value(queued);
    assert_is_itself_again(&pool);
}

/// What a future waits for that another pool has given back is not known before it has been polled.
#[cfg(feature = "async")]
#[test]
fn a_future_that_was_given_back_is_exempt_from_max_blocked() {
    let (pool, other) = (pool(1, 0), pool(1, 0));
    let gate = common::block(&other);
    let own = pool.clone();
    other.spawn(async move { own.evaluate(|| ()).await.unwrap() });
    let task = other.shutdown_now().pop().unwrap();
    let (sender, receiver) = mpsc::channel();
    pool.execute(move || {
        task.run();
        sender.send(()).unwrap();
    });
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(()));
    gate.open();
    assert_is_itself_again(&pool);
}

/// A wait for a task of another pool is a declared region like any other.
#[test]
fn waits_for_other_pools_count_for_max_blocked() {
    let (bounded, other) = (pool(1, 0), pool(1, 512));
    let gate = common::block(&other);
    let handle = other.evaluate(|| 7);
    let waits = bounded.evaluate(move || handle.await_complete());
    wait_until("it waits", || bounded.stats().blocked == 1);
    let queued = bounded.evaluate(|| ());
    // Time for a defect.
    thread::sleep(Duration::from_millis(10));
    let stats = bounded.stats();
    assert_eq!((stats.workers, stats.blocked, stats.queued), (1, 1, 1));
    gate.open();
    assert_eq!(value(waits), 7);
    value(queued);
    assert_is_itself_again(&bounded);
}

/// A blocked worker without compensation frees no capacity in a bounded queue.
#[test]
fn a_region_at_max_blocked_frees_no_capacity() {
    for (max_size, max_blocked) in [(1, 0), (2, 0), (1, 1), (2, 1)] {
        let builder = ThreadPool::builder().core_size(0).max_size(max_size).keep_alive(HOUR);
        let pool = builder.max_blocked(max_blocked).queue_capacity(0).build();
        let assert_capacity_left = |count: usize| {
            let gate = Gate::new();
            for number in 1..=count {
                let passes = Arc::clone(&gate);
                pool.try_execute(move || passes.pass()).expect("a worker is free");
                gate.wait_for(number);
            }
            refused(pool.try_execute(|| ()), RejectReason::Full);
            gate.open();
            wait_until("they have ended", || pool.stats().active == pool.stats().blocked);
            wait_until("the workers are free", || {
                let stats = pool.stats();
                stats.workers == stats.idle + stats.blocked
            });
        };
        let blocked = max_size + max_blocked;
        let mut regions: Vec<_> = (1..=blocked)
            .map(|number| {
                let region = submit_region(&pool);
                let replaced = number.min(max_blocked);
                wait_until("it is blocked", || pool.stats().blocked == number);
                assert_capacity_left(max_size + replaced - number);
                region
            })
            .collect();
        while let Some((task, gate)) = regions.pop() {
            gate.open();
            value(task);
            let left = regions.len();
            wait_until("it has returned", || pool.stats().blocked == left);
            wait_until("its worker is free", || pool.stats().workers == pool.stats().idle + left);
            assert_capacity_left(max_size + left.min(max_blocked) - left);
            regions.rotate_left(usize::from(left > 1));
        }
        assert!(pool.join_timeout(LIMIT));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}
