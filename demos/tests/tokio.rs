//! Closures of the pool that enter a runtime of tokio, and wait for tasks of the pool inside.

use std::time::Duration;

use elastipool::{ThreadPool, blocking};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The pool cannot tell that a thread is inside tokio. The way out for a wait that blocks.
#[test]
fn a_task_that_is_awaited_in_place_may_enter_the_runtime() {
    let (pool, runtime) = (ThreadPool::new(1, 1, Duration::from_secs(3600)), runtime());
    let (own, inside) = (pool.clone(), runtime.handle().clone());
    let number = pool.evaluate(move || {
        let enters = inside.clone();
        inside.block_on(async {
            let handle = own.evaluate(move || enters.block_on(async { 7 }));
            tokio::task::block_in_place(|| handle.await_complete())
        })
    });
    assert_eq!(number.await_complete(), 7);
}

/// The worker that waits is in a region: another one runs the task, outside of the runtime.
#[test]
fn a_closure_may_block_on_tasks_inside_a_runtime() {
    let (pool, runtime) = (ThreadPool::new(1, 1, Duration::from_secs(3600)), runtime());
    let (own, inside) = (pool.clone(), runtime.handle().clone());
    let number = pool.evaluate(move || {
        let enters = inside.clone();
        let waits = async {
            let number = own.evaluate(move || enters.block_on(async { 7 })).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            number
        };
        blocking(|| inside.block_on(waits))
    });
    assert_eq!(number.await_complete(), 7);
    assert_eq!(pool.stats().blocked, 0);
}

/// The recipe of `docs/migration.md`: a runtime that each worker has entered.
#[test]
fn requests_may_block_on_tasks_inside_the_runtime_of_their_worker() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let pool = ThreadPool::builder()
        .core_size(1)
        .max_size(2)
        .around_worker(move |work| {
            let _entered = handle.enter();
            work();
        })
        .build();
    let requests: Vec<_> = (0..4 * pool.max_size())
        .map(|number| {
            let own = pool.clone();
            pool.evaluate(move || {
                let waits = async {
                    let number = own.evaluate(move || number).await.unwrap();
                    tokio::spawn(async move { number }).await.unwrap()
                };
                blocking(|| tokio::runtime::Handle::current().block_on(waits))
            })
        })
        .collect();
    let count = requests.len();
    let sum: usize = requests.into_iter().map(|request| request.await_complete()).sum();
    assert_eq!(sum, count * (count - 1) / 2);
    pool.shutdown_join();
}
