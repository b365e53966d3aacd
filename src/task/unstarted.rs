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
//! Tasks that the scope's own thread runs are not counted, since it waits only after them. After the last of these it needs
//! no lock to see that nothing has changed since.
//!
//! Lists are used again, by the next scope of their thread, and so are the entries that a scope's thread has taken back: most
//! scopes then allocate nothing, and their entries change no reference count.
//!
//! A task of a group may also be claimed through its handle. It then stays in the list, and is skipped there like a stale
//! entry.
//!
//! An entry is in flight, and holds a permit of a bounded queue, until it is taken, whether or not a task is left for
//! it. A thread that runs a claimed task holds one more in flight meanwhile.
//!
//! Entries beyond the number of tasks are *surplus*. A thread outside the pool takes none back from the injector, so beside
//! busy workers its scopes would leave ever more of them. Therefore its next scope uses a list with surplus entries again, and a
//! new task relies on one of these and gets none of its own.

use std::collections::VecDeque;
use std::mem;
use std::num::NonZero;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::sync::{Counter, Mutex, MutexGuard};
use crate::task::job::{Action, Begin, Job, Moment, Outcome, Run, Withdrawal};
use crate::task::promise::{Cancel, SlotLine};

/// A list with more changes than this is not used again: it holds memory for as many tasks.
pub(crate) const KEPT_TASKS: usize = 64;

/// See the [module's documentation](self).
pub(crate) struct Unstarted<T> {
    state: Mutex<State<T>>,
    /// Counts what changes under the lock, without the claims. Written under it.
    changes: Counter,
    /// The number of entries in the queue, less that of the tasks in the list. Written under the lock.
    surplus: Counter,
}

struct State<T> {
    /// All tasks but the newest, the oldest in front.
    older: VecDeque<StoredTask>,
    /// The newest task. A scope often has only one, which then needs no allocation.
    newest: Option<StoredTask>,
    next_id: TaskId,
    /// How many surplus entries are hollow: their tasks' cancellers have ended what they counted for.
    hollow: usize,
    /// Entries of a scope that were taken back. The next tasks use them again.
    spare: Vec<Job>,
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
    /// How many handles report how the task ends, one at most. Not a flag: the bytes of padding beside it would be copied by
    /// moves that overlap, and the CPU waits when it reads them.
    handles: usize,
    job: Job,
}

/// What a scope or group learns about the ends of its tasks. Called under the lock, so none of these may run user code.
pub(crate) trait Owner: Default + Send + 'static {
    /// Whether it learns anything.
    const IS_TOLD: bool;

    /// Whether it has learned what its scope has to tell at the end.
    fn has_learned(&self) -> bool;

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
    /// The caller runs this task. If it is the last one, comes with an argument of
    /// [`is_unchanged_since`](Unstarted::is_unchanged_since).
    Task(Taken<'a, T>, Entry, Option<usize>),
    /// There is none, and none runs on another thread than the scope's: what the scope has learned.
    Ended(T),
    /// There is none, or `begin` returned `false`.
    Nothing,
}

impl<T: Owner> Claim<'_, T> {
    /// Returns what the scope has learned, if all its tasks have ended.
    pub(crate) fn ended(self) -> Option<T> {
        if let Claim::Ended(owner) = self { Some(owner) } else { None }
    }
}

/// Removes an entry for which the argument returns `true` from the queue, if it is easy to find. Called under the lock.
pub(crate) trait TakeBack: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job> {}

impl<F: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job>> TakeBack for F {}

impl<T> State<T> {
    fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }

    fn remove(&mut self, id: TaskId) -> Option<StoredTask> {
        let newest = self.newest.take_if(|task| task.id == id);
        newest.or_else(|| {
            let index = self.older.binary_search_by_key(&id, |task| task.id).ok()?;
            self.older.remove(index)
        })
    }

    /// Tasks that are left here or run on other threads than the scope's.
    fn unfinished(&self) -> usize {
        self.len() + self.running
    }
}

impl<T: Owner> Taken<'_, T> {
    pub(crate) fn run(self) -> Outcome {
        let StoredTask { handles, job, .. } = self.task;
        let outcome = job.run();
        // The scope's own thread learns of the other ends by itself.
        let is_of_interest = matches!(outcome, Outcome::Panicked(_) | Outcome::Expired);
        if !T::IS_TOLD || !(self.is_counted || is_of_interest) {
            return outcome;
        }
        self.list.end_one(self.is_counted, |owner| match outcome {
            Outcome::Expired => {
                owner.dropped(handles > 0);
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
            self.list.end_one(self.is_counted, |owner| owner.dropped(self.task.handles > 0));
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
            hollow: 0,
            spare: Vec::new(),
            running: 0,
            waiter: None,
            owner: T::default(),
        };
        Arc::new(Unstarted {
            state: Mutex::new(state),
            changes: Counter::default(),
            surplus: Counter::default(),
        })
    }

    /// Whether the list of a scope that has ended is as good as new. `false` if an entry is left, or if it may hold much memory.
    /// If `true`, begins to count changes anew.
    #[must_use]
    pub(crate) fn renew(&self) -> bool {
        // Without the lock: the number only sinks now. The thread that has taken the last entry may not have left its section
        // yet, but it has no further one.
        if self.has_surplus() {
            return false;
        }
        self.changes.replace_alone(0) <= KEPT_TASKS
    }

    /// Frees most of the memory of a list whose scope has ended, but which has surplus entries.
    pub(crate) fn shrink(&self) {
        let mut state = self.state.lock();
        state.older.shrink_to(KEPT_TASKS);
        // Not the last references to the list: the caller has one.
        state.spare.truncate(KEPT_TASKS);
        state.spare.shrink_to(KEPT_TASKS);
    }

    /// Whether there are surplus entries. May be outdated.
    #[inline]
    pub(crate) fn has_surplus(&self) -> bool {
        self.surplus.get() > 0
    }

    /// Counts one surplus entry less, if there is one that is not hollow: it was removed from the queue, or a task without an entry of its own relies
    /// on it.
    #[must_use]
    pub(crate) fn remove_surplus(&self) -> bool {
        let state = self.state.lock();
        let has_surplus = self.surplus.get() > state.hollow;
        if has_surplus {
            self.surplus.subtract_alone(1);
        }
        has_surplus
    }

    /// Drops the spare entries, each of which keeps this list.
    pub(crate) fn drop_spare(&self) {
        let spare = mem::take(&mut self.state.lock().spare);
        drop(spare);
    }

    /// Calls `f` with the owner, under the lock.
    pub(crate) fn with_owner<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock_to_change().owner)
    }

    fn lock_to_change(&self) -> MutexGuard<'_, State<T>> {
        let state = self.state.lock();
        // It stops at the maximum: a count that wrapped could come back to that of the last claim.
        if self.changes.get() < usize::MAX {
            self.changes.add_alone(1);
        }
        state
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
        let mut state = self.lock_to_change();
        let result = tell(&mut state.owner);
        state.running -= usize::from(is_counted);
        let waiter = if state.unfinished() == 0 { state.waiter.take() } else { None };
        drop(state);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        result
    }

    /// Adds a task. Returns its entry, which the caller pushes to the queue, unless the task relies on a
    /// [surplus entry](Self::remove_surplus).
    pub(crate) fn add(self: &Arc<Self>, job: Job, has_handle: bool) -> (Job, TaskId) {
        let mut state = self.lock_to_change();
        let id = state.next_id;
        state.next_id = id.checked_add(1).expect("no scope has 2^64 tasks");
        let spare = state.spare.pop();
        if let Some(older) =
            state.newest.replace(StoredTask { id, handles: has_handle.into(), job })
        {
            state.older.push_back(older);
        }
        drop(state);
        (spare.unwrap_or_else(|| Job::task(Arc::clone(self) as Arc<dyn Run>)), id)
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
                let is_last = T::IS_TOLD && state.unfinished() == 0 && !state.owner.has_learned();
                let changes = Some(self.changes.get());
                let last = changes.filter(|changes| is_last && *changes < usize::MAX);
                Claim::Task(Taken { task, list: self, is_counted: false }, entry, last)
            }
            None => Claim::Nothing,
        }
    }

    /// Whether the scope has ended and learned nothing, if it was so but for a claimed task when there were `last` changes.
    ///
    /// Called by the scope's own thread after the end of that task, without the lock. Only that task could change anything
    /// since, or threads whose end it has awaited. So if there was no further change, this thread would see it.
    pub(crate) fn is_unchanged_since(&self, last: Option<usize>) -> bool {
        last == Some(self.changes.get())
    }

    /// Claims the task `id`. Returns `None` if it was started before.
    pub(crate) fn claim(
        &self,
        id: TaskId,
        take_back: impl TakeBack,
    ) -> Option<(Taken<'_, T>, Entry)> {
        let mut state = self.state.lock();
        let task = state.remove(id)?;
        let entry = self.take_entry_back(&mut state, take_back);
        Some((self.taken(&mut state, task), entry))
    }

    /// Removes an entry from the queue for a claimed task, if `take_back` finds one.
    fn take_entry_back(&self, state: &mut State<T>, take_back: impl TakeBack) -> Entry {
        match take_back(&|job| job.is_entry_of(self)) {
            Some(entry) => {
                if T::IS_TOLD {
                    state.spare.push(entry);
                }
                // If it is dropped, then not as the last reference: the caller has one. So no destructor runs under the lock.
                Entry::TakenBack
            }
            None => {
                self.surplus.add_alone(1);
                Entry::Stale
            }
        }
    }

    /// Takes the oldest task for an entry that was taken from the queue. If no task is left, returns what becomes of the entry.
    fn take_oldest(&self) -> Result<Taken<'_, T>, Outcome> {
        let mut state = self.state.lock();
        if let Some(task) = state.older.pop_front().or_else(|| state.newest.take()) {
            return Ok(self.taken(&mut state, task));
        }
        self.surplus.subtract_alone(1);
        // Entries are alike: which of the surplus ones are hollow does not matter.
        let is_hollow = state.hollow > 0;
        state.hollow -= usize::from(is_hollow);
        Err(if is_hollow { Outcome::Hollow } else { Outcome::Skipped })
    }

    /// Takes all tasks for a canceller, which ends them with what their entries count for.
    pub(crate) fn take_all(&self) -> impl Iterator<Item = Job> + use<T> {
        let mut state = self.state.lock();
        let tasks = (mem::take(&mut state.older), state.newest.take());
        let count = tasks.0.len() + usize::from(tasks.1.is_some());
        self.leave_hollow(&mut state, count);
        tasks.0.into_iter().chain(tasks.1).map(|task| task.job)
    }

    /// As [`take_all`](Self::take_all), for one task. `None` if it was started before.
    pub(crate) fn take_one(&self, id: TaskId) -> Option<Job> {
        let mut state = self.state.lock();
        let task = state.remove(id)?;
        self.leave_hollow(&mut state, 1);
        Some(task.job)
    }

    /// As [`take_one`](Self::take_one), for a task that was cancelled through its handle.
    pub(crate) fn take_cancelled(&self, is_wanted: impl Fn(&Job) -> bool) -> Option<Job> {
        let mut state = self.state.lock();
        let mut tasks = state.older.iter().chain(&state.newest);
        let id = tasks.find(|task| is_wanted(&task.job))?.id;
        let task = state.remove(id)?;
        self.leave_hollow(&mut state, 1);
        Some(task.job)
    }

    /// The entries of `count` tasks that were taken stay in the queue.
    fn leave_hollow(&self, state: &mut State<T>, count: usize) {
        self.surplus.add_alone(count);
        state.hollow += count;
    }

    /// Drops the oldest task for an entry that was taken from the queue.
    fn drop_oldest(&self) -> Outcome {
        self.take_oldest().map_or_else(|skipped| skipped, Taken::abandon)
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
            Action::RunAwaited | Action::Cancel => Outcome::Skipped,
            _ => match self.take_oldest() {
                Ok(task) => {
                    if let Some(begin) = begin {
                        begin(Moment::Taken);
                    }
                    task.run()
                }
                Err(skipped) => skipped,
            },
        }
    }

    fn poll_gone(&self, _waker: &Waker) -> Poll<()> {
        Poll::Ready(())
    }

    fn skip(&self) -> bool {
        // At whichever end of a queue this entry is: there are enough others for the tasks.
        self.remove_surplus()
    }

    /// Gives no task away: the scope or group waits for it.
    fn withdraw(&self, _is_new: bool) -> Withdrawal {
        Withdrawal::Abandon
    }
}

/// Entries have no handles.
impl<T: Owner> Cancel for Unstarted<T> {
    fn cancel(self: Arc<Self>) -> Option<Arc<dyn SlotLine>> {
        None
    }
}

/// For groups, whose tasks report to their group themselves.
impl Owner for () {
    const IS_TOLD: bool = false;

    fn has_learned(&self) -> bool {
        false
    }

    fn ended(&mut self, outcome: Outcome) -> Outcome {
        outcome
    }

    fn dropped(&mut self, _: bool) {}
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Claim, Entry, KEPT_TASKS, Owner, Taken, Unstarted};
    use crate::task::job::{Job, Outcome};

    /// Learns nothing, but is told.
    #[derive(Default)]
    struct Told;

    impl Owner for Told {
        const IS_TOLD: bool = true;

        fn has_learned(&self) -> bool {
            false
        }

        fn ended(&mut self, outcome: Outcome) -> Outcome {
            outcome
        }

        fn dropped(&mut self, _: bool) {}
    }

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
            Claim::Task(task, entry, _) => Some(run((task, entry))),
            Claim::Ended(()) | Claim::Nothing => None,
        }
    }

    /// Returns the number that the task wrote, if one was run.
    fn number(run: Option<Outcome>, written: &AtomicUsize) -> Option<usize> {
        let outcome = run?;
        (!matches!(outcome, Outcome::Skipped)).then(|| written.load(Ordering::Relaxed))
    }

    /// With 32 bits the count of changes can reach its maximum.
    #[test]
    fn a_full_count_of_changes_says_nothing_of_the_end() {
        let unstarted = Unstarted::<Told>::new();
        unstarted.changes.replace_alone(usize::MAX - 1);
        let mut entries = vec![unstarted.add(Job::closure(|| ()), false).0];
        let claim = unstarted.claim_newest(|| true, |_| entries.pop());
        let Claim::Task(task, _, last) = claim else { unreachable!("a task was added") };
        assert_eq!(last, None, "the end is decided under the lock");
        drop(task.run());
        entries.push(unstarted.add(Job::closure(|| ()), false).0);
        assert_eq!(unstarted.changes.get(), usize::MAX);
        assert!(!unstarted.is_unchanged_since(last));
        assert!(matches!(unstarted.claim_newest(|| true, |_| entries.pop()), Claim::Task(..)));
        unstarted.drop_spare();
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
    fn as_many_entries_are_hollow_as_tasks_were_cancelled() {
        let list = Unstarted::<()>::new();
        let mut queue = Vec::new();
        let mut add = || {
            let (entry, id) = list.add(Job::closure(|| ()), false);
            queue.push(entry);
            id
        };
        let ids = [add(), add()];
        assert_eq!(list.take_all().map(Job::abandon).count(), 2);
        assert!(list.take_one(ids[0]).is_none() && list.claim(ids[1], stale).is_none());
        let ids = [add(), add(), add()];
        assert!(list.take_one(ids[1]).is_some());
        assert!(matches!(run_newest(&list), Some(Outcome::Completed)));
        // Five entries for one task: three are hollow, one is stale.
        assert!(queue[0].skip() && !queue[0].skip(), "a hollow entry counts for nothing");
        queue.remove(0);
        let outcomes: Vec<_> = queue.into_iter().map(Job::run).collect();
        assert!(matches!(outcomes[0], Outcome::Completed));
        assert!(outcomes[1..].iter().all(|outcome| matches!(outcome, Outcome::Hollow)));
        assert_eq!(outcomes.len(), 4);
    }

    #[test]
    fn an_entry_that_was_taken_back_is_used_again_or_dropped() {
        let list = Unstarted::<Told>::new();
        let add = |list: &Arc<Unstarted<Told>>| list.add(Job::closure(|| ()), false).0;
        for _ in 0..2 {
            let mut queue = vec![add(&list), add(&list)];
            while let Claim::Task(task, entry, _) = list.claim_newest(|| true, |_| queue.pop()) {
                assert_eq!(entry, Entry::TakenBack);
                task.run();
            }
            assert_eq!(Arc::strong_count(&list), 3);
        }
        list.drop_spare();
        assert_eq!(Arc::strong_count(&list), 1);
    }

    #[test]
    fn a_large_list_is_not_used_again() {
        let list = Unstarted::<Told>::new();
        // Each task is added, and ends.
        let most = KEPT_TASKS / 2;
        for count in [most, 1, most + 1] {
            for _ in 0..count {
                list.add(Job::closure(|| ()), false).0.run();
            }
            assert_eq!(list.renew(), count <= most);
        }
    }

    #[test]
    fn a_task_relies_on_an_entry_of_an_earlier_scope() {
        let list = Unstarted::<Told>::new();
        let add = || list.add(Job::closure(|| ()), false).0;
        let [first, second] = [(); 2].map(|()| {
            let entry = add();
            let Claim::Task(task, Entry::Stale, _) = list.claim_newest(|| true, stale) else {
                panic!("there is a task");
            };
            task.run();
            entry
        });
        assert!(!list.renew(), "two entries are left");
        list.shrink();
        // Two more tasks, and one entry.
        let third = add();
        drop(add());
        assert!(list.remove_surplus());
        assert!(list.has_surplus(), "three entries, two tasks");
        assert!(matches!(first.run(), Outcome::Completed));
        assert!(matches!(second.run(), Outcome::Completed));
        assert!(matches!(third.run(), Outcome::Skipped));
        assert!(!list.remove_surplus(), "no entry is left");
        assert!(list.renew());
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
                Claim::Task(_, entry, _) => Some(entry),
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
