//! The sizes and the keep-alive of a pool that works are changed: at once, in both directions, and
//! without interrupting tasks.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Gate, HOUR, LIMIT, block, submit_interdependent, value, wait_until};
use elastipool::{BuildError, Builder, Growth, RejectReason, ThreadPool};

/// Shorter than a look at the pool takes.
const SHORT: Duration = Duration::from_millis(1);

/// The most workers that a pool can count.
const MOST: usize = (1 << ((usize::BITS - 4) / 3)) - 1;

/// `count` tasks that wait for the gate.
fn queue(pool: &ThreadPool, gate: &Arc<Gate>, count: usize) {
    for _ in 0..count {
        let gate = Arc::clone(gate);
        pool.execute(move || gate.pass());
    }
}

/// A pool with `count` idle workers.
fn idle(core_size: usize, max_size: usize, keep_alive: Duration, count: usize) -> ThreadPool {
    let pool = ThreadPool::new(core_size, max_size, keep_alive);
    submit_interdependent(&pool, count, || ()).into_iter().for_each(value);
    wait_until("all are idle", || pool.idle_worker_count() == count);
    pool
}

// ----- upwards -----

#[test]
fn raising_max_starts_workers_for_what_is_queued() {
    for core_size in [0, 1] {
        let pool = ThreadPool::new(core_size, 1, HOUR);
        let gate = Gate::new();
        queue(&pool, &gate, 6);
        gate.wait_for(1);
        assert_eq!(pool.stats().queued, 5);
        pool.set_max_size(3).unwrap();
        gate.wait_for(3);
        assert_eq!(
            (pool.stats().workers, pool.stats().queued),
            (3, 3),
            "one for each task and no more"
        );
        pool.set_max_size(6).unwrap();
        gate.wait_for(6);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Only the growth policy had kept them from being started.
#[test]
fn raising_core_starts_workers_for_what_is_queued() {
    let pool = Builder::new()
        .core_size(1)
        .max_size(4)
        .keep_alive(HOUR)
        .growth(Growth::Stalled(HOUR))
        .build();
    let gate = Gate::new();
    queue(&pool, &gate, 4);
    gate.wait_for(1);
    assert_eq!(gate.arrived(), 1);
    pool.set_core_size(4).unwrap();
    gate.wait_for(4);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// And no others: those come with the next submissions.
#[test]
fn raising_core_starts_nothing_for_nothing() {
    let pool = idle(1, 4, HOUR, 1);
    pool.set_core_size(3).unwrap();
    assert_eq!(pool.current_worker_count(), 1);
    pool.execute(|| ());
    assert_eq!(pool.current_worker_count(), 2);
    assert_eq!(pool.start_core_threads(), 1);
    assert_eq!(pool.current_worker_count(), 3);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Waiting submitters get permits that did not exist when they came.
#[test]
fn raising_max_adds_capacity_to_a_bounded_queue() {
    let pool = Builder::new().core_size(1).max_size(1).keep_alive(HOUR).queue_capacity(0).build();
    let gate = block(&pool);
    let error = pool.try_execute(|| ()).unwrap_err();
    assert_eq!(error.reason(), RejectReason::Full);
    let waits = pool.clone();
    let waiter = thread::spawn(move || value(waits.evaluate(|| 1)));
    assert!(!waiter.is_finished());
    pool.set_max_size(2).unwrap();
    wait_until("it was admitted", || waiter.is_finished());
    assert_eq!(waiter.join().unwrap(), 1);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn raising_core_keeps_workers_that_were_surplus() {
    let pool = ThreadPool::new(0, 4, SHORT);
    let gate = Gate::new();
    queue(&pool, &gate, 3);
    gate.wait_for(3);
    pool.set_core_size(4).unwrap();
    gate.open();
    wait_until("all are idle", || pool.idle_worker_count() == 3);
    thread::sleep(30 * SHORT);
    assert_eq!((pool.current_worker_count(), pool.stats().threads_retired), (3, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- downwards -----

#[test]
fn lowering_max_retires_idle_workers_at_once() {
    let pool = idle(0, 4, HOUR, 4);
    pool.set_max_size(2).unwrap();
    wait_until("there are two", || pool.current_worker_count() == 2);
    pool.set_max_size(1).unwrap();
    wait_until("there is one", || pool.current_worker_count() == 1);
    assert_eq!(pool.stats().threads_retired, 3);
    wait_until("it is idle", || pool.idle_worker_count() == 1);
    assert_eq!(value(pool.evaluate(|| 1)), 1);
    assert_eq!(pool.stats().threads_started, 4);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn lowering_max_retires_busy_workers_when_they_have_ended_their_tasks() {
    let pool = ThreadPool::new(0, 4, HOUR);
    let mut gates: Vec<_> = (0..4).map(|_| block(&pool)).collect();
    let ran = Gate::new();
    let runs = Arc::clone(&ran);
    pool.execute(move || runs.open());
    pool.set_max_size(2).unwrap();
    assert_eq!((pool.current_worker_count(), pool.stats().active), (4, 4), "none is interrupted");
    for left in [3, 2] {
        gates.pop().unwrap().open();
        wait_until("one has gone", || pool.current_worker_count() == left);
        wait_until("its task has ended", || pool.stats().completed == 4 - left);
        assert_eq!(pool.stats().queued, 1, "there are enough who are busy");
    }
    gates.pop().unwrap().open();
    ran.pass();
    wait_until("one is idle", || pool.idle_worker_count() == 1);
    assert_eq!(pool.current_worker_count(), 2, "as many as there may be");
    gates.pop().unwrap().open();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.threads_retired, stats.workers), (5, 2, 2));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn lowering_core_retires_idle_workers() {
    let pool = ThreadPool::new(4, 4, SHORT);
    assert_eq!(pool.start_core_threads(), 4);
    wait_until("all are idle", || pool.idle_worker_count() == 4);
    thread::sleep(10 * SHORT);
    assert_eq!(pool.current_worker_count(), 4);
    pool.set_core_size(1).unwrap();
    wait_until("there is one", || pool.current_worker_count() == 1);
    pool.set_core_size(0).unwrap();
    wait_until("there is none", || pool.current_worker_count() == 0);
    assert_eq!(value(pool.evaluate(|| 1)), 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// They are surplus then, no more.
#[test]
fn lowering_core_retires_no_worker_before_its_keep_alive() {
    let pool = ThreadPool::new(3, 3, HOUR);
    assert_eq!(pool.start_core_threads(), 3);
    wait_until("all are idle", || pool.idle_worker_count() == 3);
    pool.set_core_size(0).unwrap();
    thread::sleep(20 * SHORT);
    assert_eq!(pool.current_worker_count(), 3);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- both sizes -----

#[test]
fn both_sizes_change_together_in_any_direction() {
    let pool = ThreadPool::new(2, 4, HOUR);
    for sizes in [(8, 16), (1, 1), (4, 4), (0, 7), (7, 7)] {
        pool.set_sizes(sizes.0, sizes.1).unwrap();
        assert_eq!((pool.core_size(), pool.max_size()), sizes);
    }
}

#[test]
fn raising_both_sizes_starts_workers_for_what_is_queued() {
    // The growth policy starts no thread above the core.
    for (growth, sizes, running) in [(Growth::Eager, (0, 4), 4), (Growth::Stalled(HOUR), (3, 4), 3)]
    {
        let pool = Builder::new().core_size(1).max_size(1).keep_alive(HOUR).growth(growth).build();
        let gate = Gate::new();
        queue(&pool, &gate, 6);
        gate.wait_for(1);
        pool.set_sizes(sizes.0, sizes.1).unwrap();
        gate.wait_for(running);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn lowering_both_sizes_retires_idle_workers() {
    let pool = idle(4, 4, HOUR, 4);
    pool.set_sizes(1, 2).unwrap();
    wait_until("there are two", || pool.current_worker_count() == 2);
    pool.set_keep_alive(SHORT);
    wait_until("there is one", || pool.current_worker_count() == 1);
    assert_eq!(pool.stats().threads_retired, 3);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The pairs have no size in common, and each size of one would not fit the other pair.
#[test]
fn no_thread_sees_one_of_two_sizes_that_change_together() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20_000 {
                pool.set_sizes(8, 9).unwrap();
                pool.set_sizes(1, 2).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            let text = format!("{pool:?}");
            let fits = ["core_size: 1, max_size: 2,", "core_size: 8, max_size: 9,"];
            assert!(fits.iter().any(|pair| text.contains(pair)), "{text}");
        }
    });
}

// ----- keep-alive -----

#[test]
fn a_keep_alive_of_zero_ends_surplus_workers_at_once() {
    for core_size in [0, 1, 2] {
        let pool = ThreadPool::new(core_size, 4, Duration::ZERO);
        submit_interdependent(&pool, 4, || ()).into_iter().for_each(value);
        wait_until("the surplus is gone", || pool.current_worker_count() == core_size);
        let stats = pool.stats();
        assert_eq!(stats.threads_retired, stats.threads_started - core_size);
        assert_eq!(value(pool.evaluate(|| 42)), 42);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Core workers, and the last worker of a pool that has a pending future.
#[cfg(feature = "async")]
#[test]
fn a_worker_that_stays_in_spite_of_a_keep_alive_of_zero_sleeps() {
    for core_size in [0, 2] {
        let name = format!("zero{core_size}");
        let pool = ThreadPool::new_named(&*name, core_size, 4, Duration::ZERO);
        let (trigger, triggered) = common::triggered();
        let future = pool.spawn_await(triggered);
        submit_interdependent(&pool, 4, || ()).into_iter().for_each(value);
        // With the keeper.
        let threads = core_size.max(1) + 1;
        common::wait_until_asleep(threads, 20 * SHORT, |thread| thread.starts_with(&name));
        trigger.fire();
        value(future);
        wait_until("none is needed", || pool.current_worker_count() == core_size);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn workers_stay_forever_until_keep_alive_is_changed() {
    let pool = idle(0, 3, Duration::MAX, 3);
    common::dawdle(1000);
    assert_eq!((pool.current_worker_count(), pool.stats().threads_retired), (3, 0));
    pool.set_keep_alive(SHORT);
    wait_until("all are gone", || pool.current_worker_count() == 0);
    pool.set_keep_alive(Duration::MAX);
    assert_eq!(value(pool.evaluate(|| 42)), 42);
    pool.set_keep_alive(Duration::ZERO);
    wait_until("all are gone", || pool.current_worker_count() == 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn shortening_keep_alive_retires_workers_that_are_parked() {
    for core_size in [0, 1] {
        let pool = idle(core_size, 3, HOUR, 3);
        pool.set_keep_alive(SHORT);
        wait_until("the surplus is gone", || pool.current_worker_count() == core_size);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn lengthening_keep_alive_keeps_workers_that_are_parked() {
    let keep_alive = Duration::from_millis(300);
    let deadline = Instant::now() + LIMIT;
    loop {
        let pool = ThreadPool::new(0, 2, keep_alive);
        submit_interdependent(&pool, 2, || ()).into_iter().for_each(value);
        pool.set_keep_alive(HOUR);
        // Unless this thread was that slow.
        if pool.current_worker_count() == 2 {
            thread::sleep(2 * keep_alive);
            assert_eq!((pool.current_worker_count(), pool.stats().threads_retired), (2, 0));
            assert!(pool.shutdown_join_timeout(LIMIT));
            return;
        }
        assert!(Instant::now() < deadline);
    }
}

// ----- what makes no sense -----

#[test]
fn sizes_that_make_no_sense_are_an_error_and_change_nothing() {
    let pool = idle(2, 4, HOUR, 4);
    let names = |error: BuildError, parts: &[&str]| {
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        assert_eq!((pool.core_size(), pool.max_size(), pool.keep_alive()), (2, 4, HOUR));
        error
    };
    let error = names(pool.set_core_size(5).unwrap_err(), &["max_size is 4", "core_size", "5"]);
    assert_eq!(error, BuildError::MaxBelowCore { max_size: 4, core_size: 5 });
    let error = names(pool.set_max_size(1).unwrap_err(), &["max_size is 1", "core_size", "2"]);
    assert_eq!(error, BuildError::MaxBelowCore { max_size: 1, core_size: 2 });
    let error = names(pool.set_max_size(0).unwrap_err(), &["max_size is 0", "at least 1"]);
    assert_eq!(error, BuildError::MaxSizeZero);
    for size in [MOST + 1, usize::MAX / 2, usize::MAX] {
        let parts = [&*size.to_string(), &*MOST.to_string()];
        let expected = BuildError::SizeTooLarge { size, limit: MOST };
        assert_eq!(names(pool.set_core_size(size).unwrap_err(), &parts), expected);
        assert_eq!(names(pool.set_max_size(size).unwrap_err(), &parts), expected);
        assert_eq!(names(pool.set_sizes(1, size).unwrap_err(), &parts), expected);
    }
    let error = names(pool.set_sizes(9, 8).unwrap_err(), &["max_size is 8", "core_size", "9"]);
    assert_eq!(error, BuildError::MaxBelowCore { max_size: 8, core_size: 9 });
    let error = names(pool.set_sizes(0, 0).unwrap_err(), &["max_size is 0", "at least 1"]);
    assert_eq!(error, BuildError::MaxSizeZero);
    assert_eq!((pool.current_worker_count(), pool.stats().threads_retired), (4, 0));
    pool.set_max_size(MOST).unwrap();
    pool.set_core_size(MOST).unwrap();
    assert_eq!(pool.current_worker_count(), 4);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn every_handle_sees_a_resize() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let other = pool.clone();
    pool.set_max_size(7).unwrap();
    other.set_core_size(5).unwrap();
    other.set_keep_alive(SHORT);
    for pool in [&pool, &other, &value(pool.complete(std::future::ready(pool.clone())))] {
        assert_eq!((pool.core_size(), pool.max_size(), pool.keep_alive()), (5, 7, SHORT));
    }
    let text = format!("{pool:?}");
    assert!(text.contains("core_size: 5") && text.contains("max_size: 7"), "{text}");
}

/// From (4, 8): one wants 8 at least, the other 4 at most. Not both can be had.
#[test]
fn sizes_that_are_set_at_the_same_time_fit_together() {
    const ROUNDS: usize = 20_000;
    let pool = ThreadPool::new(4, 8, HOUR);
    // Spinning: both must be there within nanoseconds.
    let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let raised = AtomicBool::new(false);
    let wait = |count: &AtomicUsize, round| {
        let mut turns = 0_u32;
        while count.load(Ordering::SeqCst) < round {
            turns += 1;
            if turns % 1_000 == 0 {
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait(&begun, round);
                raised.store(pool.set_core_size(8).is_ok(), Ordering::SeqCst);
                ended.store(round, Ordering::SeqCst);
            }
        });
        let mut misfits = 0;
        for round in 1..=ROUNDS {
            pool.set_max_size(8).unwrap();
            pool.set_core_size(4).unwrap();
            begun.store(round, Ordering::SeqCst);
            common::dawdle(30);
            let lowered = pool.set_max_size(4).is_ok();
            wait(&ended, round);
            let raised = raised.load(Ordering::SeqCst);
            let sizes = (pool.core_size(), pool.max_size());
            let fits = lowered && sizes == (4, 4) || raised && sizes == (8, 8);
            misfits += usize::from(!fits || lowered == raised);
        }
        assert_eq!(misfits, 0);
    });
}

/// Up and down while tasks are submitted: none is lost, and in the end it is as was said last.
#[test]
fn a_pool_that_is_resized_all_the_time_loses_no_task() {
    const TASKS: usize = 5_000;
    let pool = ThreadPool::new(1, 1, Duration::from_micros(50));
    let ran = Arc::new(AtomicUsize::new(0));
    let (resizes, is_over) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let over = Arc::clone(&is_over);
    let resizer = thread::spawn(move || {
        while over.load(Ordering::Relaxed) == 0 {
            let max_size = fastrand::usize(1..6);
            let core_size = fastrand::usize(0..=max_size);
            if fastrand::bool() {
                resizes.set_sizes(core_size, max_size).unwrap();
            } else {
                let _ = resizes.set_max_size(max_size);
                let _ = resizes.set_core_size(core_size);
            }
            common::dawdle(2_000);
        }
    });
    for _ in 0..TASKS {
        let ran = Arc::clone(&ran);
        pool.execute(move || {
            common::dawdle(100);
            ran.fetch_add(1, Ordering::Relaxed);
        });
        common::dawdle(200);
    }
    assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
    is_over.store(1, Ordering::Relaxed);
    resizer.join().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), TASKS);
    pool.set_core_size(0).unwrap();
    wait_until("all are surplus", || pool.current_worker_count() == 0);
    pool.set_max_size(3).unwrap();
    submit_interdependent(&pool, 3, || ()).into_iter().for_each(value);
    assert!(pool.shutdown_join_timeout(LIMIT));
}
