//! A worker's local queues: push, pop, steal, and steal from a stalled worker.

use std::cell::Cell;
use std::sync::Arc;

use crate::queue::pacing::{Check, Pacing};
use crate::queue::ring::{Ring, Steal, Stealer};
use crate::queue::turn::Turn;
use crate::queue::{Injector, Node, Queue, Rings, retry_while_contended};

/// A worker takes a new task before woken futures once in this many requests. With a smaller number, a backlog of long
/// tasks would delay futures that always wake each other; with a larger one, those would delay new tasks more.
///
/// A model affords few tasks, so there it is each second request.
const NEW_INTERVAL: usize = if cfg!(elastipool_loom) { 2 } else { 16 };

/// Whether a worker takes a new task first at its request number `turn`.
#[inline]
pub(crate) fn is_turn_of_new(turn: usize) -> bool {
    turn % NEW_INTERVAL == NEW_INTERVAL - 1
}

/// A worker takes a woken future of the injector before local ones once in this many requests: rarely enough for the local
/// ones to stay in its CPU's cache. In a model it is each second request.
const WOKEN_INTERVAL: usize = if cfg!(elastipool_loom) { 2 } else { 8 };

/// A worker's tasks are *coarse* if they take this many nanoseconds or more, on average. The injector costs some 50 more for each
/// than a local queue.
pub(crate) const COARSE_NANOS: u32 = 20_000;

/// Bounds the tasks that one steal moves. Until the stealer has pushed them, no other worker can take them.
pub(crate) const BATCH: usize = 32;

/// Bounds the woken futures that a worker shares before it runs a new task that may be long. Each goes through the injector,
/// and moves to another CPU if the other worker is faster. So it is a few: the rest wait for this one task, if no other
/// worker becomes idle.
#[cfg(feature = "async")]
pub(crate) const SHARED: usize = 4;

/// Bounds the local queues that one stalled check examines for tasks. It keeps the check short where most of many
/// queues are empty.
const MAX_LOOKS: usize = 8;

/// A worker, and its number of requests when it was observed.
type Observed<T, W> = (Arc<Node<T, W>>, usize);

/// A worker's local queues as the worker sees them.
pub(crate) struct Local<T, W = T> {
    rings: Rings<T, W>,
    node: Arc<Node<T, W>>,
    /// Whether the bit of its slot is set. Only the owner changes it.
    is_bit_set: Cell<bool>,
    /// The worker that the next stalled check compares.
    observed: Cell<Option<Observed<T, W>>>,
    /// Set by a push that went to the injector; cleared by `take_needs_notify`. This flag says that something is left
    /// elsewhere. `WorkerContext::needs_notify` says that the worker must ask for it. Such a push sets both.
    has_overflowed: Cell<bool>,
    pacing: Pacing,
    /// The turn of the injector of new tasks.
    injector_turn: Turn,
}

impl<T: From<W>, W> Local<T, W> {
    /// Opens a local queue for a new worker.
    pub(crate) fn open(queue: &Queue<T, W>) -> Self {
        let (rings, node) = queue.open_local();
        let local = Local {
            rings,
            is_bit_set: Cell::new(false),
            node,
            observed: Cell::new(None),
            has_overflowed: Cell::new(false),
            pacing: Pacing::new(),
            injector_turn: Turn::default(),
        };
        #[cfg(elastipool_loom)]
        if !crate::queue::model::BITS_CHANGE.get() {
            local.node.set_bit(queue);
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

    /// Always inlined: it would copy the item to pass it on.
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
            self.node.set_bit(queue);
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
    #[cfg(feature = "async")]
    pub(crate) fn inject_woken(&self, queue: &Queue<T, W>, item: W) {
        queue.expect_woken();
        self.overflow(&queue.woken, item.into());
    }

    /// As [`push`](Self::push), for a woken future.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn push_woken(&self, queue: &Queue<T, W>, item: W) -> bool {
        queue.expect_woken();
        self.push_to(queue, &self.rings.woken, &queue.woken, item)
    }

    /// Whether a task that the worker is about to run may be long, by those that it has run last.
    #[cfg(feature = "async")]
    pub(crate) fn are_tasks_long(&self) -> bool {
        self.pacing.are_tasks_long()
    }

    /// Returns how many nanoseconds the worker's tasks take, on average.
    #[inline]
    pub(crate) fn task_nanos(&self) -> u32 {
        self.pacing.task_nanos()
    }

    /// Whether the worker's tasks take [`COARSE_NANOS`] or more, on average.
    fn are_tasks_coarse(&self) -> bool {
        self.task_nanos() >= COARSE_NANOS
    }

    /// Forgets how long the tasks take, until it is measured again.
    pub(crate) fn forget_task_time(&self) {
        self.pacing.forget_task_time();
    }

    /// Moves up to `limit` local woken futures to their injector, because this worker may not take them soon. Returns
    /// whether there were any: then another worker must be notified of them. A shutdown that misses one on its way has
    /// cancelled it before (race 24).
    #[cfg(feature = "async")]
    #[must_use]
    pub(crate) fn share_woken(&self, queue: &Queue<T, W>, limit: usize) -> bool {
        if !queue.may_have_woken() {
            return false;
        }
        let woken = std::iter::from_fn(|| self.rings.woken.pop()).take(limit);
        let shared = woken.map(|item| queue.push_woken(item)).count();
        self.has_overflowed.set(self.has_overflowed.get() || shared > 0);
        shared > 0
    }

    /// Begins a request, which [`pop`](Self::pop) continues. Returns whether a check for a stalled worker is due: then the
    /// caller calls [`steal_from_stalled`](Self::steal_from_stalled) before. `run_count` is how many tasks the worker has run.
    #[inline]
    #[must_use]
    pub(crate) fn begin_request(&self, run_count: usize) -> bool {
        self.node.requests.add_alone(1);
        match self.pacing.next_check(run_count) {
            None => false,
            Some(Check::Stalled) => true,
            Some(Check::Injector) => {
                self.shrink();
                self.injector_turn.begin();
                false
            }
        }
    }

    /// Pops a woken future or, if there is none, a new task; the local one first. At intervals new tasks come first. The two
    /// queues of woken futures alternate: a future that wakes itself stays in the local one, and must not keep the
    /// worker from one that has come to the injector.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T, W>) -> Option<T> {
        if queue.may_have_woken() {
            if let Some(item) = self.pop_before_new(queue) {
                return Some(item);
            }
        }
        self.pop_new(queue)
    }

    /// Pops a woken future or, in turns of new tasks, one of these.
    #[inline]
    fn pop_before_new(&self, queue: &Queue<T, W>) -> Option<T> {
        let request = self.node.requests.get();
        if is_turn_of_new(request) {
            // As without woken futures: local tasks before those of the injector, except in the injector's turn.
            let local = || self.rings.new.pop();
            let new = self.pop_in_turn(queue).or_else(local).or_else(|| queue.pop_injected());
            if new.is_some() {
                return new;
            }
        }
        if request % WOKEN_INTERVAL == 0 {
            if let Some(item) = queue.pop_woken() {
                return Some(item);
            }
        }
        if let Some(item) = self.rings.woken.pop() {
            return Some(item.into());
        }
        queue.pop_woken()
    }

    /// Pops a new task in the turn of these after a yield, and ends the turn if there is none. This is not counted as a
    /// request: otherwise the pattern of polls and new tasks would decide which requests fall on the intervals of others.
    pub(crate) fn pop_after_yield(&self, queue: &Queue<T, W>, turn: &Turn) -> Option<T> {
        let item = turn.next(self.are_tasks_coarse(), || {
            let injected = || queue.pop_injected();
            let local = || self.rings.new.pop();
            match self.injector_turn.is_on() {
                true => injected().or_else(local),
                false => local().or_else(injected),
            }
        });
        if item.is_none() {
            // The injector's tasks came first meanwhile, if it was their turn.
            self.injector_turn.end();
            turn.end();
        }
        item
    }

    /// Pops a new task of the injector, if it is its turn.
    #[inline]
    fn pop_in_turn(&self, queue: &Queue<T, W>) -> Option<T> {
        if self.injector_turn.is_on() { self.pop_in_turn_of_injector(queue) } else { None }
    }

    #[cold]
    fn pop_in_turn_of_injector(&self, queue: &Queue<T, W>) -> Option<T> {
        // Without local ones, those of the injector come next anyway.
        let item = match self.rings.new.is_empty() {
            true => None,
            false => self.injector_turn.next(self.are_tasks_coarse(), || queue.pop_injected()),
        };
        if item.is_none() {
            self.injector_turn.end();
        }
        item
    }

    /// Pops a new task, the local one first: it is in the CPU's cache. At intervals those of the injector come first.
    #[inline]
    fn pop_new(&self, queue: &Queue<T, W>) -> Option<T> {
        if let Some(item) = self.pop_in_turn(queue) {
            return Some(item);
        }
        if let Some(item) = self.rings.new.pop() {
            return Some(item);
        }
        queue.new.pop()
    }

    /// Steals, as [`steal`](Self::steal) does, from the observed worker if it has asked for no task since the last
    /// call.
    ///
    /// Then observes the next worker in the table that has tasks, or the last one examined if none has.
    pub(crate) fn steal_from_stalled(&self, queue: &Queue<T, W>) -> Option<T> {
        let last = self.observed.take();
        let last = last.as_ref().map(|(other, requests)| (other, *requests));
        let stalled = last.filter(|(other, requests)| other.requests.get() == *requests);
        let stolen = stalled.map(|(other, _)| self.steal_from(other, queue));
        let last = last.map_or(&self.node, |(other, _)| other);
        let mut next = None;
        let others = queue.nodes_from(last.slot + 1).chain(queue.nodes());
        for other in others.filter(|other| !Arc::ptr_eq(other, &self.node)).take(MAX_LOOKS) {
            next = Some((Arc::clone(other), other.requests.get()));
            if !other.new.is_empty() || !other.woken.is_empty() {
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
    pub(crate) fn steal(&self, queue: &Queue<T, W>) -> Option<T> {
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

    /// The worker has spun for work.
    pub(crate) fn end_spin(&self) {
        self.pacing.rest();
    }

    /// Prepares for a rest of the worker.
    pub(crate) fn rest(&self) {
        let is_empty = || self.rings.new.is_empty() && self.rings.woken.is_empty();
        #[cfg(elastipool_loom)]
        let is_empty = || crate::queue::model::BITS_CHANGE.get() && is_empty();
        if self.is_bit_set.get() && is_empty() {
            self.node.clear_bit();
            self.is_bit_set.set(false);
        }
        self.pacing.rest();
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
