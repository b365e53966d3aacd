//! Tasks that wait for something other than tasks: how many run at the same time, and on how many
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use async_io::Timer;

use super::closures::until_run;
use crate::Result;
use crate::engines::{Complete, Waits};
use crate::tally;

const TIMER: Duration = Duration::from_millis(2);
const SLEEP: Duration = Duration::from_millis(10);

/// The time that all futures take, and the most of them that ran at the same time.
pub(crate) fn complete<C: Complete>(engine: &'static C, futures: u64) -> Result<(Duration, usize)> {
    let gauge = Arc::new(Gauge::default());
    let submit = |futures: u64| {
        until_run(futures, || {
            (0..futures).for_each(|_| engine.complete(waiting(Arc::clone(&gauge))));
        })
    };
    submit((futures / 10).max(1))?;
    let time = submit(futures)?;
    Ok((time, gauge.peak.load(Ordering::SeqCst)))
}

async fn waiting(gauge: Arc<Gauge>) {
    gauge.enter();
    Timer::after(TIMER).await;
    gauge.leave();
    tally::count();
}

/// How many are inside. Its cost is nothing beside the timer's 2 ms.
#[derive(Default)]
struct Gauge {
    inside: AtomicUsize,
    peak: AtomicUsize,
}

impl Gauge {
    fn enter(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(inside, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The time that all sleeps take. There is no warm-up: to start the threads is part of the row.
pub(crate) fn sleeps<W: Waits>(pool: &'static W, tasks: u64) -> Result<Duration> {
    wait_in_tasks(pool, tasks, || thread::sleep(SLEEP))
}

/// Nanoseconds per task that has nothing to wait for.
pub(crate) fn nothing<W: Waits>(pool: &'static W, tasks: u64) -> Result<f64> {
    wait_in_tasks(pool, (tasks / 10).max(1), || ())?;
    Ok(wait_in_tasks(pool, tasks, || ())?.as_nanos() as f64 / tasks as f64)
}

fn wait_in_tasks<W: Waits>(
    pool: &'static W,
    tasks: u64,
    wait: impl Fn() + Copy + Send + 'static,
) -> Result<Duration> {
    until_run(tasks, || {
        for _ in 0..tasks {
            pool.execute(move || {
                W::blocking(wait);
                tally::count();
            });
        }
    })
}
