//! Scoped handles.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::{Gate, HOUR, LIMIT, panic_text, wait_until};
use crate::{MOMENT, OnDrop, assert_works, in_time, panic_of, pool};
use elastipool::ScopedJoinHandle;
use futures_executor::block_on;

#[test]
fn a_scoped_handle_resolves_to_a_result_that_borrows() {
    in_time(|| {
        let text = String::from("one two three");
        let longest = pool(1).scope(|scope| {
            let words = scope.evaluate(|| text.split(' ').collect::<Vec<&str>>());
            let words = words.await_complete();
            words.into_iter().max_by_key(|word| word.len()).unwrap()
        });
        assert_eq!(longest, "three");
    });
}

#[test]
fn a_scoped_handle_comes_back_when_the_limit_of_its_wait_is_over() {
    in_time(|| {
        pool(1).scope(|scope| {
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let handle = scope.evaluate(move || {
                passes.pass();
                1
            });
            let handle = handle.await_complete_timeout(MOMENT / 10).unwrap_err();
            assert!(!handle.is_finished());
            assert!(format!("{handle:?}").contains("is_finished: false"), "{handle:?}");
            gate.open();
            wait_until("it has ended", || handle.is_finished());
            assert!(format!("{handle:?}").contains("is_finished: true"), "{handle:?}");
            assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 1);
        });
    });
}

#[test]
fn a_scoped_handle_is_a_future() {
    in_time(|| {
        let numbers = [1, 2, 3];
        let doubled = pool(2).scope(|scope| {
            let handles = numbers.iter().map(|number| scope.evaluate(move || 2 * number));
            block_on(futures::future::try_join_all(handles))
        });
        assert_eq!(doubled.unwrap(), [2, 4, 6]);
    });
}

#[test]
fn a_scoped_handle_is_not_polled_after_it_has_resolved() {
    in_time(|| {
        pool(1).scope(|scope| {
            let mut handle = scope.evaluate(|| 1);
            assert_eq!(block_on(&mut handle).unwrap(), 1);
            assert!(handle.is_finished());
            let text = panic_of(|| block_on(&mut handle));
            assert!(text.contains("after a poll had returned"), "{text}");
        });
    });
}

#[test]
fn a_scoped_handle_is_waited_for_by_another_task() {
    in_time(|| {
        let sum = pool(1).scope(|scope| {
            let one = scope.evaluate(|| 1);
            let two = scope.evaluate(move || one.await_complete() + 1);
            scope.evaluate(move || two.await_complete() + 1).await_complete()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_scoped_handle_may_be_leaked() {
    in_time(|| {
        let mut ran = false;
        pool(1).scope(|scope| std::mem::forget(scope.evaluate(|| ran = true)));
        assert!(ran);
    });
}

/// Without a handle the result is dropped by the worker: the panic is contained as that of any
/// destructor is.
#[test]
fn a_panic_of_a_scoped_results_destructor_is_contained() {
    in_time(|| {
        let pool = pool(1);
        let drops = AtomicUsize::new(0);
        pool.scope(|scope| {
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let drops = &drops;
            drop(scope.evaluate(move || {
                passes.pass();
                OnDrop(move || {
                    drops.fetch_add(1, Ordering::SeqCst);
                    panic!("dropped the result");
                })
            }));
            gate.open();
        });
        assert_eq!(drops.into_inner(), 1);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 1);
        assert_works(pool);
    });
}

/// The thread that drops the handle drops the result.
#[test]
fn a_panic_of_a_scoped_results_destructor_is_contained_where_the_handle_is_dropped() {
    in_time(|| {
        let (pool, ended, drops) = (pool(1), AtomicBool::new(false), AtomicUsize::new(0));
        pool.scope(|scope| {
            let drops = &drops;
            let handle = scope.evaluate(move || {
                OnDrop(move || {
                    drops.fetch_add(1, Ordering::SeqCst);
                    panic!("dropped the result");
                })
            });
            wait_until("it has ended", || handle.is_finished());
            scope.execute(|| ended.store(true, Ordering::Relaxed));
            drop(handle);
        });
        assert!(ended.into_inner());
        assert_eq!(drops.into_inner(), 1);
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_a_scoped_captures_destructor_is_the_tasks() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let capture = OnDrop(|| panic!("dropped the capture"));
                scope.execute(move || drop(capture));
            });
        });
        assert_eq!(text, "dropped the capture");
        pool.scope(|scope| {
            let capture = OnDrop(|| panic!("dropped the capture"));
            let handle = scope.evaluate(move || {
                let _captured = &capture;
            });
            assert!(handle.try_await_complete().unwrap_err().is_panic());
        });
        assert_works(pool);
    });
}

/// Law 10: it would wait for its own end.
#[test]
fn a_scoped_task_that_waits_for_its_own_handle_panics() {
    in_time(|| {
        let pool = pool(1);
        let (texts, text) = mpsc::channel();
        pool.scope(|scope| {
            let (sends, own) = mpsc::channel::<ScopedJoinHandle<'_, ()>>();
            let handle = scope.evaluate(move || {
                // On top of this one.
                scope.evaluate(|| ()).await_complete();
                let own = own.recv_timeout(LIMIT).unwrap();
                let own = own.await_complete_timeout(HOUR).unwrap_err();
                texts.send(panic_text(|| own.try_await_complete())).unwrap();
            });
            sends.send(handle).unwrap();
        });
        let text = text.recv_timeout(LIMIT).unwrap();
        assert!(text.contains("its own handle"), "{text}");
        assert_works(pool);
    });
}
