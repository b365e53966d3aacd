//! A worker's local queues: push, pop, steal, and steal from a stalled worker.

use std::cell::Cell;
use std::sync::Arc;

use crate::queue::pacing::Pacing;
use crate::queue::ring::{Ring, Steal, Stealer};
use crate::queue::{Injector, Node, Queue, Rings, retry_while_contended};

/// Once in this many requests a worker takes a new task before woken futures, and once a woken future of the injector before local
/// ones. With a smaller number, a backlog of long tasks would delay futures that always wake each other; with a larger one, those
/// would delay the others more.
///
/// A model affords few tasks, so there it is each second request.
const TURN_INTERVAL: usize = if cfg!(elastipool_loom) { 2 } else { 16 };

/// Whether a worker takes a new task first at its request number `request`.
#[inline]
pub(crate) fn is_turn_of_new(request: usize) -> bool {
    request % TURN_INTERVAL == TURN_INTERVAL - 1
}

/// Bounds the tasks that one steal moves. Until the stealer has pushed them, no other worker can take them.
pub(crate) const BATCH: usize = 32;

/// A worker's local queues as the worker sees them.
pub(crate) struct Local<T, W = T> {
    rings: Rings<T, W>,
    node: Arc<Node<T, W>>,
    /// Whether the bit of its slot is set. Only the owner changes it.
    is_bit_set: Cell<bool>,
    /// The slot of the worker that the next check compares, and its number of requests when it was observed.
    observed: Cell<(usize, usize)>,
    /// Set by a push that went to the injector; cleared by `take_needs_notify`. This flag says that something is left
    /// elsewhere. `WorkerContext::needs_notify` says that the worker must ask for it. Such a push sets both.
    has_overflowed: Cell<bool>,
    pub(crate) pacing: Pacing,
    /// Whether the next new task is one of the injector, if it holds any.
    is_injector_due: Cell<bool>,
}

impl<T: From<W>, W> Local<T, W> {
    /// Opens a local queue for a new worker.
    pub(crate) fn open(queue: &Queue<T, W>) -> Self {
        let (rings, node) = queue.open_local();
        let local = Local {
            rings,
            is_bit_set: Cell::new(false),
            node,
            observed: Cell::new((0, usize::MAX)),
            has_overflowed: Cell::new(false),
            pacing: Pacing::new(),
            is_injector_due: Cell::new(false),
        };
        #[cfg(elastipool_loom)]
        if !crate::queue::model::BITS_CHANGE.get() {
            queue.set_bit(&local.node);
            local.is_bit_set.set(true);
        }
        local
    }

    /// Closes the local queue of a worker that leaves, and frees its buffer. What it still holds goes to the injectors. Returns
    /// whether another worker must be notified of that.
    #[must_use]
    pub(crate) fn close(self, queue: &Queue<T, W>) -> bool {
        queue.close_local(self.rings, self.node)
    }

    /// Pushes a new task. If the ring is full and a stealer is in it, pushes to the injector instead and returns `false`.
    #[inline(always)]
    pub(crate) fn push(&self, queue: &Queue<T, W>, item: T) -> bool {
        self.push_to(queue, &self.rings.new, &queue.new, item)
    }

    /// Always inlined: a call would copy the item.
    #[inline(always)]
    fn push_to<I: Into<T>>(
        &self,
        queue: &Queue<T, W>,
        ring: &Ring<I>,
        injector: &Injector<T>,
        item: I,
    ) -> bool {
        if !self.is_bit_set.get() {
            self.is_bit_set.set(true);
            queue.set_bit(&self.node);
        }
        let pushed = ring.push(item).map_err(|item| self.overflow(injector, item.into()));
        pushed.is_ok()
    }

    #[cold]
    fn overflow(&self, injector: &Injector<T>, item: T) {
        injector.push(item);
        self.has_overflowed.set(true);
    }

    /// Pushes a woken future to its injector. For [`take_needs_notify`](Self::take_needs_notify) that is an overflow.
    pub(crate) fn inject_woken(&self, queue: &Queue<T, W>, item: W) {
        queue.expect_woken();
        self.overflow(&queue.woken, item.into());
    }

    /// Like [`push`](Self::push), for a woken future.
    #[inline]
    pub(crate) fn push_woken(&self, queue: &Queue<T, W>, item: W) -> bool {
        queue.expect_woken();
        self.push_to(queue, &self.rings.woken, &queue.woken, item)
    }

    /// Moves the local woken futures to their injector, because this worker may not take them soon. Returns whether there were
    /// any: then another worker must be notified of them. A shutdown that misses one on its way has cancelled it before (race 24).
    #[must_use]
    pub(crate) fn share_woken(&self, queue: &Queue<T, W>) -> bool {
        if !queue.may_have_woken() {
            return false;
        }
        let woken = std::iter::from_fn(|| self.rings.woken.pop());
        let has_shared = woken.map(|item| queue.push_woken(item)).count() > 0;
        self.has_overflowed.set(self.has_overflowed.get() || has_shared);
        has_shared
    }

    /// Begins a request, which [`pop`](Self::pop) continues. Returns whether a check is due: then the caller calls
    /// [`check`](Self::check) before. `run_count` is how many tasks the worker has run.
    #[inline]
    #[must_use]
    pub(crate) fn begin_request(&self, run_count: usize) -> bool {
        self.node.requests.add_alone(1);
        self.pacing.is_check_due(run_count)
    }

    /// Pops a woken future or, if there is none, a new task; the local one first, which is in the CPU's cache. New tasks come first at
    /// intervals, and if the worker's last poll `has_yielded`.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T, W>, has_yielded: bool) -> Option<T> {
        if queue.may_have_woken() {
            if let Some(item) = self.pop_before_new(queue, has_yielded) {
                return Some(item);
            }
        }
        self.pop_new(queue, || queue.new.pop())
    }

    /// Pops a woken future or, if these have the turn, a new task.
    ///
    /// A future that wakes itself stays in the local queue, and must not keep the worker from one that has come to the injector.
    #[inline]
    fn pop_before_new(&self, queue: &Queue<T, W>, has_yielded: bool) -> Option<T> {
        let request = self.node.requests.get();
        let in_turn = if request % TURN_INTERVAL == 0 {
            queue.pop_woken()
        } else if has_yielded || is_turn_of_new(request) {
            self.pop_new(queue, || queue.pop_injected())
        } else {
            None
        };
        let local = || self.rings.woken.pop().map(T::from);
        in_turn.or_else(local).or_else(|| queue.pop_woken())
    }

    /// Pops a new task, the local one first unless a check of the injector is due.
    #[inline]
    fn pop_new(&self, queue: &Queue<T, W>, injected: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.is_injector_due.get() {
            self.is_injector_due.set(false);
            if let Some(item) = queue.pop_injected() {
                return Some(item);
            }
        }
        match self.rings.new.pop() {
            None => injected(),
            local => local,
        }
    }

    /// Begins a check: the injector is due, and memory that the queue no longer needs is freed. Steals, as [`steal`](Self::steal)
    /// does, from the worker that was observed last if it has asked for no task since. Observes the next one.
    #[cold]
    pub(crate) fn check(&self, queue: &Queue<T, W>) -> Option<T> {
        self.is_injector_due.set(true);
        self.shrink();
        let (slot, requests) = self.observed.get();
        let (mut observed, mut first, mut next) = (None, None, None);
        for other in queue.nodes().filter(|other| !Arc::ptr_eq(other, &self.node)) {
            first.get_or_insert(other);
            if other.slot > slot {
                next = Some(other);
                break;
            }
            observed = Some(other).filter(|other| other.slot == slot);
        }
        let next = next.or(first)?;
        self.observed.set((next.slot, next.requests.get()));
        match self.steal_from(observed.filter(|other| other.requests.get() == requests)?, queue) {
            Steal::Success(item) => Some(item),
            // A contended queue waits for a later check.
            _ => None,
        }
    }

    /// Steals a task from another worker, and moves up to `BATCH - 1` more into this queue.
    pub(crate) fn steal(&self, queue: &Queue<T, W>) -> Option<T> {
        retry_while_contended(|| {
            // Start behind this worker's slot, so that the stealers do not all try the same queue first.
            let slot = self.node.slot;
            let behind = queue.nodes().filter(|other| other.slot > slot);
            let before = queue.nodes().take_while(|other| other.slot < slot);
            let mut found = Steal::Empty;
            for other in behind.chain(before) {
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

    /// Steals woken futures or, if there are none, new tasks.
    fn steal_from(&self, other: &Node<T, W>, queue: &Queue<T, W>) -> Steal<T> {
        if queue.may_have_woken() {
            match self.steal_batch(&other.woken, &self.rings.woken, &queue.woken, queue) {
                Steal::Empty => {}
                Steal::Retry => return Steal::Retry,
                Steal::Success(item) => return Steal::Success(item.into()),
            }
        }
        self.steal_batch(&other.new, &self.rings.new, &queue.new, queue)
    }

    fn steal_batch<I: Into<T>>(
        &self,
        from: &Stealer<I>,
        to: &Ring<I>,
        injector: &Injector<T>,
        queue: &Queue<T, W>,
    ) -> Steal<I> {
        if from.is_empty() {
            return Steal::Empty;
        }
        let _in_transit = queue.steals_in_transit.begin();
        from.steal(BATCH, |item| {
            self.push_to(queue, to, injector, item);
        })
    }

    /// Pops the newest new task if `wanted` returns `true` for it. `None` also while a stealer is in the ring.
    pub(crate) fn pop_newest_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.rings.new.pop_newest_if(wanted)
    }

    /// Returns how many new tasks are in the local queue. Stealers may take some meanwhile.
    pub(crate) fn len_of_new(&self) -> usize {
        self.node.new.len()
    }

    /// Clears the overflow flag. Returns whether it was set or the local queue holds tasks: then another
    /// worker must be notified of them.
    #[inline]
    #[must_use]
    pub(crate) fn take_needs_notify(&self) -> bool {
        self.has_overflowed.take() || !self.rings.new.is_empty() || !self.rings.woken.is_empty()
    }

    /// Prepares for a rest of the worker.
    pub(crate) fn rest(&self, queue: &Queue<T, W>) {
        let is_empty = || self.rings.new.is_empty() && self.rings.woken.is_empty();
        #[cfg(elastipool_loom)]
        let is_empty = || crate::queue::model::BITS_CHANGE.get() && is_empty();
        if self.is_bit_set.get() && is_empty() {
            queue.clear_bit(self.node.slot);
            self.is_bit_set.set(false);
        }
        self.pacing.forget();
        self.shrink();
    }

    /// Frees memory that the queue no longer needs.
    fn shrink(&self) {
        self.rings.new.shrink();
        self.rings.woken.shrink();
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
