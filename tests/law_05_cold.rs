//! Law 5, Cold: idle workers are woken in a fixed order, the lowest index first, so surplus workers
//! go cold and retire within `keep_alive` even under a trickle of tasks, and an idle pool uses no
//! CPU.

mod common;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{Gate, HOUR, alone, dawdle, wait_until, wait_until_asleep};
use elastipool::{ThreadPool, worker_index};

/// Has `count` workers busy at the same time, and releases them together.
fn burst(pool: &ThreadPool, count: usize) {
    let release = Gate::new();
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let release = Arc::clone(&release);
            pool.evaluate(move || release.pass())
        })
        .collect();
    release.wait_for(count);
    assert!(pool.current_worker_count() >= count);
    release.open();
    for task in tasks {
        task.await_complete();
    }
}

// The defect: 16 workers stayed for 4 s at one task per 12 ms with a keep-alive of 300 ms, because
// each of them got a task now and then. Protects the order of `IdleList`.
#[test]
fn surplus_workers_retire_under_a_trickle() {
    let _alone = alone();
    for core_size in [0, 1] {
        let pool = ThreadPool::new(core_size, 16, Duration::from_millis(100));
        burst(&pool, 16);
        // First in, first out, each of 16 would have its turn every 16 ms.
        let deadline = Instant::now() + common::LIMIT;
        while pool.current_worker_count() > 2 {
            assert!(Instant::now() < deadline, "{:?}", pool.stats());
            pool.execute(|| ());
            thread::sleep(Duration::from_millis(1));
        }
        wait_until("without tasks it is core_size", || pool.current_worker_count() == core_size);
        pool.shutdown_join();
    }
}

// For long tasks, each woken worker wakes others: no more are awake than there are tasks.
#[test]
fn surplus_workers_retire_under_a_trickle_of_long_tasks() {
    let _alone = alone();
    let pool = ThreadPool::new(0, 16, Duration::from_millis(100));
    burst(&pool, 16);
    let deadline = Instant::now() + common::LIMIT;
    // One more than the tasks: one that is about to rest may be passed over. In turn, each of 16
    // would run a task every 10 ms.
    while pool.current_worker_count() > 4 {
        assert!(Instant::now() < deadline, "{:?}", pool.stats());
        // Long tasks, and a pause in which the workers rest.
        let tasks = [(); 3].map(|()| pool.evaluate(|| thread::sleep(Duration::from_millis(1))));
        tasks.into_iter().for_each(|task| task.await_complete());
        thread::sleep(Duration::from_millis(1));
    }
    pool.shutdown_join();
}

// Protects the comparison with the core size in `Shared::try_retire`, and `rest_until`.
#[test]
fn the_pool_shrinks_to_core_size_and_no_further() {
    let _alone = alone();
    for core_size in [0, 1, 2] {
        let pool = ThreadPool::new(core_size, 8, Duration::from_millis(1));
        for _ in 0..3 {
            burst(&pool, 8);
            wait_until("it is core_size", || pool.current_worker_count() == core_size);
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(1));
                assert_eq!(pool.current_worker_count(), core_size);
            }
            wait_until("all are idle", || pool.idle_worker_count() == core_size);
        }
        pool.shutdown_join();
    }
}

// A worker that went to rest without a time limit becomes surplus when another one is started.
// Protects the recheck in `Shared::start_worker`, as far as chance goes (a model does it exactly).
#[test]
fn the_pool_shrinks_whenever_it_has_grown() {
    let _alone = alone();
    for core_size in [0, 1] {
        let pool = ThreadPool::new(core_size, 3, Duration::from_micros(200));
        for _ in 0..300 {
            for _ in 0..fastrand::usize(1..4) {
                pool.execute(|| dawdle(300));
                dawdle(300);
            }
            wait_until("it is core_size", || pool.current_worker_count() == core_size);
        }
        pool.shutdown_join();
    }
}

#[test]
fn workers_stay_for_keep_alive() {
    let _alone = alone();
    let pool = ThreadPool::new(0, 4, HOUR);
    burst(&pool, 4);
    wait_until("all are idle", || pool.idle_worker_count() == 4);
    thread::sleep(Duration::from_millis(30));
    burst(&pool, 4);
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.threads_retired), (4, 0));
    pool.shutdown_join();
}

/// Occupies a worker until the gate opens. Returns its index.
fn occupy(pool: &ThreadPool, gate: &Arc<Gate>) -> usize {
    let (gate, index) = (Arc::clone(gate), Arc::new(Mutex::new(None)));
    let notes = Arc::clone(&index);
    pool.execute(move || {
        *notes.lock().unwrap() = worker_index();
        gate.pass();
    });
    let mut occupied = None;
    wait_until("a worker is occupied", || {
        occupied = *index.lock().unwrap();
        occupied.is_some()
    });
    occupied.unwrap()
}

// Workers that have run in the place of blocked ones have indices of `max_size` and more.
#[test]
fn workers_beyond_max_size_are_woken_last() {
    let _alone = alone();
    let pool = ThreadPool::new_named("beyond", 0, 2, HOUR);
    let blocked = Gate::new();
    for _ in 0..4 {
        let gate = Arc::clone(&blocked);
        pool.execute(move || elastipool::blocking(|| gate.pass()));
    }
    blocked.wait_for(4);
    blocked.open();
    wait_until("all are idle", || pool.idle_worker_count() == pool.current_worker_count());
    assert!(pool.current_worker_count() >= 4);
    for _ in 0..20 {
        wait_until_pool_sleeps(&pool, Duration::from_millis(5));
        let gate = Gate::new();
        assert_eq!([occupy(&pool, &gate), occupy(&pool, &gate)], [0, 1]);
        gate.open();
        wait_until("all are idle again", || {
            pool.idle_worker_count() == pool.current_worker_count()
        });
    }
    pool.shutdown_join();
}

// Protects the order of `IdleList`, in whatever order the workers become idle. A worker that has
// published itself as idle looks at the queue once more and may take a task that was meant for
// another: so each round begins when all of them sleep.
#[test]
fn the_worker_with_the_lowest_index_is_woken_first() {
    let _alone = alone();
    let pool = ThreadPool::new_named("order", 4, 4, HOUR);
    assert_eq!(pool.start_core_threads(), 4);
    wait_until("all are idle", || pool.idle_worker_count() == 4);
    for _ in 0..20 {
        let mut busy: Vec<_> = (0..4)
            .map(|_| {
                let gate = Gate::new();
                (occupy(&pool, &gate), gate)
            })
            .collect();
        assert_eq!(pool.idle_worker_count(), 0);
        fastrand::shuffle(&mut busy);
        for (number, (_, gate)) in busy.iter().enumerate() {
            gate.open();
            wait_until("one more is idle", || pool.idle_worker_count() == number + 1);
        }
        wait_until_pool_sleeps(&pool, Duration::from_millis(5));
        let gate = Gate::new();
        let woken: Vec<_> = (0..4).map(|_| occupy(&pool, &gate)).collect();
        gate.open();
        wait_until("all are idle again", || pool.idle_worker_count() == 4);
        assert_eq!(woken, [0, 1, 2, 3]);
    }
    pool.shutdown_join();
}

/// Checks that all workers sleep, without waking now and then.
#[track_caller]
fn assert_sleeps(pool: &ThreadPool) {
    let workers = pool.current_worker_count();
    wait_until("all are idle", || pool.idle_worker_count() == workers);
    // A worker that looked for work at each keep-alive would wake 200 times.
    wait_until_pool_sleeps(pool, Duration::from_millis(200));
}

/// Blocks until all workers of the pool, and its keeper, have slept for `time`.
#[track_caller]
fn wait_until_pool_sleeps(pool: &ThreadPool, time: Duration) {
    let prefix = format!("{}-", pool.name());
    let threads = pool.current_worker_count() + 1;
    wait_until_asleep(threads, time, |name| name.starts_with(&prefix));
}

// Protects `rest_until`: core workers rest without a time limit, also if their number was exceeded.
#[test]
fn idle_core_workers_sleep() {
    let _alone = alone();
    let pool = ThreadPool::new_named("cold", 16, 20, Duration::from_millis(1));
    burst(&pool, 20);
    wait_until("the surplus has gone", || pool.current_worker_count() == 16);
    assert_sleeps(&pool);
    assert_eq!(pool.current_worker_count(), 16);
    pool.shutdown_join();
}

#[test]
fn idle_surplus_workers_sleep() {
    let _alone = alone();
    let pool = ThreadPool::new_named("surplus", 0, 16, HOUR);
    burst(&pool, 16);
    assert_sleeps(&pool);
    assert_eq!(pool.current_worker_count(), 16);
    pool.shutdown_join();
}

// A new pool starts nothing, and neither does a task that one worker can do: others are started
// only while tasks are queued that no worker is on its way to.
#[test]
fn one_task_starts_one_worker() {
    let _alone = alone();
    for core_size in [0, 1, 4] {
        let pool = ThreadPool::new(core_size, 16, HOUR);
        assert_eq!(pool.stats().threads_started, 0);
        pool.evaluate(|| ()).await_complete();
        assert!(pool.join_timeout(common::LIMIT));
        // A submitter that is slow may start one more: it finds that its task was taken, but not
        // that.
        let started = pool.stats().threads_started;
        assert!(started <= 2, "{started} threads for one task");
        pool.shutdown_join();
    }
}

// The same with a start hook that takes its time: the worker that is in it is on its way to the
// task.
#[test]
fn one_task_starts_one_worker_also_with_a_slow_start_hook() {
    let _alone = alone();
    for core_size in [0, 1, 4] {
        let pool = elastipool::Builder::new()
            .core_size(core_size)
            .max_size(16)
            .keep_alive(HOUR)
            .on_worker_start(|_| thread::sleep(Duration::from_millis(20)))
            .build();
        pool.evaluate(|| ()).await_complete();
        assert!(pool.join_timeout(common::LIMIT));
        let started = pool.stats().threads_started;
        assert!(started <= 2, "{started} threads for one task");
        pool.shutdown_join();
    }
}

#[cfg(feature = "async")]
mod futures {
    use super::{Duration, ThreadPool, alone, assert_sleeps, burst, common, thread, wait_until};

    // Protects race 4: the last worker stays for a future that may be woken, and sleeps. It is
    // rechecked when that future ends (`Shared::finish_on_caller`).
    #[test]
    fn a_pending_future_keeps_one_worker_which_sleeps() {
        let _alone = alone();
        for end in ["triggered", "cancelled", "abandoned"] {
            let pool = ThreadPool::new_named("pending", 0, 4, Duration::from_millis(1));
            let (trigger, triggered) = common::triggered();
            let handle = pool.spawn_await(triggered);
            burst(&pool, 4);
            wait_until("the future waits", || trigger.waker().is_some());
            wait_until("one is left", || pool.current_worker_count() == 1);
            assert_sleeps(&pool);
            assert_eq!(pool.current_worker_count(), 1);
            match end {
                "triggered" => trigger.fire(),
                "cancelled" => handle.cancel(),
                _ => drop(trigger),
            }
            assert_eq!(handle.try_await_complete().is_ok(), end == "triggered");
            wait_until("none is left", || pool.current_worker_count() == 0);
            pool.shutdown_join();
        }
    }

    #[test]
    fn futures_that_come_and_go_keep_no_worker() {
        let _alone = alone();
        let pool = ThreadPool::new(0, 3, Duration::from_micros(100));
        for round in 0..200 {
            let (trigger, triggered) = common::triggered();
            let handle = pool.spawn_await(triggered);
            common::dawdle(20_000);
            thread::scope(|scope| {
                scope.spawn(|| pool.execute(|| ()));
                common::dawdle(20_000);
                match round % 3 {
                    0 => trigger.fire(),
                    1 => handle.cancel(),
                    _ => drop(trigger),
                }
            });
            wait_until("none is left", || pool.current_worker_count() == 0);
        }
        pool.shutdown_join();
    }
}
