//! What a model has instead of the system: the checker's primitives, what the model says of time,
//! and a stand-in for the injector's channel.
//!
//! All threads of a model run on one thread of the system, so a thread-local belongs to the model.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

#[cfg(not(elastipool_shuttle))]
pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::{
    sync as primitives,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    thread,
    thread::{JoinHandle as ThreadHandle, yield_now},
};

use crate::sync::parker::{Parker, Signal};

/// loom's macro does not know constants.
macro_rules! const_thread_local {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        loom::thread_local! { $($(#[$attribute])* static $name: $type = $value;)* }
    };
}
pub(crate) use const_thread_local as thread_local;

std::thread_local! {
    /// Refuses the next start of a thread.
    pub(crate) static REFUSE_NEXT: Cell<bool> = const { Cell::new(false) };

    /// Whether the model's pools have keepers. Most models are about what the other threads do: one
    /// more would multiply their executions. Without a keeper no time passes for which one is
    /// asked.
    pub(crate) static STARTS_KEEPER: Cell<bool> = const { Cell::new(false) };

    /// Whether the deadlines of all tasks have passed.
    pub(crate) static IS_DUE: Cell<bool> = const { Cell::new(false) };

    /// The parkers of waits whose deadlines the model may expire.
    static WAITS: RefCell<Vec<Weak<Parker>>> = const { RefCell::new(Vec::new()) };

    /// The interval at which workers check the injector and a stalled worker. `None`: they never
    /// do. A model affords few tasks, so those that explore these checks set a short one. In the
    /// others they would multiply the executions by a hundred.
    pub(crate) static SHORT_INTERVAL: Cell<Option<usize>> = const { Cell::new(None) };

    /// How long workers take their tasks to be, in nanoseconds: a model has no clock to measure
    /// them. At first neither short nor coarse.
    pub(crate) static TASK_NANOS: Cell<u32> = const { Cell::new(10_000) };
}

impl Parker {
    /// Expires the owner's deadline, if it waits with one.
    pub(crate) fn expire(&self) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.waiting && mailbox.timed && mailbox.signal.is_none() {
            mailbox.signal = Some(Signal::Expired);
            self.delivered.notify_one();
        }
    }
}

/// Lets [`expire_waits`] find the wait.
pub(crate) fn register_wait(parker: &Arc<Parker>) {
    WAITS.with_borrow_mut(|waits| waits.push(Arc::downgrade(parker)));
}

/// Expires the deadlines of all registered waits.
pub(crate) fn expire_waits() {
    WAITS.with_borrow_mut(|waits| waits.retain(|wait| wait.strong_count() > 0));
    let waits = WAITS.with_borrow(|waits| Vec::from_iter(waits.iter().filter_map(Weak::upgrade)));
    waits.iter().for_each(|parker| parker.expire());
}

/// A thread has no other thread-locals: the caller's scope drops the guard.
pub(crate) fn at_thread_exit<T: 'static>(guard: T) -> Option<T> {
    Some(guard)
}

/// Stands in for crossbeam's unbounded channel. A sender reserves a slot by a `SeqCst`
/// compare-exchange of the tail, writes the message and marks the slot as written. A receiver
/// fences before it compares head and tail. All orderings are crossbeam's, and there are no more: a
/// queue behind a lock would order everything around it and hide a lost wake-up. Messages lie in a
/// `std` type, which the model checker does not track.
pub(crate) mod channel {
    use std::sync::{Arc, Mutex};

    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

    struct Slot<T> {
        written: AtomicBool,
        message: Mutex<Option<T>>,
    }

    struct Channel<T> {
        head: AtomicUsize,
        tail: AtomicUsize,
        slots: Vec<Slot<T>>,
    }

    pub(crate) struct Sender<T>(Arc<Channel<T>>);
    pub(crate) struct Receiver<T>(Arc<Channel<T>>);

    pub(crate) fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
        let slot = |_| Slot { written: AtomicBool::new(false), message: Mutex::new(None) };
        let channel = Arc::new(Channel {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            // No model makes as many pushes to a channel in one run.
            slots: (0..if cfg!(elastipool_shuttle) { 64 } else { 12 }).map(slot).collect(),
        });
        (Sender(Arc::clone(&channel)), Receiver(channel))
    }

    fn advance(index: &AtomicUsize, from: usize) -> bool {
        index.compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    impl<T> Sender<T> {
        pub(crate) fn try_send(&self, item: T) -> Result<(), T> {
            let mut tail = self.0.tail.load(Ordering::Acquire);
            while !advance(&self.0.tail, tail) {
                tail = self.0.tail.load(Ordering::Acquire);
            }
            let slot = &self.0.slots[tail];
            *slot.message.lock().unwrap() = Some(item);
            slot.written.store(true, Ordering::Release);
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn try_recv(&self) -> Result<T, ()> {
            loop {
                let head = self.0.head.load(Ordering::Acquire);
                fence(Ordering::SeqCst);
                if head == self.0.tail.load(Ordering::Relaxed) {
                    return Err(());
                }
                if advance(&self.0.head, head) {
                    let slot = &self.0.slots[head];
                    while !slot.written.load(Ordering::Acquire) {
                        loom::thread::yield_now();
                    }
                    return Ok(slot.message.lock().unwrap().take().expect("written once"));
                }
            }
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.head.load(Ordering::SeqCst) == self.0.tail.load(Ordering::SeqCst)
        }

        pub(crate) fn len(&self) -> usize {
            self.0.tail.load(Ordering::SeqCst) - self.0.head.load(Ordering::SeqCst)
        }
    }
}
