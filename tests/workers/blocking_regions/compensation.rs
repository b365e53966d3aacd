//! Compensation: another worker runs while one is blocked.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::blocking_regions::{assert_is_itself_again, one, running};
use crate::common::{
    Gate, HOUR, LIMIT, block, settled, submit_interdependent, submit_region, value,
    value_of_others, wait_until,
};
use elastipool::{Builder, Growth, JoinHandle, ThreadPool, blocking};

type Wait = fn(JoinHandle<usize>) -> usize;

fn nested(pool: &ThreadPool, depth: usize, wait: Wait) -> usize {
    if depth == 0 {
        return 0;
    }
    let own = pool.clone();
    wait(pool.evaluate(move || nested(&own, depth - 1, wait))) + 1
}

/// Each wait takes a worker, unless its worker runs what it waits for.
#[test]
fn ten_tasks_wait_for_each_other_on_a_pool_of_one() {
    let waits: [(Wait, usize); 2] = [(value_of_others, 10), (JoinHandle::await_complete, 1)];
    for (wait, workers) in waits {
        for core_size in [0, 1] {
            for growth in [Growth::Eager, Growth::Stalled(Duration::from_millis(1))] {
                let builder = Builder::new().core_size(core_size).max_size(1).keep_alive(HOUR);
                let pool = builder.growth(growth).build();
                let own = pool.clone();
                // Also the outermost waits in a task.
                assert_eq!(value(pool.evaluate(move || nested(&own, 9, wait))), 9);
                // The last one does not wait.
                let stats = pool.stats();
                assert_eq!((stats.peak_workers, stats.peak_blocked), (workers, workers - 1));
                assert_is_itself_again(&pool);
            }
        }
    }
}

#[test]
fn a_queued_task_runs_while_the_only_worker_is_in_a_region() {
    let pool = one();
    let (enters, sent) = (Gate::new(), Gate::new());
    let (passes, receives) = (Arc::clone(&enters), Arc::clone(&sent));
    let first = pool.evaluate(move || {
        passes.pass();
        blocking(|| receives.pass());
    });
    enters.wait_for(1);
    let second = pool.evaluate(move || sent.open());
    assert_eq!(pool.queued_count(), 1);
    enters.open();
    value(second);
    value(first);
    assert_is_itself_again(&pool);
}

#[test]
fn a_task_that_comes_later_runs_while_the_only_worker_is_in_a_region() {
    let pool = one();
    let (first, gate) = submit_region(&pool);
    assert_eq!(pool.stats().threads_started, 1);
    for number in 0..5 {
        assert_eq!(value(pool.evaluate(move || number)), number);
    }
    assert!(!first.is_finished());
    // One is enough for all of them.
    assert_eq!(pool.stats().threads_started, 2);
    gate.open();
    value(first);
    assert_is_itself_again(&pool);
}

/// As many workers as are in regions may be started in addition, all at the same time.
#[test]
fn max_size_tasks_run_beside_those_in_regions() {
    let pool = ThreadPool::new(1, 3, HOUR);
    let regions: Vec<_> = (0..5).map(|_| submit_region(&pool)).collect();
    submit_interdependent(&pool, 3, || ()).into_iter().for_each(value);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.workers, stats.peak_workers), (5, 8, 8));
    for (task, gate) in regions {
        gate.open();
        value(task);
    }
    assert_is_itself_again(&pool);
}

#[test]
fn a_wait_with_a_limit_is_a_region() {
    let pool = one();
    let (gate, own) = (Gate::new(), pool.clone());
    let opens = Arc::clone(&gate);
    let task = pool.evaluate(move || {
        let passes = Arc::clone(&opens);
        let handle = own.evaluate(move || {
            passes.pass();
            7
        });
        // It has begun, on another worker, but it does not end in time.
        let mut handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
        let inside = futures_executor::enter().unwrap();
        while opens.arrived() == 0 {
            handle = handle.await_complete_timeout(Duration::from_millis(1)).unwrap_err();
        }
        drop(inside);
        assert_eq!(own.stats().blocked, 0);
        opens.open();
        handle.await_complete_timeout(LIMIT).unwrap().unwrap()
    });
    assert_eq!(value(task), 7);
    assert_is_itself_again(&pool);
}

#[test]
fn a_wait_for_a_task_of_another_pool_is_a_region() {
    let (pool, other) = (one(), one());
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = other.evaluate(move || {
        passes.pass();
        7
    });
    gate.wait_for(1);
    let waits = pool.evaluate(move || handle.await_complete());
    wait_until("it waits", || pool.stats().blocked == 1);
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    assert_eq!((pool.stats().blocked, other.stats().blocked), (1, 0));
    gate.open();
    assert_eq!(value(waits), 7);
    assert_is_itself_again(&pool);
    assert_eq!(other.stats().threads_started, 1);
}

/// Only such a wait of `complete` is a region: `law_04_bounded.rs` has the others.
#[test]
fn a_completion_that_waits_for_a_task_of_its_pool_is_in_a_region() {
    let pool = one();
    let own = pool.clone();
    let task = pool.complete(async move { own.evaluate(|| 7).await.unwrap() + 1 });
    assert_eq!(value(task), 8);

    // Not while it is polled.
    let (region, polls, own) = (Gate::new(), Gate::new(), pool.clone());
    let (passes, polled) = (Arc::clone(&region), Arc::clone(&polls));
    let task = pool.complete(async move {
        own.evaluate(move || blocking(|| passes.pass())).await.unwrap();
        let blocked = own.stats().blocked;
        polled.pass();
        blocked
    });
    region.wait_for(1);
    wait_until("both wait", || pool.stats().blocked == 2);
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    region.open();
    polls.wait_for(1);
    wait_until("the other task has ended", || running(&pool) == 1);
    assert_eq!(pool.stats().blocked, 0);
    polls.open();
    assert_eq!(value(task), 0);
    assert_is_itself_again(&pool);
}

/// It is run by a task of another pool, which knows nothing of what it waits for.
#[cfg(feature = "async")]
#[test]
fn a_future_that_was_given_back_is_in_a_region_only_while_it_waits() {
    let (pool, other) = (one(), one());
    let gate = block(&other);
    let (triggers, triggereds): (Vec<_>, Vec<_>) =
        [crate::common::triggered(), crate::common::triggered()].into_iter().unzip();
    let computed = [Gate::new(), Gate::new()];
    let computes = computed.clone();
    other.spawn(async move {
        for (triggered, gate) in triggereds.into_iter().zip(computes) {
            triggered.await;
            gate.pass();
        }
    });
    let task = other.shutdown_now().pop().unwrap();
    pool.execute(|| task.run());
    for (trigger, gate) in triggers.iter().zip(&computed) {
        wait_until("it waits", || pool.stats().blocked == 1);
        assert_eq!(value(pool.evaluate(|| 7)), 7);
        trigger.fire();
        gate.wait_for(1);
        assert_eq!(pool.stats().blocked, 0);
        wait_until("it runs alone", || running(&pool) == 1);
        gate.open();
    }
    assert_is_itself_again(&pool);
    gate.open();
    assert!(other.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn a_spawned_future_that_blocks_is_in_a_region() {
    let pool = one();
    let own = pool.clone();
    let task = pool.spawn_await(async move { nested(&own, 3, value_of_others) });
    assert_eq!(value(task), 3);
    assert_eq!(pool.stats().peak_blocked, 3);
    // A woken future runs beside a region, too.
    let (trigger, triggered) = crate::common::triggered();
    let future = pool.spawn_await(triggered);
    wait_until("it is pending", || trigger.polls() == 1);
    let (region, gate) = submit_region(&pool);
    trigger.fire();
    value(future);
    gate.open();
    value(region);
    assert_is_itself_again(&pool);
}

/// Wherever a worker may wait: in a destructor of a task's, in a panic handler.
#[test]
fn destructors_of_a_task_may_wait() {
    struct Waits(ThreadPool, Arc<Gate>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.1.open();
            value_of_others(self.0.evaluate(|| ()));
        }
    }
    for capacity in [0, 4] {
        let own = Arc::new(OnceLock::<ThreadPool>::new());
        let (place, handled) = (Arc::clone(&own), Gate::new());
        let handles = Arc::clone(&handled);
        let builder = Builder::new().core_size(1).max_size(1).queue_capacity(capacity);
        let pool = builder
            .panic_handler(move |_| {
                value_of_others(place.get().unwrap().evaluate(|| ()));
                handles.open();
            })
            .build();
        own.set(pool.clone()).unwrap();
        let waits = Waits(pool.clone(), Gate::new());
        value(pool.evaluate(move || drop(waits)));
        pool.execute(|| panic!("contained"));
        handled.pass();
        let gate = block(&pool);
        if capacity > 0 {
            let dropped = Gate::new();
            let waits = Waits(pool.clone(), Arc::clone(&dropped));
            let cancelled = pool.evaluate(move || drop(waits));
            // The canceller drops the closure, and waits there for a task behind the gate.
            let canceller = thread::spawn(move || {
                cancelled.cancel();
                assert!(settled(cancelled).unwrap_err().is_cancelled());
            });
            dropped.pass();
            gate.open();
            canceller.join().unwrap();
        }
        gate.open();
        assert_is_itself_again(&pool);
    }
}
