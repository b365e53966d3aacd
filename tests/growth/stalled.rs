//! `Growth::Stalled`: a pool above `core_size` gets its threads when the queued tasks make no
//! progress, and not before. The keeper looks after them.
//!
//! An hour of delay makes most of this exact: the keeper never starts a worker.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Gate, HOUR, LIMIT, alone, block, millis, submit_interdependent, value, wait_until,
    wait_until_asleep,
};
use elastipool::{Growth, ThreadPool};

/// A pool whose surplus workers stay.
fn stalled(core_size: usize, max_size: usize, delay: Duration) -> ThreadPool {
    stalled_as("stalled", core_size, max_size, delay)
}

/// The same for a test that looks for threads of that name: those of a test that has failed may
/// still be there.
fn stalled_as(name: &str, core_size: usize, max_size: usize, delay: Duration) -> ThreadPool {
    ThreadPool::builder()
        .name(name)
        .core_size(core_size)
        .max_size(max_size)
        .keep_alive(HOUR)
        .growth(Growth::Stalled(delay))
        .build()
}

/// How often the thread of that name was switched to, where the system says so.
fn switches(name: &str) -> u64 {
    schedule(name, 2)
}

/// A field of what the system says about the schedule of the thread of that name.
fn schedule(name: &str, field: usize) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            let read = |file| std::fs::read_to_string(task.path().join(file)).ok();
            let is_wanted = read("comm")?.trim_end() == name;
            is_wanted
                .then(|| read("schedstat")?.split_whitespace().nth(field)?.parse::<u64>().ok())?
        })
        .sum()
}

/// Queues a task behind the only worker, which is occupied, and waits until the keeper looks after
/// it. No second worker comes.
#[track_caller]
fn queue_behind<T: Send + 'static>(
    pool: &ThreadPool,
    task: impl FnOnce() -> T + Send + 'static,
) -> elastipool::JoinHandle<T> {
    let handle = pool.evaluate(task);
    thread::sleep(millis(10));
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.idle, stats.active, stats.queued), (1, 0, 1, 1), "{stats:?}");
    handle
}

// ----- few threads for tiny tasks -----

// Protects `start_delay` as a whole.
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
    assert_eq!(pool.stats().peak_workers, 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_burst_of_tiny_tasks_is_left_to_the_busy_workers() {
    let _alone = alone();
    for core_size in [0, 1, 2] {
        let busy = core_size.max(1);
        let pool = stalled(core_size, 64, HOUR);
        let gates: Vec<_> = (0..busy).map(|_| block(&pool)).collect();
        for _ in 0..10_000 {
            pool.execute(|| ());
        }
        gates.iter().for_each(|gate| gate.open());
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.peak_workers), (10_000 + busy, busy));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Runs 200 tasks of a millisecond each on a pool whose delay is `delay`. Returns the most workers
/// that there were, and the longest time in which no task was taken from the queue, or more.
fn run_slowly(delay: Duration) -> (usize, Duration) {
    let begin = Instant::now();
    let pool = stalled(0, 64, delay);
    let gate = block(&pool);
    let times = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..200 {
        let times = Arc::clone(&times);
        pool.execute(move || {
            let start = Instant::now();
            thread::sleep(millis(1));
            times.lock().unwrap().push((start, Instant::now()));
        });
    }
    gate.open();
    pool.join();
    let peak = pool.stats().peak_workers;
    pool.shutdown_join();
    let mut times = std::mem::take(&mut *times.lock().unwrap());
    times.sort();
    // A task is taken between the end of the one before it and its own start. So from one to the
    // next no more time passes than from the end of a task to the start of the next but one.
    let ends = [begin, begin].into_iter().chain(times.iter().map(|(_, end)| *end));
    let gaps = times.iter().zip(ends).map(|((start, _), end)| start.saturating_duration_since(end));
    (peak, gaps.max().unwrap())
}

// Protects the comparison of the progress: as long as there is some, however little, no thread is
// started.
#[test]
fn slow_progress_starts_no_thread() {
    let _alone = alone();
    let delay = millis(50);
    let deadline = Instant::now() + LIMIT;
    // On a busy machine the tasks may really have stalled: such a run says nothing, and the next
    // may.
    while Instant::now() < deadline {
        let (peak, gap) = run_slowly(delay);
        if gap < delay {
            assert_eq!(peak, 1, "no task was taken for at most {gap:?}");
            return;
        }
    }
}

// ----- all threads for tasks that block -----

#[test]
fn interdependent_tasks_get_all_workers_under_stalled_growth() {
    let _alone = alone();
    for core_size in [0, 1, 8, 63, 64] {
        let pool = stalled(core_size, 64, millis(1));
        submit_interdependent(&pool, 64, || ()).into_iter().for_each(value);
        assert_eq!(pool.stats().peak_workers, 64);
        // The same with workers that are there already.
        submit_interdependent(&pool, 64, || ()).into_iter().for_each(value);
        assert_eq!(pool.stats().threads_started, 64);
        pool.shutdown_join();
    }
}

// Protects `should_wait_for_hooks`: a worker in its start hook has ended its search before.
#[test]
fn a_worker_in_its_start_hook_counts_as_starting() {
    let _alone = alone();
    let hook = Gate::new();
    let passes = Arc::clone(&hook);
    let pool = ThreadPool::builder()
        .core_size(0)
        .max_size(64)
        .keep_alive(HOUR)
        .growth(Growth::Stalled(millis(1)))
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
    // As many delays as would start all workers.
    thread::sleep(millis(50));
    assert_eq!(pool.current_worker_count(), 2);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().peak_workers, 2);
    hook.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects the doubling.
#[test]
fn the_starts_of_the_keeper_double() {
    let _alone = alone();
    let delay = millis(100);
    let pool = stalled(0, 64, delay);
    let begin = Instant::now();
    submit_interdependent(&pool, 64, || ()).into_iter().for_each(value);
    let time = begin.elapsed();
    assert!(time >= 5 * delay, "not one after another: {time:?}");
    // With one start for each delay it could not be less.
    assert!(time < 62 * delay, "{time:?}");
    pool.shutdown_join();
}

#[test]
fn a_task_behind_a_busy_worker_starts_after_the_stall_delay() {
    let _alone = alone();
    // Long enough for the thread that is started to run before the next one would be.
    let delay = millis(1000);
    let pool = stalled(0, 4, delay);
    let gate = block(&pool);
    let begin = Instant::now();
    let time = value(pool.evaluate(move || begin.elapsed()));
    assert!(time >= delay, "{time:?}");
    // One is busy, and one was started.
    assert_eq!(pool.stats().peak_workers, 2);
    gate.open();
    pool.shutdown_join();
}

#[test]
fn as_many_tasks_as_max_size_run_at_once() {
    let _alone = alone();
    for (core_size, max_size) in [(0, 1), (0, 2), (1, 2), (2, 3), (3, 3)] {
        // Core workers and the first one need no delay.
        let delay = if max_size <= core_size.max(1) { HOUR } else { millis(1) };
        let pool = stalled(core_size, max_size, delay);
        submit_interdependent(&pool, max_size, || ()).into_iter().for_each(value);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the bound of the delay in `Builder::try_build`: a clock that overflows would panic.
#[test]
fn a_stall_delay_beyond_all_clocks_does_not_pass() {
    let _alone = alone();
    for delay in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
        let pool = stalled(0, 4, delay);
        let gate = block(&pool);
        let task = queue_behind(&pool, || ());
        gate.open();
        value(task);
        assert_eq!(pool.stats().peak_workers, 1);
        assert!(pool.shutdown_join_timeout(LIMIT), "{delay:?}");
    }
}

// ----- core workers do not wait for a stall -----

// Protects the condition on `core_size` in `start_delay`.
#[test]
fn core_workers_start_at_once_under_stalled_growth() {
    let _alone = alone();
    for _ in 0..20 {
        let pool = stalled(4, 8, HOUR);
        submit_interdependent(&pool, 4, || ()).into_iter().for_each(value);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
    let pool = stalled(4, 8, HOUR);
    let gates: Vec<_> = (0..4).map(|_| block(&pool)).collect();
    let late = pool.evaluate(|| ());
    let late = late.await_complete_timeout(millis(50)).expect_err("above the core it waits");
    assert_eq!(pool.stats().peak_workers, 4);
    gates.iter().for_each(|gate| gate.open());
    value(late);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn an_idle_core_worker_takes_a_task_at_once_under_stalled_growth() {
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

#[test]
fn an_idle_surplus_worker_takes_a_task_at_once() {
    let _alone = alone();
    let pool = stalled(3, 8, HOUR);
    pool.start_core_threads();
    pool.set_core_size(0).unwrap();
    for _ in 0..20 {
        wait_until("all are idle", || pool.idle_worker_count() == 3);
        let gates = [block(&pool), block(&pool)];
        value(pool.evaluate(|| ()));
        gates.iter().for_each(|gate| gate.open());
    }
    assert_eq!(pool.stats().peak_workers, 3);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- the end of a wait for progress -----

#[test]
fn the_delay_does_not_delay_the_end_of_the_pool() {
    let _alone = alone();
    for end in ["shutdown_join", "close", "shutdown_now", "drop"] {
        let pool = stalled_as("ends", 0, 4, HOUR);
        let gate = block(&pool);
        let task = queue_behind(&pool, || ());
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

// ----- together with the rest -----

#[test]
fn a_raised_core_size_starts_a_worker_for_the_task_at_once() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = queue_behind(&pool, || ());
    pool.set_core_size(2).unwrap();
    value(task);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects the look at the queue in `set_max_size`: the keeper does not look while the limit is
// reached.
#[test]
fn a_raised_max_size_starts_workers_for_stalled_tasks() {
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

// Protects the condition on running workers in `start_delay`: where all are blocked, there can be
// no progress.
#[test]
fn nested_waits_need_no_delay() {
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

// The last worker that could make progress blocks until the queued task has run.
#[test]
fn a_worker_is_started_at_once_when_the_last_runnable_one_blocks() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let inner = pool.clone();
    let waits = pool.evaluate(move || {
        let task = queue_behind(&inner, || 7);
        elastipool::blocking(|| value(task))
    });
    assert_eq!(value(waits), 7);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn a_woken_future_gets_its_worker_after_the_stall_delay() {
    let _alone = alone();
    let delay = millis(50);
    let pool = stalled(0, 4, delay);
    let (trigger, triggered) = common::triggered();
    let handle = pool.spawn_await(triggered);
    wait_until("the future waits", || trigger.waker().is_some());
    let gate = block(&pool);
    let begin = Instant::now();
    trigger.fire();
    value(handle);
    let time = begin.elapsed();
    assert!(time >= delay, "{time:?}");
    gate.open();
    pool.shutdown_join();
}

// ----- what it costs -----

#[test]
fn the_keeper_sleeps_while_tasks_make_progress() {
    let _alone = alone();
    let pool = stalled_as("progress", 0, 4, HOUR);
    let (gate, last) = (block(&pool), Gate::new());
    let first = queue_behind(&pool, || ());
    for _ in 0..300 {
        pool.execute(|| ());
    }
    let passes = Arc::clone(&last);
    pool.execute(move || passes.pass());
    // Stays in the queue, so that there is something to keep time for.
    pool.execute(|| ());
    let is_keeper = |name: &str| name == "progress-keeper";
    let sleeps = |time| wait_until_asleep(1, time, is_keeper);
    sleeps(millis(50));
    let before = switches("progress-keeper");
    gate.open();
    last.wait_for(1);
    assert_eq!(switches("progress-keeper"), before, "progress has woken it");
    sleeps(millis(50));
    last.open();
    value(first);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn after_a_burst_all_workers_sleep_under_stalled_growth() {
    let _alone = alone();
    let pool = stalled_as("sleeps", 0, 16, millis(1));
    submit_interdependent(&pool, 16, || ()).into_iter().for_each(value);
    for _ in 0..1_000 {
        pool.execute(|| ());
    }
    pool.join();
    wait_until("all are idle", || pool.idle_worker_count() == 16);
    // With the keeper.
    wait_until_asleep(17, millis(200), |name| name.starts_with("sleeps-"));
    pool.shutdown_join();
}

// ----- without threads -----

#[cfg(target_os = "linux")]
mod refused {
    use super::common::refusal::{Refusal, in_a_child};
    use super::*;

    // The pauses count, not the delay: 1 ms, then 2, 4, 8, 16, 32 and 64.
    #[test]
    fn a_refused_thread_is_asked_for_with_growing_pauses() {
        in_a_child("refused::a_refused_thread_is_asked_for_with_growing_pauses", || {
            let pool = stalled(0, 4, millis(1));
            let gate = block(&pool);
            let begin = Instant::now();
            let refusal = Refusal::begin();
            let task = pool.evaluate(|| ());
            wait_until("it was refused", || pool.stats().threads_refused >= 8);
            let time = begin.elapsed();
            assert!(time >= millis(127), "{time:?}");
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.queued), (1, 1));
            refusal.end();
            value(task);
            assert_eq!(pool.stats().peak_workers, 2);
            gate.open();
            assert!(pool.shutdown_join_timeout(LIMIT));
        });
    }
}
