//! A panic of a task with a handle: who receives it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Gate, LIMIT, block, wait_until};
use crate::{assert_received, assert_works, handled, in_time, panic_of, pool, text};
use elastipool::ScopedJoinHandle;
use futures_executor::block_on;

#[test]
fn a_scope_does_not_resume_a_panic_that_a_handle_has_received() {
    in_time(|| {
        let (pool, received) = handled(1);
        pool.scope(|scope| {
            let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
            let error = handle.try_await_complete().unwrap_err();
            assert_eq!(text(&*error.into_panic()), "for the handle");

            let handle = scope.evaluate(|| -> u8 { panic!("for the future") });
            assert!(block_on(handle).unwrap_err().is_panic());

            let handle = scope.evaluate(|| -> u8 { panic!("in time") });
            assert!(handle.await_complete_timeout(LIMIT).unwrap().unwrap_err().is_panic());
        });
        assert_received(&pool, &received, &[]);
    });
}

#[test]
fn a_panic_that_a_scoped_handle_resumes_is_the_bodys() {
    in_time(|| {
        let (pool, received) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
                handle.await_complete()
            })
        });
        assert_eq!(text, "for the handle");
        assert_received(&pool, &received, &[]);
    });
}

#[test]
fn a_scope_resumes_a_panic_after_its_handle_was_dropped() {
    in_time(|| {
        let (pool, received) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                let handle = scope.evaluate(move || {
                    passes.pass();
                    panic!("a text");
                });
                drop::<ScopedJoinHandle<'_, u8>>(handle);
                gate.open();
            });
        });
        assert_eq!(text, "a text");
        assert_received(&pool, &received, &[]);
    });
}

#[test]
fn a_scope_resumes_a_panic_before_its_handle_is_dropped() {
    in_time(|| {
        let (pool, received) = handled(1);
        for looks in [false, true] {
            let text = panic_of(|| {
                pool.scope(|scope| {
                    let before = pool.stats().panicked;
                    let handle = scope.evaluate(|| -> u8 { panic!("a text") });
                    wait_until("it has panicked", || pool.stats().panicked == before + 1);
                    assert!(!looks || handle.is_finished());
                    drop(handle);
                });
            });
            assert_eq!(text, "a text");
        }
        assert_received(&pool, &received, &[]);
    });
}

#[test]
fn a_scope_resumes_a_panic_after_a_timeout_if_the_handle_is_dropped() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                let handle = scope.evaluate(move || -> u8 {
                    passes.pass();
                    panic!("a text");
                });
                let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
                gate.open();
                wait_until("it has panicked", || pool.stats().panicked == 1);
                drop(handle);
            });
        });
        assert_eq!(text, "a text");
    });
}

#[test]
fn a_scope_resumes_a_panic_whose_handle_is_dropped_with_another_task() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("a text") });
                scope.execute(move || drop(handle));
            });
        });
        assert_eq!(text, "a text");
    });
}

/// A handle is dropped while its task panics: one of the two sees to the payload.
#[test]
fn a_scope_resumes_a_panic_among_drops_of_its_handle() {
    in_time(|| {
        let pool = pool(1);
        for _ in 0..3_000 {
            let text = panic_of(|| {
                let is_about_to = AtomicBool::new(false);
                pool.scope(|scope| {
                    let handle = scope.evaluate(|| -> u8 {
                        is_about_to.store(true, Ordering::Release);
                        resume_unwind(Box::new("a text"))
                    });
                    wait_until("it runs", || is_about_to.load(Ordering::Acquire));
                    crate::common::dawdle(1_000);
                    drop(handle);
                });
            });
            assert_eq!(text, "a text");
        }
    });
}

#[test]
fn later_panics_of_dropped_scoped_handles_go_to_the_panic_handler() {
    in_time(|| {
        let (pool, received) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("first"));
                drop(scope.evaluate(|| panic!("dropped before")));
                let handle = scope.evaluate(|| panic!("dropped after"));
                wait_until("all have panicked", || pool.stats().panicked == 3);
                drop::<ScopedJoinHandle<'_, ()>>(handle);
            });
        });
        assert_eq!(text, "first");
        assert_received(&pool, &received, &["dropped before", "dropped after"]);
    });
}

/// The owner runs the task that drops the handle, and no other after it.
#[test]
fn a_scope_resumes_a_panic_whose_handle_is_dropped_with_its_last_task() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("on purpose") });
                wait_until("it has panicked", || handle.is_finished());
                let gate = block(&pool);
                scope.execute(move || {
                    drop(handle);
                    gate.open();
                });
            });
        });
        assert_eq!(text, "on purpose");
        assert_works(pool);
    });
}
