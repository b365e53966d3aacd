//! What connects a task and its handle: the [`Promise`] that delivers the result, and [`Cancel`] to cancel the task.
//!
//! Dropping a promise without settling it resolves the handle to cancelled, so no handle waits for ever (law 2).
//!
//! A recursion that waits for its halves makes and drops many channels, mostly of one type. So a thread keeps those that it did
//! not need, because it has run the task itself.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use futures_channel::oneshot;

use crate::sync::thread_local;
use crate::sync::unwind::{Payload, quietly};

/// Bounds the unused channels that a thread keeps. A recursion has about as many at a time as it is deep.
const MAX_KEPT: usize = 32;

/// The largest result, in bytes, whose channels are kept: a channel has space for it.
const MAX_KEPT_SIZE: usize = 128;

/// After this many channels in a row of other types, the kept ones make way. Fewer would replace them again and again where the
/// types alternate.
const MAX_OTHERS: usize = 32;

thread_local! {
    /// The calling thread's unused channels.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static KEPT: RefCell<Option<Kept>> = RefCell::new(None);
}

/// Unused channels for one type of result.
struct Kept {
    /// A `Vec<Unused<T>>`.
    channels: Box<dyn Any>,
    /// How many channels of other types were dropped since one was kept.
    others: usize,
}

impl Kept {
    fn of_type<T: 'static>(&mut self) -> Option<&mut Vec<Unused<T>>> {
        self.channels.downcast_mut()
    }
}

/// A task, as seen by its handle.
pub(crate) trait Cancel: Send + Sync {
    /// Cancels the task: it is not started, or not polled again. Settles the promise at once unless the task is
    /// running.
    fn cancel(self: Arc<Self>);

    /// As [`cancel`](Self::cancel), but drops a task that no thread runs, if it knows its pool.
    fn cancel_now(self: Arc<Self>) {
        self.cancel();
    }
}

/// The handle's end of a [`Promise`].
pub(crate) type Receiver<T> = oneshot::Receiver<Result<T, Payload>>;

/// A channel that nothing was sent through, and whose receiver was never polled.
type Unused<T> = (Promise<T>, Receiver<T>);

/// A result, and the promise that it did not need.
pub(crate) type Delivered<T> = (Result<T, Payload>, Promise<T>);

/// The task's end: settle it with the result, or drop it to resolve the handle to cancelled.
pub(crate) struct Promise<T>(oneshot::Sender<Result<T, Payload>>);

impl<T> Promise<T> {
    /// Not inlined: many tasks have results of one type.
    #[inline(never)]
    pub(crate) fn new() -> (Self, Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Promise(sender), receiver)
    }

    /// As [`new`](Self::new), but takes a channel that the calling thread has [kept](Self::keep), if there is one.
    #[inline(never)]
    pub(crate) fn kept_or_new() -> (Self, Receiver<T>)
    where
        T: 'static,
    {
        let take = |kept: &RefCell<Option<Kept>>| kept.borrow_mut().as_mut()?.of_type()?.pop();
        KEPT.try_with(take).ok().flatten().unwrap_or_else(Promise::new)
    }

    /// Keeps a channel for the next task that the calling thread submits: to make and drop one takes 14 locked instructions.
    ///
    /// `receiver` must be this promise's, and must not have been polled: the channel would keep the waker, and wake it for
    /// another task.
    pub(crate) fn keep(self, receiver: Receiver<T>)
    where
        T: 'static,
    {
        if size_of::<T>() > MAX_KEPT_SIZE {
            return;
        }
        let unused = (self, receiver);
        // What is dropped under the borrow runs no user code: it holds neither a result nor a waker.
        let _ = KEPT.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            if let Some(kept) = kept {
                if let Some(channels) = kept.of_type() {
                    if channels.len() < MAX_KEPT {
                        channels.push(unused);
                    }
                    kept.others = 0;
                    return;
                }
                kept.others += 1;
                if kept.others < MAX_OTHERS {
                    return;
                }
            }
            *kept = Some(Kept { channels: Box::new(vec![unused]), others: 0 });
        });
    }

    /// Delivers the result, or returns it if the handle is gone. Contains panics, since this may call the waker of a
    /// foreign executor that polls the handle.
    pub(crate) fn settle(self, result: Result<T, Payload>) -> Option<Result<T, Payload>> {
        let mut refused = None;
        quietly(|| refused = self.0.send(result).err());
        refused
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{KEPT, MAX_KEPT, MAX_KEPT_SIZE, MAX_OTHERS, Promise, Unused};

    /// How many channels for results of type `T` the thread keeps.
    fn kept<T: 'static>() -> usize {
        KEPT.with_borrow_mut(|kept| kept.as_mut()?.of_type::<T>().map(|kept| kept.len()))
            .unwrap_or(0)
    }

    fn keep<T: 'static>(count: usize) {
        let made: Vec<Unused<T>> = (0..count).map(|_| Promise::new()).collect();
        made.into_iter().for_each(|(promise, receiver)| promise.keep(receiver));
    }

    #[test]
    fn a_kept_channel_is_used_again() {
        keep::<u32>(2);
        assert_eq!(kept::<u32>(), 2);
        for left in [1, 0, 0] {
            let (promise, mut receiver) = Promise::<u32>::kept_or_new();
            assert_eq!(kept::<u32>(), left);
            assert!(matches!(receiver.try_recv(), Ok(None)));
            assert!(promise.settle(Ok(7)).is_none());
            assert!(matches!(receiver.try_recv(), Ok(Some(Ok(7)))));
        }
    }

    #[test]
    fn a_thread_keeps_few_channels_and_small_ones() {
        keep::<u32>(MAX_KEPT + 1);
        assert_eq!(kept::<u32>(), MAX_KEPT);
        keep::<[u8; MAX_KEPT_SIZE + 1]>(2 * MAX_OTHERS);
        assert_eq!(kept::<u32>(), MAX_KEPT);
    }

    #[test]
    fn channels_of_another_type_make_way_in_time() {
        keep::<u32>(1);
        for _ in 0..2 * MAX_OTHERS {
            keep::<u8>(MAX_OTHERS - 1);
            keep::<u32>(1);
        }
        assert_eq!((kept::<u32>(), kept::<u8>()), (MAX_KEPT, 0));
        keep::<u8>(MAX_OTHERS);
        assert_eq!((kept::<u32>(), kept::<u8>()), (0, 1));
    }
}
