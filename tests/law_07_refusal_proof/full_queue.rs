//! A worker is refused while the bounded queue is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Gate, HOUR, LIMIT, refused, value, wait_until};
use crate::{assert_empty, assert_refused, assert_runs_at_once, comes_back, held_back};
use elastipool::{RejectReason, ThreadPool, blocking};

/// The next submission tries again, also one that is not accepted: the task that needs the thread
/// holds the permit.
#[test]
fn a_submission_to_a_full_queue_starts_what_was_refused() {
    in_a_child("full_queue::a_submission_to_a_full_queue_starts_what_was_refused", || {
        let submissions: [fn(&ThreadPool) -> bool; 3] = [
            |pool| pool.try_execute(|| ()).is_err_and(|error| error.reason() == RejectReason::Full),
            |pool| pool.try_execute_for(|| (), LIMIT).is_ok(),
            |pool| {
                pool.execute(|| ());
                true
            },
        ];
        for submit in submissions {
            // Once more if the keeper has asked for the thread before, so that the queue is not
            // full.
            wait_until("a submission finds the queue full", || starts_what_was_refused(submit));
        }
    });
}

/// Returns what `submit` does.
fn starts_what_was_refused(submit: fn(&ThreadPool) -> bool) -> bool {
    let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = builder.queue_capacity(0).build();
    let (region, second) = (Gate::new(), Gate::new());
    let waits = Arc::clone(&region);
    let (first, gate) = held_back(&pool, move |_| blocking(|| waits.pass()));
    gate.open();
    region.wait_for(1);
    let refusal = Refusal::begin();
    let (opens, runs, since) = (region, Arc::clone(&second), Instant::now());
    pool.execute(move || {
        opens.open();
        runs.pass();
    });
    let stats = pool.stats();
    assert_refused(stats.threads_refused, 1, since.elapsed());
    assert_eq!((stats.queued, stats.workers), (1, 1));
    refusal.end();
    // Two of them wait for capacity until the second task has ended.
    let producer = pool.clone();
    let producer = thread::spawn(move || submit(&producer));
    second.wait_for(1);
    second.open();
    value(first);
    let is_full = producer.join().unwrap();
    assert_runs_at_once(&pool, 1);
    assert_capacity(&pool, 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
    is_full
}

/// As above, but the submission is refused a thread too, and then waits for capacity: it goes on
/// asking.
#[test]
fn a_waiting_submitter_asks_for_a_thread_again() {
    in_a_child("full_queue::a_waiting_submitter_asks_for_a_thread_again", || {
        let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
        let pool = builder.queue_capacity(0).build();
        let (region, submit) = (Gate::new(), Gate::new());
        let waits = Arc::clone(&region);
        let (first, gate) = held_back(&pool, move |_| blocking(|| waits.pass()));
        gate.open();
        region.wait_for(1);
        let producer = {
            let (pool, submit) = (pool.clone(), Arc::clone(&submit));
            thread::spawn(move || {
                submit.pass();
                pool.execute(|| ());
            })
        };
        submit.wait_for(1);
        let refusal = Refusal::begin();
        pool.execute(move || region.open());
        submit.open();
        wait_until("both were refused", || pool.stats().threads_refused >= 2);
        refusal.end();
        value(first);
        producer.join().unwrap();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// Rather a task too many than a pool that waits for itself.
#[test]
fn a_task_that_submits_to_its_full_queue_is_admitted() {
    in_a_child("full_queue::a_task_that_submits_to_its_full_queue_is_admitted", || {
        for (max_size, capacity) in [(1, 0), (1, 1), (2, 0), (2, 3)] {
            let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
            let pool = builder.queue_capacity(capacity).build();
            let (go, ran) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
            let submitters: Vec<_> = (0..max_size)
                .map(|number| {
                    let (passes, ran, own) = (Arc::clone(&go), Arc::clone(&ran), pool.clone());
                    let handle = pool.evaluate(move || {
                        passes.pass();
                        for _ in 0..20 {
                            let ran = Arc::clone(&ran);
                            own.execute(move || _ = ran.fetch_add(1, Ordering::SeqCst));
                        }
                    });
                    go.wait_for(number + 1);
                    handle
                })
                .collect();
            let refusal = Refusal::begin();
            go.open();
            submitters.into_iter().for_each(value);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(ran.load(Ordering::SeqCst), 20 * max_size);
            let stats = pool.stats();
            assert_eq!((stats.rejected, stats.blocked, stats.threads_started), (0, 0, max_size));
            assert!(stats.threads_refused > 0, "there was no want of threads");
            refusal.end();
            assert_capacity(&pool, capacity);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// Inside of a region the worker counts as blocked before it waits. Each wait ends at once, and not
/// when the keeper asks again, after a second.
#[test]
fn a_task_that_submits_to_its_full_queue_in_a_region_is_admitted_at_once() {
    const TASKS: usize = 60;
    let name = "full_queue::a_task_that_submits_to_its_full_queue_in_a_region_is_admitted_at_once";
    in_a_child(name, || {
        let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
        let pool = builder.queue_capacity(0).build();
        let (go, own) = (Gate::new(), pool.clone());
        let passes = Arc::clone(&go);
        let submitter = pool.evaluate(move || {
            passes.pass();
            blocking(|| (0..TASKS).for_each(|_| own.execute(|| ())));
        });
        go.wait_for(1);
        let refusal = Refusal::begin();
        go.open();
        value(submitter);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.threads_started), (1 + TASKS, 1));
        refusal.end();
        assert_capacity(&pool, 0);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// As many as may run, and as many as may wait.
#[track_caller]
fn assert_capacity(pool: &ThreadPool, capacity: usize) {
    let gate = Gate::new();
    for running in 1..=pool.max_size() {
        let passes = Arc::clone(&gate);
        pool.try_execute(move || passes.pass()).expect("a worker is free");
        gate.wait_for(running);
    }
    for _ in 0..capacity {
        pool.try_execute(|| ()).expect("the queue has capacity");
    }
    refused(pool.try_execute(|| ()), RejectReason::Full);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

/// It does not wait, and it holds no permit that would never be released.
#[test]
fn a_task_without_any_worker_holds_no_permit() {
    in_a_child("full_queue::a_task_without_any_worker_holds_no_permit", || {
        for capacity in [0, 1] {
            let pool = ThreadPool::builder().max_size(2).queue_capacity(capacity).build();
            let refusal = Refusal::begin();
            for _ in 0..5 {
                comes_back(pool.try_execute(|| ()))();
                comes_back(pool.try_execute_for(|| (), HOUR))();
                pool.execute(|| ());
                let own = pool.clone();
                let nested = pool.evaluate(move || value(own.evaluate(|| 7)));
                assert_eq!(value(nested), 7);
                #[cfg(feature = "async")]
                assert_eq!(value(pool.spawn_await(crate::yields_once())), thread::current().id());
            }
            assert_empty(&pool);
            refusal.end();
            assert_capacity(&pool, capacity);
            // An exiting thread's stack would be memory for another one.
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}
