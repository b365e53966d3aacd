//! The workloads of tokio's benchmark `rt_multi_threaded`: rounds of futures on four workers. The
//! numbers are tokio's.

use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures_lite::future::block_on;

use super::Row;
use super::closures::{compute, nanos_per_unit};
use super::futures::{ready, yielding};
use crate::Result;
use crate::engines::{Executor, FutureHandles};
use crate::latch::Latch;

pub(crate) const WORKERS: usize = 4;

/// Futures of a round, and of one beside futures that spawn their successors.
const MANY: u64 = 10_000;
const FEW: u64 = 1_000;

/// What a future that keeps a worker busy computes at a time.
const BUSY_MICROS: u64 = 10;

const YIELDERS: u64 = 200;
const YIELDS: u64 = 1_000;

const EXCHANGES: u64 = 1_000;

const CHAIN: u64 = 1_000;

/// Nanoseconds per future, poll or message.
pub(crate) fn measure<E: FutureHandles>(
    row: Row,
    executor: &'static E,
    rounds: u64,
) -> Result<f64> {
    // These futures run until the process ends.
    match row {
        Row::BesideYields => (0..2 * WORKERS).for_each(|_| executor.spawn(busy::<E>())),
        Row::BesideSpawns => (0..WORKERS).for_each(|_| spawn_successors(executor)),
        _ => {}
    }
    nanos_per_unit(rounds, |rounds| {
        let (time, units) = run(row, executor, rounds)?;
        Ok((time, rounds * units))
    })
}

/// The time of all rounds, and the number of futures, polls or messages of each.
fn run<E: FutureHandles>(row: Row, executor: &'static E, rounds: u64) -> Result<(Duration, u64)> {
    let spawned = |tasks, start: fn(&'static E, &'static Latch)| {
        Latch::rounds(rounds, tasks, |latch| start(executor, latch))
    };
    match row {
        Row::SpawnLocal => Ok((spawned(MANY, spawn_many), MANY)),
        Row::SpawnAwait | Row::BesideYields => Ok((await_all(executor, rounds, MANY), MANY)),
        Row::BesideSpawns => Ok((await_all(executor, rounds, FEW), FEW)),
        Row::Yield200 => Ok((spawned(YIELDERS, spawn_yielders), YIELDERS * (YIELDS + 1))),
        Row::Oneshots => Ok((spawned(EXCHANGES, spawn_exchanges), EXCHANGES * 2)),
        // The first future is not spawned by another one.
        Row::Chain => Ok((spawned(1, |executor, latch| link(executor, CHAIN, latch)), CHAIN + 1)),
        _ => Err(format!("{row} is no row of tokio's scheduler").into()),
    }
}

/// Yields and computes in turn.
async fn busy<E: Executor>() {
    loop {
        E::yield_now().await;
        compute(BUSY_MICROS, 1);
    }
}

/// Spawns a future that computes and then spawns its successor.
fn spawn_successors<E: Executor>(executor: &'static E) {
    executor.spawn(async move {
        compute(BUSY_MICROS, 1);
        spawn_successors(executor);
    });
}

fn spawn_many<E: Executor>(executor: &'static E, latch: &'static Latch) {
    executor.spawn(async move {
        for i in 0..MANY {
            executor.spawn(async move {
                ready(i, MANY).await;
                latch.count_down();
            });
        }
    });
}

/// From this thread, which is none of the workers.
fn await_all<E: FutureHandles>(executor: &'static E, rounds: u64, futures: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..rounds {
        let handles: Vec<_> =
            (0..futures).map(|i| executor.start_future(ready(i, futures))).collect();
        block_on(async {
            for handle in handles {
                handle.await;
            }
        });
    }
    start.elapsed()
}

fn spawn_yielders<E: Executor>(executor: &'static E, latch: &'static Latch) {
    for _ in 0..YIELDERS {
        executor.spawn(async move {
            yielding(YIELDS, E::yield_now).await;
            latch.count_down();
        });
    }
}

fn spawn_exchanges<E: Executor>(executor: &'static E, latch: &'static Latch) {
    executor.spawn(async move {
        (0..EXCHANGES).for_each(|_| executor.spawn(exchange(executor, latch)));
    });
}

/// Sends a message to a future that it spawns, and awaits the answer.
async fn exchange<E: Executor>(executor: &'static E, latch: &'static Latch) {
    let (ping, pinged) = oneshot::channel();
    let (pong, ponged) = oneshot::channel();
    executor.spawn(async move {
        if pinged.await.is_ok() {
            // The other side waits for it.
            let _ = pong.send(());
        }
    });
    // The partner awaits it.
    let _ = ping.send(());
    if ponged.await.is_ok() {
        latch.count_down();
    }
}

/// Spawns a future with that many successors, of which each spawns the next one.
fn link<E: Executor>(executor: &'static E, successors: u64, latch: &'static Latch) {
    executor.spawn(async move {
        match successors {
            0 => latch.count_down(),
            _ => link(executor, successors - 1, latch),
        }
    });
}
