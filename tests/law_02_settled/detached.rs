//! Handles that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Drops, LIMIT, block};
use crate::pool;

#[test]
fn dropping_a_handle_detaches_the_task() {
    let pool = pool(1);
    let gate = block(&pool);
    let drops = Drops::default();
    let ran = Arc::new(AtomicUsize::new(0));
    let (guard, counts) = (drops.issue(), Arc::clone(&ran));
    drop(pool.evaluate(move || {
        counts.fetch_add(1, Ordering::Relaxed);
        guard
    }));
    let (guard, counts) = (drops.issue(), Arc::clone(&ran));
    drop(pool.complete(async move {
        counts.fetch_add(1, Ordering::Relaxed);
        guard
    }));
    assert_eq!((drops.count(), ran.load(Ordering::Relaxed)), (0, 0));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((drops.count(), ran.load(Ordering::Relaxed)), (2, 2));
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (3, 0));
}

#[cfg(feature = "async")]
#[test]
fn dropping_a_handle_detaches_the_future() {
    let pool = pool(1);
    let drops = Drops::default();
    let guard = drops.issue();
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    drop(pool.spawn_await(async move {
        receiver.await.unwrap();
        guard
    }));
    assert!(!pool.join_timeout(std::time::Duration::from_millis(1)), "the future is still pending");
    assert_eq!(drops.count(), 0);
    sender.send(()).unwrap();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 0));
}

/// The handle is dropped while the result is delivered.
#[test]
fn a_result_that_is_not_taken_is_dropped_once() {
    let pool = pool(2);
    let drops = Drops::default();
    const ROUNDS: usize = 2_000;
    for _ in 0..ROUNDS {
        let guard = drops.issue();
        drop(pool.evaluate(move || guard));
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), ROUNDS);
}
