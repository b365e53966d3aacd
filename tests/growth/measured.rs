//! `Growth::Measured`: a pool that keeps the CPUs busy, and needs no size. Where the system does
//! not tell which threads sleep, some of these tests say nothing.

use crate::common;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Gate, HOUR, LIMIT, alone, block, millis, submit_interdependent, value, wait_until,
    wait_until_asleep,
};
use elastipool::{Builder, Growth, ThreadPool};

/// Whether the system tells which threads sleep.
const TELLS: bool = cfg!(any(target_os = "linux", target_vendor = "apple"));

fn measured(awake: usize) -> Builder {
    ThreadPool::builder().core_size(0).keep_alive(HOUR).growth(Growth::measured(awake))
}

/// Computes for that long, however much of a CPU it gets.
fn compute(time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        black_box(0);
    }
}

fn finish(pool: ThreadPool) {
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- the defaults -----

#[test]
fn a_pool_without_sizes_is_measured_and_one_with_a_size_is_not() {
    // A 32-bit system has no more than 511.
    let default_max = 512.min(ThreadPool::MAX_SIZE);
    let default = ThreadPool::default();
    assert_eq!((default.max_size(), default.stats().allowed), (default_max, default.core_size()));
    let built = ThreadPool::builder().name("sized").build();
    assert_eq!((built.core_size(), built.max_size()), (default.core_size(), default_max));
    for (builder, sizes) in [
        (ThreadPool::builder().core_size(3), (3, 6)),
        (ThreadPool::builder().core_size(3).max_size(9), (3, 9)),
        (ThreadPool::builder().core_size(3).growth(Growth::Eager), (3, 6)),
        (ThreadPool::builder().max_size(1), (1, 1)),
    ] {
        let pool = builder.build();
        assert_eq!(
            (pool.core_size(), pool.max_size(), pool.stats().allowed),
            (sizes.0, sizes.1, sizes.1)
        );
    }
    let pool = ThreadPool::new(1, 16, HOUR);
    assert_eq!(pool.stats().allowed, 16);
    let one = ThreadPool::builder().growth(Growth::measured(1)).build();
    assert_eq!((one.core_size(), one.max_size(), one.stats().allowed), (1, default_max, 1));
    let size = 600.min(ThreadPool::MAX_SIZE);
    let large = ThreadPool::builder().core_size(size).growth(Growth::Measured).build();
    assert_eq!((large.core_size(), large.max_size(), large.stats().allowed), (size, size, size));
}

#[test]
fn the_number_of_workers_has_bounds() {
    let allowed = |builder: Builder| builder.build().stats().allowed;
    assert_eq!(allowed(measured(0)), 1, "0 is taken for 1");
    assert_eq!(allowed(measured(3)), 3);
    assert_eq!(allowed(measured(3).core_size(5)), 5, "core_size");
    assert_eq!(allowed(measured(3).max_size(2)), 2, "max_size");
    let pool = measured(3).build();
    pool.set_max_size(2).unwrap();
    assert_eq!(pool.stats().allowed, 2);
    pool.set_sizes(7, 9).unwrap();
    assert_eq!(pool.stats().allowed, 7);
}

// ----- tasks that sleep -----

#[test]
fn tasks_that_wait_for_each_other_all_run() {
    let _alone = alone();
    for pool in [ThreadPool::default(), measured(1).build()] {
        let done = submit_interdependent(&pool, 64, || ());
        done.into_iter().for_each(value);
        assert!(pool.stats().peak_workers >= 64);
        finish(pool);
    }
}

#[test]
fn max_size_bounds_the_workers_that_sleep() {
    let _alone = alone();
    for max_size in [1, 3, 20] {
        let pool = measured(2).max_size(max_size).build();
        let gate = Gate::new();
        for _ in 0..2 * max_size {
            let gate = Arc::clone(&gate);
            pool.execute(move || gate.pass());
        }
        wait_until("as many sleep as may", || pool.stats().active == max_size);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.peak_workers, stats.completed), (max_size, 2 * max_size), "{stats:?}");
        finish(pool);
    }
}

#[test]
fn a_short_task_starts_behind_many_that_sleep() {
    let _alone = alone();
    let pool = ThreadPool::default();
    let gate = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let sleepers: Vec<_> = (0..20)
        .map(|_| {
            let gate = Arc::clone(&gate);
            pool.evaluate(move || {
                let open = gate.0.lock().unwrap();
                drop(gate.1.wait_while(open, |open| !*open).unwrap());
            })
        })
        .collect();
    assert_eq!(value(pool.evaluate(|| 7)), 7, "while none of the others has ended");
    // Not how many are asleep: a measurement without a queued task has none to report.
    let stats = pool.stats();
    assert!(!TELLS || stats.allowed > 20, "{stats:?}");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    sleepers.into_iter().for_each(value);
    finish(pool);
}

/// Law 1 has no exception here: the poll sleeps until the future that it has woken has run.
#[cfg(feature = "async")]
#[test]
fn a_poll_may_wait_for_a_future_that_it_has_woken() {
    use std::sync::mpsc;

    use futures::channel::oneshot;

    let _alone = alone();
    let pool = measured(1).build();
    for _ in 0..10 {
        let (wake, woken) = oneshot::channel();
        let (done, wait) = mpsc::channel();
        let first = pool.spawn_await(async move {
            woken.await.unwrap();
            done.send(()).unwrap();
        });
        wait_until("the first is pending", || pool.stats().pending == 1);
        let second = pool.spawn_await(async move {
            wake.send(()).unwrap();
            // Not marked as blocking.
            wait.recv_timeout(LIMIT).unwrap();
        });
        value(second);
        value(first);
    }
    finish(pool);
}

/// Law 1: a closure that a poll waits for, and so runs on its own stack, is no poll. The worker that
/// polls beyond the number is one of the others meanwhile.
#[cfg(feature = "async")]
#[test]
fn a_closure_that_a_poll_runs_itself_holds_up_no_future() {
    let _alone = alone();
    let pool = measured(1).max_size(3).build();
    let is_over = Arc::new(AtomicBool::new(false));
    let until_over = || {
        let is_over = Arc::clone(&is_over);
        move || {
            let since = Instant::now();
            while !is_over.load(Ordering::Relaxed) && since.elapsed() < LIMIT {
                black_box(0);
            }
        }
    };
    pool.execute(until_over());
    wait_until("the closure runs", || pool.stats().active == 1);
    let (inner, closure) = (pool.clone(), until_over());
    pool.spawn(async move { inner.evaluate(closure).await_complete() });
    wait_until("the poll runs its closure", || pool.stats().active == 3);
    let polled = pool.spawn_await(async {}).await_complete_timeout(LIMIT / 2);
    is_over.store(true, Ordering::Relaxed);
    assert!(polled.is_ok(), "the future has waited for closures");
    finish(pool);
}

// ----- tasks that compute -----

#[test]
fn tasks_that_compute_get_few_workers() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    for awake in [1, 2] {
        let pool = measured(awake).build();
        for _ in 0..400 {
            pool.execute(|| compute(millis(1)));
        }
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert!(stats.peak_workers <= awake + 4, "{stats:?}");
        finish(pool);
    }
}

#[test]
fn tasks_that_compute_get_few_workers_beside_busy_threads() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let neighbours = [(); 4].map(|()| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
    });
    let pool = measured(2).build();
    for _ in 0..100 {
        pool.execute(|| compute(millis(2)));
    }
    let is_over = pool.join_timeout(LIMIT);
    stop.store(true, Ordering::Relaxed);
    neighbours.into_iter().for_each(|neighbour| neighbour.join().unwrap());
    let stats = pool.stats();
    assert!(is_over && stats.peak_workers <= 6, "{stats:?}");
    finish(pool);
}

/// They do not know of each other. Each takes the other's tasks for those of a busy process.
#[test]
fn tasks_that_compute_get_few_workers_in_each_of_two_pools() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pools = [(); 2].map(|()| measured(2).build());
    for _ in 0..200 {
        pools.iter().for_each(|pool| pool.execute(|| compute(millis(2))));
    }
    for pool in pools {
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert!(stats.peak_workers <= 6, "{stats:?}");
        finish(pool);
    }
}

#[test]
fn many_workers_become_few_when_the_tasks_compute() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(2).build();
    for _ in 0..200 {
        pool.execute(|| thread::sleep(millis(10)));
    }
    assert!(pool.join_timeout(LIMIT));
    // The number may have been lowered since.
    assert!(pool.stats().peak_workers >= 32, "{:?}", pool.stats());
    // Tasks are queued until the number is lowered, however seldom the keeper gets a CPU beside
    // them.
    wait_until("the number is lowered", || {
        while pool.stats().queued < 100 {
            pool.execute(|| compute(millis(2)));
        }
        pool.stats().allowed <= 6
    });
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// Without `/proc` only the clocks of the workers tell.
#[cfg(target_os = "linux")]
#[test]
fn tasks_that_compute_get_few_workers_while_no_file_can_be_opened() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let _alone = alone();
    let pool = measured(2).build();
    // The threads that sleep are told from those that compute.
    submit_interdependent(&pool, 4, || ()).into_iter().for_each(value);
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
    for _ in 0..30 {
        pool.execute(|| compute(millis(60)));
    }
    let is_over = pool.join_timeout(LIMIT);
    // A few, and not all of them: beside other programs a worker may get no CPU between two looks.
    let peak = pool.stats().peak_workers;
    submit_interdependent(&pool, 40, || ()).into_iter().for_each(value);
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(is_over && peak <= 15, "{peak}");
    finish(pool);
}

// ----- tasks that contend -----

/// Not how many at most: each pool tries a larger number once in a while.
#[cfg(target_os = "linux")]
#[test]
fn tasks_that_wait_for_one_lock_get_few_workers() {
    let _alone = alone();
    let pool = measured(2).build();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..600 {
        let lock = Arc::clone(&lock);
        pool.execute(move || {
            let _held = lock.lock();
            thread::sleep(millis(1));
        });
    }
    wait_until("they wait for a thread", || pool.stats().asleep_on_threads > 0);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert!(stats.peak_workers <= 64, "{stats:?}");
    finish(pool);
}

#[test]
fn the_number_grows_again_after_tasks_that_wait_for_one_lock() {
    let _alone = alone();
    let pool = measured(2).build();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..100 {
        let lock = Arc::clone(&lock);
        pool.execute(move || {
            let _held = lock.lock();
            thread::sleep(millis(1));
        });
    }
    // Behind them, with no pause between.
    submit_interdependent(&pool, 80, || ()).into_iter().for_each(value);
    assert!(pool.stats().peak_workers >= 80);
    finish(pool);
}

// ----- when it measures -----

#[cfg(target_os = "linux")]
#[test]
fn the_keeper_sleeps_while_nothing_is_queued() {
    let _alone = alone();
    let pool = measured(2).name("calm").build();
    let gates = [(); 2].map(|()| block(&pool));
    // Two sleep, nothing is queued.
    wait_until_asleep(1, millis(300), |name| name == "calm-keeper");
    pool.execute(|| ());
    wait_until("a third worker runs it", || pool.stats().completed == 1);
    wait_until_asleep(1, millis(300), |name| name == "calm-keeper");
    gates.iter().for_each(|gate| gate.open());
    assert!(pool.join_timeout(LIMIT));
    wait_until_asleep(1, millis(300), |name| name == "calm-keeper");
    finish(pool);
}

#[cfg(target_os = "linux")]
#[test]
fn the_keeper_sleeps_after_a_rejection() {
    let _alone = alone();
    let pool = measured(1).name("calm").queue_capacity(0).build();
    let gate = block(&pool);
    while pool.try_execute(|| ()).is_ok() {}
    wait_until_asleep(1, millis(300), |name| name == "calm-keeper");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

#[test]
fn what_slept_is_forgotten_once_nothing_is_queued() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(2).max_size(4).build();
    let gate = Gate::new();
    for _ in 0..6 {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.pass());
    }
    wait_until("four sleep", || pool.stats().asleep == 4);
    gate.open();
    wait_until("none does", || pool.stats().asleep == 0);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    pool.execute(move || while !stopped.load(Ordering::Relaxed) {});
    wait_until("one computes", || (pool.stats().awake, pool.stats().asleep) == (1, 0));
    stop.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// Nothing is measured any more: no more workers may run than are wanted awake.
#[test]
fn what_slept_is_forgotten_once_the_number_may_not_change() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(2).build();
    let gate = Gate::new();
    for _ in 0..200 {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.pass());
    }
    wait_until("some sleep", || pool.stats().asleep > 2);
    pool.set_max_size(2).unwrap();
    wait_until("that is forgotten", || pool.stats().asleep == 0);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    pool.execute(move || while !stopped.load(Ordering::Relaxed) {});
    wait_until("one computes", || (pool.stats().awake, pool.stats().asleep) == (1, 0));
    stop.store(true, Ordering::Relaxed);
    finish(pool);
}

#[test]
fn a_region_needs_no_measurement() {
    let _alone = alone();
    let pool = measured(1).build();
    // More than a number that doubles could allow at once.
    let barrier = Arc::new(Barrier::new(50));
    let handles: Vec<_> = (0..50)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            pool.evaluate(move || elastipool::blocking(|| barrier.wait()).is_leader())
        })
        .collect();
    assert_eq!(handles.into_iter().map(value).filter(|&leads| leads).count(), 1);
    // A worker that has not come to its region yet counts, so a few may be allowed.
    assert!(pool.stats().allowed < 25, "blocked workers do not count: {:?}", pool.stats());
    finish(pool);
}

/// What the tasks in regions compute is not what keeps the CPUs busy for the others.
#[test]
fn a_region_that_computes_does_not_count_as_awake() {
    let _alone = alone();
    let pool = measured(2).build();
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..2 {
        let stop = Arc::clone(&stop);
        pool.execute(move || elastipool::blocking(|| while !stop.load(Ordering::Relaxed) {}));
    }
    wait_until("both compute", || pool.stats().blocked == 2);
    submit_interdependent(&pool, 20, || ()).into_iter().for_each(value);
    stop.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

// ----- bounded queues -----

#[test]
fn a_bounded_queue_holds_no_more_than_its_capacity() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(2).queue_capacity(3).build();
    let stop = Arc::new(AtomicBool::new(false));
    let try_submit = || {
        let stop = Arc::clone(&stop);
        pool.try_execute(move || while !stop.load(Ordering::Relaxed) {}).is_ok()
    };
    assert!(try_submit() && try_submit());
    wait_until("both compute", || pool.stats().active == 2);
    assert_eq!((0..20).filter(|_| try_submit()).count(), 3);
    assert_eq!((pool.stats().allowed, pool.stats().queued), (2, 3));
    stop.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// Nothing is queued: a submitter that waits is what asks for more workers.
#[test]
fn a_submitter_to_a_full_pool_gets_a_worker_while_the_others_sleep() {
    let _alone = alone();
    let pool = measured(2).queue_capacity(0).build();
    let gate = Gate::new();
    for _ in 0..20 {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.pass());
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// No measurement is under way when it begins to wait.
#[test]
fn a_submitter_that_comes_late_to_a_full_pool_gets_a_worker() {
    let _alone = alone();
    let pool = measured(2).queue_capacity(0).build();
    let gate = Gate::new();
    for number in 1..=4 {
        let passes = Arc::clone(&gate);
        assert!(pool.try_execute_for(move || passes.pass(), LIMIT).is_ok(), "{number}");
        gate.wait_for(number);
        // Longer than a measurement takes: nothing waits, so no other one follows.
        thread::sleep(millis(30));
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// Submits tasks that sleep, by calls that do not wait, until so many run.
fn run_without_waiting(count: usize, mut try_submit: impl FnMut(&Arc<Gate>) -> bool) {
    let gate = Gate::new();
    let mut accepted = 0;
    wait_until("all of them run", || {
        accepted += usize::from(accepted < count && try_submit(&gate));
        gate.arrived() == count
    });
    gate.open();
}

/// Nothing is queued, and no submitter waits: rejections are what asks for more workers.
#[test]
fn rejections_for_capacity_give_a_full_pool_workers_while_the_others_sleep() {
    let _alone = alone();
    let pool = measured(2).queue_capacity(0).build();
    let (view, group) = (pool.view().build(), pool.group::<()>());
    for submitters in [&pool, &*view] {
        run_without_waiting(20, |gate| {
            let gate = Arc::clone(gate);
            submitters.try_execute(move || gate.pass()).is_ok()
        });
        assert!(pool.join_timeout(LIMIT));
    }
    run_without_waiting(20, |gate| {
        let gate = Arc::clone(gate);
        let task = move || {
            gate.pass();
            Ok(())
        };
        group.try_execute(task).is_ok()
    });
    group.wait().unwrap();
    drop(view);
    finish(pool);
}

/// Another worker would not help: the number is that of the permits too, for tasks which only lie
/// in the queue.
#[test]
fn submissions_to_views_that_may_have_no_more_workers_raise_no_number() {
    let _alone = alone();
    for (is_paused, waits) in [(false, false), (false, true), (true, false), (true, true)] {
        let pool = measured(2).queue_capacity(0).build();
        let view = pool.view().limit(2).build();
        let (gate, accepted) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
        let submit = {
            let (view, gate) = (view.clone(), Arc::clone(&gate));
            let accepted = Arc::clone(&accepted);
            let timeout = if waits { HOUR } else { Duration::ZERO };
            move || {
                let gate = Arc::clone(&gate);
                let is_accepted = view.try_execute_for(move || gate.pass(), timeout).is_ok();
                accepted.fetch_add(usize::from(is_accepted), Ordering::SeqCst);
            }
        };
        if is_paused {
            view.pause();
        } else {
            submit();
            submit();
            gate.wait_for(2);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let submitter = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                submit();
            }
        });
        // Measurements come every millisecond, and double the number.
        thread::sleep(millis(300));
        let (stats, accepted) = (pool.stats(), accepted.load(Ordering::SeqCst));
        stop.store(true, Ordering::SeqCst);
        gate.open();
        view.resume();
        submitter.join().unwrap();
        assert!(pool.join_timeout(LIMIT));
        // The first two may have been measured while one of them was queued.
        assert!(stats.allowed <= 8 && accepted <= 8, "{accepted} accepted: {stats:?}");
        drop(view);
        finish(pool);
    }
}

/// A stream submits only what it can without a wait.
#[cfg(feature = "async")]
#[test]
fn a_stream_of_results_gives_a_full_pool_workers_while_its_tasks_sleep() {
    use futures::StreamExt;

    let _alone = alone();
    let pool = measured(2).queue_capacity(0).build();
    let map = pool.map(0..200, |number| {
        thread::sleep(millis(5));
        number
    });
    let results = futures::executor::block_on(map.in_flight(32).into_stream().count());
    assert_eq!(results, 200);
    assert!(pool.stats().peak_workers > 8, "{:?}", pool.stats());
    finish(pool);
}

/// Each worker that waits for capacity costs a thread, and the tasks of the others submit as well.
#[test]
fn tasks_that_submit_to_a_full_queue_or_group_cost_few_threads() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let begin = |count: &AtomicUsize| {
        count.fetch_add(1, Ordering::SeqCst);
        compute(Duration::from_micros(50));
    };
    for is_group in [false, true] {
        let pool = measured(2).queue_capacity(if is_group { 1 << 20 } else { 100 }).build();
        let group = pool.group::<()>().limit(2);
        let count = Arc::new(AtomicUsize::new(0));
        for _ in 0..1000 {
            let (own, group, count) = (pool.clone(), group.clone(), Arc::clone(&count));
            pool.execute(move || {
                begin(&count);
                for _ in 0..10 {
                    let count = Arc::clone(&count);
                    if is_group {
                        let task = move || {
                            begin(&count);
                            Ok(())
                        };
                        group.execute(task).unwrap();
                    } else {
                        own.execute(move || begin(&count));
                    }
                }
            });
        }
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!(count.load(Ordering::SeqCst), 11_000);
        assert!(stats.peak_workers <= 32, "{stats:?}");
        drop(group);
        finish(pool);
    }
}

// ----- resizing, views -----

#[test]
fn a_max_size_that_is_lowered_while_tasks_sleep_bounds_the_next_ones() {
    let _alone = alone();
    let pool = measured(1).build();
    submit_interdependent(&pool, 30, || ()).into_iter().for_each(value);
    pool.set_max_size(3).unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..60 {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        pool.execute(move || {
            most.fetch_max(1 + running.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            thread::sleep(millis(2));
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    assert!(pool.join_timeout(LIMIT));
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    pool.set_max_size(40).unwrap();
    submit_interdependent(&pool, 40, || ()).into_iter().for_each(value);
    finish(pool);
}

#[test]
fn a_limit_of_a_view_bounds_its_workers_also_while_they_sleep() {
    let _alone = alone();
    let pool = measured(1).build();
    let view = pool.view().limit(3).build();
    let gate = Gate::new();
    for _ in 0..6 {
        let gate = Arc::clone(&gate);
        view.execute(move || gate.pass());
    }
    gate.wait_for(3);
    // Others run meanwhile.
    submit_interdependent(&pool, 10, || ()).into_iter().for_each(value);
    assert_eq!(gate.arrived(), 3);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    drop(view);
    finish(pool);
}

#[test]
fn a_view_gets_workers_as_the_pool_does() {
    let _alone = alone();
    let pool = measured(1).build();
    let view = pool.view().build();
    submit_interdependent(&view, 20, || ()).into_iter().for_each(value);
    drop(view);
    finish(pool);
}

/// Each task ends its worker, often while the others are measured.
#[test]
fn workers_that_end_do_not_hide_that_the_others_sleep() {
    let _alone = alone();
    let pool = measured(2).max_tasks_per_worker(1).build();
    let gate = Gate::new();
    for i in 0..200 {
        let gate = Arc::clone(&gate);
        pool.execute(move || if i % 4 == 0 { gate.pass() } else { thread::sleep(millis(2)) });
    }
    wait_until("all of them run", || pool.stats().completed == 150);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    finish(pool);
}

/// The first wake is left to the keeper while a worker is free, and the second one comes before it
/// has looked.
#[cfg(feature = "async")]
#[test]
fn a_poll_may_wait_for_the_second_future_that_it_has_woken() {
    use std::sync::mpsc;

    use futures::channel::oneshot;

    let _alone = alone();
    for _ in 0..50 {
        let pool = measured(2).build();
        let (first, is_first) = oneshot::channel::<()>();
        let (second, is_second) = oneshot::channel::<()>();
        let (begin, has_begun) = oneshot::channel::<()>();
        let (done, wait) = mpsc::channel();
        let (free, gate) = (pool.clone(), Gate::new());
        let (closed, arrived) = (Arc::clone(&gate), Arc::clone(&gate));
        let (back, is_back) = oneshot::channel::<()>();
        pool.spawn(async move {
            let _ = is_first.await;
            let _ = back.send(());
        });
        pool.spawn(async move {
            let _ = is_second.await;
            let _ = done.send(());
        });
        let poller = pool.spawn_await(async move {
            let _ = has_begun.await;
            first.send(()).unwrap();
            let _ = is_back.await;
            // Now the other worker sleeps too, and nothing is queued.
            free.execute(move || closed.pass());
            arrived.wait_for(1);
            second.send(()).unwrap();
            wait.recv_timeout(LIMIT).is_ok()
        });
        wait_until("all wait", || pool.stats().pending == 3);
        begin.send(()).unwrap();
        assert!(value(poller));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        finish(pool);
    }
}

/// No task is queued when the workers begin to wait, so only the submission of the next one can ask
/// for a measurement.
#[test]
fn a_task_of_a_view_gets_a_worker_while_those_of_the_pool_wait() {
    let _alone = alone();
    let pool = measured(2).name("views").build();
    let view = pool.view().build();
    let gates = [(); 2].map(|()| block(&pool));
    wait_until_asleep(1, millis(300), |name| name == "views-keeper");
    assert_eq!(value(view.evaluate(|| 7)), 7);
    gates.iter().for_each(|gate| gate.open());
    drop(view);
    finish(pool);
}

#[test]
fn a_reserved_worker_runs_while_as_many_as_wanted_are_awake() {
    let _alone = alone();
    let pool = measured(1).build();
    let view = pool.view().reserve(1).build();
    assert_eq!(pool.stats().allowed, 2);
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let stop = Arc::clone(&stop);
        pool.execute(move || while !stop.load(Ordering::Relaxed) {});
    }
    for _ in 0..10 {
        assert_eq!(value(view.evaluate(|| 7)), 7);
    }
    if TELLS {
        assert!(pool.stats().active <= 2, "one of the pool's own tasks runs: {:?}", pool.stats());
    }
    stop.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    drop(view);
    wait_until("the reserve is gone", || pool.stats().allowed == 1);
    finish(pool);
}

/// A view adds its reserve to the number, and takes with it what it has added.
#[cfg(target_os = "linux")]
#[test]
fn a_reserve_comes_on_top_of_the_number_and_leaves_no_trace() {
    let _alone = alone();
    let largest = 512.min(ThreadPool::MAX_SIZE);
    for max_size in [64, largest] {
        let pool = measured(1).max_size(max_size).name("traces").build();
        let gate = Gate::new();
        for _ in 0..64 {
            let gate = Arc::clone(&gate);
            pool.execute(move || gate.pass());
        }
        gate.wait_for(64);
        // No measurement is under way.
        wait_until_asleep(1, millis(300), |name| name == "traces-keeper");
        // Mostly 64. The last measurement may have found tasks that were about to sleep, and
        // lowered it.
        let number = pool.stats().allowed;
        for _ in 0..7 {
            let view = pool.view().reserve(8).build();
            assert_eq!(pool.stats().allowed, max_size.min(number + 8));
            view.set_reserve(2).unwrap();
            assert_eq!(pool.stats().allowed, max_size.min(number + 2));
            drop(view);
            assert_eq!(pool.stats().allowed, number);
        }
        gate.open();
        finish(pool);
    }
}

/// Makes as many tasks run as sleep first, all at once. Then they compute, as do many that are
/// queued, until the returned flag is set.
fn sleep_then_compute(pool: &ThreadPool, count: usize) -> Arc<AtomicBool> {
    let (begin, stop) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    for _ in 0..count {
        let (begin, stop) = (Arc::clone(&begin), Arc::clone(&stop));
        pool.execute(move || {
            begin.pass();
            while !stop.load(Ordering::Relaxed) {}
        });
    }
    begin.wait_for(count);
    // The pool measures while tasks are queued.
    for _ in 0..100 {
        let stop = Arc::clone(&stop);
        pool.execute(move || while !stop.load(Ordering::Relaxed) {});
    }
    begin.open();
    stop
}

#[test]
fn a_reserved_worker_runs_beside_more_than_may_run() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(1).build();
    let view = pool.view().reserve(2).build();
    let stop = sleep_then_compute(&pool, 6);
    wait_until("fewer may run than do", || {
        let stats = pool.stats();
        stats.allowed < stats.active
    });
    let both = Arc::new(Barrier::new(2));
    let reserved = [(); 2].map(|()| {
        let both = Arc::clone(&both);
        view.evaluate(move || both.wait())
    });
    reserved.into_iter().for_each(|handle| _ = value(handle));
    stop.store(true, Ordering::Relaxed);
    assert!(pool.join_timeout(LIMIT));
    drop(view);
    finish(pool);
}

/// The reserved workers sleep. Those of the pool compute, so few of them may run.
#[test]
fn reserved_workers_do_not_count_in_the_number() {
    let _alone = alone();
    if !TELLS {
        return;
    }
    let pool = measured(1).build();
    let view = pool.view().reserve(8).build();
    let gate = Gate::new();
    for _ in 0..8 {
        let gate = Arc::clone(&gate);
        view.execute(move || gate.pass());
    }
    gate.wait_for(8);
    let stop = sleep_then_compute(&pool, 12);
    wait_until("few may run", || pool.stats().allowed <= 8 + 5);
    stop.store(true, Ordering::Relaxed);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    drop(view);
    finish(pool);
}

/// They are counted as ends of the pool first, and left out of the measurement afterwards.
#[cfg(feature = "async")]
#[test]
fn ends_on_the_extra_worker_are_not_measured() {
    let _alone = alone();
    let pool = measured(1).build();
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..20 {
        let stop = Arc::clone(&stop);
        pool.execute(move || while !stop.load(Ordering::Relaxed) {});
    }
    let ended = Arc::new(AtomicUsize::new(0));
    for _ in 0..200 {
        let (own, ended) = (pool.clone(), Arc::clone(&ended));
        pool.spawn(async move {
            own.scope(|scope| (0..50).for_each(|_| scope.execute(|| compute(millis(1) / 20))));
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    wait_until("the futures have ended", || ended.load(Ordering::SeqCst) == 200);
    stop.store(true, Ordering::Relaxed);
    finish(pool);
}
