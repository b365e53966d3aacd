//! The tasks of a scope or a group that have not been started.
//!
//! The tasks lie here, and the pool's queue holds an *entry* for each of them. All entries of a scope or group are
//! alike: a worker that takes one starts the oldest task. The thread that waits for the scope or group claims a task
//! without its entry: the newest, or the one whose handle it waits for. That leaves an entry without a task, and the
//! worker that takes this entry skips it.
//!
//! One lock decides who starts a task. There are never fewer entries than tasks: each is added with its entry.
//!
//! A task of a group may also be claimed through its handle. It then stays in the list, and is skipped there like a stale
//! entry.
//!
//! An entry is in flight, and holds a permit of a bounded queue, until it is taken, whether or not a task is left for
//! it. A thread that runs a claimed task holds one more in flight meanwhile.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::sync::Mutex;
use crate::task::closure::Closure;
use crate::task::job::{Job, Outcome, Run};
use crate::task::promise::Cancel;

/// See the [module's documentation](self).
pub(crate) struct Unstarted<T> {
    state: Mutex<State>,
    owner: T,
}

struct State {
    /// All tasks but the newest, the oldest in front.
    older: VecDeque<StoredTask>,
    /// The newest task. A scope often has only one, which then needs no allocation.
    newest: Option<StoredTask>,
    next_id: TaskId,
    /// The number of entries that have not been taken.
    entries: usize,
}

/// Identifies a task within its scope or group. Later tasks have larger numbers.
pub(crate) type TaskId = NonZeroU64;

struct StoredTask {
    id: TaskId,
    /// Whether a handle reports how the task ends.
    has_handle: bool,
    job: Job,
}

/// The scope or group, which is called when its tasks end.
pub(crate) trait Owner: Send + Sync + 'static {
    /// Called after a task was run and its closure dropped.
    fn ended(&self, outcome: Outcome) -> Outcome;

    /// Called after a task was dropped without being run.
    fn dropped(&self, has_handle: bool);
}

/// A task that the caller runs or drops.
#[must_use]
pub(crate) struct Taken<'a, T: Owner> {
    task: StoredTask,
    owner: &'a T,
}

impl State {
    fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }
}

impl<T: Owner> Taken<'_, T> {
    pub(crate) fn run(self) -> Outcome {
        match self.task.job.run() {
            Outcome::Expired => {
                self.owner.dropped(self.task.has_handle);
                Outcome::Expired
            }
            outcome => self.owner.ended(outcome),
        }
    }

    /// Drops the task, unless it was started through its handle.
    fn abandon(self) -> Outcome {
        match self.task.job.withdraw() {
            Ok(job) => job.abandon(),
            // Claimed or cancelled through its handle. Only a group has such tasks, and they report to it themselves.
            Err(job) => return job.run(),
        }
        self.owner.dropped(self.task.has_handle);
        Outcome::Cancelled
    }
}

impl<T: Owner> Unstarted<T> {
    pub(crate) fn new(owner: T) -> Arc<Self> {
        let state =
            State { older: VecDeque::new(), newest: None, next_id: TaskId::MIN, entries: 0 };
        Arc::new(Unstarted { state: Mutex::new(state), owner })
    }

    pub(crate) fn owner(&self) -> &T {
        &self.owner
    }

    /// Adds a task. Returns its entry, which the caller pushes to the queue.
    pub(crate) fn add(self: &Arc<Self>, job: Job, has_handle: bool) -> (Job, TaskId) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id = id.saturating_add(1);
        state.entries += 1;
        if let Some(older) = state.newest.replace(StoredTask { id, has_handle, job }) {
            state.older.push_back(older);
        }
        drop(state);
        (Job::task(Arc::clone(self) as Arc<dyn Run>), id)
    }

    /// Claims the newest task, unless `begin` returns `false`. `begin` is called under the lock, if there is a task.
    pub(crate) fn claim_newest(&self, begin: impl FnOnce() -> bool) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        // The lock keeps the entry from being taken: until then the task is in flight, and its group not quiet.
        if state.len() == 0 || !begin() {
            return None;
        }
        let task = state.newest.take().or_else(|| state.older.pop_back())?;
        Some(self.taken(task))
    }

    /// Claims the task `id`. Returns `None` if it was started before.
    pub(crate) fn claim(&self, id: TaskId) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        let newest = state.newest.take_if(|task| task.id == id);
        let task = newest.or_else(|| {
            let index = state.older.binary_search_by_key(&id, |task| task.id).ok()?;
            state.older.remove(index)
        })?;
        Some(self.taken(task))
    }

    /// Takes the oldest task for an entry that was taken from the queue. Returns `None` if no task is left.
    fn take_oldest(&self) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        state.entries -= 1;
        let task = state.older.pop_front().or_else(|| state.newest.take())?;
        Some(self.taken(task))
    }

    /// Drops the oldest task for an entry that was taken from the queue.
    fn drop_oldest(&self) -> Outcome {
        match self.take_oldest() {
            Some(task) => task.abandon(),
            None => Outcome::Skipped,
        }
    }

    fn taken(&self, task: StoredTask) -> Taken<'_, T> {
        Taken { task, owner: &self.owner }
    }
}

/// As an entry in the queue.
impl<T: Owner> Run for Unstarted<T> {
    fn run(self: Arc<Self>) -> Outcome {
        self.take_oldest().map_or(Outcome::Skipped, Taken::run)
    }

    fn run_withdrawn(self: Arc<Self>) -> Outcome {
        self.run()
    }

    fn abandon(self: Arc<Self>) {
        self.drop_oldest();
    }

    /// A waiting thread uses [`claim`](Unstarted::claim): an entry belongs to no particular task.
    fn run_awaited(self: Arc<Self>, _begin: &mut dyn FnMut()) -> Option<Outcome> {
        None
    }

    fn drop_awaited(self: Arc<Self>, _begin: &mut dyn FnMut()) -> Option<Outcome> {
        None
    }

    fn poll_gone(&self, _waker: &Waker) -> Poll<()> {
        Poll::Ready(())
    }

    fn skip(&self) -> bool {
        let mut state = self.state.lock();
        let is_stale = state.entries > state.len();
        state.entries -= usize::from(is_stale);
        is_stale
    }

    /// Gives no task away: the scope or group waits for it. The returned job drops the task.
    fn withdraw(self: Arc<Self>, _is_new: bool) -> Result<Job, Job> {
        Err(Job::Closure(Closure::new(move || self.drop_oldest())))
    }
}

/// Entries have no handles.
impl<T: Owner> Cancel for Unstarted<T> {
    fn cancel(self: Arc<Self>) {}
}

/// For groups, whose tasks report to their group themselves.
impl Owner for () {
    fn ended(&self, outcome: Outcome) -> Outcome {
        outcome
    }

    fn dropped(&self, _: bool) {}
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Taken, Unstarted};
    use crate::task::job::{Job, Outcome};

    /// Returns the number that the task wrote, if one was run.
    fn number(run: Option<Outcome>, written: &AtomicUsize) -> Option<usize> {
        let outcome = run?;
        (!matches!(outcome, Outcome::Skipped)).then(|| written.load(Ordering::Relaxed))
    }

    #[test]
    fn each_task_is_started_once_from_either_end() {
        let unstarted = Unstarted::new(());
        let written = Arc::new(AtomicUsize::new(0));
        let mut entries = Vec::new();
        let mut ids = Vec::new();
        for number in 1..=5 {
            let written = Arc::clone(&written);
            let job = Job::closure(move || written.store(number, Ordering::Relaxed), None);
            let (entry, id) = unstarted.add(job, false);
            entries.push(entry);
            ids.push(id);
        }
        assert!(!entries[0].skip(), "each entry has a task");
        assert_eq!(number(unstarted.claim_newest(|| true).map(Taken::run), &written), Some(5));
        assert_eq!(number(unstarted.claim(ids[2]).map(Taken::run), &written), Some(3));
        assert!(unstarted.claim(ids[2]).is_none());
        assert!(entries[0].skip(), "two entries are left over");
        assert!(entries.pop().unwrap().skip());
        assert!(!entries[0].skip());
        let mut entries = entries.into_iter();
        assert_eq!(number(entries.next().map(Job::run), &written), Some(1));
        assert_eq!(number(unstarted.claim_newest(|| true).map(Taken::run), &written), Some(4));
        assert_eq!(number(entries.next().map(Job::run), &written), Some(2));
        assert_eq!(number(entries.next().map(Job::run), &written), None, "skipped");
        assert!(unstarted.claim_newest(|| unreachable!("there is no task")).is_none());
    }
}
