//! Compensation is refused: no worker runs while one is blocked.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use std::{ptr, thread};

use crate::common::refusal::{Refusal, STACK, in_a_child};
use crate::common::{Gate, HOUR, LIMIT, value, value_of_others, wait_until};
use crate::{assert_grows_to, assert_refused, assert_runs_at_once, held_back};
use elastipool::{ThreadPool, blocking};

#[test]
fn a_blocking_region_is_entered_although_its_thread_is_refused() {
    in_a_child("compensation::a_blocking_region_is_entered_although_its_thread_is_refused", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (task, gate) = held_back(&pool, |own| {
            let since = Instant::now();
            let blocked = blocking(|| own.stats().blocked);
            assert_refused(own.stats().threads_refused, 1, since.elapsed());
            (blocked, thread::current().id())
        });
        let queued = pool.evaluate(|| thread::current().id());
        let refusal = Refusal::begin();
        gate.open();
        let (blocked, worker) = value(task);
        assert_eq!(blocked, 1);
        assert_eq!(value(queued), worker, "by the worker that there is");
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.workers, stats.threads_started), (0, 1, 1));
        refusal.end();
        assert_grows_to(&pool, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The next submission tries again, also while everybody is in a region.
#[test]
fn a_submission_starts_what_a_region_was_refused() {
    in_a_child("compensation::a_submission_starts_what_a_region_was_refused", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let region = Gate::new();
        let passes = Arc::clone(&region);
        let (task, gate) = held_back(&pool, move |_| blocking(|| passes.pass()));
        let queued = pool.evaluate(|| 7);
        let refusal = Refusal::begin();
        let since = Instant::now();
        gate.open();
        region.wait_for(1);
        let later = pool.evaluate(|| 8);
        // It may rely on the keeper, which asks at the same time.
        wait_until("both were refused", || pool.stats().threads_refused >= 2);
        let stats = pool.stats();
        assert_refused(stats.threads_refused, 2, since.elapsed());
        assert_eq!((stats.queued, stats.workers), (2, 1));
        refusal.end();
        assert_eq!(value(pool.evaluate(|| 9)), 9);
        assert_eq!((value(queued), value(later)), (7, 8));
        region.open();
        value(task);
        assert_runs_at_once(&pool, 1);
    });
}

/// What a task waits for that can be had from a queued task of the same pool only.
type Wait = fn(&ThreadPool) -> u8;

fn wait_for_others(pool: &ThreadPool) -> u8 {
    value_of_others(pool.evaluate(|| 7))
}

/// A future that has been polled is in no thread's hands: what wakes it is another task.
#[cfg(feature = "async")]
fn wait_for_a_future_that_a_task_wakes(pool: &ThreadPool) -> u8 {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let future = pool.spawn_await(async move { receiver.await.unwrap() });
    // Before the queued task.
    let handle = future.await_complete_timeout(std::time::Duration::ZERO).unwrap_err();
    pool.execute(move || sender.send(7).unwrap());
    handle.await_complete()
}

#[cfg(feature = "async")]
const WAITS: [Wait; 2] = [wait_for_others, wait_for_a_future_that_a_task_wakes];
#[cfg(not(feature = "async"))]
const WAITS: [Wait; 1] = [wait_for_others];

/// A worker of a pool of one waits as `task` does, while threads are refused and then are not.
#[track_caller]
fn assert_asks_again(task: impl FnOnce(ThreadPool) -> u8 + Send + 'static) {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (task, gate) = held_back(&pool, task);
    let refusal = Refusal::begin();
    gate.open();
    wait_until("it asks again", || pool.stats().threads_refused >= 4);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.queued, stats.workers), (1, 1, 1));
    refusal.end();
    assert_eq!(value(task), 7);
    assert_runs_at_once(&pool, 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Without any submission: the blocked workers ask for a thread again by themselves.
#[test]
fn a_wait_goes_on_when_threads_can_be_had_again() {
    in_a_child("compensation::a_wait_goes_on_when_threads_can_be_had_again", || {
        for wait in WAITS {
            assert_asks_again(move |own| wait(&own));
        }
    });
}

/// Each of the two has to ask: the outer one for the inner one's worker, that one for the last
/// one's.
#[test]
fn a_nested_wait_goes_on_when_threads_can_be_had_again() {
    in_a_child("compensation::a_nested_wait_goes_on_when_threads_can_be_had_again", || {
        assert_asks_again(|own| {
            let inner = own.clone();
            value_of_others(own.evaluate(move || wait_for_others(&inner)))
        });
    });
}

/// What a wait runs on its own stack takes no thread.
#[test]
fn a_nested_wait_without_a_limit_needs_no_thread() {
    in_a_child("compensation::a_nested_wait_without_a_limit_needs_no_thread", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (task, gate) = held_back(&pool, |own| {
            let (inner, scopes) = (own.clone(), own.clone());
            let handles = own.evaluate(move || inner.evaluate(|| 7).await_complete());
            let mut in_scope = 0;
            scopes.scope(|scope| scope.execute(|| in_scope = 8));
            let group = own.group::<()>();
            group.execute(|| Ok(())).unwrap();
            group.wait().unwrap();
            (handles.await_complete(), in_scope)
        });
        let refusal = Refusal::begin();
        gate.open();
        assert_eq!(value(task), (7, 8));
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.threads_refused, stats.threads_started, stats.completed), (0, 1, 5));
        refusal.end();
        assert_grows_to(&pool, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// Half of the stack is used, and the thread that would continue the chain is refused.
#[test]
fn a_chain_of_waits_that_fits_the_stack_ends() {
    const LONG: usize = STACK as usize / 8 * 5;

    /// Each link waits for the next one, until this much of the stack is used.
    fn links(pool: &ThreadPool, base: usize) -> usize {
        let frame = black_box([0_u8; 16 << 10]);
        let place = frame.as_ptr().addr();
        if base.abs_diff(place) > LONG {
            return 0;
        }
        let own = pool.clone();
        let next = pool.evaluate(move || links(&own, base));
        next.await_complete() + frame.len()
    }

    in_a_child("compensation::a_chain_of_waits_that_fits_the_stack_ends", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (task, gate) = held_back(&pool, |own| {
            let frame = black_box(0_u8);
            links(&own, ptr::from_ref(&frame).addr())
        });
        let refusal = Refusal::begin();
        gate.open();
        assert!(value(task) > 0);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().threads_started, 1);
        refusal.end();
        assert_grows_to(&pool, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The same for a worker that is inside of the executor of `complete`.
#[test]
fn a_completion_goes_on_when_threads_can_be_had_again() {
    in_a_child("compensation::a_completion_goes_on_when_threads_can_be_had_again", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (go, own) = (Gate::new(), pool.clone());
        let passes = Arc::clone(&go);
        let task = pool.complete(async move {
            passes.pass();
            own.evaluate(|| 7).await.unwrap()
        });
        go.wait_for(1);
        let refusal = Refusal::begin();
        go.open();
        wait_until("it was refused", || pool.stats().threads_refused > 0);
        refusal.end();
        assert_eq!(value(task), 7);
        assert!(pool.join_timeout(LIMIT));
    });
}

/// The outer region does not ask again: the wait does.
#[test]
fn a_wait_in_a_region_goes_on_when_threads_can_be_had_again() {
    in_a_child("compensation::a_wait_in_a_region_goes_on_when_threads_can_be_had_again", || {
        for wait in WAITS {
            assert_asks_again(move |own| blocking(|| wait(&own)));
        }
    });
}

/// It waits already when another thread submits what it waits for, and is refused the worker.
#[cfg(feature = "async")]
#[test]
fn a_completion_goes_on_after_the_refusal_of_another_thread() {
    in_a_child("compensation::a_completion_goes_on_after_the_refusal_of_another_thread", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (sender, receiver) = futures::channel::oneshot::channel();
        // The future waits for a task of its own pool: only that is a region.
        let future = pool.spawn_await(receiver);
        let task = pool.complete(async move { future.await.unwrap() });
        wait_until("it waits", || pool.stats().blocked == 1);
        let refusal = Refusal::begin();
        pool.execute(move || sender.send(7).unwrap());
        wait_until("it asks again", || pool.stats().threads_refused >= 4);
        refusal.end();
        assert_eq!(value(task), Ok(7));
        assert!(pool.join_timeout(LIMIT));
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}
