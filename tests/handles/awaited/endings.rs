//! How a task ends that its waiter runs: cancelled, with a panic, in a worker that recycles, at a
//! shutdown.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::awaited::{
    KINDS, Order, Place, Submit, WHILE, assert_ended_on, at_work, builder, here, in_task, pool,
    text,
};
use crate::common::{Drops, Gate, LIMIT, settled, value, wait_until};
use elastipool::{JoinError, JoinHandle, Task, ThreadPool};

#[test]
fn a_task_that_was_cancelled_before_the_wait_is_not_run() {
    for submit in KINDS {
        let pool = pool(1);
        let (drops, ran) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
        let (guard, counted, seen) = (drops.issue(), Arc::clone(&ran), drops.clone());
        in_task(&pool, move |own| {
            let handle = submit(
                own,
                Box::new(move || {
                    drop(guard);
                    counted.fetch_add(1, Ordering::SeqCst)
                }),
            );
            handle.cancel();
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
            assert_eq!(seen.count(), 1, "its canceller drops it");
        });
        assert_ended_on(1, &pool, 2);
        assert_eq!((drops.count(), ran.load(Ordering::SeqCst)), (1, 0));
        assert_eq!(pool.stats().cancelled, 1);
    }
}

#[test]
fn a_panic_of_an_awaited_task_reaches_its_handle() {
    for submit in KINDS {
        let handled = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&handled);
        let handler = move |_| _ = counts.fetch_add(1, Ordering::SeqCst);
        let pool = builder(1).panic_handler(handler).build();
        let outer = pool.clone();
        let error = settled(pool.evaluate(move || {
            let inner = outer.clone();
            let middle = submit(
                &outer,
                Box::new(move || {
                    let innermost = submit(&inner, Box::new(|| panic!("innermost")));
                    assert_eq!(text(innermost.try_await_complete().unwrap_err()), "innermost");
                    submit(&inner, Box::new(|| panic!("inner"))).await_complete()
                }),
            );
            middle.await_complete()
        }));
        assert_eq!(text(error.unwrap_err()), "inner");
        let place = in_task(&pool, |own| {
            let here = here();
            assert_eq!(own.evaluate(self::here).await_complete(), here);
            here
        });
        assert_eq!(place.1, Some(0));
        assert_ended_on(1, &pool, 6);
        let stats = pool.stats();
        assert_eq!((stats.panicked, stats.completed), (4, 2));
        assert_eq!(handled.load(Ordering::SeqCst), 0);
    }
}

/// Of a scope's two panics one is for the handler; here that runs where the task has run, on the
/// thread that waits.
#[test]
fn a_panic_that_no_handle_receives_reaches_the_handler() {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&handled);
    let pool = builder(1)
        .panic_handler(move |payload| {
            let text = *payload.downcast_ref::<&str>().unwrap();
            notes.lock().unwrap().push((text, here()));
        })
        .build();
    let place = in_task(&pool, |own| {
        let result = catch_unwind(AssertUnwindSafe(|| {
            own.scope(|scope| {
                drop(scope.evaluate(|| panic!("later")));
                scope.execute(|| panic!("first"));
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"first"));
        here()
    });
    assert_ended_on(1, &pool, 3);
    assert_eq!(*handled.lock().unwrap(), [("later", place)]);
}

/// It is recycled where it has no task: all of those that it has run on top of each other come to
/// their end first.
#[test]
fn awaited_tasks_count_for_the_task_quota() {
    let pool = builder(1).max_tasks_per_worker(3).build();
    let threads = in_task(&pool, |own| {
        let outer = thread::current().id();
        let mut threads = vec![outer];
        threads.extend((0..5).map(|_| own.evaluate(|| thread::current().id()).await_complete()));
        threads
    });
    assert!(threads.iter().all(|thread| *thread == threads[0]), "{threads:?}");
    let next = value(pool.evaluate(|| thread::current().id()));
    assert_ne!(next, threads[0], "the quota is used up");
    let [with_one, after] = [0, 1].map(|_| {
        in_task(&pool, |own| {
            assert_eq!(own.evaluate(here).await_complete(), here());
            thread::current().id()
        })
    });
    assert_eq!(with_one, next, "one of three");
    assert_ne!(after, next, "three of three");
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().threads_started, 3);
}

/// Entries that are skipped count for no quota.
#[test]
fn skipped_entries_do_not_count_for_the_task_quota() {
    let pool = builder(1).queue_capacity(20).max_tasks_per_worker(12).build();
    let thread = in_task(&pool, |own| {
        let handles: Vec<_> = (0..5).map(|number| own.evaluate(move || number)).collect();
        // The entries are not the newest ones, so they stay.
        own.execute(|| ());
        for (number, handle) in handles.into_iter().enumerate().rev() {
            assert_eq!(handle.await_complete(), number);
        }
        thread::current().id()
    });
    assert!(pool.join_timeout(LIMIT));
    for _ in 0..5 {
        assert_eq!(value(pool.evaluate(|| thread::current().id())), thread);
    }
    assert_ne!(value(pool.evaluate(|| thread::current().id())), thread);
}

/// Has a worker wait for a task that `shutdown_now` has given back before.
fn await_what_was_given_back(
    submit: Submit,
    then: impl FnOnce(Task),
) -> (Place, Result<usize, JoinError>, Option<Place>, ThreadPool) {
    let pool = pool(1);
    let (ready, given_back) = (Gate::new(), Gate::new());
    let (arrives, passes) = (Arc::clone(&ready), Arc::clone(&given_back));
    let ran_at = Arc::new(Mutex::new(None));
    let (own, notes) = (pool.clone(), Arc::clone(&ran_at));
    let waiter = pool.evaluate(move || {
        let task = move || {
            *notes.lock().unwrap() = Some(here());
            7
        };
        let handle = submit(&own, Box::new(task));
        arrives.open();
        passes.pass();
        (here(), handle.try_await_complete())
    });
    ready.pass();
    let mut tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    given_back.open();
    wait_until("the worker waits", || pool.stats().blocked == 1);
    thread::sleep(WHILE);
    assert!(!waiter.is_finished());
    then(tasks.remove(0));
    let (place, result) = value(waiter);
    let ran_at = *ran_at.lock().unwrap();
    (place, result, ran_at, pool)
}

#[test]
fn a_task_that_was_given_back_is_not_run_by_the_worker_that_waits_for_it() {
    for submit in KINDS {
        let (_, result, ran_at, pool) = await_what_was_given_back(*submit, Task::run);
        assert_eq!(result.unwrap(), 7);
        assert_eq!(ran_at, Some(here()));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 1));

        let (_, result, ran_at, pool) = await_what_was_given_back(*submit, drop);
        assert!(result.unwrap_err().is_cancelled());
        assert_eq!(ran_at, None);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 1));
    }
}

/// The entry is still in the queue, but there is nothing to give back.
#[test]
fn a_shutdown_finds_an_awaited_task_running() {
    for submit in KINDS {
        let pool = pool(1);
        let (sender, receiver) = mpsc::channel::<JoinHandle<usize>>();
        let waiter = pool.evaluate(move || receiver.recv().unwrap().await_complete());
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let task = move || {
            passes.pass();
            7
        };
        sender.send(submit(&pool, Box::new(task))).unwrap();
        gate.wait_for(1);
        assert!(pool.shutdown_now().is_empty());
        let stats = pool.stats();
        assert_eq!((at_work(&stats), stats.handed_back), ((2, 0, 0), 0), "{stats:?}");
        gate.open();
        assert_eq!(value(waiter), 7);
        assert_ended_on(1, &pool, 2);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Each task runs once, or is given back once, wherever the shutdown finds it.
#[test]
fn a_shutdown_among_nested_waits_loses_nothing() {
    for round in 0..200 {
        let pool = pool(1 + round % 2);
        let ran = Arc::new(AtomicUsize::new(0));
        let (own, counted) = (pool.clone(), Arc::clone(&ran));
        let begun = Gate::new();
        let begins = Arc::clone(&begun);
        let waiter = pool.evaluate(move || {
            begins.meet(2);
            let mut handles = Vec::new();
            for _ in 0..20 {
                let counted = Arc::clone(&counted);
                let task = move || _ = counted.fetch_add(1, Ordering::SeqCst);
                handles.extend(own.try_evaluate(task));
            }
            let submitted = handles.len();
            Order::Random.arrange(&mut handles);
            let waited = handles.into_iter().map(JoinHandle::try_await_complete);
            (submitted, waited.filter(Result::is_err).count())
        });
        begun.meet(2);
        crate::common::dawdle(5_000);
        let given_back = pool.shutdown_now();
        let cancelled = given_back.len();
        drop(given_back);
        let (submitted, failed) = value(waiter);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((ran.load(Ordering::SeqCst), failed), (submitted - cancelled, cancelled));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.handed_back), (submitted - cancelled + 1, cancelled));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}
