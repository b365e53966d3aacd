//! Handlers: one function, many arguments. A call is a task like any other: where it is refused,
//! counted, given back and dropped, and in which order it comes. (What it costs: `allocations.rs`.)

use crate::common;

mod arguments;
mod bounded_queue;
mod calls;
mod order;
mod panics;
#[cfg(target_os = "linux")]
mod refused_threads;
mod rejected;
mod shutdown;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, block, value};
use elastipool::{Builder, Handler, ThreadPool};

/// A time in which nothing happens that a gate holds back.
const MOMENT: Duration = Duration::from_millis(20);

fn one() -> Builder {
    Builder::new().core_size(1).max_size(1).keep_alive(HOUR)
}

/// A pool of one.
fn pool() -> ThreadPool {
    one().build()
}

/// A pool of one, whose worker is busy until the gate opens.
fn busy(builder: Builder) -> (ThreadPool, Arc<Gate>) {
    let pool = builder.build();
    let gate = block(&pool);
    (pool, gate)
}

/// A builder whose panic handler counts.
fn heard() -> (Builder, Arc<AtomicUsize>) {
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&heard);
    let builder = one().panic_handler(move |_| {
        hears.fetch_add(1, Ordering::SeqCst);
    });
    (builder, heard)
}

type Log<T> = Arc<Mutex<Vec<T>>>;

/// A handler that writes down its arguments.
fn writer<T: Send + 'static>(pool: &ThreadPool) -> (Handler<T>, Log<T>) {
    let log = Log::default();
    let handler = {
        let log = Arc::clone(&log);
        pool.handler(move |argument| log.lock().unwrap().push(argument))
    };
    (handler, log)
}

#[track_caller]
fn written<T>(pool: &ThreadPool, log: &Log<T>) -> Vec<T> {
    assert!(pool.join_timeout(LIMIT));
    std::mem::take(&mut log.lock().unwrap())
}

fn worker_of(pool: &ThreadPool) -> ThreadId {
    value(pool.evaluate(|| thread::current().id()))
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a destructor's, on purpose");
    }
}
