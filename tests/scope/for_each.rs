//! `Scope::for_each`.

use crate::common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Drops, Gate, HOUR, LIMIT, block};
use elastipool::ThreadPool;

#[test]
fn each_item_is_visited_once() {
    let pool = ThreadPool::new(2, 4, HOUR);
    // Around one task for each item, and with a last part that is shorter.
    for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000] {
        let mut numbers: Vec<usize> = (0..count).collect();
        let sum = AtomicUsize::new(0);
        pool.scope(|scope| {
            scope.for_each(&mut numbers, |number| *number += 1);
        });
        pool.scope(|scope| {
            scope.for_each(&numbers, |number| {
                sum.fetch_add(*number, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), count * (count + 1) / 2, "{count} items");
        assert!(numbers.into_iter().eq(1..=count));
    }
    let mut chunks = [0; 10];
    pool.scope(|scope| scope.for_each(chunks.chunks_mut(3), |chunk| chunk.fill(chunk.len())));
    assert_eq!(chunks, [3, 3, 3, 3, 3, 3, 3, 3, 3, 1]);
}

#[test]
fn few_items_are_a_task_each_and_many_share_one() {
    for (count, expected) in [(10, 10), (16, 16), (17, 9), (16_000, 16)] {
        let pool = ThreadPool::new(1, 4, HOUR);
        pool.scope(|scope| scope.for_each(0..count, |_: u32| ()));
        pool.join();
        assert_eq!(pool.stats().completed, expected, "{count} items");
    }
}

#[test]
fn a_panic_comes_back_and_no_item_leaks() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let drops = Drops::default();
    let items: Vec<_> = (0..100).map(|number| (number, drops.issue())).collect();
    let visit = |(number, _item)| assert_ne!(number, 50, "the fiftieth");
    let body = || pool.scope(|scope| scope.for_each(items, visit));
    let payload = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    assert!(payload.downcast::<String>().unwrap().contains("the fiftieth"));
    assert_eq!(drops.count(), 100);
    gate.open();
}

#[test]
fn a_pool_that_finds_its_size_gets_few_tasks() {
    let pool = ThreadPool::default();
    pool.scope(|scope| scope.for_each(0..16_000, |_: u32| ()));
    assert!(pool.join_timeout(LIMIT));
    // The number may rise meanwhile, on a busy machine.
    assert!(pool.stats().completed <= 4 * pool.max_size(), "{:?}", pool.stats());
}

#[test]
fn items_that_wait_are_divided_as_more_may_run() {
    let builders = [ThreadPool::builder(), ThreadPool::builder().queue_capacity(1)];
    for pool in builders.map(elastipool::Builder::build) {
        let items = Gate::new();
        pool.scope(|scope| scope.for_each(0..64, |_: u32| items.meet(64)));
        assert!(pool.join_timeout(LIMIT));
    }
}

#[test]
fn tasks_that_run_leave_items_to_workers_that_come_later() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let items = Gate::new();
    pool.scope(|scope| {
        scope.for_each(0..64, |_: u32| items.meet(16));
        items.wait_for(1);
        pool.set_max_size(16).unwrap();
    });
}

/// None of them comes back to the user.
#[test]
fn further_tasks_that_are_not_accepted_count_as_no_rejections() {
    for closes in [false, true] {
        let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(4).build();
        let view = pool.view().build();
        let (gate, visited) = (Gate::new(), AtomicUsize::new(0));
        view.scope(|scope| {
            scope.for_each(0..64, |number: u32| {
                visited.fetch_add(1, Ordering::SeqCst);
                if number == 0 {
                    gate.pass();
                }
            });
            gate.wait_for(1);
            if closes {
                pool.close();
            }
            // For 16 tasks instead of 4.
            pool.set_max_size(4).unwrap();
            gate.open();
        });
        assert_eq!(visited.into_inner(), 64);
        assert_eq!((view.stats().rejected, pool.stats().rejected), (0, 0), "closes: {closes}");
    }
}

#[test]
fn a_task_visits_its_share_and_ends() {
    // Another task of the only worker runs between two tasks of the scope.
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let visited = AtomicUsize::new(0);
    let seen = pool.scope(|scope| {
        scope.for_each(0..400, |_: u32| _ = visited.fetch_add(1, Ordering::SeqCst));
        let seen = scope.evaluate(|| visited.load(Ordering::SeqCst));
        gate.open();
        seen.await_complete()
    });
    assert_eq!(seen % 100, 0);
}
