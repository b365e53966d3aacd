//! What the tasks of a pool do: the report of a pool that tracks its tasks.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::stats::Stats;

/// What a pool's tasks do at one moment, and which lines submitted them. Returned by
/// [`ThreadPool::report`](crate::ThreadPool::report), and passed to the hook of
/// [`Builder::stall_report`](crate::Builder::stall_report).
///
/// Its `Display` form is meant for a log:
///
/// ```text
/// pool `resolver`: 2 workers, 0 idle, 2 blocked, 1 task queued, 0 pending
/// worker 0, thread `resolver-0`:
///     closure submitted at src/main.rs:12:20, runs for 61 ms, blocked
///     asleep, has used 0 ms of CPU time, waits for another thread
/// worker 1, thread `resolver-1`:
///     closure submitted at src/main.rs:17:21, runs for 61 ms, blocked
///     asleep, has used 0 ms of CPU time, waits for another thread
/// waiting longest: closure submitted at src/main.rs:20:10, queued for 60 ms
/// ```
///
/// ```
/// let pool = elastipool::Builder::new().track_tasks(true).build();
/// let (open, gate) = std::sync::mpsc::channel::<()>();
/// let line = line!() + 1; // the next line is in the report
/// pool.execute(move || gate.recv().unwrap());
/// let report = loop {
///     let report = pool.report().expect("the pool tracks its tasks");
///     if !report.running.is_empty() {
///         break report;
///     }
/// };
/// assert_eq!(report.running[0].tasks[0].location.line(), line);
/// println!("{report}");
/// open.send(()).unwrap();
/// pool.shutdown_join();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The pool's name.
    pub pool: String,
    /// The pool's statistics, read just before the tasks. A task that waits for a slot of its
    /// [group](crate::TaskGroup) is `pending` there, and [queued](TaskState::Queued) in the fields
    /// below.
    pub stats: Stats,
    /// The threads that run tasks, the one whose outermost task has run longest first.
    pub running: Vec<RunningThread>,
    /// The task that has waited longest to be started.
    pub oldest_queued: Option<TaskInfo>,
    /// The future whose last poll is longest ago, among those that are not being polled.
    pub oldest_pending: Option<TaskInfo>,
}

/// A thread that runs tasks of a pool, in a [`Report`].
///
/// ```
/// let pool = elastipool::Builder::new().track_tasks(true).build();
/// let (open, gate) = std::sync::mpsc::channel::<()>();
/// pool.execute(move || gate.recv().unwrap());
/// let report = loop {
///     let report = pool.report().expect("the pool tracks its tasks");
///     if !report.running.is_empty() {
///         break report;
///     }
/// };
/// let thread = &report.running[0];
/// assert_eq!((thread.worker, thread.tasks.len()), (Some(0), 1));
/// open.send(()).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunningThread {
    /// The worker's index. `None` for a thread outside the pool, such as one that waits for a
    /// scope.
    pub worker: Option<usize>,
    /// The thread's name.
    pub name: Option<String>,
    /// The tasks on the thread's stack, the outermost first. There is more than one while a task
    /// runs another task that it waits for.
    pub tasks: Vec<TaskInfo>,
    /// Whether the thread sleeps: its innermost task waits for anything but a CPU, whether or not
    /// it is in a blocking region. `None` where the system does not tell (see
    /// [`Growth::Measured`](crate::Growth::Measured)).
    pub is_asleep: Option<bool>,
    /// What the thread sleeps for. `None` if it is awake, or where the system does not tell: only
    /// Linux and Android do.
    pub waits_for: Option<Wait>,
    /// The CPU time that the thread has used since it began its outermost task. The rest of that
    /// time it slept, or waited for a CPU. `None` as for `is_asleep`.
    pub cpu_time: Option<Duration>,
}

/// What a thread sleeps for, in a [`RunningThread`]. Under
/// [`Growth::Measured`](crate::Growth::Measured) more workers have to pay for themselves if they
/// sleep for the first two.
///
/// ```
/// use elastipool::{ThreadPool, Wait};
///
/// let pool = elastipool::Builder::new().track_tasks(true).build();
/// let locked = |report: elastipool::Report| {
///     report.running.iter().filter(|thread| thread.waits_for == Some(Wait::Thread)).count()
/// };
/// println!("{:?} threads wait for others", pool.report().map(locked));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Another thread: a lock, a channel, a condition variable. Also a blocking client whose
    /// connections another thread serves.
    Thread,
    /// A disk.
    Disk,
    /// Anything else: a timer, a socket, a pipe, another process.
    Outside,
}

/// A task in a [`Report`].
///
/// ```
/// let pool = elastipool::Builder::new().track_tasks(true).build();
/// let (open, gate) = std::sync::mpsc::channel::<()>();
/// pool.execute(move || gate.recv().unwrap());
/// let report = loop {
///     let report = pool.report().expect("the pool tracks its tasks");
///     if !report.running.is_empty() {
///         break report;
///     }
/// };
/// let task = &report.running[0].tasks[0];
/// println!("{} for {:?}", task.location, task.since);
/// assert!(!task.is_future);
/// open.send(()).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskInfo {
    /// The call that submitted the task.
    pub location: &'static Location<'static>,
    /// Whether the task is a future of a `spawn` function. The future of
    /// [`complete`](crate::ThreadPool::complete) counts as a closure.
    pub is_future: bool,
    /// What the task does.
    pub state: TaskState,
    /// How long it has been doing that.
    pub since: Duration,
}

/// What a task does, in a [`TaskInfo`].
///
/// ```
/// use elastipool::TaskState;
///
/// let pool = elastipool::Builder::new().track_tasks(true).build();
/// let (open, gate) = std::sync::mpsc::channel::<()>();
/// pool.execute(move || gate.recv().unwrap());
/// let report = loop {
///     let report = pool.report().expect("the pool tracks its tasks");
///     if !report.running.is_empty() {
///         break report;
///     }
/// };
/// assert_eq!(report.running[0].tasks[0].state, TaskState::Running);
/// open.send(()).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It waits to be started, for a worker or for a slot of its [group](crate::TaskGroup).
    Queued,
    /// It runs, or the future is being polled.
    Running,
    /// It runs, and is in a [blocking region](crate::blocking()): it waits for another task, or in
    /// a call of `blocking`.
    Blocked,
    /// The future waits to be woken, or was woken and waits to be polled.
    Pending,
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = &self.stats;
        write!(
            f,
            "pool `{}`: {}, {} idle, {} blocked, {} queued, {} pending",
            self.pool,
            count(stats.workers, "worker"),
            stats.idle,
            stats.blocked,
            count(stats.queued, "task"),
            stats.pending,
        )?;
        for thread in &self.running {
            write!(f, "\n{thread}")?;
        }
        for task in [&self.oldest_queued, &self.oldest_pending].into_iter().flatten() {
            write!(f, "\nwaiting longest: {task}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RunningThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worker {
            Some(index) => write!(f, "worker {index}")?,
            None => f.write_str("no worker")?,
        }
        write!(f, ", thread `{}`:", self.name.as_deref().unwrap_or("without a name"))?;
        for task in &self.tasks {
            write!(f, "\n    {task}")?;
        }
        let (Some(is_asleep), Some(used)) = (self.is_asleep, self.cpu_time) else { return Ok(()) };
        let state = if is_asleep { "asleep" } else { "awake" };
        write!(f, "\n    {state}, has used {} ms of CPU time", used.as_millis())?;
        match self.waits_for {
            Some(Wait::Thread) => f.write_str(", waits for another thread"),
            Some(Wait::Disk) => f.write_str(", waits for a disk"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_future { "future" } else { "closure" };
        let (what, end) = match self.state {
            TaskState::Queued => ("queued", ""),
            TaskState::Running => ("runs", ""),
            TaskState::Blocked => ("runs", ", blocked"),
            TaskState::Pending => ("pending", ""),
        };
        let (location, milliseconds) = (self.location, self.since.as_millis());
        write!(f, "{kind} submitted at {location}, {what} for {milliseconds} ms{end}")
    }
}
