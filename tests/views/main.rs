//! The promises of a view, one test each.

#[path = "../common/mod.rs"]
mod common;

mod building;
mod closing;
mod limits;
mod live;
mod pausing;
mod random;
#[cfg(feature = "async")]
mod ready_futures;
mod regions;
mod reserves;
mod shares;
mod still;
mod submitting;
mod timeouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Gate, HOUR};
use elastipool::ThreadPool;

/// A pool whose workers stay.
fn pool(core_size: usize, max_size: usize) -> ThreadPool {
    ThreadPool::new(core_size, max_size, HOUR)
}

/// Counts how many of something there are at a time.
#[derive(Clone, Default)]
struct Level(Arc<[AtomicUsize; 2]>);

impl Level {
    fn enter(&self) {
        let now = 1 + self.0[0].fetch_add(1, Ordering::SeqCst);
        self.0[1].fetch_max(now, Ordering::SeqCst);
    }

    fn exit(&self) {
        self.0[0].fetch_sub(1, Ordering::SeqCst);
    }

    fn now(&self) -> usize {
        self.0[0].load(Ordering::SeqCst)
    }

    fn peak(&self) -> usize {
        self.0[1].load(Ordering::SeqCst)
    }
}

/// Submits a task that is at the gate, and counts in `level` until it has passed.
fn at_gate(pool: &ThreadPool, gate: &Arc<Gate>, level: &Level) {
    let (gate, level) = (Arc::clone(gate), level.clone());
    pool.execute(move || {
        level.enter();
        gate.pass();
        level.exit();
    });
}
