//! The tasks of a scope or a group that have not been started.
//!
//! The tasks lie here, and the pool's queue holds *entries* of them. All entries of a scope or
//! group are alike: a worker that takes one starts the oldest task. The thread that waits for the
//! scope or group claims a task without its entry: the newest, or the one whose handle it waits
//! for. A worker takes one entry back if that is the newest in its local queue. Otherwise one entry
//! more is left than there are tasks: a *surplus* one. The next task that is added relies on it and
//! gets none of its own, or the worker that finds no task for it drops it.
//!
//! One lock decides who starts a task, and whether a new one needs an entry. So there are never
//! fewer entries than tasks, whichever thread takes an entry meanwhile, and never more than tasks
//! were unstarted at a time: a thread outside the pool, which takes none back, does not fill the
//! queue beside busy workers.
//!
//! A scope also learns under this lock when all its tasks have ended: none is left here, and none
//! runs on another thread. Tasks that the scope's own thread runs are not counted, since it looks
//! again after each of them.
//!
//! Lists are used again, by the next scope of their thread: its tasks rely on the surplus entries
//! of the scopes before it, so a thread that opens scopes beside busy workers does not fill the
//! queue.
//!
//! A task of a group may also be cancelled through its handle. Then the canceller takes it off the
//! list too, unless an entry has come to it before, and is skipped.
//! Likewise the thread whose wait for a scoped handle has expired takes the late task, and drops
//! it.
//!
//! A future of a scope counts as running from its start to its end, also while it waits for a wake:
//! its receiver ([`ScopedFuture`]) ends it, whichever thread polls or drops it last. If the scope
//! is going to panic after its body, the pending ones are cancelled (race 24). Its own thread drops
//! them. It may run a task instead that waits for one of them: then the thread that has learned of
//! the panic marks them as cancelled, and a worker drops them.
#![cfg_attr(not(feature = "async"), allow(dead_code, reason = "only a future waits to be woken"))]

use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::{iter, mem, ptr};

use crate::sync::unwind::Payload;
use crate::sync::{Mutex, MutexGuard, thread_local};
use crate::task::job::{Action, Begin, Job, Outcome, Run, Sink, Withdrawal};
use crate::task::paged::Paged;

/// An empty list of tasks, or queue of a view, keeps memory for at most this many.
pub(crate) const KEPT_TASKS: usize = 64;

/// See the [module's documentation](self).
pub(crate) struct UnstartedList {
    state: Mutex<ListState>,
}

/// `repr(C)` for speed alone: the end of most tasks touches the first fields only.
#[repr(C)]
struct ListState {
    /// The oldest in front.
    tasks: VecDeque<StoredTask>,
    next_id: TaskId,
    /// The number of entries in the queue, less that of the tasks.
    surplus: usize,
    /// The number of tasks that other threads than the scope's have taken, and that have not ended;
    /// and of its futures that have been started, and have not ended.
    running: usize,
    /// Whether the scope's thread has looked for its tasks since its body.
    is_body_over: bool,
    /// Whether the record has a panic or a lost task: the scope is going to panic.
    has_failed: bool,
    /// Whether the futures that wait to be woken have been cancelled.
    is_cancelled: bool,
    /// Wakes the scope's thread, while it waits.
    waiter: Option<Waker>,
    record: ScopeRecord,
    /// A scope's futures that wait to be woken.
    pending: Paged<Weak<dyn Run>>,
    /// Those that another thread has marked as cancelled: the scope's thread drops them, unless a
    /// worker was faster.
    cancelled: Vec<Weak<dyn Run>>,
}

/// How a scope's tasks have ended. Holds no borrow. That of a group stays empty: its tasks report
/// to the group.
#[derive(Default)]
pub(crate) struct ScopeRecord {
    /// The first panic that reached no handle.
    pub(crate) panic: Option<Payload>,
    /// Tasks without a handle that were dropped instead of run.
    pub(crate) lost: usize,
}

/// Identifies a task within its scope or group. Later tasks have larger numbers.
pub(crate) type TaskId = NonZero<u64>;

struct StoredTask {
    id: TaskId,
    reporter: Reporter,
    job: Job,
}

/// What reports how a task ends. As large as a word: bytes of padding beside it would be copied by
/// moves that overlap, and the CPU waits when it reads them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Reporter {
    /// The scope: a panic, or that the task was dropped.
    Scope,
    /// The task's handle, or its group.
    Handle,
    /// The [`ScopedFuture`]. The task counts as running until that tells so, not until the thread
    /// that has taken it returns.
    Future,
}

/// The outcome of [`UnstartedList::poll_ended`].
pub(crate) enum ScopeWait {
    /// All tasks have ended: how.
    Ended(ScopeRecord),
    /// The scope is going to panic: the caller cancels these futures, and waits on.
    Cancel(Vec<Weak<dyn Run>>),
}

/// A task that the caller runs or drops.
#[must_use]
pub(crate) struct TakenTask<'a> {
    task: StoredTask,
    list: &'a UnstartedList,
    /// Whether it counts as running: the scope's own thread learns of the ends of its tasks by
    /// itself.
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

/// The outcome of [`UnstartedList::claim_newest`].
#[must_use]
pub(crate) enum Claim<'a> {
    /// The caller runs this task.
    Task(TakenTask<'a>, Entry),
    /// There is none, and none runs on another thread than the scope's: how the tasks have ended.
    Ended(ScopeRecord),
    /// The scope is going to panic: the caller cancels these futures, and looks again.
    Cancel(Vec<Weak<dyn Run>>),
    /// There is none, or `begin` returned `false`.
    Nothing,
}

/// Removes an entry for which the argument returns `true` from the queue, if it is easy to find.
/// Called under the lock.
pub(crate) trait TakeBack: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job> {}

impl<F: FnOnce(&dyn Fn(&Job) -> bool) -> Option<Job>> TakeBack for F {}

impl ScopeRecord {
    /// Keeps the payload if it is the first. Otherwise returns it.
    fn keep(&mut self, payload: Payload) -> Option<Payload> {
        if self.panic.is_some() {
            return Some(payload);
        }
        self.panic = Some(payload);
        None
    }
}

impl ListState {
    /// Tasks that are left here or run on other threads than the scope's.
    fn unfinished(&self) -> usize {
        self.tasks.len() + self.running
    }

    /// Whether the scope is going to panic, and has yet to cancel its futures.
    fn must_cancel(&self) -> bool {
        self.has_failed && self.is_body_over && !self.is_cancelled
    }

    /// Returns the futures that a thread must cancel.
    fn take_cancelled(&mut self) -> Vec<Weak<dyn Run>> {
        if self.must_cancel() {
            self.is_cancelled = true;
            self.cancelled = self.pending.drain();
        }
        mem::take(&mut self.cancelled)
    }

    /// All tasks of the scope have ended. Returns how, and frees most of the list's memory.
    #[inline]
    fn end(&mut self) -> ScopeRecord {
        self.is_body_over = false;
        if mem::take(&mut self.has_failed) {
            self.is_cancelled = false;
            self.cancelled = Vec::new();
        }
        if self.tasks.capacity() > KEPT_TASKS {
            self.tasks.shrink_to(KEPT_TASKS);
        }
        mem::take(&mut self.record)
    }
}

/// Wakes the scope's thread, if what it waits for has happened. If it does not wait but must cancel
/// futures, marks them for it: it may run a task that waits for one of them.
fn wake_waiter(mut state: MutexGuard<'_, ListState>) {
    let is_awaited = state.unfinished() == 0 || state.must_cancel();
    let waiter = if is_awaited { state.waiter.take() } else { None };
    if waiter.is_none() && state.must_cancel() {
        let futures = state.take_cancelled();
        state.cancelled.clone_from(&futures);
        drop(state);
        return mark_cancelled(&futures);
    }
    drop(state);
    if let Some(waiter) = waiter {
        waiter.wake();
    }
}

/// Marks futures as cancelled. Those that waited for a wake are queued, for a worker to drop them:
/// the caller may hold a lock that their destructors take.
pub(crate) fn mark_cancelled(futures: &[Weak<dyn Run>]) {
    futures.iter().filter_map(Weak::upgrade).for_each(Run::cancel);
}

thread_local! {
    /// The list and the number of the innermost task that the thread runs or drops.
    static OWN: Cell<Option<(usize, TaskId)>> = const { Cell::new(None) };
}

impl TakenTask<'_> {
    pub(crate) fn run(self) -> Outcome {
        self.end(Job::run)
    }

    /// Ends the task by `run`, which runs or drops it. A future may have ended long before, and its
    /// scope too.
    pub(crate) fn end(self, run: impl FnOnce(Job) -> Outcome) -> Outcome {
        let TakenTask { task: StoredTask { id, reporter, job }, list, is_counted } = self;
        let own = Some((ptr::from_ref(list).addr(), id));
        let below = OWN.try_with(|task| task.replace(own)).ok().flatten();
        let outcome = run(job);
        let _ = OWN.try_with(|task| task.set(below));
        if reporter == Reporter::Future {
            return outcome;
        }
        list.end_one(is_counted, reporter != Reporter::Scope, outcome)
    }
}

/// A group, whatever the type of its errors.
pub(crate) trait AnyGroup: Send + Sync {
    /// Cancels the group if its deadline has passed, unless its tasks have ended.
    fn expire(&self);

    /// Drops a cancelled task that waits for a slot, or for a worker after that. `task` is its
    /// address.
    fn leave(&self, task: *const ());

    /// Returns the list of its unstarted tasks.
    fn unstarted(&self) -> &UnstartedList;
}

impl UnstartedList {
    pub(crate) fn new() -> Arc<Self> {
        let state = ListState {
            tasks: VecDeque::new(),
            next_id: TaskId::MIN,
            surplus: 0,
            running: 0,
            is_body_over: false,
            has_failed: false,
            pending: Paged::default(),
            is_cancelled: false,
            cancelled: Vec::new(),
            waiter: None,
            record: ScopeRecord::default(),
        };
        Arc::new(UnstartedList { state: Mutex::new(state) })
    }

    /// Whether the queue has more entries than there are tasks.
    pub(crate) fn has_surplus(&self) -> bool {
        self.state.lock().surplus > 0
    }

    /// Whether the calling thread runs or drops this task, so that a wait for its end would never
    /// return. Not in a later poll of a future.
    pub(crate) fn is_own(&self, id: TaskId) -> bool {
        let own = Some((ptr::from_ref(self).addr(), id));
        OWN.try_with(|task| task.get() == own).unwrap_or(false)
    }

    /// Keeps a panic for the end of the scope. Returns it if there is an earlier one.
    pub(crate) fn keep_panic(&self, payload: Payload) -> Option<Payload> {
        let mut state = self.state.lock();
        let refused = state.record.keep(payload);
        state.has_failed = true;
        wake_waiter(state);
        refused
    }

    /// How many of a scope's tasks have not ended, without those that its own thread runs.
    pub(crate) fn unfinished(&self) -> usize {
        self.state.lock().unfinished()
    }

    /// Ready once all tasks of the scope have ended, or futures must be cancelled. Until then
    /// registers `waker`, in place of an earlier one. For the scope's own thread, after the scope's
    /// body.
    pub(crate) fn poll_ended(&self, waker: &Waker) -> Poll<ScopeWait> {
        let mut state = self.state.lock();
        if state.unfinished() == 0 {
            return Poll::Ready(ScopeWait::Ended(state.end()));
        }
        state.is_body_over = true;
        let cancelled = state.take_cancelled();
        if !cancelled.is_empty() {
            return Poll::Ready(ScopeWait::Cancel(cancelled));
        }
        state.waiter = Some(waker.clone());
        Poll::Pending
    }

    /// Records how a task has ended, and wakes the scope's thread after the last one. The task's
    /// borrows have ended.
    fn end_one(&self, is_counted: bool, has_handle: bool, outcome: Outcome) -> Outcome {
        if !is_counted && matches!(outcome, Outcome::Completed) {
            return outcome;
        }
        let mut state = self.state.lock();
        let outcome = match outcome {
            Outcome::Panicked(Some(payload)) => {
                state.has_failed = true;
                Outcome::Panicked(state.record.keep(payload))
            }
            outcome => outcome,
        };
        if !has_handle && matches!(outcome, Outcome::Cancelled | Outcome::Expired) {
            state.has_failed = true;
            state.record.lost += 1;
        }
        state.running -= usize::from(is_counted);
        if state.has_failed || state.unfinished() == 0 {
            wake_waiter(state);
        }
        outcome
    }

    /// Adds a task. Returns its entry, which the caller pushes to the queue. `None` if the task
    /// relies on a surplus entry: the queue has that, or a thread has taken it and will find the
    /// task.
    pub(crate) fn add(self: &Arc<Self>, job: Job, reporter: Reporter) -> (Option<Job>, TaskId) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id = id.checked_add(1).expect("no scope has 2^64 tasks");
        state.tasks.push_back(StoredTask { id, reporter, job });
        if let Some(rest) = state.surplus.checked_sub(1) {
            state.surplus = rest;
            return (None, id);
        }
        drop(state);
        (Some(self.new_entry()), id)
    }

    /// Returns one entry more than there are tasks, for a thread that runs one at once.
    pub(crate) fn surplus_entry(self: &Arc<Self>) -> Job {
        self.state.lock().surplus += 1;
        self.new_entry()
    }

    fn new_entry(self: &Arc<Self>) -> Job {
        Job::task(Arc::clone(self) as Arc<dyn Run>)
    }

    /// Claims the newest task, unless `begin` returns `false`. `begin` is called under the lock, if
    /// there is a task. A scope's tasks are claimed so only by the scope's own thread, after the
    /// scope's body.
    pub(crate) fn claim_newest(
        &self,
        begin: impl FnOnce() -> bool,
        take_back: impl TakeBack,
    ) -> Claim<'_> {
        let mut state = self.state.lock();
        if state.unfinished() == 0 {
            return Claim::Ended(state.end());
        }
        // Before a task is run that may wait for one of them.
        state.is_body_over = true;
        if state.has_failed {
            let cancelled = state.take_cancelled();
            if !cancelled.is_empty() {
                return Claim::Cancel(cancelled);
            }
        }
        // The lock keeps the task from being taken: until then its group is not quiet.
        let is_wanted = !state.tasks.is_empty() && begin();
        let newest = if is_wanted { state.tasks.pop_back() } else { None };
        let Some(task) = newest else { return Claim::Nothing };
        state.running += usize::from(task.reporter == Reporter::Future);
        let entry = self.take_entry_back(&mut state, take_back);
        Claim::Task(TakenTask { task, list: self, is_counted: false }, entry)
    }

    /// Claims the task `id`. Returns `None` if it was started before.
    pub(crate) fn claim(
        &self,
        id: TaskId,
        take_back: impl TakeBack,
    ) -> Option<(TakenTask<'_>, Entry)> {
        let mut state = self.state.lock();
        let index = state.tasks.binary_search_by_key(&id, |task| task.id).ok()?;
        let task = state.tasks.remove(index)?;
        let entry = self.take_entry_back(&mut state, take_back);
        Some((self.taken(&mut state, task), entry))
    }

    /// Removes an entry from the queue for a claimed task, if `take_back` finds one.
    fn take_entry_back(&self, state: &mut ListState, take_back: impl TakeBack) -> Entry {
        // It is dropped here, but not as the last reference: the caller has one. So no destructor
        // runs under the lock.
        if take_back(&|job| job.is_entry_of(self)).is_some() {
            return Entry::TakenBack;
        }
        state.surplus += 1;
        Entry::Stale
    }

    /// Takes the oldest task for an entry that was taken from the queue. If no task is left, the
    /// entry was a surplus one.
    fn take_oldest(&self) -> Option<TakenTask<'_>> {
        let mut state = self.state.lock();
        match state.tasks.pop_front() {
            Some(task) => Some(self.taken(&mut state, task)),
            None => {
                state.surplus -= 1;
                None
            }
        }
    }

    /// Takes all tasks for a canceller, one after the other: the destructor of one may wait for
    /// another, which a worker drops then. Their entries stay in the queue.
    pub(crate) fn take_all(&self) -> impl Iterator<Item = Job> {
        iter::from_fn(|| self.remove(|_| Some(0)))
    }

    /// Like [`take_all`](Self::take_all), for the task at an address. `None` if it was started
    /// before.
    pub(crate) fn take_at(&self, address: *const ()) -> Option<Job> {
        self.remove(|tasks| tasks.iter().position(|task| task.job.is_entry_of(address)))
    }

    /// Like [`take_at`](Self::take_at), for the task `id`.
    pub(crate) fn take(&self, id: TaskId) -> Option<Job> {
        self.remove(|tasks| tasks.binary_search_by_key(&id, |task| task.id).ok())
    }

    /// Removes the task with the index that `find` returns.
    fn remove(&self, find: impl FnOnce(&VecDeque<StoredTask>) -> Option<usize>) -> Option<Job> {
        let mut state = self.state.lock();
        let index = find(&state.tasks)?;
        let task = state.tasks.remove(index)?;
        state.surplus += 1;
        Some(task.job)
    }

    /// Counts a task that has left the list as running.
    fn taken(&self, state: &mut ListState, task: StoredTask) -> TakenTask<'_> {
        state.running += 1;
        TakenTask { task, list: self, is_counted: true }
    }
}

/// As an entry in the queue.
impl Run for UnstartedList {
    fn advance(self: Arc<Self>, action: Action, begin: Option<Begin<'_>>) -> Outcome {
        debug_assert!(matches!(action, Action::Run | Action::Abandon), "waiters use `claim`");
        let Some(task) = self.take_oldest() else { return Outcome::Skipped };
        match begin {
            Some(begin) => task.end(|job| job.advance(action, begin)),
            None => task.run(),
        }
    }

    /// At whichever end of a queue this entry is: there are enough others for the tasks.
    fn take_if_stale(&self) -> bool {
        let mut state = self.state.lock();
        let is_surplus = state.surplus > 0;
        state.surplus -= usize::from(is_surplus);
        is_surplus
    }

    /// Gives no task away: the scope or group waits for it.
    fn withdraw(&self, _is_new: bool) -> Withdrawal {
        Withdrawal::Abandon
    }

    /// Entries have no handles.
    fn cancel(self: Arc<Self>) {}
}

/// The receiver of the outcome of a scope's future, which counts as running from its start until
/// this is settled or dropped.
///
/// The future and its result are gone by then: the future is dropped before, and has delivered the
/// result to its handle, if there is one.
pub(crate) struct ScopedFuture {
    /// `None` once it has ended.
    list: Option<Arc<UnstartedList>>,
    has_handle: bool,
    /// The key among the pending futures, if it has been pending.
    key: Option<usize>,
}

impl ScopedFuture {
    /// The caller adds the future to the list, as reported by [`Reporter::Future`].
    pub(crate) fn new(list: &Arc<UnstartedList>, has_handle: bool) -> Self {
        ScopedFuture { list: Some(Arc::clone(list)), has_handle, key: None }
    }

    fn end(&mut self, outcome: Outcome) -> Outcome {
        let Some(list) = self.list.take() else { return outcome };
        if let Some(key) = self.key.take() {
            let mut state = list.state.lock();
            if !state.is_cancelled {
                drop(state.pending.remove(key));
            }
        }
        list.end_one(true, self.has_handle, outcome)
    }
}

impl Sink<Outcome> for ScopedFuture {
    fn settle(mut self, result: Result<Outcome, Payload>) -> Outcome {
        self.end(result.unwrap_or_else(|payload| Outcome::Panicked(Some(payload))))
    }

    fn register_pending(&mut self, future: impl FnOnce() -> Weak<dyn Run>) -> bool {
        let Some(list) = &self.list else { return false };
        let mut state = list.state.lock();
        // Race 24: either it finds the futures cancelled, or the canceller finds it.
        self.key = (!state.is_cancelled).then(|| state.pending.insert(future()));
        self.key.is_some()
    }
}

/// Dropped without a result: the future was cancelled, or has expired.
impl Drop for ScopedFuture {
    fn drop(&mut self) {
        drop(self.end(Outcome::Cancelled));
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Claim, Entry, KEPT_TASKS, Reporter, TakenTask, TaskId, UnstartedList};
    use crate::task::job::{Job, Outcome};

    /// Takes no entry back.
    fn stale(_: &dyn Fn(&Job) -> bool) -> Option<Job> {
        None
    }

    fn run((task, entry): (TakenTask<'_>, Entry)) -> Outcome {
        assert_eq!(entry, Entry::Stale);
        task.run()
    }

    fn run_newest(list: &UnstartedList) -> Option<Outcome> {
        match list.claim_newest(|| true, stale) {
            Claim::Task(task, entry) => Some(run((task, entry))),
            Claim::Ended(_) | Claim::Cancel(_) | Claim::Nothing => None,
        }
    }

    /// Adds a task that gets an entry of its own.
    fn add(list: &Arc<UnstartedList>) -> (Job, TaskId) {
        let (entry, id) = list.add(Job::closure(|| ()), Reporter::Scope);
        (entry.expect("none is left over"), id)
    }

    /// Returns the number that the task wrote, if one was run.
    fn number(run: Option<Outcome>, written: &AtomicUsize) -> Option<usize> {
        let outcome = run?;
        (!matches!(outcome, Outcome::Skipped)).then(|| written.load(Ordering::Relaxed))
    }

    #[test]
    fn each_task_is_started_once_from_either_end() {
        let unstarted = UnstartedList::new();
        let written = Arc::new(AtomicUsize::new(0));
        let mut entries = Vec::new();
        let mut ids = Vec::new();
        for number in 1..=5 {
            let written = Arc::clone(&written);
            let job = Job::closure(move || written.store(number, Ordering::Relaxed));
            let (entry, id) = unstarted.add(job, Reporter::Scope);
            entries.extend(entry);
            ids.push(id);
        }
        assert_eq!(entries.len(), 5);
        assert!(!entries[0].take_if_stale(), "each entry has a task");
        assert_eq!(number(run_newest(&unstarted), &written), Some(5));
        assert_eq!(number(unstarted.claim(ids[2], stale).map(run), &written), Some(3));
        assert!(unstarted.claim(ids[2], stale).is_none());
        assert!(entries[0].take_if_stale(), "two entries are left over");
        assert!(entries.pop().unwrap().take_if_stale());
        assert!(!entries[0].take_if_stale());
        let mut entries = entries.into_iter();
        assert_eq!(number(entries.next().map(Job::run), &written), Some(1));
        assert_eq!(number(run_newest(&unstarted), &written), Some(4));
        assert_eq!(number(entries.next().map(Job::run), &written), Some(2));
        assert_eq!(number(entries.next().map(Job::run), &written), None, "skipped");
        let claim = unstarted.claim_newest(|| unreachable!("there is no task"), stale);
        assert!(matches!(claim, Claim::Ended(_)));
    }

    #[test]
    fn the_entries_of_cancelled_tasks_are_left_over() {
        let list = UnstartedList::new();
        let (mut queue, ids): (Vec<_>, Vec<_>) = [add(&list), add(&list)].into_iter().unzip();
        assert_eq!(list.take_all().map(Job::abandon).count(), 2);
        assert!(list.take(ids[0]).is_none() && list.claim(ids[1], stale).is_none());
        let mut ids = Vec::new();
        for has_entry in [false, false, true] {
            let (entry, id) = list.add(Job::closure(|| ()), Reporter::Scope);
            assert_eq!(entry.is_some(), has_entry);
            queue.extend(entry);
            ids.push(id);
        }
        assert!(list.take(ids[1]).is_some());
        assert!(matches!(run_newest(&list), Some(Outcome::Completed)));
        // Three entries for one task.
        assert!(queue[0].take_if_stale());
        queue.remove(0);
        let outcomes: Vec<_> = queue.into_iter().map(Job::run).collect();
        assert!(matches!(outcomes[..], [Outcome::Completed, Outcome::Skipped]));
    }

    #[test]
    fn an_entry_that_was_taken_back_is_dropped() {
        let list = UnstartedList::new();
        let mut queue = vec![add(&list).0, add(&list).0];
        while let Claim::Task(task, entry) = list.claim_newest(|| true, |_| queue.pop()) {
            assert_eq!(entry, Entry::TakenBack);
            task.run();
        }
        assert_eq!(Arc::strong_count(&list), 1);
    }

    #[test]
    fn a_large_list_gives_its_memory_back() {
        let list = UnstartedList::new();
        let mut queue: Vec<_> = (0..10 * KEPT_TASKS).map(|_| add(&list).0).collect();
        while let Claim::Task(task, _) = list.claim_newest(|| true, |_| queue.pop()) {
            task.run();
        }
        assert!(list.state.lock().tasks.capacity() < 2 * KEPT_TASKS);
    }

    #[test]
    fn a_task_relies_on_an_entry_that_is_left_over() {
        let list = UnstartedList::new();
        let [first, second] = [(); 2].map(|()| add(&list));
        for _ in 0..2 {
            let Claim::Task(task, Entry::Stale) = list.claim_newest(|| true, stale) else {
                panic!("there is a task");
            };
            task.run();
        }
        assert!(list.has_surplus());
        let rely = || assert!(list.add(Job::closure(|| ()), Reporter::Scope).0.is_none());
        rely();
        rely();
        let third = add(&list).0;
        assert!(!list.has_surplus() && !third.take_if_stale(), "three entries, three tasks");
        assert!(matches!(list.surplus_entry().run(), Outcome::Completed));
        for entry in [first.0, second.0] {
            assert!(matches!(entry.run(), Outcome::Completed));
        }
        assert!(matches!(third.run(), Outcome::Skipped));
        assert!(!list.has_surplus(), "no entry is left");
    }

    #[test]
    fn an_entry_that_was_taken_back_is_not_skipped() {
        let [one, other] = [(); 2].map(|()| UnstartedList::new());
        let mut queue = vec![add(&one).0, add(&other).0, add(&one).0, add(&one).0];
        // As a worker does with its local queue.
        let mut claim = |list: &UnstartedList| {
            let newest = |wanted: &dyn Fn(&Job) -> bool| {
                if wanted(queue.last()?) { queue.pop() } else { None }
            };
            match list.claim_newest(|| true, newest) {
                Claim::Task(_, entry) => Some(entry),
                Claim::Ended(_) | Claim::Cancel(_) | Claim::Nothing => None,
            }
        };
        assert_eq!(claim(&one), Some(Entry::TakenBack));
        assert_eq!(claim(&other), Some(Entry::Stale), "the newest entry is not of this list");
        assert_eq!(claim(&one), Some(Entry::TakenBack));
        assert!(!queue[0].take_if_stale(), "its task is left");
        assert!(queue[1].take_if_stale());
    }
}
