//! What tasks and workers take besides time.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures::task::AtomicWaker;

use super::closures::empty;
use crate::Result;
use crate::engines::{Executor, Pool, leak};
use crate::gate::Gate;
use crate::{system, tally};

/// Futures that are not yet pending at the same time, so that the queue stays small: it is not what
/// is measured.
const BATCH: usize = 1_000;

/// Until an engine has come to rest.
const SETTLE: Duration = Duration::from_millis(200);

/// Bytes per task in the queue. The workers are blocked.
pub(crate) fn queued_task<P: Pool>(pool: &'static P, workers: usize, tasks: u64) -> Result<f64> {
    // What the first tasks take once is not what each of them takes. Few: what they free again is
    // not counted below.
    queue(pool, workers, 1_000)?;
    queue(pool, workers, tasks)
}

fn queue<P: Pool>(pool: &'static P, workers: usize, tasks: u64) -> Result<f64> {
    let gate = Gate::occupy(pool, workers)?;
    let expected = tally::total() + tasks;
    let before = system::heap()?;
    (0..tasks).for_each(|i| pool.execute(empty(i, tasks)));
    let after = system::heap()?;
    gate.open();
    tally::wait_for(expected)?;
    Ok(after.saturating_sub(before) as f64 / tasks as f64)
}

/// Bytes per future that has been polled and waits to be woken.
pub(crate) fn pending_future<E: Executor>(executor: &'static E, futures: u64) -> Result<f64> {
    hold(executor, BATCH as u64)?;
    hold(executor, futures)
}

fn hold<E: Executor>(executor: &'static E, futures: u64) -> Result<f64> {
    // Here already, so that the wakers are held at no cost for the engine.
    let wakers: Vec<_> = (0..futures).map(|_| AtomicWaker::new()).collect();
    let wakers = leak(wakers).as_slice();
    let expected = tally::total() + futures;
    let before = system::heap()?;
    for batch in wakers.chunks(BATCH) {
        let so_far = tally::total();
        batch.iter().for_each(|waker| executor.spawn(wait_on(waker)));
        tally::wait_for(so_far + batch.len() as u64)?;
    }
    tally::wait_for(expected)?;
    let after = system::heap()?;
    Ok(after.saturating_sub(before) as f64 / futures as f64)
}

/// Never ends. Counts when it begins.
async fn wait_on(waker: &'static AtomicWaker) {
    poll_fn(|context| {
        waker.register(context.waker());
        Poll::Ready(())
    })
    .await;
    tally::count();
    pending::<()>().await;
}

/// Microseconds of CPU time per second that workers without work use.
pub(crate) fn idle<P: Pool>(pool: &'static P, workers: usize, millis: u64) -> Result<f64> {
    Gate::occupy(pool, workers)?.open();
    thread::sleep(SETTLE);
    let before = system::other_threads_cpu_time()?;
    thread::sleep(Duration::from_millis(millis));
    let used = system::other_threads_cpu_time()?.saturating_sub(before);
    Ok(used.as_nanos() as f64 / millis as f64)
}
