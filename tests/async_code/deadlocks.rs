//! Async waits beside user code that waits itself: destructors, hooks, and executors that poll
//! inside of the wake.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Context;
use std::thread;
use std::time::Duration;

use common::waits::{Inline, waker};
use common::{CountingWaker, HOUR, LIMIT, block, joined, millis, wait_until};
use elastipool::ThreadPool;

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

fn terminated(pool: &ThreadPool) -> Waiting {
    let pool = pool.clone();
    Box::pin(async move { pool.terminated().await })
}

/// Each permit starts a worker, and the keeper, which leave after it.
#[cfg(target_os = "linux")]
#[test]
fn waits_for_slots_in_a_pool_without_workers_leave_no_threads_behind() {
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let pool = ThreadPool::new(0, 1, Duration::ZERO);
    let group = pool.group::<()>().limit(1);
    let before = mappings();
    for _ in 0..500 {
        drop(futures::executor::block_on(group.ready()).unwrap());
    }
    let after = mappings();
    assert!(after < before + 200, "{before} {after}");
}

/// A destructor that an immediate shutdown runs waits for an async submitter of another pool.
#[test]
fn a_destructor_in_an_immediate_shutdown_may_wait_for_a_submitter() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let other = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let gate = block(&pool);
    let permit = futures::executor::block_on(other.ready()).unwrap();
    let (woken, is_woken) = mpsc::channel();
    let inner = other.clone();
    let mut waits = Box::pin(async move { inner.ready().await.map(drop) });
    let wakes = waker(move || woken.send(()).unwrap());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&wakes)).is_pending());

    struct Waits(Option<elastipool::Permit>, mpsc::Receiver<()>, Arc<AtomicBool>);
    impl Drop for Waits {
        fn drop(&mut self) {
            drop(self.0.take());
            let is_woken = self.1.recv_timeout(Duration::from_secs(3)).is_ok();
            self.2.store(is_woken, Ordering::SeqCst);
        }
    }
    let in_time = Arc::new(AtomicBool::new(false));
    let guard = Waits(Some(permit), is_woken, Arc::clone(&in_time));
    let guard = Mutex::new(guard);
    let group = pool.group::<()>();
    group
        .execute(move || {
            drop(guard);
            Ok(())
        })
        .unwrap();
    drop(pool.shutdown_now());
    drop(waits);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(in_time.load(Ordering::SeqCst));
}

/// The thread that wakes them polls one of them in the wake, while another joins that thread.
#[test]
fn a_future_joins_the_thread_that_polls_another_in_its_wake() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let mut first = terminated(&pool);
    let (woken, first_waker) = CountingWaker::new();
    assert!(first.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
    let (begin, begun) = mpsc::channel();
    let begun = Mutex::new(begun);
    let mut second = terminated(&pool);
    // Time for the first one to join the thread that calls this.
    let waits = waker(move || {
        begun.lock().unwrap().recv().unwrap();
        thread::sleep(millis(20));
    });
    assert!(second.as_mut().poll(&mut Context::from_waker(&waits)).is_pending());
    let third = Inline::run(terminated(&pool));
    pool.close();
    wait_until("the first one is woken", || woken.count() > 0);
    let joiner = thread::spawn(move || {
        begin.send(()).unwrap();
        futures::executor::block_on(first);
    });
    joined(joiner);
    wait_until("the third one has ended", || third.is_over());
}

/// Four executors that poll in the wake, at the end of many threads.
#[test]
fn many_threads_exit_beside_executors_that_poll_in_the_wake() {
    for _ in 0..200 {
        let pool = ThreadPool::new(8, 8, HOUR);
        let gates: Vec<_> = (0..8).map(|_| block(&pool)).collect();
        let runs: Vec<_> = (0..4).map(|_| Inline::run(terminated(&pool))).collect();
        pool.close();
        gates.iter().for_each(|gate| gate.open());
        wait_until("all have ended", || runs.iter().all(|one| one.is_over()));
    }
}

/// A hook that a thread calls which starts another one, under a hold of that thread.
#[test]
fn a_hook_may_wait_for_a_submitter_of_another_pool() {
    let other = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let permit = Mutex::new(Some(futures::executor::block_on(other.ready()).unwrap()));
    let (woken, is_woken) = mpsc::channel();
    let is_woken = Mutex::new(is_woken);
    let inner = other.clone();
    let mut waits = Box::pin(async move { inner.ready().await.map(drop) });
    let wakes = waker(move || woken.send(()).unwrap());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&wakes)).is_pending());
    let in_time = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&in_time);
    let pool = ThreadPool::builder()
        .core_size(0)
        .max_size(1)
        .thread_name(move |_| {
            if let Some(permit) = permit.lock().unwrap().take() {
                drop(permit);
                let is_woken = is_woken.lock().unwrap();
                seen.store(is_woken.recv_timeout(Duration::from_secs(3)).is_ok(), Ordering::SeqCst);
            }
            "worker".to_owned()
        })
        .build();
    pool.execute(|| ());
    pool.join();
    assert!(in_time.load(Ordering::SeqCst));
}

/// Calls `submit`, of a pool whose second worker's name hook blocks on a full queue. Keeps what it
/// returns until the hook has returned.
fn assert_hook_exceeds_capacity<R>(submit: impl FnOnce(ThreadPool) -> R) {
    let handle = Arc::new(Mutex::new(None::<ThreadPool>));
    let (inner, done) = (Arc::clone(&handle), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&done);
    let builder = ThreadPool::builder().core_size(0).max_size(2).queue_capacity(0);
    let named = builder.thread_name(move |index| {
        let pool = inner.lock().unwrap().clone();
        if let (1, Some(pool)) = (index, pool) {
            futures::executor::block_on(pool.ready()).unwrap().execute(|| ()).unwrap();
            seen.store(true, Ordering::SeqCst);
        }
        format!("worker {index}")
    });
    let pool = named.build();
    *handle.lock().unwrap() = Some(pool.clone());
    let kept = submit(pool.clone());
    wait_until("the hook has returned", || done.load(Ordering::SeqCst));
    drop(kept);
    *handle.lock().unwrap() = None;
    assert!(pool.join_timeout(LIMIT));
}

/// It must not wait: its thread cannot count as blocked there.
#[test]
fn a_hook_that_blocks_on_capacity_exceeds_it() {
    assert_hook_exceeds_capacity(|pool| {
        let inner = pool.clone();
        pool.execute(move || inner.execute(|| ()));
    });
}

/// The hook blocks, although the pool polls below it.
#[cfg(feature = "async")]
#[test]
fn a_hook_below_a_poll_exceeds_it() {
    assert_hook_exceeds_capacity(|pool| {
        let inner = pool.clone();
        pool.spawn(async move { inner.execute(|| ()) });
    });
}

/// The hook blocks, although the helper calls it for a waker, which must not block.
#[test]
fn a_hook_below_a_waker_exceeds_it() {
    assert_hook_exceeds_capacity(|pool| {
        let (end, is_over) = mpsc::channel::<()>();
        pool.execute(move || _ = is_over.recv());
        let permit = futures::executor::block_on(pool.ready()).unwrap();
        let (waits, submits) = (pool.clone(), pool);
        let mut wait = Box::pin(async move { waits.ready().await });
        let wakes = waker(move || submits.execute(|| ()));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&wakes)).is_pending());
        drop(permit);
        (wait, end)
    });
}

/// It would keep its worker from the task that has the permit.
#[test]
fn a_start_hook_exceeds_the_capacity() {
    for is_async in [false, true] {
        let weak = Arc::new(Mutex::new(None::<elastipool::WeakThreadPool>));
        let known = Arc::clone(&weak);
        let submit = move |pool: ThreadPool| match is_async {
            true => {
                let permit = futures::executor::block_on(pool.ready()).unwrap();
                permit.execute(|| ()).unwrap();
            }
            false => pool.execute(|| ()),
        };
        let builder = ThreadPool::builder().core_size(0).max_size(1).queue_capacity(0);
        let hooked = builder.on_worker_start(move |_| {
            let pool = known.lock().unwrap().clone().and_then(|pool| pool.upgrade());
            pool.into_iter().for_each(&submit);
        });
        let pool = hooked.build();
        *weak.lock().unwrap() = Some(pool.downgrade());
        pool.execute(|| ());
        assert!(pool.join_timeout(LIMIT), "async: {is_async}");
        assert_eq!(pool.stats().completed, 2);
    }
}
