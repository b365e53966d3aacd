//! Tasks of different importance in one pool.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::engines::Pool;
use crate::feed::Feed;
use crate::gate::Gate;

/// How many tasks of low priority, or of the tenant with more, are queued at any moment.
const QUEUED: u64 = 10_000;

/// How many tasks are queued that are urgent, or of the tenant with fewer, at any moment.
const FEW: u64 = 100;

/// What a task of low priority computes.
const TASK_MICROS: u64 = 1_000;

/// What a task computes where takes are counted.
const SHORT_MICROS: u64 = 20;

/// Between two urgent tasks.
const PAUSE: Duration = Duration::from_millis(5);

/// From the submission of each urgent task to its start, in microseconds: one at a time, beside
/// tasks that all workers are busy with.
pub(crate) fn urgent<U: Pool, L: Pool>(
    urgent: &'static U,
    low: &'static L,
    workers: usize,
    tasks: u64,
) -> Result<Vec<f64>> {
    Gate::occupy(low, workers)?.open();
    let feed = Feed::start(low, QUEUED, TASK_MICROS);
    let (sender, receiver) = mpsc::channel();
    let mut latencies = Vec::new();
    for _ in 0..tasks {
        thread::sleep(PAUSE);
        let (sender, submitted) = (sender.clone(), Instant::now());
        urgent.execute(move || {
            // The receiver waits for it.
            let _ = sender.send(submitted.elapsed());
        });
        latencies.push(receiver.recv()?.as_secs_f64() * 1e6);
    }
    feed.end();
    Ok(latencies)
}

/// How many tasks of `many` are run for each one of `few` in so many milliseconds, both of which
/// always have tasks queued.
pub(crate) fn ratio<M: Pool, F: Pool>(
    many: &'static M,
    few: &'static F,
    workers: usize,
    millis: u64,
) -> Result<f64> {
    // So that all workers exist, and both have tasks queued when the first one is taken.
    let gate = Gate::occupy(many, workers)?;
    let [many, few] =
        [Feed::start(many, QUEUED, SHORT_MICROS), Feed::start(few, FEW, SHORT_MICROS)];
    gate.open();
    // Not what the start makes of it.
    thread::sleep(Duration::from_millis(millis / 10));
    let before = [many.count(), few.count()];
    thread::sleep(Duration::from_millis(millis));
    let ran = [many.count() - before[0], few.count() - before[1]];
    many.end();
    few.end();
    Ok(ran[0] as f64 / ran[1].max(1) as f64)
}
