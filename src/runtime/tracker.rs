//! Which tasks a pool has, what each does and which line submitted it, for [`ThreadPool::report`](crate::ThreadPool::report).
//!
//! A tracked task has a record, which lies in one of three maps: of queued, running and pending tasks. Submitting a task,
//! entering it, leaving it and dropping it each move the record, under one lock. Numbers grow in the order of submission,
//! so the first queued record is the oldest.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::report::{Report, RunningThread, TaskInfo, TaskState};
use crate::runtime::due::{Keeper, KeeperJob, PAUSE};
use crate::runtime::identity::{PoolId, worker_index_of};
use crate::stats::Stats;
use crate::sync::{Mutex, MutexGuard, probe};
use crate::task::attachment::{Attach, Enter, Submission};

/// When the keeper reports stalls.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) after: Duration,
    pub(crate) hook: Arc<StallHook>,
}

/// The user's hook.
type StallHook = dyn Fn(&Report) + Send + Sync;

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("after", &self.after).finish_non_exhaustive()
    }
}

/// See the [module's documentation](self).
pub(crate) struct Tracker {
    pool: PoolId,
    watch: Option<Watch>,
    state: Mutex<TrackerState>,
    keeper: Arc<Keeper>,
}

type TaskNumber = u64;

#[derive(Default)]
struct TrackerState {
    next: TaskNumber,
    queued: BTreeMap<TaskNumber, TaskRecord>,
    running: BTreeMap<TaskNumber, Running>,
    pending: BTreeMap<TaskNumber, TaskRecord>,
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
    since: Instant,
}

struct Running {
    record: TaskRecord,
    worker: Option<usize>,
    thread: ThreadId,
    name: Option<String>,
    /// The thread as the system knows it, and the CPU time that it had used when it began this task or poll.
    probed: probe::ThreadId,
    used_before: Option<u64>,
    is_blocked: bool,
    /// Whether a stall of it was reported.
    is_reported: bool,
}

impl Tracker {
    pub(crate) fn new(watch: Option<Watch>, pool: PoolId, keeper: Arc<Keeper>) -> Self {
        Tracker { pool, watch, state: Mutex::new(TrackerState::default()), keeper }
    }

    /// Sets whether the innermost task of this pool on the calling thread is in a blocking region.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        let thread = thread::current().id();
        let mut state = self.state.lock();
        let on_stack = state.running.iter_mut().filter(|(_, task)| task.thread == thread);
        // The task that has begun last.
        if let Some((_, task)) = on_stack.max_by_key(|(number, task)| (task.record.since, **number))
        {
            task.is_blocked = is_blocked;
        }
    }

    /// An immediate shutdown has emptied the queue.
    pub(crate) fn forget_queued(&self) {
        self.state.lock().queued.clear();
    }

    /// Lets the keeper look for stalls, if it does not. There is a task.
    fn begin_watch(&self, mut state: MutexGuard<'_, TrackerState>) {
        let Some(watch) = self.watch.as_ref().filter(|_| !state.is_watched) else { return };
        state.is_watched = true;
        drop(state);
        // A report comes at most a quarter of `after` late, or one of the keeper's pauses.
        let pause = (watch.after / 4).max(PAUSE);
        self.keeper.ask(KeeperJob::Stalls, Instant::now() + pause);
    }

    /// Returns the user's hook if there is a stall that was not reported yet: a task has run for [`Watch::after`], or tasks are
    /// queued and none was started for that long. Marks it as reported.
    pub(super) fn take_stall(&self) -> Option<Arc<StallHook>> {
        let (watch, now) = (self.watch.as_ref()?, Instant::now());
        let is_due = |since: Instant| now.saturating_duration_since(since) >= watch.after;
        let mut is_stalled = false;
        let mut state = self.state.lock();
        for running in state.running.values_mut().filter(|running| is_due(running.record.since)) {
            is_stalled |= !mem::replace(&mut running.is_reported, true);
        }
        if !state.queued.is_empty() && state.last_start.is_some_and(is_due) {
            is_stalled |= !mem::replace(&mut state.has_reported_queue, true);
        }
        is_stalled.then(|| Arc::clone(&watch.hook))
    }

    /// Lets the keeper, which has just looked for stalls, do so again, unless there is no task.
    pub(super) fn watch_again(&self) {
        let mut state = self.state.lock();
        state.is_watched = false;
        if !state.queued.is_empty() || !state.running.is_empty() {
            self.begin_watch(state);
        }
    }

    fn remove(&self, number: TaskNumber) {
        let mut state = self.state.lock();
        let _ = (state.queued.remove(&number), state.pending.remove(&number));
    }

    /// Returns the report of the pool of this name.
    pub(super) fn report(&self, pool: String, stats: Stats) -> Report {
        let now = Instant::now();
        let state = self.state.lock();
        let info = |record: &TaskRecord, state| TaskInfo {
            location: record.location,
            is_future: record.is_future,
            state,
            since: now.saturating_duration_since(record.since),
        };
        // A task that runs on top of another one has begun after it.
        let mut tasks: Vec<&Running> = state.running.values().collect();
        tasks.sort_by_key(|task| task.record.since);
        let mut threads: Vec<(ThreadId, RunningThread)> = Vec::new();
        for task in tasks {
            let state = if task.is_blocked { TaskState::Blocked } else { TaskState::Running };
            let info = info(&task.record, state);
            match threads.iter_mut().find(|(thread, _)| *thread == task.thread) {
                Some((_, thread)) => thread.tasks.push(info),
                None => {
                    let used = task.probed.cpu_nanos().zip(task.used_before);
                    let thread = RunningThread {
                        worker: task.worker,
                        name: task.name.clone(),
                        tasks: vec![info],
                        is_asleep: task.probed.is_awake().map(|is_awake| !is_awake),
                        cpu_time: used
                            .map(|(now, before)| Duration::from_nanos(now.saturating_sub(before))),
                    };
                    threads.push((task.thread, thread));
                }
            }
        }
        let queued = state.queued.values().next();
        let pending = state.pending.values().min_by_key(|record| record.since);
        Report {
            pool,
            stats,
            running: threads.into_iter().map(|(_, thread)| thread).collect(),
            oldest_queued: queued.map(|record| info(record, TaskState::Queued)),
            oldest_pending: pending.map(|record| info(record, TaskState::Pending)),
        }
    }
}

impl Attach for Arc<Tracker> {
    fn attach(&self, submission: Submission<'_>) -> Option<Box<dyn Enter>> {
        let now = Instant::now();
        let Submission { line: location, is_future, .. } = submission;
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        if state.queued.is_empty() {
            (state.last_start, state.has_reported_queue) = (Some(now), false);
        }
        state.queued.insert(number, TaskRecord { location, is_future, since: now });
        self.begin_watch(state);
        Some(Box::new(Tracked { tracker: Arc::clone(self), number }))
    }
}

/// The record of one task.
struct Tracked {
    tracker: Arc<Tracker>,
    number: TaskNumber,
}

impl Enter for Tracked {
    fn enter(&self) -> Box<dyn Any> {
        let now = Instant::now();
        let current = thread::current();
        let probed = probe::ThreadId::of_current();
        let mut state = self.tracker.state.lock();
        let record = if let Some(record) = state.queued.remove(&self.number) {
            (state.last_start, state.has_reported_queue) = (Some(now), false);
            record
        } else if let Some(record) = state.pending.remove(&self.number) {
            record
        } else {
            // The future has ended, or an immediate shutdown has handed the task back.
            return Box::new(());
        };
        let running = Running {
            record: TaskRecord { since: now, ..record },
            worker: worker_index_of(self.tracker.pool),
            thread: current.id(),
            name: current.name().map(str::to_owned),
            used_before: probed.cpu_nanos(),
            probed,
            is_blocked: false,
            is_reported: false,
        };
        state.running.insert(self.number, running);
        self.tracker.begin_watch(state);
        Box::new(OnStack { tracker: Arc::clone(&self.tracker), number: self.number })
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

/// Dropped when the task has run, or the poll has ended.
struct OnStack {
    tracker: Arc<Tracker>,
    number: TaskNumber,
}

impl Drop for OnStack {
    fn drop(&mut self) {
        let mut state = self.tracker.state.lock();
        let ended = state.running.remove(&self.number);
        if let Some(Running { record, .. }) = ended.filter(|task| task.record.is_future) {
            // If that poll was the last one, its thread ends the future next, and removes the record.
            let record = TaskRecord { since: Instant::now(), ..record };
            state.pending.insert(self.number, record);
        }
    }
}
