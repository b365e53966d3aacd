//! The tasks of a scope or a group that have not been started.
//!
//! Two parties start them: workers, which take *entries* from the pool's queue, and the thread that waits for the scope or
//! the group, which takes the tasks themselves. So the tasks lie here, and the queue holds an entry for each of them.
//! All entries are alike: a worker that takes one starts the oldest task. The thread that waits starts the newest, or the one
//! whose handle it waits for. That leaves an entry without a task, which the worker that takes it skips.
//!
//! Who starts a task is decided under one lock. There are never fewer entries than tasks: a task comes first, then its
//! entry.
//!
//! An entry is what counts as in flight, and takes room in a bounded queue: until it is taken, whether or not a task is
//! left for it. A thread that runs a task without its entry has one in flight of its own meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

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
    /// Those that are older than the newest, the oldest in front.
    older: VecDeque<Unrun>,
    /// A scope often has one task only, which needs no memory of its own then.
    newest: Option<Unrun>,
    next_id: TaskId,
    /// How many entries have not been taken.
    entries: usize,
}

/// Tells the tasks of one scope or group apart: later ones have larger numbers.
pub(crate) type TaskId = u64;

struct Unrun {
    id: TaskId,
    /// Whether a handle tells of its end.
    has_handle: bool,
    job: Job,
}

/// The scope or group, as it hears of its tasks.
pub(crate) trait Owner: Send + Sync + 'static {
    /// A task has been run, and its closure is gone.
    fn ended(&self, outcome: Outcome) -> Outcome;

    /// A task has been dropped without having been run.
    fn dropped(&self, has_handle: bool);
}

/// A task that is about to be run, or dropped.
#[must_use]
pub(crate) struct Taken<'a, T: Owner> {
    task: Unrun,
    owner: &'a T,
}

impl State {
    fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }
}

impl<T: Owner> Taken<'_, T> {
    pub(crate) fn run(self) -> Outcome {
        self.owner.ended(self.task.job.run())
    }

    fn abandon(self) {
        self.task.job.abandon();
        self.owner.dropped(self.task.has_handle);
    }
}

impl<T: Owner> Unstarted<T> {
    pub(crate) fn new(owner: T) -> Arc<Self> {
        let state = State { older: VecDeque::new(), newest: None, next_id: 0, entries: 0 };
        Arc::new(Unstarted { state: Mutex::new(state), owner })
    }

    pub(crate) fn owner(&self) -> &T {
        &self.owner
    }

    /// Adds a task. The caller puts the entry that is returned into the queue.
    pub(crate) fn add(self: &Arc<Self>, job: Job, has_handle: bool) -> (Job, TaskId) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.entries += 1;
        if let Some(older) = state.newest.replace(Unrun { id, has_handle, job }) {
            state.older.push_back(older);
        }
        drop(state);
        (Job::task(Arc::clone(self) as Arc<dyn Run>), id)
    }

    /// Takes the newest task, without its entry, unless `begin` returns `false`.
    pub(crate) fn claim_newest(&self, begin: impl FnOnce() -> bool) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        // Under the lock: until its entry has been here the task is in flight, and its group not quiet.
        if state.len() == 0 || !begin() {
            return None;
        }
        let task = state.newest.take().or_else(|| state.older.pop_back())?;
        Some(self.taken(task))
    }

    /// Takes the task with this number, without its entry. `None` if it has been started.
    pub(crate) fn claim(&self, id: TaskId) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        let newest = state.newest.take_if(|task| task.id == id);
        let task = newest.or_else(|| {
            let place = state.older.binary_search_by_key(&id, |task| task.id).ok()?;
            state.older.remove(place)
        })?;
        Some(self.taken(task))
    }

    /// An entry has been taken: returns the oldest task, if there is one left.
    fn take_oldest(&self) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        state.entries -= 1;
        let task = state.older.pop_front().or_else(|| state.newest.take())?;
        Some(self.taken(task))
    }

    /// As [`take_oldest`](Self::take_oldest), and drops the task.
    fn drop_oldest(&self) -> Outcome {
        match self.take_oldest() {
            Some(task) => {
                task.abandon();
                Outcome::Cancelled
            }
            None => Outcome::Skipped,
        }
    }

    fn taken(&self, task: Unrun) -> Taken<'_, T> {
        Taken { task, owner: &self.owner }
    }
}

/// An entry.
impl<T: Owner> Run for Unstarted<T> {
    fn run(self: Arc<Self>) -> Outcome {
        self.take_oldest().map_or(Outcome::Skipped, Taken::run)
    }

    fn run_away(self: Arc<Self>) -> Outcome {
        self.run()
    }

    fn abandon(self: Arc<Self>) {
        self.drop_oldest();
    }

    /// Its tasks are awaited by those who know which one they wait for.
    fn run_awaited(self: Arc<Self>, _begin: &mut dyn FnMut()) -> Option<Outcome> {
        None
    }

    fn skip(&self) -> bool {
        let mut state = self.state.lock();
        let is_stale = state.entries > state.len();
        state.entries -= usize::from(is_stale);
        is_stale
    }

    /// The scope or the group waits for the task: it is not given away, but dropped by the job that is returned.
    fn withdraw(self: Arc<Self>, _is_new: bool) -> Result<Job, Job> {
        Err(Job::Closure(Closure::new(move || self.drop_oldest())))
    }
}

/// Entries have no handles.
impl<T: Owner> Cancel for Unstarted<T> {
    fn cancel(self: Arc<Self>) {}
}

/// For groups, whose tasks tell their group themselves.
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

    /// Which number was written, if something was run.
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
            let job = Job::closure(move || written.store(number, Ordering::Relaxed));
            let (entry, id) = unstarted.add(job, false);
            entries.push(entry);
            ids.push(id);
        }
        assert!(!entries[0].skip(), "there is a task for each entry");
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
