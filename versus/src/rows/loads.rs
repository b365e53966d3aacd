//! Loads that need very different numbers of threads, and nothing that tells the pool which: what a pool that finds its size does,
//! beside each size that its user might have set. Nothing is marked as blocking.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use super::Row;
use crate::Result;
use crate::engines::{Pool, leak};
use crate::latch::Latch;
use crate::system;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Uses that much of a CPU, however long that takes.
fn compute(time: Duration) {
    // Without a clock of the thread, the row cannot be measured.
    let now = || system::own_cpu_time().unwrap_or(Duration::MAX);
    let since = now();
    while now().saturating_sub(since) < time {}
}

/// What a row gives: milliseconds, or microseconds from a submission to its start; and the most threads at a time.
pub(crate) fn measure<P: Pool>(row: Row, pool: &'static P, size: u64) -> Result<(Vec<f64>, u64)> {
    let before = system::threads()?;
    let peak = leak(AtomicU64::new(0));
    // Looks once in a while, and ends with the process.
    spawn(move || {
        while let Ok(threads) = system::threads() {
            peak.fetch_max(threads, Ordering::Relaxed);
            sleep(millis(5));
        }
    });
    let values = match row {
        Row::LoadCompute => vec![run(pool, size, |_| compute(millis(2)))],
        Row::LoadSleep => vec![run(pool, size, |_| sleep(millis(10)))],
        Row::LoadHalf => vec![run(pool, size, |i| match i % 2 {
            0 => compute(millis(1)),
            _ => sleep(millis(20)),
        })],
        Row::LoadPhases => vec![phases(pool, size)],
        Row::LoadWaits => vec![waits(pool, size)?],
        Row::LoadShort => vec![short(pool, size)?],
        Row::LoadOpen => open(pool, size)?,
        _ => return Err(format!("{row} is no load").into()),
    };
    let peak = peak.load(Ordering::Relaxed);
    // Without the thread that looks.
    Ok((values, peak.max(before + 1) - before - 1))
}

fn in_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The milliseconds until all tasks have run.
fn run<P: Pool>(pool: &'static P, tasks: u64, task: fn(u64)) -> f64 {
    let time = Latch::rounds(1, tasks, |latch| {
        for i in 0..tasks {
            pool.execute(move || {
                task(i);
                latch.count_down();
            });
        }
    });
    in_millis(time)
}

/// Four phases, each of which begins when the one before has ended.
fn phases<P: Pool>(pool: &'static P, size: u64) -> f64 {
    let phase =
        |_| run(pool, size, |_| compute(millis(2))) + run(pool, 20 * size, |_| sleep(millis(10)));
    (0..2).map(phase).sum()
}

/// Tasks each of which waits for one that is queued behind all of them.
fn waits<P: Pool>(pool: &'static P, tasks: u64) -> Result<f64> {
    let (done, all_done) = mpsc::channel();
    let begin = Instant::now();
    let releases: Vec<_> = (0..tasks)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            let done = done.clone();
            pool.execute(move || {
                let _ = released.recv();
                let _ = done.send(());
            });
            release
        })
        .collect();
    for release in releases {
        pool.execute(move || drop(release));
    }
    for _ in 0..tasks {
        all_done.recv_timeout(Duration::from_secs(10))?;
    }
    Ok(in_millis(begin.elapsed()))
}

/// The milliseconds until a short task starts behind tasks that sleep for 300 ms.
fn short<P: Pool>(pool: &'static P, tasks: u64) -> Result<f64> {
    for _ in 0..tasks {
        pool.execute(|| sleep(millis(300)));
    }
    let (started, start) = mpsc::channel();
    let begin = Instant::now();
    pool.execute(move || {
        let _ = started.send(begin.elapsed());
    });
    Ok(in_millis(start.recv_timeout(Duration::from_secs(10))?))
}

/// A task each 1.2 ms that computes, waits, and computes. The microseconds until each starts.
fn open<P: Pool>(pool: &'static P, tasks: u64) -> Result<Vec<f64>> {
    system::exact_sleeps()?;
    let (started, starts) = mpsc::channel();
    let begin = Instant::now();
    for i in 0..tasks {
        let due = Duration::from_micros(1_200).mul_f64(i as f64);
        sleep(due.saturating_sub(begin.elapsed()));
        let (started, submitted) = (started.clone(), Instant::now());
        pool.execute(move || {
            let _ = started.send(submitted.elapsed());
            compute(Duration::from_micros(500));
            sleep(millis(5));
            compute(Duration::from_micros(500));
        });
    }
    drop(started);
    Ok(starts.iter().map(|start| start.as_secs_f64() * 1e6).collect())
}
