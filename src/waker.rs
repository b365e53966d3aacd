//! The wakers of futures: a wake puts a future back into the queue (feature `async`).
//!
//! A waker is a pointer to the task, which its cell counts.
#![allow(unsafe_code, reason = "no allocation for a waker; see the SAFETY comments")]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use futures_task::WakerRef;

use crate::task::{Wakeable, WakerDropped};

/// Returns a waker for a poll. Its clones are counted.
pub(crate) fn lend_waker<T: Wakeable>(task: &Arc<T>) -> WakerRef<'_> {
    let waker = RawWaker::new(Arc::as_ptr(task).cast(), Vtable::<T>::WAKER);
    // SAFETY: the functions are those of a task of this type. The waker is not counted, and not
    // dropped; it lives as long as the reference that the caller has.
    WakerRef::new_unowned(ManuallyDrop::new(unsafe { Waker::from_raw(waker) }))
}

/// What the wakers of a `T` do. They are called with a pointer to a task that exists, from a
/// counted waker or one that is lent: see the documentation of
/// `task/future_cell.rs`.
struct Vtable<T>(PhantomData<T>);

impl<T: Wakeable> Vtable<T> {
    const WAKER: &'static RawWakerVTable =
        &RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    unsafe fn clone(task: *const ()) -> RawWaker {
        // SAFETY: the task exists.
        unsafe { &*task.cast::<T>() }.header().add_waker();
        RawWaker::new(task, Self::WAKER)
    }

    unsafe fn wake(task: *const ()) {
        // SAFETY: the waker is counted until `drop`: a submitted task may end at once, and its
        // route is used after that.
        unsafe {
            Self::wake_by_ref(task);
            Self::drop(task);
        }
    }

    unsafe fn wake_by_ref(task: *const ()) {
        let pointer = task.cast::<T>();
        // SAFETY: the task exists.
        let task = unsafe { &*pointer };
        if task.header().transition_to_scheduled() {
            // SAFETY: the owner of the idle future has forgotten it, and this is the only value for
            // it. The pointer is that of an `Arc`.
            task.submit(unsafe { Arc::from_raw(pointer) });
        }
    }

    unsafe fn drop(task: *const ()) {
        let pointer = task.cast::<T>();
        // SAFETY: the task exists.
        let dropped = unsafe { &*pointer }.header().remove_waker();
        if dropped != WakerDropped::Other {
            // SAFETY: the owner of the idle future has forgotten it, or the last owner has left it.
            // This is the only value for it. The pointer is that of an `Arc`.
            drop_last_waker(unsafe { Arc::from_raw(pointer) }, dropped);
        }
    }
}

/// Race 46: the last waker is dropped. Queues a future that was idle, for the worker that drops it.
#[cold]
fn drop_last_waker<T: Wakeable>(task: Arc<T>, dropped: WakerDropped) {
    if dropped == WakerDropped::Submit {
        let task_of_submitter = Arc::clone(&task);
        task_of_submitter.submit(task);
    }
}
