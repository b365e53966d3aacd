//! Futures on a fixed number of workers.

use std::hint::black_box;
use std::time::Duration;

use async_io::Timer;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_lite::future::yield_now;

use super::Row;
use super::closures::{nanos_per_unit, until_run};
use crate::Result;
use crate::engines::Executor;
use crate::tally;

const YIELDS: u64 = 100;
const PAIRS: u64 = 8;
const SLEEP: Duration = Duration::from_millis(10);

/// Nanoseconds per future, poll or message.
pub(crate) fn measure<E: Executor>(row: Row, executor: &'static E, size: u64) -> Result<f64> {
    nanos_per_unit(size, |size| run(row, executor, size))
}

/// The time, and the number of futures, polls or messages.
fn run<E: Executor>(row: Row, executor: &'static E, size: u64) -> Result<(Duration, u64)> {
    let time = match row {
        Row::Spawn => until_run(size, || (0..size).for_each(|i| executor.spawn(ready(i, size)))),
        Row::Yield => {
            until_run(size, || (0..size).for_each(|_| executor.spawn(yielding(YIELDS, yield_now))))
        }
        Row::Pingpong => until_run(PAIRS, || (0..PAIRS).for_each(|_| pair(executor, size))),
        Row::Sleepers => until_run(size, || (0..size).for_each(|_| executor.spawn(sleeping()))),
        _ => Err(format!("{row} is no row of futures").into()),
    }?;
    let units = match row {
        Row::Yield => size * (YIELDS + 1),
        Row::Pingpong => size * PAIRS * 2,
        _ => size,
    };
    Ok((time, units))
}

pub(super) async fn ready(a: u64, b: u64) {
    black_box((a, b));
    tally::count();
}

pub(super) async fn yielding<F: Future>(yields: u64, yield_now: impl Fn() -> F) {
    for _ in 0..yields {
        yield_now().await;
    }
    tally::count();
}

async fn sleeping() {
    Timer::after(SLEEP).await;
    tally::count();
}

fn pair<E: Executor>(executor: &'static E, messages: u64) {
    let (ping, pinged) = unbounded();
    let (pong, ponged) = unbounded();
    executor.spawn(echo(pinged, pong));
    executor.spawn(play(ping, ponged, messages));
}

/// Sends each message back, until all senders are gone.
async fn echo(mut receiver: UnboundedReceiver<u64>, sender: UnboundedSender<u64>) {
    while let Some(message) = receiver.next().await {
        // The other side has left only if it has had all it waits for.
        let _ = sender.unbounded_send(message);
    }
}

async fn play(sender: UnboundedSender<u64>, mut receiver: UnboundedReceiver<u64>, messages: u64) {
    for message in 0..messages {
        // The other side is there as long as this one is.
        let _ = sender.unbounded_send(message);
        black_box(receiver.next().await);
    }
    tally::count();
}
