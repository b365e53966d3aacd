//! The tasks that wait for a worker.
//!
//! Those that come from outside wait in one channel, in the order of their submission (law 12). Those that a worker's
//! own tasks submit, and the futures that they wake, wait in a queue of that worker, which it reads first: what it has
//! just written is in its cache, and no other CPU has to be asked for it. Whoever has nothing to do takes from the queues
//! of the others, the oldest first and several at a time. A worker that never runs out of its own work still looks into
//! the channel once in a while, and at the queue of one of the others, in turn: nothing waits for ever.
//!
//! Only queues: nobody ever blocks on them. Workers that find all of them empty park on the idle stack.
//!
//! The two levels and the occasional look at the common one are those of tokio's and Go's schedulers; here the
//! workers' queues are not bounded, and nothing in them is out of reach for the others.

pub(crate) mod ring;

use std::cell::Cell;
use std::iter;
use std::sync::Arc;
#[cfg(not(elastipool_loom))]
use std::sync::OnceLock;

#[cfg(not(elastipool_loom))]
use crossbeam_channel as channel;
use crossbeam_utils::CachePadded;
#[cfg(elastipool_loom)]
use model::{OnceLock, channel};

use crate::queue::ring::{Ring, Steal, Stealer};
use crate::sync::unwind::discard;
use crate::sync::{AtomicUsize, Counter, Mutex, Ordering, yield_now};

/// Each so many times a worker looks into the channel first, and each so many times at the queue of another. As in
/// tokio and Go; a prime, so that it does not fall into step with what the tasks do.
const INTERVAL: usize = 61;

/// How many tasks are taken from another worker at once, at most. More would be in nobody's reach for longer.
const BATCH: usize = 32;

/// How many queues of others are looked at, at most, to find one that is not empty and whose worker may be stuck.
const MAX_LOOKS: usize = 8;

/// See the [module's documentation](self).
pub(crate) struct Queue<T> {
    sender: channel::Sender<T>,
    receiver: channel::Receiver<T>,
    /// The first of the list of all workers' queues, which only grows.
    first: OnceLock<Arc<Node<T>>>,
    spares: Mutex<Spares<T>>,
    steals_in_transit: StealsInTransit,
}

/// Counts tasks on their way from one queue to another, where nobody finds them.
struct StealsInTransit {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

struct StealInTransit<'a>(&'a StealsInTransit);

impl StealsInTransit {
    fn begin(&self) -> StealInTransit<'_> {
        // Both are in one order with those of others, and what is taken from a queue is taken by a release, before the end
        // of the movement: whoever takes from all queues has either a task that comes out of a movement, or sees that it has
        // begun, or that it has ended since.
        self.begun.fetch_add(1, Ordering::SeqCst);
        StealInTransit(self)
    }

    /// How many there have been, if none is under way.
    fn settled(&self) -> Option<usize> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }
}

impl Drop for StealInTransit<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A worker's queue, for others.
struct Node<T> {
    stealer: Stealer<T>,
    next: OnceLock<Arc<Node<T>>>,
    /// How often its worker has asked for a task. One that does not ask is busy with a long one, or has no CPU, or is gone.
    asked: CachePadded<Counter>,
}

struct Spares<T> {
    /// The queues of workers that have left, for those that come.
    locals: Vec<Local<T>>,
    last: Option<Arc<Node<T>>>,
}

/// A worker's queue, for that worker.
pub(crate) struct Local<T> {
    own: Ring<T>,
    node: Arc<Node<T>>,
    /// Another worker's queue, and how often that one had asked when it was looked at last.
    observed: Cell<Option<(Arc<Node<T>>, usize)>>,
    /// Whether something that was meant for here has gone to the channel, since somebody asked.
    has_overflowed: Cell<bool>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel::unbounded();
        let spares = Mutex::new(Spares { locals: Vec::new(), last: None });
        let steals_in_transit =
            StealsInTransit { begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) };
        Queue { sender, receiver, first: OnceLock::new(), spares, steals_in_transit }
    }

    /// Adds to the end of the channel.
    #[inline]
    pub(crate) fn push(&self, item: T) {
        if self.sender.send(item).is_err() {
            unreachable!("the queue holds a receiver");
        }
    }

    /// Takes what has waited longest in the channel or, if that is empty, in one of the workers' queues.
    pub(crate) fn pop(&self) -> Option<T> {
        self.pop_injector().or_else(|| {
            self.nodes().find_map(|node| {
                retry_while_contended(|| node.stealer.steal(1, |_| unreachable!("one is one")))
            })
        })
    }

    /// Takes everything that is in any queue, also what is moved from one to another meanwhile.
    pub(crate) fn drain(&self, mut each: impl FnMut(T)) {
        loop {
            let before = self.steals_in_transit.settled();
            while let Some(item) = self.pop() {
                each(item);
            }
            if before.is_some() && self.steals_in_transit.settled() == before {
                return;
            }
            yield_now();
        }
    }

    fn pop_injector(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty() && self.nodes().all(|node| node.stealer.is_empty())
    }

    pub(crate) fn len(&self) -> usize {
        self.receiver.len() + self.nodes().map(|node| node.stealer.len()).sum::<usize>()
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<Node<T>>> {
        chain(self.first.get())
    }

    /// A queue for a worker that comes.
    pub(crate) fn open_local(&self) -> Local<T> {
        let mut spares = self.spares.lock();
        if let Some(local) = spares.locals.pop() {
            return local;
        }
        let own = Ring::new();
        let asked = CachePadded::new(Counter::default());
        let node = Arc::new(Node { stealer: own.stealer(), next: OnceLock::new(), asked });
        let end = spares.last.as_ref().map_or(&self.first, |last| &last.next);
        let end = end.set(Arc::clone(&node));
        debug_assert!(end.is_ok(), "only changed under the lock");
        spares.last = Some(Arc::clone(&node));
        Local { own, node, observed: Cell::new(None), has_overflowed: Cell::new(false) }
    }

    /// Takes back the queue of a worker that has left. What is in it is there for all others, and for whoever has the queue
    /// next.
    pub(crate) fn close_local(&self, local: Local<T>) {
        local.shrink();
        self.spares.lock().locals.push(local);
    }
}

impl<T> Local<T> {
    /// Adds what `make` makes: to the end, or to the end of the channel if somebody is stealing just when there is no
    /// capacity. `false` in that case.
    #[inline]
    pub(crate) fn push(&self, queue: &Queue<T>, make: impl FnOnce() -> T) -> bool {
        let pushed = self.own.push(make).map_err(|make| {
            queue.push(make());
            self.has_overflowed.set(true);
        });
        pushed.is_ok()
    }

    /// Whether it is time to look whether another worker needs help, before the next [`pop`](Self::pop).
    #[inline]
    pub(crate) fn take_turn_of_others(&self) -> bool {
        let asked = &self.node.asked;
        let is_turn = asked.get() % INTERVAL == INTERVAL / 2;
        if is_turn {
            // Asked once.
            asked.add_alone(1);
        }
        is_turn
    }

    /// Takes the next task from here, or from the channel.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T>) -> Option<T> {
        let asked = &self.node.asked;
        asked.add_alone(1);
        if asked.get() % INTERVAL == 0 {
            self.own.shrink();
            if let Some(item) = queue.pop_injector() {
                return Some(item);
            }
        }
        if let Some(item) = self.own.pop() {
            return Some(item);
        }
        queue.pop_injector()
    }

    /// Takes tasks, as [`steal`](Self::steal) does, from a worker that has not asked for any itself between this call
    /// and the one before. Each call looks at one of the others, in turn, and chooses the next: one that has tasks, if
    /// there is one among some.
    pub(crate) fn steal_from_stalled(&self, queue: &Queue<T>) -> Option<T> {
        let last = self.observed.take();
        let last = last.as_ref().map(|(other, asked)| (other, *asked));
        let stuck = last.filter(|(other, asked)| other.asked.get() == *asked);
        let stolen = stuck.map(|(other, _)| self.steal_from(other, queue));
        let last = last.map_or(&self.node, |(other, _)| other);
        let mut next = None;
        let others = chain(last.next.get()).chain(queue.nodes());
        for other in others.filter(|other| !Arc::ptr_eq(other, &self.node)).take(MAX_LOOKS) {
            next = Some((Arc::clone(other), other.asked.get()));
            if !other.stealer.is_empty() {
                break;
            }
        }
        self.observed.set(next);
        match stolen {
            Some(Steal::Success(item)) => Some(item),
            // If somebody else is at it, the next time.
            _ => None,
        }
    }

    /// Takes a task from another worker's queue, and perhaps some more into this one.
    pub(crate) fn steal(&self, queue: &Queue<T>) -> Option<T> {
        retry_while_contended(|| {
            // From the next one on, so that not all go to the same.
            let before = queue.nodes().take_while(|other| !Arc::ptr_eq(other, &self.node));
            let mut found = Steal::Empty;
            for other in chain(self.node.next.get()).chain(before) {
                match self.steal_from(other, queue) {
                    Steal::Empty => {}
                    // Somebody else is at this one: on to the next, and round again if none of them has anything.
                    Steal::Retry => found = Steal::Retry,
                    success => return success,
                }
            }
            found
        })
    }

    fn steal_from(&self, other: &Node<T>, queue: &Queue<T>) -> Steal<T> {
        if other.stealer.is_empty() {
            return Steal::Empty;
        }
        let _moving = queue.steals_in_transit.begin();
        other.stealer.steal(BATCH, |item| {
            self.push(queue, || item);
        })
    }

    /// Takes what `is_stale` from the new end and then from the old one, at most `limit` items, and drops it. Returns how
    /// many items that were.
    pub(crate) fn skip(&self, limit: usize, is_stale: impl Fn(&T) -> bool) -> usize {
        let newest = iter::from_fn(|| self.own.pop_newest_if(&is_stale));
        let oldest = iter::from_fn(|| self.own.pop_oldest_if(&is_stale));
        newest.chain(oldest).take(limit).map(discard).count()
    }

    /// Whether there is more of what was pushed: here or, since this was asked last, in the channel.
    #[inline]
    pub(crate) fn take_has_work(&self) -> bool {
        self.has_overflowed.take() || !self.own.is_empty()
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn shrink(&self) {
        self.own.shrink();
    }
}

fn chain<T>(first: Option<&Arc<Node<T>>>) -> impl Iterator<Item = &Arc<Node<T>>> {
    iter::successors(first, |node| node.next.get())
}

/// Tries again as long as others are quicker.
fn retry_while_contended<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(item) => return Some(item),
            Steal::Empty => return None,
            Steal::Retry => yield_now(),
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::iter;

    use super::{Local, Queue};
    use crate::queue::ring::Steal;

    fn fill(local: &Local<u32>, queue: &Queue<u32>, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            assert!(local.push(queue, || number));
        }
    }

    #[test]
    fn only_one_that_is_stuck_is_relieved() {
        let queue = Queue::new();
        let (mine, other) = (queue.open_local(), queue.open_local());
        fill(&other, &queue, 0..10);
        assert_eq!(mine.steal_from_stalled(&queue), None, "it is looked at for the first time");
        for number in 0..3 {
            assert_eq!(other.pop(&queue), Some(number));
            assert_eq!(mine.steal_from_stalled(&queue), None, "it has asked since");
        }
        assert_eq!(mine.steal_from_stalled(&queue), Some(3));
        // Half of the seven, of which one has been returned.
        assert!(iter::from_fn(|| mine.pop(&queue)).eq(4..7));
        assert_eq!(mine.steal_from_stalled(&queue), Some(7), "it is still stuck");
    }

    #[test]
    fn each_of_the_others_is_looked_at_in_turn() {
        let queue = Queue::new();
        let locals: [_; 20] = std::array::from_fn(|_| queue.open_local());
        let (greedy, mine, stuck) = (&locals[0], &locals[1], &locals[19]);
        fill(stuck, &queue, [1]);
        // The first one has always something, and never asks.
        let found = (0..10).any(|_| {
            fill(greedy, &queue, [0]);
            mine.steal_from_stalled(&queue) == Some(1)
        });
        assert!(found);
    }

    #[test]
    fn nobody_is_relieved_where_nobody_else_is() {
        let queue = Queue::new();
        let mine = queue.open_local();
        fill(&mine, &queue, [1]);
        for _ in 0..3 {
            assert_eq!(mine.steal_from_stalled(&queue), None);
        }
    }

    #[test]
    fn what_does_not_fit_goes_to_the_channel() {
        let queue = Queue::new();
        let local = queue.open_local();
        fill(&local, &queue, [0; 64]);
        assert_eq!(queue.len(), 64, "it is full");
        // While somebody steals, it does not grow.
        let stolen = local.node.stealer.steal(2, |_| assert!(!local.push(&queue, || 1)));
        assert_eq!(stolen, Steal::Success(0));
        assert_eq!(queue.receiver.len(), 1);
        assert!(iter::from_fn(|| local.own.pop()).eq([0; 62]));
        assert!(local.take_has_work(), "in the channel");
        assert!(!local.take_has_work(), "asked once");
        assert_eq!(local.pop(&queue), Some(1));
        assert!(local.push(&queue, || 2));
    }
}

/// Stand-ins for the channel and the list of queues in models, with the same orderings and no more: a queue behind a lock
/// would order everything around it and hide a lost wake-up.
///
/// The messages themselves pass through locks that the model checker does not see.
#[cfg(elastipool_loom)]
mod model {
    use loom::sync::atomic::{AtomicBool, Ordering};

    /// More pushes than any model makes.
    const SLOTS: usize = 12;

    /// For the standard library's: whoever sees that it is set acquires what led to it.
    pub(super) struct OnceLock<T> {
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(super) fn new() -> Self {
            OnceLock { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
        }

        pub(super) fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        pub(super) fn set(&self, value: T) -> Result<(), T> {
            self.value.set(value)?;
            self.is_set.store(true, Ordering::Release);
            Ok(())
        }
    }

    /// For crossbeam's unbounded channel: a sender reserves its slot by moving the tail with a `SeqCst`
    /// compare-exchange, writes the message and then marks the slot as written; a receiver fences before it compares
    /// head and tail.
    pub(super) mod channel {
        use std::sync::{Arc, Mutex};

        use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

        use super::SLOTS;

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
                slots: (0..SLOTS).map(slot).collect(),
            });
            (Sender(Arc::clone(&channel)), Receiver(channel))
        }

        fn advance(index: &AtomicUsize, from: usize) -> bool {
            index.compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        }

        impl<T> Sender<T> {
            pub(in super::super) fn send(&self, item: T) -> Result<(), T> {
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
}
