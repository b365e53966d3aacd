//! A worker's local queues: push, pop, steal, and steal from a stalled worker.

use std::cell::Cell;
use std::iter;
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use crate::queue::pacing::Pacing;
use crate::queue::ring::{Ring, Steal};
use crate::queue::{Kind, Node, Queue, retry_while_contended};
use crate::sync::yield_now;

/// Once in this many requests a worker takes a new task before woken futures, and once a woken
/// future of the injector before local ones. With a smaller number, a backlog of long tasks would
/// delay futures that always wake each other; with a larger one, those would delay the others more.
///
/// A model affords few tasks, so there it is each second request.
const TURN_INTERVAL: usize = if cfg!(elastipool_loom) { 2 } else { 16 };

/// Whether a worker takes a new task first at its request number `request`.
#[inline]
pub(crate) fn is_turn_of_new(request: usize) -> bool {
    request % TURN_INTERVAL == TURN_INTERVAL - 1
}

/// Bounds the tasks that one steal moves. Until the stealer has pushed them, no other worker can
/// take them.
pub(super) const BATCH: usize = 32;

/// A worker's local queues as the worker sees them.
pub(crate) struct Local<T> {
    /// One for each [`Kind`].
    rings: [Ring<T>; 2],
    node: Arc<Node<T>>,
    is_listed: Cell<bool>,
    /// The place in the list of the worker that the next check compares, and its number of requests
    /// when it was observed.
    observed: Cell<(usize, usize)>,
    pub(crate) pacing: Pacing,
    /// Whether the next new task is one of the injector, if it holds any.
    is_injector_due: Cell<bool>,
}

impl<T> Local<T> {
    /// Opens a local queue for a new worker: one of a worker that has left, if there is any.
    pub(crate) fn open(queue: &Queue<T>) -> Self {
        queue.free.lock().pop().unwrap_or_else(Self::new)
    }

    fn new() -> Self {
        let rings = [Ring::new(), Ring::new()];
        let stealers = [rings[0].stealer(), rings[1].stealer()];
        Local {
            rings,
            node: Arc::new(Node {
                stealers,
                requests: CachePadded::default(),
                next: OnceLock::new(),
            }),
            is_listed: Cell::new(false),
            observed: Cell::new((0, usize::MAX)),
            pacing: Pacing::new(),
            is_injector_due: Cell::new(false),
        }
    }

    /// Closes the local queue of a worker that leaves, and frees its buffers. Moves the items that
    /// it still holds to the injectors. Returns whether there were any: then another worker must be
    /// notified of them.
    #[must_use]
    pub(crate) fn close(self, queue: &Queue<T>) -> bool {
        let has_moved = {
            let _moves = queue.moves.read();
            self.inject(queue, Kind::Woken) | self.inject(queue, Kind::New)
        };
        // A stealer that still reads a buffer needs a few instructions, but may have no CPU.
        while !self.rings.iter().all(Ring::release) {
            yield_now();
        }
        self.pacing.forget();
        queue.free.lock().push(self);
        has_moved
    }

    /// Pushes the item that `make` makes. If the ring is full and a stealer is in it, pushes to the
    /// injector instead and returns `false`.
    ///
    /// Always inlined: a call would copy the item.
    #[inline(always)]
    pub(crate) fn push_with(&self, queue: &Queue<T>, kind: Kind, make: impl FnOnce() -> T) -> bool {
        if !self.is_listed.replace(true) {
            queue.list(Arc::clone(&self.node));
        }
        queue.expect(kind);
        let pushed = self.rings[kind as usize].push_with(make);
        pushed.map_err(|make| queue.injectors[kind as usize].push(make())).is_ok()
    }

    /// Moves the local woken futures to their injector, because this worker may not take them soon.
    /// Returns whether there were any: then another worker must be notified of them. A shutdown
    /// that misses one on its way has cancelled it before (race 24).
    #[must_use]
    pub(crate) fn share_woken(&self, queue: &Queue<T>) -> bool {
        queue.may_have_woken() && self.inject(queue, Kind::Woken)
    }

    /// Moves all local items of a kind to the injector. Returns whether there were any.
    fn inject(&self, queue: &Queue<T>, kind: Kind) -> bool {
        let items = iter::from_fn(|| self.rings[kind as usize].pop());
        items.map(|item| queue.injectors[kind as usize].push(item)).count() > 0
    }

    /// Begins a request, which [`pop`](Self::pop) continues. Returns whether a check is due: then
    /// the caller calls [`check`](Self::check) before. `run_count` is how many tasks the worker has
    /// run.
    #[inline]
    #[must_use]
    pub(crate) fn begin_request(&self, run_count: usize) -> bool {
        self.node.requests.add_alone(1);
        self.pacing.is_check_due(run_count)
    }

    /// Pops a woken future or, if there is none, a new task; the local one first, which is in the
    /// CPU's cache. New tasks come first at intervals, and if the worker's last poll `has_yielded`.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T>, has_yielded: bool) -> Option<T> {
        if queue.may_have_woken() {
            let injected = || queue.injectors[Kind::Woken as usize].look_and_pop();
            let local = || self.rings[Kind::Woken as usize].pop();
            let request = self.node.requests.get();
            let in_turn = if request % TURN_INTERVAL == 0 {
                // A future that wakes itself stays in the local queue, and must not keep the worker
                // from one of the injector.
                injected()
            } else if has_yielded || is_turn_of_new(request) {
                self.pop_new(queue)
            } else {
                None
            };
            let item = in_turn.or_else(local).or_else(injected);
            if item.is_some() {
                return item;
            }
        }
        self.pop_new(queue)
    }

    /// Pops a new task, the local one first unless a check of the injector is due.
    #[inline]
    fn pop_new(&self, queue: &Queue<T>) -> Option<T> {
        if self.is_injector_due.get() {
            self.is_injector_due.set(false);
            if let Some(item) = queue.pop_injected(Kind::New) {
                return Some(item);
            }
        }
        let local = self.rings[Kind::New as usize].pop();
        local.or_else(|| queue.injectors[Kind::New as usize].pop())
    }

    /// Begins a check: the injector is due, and memory that the queue no longer needs is freed.
    /// Steals, as [`steal`](Self::steal) does, from the worker that was observed last if it has
    /// asked for no task since. Observes the next one.
    #[cold]
    pub(crate) fn check(&self, queue: &Queue<T>) -> Option<T> {
        self.is_injector_due.set(true);
        self.shrink();
        let (place, requests) = self.observed.get();
        let mut others = queue.nodes().skip(place);
        let observed = others.next().filter(|other| other.requests.get() == requests);
        let (next, place) = match others.next() {
            Some(next) => (next, place + 1),
            None => (queue.nodes().next()?, 0),
        };
        self.observed.set((place, next.requests.get()));
        match self.steal_from(observed?, queue) {
            Steal::Success(item) => Some(item),
            // A contended queue waits for a later check.
            _ => None,
        }
    }

    /// Steals a task from another worker, and moves up to `BATCH - 1` more into this queue.
    pub(crate) fn steal(&self, queue: &Queue<T>) -> Option<T> {
        retry_while_contended(|| {
            // Not from the start of the list: the stealers would all try the same queue first.
            let (place, _) = self.observed.get();
            let mut found = Steal::Empty;
            for other in queue.nodes().skip(place).chain(queue.nodes().take(place)) {
                match self.steal_from(other, queue) {
                    Steal::Empty => {}
                    // Try the other queues before this one again.
                    Steal::Retry => found = Steal::Retry,
                    success => return success,
                }
            }
            found
        })
    }

    /// Steals woken futures or, if there are none, new tasks. Steals nothing from this worker
    /// itself.
    fn steal_from(&self, other: &Arc<Node<T>>, queue: &Queue<T>) -> Steal<T> {
        if Arc::ptr_eq(other, &self.node) {
            return Steal::Empty;
        }
        for kind in Kind::ALL {
            let from = &other.stealers[kind as usize];
            if from.is_empty() {
                continue;
            }
            // While a drain goes on, there is nothing to steal.
            let Ok(_moves) = queue.moves.try_read() else { return Steal::Empty };
            match from.steal(BATCH, |item| _ = self.push_with(queue, kind, || item)) {
                Steal::Empty => {}
                found => return found,
            }
        }
        Steal::Empty
    }

    /// Pops the newest new task if `wanted` returns `true` for it. `None` also while a stealer is
    /// in the ring.
    pub(crate) fn pop_newest_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.rings[Kind::New as usize].pop_newest_if(wanted)
    }

    /// Returns how many new tasks are in the local queue. Stealers may take some meanwhile.
    pub(crate) fn len_of_new(&self) -> usize {
        self.node.stealers[Kind::New as usize].len()
    }

    /// Whether something is left in the local queue, or in an injector, where a push of this worker
    /// may have gone.
    pub(crate) fn leaves_items(&self, queue: &Queue<T>) -> bool {
        let is_injected = || queue.injectors.iter().any(|injector| !injector.is_empty());
        self.rings.iter().any(|ring| !ring.is_empty()) || is_injected()
    }

    /// Prepares for a rest of the worker.
    pub(crate) fn rest(&self) {
        self.pacing.forget();
        self.shrink();
    }

    /// Frees memory that the queue no longer needs.
    fn shrink(&self) {
        self.rings.iter().for_each(Ring::shrink);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
