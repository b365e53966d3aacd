//! How late futures run that sleep again and again, beside closures that keep all workers busy.

use std::thread;
use std::time::{Duration, Instant};

use async_io::Timer;
use futures::channel::oneshot;
use futures::future::join_all;
use futures_lite::future::block_on;

use crate::Result;
use crate::engines::{Executor, Pool};
use crate::feed::Feed;
use crate::gate::Gate;

/// Closures that are queued or running at any moment.
const CLOSURES: u64 = 40;

/// What each of them computes.
const CLOSURE_MICROS: u64 = 10_000;

const SLEEP: Duration = Duration::from_millis(1);

/// How long the poll of a future that blocks takes.
const BLOCKED: Duration = Duration::from_millis(20);

/// How late each of so many futures ran each time, and the mean time from the end of one closure
/// to that of the next, in microseconds.
pub(crate) fn measure<P: Pool, E: Executor>(
    pool: &'static P,
    executor: &'static E,
    workers: usize,
    futures: usize,
    has_blocking: bool,
    millis: u64,
) -> Result<(Vec<f64>, f64)> {
    // So that all workers exist, and the thread of the timers.
    Gate::occupy(pool, workers)?.open();
    block_on(Timer::after(SLEEP));
    let time = Duration::from_millis(millis);
    let start = Instant::now();
    // Before the closures. The row is about a future that wakes, not about one that has not
    // started: a new task from outside the pool waits long beside closures that submit closures.
    let spawn = |_| {
        let (sender, receiver) = oneshot::channel();
        executor.spawn(async move {
            // The receiver waits for it.
            let _ = sender.send(lateness(time).await);
        });
        receiver
    };
    let receivers = join_all((0..futures).map(spawn));
    if has_blocking {
        executor.spawn(async move {
            while start.elapsed() < time {
                Timer::after(SLEEP).await;
                thread::sleep(BLOCKED);
            }
        });
    }
    let feed = Feed::start(pool, CLOSURES, CLOSURE_MICROS);
    let lateness =
        block_on(receivers).into_iter().collect::<std::result::Result<Vec<_>, _>>()?.concat();
    let (time, ended) = (start.elapsed(), feed.count());
    feed.end();
    Ok((lateness, time.as_secs_f64() * 1e6 / ended.max(1) as f64))
}

async fn lateness(time: Duration) -> Vec<f64> {
    let (start, mut lateness) = (Instant::now(), Vec::new());
    while start.elapsed() < time {
        let due = Instant::now() + SLEEP;
        Timer::at(due).await;
        lateness.push(due.elapsed().as_secs_f64() * 1e6);
    }
    lateness
}
