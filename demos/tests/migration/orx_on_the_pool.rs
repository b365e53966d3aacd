//! orx-parallel's iterators on the pool, by the adapter that the page shows.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use elastipool::ThreadPool;
use orx_parallel::*;

use adapter::on;

#[path = "after/orx_parallel.rs"]
mod adapter;

#[test]
fn the_page_shows_the_adapter() {
    let page = include_str!("../../../docs/migration.md");
    let adapter = include_str!("after/orx_parallel.rs");
    assert!(page.contains(&format!("```rust\n{adapter}```\n")));
}

#[test]
fn the_results_are_those_of_an_iterator() {
    for size in [1, 2, 7] {
        let pool = ThreadPool::fixed(size);
        let numbers: Vec<u64> = (0..10_000).collect();
        let odd = |number: &&u64| *number % 2 == 1;
        let squares: Vec<u64> =
            numbers.par().runner(on(&pool)).filter(odd).map(|n| n * n).collect();
        assert_eq!(squares, numbers.iter().filter(odd).map(|n| n * n).collect::<Vec<_>>());
        let view = pool.view().limit(1).build();
        let sum: u64 = numbers.par().runner(on(&view)).map(|number| *number).sum();
        assert_eq!(sum, 49_995_000);
        assert_eq!(numbers.par().runner(on(&pool)).find(|number| **number == 7_777), Some(&7_777));
    }
}

#[test]
fn it_runs_on_workers_and_on_the_caller() {
    let (pool, caller) = (ThreadPool::fixed(2), thread::current().id());
    let outsiders = Mutex::new(Vec::new());
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut has_worker = false;
    while !has_worker {
        assert!(Instant::now() < deadline, "no worker takes part");
        let workers = (0..1_000).par().runner(on(&pool)).map(|_| {
            if elastipool::worker_index().is_none() && thread::current().id() != caller {
                outsiders.lock().unwrap().push(thread::current().id());
            }
            u32::from(elastipool::worker_index().is_some())
        });
        has_worker = workers.sum() > 0;
    }
    assert!(outsiders.into_inner().unwrap().is_empty());
}

#[test]
fn a_panic_resumes_at_the_caller() {
    let pool = ThreadPool::fixed(2);
    let numbers = 0..1_000;
    let result = catch_unwind(|| {
        numbers.clone().par().runner(on(&pool)).for_each(|number| {
            assert!(number != 500, "the number {number}");
        });
    });
    let payload = result.expect_err("the closure has panicked");
    assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("the number 500"));
    assert_eq!((0..10).par().runner(on(&pool)).sum(), 45);
}

#[test]
fn iterators_nest_in_tasks_of_a_pool_of_one() {
    let pool = ThreadPool::fixed(1);
    let inner = pool.clone();
    let sum = pool.evaluate(move || {
        let rows = (0..20).par().runner(on(&inner));
        rows.map(|row| (0..100).par().runner(on(&inner)).map(|column| row * column).sum()).sum()
    });
    let sum: Result<usize, _> =
        sum.await_complete_timeout(Duration::from_secs(30)).expect("it deadlocks");
    assert_eq!(sum.unwrap(), 190 * 4_950);
    pool.shutdown_join();
}
