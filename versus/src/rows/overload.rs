//! Requests of several steps, more at a time than there are workers: from the submission of a
//! request until its last step has ended. The mean time is that number of requests, divided by what
//! the engine does in a second, which differs little. So a long p99 shows that some requests wait
//! for others which came later.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::closures::compute;
use crate::Result;
use crate::engines::{Calls, Executor, Pool};
use crate::gate::Gate;

/// How many requests there are at a time.
const AT_ONCE: u64 = 200;

/// How many closures a request runs, one after another.
const STAGES: u32 = 3;

/// How long each of them blocks.
const BLOCKED: Duration = Duration::from_millis(1);

/// How often a request of `polls` yields.
const YIELDS: u32 = 5;

/// What it computes before each yield.
const POLL_MICROS: u64 = 100;

/// Without the end of a request in this time, an engine has lost one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request that runs.
struct Request {
    begun: Instant,
    ended: Sender<Duration>,
}

impl Request {
    fn end(&self) {
        // Nothing waits for those of an engine that has lost one.
        let _ = self.ended.send(self.begun.elapsed());
    }
}

/// Each stage submits the next one. Microseconds, one for each request.
pub(crate) fn stages<P: Pool>(pool: &'static P, workers: usize, requests: u64) -> Result<Vec<f64>> {
    // So that all workers exist.
    Gate::occupy(pool, workers)?.open();
    latencies(requests, |request| submit(pool, STAGES, request))
}

fn submit<P: Pool>(pool: &'static P, stages: u32, request: Request) {
    pool.execute(move || {
        thread::sleep(BLOCKED);
        match stages {
            0 | 1 => request.end(),
            _ => submit(pool, stages - 1, request),
        }
    });
}

/// A future calls one stage after the other and awaits each. Microseconds, one for each request.
///
/// The workers that do not exist yet start with the first requests, which are left out.
pub(crate) fn awaited<P: Calls + Executor>(pool: &'static P, requests: u64) -> Result<Vec<f64>> {
    latencies(requests, |request| {
        pool.spawn(async move {
            for _ in 0..STAGES {
                pool.call(|| thread::sleep(BLOCKED)).await;
            }
            request.end();
        });
    })
}

/// A future computes and yields, again and again. Microseconds, one for each request.
pub(crate) fn polls<E: Executor>(executor: &'static E, requests: u64) -> Result<Vec<f64>> {
    latencies(requests, |request| {
        executor.spawn(async move {
            for _ in 0..YIELDS {
                compute(POLL_MICROS, 0);
                E::yield_now().await;
            }
            request.end();
        });
    })
}

/// Begins a request whenever another one ends. Counts as many as are asked for, after twice the
/// number that there are at a time: the first ones all begin at the same time.
fn latencies(requests: u64, begin: impl Fn(Request)) -> Result<Vec<f64>> {
    let (sender, ended) = crossbeam_channel::unbounded();
    let begin = || begin(Request { begun: Instant::now(), ended: sender.clone() });
    (0..AT_ONCE).for_each(|_| begin());
    let mut latencies = Vec::new();
    for number in 0..2 * AT_ONCE + requests {
        let time = ended.recv_timeout(PATIENCE)?;
        begin();
        if number >= 2 * AT_ONCE {
            latencies.push(time.as_secs_f64() * 1e6);
        }
    }
    for _ in 0..AT_ONCE {
        ended.recv_timeout(PATIENCE)?;
    }
    Ok(latencies)
}
