//! What the handles, workers and wakers of one pool share: its parts, closing, and statistics.

use std::sync::Arc;

use crate::queue::Queue;
use crate::runtime::capacity::Capacity;
use crate::runtime::counts::{Counts, Search, Snapshot};
use crate::runtime::hooks::Hooks;
use crate::runtime::idle::IdleStack;
use crate::runtime::in_flight::InFlight;
use crate::runtime::metrics::{CallerMetrics, WorkerMetrics};
use crate::runtime::registry::{Registry, ThreadKey};
use crate::runtime::returning::Returning;
use crate::runtime::sizes::{Growth, Sizes};
use crate::stats::Stats;
use crate::sync::waiters::Waiters;
use crate::sync::{AtomicUsize, Counter, Mutex, Peak};
use crate::task::job::{Job, Outcome};
#[cfg(feature = "async")]
use crate::task::pending::Pending;

/// Tells pools apart, for as long as a task of the pool has not ended, or a thread of the pool has not exited: the address of
/// the registry, which each thread of the pool keeps until it exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolId(usize);

/// What a pool was built with and keeps.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) queue_capacity: Option<usize>,
    pub(crate) max_tasks_per_worker: Option<usize>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) growth: Growth,
    /// Whether a worker waits a moment for work before it rests.
    pub(crate) spins: bool,
    /// How many workers in declared blocking regions are replaced at a time.
    pub(crate) max_blocked: usize,
    /// Whether a worker has a queue of its own.
    pub(crate) has_local_queues: bool,
    pub(crate) hooks: Hooks,
}

/// What a new worker's thread is given.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    /// To pass through first.
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) key: ThreadKey,
    pub(crate) index: usize,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) search: Option<Search>,
}

/// What the handles, workers and wakers of one pool share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) sizes: Sizes,
    /// The body of a worker's thread. A worker knows what it shares, not the other way round.
    pub(super) body: fn(Start),
    pub(crate) counts: Counts,
    pub(crate) idle: IdleStack,
    pub(crate) queue: Queue<Job>,
    /// If the queue is bounded.
    pub(crate) capacity: Option<Capacity>,
    pub(crate) in_flight: InFlight,
    #[cfg(feature = "async")]
    pub(crate) pending: Pending,
    /// Shared on its own: an exiting thread reports to it when it may no longer touch a task, and
    /// dropping the last `Shared` may drop tasks.
    pub(crate) registry: Arc<Registry>,
    /// Workers in their start hook. Only an estimate of who is about to come.
    pub(super) in_start_hook: AtomicUsize,
    /// The worker that keeps the watch, if there is one.
    pub(crate) stall_monitor: Waiters,
    /// Workers that wait in blocking regions.
    pub(crate) blocked: Waiters,
    /// Workers in declared blocking regions. Beyond `max_blocked`, they are not counted as away. All changes acquire and
    /// release: a worker that takes itself off `away` comes after the one for which that was counted.
    pub(super) declared: AtomicUsize,
    /// The most workers that were away at a time.
    pub(super) peak_blocked: Peak,
    /// Workers that come back from blocking regions.
    pub(crate) returning: Returning,
    /// How often `max_size` has been lowered.
    pub(crate) shrinks: Counter,
    /// Immediate shutdowns.
    pub(super) stops: Counter,
    /// Tasks that ended outside of the workers.
    pub(super) caller_metrics: CallerMetrics,
    pub(super) rejected: Counter,
}

impl Shared {
    pub(crate) fn new(config: Config, sizes: Sizes, body: fn(Start)) -> Arc<Self> {
        Arc::new(Shared {
            capacity: config.queue_capacity.map(Capacity::new),
            config,
            sizes,
            body,
            counts: Counts::new(),
            idle: IdleStack::new(),
            queue: Queue::new(),
            in_flight: InFlight::new(),
            #[cfg(feature = "async")]
            pending: Pending::new(),
            registry: Arc::new(Registry::new()),
            in_start_hook: AtomicUsize::new(0),
            stall_monitor: Waiters::new(),
            blocked: Waiters::new(),
            declared: AtomicUsize::new(0),
            peak_blocked: Peak::default(),
            returning: Returning::new(),
            shrinks: Counter::default(),
            stops: Counter::default(),
            caller_metrics: CallerMetrics::default(),
            rejected: Counter::default(),
        })
    }

    pub(crate) fn id(&self) -> PoolId {
        PoolId(Arc::as_ptr(&self.registry).addr())
    }

    /// Tells the panic handler of a panic that no handle has received.
    #[inline]
    pub(crate) fn handle_panic(&self, outcome: &mut Outcome) {
        if let Outcome::Panicked(payload) = outcome {
            if let Some(payload) = payload.take() {
                self.config.hooks.panicked(payload);
            }
        }
    }

    /// A worker has taken a job, and tells the submitters of a bounded queue.
    #[inline]
    pub(crate) fn begin_work(&self, is_new: bool) {
        match &self.capacity {
            Some(capacity) if is_new => capacity.start(&self.sizes),
            Some(capacity) => capacity.begin_work(),
            None => {}
        }
    }

    /// A worker has nothing to do.
    #[inline]
    pub(crate) fn end_work(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.end_work(&self.sizes);
        }
    }

    /// Accepts no more tasks. What was accepted is done; then the workers leave.
    pub(crate) fn close(&self) {
        let status = self.in_flight.close();
        if let Some(capacity) = &self.capacity {
            capacity.close();
        }
        if status.is_over() {
            self.recheck_all();
        }
    }

    /// Tasks that come into the queue from now on are cancelled instead: it is being emptied.
    pub(crate) fn stop(&self) {
        self.stops.increment();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stops.get() > 0
    }

    /// How many tasks are in the queue: entries whose tasks have been started by the threads that wait for them are none.
    pub(crate) fn queued_count(&self) -> usize {
        let mut sums = self.registry.lock().sums();
        self.caller_metrics.lock().add_to(&mut sums);
        self.queue.len().saturating_sub(sums.stale())
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let registry = self.registry.lock();
        // What comes first in a task's life is read last: so nothing is counted before it came, or negative.
        let mut sums = registry.sums();
        self.caller_metrics.lock().add_to(&mut sums);
        let in_flight = self.in_flight.count().saturating_sub(sums.unreported());
        let now = self.counts.load();
        registry.describe(&mut stats);
        stats.workers = now.total();
        stats.idle = now.idle();
        stats.blocked = self.blocked_count(now);
        self.peak_blocked.raise(stats.blocked);
        stats.peak_blocked = self.peak_blocked.get();
        drop(registry);
        stats.queued = self.queue.len().saturating_sub(sums.stale());
        // A worker may still be on its way out of a future that somebody else has polled to its end since.
        stats.active = sums.active().min(in_flight.saturating_sub(stats.queued));
        stats.pending = in_flight.saturating_sub(stats.queued + stats.active);
        stats.completed = sums.completed;
        stats.panicked = sums.panicked;
        stats.cancelled = sums.cancelled;
        stats.handed_back = sums.handed_back;
        stats.rejected = self.rejected.get();
        stats
    }

    /// Ends `count` tasks of a worker.
    pub(crate) fn finish(&self, count: usize) {
        if self.in_flight.finish(count).is_over() {
            self.recheck_all();
        }
    }

    /// Makes the workers that have nothing to do look again whether they may stay.
    pub(super) fn recheck_all(&self) {
        self.idle.recheck_all();
        self.stall_monitor.recheck_all();
    }

    pub(super) fn is_below_core(&self, now: Snapshot) -> bool {
        now.total() < self.sizes.core()
    }
}
