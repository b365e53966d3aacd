//! `max_tasks_per_worker`: a worker that has used its quota ends, with its stop hook and its
//! thread-locals. Another one is started, and no task notices.

use crate::common;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, block, value, wait_until};
use elastipool::{Builder, ThreadPool, blocking, worker_index};

fn builder(core_size: usize, max_size: usize, max_tasks: usize) -> Builder {
    let sizes = Builder::new().core_size(core_size).max_size(max_size).keep_alive(HOUR);
    sizes.max_tasks_per_worker(max_tasks)
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::SeqCst);
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::SeqCst)
}

/// Counts one when the calling thread exits.
fn count_exit(count: &Arc<AtomicUsize>) {
    struct Exit(RefCell<Option<Arc<AtomicUsize>>>);
    impl Drop for Exit {
        fn drop(&mut self) {
            if let Some(count) = self.0.take() {
                add(&count);
            }
        }
    }
    thread_local! {
        static EXIT: Exit = const { Exit(RefCell::new(None)) };
    }
    EXIT.with(|exit| exit.0.replace(Some(Arc::clone(count))));
}

/// The threads that `count` tasks run on, one after another.
fn threads_of(pool: &ThreadPool, count: usize) -> Vec<ThreadId> {
    (0..count).map(|_| value(pool.evaluate(|| thread::current().id()))).collect()
}

// ----- the quota and the successor -----

#[test]
fn a_thread_ends_after_its_task_quota() {
    let (stopped, exited) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (stops, exits) = (Arc::clone(&stopped), Arc::clone(&exited));
    let pool = builder(1, 1, 3)
        .on_worker_start(move |_| count_exit(&exits))
        .on_worker_stop(move |_| add(&stops))
        .build();
    let threads = threads_of(&pool, 12);
    for term in threads.chunks(3) {
        assert!(term.iter().all(|thread| *thread == term[0]), "{threads:?}");
    }
    let distinct: HashSet<_> = threads.iter().collect();
    assert_eq!(distinct.len(), 4, "{threads:?}");
    wait_until("four have gone, hook and locals included", || {
        (get(&stopped), get(&exited)) == (4, 4)
    });
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.threads_retired, stats.workers), (5, 4, 1));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!((get(&stopped), get(&exited)), (5, 5));
}

/// No successor is started without work.
#[test]
fn a_recycled_worker_has_no_successor_unless_one_is_needed() {
    let pool = builder(0, 1, 1).build();
    assert_eq!(value(pool.evaluate(|| 1)), 1);
    wait_until("it has gone", || pool.current_worker_count() == 0);
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.threads_retired), (1, 1));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn with_a_quota_of_one_there_are_as_many_threads_as_tasks() {
    const TASKS: usize = 500;
    for (core_size, max_size) in [(0, 1), (1, 1), (0, 3), (2, 3)] {
        let pool = builder(core_size, max_size, 1).build();
        let threads = Arc::new(Mutex::new(HashSet::new()));
        for _ in 0..TASKS {
            let threads = Arc::clone(&threads);
            pool.execute(move || {
                threads.lock().unwrap().insert(thread::current().id());
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(threads.lock().unwrap().len(), TASKS, "({core_size}, {max_size})");
        assert_eq!(pool.stats().completed, TASKS);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn tasks_that_panic_count_for_the_task_quota() {
    let pool = builder(1, 1, 2).build();
    let first = threads_of(&pool, 1)[0];
    pool.execute(|| panic!("contained"));
    assert!(threads_of(&pool, 1)[0] != first);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn each_poll_of_a_future_counts_for_the_task_quota() {
    for wakes_itself in [false, true] {
        assert_eq!(threads_of_polls(wakes_itself), POLLS);
    }
}

#[cfg(feature = "async")]
#[test]
fn each_poll_of_a_future_has_a_thread_of_its_own() {
    for round in 0..50 {
        assert_eq!(threads_of_polls(round % 2 == 0), POLLS);
    }
}

/// The same, with a pool that shrinks below its core by that.
#[test]
fn recycling_at_the_same_time_keeps_core_size() {
    for _ in 0..200 {
        let pool = builder(2, 2, 1).build();
        assert_eq!(pool.start_core_threads(), 2);
        common::submit_interdependent(&pool, 2, || ()).into_iter().for_each(value);
        wait_until("two rest", || pool.stats().threads_retired >= 2);
        let count = pool.current_worker_count();
        assert!(count >= 2, "{count} of 2: {:?}", pool.stats());
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[cfg(feature = "async")]
const POLLS: usize = 20;

/// How many threads poll a future one after another, in a pool whose workers run one task each.
#[cfg(feature = "async")]
fn threads_of_polls(wakes_itself: bool) -> usize {
    let pool = builder(0, 1, 1).build();
    let (seen, waker) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
    let (sees, keeps) = (Arc::clone(&seen), Arc::clone(&waker));
    let handle = pool.spawn_await(std::future::poll_fn(move |context| {
        let mut seen = sees.lock().unwrap();
        seen.push(thread::current().id());
        if seen.len() == POLLS {
            return std::task::Poll::Ready(());
        }
        drop(seen);
        if wakes_itself {
            context.waker().wake_by_ref();
        } else {
            *keeps.lock().unwrap() = Some(context.waker().clone());
        }
        std::task::Poll::Pending
    }));
    if !wakes_itself {
        for _ in 1..POLLS {
            let mut newest = None;
            wait_until("it is pending", || {
                newest = waker.lock().unwrap().take();
                newest.is_some()
            });
            newest.unwrap().wake();
        }
    }
    value(handle);
    let distinct: HashSet<_> = seen.lock().unwrap().iter().copied().collect();
    assert!(pool.shutdown_join_timeout(LIMIT));
    distinct.len()
}

/// A future that waits finds a worker, also if the last one was used up by its first poll.
#[cfg(feature = "async")]
#[test]
fn recycling_keeps_a_worker_for_a_pending_future() {
    for _ in 0..50 {
        let pool = builder(0, 1, 1).build();
        let (trigger, triggered) = common::triggered();
        let handle = pool.spawn_await(triggered);
        wait_until("it is pending", || pool.stats().pending == 1);
        for _ in 0..3 {
            value(pool.evaluate(|| ()));
        }
        wait_until("one waits for it", || pool.idle_worker_count() == 1);
        trigger.fire();
        value(handle);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// ----- what stays as it is -----

#[test]
fn a_slow_stop_hook_of_a_recycled_worker_delays_no_task() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let pool = builder(1, 1, 1).on_worker_stop(move |_| passes.pass()).build();
    for round in 0..5 {
        assert_eq!(value(pool.evaluate(move || round)), round);
        gate.wait_for(round + 1);
    }
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The documentation of `worker_index` makes an exception for regions and stop hooks only.
#[test]
fn recycling_keeps_indexes_below_max_size() {
    for max_size in [1, 2, 3] {
        let pool = builder(max_size, max_size, 1).build();
        let indexes: Vec<_> = (0..200).map(|_| pool.evaluate(worker_index)).collect();
        for index in indexes {
            let index = value(index).unwrap();
            assert!(index < max_size, "{index} of {max_size}");
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// A recycled worker runs no further task.
#[test]
fn recycling_runs_no_more_tasks_than_max_size() {
    for max_size in [1, 2, 3] {
        let pool = builder(max_size.min(2), max_size, 1).build();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..500 {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            pool.execute(move || {
                most.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                common::dawdle(2_000);
                now.fetch_sub(1, Ordering::SeqCst);
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert!(get(&most) <= max_size, "{} of {max_size}", get(&most));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// A documented relation.
#[test]
fn recycling_keeps_runnable_workers_within_max_size() {
    for round in 0..60 {
        let max_size = 1 + round % 3;
        let pool = builder(max_size.min(2), max_size, 1).build();
        for _ in 0..500 {
            pool.execute(|| common::dawdle(100));
            let stats = pool.stats();
            assert!(stats.workers - stats.blocked <= max_size, "{max_size}: {stats:?}");
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn recycling_keeps_workers_within_max_size() {
    for max_size in [1, 2, 3] {
        let pool = builder(max_size.min(2), max_size, 1).build();
        for _ in 0..500 {
            pool.execute(|| common::dawdle(100));
            let count = pool.current_worker_count();
            assert!(count <= max_size, "{count} of {max_size}");
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().peak_workers, max_size);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Once it is reached: each successor is started before its predecessor ends.
#[test]
fn recycling_keeps_core_size() {
    for (core_size, max_size) in [(1, 1), (2, 2), (2, 4)] {
        let pool = builder(core_size, max_size, 1).build();
        assert_eq!(pool.start_core_threads(), core_size);
        for round in 0..500 {
            pool.execute(|| common::dawdle(100));
            common::dawdle(if round % 2 == 0 { 5_000 } else { 50 });
            let count = pool.current_worker_count();
            assert!(count >= core_size, "{count} of {core_size}");
        }
        assert!(pool.join_timeout(LIMIT));
        wait_until("they rest", || pool.idle_worker_count() >= core_size);
        assert!(pool.current_worker_count() >= core_size, "{:?}", pool.stats());
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// ----- together with other things -----

/// It is called by workers on their way out as well, which may be counted no longer.
#[test]
fn a_thread_name_function_that_blocks_changes_no_count() {
    for max_tasks in [1, usize::MAX] {
        let own = Arc::new(OnceLock::<ThreadPool>::new());
        let most_blocked = Arc::new(AtomicUsize::new(0));
        let (place, most) = (Arc::clone(&own), Arc::clone(&most_blocked));
        let pool = builder(0, 2, max_tasks)
            .keep_alive(Duration::from_nanos(1))
            .thread_name(move |index| {
                let blocked = blocking(|| place.get().map_or(0, |own| own.stats().blocked));
                most.fetch_max(blocked, Ordering::SeqCst);
                format!("named {index}")
            })
            .build();
        own.set(pool.clone()).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..200 {
            let (own, ran) = (pool.clone(), Arc::clone(&ran));
            pool.execute(move || {
                add(&ran);
                own.execute(move || add(&ran));
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((get(&ran), get(&most_blocked)), (400, 0));
        let stats = pool.stats();
        assert!(stats.blocked == 0 && stats.workers <= 2, "{stats:?}");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn closing_ends_a_pool_whose_workers_have_used_their_quota() {
    for round in 0..40 {
        let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starts, stops) = (Arc::clone(&started), Arc::clone(&stopped));
        let pool = builder(round % 3, 1 + round % 3, 1 + round % 2)
            .on_worker_start(move |_| add(&starts))
            .on_worker_stop(move |_| add(&stops))
            .build();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            let ran = Arc::clone(&ran);
            pool.execute(move || add(&ran));
        }
        common::dawdle(2_000);
        assert!(pool.shutdown_join_timeout(LIMIT), "round {round}");
        assert_eq!(get(&ran), 20);
        assert_eq!(get(&started), get(&stopped));
    }
}

#[test]
fn a_busy_worker_does_not_delay_the_recycling_of_others() {
    let pool = builder(2, 2, 1).build();
    let gate = block(&pool);
    let distinct: HashSet<_> = threads_of(&pool, 50).into_iter().collect();
    assert_eq!(distinct.len(), 50);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// From several threads, with keep-alives that end meanwhile.
#[test]
fn recycling_loses_no_task() {
    const SUBMITTERS: usize = 3;
    const TASKS: usize = 2_000;
    for core_size in [0, 2] {
        let pool = Builder::new()
            .core_size(core_size)
            .max_size(3)
            .keep_alive(Duration::from_micros(1))
            .max_tasks_per_worker(3)
            .build();
        let ran = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..SUBMITTERS {
                scope.spawn(|| {
                    for _ in 0..TASKS {
                        let ran = Arc::clone(&ran);
                        pool.execute(move || add(&ran));
                        common::dawdle(100);
                    }
                });
            }
        });
        assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
        assert_eq!(get(&ran), SUBMITTERS * TASKS);
        assert!(pool.stats().threads_started >= SUBMITTERS * TASKS / 3);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// The system refuses the thread of the fresh worker.
#[cfg(target_os = "linux")]
mod refused {
    use super::common::refusal::{Refusal, in_a_child};
    use super::*;

    #[test]
    fn a_worker_goes_on_if_its_successor_is_refused() {
        in_a_child("refused::a_worker_goes_on_if_its_successor_is_refused", || {
            for core_size in [0, 1] {
                let pool = builder(core_size, 1, 2).build();
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                let first = pool.evaluate(move || {
                    passes.pass();
                    thread::current().id()
                });
                gate.wait_for(1);
                let refusal = Refusal::begin();
                let handles: Vec<_> =
                    (0..9).map(|_| pool.evaluate(|| thread::current().id())).collect();
                // With work that waits, and not until there is none.
                let (last, held) = (Gate::new(), Gate::new());
                let (passes, holds) = (Arc::clone(&last), Arc::clone(&held));
                pool.execute(move || {
                    passes.pass();
                    holds.open();
                });
                pool.execute(|| ());
                gate.open();
                let thread = value(first);
                for handle in handles {
                    assert_eq!(value(handle), thread);
                }
                last.wait_for(1);
                let stats = pool.stats();
                assert_eq!(
                    (stats.workers, stats.threads_started, stats.threads_retired),
                    (1, 1, 0)
                );
                assert!(stats.threads_refused >= 5, "once in each term: {stats:?}");
                refusal.end();
                last.open();
                held.pass();
                assert!(pool.join_timeout(LIMIT));
                let stats = pool.stats();
                assert_eq!((stats.completed, stats.rejected, stats.cancelled), (12, 0, 0));
                // Now there are threads again.
                let distinct: HashSet<_> = threads_of(&pool, 8).into_iter().collect();
                assert!(distinct.len() >= 4);
                assert!(!distinct.contains(&thread));
                assert!(pool.shutdown_join_timeout(LIMIT));
            }
        });
    }
}

/// The entry of a cancelled task is no work: it keeps no worker whose quota is used in a pool that
/// is over.
#[test]
fn the_entry_of_a_cancelled_task_needs_no_successor_when_the_pool_is_over() {
    let pool = builder(1, 1, 1).build();
    let gate = block(&pool);
    pool.evaluate(|| ()).cancel();
    pool.close();
    gate.open();
    assert!(pool.clone().shutdown_join_timeout(LIMIT));
    assert_eq!(pool.stats().threads_started, 1);
}
