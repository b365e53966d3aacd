//! Gauges, counters and histograms of the facade crate `metrics` (feature `metrics`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram};
use metrics::{gauge, histogram};

use crate::builder::Builder;
use crate::pool::ThreadPool;
use crate::sync::unwind::Contained;
use crate::task::Submission;

const QUEUE_SECONDS: &str = "elastipool_queue_seconds";
const RUN_SECONDS: &str = "elastipool_run_seconds";

impl Builder {
    /// Makes the pool record how long its tasks wait and run, by the facade crate
    /// [`metrics`](https://docs.rs/metrics) (feature `metrics`).
    ///
    /// | histogram | unit | what it records |
    /// |---|---|---|
    /// | `elastipool_queue_seconds` | seconds | from a task's submission to its start |
    /// | `elastipool_run_seconds` | seconds | how long a closure ran; for a future, each of its polls |
    ///
    /// Both have the label `pool` with the pool's name. Each task is recorded; the wait of a
    /// future, with its first poll.
    ///
    /// To time a closure, or a poll of a future, costs about 0.4 microseconds of CPU time. To
    /// record it costs what the recorder takes for one or two values.
    /// [`ThreadPool::publish_metrics`] publishes the rest, and needs no timing.
    ///
    /// ```
    /// // A program installs a recorder first, such as that of metrics-exporter-prometheus.
    /// let pool = elastipool::Builder::new().name("resolver").metrics().build();
    /// for _ in 0..1000 {
    ///     pool.execute(|| ());
    /// }
    /// pool.join();
    /// pool.publish_metrics();
    /// ```
    pub fn metrics(self) -> Self {
        self.observe(Arc::new(Contained::new(time)))
    }
}

/// # Metrics (feature `metrics`)
impl ThreadPool {
    /// Publishes the [`stats`](Self::stats) by the facade crate
    /// [`metrics`](https://docs.rs/metrics) (feature `metrics`).
    ///
    /// Call it before each scrape, or every few seconds. The names are those of the fields of
    /// [`Stats`](crate::Stats), after `elastipool_`; those of counters end with `_total`. Gauges:
    /// `workers`, `idle`, `blocked`, `peak_blocked`, `peak_workers`, `queued`, `active`, `pending`,
    /// `allowed`, `awake`, `asleep`, `asleep_on_threads`, `asleep_on_disks`. Counters:
    /// `completed_total`, `panicked_total`, `cancelled_total`, `expired_total`,
    /// `handed_back_total`, `rejected_total`, `threads_started_total`, `threads_retired_total`,
    /// `threads_refused_total`. They have the label `pool` with the pool's name and, for the handle
    /// of a [`View`](crate::View), the label `view` with its name.
    ///
    /// Blocks as [`stats`](Self::stats) does. Needs no setting of the builder.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.execute(|| ());
    /// pool.join();
    /// pool.publish_metrics(); // elastipool_completed_total is 1
    /// ```
    pub fn publish_metrics(&self) {
        let stats = self.stats();
        let mut labels = vec![metrics::Label::new("pool", self.name().to_owned())];
        if let Some(view) = &self.view {
            labels.push(metrics::Label::new("view", view.name.clone()));
        }
        // Tells the recorder what the metrics mean, and publishes them.
        macro_rules! publish {
            ($($describe:ident $kind:ident $set:ident as $number:ty, $end:literal:
                $($field:ident $text:literal)*;)*) => {$($(
                let name = concat!("elastipool_", stringify!($field), $end);
                $describe!(name, Unit::Count, $text);
                $kind!(name, labels.clone()).$set(stats.$field as $number);
            )*)*};
        }
        publish! {
            describe_gauge gauge set as f64, "":
                workers "workers alive" idle "workers that wait for work"
                blocked "workers in blocking regions"
                peak_blocked "the most workers in blocking regions"
                peak_workers "the most workers alive" queued "tasks that wait for a worker"
                active "tasks that run" pending "pending futures, tasks in line for a slot, permits"
                allowed "workers that may run" awake "workers that run or wait for a CPU"
                asleep "workers that sleep in their tasks"
                asleep_on_threads "workers that sleep until another thread wakes them"
                asleep_on_disks "workers that sleep in the queue of a disk";
            describe_counter counter absolute as u64, "_total":
                completed "tasks that returned" panicked "tasks that panicked"
                cancelled "tasks that were cancelled" expired "tasks that expired in the queue"
                handed_back "tasks that an immediate shutdown returned"
                rejected "tasks that were not accepted" threads_started "threads started"
                threads_retired "threads that ended"
                threads_refused "threads that the system refused";
        }
        describe_histogram!(QUEUE_SECONDS, Unit::Seconds, "from a task's submission to its start");
        let run_text = "how long a closure, or a poll of a future, ran";
        describe_histogram!(RUN_SECONDS, Unit::Seconds, run_text);
    }
}

/// Times a task that is submitted. What it returns times one run of it.
fn time(submission: Submission<'_>) -> Option<impl Fn() -> Timer + Send + Sync + use<>> {
    let pool: Arc<str> = submission.pool.into();
    let (submitted, is_started) = (Instant::now(), AtomicBool::new(false));
    Some(move || {
        let begin = Instant::now();
        // Relaxed: one thread at a time enters, and what hands the task over orders them.
        let is_first = !is_started.swap(true, Ordering::Relaxed);
        let waited = is_first.then(|| begin.saturating_duration_since(submitted));
        Timer { pool: Arc::clone(&pool), waited, begin }
    })
}

/// Dropped when the closure or the poll has ended.
struct Timer {
    pool: Arc<str>,
    /// How long the task was queued, if it has just started.
    waited: Option<Duration>,
    begin: Instant,
}

impl Drop for Timer {
    fn drop(&mut self) {
        let ran = self.begin.elapsed();
        let record = |name: &'static str, time: Duration| {
            histogram!(name, "pool" => self.pool.to_string()).record(time);
        };
        if let Some(waited) = self.waited {
            record(QUEUE_SECONDS, waited);
        }
        record(RUN_SECONDS, ran);
    }
}
