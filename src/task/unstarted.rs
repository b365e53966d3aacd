//! The tasks of a scope or a group that have not been started.
//!
//! The tasks lie here, and the pool's queue holds an *entry* for each of them. All entries of a scope or group are
//! alike: a worker that takes one starts the oldest task. The thread that waits for the scope or group claims a task
//! without its entry: the newest, or the one whose handle it waits for. That leaves an entry too many. A worker takes one
//! back if it is the newest in its local queue. Otherwise the worker that finds no task for its entry skips it.
//!
//! One lock decides who starts a task. There are never fewer entries than tasks: each is added with its entry.
//!
//! A scope also learns under this lock when all its tasks have ended: none is left here, and none runs on another thread.
//! Tasks that the scope's own thread runs are not counted, since it waits only after them.
//!
//! A task of a group may also be claimed through its handle. It then stays in the list, and is skipped there like a stale
//! entry.
//!
//! An entry is in flight, and holds a permit of a bounded queue, until it is taken, whether or not a task is left for
//! it. A thread that runs a claimed task holds one more in flight meanwhile.

use std::collections::VecDeque;
use std::mem;
use std::num::NonZero;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::sync::Mutex;
use crate::task::job::{Action, Begin, Job, Moment, Outcome, Run, Withdrawal};
use crate::task::promise::Cancel;

/// See the [module's documentation](self).
pub(crate) struct Unstarted<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// All tasks but the newest, the oldest in front.
    older: VecDeque<StoredTask>,
    /// The newest task. A scope often has only one, which then needs no allocation.
    newest: Option<StoredTask>,
    next_id: TaskId,
    /// The number of entries that have not been taken.
    entries: usize,
    /// The number of tasks that other threads than the scope's have taken, and that have not ended.
    running: usize,
    /// Wakes the scope's thread, while it waits.
    waiter: Option<Waker>,
    owner: T,
}

/// Identifies a task within its scope or group. Later tasks have larger numbers.
pub(crate) type TaskId = NonZero<u64>;

struct StoredTask {
    id: TaskId,
    /// Whether a handle reports how the task ends.
    has_handle: bool,
    job: Job,
}

/// What a scope or group learns about the ends of its tasks. Called under the lock, so none of these may run user code.
pub(crate) trait Owner: Default + Send + 'static {
    /// Whether it learns anything.
    const IS_TOLD: bool;

    /// A task was run and its closure dropped.
    fn ended(&mut self, outcome: Outcome) -> Outcome;

    /// A task was dropped without being run.
    fn dropped(&mut self, has_handle: bool);
}

/// A task that the caller runs or drops.
#[must_use]
pub(crate) struct Taken<'a, T: Owner> {
    task: StoredTask,
    list: &'a Unstarted<T>,
    is_counted: bool,
}

/// Where the entry of a claimed task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Entry {
    /// The claimer has removed it from the queue.
    TakenBack,
    /// In the queue, without a task: the worker that takes it skips it.
    Stale,
}

/// The outcome of [`Unstarted::claim_newest`].
#[must_use]
pub(crate) enum Claim<'a, T: Owner> {
    /// The caller runs this task.
    Task(Taken<'a, T>, Entry),
    /// There is none, and none runs on another thread than the scope's: what the scope has learned.
    Ended(T),
    /// There is none, or `begin` returned `false`.
    Nothing,
}

/// Removes an entry for which the argument returns `true` from the queue, if it is easy to find. Called under the lock.
pub(crate) trait TakeBack: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job> {}

impl<F: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job>> TakeBack for F {}

impl<T> State<T> {
    fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }

    /// Tasks that are left here or run on other threads than the scope's.
    fn unfinished(&self) -> usize {
        self.len() + self.running
    }
}

impl<T: Owner> Taken<'_, T> {
    pub(crate) fn run(self) -> Outcome {
        let StoredTask { has_handle, job, .. } = self.task;
        let outcome = job.run();
        // The scope's own thread learns of the other ends by itself.
        let is_of_interest = matches!(outcome, Outcome::Panicked(_) | Outcome::Expired);
        if !T::IS_TOLD || !(self.is_counted || is_of_interest) {
            return outcome;
        }
        self.list.end_one(self.is_counted, |owner| match outcome {
            Outcome::Expired => {
                owner.dropped(has_handle);
                Outcome::Expired
            }
            outcome => owner.ended(outcome),
        })
    }

    /// Drops the task, unless it was started through its handle.
    fn abandon(self) -> Outcome {
        match self.task.job.withdraw() {
            Ok(job) => job.abandon(),
            // Claimed or cancelled through its handle. Only a group has such tasks, and they report to it themselves.
            Err(job) => return job.run(),
        }
        if T::IS_TOLD {
            self.list.end_one(self.is_counted, |owner| owner.dropped(self.task.has_handle));
        }
        Outcome::Cancelled
    }
}

impl<T: Owner> Unstarted<T> {
    pub(crate) fn new() -> Arc<Self> {
        let state = State {
            older: VecDeque::new(),
            newest: None,
            next_id: TaskId::MIN,
            entries: 0,
            running: 0,
            waiter: None,
            owner: T::default(),
        };
        Arc::new(Unstarted { state: Mutex::new(state) })
    }

    /// Calls `f` with the owner, under the lock.
    pub(crate) fn with_owner<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.state.lock().owner)
    }

    /// How many of a scope's tasks have not ended, without those that its own thread runs.
    pub(crate) fn unfinished(&self) -> usize {
        self.state.lock().unfinished()
    }

    /// Ready with what the scope has learned once all its tasks have ended. Until then registers `waker`, in place of an
    /// earlier one. For the scope's own thread, after the scope's body.
    pub(crate) fn poll_ended(&self, waker: &Waker) -> Poll<T> {
        let mut state = self.state.lock();
        if state.unfinished() == 0 {
            return Poll::Ready(mem::take(&mut state.owner));
        }
        state.waiter = Some(waker.clone());
        Poll::Pending
    }

    /// Ends a task: tells the owner, and wakes it after the last one. The task's borrows have ended.
    fn end_one<R>(&self, is_counted: bool, tell: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.state.lock();
        let result = tell(&mut state.owner);
        state.running -= usize::from(is_counted);
        let waiter = if state.unfinished() == 0 { state.waiter.take() } else { None };
        drop(state);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        result
    }

    /// Adds a task. Returns its entry, which the caller pushes to the queue.
    pub(crate) fn add(self: &Arc<Self>, job: Job, has_handle: bool) -> (Job, TaskId) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id = id.checked_add(1).expect("no scope has 2^64 tasks");
        state.entries += 1;
        if let Some(older) = state.newest.replace(StoredTask { id, has_handle, job }) {
            state.older.push_back(older);
        }
        drop(state);
        (Job::task(Arc::clone(self) as Arc<dyn Run>), id)
    }

    /// Claims the newest task, unless `begin` returns `false`. `begin` is called under the lock, if there is a task. A
    /// scope's tasks are claimed so only by the scope's own thread, after the scope's body.
    pub(crate) fn claim_newest(
        &self,
        begin: impl FnOnce() -> bool,
        take_back: impl TakeBack,
    ) -> Claim<'_, T> {
        let mut state = self.state.lock();
        if state.unfinished() == 0 {
            return Claim::Ended(mem::take(&mut state.owner));
        }
        // The lock keeps the entry from being taken: until then the task is in flight, and its group not quiet.
        if state.len() == 0 || !begin() {
            return Claim::Nothing;
        }
        match state.newest.take().or_else(|| state.older.pop_back()) {
            Some(task) => {
                let entry = self.take_entry_back(&mut state, take_back);
                Claim::Task(Taken { task, list: self, is_counted: false }, entry)
            }
            None => Claim::Nothing,
        }
    }

    /// Claims the task `id`. Returns `None` if it was started before.
    pub(crate) fn claim(
        &self,
        id: TaskId,
        take_back: impl TakeBack,
    ) -> Option<(Taken<'_, T>, Entry)> {
        let mut state = self.state.lock();
        let newest = state.newest.take_if(|task| task.id == id);
        let task = newest.or_else(|| {
            let index = state.older.binary_search_by_key(&id, |task| task.id).ok()?;
            state.older.remove(index)
        })?;
        let entry = self.take_entry_back(&mut state, take_back);
        Some((self.taken(&mut state, task), entry))
    }

    /// Removes an entry from the queue for a claimed task, if `take_back` finds one.
    fn take_entry_back(&self, state: &mut State<T>, take_back: impl TakeBack) -> Entry {
        match take_back(&|job| job.is_entry_of(self)) {
            // Not its last reference: the caller has one. So no destructor runs under the lock.
            Some(_entry) => {
                state.entries -= 1;
                Entry::TakenBack
            }
            None => Entry::Stale,
        }
    }

    /// Takes the oldest task for an entry that was taken from the queue. Returns `None` if no task is left.
    fn take_oldest(&self) -> Option<Taken<'_, T>> {
        let mut state = self.state.lock();
        state.entries -= 1;
        let task = state.older.pop_front().or_else(|| state.newest.take())?;
        Some(self.taken(&mut state, task))
    }

    /// Drops the oldest task for an entry that was taken from the queue.
    fn drop_oldest(&self) -> Outcome {
        match self.take_oldest() {
            Some(task) => task.abandon(),
            None => Outcome::Skipped,
        }
    }

    /// Counts a task that has left the list as running.
    fn taken(&self, state: &mut State<T>, task: StoredTask) -> Taken<'_, T> {
        state.running += usize::from(T::IS_TOLD);
        Taken { task, list: self, is_counted: T::IS_TOLD }
    }
}

/// As an entry in the queue.
impl<T: Owner> Run for Unstarted<T> {
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        match action {
            Action::Abandon => self.drop_oldest(),
            // A waiting thread uses `claim`: an entry belongs to no particular task.
            Action::RunAwaited | Action::DropAwaited => Outcome::Skipped,
            _ => {
                let Some(task) = self.take_oldest() else { return Outcome::Skipped };
                if let Some(begin) = begin {
                    begin(Moment::Taken);
                }
                task.run()
            }
        }
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

    /// Gives no task away: the scope or group waits for it.
    fn withdraw(&self, _is_new: bool) -> Withdrawal {
        Withdrawal::Abandon
    }
}

/// Entries have no handles.
impl<T: Owner> Cancel for Unstarted<T> {
    fn cancel(self: Arc<Self>) {}
}

/// For groups, whose tasks report to their group themselves.
impl Owner for () {
    const IS_TOLD: bool = false;

    fn ended(&mut self, outcome: Outcome) -> Outcome {
        outcome
    }

    fn dropped(&mut self, _: bool) {}
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Claim, Entry, Taken, Unstarted};
    use crate::task::job::{Job, Outcome};

    /// Takes no entry back.
    fn stale(_: &dyn Fn(&Job) -> bool) -> Option<Job> {
        None
    }

    fn run((task, entry): (Taken<'_, ()>, Entry)) -> Outcome {
        assert_eq!(entry, Entry::Stale);
        task.run()
    }

    fn run_newest(list: &Unstarted<()>) -> Option<Outcome> {
        match list.claim_newest(|| true, stale) {
            Claim::Task(task, entry) => Some(run((task, entry))),
            Claim::Ended(()) | Claim::Nothing => None,
        }
    }

    /// Returns the number that the task wrote, if one was run.
    fn number(run: Option<Outcome>, written: &AtomicUsize) -> Option<usize> {
        let outcome = run?;
        (!matches!(outcome, Outcome::Skipped)).then(|| written.load(Ordering::Relaxed))
    }

    #[test]
    fn each_task_is_started_once_from_either_end() {
        let unstarted = Unstarted::<()>::new();
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
        assert!(!entries[0].skip(), "each entry has a task");
        assert_eq!(number(run_newest(&unstarted), &written), Some(5));
        assert_eq!(number(unstarted.claim(ids[2], stale).map(run), &written), Some(3));
        assert!(unstarted.claim(ids[2], stale).is_none());
        assert!(entries[0].skip(), "two entries are left over");
        assert!(entries.pop().unwrap().skip());
        assert!(!entries[0].skip());
        let mut entries = entries.into_iter();
        assert_eq!(number(entries.next().map(Job::run), &written), Some(1));
        assert_eq!(number(run_newest(&unstarted), &written), Some(4));
        assert_eq!(number(entries.next().map(Job::run), &written), Some(2));
        assert_eq!(number(entries.next().map(Job::run), &written), None, "skipped");
        let claim = unstarted.claim_newest(|| unreachable!("there is no task"), stale);
        assert!(matches!(claim, Claim::Ended(())));
    }

    #[test]
    fn an_entry_that_was_taken_back_is_not_skipped() {
        let [one, other] = [(); 2].map(|()| Unstarted::<()>::new());
        let add = |list: &Arc<Unstarted<()>>| list.add(Job::closure(|| ()), false).0;
        let mut queue = vec![add(&one), add(&other), add(&one), add(&one)];
        // As a worker does with its local queue.
        let mut claim = |list: &Unstarted<()>| {
            let newest = |wanted: &dyn Fn(&Job) -> bool| {
                if wanted(queue.last()?) { queue.pop() } else { None }
            };
            match list.claim_newest(|| true, newest) {
                Claim::Task(_, entry) => Some(entry),
                Claim::Ended(()) | Claim::Nothing => None,
            }
        };
        assert_eq!(claim(&one), Some(Entry::TakenBack));
        assert_eq!(claim(&other), Some(Entry::Stale), "the newest entry is not of this list");
        assert_eq!(claim(&one), Some(Entry::TakenBack));
        assert!(!queue[0].skip(), "its task is left");
        assert!(queue[1].skip());
    }
}
