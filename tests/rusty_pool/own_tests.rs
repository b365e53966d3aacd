//! rusty_pool's own tests: its `src/lib.rs`, `mod tests`. See `main.rs` for the license and for
//! what was changed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};
use std::thread;

use elastipool::{Builder, JoinHandle, ThreadPool};

use super::{Duration, RustyPoolNames};

#[test]
fn it_works() {
    let pool = ThreadPool::new(2, 10, Duration::from_secs(5));
    let count = Arc::new(AtomicUsize::new(0));

    let count1 = count.clone();
    pool.execute(move || {
        count1.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count2 = count.clone();
    pool.execute(move || {
        count2.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count3 = count.clone();
    pool.execute(move || {
        count3.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count4 = count.clone();
    pool.execute(move || {
        count4.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    thread::sleep(Duration::from_secs(20));
    let count5 = count.clone();
    pool.execute(move || {
        count5.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count6 = count.clone();
    pool.execute(move || {
        count6.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count7 = count.clone();
    pool.execute(move || {
        count7.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    let count8 = count.clone();
    pool.execute(move || {
        count8.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(4));
    });
    thread::sleep(Duration::from_secs(20));

    let count = count.load(Ordering::Relaxed);
    let worker_count = pool.get_current_worker_count();

    assert_eq!(count, 8);
    // assert that non-core threads were dropped
    assert_eq!(worker_count, 2);
    assert_eq!(pool.get_idle_worker_count(), 2);
}

#[test]
fn stress_test() {
    type Duration = crate::Scaled<10>;

    let pool = Arc::new(ThreadPool::new(3, 50, Duration::from_secs(30)));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..5 {
        let pool_1 = pool.clone();
        let clone = counter.clone();
        pool.execute(move || {
            for _ in 0..160 {
                let clone = clone.clone();
                pool_1.execute(move || {
                    clone.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_secs(10));
                });
            }

            thread::sleep(Duration::from_secs(20));

            for _ in 0..160 {
                let clone = clone.clone();
                pool_1.execute(move || {
                    clone.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_secs(10));
                });
            }
        });
    }

    thread::sleep(Duration::from_secs(10));
    pool.expect_workers(50);

    pool.join();
    assert_eq!(counter.load(Ordering::Relaxed), 1600);
    thread::sleep(Duration::from_secs(31));
    pool.expect_workers(3);
}

#[test]
fn test_join() {
    // use a thread pool with one thread max to make sure the second task starts after
    // pool.join() is called to make sure it joins future tasks as well
    let pool = ThreadPool::new(0, 1, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    let clone_1 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_1.fetch_add(1, Ordering::Relaxed);
    });

    let clone_2 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_2.fetch_add(1, Ordering::Relaxed);
    });

    pool.join();

    assert_eq!(counter.load(Ordering::Relaxed), 2);
}

#[test]
fn test_join_timeout() {
    let pool = ThreadPool::new(0, 1, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    let clone = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone.fetch_add(1, Ordering::Relaxed);
    });

    pool.join_timeout(Duration::from_secs(5));
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    pool.join();
    assert_eq!(counter.load(Ordering::Relaxed), 1);
}

#[test]
fn test_shutdown() {
    type Duration = crate::Scaled<200>;

    let pool = ThreadPool::new(1, 3, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    let clone_1 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_1.fetch_add(1, Ordering::Relaxed);
    });

    let clone_2 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_2.fetch_add(1, Ordering::Relaxed);
    });

    let clone_3 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_3.fetch_add(1, Ordering::Relaxed);
    });

    // since the pool only allows three threads this won't get the chance to run
    let clone_4 = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(5));
        clone_4.fetch_add(1, Ordering::Relaxed);
    });

    pool.join_timeout(Duration::from_secs(2));
    pool.shutdown();

    thread::sleep(Duration::from_secs(5));

    assert_eq!(counter.load(Ordering::Relaxed), 3);
}

#[should_panic(expected = "max_size is 0; it must be at least 1")]
#[test]
fn test_panic_on_0_max_pool_size() {
    ThreadPool::new(0, 0, Duration::from_secs(2));
}

#[should_panic(expected = "max_size is 4; it must be at least core_size, which is 10")]
#[test]
fn test_panic_on_smaller_max_than_core_pool_size() {
    ThreadPool::new(10, 4, Duration::from_secs(2));
}

#[should_panic(expected = "it must be at most ThreadPool::MAX_SIZE")]
#[test]
fn test_panic_on_max_size_exceeds_half_usize() {
    ThreadPool::new(10, 1 << ((std::mem::size_of::<usize>() * 8) / 2), Duration::from_secs(2));
}

#[test]
fn test_empty_join() {
    let pool = ThreadPool::new(3, 10, Duration::from_secs(10));
    pool.join();
}

#[test]
fn test_join_when_complete() {
    let pool = ThreadPool::new(3, 10, Duration::from_secs(5));

    pool.execute(|| {
        thread::sleep(Duration::from_millis(5000));
    });

    thread::sleep(Duration::from_millis(5000));
    pool.join();
}

#[test]
fn test_full_usage() {
    let pool = ThreadPool::new(5, 50, Duration::from_secs(10));

    for _ in 0..100 {
        pool.execute(|| {
            thread::sleep(Duration::from_secs(30));
        });
    }

    thread::sleep(Duration::from_secs(10));
    pool.expect_workers(50);

    pool.join();
    thread::sleep(Duration::from_secs(15));
    pool.expect_workers(5);
}

#[test]
fn test_shutdown_join() {
    let pool = ThreadPool::new(1, 1, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    let clone = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone.fetch_add(1, Ordering::Relaxed);
    });

    pool.shutdown_join();
    assert_eq!(counter.load(Ordering::Relaxed), 1);
}

#[test]
fn test_shutdown_join_timeout() {
    let pool = ThreadPool::new(1, 1, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    let clone = counter.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone.fetch_add(1, Ordering::Relaxed);
    });

    pool.shutdown_join_timeout(Duration::from_secs(5));
    assert_eq!(counter.load(Ordering::Relaxed), 0);
}

#[test]
fn test_empty_shutdown_join() {
    let pool = ThreadPool::new(1, 5, Duration::from_secs(5));
    pool.shutdown_join();
}

#[test]
fn test_shutdown_core_pool() {
    let pool = ThreadPool::new(5, 5, Duration::from_secs(1));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..7 {
        let clone = counter.clone();
        pool.execute(move || {
            thread::sleep(Duration::from_secs(2));
            clone.fetch_add(1, Ordering::Relaxed);
        });
    }

    assert_eq!(pool.get_current_worker_count(), 5);
    assert_eq!(pool.get_idle_worker_count(), 0);
    pool.shutdown_join();
    assert_eq!(counter.load(Ordering::Relaxed), 7);
}

#[test]
fn test_shutdown_idle_core_pool() {
    let pool = ThreadPool::new(5, 5, Duration::from_secs(1));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..5 {
        let clone = counter.clone();
        pool.execute(move || {
            clone.fetch_add(1, Ordering::Relaxed);
        });
    }

    pool.shutdown_join();
    assert_eq!(counter.load(Ordering::Relaxed), 5);
}

#[test]
fn test_shutdown_on_complete() {
    let pool = ThreadPool::new(3, 10, Duration::from_secs(5));

    pool.execute(|| {
        thread::sleep(Duration::from_millis(5000));
    });

    thread::sleep(Duration::from_millis(5000));
    pool.shutdown_join();
}

#[test]
fn test_shutdown_after_complete() {
    let pool = ThreadPool::new(3, 10, Duration::from_secs(5));

    pool.execute(|| {
        thread::sleep(Duration::from_millis(5000));
    });

    thread::sleep(Duration::from_millis(7000));
    pool.shutdown_join();
}

#[test]
fn test_join_enqueued_task() {
    let pool = ThreadPool::new(3, 50, Duration::from_secs(20));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..160 {
        let clone = counter.clone();
        pool.execute(move || {
            thread::sleep(Duration::from_secs(10));
            clone.fetch_add(1, Ordering::Relaxed);
        });
    }

    thread::sleep(Duration::from_secs(5));
    pool.expect_workers(50);

    pool.join();
    assert_eq!(counter.load(Ordering::Relaxed), 160);
    thread::sleep(Duration::from_secs(21));
    pool.expect_workers(3);
}

#[test]
fn test_panic_all() {
    let pool = ThreadPool::new(3, 10, Duration::from_secs(2));

    for _ in 0..10 {
        pool.execute(|| {
            panic!("test");
        })
    }

    pool.join();
    thread::sleep(Duration::from_secs(5));
    pool.expect_workers(3);
    pool.settle();
    assert_eq!(pool.get_idle_worker_count(), 3);
}

#[test]
fn test_panic_some() {
    type Duration = crate::Scaled<200>;

    let pool = ThreadPool::new(3, 10, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    for i in 0..10 {
        let clone = counter.clone();
        pool.execute(move || {
            if i < 3 || i % 2 == 0 {
                thread::sleep(Duration::from_secs(5));
                clone.fetch_add(1, Ordering::Relaxed);
            } else {
                thread::sleep(Duration::from_secs(5));
                panic!("test");
            }
        })
    }

    pool.join();
    pool.settle();
    assert_eq!(counter.load(Ordering::Relaxed), 6);
    assert_eq!(pool.get_current_worker_count(), 10);
    assert_eq!(pool.get_idle_worker_count(), 10);
    thread::sleep(Duration::from_secs(10));
    pool.expect_workers(3);
    pool.settle();
    assert_eq!(pool.get_idle_worker_count(), 3);
}

#[test]
fn test_panic_all_core_threads() {
    let pool = ThreadPool::new(3, 3, Duration::from_secs(1));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..3 {
        pool.execute(|| {
            panic!("test");
        })
    }

    pool.join();

    for i in 0..10 {
        let clone = counter.clone();
        pool.execute(move || {
            if i < 3 || i % 2 == 0 {
                clone.fetch_add(1, Ordering::Relaxed);
            } else {
                thread::sleep(Duration::from_secs(5));
                panic!("test");
            }
        })
    }

    pool.join();
    pool.settle();
    assert_eq!(counter.load(Ordering::Relaxed), 6);
    assert_eq!(pool.get_current_worker_count(), 3);
    assert_eq!(pool.get_idle_worker_count(), 3);
}

#[test]
fn test_drop_all_receivers() {
    let pool = ThreadPool::new(0, 3, Duration::from_secs(5));
    let counter = Arc::new(AtomicUsize::new(0));

    for _ in 0..3 {
        let clone = counter.clone();
        pool.execute(move || {
            clone.fetch_add(1, Ordering::Relaxed);
        })
    }

    pool.join();
    assert_eq!(counter.load(Ordering::Relaxed), 3);
    thread::sleep(Duration::from_secs(10));
    pool.expect_workers(0);

    for _ in 0..3 {
        let clone = counter.clone();
        pool.execute(move || {
            clone.fetch_add(1, Ordering::Relaxed);
        })
    }

    pool.join();
    assert_eq!(counter.load(Ordering::Relaxed), 6);
}

#[test]
fn test_evaluate() {
    let pool = ThreadPool::new(0, 3, Duration::from_secs(5));

    let count = AtomicUsize::new(0);

    let handle = pool.evaluate(move || {
        count.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(5));
        count.fetch_add(1, Ordering::Relaxed)
    });

    let result = handle.await_complete();
    assert_eq!(result, 1);
}

#[test]
fn test_multiple_evaluate() {
    let pool = ThreadPool::new(0, 3, Duration::from_secs(5));

    let count = AtomicUsize::new(0);
    let handle_1 = pool.evaluate(move || {
        for _ in 0..10000 {
            count.fetch_add(1, Ordering::Relaxed);
        }

        thread::sleep(Duration::from_secs(5));

        for _ in 0..10000 {
            count.fetch_add(1, Ordering::Relaxed);
        }

        count.load(Ordering::Relaxed)
    });

    let handle_2 = pool.evaluate(move || {
        let result = handle_1.await_complete();
        let mut count = result;

        count += 15000;

        thread::sleep(Duration::from_secs(5));

        count += 20000;

        count
    });

    let result = handle_2.await_complete();
    assert_eq!(result, 55000);
}

#[should_panic(expected = "expected panic")]
#[test]
fn test_evaluate_panic() {
    let pool = Builder::new().core_size(5).max_size(50).build();

    let handle = pool.evaluate(|| {
        let x = 3;

        if x == 3 {
            panic!("expected panic")
        }

        x
    });

    handle.await_complete();
}

#[test]
fn test_complete_fut() {
    let pool = ThreadPool::new(0, 3, Duration::from_secs(5));

    async fn async_fn() -> i8 {
        8
    }

    let fut = async_fn();
    let handle = pool.complete(fut);

    assert_eq!(handle.await_complete(), 8);
}

#[cfg(feature = "async")]
#[test]
fn test_spawn() {
    let pool = ThreadPool::default();

    async fn add(x: i32, y: i32) -> i32 {
        x + y
    }

    async fn multiply(x: i32, y: i32) -> i32 {
        x * y
    }

    let count = Arc::new(AtomicUsize::new(0));
    let clone = count.clone();
    pool.spawn(async move {
        let a = add(2, 3).await; // 5
        let b = add(2, a).await; // 7
        let c = multiply(2, b).await; // 14
        let d = multiply(a, add(2, 1).await).await; // 15
        let e = add(c, d).await; // 29

        clone.fetch_add(e as usize, Ordering::Relaxed);
    });

    pool.join();
    assert_eq!(count.load(Ordering::Relaxed), 29);
}

#[cfg(feature = "async")]
#[test]
fn test_spawn_await() {
    let pool = ThreadPool::default();

    async fn sub(x: i32, y: i32) -> i32 {
        x - y
    }

    async fn div(x: i32, y: i32) -> i32 {
        x / y
    }

    let handle = pool.spawn_await(async {
        let a = sub(120, 10).await; // 110
        let b = div(sub(a, 10).await, 4).await; // 25
        div(sub(b, div(10, 2).await).await, 5).await // 4
    });

    assert_eq!(handle.await_complete(), 4)
}

#[test]
fn test_drop_oneshot_receiver() {
    let pool = Builder::new().core_size(1).max_size(1).build();

    let handle = pool.evaluate(|| {
        thread::sleep(Duration::from_secs(5));
        5
    });

    drop(handle);
    thread::sleep(Duration::from_secs(10));
    // one worker has started, indicating that the worker did not panic else it would have been
    // replaced.
    assert_eq!(pool.stats().threads_started, 1);
}

#[test]
fn test_builder_max_size() {
    Builder::new().max_size(1).build();
}

#[test]
fn test_multi_thread_join() {
    let pool = ThreadPool::default();
    let count = Arc::new(AtomicUsize::new(0));

    let clone1 = count.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone1.fetch_add(1, Ordering::Relaxed);
    });

    let clone2 = count.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone2.fetch_add(1, Ordering::Relaxed);
    });

    let clone3 = count.clone();
    pool.execute(move || {
        thread::sleep(Duration::from_secs(10));
        clone3.fetch_add(1, Ordering::Relaxed);
    });

    let pool2 = pool.clone();
    let clone4 = count.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(5));
        pool2.execute(move || {
            thread::sleep(Duration::from_secs(15));
            clone4.fetch_add(2, Ordering::Relaxed);
        });
    });

    let pool3 = pool.clone();
    let pool4 = pool.clone();
    let pool5 = pool.clone();
    let h1 = thread::spawn(move || {
        pool3.join();
    });
    let h2 = thread::spawn(move || {
        pool4.join();
    });
    let h3 = thread::spawn(move || {
        pool5.join();
    });
    h1.join().unwrap();
    h2.join().unwrap();
    h3.join().unwrap();

    assert_eq!(count.load(Ordering::Relaxed), 5);
}

#[test]
fn test_start_core_threads() {
    let pool = Builder::new().core_size(5).build();
    pool.start_core_threads();
    pool.settle();
    assert_eq!(pool.get_current_worker_count(), 5);
    assert_eq!(pool.get_idle_worker_count(), 5);
}

#[test]
fn test_start_and_use_core_threads() {
    let pool =
        Builder::new().core_size(5).max_size(10).keep_alive(Duration::from_secs(u64::MAX)).build();
    pool.start_core_threads();
    pool.settle();
    let result = pool.evaluate(|| 5 + 5).await_complete();
    assert_eq!(result, 10);
    assert_eq!(pool.get_current_worker_count(), 5);
}

#[test]
fn types_are_thread_safe() {
    fn assert_send<T: Send>() {}
    fn assert_send_sync<T: Send + Sync>() {}

    assert_send_sync::<ThreadPool>();
    assert_send::<JoinHandle<()>>();
}

#[test]
fn test_worker_start_stop_callbacks() {
    let (start_sender, start_receiver) = mpsc::channel();
    let (stop_sender, stop_receiver) = mpsc::channel();

    let pool = Builder::new()
        .core_size(3)
        .max_size(3)
        .on_worker_start(move |_| {
            start_sender.send(()).unwrap();
        })
        .on_worker_stop(move |_| {
            stop_sender.send(()).unwrap();
        })
        .build();

    pool.start_core_threads();

    for _ in 0..3 {
        start_receiver
            .recv_timeout(Duration::from_secs(100))
            .expect("worker start callback was not invoked");
    }

    pool.shutdown();

    for _ in 0..3 {
        stop_receiver
            .recv_timeout(Duration::from_secs(100))
            .expect("worker stop callback was not invoked");
    }
}
