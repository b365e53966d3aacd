//! A stand-in for the injector's channel in a model. It has the same orderings and no more: a queue
//! behind a lock would order everything around it and hide a lost wake-up.
//!
//! Messages lie in a `std` type, which the model checker does not track.

use std::cell::Cell;

std::thread_local! {
    /// The interval at which workers check the injector and a stalled worker. `None`: they never
    /// do. A model affords few tasks, so those that explore these checks set a short one. In the
    /// others they would multiply the executions by a hundred. All threads of a model run on one
    /// thread of the system.
    pub(crate) static SHORT_INTERVAL: Cell<Option<usize>> = const { Cell::new(None) };

    /// How long workers take their tasks to be, in nanoseconds: a model has no clock to measure
    /// them. At first neither short nor coarse.
    pub(crate) static TASK_NANOS: Cell<u32> = const { Cell::new(10_000) };
}

/// Stands in for crossbeam's unbounded channel. A sender reserves a slot by a `SeqCst`
/// compare-exchange of the tail, writes the message and marks the slot as written. A receiver
/// fences before it compares head and tail. All orderings are crossbeam's.
pub(super) mod channel {
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

    pub(in super::super) struct Sender<T>(Arc<Channel<T>>);
    pub(in super::super) struct Receiver<T>(Arc<Channel<T>>);

    pub(in super::super) fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
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
        pub(in super::super) fn try_send(&self, item: T) -> Result<(), T> {
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
        pub(in super::super) fn try_recv(&self) -> Result<T, ()> {
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

        pub(in super::super) fn is_empty(&self) -> bool {
            self.0.head.load(Ordering::SeqCst) == self.0.tail.load(Ordering::SeqCst)
        }

        pub(in super::super) fn len(&self) -> usize {
            self.0.tail.load(Ordering::SeqCst) - self.0.head.load(Ordering::SeqCst)
        }
    }
}
