//! Law 1, Prompt: an accepted task starts as soon as a worker is free, and while fewer than
//! `max_size` workers are runnable no accepted task stays queued behind busy ones.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{
    BuildPool, Gate, HOUR, LIMIT, block, dawdle, new_pool, submit_interdependent, wait_until,
};
#[cfg(feature = "async")]
use elastipool::View;
use elastipool::{Builder, Growth, JoinHandle, ThreadPool, blocking, worker_index};

#[track_caller]
fn await_all(handles: Vec<JoinHandle<()>>) {
    for handle in handles {
        handle.await_complete();
    }
}

#[track_caller]
fn await_soon<T>(what: &str, handle: JoinHandle<T>) -> T {
    match handle.await_complete_timeout(LIMIT) {
        Ok(result) => result.unwrap(),
        Err(_) => panic!("not within {LIMIT:?}: {what}"),
    }
}

// The defect: one worker, up to eight: one of eight interdependent tasks was started, the rest were
// queued behind it. Protects that a searching worker notifies the next one
// (`Shared::notify_next`): the submitter starts one worker only.
#[test]
fn interdependent_tasks_all_start() {
    for core_size in [0, 1, 4, 8] {
        for _ in 0..10 {
            let pool = new_pool(core_size, 8, HOUR);
            // At first by starting threads, then by waking them.
            for _ in 0..10 {
                await_all(submit_interdependent(&pool, 8, || ()));
            }
            assert_eq!(pool.current_worker_count(), 8);
            pool.shutdown_join();
        }
    }
}

#[test]
fn interdependent_tasks_submitted_by_a_task_all_start() {
    for core_size in [0, 1, 8] {
        for _ in 0..10 {
            let pool = new_pool(core_size, 8, HOUR);
            for _ in 0..10 {
                let inner = pool.clone();
                // The submitter keeps its worker until the seven others are there.
                let host =
                    pool.evaluate(move || await_all(submit_interdependent(&inner, 7, || ())));
                host.await_complete();
            }
            pool.shutdown_join();
        }
    }
}

// One submission wakes one worker, which has to wake the next, and so on to the last.
#[test]
fn a_burst_wakes_all_idle_workers_that_it_needs() {
    let pool = new_pool(6, 6, HOUR);
    assert_eq!(pool.start_core_threads(), 6);
    for round in 0..400 {
        if round % 2 == 0 {
            wait_until("all are idle", || pool.idle_worker_count() == 6);
        }
        await_all(submit_interdependent(&pool, 6, || ()));
    }
    assert_eq!(pool.stats().threads_started, 6);
    pool.shutdown_join();
}

// The defect: with a core size of 0, a task that was submitted between the last worker's timeout
// and its exit never ran. Protects race 3, in `Shared::try_retire` and `Shared::submit`.
#[test]
fn a_submission_that_meets_an_expiry_is_run() {
    for (core_size, max_size) in [(0, 1), (0, 2), (1, 2)] {
        let pool = new_pool(core_size, max_size, Duration::from_micros(1));
        for round in 0..1500 {
            let handle = pool.evaluate(move || round);
            assert_eq!(await_soon("a task that met an expiry", handle), round);
            dawdle(2000);
        }
        pool.shutdown_join();
    }
}

#[test]
fn submissions_of_several_threads_that_meet_expiries_are_run() {
    let pool = new_pool(0, 3, Duration::from_micros(1));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..500 {
                    await_all_soon(submit_interdependent(&pool, 1, || ()));
                    dawdle(3000);
                }
            });
        }
    });
    // Alone, it may ask for all of them at once.
    for _ in 0..300 {
        await_all_soon(submit_interdependent(&pool, fastrand::usize(1..=3), || ()));
        dawdle(3000);
    }
    pool.shutdown_join();
}

#[track_caller]
fn await_all_soon(handles: Vec<JoinHandle<()>>) {
    for handle in handles {
        await_soon("one of a few tasks", handle);
    }
}

/// A gate in the stop hook of the first worker that stops once the switch is on.
fn hold_one_stop(builder: Builder) -> (ThreadPool, Arc<AtomicBool>, Arc<Gate>) {
    let (is_held, gate) = (Arc::new(AtomicBool::new(false)), Gate::new());
    let hook = {
        let (is_held, gate) = (Arc::clone(&is_held), Arc::clone(&gate));
        move |_| {
            if is_held.swap(false, Ordering::SeqCst) {
                gate.pass();
            }
        }
    };
    (builder.on_worker_stop(hook).build_pool(), is_held, gate)
}

// The same moment as above, held open: the only worker has decided to retire, so another one may
// start.
#[test]
fn a_task_submitted_while_the_last_worker_stops_does_not_wait_for_it() {
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(Duration::from_millis(1));
    let (pool, is_held, stopping) = hold_one_stop(builder);
    is_held.store(true, Ordering::SeqCst);
    await_soon("the first task", pool.evaluate(|| ()));
    stopping.wait_for(1);
    assert_eq!(pool.current_worker_count(), 0);
    // The index of the one that stops is still its own.
    assert_eq!(await_soon("a task", pool.evaluate(worker_index)), Some(1));
    stopping.open();
    pool.shutdown_join();
}

// A worker in its stop hook is no help. Protects the limit in `Shared::notify`.
#[test]
fn a_task_does_not_wait_for_a_stop_hook_below_max_size() {
    let builder = Builder::new().core_size(0).max_size(2).keep_alive(Duration::from_millis(1));
    let (pool, is_held, stopping) = hold_one_stop(builder);
    is_held.store(true, Ordering::SeqCst);
    await_soon("the first task", pool.evaluate(|| ()));
    stopping.wait_for(1);
    for _ in 0..10 {
        await_soon("a task beside a stop hook", pool.evaluate(|| ()));
    }
    stopping.open();
    pool.shutdown_join();
}

// Race 1, a worker leaves: when the task comes, no worker is idle and `max_size` are runnable. A
// moment later one retires, and only that worker can know of the task. Protects the last lines of
// `Shared::try_retire`.
#[test]
fn a_task_gets_a_worker_when_another_retires() {
    let builder = Builder::new().core_size(1).max_size(2).keep_alive(Duration::from_millis(1));
    let (pool, is_held, stopping) = hold_one_stop(builder);
    let (both, release) = (Gate::new(), Gate::new());
    let busy = {
        let (both, release) = (Arc::clone(&both), Arc::clone(&release));
        pool.evaluate(move || {
            both.pass();
            release.pass();
        })
    };
    let other = {
        let both = Arc::clone(&both);
        pool.evaluate(move || both.pass())
    };
    both.wait_for(2);
    is_held.store(true, Ordering::SeqCst);
    both.open();
    await_soon("the other of two tasks", other);
    stopping.wait_for(1);
    let task = pool.evaluate(|| ());
    stopping.open();
    await_soon("a task that a leaving worker has to see to", task);
    release.open();
    busy.await_complete();
    pool.shutdown_join();
}

/// A gate in the start hook of as many of the next workers as one says.
fn hold_starts(builder: Builder) -> (ThreadPool, Arc<AtomicUsize>, Arc<Gate>) {
    let (to_hold, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
    let hook = {
        let (to_hold, gate) = (Arc::clone(&to_hold), Arc::clone(&gate));
        move |_| {
            let one_less = |count: usize| count.checked_sub(1);
            if to_hold.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                gate.pass();
            }
        }
    };
    (builder.on_worker_start(hook).build_pool(), to_hold, gate)
}

// Below the core size each submission starts a worker, here one that does not come. Protects
// `enqueue`'s call of `notify` even if it has started one, and `Worker::start`, which looks around
// before the hook.
#[test]
fn a_slow_start_hook_keeps_no_task_from_an_idle_worker() {
    let builder = Builder::new().core_size(64).max_size(64).keep_alive(HOUR);
    let (pool, to_hold, starting) = hold_starts(builder);
    await_soon("the first task", pool.evaluate(|| ()));
    wait_until("all workers are idle", || pool.idle_worker_count() == pool.current_worker_count());
    let present = pool.current_worker_count();
    assert!(present < 64, "one task has started 64 workers");
    to_hold.store(64, Ordering::SeqCst);
    for _ in present..64 {
        let index = await_soon("a task for an idle worker", pool.evaluate(worker_index));
        assert!(index < Some(present));
    }
    starting.wait_for(64 - present);
    starting.open();
    pool.shutdown_join();
}

// Workers that do not get out of their start hooks are no help on the way for more than one task
// each. Protects `Worker::start`, which gives the search up before the hook.
#[test]
fn a_slow_start_hook_keeps_no_task_from_another_new_worker() {
    let builder = Builder::new().core_size(1).max_size(8).keep_alive(HOUR);
    let (pool, to_hold, starting) = hold_starts(builder);
    await_soon("the first task", pool.evaluate(|| ()));
    wait_until("all workers are idle", || pool.idle_worker_count() == pool.current_worker_count());
    let present = pool.current_worker_count();
    assert!(present < 7, "one task has started {present} workers");
    // All of them busy.
    let (running, release) = (Gate::new(), Gate::new());
    for _ in 0..present {
        let (running, release) = (Arc::clone(&running), Arc::clone(&release));
        pool.execute(move || {
            running.meet(present);
            release.pass();
        });
    }
    running.wait_for(present);
    to_hold.store(1, Ordering::SeqCst);
    pool.execute(|| ());
    starting.wait_for(1);
    let tasks: Vec<_> = (0..8).map(|_| pool.evaluate(|| ())).collect();
    for task in tasks {
        await_soon("a task beside a start hook", task);
    }
    release.open();
    starting.open();
    assert!(pool.join_timeout(LIMIT));
    pool.shutdown_join();
}

// Whatever the state in which a submission finds the pool: sleeping, expiring, leaving, starting.
#[test]
fn interdependent_tasks_of_any_number_start_at_any_time() {
    for (core_size, keep_alive) in [(0, 1), (0, 50), (1, 20), (3, 1), (4, 1)] {
        let pool = new_pool(core_size, 4, Duration::from_micros(keep_alive));
        for _ in 0..250 {
            let first = fastrand::usize(1..=3);
            let mut handles = submit_interdependent(&pool, first, || ());
            dawdle(1000);
            handles.extend(submit_interdependent(&pool, 4 - first, || ()));
            await_all(handles);
            dawdle(5000);
        }
        pool.shutdown_join();
    }
}

// A worker in a region is not runnable. A task that comes while it enters is seen by one of the
// two. Protects the fence and the look in `Shared::stopped_running`.
#[test]
fn a_submission_that_meets_the_entry_of_a_region_is_run() {
    let pool = new_pool(1, 1, HOUR);
    for _ in 0..500 {
        let (begun, gate) = (Gate::new(), Gate::new());
        let (begins, passes) = (Arc::clone(&begun), Arc::clone(&gate));
        let region = pool.evaluate(move || {
            begins.open();
            dawdle(500);
            blocking(|| passes.pass());
        });
        begun.pass();
        dawdle(500);
        // Only this opens the gate.
        await_soon("a task that met a region", pool.evaluate(move || gate.open()));
        await_soon("the region", region);
    }
    pool.shutdown_join();
}

// A worker that waits for others: each needs `max_size` of them beside itself and all those above.
#[test]
fn interdependent_tasks_start_beside_workers_in_regions() {
    for (core_size, max_size) in [(0, 1), (1, 1), (1, 2), (3, 3)] {
        let pool = new_pool(core_size, max_size, HOUR);
        for _ in 0..20 {
            let gate = Gate::new();
            let mut regions = Vec::new();
            for count in 1..=4 {
                let passes = Arc::clone(&gate);
                regions.push(pool.evaluate(move || blocking(|| passes.pass())));
                gate.wait_for(count);
                await_all_soon(submit_interdependent(&pool, max_size, || ()));
            }
            gate.open();
            await_all_soon(regions);
        }
        pool.shutdown_join();
    }
}

// The burst is queued behind tasks that all enter regions later: each region that begins lets one
// of them run.
#[test]
fn a_burst_behind_workers_that_enter_regions_starts() {
    let pool = new_pool(1, 2, HOUR);
    for _ in 0..20 {
        let (enters, table) = (Gate::new(), Gate::new());
        let enter = |_| {
            let (enters, table) = (Arc::clone(&enters), Arc::clone(&table));
            pool.evaluate(move || {
                enters.pass();
                blocking(|| table.meet(12));
            })
        };
        let regions: Vec<_> = (0..12).map(enter).collect();
        enters.wait_for(2);
        enters.open();
        await_all_soon(regions);
    }
    pool.shutdown_join();
}

#[cfg(feature = "async")]
mod futures {
    use std::task::{Context, Poll};
    use std::time::Instant;
    use std::{future, mem};

    use super::{
        Arc, AtomicBool, AtomicUsize, BuildPool, Builder, Duration, Gate, Growth, HOUR, JoinHandle,
        LIMIT, Ordering, ThreadPool, View, await_all_soon, await_soon, common, dawdle, new_pool,
        thread, wait_until,
    };

    // A woken future is queued work like any other. The waking task does not end before the future
    // was polled, so its worker cannot do it.
    #[test]
    fn a_future_woken_by_a_task_does_not_wait_for_the_tasks_end() {
        for core_size in [0, 1, 2] {
            let pool = new_pool(core_size, 2, HOUR);
            for _ in 0..50 {
                let (trigger, triggered) = common::triggered();
                let future = pool.spawn_await(triggered);
                wait_until("the future waits", || trigger.waker().is_some());
                let (polled, reached) = (Gate::new(), Gate::new());
                let waiter = {
                    let (polled, reached) = (Arc::clone(&polled), Arc::clone(&reached));
                    pool.evaluate(move || {
                        trigger.fire();
                        reached.open();
                        polled.pass();
                    })
                };
                reached.pass();
                await_soon("a future woken by a task", future);
                polled.open();
                waiter.await_complete();
            }
            pool.shutdown_join();
        }
    }

    /// Closures that keep all workers busy which may run: they compute until they are let go.
    struct Busy {
        pool: ThreadPool,
        _unused: Option<View>,
        stop: Arc<AtomicBool>,
        closures: Vec<JoinHandle<()>>,
    }

    /// Whether a pool has an unused view. Through a view each has a used one.
    fn views() -> impl Iterator<Item = bool> {
        [false, true].into_iter().take(2 - usize::from(common::is_through_a_view()))
    }

    impl Busy {
        /// A pool of which `awake` workers may run, with a backlog behind them.
        fn new(awake: usize, has_unused_view: bool) -> Self {
            let builder = Builder::new().core_size(0).keep_alive(HOUR);
            let pool = builder.growth(Growth::measured(awake)).build_pool();
            let _unused = has_unused_view.then(|| pool.view().build());
            let mut busy = Busy { pool, _unused, stop: Arc::default(), closures: Vec::new() };
            let begun = Arc::new(AtomicUsize::new(0));
            for _ in 0..10 * awake {
                let (begun, stop) = (Arc::clone(&begun), Arc::clone(&busy.stop));
                busy.closures.push(busy.pool.evaluate(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    compute_until(&stop);
                }));
            }
            wait_until("all are busy", || begun.load(Ordering::SeqCst) >= awake);
            busy
        }

        fn end(self) {
            self.stop.store(true, Ordering::SeqCst);
            await_all_soon(self.closures);
            self.pool.shutdown_join();
        }
    }

    fn dawdle_for(micros: u64) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
    }

    fn compute_until(stop: &AtomicBool) {
        let since = Instant::now();
        while !stop.load(Ordering::SeqCst) && since.elapsed() < 2 * LIMIT {
            std::hint::spin_loop();
        }
    }

    // Protects the clause for ready futures in `Shared::run_limit`: while closures keep all workers
    // busy that may run, one more polls futures. Each closure ends after the future, or after the
    // limit of the test.
    #[test]
    fn a_spawned_future_does_not_wait_for_closures_in_a_pool_that_measures() {
        for (awake, has_view) in views().flat_map(|it| [(1, it), (2, it)]) {
            let busy = Busy::new(awake, has_view);
            for _ in 0..20 {
                await_soon("a future beside closures", busy.pool.spawn_await(async {}));
            }
            busy.end();
        }
    }

    #[test]
    fn a_woken_future_does_not_wait_for_closures_in_a_pool_that_measures() {
        for (awake, has_view) in views().flat_map(|it| [(1, it), (2, it)]) {
            let busy = Busy::new(awake, has_view);
            for _ in 0..20 {
                let futures = [(); 3].map(|()| {
                    let (trigger, triggered) = common::triggered();
                    (trigger, busy.pool.spawn_await(triggered))
                });
                for (trigger, future) in futures {
                    wait_until("the future waits", || trigger.waker().is_some());
                    trigger.fire();
                    await_soon("a woken future beside closures", future);
                }
            }
            busy.end();
        }
    }

    // The closure does not end before what it spawns and wakes has been polled. Its worker was in a
    // poll before, so futures may be left in its local queue.
    #[test]
    fn a_future_of_a_closure_does_not_wait_for_it_in_a_pool_that_measures() {
        for has_view in views() {
            let busy = Busy::new(1, has_view);
            let (trigger, triggered) = common::triggered();
            let woken = busy.pool.spawn_await(triggered);
            wait_until("the future waits", || trigger.waker().is_some());
            let (pool, done) = (busy.pool.clone(), Arc::new(AtomicBool::new(false)));
            let ended = Arc::clone(&done);
            let closure = busy.pool.evaluate(move || {
                let spawned = pool.spawn_await(async {});
                trigger.fire();
                compute_until(&ended);
                spawned
            });
            // The closures before it.
            busy.stop.store(true, Ordering::SeqCst);
            await_soon("a future that a closure has woken", woken);
            done.store(true, Ordering::SeqCst);
            await_soon("a future that a closure has spawned", await_soon("the closure", closure));
            busy.end();
        }
    }

    // The extra worker's poll waits, unseen by the pool, for another future. Protects that the keeper
    // watches it (`Shared::watch_extra`). In a pool with views nothing does.
    #[test]
    fn a_poll_that_sleeps_keeps_no_future_waiting_in_a_pool_that_measures() {
        if common::is_through_a_view() {
            return;
        }
        let busy = Busy::new(1, false);
        for _ in 0..5 {
            let gate = Gate::new();
            let waits = Arc::clone(&gate);
            let sleeping = busy.pool.spawn_await(async move { waits.pass() });
            gate.wait_for(1);
            await_soon("the other future", busy.pool.spawn_await(async move { gate.open() }));
            await_soon("the future that has slept", sleeping);
        }
        busy.end();
    }

    /// A poll that wakes another future, and then waits for it, unseen by the pool. `begin` runs in
    /// it before the wake. `beside`: closures keep the workers busy.
    #[track_caller]
    fn wait_in_a_poll(
        pool: &ThreadPool,
        sleeps: bool,
        beside: bool,
        begin: impl FnOnce() + Send + 'static,
    ) {
        let [(start, started), (wake, woken)] = [(); 2].map(|()| common::triggered());
        let has_run = Arc::new(AtomicBool::new(false));
        let sees = Arc::clone(&has_run);
        let other = pool.spawn_await(async move {
            woken.await;
            has_run.store(true, Ordering::SeqCst);
        });
        wait_until("the other future waits", || wake.waker().is_some());
        let poll = pool.spawn_await(async move {
            started.await;
            begin();
            wake.fire();
            if sleeps {
                wait_until("the other future has run", || sees.load(Ordering::SeqCst));
            } else {
                compute_until(&sees);
            }
        });
        wait_until("the future waits", || start.waker().is_some());
        // An extra worker might poll it otherwise, and keep others waiting while it computes.
        wait_until("all rest", || {
            beside || pool.idle_worker_count() == pool.current_worker_count()
        });
        start.fire();
        await_soon("a future that a poll has woken", other);
        await_soon("the poll", poll);
    }

    // The extra worker polls: no other one may run until the keeper finds it asleep.
    #[test]
    fn a_poll_beside_closures_may_sleep_for_a_future_that_it_has_woken() {
        if common::is_through_a_view() {
            return;
        }
        for awake in [1, 2] {
            let busy = Busy::new(awake, false);
            (0..5).for_each(|_| wait_in_a_poll(&busy.pool, true, true, || ()));
            busy.end();
        }
    }

    // The closures are queued behind the poll of an ordinary worker. Protects that the keeper moves
    // what such a poll has left behind to where the extra worker finds it (`Queue::share_woken_of`).
    #[test]
    fn a_poll_before_closures_may_wait_for_a_future_that_it_has_woken() {
        for (sleeps, has_view) in views().flat_map(|it| [(true, it), (false, it)]) {
            for _ in 0..5 {
                let builder = Builder::new().core_size(0).keep_alive(HOUR);
                let pool = builder.growth(Growth::measured(1)).build_pool();
                let _unused = has_view.then(|| pool.view().build());
                let stop = Arc::new(AtomicBool::new(false));
                let (own, until) = (pool.clone(), Arc::clone(&stop));
                wait_in_a_poll(&pool, sleeps, false, move || {
                    for _ in 0..10 {
                        let until = Arc::clone(&until);
                        thread::scope(|scope| {
                            scope.spawn(|| own.execute(move || compute_until(&until)));
                        });
                    }
                });
                stop.store(true, Ordering::SeqCst);
                assert!(pool.join_timeout(LIMIT));
                pool.shutdown_join();
            }
        }
    }

    // The worker's tasks are coarse, so what its poll wakes goes to the injector.
    #[test]
    fn a_coarse_poll_may_wait_for_a_future_that_it_has_woken() {
        for _ in 0..5 {
            let pool = new_pool(0, 2, HOUR);
            let (wake, woken) = common::triggered();
            let has_run = Arc::new(AtomicBool::new(false));
            let sees = Arc::clone(&has_run);
            let other = pool.spawn_await(async move {
                woken.await;
                has_run.store(true, Ordering::SeqCst);
            });
            wait_until("the other future waits", || wake.waker().is_some());
            let poll = pool.spawn_await(async move {
                for _ in 0..100 {
                    dawdle_for(50);
                    yield_now().await;
                }
                wake.fire();
                wait_until("the other future has run", || sees.load(Ordering::SeqCst));
            });
            await_soon("a future that a coarse poll has woken", other);
            await_soon("the poll", poll);
            pool.shutdown_join();
        }
    }

    async fn yield_now() {
        let mut has_yielded = false;
        let poll = |context: &mut Context<'_>| {
            if !mem::replace(&mut has_yielded, true) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        };
        future::poll_fn(poll).await;
    }

    // A future that yields between its polls gives way to a closure, and goes on beside it.
    #[test]
    fn a_future_that_yields_does_not_wait_for_closures_in_a_pool_that_measures() {
        for (capacity, has_view) in views().flat_map(|it| [(None, it), (Some(100), it)]) {
            let builder = Builder::new().core_size(0).keep_alive(HOUR).growth(Growth::measured(1));
            let builder = match capacity {
                Some(capacity) => builder.queue_capacity(capacity),
                None => builder,
            };
            let pool = builder.build_pool();
            let _unused = has_view.then(|| pool.view().build());
            let [gate, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
            let is_open = Arc::clone(&gate);
            pool.execute(move || compute_until(&is_open));
            let ended = Arc::clone(&stop);
            let future = pool.spawn_await(async move {
                for _ in 0..100 {
                    yield_now().await;
                }
                ended.store(true, Ordering::SeqCst);
            });
            for _ in 0..10 {
                let stop = Arc::clone(&stop);
                pool.execute(move || compute_until(&stop));
            }
            gate.store(true, Ordering::SeqCst);
            await_soon("a future that yields", future);
            assert!(pool.join_timeout(LIMIT));
            pool.shutdown_join();
        }
    }

    // A foreign wake that meets the expiry of a worker. One worker stays for the future, whichever
    // it is.
    #[test]
    fn a_wake_that_meets_an_expiry_leads_to_a_poll() {
        let pool = new_pool(0, 2, Duration::from_micros(1));
        for _ in 0..500 {
            let (trigger, triggered) = common::triggered();
            let future = pool.spawn_await(triggered);
            // Now and then the pool starts a worker that is surplus while the future waits.
            let task = fastrand::bool().then(|| pool.evaluate(|| ()));
            dawdle(3000);
            thread::scope(|scope| {
                scope.spawn(|| trigger.fire());
            });
            await_soon("a future that was triggered", future);
            if let Some(task) = task {
                await_soon("the task beside it", task);
            }
        }
        assert!(pool.join_timeout(LIMIT));
        pool.shutdown_join();
    }
}

// `Builder::prefer_idle`: an idle worker takes the task, and below `core_size` a thread is started
// only if there is none (`Shared::wake_or_start`).
#[test]
fn idle_workers_come_before_new_core_workers() {
    for (prefers_idle, started) in [(false, 4), (true, 1)] {
        let pool = Builder::new().core_size(4).max_size(4).prefer_idle(prefers_idle).build_pool();
        for _ in 0..20 {
            await_soon("the task ends", pool.evaluate(|| ()));
            wait_until("all workers are idle", || {
                pool.idle_worker_count() == pool.current_worker_count()
            });
        }
        assert_eq!(pool.stats().threads_started, started);
        // Two at a time need two workers, and no more.
        for _ in 0..20 {
            // The second is submitted while the first runs.
            let gate = block(&pool);
            await_soon("the second ends", pool.evaluate(|| ()));
            gate.open();
            wait_until("all workers are idle", || {
                pool.idle_worker_count() == pool.current_worker_count()
            });
        }
        assert!((started..=started.max(2)).contains(&pool.stats().threads_started));
    }
}

// With `Builder::prefer_idle` a task is left to a free worker, never to a busy one.
#[test]
fn tasks_that_find_no_idle_worker_start_core_workers() {
    for growth in [Growth::Eager, Growth::Stalled(HOUR)] {
        for _ in 0..50 {
            let builder = Builder::new().core_size(8).max_size(8).growth(growth);
            let pool = builder.prefer_idle(true).build_pool();
            // At first by starting threads, then by waking them, and while some spin.
            for count in [1, 2, 8, 3, 8] {
                await_all(submit_interdependent(&pool, count, || ()));
            }
            assert_eq!(pool.stats().peak_workers, 8);
        }
    }
}
