//! What a group knows, and how it changes.
//!
//! # How it works
//! All of a group's state is behind one lock, under which no user code runs and nobody is woken: what is to be done
//! after a change is collected in [`Afterwards`] and done when the lock is free.
//!
//! A task of the group holds one of its `limit` **slots** from before it is queued until after it has been dropped
//! ([`Member`](super::member::Member)). Whoever gives a slot up gives it to the first in **line**, if there is one; so
//! while somebody is in line all slots are taken, nobody overtakes, and a group without a slot in use has nobody in
//! line. In line are submitters that wait, and tasks that were submitted by tasks of the group: those cannot wait, they
//! may hold the slot that they would wait for. They are accepted by the pool, and queued when they are given a slot.
//!
//! The group is **quiet** when no slot is in use. If somebody waits for that, it is then that the failures are handed
//! over and a cancelled group becomes usable again, with a new token: under the lock, so what is submitted later
//! belongs to the next round.
//!
//! **Cancelling** marks the token, then empties the line (submitters are told, tasks dropped) and cancels the futures
//! that wait to be woken. Tasks in the pool's queue look at the token when their turn comes. A future is entered
//! as waiting under the lock, after a look at the token: either it finds the group cancelled, or is found.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;

use futures_channel::oneshot;
use slab::Slab;

use super::error::GroupError;
use super::inside::{GroupId, is_inside};
use crate::error::Refusal;
use crate::runtime::region::PollWait;
use crate::runtime::shared::Shared;
use crate::runtime::trampoline::off_trampoline;
use crate::sync::Mutex;
use crate::sync::unwind::{discard, quietly};
use crate::task::job::Job;
use crate::task::promise::Cancel;
use crate::task::unstarted::Unstarted;
use crate::token::CancellationToken;

pub(super) struct Inner<E> {
    pub(super) shared: Arc<Shared>,
    pub(super) state: Mutex<State<E>>,
    /// Tasks with a slot that have not been started.
    pub(super) unstarted: Arc<Unstarted<()>>,
}

/// See the [module's documentation](self).
pub(super) struct State<E> {
    pub(super) limit: usize,
    pub(super) keeps_going: bool,
    /// Slots in use.
    pub(super) slots: usize,
    line: VecDeque<InLine>,
    pub(super) token: CancellationToken,
    /// The errors of this round, the first in front.
    failures: Vec<GroupError<E>>,
    /// Whether a task of this round was dropped, or one of a round before of which nobody has heard.
    is_incomplete: bool,
    /// Tasks that were dropped without having run to their end, in all rounds.
    pub(super) dropped: usize,
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
pub(super) struct Afterwards {
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
        for (submitter, token) in self.admit {
            if submitter.send(token).is_err() {
                inner.update(State::release_permit);
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
            inner.shared.enqueue_deferred(job, |job| inner.unstarted.add(job, true).0);
        }
        for job in self.drop {
            inner.shared.drop_on_caller(job);
        }
        for waker in self.wake {
            // Another executor's, perhaps.
            off_trampoline(|| quietly(|| waker.wake()));
        }
    }
}

/// How a task comes into a group.
pub(super) enum Entrance {
    /// It has a slot.
    Slot(CancellationToken),
    /// All slots are taken, and the caller is a task of the group.
    Deferred(CancellationToken),
    /// All slots are taken: this tells when one is not.
    Line(oneshot::Receiver<CancellationToken>),
}

impl<E> State<E> {
    pub(super) fn new() -> Self {
        State {
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
        }
    }

    /// Takes a slot for a task, or gets its submitter in line for one.
    pub(super) fn enter(&mut self, waits: bool, is_inside: bool) -> Result<Entrance, Refusal> {
        if self.token.is_cancelled() {
            Err(Refusal::Cancelled)
        } else if !self.is_full() {
            self.slots += 1;
            Ok(Entrance::Slot(self.token.clone()))
        } else if !waits {
            Err(Refusal::GroupFull)
        } else if is_inside {
            Ok(Entrance::Deferred(self.token.clone()))
        } else {
            let (submitter, slot) = oneshot::channel();
            self.line.push_back(InLine::Visitor(submitter));
            Ok(Entrance::Line(slot))
        }
    }

    /// Puts an accepted task in line. If the group has been cancelled meanwhile, it is dropped.
    pub(super) fn defer(&mut self, job: Job, after: &mut Afterwards) {
        if self.token.is_cancelled() {
            self.slots += 1;
            after.drop.push(job);
        } else {
            self.line.push_back(InLine::Deferred(job));
            // There may be a slot by now.
            self.grant(after);
        }
    }

    /// Enters a future that has to wait. `None` if the group has been cancelled.
    #[cfg(feature = "async")]
    pub(super) fn enter_pending(&mut self, future: Weak<dyn Cancel>) -> Option<usize> {
        (!self.token.is_cancelled()).then(|| self.pending.insert(future))
    }

    /// A task is gone. `result` is what has become of it, if it was not just dropped, and `entry` where it was entered
    /// as a future that waits.
    pub(super) fn leave(
        &mut self,
        result: Option<Result<(), GroupError<E>>>,
        entry: Option<usize>,
        after: &mut Afterwards,
    ) {
        // A cancellation takes all of them out.
        if let Some(entry) = entry.filter(|_| !self.token.is_cancelled()) {
            self.pending.remove(entry);
        }
        match result {
            Some(Ok(())) => {}
            Some(Err(failure)) => {
                self.failures.push(failure);
                self.cancel_unless_it_keeps_going(after);
            }
            None => {
                self.dropped += 1;
                self.is_incomplete = true;
                self.cancel_unless_it_keeps_going(after);
            }
        }
        self.release_permit(after);
    }

    pub(super) fn in_line(&self) -> usize {
        self.line.len()
    }

    fn is_full(&self) -> bool {
        self.slots >= self.limit
    }

    /// Gives slots to those who are in line, as far as there are any.
    pub(super) fn grant(&mut self, after: &mut Afterwards) {
        while !self.is_full() {
            match self.line.pop_front() {
                Some(InLine::Visitor(submitter)) => {
                    after.admit.push((submitter, self.token.clone()));
                }
                Some(InLine::Deferred(job)) => after.enqueue.push(job),
                None => return,
            }
            self.slots += 1;
        }
    }

    /// Gives up a slot.
    pub(super) fn release_permit(&mut self, after: &mut Afterwards) {
        self.slots -= 1;
        self.grant(after);
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

    pub(super) fn cancel(&mut self, after: &mut Afterwards) {
        if self.token.is_cancelled() {
            return;
        }
        self.token.cancel();
        after.tell = Some(self.token.clone());
        for in_line in self.line.drain(..) {
            match in_line {
                InLine::Visitor(submitter) => after.dismiss.push(submitter),
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
    pub(super) fn id(&self) -> GroupId {
        GroupId::of(self)
    }

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
    pub(super) fn first(&self, errors: Vec<GroupError<E>>) -> Result<(), GroupError<E>> {
        let mut errors = errors.into_iter();
        let first = errors.next();
        errors.for_each(|error| self.forget(error));
        first.map_or(Ok(()), Err)
    }

    /// Changes the state, and does what follows from it.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut State<E>, &mut Afterwards) -> R) -> R {
        let mut after = Afterwards::default();
        let result = change(&mut self.state.lock(), &mut after);
        after.perform(self);
        result
    }

    /// Whether `what` would wait for its own caller, a task of this group. Panics then, unless the thread unwinds
    /// already: a destructor that panics then aborts the process.
    #[must_use]
    #[track_caller]
    pub(super) fn refuses_own_task(&self, what: &str) -> bool {
        let is_own = is_inside(self.id());
        assert!(
            !is_own || thread::panicking(),
            "`{what}` was called by one of the group's own tasks: it would wait for its own end. Wait from outside of \
             the group, or for the handles of the tasks you depend on"
        );
        is_own
    }
}

/// Resolves to the errors of a round when it is over.
pub(super) struct Quiet<E> {
    pub(super) inner: Arc<Inner<E>>,
    place: Option<usize>,
    poll_wait: PollWait,
}

impl<E> Quiet<E> {
    pub(super) fn new(inner: Arc<Inner<E>>) -> Self {
        Quiet { inner, place: None, poll_wait: PollWait::default() }
    }

    /// Whether the round is over that this waits for, since it was first [looked](Self::look) at.
    pub(super) fn is_over(&self) -> bool {
        let state = self.inner.state.lock();
        self.place.is_some_and(|place| state.waiters[place].outcome.is_some())
    }

    /// A poll.
    pub(super) fn look(&mut self, waker: &Waker) -> Poll<Vec<GroupError<E>>> {
        let waker = waker.clone();
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

impl<E> Future for Quiet<E> {
    type Output = Vec<GroupError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.look(context.waker());
        match polled {
            Poll::Ready(_) => self.poll_wait.end(),
            Poll::Pending => {
                let pool = self.inner.shared.id();
                self.poll_wait.begin(pool);
            }
        }
        polled
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
