//! Submitters that wait: for the pool after each task, for the handles of many tasks, or for room
//! in a bounded queue.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use super::Row;
use super::closures::{compute, empty, multi, nanos_per_unit, work};
use crate::Result;
use crate::engines::{Ends, Handles, Joins, Pool};
use crate::gate::Gate;
use crate::tally;

/// The tasks of each batch of [`Row::Collect`], and what each of them computes.
const BATCH: u64 = 100;
const BATCH_MICROS: u64 = 20;

/// The tasks of each pool of [`Row::Lifetime`].
const LIFETIME_TASKS: u64 = 100;

/// What a task of [`Row::BoundedWork`] computes.
const WORK_MICROS: u64 = 20;

/// Nanoseconds per task and the join after it.
pub(crate) fn joined<J: Joins>(pool: &'static J, workers: usize, tasks: u64) -> Result<f64> {
    per_task(pool, workers, tasks, |tasks| {
        let expected = tally::total() + tasks;
        let start = Instant::now();
        for i in 0..tasks {
            pool.execute(empty(i, tasks));
            pool.join();
        }
        let time = start.elapsed();
        if J::MAY_BE_EARLY {
            tally::look_until(expected, thread::yield_now)?;
        }
        match expected - tally::total() {
            0 => Ok((time, tasks)),
            left => Err(format!("join has returned before {left} tasks had run").into()),
        }
    })
}

/// Milliseconds for each pool: it is made, runs some tasks, and is shut down.
pub(crate) fn lifetime<E: Ends>(workers: usize, pools: u64) -> Result<f64> {
    let run = |pools: u64| {
        for _ in 0..pools {
            E::run_all(workers, (0..LIFETIME_TASKS).map(|i| empty(i, LIFETIME_TASKS)));
        }
    };
    let warm_up = (pools / 10).max(1);
    let expected = tally::total() + (warm_up + pools) * LIFETIME_TASKS;
    run(warm_up);
    let start = Instant::now();
    run(pools);
    let time = start.elapsed();
    // Not all engines wait for the last task of all.
    tally::look_until(expected, thread::yield_now)?;
    Ok(time.as_secs_f64() * 1e3 / pools as f64)
}

/// Nanoseconds per task: all are submitted, then all handles are awaited.
pub(crate) fn bulk<H: Handles>(pool: &'static H, workers: usize, tasks: u64) -> Result<f64> {
    per_task(pool, workers, tasks, |tasks| {
        let start = Instant::now();
        let handles: Vec<_> =
            (0..tasks).map(|i| pool.start(move || black_box(i) + tasks)).collect();
        for handle in handles {
            black_box(handle());
        }
        Ok((start.elapsed(), tasks))
    })
}

/// Nanoseconds per task: a batch is submitted, and its results are awaited, in the order of
/// submission. Then the next one.
pub(crate) fn collect<H: Handles>(pool: &'static H, workers: usize, tasks: u64) -> Result<f64> {
    per_task(pool, workers, tasks, |tasks| {
        let batches = tasks.div_ceil(BATCH);
        let start = Instant::now();
        for _ in 0..batches {
            let handles: Vec<_> =
                (0..BATCH).map(|i| pool.start(move || compute(BATCH_MICROS, i))).collect();
            for handle in handles {
                black_box(handle());
            }
        }
        Ok((start.elapsed(), batches * BATCH))
    })
}

/// Nanoseconds per task, until all have run. The pool has a bounded queue.
pub(crate) fn bounded<P: Pool>(
    pool: &'static P,
    (row, workers, producers, tasks): (Row, usize, u64, u64),
) -> Result<f64> {
    per_task(pool, workers, tasks, |tasks| match row {
        Row::BoundedWork => multi(pool, producers, tasks, |a, b| work(WORK_MICROS, a, b)),
        _ => multi(pool, producers, tasks, empty),
    })
}

/// After a warm-up of a tenth.
fn per_task<P: Pool>(
    pool: &'static P,
    workers: usize,
    tasks: u64,
    run: impl Fn(u64) -> Result<(Duration, u64)>,
) -> Result<f64> {
    // So that all workers exist, also those of pools that start them as needed.
    Gate::occupy(pool, workers)?.open();
    nanos_per_unit(tasks, run)
}
