//! A later worker is refused: the task runs on an existing one.

use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::refusal::{Refusal, STACK, in_a_child};
use crate::common::{Gate, HOUR, LIMIT, submit_interdependent, value};
use crate::{assert_empty, assert_grows_to};
use elastipool::ThreadPool;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_task_runs_on_the_existing_worker() {
    in_a_child("later_worker::a_task_runs_on_the_existing_worker", || {
        for core_size in [0, 1, 4] {
            let pool = ThreadPool::new(core_size, 4, HOUR);
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let first = pool.evaluate(move || {
                passes.pass();
                thread::current().id()
            });
            gate.wait_for(1);
            let refusal = Refusal::begin();
            let handles: Vec<_> =
                (0..10).map(|_| pool.evaluate(|| thread::current().id())).collect();
            let (sender, receiver) = mpsc::channel();
            assert!(
                pool.try_execute(move || sender.send(()).unwrap()).is_ok(),
                "there is a worker"
            );
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.queued, stats.in_flight()), (1, 11, 12));
            assert!(stats.threads_refused >= 11, "each submission tries: {stats:?}");
            gate.open();
            let worker = value(first);
            for handle in handles {
                assert_eq!(value(handle), worker);
            }
            assert_eq!(receiver.recv_timeout(LIMIT), Ok(()));
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.peak_workers, stats.threads_started), (1, 1, 1));
            assert_eq!((stats.completed, stats.rejected, stats.in_flight()), (12, 0, 0));
            refusal.end();
            assert_grows_to(&pool, 4);
            // With the indexes that the refused ones would have had.
            let indexes = submit_interdependent(&pool, 4, elastipool::worker_index);
            let mut indexes: Vec<_> = indexes.into_iter().map(value).collect();
            indexes.sort();
            assert_eq!(indexes, [Some(0), Some(1), Some(2), Some(3)]);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

#[test]
fn start_core_threads_starts_what_it_can() {
    in_a_child("later_worker::start_core_threads_starts_what_it_can", || {
        let pool = ThreadPool::new(4, 8, HOUR);
        let refusal = Refusal::begin();
        assert_eq!(pool.start_core_threads(), 0);
        assert_empty(&pool);
        assert_eq!(pool.stats().threads_refused, 1);
        drop(refusal);
        assert_eq!(value(pool.evaluate(|| 1)), 1);
        let refusal = Refusal::begin();
        assert_eq!(pool.start_core_threads(), 0);
        assert_eq!(pool.current_worker_count(), 1);
        assert!(pool.join_timeout(LIMIT));
        drop(refusal);
        assert_eq!(pool.start_core_threads(), 3);
        assert_eq!(pool.start_core_threads(), 0);
        assert_grows_to(&pool, 8);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// Memory for two workers and the keeper, and no more: the third worker's start is refused.
#[test]
fn start_core_threads_says_how_many_it_started() {
    in_a_child("later_worker::start_core_threads_says_how_many_it_started", || {
        let pool = ThreadPool::new(4, 8, HOUR);
        let refusal = Refusal::begin();
        let limit = getrlimit(Resource::As);
        let raised = Rlimit { current: limit.current.map(|size| size + 3 * STACK), ..limit };
        setrlimit(Resource::As, raised).unwrap();
        assert_eq!(pool.start_core_threads(), 2);
        assert_eq!(pool.current_worker_count(), 2);
        refusal.end();
        assert_eq!(pool.start_core_threads(), 2);
        assert_grows_to(&pool, 8);
    });
}
