//! Closures on a fixed number of workers.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{Row, Setting};
use crate::Result;
use crate::busy::Busy;
use crate::engines::Pool;
use crate::gate::Gate;
use crate::latch::Latch;
use crate::{system, tally};

pub(super) const PRODUCERS: u64 = 11;
const BATCH: u64 = 48;
const FRAMES: u64 = 256;

/// What a large closure captures.
const LARGE_WORDS: usize = 200 / size_of::<u64>();

/// Steps of a chain of dependent multiplications: about a microsecond. Not a time: a task that is
/// preempted would then do less. A step takes about ten times as long in a build without
/// optimisation.
const STEPS_PER_MICRO: u64 = if cfg!(debug_assertions) { 85 } else { 850 };

/// Between two looks at a thread's CPU time, each of which is a system call.
const BURN_MICROS: u64 = 4;

/// Nanoseconds per task.
pub(crate) fn measure<P: Pool>(
    row: Row,
    setting: Setting,
    pool: &'static P,
    workers: usize,
    size: u64,
) -> Result<f64> {
    // So that all workers exist, also those of pools that start them as needed.
    Gate::occupy(pool, workers)?.open();
    let _busy = Busy::start(setting.busy)?;
    nanos_per_unit(size, |size| run(row, pool, workers, size))
}

/// After a warm-up of a tenth. `run` returns the time, and what it is divided by.
pub(super) fn nanos_per_unit(
    size: u64,
    run: impl Fn(u64) -> Result<(Duration, u64)>,
) -> Result<f64> {
    run((size / 10).max(1))?;
    let (time, units) = run(size)?;
    Ok(time.as_nanos() as f64 / units as f64)
}

/// The time, and the number of tasks.
fn run<P: Pool>(row: Row, pool: &'static P, workers: usize, size: u64) -> Result<(Duration, u64)> {
    match row {
        Row::Submit => submit(pool, workers, size),
        Row::Empty | Row::Wide => all_run(size, || submit_all(pool, size, empty)),
        Row::Closures200 => all_run(size, || submit_all(pool, size, large)),
        Row::Multi => multi(pool, PRODUCERS, size, empty),
        Row::Fanout => all_run(size, || pool.execute(move || submit_all(pool, size, empty))),
        Row::Tree => {
            let depth = u64::from(size.ilog2());
            all_run((2 << depth) - 1, || pool.execute(move || node(pool, depth)))
        }
        Row::Roundtrip => Ok(roundtrip(pool, size)),
        Row::Burst => Ok(burst(pool, size)),
        Row::Handler => all_run(size, || {
            let handle = pool.handler(|argument: (u64, u64)| ran(argument.0, argument.1));
            (0..size).for_each(|i| handle((i, size)));
        }),
        Row::Work1us => all_run(size, || submit_all(pool, size, |a, b| work(1, a, b))),
        Row::Work1ms => all_run(size, || submit_all(pool, size, |a, b| work(1_000, a, b))),
        _ => Err(format!("{row} is no row of closures").into()),
    }
}

/// What a task that does nothing does.
fn ran(a: u64, b: u64) {
    black_box((a, b));
    tally::count();
}

/// A task that does nothing, with 16 bytes to do it with.
pub(super) fn empty(a: u64, b: u64) -> impl FnOnce() + Send + 'static {
    move || ran(a, b)
}

/// A task that does nothing, with 200 bytes to do it with.
fn large(a: u64, b: u64) -> impl FnOnce() + Send + 'static {
    let captured = [a ^ b; LARGE_WORDS];
    move || {
        black_box(captured);
        tally::count();
    }
}

/// A task that computes for about so many microseconds.
pub(super) fn work(micros: u64, a: u64, b: u64) -> impl FnOnce() + Send + 'static {
    let seed = a.wrapping_add(micros.wrapping_mul(b));
    move || {
        compute(micros, seed);
        tally::count();
    }
}

/// Computes for about that many microseconds, and returns the result.
pub(crate) fn compute(micros: u64, seed: u64) -> u64 {
    // The rotation keeps the compiler from doing several multiplications at once.
    let step = |x: u64, _| x.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17);
    black_box((0..micros * STEPS_PER_MICRO).fold(black_box(seed), step))
}

/// Computes until the calling thread has used that many microseconds of CPU time. Where that is not
/// measured, computes for about as long.
pub(crate) fn burn(micros: u64) {
    let Ok(start) = system::own_cpu_time() else {
        compute(micros, 1);
        return;
    };
    let until = start + Duration::from_micros(micros);
    while system::own_cpu_time().is_ok_and(|now| now < until) {
        compute(BURN_MICROS, 1);
    }
}

pub(super) fn submit_all<P, T>(pool: &'static P, tasks: u64, task: impl Fn(u64, u64) -> T)
where
    P: Pool,
    T: FnOnce() + Send + 'static,
{
    (0..tasks).for_each(|i| pool.execute(task(i, tasks)));
}

/// From the first submission until so many tasks have run.
pub(super) fn until_run(tasks: u64, submit: impl FnOnce()) -> Result<Duration> {
    let expected = tally::total() + tasks;
    let start = Instant::now();
    submit();
    tally::wait_for(expected)?;
    Ok(start.elapsed())
}

fn all_run(tasks: u64, submit: impl FnOnce()) -> Result<(Duration, u64)> {
    Ok((until_run(tasks, submit)?, tasks))
}

fn submit<P: Pool>(pool: &'static P, workers: usize, tasks: u64) -> Result<(Duration, u64)> {
    let gate = Gate::occupy(pool, workers)?;
    let expected = tally::total() + tasks;
    let start = Instant::now();
    submit_all(pool, tasks, empty);
    let time = start.elapsed();
    gate.open();
    tally::wait_for(expected)?;
    Ok((time, tasks))
}

/// Empty tasks of that many producers, until all have run.
pub(super) fn multi<P, T>(
    pool: &'static P,
    producers: u64,
    tasks: u64,
    task: impl Fn(u64, u64) -> T + Sync,
) -> Result<(Duration, u64)>
where
    P: Pool,
    T: FnOnce() + Send + 'static,
{
    let each = tasks.div_ceil(producers);
    let ready = Barrier::new(producers as usize + 1);
    thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                ready.wait();
                submit_all(pool, each, &task);
            });
        }
        all_run(each * producers, || {
            ready.wait();
        })
    })
}

fn node<P: Pool>(pool: &'static P, depth: u64) {
    if depth > 0 {
        pool.execute(move || node(pool, depth - 1));
        pool.execute(move || node(pool, depth - 1));
    }
    tally::count();
}

fn roundtrip<P: Pool>(pool: &'static P, tasks: u64) -> (Duration, u64) {
    let start = Instant::now();
    for i in 0..tasks {
        black_box(pool.evaluate(move || black_box(i) + tasks));
    }
    (start.elapsed(), tasks)
}

fn burst<P: Pool>(pool: &'static P, tasks: u64) -> (Duration, u64) {
    let batches = tasks.div_ceil(BATCH);
    let time = Latch::rounds(batches, BATCH, |latch| {
        for i in 0..BATCH {
            pool.execute(move || {
                black_box(chain(FRAMES, i));
                latch.count_down();
            });
        }
    });
    (time, batches * BATCH)
}

/// So many nested calls.
#[inline(never)]
fn chain(frames: u64, seed: u64) -> u64 {
    match frames {
        0 => seed,
        // The addition after the call keeps it from becoming a loop.
        _ => black_box(chain(frames - 1, black_box(seed))).wrapping_add(frames),
    }
}

#[cfg(test)]
mod tests {
    use super::{empty, large};

    #[test]
    fn a_large_closure_captures_200_bytes() {
        assert_eq!(size_of_val(&large(1, 2)), 200);
    }

    #[test]
    fn a_closure_captures_16_bytes() {
        assert_eq!(size_of_val(&empty(1, 2)), 16);
    }
}
