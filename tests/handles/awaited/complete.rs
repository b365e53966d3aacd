//! `complete`, whose future waits for tasks of its pool.

use std::panic::catch_unwind;

use crate::awaited::{assert_ended_on, pool};
use crate::common::{block, value};

/// A nested poll waits for a handle. That does not concern the outer future, which then waits for
/// something outside of the pool and counts as runnable.
#[test]
#[cfg(feature = "async")]
fn a_completed_future_holds_its_place_after_a_nested_wait() {
    let pool = pool(1);
    let (trigger, triggered) = crate::common::triggered();
    let own = pool.clone();
    let holds = pool.complete(async move {
        let inside = own.clone();
        own.spawn_await(async move { inside.evaluate(|| ()).await.unwrap() }).await_complete();
        triggered.await;
    });
    crate::common::wait_until("it waits outside of the pool", || trigger.waker().is_some());
    // Until then the pool may run one worker too many (law 4), which takes the next task.
    crate::common::wait_until("the other worker rests", || pool.stats().idle == 1);
    let queued = pool.evaluate(|| ());
    std::thread::sleep(crate::awaited::WHILE);
    let stats = pool.stats();
    assert_eq!((stats.blocked, queued.is_finished()), (0, false), "{stats:?}");
    trigger.fire();
    value(holds);
    value(queued);
}

/// While `complete` drives a future, its thread is marked as an executor's. That is not meant for
/// what it waits for, which is a task of its own.
#[test]
fn a_task_that_a_completed_future_waits_for_may_block_on_a_future() {
    fn block_on(number: u32) -> u32 {
        futures_executor::block_on(async { number })
    }

    let pool = pool(1);
    let (scoping, own) = (pool.clone(), pool.clone());
    let sum = pool.complete(async move {
        let mut sum = own.evaluate(|| block_on(1)).await_complete();
        own.scope(|scope| scope.execute(|| sum += block_on(2)));
        let inside = own.clone();
        let future = async move { inside.evaluate(|| block_on(4)).await_complete() };
        sum += own.complete(future).await_complete();
        assert!(catch_unwind(|| block_on(0)).is_err(), "still marked");
        sum
    });
    assert_eq!(value(sum), 7);
    assert_ended_on(1, &pool, 5);
    // The owner of a scope, in a future of another pool.
    let (host, gate) = (self::pool(1), block(&pool));
    let sum = host.complete(async move {
        let mut sum = 0;
        scoping.scope(|scope| scope.execute(|| sum = block_on(8)));
        sum
    });
    assert_eq!(value(sum), 8);
    gate.open();
}
