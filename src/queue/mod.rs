//! Tasks that wait for a worker: the injectors and the workers' local queues.
//!
//! Submissions from outside the pool enter the injector, a channel, which keeps their order (law 12). Tasks that a
//! worker's own tasks submit enter that worker's local queue. The worker pops from there first: its cache holds what it
//! has just written, and no other CPU takes part. A worker whose local queue and injector are empty steals from the
//! other workers, the oldest tasks first and several at a time. A worker that always has local tasks still checks the
//! injector at intervals, and one of the other workers in turn. So no task waits forever.
//!
//! While a worker's tasks are coarse and no idle worker may be woken, what it would push to its local queues enters the injectors
//! too. In local queues of different lengths some tasks would wait many times as long as others, and beside coarse tasks the
//! cost of an injector is small. The pusher decides that; here it only learns [whether its tasks are](pacing::Pacing::are_tasks_coarse).
//!
//! **Woken futures come before new tasks.** They were accepted and started before any task that is still queued, so they
//! have an injector and local queues of their own. Each worker takes a new task first once in [`TURN_INTERVAL`](local)
//! takes. So futures that always wake themselves delay new tasks, but not forever.
//!
//! A future that a poll wakes enters the polling worker's local queue. The worker takes it right after that poll. Every
//! other woken future enters the injector of woken futures, where each worker that ends a task finds it: the waker's
//! thread may be busy for long.
//!
//! No thread blocks here. Workers that find all queues empty park on the idle stack.
//!
//! # The table of local queues
//! A local queue lies in a slot of a table, which other workers walk without a lock. The table grows by blocks, which it
//! keeps: a block is added before the first push of a worker whose slot is there. A block has a word, and a slot for each bit of it.
//! The bit is set while the queue may hold items: its owner sets it before the first push, and clears it when it rests with an empty
//! queue. A walk visits the slots whose bits are set. So the cost of a walk depends on the workers that submit tasks now, and
//! otherwise only on the highest slot whose worker has ever submitted one: a word or two for each 64 slots. A new worker takes the
//! lowest free slot. A free slot keeps about 1.5 KiB, and no buffer.
//!
//! A thread that must find an item also finds the bit: it was set before the push.
//!
//! Tokio's and Go's schedulers have the same two levels and the same check at intervals. Here the local queues are
//! unbounded, and stealers can reach every task in them.

pub(crate) mod local;
#[cfg(elastipool_loom)]
pub(crate) mod model;
mod pacing;
pub(crate) mod ring;

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, OnceLock};

#[cfg(not(elastipool_loom))]
use crossbeam_channel as channel;
use crossbeam_utils::CachePadded;
#[cfg(elastipool_loom)]
use model::channel;

use crate::queue::ring::{Ring, Steal, Stealer};
use crate::sync::{AtomicUsize, Counter, Hint, Mutex, Ordering, yield_now};

/// The injectors and the table of local queues. See the [module's documentation](self).
///
/// In a local queue a woken future is a `W`, which can be smaller than a `T`. In the injector and for its taker it is a `T`: so
/// the channel's code is compiled once.
pub(crate) struct Queue<T, W = T> {
    new: Injector<T>,
    woken: Injector<T>,
    /// Whether a woken future may have been pushed so far. Hardly ever written, so it stays in each CPU's cache.
    has_woken: Hint,
    /// Whether the pool may have had a view so far.
    has_views: Hint,
    /// The table of local queues, in groups of 1, 2, 4, .. blocks. 16 groups have slots for more
    /// workers than a pool can have.
    table: [OnceLock<Group<T, W>>; 16],
    locals: Mutex<Locals<T, W>>,
    steals_in_transit: StealsInTransit,
}

/// The two ends of a channel.
struct Injector<T> {
    sender: channel::Sender<T>,
    receiver: channel::Receiver<T>,
}

impl<T> Injector<T> {
    fn new() -> Self {
        let (sender, receiver) = channel::unbounded();
        Injector { sender, receiver }
    }

    #[inline]
    fn push(&self, item: T) {
        if self.sender.send(item).is_err() {
            unreachable!("the queue holds a receiver");
        }
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Like [`pop`](Self::pop), but cheaper if the injector is empty: a receive that finds nothing fences, `is_empty` does not.
    fn look_and_pop(&self) -> Option<T> {
        if self.receiver.is_empty() { None } else { self.pop() }
    }
}

type Group<T, W> = Box<[Block<T, W>]>;

/// A block of the table of local queues.
struct Block<T, W> {
    /// A bit for each slot whose queue may hold items.
    occupied: CachePadded<AtomicUsize>,
    slots: [OnceLock<Arc<Node<T, W>>>; usize::BITS as usize],
}

/// A worker's local queues.
struct Rings<T, W> {
    new: Ring<T>,
    woken: Ring<W>,
}

/// A worker's local queues as other workers see them.
struct Node<T, W> {
    new: Stealer<T>,
    woken: Stealer<W>,
    /// Their slot in the table, counted from the first block's first.
    slot: usize,
    /// Counts the tasks that its worker has asked for. A worker whose count stands still is *stalled*: it runs a long task, has no
    /// CPU, or is gone.
    requests: CachePadded<Counter>,
}

/// The owner's side of a worker's local queues, and that of other workers.
type Sides<T, W> = (Rings<T, W>, Arc<Node<T, W>>);

/// The local queues that no worker owns.
struct Locals<T, W> {
    /// Those of free slots, by slot. They are empty, and their bits are clear.
    free: BTreeMap<usize, Sides<T, W>>,
    /// How many slots have ever been used.
    slots: usize,
}

impl<T: From<W>, W> Queue<T, W> {
    pub(crate) fn new() -> Self {
        let free = BTreeMap::new();
        let locals = Mutex::new(Locals { free, slots: 0 });
        let steals_in_transit =
            StealsInTransit { begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) };
        let queue = Queue {
            new: Injector::new(),
            woken: Injector::new(),
            has_woken: Hint::default(),
            has_views: Hint::default(),
            table: [const { OnceLock::new() }; 16],
            locals,
            steals_in_transit,
        };
        // The first block is there from the start: most pools need no other.
        queue.place_of(0);
        queue
    }

    /// Pushes a new task to the end of the injector.
    #[inline]
    pub(crate) fn push(&self, item: T) {
        self.new.push(item);
    }

    /// Pushes a woken future to the end of its injector.
    #[inline]
    pub(crate) fn push_woken(&self, item: W) {
        self.expect_woken();
        self.woken.push(item.into());
    }

    /// Pops the oldest item of an injector, that of the woken futures first. If both are empty, pops from the first local queue
    /// with an item.
    pub(crate) fn pop(&self) -> Option<T> {
        let local = |node: &Arc<Node<T, W>>| {
            steal_one(&node.woken).map(T::from).or_else(|| steal_one(&node.new))
        };
        self.pop_woken().or_else(|| self.new.pop()).or_else(|| self.nodes().find_map(local))
    }

    /// Pops every item of every queue, including the items that stealers move between queues meanwhile.
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

    fn pop_woken(&self) -> Option<T> {
        if self.may_have_woken() { self.woken.look_and_pop() } else { None }
    }

    /// Pops a new task of the injector. Not for a worker's last look before it rests.
    #[cold]
    pub(crate) fn pop_injected(&self) -> Option<T> {
        self.new.look_and_pop()
    }

    /// Whether all queues are empty. Says nothing of items that a stealer holds.
    ///
    /// Looks at the queue of a task before that of a future which the task's taker may have pushed (race 22).
    pub(crate) fn is_empty(&self) -> bool {
        self.new.receiver.is_empty()
            && self.nodes().all(|node| node.new.is_empty())
            && (!self.may_have_woken()
                || (self.woken.receiver.is_empty()
                    && self.nodes().all(|node| node.woken.is_empty())))
    }

    pub(crate) fn len(&self) -> usize {
        let local = |node: &Arc<Node<T, W>>| node.new.len() + node.woken.len();
        self.new.receiver.len() + self.woken.receiver.len() + self.nodes().map(local).sum::<usize>()
    }

    /// Called before a woken future is pushed. A thread that must find the future is ordered after the push, and so after
    /// this.
    #[inline]
    fn expect_woken(&self) {
        if !self.has_woken.get() {
            self.has_woken.set(true);
        }
    }

    /// Called before the first view exists. A thread that must find a view's task is ordered after its push, and so after
    /// this.
    pub(crate) fn expect_views(&self) {
        self.has_views.set(true);
    }

    /// Whether a woken future may have been pushed so far.
    #[inline]
    pub(crate) fn may_have_woken(&self) -> bool {
        self.has_woken.get()
    }

    /// Whether the pool may have had a view so far: then each task is taken through the policy of the views.
    #[inline]
    pub(crate) fn may_have_views(&self) -> bool {
        self.has_views.get()
    }

    /// Returns the slots of the workers with woken futures in their local queues, each with the number of its requests.
    pub(crate) fn observe_woken(&self) -> Vec<(usize, usize)> {
        let with_woken = self.nodes().filter(|node| !node.woken.is_empty());
        with_woken.map(|node| (node.slot, node.requests.get())).collect()
    }

    /// Iterates over the local queues that may hold items, in the order of their slots.
    fn nodes(&self) -> impl Iterator<Item = &Arc<Node<T, W>>> {
        self.blocks().flat_map(|block| {
            let mut occupied = block.occupied();
            iter::from_fn(move || {
                let slot = block.slots.get(occupied.trailing_zeros() as usize)?;
                occupied &= occupied - 1;
                Some(slot.get().expect("set before its bit"))
            })
        })
    }

    /// Iterates over the blocks of the table.
    fn blocks(&self) -> impl Iterator<Item = &Block<T, W>> {
        // A thread that must find an item is ordered after the block was added by what orders it after the push, a pair of
        // fences too.
        self.table.iter().map_while(OnceLock::get).flat_map(|group| group.iter())
    }

    /// Returns both sides of the local queues for a new worker.
    fn open_local(&self) -> Sides<T, W> {
        let mut locals = self.locals.lock();
        match locals.free.pop_first() {
            Some((_, local)) => local,
            None => {
                let rings = Rings { new: Ring::new(), woken: Ring::new() };
                let node = Arc::new(Node {
                    new: rings.new.stealer(),
                    woken: rings.woken.stealer(),
                    slot: locals.slots,
                    requests: CachePadded::default(),
                });
                locals.slots += 1;
                (rings, node)
            }
        }
    }

    /// Takes back a worker's local queues, and moves the items that they hold to the injectors. Returns whether there were any: then
    /// another worker must be notified of them.
    #[must_use]
    fn close_local(&self, rings: Rings<T, W>, node: Arc<Node<T, W>>) -> bool {
        let moved = {
            // As in a steal, no other thread finds an item that is moved.
            let _in_transit = self.steals_in_transit.begin();
            let woken =
                iter::from_fn(|| rings.woken.pop()).map(|item| self.woken.push(item.into()));
            let new = iter::from_fn(|| rings.new.pop()).map(|item| self.new.push(item));
            woken.count() + new.count()
        };
        self.clear_bit(node.slot);
        // A stealer that still reads a buffer needs a few instructions, but may have no CPU.
        while !(rings.new.release() && rings.woken.release()) {
            yield_now();
        }
        self.locals.lock().free.insert(node.slot, (rings, node));
        moved > 0
    }

    /// The owner of the node is about to push to its empty queue.
    #[cold]
    fn set_bit(&self, node: &Arc<Node<T, W>>) {
        let (block, bit) = self.place_of(node.slot);
        block.slots[bit].get_or_init(|| Arc::clone(node));
        // Release: publishes the node (`nodes`).
        block.occupied.fetch_or(1 << bit, Ordering::Release);
    }

    /// The owner of the slot has found its queue empty.
    ///
    /// A walk that misses this visits an empty queue. A walk that sees it finds no items either: before the next push the owner
    /// sets the bit again.
    #[cold]
    fn clear_bit(&self, slot: usize) {
        let (block, bit) = self.place_of(slot);
        // Release: passes on what a stealer released when it took the last items, that its steal has begun (race 24).
        block.occupied.fetch_and(!(1 << bit), Ordering::Release);
    }

    /// Returns the block of a slot, which is added to the table if needed, and the slot's number in it.
    fn place_of(&self, slot: usize) -> (&Block<T, W>, usize) {
        let (mut block, bit) = (slot / usize::BITS as usize, slot % usize::BITS as usize);
        for (number, group) in self.table.iter().enumerate() {
            let group = group.get_or_init(|| (0..1 << number).map(|_| Block::default()).collect());
            match group.get(block) {
                Some(block) => return (block, bit),
                None => block -= group.len(),
            }
        }
        unreachable!("no pool has as many workers")
    }
}

impl<T, W> Block<T, W> {
    /// Returns the bits of the slots whose queues may hold items.
    fn occupied(&self) -> usize {
        // Acquire: pairs with the releases in `set_bit`, for the nodes in these slots, and in `clear_bit`.
        // A model reads the latest value: outdated ones would multiply its executions by ten and more.
        #[cfg(elastipool_loom)]
        return self.occupied.fetch_add(0, Ordering::Acquire);
        #[cfg(not(elastipool_loom))]
        self.occupied.load(Ordering::Acquire)
    }
}

impl<T, W> Default for Block<T, W> {
    fn default() -> Self {
        let slots = [const { OnceLock::new() }; usize::BITS as usize];
        Block { occupied: CachePadded::default(), slots }
    }
}

fn steal_one<T>(stealer: &Stealer<T>) -> Option<T> {
    retry_while_contended(|| stealer.steal(1, |_| unreachable!("a steal of one item has no rest")))
}

/// Repeats `steal` while another thread interferes with it.
fn retry_while_contended<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(item) => return Some(item),
            Steal::Empty => return None,
            // The other thread needs a few instructions, but may have no CPU.
            Steal::Retry => yield_now(),
        }
    }
}

/// Counts the steals between local queues (race 24). No thread finds the items that a stealer moves until it has pushed
/// them.
///
/// Without the count, `shutdown_now` would return while a stealer still holds up to [`BATCH`](local) tasks: they would run
/// after the pool has handed back the others (law 8). It costs two additions for each steal, not for each task.
struct StealsInTransit {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// A steal that has begun. Dropping it counts the end.
struct StealInTransit<'a>(&'a StealsInTransit);

impl StealsInTransit {
    fn begin(&self) -> StealInTransit<'_> {
        // SeqCst: the changes of both counters have one order. A stealer counts the begin, takes the items by a
        // release, pushes them and counts the end. So a drainer that finds all queues empty has popped these items,
        // or sees that the steal has begun, or sees that it has ended since.
        self.begun.fetch_add(1, Ordering::SeqCst);
        StealInTransit(self)
    }

    /// Returns how many steals there have been, or `None` while one is in transit.
    fn settled(&self) -> Option<usize> {
        // SeqCst: as in `begin`. `ended` is loaded first: a steal that begins and ends between the loads makes them
        // differ.
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }
}

impl Drop for StealInTransit<'_> {
    fn drop(&mut self) {
        // SeqCst: as in `begin`.
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}
