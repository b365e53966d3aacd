//! A first-time user's program: what the README of rusty_pool 1.0.0 shows under "Usage", in its
//! order, with elastipool instead.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use elastipool::{BuildError, Builder, JoinError, JoinHandle, Rejected, Stats, ThreadPool};

async fn some_async_fn(x: i32, y: i32) -> i32 {
    x + y
}

async fn other_async_fn(x: i32, y: i32) -> i32 {
    x - y
}

#[test]
fn create_a_pool() {
    // Default configuration with the number of CPUs as core size.
    let pool = ThreadPool::default();
    assert_eq!(pool.core_size(), num_cpus::get());
    // With default naming.
    let pool2 = ThreadPool::new(5, 50, Duration::from_secs(60));
    assert!(pool2.name().starts_with("elasti-"));
    // With a custom name: a `String`, as there, or anything that becomes one.
    let pool3 = ThreadPool::new_named(String::from("my_pool"), 5, 50, Duration::from_secs(60));
    assert_eq!(pool3.name(), "my_pool");
    // Using the builder.
    let pool4 = Builder::new().core_size(5).max_size(50).build();

    for pool in [pool2, pool3, pool4, ThreadPool::builder().core_size(5).max_size(50).build()] {
        assert_eq!((pool.core_size(), pool.max_size()), (5, 50));
        assert_eq!(pool.keep_alive(), Duration::from_secs(60));
        assert_eq!(pool.current_worker_count(), 0, "no thread before the first task");
    }
}

#[test]
fn submit_a_closure() {
    let pool = ThreadPool::default();
    let said_hello = Arc::new(AtomicBool::new(false));
    let clone = Arc::clone(&said_hello);
    pool.execute(move || {
        thread::sleep(Duration::from_millis(5));
        clone.store(true, Ordering::Relaxed);
    });
    pool.join();
    assert!(said_hello.load(Ordering::Relaxed));
}

#[test]
fn submit_a_task_and_await_its_result() {
    let pool = ThreadPool::default();
    let handle = pool.evaluate(|| {
        thread::sleep(Duration::from_millis(5));
        4
    });
    let result = handle.await_complete();
    assert_eq!(result, 4);
}

#[test]
fn complete_a_future() {
    let pool = ThreadPool::default();
    let handle = pool.complete(async {
        let a = some_async_fn(4, 6).await; // 10
        let b = some_async_fn(a, 3).await; // 13
        let c = other_async_fn(b, a).await; // 3
        some_async_fn(c, 5).await // 8
    });
    assert_eq!(handle.await_complete(), 8);
}

#[cfg(feature = "async")]
#[test]
fn spawn_a_future() {
    let pool = ThreadPool::default();
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

    let handle = pool.spawn_await(async { other_async_fn(some_async_fn(3, 6).await, 4).await });
    assert_eq!(handle.await_complete(), 5);
}

#[test]
fn join_and_shut_down() {
    let pool = ThreadPool::new(2, 4, Duration::from_secs(60));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    pool.execute(move || assert!(gate.recv().is_ok()));
    for _ in 0..9 {
        pool.execute(|| thread::sleep(Duration::from_millis(5)));
    }
    // One of them does not end yet.
    assert!(!pool.join_timeout(Duration::from_millis(5)));
    open.send(()).unwrap();

    let count = Arc::new(AtomicI32::new(0));
    for _ in 0..15 {
        let clone = count.clone();
        pool.execute(move || {
            thread::sleep(Duration::from_millis(5));
            clone.fetch_add(1, Ordering::SeqCst);
        });
    }
    // Shut down the only handle of this pool and wait until everything is done.
    pool.shutdown_join();
    assert_eq!(count.load(Ordering::SeqCst), 15);
}

#[test]
fn pass_a_pool_to_a_task() {
    // "JoinHandles may be sent to the thread pool to create a task that blocks a worker thread
    // until it receives the result of the other task and then operates on the result."
    let pool = ThreadPool::new(1, 2, Duration::from_secs(60));
    let one = pool.evaluate(|| 20);
    let other = pool.evaluate(move || one.await_complete() + 1);
    let third = pool.complete(async move { other.await.expect("did not panic") * 2 });
    assert_eq!(third.await_complete(), 42);
}

#[test]
fn hooks_run_when_a_worker_starts_and_stops() {
    let (started, stopped) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
    let (on_start, on_stop) = (Arc::clone(&started), Arc::clone(&stopped));
    let pool = Builder::new()
        .core_size(2)
        .max_size(2)
        .on_worker_start(move |_| {
            on_start.fetch_add(1, Ordering::SeqCst);
        })
        .on_worker_stop(move |_| {
            on_stop.fetch_add(1, Ordering::SeqCst);
        })
        .build();
    assert_eq!(pool.start_core_threads(), 2);
    pool.shutdown_join();
    assert_eq!((started.load(Ordering::SeqCst), stopped.load(Ordering::SeqCst)), (2, 2));
}

#[test]
fn a_clone_is_the_same_pool() {
    let pool = ThreadPool::new_named("cloned", 1, 1, Duration::from_secs(60));
    let clone = pool.clone();
    let submitter = thread::spawn(move || clone.evaluate(|| thread::current().id()));
    let theirs = submitter.join().unwrap().await_complete();
    let ours = pool.evaluate(|| thread::current().id()).await_complete();
    assert_eq!(theirs, ours);
    let text = format!("{pool:?}");
    assert!(text.contains("ThreadPool") && text.contains("\"cloned\""), "{text}");
}

#[test]
fn types_go_where_users_send_them() {
    fn pool<T: Send + Sync + Unpin + Clone + std::fmt::Debug + Default + 'static>() {}
    fn a_pool_survives_panics<T: UnwindSafe + RefUnwindSafe>() {}
    fn handle<T: Send + Sync + Unpin + std::fmt::Debug + Future + 'static>() {}
    fn error<T: Send + Sync + Unpin + std::error::Error + 'static>() {}
    fn value<T: Send + Sync + Unpin + Clone + PartialEq + std::fmt::Debug + 'static>() {}
    fn builder<T: Send + Sync + Unpin + std::fmt::Debug + Default + 'static>() {}
    /// Need not be shared between threads to be sent.
    type SendOnly = std::cell::Cell<u8>;

    pool::<ThreadPool>();
    a_pool_survives_panics::<ThreadPool>();
    handle::<JoinHandle<SendOnly>>();
    error::<JoinError>();
    error::<Rejected<fn()>>();
    error::<BuildError>();
    value::<Stats>();
    builder::<Builder>();
}
