//! The ways to wait for a handle.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{CountingWaker, Gate, LIMIT, block, settled, value, wait_until};
use crate::{pool, slow, stays_finished};

#[test]
fn a_handle_comes_back_when_the_limit_of_its_wait_is_over() {
    let pool = pool(1);
    let (handle, gate) = slow(&pool);
    let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
    let handle = handle.await_complete_timeout(Duration::from_nanos(1)).unwrap_err();
    let before = Instant::now();
    let handle = handle.await_complete_timeout(Duration::from_millis(20)).unwrap_err();
    assert!(before.elapsed() >= Duration::from_millis(20));
    gate.open();
    assert_eq!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap(), 1);

    // What is there already is there in no time.
    let handle = pool.evaluate(|| 2);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 2);
    let handle = pool.evaluate(|| 3);
    assert_eq!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap(), 3);
    let handle = pool.evaluate(|| -> u8 { panic!("four") });
    assert!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap_err().is_panic());
}

#[test]
fn is_finished_says_that_waiting_does_not_block() {
    let pool = pool(1);
    let gate = block(&pool);
    let handles = [pool.evaluate(|| 1), pool.complete(async { 1 })];
    for handle in &handles {
        assert!(!handle.is_finished());
        assert_eq!(format!("{handle:?}"), "JoinHandle { is_finished: false }");
    }
    gate.open();
    for handle in handles {
        wait_until("the task has ended", || handle.is_finished());
        assert_eq!(format!("{handle:?}"), "JoinHandle { is_finished: true }");
        assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 1);
    }
    let handle = pool.evaluate(|| -> u8 { panic!("a panic ends it, too") });
    wait_until("the task has ended", || handle.is_finished());
    assert!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err().is_panic());
}

/// Also while the canceller drops the closure: it is in flight until then, and its handle resolves
/// afterwards.
#[test]
fn a_cancelled_closure_is_in_flight_until_it_is_dropped() {
    struct SlowDrop(Arc<Gate>);
    impl Drop for SlowDrop {
        fn drop(&mut self) {
            self.0.pass();
        }
    }

    let pool = pool(1);
    let gate = block(&pool);
    let slow = Gate::new();
    let slow_drop = SlowDrop(Arc::clone(&slow));
    let handle = pool.evaluate(move || drop(slow_drop));
    thread::scope(|scope| {
        let canceller = scope.spawn(|| handle.cancel());
        slow.wait_for(1);
        handle.cancel();
        assert!(!handle.is_finished());
        gate.open();
        wait_until("the entry was skipped", || pool.stats().completed == 1);
        assert!(!pool.join_timeout(Duration::ZERO));
        assert_eq!(pool.stats().in_flight(), 1);
        slow.open();
        canceller.join().unwrap();
    });
    assert!(handle.is_finished());
    assert!(pool.join_timeout(LIMIT));
    assert!(settled(handle).unwrap_err().is_cancelled());
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
}

#[test]
fn a_closure_that_is_finished_stays_finished() {
    let pool = pool(2);
    for round in 0..3_000 {
        let handle = pool.evaluate(move || round);
        crate::common::dawdle(300);
        handle.cancel();
        stays_finished(handle);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().in_flight(), 0);
}

/// As soon as `is_finished` says so, not a moment later: polled from the task's very end on.
#[test]
fn is_finished_is_never_early() {
    let pool = pool(2);
    for round in 0..10_000 {
        let handle = pool.evaluate(move || round);
        let since = Instant::now();
        while !(0..100).any(|_| handle.is_finished()) {
            assert!(since.elapsed() < LIMIT);
            thread::yield_now();
        }
        assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), round);
    }
}

#[test]
fn a_handle_is_a_future_for_any_executor() {
    let (ours, theirs) = (pool(2), pool(2));
    // On this thread.
    assert_eq!(futures_executor::block_on(ours.evaluate(|| 1)).unwrap(), 1);
    // On a worker of another pool, and on one of the same.
    let handle = ours.evaluate(|| 2);
    assert_eq!(settled(theirs.complete(handle)).unwrap().unwrap(), 2);
    let handle = ours.evaluate(|| 3);
    assert_eq!(settled(ours.complete(handle)).unwrap().unwrap(), 3);
    // Several at a time.
    let handles: Vec<_> = (0..20).map(|number| ours.evaluate(move || number)).collect();
    let all = futures_executor::block_on(futures::future::try_join_all(handles)).unwrap();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    // A panic and a cancellation arrive that way, too.
    let error = futures_executor::block_on(ours.evaluate(|| -> u8 { panic!("four") })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: four");
    ours.close();
    assert!(futures_executor::block_on(ours.evaluate(|| 5)).unwrap_err().is_cancelled());
}

#[cfg(feature = "async")]
#[test]
fn a_handle_is_a_future_for_a_spawned_one() {
    let (ours, theirs) = (pool(2), pool(2));
    let (inner, gate) = slow(&ours);
    let middle = theirs.spawn_await(async move { inner.await.unwrap() + 1 });
    let outer = ours.spawn_await(async move { middle.await.unwrap() + 1 });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 3);
}

#[test]
fn blocking_on_a_handle_works_inside_of_an_executor() {
    let (ours, theirs) = (pool(2), pool(2));
    let (handle, gate) = slow(&ours);
    let opener = thread::spawn(move || gate.open());
    assert_eq!(futures_executor::block_on(async { settled(handle).unwrap() }), 1);
    opener.join().unwrap();

    let (handle, gate) = slow(&ours);
    let outer = theirs.complete(async move { settled(handle).unwrap() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);

    let (handle, gate) = slow(&ours);
    let outer = ours.complete(async move { handle.await_complete() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);

    let (handle, gate) = slow(&ours);
    let outer = ours.evaluate(move || futures_executor::block_on(async { settled(handle) }));
    gate.open();
    assert_eq!(settled(outer).unwrap().unwrap(), 1);

    // All of it at once: an executor inside of a wait inside of an executor.
    let (handle, gate) = slow(&ours);
    let nested = theirs.complete(async move {
        let inner = ours.complete(handle);
        inner.await_complete()
    });
    gate.open();
    assert_eq!(settled(nested).unwrap().unwrap(), 1);
}

#[cfg(feature = "async")]
#[test]
fn blocking_on_a_handle_works_inside_of_a_spawned_future() {
    let (ours, theirs) = (pool(2), pool(2));
    let (inner, gate) = slow(&ours);
    let outer = theirs.spawn_await(async move { inner.await_complete() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);
}

#[test]
fn a_wait_consumes_no_foreign_unpark() {
    let pool = pool(1);
    let gate = block(&pool);
    let handle = pool.evaluate(|| 1);
    // A token that is there before does not end the wait early, and is there after it.
    thread::current().unpark();
    let handle = handle.await_complete_timeout(Duration::from_millis(5)).unwrap_err();
    gate.open();
    assert_eq!(settled(handle).unwrap(), 1);
    let before = Instant::now();
    thread::park_timeout(LIMIT);
    assert!(before.elapsed() < LIMIT, "the wait has eaten the token");
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let pool = pool(1);
    let gate = block(&pool);
    let mut handle = pin!(pool.evaluate(|| 1));
    let ((early, first), (late, second)) = (CountingWaker::new(), CountingWaker::new());
    for waker in [first, second] {
        assert!(handle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    gate.open();
    wait_until("the handle is woken", || late.count() > 0);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(handle.as_mut().poll(&mut context), Poll::Ready(Ok(1))));
    assert_eq!((early.count(), late.count()), (0, 1));
}

/// The only worker waits, so each of the tasks runs on its stack, or is dropped there.
#[test]
fn handles_that_a_task_awaits_resolve_on_its_own_stack() {
    let pool = pool(1);
    let own = pool.clone();
    let outer = pool.evaluate(move || {
        let returned = own.evaluate(|| 1).await_complete();
        let panicked = own.evaluate(|| -> u8 { panic!("awaited") }).try_await_complete();
        let cancelled = own.evaluate(|| 2);
        cancelled.cancel();
        let cancelled = cancelled.try_await_complete();
        (returned, panicked.unwrap_err().is_panic(), cancelled.unwrap_err().is_cancelled())
    });
    assert_eq!(value(outer), (1, true, true));
    assert_eq!(pool.stats().threads_started, 1);
}
