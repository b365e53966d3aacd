//! How the number of threads follows the load, and how fast many idle ones are woken. The engines
//! begin without a thread and may have many.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::closures::{empty, until_run};
use super::{ELASTIC_LIMIT, Row};
use crate::Result;
use crate::engines::Pool;
use crate::gate::Gate;
use crate::latch::Latch;
use crate::{system, tally};

/// How long the engines keep a thread without work; those that can be told.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_millis(300);

const BLOCKED: Duration = Duration::from_millis(5);
/// The tasks of a wave: one for each worker.
const WAVE: usize = ELASTIC_LIMIT;
/// How long each of them blocks.
const WAVE_BLOCKED: Duration = Duration::from_millis(1);
/// So long that the workers rest.
const WAVE_PAUSE: Duration = Duration::from_millis(5);

const TRICKLE_BURST: usize = 16;
const TRICKLE_PAUSE: Duration = Duration::from_millis(12);

/// Threads that are started and ended before the engine's.
const WARM_UP: usize = 64;

/// What a row gives: the time and the threads that there were.
pub(crate) struct Growth {
    pub(crate) time: Duration,
    pub(crate) threads: u64,
}

pub(crate) fn measure<P: Pool>(row: Row, pool: &'static P, size: u64) -> Result<Growth> {
    // None of the engines has a thread before its first task.
    let before = system::threads()?;
    start_and_end_threads(before)?;
    let time = run(row, pool, size)?;
    // None of its threads has been idle for long enough to end; but in the row that is about this.
    Ok(Growth { time, threads: system::threads()?.saturating_sub(before) })
}

/// The warm-up: the engine itself must be as cold as the row wants it, so it is the system and the
/// allocator that have started threads before. (One could wait until the engine's threads have
/// ended again; not all of them do.)
fn start_and_end_threads(before: u64) -> Result<()> {
    let all_here = Barrier::new(WARM_UP);
    thread::scope(|scope| {
        for _ in 0..WARM_UP {
            scope.spawn(|| all_here.wait());
        }
    });
    // They have done their work, but are still there for a moment.
    while system::threads()? > before {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn run<P: Pool>(row: Row, pool: &'static P, size: u64) -> Result<Duration> {
    match row {
        Row::Grow | Row::Grow512 | Row::Grow2000 | Row::Grow6000 | Row::Fill => {
            let start = Instant::now();
            let gate = Gate::occupy(pool, size as usize)?;
            let time = start.elapsed();
            gate.open();
            Ok(time)
        }
        Row::Tiny => until_run(size, || (0..size).for_each(|i| pool.execute(tiny(i, size)))),
        Row::Mixed => until_run(size, || (0..size).for_each(|i| pool.execute(mixed(i, size)))),
        Row::Trickle => trickle(pool, size),
        Row::Waves => waves(pool, size),
        _ => Err(format!("{row} is no row of growth").into()),
    }
}

/// One of so many tasks that do nothing.
fn tiny(i: u64, tasks: u64) -> impl FnOnce() + Send + 'static {
    move || {
        tally::count();
        if black_box(i) + 1 == tasks {
            tally::end_is_near();
        }
    }
}

fn mixed(i: u64, tasks: u64) -> impl FnOnce() + Send + 'static {
    move || {
        if i.is_multiple_of(10) {
            thread::sleep(BLOCKED);
        }
        tiny(i, tasks)();
    }
}

/// The mean time of a wave. All threads exist before the first one.
fn waves<P: Pool>(pool: &'static P, waves: u64) -> Result<Duration> {
    Gate::occupy(pool, WAVE)?.open();
    let wave = |_| {
        thread::sleep(WAVE_PAUSE);
        Latch::rounds(1, WAVE as u64, |latch| {
            for _ in 0..WAVE {
                pool.execute(|| {
                    thread::sleep(WAVE_BLOCKED);
                    latch.count_down();
                });
            }
        })
    };
    let total: Duration = (0..waves).map(wave).sum();
    Ok(total.div_f64(waves as f64))
}

fn trickle<P: Pool>(pool: &'static P, tasks: u64) -> Result<Duration> {
    let start = Instant::now();
    Gate::occupy(pool, TRICKLE_BURST)?.open();
    for i in 0..tasks {
        pool.execute(empty(i, tasks));
        thread::sleep(TRICKLE_PAUSE);
    }
    Ok(start.elapsed())
}
