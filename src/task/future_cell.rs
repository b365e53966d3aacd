//! The cell of a future, or of a closure with a handle, which is a future that is ready at its
//! first poll. Many threads may wake or cancel it, and one at a time may touch it. Who owns it is
//! decided by the state word, in `state.rs`.
//!
//! # Who may touch the contents
//! 1. The [`FutureOwner`]. There is one at most: the transition from `SCHEDULED` to `RUNNING` makes
//!    it, and it is given up before the word leaves `RUNNING` and `NOTIFIED`. There is no owner
//!    after `DONE`; then [`Ended`] has what was the owner's. An owner knows the header only, not
//!    the type of the future: a cell checks that the owner is its own.
//! 2. The thread that has the last reference to the cell, exclusively. It becomes the owner,
//!    wherever the future is.
//!
//! # References
//! A waker is a pointer to the task, and a unit of the count in the state word. While the future
//! has not ended, there is one reference for all wakers: the queue's, the owner's or, while the
//! future is `IDLE`, one that its last owner has forgotten ([`TransitionToIdle::Idle`]). The thread
//! that ends `IDLE` takes that one ([`Left::take`]). When the future has ended, the last owner
//! keeps its reference, or leaves it to the wakers ([`Header::leave_to_wakers`]). So a waker points
//! to a task that exists.
//!
//! The future is pinned: [`FutureTask::task`](crate::wait::FutureTask::task) makes the cell in an
//! `Arc`, and the cell is never moved out of it.
#![allow(unsafe_code, reason = "no allocation and no lock for each poll; see the SAFETY comments")]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::{Arc, atomic};
use std::task::Waker;
use std::{process, ptr};

use crate::sync::{Mutex, UnsafeCell};
use crate::task::job::{Action, Moment};
use crate::task::pending::PendingKey;
#[cfg(feature = "async")]
use crate::task::state::WakerDropped;
use crate::task::state::{State, Taken, TransitionToIdle};

/// See the [module's documentation](self).
///
/// `repr(C)` for speed alone: a poll touches the state, the key and what follows, but not the lock
/// before them. So a poll needs few cache lines.
///
/// # Invariant
/// The contents are initialised unless the state is `DONE`.
#[repr(C)]
pub(crate) struct FutureCell<F, T, S> {
    header: Header,
    shared: S,
    contents: UnsafeCell<Contents<F, T>>,
}

/// What does not depend on the type of the future. Its methods are compiled once, those of the cell
/// for each future.
#[repr(C)]
pub(crate) struct Header {
    /// Woken when the future is cancelled ([`Header::listen`]). In a box, because it is rare.
    listener: Mutex<Option<Box<Waker>>>,
    state: State,
    /// The key among the pending futures, or zero. Only the owner uses it. Atomic, since any thread
    /// may borrow the header. Here it fits behind the state.
    pending_key: atomic::AtomicU32,
}

struct Contents<F, T> {
    rest: ManuallyDrop<T>,
    future: ManuallyDrop<F>,
}

// SAFETY: one thread at a time touches the contents, as the module's documentation shows, so they
// need only be `Send`. The rest is `Sync`.
unsafe impl<F: Send, T: Send, S: Sync> Sync for FutureCell<F, T, S> {}

/// Owns the future of the cell with this header, which has not ended. Does not depend on the type
/// of the future, like the header.
#[must_use]
pub(crate) struct FutureOwner<'a>(&'a Header);

/// A future that was taken.
pub(crate) enum TakenFuture<'a> {
    ToPoll(FutureOwner<'a>),
    /// The future was cancelled.
    ToDrop(FutureOwner<'a>, Moment),
    /// The caller has cancelled the future, which waited for a wake.
    Idle(FutureOwner<'a>, Left<'a>),
    /// The caller does not own the future.
    Nothing,
}

/// The reference to the task that the owner of an idle future has forgotten.
#[must_use]
pub(crate) struct Left<'a>(&'a Header);

impl Left<'_> {
    /// # Panics
    /// If it is that of another task.
    pub(crate) fn take<T: Wakeable>(self, task: &Arc<T>) -> Arc<T> {
        assert!(ptr::eq(self.0, task.header()), "the reference of another task");
        // SAFETY: the owner has forgotten one, and this is the only value for it.
        unsafe { Arc::from_raw(Arc::as_ptr(task)) }
    }
}

/// The contents of an ended task.
pub(crate) struct Ended<'a, F, T, S> {
    pub(crate) future: Last<'a, F, T, S>,
    pub(crate) rest: T,
    pub(crate) pending_key: Option<PendingKey>,
}

/// The future of an ended task. Dropping this drops the future.
///
/// # Invariant
/// The future is initialised, and only this may touch it. This is not leaked: a pinned value must
/// be dropped before its memory is reused.
pub(crate) struct Last<'a, F, T, S> {
    cell: &'a FutureCell<F, T, S>,
    _owns: PhantomData<&'a mut F>,
}

impl Header {
    fn new() -> Self {
        let (listener, state) = (Mutex::new(None), State::new());
        Header { listener, state, pending_key: atomic::AtomicU32::new(0) }
    }

    /// Wakes the future. Returns whether the caller must submit the task.
    #[cfg(feature = "async")]
    #[must_use]
    pub(crate) fn transition_to_scheduled(&self) -> bool {
        self.state.transition_to_scheduled()
    }

    /// Counts one more waker. The caller polls the future, or has another waker.
    #[cfg(feature = "async")]
    pub(crate) fn add_waker(&self) {
        self.state.add_waker();
    }

    /// Counts one waker less. The caller does not use the task any more, unless the outcome gives
    /// it a reference.
    #[cfg(feature = "async")]
    pub(crate) fn remove_waker(&self) -> WakerDropped {
        self.state.remove_waker()
    }

    /// Takes the future, unless the entry is stale, or the future cannot be claimed: it was polled,
    /// cancelled or withdrawn before.
    #[inline]
    pub(crate) fn take(&self, action: Action) -> TakenFuture<'_> {
        let taken = match action {
            Action::Run => self.state.transition_to_running_first(),
            // The entry stays in the queue, stale, as after a cancellation.
            Action::RunAwaited => self.state.transition_to_claimed(),
            Action::Cancel => self.state.transition_to_dropping(),
            Action::RunWoken | Action::RunWithdrawn | Action::Abandon => {
                self.state.transition_to_running()
            }
        };
        match taken {
            Taken::ToPoll => TakenFuture::ToPoll(FutureOwner(self)),
            Taken::ToDrop(moment) => TakenFuture::ToDrop(FutureOwner(self), moment),
            Taken::Idle => TakenFuture::Idle(FutureOwner(self), Left(self)),
            Taken::Nothing => TakenFuture::Nothing,
        }
    }

    /// Withdraws the future for an immediate shutdown, which has taken it from the queue, or from
    /// its group's line for a slot, and gives it back. Returns `false` if the future was polled,
    /// claimed or cancelled before.
    pub(crate) fn withdraw(&self) -> bool {
        self.state.transition_to_withdrawn()
    }

    /// Whether the first entry is stale, for a thread that has that entry.
    pub(crate) fn is_first_stale(&self) -> bool {
        self.state.is_first_stale()
    }

    /// Leaves the caller's reference to the wakers, if there are any: the caller forgets it. The
    /// caller has ended the future.
    #[must_use]
    pub(crate) fn leave_to_wakers(&self) -> bool {
        self.state.leave_to_wakers()
    }

    /// Cancels the future, which its owner drops, and wakes the waker of [`listen`](Self::listen).
    /// Returns whether the caller must submit the task, by this reference.
    #[must_use]
    pub(crate) fn cancel(&self) -> Option<Left<'_>> {
        let submits = self.state.transition_to_cancelled();
        if let Some(waker) = &*self.listener.lock() {
            waker.wake_by_ref();
        }
        submits.then_some(Left(self))
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the future is cancelled.
    /// Returns whether it is cancelled already. For the future's owner.
    pub(crate) fn listen(&self, waker: &Waker) -> bool {
        // Register, then check. A canceller changes the state first and then reads the waker, so
        // one sees the other.
        let mut listener = self.listener.lock();
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(Box::new(waker.clone()));
        }
        drop(listener);
        self.state.is_cancelled()
    }

    /// Returns the key among the pending futures, if it was set. For the future's owner.
    #[inline]
    pub(crate) fn pending_key(&self) -> Option<PendingKey> {
        // Relaxed, here and below: the state orders one owner after the other.
        PendingKey::new(self.pending_key.load(atomic::Ordering::Relaxed))
    }

    /// For the future's owner.
    pub(crate) fn set_pending_key(&self, key: PendingKey) {
        self.pending_key.store(key.get(), atomic::Ordering::Relaxed);
    }

    /// Takes the future, unless it has ended. For the last reference.
    fn take_last(&mut self) -> bool {
        self.state.transition_to_running_last()
    }
}

impl<F, T, S> FutureCell<F, T, S> {
    /// Makes the cell of a task that the caller submits. Any thread may read `shared`.
    pub(crate) fn new(future: F, rest: T, shared: S) -> Self {
        let contents =
            Contents { rest: ManuallyDrop::new(rest), future: ManuallyDrop::new(future) };
        FutureCell { header: Header::new(), shared, contents: UnsafeCell::new(contents) }
    }

    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Aborts the process if there is a waker, which would point to freed memory. For the last
    /// reference: no path leads there.
    pub(crate) fn abort_if_it_has_wakers(&mut self) {
        if self.header.state.has_wakers() {
            process::abort();
        }
    }

    /// Takes a future that has not ended, for the last reference.
    pub(crate) fn take_last(&mut self) -> Option<(&Self, FutureOwner<'_>)> {
        let is_taken = self.header.take_last();
        is_taken.then_some((self, FutureOwner(&self.header)))
    }

    /// Lends the contents to `f`.
    ///
    /// # Panics
    /// If `owner` is that of another future.
    #[inline(always)]
    pub(crate) fn with<R>(
        &self,
        owner: &mut FutureOwner<'_>,
        f: impl FnOnce(Pin<&mut F>, &mut T) -> R,
    ) -> R {
        owner.assert_owns(&self.header);
        self.contents.with_mut(|contents| {
            // SAFETY: only the owner of this cell's future touches the contents, and the caller has
            // that owner, as just checked. Each of the contents is lent to `f` alone, as long as
            // the owner is borrowed.
            let future = unsafe { &mut (*contents).future };
            // SAFETY: the future is not moved until it is dropped in place.
            let future = unsafe { Pin::new_unchecked(&mut **future) };
            // SAFETY: as for the future.
            let rest = unsafe { &mut (*contents).rest };
            f(future, rest)
        })
    }

    /// Ends the task and returns its contents.
    ///
    /// # Panics
    /// If `owner` is that of another future.
    pub(crate) fn end<'a>(&'a self, owner: FutureOwner<'a>) -> Ended<'a, F, T, S> {
        owner.assert_owns(&self.header);
        self.header.state.transition_to_done();
        let rest = self.contents.with_mut(|contents| {
            // SAFETY: the rest was the owner's, which was this cell's, as checked above. There is
            // no owner after `DONE`: it is not used in place again.
            unsafe { ManuallyDrop::take(&mut (*contents).rest) }
        });
        let future = Last { cell: self, _owns: PhantomData };
        Ended { future, rest, pending_key: self.header.pending_key() }
    }
}

/// A task with a cell, as its wakers know it. There is one implementation, whose
/// [`TransitionToIdle::Idle`] forgets its reference.
pub(crate) trait Wakeable: Send + Sync + 'static {
    fn header(&self) -> &Header;

    /// Queues the task, by the reference `task` to it.
    fn submit(&self, task: Arc<Self>);
}

impl<'a> FutureOwner<'a> {
    /// The contents of a cell are reached only through this, so an owner reaches no other cell's.
    #[inline]
    fn assert_owns(&self, header: &Header) {
        assert!(ptr::eq(self.0, header), "the owner of another future");
    }

    /// Ends a poll that was not ready, and gives the future up. Returns the owner if it must drop
    /// the future.
    pub(crate) fn after_poll(self) -> Result<TransitionToIdle, FutureOwner<'a>> {
        self.0.state.transition_to_idle().ok_or(self)
    }
}

impl<F, T, S> Drop for Last<'_, F, T, S> {
    fn drop(&mut self) {
        self.cell.contents.with_mut(|contents| {
            // SAFETY: only this may touch the future.
            let future = unsafe { &mut (*contents).future };
            // SAFETY: the future is initialised and not used again. It is dropped in place, as its
            // pin demands.
            unsafe { ManuallyDrop::drop(future) }
        });
    }
}

#[cfg(all(test, feature = "async", not(elastipool_loom)))]
mod tests;
