//! Async code waits for quiet, and for the end of a pool.

use crate::common;

use std::cell::RefCell;
use std::future::Future;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use common::waits::{resolved, waiting};
use common::{CountingWaker, Gate, HOUR, block, millis, panic_text, settled, value, wait_until};
use elastipool::ThreadPool;

#[test]
fn a_future_waits_for_quiet() {
    let pool = ThreadPool::new(2, 2, HOUR);
    resolved(pool.quiet());
    let gates = [block(&pool), block(&pool)];
    let (quiet, given_up) = (waiting(pool.quiet()), waiting(pool.quiet()));
    drop(given_up);
    gates.iter().for_each(|gate| gate.open());
    resolved(quiet);
    assert_eq!(pool.stats().completed, 2);
    pool.shutdown_join();
}

/// Its moment has passed.
#[test]
fn a_wait_for_quiet_ends_although_new_tasks_run() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let mut quiet = waiting(pool.quiet());
    let (woken, waker) = CountingWaker::new();
    assert!(quiet.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    gate.open();
    wait_until("it is woken", || woken.count() == 1);
    let gate = block(&pool);
    resolved(quiet);
    gate.open();
}

#[test]
fn a_view_is_quiet_by_itself() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let view = pool.view().build();
    let gate = block(&pool);
    resolved(view.quiet());
    let own = block(&view);
    let quiet = waiting(view.quiet());
    own.open();
    resolved(quiet);
    gate.open();
}

#[test]
fn a_task_must_not_await_its_own_pool() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let inner = pool.clone();
    let texts = pool.evaluate(move || {
        let quiet = panic_text(|| futures::executor::block_on(inner.quiet()));
        let terminated = panic_text(|| futures::executor::block_on(inner.terminated()));
        [("quiet", quiet), ("terminated", terminated)]
    });
    for (what, text) in value(texts) {
        assert!(text.starts_with(&format!("`{what}` was called by one of the tasks")), "{text}");
    }
    let inner = pool.clone();
    let result = settled(pool.complete(async move { inner.quiet().await }));
    assert!(result.unwrap_err().is_panic());
}

/// Its destructor runs while the thread exits.
struct AtExit(Arc<AtomicUsize>);

impl Drop for AtExit {
    fn drop(&mut self) {
        // Longer than the wait would take that does not wait for it.
        thread::sleep(millis(20));
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

thread_local! {
    static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

#[test]
fn a_terminated_pool_has_no_thread() {
    let pool = ThreadPool::builder().name("ending").core_size(2).max_size(2).build();
    let (exits, meet) = (Arc::new(AtomicUsize::new(0)), Gate::new());
    for _ in 0..2 {
        let (exits, meet) = (Arc::clone(&exits), Arc::clone(&meet));
        pool.execute(move || {
            AT_EXIT.set(Some(AtExit(exits)));
            meet.meet(2);
        });
    }
    let waits: Vec<_> = (0..2).map(|_| waiting(pool.terminated())).collect();
    let given_up = waiting(pool.terminated());
    pool.join();
    drop(given_up);
    pool.close();
    waits.into_iter().for_each(resolved);
    assert_eq!(exits.load(Ordering::Relaxed), 2);
    #[cfg(target_os = "linux")]
    wait_until("no thread is left", || common::threads_named("ending") == 0);
    resolved(pool.terminated());
}

/// Time is the subject: the waker must not be called while the hook runs.
#[test]
fn a_slow_stop_hook_blocks_no_future() {
    let go = Gate::new();
    let passes = Arc::clone(&go);
    let pool = ThreadPool::builder().core_size(1).max_size(1);
    let pool = pool.on_worker_stop(move |_| passes.pass()).build();
    value(pool.evaluate(|| ()));
    let mut terminated = Box::pin(pool.terminated());
    let (woken, waker) = CountingWaker::new();
    assert!(terminated.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    pool.close();
    go.wait_for(1);
    thread::sleep(millis(20));
    assert_eq!(woken.count(), 0);
    go.open();
    wait_until("it is woken", || woken.count() == 1);
    resolved(terminated);
}

#[test]
fn a_pool_without_threads_is_terminated_once_it_is_closed() {
    let pool = ThreadPool::new(0, 1, millis(1));
    let (unused, retired) = (pool.clone(), ThreadPool::new(0, 1, millis(1)));
    value(retired.evaluate(|| ()));
    wait_until("the worker has left", || retired.current_worker_count() == 0);
    for pool in [unused, retired] {
        let terminated = waiting(pool.terminated());
        pool.close();
        resolved(terminated);
    }
}

#[test]
fn an_immediate_shutdown_terminates_the_pool() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let queued = pool.evaluate(|| ());
    let terminated = waiting(pool.terminated());
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    drop(tasks);
    assert!(settled(queued).unwrap_err().is_cancelled());
    gate.open();
    resolved(terminated);
}

/// On the last thread of the pool, which cannot join itself.
#[test]
fn a_waker_that_polls_ends_the_wait() {
    struct PollsInWake(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>, AtomicBool);

    impl Wake for PollsInWake {
        fn wake(self: Arc<Self>) {
            let mut future = self.0.lock().unwrap();
            let waker = Waker::from(Arc::clone(&self));
            let polled =
                future.as_mut().map(|own| own.as_mut().poll(&mut Context::from_waker(&waker)));
            if polled.is_some_and(|polled| polled.is_ready()) {
                *future = None;
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }

    for _ in 0..20 {
        let pool = ThreadPool::new(1, 2, HOUR);
        let gate = block(&pool);
        let inner = pool.clone();
        let terminated = Box::pin(async move { inner.terminated().await });
        let waits = Arc::new(PollsInWake(Mutex::new(Some(terminated)), AtomicBool::new(false)));
        Arc::clone(&waits).wake();
        pool.close();
        gate.open();
        wait_until("it has ended", || waits.1.load(Ordering::Relaxed));
        pool.shutdown_join();
    }
}

#[test]
fn a_stop_hook_must_not_await_the_end() {
    let refused = Arc::new(AtomicBool::new(false));
    let (seen, handle) = (Arc::clone(&refused), Arc::new(Mutex::new(None::<ThreadPool>)));
    let inner = Arc::clone(&handle);
    let pool = ThreadPool::builder()
        .core_size(1)
        .max_size(1)
        .on_worker_stop(move |_| {
            let pool = inner.lock().unwrap().take();
            if let Some(pool) = pool {
                let awaited = catch_unwind(|| futures::executor::block_on(pool.terminated()));
                seen.store(awaited.is_err(), Ordering::Relaxed);
            }
        })
        .build();
    *handle.lock().unwrap() = Some(pool.clone());
    value(pool.evaluate(|| ()));
    pool.close();
    resolved(pool.terminated());
    assert!(refused.load(Ordering::Relaxed));
}
