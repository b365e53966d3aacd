//! Beside closures that keep all workers busy, a pool that measures has a place for ready futures of
//! any view. It takes nothing from the others' limits, reserves and pauses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::{Gate, HOUR, LIMIT, value, wait_until};
use elastipool::{Builder, Growth, JoinHandle, Priority, ThreadPool, blocking};

/// A pool of which one worker may run, beside what `max_size` leaves.
fn measured(max_size: usize) -> ThreadPool {
    let builder = Builder::new().core_size(0).max_size(max_size).keep_alive(HOUR);
    builder.growth(Growth::measured(1)).build()
}

/// A closure that computes until it is let go, and another one in the queue behind it.
struct Busy {
    pool: ThreadPool,
    stop: Arc<AtomicBool>,
    closures: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Returns as soon as the first one runs, which is of the view.
    fn begin(pool: &ThreadPool, view: &ThreadPool) -> Self {
        let mut busy = Busy { pool: pool.clone(), stop: Arc::default(), closures: Vec::new() };
        let begun = Arc::new(AtomicUsize::new(0));
        for pool in [view, pool] {
            let (begins, stop) = (Arc::clone(&begun), Arc::clone(&busy.stop));
            busy.closures.push(pool.evaluate(move || {
                begins.fetch_add(1, Ordering::SeqCst);
                let since = Instant::now();
                while !stop.load(Ordering::SeqCst) && since.elapsed() < 2 * LIMIT {
                    std::hint::spin_loop();
                }
            }));
            wait_until("one is busy", || begun.load(Ordering::SeqCst) == 1);
        }
        busy
    }

    #[track_caller]
    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.closures.into_iter().for_each(value);
        assert!(self.pool.join_timeout(LIMIT));
        self.pool.shutdown_join();
    }
}

/// Of whichever view, spawned or woken.
#[test]
fn it_serves_all_views() {
    let pool = measured(2);
    let [first, second] = [1, 2].map(|weight| pool.view().weight(weight).limit(2).build());
    let busy = Busy::begin(&pool, &first);
    for view in [&pool, &first, &second] {
        let (trigger, triggered) = crate::common::triggered();
        let waits = view.spawn_await(triggered);
        wait_until("it waits", || trigger.waker().is_some());
        trigger.fire();
        value(waits);
    }
    drop((first, second));
    busy.end();
}

/// With a handle or without, of whichever view.
#[test]
fn it_takes_no_closure() {
    let pool = measured(4);
    let view = pool.view().build();
    let busy = Busy::begin(&pool, &pool);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = || {
        let ran = Arc::clone(&ran);
        move || _ = ran.fetch_add(1, Ordering::SeqCst)
    };
    pool.execute(count());
    view.execute(count());
    let [closure, completion] = [view.evaluate(count()), view.complete(async {})];
    (0..20).for_each(|_| value(pool.spawn_await(async {})));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    busy.stop.store(true, Ordering::SeqCst);
    value(closure);
    value(completion);
    drop(view);
    busy.end();
}

#[test]
fn its_holder_counts_for_the_limit() {
    let pool = measured(4);
    let limited = pool.view().limit(1).build();
    let busy = Busy::begin(&pool, &limited);
    let waits = limited.spawn_await(async {});
    // It would have been polled before this one.
    value(pool.spawn_await(async {}));
    assert!(!waits.is_finished(), "a closure of its view runs");
    busy.stop.store(true, Ordering::SeqCst);
    value(waits);
    drop(limited);
    busy.end();
}

#[test]
fn the_limit_counts_its_holder() {
    let pool = measured(4);
    let limited = pool.view().limit(1).build();
    let busy = Busy::begin(&pool, &pool);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let polls = limited.spawn_await(async move { passes.pass() });
    gate.wait_for(1);
    let (ran, runs) = (Arc::new(AtomicBool::new(false)), limited.clone());
    let ends = Arc::clone(&ran);
    runs.execute(move || ends.store(true, Ordering::SeqCst));
    busy.stop.store(true, Ordering::SeqCst);
    value(pool.evaluate(|| ()));
    assert!(!ran.load(Ordering::SeqCst), "a future of its view is polled");
    gate.open();
    value(polls);
    drop((runs, limited));
    busy.end();
    assert!(ran.load(Ordering::SeqCst));
}

#[test]
fn it_serves_no_paused_view() {
    let pool = measured(4);
    let view = pool.view().build();
    let busy = Busy::begin(&pool, &pool);
    for (paused, other) in [(&*view, &pool), (&pool, &*view)] {
        paused.pause();
        let waits = paused.spawn_await(async {});
        value(other.spawn_await(async {}));
        assert!(!waits.is_finished());
        paused.resume();
        value(waits);
    }
    drop(view);
    busy.end();
}

/// Asleep in its poll, unseen by the pool, and then in a region.
#[test]
fn it_takes_no_worker_from_a_reserve() {
    for enters in [false, true] {
        let pool = measured(3);
        let urgent = pool.view().reserve(1).build();
        let busy = Busy::begin(&pool, &pool);
        let (asleep, gate) = (Gate::new(), Gate::new());
        let [sleeps, passes] = [&asleep, &gate].map(Arc::clone);
        let polls = pool.spawn_await(async move {
            if enters {
                blocking(|| sleeps.pass());
            }
            passes.pass();
        });
        if enters {
            asleep.wait_for(1);
            value(pool.spawn_await(async {}));
            value(urgent.evaluate(|| ()));
            asleep.open();
        }
        gate.wait_for(1);
        (0..20).for_each(|_| value(urgent.evaluate(|| ())));
        gate.open();
        value(polls);
        drop(urgent);
        busy.end();
    }
}

/// The closure and the reserve are all that `max_size` lets run.
#[test]
fn a_reserve_leaves_no_room_for_it() {
    let pool = measured(2);
    let urgent = pool.view().reserve(1).build();
    let busy = Busy::begin(&pool, &pool);
    let waits = pool.spawn_await(async {});
    (0..20).for_each(|_| value(urgent.evaluate(|| ())));
    assert!(!waits.is_finished());
    // One of its own view has the reserved worker.
    value(urgent.spawn_await(async {}));
    busy.stop.store(true, Ordering::SeqCst);
    value(waits);
    drop(urgent);
    busy.end();
}

/// The view is gone, or goes, while its future is polled there: the place is free after that.
#[test]
fn its_view_may_go() {
    let pool = measured(3);
    let (view, _other) = (pool.view().priority(Priority::High).build(), pool.view().build());
    let busy = Busy::begin(&pool, &pool);
    for _ in 0..50 {
        drop(pool.view().build().spawn_await(async {}));
        view.spawn(async {});
    }
    drop(view);
    value(pool.spawn_await(async {}));
    busy.end();
}

/// A worker of which the quota is used leaves it to its successor.
#[test]
fn its_holder_may_be_recycled() {
    let builder = Builder::new().core_size(0).max_size(3).keep_alive(HOUR).max_tasks_per_worker(1);
    let pool = builder.growth(Growth::measured(1)).build();
    let view = pool.view().build();
    let busy = Busy::begin(&pool, &pool);
    (0..20).for_each(|_| value(view.spawn_await(async {})));
    (0..20).for_each(|_| value(pool.spawn_await(async {})));
    drop(view);
    busy.end();
}

/// What runs there is waited for.
#[test]
fn a_poll_there_runs() {
    let pool = measured(3);
    let view = pool.view().build();
    let busy = Busy::begin(&pool, &view);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.pause();
    assert!(pool.join_running_timeout(LIMIT), "the closure of the default view is queued");
    pool.resume();
    pool.spawn(async move { passes.pass() });
    gate.wait_for(1);
    pool.pause();
    assert!(!pool.join_running_timeout(crate::common::millis(5)));
    gate.open();
    assert!(pool.join_running_timeout(LIMIT));
    pool.resume();
    drop(view);
    busy.end();
}
