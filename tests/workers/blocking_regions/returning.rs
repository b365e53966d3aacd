//! When a region ends, the pool goes back to `max_size`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::blocking_regions::{assert_is_itself_again, one, running};
use crate::common::{Gate, HOUR, LIMIT, block, dawdle, submit_region, value, wait_until};
use elastipool::{ThreadPool, blocking};

/// The workers that were started as compensation are idle then, and serve the next regions.
#[test]
fn the_pool_goes_back_to_max_size_after_regions() {
    for (core_size, max_size) in [(0, 1), (1, 1), (2, 3)] {
        let pool = ThreadPool::new(core_size, max_size, HOUR);
        for _ in 0..5 {
            let regions: Vec<_> = (0..max_size + 4).map(|_| submit_region(&pool)).collect();
            assert!(pool.current_worker_count() >= max_size + 4);
            for (_, gate) in &regions {
                gate.open();
            }
            for (task, _) in regions {
                value(task);
            }
            wait_until("all are idle", || running(&pool) == 0);
        }
        assert!(pool.current_worker_count() >= core_size);
        // No worker is started while one is idle, or while `max_size` are not blocked; and none has
        // left.
        let started = pool.stats().threads_started;
        assert!(started <= 2 * max_size + 4, "{started} threads for {} regions", max_size + 4);
        assert_is_itself_again(&pool);
    }
}

/// The worker that was started for a blocked one is kept for the next region, and runs nothing
/// meanwhile.
#[test]
fn a_compensating_worker_stays_idle_when_the_blocked_one_comes_back() {
    let pool = one();
    let (regions, works) = ([Gate::new(), Gate::new()], [Gate::new(), Gate::new()]);
    let (blocks, computes) = (regions.clone(), works.clone());
    let task = pool.evaluate(move || {
        for (region, work) in blocks.iter().zip(&computes) {
            blocking(|| region.pass());
            work.pass();
        }
    });
    for (region, work) in regions.iter().zip(&works) {
        region.wait_for(1);
        value(pool.evaluate(|| ()));
        wait_until("the other one is idle", || pool.idle_worker_count() == 1);
        region.open();
        work.wait_for(1);
        let queued = pool.evaluate(|| ());
        // Time for a defect.
        thread::sleep(Duration::from_millis(20));
        assert!(!queued.is_finished(), "two tasks run on a pool of one");
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.idle, stats.queued), (2, 1, 1));
        work.open();
        value(queued);
    }
    value(task);
    assert_eq!(pool.stats().threads_started, 2);
    assert_is_itself_again(&pool);
}

#[test]
fn a_surplus_worker_retires_after_its_keep_alive() {
    for core_size in [0, 1] {
        let pool = ThreadPool::new(core_size, 1, Duration::from_millis(50));
        let (region, works) = (Gate::new(), Gate::new());
        let (blocks, computes) = (Arc::clone(&region), Arc::clone(&works));
        let task = pool.evaluate(move || {
            blocking(|| blocks.pass());
            computes.pass();
        });
        region.wait_for(1);
        let second = block(&pool);
        region.open();
        works.wait_for(1);
        assert_eq!((pool.stats().workers, pool.stats().idle), (2, 0));
        let before = Instant::now();
        second.open();
        // While the other one works, and while a task is queued that the idle worker may not take.
        let queued = pool.evaluate(|| ());
        wait_until("the idle worker has retired", || pool.current_worker_count() == 1);
        assert!(before.elapsed() >= Duration::from_millis(50), "{:?}", before.elapsed());
        assert!(!queued.is_finished());
        works.open();
        value(queued);
        value(task);
        assert_eq!(pool.stats().threads_started, 2);
        assert_is_itself_again(&pool);
    }
}

/// There is one over until the next worker ends its task. That one is idle then, and no other task
/// is started.
#[test]
fn a_worker_that_comes_back_is_one_too_many_until_the_next_task_ends() {
    for first_ends in [false, true] {
        let pool = one();
        let (region, comes_back) = (Gate::new(), Gate::new());
        let gates = [Arc::clone(&region), Arc::clone(&comes_back)];
        let first = pool.evaluate(move || {
            blocking(|| gates[0].pass());
            gates[1].pass();
        });
        region.wait_for(1);
        let second = block(&pool);
        let third = Gate::new();
        let passes = Arc::clone(&third);
        let queued = pool.evaluate(move || passes.pass());
        region.open();
        comes_back.wait_for(1);
        // Both run: no worker is stopped.
        assert_eq!((pool.stats().active, running(&pool)), (2, 2));
        let (next, last) = if first_ends { (&comes_back, &second) } else { (&second, &comes_back) };
        next.open();
        wait_until("one is idle", || pool.idle_worker_count() == 1);
        // Time for a defect.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(
            (third.arrived(), pool.queued_count(), running(&pool)),
            (0, 1, 1),
            "two tasks run on a pool of one"
        );
        last.open();
        third.wait_for(1);
        assert_eq!(running(&pool), 1);
        third.open();
        value(first);
        value(queued);
        assert_is_itself_again(&pool);
    }
}

/// As above, at random: only workers that have returned from a region may exceed `max_size`.
#[test]
fn never_more_than_max_size_tasks_begin_beside_each_other() {
    #[derive(Default)]
    struct Observer {
        /// Tasks that run and have not been in a region.
        fresh: AtomicUsize,
        most: AtomicUsize,
    }
    for max_size in [1, 2] {
        let pool = ThreadPool::new(0, max_size, Duration::from_micros(50));
        let observer = Arc::new(Observer::default());
        let mut handles = Vec::new();
        for _ in 0..400 {
            let observer = Arc::clone(&observer);
            handles.push(pool.evaluate(move || {
                let fresh = observer.fresh.fetch_add(1, Ordering::SeqCst) + 1;
                observer.most.fetch_max(fresh, Ordering::SeqCst);
                dawdle(300);
                observer.fresh.fetch_sub(1, Ordering::SeqCst);
                if fastrand::bool() {
                    blocking(|| dawdle(300));
                    dawdle(100);
                }
            }));
            dawdle(300);
        }
        handles.into_iter().for_each(value);
        assert!(observer.most.load(Ordering::SeqCst) <= max_size, "{:?}", observer.most);
        assert!(pool.join_timeout(LIMIT));
        wait_until("none is left", || pool.current_worker_count() == 0);
        assert_eq!(pool.stats().blocked, 0);
    }
}

/// A worker that only computes is not replaced, however much is queued.
#[test]
fn without_regions_no_more_than_max_size_run() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let (begun, is_over) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    for _ in 0..2 {
        let (begins, ends) = (Arc::clone(&begun), Arc::clone(&is_over));
        pool.execute(move || {
            begins.meet(2);
            while !ends.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    }
    begun.wait_for(2);
    let handles: Vec<_> = (0..20).map(|number| pool.evaluate(move || number)).collect();
    // A wait of another task does not concern them.
    let deadline = Instant::now() + Duration::from_millis(30);
    while Instant::now() < deadline {
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.threads_started, stats.queued), (2, 2, 20));
        thread::yield_now();
    }
    is_over.store(true, Ordering::Relaxed);
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(value(handle), number);
    }
    assert_eq!((pool.stats().peak_workers, pool.stats().threads_started), (2, 2));
}
