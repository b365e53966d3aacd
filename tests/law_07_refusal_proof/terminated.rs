//! The helper is refused, which wakes the futures of `terminated`.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Instant;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{CountingWaker, HOUR, LIMIT, block, millis, wait_until, wait_until_asleep};
use elastipool::{Builder, ThreadPool};

/// Sends the name of the thread that wakes it.
struct Name(mpsc::Sender<String>);

impl Wake for Name {
    fn wake(self: Arc<Self>) {
        self.0.send(thread::current().name().unwrap().to_owned()).unwrap();
    }
}

/// Returns the name of the thread that wakes a future of `quiet`.
fn waking_thread(pool: &ThreadPool) -> String {
    let (sender, names) = mpsc::channel();
    let gate = block(pool);
    let mut quiet = pin!(pool.quiet());
    let waker = Waker::from(Arc::new(Name(sender)));
    assert!(quiet.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    gate.open();
    names.recv_timeout(LIMIT).unwrap()
}

fn one_worker(name: &str) -> ThreadPool {
    Builder::new().name(name).core_size(1).max_size(1).keep_alive(HOUR).build()
}

/// The regression: it asked for the helper without a pause and, when it was dropped, left all user
/// code to the keeper for good.
#[test]
fn a_refused_wait_for_the_end_gets_its_helper() {
    in_a_child("terminated::a_refused_wait_for_the_end_gets_its_helper", || {
        let pool = one_worker("ending");
        let gate = block(&pool);
        let refusal = Refusal::begin();
        {
            let (wakes, waker) = CountingWaker::new();
            let mut end = pin!(pool.terminated());
            assert!(end.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            wait_until("it was refused", || pool.stats().threads_refused >= 3);
            assert_eq!(wakes.count(), 0, "the keeper asks for the helper, not the future");
        }
        refusal.end();
        gate.open();
        wait_until("the helper runs", || waking_thread(&pool) == "ending-helper");
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The keeper stays, and wakes it. The pool has a worker when it is closed, or has none any more.
#[test]
fn it_is_ready_although_the_helper_is_refused() {
    in_a_child("terminated::it_is_ready_although_the_helper_is_refused", || {
        for leaves_first in [false, true] {
            let keep_alive = if leaves_first { millis(1) } else { HOUR };
            let builder = Builder::new().name("ends").core_size(0).max_size(1);
            let pool = builder.keep_alive(keep_alive).build();
            let gate = block(&pool);
            let refusal = Refusal::begin();
            let (wakes, waker) = CountingWaker::new();
            let mut context = Context::from_waker(&waker);
            let mut end = pin!(pool.terminated());
            assert!(end.as_mut().poll(&mut context).is_pending());
            gate.open();
            if leaves_first {
                wait_until("the last worker has left", || pool.stats().workers == 0);
                // The keeper, or the helper if its stack fits by now.
                wait_until_asleep(1, millis(50), |name| name.starts_with("ends-"));
            }
            assert_eq!(wakes.count(), 0, "the pool is open");
            pool.close();
            wait_until("it is woken", || wakes.count() == 1);
            assert!(end.as_mut().poll(&mut context).is_ready());
            // Not checked: there is memory for a thread once the worker's stack is gone.
            drop(refusal);
        }
    });
}

/// There is neither a worker nor a keeper.
#[test]
fn it_does_not_spin_in_a_pool_without_threads() {
    in_a_child("terminated::it_does_not_spin_in_a_pool_without_threads", || {
        let pool = one_worker("empty");
        let refusal = Refusal::begin();
        let begin = Instant::now();
        let mut end = pin!(pool.terminated());
        let (wakes, waker) = CountingWaker::new();
        while pool.stats().threads_refused < 20 {
            assert!(end.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(wakes.count(), pool.stats().threads_refused);
        }
        let time = begin.elapsed();
        assert!(time >= millis(20), "{time:?}");
        pool.close();
        assert!(end.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        refusal.end();
    });
}
