//! Refusals at random among all kinds of submissions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::refusal::{Refusal, STACK, in_a_child};
use crate::common::{Drops, Gate, HOUR, LIMIT};
use crate::{assert_empty, assert_grows_to};
use elastipool::{RejectReason, ThreadPool};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Three threads submit in every way, while threads are refused and then are not: every task runs
/// or comes back, and the counts say which.
#[test]
fn a_storm_of_refusals() {
    in_a_child("storm::a_storm_of_refusals", || {
        const SUBMITTERS: usize = 3;
        const ROUNDS: usize = 200;
        let pool = ThreadPool::new(2, 4, HOUR);
        let (go, done) = (Gate::new(), Gate::new());
        let (ran, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let (pool, go, done) = (pool.clone(), Arc::clone(&go), Arc::clone(&done));
                let (ran, drops) = (Arc::clone(&ran), drops.clone());
                thread::spawn(move || {
                    go.pass();
                    let mut rejected = 0;
                    for _ in 0..ROUNDS {
                        let task = || {
                            let (ran, guard) = (Arc::clone(&ran), drops.issue());
                            move || {
                                ran.fetch_add(1, Ordering::Relaxed);
                                drop(guard);
                            }
                        };
                        pool.execute(task());
                        drop(pool.evaluate(task()));
                        if let Err(refused) = pool.try_execute(task()) {
                            assert_eq!(refused.reason(), RejectReason::NoThread);
                            rejected += 1;
                        }
                        let (future, task) = (task(), task());
                        drop(pool.complete(async move { future() }));
                        if pool.try_evaluate(task).is_err() {
                            rejected += 1;
                        }
                    }
                    done.pass();
                    rejected
                })
            })
            .collect();
        go.wait_for(SUBMITTERS);
        let refusal = Refusal::begin();
        go.open();
        done.wait_for(SUBMITTERS);
        assert!(pool.join_timeout(LIMIT));
        assert_empty(&pool);
        refusal.end();
        done.open();
        let rejected: usize = submitters.into_iter().map(|thread| thread.join().unwrap()).sum();
        // Without a worker nothing else is possible.
        assert_eq!(rejected, SUBMITTERS * ROUNDS * 2);
        let submitted = SUBMITTERS * ROUNDS * 5;
        assert_eq!(drops.count(), submitted);
        assert_eq!(ran.load(Ordering::Relaxed), submitted - rejected);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.rejected), (submitted - rejected, rejected));
        assert_grows_to(&pool, 4);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// There is memory for the stack of one more thread, and three threads have their pools contend for
/// it: whatever the pools get, nothing is lost.
#[test]
fn a_storm_with_memory_for_one_thread() {
    in_a_child("storm::a_storm_with_memory_for_one_thread", || {
        const SUBMITTERS: usize = 3;
        const ROUNDS: usize = 100;
        const TASKS: usize = 10;
        let go = Gate::new();
        let done = Gate::new();
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let (go, done) = (Arc::clone(&go), Arc::clone(&done));
                thread::spawn(move || {
                    go.pass();
                    let (mut started, mut refused) = (0, 0);
                    for _ in 0..ROUNDS {
                        let pool = ThreadPool::new(1, 2, Duration::from_nanos(1));
                        let drops = Drops::default();
                        let mut rejected = 0;
                        for _ in 0..TASKS / 2 {
                            let guard = drops.issue();
                            pool.execute(move || drop(guard));
                            let guard = drops.issue();
                            let result = pool.try_execute(move || drop(guard));
                            rejected += usize::from(result.is_err());
                        }
                        assert!(pool.join_timeout(LIMIT));
                        assert_eq!(drops.count(), TASKS);
                        let stats = pool.stats();
                        assert_eq!((stats.completed, stats.rejected), (TASKS - rejected, rejected));
                        assert_eq!((stats.queued, stats.in_flight()), (0, 0));
                        (started, refused) =
                            (started + stats.threads_started, refused + stats.threads_refused);
                        assert!(pool.shutdown_join_timeout(LIMIT));
                    }
                    done.pass();
                    (started, refused)
                })
            })
            .collect();
        go.wait_for(SUBMITTERS);
        let refusal = Refusal::begin();
        let limit = getrlimit(Resource::As);
        let raised = Rlimit { current: limit.current.map(|size| size + STACK), ..limit };
        setrlimit(Resource::As, raised).unwrap();
        go.open();
        done.wait_for(SUBMITTERS);
        drop(refusal);
        done.open();
        let counts: Vec<_> = submitters.into_iter().map(|thread| thread.join().unwrap()).collect();
        println!("threads started and refused: {counts:?}");
        assert!(counts.iter().any(|&(_, refused)| refused > 0), "there was no want of threads");
    });
}
