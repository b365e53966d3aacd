//! A worker that submits to the full queue of its own pool does not wait for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bounded_queue::{assert_capacity, pool};
use crate::common::{Gate, LIMIT, refused, value, wait_until};
use elastipool::{RejectReason, ThreadPool};

/// Each task submits `width` others, down to `depth`.
fn submit_tree(pool: &ThreadPool, width: usize, depth: usize, count: &Arc<AtomicUsize>) {
    for _ in 0..width {
        let (own, count) = (pool.clone(), Arc::clone(count));
        pool.execute(move || {
            count.fetch_add(1, Ordering::SeqCst);
            if depth > 1 {
                submit_tree(&own, width, depth - 1, &count);
            }
        });
    }
}

#[test]
fn a_task_submits_to_its_own_full_queue() {
    for (max_size, capacity) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let pool = pool(max_size, capacity);
        let count = Arc::new(AtomicUsize::new(0));
        let (own, counts) = (pool.clone(), Arc::clone(&count));
        value(pool.evaluate(move || submit_tree(&own, 20, 1, &counts)));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(count.load(Ordering::SeqCst), 20);
        // From all workers at once, and from those that run while they are blocked.
        submit_tree(&pool, 3, 4, &count);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(count.load(Ordering::SeqCst), 20 + 3 + 9 + 27 + 81);
        let stats = pool.stats();
        assert_eq!((stats.rejected, stats.blocked), (0, 0));
        assert_capacity(&pool, capacity);
    }
}

#[test]
fn a_task_waits_for_what_it_submits_to_its_own_full_queue() {
    fn sum_to(pool: &ThreadPool, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let own = pool.clone();
        number + value(pool.evaluate(move || sum_to(&own, number - 1)))
    }
    for capacity in [0, 1] {
        let pool = pool(1, capacity);
        assert_eq!(sum_to(&pool, 10), 55);
        let own = pool.clone();
        let all = pool.evaluate(move || {
            let handles: Vec<_> = (0..20).map(|number| own.evaluate(move || number)).collect();
            handles.into_iter().map(value).sum::<usize>()
        });
        assert_eq!(value(all), 190);
        assert_capacity(&pool, capacity);
    }
}

/// To its own queue, and not only to its own: two full pools feed each other.
#[test]
fn tasks_of_two_pools_submit_to_each_other() {
    fn volley(to: &ThreadPool, back: &ThreadPool, left: usize, count: &Arc<AtomicUsize>) {
        count.fetch_add(1, Ordering::SeqCst);
        for _ in 0..usize::from(left > 0) * 2 {
            let (own, other, count) = (to.clone(), back.clone(), Arc::clone(count));
            to.execute(move || volley(&other, &own, left - 1, &count));
        }
    }
    let (left, right) = (pool(1, 0), pool(1, 0));
    let count = Arc::new(AtomicUsize::new(0));
    volley(&left, &right, 6, &count);
    wait_until("all have run", || count.load(Ordering::SeqCst) == 127);
    assert_capacity(&left, 0);
    assert_capacity(&right, 0);
}

#[test]
fn a_task_that_does_not_wait_is_rejected_by_its_own_full_queue() {
    let pool = pool(1, 0);
    let own = pool.clone();
    let task = pool.evaluate(move || refused(own.try_execute(|| ()), RejectReason::Full).reason());
    assert_eq!(value(task), RejectReason::Full);
    let own = pool.clone();
    let task = pool.evaluate(move || {
        // While it waits it is blocked, so another worker may run the task.
        own.try_evaluate_for(|| 7, LIMIT).map(value).unwrap()
    });
    assert_eq!(value(task), 7);
    assert_capacity(&pool, 0);
}

/// A crawl: each page submits its links to the full queue. The queue does not turn into threads.
#[test]
fn tasks_that_submit_to_their_full_queue_need_a_bounded_number_of_threads() {
    const PAGES: usize = 20_000;
    fn visit(pool: &ThreadPool, page: usize, count: &Arc<AtomicUsize>) {
        count.fetch_add(1, Ordering::SeqCst);
        for link in (4 * page + 1..=4 * page + 4).filter(|&link| link < PAGES) {
            let (own, count) = (pool.clone(), Arc::clone(count));
            pool.execute(move || visit(&own, link, &count));
        }
    }
    for (max_size, capacity) in [(8, 16), (1, 0), (2, 1)] {
        let pool = pool(max_size, capacity);
        let count = Arc::new(AtomicUsize::new(0));
        let (own, counts) = (pool.clone(), Arc::clone(&count));
        pool.execute(move || visit(&own, 0, &counts));
        wait_until("all pages are visited", || count.load(Ordering::SeqCst) == PAGES);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert!(stats.peak_workers <= 2 * max_size, "{stats:?}");
        assert_eq!((stats.rejected, stats.blocked), (0, 0));
        assert_capacity(&pool, capacity);
    }
}

/// As many workers as `max_size` wait for capacity, here one. What the next one submits is accepted
/// above it.
#[test]
fn a_task_is_accepted_above_capacity_if_as_many_workers_wait_as_may_run() {
    let pool = pool(1, 0);
    let gate = Gate::new();
    let (own, passes) = (pool.clone(), Arc::clone(&gate));
    let task = pool.evaluate(move || {
        let (inner, waiting) = (own.clone(), own.clone());
        // Takes the permit of the task that submits it.
        own.execute(move || {
            wait_until("the first task waits", || inner.stats().blocked == 1);
            inner.execute(|| ());
            inner.execute(|| ());
            passes.pass();
        });
        waiting.execute(|| ());
    });
    gate.wait_for(1);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.workers, stats.queued, stats.peak_blocked), (1, 2, 2, 1));
    gate.open();
    value(task);
    assert!(pool.join_timeout(LIMIT));
    assert_capacity(&pool, 0);
}

/// The waits of earlier tasks do not count.
#[test]
fn a_worker_waits_for_capacity_again_and_again() {
    let pool = pool(1, 1);
    for _ in 0..5 {
        let (gate, own) = (Gate::new(), pool.clone());
        let passes = Arc::clone(&gate);
        let task = pool.evaluate(move || {
            let waits = Arc::clone(&passes);
            own.execute(move || waits.pass());
            (0..3).for_each(|_| own.execute(|| ()));
        });
        wait_until("it waits", || pool.stats().blocked == 1);
        gate.open();
        value(task);
        assert!(pool.join_timeout(LIMIT));
    }
    assert_capacity(&pool, 1);
}
