//! The statistics: the relations that are documented, exact when nothing moves, and counters that
//! only grow.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, block, settled, submit_interdependent, value, wait_until};
use elastipool::{Builder, Stats, ThreadPool};

/// What the documentation says of numbers that are exact.
#[track_caller]
fn assert_relations(stats: &Stats) {
    let ended = stats.completed + stats.panicked + stats.cancelled + stats.handed_back;
    assert_eq!(stats.in_flight(), stats.queued + stats.active + stats.pending, "{stats:?}");
    assert_eq!(stats.accepted(), stats.in_flight() + ended, "{stats:?}");
    assert_eq!(stats.threads_started, stats.workers + stats.threads_retired, "{stats:?}");
    assert!(stats.workers >= stats.idle + stats.active, "{stats:?}");
    assert!(stats.workers >= stats.idle + stats.blocked, "{stats:?}");
    assert!(stats.peak_workers >= stats.workers, "{stats:?}");
    assert!(stats.peak_blocked >= stats.blocked, "{stats:?}");
}

/// A task in a region until the gate opens. It is in there when this returns.
fn block_in_region(pool: &ThreadPool) -> Arc<Gate> {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || elastipool::blocking(|| passes.pass()));
    gate.wait_for(1);
    gate
}

#[test]
fn statistics_of_a_new_pool_are_zero() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let mut zero = Stats::default();
    // No count, but how many may run.
    zero.allowed = 4;
    assert_eq!(pool.stats(), zero);
    assert_eq!(pool.stats().accepted(), 0);
}

#[test]
fn statistics_count_idle_workers() {
    let pool = ThreadPool::new(1, 3, HOUR);
    submit_interdependent(&pool, 3, || ()).into_iter().for_each(value);
    wait_until("all are idle", || pool.stats().idle == 3);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.active, stats.blocked, stats.queued), (3, 0, 0, 0));
    assert_eq!((stats.completed, stats.accepted(), stats.in_flight()), (3, 3, 0));
    let gate = block(&pool);
    assert_eq!((pool.stats().idle, pool.stats().active), (2, 1));
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// At once. The workers count as idle only when they have found no more work.
#[test]
fn the_counts_of_tasks_are_exact_after_a_join() {
    const ROUNDS: usize = 300;

    let builder = Builder::new().core_size(2).max_size(4).keep_alive(HOUR);
    let pool = builder.panic_handler(drop).build();
    for round in 1..=ROUNDS {
        for number in 0..10 {
            let own = pool.clone();
            pool.execute(move || {
                own.execute(|| ());
                assert!(number > 0, "on purpose");
            });
        }
        #[cfg(feature = "async")]
        pool.spawn(async {});
        pool.join();
        let stats = pool.stats();
        assert_relations(&stats);
        assert_eq!((stats.queued, stats.active, stats.pending, stats.blocked), (0, 0, 0, 0));
        let futures = usize::from(cfg!(feature = "async"));
        assert_eq!((stats.completed, stats.panicked), (round * (19 + futures), round));
    }
    wait_until("all are idle", || pool.stats().idle == pool.stats().workers);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn core_workers_are_idle_soon_after_their_start() {
    let pool = ThreadPool::new(5, 10, HOUR);
    assert_eq!(pool.start_core_threads(), 5);
    assert_eq!((pool.current_worker_count(), pool.stats().threads_started), (5, 5));
    wait_until("all are idle", || pool.idle_worker_count() == 5);
    assert_eq!((pool.stats().idle, pool.stats().workers), (5, 5));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn statistics_are_exact_while_all_tasks_wait() {
    let pool = ThreadPool::new(1, 3, HOUR);
    let regions = [block_in_region(&pool), block_in_region(&pool)];
    let gates = [block(&pool), block(&pool), block(&pool)];
    let queued: Vec<_> = (0..4).map(|number| pool.evaluate(move || number)).collect();
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.idle, stats.blocked, stats.active), (5, 0, 2, 5));
    assert_eq!((stats.queued, stats.pending, stats.completed), (4, 0, 0));
    assert_eq!((stats.accepted(), stats.peak_workers, stats.threads_retired), (9, 5, 0));
    assert_eq!((pool.queued_count(), pool.current_worker_count()), (4, 5));
    assert_eq!(pool.idle_worker_count(), 0);

    queued[3].cancel();
    let mut without = stats.clone();
    (without.queued, without.cancelled) = (3, 1);
    assert_eq!(pool.stats(), without, "its canceller has dropped it");
    regions[0].open();
    // One too many from here on: it is idle when its task has ended, whatever is queued.
    wait_until("a worker is idle", || pool.stats().idle == 1);
    wait_until("it has reported", || pool.stats().in_flight() == 7);
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.blocked, stats.active), (5, 1, 4));
    assert_eq!((stats.queued, stats.completed, stats.accepted()), (3, 1, 9));

    gates[0].open();
    wait_until("the queue is empty", || pool.stats().idle == 2);
    wait_until("they have reported", || pool.stats().in_flight() == 3);
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.blocked, stats.active, stats.queued), (5, 1, 3, 0));
    assert_eq!((stats.completed, stats.cancelled, stats.accepted()), (5, 1, 9));
    assert_eq!((stats.threads_retired, stats.peak_blocked), (0, 2));

    regions.iter().chain(&gates).for_each(|gate| gate.open());
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.in_flight(), stats.completed, stats.cancelled), (0, 8, 1));
    assert_eq!(stats.accepted(), 9);
    drop(queued);
    let looker = pool.clone();
    pool.close();
    assert!(pool.shutdown_join_timeout(LIMIT));
    let stats = looker.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.peak_workers, stats.blocked), (0, 5, 0));
    assert_eq!((stats.peak_blocked, stats.threads_retired), (2, 5));
}

/// Also those that are not replaced are blocked.
#[test]
fn peak_blocked_keeps_its_maximum() {
    for max_blocked in [0, 1, 2, 512] {
        let builder = Builder::new().core_size(0).max_size(3).keep_alive(HOUR);
        let pool = builder.max_blocked(max_blocked).build();
        for (count, peak) in [(1, 1), (3, 3), (2, 3)] {
            let regions: Vec<_> = (0..count).map(|_| block_in_region(&pool)).collect();
            // A peak that was not read is remembered as well.
            if count != 3 {
                let stats = pool.stats();
                assert_relations(&stats);
                assert_eq!((stats.blocked, stats.peak_blocked), (count, peak), "{max_blocked}");
            }
            regions.iter().for_each(|gate| gate.open());
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_relations(&stats);
            assert_eq!((stats.blocked, stats.peak_blocked), (0, peak), "{max_blocked}");
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// A worker reports its ended tasks when it rests. The statistics count them before that.
#[test]
fn tasks_that_ended_are_counted_while_their_worker_goes_on() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    for _ in 0..3 {
        pool.execute(|| ());
    }
    let last = Gate::new();
    let passes = Arc::clone(&last);
    pool.execute(move || passes.pass());
    pool.execute(|| ());
    gate.open();
    last.wait_for(1);
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.completed, stats.queued, stats.active, stats.pending), (4, 1, 1, 0));
    assert_eq!(stats.accepted(), 6);
    last.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn statistics_count_futures_that_wait_as_pending() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (handles, triggers): (Vec<_>, Vec<_>) = (0..6)
        .map(|_| {
            let (trigger, triggered) = common::triggered();
            (pool.spawn_await(triggered), trigger)
        })
        .unzip();
    wait_until("all are pending", || pool.stats().pending == 6);
    wait_until("the worker is idle", || pool.stats().idle == 1);
    let gate = block(&pool);
    triggers[0].fire();
    triggers[1].fire();
    handles[2].cancel();
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.queued, stats.active, stats.pending), (2, 1, 3));
    assert_eq!((stats.accepted(), stats.completed, stats.cancelled), (7, 0, 1));
    gate.open();
    wait_until("they have ended", || pool.stats().idle == 1);
    wait_until("that is reported", || pool.stats().in_flight() == 3);
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.queued, stats.active, stats.pending), (0, 0, 3));
    assert_eq!((stats.accepted(), stats.completed, stats.cancelled), (7, 3, 1));
    // The others can never be woken.
    drop(triggers);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.in_flight(), stats.completed, stats.cancelled), (0, 3, 4));
    drop(handles);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn each_end_of_a_task_is_counted_by_its_kind() {
    let pool = Builder::new().core_size(1).max_size(1).queue_capacity(5).build();
    let gate = block(&pool);
    let panics = pool.evaluate(|| -> u8 { panic!("contained") });
    let cancelled = pool.evaluate(|| 1);
    let completes = pool.complete(async { 1 });
    cancelled.cancel();
    pool.execute(|| panic!("contained"));
    pool.execute(|| ());
    pool.execute(|| ());
    assert!(pool.try_execute(|| ()).is_err(), "full");
    assert_eq!(pool.stats().rejected, 1);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled), (4, 2, 1));
    let gate = block(&pool);
    pool.execute(|| ());
    pool.execute(|| ());
    drop(pool.shutdown_now());
    assert!(pool.try_execute(|| ()).is_err(), "closed");
    assert!(settled(pool.evaluate(|| 1)).is_err());
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.handed_back, stats.rejected, stats.active), (2, 3, 1));
    assert_eq!(stats.accepted(), 10);
    gate.open();
    assert!(settled(panics).is_err());
    assert_eq!(value(completes), 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn peak_workers_keeps_its_maximum() {
    let pool = ThreadPool::new(0, 4, Duration::from_millis(1));
    submit_interdependent(&pool, 3, || ()).into_iter().for_each(value);
    wait_until("all have gone", || pool.current_worker_count() == 0);
    let stats = pool.stats();
    assert_relations(&stats);
    assert_eq!((stats.workers, stats.peak_workers, stats.threads_retired), (0, 3, 3));
    submit_interdependent(&pool, 2, || ()).into_iter().for_each(value);
    assert_eq!(pool.stats().peak_workers, 3);
    submit_interdependent(&pool, 4, || ()).into_iter().for_each(value);
    assert_eq!(pool.stats().peak_workers, 4);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Workers come and go, and take their counts with them.
#[test]
fn counters_only_grow() {
    const ROUNDS: usize = 3_000;
    let pool = Builder::new()
        .core_size(0)
        .max_size(3)
        .keep_alive(Duration::from_micros(1))
        .max_tasks_per_worker(3)
        .build();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let counters = |stats: &Stats| {
                [
                    ("completed", stats.completed),
                    ("panicked", stats.panicked),
                    ("cancelled", stats.cancelled),
                    ("rejected", stats.rejected),
                    ("started", stats.threads_started),
                    ("refused", stats.threads_refused),
                    ("retired", stats.threads_retired),
                    ("peak", stats.peak_workers),
                    ("peak of the blocked", stats.peak_blocked),
                ]
            };
            let mut before = counters(&pool.stats());
            while !is_over.load(Ordering::Relaxed) {
                let stats = pool.stats();
                let now = counters(&stats);
                for ((what, before), (_, now)) in before.iter().zip(now) {
                    assert!(*before <= now, "{what} was {before} and is {now}");
                }
                before = now;
                // Under one lock.
                let threads = stats.workers + stats.threads_retired;
                assert_eq!(stats.threads_started, threads, "{stats:?}");
                assert!(stats.peak_workers >= stats.workers, "{stats:?}");
                assert!(stats.in_flight() <= 4 * ROUNDS, "below zero: {stats:?}");
            }
        });
        let _over = Over(&is_over);
        for round in 0..ROUNDS {
            pool.execute(|| common::dawdle(50));
            let handle = pool.evaluate(|| ());
            handle.cancel();
            if round % 50 == 0 {
                pool.execute(|| panic!("contained"));
            }
            #[cfg(feature = "async")]
            if round % 2 == 0 {
                let (trigger, triggered) = common::triggered();
                pool.spawn(triggered);
                trigger.fire();
                drop(trigger);
            }
            if round % 16 == 0 {
                assert!(pool.join_timeout(LIMIT));
            }
        }
        assert!(pool.join_timeout(LIMIT));
    });
    let stats = pool.stats();
    assert_relations(&stats);
    let more = if cfg!(feature = "async") { ROUNDS / 2 } else { 0 };
    assert_eq!((stats.accepted(), stats.panicked), (2 * ROUNDS + ROUNDS / 50 + more, ROUNDS / 50));
    assert_eq!(stats.in_flight(), 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Ends the reader, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
