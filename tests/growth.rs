//! `Growth::Stalled`: a pool above `core_size` gets its threads when the queued tasks make no progress, and not
//! before; one worker keeps the watch over them meanwhile.
//!
//! An hour of delay makes most of this exact: the watch never ends by itself.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{Gate, HOUR, LIMIT, block, submit_party, value, wait_until};
use elastipool::{Growth, ThreadPool};

/// Time is the subject of some tests: those of this file run one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool whose surplus workers stay.
fn stalled(core_size: usize, max_size: usize, delay: Duration) -> ThreadPool {
    stalled_as("stalled", core_size, max_size, delay)
}

/// The same for a test that looks for threads of that name: those of a test that has failed may still be there.
fn stalled_as(name: &str, core_size: usize, max_size: usize, delay: Duration) -> ThreadPool {
    ThreadPool::builder()
        .name(name)
        .core_size(core_size)
        .max_size(max_size)
        .keep_alive(HOUR)
        .growth(Growth::Stalled(delay))
        .build()
}

/// Queues a task behind the only worker, which is occupied, and waits until another one watches over it: started for
/// that, it is neither idle nor takes the task.
#[track_caller]
fn watched<T: Send + 'static>(
    pool: &ThreadPool,
    task: impl FnOnce() -> T + Send + 'static,
) -> elastipool::JoinHandle<T> {
    let handle = pool.evaluate(task);
    wait_until("a second worker comes", || pool.current_worker_count() == 2);
    // It may still be on its way, which makes no difference to what it does.
    thread::sleep(millis(10));
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.idle, stats.active, stats.queued), (2, 0, 1, 1), "{stats:?}");
    handle
}

// ----- few threads for tiny tasks -----

// Protects `keep_watch` as a whole: the one that watches takes nothing and starts nothing.
#[test]
fn a_queue_that_one_worker_empties_is_left_to_it() {
    let _alone = alone();
    let pool = stalled(0, 64, HOUR);
    let gate = block(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..10_000 {
        let ran = Arc::clone(&ran);
        pool.execute(move || _ = ran.fetch_add(1, Ordering::Relaxed));
    }
    gate.open();
    pool.join();
    assert_eq!(ran.load(Ordering::Relaxed), 10_000);
    // One that works and one that watches.
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Without anything to hold the worker back, one that comes for a task may find no queue to watch, and then a task
// after all, which makes it one of those that work: seldom.
#[test]
fn a_burst_of_tiny_tasks_is_done_by_few() {
    let _alone = alone();
    for core_size in [0, 1, 2] {
        let pool = stalled(core_size, 64, HOUR);
        for _ in 0..10_000 {
            pool.execute(|| ());
        }
        assert!(pool.join_timeout(LIMIT));
        let peak = pool.stats().peak_workers;
        assert!(peak <= core_size + 6, "{peak} workers, {core_size} of them the core");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the comparison of the progress: as long as there is some, however little, nobody is started.
#[test]
fn slow_progress_is_progress() {
    let _alone = alone();
    let pool = stalled(0, 64, millis(50));
    for _ in 0..300 {
        pool.execute(|| thread::sleep(millis(1)));
    }
    pool.join();
    // Six times or more the delay. A machine that is busy with something else may look stalled once or twice.
    let peak = pool.stats().peak_workers;
    assert!(peak <= 8, "{peak} workers");
    pool.shutdown_join();
}

// ----- all threads for tasks that block -----

#[test]
fn tasks_that_wait_for_each_other_get_all_workers() {
    let _alone = alone();
    for core_size in [0, 1, 8, 63, 64] {
        let pool = stalled(core_size, 64, millis(1));
        submit_party(&pool, 64, || ()).into_iter().for_each(value);
        assert_eq!(pool.stats().peak_workers, 64);
        // The same with workers that are there already.
        submit_party(&pool, 64, || ()).into_iter().for_each(value);
        assert_eq!(pool.stats().threads_started, 64);
        pool.shutdown_join();
    }
}

// Protects `should_wait_for_hooks`: the worker that comes has given its search up before the hook.
#[test]
fn a_worker_in_its_start_hook_is_expected() {
    let _alone = alone();
    let hook = Gate::new();
    let passes = Arc::clone(&hook);
    let pool = ThreadPool::builder()
        .core_size(0)
        .max_size(64)
        .keep_alive(HOUR)
        .growth(Growth::Stalled(HOUR))
        .on_worker_start(move |index| {
            if index > 0 {
                passes.pass();
            }
        })
        .build();
    let gate = block(&pool);
    for number in 1..=64 {
        pool.execute(|| ());
        hook.wait_for(1);
        assert_eq!((pool.queued_count(), pool.current_worker_count()), (number, 2));
    }
    hook.open();
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects `may_watch`: also a worker that has given its search up may watch.
#[test]
fn a_start_hook_makes_no_difference() {
    let _alone = alone();
    for core_size in [0, 1] {
        let builder = ThreadPool::builder().core_size(core_size).max_size(64).keep_alive(HOUR);
        let pool = builder.growth(Growth::Stalled(HOUR)).on_worker_start(|_| ()).build();
        let gate = block(&pool);
        let first = watched(&pool, || ());
        for _ in 0..64 {
            let passes = Arc::clone(&gate);
            pool.execute(move || passes.pass());
        }
        assert_eq!((pool.queued_count(), pool.current_worker_count()), (65, 2));
        gate.open();
        value(first);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().peak_workers, 2);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the doubling: one for each delay would take 62 of them.
#[test]
fn the_steps_double() {
    let _alone = alone();
    let delay = millis(20);
    let pool = stalled(0, 64, delay);
    let begin = Instant::now();
    submit_party(&pool, 64, || ()).into_iter().for_each(value);
    let time = begin.elapsed();
    assert!(time >= 5 * delay, "not one after another: {time:?}");
    assert!(time <= 40 * delay, "{time:?}");
    pool.shutdown_join();
}

#[test]
fn a_task_behind_a_busy_worker_starts_after_the_delay() {
    let _alone = alone();
    let delay = millis(100);
    let pool = stalled(0, 4, delay);
    let gate = block(&pool);
    let begin = Instant::now();
    let time = value(pool.evaluate(move || begin.elapsed()));
    assert!(time >= delay, "{time:?}");
    assert!(time <= delay + Duration::from_secs(1), "{time:?}");
    // One is blocked, one watches, and one was started.
    assert_eq!(pool.stats().peak_workers, 3);
    gate.open();
    pool.shutdown_join();
}

// Protects the last condition of `is_worth_watching`.
#[test]
fn with_max_size_workers_nobody_watches() {
    let _alone = alone();
    for (core_size, max_size) in [(0, 1), (0, 2), (1, 2), (2, 3), (3, 3)] {
        let pool = stalled(core_size, max_size, HOUR);
        submit_party(&pool, max_size, || ()).into_iter().for_each(value);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the bound of the delay in `Builder::try_build`: a clock that overflows would end the one that watches.
#[test]
fn a_delay_beyond_all_clocks_is_never() {
    let _alone = alone();
    for delay in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
        let pool = stalled(0, 4, delay);
        let gate = block(&pool);
        let task = watched(&pool, || ());
        gate.open();
        value(task);
        // The one that watched is still there.
        wait_until("both are idle", || pool.idle_worker_count() == 2);
        assert_eq!(pool.stats().peak_workers, 2);
        assert!(pool.shutdown_join_timeout(LIMIT), "{delay:?}");
    }
}

// ----- the core is no concern of it -----

// Protects the first condition of `is_worth_watching`.
#[test]
fn the_core_starts_at_once() {
    let _alone = alone();
    for _ in 0..20 {
        let pool = stalled(4, 8, HOUR);
        submit_party(&pool, 4, || ()).into_iter().for_each(value);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
    let pool = stalled(4, 8, HOUR);
    let gates: Vec<_> = (0..4).map(|_| block(&pool)).collect();
    let late = pool.evaluate(|| ());
    let late = late.await_complete_timeout(millis(50)).expect_err("above the core it waits");
    assert_eq!(pool.stats().peak_workers, 5);
    gates.iter().for_each(|gate| gate.open());
    value(late);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn an_idle_core_worker_takes_a_task_at_once() {
    let _alone = alone();
    for core_size in [1, 2] {
        let pool = stalled(core_size, 8, HOUR);
        pool.start_core_threads();
        for _ in 0..200 {
            wait_until("the core is idle", || pool.idle_worker_count() == core_size);
            value(pool.evaluate(|| ()));
        }
        assert_eq!(pool.stats().peak_workers, core_size);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the look at the idle workers in `should_watch`: only the last one that is free watches.
#[test]
fn a_surplus_worker_takes_a_task_at_once_unless_it_is_the_last() {
    let _alone = alone();
    let pool = stalled(3, 8, HOUR);
    pool.start_core_threads();
    pool.set_core_size(0).unwrap();
    for _ in 0..20 {
        wait_until("all are idle", || pool.idle_worker_count() == 3);
        let gate = block(&pool);
        value(pool.evaluate(|| ()));
        gate.open();
    }
    assert_eq!(pool.stats().peak_workers, 3);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- the one that watches is in nobody's way -----

// Protects the nudge in `rest`: nobody else tells the watch that there is nothing left.
#[test]
fn the_watch_ends_with_the_queue() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = watched(&pool, || ());
    gate.open();
    value(task);
    wait_until("both are idle", || pool.idle_worker_count() == 2);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_watch_does_not_delay_the_end() {
    let _alone = alone();
    for end in ["shutdown_join", "close", "shutdown_now", "drop"] {
        let pool = stalled_as("ends", 0, 4, HOUR);
        let gate = block(&pool);
        let task = watched(&pool, || ());
        let mut handed_back = Vec::new();
        match end {
            "close" => pool.close(),
            "shutdown_now" => handed_back = pool.shutdown_now(),
            _ => {}
        }
        assert_eq!(handed_back.len(), usize::from(end == "shutdown_now"));
        gate.open();
        if end == "drop" {
            drop(pool);
            value(task);
            #[cfg(target_os = "linux")]
            wait_until("no thread is left", || common::threads_named("ends-") == 0);
        } else {
            assert!(pool.shutdown_join_timeout(LIMIT), "{end}");
        }
    }
}

// Protects the glance in `keep_watch`: the task was taken by a worker that did not rest.
#[test]
fn a_watch_over_nothing_ends_within_keep_alive() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    pool.set_keep_alive(millis(5)).unwrap();
    let first = block(&pool);
    let second = Gate::new();
    let passes = Arc::clone(&second);
    let task = watched(&pool, move || passes.pass());
    first.open();
    second.wait_for(1);
    wait_until("the other one retires", || pool.current_worker_count() == 1);
    assert_eq!(pool.stats().peak_workers, 2);
    second.open();
    value(task);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- together with the rest -----

// Protects the nudge of the watch in `set_max_size`: with two of two workers there is nothing to watch for.
#[test]
fn a_limit_that_is_reached_ends_the_watch() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = watched(&pool, || ());
    pool.set_max_size(2).unwrap();
    value(task);
    assert_eq!(pool.stats().peak_workers, 2);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_limit_below_those_that_are_there_is_kept() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = watched(&pool, || ());
    pool.set_max_size(1).unwrap();
    wait_until("the one that watched goes", || pool.current_worker_count() == 1);
    assert!(!task.is_finished(), "there is no room for it");
    gate.open();
    value(task);
    submit_party(&pool, 1, || ()).into_iter().for_each(value);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_core_may_grow_around_the_watch() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = watched(&pool, || ());
    pool.set_core_size(2).unwrap();
    value(task);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects the look at the queue in `set_max_size`: nobody watches while the limit is reached.
#[test]
fn a_limit_that_is_raised_makes_room_for_what_waits() {
    let _alone = alone();
    let delay = millis(20);
    let pool = stalled(0, 2, delay);
    let (first, second) = (block(&pool), block(&pool));
    let task = pool.evaluate(|| ());
    thread::sleep(3 * delay);
    assert_eq!((pool.stats().workers, pool.stats().queued), (2, 1));
    pool.set_max_size(4).unwrap();
    value(task);
    assert!(pool.stats().peak_workers > 2);
    first.open();
    second.open();
    pool.shutdown_join();
}

fn nested(pool: &ThreadPool, depth: usize) -> usize {
    if depth == 0 {
        return 0;
    }
    let inner = pool.clone();
    1 + pool.evaluate(move || nested(&inner, depth - 1)).await_complete()
}

// Protects the condition on runnable workers in `is_worth_watching`: where all others wait in regions, there is
// nobody whose progress could be watched.
#[test]
fn tasks_that_wait_for_tasks_are_not_watched() {
    let _alone = alone();
    for delay in [millis(1), HOUR] {
        for core_size in [0, 1] {
            let pool = stalled(core_size, 1, delay);
            let inner = pool.clone();
            assert_eq!(value(pool.evaluate(move || nested(&inner, 10))), 10);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    }
}

// Protects the nudge in `enter_region`: the last one that could make progress waits for what is watched.
#[test]
fn a_watch_over_one_that_waits_for_it_ends() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let inner = pool.clone();
    let waits = pool.evaluate(move || {
        let task = watched(&inner, || 7);
        task.await_complete()
    });
    assert_eq!(value(waits), 7);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn a_future_that_is_woken_gets_its_worker_after_the_delay() {
    let _alone = alone();
    let delay = millis(50);
    let pool = stalled(0, 4, delay);
    let (teller, told) = common::told();
    let handle = pool.spawn_await(told);
    wait_until("the future waits", || teller.waker().is_some());
    let gate = block(&pool);
    let begin = Instant::now();
    teller.tell();
    value(handle);
    let time = begin.elapsed();
    assert!(time >= delay, "{time:?}");
    assert!(time <= delay + Duration::from_secs(1), "{time:?}");
    gate.open();
    pool.shutdown_join();
}

// ----- what it costs -----

/// How often the pool's threads whose names start with `prefix` went to sleep, and how many they are.
#[cfg(target_os = "linux")]
fn sleeps(prefix: &str) -> (u64, usize) {
    let (mut sleeps, mut threads) = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        // A thread that ends meanwhile is none of this pool.
        let Ok(name) = std::fs::read_to_string(path.join("comm")) else { continue };
        let Ok(status) = std::fs::read_to_string(path.join("status")) else { continue };
        if name.starts_with(prefix) {
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sleeps += line.unwrap().trim().parse::<u64>().unwrap();
            threads += 1;
        }
    }
    (sleeps, threads)
}

#[cfg(target_os = "linux")]
#[test]
fn the_watch_looks_up_once_in_a_delay() {
    let _alone = alone();
    let delay = millis(50);
    let pool = stalled_as("looks", 0, 4, delay);
    let gate = block(&pool);
    for _ in 0..300 {
        pool.execute(|| thread::sleep(millis(1)));
    }
    wait_until("one watches", || sleeps("looks-1").1 == 1);
    let begin = Instant::now();
    gate.open();
    wait_until("most are done", || pool.queued_count() < 50);
    let (looks, _) = sleeps("looks-1");
    let due = begin.elapsed().as_millis() / delay.as_millis();
    // On its way there it may have met a lock.
    assert!(u128::from(looks) <= due + 15, "{looks} looks in {due} delays");
    pool.shutdown_join();
}

#[cfg(target_os = "linux")]
#[test]
fn after_a_burst_all_sleep() {
    let _alone = alone();
    let pool = stalled_as("sleeps", 0, 16, millis(1));
    submit_party(&pool, 16, || ()).into_iter().for_each(value);
    for _ in 0..1_000 {
        pool.execute(|| ());
    }
    pool.join();
    wait_until("all are idle", || pool.idle_worker_count() == 16);
    // Counted as idle, and still on the way to sleep.
    thread::sleep(millis(50));
    let before = sleeps("sleeps-");
    thread::sleep(millis(200));
    let after = sleeps("sleeps-");
    assert_eq!((before.1, after.1), (16, 16));
    assert!(after.0 - before.0 <= 20, "{before:?} {after:?}");
    pool.shutdown_join();
}

// ----- without threads -----

#[cfg(target_os = "linux")]
mod refused {
    use super::common::refusal::{Refusal, in_a_child};
    use super::*;

    // Protects the end of the watch after a refusal.
    #[test]
    fn the_one_that_watches_takes_the_task() {
        in_a_child("refused::the_one_that_watches_takes_the_task", || {
            let pool = stalled(0, 4, millis(500));
            let gate = block(&pool);
            let first = watched(&pool, || thread::current().id());
            let refusal = Refusal::begin();
            let watcher = value(first);
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.peak_workers), (2, 2));
            assert!(stats.threads_refused >= 1, "{stats:?}");
            assert_eq!(value(pool.evaluate(|| thread::current().id())), watcher);
            refusal.end();
            gate.open();
            assert!(pool.shutdown_join_timeout(LIMIT));
        });
    }
}
