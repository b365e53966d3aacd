//! The pools that a load runs on, and what they tell of themselves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elastipool::ThreadPool;

/// The workers and the queue at one moment.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) running: usize,
    /// Workers that wait in their tasks: in blocking regions, or asleep.
    pub(crate) waiting: usize,
    pub(crate) idle: usize,
    pub(crate) queued: usize,
}

impl Counts {
    pub(crate) fn workers(self) -> usize {
        self.running + self.waiting + self.idle
    }
}

pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// A pool under measurement.
pub(crate) trait Engine: Sync {
    fn name(&self) -> &str;
    fn execute(&self, task: Task);
    fn counts(&self) -> Counts;
}

pub(crate) struct Elastipool {
    name: String,
    pool: ThreadPool,
}

impl Elastipool {
    pub(crate) fn new(name: impl Into<String>, pool: ThreadPool) -> Self {
        Elastipool { name: name.into(), pool }
    }
}

impl Engine for Elastipool {
    fn name(&self) -> &str {
        &self.name
    }

    fn execute(&self, task: Task) {
        self.pool.execute(task);
    }

    fn counts(&self) -> Counts {
        let stats = self.pool.stats();
        Counts {
            running: stats.active.saturating_sub(stats.blocked),
            waiting: stats.blocked,
            idle: stats.workers.saturating_sub(stats.active),
            queued: stats.queued,
        }
    }
}

/// The next pool begins when the threads of this one are gone.
impl Drop for Elastipool {
    fn drop(&mut self) {
        self.pool.close();
        self.pool.clone().shutdown_join();
    }
}

/// Counts the tasks and the threads of a pool that does not.
#[derive(Default)]
struct Counter {
    submitted: AtomicUsize,
    started: AtomicUsize,
    ended: AtomicUsize,
    threads: AtomicUsize,
}

impl Counter {
    fn count(self: &Arc<Self>, task: Task) -> impl FnOnce() + Send + 'static {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        let counter = Arc::clone(self);
        move || {
            counter.started.fetch_add(1, Ordering::Relaxed);
            task();
            counter.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self, workers: usize) -> Counts {
        // In this order a task that moves meanwhile counts twice or not at all, but no difference
        // is negative.
        let ended = self.ended.load(Ordering::Relaxed);
        let started = self.started.load(Ordering::Relaxed);
        let submitted = self.submitted.load(Ordering::Relaxed);
        let running = started.saturating_sub(ended);
        Counts {
            running,
            waiting: 0,
            idle: workers.saturating_sub(running),
            queued: submitted.saturating_sub(started),
        }
    }
}

pub(crate) struct RustyPool {
    pool: rusty_pool::ThreadPool,
    counter: Arc<Counter>,
}

impl RustyPool {
    pub(crate) fn new(core_size: usize, max_size: usize, keep_alive: Duration) -> Self {
        let pool = rusty_pool::ThreadPool::new(core_size, max_size, keep_alive);
        RustyPool { pool, counter: Arc::default() }
    }
}

impl Engine for RustyPool {
    fn name(&self) -> &str {
        "rusty_pool"
    }

    fn execute(&self, task: Task) {
        self.pool.execute(self.counter.count(task));
    }

    fn counts(&self) -> Counts {
        self.counter.counts(self.pool.get_current_worker_count())
    }
}

pub(crate) struct Tokio {
    name: String,
    runtime: tokio::runtime::Runtime,
    counter: Arc<Counter>,
}

impl Tokio {
    pub(crate) fn new(
        name: impl Into<String>,
        max_size: usize,
        keep_alive: Duration,
    ) -> io::Result<Self> {
        let counter = Arc::new(Counter::default());
        let (starts, stops) = (Arc::clone(&counter), Arc::clone(&counter));
        // A runtime of this kind has no threads but those of `spawn_blocking`.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(max_size)
            .thread_keep_alive(keep_alive)
            .on_thread_start(move || _ = starts.threads.fetch_add(1, Ordering::Relaxed))
            .on_thread_stop(move || _ = stops.threads.fetch_sub(1, Ordering::Relaxed))
            .build()?;
        Ok(Tokio { name: name.into(), runtime, counter })
    }
}

impl Engine for Tokio {
    fn name(&self) -> &str {
        &self.name
    }

    fn execute(&self, task: Task) {
        drop(self.runtime.spawn_blocking(self.counter.count(task)));
    }

    fn counts(&self) -> Counts {
        self.counter.counts(self.counter.threads.load(Ordering::Relaxed))
    }
}
