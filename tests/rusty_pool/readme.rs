//! The program of rusty_pool's README, under "Usage". See `main.rs` for the license and for what
//! was changed.

#[test]
fn create() {
    use elastipool::Builder;
    use elastipool::ThreadPool;
    // Create default `ThreadPool` configuration with the number of CPUs as core pool size
    let pool = ThreadPool::default();
    // Create a `ThreadPool` with default naming:
    use super::Duration;
    let pool2 = ThreadPool::new(5, 50, Duration::from_secs(60));
    // Create a `ThreadPool` with a custom name:
    let pool3 = ThreadPool::new_named(String::from("my_pool"), 5, 50, Duration::from_secs(60));
    // using the Builder struct:
    let pool4 = Builder::new().core_size(5).max_size(50).build();
}

#[test]
fn submit_a_closure() {
    use super::Duration;
    use elastipool::ThreadPool;
    use std::thread;
    let pool = ThreadPool::default();
    pool.execute(|| {
        thread::sleep(Duration::from_secs(5));
        print!("hello");
    });
}

#[test]
fn submit_a_task_and_await_the_result() {
    use super::Duration;
    use elastipool::ThreadPool;
    use std::thread;
    let pool = ThreadPool::default();
    let handle = pool.evaluate(|| {
        thread::sleep(Duration::from_secs(5));
        return 4;
    });
    let result = handle.await_complete();
    assert_eq!(result, 4);
}

#[cfg(feature = "async")]
#[test]
fn spawn_futures() {
    async fn some_async_fn(x: i32, y: i32) -> i32 {
        x + y
    }

    async fn other_async_fn(x: i32, y: i32) -> i32 {
        x - y
    }

    use elastipool::ThreadPool;
    let pool = ThreadPool::default();

    // simply complete future by blocking a worker until the future has been completed
    let handle = pool.complete(async {
        let a = some_async_fn(4, 6).await; // 10
        let b = some_async_fn(a, 3).await; // 13
        let c = other_async_fn(b, a).await; // 3
        some_async_fn(c, 5).await // 8
    });
    assert_eq!(handle.await_complete(), 8);

    use std::sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    };

    // spawn future and create waker that automatically re-submits itself to the threadpool if ready
    // to make progress, this requires the "async" feature which is enabled by default
    let count = Arc::new(AtomicI32::new(0));
    let clone = count.clone();
    pool.spawn(async move {
        let a = some_async_fn(3, 6).await; // 9
        let b = other_async_fn(a, 4).await; // 5
        let c = some_async_fn(b, 7).await; // 12
        clone.fetch_add(c, Ordering::SeqCst);
    });
    pool.join();
    assert_eq!(count.load(Ordering::SeqCst), 12);
}

#[test]
fn join_and_shut_down() {
    use super::Duration;
    use elastipool::ThreadPool;
    use std::sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    };
    use std::thread;

    let pool = ThreadPool::default();
    for _ in 0..10 {
        pool.execute(|| thread::sleep(Duration::from_secs(10)))
    }
    // wait for all threads to become idle, i.e. all tasks to be completed including tasks added by
    // other threads after join() is called by this thread or for the timeout to be reached
    pool.join_timeout(Duration::from_secs(5));

    let count = Arc::new(AtomicI32::new(0));
    for _ in 0..15 {
        let clone = count.clone();
        pool.execute(move || {
            thread::sleep(Duration::from_secs(5));
            clone.fetch_add(1, Ordering::SeqCst);
        });
    }

    // shut down and drop the only instance of this `ThreadPool` (no clones) causing the channel to
    // be broken leading all workers to exit after completing their current work and wait for all
    // workers to become idle, i.e. finish their work.
    pool.shutdown_join();
    assert_eq!(count.load(Ordering::SeqCst), 15);
}
