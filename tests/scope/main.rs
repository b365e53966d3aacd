//! Scopes: tasks that borrow, and the call that waits for them.
//!
//! To see whether a scope waits, its owner is a worker of a second pool, the host: while it waits,
//! it is in a blocking region, which the host's statistics show. The owner waits only for tasks
//! that have been started, and runs the others itself. So where it has to wait, a worker begins the
//! task before the body ends.

#[path = "../common/mod.rs"]
mod common;

mod borrowing;
mod closures;
mod for_each;
#[cfg(feature = "async")]
mod futures;
mod handles;
#[cfg(feature = "async")]
mod hostile;
mod map;
mod opened_in;
mod outcome;
mod panics;
#[cfg(target_os = "linux")]
mod refused_threads;
mod rejected;
mod shutdown_now;
mod statistics;
mod submitting;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{HOUR, LIMIT, wait_until};
use elastipool::{Builder, ThreadPool};

/// How long a destructor takes that is slow.
const MOMENT: Duration = Duration::from_millis(20);

/// A scope that hangs fails its test, and does not hang it.
#[track_caller]
fn in_time<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = test();
        let _ = sender.send(());
        result
    });
    if receiver.recv_timeout(LIMIT * 2) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    thread.join().unwrap_or_else(|payload| resume_unwind(payload))
}

/// Wakes itself `count` times.
#[cfg(feature = "async")]
async fn yields(count: usize) {
    let mut left = count;
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

fn pool(size: usize) -> ThreadPool {
    ThreadPool::new(size, size, HOUR)
}

/// Runs `test` on the only worker of the host, which it is given.
#[track_caller]
fn hosted<R: Send + 'static>(test: impl FnOnce(&ThreadPool) -> R + Send + 'static) -> R {
    in_time(|| {
        let host = pool(1);
        let own = host.clone();
        host.evaluate(move || test(&own)).await_complete()
    })
}

/// The owner of a scope waits for its tasks, all of which have been started.
#[track_caller]
fn wait_for_wait(host: &ThreadPool) {
    wait_until("the owner waits", || host.stats().blocked == 1);
}

fn text(payload: &(dyn Any + Send)) -> String {
    let fixed = payload.downcast_ref::<&str>().map(ToString::to_string);
    fixed.or_else(|| payload.downcast_ref().cloned()).expect("a text")
}

/// What the panic says that comes out of `f`.
#[track_caller]
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| drop(f())));
    text(&*result.expect_err("no panic comes out"))
}

/// The texts of the panics that the panic handler received.
type Received = Arc<Mutex<Vec<String>>>;

fn handled(size: usize) -> (ThreadPool, Received) {
    let received = Received::default();
    let hears = Arc::clone(&received);
    let pool = Builder::new()
        .core_size(size)
        .max_size(size)
        .keep_alive(HOUR)
        .panic_handler(move |payload| hears.lock().unwrap().push(text(&*payload)))
        .build();
    (pool, received)
}

/// Checks that the panic handler has received exactly these.
#[track_caller]
fn assert_received(pool: &ThreadPool, received: &Received, expected: &[&str]) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(*received.lock().unwrap(), expected);
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The pool is none the worse for it.
#[track_caller]
fn assert_works(pool: ThreadPool) {
    let mut ran = false;
    pool.scope(|scope| scope.execute(|| ran = true));
    assert!(ran);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().in_flight(), 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}
