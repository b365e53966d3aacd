//! A handle resolves to cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crate::common::{Drops, LIMIT, block, settled, wait_until};
use crate::{cancelled, pool, slow};
use elastipool::{Builder, JoinError, JoinHandle};

#[test]
fn a_queued_task_is_cancelled_at_once() {
    let pool = pool(1);
    let gate = block(&pool);
    let ran = Arc::new(AtomicUsize::new(0));

    let (drops, counts) = (Drops::default(), Arc::clone(&ran));
    let guard = drops.issue();
    let handle = pool.evaluate(move || {
        counts.fetch_add(1, Ordering::Relaxed);
        drop(guard);
    });
    assert!(!handle.is_finished());
    handle.cancel();
    assert!(handle.is_finished());
    cancelled(handle);
    assert_eq!(drops.count(), 1, "the canceller drops what it captured");
    assert!(!pool.join_timeout(Duration::ZERO));

    let counts = Arc::clone(&ran);
    let guard = drops.issue();
    let handle = pool.complete(async move {
        counts.fetch_add(1, Ordering::Relaxed);
        drop(guard);
    });
    handle.cancel();
    handle.cancel();
    cancelled(handle);

    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 2);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (1, 2, 0));
}

#[test]
fn cancelling_wakes_the_waiter() {
    // Another thread is blocked on the handle of a queued task that this one cancels: they share
    // it.
    struct Shared(std::sync::Mutex<JoinHandle<u8>>);
    impl Future for &Shared {
        type Output = Result<u8, JoinError>;
        fn poll(self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            std::pin::Pin::new(&mut *self.0.lock().unwrap()).poll(context)
        }
    }

    let pool = pool(1);
    let gate = block(&pool);
    let shared = Arc::new(Shared(pool.evaluate(|| 1).into()));
    let waits = Arc::clone(&shared);
    let waiter = thread::spawn(move || futures_executor::block_on(&*waits));
    shared.0.lock().unwrap().cancel();
    wait_until("the waiter has its answer", || waiter.is_finished());
    assert!(waiter.join().unwrap().unwrap_err().is_cancelled());
    gate.open();
}

#[test]
fn a_closed_pool_cancels_a_task() {
    let pool = pool(2);
    pool.close();
    let drops = Drops::default();

    let guard = drops.issue();
    let handle = pool.evaluate(move || drop(guard));
    assert_eq!(drops.count(), 1, "the task is not needed any more");
    assert!(handle.is_finished());
    handle.cancel();
    cancelled(handle);

    let guard = drops.issue();
    let handle = pool.complete(async move { drop(guard) });
    assert_eq!(drops.count(), 2);
    assert!(handle.is_finished());
    cancelled(handle);
    assert_eq!(pool.stats().rejected, 2);
}

#[cfg(feature = "async")]
#[test]
fn a_closed_pool_cancels_a_future() {
    let pool = pool(2);
    pool.close();
    let drops = Drops::default();
    let guard = drops.issue();
    let handle = pool.spawn_await(async move { drop(guard) });
    assert_eq!(drops.count(), 1);
    assert!(handle.is_finished());
    cancelled(handle);
}

#[test]
fn a_panicking_start_hook_loses_no_task() {
    let pool = Builder::new()
        .core_size(1)
        .max_size(2)
        .on_worker_start(|index| panic!("worker {index} does not feel like it"))
        .build();
    let handles: Vec<_> = (0..10).map(|number| pool.evaluate(move || number)).collect();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(settled(handle).unwrap(), number);
    }
}

#[test]
fn a_running_closure_is_not_cancelled() {
    let pool = pool(1);
    let (handle, gate) = slow(&pool);
    gate.wait_for(1);
    handle.cancel();
    assert!(!handle.is_finished());
    let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
    gate.open();
    assert_eq!(settled(handle).unwrap(), 1);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 0));
}

#[test]
fn a_finished_task_is_not_cancelled() {
    let pool = pool(1);
    let handle = pool.evaluate(|| 7);
    assert!(pool.join_timeout(LIMIT));
    handle.cancel();
    assert_eq!(settled(handle).unwrap(), 7);
    assert_eq!(pool.stats().cancelled, 0);
}

/// One closure is taken and cancelled at the same time: it runs, or it is dropped, and the handle
/// says which.
#[test]
fn a_cancellation_that_races_with_the_start_has_one_result() {
    let pool = pool(2);
    let drops = Drops::default();
    let mut ran = 0;
    const ROUNDS: usize = 2_000;
    for _ in 0..ROUNDS {
        let guard = drops.issue();
        let handle = pool.evaluate(move || drop(guard));
        handle.cancel();
        match settled(handle) {
            Ok(()) => ran += 1,
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), ROUNDS);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (ran, ROUNDS - ran, 0));
}
