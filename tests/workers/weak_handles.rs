//! A weak handle does not keep its pool open, and reaches it as long as a handle does.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{Gate, HOUR, LIMIT, block, value};
use elastipool::ThreadPool;

fn pool() -> ThreadPool {
    ThreadPool::new(1, 2, HOUR)
}

/// Drops the handle and waits for the end of the pool.
fn shuts_down(pool: ThreadPool) {
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_weak_handle_reaches_its_pool() {
    let pool = pool();
    let weak = pool.downgrade();
    let again = weak.clone().upgrade().expect("there is a handle");
    assert_eq!(again, pool);
    assert_eq!(value(again.evaluate(|| 42)), 42);
    assert_eq!(format!("{weak:?}"), "WeakThreadPool { has_handles: true }");
    drop(again);
    assert!(!pool.is_closed(), "it was not the last handle");
    shuts_down(pool);
    assert!(weak.upgrade().is_none());
    assert_eq!(format!("{weak:?}"), "WeakThreadPool { has_handles: false }");
}

#[test]
fn an_upgraded_handle_keeps_the_pool_open_and_closes_it_when_it_is_the_last() {
    let stopped = Gate::new();
    let stops = Arc::clone(&stopped);
    let pool = ThreadPool::builder().core_size(1).on_worker_stop(move |_| stops.open()).build();
    let weak = pool.downgrade();
    let again = weak.upgrade().expect("there is a handle");
    drop(pool);
    assert_eq!(value(again.evaluate(|| 42)), 42);
    drop(again);
    stopped.pass();
    assert!(weak.upgrade().is_none());
}

/// What the pool has accepted still runs, and finds the pool closed.
#[test]
fn a_queued_task_with_a_weak_handle_does_not_keep_the_pool_open() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let weak = pool.downgrade();
    let gate = block(&pool);
    let finds = pool.evaluate(move || weak.upgrade().is_some());
    pool.shutdown();
    gate.open();
    assert!(!value(finds));
}

#[test]
fn a_closed_pool_is_reached_while_there_is_a_handle() {
    let pool = pool();
    let weak = pool.downgrade();
    pool.close();
    let again = weak.upgrade().expect("there is a handle");
    assert!(again.is_closed() && again.try_execute(|| ()).is_err());
    drop((pool, again));
    assert!(weak.upgrade().is_none());
}

/// One that was the last handle: a worker closes its own pool, and does not wait for it.
#[test]
fn a_task_may_drop_the_last_handle() {
    let stopped = Gate::new();
    let stops = Arc::clone(&stopped);
    let pool = ThreadPool::builder().core_size(1).on_worker_stop(move |_| stops.open()).build();
    let (weak, outside) = (pool.downgrade(), Gate::new());
    let dropped = Arc::clone(&outside);
    let upgraded = Gate::new();
    let upgrades = Arc::clone(&upgraded);
    let task = pool.evaluate(move || {
        let pool = weak.upgrade().expect("the test has a handle");
        upgrades.open();
        dropped.pass();
        let accepted = pool.try_execute(|| ()).is_ok();
        drop(pool);
        (accepted, weak)
    });
    upgraded.pass();
    drop(pool);
    outside.open();
    let (accepted, weak) = value(task);
    assert!(accepted, "the upgraded handle kept the pool open");
    stopped.pass();
    assert!(weak.upgrade().is_none());
}

/// Either the upgrade is first, and the pool is open, or it fails.
#[test]
fn an_upgraded_pool_is_open() {
    const ROUNDS: usize = 2_000;
    let upgraded = AtomicUsize::new(0);
    for _ in 0..ROUNDS {
        let pool = ThreadPool::new(0, 1, HOUR);
        let weak = pool.downgrade();
        let begin = Gate::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                begin.meet(2);
                common::dawdle(100);
                if let Some(pool) = weak.upgrade() {
                    assert!(!pool.is_closed());
                    upgraded.fetch_add(1, Ordering::Relaxed);
                }
            });
            begin.meet(2);
            common::dawdle(100);
            drop(pool);
        });
        assert!(weak.upgrade().is_none());
    }
    println!("{upgraded:?} of {ROUNDS} were first");
}

#[cfg(feature = "async")]
#[test]
fn a_server_that_holds_a_weak_handle_ends_with_the_last_handle() {
    use elastipool::WeakThreadPool;
    use futures::StreamExt;
    use futures::channel::mpsc;

    async fn accept(mut listener: mpsc::UnboundedReceiver<u32>, pool: WeakThreadPool) -> u32 {
        let mut served = 0;
        while let Some(_connection) = listener.next().await {
            let Some(pool) = pool.upgrade() else { break };
            pool.spawn(async {});
            served += 1;
        }
        served
    }

    let stopped = Gate::new();
    let stops = Arc::clone(&stopped);
    let pool = ThreadPool::builder().core_size(1).on_worker_stop(move |_| stops.open()).build();
    let (clients, listener) = mpsc::unbounded();
    let server = pool.spawn_await(accept(listener, pool.downgrade()));
    clients.unbounded_send(1).unwrap();
    clients.unbounded_send(2).unwrap();
    common::wait_until("both were served", || pool.stats().completed == 2);
    let weak = pool.downgrade();
    drop(pool);
    assert!(weak.upgrade().is_none(), "the loop keeps no handle");
    clients.unbounded_send(3).unwrap();
    assert_eq!(value(server), 2);
    stopped.pass();
}

/// A loop without a next connection is ended by an immediate shutdown.
#[cfg(feature = "async")]
#[test]
fn an_immediate_shutdown_ends_a_future_that_holds_a_weak_handle() {
    let pool = pool();
    let weak = pool.downgrade();
    let (_clients, listener) = futures::channel::oneshot::channel::<()>();
    let server = pool.spawn_await(async move {
        let _connection = listener.await;
        drop(weak);
    });
    common::wait_until("it is pending", || pool.stats().pending == 1);
    assert!(pool.shutdown_now().is_empty());
    assert!(common::settled(server).unwrap_err().is_cancelled());
    shuts_down(pool);
}
