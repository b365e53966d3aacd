//! Calls from async code: tasks of a tokio runtime, or futures of the pool itself, submit closures
//! to a pool and await the results.

use std::hint::black_box;
use std::time::Duration;

use super::Row;
use super::closures::{compute, nanos_per_unit, until_run, work};
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

/// What a caller submits before it awaits the results, and how often it does so.
#[derive(Clone, Copy)]
struct Batches {
    number: u64,
    calls: u64,
    /// What each call computes.
    micros: u64,
}

/// The numbers of tokio's benchmark.
const EMPTY: Batches = Batches { number: 100, calls: 16, micros: 0 };

/// Requests that have some parts each.
const PARTS: Batches = Batches { number: 100, calls: 8, micros: 50 };

/// Nanoseconds per call. The callers are tasks of `runtime`, which may be the pool itself.
pub(crate) fn measure<C: Calls, E: Executor>(
    row: Row,
    pool: &'static C,
    runtime: &'static E,
    calls: u64,
) -> Result<f64> {
    nanos_per_unit(calls, |calls| match row {
        Row::Awaited1 => one_by_one(pool, runtime, 1, calls),
        Row::Awaited64 => one_by_one(pool, runtime, 64, calls),
        Row::Batches1 => Ok(in_batches(pool, runtime, (1, EMPTY), calls)),
        Row::Batches2 => Ok(in_batches(pool, runtime, (2, EMPTY), calls)),
        Row::Gather => Ok(in_batches(pool, runtime, (1, PARTS), calls)),
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

/// The time, and the number of calls: at least that many, in rounds. The callers of a round are
/// new.
fn in_batches<C: Calls, E: Executor>(
    pool: &'static C,
    runtime: &'static E,
    (callers, batches): (u64, Batches),
    calls: u64,
) -> (Duration, u64) {
    let calls_per_round = callers * batches.number * batches.calls;
    let rounds = calls.div_ceil(calls_per_round);
    let time = Latch::rounds(rounds, callers, |latch| {
        for _ in 0..callers {
            runtime.spawn(async move {
                call_batches(pool, batches).await;
                latch.count_down();
            });
        }
    });
    (time, rounds * calls_per_round)
}

async fn call_batches<C: Calls>(pool: &'static C, batches: Batches) {
    let Batches { number, calls, micros } = batches;
    for _ in 0..number {
        let calls: Vec<_> = (0..calls).map(|i| pool.call(work(micros, i, calls))).collect();
        for call in calls {
            call.await;
        }
    }
}
