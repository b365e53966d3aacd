//! Handles and groups that a closure polls by the executor of another crate, which then blocks its
//! worker out of the pool's sight: in a region, or in a pool that measures. And those of futures
//! that the pool drives.

use crate::common;

use common::{HOUR, LIMIT, value};
use elastipool::{Builder, ThreadPool, blocking};
use futures::future::{BoxFuture, FutureExt, join_all};

fn builder() -> Builder {
    Builder::new().core_size(1).max_size(1).keep_alive(HOUR)
}

type BlockOn = fn(BoxFuture<'_, usize>) -> usize;

const EXECUTORS: [BlockOn; 2] =
    [|future| futures::executor::block_on(future), |future| async_io::block_on(future)];

async fn add(pool: &ThreadPool, number: usize) -> usize {
    pool.evaluate(move || number).await.unwrap() + 1
}

/// Ways to wait for tasks of the pool in async code. Each returns 6.
type Wait = for<'a> fn(&'a ThreadPool) -> BoxFuture<'a, usize>;

const WAITS: &[Wait] = &[
    |pool| pool.evaluate(|| 6).map(Result::unwrap).boxed(),
    |pool| add(pool, 5).boxed(),
    |pool| async { add(pool, 1).await + add(pool, 2).await + 1 }.boxed(),
    |pool| join_all((1..4).map(|number| add(pool, number - 1))).map(|all| all.iter().sum()).boxed(),
    |pool| {
        // Each of these is polled in turn, by wakers of the combinator.
        let tasks = (0..40).map(|number| pool.evaluate(move || usize::from(number < 6)));
        join_all(tasks).map(|all| all.into_iter().map(Result::unwrap).sum()).boxed()
    },
    |pool| {
        let group = pool.group::<()>();
        group.execute(|| Ok(())).unwrap();
        let handle = group.evaluate(|| 6);
        async move {
            group.await.unwrap();
            handle.await.unwrap()
        }
        .boxed()
    },
    |pool| {
        let handle = pool.evaluate(|| 6);
        handle.cancel();
        handle.map(|result| result.unwrap_or(6)).boxed()
    },
    |pool| pool.complete(async { 6 }).map(Result::unwrap).boxed(),
    #[cfg(feature = "async")]
    |pool| {
        let own = pool.clone();
        pool.spawn_await(async move { add(&own, 5).await }).map(Result::unwrap).boxed()
    },
];

#[test]
fn a_closure_may_block_on_tasks_of_its_pool_in_a_region() {
    for block_on in EXECUTORS {
        for pool in [builder().build(), builder().queue_capacity(100).build()] {
            for wait in WAITS {
                let own = pool.clone();
                assert_eq!(value(pool.evaluate(move || blocking(|| block_on(wait(&own))))), 6);
            }
            assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
            assert_eq!(pool.stats().blocked, 0);
        }
    }
}

/// Where the system says which threads sleep.
#[cfg(target_os = "linux")]
#[test]
fn as_many_closures_as_workers_may_block_on_tasks_in_a_pool_that_measures() {
    for block_on in EXECUTORS {
        let pool = Builder::new()
            .core_size(0)
            .max_size(20)
            .growth(elastipool::Growth::measured(1))
            .build();
        let requests: Vec<_> = (0..8)
            .map(|number| {
                let own = pool.clone();
                pool.evaluate(move || block_on(add(&own, number).boxed()))
            })
            .collect();
        assert_eq!(requests.into_iter().map(value).sum::<usize>(), 36);
        assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
    }
}

#[test]
fn a_completion_may_await_tasks_of_its_pool() {
    for pool in [builder().build(), builder().max_blocked(0).build()] {
        for wait in WAITS {
            let own = pool.clone();
            assert_eq!(value(pool.complete(async move { wait(&own).await })), 6);
        }
        assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
        assert_eq!(pool.stats().blocked, 0);
    }
}

/// The pool polls these: no executor blocks the worker.
#[test]
fn what_the_pool_polls_does_not_block_its_worker() {
    let pool = builder().build();
    let own = pool.clone();
    #[cfg(feature = "async")]
    assert_eq!(value(pool.spawn_await(async move { add(&own, 5).await })), 6);
    #[cfg(not(feature = "async"))]
    drop(own);
    assert_eq!(pool.stats().peak_blocked, 0);
    // A blocking wait polls the handle too, and runs its task.
    let own = pool.clone();
    assert_eq!(value(pool.evaluate(move || own.evaluate(|| 7).await_complete())), 7);
    assert_eq!((pool.stats().peak_blocked, pool.stats().threads_started), (0, 1));
}
