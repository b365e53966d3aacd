//! Tasks that belong together: the first error cancels the rest, and one wait is for all of them.
//!
//! # How it works
//! All of a group's state is behind one lock, under which no user code runs and nobody is woken: what is to be done
//! after a change is collected in [`Afterwards`] and done when the lock is free.
//!
//! A task of the group holds one of its `limit` **slots** from before it is queued until after it has been dropped
//! ([`Member`]). Whoever gives a slot up gives it to the first in **line**, if there is one; so while somebody is in
//! line all slots are taken, nobody overtakes, and a group without a slot in use has nobody in line. In line are
//! submitters that wait, and tasks that were submitted by tasks of the group: those cannot wait, they may hold the
//! slot that they would wait for. They are accepted by the pool, and queued when they are given a slot.
//!
//! The group is **quiet** when no slot is in use. If somebody waits for that, it is then that the failures are handed
//! over and a cancelled group becomes usable again, with a new token: under the lock, so what is submitted later
//! belongs to the next round.
//!
//! **Cancelling** marks the token, then empties the line (submitters are told, tasks dropped) and cancels the futures
//! that wait to be woken. Tasks in the pool's queue look at the token when their turn comes. A future is entered
//! as waiting under the lock, after a look at the token: either it finds the group cancelled, or is found.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use slab::Slab;

use crate::blocking::wait_for;
use crate::closure::Closure;
use crate::error::{JoinError, Refusal, Rejected};
#[cfg(feature = "async")]
use crate::job::Sink;
use crate::job::{Job, Outcome};
use crate::join_handle::Cancel;
use crate::pool::ThreadPool;
use crate::room::Patience;
use crate::shared::Shared;
use crate::submit::{WithoutThread, out_of_turn};
use crate::sync::{Mutex, thread_local};
use crate::token::CancellationToken;
use crate::unwind::{Payload, contain, discard, quietly};
#[cfg(feature = "async")]
use crate::waker::FutureTask;

/// Why a [`TaskGroup`] has not succeeded.
#[derive(Debug)]
pub enum GroupError<E> {
    /// A task returned this error.
    Failed(E),
    /// A task panicked: [`JoinError::is_panic`]. Or no task has failed that this waiter could hear of, but the group was
    /// [cancelled](TaskGroup::cancel), or one of its tasks was dropped without having run to its end, or another waiter
    /// has received the errors: [`JoinError::is_cancelled`].
    Join(JoinError),
}

impl<E> GroupError<E> {
    fn cancelled() -> Self {
        GroupError::Join(JoinError::cancelled())
    }

    /// Whether a task has panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_panic())
    }

    /// Whether the group has not succeeded for another reason than an error or a panic of a task.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, GroupError::Join(error) if error.is_cancelled())
    }
}

impl<E: fmt::Display> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Failed(error) => error.fmt(f),
            GroupError::Join(error) if error.is_cancelled() => {
                f.write_str("the group was cancelled")
            }
            GroupError::Join(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for GroupError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            GroupError::Failed(error) => error.source(),
            GroupError::Join(error) => error.source(),
        }
    }
}

/// Tasks that belong together, on a pool that they share with others: from [`ThreadPool::group`].
///
/// Its tasks return a `Result`. The first error, or panic, cancels the group: tasks that have not been started are
/// dropped without being run, running ones see it by the [`token`](Self::token), futures are dropped as soon as they
/// have to wait. [`wait`](Self::wait) returns when all tasks have ended, with that first error; then the group can be
/// used again.
///
/// With a [`limit`](Self::limit), no more than so many of its tasks are under way at the same time, whatever else the
/// pool does. Then [`execute`](Self::execute) waits for a place and [`try_execute`](Self::try_execute) says
/// [`Full`](crate::RejectReason::Full).
///
/// Clones are the same group. Dropping the last one detaches the tasks, which run all the same; use
/// [`cancel`](Self::cancel) to be rid of them. A group does not keep the pool open.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group();
/// for text in ["1", "2", "three", "4"] {
///     // After the first failure, tasks come back: there is no point in submitting the rest.
///     if group.execute(move || text.parse::<u32>().map(drop)).is_err() {
///         break;
///     }
/// }
/// assert_eq!(group.wait().unwrap_err().to_string(), "invalid digit found in string");
///
/// // Used again.
/// group.execute(|| "5".parse::<u32>().map(drop)).unwrap();
/// assert!(group.wait().is_ok());
/// ```
pub struct TaskGroup<E> {
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    shared: Arc<Shared>,
    state: Mutex<State<E>>,
}

/// See the [module's documentation](self).
struct State<E> {
    limit: usize,
    keeps_going: bool,
    /// Slots in use.
    slots: usize,
    line: VecDeque<InLine>,
    token: CancellationToken,
    /// The errors of this round, the first in front.
    failures: Vec<GroupError<E>>,
    /// Whether a task of this round was dropped, or one of a round before of which nobody has heard.
    is_incomplete: bool,
    /// Tasks that were dropped without having run to their end, in all rounds.
    dropped: usize,
    /// Futures that wait to be woken.
    pending: Slab<Weak<dyn Cancel>>,
    waiters: Slab<Waiter<E>>,
}

/// Who waits for a slot.
enum InLine {
    /// A submitter: sent the token it is given a slot, otherwise the group has been cancelled.
    Visitor(oneshot::Sender<CancellationToken>),
    /// An accepted task.
    Deferred(Job),
}

/// Who waits for quiet.
struct Waiter<E> {
    /// Until it is told.
    waker: Option<Waker>,
    /// What it is told: set at a quiet moment.
    outcome: Option<Told<E>>,
}

/// How a round has ended, for one who waits.
enum Told<E> {
    Errors(Vec<GroupError<E>>),
    /// There were some, and somebody else has received them.
    OfErrors,
}

/// The group was detached: nobody will hear of its failures.
impl<E> Drop for Inner<E> {
    fn drop(&mut self) {
        let failures = mem::take(&mut self.state.lock().failures);
        failures.into_iter().for_each(|failure| self.forget(failure));
    }
}

/// What is to be done when the lock is free.
#[must_use]
#[derive(Default)]
struct Afterwards {
    /// Deferred tasks that were given a slot.
    enqueue: Vec<Job>,
    /// Deferred tasks that were given a slot to be dropped.
    drop: Vec<Job>,
    /// Visitors who hear of their slot.
    admit: Vec<(oneshot::Sender<CancellationToken>, CancellationToken)>,
    /// Visitors who hear of the cancellation by this.
    dismiss: Vec<oneshot::Sender<CancellationToken>>,
    cancel: Vec<Weak<dyn Cancel>>,
    tell: Option<CancellationToken>,
    wake: Vec<Waker>,
}

impl Afterwards {
    fn perform<E>(self, inner: &Inner<E>) {
        if let Some(token) = self.tell {
            token.tell();
        }
        for (visitor, token) in self.admit {
            if visitor.send(token).is_err() {
                inner.update(State::vacate);
            }
        }
        drop(self.dismiss);
        for future in self.cancel {
            if let Some(future) = future.upgrade() {
                // Contained: this may be the last reference by now.
                quietly(|| future.cancel());
            }
        }
        for job in self.enqueue {
            inner.shared.enqueue_deferred(job);
        }
        for job in self.drop {
            inner.shared.drop_here(job);
        }
        for waker in self.wake {
            // Another executor's, perhaps.
            out_of_turn(|| quietly(|| waker.wake()));
        }
    }
}

impl<E> State<E> {
    fn is_full(&self) -> bool {
        self.slots >= self.limit
    }

    /// Gives slots to those who are in line, as far as there are any.
    fn let_in(&mut self, after: &mut Afterwards) {
        while !self.is_full() {
            match self.line.pop_front() {
                Some(InLine::Visitor(visitor)) => after.admit.push((visitor, self.token.clone())),
                Some(InLine::Deferred(job)) => after.enqueue.push(job),
                None => return,
            }
            self.slots += 1;
        }
    }

    /// Gives up a slot.
    fn vacate(&mut self, after: &mut Afterwards) {
        self.slots -= 1;
        self.let_in(after);
        self.settle(after);
    }

    /// If the group is quiet, and somebody waits for that, this round is over.
    fn settle(&mut self, after: &mut Afterwards) {
        if self.slots > 0 || self.waiters.iter().all(|(_, waiter)| waiter.outcome.is_some()) {
            return;
        }
        let errors = self.end_round();
        let is_clean = errors.is_empty();
        let mut errors = Some(errors);
        for (_, waiter) in self.waiters.iter_mut().filter(|(_, waiter)| waiter.outcome.is_none()) {
            // They are for one of them; the others hear that there were some.
            waiter.outcome = Some(match errors.take() {
                Some(errors) => Told::Errors(errors),
                None if is_clean => Told::Errors(Vec::new()),
                None => Told::OfErrors,
            });
            after.wake.extend(waiter.waker.take());
        }
    }

    /// Begins a new round, and returns the errors of the old one.
    fn end_round(&mut self) -> Vec<GroupError<E>> {
        let mut failures = mem::take(&mut self.failures);
        let is_incomplete = mem::take(&mut self.is_incomplete);
        let is_cancelled = self.token.is_cancelled();
        if is_cancelled {
            self.token = CancellationToken::new();
        }
        if failures.is_empty() && (is_incomplete || is_cancelled) {
            failures.push(GroupError::cancelled());
        }
        failures
    }

    fn cancel_unless_it_keeps_going(&mut self, after: &mut Afterwards) {
        if !self.keeps_going {
            self.cancel(after);
        }
    }

    fn cancel(&mut self, after: &mut Afterwards) {
        if self.token.is_cancelled() {
            return;
        }
        self.token.cancel();
        after.tell = Some(self.token.clone());
        for in_line in self.line.drain(..) {
            match in_line {
                InLine::Visitor(visitor) => after.dismiss.push(visitor),
                InLine::Deferred(job) => {
                    // Over the limit, but only to give it up.
                    self.slots += 1;
                    after.drop.push(job);
                }
            }
        }
        after.cancel.extend(self.pending.drain());
    }
}

impl<E> Inner<E> {
    /// Drops a failure that nobody waits for; a panic is for the pool's panic handler.
    fn forget(&self, failure: GroupError<E>) {
        match failure {
            GroupError::Join(error) => {
                if let Ok(payload) = error.try_into_panic() {
                    self.shared.config.hooks.panicked(payload);
                }
            }
            GroupError::Failed(error) => discard(error),
        }
    }

    /// The first of the errors, if there are any.
    fn first(&self, errors: Vec<GroupError<E>>) -> Result<(), GroupError<E>> {
        let mut errors = errors.into_iter();
        let first = errors.next();
        errors.for_each(|error| self.forget(error));
        first.map_or(Ok(()), Err)
    }

    /// Changes the state, and does what follows from it.
    fn update<R>(&self, change: impl FnOnce(&mut State<E>, &mut Afterwards) -> R) -> R {
        let mut after = Afterwards::default();
        let result = change(&mut self.state.lock(), &mut after);
        after.perform(self);
        result
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether the calling code is that of a task of this group.
    fn is_inside(&self) -> bool {
        INSIDE.try_with(|groups| groups.borrow().contains(&self.address())).unwrap_or(false)
    }

    #[track_caller]
    fn refuse_own_tasks(&self, what: &str) {
        assert!(
            !self.is_inside(),
            "`{what}` was called by one of the group's own tasks: it would wait for its own end. Wait from outside of \
             the group, or for the handles of the tasks you depend on"
        );
    }
}

thread_local! {
    /// The groups whose tasks the thread runs, by their addresses.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static INSIDE: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// A task's place in its group: as long as it exists, so does its slot.
struct Member<E> {
    inner: Arc<Inner<E>>,
    token: CancellationToken,
    /// Where it is entered, if it is a future that has had to wait.
    entry: Option<usize>,
    /// What has become of it, if it has ended.
    result: Option<Result<(), GroupError<E>>>,
}

impl<E> Member<E> {
    /// Runs or drops a part of the task, as code of its group.
    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Outside;

        impl Drop for Outside {
            fn drop(&mut self) {
                let _ = INSIDE.try_with(|groups| groups.borrow_mut().pop());
            }
        }

        let _ = INSIDE.try_with(|groups| groups.borrow_mut().push(self.inner.address()));
        let _outside = Outside;
        out_of_turn(f)
    }

    /// The task has ended: its group hears of it when this is dropped.
    fn note(&mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
        let (outcome, result) = match result {
            Ok(Ok(())) => (Outcome::Completed, Ok(())),
            Ok(Err(error)) => (Outcome::Completed, Err(GroupError::Failed(error))),
            Err(payload) => {
                (Outcome::Panicked(None), Err(GroupError::Join(JoinError::panicked(payload))))
            }
        };
        self.result = Some(result);
        outcome
    }
}

#[cfg(feature = "async")]
impl<E: Send + 'static> Sink<Result<(), E>> for Member<E> {
    const IS_TIED: bool = true;

    fn settle(mut self, result: Result<Result<(), E>, Payload>) -> Outcome {
        self.note(result)
    }

    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    fn call<T>(&self, f: impl FnOnce() -> T) -> T {
        self.call(f)
    }

    fn enter_pending(&mut self, future: &Weak<dyn Cancel>) -> bool {
        let mut state = self.inner.state.lock();
        if self.token.is_cancelled() {
            return false;
        }
        self.entry = Some(state.pending.insert(Weak::clone(future)));
        true
    }
}

impl<E> Drop for Member<E> {
    fn drop(&mut self) {
        let result = self.result.take();
        let entry = self.entry.take();
        self.inner.update(|state, after| {
            // A cancellation takes all of them out.
            let entry = entry.filter(|_| !self.token.is_cancelled());
            let _future = entry.and_then(|entry| state.pending.try_remove(entry));
            match result {
                Some(Ok(())) => {}
                Some(Err(failure)) => {
                    state.failures.push(failure);
                    state.cancel_unless_it_keeps_going(after);
                }
                None => {
                    state.dropped += 1;
                    state.is_incomplete = true;
                    state.cancel_unless_it_keeps_going(after);
                }
            }
            state.vacate(after);
        });
    }
}

/// A closure of a group, as it lies in the queue. Its membership ends after it.
struct GroupTask<F, E: Send + 'static> {
    /// Until it is called.
    task: Option<F>,
    member: Member<E>,
}

impl<F, E> GroupTask<F, E>
where
    F: FnOnce() -> Result<(), E>,
    E: Send + 'static,
{
    fn call(mut self) -> Outcome {
        match self.task.take_if(|_| !self.member.token.is_cancelled()) {
            Some(task) => {
                let result = contain(|| self.member.call(task));
                self.member.note(result)
            }
            None => Outcome::Cancelled,
        }
    }
}

/// A task that was not called is dropped as one of the group.
impl<F, E: Send + 'static> Drop for GroupTask<F, E> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.member.call(|| discard(task));
        }
    }
}

/// How a task comes into a group.
enum Entrance {
    /// It has a slot.
    Slot(CancellationToken),
    /// All slots are taken, and the caller is a task of the group.
    Deferred(CancellationToken),
    /// All slots are taken: this tells when one is not.
    Line(oneshot::Receiver<CancellationToken>),
}

impl ThreadPool {
    /// Makes an empty group. `E` is the error type of its tasks.
    ///
    /// See [`TaskGroup`] for what it does, and an example.
    pub fn group<E>(&self) -> TaskGroup<E>
    where
        E: Send + 'static,
    {
        let state = State {
            limit: usize::MAX,
            keeps_going: false,
            slots: 0,
            line: VecDeque::new(),
            token: CancellationToken::new(),
            failures: Vec::new(),
            is_incomplete: false,
            dropped: 0,
            pending: Slab::new(),
            waiters: Slab::new(),
        };
        let inner = Inner { shared: Arc::clone(self.shared()), state: Mutex::new(state) };
        TaskGroup { inner: Arc::new(inner) }
    }
}

impl<E: Send + 'static> TaskGroup<E> {
    /// Sets how many of the group's tasks may be under way at the same time: queued, running or, if they are futures,
    /// pending. A group has no limit unless it is given one.
    ///
    /// # Panics
    /// If `limit` is 0: no task could ever run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(4);
    /// for i in 0..100 {
    ///     group.execute(move || Ok(println!("{i}"))).unwrap(); // waits for one of four places
    /// }
    /// group.wait().unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[track_caller]
    pub fn limit(self, limit: usize) -> Self {
        self.set_limit(limit);
        self
    }

    /// Changes the [limit](Self::limit), for all clones and at once: if it grows, those in line are let in; if it
    /// shrinks, the tasks that are under way go on.
    ///
    /// # Panics
    /// If `limit` is 0: no task could ever run.
    #[track_caller]
    pub fn set_limit(&self, limit: usize) {
        assert!(
            limit > 0,
            "the limit of a group is 0; it must be at least 1, or no task could ever run (for no limit, do not set it)"
        );
        self.inner.update(|state, after| {
            state.limit = limit;
            state.let_in(after);
        });
    }

    /// Does not cancel the group when a task fails: all tasks run, and [`wait_all`](Self::wait_all) returns every
    /// error.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group().keep_going();
    /// for text in ["1", "two", "three", "4"] {
    ///     group.execute(move || text.parse::<u32>().map(drop).map_err(|_| text)).unwrap();
    /// }
    /// let mut failed: Vec<_> = group.wait_all().iter().map(|error| error.to_string()).collect();
    /// failed.sort();
    /// assert_eq!(failed, ["three", "two"]);
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    pub fn keep_going(self) -> Self {
        self.inner.state.lock().keeps_going = true;
        self
    }

    /// Runs a closure on a worker, as a task of this group.
    ///
    /// Waits for a place if the group has a [limit](Self::limit) and is full, and for room if the pool's queue is
    /// [bounded](crate::Builder::queue_capacity) and full; a worker waits in a [blocking region](crate::blocking()).
    /// Those who wait for a place are let in one after another, in the order in which they came.
    ///
    /// Called by one of the group's own tasks, it does not wait for a place, which it may be the one to make: if the
    /// group is full, the new task waits in the same line instead of its submitter. (That holds for the task's own code.
    /// A task that waits for something else, such as a handle, which in turn waits for a place in a full group, waits
    /// for itself. Use [`try_execute`](Self::try_execute) there.)
    ///
    /// Without a worker and without a thread to be had, the closure runs on the calling thread.
    ///
    /// # Errors
    /// If the group has been cancelled or the pool is closed: the closure comes back. Who waits in line hears of a
    /// cancellation at once, and of a close when it is its turn.
    pub fn execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        self.submit(task, true, closure)
    }

    /// Like [`execute`](Self::execute), but does not wait.
    ///
    /// # Errors
    /// If the group has been cancelled or is full, also if the caller is one of its own tasks; if the pool is closed,
    /// or its queue full; or if it has no worker and the system refuses to start a thread. The closure comes back.
    ///
    /// ```
    /// use elastipool::RejectReason;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// group.cancel();
    /// let rejected = group.try_execute(|| Ok(())).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Cancelled);
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn try_execute<F>(&self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> Result<(), E> + Send + 'static,
    {
        self.submit(task, false, closure)
    }

    /// Spawns a future as a task of this group, as [`ThreadPool::spawn`] does: it is under way until it is ready.
    ///
    /// When the group is cancelled, a future that waits is dropped, and one that is being polled is dropped at the end
    /// of that poll, unless it is ready then. Waits like [`execute`](Self::execute), which blocks the calling thread;
    /// in async code that other futures of the thread depend on, use [`try_spawn`](Self::try_spawn).
    ///
    /// # Errors
    /// As [`execute`](Self::execute): the future comes back.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group();
    /// let (_sender, receiver) = futures::channel::oneshot::channel::<()>();
    /// group.spawn(async move { receiver.await.map_err(|_| "hung up") }).unwrap(); // would wait for long
    /// group.spawn(async { Err("no such host") }).unwrap();
    /// assert_eq!(group.wait().unwrap_err().to_string(), "no such host");
    /// ```
    #[cfg(feature = "async")]
    pub fn spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit(future, true, |future, member| self.future(future, member))
    }

    /// Like [`spawn`](Self::spawn), but does not wait.
    ///
    /// # Errors
    /// As [`try_execute`](Self::try_execute): the future comes back.
    #[cfg(feature = "async")]
    pub fn try_spawn<F>(&self, future: F) -> Result<(), Rejected<F>>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.submit(future, false, |future, member| self.future(future, member))
    }

    #[cfg(feature = "async")]
    fn future<F>(&self, future: F, member: Member<E>) -> Job
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        Job::Shared(FutureTask::new(future, member, Arc::clone(&self.inner.shared)))
    }

    fn submit<F>(
        &self,
        task: F,
        waits: bool,
        prepare: impl FnOnce(F, Member<E>) -> Job,
    ) -> Result<(), Rejected<F>> {
        let reject = |task, refusal| {
            self.inner.shared.count_rejection();
            Err(Rejected::new(task, refusal))
        };
        let token = match self.enter(waits) {
            Ok(Entrance::Slot(token)) => token,
            Ok(Entrance::Deferred(token)) => return self.defer(task, token, prepare),
            Ok(Entrance::Line(slot)) => match wait_for(std::pin::pin!(slot), None) {
                Some(Ok(token)) => token,
                Some(Err(oneshot::Canceled)) | None => return reject(task, Refusal::Cancelled),
            },
            Err(refusal) => return reject(task, refusal),
        };
        let (patience, without_thread) = if waits {
            (Patience::Until(None), WithoutThread::RunHere)
        } else {
            (Patience::None, WithoutThread::HandBack)
        };
        let refusal = match self.inner.shared.accept(patience, without_thread) {
            // Looked at again: it may have taken its time.
            Ok(_) if token.is_cancelled() => {
                self.inner.shared.retract();
                Refusal::Cancelled
            }
            Ok(accepted) => {
                let job = prepare(task, self.member(token));
                self.inner.shared.bring(accepted, job);
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        self.inner.update(State::vacate);
        Err(Rejected::new(task, refusal))
    }

    /// Takes a slot, or gets in line for one.
    fn enter(&self, waits: bool) -> Result<Entrance, Refusal> {
        let is_inside = waits && self.inner.is_inside();
        let mut state = self.inner.state.lock();
        if state.token.is_cancelled() {
            Err(Refusal::Cancelled)
        } else if !state.is_full() {
            state.slots += 1;
            Ok(Entrance::Slot(state.token.clone()))
        } else if !waits {
            Err(Refusal::GroupFull)
        } else if is_inside {
            Ok(Entrance::Deferred(state.token.clone()))
        } else {
            let (visitor, slot) = oneshot::channel();
            state.line.push_back(InLine::Visitor(visitor));
            Ok(Entrance::Line(slot))
        }
    }

    /// Accepts a task and puts it in line.
    fn defer<F>(
        &self,
        task: F,
        token: CancellationToken,
        prepare: impl FnOnce(F, Member<E>) -> Job,
    ) -> Result<(), Rejected<F>> {
        let shared = &self.inner.shared;
        if !shared.accept_deferred() {
            return Err(Rejected::new(task, Refusal::Closed));
        }
        let job = prepare(task, self.member(token));
        self.inner.update(|state, after| {
            if state.token.is_cancelled() {
                state.slots += 1;
                after.drop.push(job);
            } else {
                state.line.push_back(InLine::Deferred(job));
                // There may be a slot by now.
                state.let_in(after);
            }
        });
        Ok(())
    }

    fn member(&self, token: CancellationToken) -> Member<E> {
        Member { inner: Arc::clone(&self.inner), token, entry: None, result: None }
    }

    /// Cancels the group, as an error of a task does: [`wait`](Self::wait) will say so, unless a task has failed.
    /// Tasks that come from now on are handed back, until somebody has waited.
    pub fn cancel(&self) {
        self.inner.update(State::cancel);
    }

    /// Whether the group has been cancelled, by an error, a panic or [`cancel`](Self::cancel), since it was made or was
    /// last waited for.
    pub fn is_cancelled(&self) -> bool {
        self.inner.state.lock().token.is_cancelled()
    }

    /// What tells the tasks that the group has been cancelled. When a cancelled group has been waited for, it has a new
    /// one.
    pub fn token(&self) -> CancellationToken {
        self.inner.state.lock().token.clone()
    }

    /// How many of the group's tasks were dropped without having run to their end, since the group was made.
    pub fn dropped_count(&self) -> usize {
        self.inner.state.lock().dropped
    }

    /// Blocks until there is a moment, after the call, at which all tasks of the group have ended. What they wrote is
    /// then visible to the caller, and the group can be used again.
    ///
    /// A worker that waits is in a [blocking region](crate::blocking()). A group is also a future: `group.await` is this
    /// without blocking. If several wait at the same time, one of them receives the error, and the others that the group
    /// was cancelled. Later panics than the first go to the pool's [panic handler](crate::Builder::panic_handler), as do
    /// all those of a group that nobody waits for.
    ///
    /// # Errors
    /// The first error of a task, or the first panic, whichever came first; or that the group was cancelled.
    ///
    /// # Panics
    /// If called by one of the group's own tasks, which would wait for itself.
    #[track_caller]
    pub fn wait(&self) -> Result<(), GroupError<E>> {
        self.inner.first(self.wait_all())
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. `None` if the tasks have not all ended in time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<(), GroupError<E>>> {
        self.inner.refuse_own_tasks("wait_timeout");
        self.wait_until(Instant::now().checked_add(timeout)).map(|errors| self.inner.first(errors))
    }

    /// Like [`wait`](Self::wait), but returns the errors of all tasks, in the order in which they came: those that were
    /// running when the group was cancelled may have failed as well. None if all is well.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_all(&self) -> Vec<GroupError<E>> {
        self.inner.refuse_own_tasks("wait");
        match self.wait_until(None) {
            Some(errors) => errors,
            None => unreachable!("a wait without a limit does not time out"),
        }
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<Vec<GroupError<E>>> {
        let mut quiet = Quiet { inner: Arc::clone(&self.inner), place: None };
        wait_for(Pin::new(&mut quiet), deadline)
    }
}

fn closure<F, E>(task: F, member: Member<E>) -> Job
where
    F: FnOnce() -> Result<(), E> + Send + 'static,
    E: Send + 'static,
{
    let task = GroupTask { task: Some(task), member };
    Job::Tied(Closure::new(move || task.call()))
}

/// Resolves to the errors of a round when it is over.
struct Quiet<E> {
    inner: Arc<Inner<E>>,
    place: Option<usize>,
}

impl<E> Future for Quiet<E> {
    type Output = Vec<GroupError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let inner = Arc::clone(&self.inner);
        let mut state = inner.state.lock();
        let Some(place) = self.place else {
            if state.slots == 0 {
                return Poll::Ready(state.end_round());
            }
            self.place = Some(state.waiters.insert(Waiter { waker: Some(waker), outcome: None }));
            return Poll::Pending;
        };
        match state.waiters[place].outcome.take() {
            Some(told) => {
                let errors = match told {
                    Told::Errors(errors) => errors,
                    Told::OfErrors => vec![GroupError::cancelled()],
                };
                let waiter = state.waiters.remove(place);
                drop(state);
                self.place = None;
                discard(waiter.waker);
                Poll::Ready(errors)
            }
            None => {
                let before = state.waiters[place].waker.replace(waker);
                drop(state);
                discard(before);
                Poll::Pending
            }
        }
    }
}

/// Nobody waits any more: what it was told and did not take is for the next one.
impl<E> Drop for Quiet<E> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.inner.state.lock();
        let waiter = state.waiters.remove(place);
        if let Some(Told::Errors(mut errors)) = waiter.outcome {
            // That a round was cancelled is said only if there is nothing else to say.
            if errors.iter().any(GroupError::is_cancelled) {
                state.is_incomplete = true;
                errors.clear();
            }
            errors.append(&mut state.failures);
            state.failures = errors;
        }
        drop(state);
        discard(waiter.waker);
    }
}

/// Resolves when all tasks of a group have ended: what `group.await` waits for. As [`TaskGroup::wait`], on any executor.
///
/// # Panics
/// If it is polled by one of the group's own tasks, which would wait for itself.
#[must_use = "futures do nothing unless they are polled"]
pub struct GroupWait<E> {
    quiet: Quiet<E>,
}

impl<E> Future for GroupWait<E> {
    type Output = Result<(), GroupError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.quiet.inner.refuse_own_tasks("await");
        let polled = Pin::new(&mut self.quiet).poll(context);
        polled.map(|errors| self.quiet.inner.first(errors))
    }
}

impl<E> IntoFuture for TaskGroup<E> {
    type Output = Result<(), GroupError<E>>;
    type IntoFuture = GroupWait<E>;

    fn into_future(self) -> GroupWait<E> {
        GroupWait { quiet: Quiet { inner: self.inner, place: None } }
    }
}

impl<E> IntoFuture for &TaskGroup<E> {
    type Output = Result<(), GroupError<E>>;
    type IntoFuture = GroupWait<E>;

    fn into_future(self) -> GroupWait<E> {
        self.clone().into_future()
    }
}

impl<E> Clone for TaskGroup<E> {
    fn clone(&self) -> Self {
        TaskGroup { inner: Arc::clone(&self.inner) }
    }
}

/// A panic, wherever it happens, leaves the group as valid as it was.
impl<E> UnwindSafe for TaskGroup<E> {}

/// See [`UnwindSafe`].
impl<E> RefUnwindSafe for TaskGroup<E> {}

impl<E> fmt::Debug for TaskGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state.lock();
        let limit = (state.limit < usize::MAX).then_some(state.limit);
        let (under_way, in_line) = (state.slots, state.line.len());
        let is_cancelled = state.token.is_cancelled();
        // Not under the lock: who knows what it is written to.
        drop(state);
        f.debug_struct("TaskGroup")
            .field("pool", &self.inner.shared.config.name)
            .field("error", &type_name::<E>())
            .field("limit", &limit)
            .field("under_way", &under_way)
            .field("in_line", &in_line)
            .field("is_cancelled", &is_cancelled)
            .finish()
    }
}

impl<E> fmt::Debug for GroupWait<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWait").finish_non_exhaustive()
    }
}
