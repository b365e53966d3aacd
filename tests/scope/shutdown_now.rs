//! `shutdown_now` among scoped tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::{Drops, Gate, HOUR, LIMIT, block, wait_until};
use crate::{MOMENT, OnDrop, hosted, in_time, panic_of, pool, wait_for_wait};
use elastipool::{RejectReason, ThreadPool};

#[test]
fn shutdown_now_drops_queued_scoped_tasks_and_cancels_their_handles() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        let gate = block(&pool);
        let ran = AtomicBool::new(false);
        pool.scope(|scope| {
            let guard = drops.issue();
            let handle = scope.evaluate(|| {
                let _captured = guard;
                ran.store(true, Ordering::SeqCst);
            });
            pool.execute(|| ());
            let tasks = pool.shutdown_now();
            assert_eq!(tasks.len(), 1, "the one that is not scoped");
            assert_eq!(drops.count(), 1);
            assert!(handle.is_finished());
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
        assert!(!ran.into_inner());
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.handed_back, stats.completed), (1, 1, 1));
    });
}

#[test]
fn a_scope_says_how_many_tasks_shutdown_now_has_dropped() {
    in_time(|| {
        let pool = ThreadPool::new_named("dropper", 1, 1, HOUR);
        let drops = Drops::default();
        let gate = block(&pool);
        let text = panic_of(|| {
            pool.scope(|scope| {
                for _ in 0..2 {
                    let guard = drops.issue();
                    scope.execute(move || drop(guard));
                }
                drop(scope.evaluate(|| ()));
                assert!(pool.shutdown_now().is_empty());
                drops.issue()
            })
        });
        assert!(text.starts_with("2 of a scope's tasks"), "{text}");
        assert!(text.contains("`dropper`") && text.contains("`shutdown_now`"), "{text}");
        assert_eq!(drops.count(), 3, "two captures, and the body's value");
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().cancelled, 3);
    });
}

#[test]
fn a_scoped_task_that_shutdown_now_finds_running_runs_to_its_end() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        let mut ran = false;
        pool.scope(|scope| {
            scope.execute(|| {
                gate.pass();
                ran = true;
            });
            gate.wait_for(1);
            assert!(pool.shutdown_now().is_empty());
            gate.open();
        });
        assert!(ran);
    });
}

/// And not of what was not run because of it.
#[test]
fn a_scope_resumes_a_panic_rather_than_reporting_what_shutdown_now_has_dropped() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    scope.execute(|| ());
                    assert!(pool.shutdown_now().is_empty());
                    panic!("the task");
                });
            });
        });
        assert_eq!(text, "the task");
    });
}

/// The destructor of a task that is not run may still look at what is borrowed.
#[test]
fn a_scope_waits_for_slow_destructors_of_what_shutdown_now_drops() {
    hosted(|host| {
        let (pool, dropped, begun) = (pool(1), AtomicBool::new(false), Gate::new());
        let gate = block(&pool);
        pool.scope(|scope| {
            let capture = OnDrop(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            drop(scope.evaluate(move || {
                let _captured = &capture;
            }));
            let other = pool.clone();
            // Not by the owner, which waits meanwhile.
            thread::spawn(move || other.shutdown_now());
            begun.meet(2);
        });
        assert!(dropped.into_inner());
        gate.open();
    });
}

#[test]
fn shutdown_now_drops_a_scoped_capture_whose_destructor_panics() {
    in_time(|| {
        let (pool, drops) = (pool(1), AtomicUsize::new(0));
        let gate = block(&pool);
        pool.scope(|scope| {
            let capture = OnDrop(|| {
                drops.fetch_add(1, Ordering::SeqCst);
                panic!("dropped the capture");
            });
            let handle = scope.evaluate(move || drop(capture));
            assert!(pool.shutdown_now().is_empty());
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
        assert_eq!(drops.into_inner(), 1);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// As the handle of any other task.
#[test]
fn a_handle_resolves_after_shutdown_now_has_dropped_the_capture() {
    in_time(|| {
        for has_timeout in [false, true] {
            let pool = pool(1);
            let view = pool.view().queue_timeout(HOUR).build();
            let target = if has_timeout { &*view } else { &pool };
            let gate = block(&pool);
            let leaves = Gate::new();
            target.scope(|scope| {
                let passes = Arc::clone(&leaves);
                let capture = OnDrop(move || passes.pass());
                let handle = scope.evaluate(move || drop(capture));
                let closed = pool.clone();
                let closer = thread::spawn(move || closed.shutdown_now().len());
                leaves.wait_for(1);
                assert!(!handle.is_finished(), "the capture is being dropped");
                leaves.open();
                assert_eq!(closer.join().unwrap(), 0);
                assert!(handle.try_await_complete().unwrap_err().is_cancelled());
            });
            gate.open();
        }
    });
}

/// It is still a member of the scope, but the pool is closed.
#[test]
fn a_destructor_of_a_scoped_task_that_shutdown_now_drops_cannot_submit() {
    in_time(|| {
        let (pool, mut back) = (pool(1), None);
        let gate = block(&pool);
        pool.scope(|scope| {
            let reason = &mut back;
            let capture = OnDrop(move || {
                *reason = scope.try_execute(|| ()).err().map(|rejected| rejected.reason());
            });
            drop(scope.evaluate(move || drop(capture)));
            assert!(pool.shutdown_now().is_empty());
        });
        assert_eq!(back, Some(RejectReason::Closed));
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// A handle in the captures of a task that is dropped is dropped with it: the panic that it has not
/// received is the scope's.
#[test]
fn a_scope_resumes_a_panic_whose_handle_shutdown_now_drops() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("a text") });
                wait_until("it has panicked", || handle.is_finished());
                scope.execute(|| gate.pass());
                gate.wait_for(1);
                drop(scope.evaluate(move || handle.await_complete()));
                assert!(pool.shutdown_now().is_empty());
                gate.open();
            });
        });
        assert_eq!(text, "a text");
    });
}

/// Every task runs or is dropped before its scope returns, wherever the shutdown finds it.
#[test]
fn a_shutdown_among_scoped_tasks_leaves_none() {
    in_time(|| {
        for round in 0..150 {
            let pool = pool(1 + round % 2);
            let drops = Drops::default();
            let (ran, mut cancelled) = (AtomicUsize::new(0), 0);
            let start = Gate::new();
            let (other, meets) = (pool.clone(), Arc::clone(&start));
            let stopper = thread::spawn(move || {
                meets.meet(2);
                crate::common::dawdle(3_000);
                other.shutdown_now().len()
            });
            let issued = pool.scope(|scope| {
                start.meet(2);
                let mut handles = Vec::new();
                for _ in 0..30 {
                    let (guard, ran) = (drops.issue(), &ran);
                    handles.push(scope.evaluate(move || {
                        ran.fetch_add(1, Ordering::Relaxed);
                        drop(guard);
                    }));
                }
                let issued = handles.len();
                for handle in handles {
                    cancelled += usize::from(handle.try_await_complete().is_err());
                }
                issued
            });
            assert_eq!(drops.count(), issued);
            assert_eq!(ran.into_inner() + cancelled, issued);
            assert_eq!(stopper.join().unwrap(), 0, "none is given away");
        }
    });
}

/// The owner of the outer scope runs its task, which submits one of an inner scope.
#[test]
fn shutdown_now_drops_what_a_nested_scope_has_queued() {
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        pool.scope(|scope| {
            scope.execute(|| {
                pool.scope(|inner| {
                    let handle = inner.evaluate(|| ());
                    assert!(pool.shutdown_now().is_empty());
                    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
                    let refused = inner.try_execute(|| ()).unwrap_err();
                    assert_eq!(refused.reason(), RejectReason::Closed);
                });
            });
        });
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.completed, stats.in_flight()), (1, 2, 0));
    });
}
