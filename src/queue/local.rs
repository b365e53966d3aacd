//! A worker's local queue: push, pop, steal, and steal from a stalled worker.

use std::cell::Cell;
use std::iter;
use std::sync::Arc;

use crate::queue::ring::{Ring, Steal};
use crate::queue::{Node, Queue, retry_while_contended};
use crate::sync::unwind::discard;

/// A worker asks the injector first once in this many requests, and checks for a stalled worker once. The number is
/// tokio's and Go's. It is prime, so that it does not fall into step with a pattern in the tasks.
///
/// A model affords few tasks. With 3, every second request does both.
const INTERVAL: usize = if cfg!(elastipool_loom) { 3 } else { 61 };

/// Bounds the tasks that one steal moves. Until the stealer has pushed them, no other worker can take them.
const BATCH: usize = 32;

/// Bounds the local queues that one stalled check examines for tasks. It keeps the check short where most of many
/// queues are empty.
const MAX_LOOKS: usize = 8;

/// A local queue as its worker sees it.
pub(crate) struct Local<T> {
    ring: Ring<T>,
    node: Arc<Node<T>>,
    /// The worker that the next stalled check compares, and its number of requests when it was observed.
    observed: Cell<Option<(Arc<Node<T>>, usize)>>,
    /// Set by a push that went to the injector; cleared by `take_needs_notify`. This flag says that something is left
    /// elsewhere. `WorkerContext::needs_notify` says that the worker must ask for it. Such a push sets both.
    has_overflowed: Cell<bool>,
}

impl<T> Local<T> {
    /// Opens a local queue for a new worker.
    pub(crate) fn open(queue: &Queue<T>) -> Self {
        let (ring, node) = queue.open_local();
        Local { ring, node, observed: Cell::new(None), has_overflowed: Cell::new(false) }
    }

    /// Closes the local queue of a worker that leaves, and frees its buffer. If it still holds tasks, others can steal them,
    /// and the next worker that opens a queue inherits the rest.
    pub(crate) fn close(self, queue: &Queue<T>) {
        queue.close_local(self.ring, self.node);
    }

    /// Pushes what `make` returns. If the ring is full and a stealer is in it, pushes to the injector instead and
    /// returns `false`.
    #[inline]
    pub(crate) fn push(&self, queue: &Queue<T>, make: impl FnOnce() -> T) -> bool {
        let pushed = self.ring.push(make).map_err(|make| {
            queue.push(make());
            self.has_overflowed.set(true);
        });
        pushed.is_ok()
    }

    /// Returns whether a check for a stalled worker is due before the next [`pop`](Self::pop), and if so counts it as a
    /// request. The caller then calls [`steal_from_stalled`](Self::steal_from_stalled).
    #[inline]
    #[must_use]
    pub(crate) fn begin_stalled_check_if_due(&self) -> bool {
        let requests = &self.node.requests;
        let is_due = requests.get() % INTERVAL == INTERVAL / 2;
        if is_due {
            // A check that finds a task skips `pop`, which counts requests: the next check would be due at once.
            requests.add_alone(1);
        }
        is_due
    }

    /// Pops the oldest local task or, if there is none, the oldest of the injector. At intervals the injector comes
    /// first.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T>) -> Option<T> {
        let requests = &self.node.requests;
        requests.add_alone(1);
        if requests.get() % INTERVAL == 0 {
            self.ring.shrink();
            if let Some(item) = queue.pop_injector() {
                return Some(item);
            }
        }
        if let Some(item) = self.ring.pop() {
            return Some(item);
        }
        queue.pop_injector()
    }

    /// Steals, as [`steal`](Self::steal) does, from the observed worker if it has asked for no task since the last
    /// call.
    ///
    /// Then observes the next worker in the table that has tasks, or the last one examined if none has.
    pub(crate) fn steal_from_stalled(&self, queue: &Queue<T>) -> Option<T> {
        let last = self.observed.take();
        let last = last.as_ref().map(|(other, requests)| (other, *requests));
        let stalled = last.filter(|(other, requests)| other.requests.get() == *requests);
        let stolen = stalled.map(|(other, _)| self.steal_from(other, queue));
        let last = last.map_or(&self.node, |(other, _)| other);
        let mut next = None;
        let others = queue.nodes_from(last.slot + 1).chain(queue.nodes());
        for other in others.filter(|other| !Arc::ptr_eq(other, &self.node)).take(MAX_LOOKS) {
            next = Some((Arc::clone(other), other.requests.get()));
            if !other.stealer.is_empty() {
                break;
            }
        }
        self.observed.set(next);
        match stolen {
            Some(Steal::Success(item)) => Some(item),
            // A contended queue waits for a later check.
            _ => None,
        }
    }

    /// Steals a task from another worker, and moves up to `BATCH - 1` more into this queue.
    pub(crate) fn steal(&self, queue: &Queue<T>) -> Option<T> {
        retry_while_contended(|| {
            // Start behind this worker's slot, so that the stealers do not all try the same queue first.
            let slot = self.node.slot;
            let before = queue.nodes().take_while(|other| other.slot < slot);
            let mut found = Steal::Empty;
            for other in queue.nodes_from(slot + 1).chain(before) {
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

    fn steal_from(&self, other: &Node<T>, queue: &Queue<T>) -> Steal<T> {
        if other.stealer.is_empty() {
            return Steal::Empty;
        }
        let _in_transit = queue.steals_in_transit.begin();
        other.stealer.steal(BATCH, |item| {
            self.push(queue, || item);
        })
    }

    /// Drops stale items: first the newest ones, then the oldest ones, each time up to the first item that is not
    /// stale. Drops `limit` items at most and returns their number.
    pub(crate) fn skip(&self, limit: usize, is_stale: impl Fn(&T) -> bool) -> usize {
        let newest = iter::from_fn(|| self.ring.pop_newest_if(&is_stale));
        let oldest = iter::from_fn(|| self.ring.pop_oldest_if(&is_stale));
        newest.chain(oldest).take(limit).map(discard).count()
    }

    /// Clears the overflow flag. Returns whether it was set or the local queue holds tasks: then another
    /// worker must be notified of them.
    #[inline]
    #[must_use]
    pub(crate) fn take_needs_notify(&self) -> bool {
        self.has_overflowed.take() || !self.ring.is_empty()
    }

    /// Frees memory that the queue no longer needs.
    pub(crate) fn shrink(&self) {
        self.ring.shrink();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
