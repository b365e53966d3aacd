//! Closures of the pool that enter a runtime of tokio, and wait for tasks of the pool inside.

use std::time::Duration;

use elastipool::ThreadPool;
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
