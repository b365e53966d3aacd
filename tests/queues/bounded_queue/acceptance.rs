//! Which tasks a bounded queue accepts.

use std::sync::Arc;

use crate::bounded_queue::{assert_capacity, pool};
use crate::common::{Drops, Gate, HOUR, LIMIT, block, dawdle, refused, value};
use elastipool::{RejectReason, ThreadPool, blocking};

#[test]
fn try_forms_hand_back_the_untouched_task_when_the_queue_is_full() {
    let (pool, drops) = (pool(1, 0), Drops::default());
    let gate = block(&pool);

    let guard = drops.issue();
    let rejected = refused(pool.try_execute(move || drop(guard)), RejectReason::Full);
    assert_eq!(rejected.to_string(), "the task was not accepted: the queue is full");
    assert_eq!(drops.count(), 0);
    rejected.into_task()();
    assert_eq!(drops.count(), 1);

    let guard = drops.issue();
    let task = move || {
        drop(guard);
        7
    };
    let task = refused(pool.try_evaluate(task), RejectReason::Full).into_task();
    assert_eq!((drops.count(), task(), drops.count()), (1, 7, 2));

    let guard = drops.issue();
    let future = async move {
        drop(guard);
        7
    };
    let future = refused(pool.try_complete(future), RejectReason::Full).into_task();
    assert_eq!(drops.count(), 2);
    assert_eq!((futures_executor::block_on(future), drops.count()), (7, 3));

    #[cfg(feature = "async")]
    {
        let guard = drops.issue();
        let future = async move { drop(guard) };
        let future = refused(pool.try_spawn(future), RejectReason::Full).into_task();
        let future = refused(pool.try_spawn_await(future), RejectReason::Full).into_task();
        assert_eq!(drops.count(), 3);
        futures_executor::block_on(future);
        assert_eq!(drops.count(), 4);
    }
    let (stats, expected) = (pool.stats(), if cfg!(feature = "async") { 5 } else { 3 });
    assert_eq!((stats.rejected, stats.in_flight(), stats.threads_refused), (expected, 1, 0));
    gate.open();
    assert_capacity(&pool, 0);
}

/// Blocking tasks that are accepted in a row.
fn accepted_in_a_row(pool: &ThreadPool) -> usize {
    let gate = Gate::new();
    let mut accepted = 0;
    loop {
        let passes = Arc::clone(&gate);
        match pool.try_execute(move || passes.pass()) {
            Ok(()) => accepted += 1,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Full);
                break;
            }
        }
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(gate.arrived(), accepted);
    accepted
}

/// Whether or not the first have been started when the last ones come, and by new workers or idle
/// ones.
#[test]
fn without_capacity_as_many_tasks_as_workers_are_accepted_in_a_row() {
    for (core_size, max_size) in [(0, 1), (1, 1), (0, 2), (1, 3), (4, 4)] {
        for _ in 0..20 {
            let builder = ThreadPool::builder().core_size(core_size).max_size(max_size);
            let pool = builder.keep_alive(HOUR).queue_capacity(0).build();
            for _ in 0..5 {
                assert_eq!(accepted_in_a_row(&pool), max_size);
            }
        }
    }
}

/// As above.
#[test]
fn as_many_tasks_as_workers_and_the_capacity_are_accepted_in_a_row() {
    for (core_size, max_size, capacity) in [(0, 1, 1), (1, 1, 3), (1, 3, 2), (2, 2, 5)] {
        for _ in 0..20 {
            let builder = ThreadPool::builder().core_size(core_size).max_size(max_size);
            let pool = builder.keep_alive(HOUR).queue_capacity(capacity).build();
            for _ in 0..5 {
                assert_eq!(accepted_in_a_row(&pool), max_size + capacity);
            }
        }
    }
}

/// As above.
#[test]
fn workers_in_their_start_hooks_hold_no_permit() {
    for max_size in [2, 4] {
        let (hooks, builder) = (Gate::new(), ThreadPool::builder().core_size(0));
        let passes = Arc::clone(&hooks);
        let builder = builder.max_size(max_size).queue_capacity(0);
        let pool = builder.on_worker_start(move |_| passes.pass()).build();
        for number in 1..=max_size {
            pool.try_execute(|| ()).expect("a worker may be started");
            hooks.wait_for(number);
        }
        refused(pool.try_execute(|| ()), RejectReason::Full);
        hooks.open();
        assert_capacity(&pool, 0);
    }
}

#[test]
fn with_all_workers_busy_as_many_tasks_as_the_capacity_are_accepted() {
    for (max_size, capacity) in [(1, 0), (1, 1), (3, 0), (3, 2), (2, 5)] {
        let pool = pool(max_size, capacity);
        for _ in 0..3 {
            assert_capacity(&pool, capacity);
        }
        assert_eq!(pool.stats().rejected, 3);
    }
}

/// However a task ends, it releases its permit once.
#[test]
fn every_end_of_a_task_releases_its_permit() {
    for capacity in [0, 2] {
        let pool = pool(2, capacity);
        for _ in 0..100 {
            let own = pool.clone();
            pool.execute(|| panic!("contained"));
            pool.evaluate(|| ()).cancel();
            drop(pool.complete(async { dawdle(500) }));
            pool.execute(|| blocking(|| dawdle(500)));
            pool.execute(move || value(own.evaluate(|| ())));
            #[cfg(feature = "async")]
            {
                let (trigger, triggered) = crate::common::triggered();
                pool.spawn(triggered);
                let unpolled = pool.spawn_await(std::future::pending::<()>());
                dawdle(500);
                unpolled.cancel();
                trigger.fire();
                let (_, never) = crate::common::triggered();
                pool.spawn(never);
            }
        }
        assert_capacity(&pool, capacity);
    }
}
