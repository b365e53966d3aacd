//! From the moment when a task is due until a worker starts it, for each single task, on workers
//! that are idle or have other work; in `sporadic` until its submitter has the result, in `frames`
//! until all tasks of a frame have ended. A submitter that loses its CPU to the worker that it has
//! woken is part of that time. The same in `batch` and `batch-sleep`.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::closures::compute;
use super::{Row, Setting};
use crate::busy::Busy;
use crate::engines::{Joins, Pool, leak};
use crate::gate::Gate;
use crate::latch::Latch;
use crate::placement::place_workers;
use crate::{Result, system, tally};

/// What the tasks of `pair` and `open-loop` compute.
const TASK_MICROS: u64 = 100;

const PAIR_PAUSE: Duration = Duration::from_millis(1);

const SPORADIC_PAUSE: Duration = Duration::from_micros(300);

/// How many tasks a frame has.
const FRAME_TASKS: u64 = 4;

const FRAME_TASK_MICROS: u64 = 20;

const FRAME_PAUSE: Duration = Duration::from_micros(500);

/// How many tasks a batch has, as in tokio's own benchmarks of `spawn_blocking` and in the row
/// `burst`.
const BATCH_TASKS: u64 = 48;

const BATCH_TASK_MICROS: u64 = 1;

const SLEEP: Duration = Duration::from_millis(1);

/// The same times for all engines.
const SEED: u64 = 1;

/// Microseconds, one for each submission.
pub(crate) fn measure<P: Pool>(
    row: Row,
    setting: Setting,
    pool: &'static P,
    workers: usize,
    size: u64,
) -> Result<Vec<f64>> {
    // So that all workers exist.
    Gate::occupy(pool, workers)?.open();
    let _busy = Busy::start(setting.busy)?;
    run(row, setting, pool, workers, (size / 10).max(1))?;
    run(row, setting, pool, workers, size)
}

fn run<P: Pool>(
    row: Row,
    setting: Setting,
    pool: &'static P,
    workers: usize,
    size: u64,
) -> Result<Vec<f64>> {
    match (row, setting) {
        (Row::Neighbours, Setting { pause: Some(micros), .. }) => {
            after_pauses(pool, Duration::from_micros(micros), size, &[0], || Ok(()))
        }
        (Row::Sporadic, _) => Ok(results_after_pauses(pool, size)),
        (Row::Frames, _) => Ok(frames(size, || frame(pool))),
        (Row::Batch, _) => {
            Ok(frames(size, || batch(pool, BATCH_TASKS, |i| _ = compute(BATCH_TASK_MICROS, i))))
        }
        (Row::BatchSleep, _) => {
            Ok(frames(size, || batch(pool, workers as u64, |_| thread::sleep(SLEEP))))
        }
        (Row::Pair, _) => pairs(pool, size, || Ok(())),
        (Row::PairSame, _) => pairs(pool, size, || place_workers(pool, workers, 1)),
        (Row::PairApart, _) => pairs(pool, size, || place_workers(pool, workers, 2)),
        (Row::OpenLoop, Setting { load: Some(load), .. }) => open_loop(pool, load, workers, size),
        _ => Err(format!("{row} is no row of latencies, or has no such setting").into()),
    }
}

/// After each pause, submits two tasks.
fn pairs<P: Pool>(
    pool: &'static P,
    pauses: u64,
    prepare: impl Fn() -> Result<()>,
) -> Result<Vec<f64>> {
    after_pauses(pool, PAIR_PAUSE, pauses, &[TASK_MICROS; 2], prepare)
}

/// After each pause, submits tasks that compute for that many microseconds each: the longest wait
/// of each group.
fn after_pauses<P: Pool>(
    pool: &'static P,
    pause: Duration,
    pauses: u64,
    tasks: &[u64],
    prepare: impl Fn() -> Result<()>,
) -> Result<Vec<f64>> {
    let waits = Wait::many(pauses * tasks.len() as u64);
    let groups = waits.chunks(tasks.len());
    for group in groups.clone() {
        prepare()?;
        let expected = tally::total() + tasks.len() as u64;
        let due = now();
        group.iter().zip(tasks).for_each(|(wait, &micros)| wait.submit(pool, due, micros));
        thread::sleep(pause);
        if tally::total() < expected {
            tally::look_until(expected, || thread::sleep(pause))?;
            // The pool was not idle during the first pause.
            thread::sleep(pause);
        }
    }
    let latest = |group: &[Wait]| group.iter().map(Wait::micros).fold(0.0, f64::max);
    Ok(groups.map(latest).collect())
}

/// After each pause, submits an empty task and waits for its result: the time of both.
fn results_after_pauses<P: Pool>(pool: &'static P, pauses: u64) -> Vec<f64> {
    let after_pause = |i| {
        thread::sleep(SPORADIC_PAUSE);
        let begin = Instant::now();
        black_box(pool.evaluate(move || black_box(i)));
        begin.elapsed().as_secs_f64() * 1e6
    };
    (0..pauses).map(after_pause).collect()
}

/// As [`measure`], for frames that end when the pool's own `join` returns.
pub(crate) fn measure_joined<P: Joins>(
    pool: &'static P,
    workers: usize,
    size: u64,
) -> Result<Vec<f64>> {
    Gate::occupy(pool, workers)?.open();
    frames((size / 10).max(1), || joined_frame(pool));
    Ok(frames(size, || joined_frame(pool)))
}

/// The times of that many frames, one after each pause.
fn frames(count: u64, frame: impl Fn() -> Duration) -> Vec<f64> {
    let after_pause = |_| {
        thread::sleep(FRAME_PAUSE);
        frame().as_secs_f64() * 1e6
    };
    (0..count).map(after_pause).collect()
}

/// Submits the tasks of a frame. The last one wakes the submitter.
fn frame<P: Pool>(pool: &'static P) -> Duration {
    Latch::rounds(1, FRAME_TASKS, |latch| {
        for i in 0..FRAME_TASKS {
            pool.execute(move || {
                compute(FRAME_TASK_MICROS, i);
                latch.count_down();
            });
        }
    })
}

/// Submits that many tasks at once. The last one wakes the submitter.
fn batch<P, F>(pool: &'static P, tasks: u64, run: F) -> Duration
where
    P: Pool,
    F: Fn(u64) + Copy + Send + 'static,
{
    Latch::rounds(1, tasks, |latch| {
        for i in 0..tasks {
            pool.execute(move || {
                run(i);
                latch.count_down();
            });
        }
    })
}

/// Submits the tasks of a frame, and joins the pool.
fn joined_frame<P: Joins>(pool: &'static P) -> Duration {
    let begin = Instant::now();
    for i in 0..FRAME_TASKS {
        pool.execute(move || _ = compute(FRAME_TASK_MICROS, i));
    }
    pool.join();
    begin.elapsed()
}

/// Submits tasks at random times for that many milliseconds, whether those before have ended or
/// not.
fn open_loop<P: Pool>(
    pool: &'static P,
    load: u64,
    workers: usize,
    millis: u64,
) -> Result<Vec<f64>> {
    system::exact_sleeps()?;
    let tasks_per_second = workers as f64 * load as f64 / 100.0 / (TASK_MICROS as f64 * 1e-6);
    let tasks = (millis as f64 * 1e-3 * tasks_per_second).ceil() as u64;
    let waits = Wait::many(tasks);
    let expected = tally::total() + tasks;
    let mut random = Rng::with_seed(SEED);
    let mut due = now();
    for wait in waits {
        // An exponential distribution: the past tells nothing about the next time.
        due += (-(1.0 - random.f64()).ln() / tasks_per_second * 1e9) as u64;
        // No spinning until then, which would take a CPU from the workers. If it is late, it
        // submits at once.
        thread::sleep(Duration::from_nanos(due.saturating_sub(now())));
        wait.submit(pool, due, TASK_MICROS);
    }
    tally::wait_for(expected)?;
    Ok(waits.iter().map(Wait::micros).collect())
}

/// Nanoseconds from the moment when a task was due to its start. Until then, that moment.
#[derive(Default)]
struct Wait(AtomicU64);

impl Wait {
    fn many(count: u64) -> &'static [Self] {
        leak((0..count).map(|_| Wait::default()).collect::<Vec<_>>())
    }

    fn submit<P: Pool>(&'static self, pool: &'static P, due: u64, micros: u64) {
        self.0.store(due, Ordering::Relaxed);
        pool.execute(move || {
            let started = now();
            let due = self.0.load(Ordering::Relaxed);
            self.0.store(started - due, Ordering::Relaxed);
            compute(micros, started);
            tally::count();
        });
    }

    fn micros(&self) -> f64 {
        // Acquired with the task's count in the tally.
        self.0.load(Ordering::Relaxed) as f64 / 1e3
    }
}

/// In nanoseconds, since the first call.
fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
