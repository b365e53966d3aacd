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
use crate::runtime::attach::{Attach, Submission};
use crate::runtime::context::worker_index;
use crate::sync::{Condvar, Mutex};
use crate::task::attachment::Enter;

/// How a pool tracks its tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    pub(crate) watch: Option<Watch>,
}

/// When the watcher reports.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) after: Duration,
    pub(crate) hook: Arc<dyn Fn(&Report) + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("after", &self.after).finish_non_exhaustive()
    }
}

/// See the [module's documentation](self).
pub(crate) struct Tracker {
    pub(crate) watch: Option<Watch>,
    pub(super) state: Mutex<TrackerState>,
    /// Notified for the watcher: there is a first task to watch, or the pool is over.
    pub(super) changed: Condvar,
}

type TaskNumber = u64;

#[derive(Default)]
pub(super) struct TrackerState {
    next: TaskNumber,
    queued: BTreeMap<TaskNumber, Record>,
    running: BTreeMap<TaskNumber, Running>,
    pending: BTreeMap<TaskNumber, Record>,
    /// When a task was started last, or the first of the queued ones was submitted.
    last_start: Option<Instant>,
    /// Whether the watcher has reported that no task has been started since.
    has_reported_queue: bool,
    pub(super) watcher: Watcher,
}

/// The state of the thread that watches for stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watcher {
    /// Not started, or refused by the system.
    #[default]
    Absent,
    /// It sleeps until there are tasks.
    Asleep,
    Awake,
}

#[derive(Clone, Copy)]
struct Record {
    location: &'static Location<'static>,
    is_future: bool,
    since: Instant,
}

struct Running {
    record: Record,
    worker: Option<usize>,
    thread: ThreadId,
    name: Option<String>,
    is_blocked: bool,
    /// Whether the watcher has reported it.
    is_reported: bool,
}

thread_local! {
    /// The tracked tasks on the thread's stack, the outermost first.
    static ON_STACK: RefCell<Vec<(usize, TaskNumber)>> = const { RefCell::new(Vec::new()) };
}

impl Tracker {
    pub(crate) fn new(tracking: Tracking) -> Self {
        Tracker {
            watch: tracking.watch,
            state: Mutex::new(TrackerState::default()),
            changed: Condvar::new(),
        }
    }

    /// Sets whether the calling thread's innermost task is in a blocking region.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        let innermost = ON_STACK.try_with(|tasks| tasks.borrow().last().copied()).ok().flatten();
        let Some((_, number)) = innermost.filter(|(tracker, _)| *tracker == self.address()) else {
            return;
        };
        if let Some(running) = self.state.lock().running.get_mut(&number) {
            running.is_blocked = is_blocked;
        }
    }

    /// Wakes the watcher: the pool may be over.
    pub(super) fn recheck(&self) {
        // Race 42: the watcher checks and waits under the lock.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    fn remove(&self, number: TaskNumber) {
        let mut state = self.state.lock();
        let _ = (state.queued.remove(&number), state.pending.remove(&number));
    }
}

impl TrackerState {
    /// Whether there is a task that may stall.
    pub(super) fn is_busy(&self) -> bool {
        !self.queued.is_empty() || !self.running.is_empty()
    }

    /// Whether a task has run for `after`, or tasks are queued and none was started for `after`, and that was not reported
    /// yet. Marks it as reported.
    pub(super) fn take_stall(&mut self, now: Instant, after: Duration) -> bool {
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
        let info = |record: &Record, state| TaskInfo {
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
        let Submission { shared, line: location, is_future } = submission;
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        if state.queued.is_empty() {
            (state.last_start, state.has_reported_queue) = (Some(now), false);
        }
        state.queued.insert(number, Record { location, is_future, since: now });
        if self.watch.is_some() {
            self.wake_watcher(shared, state);
        }
        Some(Box::new(Tracked { tracker: Arc::clone(self), number, is_future }))
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
        let record =
            state.queued.remove(&self.number).or_else(|| state.pending.remove(&self.number));
        // None if the future has ended: then its record is gone.
        let Some(record) = record else { return Box::new(()) };
        (state.last_start, state.has_reported_queue) = (Some(now), false);
        let running = Running {
            record: Record { since: now, ..record },
            worker: worker_index(),
            thread: current.id(),
            name: current.name().map(str::to_owned),
            is_blocked: false,
            is_reported: false,
        };
        state.running.insert(self.number, running);
        drop(state);
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
                // Removed in a moment if this poll was the last one.
                let record = Record { since: Instant::now(), ..record };
                state.pending.insert(self.number, record);
            }
        }
    }
}
