//! rayon's parallel iterators beside the pool: the pattern that deadlocks, and the ways out that
//! the page names.

use std::thread;
use std::time::Duration;

use elastipool::{JoinHandle, ThreadPool};
use rayon::prelude::*;
use rayon::{ThreadPoolBuilder, Yield};

/// What the pool's task computes, by a parallel iterator.
fn sum() -> u64 {
    (0..1_000_u64).into_par_iter().sum()
}

fn rayon_of_one() -> &'static rayon::ThreadPool {
    Box::leak(Box::new(ThreadPoolBuilder::new().num_threads(1).build().expect("a thread")))
}

#[test]
fn workers_of_rayon_that_wait_for_tasks_with_parallel_iterators_block_them() {
    let (pool, rayon) = (ThreadPool::new(1, 1, Duration::MAX), rayon_of_one());
    // All workers of rayon, one here, wait for the task, and the task waits for a worker of rayon.
    let waited = rayon.install(|| {
        let task = pool.evaluate(|| rayon.install(sum));
        task.await_complete_timeout(Duration::from_millis(50))
    });
    // It goes on once the worker of rayon is free.
    let task = waited.expect_err("the task waits for the worker that waits for it");
    assert_eq!(task.await_complete(), 499_500);
}

#[test]
fn a_pool_of_rayon_for_the_tasks_is_a_way_out() {
    let (pool, rayon, for_tasks) =
        (ThreadPool::new(1, 1, Duration::MAX), rayon_of_one(), rayon_of_one());
    let sums: Vec<u64> = rayon.install(|| {
        let sums = (0..4).into_par_iter().map(|_| {
            pool.evaluate(|| elastipool::blocking(|| for_tasks.install(sum))).await_complete()
        });
        sums.collect()
    });
    assert_eq!(sums, [499_500; 4]);
}

#[test]
fn a_worker_of_rayon_that_yields_while_it_waits_is_a_way_out() {
    fn await_in_rayon<T>(task: JoinHandle<T>) -> T {
        while !task.is_finished() {
            if rayon::yield_now() != Some(Yield::Executed) {
                thread::yield_now();
            }
        }
        task.await_complete()
    }

    let (pool, rayon) = (ThreadPool::new(1, 1, Duration::MAX), rayon_of_one());
    let sum = rayon.install(|| await_in_rayon(pool.evaluate(|| rayon.install(sum))));
    assert_eq!(sum, 499_500);
}
