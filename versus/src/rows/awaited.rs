//! Calls from async code: tasks of a tokio runtime submit closures to a pool and await the results.

use std::hint::black_box;
use std::time::Duration;

use super::Row;
use super::closures::{compute, empty, nanos_per_unit, until_run};
use crate::Result;
use crate::engines::{Calls, Executor};
use crate::latch::Latch;
use crate::tally;

/// Threads of the runtime that the callers run on.
pub(crate) const CALLER_THREADS: usize = 2;

/// Workers that a pool with two sizes keeps. The row's number of workers is its limit.
pub(crate) const CORE: usize = 2;

/// What a call computes: a small query.
const CALL_MICROS: u64 = 1;

/// Closures that a caller submits before it awaits them, and how often it does so: the numbers of tokio's benchmark.
const BATCH: u64 = 16;
const BATCHES: u64 = 100;

/// Nanoseconds per call. The callers are tasks of `runtime`.
pub(crate) fn measure<C: Calls, E: Executor>(
    row: Row,
    pool: &'static C,
    runtime: &'static E,
    calls: u64,
) -> Result<f64> {
    nanos_per_unit(calls, |calls| match row {
        Row::Awaited1 => one_by_one(pool, runtime, 1, calls),
        Row::Awaited64 => one_by_one(pool, runtime, 64, calls),
        Row::Batches1 => Ok(in_batches(pool, runtime, 1, calls)),
        Row::Batches2 => Ok(in_batches(pool, runtime, 2, calls)),
        _ => Err(format!("{row} is no row of awaited calls").into()),
    })
}

/// The time, and the number of calls: at least that many, the same for each caller.
fn one_by_one<C: Calls, E: Executor>(
    pool: &'static C,
    runtime: &'static E,
    callers: u64,
    calls: u64,
) -> Result<(Duration, u64)> {
    let each = calls.div_ceil(callers);
    let calls = each * callers;
    let start_all = || (0..callers).for_each(|caller| runtime.spawn(call(pool, each, caller)));
    Ok((until_run(calls, start_all)?, calls))
}

/// One call after another, each with 16 bytes.
async fn call<C: Calls>(pool: &'static C, calls: u64, caller: u64) {
    for i in 0..calls {
        black_box(pool.call(move || compute(CALL_MICROS, caller.wrapping_add(i))).await);
        tally::count();
    }
}

/// The time, and the number of calls: at least that many, in rounds. The callers of a round are new.
fn in_batches<C: Calls, E: Executor>(
    pool: &'static C,
    runtime: &'static E,
    callers: u64,
    calls: u64,
) -> (Duration, u64) {
    let calls_per_round = callers * BATCHES * BATCH;
    let rounds = calls.div_ceil(calls_per_round);
    let time = Latch::rounds(rounds, callers, |latch| {
        for _ in 0..callers {
            runtime.spawn(async move {
                call_batches(pool).await;
                latch.count_down();
            });
        }
    });
    (time, rounds * calls_per_round)
}

async fn call_batches<C: Calls>(pool: &'static C) {
    for _ in 0..BATCHES {
        let calls: Vec<_> = (0..BATCH).map(|i| pool.call(empty(i, BATCH))).collect();
        for call in calls {
            call.await;
        }
    }
}
