//! Calls from async code: tasks of a tokio runtime submit closures to a pool and await the results.

use std::hint::black_box;
use std::time::Duration;

use super::Row;
use super::closures::{compute, until_run};
use crate::Result;
use crate::engines::{Calls, Executor};
use crate::tally;

/// Threads of the runtime that the callers run on.
pub(crate) const CALLER_THREADS: usize = 2;

/// Workers that a pool with two sizes keeps. The row's number of workers is its limit.
pub(crate) const CORE: usize = 2;

/// What a call computes: a small query.
const CALL_MICROS: u64 = 1;

/// Nanoseconds per call. The callers are tasks of `runtime`.
pub(crate) fn measure<C: Calls, E: Executor>(
    row: Row,
    pool: &'static C,
    runtime: &'static E,
    calls: u64,
) -> Result<f64> {
    run(row, pool, runtime, (calls / 10).max(1))?;
    let (time, calls) = run(row, pool, runtime, calls)?;
    Ok(time.as_nanos() as f64 / calls as f64)
}

/// The time, and the number of calls: at least that many, the same for each caller.
fn run<C: Calls, E: Executor>(
    row: Row,
    pool: &'static C,
    runtime: &'static E,
    calls: u64,
) -> Result<(Duration, u64)> {
    let callers = match row {
        Row::Awaited1 => 1,
        Row::Awaited64 => 64,
        _ => Err(format!("{row} is no row of awaited calls"))?,
    };
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
