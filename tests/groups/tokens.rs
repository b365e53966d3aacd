//! Cancellation tokens: those of groups, and those that a program makes.

use crate::common;

use std::future::{Future, poll_fn};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;

use common::{CountingWaker, Drops, Gate, HOUR, block, failure, hold, joined, value, waited};
use elastipool::{CancellationToken, RejectReason, ThreadPool};

fn pool() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

#[test]
fn a_token_of_its_own_stops_what_looks_at_it() {
    let pool = pool();
    let token = CancellationToken::new();
    assert!(!token.is_cancelled() && !CancellationToken::default().is_cancelled());
    let (gate, stop) = (Gate::new(), token.clone());
    let started = gate.clone();
    let closure = pool.evaluate(move || {
        started.open();
        while !stop.is_cancelled() {
            thread::yield_now();
        }
    });
    gate.pass();
    let (counting, waker) = CountingWaker::new();
    let mut cancelled = pin!(token.cancelled());
    assert!(cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    token.cancel();
    token.cancel();
    assert_eq!(counting.count(), 1);
    assert!(cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    value(closure);
    assert!(token.is_cancelled(), "for ever");
}

#[test]
fn the_token_of_a_group_cancels_the_group() {
    let pool = pool();
    let group = pool.group::<&str>();
    let gate = hold(&group);
    let drops = Drops::default();
    let held = drops.issue();
    group
        .execute(move || {
            drop(held);
            Ok(())
        })
        .unwrap();
    let token = group.token();
    token.cancel();
    assert_eq!(drops.count(), 1, "the canceller drops the unstarted task");
    assert!(group.is_cancelled() && token.is_cancelled());
    assert_eq!(group.execute(|| Ok(())).unwrap_err().reason(), RejectReason::Cancelled);
    gate.open();
    assert!(failure(&group).is_cancelled());

    // The token of the round that is over.
    token.cancel();
    assert!(!group.is_cancelled());
    group.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_task_cancels_its_own_group_by_the_token() {
    let pool = pool();
    let group = pool.group::<&str>();
    let token = group.token();
    group
        .execute(move || {
            token.cancel();
            Ok(())
        })
        .unwrap();
    assert!(failure(&group).is_cancelled());
}

#[test]
fn a_token_outlives_its_group() {
    let pool = pool();
    let busy = block(&pool);
    let group = pool.group::<&str>();
    let drops = Drops::default();
    let held = drops.issue();
    group
        .execute(move || {
            drop(held);
            Ok(())
        })
        .unwrap();
    let token = group.token();
    drop(group);
    let again = token.clone();
    joined(thread::spawn(move || again.cancel()));
    assert_eq!(drops.count(), 1, "its tasks have kept the group");
    busy.open();
    pool.join();

    let token = pool.group::<&str>().token();
    let mut cancelled = pin!(token.cancelled());
    let mut poll = || cancelled.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()));
    assert_eq!(poll(), Poll::Pending);
    token.cancel();
    assert_eq!(poll(), Poll::Ready(()));
}

#[test]
fn a_panic_of_a_waker_is_contained() {
    struct Bomb;
    impl std::task::Wake for Bomb {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("the waker");
        }
    }
    let token = CancellationToken::new();
    let waker = std::sync::Arc::new(Bomb).into();
    let (counting, counted) = CountingWaker::new();
    let mut waits = [token.cancelled(), token.cancelled()].map(Box::pin);
    for (wait, waker) in waits.iter_mut().zip([&waker, &counted]) {
        assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    token.cancel();
    assert_eq!(counting.count(), 1);
}

#[test]
fn a_token_may_be_shared_with_any_thread() {
    fn check<T: Send + Sync + UnwindSafe + RefUnwindSafe + Unpin + 'static>() {}
    check::<CancellationToken>();
    let pool = pool();
    let token = CancellationToken::new();
    let waits = token.clone();
    let waiter = pool.complete(async move {
        let mut cancelled = pin!(waits.cancelled());
        poll_fn(|context| cancelled.as_mut().poll(context)).await;
    });
    token.cancel();
    value(waiter);
}
