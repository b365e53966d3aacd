//! One slot of the ring. Its callers know whether it holds an item and which thread may touch it.

use std::mem::MaybeUninit;

use crate::sync::UnsafeCell;

/// Holds an item if its position is between `head` and `tail`.
pub(super) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The slot holds an item that is not read out again, and no other thread touches the slot
    /// during the call.
    #[inline]
    pub(super) unsafe fn read(&self) -> T {
        self.0.with_mut(|slot| {
            // SAFETY: the caller's promise.
            unsafe { (*slot).assume_init_read() }
        })
    }

    /// # Safety
    /// The slot holds an item. No thread writes to the slot or reads the item out before `look`
    /// returns.
    #[inline]
    pub(super) unsafe fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.0.with(|slot| {
            // SAFETY: the caller's promise.
            look(unsafe { (*slot).assume_init_ref() })
        })
    }

    /// # Safety
    /// No other thread touches the slot during the call.
    #[inline(always)]
    pub(super) unsafe fn write(&self, item: T) {
        self.0.with_mut(|slot| {
            // SAFETY: the caller's promise.
            unsafe { (*slot).write(item) };
        });
    }
}
