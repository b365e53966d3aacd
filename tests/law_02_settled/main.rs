//! Law 2, settled: every handle resolves, to the value, to the panic's payload, or to cancelled,
//! and no thread waits for ever on a task that will not run.

#[path = "../common/mod.rs"]
mod common;

mod cancelled;
mod destructors;
mod detached;
mod errors;
#[cfg(feature = "async")]
mod futures_that_end_early;
mod payload;
#[cfg(feature = "async")]
mod placement;
mod value;
mod waiting;

use std::any::Any;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Gate, HOUR, LIMIT, settled};
use elastipool::{JoinHandle, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(max_size.min(2), max_size, HOUR)
}

#[track_caller]
fn cancelled<T: std::fmt::Debug>(handle: JoinHandle<T>) {
    let error = settled(handle).expect_err("there can be no value");
    assert!(error.is_cancelled(), "{error}");
}

#[track_caller]
fn panicked<T: std::fmt::Debug>(handle: JoinHandle<T>) -> Box<dyn Any + Send> {
    settled(handle).expect_err("there can be no value").into_panic()
}

/// A task of `pool` that returns 1 when the gate opens.
fn slow(pool: &ThreadPool) -> (JoinHandle<u8>, Arc<Gate>) {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        1
    });
    (handle, gate)
}

/// Panics when it is dropped.
struct DropBomb;

impl Drop for DropBomb {
    fn drop(&mut self) {
        panic!("dropped the bomb");
    }
}

/// A payload that is not a text.
#[derive(Debug, PartialEq)]
struct Typed(u32);

/// Waits until the handle is finished: then it stays so, and waiting does not block.
#[track_caller]
fn stays_finished<T: std::fmt::Debug>(handle: JoinHandle<T>) {
    let since = Instant::now();
    while !handle.is_finished() {
        assert!(since.elapsed() < LIMIT, "it does not resolve");
        thread::yield_now();
    }
    for _ in 0..3 {
        assert!(handle.is_finished(), "it was finished before");
    }
    handle.await_complete_timeout(Duration::ZERO).expect("waiting blocks").ok();
}
