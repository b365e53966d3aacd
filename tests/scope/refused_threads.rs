//! Scopes of a pool whose threads the operating system refuses.

use std::sync::Arc;
use std::thread;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Gate, refused, value, wait_until};
use crate::{assert_works, panic_of, pool};
use elastipool::RejectReason;

#[test]
fn scoped_tasks_run_on_the_caller_if_there_is_no_thread() {
    in_a_child("refused_threads::scoped_tasks_run_on_the_caller_if_there_is_no_thread", || {
        let pool = pool(2);
        let here = thread::current().id();
        let (mut executed, mut inner) = (None, None);
        let refusal = Refusal::begin();
        pool.scope(|scope| {
            scope.execute(|| {
                executed = Some(thread::current().id());
                scope.execute(|| inner = Some(thread::current().id()));
            });
            let handle = scope.evaluate(|| thread::current().id());
            assert!(handle.is_finished());
            assert_eq!(handle.await_complete(), here);
            refused(scope.try_execute(|| ()), RejectReason::NoThread).into_task()();
            refused(scope.try_evaluate(|| 7), RejectReason::NoThread);
        });
        assert_eq!((executed, inner), (Some(here), Some(here)));
        assert_eq!(panic_of(|| pool.scope(|s| s.execute(|| panic!("the task")))), "the task");
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.rejected), (3, 1, 2));
        assert_eq!((stats.workers, stats.in_flight()), (0, 0));
        refusal.end();
        assert_works(pool);
    });
}

/// A worker waits for its scoped task, which another one runs; that one blocks until one more task
/// has run, for which a thread is refused until later. Only the wait for the scope can ask for it
/// again.
#[test]
fn a_worker_that_waits_for_a_scope_asks_for_a_thread_again() {
    in_a_child("refused_threads::a_worker_that_waits_for_a_scope_asks_for_a_thread_again", || {
        let pool = pool(1);
        let (own, gate) = (pool.clone(), Gate::new());
        let passes = Arc::clone(&gate);
        let handle = pool.evaluate(move || {
            let ran = Gate::new();
            own.scope(|scope| {
                scope.execute(|| {
                    passes.pass();
                    let opens = Arc::clone(&ran);
                    own.execute(move || opens.open());
                    elastipool::blocking(|| ran.pass());
                });
                elastipool::blocking(|| passes.wait_for(1));
            });
        });
        gate.wait_for(1);
        wait_until("the worker waits", || pool.stats().blocked == 1);
        let refusal = Refusal::begin();
        let before = pool.stats().threads_refused;
        gate.open();
        wait_until("it asks again", || pool.stats().threads_refused >= before + 4);
        assert_eq!((pool.stats().workers, pool.stats().blocked), (2, 2));
        refusal.end();
        value(handle);
        assert_works(pool);
    });
}

#[test]
fn a_worker_that_runs_its_scoped_tasks_asks_for_no_thread() {
    in_a_child("refused_threads::a_worker_that_runs_its_scoped_tasks_asks_for_no_thread", || {
        let pool = pool(1);
        let (own, gate) = (pool.clone(), Gate::new());
        let passes = Arc::clone(&gate);
        let handle = pool.evaluate(move || {
            passes.pass();
            let mut sum = 0;
            own.scope(|scope| {
                let one = scope.evaluate(|| 1);
                scope.execute(|| sum = own.scope(|s| s.evaluate(|| 2).await_complete()));
                assert_eq!(one.await_complete(), 1);
            });
            sum
        });
        gate.wait_for(1);
        let refusal = Refusal::begin();
        gate.open();
        assert_eq!(value(handle), 2);
        assert_eq!(pool.stats().threads_refused, 0);
        refusal.end();
        assert_works(pool);
    });
}

/// The scope's thread polls the futures. Without a worker, a wake drops one.
#[cfg(feature = "async")]
#[test]
fn scoped_futures_are_polled_by_the_caller_if_there_is_no_thread() {
    use crate::common::triggered;

    in_a_child(
        "refused_threads::scoped_futures_are_polled_by_the_caller_if_there_is_no_thread",
        || {
            let pool = pool(2);
            let here = thread::current().id();
            let refusal = Refusal::begin();
            let (mut polled_by, mut left, mut ran) = (None, 3, false);
            pool.scope(|scope| {
                scope.spawn(async {
                    std::future::poll_fn(|context| {
                        left -= 1;
                        context.waker().wake_by_ref();
                        if left == 0 {
                            std::task::Poll::Ready(())
                        } else {
                            std::task::Poll::Pending
                        }
                    })
                    .await;
                    polled_by = Some(thread::current().id());
                    pool.scope(|inner| inner.spawn(async { ran = true }));
                });
            });
            assert_eq!((polled_by, ran), (Some(here), true));
            let (trigger, triggered) = triggered();
            let text = panic_of(|| {
                pool.scope(|scope| {
                    scope.spawn(triggered);
                    trigger.fire();
                });
            });
            assert!(text.starts_with("1 of a scope's tasks"), "{text}");
            let (trigger, triggered) = crate::common::triggered();
            let text = panic_of(|| {
                pool.scope(|scope| {
                    scope.spawn(triggered);
                    assert!(trigger.waker().is_some());
                    panic!("of the body");
                });
            });
            assert_eq!(text, "of the body");
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.in_flight(), stats.pending), (0, 0, 0));
            refusal.end();
            assert_works(pool);
        },
    );
}
