//! Tasks that wait for a worker: the injectors and the workers' local queues.
//!
//! Submissions from outside the pool enter the injector, a channel, which keeps their order (law
//! 12). Tasks that a worker's own tasks submit enter that worker's local queue. The worker pops
//! from there first: its cache holds what it has just written, and no other CPU takes part. A
//! worker whose local queue and injector are empty steals from the other workers, the oldest tasks
//! first and several at a time. A worker that always has local tasks still checks the injector at
//! intervals, and one of the other workers in turn. So no task waits forever.
//!
//! While a worker's tasks are coarse and no idle worker may be woken, what it would push to its
//! local queues enters the injectors too. In local queues of different lengths some tasks would
//! wait many times as long as others, and beside coarse tasks the cost of an injector is small. The
//! pusher decides that; here it only learns [whether its tasks
//! are](pacing::Pacing::are_tasks_coarse).
//!
//! **Woken futures come before new tasks.** They were accepted and started before any task that is
//! still queued, so they have an injector and local queues of their own. Each worker takes a new
//! task first once in [`TURN_INTERVAL`](local) takes. So futures that always wake themselves delay
//! new tasks, but not forever. In a pool that measures, the injector of woken futures takes the
//! spawned ones too: there they wait for no closures (`sched/worker/extra.rs`). Not those that a
//! closure spawns, which may wait for them: it takes them back from its local queue.
//!
//! A future that a poll wakes enters the polling worker's local queue. The worker takes it right
//! after that poll. Every other woken future enters the injector of woken futures, where each
//! worker that ends a task finds it: the waker's thread may be busy for long.
//!
//! No thread blocks here. Workers that find all queues empty park on the idle list.
//!
//! Others use
//!
//! - `Queue`: the injectors and the list of local queues.
//! - `Local`: a worker's local queues, as that worker sees them.
//! - `Kind`: of new tasks or of woken futures; each has an injector, and a local queue per worker.
//! - `is_turn_of_new`: whether a worker takes a new task first now.
//!
//! # The list of local queues
//! Other workers walk the list of local queues without a lock. A worker's queues enter it with
//! their first item, and stay: once the worker has left, the next new worker gets them. So a walk
//! visits as many local queues as there were workers that submit tasks, at most, at a time. A queue
//! without a worker keeps about 1.5 KiB, and no buffer.
//!
//! A thread that must find an item also finds the queue: it was listed before the push.
//!
//! # What relies on one injector, and on the order of indexes
//! | fact | relied on by |
//! |---|---|
//! | one injector of new tasks, first in first out | law 12; what coarse tasks submit; the order in which `shutdown_now` returns tasks |
//! | one injector of woken futures | the extra worker; the look at every 16th take; what a worker gives up before a task |
//! | a local queue's place in the list is that of its first push, and outlives its worker | where a stealer begins, which queue a check observes. It is not the worker's index |
//! | the idle worker with the lowest index is woken | law 5 |
//! | an index is the lowest free one, which may be `max_size` or more while others are blocked or in stop hooks | `worker_index`, names of threads |
//! | the turn and the check visit one injector (`local.rs`) | no task waits for ever |
//! | one injector of a kind takes what a local queue in a steal has no room for, and what is shared or left behind | `push_with`, `share_woken`, `share_woken_of`, `close`, `leaves_items`, `poll_as_extra` |
//! | a successor has its predecessor's index, unless there is a stop hook | names of threads, and what a start hook binds to an index |
//! | any worker replaces any blocked one | `change_region`, which only counts and looks |
//! | an idle worker is claimed whatever the entry | `IdleList::claim`, `Shared::notify` |
//! | all threads have the affinity of the builder's thread | `Inherited`, also of the keeper and the helper; pools, threads and processes that a task starts |
//! | CPUs are alike, and `cpus()` is one number | default sizes, `wanted_awake`, how many threads may start at a time, spinning (not on a CPU that a running worker needs: not beside more of them than CPUs), `map` |
//!
//! # What is asked whether something is queued, or how much
//! What lies outside of these queues and the views' has to be known to `has_work`, `work_len`,
//! `queue_len` and `has_paused_work` (`sched/place.rs`), `has_ready_future`, `next_of_views`,
//! `spin_for_work`, `is_short_of_workers`, `look_for_deferred` and `drain`. All others but
//! `take_owed` ask these.
//!
//! Tokio's and Go's schedulers have the same two levels and the same check at intervals. Here the
//! local queues are unbounded, and stealers can reach every task in them.

mod local;
mod pacing;
pub(crate) mod ring;

pub(crate) use local::{Local, is_turn_of_new};

use std::iter;
use std::sync::{Arc, OnceLock};

use crate::queue::ring::{Steal, Stealer};
#[cfg(elastipool_loom)]
use crate::sync::models::channel;
use crate::sync::{Counter, Hint, Mutex, RwLock, yield_now};
#[cfg(not(elastipool_loom))]
use crossbeam_channel as channel;
use crossbeam_utils::CachePadded;

/// What an entry is for. Each kind has an injector, and a local queue of each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It starts a task.
    New,
    /// It polls a future again. In a pool that measures also for the first time.
    Woken,
}

impl Kind {
    /// In the order in which workers take them.
    const ALL: [Kind; 2] = [Kind::Woken, Kind::New];
}

/// The injectors and the list of local queues. See the [module's documentation](self).
pub(crate) struct Queue<T> {
    /// One for each [`Kind`].
    injectors: [Injector<T>; 2],
    /// Whether a woken future may have been pushed so far. Hardly ever written, so it stays in each
    /// CPU's cache.
    has_woken: Hint,
    /// The list of local queues: each node holds the next one.
    list: OnceLock<Arc<Node<T>>>,
    /// A model does not see that the list's `OnceLock` orders a thread that finds a queue after the
    /// one that has listed it.
    #[cfg(elastipool_loom)]
    listed: crate::sync::AtomicUsize,
    /// The local queues of workers that have left. They are empty.
    free: Mutex<Vec<Local<T>>>,
    /// Read by a worker that steals or leaves, while it moves items: until they are there, no other
    /// thread finds them. Written by a drain (race 24). Woken futures that are shared move without:
    /// a shutdown has cancelled them before.
    moves: RwLock<()>,
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
        // Never full. `send` would link the code of bounded channels that waits for capacity.
        if self.sender.try_send(item).is_err() {
            unreachable!("the queue holds a receiver");
        }
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Like [`pop`](Self::pop), but cheaper if the injector is empty: a receive that finds nothing
    /// fences, `is_empty` does not.
    fn look_and_pop(&self) -> Option<T> {
        if self.is_empty() { None } else { self.pop() }
    }

    fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}

/// A worker's local queues as other workers see them.
struct Node<T> {
    /// One for each [`Kind`].
    stealers: [Arc<Stealer<T>>; 2],
    /// Counts the tasks that its worker has asked for. A worker whose count stands still is
    /// *stalled*: it runs a long task, has no CPU, or is gone.
    requests: CachePadded<Counter>,
    next: OnceLock<Arc<Node<T>>>,
}

impl<T> Node<T> {
    /// Not inlined: it is rare.
    #[inline(never)]
    fn steal_one(&self, kind: Kind) -> Option<T> {
        let stealer = &self.stealers[kind as usize];
        retry_while_contended(|| stealer.steal(1, |_| unreachable!("one item has no rest")))
    }
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Queue {
            injectors: [Injector::new(), Injector::new()],
            has_woken: Hint::default(),
            list: OnceLock::new(),
            #[cfg(elastipool_loom)]
            listed: crate::sync::AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            moves: RwLock::new(()),
        }
    }

    /// Pushes an item to the end of its injector.
    #[inline]
    pub(crate) fn push(&self, kind: Kind, item: T) {
        self.expect(kind);
        self.injectors[kind as usize].push(item);
    }

    /// Pops the oldest item of an injector, that of the woken futures first. If both are empty,
    /// pops from the first local queue with an item.
    pub(crate) fn pop(&self) -> Option<T> {
        let injected = |kind| self.injectors[kind as usize].pop();
        let local =
            |node: &Arc<Node<T>>| Kind::ALL.into_iter().find_map(|kind| node.steal_one(kind));
        Kind::ALL.into_iter().find_map(injected).or_else(|| self.nodes().find_map(local))
    }

    /// Whether a future lies in the injector, where each worker finds it.
    pub(crate) fn has_future(&self) -> bool {
        self.may_have_woken() && !self.injectors[Kind::Woken as usize].is_empty()
    }

    /// Pops every item of every queue.
    ///
    /// Waits for the steals that have begun, and for no other one: otherwise `shutdown_now` would
    /// return while a stealer still moves up to [`BATCH`](local) tasks, which would run after the
    /// pool has handed back the others (law 8).
    pub(crate) fn drain(&self) -> Vec<T> {
        let _no_moves = self.moves.write();
        iter::from_fn(|| self.pop()).collect()
    }

    /// Pops an item of an injector.
    #[cold]
    pub(crate) fn pop_injected(&self, kind: Kind) -> Option<T> {
        self.injectors[kind as usize].look_and_pop()
    }

    /// Whether all queues are empty. Says nothing of items that a stealer holds.
    ///
    /// Looks at the queue of a task before that of a future which the task's taker may have pushed
    /// (race 22).
    pub(crate) fn is_empty(&self) -> bool {
        let has_none = |kind| {
            self.injectors[kind as usize].is_empty()
                && self.nodes().all(|node| node.stealers[kind as usize].is_empty())
        };
        has_none(Kind::New) && (!self.may_have_woken() || has_none(Kind::Woken))
    }

    pub(crate) fn len(&self) -> usize {
        let injected: usize = self.injectors.iter().map(|injector| injector.receiver.len()).sum();
        let local = self.nodes().flat_map(|node| &node.stealers);
        injected + local.map(|stealer| stealer.len()).sum::<usize>()
    }

    /// Called before an item is pushed. A thread that must find a woken future is ordered after the
    /// push, and so after this.
    #[inline]
    pub(crate) fn expect(&self, kind: Kind) {
        if kind == Kind::Woken && !self.has_woken.get() {
            self.has_woken.set(true);
        }
    }

    /// Whether a woken future may have been pushed so far.
    #[inline]
    pub(crate) fn may_have_woken(&self) -> bool {
        self.has_woken.get()
    }

    /// Returns the workers with woken futures in their local queues: their places in the list, and
    /// the numbers of their requests.
    pub(crate) fn observe_woken(&self) -> Vec<(usize, usize)> {
        let has_woken = |node: &Arc<Node<T>>| !node.stealers[Kind::Woken as usize].is_empty();
        let with_woken = self.nodes().enumerate().filter(|(_, node)| has_woken(node));
        with_woken.map(|(place, node)| (place, node.requests.get())).collect()
    }

    /// Moves the woken futures of the worker at this place in the list, which is stalled, to their
    /// injector. The caller looks: they are in no queue for a moment. (A shutdown that misses one
    /// has cancelled it before, race 24.)
    pub(crate) fn share_woken_of(&self, place: usize) {
        for node in self.nodes().skip(place).take(1) {
            let stolen = iter::from_fn(|| node.steal_one(Kind::Woken));
            stolen.for_each(|item| self.injectors[Kind::Woken as usize].push(item));
        }
    }

    /// Iterates over the listed local queues.
    fn nodes(&self) -> impl Iterator<Item = &Arc<Node<T>>> {
        #[cfg(elastipool_loom)]
        self.listed.fetch_add(0, crate::sync::Ordering::Acquire);
        iter::successors(self.list.get(), |node| node.next.get())
    }

    /// Lists a local queue, which is about to get its first item. What orders a thread after the
    /// push, a pair of fences too, orders it after this.
    #[cold]
    fn list(&self, mut node: Arc<Node<T>>) {
        let mut place = &self.list;
        while let Err(given_back) = place.set(node) {
            node = given_back;
            place = &place.get().expect("it is set").next;
        }
        #[cfg(elastipool_loom)]
        self.listed.fetch_add(1, crate::sync::Ordering::Release);
    }
}

/// Node by node: a long list dropped by itself would overflow the stack.
impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.free.lock().clear();
        let mut next = self.list.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.next.take();
        }
    }
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
