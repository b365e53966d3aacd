//! Which tasks a pool has, what each does and which line submitted it, for
//! [`ThreadPool::report`](crate::ThreadPool::report).
//!
//! A tracked task has a record, and a second one while it runs. Submitting a task, entering it,
//! leaving it and dropping it each change these, under one lock.

use std::any::Any;
use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::keeper::{Keeper, KeeperJob, PAUSE, UserCode};
use crate::observe::hooks::{Hooks, StallHook};
use crate::observe::observer::Observe;
use crate::report::{Report, RunningThread, TaskInfo, TaskState};
use crate::stats::Stats;
use crate::sync::probe::{self, ThreadState};
use crate::sync::unwind::OnDrop;
use crate::sync::{Mutex, MutexGuard};
use crate::task::{Enter, Numbered, Submission};
use crate::thread::{PoolId, identity};

/// See the [module's documentation](self).
pub(crate) struct Tracker {
    pool: PoolId,
    state: Mutex<TrackerState>,
    keeper: Arc<Keeper>,
    hooks: Hooks,
}

#[derive(Default)]
struct TrackerState {
    tasks: Numbered<TaskRecord>,
    /// How many tasks are queued.
    queued: usize,
    /// In the order in which they have begun: a task that runs on top of another one comes after
    /// it.
    running: Vec<Running>,
    /// When a task was started last, or the first of the queued ones was submitted.
    last_start: Option<Instant>,
    /// Whether it was reported that no task has been started since.
    has_reported_queue: bool,
    /// Whether the keeper looks for stalls: not while there are no tasks.
    is_watched: bool,
}

#[derive(Clone, Copy)]
struct TaskRecord {
    location: &'static Location<'static>,
    is_future: bool,
    /// Also `Running` if an immediate shutdown has handed the task back. `Blocked` only in the
    /// copy that a running task has.
    state: TaskState,
    since: Instant,
}

struct Running {
    number: u64,
    record: TaskRecord,
    worker: Option<usize>,
    thread: ThreadId,
    name: Option<String>,
    /// The thread as the system knows it, and the CPU time that it had used when it began this task
    /// or poll.
    probed: probe::ThreadId,
    used_before: Option<u64>,
    /// Whether a stall of it was reported.
    is_reported: bool,
}

impl Tracker {
    /// Returns the tracker of a pool with these hooks.
    pub(crate) fn observer(pool: PoolId, keeper: &Arc<Keeper>, hooks: &Hooks) -> Arc<dyn Observe> {
        let (keeper, hooks) = (Arc::clone(keeper), hooks.clone());
        let state = Mutex::new(TrackerState::default());
        Arc::new(Arc::new(Tracker { pool, state, keeper, hooks }))
    }

    /// Lets the keeper look for stalls, if it does not. There is a task.
    fn begin_watch(&self, mut state: MutexGuard<'_, TrackerState>) {
        let watch = self.hooks.watch.as_ref();
        let Some(watch) = watch.filter(|_| !state.is_watched) else { return };
        state.is_watched = true;
        drop(state);
        // A report comes at most a quarter of `after` late, or one of the keeper's pauses.
        let pause = (watch.after / 4).max(PAUSE);
        self.keeper.ask(KeeperJob::Stalls, Instant::now() + pause);
    }

    /// Returns the user's hook if there is a stall that was not reported yet: a task has run for
    /// [`Watch::after`](crate::observe::Watch), or tasks are queued and none was started for that
    /// long. Marks it as reported.
    fn take_stall(&self) -> Option<StallHook> {
        let (watch, now) = (self.hooks.watch.as_ref()?, Instant::now());
        let is_due = |since: Instant| now.saturating_duration_since(since) >= watch.after;
        let mut is_stalled = false;
        let mut state = self.state.lock();
        for running in state.running.iter_mut().filter(|running| is_due(running.record.since)) {
            is_stalled |= !mem::replace(&mut running.is_reported, true);
        }
        if state.queued > 0 && state.last_start.is_some_and(is_due) {
            is_stalled |= !mem::replace(&mut state.has_reported_queue, true);
        }
        is_stalled.then(|| Arc::clone(&watch.hook))
    }

    /// The task has run, or the poll has ended.
    fn leave(&self, number: u64) {
        let mut state = self.state.lock();
        state.running.retain(|running| running.number != number);
        if let Some(record) = state.tasks.get_mut(number).filter(|record| record.is_future) {
            // If that poll was the last one, its thread ends the future next, and removes the
            // record.
            (record.state, record.since) = (TaskState::Pending, Instant::now());
        }
    }

    fn remove(&self, number: u64) {
        let mut state = self.state.lock();
        let state_of_removed = state.tasks.remove(number).map(|record| record.state);
        state.queued -= usize::from(state_of_removed == Some(TaskState::Queued));
    }
}

impl Observe for Arc<Tracker> {
    fn submitted(&self, submission: Submission<'_>) -> Option<Box<dyn Enter>> {
        let now = Instant::now();
        let Submission { line: location, is_future, .. } = submission;
        let mut state = self.state.lock();
        if state.queued == 0 {
            (state.last_start, state.has_reported_queue) = (Some(now), false);
        }
        state.queued += 1;
        let record = TaskRecord { location, is_future, state: TaskState::Queued, since: now };
        let number = state.tasks.push(record);
        self.begin_watch(state);
        Some(Box::new(Tracked { tracker: Arc::clone(self), number }))
    }

    fn set_blocked(&self, is_blocked: bool) {
        let thread = thread::current().id();
        let mut state = self.state.lock();
        if let Some(task) = state.running.iter_mut().rfind(|task| task.thread == thread) {
            task.record.state = if is_blocked { TaskState::Blocked } else { TaskState::Running };
        }
    }

    fn forget_queued(&self) {
        let mut state = self.state.lock();
        state.queued = 0;
        for (_, record) in state.tasks.iter_mut() {
            if record.state == TaskState::Queued {
                record.state = TaskState::Running;
            }
        }
    }

    /// Looks again later, unless there is no task.
    fn look_for_stalls(&self, pool: &str, stats: &dyn Fn() -> Stats) -> Option<UserCode> {
        let report = || self.report(pool, stats());
        let stall = self.take_stall().and_then(|hook| Some((hook, report()?)));
        let mut state = self.state.lock();
        state.is_watched = false;
        if state.queued > 0 || !state.running.is_empty() {
            self.begin_watch(state);
        }
        let (hook, report) = stall?;
        let hooks = self.hooks.clone();
        Some(Box::new(move || hooks.call(|| hook(&report))))
    }

    fn report(&self, pool: &str, stats: Stats) -> Option<Report> {
        let now = Instant::now();
        let state = self.state.lock();
        let info = |record: &TaskRecord| TaskInfo {
            location: record.location,
            is_future: record.is_future,
            state: record.state,
            since: now.saturating_duration_since(record.since),
        };
        let mut threads: Vec<(ThreadId, RunningThread)> = Vec::new();
        for task in &state.running {
            let info = info(&task.record);
            match threads.iter_mut().find(|(thread, _)| *thread == task.thread) {
                Some((_, thread)) => thread.tasks.push(info),
                None => {
                    let state = task.probed.state();
                    let used = task.probed.cpu_nanos().zip(task.used_before);
                    let thread = RunningThread {
                        worker: task.worker,
                        name: task.name.clone(),
                        tasks: vec![info],
                        is_asleep: state.map(|state| state != ThreadState::Awake),
                        waits_for: match state {
                            Some(ThreadState::Asleep(wait)) => wait,
                            _ => None,
                        },
                        cpu_time: used
                            .map(|(now, before)| Duration::from_nanos(now.saturating_sub(before))),
                    };
                    threads.push((task.thread, thread));
                }
            }
        }
        let oldest = |wanted| {
            let tasks = state.tasks.iter().filter(|(_, record)| record.state == wanted);
            let oldest = tasks.min_by_key(|(_, record)| record.since);
            oldest.map(|(_, record)| info(record))
        };
        Some(Report {
            pool: pool.to_owned(),
            stats,
            running: threads.into_iter().map(|(_, thread)| thread).collect(),
            oldest_queued: oldest(TaskState::Queued),
            oldest_pending: oldest(TaskState::Pending),
        })
    }
}

/// The record of one task.
struct Tracked {
    tracker: Arc<Tracker>,
    number: u64,
}

impl Enter for Tracked {
    fn enter(&self) -> Box<dyn Any> {
        let now = Instant::now();
        let current = thread::current();
        let probed = probe::ThreadId::of_current();
        let mut state = self.tracker.state.lock();
        let record = state.tasks.get_mut(self.number);
        let Some(record) = record.filter(|record| record.state != TaskState::Running) else {
            // The future has ended, or an immediate shutdown has handed the task back.
            return Box::new(());
        };
        let was_queued = mem::replace(&mut record.state, TaskState::Running) == TaskState::Queued;
        record.since = now;
        let record = *record;
        if was_queued {
            state.queued -= 1;
            (state.last_start, state.has_reported_queue) = (Some(now), false);
        }
        let running = Running {
            number: self.number,
            record,
            worker: identity()
                .filter(|own| own.pool == self.tracker.pool)
                .and_then(|own| own.index),
            thread: current.id(),
            name: current.name().map(str::to_owned),
            used_before: probed.cpu_nanos(),
            probed,
            is_reported: false,
        };
        state.running.push(running);
        self.tracker.begin_watch(state);
        let (tracker, number) = (Arc::clone(&self.tracker), self.number);
        // Dropped when the task has run, or the poll has ended.
        Box::new(OnDrop(move || tracker.leave(number)))
    }

    fn end(&self) {
        self.tracker.remove(self.number);
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.tracker.remove(self.number);
    }
}
