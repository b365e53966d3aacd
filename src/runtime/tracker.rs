//! Which tasks a pool has, what each does and which line submitted it, for [`ThreadPool::report`](crate::ThreadPool::report).
//!
//! A tracked task has a record, which lies in one of three maps: of queued, running and pending tasks. Submitting a task,
//! entering it, leaving it and dropping it each move the record, under one lock. Numbers grow in the order of submission,
//! so the first queued record is the oldest.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::report::{Report, RunningThread, TaskInfo, TaskState};
use crate::runtime::identity::{PoolId, worker_index_of};
use crate::runtime::keeper::{Keeper, KeeperJob, PAUSE};
use crate::sync::unwind::discard;
use crate::sync::{Mutex, MutexGuard};
use crate::task::attachment::{Attach, Enter, Submission};

/// How a pool tracks its tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    pub(crate) watch: Option<Watch>,
}

/// When the keeper reports stalls.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) after: Duration,
    pub(crate) hook: Arc<StallHook>,
}

impl Watch {
    /// The time between two looks: a report comes at most a quarter of `after` late, or one of the keeper's pauses.
    fn pause(&self) -> Duration {
        (self.after / 4).max(PAUSE)
    }
}

/// The user's hook. Contains panics of its destructor.
pub(crate) struct StallHook(Option<BoxedHook>);

type BoxedHook = Box<dyn Fn(&Report) + Send + Sync>;

impl StallHook {
    pub(crate) fn new(hook: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        StallHook(Some(Box::new(hook)))
    }

    pub(super) fn call(&self, report: &Report) {
        if let Some(hook) = &self.0 {
            hook(report);
        }
    }
}

impl Drop for StallHook {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("after", &self.after).finish_non_exhaustive()
    }
}

/// See the [module's documentation](self).
pub(crate) struct Tracker {
    pool: PoolId,
    pub(crate) watch: Option<Watch>,
    pub(super) state: Mutex<TrackerState>,
    keeper: Arc<Keeper>,
}

type TaskNumber = u64;

#[derive(Default)]
pub(super) struct TrackerState {
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
    is_blocked: bool,
    /// Whether a stall of it was reported.
    is_reported: bool,
}

thread_local! {
    /// The tracked tasks on the thread's stack, the outermost first.
    static ON_STACK: RefCell<Vec<(usize, TaskNumber)>> = const { RefCell::new(Vec::new()) };
}

impl Tracker {
    pub(crate) fn new(tracking: Tracking, pool: PoolId, keeper: Arc<Keeper>) -> Self {
        Tracker { pool, watch: tracking.watch, state: Mutex::new(TrackerState::default()), keeper }
    }

    /// Sets whether the innermost task of this pool on the calling thread is in a blocking region.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        let is_own = |(tracker, _): &&(usize, TaskNumber)| *tracker == self.address();
        let innermost = ON_STACK.try_with(|tasks| tasks.borrow().iter().rfind(is_own).copied());
        let Some((_, number)) = innermost.ok().flatten() else { return };
        if let Some(running) = self.state.lock().running.get_mut(&number) {
            running.is_blocked = is_blocked;
        }
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// An immediate shutdown has emptied the queue.
    pub(crate) fn forget_queued(&self) {
        self.state.lock().queued.clear();
    }

    /// Lets the keeper look for stalls, if it does not. The caller has added a task.
    fn begin_watch(&self, mut state: MutexGuard<'_, TrackerState>) {
        let Some(watch) = self.watch.as_ref().filter(|_| !state.is_watched) else { return };
        state.is_watched = true;
        drop(state);
        self.keeper.ask(KeeperJob::Stalls, Instant::now() + watch.pause());
    }

    /// Whether there is a stall that was not reported yet. Marks it as reported.
    pub(super) fn take_stall(&self, watch: &Watch) -> bool {
        self.state.lock().take_stall(Instant::now(), watch.after)
    }

    /// Lets the keeper, which has just looked for stalls, do so again, unless there is no task.
    pub(super) fn watch_again(&self, watch: &Watch) {
        let mut state = self.state.lock();
        state.is_watched = state.is_busy();
        if state.is_watched {
            drop(state);
            self.keeper.ask(KeeperJob::Stalls, Instant::now() + watch.pause());
        }
    }

    fn remove(&self, number: TaskNumber) {
        let mut state = self.state.lock();
        let _ = (state.queued.remove(&number), state.pending.remove(&number));
    }
}

impl TrackerState {
    /// Whether there is a task that may stall.
    fn is_busy(&self) -> bool {
        !self.queued.is_empty() || !self.running.is_empty()
    }

    /// Whether a task has run for `after`, or tasks are queued and none was started for `after`, and that was not reported
    /// yet. Marks it as reported.
    fn take_stall(&mut self, now: Instant, after: Duration) -> bool {
        let is_due = |since: Instant| now.saturating_duration_since(since) >= after;
        let mut is_stalled = false;
        for running in self.running.values_mut().filter(|running| is_due(running.record.since)) {
            is_stalled |= !mem::replace(&mut running.is_reported, true);
        }
        if !self.queued.is_empty() && self.last_start.is_some_and(is_due) {
            is_stalled |= !mem::replace(&mut self.has_reported_queue, true);
        }
        is_stalled
    }

    /// The running threads, the oldest queued task and the oldest pending future.
    pub(super) fn describe(
        &self,
        now: Instant,
    ) -> (Vec<RunningThread>, Option<TaskInfo>, Option<TaskInfo>) {
        let info = |record: &TaskRecord, state| TaskInfo {
            location: record.location,
            is_future: record.is_future,
            state,
            since: now.saturating_duration_since(record.since),
        };
        // A task that runs on top of another one has begun after it.
        let mut tasks: Vec<&Running> = self.running.values().collect();
        tasks.sort_by_key(|running| running.record.since);
        let mut threads: Vec<(ThreadId, RunningThread)> = Vec::new();
        for task in tasks {
            let state = if task.is_blocked { TaskState::Blocked } else { TaskState::Running };
            let info = info(&task.record, state);
            match threads.iter_mut().find(|(thread, _)| *thread == task.thread) {
                Some((_, thread)) => thread.tasks.push(info),
                None => {
                    let (worker, name) = (task.worker, task.name.clone());
                    threads.push((task.thread, RunningThread { worker, name, tasks: vec![info] }));
                }
            }
        }
        let queued = self.queued.values().next().map(|record| info(record, TaskState::Queued));
        let pending = self.pending.values().min_by_key(|record| record.since);
        let pending = pending.map(|record| info(record, TaskState::Pending));
        (threads.into_iter().map(|(_, thread)| thread).collect(), queued, pending)
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
        let tracked = Tracked { tracker: Arc::clone(self), number, is_future };
        Some(Box::new(tracked))
    }
}

/// The record of one task.
struct Tracked {
    tracker: Arc<Tracker>,
    number: TaskNumber,
    is_future: bool,
}

impl Enter for Tracked {
    fn enter(&self) -> Box<dyn Any> {
        let now = Instant::now();
        let current = thread::current();
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
            is_blocked: false,
            is_reported: false,
        };
        state.running.insert(self.number, running);
        self.tracker.begin_watch(state);
        let entry = (self.tracker.address(), self.number);
        let _ = ON_STACK.try_with(|tasks| tasks.borrow_mut().push(entry));
        let (tracker, number, is_future) = (Arc::clone(&self.tracker), self.number, self.is_future);
        Box::new(OnStack { tracker, number, is_future })
    }

    #[cfg(feature = "async")]
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
    is_future: bool,
}

impl Drop for OnStack {
    fn drop(&mut self) {
        let _ = ON_STACK.try_with(|tasks| tasks.borrow_mut().pop());
        let mut state = self.tracker.state.lock();
        if let Some(Running { record, .. }) = state.running.remove(&self.number) {
            if self.is_future {
                // If that poll was the last one, its thread ends the future next, and removes the record.
                let record = TaskRecord { since: Instant::now(), ..record };
                state.pending.insert(self.number, record);
            }
        }
    }
}
