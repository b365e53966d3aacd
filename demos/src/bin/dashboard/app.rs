//! The pool, its load, and what the keys do to them.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use elastipool::{BuildError, Stats, ThreadPool, blocking};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// How long a task waits in a blocking region, or keeps a CPU busy.
const TASK: Duration = Duration::from_millis(5);

/// The most tasks in the queue: more are rejected.
const CAPACITY: usize = 200;

/// The most tasks per second.
const MAX_RATE: u32 = 12_800;

/// The most frames that are kept: more than a terminal is wide.
const MAX_HISTORY: usize = 500;

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) stats: Stats,
    pub(crate) core_size: usize,
    pub(crate) max_size: usize,
    pub(crate) keep_alive: Duration,
    /// Tasks per second.
    pub(crate) rate: u32,
    /// How many percent of the tasks wait in a blocking region. The others keep a CPU busy.
    pub(crate) blocking: u32,
    pub(crate) is_paused: bool,
    /// The workers that run a task and are not blocked, frame by frame, the last frame at the end.
    pub(crate) running: Vec<u64>,
    /// The queue, likewise.
    pub(crate) queued: Vec<u64>,
    /// What the last key could not do.
    pub(crate) message: Option<String>,
}

/// What the load's thread reads.
#[derive(Default)]
struct Load {
    rate: AtomicU32,
    blocking: AtomicU32,
    has_ended: AtomicBool,
}

pub(crate) struct App {
    pub(crate) snapshot: Snapshot,
    pub(crate) pool: ThreadPool,
    load: Arc<Load>,
    submitter: Option<JoinHandle<()>>,
}

impl App {
    pub(crate) fn new() -> Self {
        let pool = ThreadPool::builder()
            .name("dashboard")
            .core_size(2)
            .max_size(8)
            .keep_alive(Duration::from_secs(2))
            .queue_capacity(CAPACITY)
            .build();
        let load = Arc::new(Load::default());
        let submitter = {
            let (pool, load) = (pool.clone(), Arc::clone(&load));
            thread::spawn(move || submit(&pool, &load))
        };
        let snapshot = Snapshot { rate: 100, blocking: 50, ..Snapshot::default() };
        let mut app = App { snapshot, pool, load, submitter: Some(submitter) };
        app.set_load();
        app.look();
        app
    }

    /// Reads the counts.
    pub(crate) fn look(&mut self) {
        let Snapshot { stats, core_size, max_size, keep_alive, running, queued, .. } =
            &mut self.snapshot;
        *stats = self.pool.stats();
        (*core_size, *max_size) = (self.pool.core_size(), self.pool.max_size());
        *keep_alive = self.pool.keep_alive();
        for (history, count) in
            [(running, stats.active.saturating_sub(stats.blocked)), (queued, stats.queued)]
        {
            if history.len() == MAX_HISTORY {
                history.remove(0);
            }
            history.push(count as u64);
        }
    }

    /// Does what a key asks for. Returns whether that is to quit.
    pub(crate) fn press(&mut self, key: KeyCode, modifiers: KeyModifiers) -> bool {
        let Snapshot { rate, blocking, is_paused, .. } = &mut self.snapshot;
        let mut changed: Result<(), BuildError> = Ok(());
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Up => *rate = (*rate * 2).min(MAX_RATE),
            KeyCode::Down => *rate = (*rate / 2).max(1),
            KeyCode::Right => *blocking = (*blocking + 10).min(100),
            KeyCode::Left => *blocking = blocking.saturating_sub(10),
            KeyCode::Char(' ') => *is_paused = !*is_paused,
            KeyCode::Char('C') => changed = self.pool.set_core_size(self.pool.core_size() + 1),
            KeyCode::Char('c') => {
                changed = self.pool.set_core_size(self.pool.core_size().saturating_sub(1));
            }
            KeyCode::Char('M') => changed = self.pool.set_max_size(self.pool.max_size() + 1),
            KeyCode::Char('m') => {
                changed = self.pool.set_max_size(self.pool.max_size().saturating_sub(1));
            }
            KeyCode::Char('K') => {
                self.pool.set_keep_alive(self.pool.keep_alive() + Duration::from_secs(1));
            }
            KeyCode::Char('k') => {
                let keep_alive = self.pool.keep_alive().saturating_sub(Duration::from_secs(1));
                self.pool.set_keep_alive(keep_alive);
            }
            _ => return false,
        }
        self.snapshot.message = changed.err().map(|error| error.to_string());
        self.set_load();
        false
    }

    fn set_load(&self) {
        let Snapshot { rate, blocking, is_paused, .. } = self.snapshot;
        self.load.rate.store(if is_paused { 0 } else { rate }, Ordering::Relaxed);
        self.load.blocking.store(blocking, Ordering::Relaxed);
    }
}

/// Ends the load, then the pool. What is queued is dropped.
impl Drop for App {
    fn drop(&mut self) {
        self.load.has_ended.store(true, Ordering::Relaxed);
        if let Some(submitter) = self.submitter.take() {
            let _ = submitter.join();
        }
        drop(self.pool.shutdown_now());
        self.pool.clone().shutdown_join();
    }
}

/// Submits tasks at the rate of the load, a few at a time.
fn submit(pool: &ThreadPool, load: &Load) {
    const INTERVAL: Duration = Duration::from_millis(10);
    let (mut last, mut due) = (Instant::now(), 0.0);
    while !load.has_ended.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
        let passed = last.elapsed();
        last += passed;
        // After a stop of the whole process, not all at once.
        due +=
            f64::from(load.rate.load(Ordering::Relaxed)) * passed.min(INTERVAL * 5).as_secs_f64();
        while due >= 1.0 {
            due -= 1.0;
            let waits = fastrand::u32(0..100) < load.blocking.load(Ordering::Relaxed);
            // A full queue rejects the task. The statistics count that.
            let _ =
                pool.try_execute(
                    move || if waits { blocking(|| thread::sleep(TASK)) } else { compute() },
                );
        }
    }
}

/// Keeps a CPU busy for the time of a task.
fn compute() {
    let start = Instant::now();
    while start.elapsed() < TASK {
        hint::spin_loop();
    }
}
