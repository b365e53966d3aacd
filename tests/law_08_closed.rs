//! Law 8, closed means closed: a closed pool accepts nothing and hands the task back; everything
//! accepted before runs: nothing in between.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use common::{
    Drops, Gate, HOUR, LIMIT, block, closed, is_through_a_view, new_pool, or_view, panic_text,
    refused, value, wait_until,
};
use elastipool::{Builder, RejectReason, Rejected, ThreadPool};

/// A pool, and the number of its workers that have run their stop hook.
fn pool_and_stops(core_size: usize, max_size: usize) -> (ThreadPool, Arc<AtomicUsize>) {
    let stopped = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&stopped);
    let pool = Builder::new()
        .core_size(core_size)
        .max_size(max_size)
        .keep_alive(HOUR)
        .on_worker_stop(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
        })
        .build();
    (pool, stopped)
}

/// The same, or a view of it. The ends of threads are not a view's.
fn pool_or_view_and_stops(core_size: usize, max_size: usize) -> (ThreadPool, Arc<AtomicUsize>) {
    let (pool, stopped) = pool_and_stops(core_size, max_size);
    (or_view(pool), stopped)
}

#[track_caller]
fn comes_back<F, H>(result: Result<H, Rejected<F>>) -> F {
    let rejected = refused(result, RejectReason::Closed);
    assert_eq!(rejected.to_string(), format!("the task was not accepted: {}", closed()));
    rejected.into_task()
}

// ----- after the close -----

#[test]
fn a_closed_pool_hands_tasks_back() {
    // One that was used and one that was not.
    for used in [false, true] {
        let pool = new_pool(1, 2, HOUR);
        if used {
            assert_eq!(value(pool.evaluate(|| 1)), 1);
            assert!(pool.join_timeout(LIMIT));
        }
        assert!(!pool.is_closed());
        let clone = pool.clone();
        pool.close();
        assert!(pool.is_closed() && clone.is_closed(), "closed for all handles");

        let drops = Drops::default();
        let guard = drops.issue();
        let task = comes_back(pool.try_execute(move || drop(guard)));
        let task = comes_back(clone.try_execute(task));
        let task = comes_back(pool.try_evaluate(task));
        assert_eq!(drops.count(), 0, "untouched");
        task();
        assert_eq!(drops.count(), 1);
        let future = comes_back(pool.try_complete(async { 7 }));
        assert_eq!(futures_executor::block_on(future), 7);

        let stats = pool.stats();
        let counts = (stats.rejected, stats.in_flight(), stats.completed);
        assert_eq!(counts, (4, 0, usize::from(used)));
        // The pool of a closed view is open.
        if !is_through_a_view() {
            assert_eq!(pool.start_core_threads(), 0);
            assert_eq!(pool.stats().threads_started, usize::from(used));
        }
    }
}

#[cfg(feature = "async")]
#[test]
fn a_closed_pool_hands_futures_back() {
    let pool = new_pool(1, 2, HOUR);
    pool.close();
    let future = comes_back(pool.try_spawn(async {}));
    let future = comes_back(pool.try_spawn_await(future));
    futures_executor::block_on(future);
    let text = panic_text(|| pool.spawn(async {}));
    assert!(text.contains(closed()) && text.contains("try_spawn"), "{text}");
    assert!(pool.spawn_await(async { 1 }).try_await_complete().unwrap_err().is_cancelled());
    assert_eq!((pool.stats().rejected, pool.stats().in_flight()), (4, 0));
}

#[test]
fn what_cannot_hand_back_says_so() {
    let pool = new_pool(1, 2, HOUR);
    pool.close();
    let drops = Drops::default();
    let guard = drops.issue();
    let text = panic_text(|| pool.execute(move || drop(guard)));
    assert!(text.contains(closed()) && text.contains("try_execute"), "{text}");
    assert_eq!(drops.count(), 1);
    assert!(pool.evaluate(|| 1).try_await_complete().unwrap_err().is_cancelled());
    assert!(pool.complete(async { 1 }).try_await_complete().unwrap_err().is_cancelled());
}

#[test]
fn closing_a_pool_twice_is_closing_it_once() {
    let (pool, stopped) = pool_and_stops(2, 2);
    assert_eq!(pool.start_core_threads(), 2);
    let gate = block(&pool);
    pool.close();
    pool.clone().close();
    assert!(pool.is_closed());
    gate.open();
    let looker = pool.clone();
    assert!(pool.shutdown_join_timeout(LIMIT));
    looker.close();
    assert!(looker.is_closed());
    assert_eq!(stopped.load(Ordering::SeqCst), 2);
    assert!(looker.shutdown_join_timeout(LIMIT));
}

#[test]
fn closing_ends_idle_workers() {
    let (pool, stopped) = pool_and_stops(4, 4);
    assert_eq!(pool.start_core_threads(), 4);
    wait_until("all are idle", || pool.idle_worker_count() == 4);
    pool.close();
    wait_until("all have ended", || pool.current_worker_count() == 0);
    // Each is counted off before its stop hook.
    wait_until("all have stopped", || stopped.load(Ordering::SeqCst) == 4);
}

// ----- before the close -----

#[test]
fn a_closed_pool_runs_what_is_queued_behind_a_busy_worker() {
    let (pool, stopped) = pool_or_view_and_stops(1, 1);
    let gate = block(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let counts = Arc::clone(&ran);
        pool.execute(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
    }
    let evaluated = pool.evaluate(|| 1);
    let completed = pool.complete(async { 2 });
    pool.close();
    assert_eq!(pool.queued_count(), 102);
    let _task = comes_back(pool.try_execute(|| ()));
    gate.open();
    assert_eq!((value(evaluated), value(completed)), (1, 2));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!((ran.load(Ordering::Relaxed), stopped.load(Ordering::SeqCst)), (100, 1));
}

#[cfg(feature = "async")]
#[test]
fn pending_futures_finish_after_the_close() {
    let (pool, stopped) = pool_or_view_and_stops(2, 2);
    let (first, told_first) = common::triggered();
    let (second, told_second) = common::triggered();
    let (sender, receiver) = mpsc::channel();
    pool.spawn(async move {
        told_first.await;
        // Pending once more, in a pool that is closed.
        told_second.await;
        sender.send(1).unwrap();
    });
    let (third, told_third) = common::triggered();
    let handle = pool.spawn_await(async move {
        told_third.await;
        2
    });
    wait_until("they are pending", || first.polls() == 1 && third.polls() == 1);
    pool.close();
    assert!(!pool.join_timeout(std::time::Duration::ZERO));
    // The last handle: from here on only the futures keep the pool going.
    drop(pool);
    first.fire();
    wait_until("it is pending again", || second.polls() == 1);
    assert_eq!(stopped.load(Ordering::SeqCst), 0, "there is still something to do");
    second.fire();
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(1));
    third.fire();
    assert_eq!(value(handle), 2);
    wait_until("the workers have ended", || stopped.load(Ordering::SeqCst) == 2);
}

#[cfg(feature = "async")]
#[test]
fn a_pending_future_without_a_waker_ends_a_closed_pool() {
    let (pool, stopped) = pool_or_view_and_stops(1, 1);
    let (trigger, triggered) = common::triggered();
    let handle = pool.spawn_await(triggered);
    wait_until("it is pending", || trigger.polls() == 1);
    drop(pool);
    let dropper = thread::spawn(move || drop(trigger));
    dropper.join().unwrap();
    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
    wait_until("the worker has ended", || stopped.load(Ordering::SeqCst) == 1);
}

#[cfg(feature = "async")]
#[test]
fn a_future_that_is_cancelled_ends_a_closed_pool() {
    let (pool, stopped) = pool_or_view_and_stops(1, 1);
    let (trigger, triggered) = common::triggered();
    let handle = pool.spawn_await(triggered);
    wait_until("it is pending", || trigger.polls() == 1);
    drop(pool);
    handle.cancel();
    wait_until("the worker has ended", || stopped.load(Ordering::SeqCst) == 1);
}

/// The tasks can end only if all of them run at the same time: the pool has to grow for them,
/// closed or not.
#[test]
fn a_closed_pool_grows_for_what_is_queued() {
    const TASKS: usize = 4;
    let (pool, stopped) = pool_or_view_and_stops(1, TASKS);
    let (gate, passes) = (Gate::new(), Gate::new());
    // The first holds all others back until they are queued, in a pool that has one worker by then.
    let pass = Arc::clone(&passes);
    let met = Arc::clone(&gate);
    let (submit, submitted) = mpsc::channel::<()>();
    let own = pool.clone();
    pool.execute(move || {
        for _ in 1..TASKS {
            let met = Arc::clone(&met);
            own.execute(move || met.meet(TASKS));
        }
        own.close();
        drop(own);
        submit.send(()).unwrap();
        pass.pass();
        met.meet(TASKS);
    });
    drop(pool);
    submitted.recv_timeout(LIMIT).unwrap();
    passes.open();
    gate.wait_for(TASKS);
    wait_until("all workers have ended", || stopped.load(Ordering::SeqCst) == TASKS);
}

/// The same for work that comes after the close: futures that wait for each other, while they block
/// their workers.
#[cfg(feature = "async")]
#[test]
fn a_closed_pool_grows_for_what_is_woken() {
    const TASKS: usize = 4;
    let (pool, stopped) = pool_or_view_and_stops(1, TASKS);
    let gate = Gate::new();
    let mut triggers = Vec::new();
    for _ in 0..TASKS {
        let (trigger, triggered) = common::triggered();
        let gate = Arc::clone(&gate);
        pool.spawn(async move {
            triggered.await;
            gate.meet(TASKS);
        });
        // One after the other: one worker is enough for them so far.
        wait_until("it is pending", || trigger.polls() == 1);
        wait_until("the worker is idle", || pool.idle_worker_count() == 1);
        triggers.push(trigger);
    }
    assert_eq!(pool.current_worker_count(), 1);
    drop(pool);
    for trigger in &triggers {
        trigger.fire();
    }
    gate.wait_for(TASKS);
    wait_until("all workers have ended", || stopped.load(Ordering::SeqCst) == TASKS);
}

#[test]
fn a_task_of_a_closed_pool_cannot_submit() {
    let (pool, _) = pool_or_view_and_stops(1, 4);
    let gate = Gate::new();
    let (passes, own) = (Arc::clone(&gate), pool.clone());
    let handle = pool.evaluate(move || {
        passes.pass();
        let _task = comes_back(own.try_execute(|| ()));
        let _task = comes_back(own.try_evaluate(|| 1));
        let _task = comes_back(own.try_complete(async { 1 }));
        #[cfg(feature = "async")]
        let _task = comes_back(own.try_spawn(async {}));
        let text = panic_text(|| own.execute(|| ()));
        assert!(own.evaluate(|| 1).try_await_complete().unwrap_err().is_cancelled());
        text
    });
    gate.wait_for(1);
    pool.close();
    gate.open();
    let text = value(handle);
    assert!(text.contains(closed()), "{text}");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- the race -----

/// Submitters and a closer at the same time: a task is accepted if and only if it runs.
#[test]
fn a_closing_pool_runs_exactly_what_it_accepts() {
    const SUBMITTERS: usize = 3;
    const ROUNDS: usize = 150;
    for round in 0..ROUNDS {
        let pool = ThreadPool::new(round % 3, 3, HOUR);
        let drops = Drops::default();
        let ran = Arc::new(AtomicUsize::new(0));
        let start = Gate::new();
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let (pool, start) = (pool.clone(), Arc::clone(&start));
                let (ran, drops) = (Arc::clone(&ran), drops.clone());
                thread::spawn(move || {
                    let task = || {
                        let (ran, guard) = (Arc::clone(&ran), drops.issue());
                        move || {
                            ran.fetch_add(1, Ordering::Relaxed);
                            drop(guard);
                        }
                    };
                    let (mut accepted, mut returned) = (0, Vec::new());
                    start.meet(SUBMITTERS + 1);
                    while returned.len() < 3 {
                        match pool.try_execute(task()) {
                            Ok(()) => accepted += 1,
                            Err(rejected) => returned.push(rejected.into_task()),
                        }
                        match pool.try_evaluate(task()) {
                            Ok(_) => accepted += 1,
                            Err(rejected) => returned.push(rejected.into_task()),
                        }
                    }
                    (accepted, returned)
                })
            })
            .collect();
        start.meet(SUBMITTERS + 1);
        common::dawdle(5_000);
        pool.close();
        // While they still try: what was accepted is done when this returns, and nothing comes
        // after.
        assert!(pool.clone().shutdown_join_timeout(LIMIT));
        let ran_by_then = ran.load(Ordering::Relaxed);
        let (mut accepted, mut returned) = (0, Vec::new());
        for submitter in submitters {
            let (more, tasks) = submitter.join().unwrap();
            accepted += more;
            returned.extend(tasks);
        }
        assert_eq!(ran_by_then, accepted);
        assert_eq!(drops.count(), accepted);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.rejected), (accepted, returned.len()));
        let left = (stats.workers, stats.queued, stats.in_flight());
        assert_eq!(left, (0, 0, 0), "a thread was started after all had gone");
        // What came back is whole.
        let rejected = returned.len();
        returned.into_iter().for_each(|task| task());
        assert_eq!(ran.load(Ordering::Relaxed), accepted + rejected);
    }
}

/// The same for futures, which are still woken while the pool closes.
#[cfg(feature = "async")]
#[test]
fn a_closing_pool_finishes_the_futures_that_it_accepts() {
    const ROUNDS: usize = 100;
    for round in 0..ROUNDS {
        let pool = ThreadPool::new(round % 3, 3, HOUR);
        let finished = Arc::new(AtomicUsize::new(0));
        let start = Gate::new();
        let submitter = {
            let (pool, start, finished) = (pool.clone(), Arc::clone(&start), Arc::clone(&finished));
            thread::spawn(move || {
                start.meet(2);
                let mut triggers = Vec::new();
                loop {
                    let (trigger, triggered) = common::triggered();
                    let counts = Arc::clone(&finished);
                    let future = async move {
                        triggered.await;
                        counts.fetch_add(1, Ordering::Relaxed);
                    };
                    if pool.try_spawn(future).is_err() {
                        return triggers;
                    }
                    if triggers.len() % 2 == 0 {
                        trigger.fire();
                    }
                    triggers.push(trigger);
                }
            })
        };
        start.meet(2);
        common::dawdle(5_000);
        pool.close();
        let triggers = submitter.join().unwrap();
        for trigger in triggers.iter().skip(1).step_by(2) {
            trigger.fire();
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert_eq!(finished.load(Ordering::Relaxed), triggers.len());
    }
}

// ----- closing by dropping -----

#[test]
fn dropping_the_last_handle_closes_without_blocking() {
    let (pool, stopped) = pool_or_view_and_stops(2, 2);
    let gate = block(&pool);
    let (sender, receiver) = mpsc::channel();
    for number in 0..10 {
        let sender = sender.clone();
        pool.execute(move || sender.send(number).unwrap());
    }
    drop(pool.clone());
    assert!(!pool.is_closed(), "there is another handle");
    // If it blocked it would do so for as long as the gate is shut: for ever.
    drop(pool);
    gate.open();
    let mut numbers: Vec<_> =
        (0..10).map(|_| receiver.recv_timeout(LIMIT).expect("it was accepted")).collect();
    numbers.sort();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    wait_until("the workers have ended", || stopped.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_pool_that_was_never_used_can_be_dropped() {
    let (pool, stopped) = pool_or_view_and_stops(2, 2);
    drop(pool);
    assert_eq!(stopped.load(Ordering::SeqCst), 0);
}

#[test]
fn the_last_handle_is_dropped_by_a_task_of_its_own() {
    let (pool, stopped) = pool_or_view_and_stops(2, 2);
    assert_eq!(pool.start_core_threads(), 2);
    let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
    let (passes, own) = (Arc::clone(&gate), pool.clone());
    pool.execute(move || {
        passes.pass();
        let sends = sender.clone();
        own.execute(move || sends.send("submitted by the last handle").unwrap());
        drop(own);
        sender.send("still running").unwrap();
    });
    gate.wait_for(1);
    drop(pool);
    gate.open();
    let mut said = [(); 2].map(|()| receiver.recv_timeout(LIMIT).unwrap());
    said.sort_unstable();
    assert_eq!(said, ["still running", "submitted by the last handle"]);
    wait_until("the workers have ended", || stopped.load(Ordering::SeqCst) == 2);
}

/// Many pools, so that the drop meets every moment in the life of the last worker.
#[test]
fn dropping_right_after_submitting_loses_nothing() {
    const ROUNDS: usize = 500;
    let ran = Arc::new(AtomicUsize::new(0));
    for round in 0..ROUNDS {
        let pool = new_pool(0, 1 + round % 2, std::time::Duration::from_nanos(1));
        for _ in 0..2 {
            let counts = Arc::clone(&ran);
            pool.execute(move || {
                counts.fetch_add(1, Ordering::Relaxed);
            });
            common::dawdle(2_000);
        }
    }
    wait_until("all have run", || ran.load(Ordering::Relaxed) == 2 * ROUNDS);
}

/// A task closes its pool, then waits for what it has submitted before, which no other worker can
/// run.
#[test]
fn a_closed_pool_runs_what_its_task_waits_for() {
    let pool = new_pool(1, 1, HOUR);
    let own = pool.clone();
    let outer = pool.evaluate(move || {
        let before = own.evaluate(|| 1);
        own.close();
        let after = own.try_evaluate(|| 2).is_err();
        (before.await_complete(), after)
    });
    assert_eq!(value(outer), (1, true));
    pool.shutdown_join();
}
