//! `join_running` and its other forms: they return when nothing of a view runs, exactly.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::waits::{resolved, waiting};
use common::{Gate, HOUR, LIMIT, block, joined, panic_text, wait_until};
use elastipool::{Builder, ThreadPool, blocking};

/// Handles of the default view of a pool that has no other one, and of a view of another pool.
fn handles() -> [ThreadPool; 2] {
    let [pool, other] = [(); 2].map(|()| ThreadPool::new(2, 2, HOUR));
    [pool, ThreadPool::clone(&other.view().build())]
}

/// Also in a pool that has never had a view, where workers take tasks without the policy of the
/// views until then.
#[test]
fn nothing_runs_or_starts_after_a_pause_and_it() {
    for round in 0..100 {
        let pool = ThreadPool::new(2, 2, HOUR);
        let pool = if round % 2 == 0 { pool } else { ThreadPool::clone(&pool.view().build()) };
        let [begun, ended] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        // Workers that look for the next task all the time.
        let is_over = Arc::new(AtomicBool::new(false));
        let feeder = {
            let (pool, is_over) = (pool.clone(), Arc::clone(&is_over));
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
                    pool.execute(move || {
                        begun.fetch_add(1, Ordering::SeqCst);
                        common::dawdle(20);
                        ended.fetch_add(1, Ordering::SeqCst);
                    });
                    common::dawdle(10);
                }
            })
        };
        wait_until("tasks run", || ended.load(Ordering::SeqCst) > 5);
        pool.pause();
        assert!(pool.join_running_timeout(LIMIT), "still in round {round}");
        let ended_then = ended.load(Ordering::SeqCst);
        // Time for a worker to begin one, which must not happen.
        common::dawdle(200);
        assert_eq!(begun.load(Ordering::SeqCst), ended_then, "in round {round}");
        is_over.store(true, Ordering::Relaxed);
        pool.resume();
        joined(feeder);
        pool.join();
        pool.shutdown_join();
    }
}

/// Starts something of the handle's view that runs until the gate is open.
type Start = fn(&ThreadPool, Arc<Gate>);

/// What a pause holds, by name.
const HELD: [(&str, Start); 4] = [
    ("closure", |pool, gate| pool.execute(move || gate.pass())),
    ("region", |pool, gate| pool.execute(move || blocking(|| gate.pass()))),
    ("member", |pool, gate| {
        let member = move || {
            gate.pass();
            Ok(())
        };
        pool.group::<()>().execute(member).unwrap();
    }),
    ("completion", |pool, gate| {
        drop(pool.complete(async move { gate.pass() }));
    }),
];

/// What a pause does not hold.
const FREE: [(&str, Start); 4] = [
    ("end of a scope", |pool, gate| {
        let pool = pool.clone();
        thread::spawn(move || pool.scope(|scope| scope.execute(|| gate.pass())));
    }),
    ("claimed task", |pool, gate| {
        let inner = pool.clone();
        let waits = move || inner.evaluate(move || gate.pass()).await_complete();
        pool.view().build().execute(waits);
    }),
    ("claimed task of a scope", |pool, gate| {
        let inner = pool.clone();
        let waits = move || inner.scope(|scope| scope.execute(|| gate.pass()));
        pool.view().build().execute(waits);
    }),
    ("destructor of a cancelled task", |pool, gate| {
        struct Passes(Arc<Gate>);

        impl Drop for Passes {
            fn drop(&mut self) {
                self.0.pass();
            }
        }

        let passes = Passes(gate);
        let handle = pool.evaluate(move || drop(passes));
        thread::spawn(move || handle.cancel());
    }),
];

#[track_caller]
fn check(pool: &ThreadPool, start: Start, is_free: bool, name: &str) {
    let gate = Gate::new();
    if is_free {
        pool.pause();
        assert!(pool.join_running_timeout(LIMIT), "nothing runs before a {name}");
    }
    start(pool, Arc::clone(&gate));
    gate.wait_for(1);
    pool.pause();
    assert!(!pool.join_running_timeout(Duration::from_millis(1)), "a {name} runs");
    let ended = thread::spawn({
        let (pool, gate) = (pool.clone(), Arc::clone(&gate));
        move || {
            pool.join_running();
            gate.is_open()
        }
    });
    let mut awaited = waiting(pool.running_ended());
    gate.open();
    assert!(joined(ended), "a {name} has not ended");
    resolved(&mut awaited);
    drop(awaited);
    pool.resume();
    pool.join();
}

#[test]
fn what_runs_is_waited_for() {
    for (name, start) in HELD {
        for pool in handles() {
            check(&pool, start, false, name);
        }
    }
    for (name, start) in FREE {
        for pool in handles() {
            check(&pool, start, true, name);
        }
    }
}

#[cfg(feature = "async")]
#[test]
fn a_future_runs_while_it_is_polled() {
    for pool in handles() {
        check(&pool, |pool, gate| pool.spawn(async move { gate.pass() }), false, "poll");
        let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
        let handle = pool.spawn_await(receiver);
        wait_until("it is pending", || pool.stats().pending == 1);
        pool.pause();
        pool.join_running();
        sender.send(7).unwrap();
        pool.join_running();
        assert!(!handle.is_finished(), "it is queued");
        pool.resume();
        assert_eq!(handle.await_complete(), Ok(7));
        pool.shutdown_join();
    }
}

/// A handle of the pool stands for the default view.
#[test]
fn tasks_of_other_views_are_not_waited_for() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let [view, other] = [pool.view().build(), pool.view().build()];
    let gate = block(&view);
    for still in [&pool, &*other] {
        still.join_running();
        still.pause();
        still.join_running();
    }
    assert!(!view.join_running_timeout(Duration::from_millis(1)));
    gate.open();
    view.join_running();
    let gate = block(&view);
    pool.resume();
    let default = block(&pool);
    gate.open();
    view.join_running();
    assert!(!pool.join_running_timeout(Duration::from_millis(1)));
    default.open();
    pool.join_running();
    pool.shutdown_join();
}

/// Those of a pool that has never had a view have not passed its policy.
#[test]
fn idle_workers_do_not_run() {
    type Look = fn(&ThreadPool);
    let looks: [Look; 2] = [|_| (), ThreadPool::pause];
    for look in looks {
        let pool = ThreadPool::new(3, 3, HOUR);
        pool.start_core_threads();
        wait_until("they rest", || pool.idle_worker_count() == 3);
        look(&pool);
        assert!(pool.join_running_timeout(LIMIT));
        pool.resume();
        pool.shutdown_join();
    }
}

/// Neither do workers that have left, or are in a hook.
#[test]
fn workers_without_a_task_do_not_run() {
    let pool = ThreadPool::new(0, 2, Duration::ZERO);
    pool.execute(|| ());
    wait_until("the worker has left", || pool.current_worker_count() == 0);
    assert!(pool.join_running_timeout(LIMIT));
    pool.shutdown_join();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let pool = Builder::new().max_size(1).on_worker_start(move |_| passes.pass()).build();
    pool.execute(|| ());
    gate.wait_for(1);
    assert!(pool.join_running_timeout(LIMIT));
    pool.pause();
    gate.open();
    assert!(pool.join_running_timeout(LIMIT));
    pool.shutdown_join();
}

/// The hook that names its successor waits.
#[test]
fn a_worker_that_is_recycled_does_not_run() {
    let (gate, is_first) = (Gate::new(), AtomicBool::new(true));
    let passes = Arc::clone(&gate);
    let name = move |index| {
        if !is_first.swap(false, Ordering::Relaxed) {
            passes.pass();
        }
        format!("worker {index}")
    };
    let pool = Builder::new().max_size(1).max_tasks_per_worker(1).thread_name(name).build();
    let first = block(&pool);
    pool.execute(|| ());
    first.open();
    gate.wait_for(1);
    pool.pause();
    assert!(pool.join_running_timeout(LIMIT));
    gate.open();
    pool.resume();
    assert!(pool.join_timeout(LIMIT));
    assert!(pool.join_running_timeout(LIMIT));
    pool.shutdown_join();
}

/// It would wait for itself.
#[test]
fn a_task_may_not_wait_for_it() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let view = pool.view().build();
    for (waits_in, waits_for) in [(&pool, &pool), (&*view, &pool), (&pool, &*view)] {
        let inner = waits_for.clone();
        let texts = waits_in.evaluate(move || {
            assert!(!inner.join_running_timeout(HOUR));
            let blocking = panic_text(|| inner.join_running());
            (blocking, panic_text(|| resolved(inner.running_ended())))
        });
        let (blocking, awaited) = texts.await_complete();
        assert!(blocking.contains("`join_running` was called by one of the tasks"), "{blocking}");
        assert!(awaited.contains("`running_ended` was called by one of the tasks"), "{awaited}");
    }
    pool.shutdown_join();
}

#[test]
fn a_wait_that_is_given_up_leaves_nothing_behind() {
    for pool in handles() {
        let gate = block(&pool);
        for _ in 0..10 {
            drop(waiting(pool.running_ended()));
            assert!(!pool.join_running_timeout(Duration::ZERO));
        }
        gate.open();
        pool.join_running();
        pool.shutdown_join();
    }
}

#[test]
fn what_runs_in_a_closed_pool_ends() {
    for pool in handles() {
        let gate = block(&pool);
        pool.close();
        assert!(!pool.join_running_timeout(Duration::from_millis(1)));
        gate.open();
        pool.join_running();
        drop(pool.shutdown_now());
        pool.join_running();
        pool.shutdown_join();
    }
}
