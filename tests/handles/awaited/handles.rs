//! A thread that waits for a handle runs its task.

use std::cell::Cell;
use std::sync::{Arc, Mutex, mpsc};

use crate::awaited::{
    KINDS, ORDERS, Submit, assert_ended_on, at_work, builder, here, in_task, pool, tree,
};
use crate::common::{Gate, LIMIT, value, wait_until};
use elastipool::{JoinHandle, ThreadPool};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a part of a task, and passes it how many of these are on the stack.
fn nested<R>(f: impl FnOnce(usize) -> R) -> R {
    let depth = DEPTH.get() + 1;
    DEPTH.set(depth);
    let result = f(depth);
    DEPTH.set(depth - 1);
    result
}

#[test]
fn a_worker_runs_the_task_that_it_waits_for() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            nested(|outer| {
                let (place, inside) = (here(), own.clone());
                let handle = submit(
                    own,
                    Box::new(move || {
                        nested(|depth| {
                            assert_eq!(here(), place);
                            let stats = inside.stats();
                            assert_eq!(at_work(&stats), (2, 0, 0), "{stats:?}");
                            assert_eq!((stats.workers, stats.idle, stats.blocked), (1, 0, 0));
                            assert_eq!(inside.queued_count(), 0);
                            depth
                        })
                    }),
                );
                assert_eq!(at_work(&own.stats()), (1, 1, 0));
                assert_eq!(handle.await_complete(), outer + 1);
                let stats = own.stats();
                assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 1), "{stats:?}");
            });
        });
        assert_ended_on(1, &pool, 2);
        assert_eq!(pool.stats().completed, 2);
    }
}

/// Its entry is in the injector, where the worker does not find it.
#[test]
fn a_worker_runs_a_task_that_was_submitted_by_another_thread() {
    for submit in KINDS {
        let pool = pool(1);
        let (sender, receiver) = mpsc::channel::<JoinHandle<usize>>();
        let own = pool.clone();
        let first = pool.evaluate(move || {
            let queued = receiver.recv().unwrap();
            let result = queued.await_complete();
            let stats = own.stats();
            assert_eq!((at_work(&stats), stats.completed), ((1, 1, 0), 1), "{stats:?}");
            assert_eq!(own.queued_count(), 1);
            (here(), result)
        });
        let (places, inside) = (Arc::new(Mutex::new(Vec::new())), pool.clone());
        let noted = Arc::clone(&places);
        let queued = submit(
            &pool,
            Box::new(move || {
                noted.lock().unwrap().push(here());
                let stats = inside.stats();
                assert_eq!(at_work(&stats), (2, 1, 0), "{stats:?}");
                assert_eq!(inside.queued_count(), 1);
                7
            }),
        );
        // This one comes later, and is not awaited.
        pool.execute(|| ());
        sender.send(queued).unwrap();
        let (place, result) = value(first);
        assert_eq!((&*places.lock().unwrap(), result), (&vec![place], 7));
        assert_ended_on(1, &pool, 3);
    }
}

#[test]
fn recursive_waits_cost_no_thread() {
    fn descend(pool: &ThreadPool, submit: Submit, levels: usize) -> usize {
        nested(|depth| {
            if levels == 0 {
                let stats = pool.stats();
                assert_eq!(at_work(&stats), (depth, 0, 0), "{stats:?}");
                return depth;
            }
            let own = pool.clone();
            submit(pool, Box::new(move || descend(&own, submit, levels - 1))).await_complete()
        })
    }

    for submit in KINDS {
        let pool = builder(1).stack_size(16 << 20).build();
        let depth = in_task(&pool, move |own| descend(own, *submit, 200));
        assert_eq!(depth, 201);
        assert_ended_on(1, &pool, 201);
    }
}

#[test]
fn a_tree_of_tasks_costs_no_thread() {
    for submit in KINDS {
        for order in ORDERS {
            for (width, depth, count) in [(2, 9, 1023), (50, 1, 51), (10, 2, 111)] {
                let pool = pool(1);
                let own = pool.clone();
                let counted =
                    value(pool.evaluate(move || tree(&own, *submit, order, width, depth)));
                assert_eq!(counted, count, "{order:?}");
                assert_ended_on(1, &pool, count);
            }
        }
    }
}

/// A task that another worker runs is waited for in a region: at most one thread more for each
/// worker.
#[test]
fn a_tree_of_tasks_on_several_workers_ends() {
    for order in ORDERS {
        let pool = pool(4);
        let own = pool.clone();
        let counted = value(pool.evaluate(move || tree(&own, KINDS[0], order, 2, 11)));
        assert_eq!(counted, 4095);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.in_flight()), (4095, 0), "{stats:?}");
        assert_eq!(pool.queued_count(), 0);
    }
}

#[test]
fn a_task_that_another_worker_runs_is_waited_for() {
    let pool = pool(2);
    in_task(&pool, |own| {
        let (begun, inside) = (Gate::new(), own.clone());
        let begins = Arc::clone(&begun);
        let handle = own.evaluate(move || {
            begins.meet(2);
            wait_until("the other worker waits", || inside.stats().blocked == 1);
            here()
        });
        begun.meet(2);
        let place = handle.await_complete();
        assert!(place != here() && place.1.is_some(), "{place:?}");
    });
    assert_ended_on(2, &pool, 2);
}
