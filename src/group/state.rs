//! The state of a group and its transitions. In one file, since one lock guards all of it.
//!
//! # How it works
//! One lock guards all of a group's state. No user code runs under it, and no thread is woken but
//! the keeper, for a deadline: each change collects its [`Effect`]s, which are performed in turn
//! after the lock is released.
//!
//! A task of the group holds one of its `limit` **slots** from before it is queued in the pool
//! until after it has been dropped ([`Member`](super::member::Member)). A released slot goes to the
//! front of the group's **queue**. So while the queue is not empty all slots are taken, no
//! submission overtakes another, and a group without a slot in use has an empty queue. The queue
//! holds waiting submitters and *deferred* tasks. A task is deferred if a task of the group submits
//! it: that one must not wait, since it may hold the very slot. So is a task whose submitter is a
//! worker, if as many workers as may [wait](crate::flight::OwnWaits). The pool accepts a deferred
//! task at once and queues it when it is granted a slot. A canceller that has only its handle takes
//! it out of the queue, or out of the list of unstarted tasks ([`AnyGroup`]).
//!
//! The group is **quiet** when no slot is in use and no thread is cancelling it. At that moment, if
//! there is a waiter, the *round* ends: the waiter receives the failures, and a cancelled group
//! becomes usable again with a new token. This happens under the lock, so tasks submitted later
//! belong to the next round.
//!
//! **Cancelling** marks the token, empties the queue (submissions are refused, deferred tasks
//! dropped), cancels the pending futures, and drops the unstarted tasks: the canceller takes them
//! out of their list. A task that is added to the list during that is dropped by its submitter,
//! which checks the token afterwards (race 48). One that a worker has taken from the list checks
//! the token before it runs. A future is registered as pending under the lock, after a check of the
//! token: either it finds the group cancelled, or the canceller finds the future.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::ptr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use futures_channel::oneshot;
use slab::Slab;

use super::error::GroupError;
use super::inside::is_inside;
use crate::error::{JoinError, Refusal};
use crate::sched::{OwnedRoute, PollWait, Route, TaskRoute, has_passed, off_trampoline};
use crate::sync::Mutex;
use crate::sync::unwind::{discard, quietly};
use crate::task::{AnyGroup, Job, Line, Paged, Run, TaskId, UnstartedList};
use crate::token::{CancellationToken, TokenOwner};
use crate::views::ViewHandle;

pub(super) struct Inner<E> {
    pub(super) route: OwnedRoute,
    /// Keeps the reserve of the route's view.
    pub(super) _view: Option<ViewHandle>,
    pub(super) state: Mutex<GroupState<E>>,
    /// Unstarted tasks that hold a slot.
    pub(super) unstarted: Arc<UnstartedList>,
}

/// What the tasks, handles and waiters of a group share, under its lock.
pub(super) struct GroupState<E> {
    pub(super) limit: usize,
    pub(super) keeps_going: bool,
    /// Whether the first success cancels the group.
    pub(super) races: bool,
    /// Whether it has, in this round.
    has_won: bool,
    /// When the group is cancelled.
    pub(super) deadline: Option<Instant>,
    /// Whether that has been done.
    pub(super) is_deadline_over: bool,
    /// Whether the deadline has cancelled the round, or one that no waiter has received.
    has_expired: bool,
    /// Slots in use.
    pub(super) slots: usize,
    /// Whether a canceller has yet to drop the unstarted tasks of this round.
    is_dropping: bool,
    /// Waiting submitters and deferred tasks, the first in front.
    pub(super) queue: VecDeque<Queued>,
    pub(super) token: CancellationToken,
    /// The errors of this round, the first in front.
    failures: Vec<GroupError<E>>,
    /// Whether a task of this round was dropped, or its handle has received its panic, or either
    /// happened in an earlier round that no waiter has received.
    is_incomplete: bool,
    /// Tasks that were dropped before they ran to their end, in all rounds.
    pub(super) dropped: usize,
    /// The futures that wait to be woken.
    pending: Paged<Weak<dyn Run>>,
    waiters: Slab<Waiter<E>>,
}

/// What waits for a slot.
pub(super) enum Queued {
    /// A waiting submitter. It receives the token with its slot. Dropping the sender refuses it:
    /// the group was cancelled.
    Submitter(oneshot::Sender<CancellationToken>),
    /// A task that the pool has accepted.
    Deferred(Job),
}

/// What waits for quiet.
enum Waiter<E> {
    Waiting(Waker),
    /// The round has ended, with these errors. `None`: there were errors, and another waiter
    /// receives them.
    Ended(Option<Vec<GroupError<E>>>),
}

impl<E> Waiter<E> {
    fn has_ended(&self) -> bool {
        matches!(self, Waiter::Ended(_))
    }
}

/// How a task has ended.
pub(super) enum TaskEnd<E> {
    /// It ran to its end, without an error.
    Succeeded,
    /// It ran to its end, and its handle has the result.
    Delivered,
    /// It failed, and the group has the error.
    Failed(GroupError<E>),
    /// It panicked, and its handle has the payload.
    PanickedForHandle,
    /// It was dropped before its end. A handle, if it has one, reports that.
    Dropped { has_handle: bool },
}

/// Discards the failures of a detached group, which no waiter will receive.
impl<E> Drop for Inner<E> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let (failures, deadline) = (mem::take(&mut state.failures), state.deadline.take());
        drop(state);
        self.route().shared.set_deadline(self.id(), deadline, None);
        failures.into_iter().for_each(|failure| self.discard_failure(failure));
    }
}

/// What must follow a change of the state, outside of the lock.
#[must_use]
pub(super) enum Effect {
    /// Queue a deferred task in the pool, or send the token to a submitter: it holds a slot.
    Admit(Queued, CancellationToken),
    /// Drop a deferred task, whose end releases its slot, or refuse a submitter, which has none.
    Refuse(Queued),
    /// Cancel pending futures.
    Cancel(Vec<Weak<dyn Run>>),
    /// Queue a deferred task of a cancelled group: this thread drops it, or a worker.
    Unstarted(Job),
    /// Drop the unstarted tasks, because the group was cancelled. The round does not end meanwhile.
    DropUnstarted,
    /// Wake what waits for the token that was cancelled.
    WakeToken(CancellationToken),
    /// Wake a waiter that has received an outcome.
    Wake(Waker),
}

impl Effect {
    fn perform<E>(self, inner: &Inner<E>) {
        match self {
            Effect::Admit(Queued::Deferred(job), token) => {
                if let Some(id) = inner.route().enqueue_deferred(&inner.unstarted, job) {
                    inner.drop_if_late(id, &token);
                }
            }
            Effect::Admit(Queued::Submitter(submitter), token) => {
                if submitter.send(token).is_err() {
                    inner.update(GroupState::release_slot);
                }
            }
            Effect::Refuse(Queued::Submitter(submitter)) => drop(submitter),
            Effect::Refuse(Queued::Deferred(job)) => inner.route().drop_on_caller(job),
            // This may wake the thread that waits for the handle, by a foreign executor's waker:
            // contains its panics, and lets it run its own follow-up work. It may also drop the
            // last reference to the future.
            Effect::Cancel(futures) => {
                off_trampoline(|| quietly(|| inner.route().cancel_futures(&futures)));
            }
            Effect::Unstarted(job) => {
                inner.route().enqueue_over_limit(&inner.unstarted, job);
            }
            Effect::DropUnstarted => {
                if Route::may_drop_cancelled() {
                    inner.route().cancel_all(inner.unstarted.take_all());
                }
                inner.update(|state, after| {
                    state.is_dropping = false;
                    state.settle(after);
                });
            }
            Effect::WakeToken(token) => token.wake_all(),
            // The waker may be a foreign executor's: contain its panics, and let it run its own
            // follow-up work.
            Effect::Wake(waker) => off_trampoline(|| quietly(|| waker.wake())),
        }
    }
}

/// The outcome of [`Inner::acquire_slot`].
pub(super) enum Acquisition {
    /// The task holds a slot.
    Slot(CancellationToken),
    /// All slots are taken. The task must be [deferred](GroupState::defer), since its submitter
    /// must not wait.
    Deferred(CancellationToken),
    /// All slots are taken. The submitter is queued and must wait for the receiver.
    Queued(oneshot::Receiver<CancellationToken>),
}

impl<E> GroupState<E> {
    pub(super) fn new() -> Self {
        GroupState {
            limit: usize::MAX,
            keeps_going: false,
            races: false,
            has_won: false,
            deadline: None,
            is_deadline_over: false,
            has_expired: false,
            slots: 0,
            is_dropping: false,
            queue: VecDeque::new(),
            token: CancellationToken::new(),
            failures: Vec::new(),
            is_incomplete: false,
            dropped: 0,
            pending: Paged::default(),
            waiters: Slab::new(),
        }
    }

    /// Takes a submitter that has given up out of the queue.
    #[must_use]
    pub(super) fn forget(&mut self, slot: &oneshot::Receiver<CancellationToken>) -> Option<Queued> {
        let is_own = |queued: &Queued| matches!(queued, Queued::Submitter(submitter) if submitter.is_connected_to(slot));
        self.queue.iter().position(is_own).and_then(|own| self.queue.remove(own))
    }

    /// Queues an accepted task until it is granted a slot. Drops it if the group has been cancelled
    /// meanwhile.
    pub(super) fn defer(&mut self, job: Job, after: &mut Vec<Effect>) {
        if self.token.is_cancelled() {
            self.refuse(Queued::Deferred(job), after);
        } else {
            self.queue.push_back(Queued::Deferred(job));
            // A slot may have been released since `acquire_slot`.
            self.grant(after);
        }
    }

    /// Registers a future that waits to be woken. `None` if the group has been cancelled.
    pub(super) fn register_pending(&mut self, future: Weak<dyn Run>) -> Option<usize> {
        (!self.token.is_cancelled()).then(|| self.pending.insert(future))
    }

    /// Ends a task that has been dropped. `entry` is its key if it was registered as pending.
    /// Returns failures for the caller to discard: those of a race that another task has won.
    #[must_use]
    pub(super) fn end_task(
        &mut self,
        end: TaskEnd<E>,
        entry: Option<usize>,
        after: &mut Vec<Effect>,
    ) -> Vec<GroupError<E>> {
        // A cancellation has removed all entries.
        if let Some(entry) = entry.filter(|_| !self.token.is_cancelled()) {
            drop(self.pending.remove(entry));
        }
        let fails = match end {
            TaskEnd::Succeeded => {
                if self.races && !self.token.is_cancelled() {
                    self.has_won = true;
                    self.cancel(after);
                }
                false
            }
            TaskEnd::Delivered => false,
            TaskEnd::Failed(failure) => {
                self.failures.push(failure);
                true
            }
            TaskEnd::PanickedForHandle => {
                self.is_incomplete = true;
                true
            }
            TaskEnd::Dropped { has_handle } => {
                self.dropped += 1;
                self.is_incomplete |= !has_handle;
                !has_handle
            }
        };
        if fails && !self.keeps_going {
            self.cancel(after);
        }
        let lost = if self.has_won { mem::take(&mut self.failures) } else { Vec::new() };
        self.release_slot(after);
        lost
    }

    /// Cancels the group if its deadline has passed, once.
    fn expire(&mut self, after: &mut Vec<Effect>) {
        if self.is_deadline_over || self.token.is_cancelled() || self.deadline.is_none() {
            return;
        }
        // A model has no time: there it has passed.
        if cfg!(elastipool_loom) || has_passed(self.deadline) {
            self.is_deadline_over = true;
            self.has_expired = true;
            self.cancel(after);
        }
    }

    fn is_full(&self) -> bool {
        self.slots >= self.limit
    }

    /// Grants the free slots to the queue.
    pub(super) fn grant(&mut self, after: &mut Vec<Effect>) {
        while !self.is_full() {
            let Some(queued) = self.queue.pop_front() else { return };
            after.push(Effect::Admit(queued, self.token.clone()));
            self.slots += 1;
        }
    }

    /// Refuses what has waited for a slot, because it was cancelled.
    fn refuse(&mut self, queued: Queued, after: &mut Vec<Effect>) {
        // A slot over the limit: dropping the job releases one.
        self.slots += usize::from(matches!(queued, Queued::Deferred(_)));
        after.push(Effect::Refuse(queued));
    }

    /// Takes a cancelled task out of the queue to drop it. `false` if it is not there.
    fn leave_queue(&mut self, task: *const (), after: &mut Vec<Effect>) -> bool {
        let is_own =
            |queued: &Queued| matches!(queued, Queued::Deferred(job) if job.is_entry_of(task));
        let index = self.queue.iter().position(is_own);
        let own = index.and_then(|index| self.queue.remove(index));
        own.map(|own| self.refuse(own, after)).is_some()
    }

    /// Releases a slot.
    pub(super) fn release_slot(&mut self, after: &mut Vec<Effect>) {
        self.slots -= 1;
        self.grant(after);
        self.settle(after);
    }

    fn is_quiet(&self) -> bool {
        self.slots == 0 && !self.is_dropping
    }

    /// Ends the round if the group is quiet and has a waiter.
    fn settle(&mut self, after: &mut Vec<Effect>) {
        if !self.is_quiet() || self.waiters.iter().all(|(_, waiter)| waiter.has_ended()) {
            return;
        }
        let errors = self.end_round();
        let is_clean = errors.is_empty();
        let mut errors = Some(errors);
        for (_, waiter) in self.waiters.iter_mut().filter(|(_, waiter)| !waiter.has_ended()) {
            // One waiter receives the errors. The others learn only that there were some.
            let own = errors.take().or_else(|| is_clean.then(Vec::new));
            if let Waiter::Waiting(waker) = mem::replace(waiter, Waiter::Ended(own)) {
                after.push(Effect::Wake(waker));
            }
        }
    }

    /// Ends the round and returns its errors.
    fn end_round(&mut self) -> Vec<GroupError<E>> {
        let mut failures = mem::take(&mut self.failures);
        let is_incomplete = mem::take(&mut self.is_incomplete);
        let (has_won, has_expired) =
            (mem::take(&mut self.has_won), mem::take(&mut self.has_expired));
        let is_cancelled = self.token.is_cancelled();
        if is_cancelled {
            self.token = CancellationToken::new();
        }
        if failures.is_empty() && (is_incomplete || is_cancelled) && !has_won {
            let error = if has_expired { JoinError::DEADLINE_PASSED } else { JoinError::CANCELLED };
            failures.push(GroupError::Join(error));
        }
        failures
    }

    /// Cancels the round's tasks, unless that has been done.
    pub(super) fn cancel(&mut self, after: &mut Vec<Effect>) {
        if self.token.is_cancelled() {
            return;
        }
        self.token.mark_cancelled();
        after.push(Effect::WakeToken(self.token.clone()));
        for queued in mem::take(&mut self.queue) {
            match queued {
                // All of them first: the destructor of one may wait for another.
                Queued::Deferred(job) => {
                    self.slots += 1;
                    after.push(Effect::Unstarted(job));
                }
                submitter => after.push(Effect::Refuse(submitter)),
            }
        }
        after.push(Effect::Cancel(self.pending.drain()));
        if self.slots > 0 {
            // Race 48: until the canceller has dropped them, the round does not end. So it takes no
            // task of another round.
            self.is_dropping = true;
            after.push(Effect::DropUnstarted);
        }
    }
}

impl<E: Send + 'static> AnyGroup for Inner<E> {
    fn expire(&self) {
        // A group whose tasks have ended in time has not failed.
        self.update(|state, after| {
            if !state.is_quiet() {
                state.expire(after);
            }
        });
    }

    fn leave(&self, task: *const ()) {
        if !self.update(|state, after| state.leave_queue(task, after)) {
            // It has been granted a slot. If its entry is not queued yet, a worker drops it.
            let job = self.unstarted.take_at(task);
            self.route().cancel_all(job.into_iter());
        }
    }

    fn unstarted(&self) -> &UnstartedList {
        &self.unstarted
    }
}

impl<E: Send + 'static> TokenOwner for Inner<E> {
    fn cancel_round(&self, token: &CancellationToken) {
        self.update(|state, after| {
            // Each round that was cancelled is followed by one with a new token.
            if state.token.is_same(token) {
                state.cancel(after);
            }
        });
    }
}

impl<E> Inner<E> {
    pub(super) fn route(&self) -> Route<'_> {
        self.route.route()
    }

    /// Returns the route of a task that is submitted now.
    pub(super) fn task_route(&self, line: Line, is_future: bool) -> TaskRoute {
        TaskRoute::own_or(self.route(), line, is_future, || self.route.clone())
    }

    pub(super) fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Discards a failure that no waiter receives. The payload of a panic goes to the pool's panic
    /// handler.
    pub(super) fn discard_failure(&self, failure: GroupError<E>) {
        match failure {
            GroupError::Join(error) => {
                if let Ok(payload) = error.try_into_panic() {
                    self.route().shared.config.hooks.panicked(payload);
                }
            }
            GroupError::Failed(error) => discard(error),
        }
    }

    /// Returns the first of the errors, if there are any, and discards the others.
    pub(super) fn first(&self, errors: Vec<GroupError<E>>) -> Result<(), GroupError<E>> {
        let mut errors = errors.into_iter();
        let first = errors.next();
        errors.for_each(|error| self.discard_failure(error));
        first.map_or(Ok(()), Err)
    }

    /// Acquires a slot for a task. If all are taken and the submitter `waits`, queues the submitter
    /// or, if it `must_defer` the task, asks for that.
    pub(super) fn acquire_slot(
        &self,
        waits: bool,
        must_defer: impl FnOnce() -> bool,
    ) -> Result<Acquisition, Refusal> {
        self.update(|state, after| {
            // There may be no keeper: it exists while the pool has a worker.
            state.expire(after);
            if state.token.is_cancelled() {
                Err(Refusal::Cancelled)
            } else if !state.is_full() {
                state.slots += 1;
                Ok(Acquisition::Slot(state.token.clone()))
            } else if !waits {
                Err(Refusal::GroupFull)
            } else if must_defer() {
                Ok(Acquisition::Deferred(state.token.clone()))
            } else {
                let (submitter, slot) = oneshot::channel();
                state.queue.push_back(Queued::Submitter(submitter));
                Ok(Acquisition::Queued(slot))
            }
        })
    }

    /// Race 48: the caller has added the task to the list of unstarted ones, and looks again. A
    /// canceller sets the token, then takes the tasks. The list's lock orders the two: if the
    /// canceller has not found the task, this sees the token.
    pub(super) fn drop_if_late(&self, id: TaskId, token: &CancellationToken) {
        if token.is_cancelled() {
            self.route().cancel_all(self.unstarted.take(id).into_iter());
        }
    }

    /// Changes the state under its lock, then performs the effects of the change.
    pub(super) fn update<R>(
        &self,
        change: impl FnOnce(&mut GroupState<E>, &mut Vec<Effect>) -> R,
    ) -> R {
        let mut after = Vec::new();
        let result = change(&mut self.state.lock(), &mut after);
        after.into_iter().for_each(|effect| effect.perform(self));
        result
    }

    /// Panics if the caller of `what` is a task of this group, which would wait for itself. Returns
    /// `true` instead if the thread unwinds already: a second panic would abort the process.
    #[must_use]
    #[track_caller]
    pub(super) fn refuses_own_task(&self, what: &str) -> bool {
        let is_own = is_inside(self.id());
        assert!(
            !is_own || thread::panicking(),
            "`{what}` was called by one of the group's own tasks: it would wait for its own end. \
             Wait from outside the \
             group, or for the handles of the tasks you depend on"
        );
        is_own
    }
}

/// Resolves to the errors of a round when it ends. The round is the one of the first poll.
pub(super) struct Quiet<E> {
    pub(super) inner: Arc<Inner<E>>,
    /// The key among the group's waiters, while it waits.
    key: Option<usize>,
    poll_wait: PollWait,
}

impl<E> Quiet<E> {
    pub(super) fn new(inner: Arc<Inner<E>>) -> Self {
        Quiet { inner, key: None, poll_wait: PollWait::default() }
    }

    /// Whether the awaited round has ended, since the first pending [poll](Self::poll_outcome).
    pub(super) fn is_over(&self) -> bool {
        let state = self.inner.state.lock();
        self.key.is_some_and(|key| state.waiters[key].has_ended())
    }

    /// Polls for the errors of the round, without counting as a wait of the calling thread's
    /// future.
    pub(super) fn poll_outcome(&mut self, waker: &Waker) -> Poll<Vec<GroupError<E>>> {
        let waker = waker.clone();
        let inner = Arc::clone(&self.inner);
        let mut state = inner.state.lock();
        let Some(key) = self.key else {
            if state.is_quiet() {
                return Poll::Ready(state.end_round());
            }
            self.key = Some(state.waiters.insert(Waiter::Waiting(waker)));
            return Poll::Pending;
        };
        if let Waiter::Waiting(known) = &mut state.waiters[key] {
            let before = mem::replace(known, waker);
            drop(state);
            discard(before);
            return Poll::Pending;
        }
        self.key = None;
        match state.waiters.remove(key) {
            Waiter::Ended(Some(errors)) => Poll::Ready(errors),
            _ => Poll::Ready(vec![GroupError::CANCELLED]),
        }
    }
}

impl<E> Future for Quiet<E> {
    type Output = Vec<GroupError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (polled, pool) = (self.poll_outcome(context.waker()), self.inner.route().id());
        self.poll_wait.note(polled.is_pending(), pool, context.waker());
        polled
    }
}

/// Ends the wait. Errors that this waiter was given and did not take are for the next waiter.
impl<E> Drop for Quiet<E> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut state = self.inner.state.lock();
        let mut waiter = state.waiters.remove(key);
        if let Waiter::Ended(Some(errors)) = &mut waiter {
            // A cancellation is reported only if there are no failures: `end_round` adds it again
            // if so.
            let has_expired = errors.iter().any(GroupError::is_expired);
            if has_expired || errors.iter().any(GroupError::is_cancelled) {
                state.has_expired |= has_expired;
                state.is_incomplete = true;
                errors.clear();
            }
            errors.append(&mut state.failures);
            state.failures = mem::take(errors);
        }
        drop(state);
        discard(waiter);
    }
}
