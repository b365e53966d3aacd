//! A thread that waits for a scope runs its tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::awaited::{
    ORDERS, Place, Runs, WHILE, assert_ended_on, assert_newest_first, at_work, builder, here,
    in_task, pool,
};
use crate::common::{Gate, HOUR, LIMIT, block, joined, panic_text, value, wait_until};
use elastipool::{Scope, ThreadPool, worker_index};

/// What `test` returns, which must not take for ever.
#[track_caller]
fn in_thread<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    joined(thread::spawn(test))
}

/// Submits this many tasks, which note where they run.
fn submit_noting<'scope>(scope: &'scope Scope<'scope, '_>, runs: &'scope Runs, count: usize) {
    for number in 0..count {
        scope.execute(move || runs.lock().unwrap().push((number, here())));
    }
}

#[test]
fn a_scope_outside_of_the_pool_runs_its_tasks_if_all_workers_are_busy() {
    in_thread(|| {
        let pool = pool(1);
        let (gate, runs) = (block(&pool), Runs::default());
        pool.scope(|scope| {
            submit_noting(scope, &runs, 5);
            scope.execute(|| {
                let stats = pool.stats();
                assert_eq!(at_work(&stats), (2, 5, 0), "{stats:?}");
                assert_eq!((stats.workers, stats.idle, stats.blocked), (1, 0, 0));
                assert_eq!((pool.queued_count(), worker_index()), (5, None));
            });
            assert_eq!(pool.queued_count(), 6);
        });
        assert_newest_first(runs, 5);
        let stats = pool.stats();
        assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 6), "{stats:?}");
        assert_eq!(pool.queued_count(), 0);
        gate.open();
        assert_ended_on(1, &pool, 7);
    });
}

#[test]
fn a_scope_in_a_worker_of_the_pool_runs_its_tasks() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let runs = Runs::default();
        own.scope(|scope| submit_noting(scope, &runs, 5));
        assert_newest_first(runs, 5);
        assert_eq!(at_work(&own.stats()), (1, 0, 0));
    });
    assert_ended_on(1, &pool, 6);
}

#[test]
fn a_scope_in_a_worker_of_another_pool_runs_its_tasks() {
    let (host, pool) = (pool(1), pool(1));
    let gate = block(&pool);
    let own = pool.clone();
    in_task(&host, move |host| {
        let (runs, place) = (Runs::default(), here());
        own.scope(|scope| {
            submit_noting(scope, &runs, 5);
            // A worker of the host is one meanwhile, and runs what it waits for there.
            scope.execute(|| assert_eq!(host.evaluate(here).await_complete(), place));
        });
        assert_newest_first(runs, 5);
        assert_eq!((place.1, host.stats().blocked), (Some(0), 0));
    });
    assert_ended_on(1, &host, 2);
    gate.open();
    assert_ended_on(1, &pool, 7);
}

#[test]
fn a_scope_in_a_start_hook_runs_its_tasks() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let (sender, receiver) = mpsc::channel();
    let takes = Arc::clone(&own);
    let pool = builder(1)
        .on_worker_start(move |_| {
            let Some(own) = takes.lock().unwrap().take() else { return };
            let runs = Runs::default();
            own.scope(|scope| submit_noting(scope, &runs, 5));
            assert_newest_first(runs, 5);
            sender.send(here()).unwrap();
        })
        .build();
    *own.lock().unwrap() = Some(pool.clone());
    let place = value(pool.evaluate(here));
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(place));
    assert_ended_on(1, &pool, 6);
}

/// A tree of scopes, as deep as this. Returns how many scopes there were.
fn scopes(pool: &ThreadPool, depth: usize, place: Place) -> usize {
    if depth == 0 {
        return 1;
    }
    let (mut left, mut right) = (0, 0);
    pool.scope(|scope| {
        for count in [&mut left, &mut right] {
            scope.execute(move || {
                assert_eq!(here(), place);
                *count = scopes(pool, depth - 1, place);
            });
        }
    });
    left + right + 1
}

#[test]
fn scopes_in_scopes_cost_no_thread() {
    let inside = pool(1);
    assert_eq!(in_task(&inside, |own| scopes(own, 12, here())), 8191);
    assert_ended_on(1, &inside, 8191);

    in_thread(|| {
        let pool = pool(1);
        let gate = block(&pool);
        assert_eq!(scopes(&pool, 12, here()), 8191);
        assert_eq!((pool.queued_count(), pool.stats().active), (0, 1));
        gate.open();
        assert_ended_on(1, &pool, 8191);
    });
}

#[test]
fn scopes_in_scopes_on_several_workers_end() {
    fn tree(pool: &ThreadPool, depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let (mut left, mut right) = (0, 0);
        pool.scope(|scope| {
            scope.execute(|| left = tree(pool, depth - 1));
            scope.execute(|| right = tree(pool, depth - 1));
        });
        left + right + 1
    }

    in_thread(|| {
        let pool = pool(4);
        for _ in 0..5 {
            assert_eq!(tree(&pool, 10), 2047);
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.queued_count()), (5 * 2046, 0));
    });
}

/// Law 3: its entry is gone, and the task runs.
#[test]
fn a_join_waits_for_a_task_that_a_scope_runs_outside_of_the_pool() {
    let pool = pool(1);
    let (busy, gate) = (block(&pool), Gate::new());
    let (own, passes) = (pool.clone(), Arc::clone(&gate));
    let opener = thread::spawn(move || {
        let mut ran_at = None;
        own.scope(|scope| {
            scope.execute(|| {
                passes.pass();
                ran_at = Some(here());
            });
        });
        ran_at == Some(here())
    });
    gate.wait_for(1);
    busy.open();
    wait_until("the worker has skipped the entry", || pool.idle_worker_count() == 1);
    assert!(!pool.join_timeout(WHILE));
    let stats = pool.stats();
    assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 1), "{stats:?}");
    // Neither does it end with its last task in the queue.
    pool.close();
    assert!(!pool.join_timeout(WHILE));
    gate.open();
    assert!(joined(opener));
    assert_ended_on(1, &pool, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// It runs a task of the pool, though it is none of its workers.
#[test]
fn a_task_that_a_scope_runs_outside_of_the_pool_cannot_join_it() {
    in_thread(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let text = panic_text(|| pool.scope(|scope| scope.execute(|| pool.join())));
        assert!(text.contains("`join`"), "{text}");
        let mut in_time = None;
        pool.scope(|scope| scope.execute(|| in_time = Some(pool.join_timeout(HOUR))));
        assert_eq!(in_time, Some(false));
        gate.open();
        // Afterwards it is an ordinary thread.
        pool.join();
        assert_ended_on(1, &pool, 3);
    });
}

#[test]
fn a_panic_of_a_task_that_a_scope_runs_is_resumed() {
    fn is_resumed(pool: &ThreadPool) {
        let runs = Runs::default();
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                submit_noting(scope, &runs, 2);
                scope.execute(|| panic!("on the stack of the scope"));
                submit_noting(scope, &runs, 1);
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"on the stack of the scope"));
        let places: Vec<_> = runs.into_inner().unwrap();
        assert_eq!(places, [0, 1, 0].map(|number| (number, here())));
    }

    let pool = pool(1);
    in_task(&pool, is_resumed);
    let gate = block(&pool);
    is_resumed(&pool);
    gate.open();
    assert_ended_on(1, &pool, 10);
    assert_eq!(pool.stats().panicked, 2);
}

#[test]
fn a_scoped_handle_that_a_worker_waits_for_runs_that_very_task() {
    let pool = pool(1);
    in_task(&pool, |own| {
        for order in ORDERS {
            let runs = Runs::default();
            let awaited = own.scope(|scope| {
                let note = |number| {
                    let runs = &runs;
                    scope.evaluate(move || {
                        runs.lock().unwrap().push((number, here()));
                        number
                    })
                };
                let mut handles: Vec<_> = (0..9).map(note).collect();
                order.arrange(&mut handles);
                let rest = handles.split_off(6);
                let awaited = handles.into_iter().map(|handle| handle.await_complete());
                let awaited = awaited.collect::<Vec<_>>();
                assert_eq!(at_work(&own.stats()), (1, 3, 0));
                drop(rest);
                awaited
            });
            let runs = runs.into_inner().unwrap();
            assert!(runs.iter().all(|(_, place)| *place == here()));
            let numbers: Vec<_> = runs.into_iter().map(|(number, _)| number).collect();
            assert_eq!((&numbers[..6], numbers.len()), (&awaited[..], 9));
        }
    });
    assert_ended_on(1, &pool, 28);
}

/// Only the end of the scope is the place where it runs tasks: a handle may be waited for anywhere.
#[test]
fn a_thread_outside_of_the_pool_waits_for_handles() {
    let pool = pool(1);
    let gate = block(&pool);
    let own = pool.clone();
    let waiter = thread::spawn(move || {
        let handle = own.evaluate(here).await_complete();
        let scoped = own.scope(|scope| scope.evaluate(here).await_complete());
        (here().0, handle, scoped)
    });
    wait_until("it is queued", || pool.queued_count() == 1);
    thread::sleep(WHILE);
    assert_eq!((pool.queued_count(), waiter.is_finished()), (1, false));
    gate.open();
    let (thread, handle, scoped) = joined(waiter);
    assert_eq!((handle.1, scoped.1), (Some(0), Some(0)));
    assert!(handle.0 != thread && scoped.0 != thread);
    assert_ended_on(1, &pool, 3);
}

/// A worker of another pool is a thread outside of this one.
#[test]
fn a_worker_of_another_pool_waits_for_handles_and_groups() {
    let (host, pool) = (pool(1), pool(1));
    let own = pool.clone();
    let (place, handle, grouped) = in_task(&host, move |_| {
        let gate = block(&own);
        let (sender, receiver) = mpsc::channel();
        let (handle, group) = (own.evaluate(here), own.group::<()>());
        group.execute(move || sender.send(here()).map_err(drop)).unwrap();
        thread::spawn(move || {
            thread::sleep(WHILE);
            gate.open();
        });
        group.wait().unwrap();
        (here(), handle.await_complete(), receiver.recv().unwrap())
    });
    assert!(handle == grouped && place != handle, "{place:?} {handle:?}");
    assert_ended_on(1, &host, 1);
    assert_ended_on(1, &pool, 3);
}
