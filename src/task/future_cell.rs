//! The cell of a future, or of a closure with a handle, which is a future that is ready at its
//! first poll. Many threads may wake or cancel it, and one at a time may touch it. Who owns it is
//! decided by the state word, in `state.rs`.
//!
//! # Who may touch the contents
//! The [`FutureOwner`]. There is one at most: the transition from `SCHEDULED` to `RUNNING` makes
//! it, and it is given up before the word leaves `RUNNING` and `NOTIFIED`. There is no owner after
//! `DONE`; then [`Last`] has the future. An owner knows the header only, not the type of the
//! future: a cell checks that the owner is its own.
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
use std::sync::Arc;
use std::{process, ptr};

use crate::sync::UnsafeCell;
use crate::task::state::{FutureOwner, Header, Left, TransitionToIdle};

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

struct Contents<F, T> {
    rest: ManuallyDrop<T>,
    future: ManuallyDrop<F>,
}

// SAFETY: one thread at a time touches the contents, as the module's documentation shows, so they
// need only be `Send`. The rest is `Sync`.
unsafe impl<F: Send, T: Send, S: Sync> Sync for FutureCell<F, T, S> {}

impl Left<'_> {
    /// # Panics
    /// If it is that of another task.
    pub(crate) fn take<T: Wakeable>(self, task: &Arc<T>) -> Arc<T> {
        assert!(ptr::eq(self.0, task.header()), "the reference of another task");
        // SAFETY: the owner has forgotten one, and this is the only value for it.
        unsafe { Arc::from_raw(Arc::as_ptr(task)) }
    }
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
    /// reference. No path leads there, nor to the last reference of a future that has not ended.
    pub(crate) fn abort_if_it_has_wakers(&mut self) {
        debug_assert!(self.header.has_ended(), "a task is dropped before its end");
        if self.header.has_wakers() {
            process::abort();
        }
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

    /// Ends the task and returns its contents: the future, and the rest.
    ///
    /// # Panics
    /// If `owner` is that of another future.
    pub(crate) fn end<'a>(&'a self, owner: FutureOwner<'a>) -> (Last<'a, F, T, S>, T) {
        owner.assert_owns(&self.header);
        self.header.transition_to_done();
        let rest = self.contents.with_mut(|contents| {
            // SAFETY: the rest was the owner's, which was this cell's, as checked above. There is
            // no owner after `DONE`: it is not used in place again.
            unsafe { ManuallyDrop::take(&mut (*contents).rest) }
        });
        (Last { cell: self, _owns: PhantomData }, rest)
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
        self.0.transition_to_idle().ok_or(self)
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
