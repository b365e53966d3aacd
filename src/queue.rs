//! The tasks that wait for a worker, in the order of their submission (law 12).
//!
//! Only the queue: nobody ever blocks on it. Workers that find it empty park on the idle stack.

#[cfg(not(elastipool_loom))]
use crossbeam_channel as channel;
#[cfg(elastipool_loom)]
use model as channel;

/// See the [module's documentation](self).
pub(crate) struct Queue<T> {
    sender: channel::Sender<T>,
    receiver: channel::Receiver<T>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel::unbounded();
        Queue { sender, receiver }
    }

    pub(crate) fn push(&self, item: T) {
        if self.sender.send(item).is_err() {
            unreachable!("the queue holds a receiver");
        }
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.receiver.len()
    }
}

/// A stand-in for crossbeam's unbounded channel in models, with the same orderings and no more: a
/// sender reserves its slot by moving the tail with a `SeqCst` compare-exchange, writes the message
/// and then marks the slot as written; a receiver fences before it compares head and tail. A queue
/// behind a lock would order everything around it and hide a lost wake-up.
///
/// The message itself passes through a lock that loom does not see.
#[cfg(elastipool_loom)]
mod model {
    use std::sync::{Arc, Mutex};

    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

    /// More pushes than any model makes.
    const SLOTS: usize = 12;

    struct Slot<T> {
        written: AtomicBool,
        message: Mutex<Option<T>>,
    }

    struct Channel<T> {
        head: AtomicUsize,
        tail: AtomicUsize,
        slots: Vec<Slot<T>>,
    }

    pub(super) struct Sender<T>(Arc<Channel<T>>);
    pub(super) struct Receiver<T>(Arc<Channel<T>>);

    pub(super) fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
        let slot = |_| Slot { written: AtomicBool::new(false), message: Mutex::new(None) };
        let channel = Arc::new(Channel {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            slots: (0..SLOTS).map(slot).collect(),
        });
        (Sender(Arc::clone(&channel)), Receiver(channel))
    }

    fn advance(index: &AtomicUsize, from: usize) -> bool {
        index.compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    impl<T> Sender<T> {
        pub(super) fn send(&self, item: T) -> Result<(), T> {
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
        pub(super) fn try_recv(&self) -> Result<T, ()> {
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

        pub(super) fn is_empty(&self) -> bool {
            self.0.head.load(Ordering::SeqCst) == self.0.tail.load(Ordering::SeqCst)
        }

        pub(super) fn len(&self) -> usize {
            self.0.tail.load(Ordering::SeqCst) - self.0.head.load(Ordering::SeqCst)
        }
    }
}
