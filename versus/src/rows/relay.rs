//! Several pools in one process, which share its CPUs and submit to each other, as those of the
//! stages of a pipeline do.

use std::time::Duration;

use super::closures::{compute, nanos_per_unit, until_run};
use crate::Result;
use crate::engines::Pool;
use crate::gate::Gate;
use crate::tally;

/// How many pools there are.
pub(crate) const POOLS: usize = 4;

/// How many tasks there are at a time.
const AT_ONCE: u64 = 2;

const TASK_MICROS: u64 = 20;

/// Nanoseconds per task.
pub(crate) fn measure<P: Pool>(
    pools: &'static [&'static P],
    workers: usize,
    tasks: u64,
) -> Result<f64> {
    // So that all workers exist.
    pools.iter().try_for_each(|&pool| Gate::occupy(pool, workers).map(Gate::open))?;
    nanos_per_unit(tasks, |tasks| run(pools, tasks.div_ceil(AT_ONCE)))
}

/// `tasks` for each of those that are there at a time.
fn run<P: Pool>(pools: &'static [&'static P], tasks: u64) -> Result<(Duration, u64)> {
    let all = AT_ONCE * tasks;
    let time = until_run(all, || (0..AT_ONCE).for_each(|begin| submit(pools, begin, tasks)))?;
    Ok((time, all))
}

/// Submits one task, which submits the next one, until there were so many.
fn submit<P: Pool>(pools: &'static [&'static P], at: u64, tasks: u64) {
    if tasks == 0 {
        return;
    }
    let pool = pools[at as usize % pools.len()];
    pool.execute(move || {
        compute(TASK_MICROS, at);
        submit(pools, at + 1, tasks - 1);
        tally::count();
    });
}
