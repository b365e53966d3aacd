//! `Growth::Stalled`: a pool above `core_size` gets its threads when the queued tasks make no progress, and not
//! before. Meanwhile one worker is the stall monitor.
//!
//! An hour of delay makes most of this exact: the stall monitor never ends by itself.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Gate, HOUR, LIMIT, block, submit_interdependent, value, wait_until, wait_until_asleep,
};
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

/// How often the thread of that name was switched to, where the system says so.
fn switches(name: &str) -> u64 {
    schedule(name, 2)
}

/// How long the thread of that name has used a CPU, where the system says so.
fn cpu_time(name: &str) -> Duration {
    Duration::from_nanos(schedule(name, 0))
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

/// Queues a task behind the only worker, which is occupied, and waits until a second worker is the stall monitor, which is
/// neither idle nor takes the task.
#[track_caller]
fn queue_monitored<T: Send + 'static>(
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

// Protects `monitor_stalls` as a whole: the stall monitor takes nothing and starts nothing.
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
    // One that works and the stall monitor.
    assert_eq!(pool.stats().peak_workers, 2);
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
        assert_eq!((stats.completed, stats.peak_workers), (10_000 + busy, busy + 1));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Runs 200 tasks of a millisecond each on a pool whose delay is `delay`. Returns the most workers that there were, and
/// the longest time in which no task was taken from the queue, or more.
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
    // A task is taken between the end of the one before it and its own start. So from one to the next no more time
    // passes than from the end of a task to the start of the next but one.
    let ends = [begin, begin].into_iter().chain(times.iter().map(|(_, end)| *end));
    let gaps = times.iter().zip(ends).map(|((start, _), end)| start.saturating_duration_since(end));
    (peak, gaps.max().unwrap())
}

// Protects the comparison of the progress: as long as there is some, however little, no thread is started.
#[test]
fn slow_progress_starts_no_thread() {
    let _alone = alone();
    let delay = millis(50);
    let deadline = Instant::now() + LIMIT;
    // On a busy machine the tasks may really have stalled: such a run says nothing, and the next may.
    while Instant::now() < deadline {
        let (peak, gap) = run_slowly(delay);
        if gap < delay {
            // One that works and one that monitors.
            assert_eq!(peak, 2, "no task was taken for at most {gap:?}");
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

// Protects `should_monitor`: also a worker that has ended its search may become the stall monitor.
#[test]
fn a_worker_with_a_start_hook_may_become_the_stall_monitor() {
    let _alone = alone();
    for core_size in [0, 1] {
        let builder = ThreadPool::builder().name("hooked").core_size(core_size).max_size(64);
        let builder = builder.keep_alive(HOUR).growth(Growth::Stalled(HOUR));
        let pool = builder.on_worker_start(|_| ()).build();
        let gate = block(&pool);
        let first = queue_monitored(&pool, || ());
        // Between its hook and its monitoring it leaves the next task to another one.
        // With the keeper.
        wait_until_asleep(3, millis(5), |name| name.starts_with("hooked-"));
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

// Protects the doubling.
#[test]
fn the_starts_of_the_stall_monitor_double() {
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
    // One is busy, one is the stall monitor, and one was started.
    assert_eq!(pool.stats().peak_workers, 3);
    gate.open();
    pool.shutdown_join();
}

// Protects the last condition of `is_worth_monitoring`.
#[test]
fn with_max_size_workers_there_is_no_stall_monitor() {
    let _alone = alone();
    for (core_size, max_size) in [(0, 1), (0, 2), (1, 2), (2, 3), (3, 3)] {
        let pool = stalled(core_size, max_size, HOUR);
        submit_interdependent(&pool, max_size, || ()).into_iter().for_each(value);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// Protects the bound of the delay in `Builder::try_build`: a clock that overflows would end the stall monitor.
#[test]
fn a_stall_delay_beyond_all_clocks_does_not_pass() {
    let _alone = alone();
    for delay in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
        let pool = stalled(0, 4, delay);
        let gate = block(&pool);
        let task = queue_monitored(&pool, || ());
        gate.open();
        value(task);
        // The stall monitor is still there.
        wait_until("both are idle", || pool.idle_worker_count() == 2);
        assert_eq!(pool.stats().peak_workers, 2);
        assert!(pool.shutdown_join_timeout(LIMIT), "{delay:?}");
    }
}

// ----- core workers do not wait for a stall -----

// Protects the first condition of `is_worth_monitoring`.
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
    assert_eq!(pool.stats().peak_workers, 5);
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

// Protects the look at the idle workers in `should_monitor`: only the last idle worker becomes the stall monitor.
#[test]
fn a_surplus_worker_takes_a_task_at_once_unless_it_is_the_last_idle_one() {
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

// ----- the end of the stall monitor -----

// Protects the recheck in `rest`: no other worker can tell the stall monitor that the queue is empty.
#[test]
fn the_stall_monitor_ends_with_the_queue() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = queue_monitored(&pool, || ());
    gate.open();
    value(task);
    wait_until("both are idle", || pool.idle_worker_count() == 2);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_stall_monitor_does_not_delay_the_end_of_the_pool() {
    let _alone = alone();
    for end in ["shutdown_join", "close", "shutdown_now", "drop"] {
        let pool = stalled_as("ends", 0, 4, HOUR);
        let gate = block(&pool);
        let task = queue_monitored(&pool, || ());
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

// Protects the look at the queue in `monitor_stalls`: the task was taken by a worker that did not rest.
#[test]
fn a_stall_monitor_without_a_queue_retires_within_keep_alive() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    pool.set_keep_alive(millis(5));
    let first = block(&pool);
    let second = Gate::new();
    let passes = Arc::clone(&second);
    let task = queue_monitored(&pool, move || passes.pass());
    first.open();
    second.wait_for(1);
    wait_until("the other one retires", || pool.current_worker_count() == 1);
    assert_eq!(pool.stats().peak_workers, 2);
    second.open();
    value(task);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects `MIN_LOOK_INTERVAL`: without it the monitor would look all the time.
#[test]
fn a_stall_monitor_sleeps_whatever_keep_alive_is() {
    let _alone = alone();
    let pool = stalled_as("drowsy", 0, 4, HOUR);
    // Longer than any clock counts.
    pool.set_keep_alive(Duration::MAX);
    let gate = block(&pool);
    let task = queue_monitored(&pool, || ());
    pool.set_keep_alive(Duration::ZERO);
    let (begin, used) = (Instant::now(), cpu_time("drowsy-1"));
    thread::sleep(millis(200));
    let used = cpu_time("drowsy-1") - used;
    assert!(used < begin.elapsed() / 5, "{used:?} of {:?}", begin.elapsed());
    #[cfg(target_os = "linux")]
    assert_eq!(common::threads_named("drowsy-1"), 1, "it lives");
    gate.open();
    value(task);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- together with the rest -----

// Protects the recheck in `set_max_size`: with two of two workers a stall could start none.
#[test]
fn a_max_size_that_is_reached_ends_the_stall_monitor() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = queue_monitored(&pool, || ());
    pool.set_max_size(2).unwrap();
    value(task);
    assert_eq!(pool.stats().peak_workers, 2);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_max_size_below_the_worker_count_retires_the_stall_monitor() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = queue_monitored(&pool, || ());
    pool.set_max_size(1).unwrap();
    wait_until("the stall monitor retires", || pool.current_worker_count() == 1);
    assert!(!task.is_finished(), "one worker may run");
    gate.open();
    value(task);
    submit_interdependent(&pool, 1, || ()).into_iter().for_each(value);
    assert_eq!(pool.stats().peak_workers, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_raised_core_size_admits_the_task_beside_the_stall_monitor() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let gate = block(&pool);
    let task = queue_monitored(&pool, || ());
    pool.set_core_size(2).unwrap();
    value(task);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// Protects the look at the queue in `set_max_size`: there is no stall monitor while the limit is reached.
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

// Protects the condition on runnable workers in `is_worth_monitoring`: where all others are blocked, there
// is no progress to monitor.
#[test]
fn nested_waits_need_no_stall_monitor() {
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

// Protects the recheck in `enter_region`: the last worker that could make progress waits for the queued task.
#[test]
fn the_stall_monitor_takes_the_task_that_the_last_runnable_worker_waits_for() {
    let _alone = alone();
    let pool = stalled(0, 4, HOUR);
    let inner = pool.clone();
    let waits = pool.evaluate(move || {
        let task = queue_monitored(&inner, || 7);
        task.await_complete()
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
fn the_stall_monitor_sleeps_while_tasks_make_progress() {
    let _alone = alone();
    let pool = stalled_as("progress", 0, 4, HOUR);
    let (gate, last) = (block(&pool), Gate::new());
    let first = queue_monitored(&pool, || ());
    for _ in 0..300 {
        pool.execute(|| ());
    }
    let passes = Arc::clone(&last);
    pool.execute(move || passes.pass());
    // Stays in the queue, so that there is something to keep time for.
    pool.execute(|| ());
    let sleeps = |time| wait_until_asleep(1, time, |name| name == "progress-1");
    sleeps(millis(50));
    let before = switches("progress-1");
    gate.open();
    last.wait_for(1);
    assert_eq!(switches("progress-1"), before, "progress has woken it");
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

    // Protects that the stall monitor ends after a refusal.
    #[test]
    fn a_stall_monitor_takes_the_task_if_the_thread_is_refused() {
        in_a_child("refused::a_stall_monitor_takes_the_task_if_the_thread_is_refused", || {
            let pool = stalled(0, 4, millis(500));
            let gate = block(&pool);
            let first = queue_monitored(&pool, || thread::current().id());
            let refusal = Refusal::begin();
            let monitor = value(first);
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.peak_workers), (2, 2));
            assert!(stats.threads_refused >= 1, "{stats:?}");
            assert_eq!(value(pool.evaluate(|| thread::current().id())), monitor);
            refusal.end();
            gate.open();
            assert!(pool.shutdown_join_timeout(LIMIT));
        });
    }
}
