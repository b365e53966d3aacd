//! Futures whose first poll was the spawner's.

use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Drops, Gate, HOUR, LIMIT, Trigger, settled, triggered, value, wait_until};
use crate::{assert_empty, assert_grows_to};
use elastipool::{JoinHandle, ThreadPool};

/// A future that was spawned without a thread to be had and is pending.
fn spawn_here(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<ThreadId>, Trigger) {
    let (trigger, triggered) = triggered();
    let guard = drops.issue();
    let handle = pool.spawn_await(async move {
        triggered.await;
        drop(guard);
        thread::current().id()
    });
    assert_eq!(trigger.polls(), 1, "polled before `spawn_await` returns");
    assert_eq!((pool.stats().workers, pool.stats().in_flight()), (0, 1));
    assert!(!pool.join_timeout(Duration::ZERO), "it is pending");
    (handle, trigger)
}

#[test]
fn a_ready_future_without_any_worker_completes_on_the_caller() {
    let name = "futures_without_workers::a_ready_future_without_any_worker_completes_on_the_caller";
    in_a_child(name, || {
        let pool = ThreadPool::new(2, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let guard = drops.issue();
        pool.spawn(async move { drop(guard) });
        assert_eq!(drops.count(), 1);
        let handle = pool.spawn_await(async { thread::current().id() });
        assert!(handle.is_finished());
        assert_eq!(value(handle), thread::current().id());
        pool.spawn(async { panic!("contained") });
        assert_empty(&pool);
        assert_eq!((pool.stats().completed, pool.stats().panicked), (2, 1));
        refusal.end();
        assert_grows_to(&pool, 4);
    });
}

#[test]
fn a_future_that_is_woken_when_threads_can_be_had_again_completes() {
    let name = "futures_without_workers::\
                a_future_that_is_woken_when_threads_can_be_had_again_completes";
    in_a_child(name, || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let (handle, trigger) = spawn_here(&pool, &drops);
        refusal.end();
        trigger.fire();
        assert_ne!(value(handle), thread::current().id(), "on a worker");
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((drops.count(), pool.stats().completed), (1, 1));
        assert_eq!(pool.stats().threads_started, 1);
    });
}

#[test]
fn a_future_that_is_woken_without_a_thread_is_cancelled() {
    let name = "futures_without_workers::a_future_that_is_woken_without_a_thread_is_cancelled";
    in_a_child(name, || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let (handle, trigger) = spawn_here(&pool, &drops);
        trigger.fire();
        assert_eq!(drops.count(), 1);
        assert!(handle.is_finished());
        let settled = handle.await_complete_timeout(Duration::ZERO).expect("resolves");
        assert!(settled.unwrap_err().is_cancelled());
        assert_empty(&pool);
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (0, 1));
        refusal.end();
        assert_grows_to(&pool, 4);
    });
}

/// The same, but the waker that woke it lives on, as one does that wakes by reference.
#[test]
fn a_future_that_is_woken_without_a_thread_is_cancelled_even_if_a_waker_is_kept() {
    let name = "futures_without_workers::\
                a_future_that_is_woken_without_a_thread_is_cancelled_even_if_a_waker_is_kept";
    in_a_child(name, || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let (handle, trigger) = spawn_here(&pool, &drops);
        let waker = trigger.waker().unwrap();
        waker.wake_by_ref();
        // Either it is dropped, or it can still be woken: it may not stay for ever.
        refusal.end();
        waker.wake_by_ref();
        trigger.fire();
        if let Err(error) = settled(handle) {
            assert!(error.is_cancelled(), "{error}");
        }
        assert!(pool.join_timeout(LIMIT), "in flight for ever");
        assert_eq!(drops.count(), 1);
        drop(waker);
    });
}

#[test]
fn a_future_that_wakes_itself_without_a_thread_is_settled() {
    let name = "futures_without_workers::a_future_that_wakes_itself_without_a_thread_is_settled";
    in_a_child(name, || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let guard = drops.issue();
        let mut polls = 0;
        let handle = pool.spawn_await(std::future::poll_fn(move |context| {
            let _captured = &guard;
            polls += 1;
            if polls > 3 {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }));
        if let Err(error) = settled(handle) {
            assert!(error.is_cancelled(), "{error}");
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        assert_empty(&pool);
        refusal.end();
    });
}

/// A worker is busy, and a thread that has nothing to do with the pool wakes a future.
#[test]
fn a_worker_that_a_waker_starts_is_refused() {
    let name = "futures_without_workers::a_worker_that_a_waker_starts_is_refused";
    in_a_child(name, || {
        let pool = ThreadPool::new(1, 4, HOUR);
        let (trigger, triggered) = triggered();
        let handle = pool.spawn_await(async move {
            triggered.await;
            thread::current().id()
        });
        wait_until("the future is polled", || trigger.polls() == 1);
        wait_until("the worker is idle", || pool.idle_worker_count() == 1);
        let (gate, go) = (Gate::new(), Gate::new());
        let passes = Arc::clone(&gate);
        let busy = pool.evaluate(move || {
            passes.pass();
            thread::current().id()
        });
        gate.wait_for(1);
        let waits = Arc::clone(&go);
        let foreign = thread::spawn(move || {
            waits.pass();
            trigger.fire();
            // The future looks at it when it is polled.
            trigger
        });
        go.wait_for(1);
        let (refusal, refused) = (Refusal::begin(), pool.stats().threads_refused);
        go.open();
        wait_until("the start is refused", || pool.stats().threads_refused > refused);
        assert_eq!((pool.stats().workers, pool.stats().queued), (1, 1));
        gate.open();
        assert_eq!(value(handle), value(busy), "on the worker that there is");
        assert!(pool.join_timeout(LIMIT));
        drop(refusal);
        assert!(foreign.join().is_ok(), "a panic in the waker's thread");
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (2, 0));
        assert_grows_to(&pool, 4);
    });
}

/// A future is cancelled while the thread that wakes it asks for a worker, which is refused: it has
/// ended once.
#[test]
fn a_future_that_is_cancelled_during_a_refused_wake_has_ended_once() {
    let name =
        "futures_without_workers::a_future_that_is_cancelled_during_a_refused_wake_has_ended_once";
    in_a_child(name, || {
        let refusal = Refusal::begin();
        let cancelled: Arc<Mutex<Option<JoinHandle<ThreadId>>>> = Arc::default();
        let to_cancel = Arc::clone(&cancelled);
        // The hook is called for the thread of the wake, before it is refused.
        let cancel = move |index| {
            if let Some(handle) = to_cancel.lock().unwrap().take() {
                handle.cancel();
            }
            format!("cancels-{index}")
        };
        let pool = ThreadPool::builder().core_size(1).max_size(1).thread_name(cancel).build();
        let drops = Drops::default();
        let (handle, trigger) = spawn_here(&pool, &drops);
        *cancelled.lock().unwrap() = Some(handle);
        trigger.fire();
        assert_eq!(drops.count(), 1);
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
        assert!(pool.join_timeout(LIMIT));
        drop(refusal);
    });
}

/// Each one that is dropped wakes the next one, which is dropped on the same thread.
#[test]
fn a_chain_of_wakes_without_a_thread_does_not_nest_without_bound() {
    const LINKS: usize = 10_000;
    let name = "futures_without_workers::\
                a_chain_of_wakes_without_a_thread_does_not_nest_without_bound";
    in_a_child(name, || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let (begin, begun) = std::sync::mpsc::channel::<Trigger>();
        // Of a usual size.
        let wakes = thread::Builder::new().stack_size(2 << 20);
        let wakes = wakes.spawn(move || begun.recv().unwrap().fire()).unwrap();
        let refusal = Refusal::begin();
        let (first, mut triggered_by) = triggered();
        for _ in 0..LINKS {
            let (trigger, next) = triggered();
            let fires = Fires(trigger);
            let waits = std::mem::replace(&mut triggered_by, next);
            pool.spawn(async move {
                let _captured = fires;
                waits.await;
            });
        }
        begin.send(first).unwrap();
        wait_until("the thread has ended", || wakes.is_finished());
        wakes.join().unwrap();
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (LINKS, 0));
        refusal.end();
        assert_grows_to(&pool, 4);
    });
}

/// Wakes what waits for it when it is dropped.
struct Fires(Trigger);

impl Drop for Fires {
    fn drop(&mut self) {
        self.0.fire();
    }
}
