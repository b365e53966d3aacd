//! Waits inside another crate's executor. The awaited task does not run on the waiter's stack,
//! where it would be inside that executor too.

use futures_executor::block_on;

use crate::awaited::{here, in_task, pool};
use crate::common::{LIMIT, value};

#[test]
fn a_task_that_is_awaited_inside_an_executor_may_enter_it() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let place = here();
        let inner = || {
            own.evaluate(move || {
                assert_ne!(here(), place);
                block_on(async { 1 })
            })
        };
        assert_eq!(block_on(async { inner().await_complete() }), 1);
        let in_time = block_on(async { inner().await_complete_timeout(LIMIT) });
        assert_eq!(in_time.expect("it ends").unwrap(), 1);
    });
}

#[test]
fn tasks_of_a_scope_or_group_that_is_awaited_inside_an_executor_may_enter_it() {
    let pool = pool(1);
    let scoped = |pool: &elastipool::ThreadPool| {
        block_on(async {
            let mut sum = 0;
            pool.scope(|scope| {
                sum = scope.evaluate(|| block_on(async { 1 })).await_complete();
            });
            pool.scope(|scope| scope.execute(|| sum += block_on(async { 2 })));
            sum
        })
    };
    assert_eq!(scoped(&pool), 3, "outside of the pool");
    assert_eq!(in_task(&pool, scoped), 3);
    let grouped = in_task(&pool, |own| {
        block_on(async {
            let group = own.group::<()>();
            let handle = group.evaluate(|| block_on(async { 4 }));
            group.execute(|| block_on(async { Ok(()) })).unwrap();
            assert!(group.wait().is_ok());
            value(handle)
        })
    });
    assert_eq!(grouped, 4);
}

/// A poll that the pool makes is inside no other executor.
#[test]
fn a_task_that_a_poll_of_the_pool_awaits_runs_on_its_stack() {
    let pool = pool(1);
    let own = pool.clone();
    let completed = pool.complete(async move { (here(), own.evaluate(here).await_complete()) });
    let (outer, inner) = value(completed);
    assert_eq!(outer, inner);
    #[cfg(feature = "async")]
    {
        let own = pool.clone();
        let spawned =
            pool.spawn_await(async move { (here(), own.evaluate(here).await_complete()) });
        let (outer, inner) = value(spawned);
        assert_eq!(outer, inner);
    }
    crate::awaited::assert_ended_on(1, &pool, if cfg!(feature = "async") { 4 } else { 2 });
}
