//! Ways to an end: `shutdown_now`, which gives back what has not begun, and what `shutdown_join`
//! waits for.

#[path = "../common/mod.rs"]
mod common;

mod destructors;
#[cfg(feature = "async")]
mod futures_now;
mod handed_back;
mod shutdown_join;
mod shutdown_now;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, block, settled};
use elastipool::{JoinHandle, ThreadPool};

/// A time that a wait may well take. What it waits for is held back by a gate.
const MOMENT: Duration = Duration::from_millis(20);

/// A pool of one, whose worker is busy until the gate opens.
fn busy() -> (ThreadPool, Arc<Gate>) {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    (pool, gate)
}

#[track_caller]
fn cancelled<T: Debug>(handle: JoinHandle<T>) {
    assert!(settled(handle).expect_err("there can be no value").is_cancelled());
}

/// Cancelled, and not some time.
#[track_caller]
fn cancelled_by_now<T: Debug>(handle: JoinHandle<T>) {
    assert!(handle.is_finished());
    cancelled(handle);
}

/// Nothing is left.
#[track_caller]
fn ends(pool: ThreadPool) {
    let looker = pool.clone();
    assert!(pool.shutdown_join_timeout(LIMIT), "{:?}", looker.stats());
    let stats = looker.stats();
    assert_eq!((stats.workers, stats.in_flight()), (0, 0));
}
