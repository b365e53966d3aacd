//! Tasks that wait for a worker: the injector and the workers' local queues.
//!
//! Submissions from outside the pool enter the injector, a channel, which keeps their order (law 12). Tasks that a
//! worker's own tasks submit, and futures that they wake, enter that worker's local queue. The worker pops from there
//! first: its cache holds what it has just written, and no other CPU takes part. A worker whose local queue and
//! injector are empty steals from the other workers, the oldest tasks first and several at a time. A worker that
//! always has local tasks still checks the injector at intervals, and one of the other workers in turn. So no task
//! waits for ever.
//!
//! No thread blocks here. Workers that find all queues empty park on the idle stack.
//!
//! Tokio's and Go's schedulers have the same two levels and the same check at intervals. Here the local queues are
//! unbounded, and stealers can reach every task in them.

pub(crate) mod local;
#[cfg(elastipool_loom)]
mod model;
pub(crate) mod ring;

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
use crate::sync::{AtomicUsize, Counter, Mutex, Ordering, yield_now};

/// The injector and the list of all local queues. See the [module's documentation](self).
pub(crate) struct Queue<T> {
    /// The injector's two ends.
    sender: channel::Sender<T>,
    receiver: channel::Receiver<T>,
    /// The first node of the list of local queues. The list only grows.
    first: OnceLock<Arc<Node<T>>>,
    locals: Mutex<Locals<T>>,
    steals_in_transit: StealsInTransit,
}

/// A local queue as other workers see it.
struct Node<T> {
    stealer: Stealer<T>,
    next: OnceLock<Arc<Node<T>>>,
    /// Counts the tasks that its worker has asked for. A worker whose count stands still is *stalled*: it runs a long
    /// task, has no CPU, or is gone.
    requests: CachePadded<Counter>,
}

/// What opening and closing local queues changes.
struct Locals<T> {
    /// Both sides of the local queues whose workers have left. New workers reuse them.
    free: Vec<(Ring<T>, Arc<Node<T>>)>,
    /// The last node of the list.
    last: Option<Arc<Node<T>>>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel::unbounded();
        let locals = Mutex::new(Locals { free: Vec::new(), last: None });
        let steals_in_transit =
            StealsInTransit { begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) };
        Queue { sender, receiver, first: OnceLock::new(), locals, steals_in_transit }
    }

    /// Pushes to the end of the injector.
    #[inline]
    pub(crate) fn push(&self, item: T) {
        if self.sender.send(item).is_err() {
            unreachable!("the queue holds a receiver");
        }
    }

    /// Pops the oldest item of the injector or, if that is empty, of the first local queue that holds one.
    pub(crate) fn pop(&self) -> Option<T> {
        self.pop_injector().or_else(|| {
            self.nodes().find_map(|node| {
                retry_while_contended(|| node.stealer.steal(1, |_| unreachable!("one is one")))
            })
        })
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

    fn pop_injector(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Whether the injector and all local queues are empty. Says nothing of items that a stealer holds.
    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty() && self.nodes().all(|node| node.stealer.is_empty())
    }

    pub(crate) fn len(&self) -> usize {
        self.receiver.len() + self.nodes().map(|node| node.stealer.len()).sum::<usize>()
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<Node<T>>> {
        chain(self.first.get())
    }

    /// Returns both sides of a local queue for a new worker.
    fn open_local(&self) -> (Ring<T>, Arc<Node<T>>) {
        let mut locals = self.locals.lock();
        if let Some(local) = locals.free.pop() {
            return local;
        }
        let ring = Ring::new();
        let requests = CachePadded::new(Counter::default());
        let node = Arc::new(Node { stealer: ring.stealer(), next: OnceLock::new(), requests });
        let end = locals.last.as_ref().map_or(&self.first, |last| &last.next);
        let end = end.set(Arc::clone(&node));
        debug_assert!(end.is_ok(), "only changed under the lock");
        locals.last = Some(Arc::clone(&node));
        (ring, node)
    }

    /// Takes back a local queue.
    fn close_local(&self, ring: Ring<T>, node: Arc<Node<T>>) {
        self.locals.lock().free.push((ring, node));
    }
}

/// Iterates over the nodes from `first` to the end of the list.
fn chain<T>(first: Option<&Arc<Node<T>>>) -> impl Iterator<Item = &Arc<Node<T>>> {
    iter::successors(first, |node| node.next.get())
}

/// Repeats `steal` while another thread interferes with it.
fn retry_while_contended<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(item) => return Some(item),
            Steal::Empty => return None,
            Steal::Retry => yield_now(),
        }
    }
}

/// Counts the steals between local queues. No thread finds the items that a stealer moves until it has pushed them.
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
