//! Submitters that wait for capacity.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::bounded_queue::{Submitter, assert_capacity, pool};
use crate::common::{
    Drops, Gate, HOUR, LIMIT, block, dawdle, refused, value, wait_until, wait_until_asleep,
};
use elastipool::{JoinHandle, RejectReason, ThreadPool};

/// Submits in each way that waits; each task counts itself and has the value 7.
type Submission = fn(&ThreadPool, Arc<AtomicUsize>) -> Option<JoinHandle<u8>>;

fn run(count: &AtomicUsize) -> u8 {
    count.fetch_add(1, Ordering::SeqCst);
    7
}

const PATIENT: &[Submission] = &[
    |pool, count| {
        pool.execute(move || _ = run(&count));
        None
    },
    |pool, count| Some(pool.evaluate(move || run(&count))),
    |pool, count| Some(pool.complete(async move { run(&count) })),
    |pool, count| {
        pool.try_execute_for(move || _ = run(&count), HOUR).unwrap();
        None
    },
    // A time that no clock can hold.
    |pool, count| Some(pool.try_evaluate_for(move || run(&count), Duration::MAX).unwrap()),
    #[cfg(feature = "async")]
    |pool, count| {
        pool.spawn(async move { _ = run(&count) });
        None
    },
    #[cfg(feature = "async")]
    |pool, count| Some(pool.spawn_await(async move { run(&count) })),
];

#[test]
fn blocking_forms_wait_for_capacity_and_run() {
    for capacity in [0, 1] {
        for &submission in PATIENT {
            let pool = pool(1, capacity);
            let gate = block(&pool);
            for _ in 0..capacity {
                pool.execute(|| ());
            }
            let count = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&count);
            let submitter = Submitter::waiting(&pool, move |pool| submission(pool, counts));
            assert_eq!((count.load(Ordering::SeqCst), pool.queued_count()), (0, capacity));
            gate.open();
            if let Some(handle) = submitter.finish() {
                assert_eq!(value(handle), 7);
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!((count.load(Ordering::SeqCst), pool.stats().rejected), (1, 0));
            assert_capacity(&pool, capacity);
        }
    }
}

#[test]
fn a_wait_for_capacity_has_a_limit() {
    let (pool, drops) = (pool(1, 0), Drops::default());
    let gate = block(&pool);
    for timeout in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(40)] {
        let (before, drops_before) = (Instant::now(), drops.count());
        let guard = drops.issue();
        let rejected = pool.try_execute_for(move || drop(guard), timeout);
        let task = refused(rejected, RejectReason::Full).into_task();
        assert!(before.elapsed() >= timeout);
        let rejected = pool.try_evaluate_for(task, timeout);
        let task = refused(rejected, RejectReason::Full).into_task();
        assert!(before.elapsed() >= 2 * timeout);
        assert_eq!(drops.count(), drops_before, "untouched");
        task();
        assert_eq!(drops.count(), drops_before + 1);
    }
    assert_eq!(pool.stats().rejected, 6);
    gate.open();
    // Those who gave up have left no trace.
    assert_capacity(&pool, 0);
}

/// A task that gives up does not keep back those behind it.
#[test]
fn a_submitter_that_gave_up_is_passed_over() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let impatient = Submitter::start(&pool, |pool| {
        let rejected = pool.try_evaluate_for(|| (), Duration::from_millis(100));
        refused(rejected, RejectReason::Full);
    });
    let patient = Submitter::waiting(&pool, |pool| pool.evaluate(|| 7));
    impatient.finish();
    patient.wait_until_it_waits();
    gate.open();
    assert_eq!(value(patient.finish()), 7);
    assert_capacity(&pool, 0);
}

#[test]
fn submitters_are_admitted_one_by_one_in_the_order_in_which_they_came() {
    for capacity in [0, 2] {
        let pool = pool(1, capacity);
        let mut gates = Vec::from([block(&pool)]);
        for _ in 0..capacity {
            let gate = Gate::new();
            gates.push(Arc::clone(&gate));
            pool.execute(move || gate.pass());
        }
        let admitted = Arc::new(Mutex::new(Vec::new()));
        let mut submitters = Vec::new();
        for number in 0..5 {
            let gate = Gate::new();
            gates.push(Arc::clone(&gate));
            let admitted = Arc::clone(&admitted);
            submitters.push(Submitter::waiting(&pool, move |pool| {
                pool.execute(move || gate.pass());
                admitted.lock().unwrap().push(number);
            }));
        }
        for number in 0..5 {
            // One task ends, one is started, one is admitted.
            gates[number].open();
            wait_until("one is admitted", || admitted.lock().unwrap().len() > number);
            refused(pool.try_execute(|| ()), RejectReason::Full);
            for other in &submitters[number + 1..] {
                other.wait_until_it_waits();
            }
            let expected: Vec<_> = (0..=number).collect();
            assert_eq!(*admitted.lock().unwrap(), expected);
        }
        for gate in gates {
            gate.open();
        }
        submitters.into_iter().for_each(Submitter::finish);
        assert_capacity(&pool, capacity);
    }
}

#[test]
fn submitters_that_wait_sleep() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let wait = |_| Submitter::waiting(&pool, |pool| pool.execute(|| ()));
    let submitters: Vec<_> = (0..4).map(wait).collect();
    wait_until_asleep(4, Duration::from_millis(200), |name| {
        submitters.iter().any(|submitter| submitter.name == name)
    });
    gate.open();
    submitters.into_iter().for_each(Submitter::finish);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().completed, 5);
}

/// More submitters than capacity for a while: each is admitted, and never more tasks are queued
/// than may be.
#[test]
fn a_crowd_of_submitters_is_served() {
    for (max_size, capacity) in [(1, 0), (2, 0), (1, 1), (2, 3)] {
        let pool = pool(max_size, capacity);
        let (ran, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let submitters: Vec<_> = (0..4)
            .map(|_| {
                let (ran, most) = (Arc::clone(&ran), Arc::clone(&most));
                Submitter::start(&pool, move |pool| {
                    for _ in 0..200 {
                        let ran = Arc::clone(&ran);
                        pool.execute(move || {
                            dawdle(300);
                            ran.fetch_add(1, Ordering::SeqCst);
                        });
                        most.fetch_max(pool.queued_count(), Ordering::SeqCst);
                        dawdle(300);
                    }
                })
            })
            .collect();
        submitters.into_iter().for_each(Submitter::finish);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((ran.load(Ordering::SeqCst), pool.stats().rejected), (800, 0));
        // For a free worker, or waiting for one.
        assert!(most.load(Ordering::SeqCst) <= max_size + capacity, "{most:?}");
        assert_capacity(&pool, capacity);
    }
}
