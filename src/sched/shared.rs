//! What the handles, workers and wakers of one pool share: its parts, closing, resizing, and
//! statistics.

use std::any::Any;
// The table of pools is not part of the protocol, so models do not explore its lock: nothing
// happens under it.
use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::crew::{
    CallerMetrics, Counts, IdleList, MustLook, Registry, Sizes, Snapshot, WorkerMetrics,
};
use crate::error::BuildError;
use crate::flight::{InFlight, OwnWaits, Permits, Status};
use crate::keeper::{Deadlines, Deferred, Keeper, Sizing, Stall};
use crate::observe::{Event, Hooks, Observe};
use crate::queue::Queue;
use crate::stats::Stats;
use crate::sync::inherit::Inherited;
use crate::sync::returning::Returning;
use crate::sync::unwind::{discard, text_of};
use crate::sync::{AtomicUsize, Counter};
use crate::task::{Job, Outcome, Pending};
use crate::thread::PoolId;
use crate::views::{Policy, ViewCore, ViewJob};

/// How the keeper takes part in growth. Only the builder's methods name these functions, so a
/// program contains those that it asks for. The builder gets the type from the list of doors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growing {
    /// Under [`Growth::Stalled`](crate::Growth::Stalled), the delay after which the keeper starts a
    /// worker for queued work.
    pub(crate) delay: Option<Duration>,
    /// Asks the keeper for a look after this time, if one may help.
    pub(crate) ask: fn(&Shared, Duration),
    /// [`KeeperJob::Growth`](crate::keeper::KeeperJob::Growth).
    pub(crate) look: fn(&Arc<Shared>),
    /// Whether the extra worker sleeps in its poll, as far as the system tells.
    pub(crate) is_asleep: fn(&WorkerMetrics) -> bool,
}

/// [`Growth::Eager`](crate::Growth::Eager): the keeper takes no part.
pub(crate) const EAGER: Growing =
    Growing { delay: None, ask: |_, _| (), look: |_| (), is_asleep: |_| false };

/// What a bounded queue needs. Only [`Builder::queue_capacity`](crate::Builder::queue_capacity)
/// names these functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded {
    pub(crate) capacity: usize,
    pub(crate) permits: fn(usize) -> Box<dyn Permits>,
    /// Waits until the deadline. Returns whether the submitter has a permit.
    pub(crate) wait: WaitForPermit,
}

/// Waits for a permit, for a task of the view.
type WaitForPermit =
    fn(&Arc<Shared>, Option<&Arc<ViewCore>>, &dyn Permits, Option<Instant>) -> bool;

/// The settings that a pool keeps for its whole life.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) bounded: Option<Bounded>,
    pub(crate) max_tasks_per_worker: Option<usize>,
    pub(crate) stack_size: usize,
    pub(crate) growing: Growing,
    /// [`KeeperJob::Stalls`](crate::keeper::KeeperJob::Stalls). Nothing, unless the pool tracks its
    /// tasks.
    pub(crate) look_for_stalls: fn(&Shared),
    /// Whether a submission starts a core worker only if no other worker is free.
    pub(crate) prefers_idle: bool,
    /// Whether a worker spins for work before it becomes idle.
    pub(crate) spins: bool,
    /// Bounds how many workers in declared regions are replaced at a time.
    pub(crate) max_blocked: usize,
    /// Whether each worker has a local queue.
    pub(crate) has_local_queues: bool,
    pub(crate) hooks: Hooks,
}

/// All pools: so few that a search looks at one after the other. The handle of a task has no
/// reference to its pool: each submission would change a count that all submitters share.
static POOLS: StdMutex<Vec<(PoolId, Weak<Shared>)>> = StdMutex::new(Vec::new());

fn pools() -> StdMutexGuard<'static, Vec<(PoolId, Weak<Shared>)>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool's queues.
pub(crate) type TaskQueue = Queue<Job>;

/// See the [module's documentation](self).
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(super) inherited: Inherited,
    /// What keeps the pool open, of a type that no room knows.
    pub(super) handle: Weak<dyn Any + Send + Sync>,
    /// The outermost first. Mostly empty.
    pub(crate) observers: Vec<Arc<dyn Observe>>,
    pub(crate) keeper: Arc<Keeper>,
    pub(super) deferred: Deferred,
    pub(crate) stall: Stall,
    pub(crate) deadlines: Deadlines,
    pub(crate) sizing: Sizing,
    pub(crate) sizes: Sizes,
    pub(crate) counts: CachePadded<Counts>,
    pub(crate) idle: IdleList,
    pub(crate) queue: TaskQueue,
    /// The queues and places of views. Not used before there is one.
    pub(crate) policy: Policy<ViewJob>,
    /// `None` if the queue is unbounded.
    pub(crate) capacity: Option<Box<dyn Permits>>,
    pub(crate) own_waits: OwnWaits,
    pub(crate) in_flight: InFlight,
    /// How many tasks of the default view run, and how many workers may run one that no policy has
    /// counted. Never closed.
    pub(super) running: InFlight,
    pub(crate) pending: Pending,
    /// In an `Arc` of its own: an exiting thread reports to the registry when it may no longer drop
    /// tasks, as dropping the last `Shared` might.
    pub(crate) registry: Arc<Registry>,
    /// Workers in their start hooks: the workers that will look at the queue soon. Each leaves its
    /// hook with a search. Without it, under [`Growth::Stalled`](crate::Growth::Stalled) and for
    /// the extra worker, a slow start hook would make each submission start another thread, until
    /// `max_size`, for tasks that the first worker runs as soon as its hook has returned.
    pub(super) in_start_hook: AtomicUsize,
    /// Workers in declared regions. Those above `max_blocked` are not counted in `blocked`. Changes
    /// acquire and release: a worker that subtracts itself from `blocked` sees that it, or another,
    /// was counted.
    pub(super) declared: AtomicUsize,
    /// The largest number of workers in regions so far.
    pub(super) peak_blocked: Counter,
    /// Workers that wait to return from blocking regions.
    pub(super) returning: Returning,
    /// How often `max_size` was lowered.
    pub(super) shrinks: Counter,
    /// How many immediate shutdowns there were. After the first one deferred tasks are dropped
    /// instead of queued.
    pub(crate) stops: Counter,
    /// Counts tasks that ended outside of the workers.
    pub(crate) caller_metrics: CallerMetrics,
    pub(crate) rejected: Counter,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        sizes: Sizes,
        handle: Weak<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let registry = Arc::new(Registry::default());
        let pool = PoolId::of(&registry);
        let keeper = Arc::new(Keeper::default());
        let mut observers = config.hooks.observers.clone();
        if let Some(tracker) = &config.hooks.tracker {
            observers.insert(0, tracker(pool, &keeper, &config.hooks));
        }
        let shared = Arc::new(Shared {
            in_flight: InFlight::default(),
            running: InFlight::default(),
            capacity: config.bounded.map(|bounded| (bounded.permits)(bounded.capacity)),
            own_waits: OwnWaits::default(),
            observers,
            keeper,
            deferred: Deferred::default(),
            stall: Stall::default(),
            deadlines: Deadlines::default(),
            sizing: Sizing::default(),
            handle,
            config,
            // This is the thread that builds the pool.
            inherited: Inherited::of_current(),
            policy: Policy::new(),
            sizes,
            counts: CachePadded::default(),
            idle: IdleList::default(),
            queue: Queue::new(),
            pending: Pending::default(),
            registry,
            in_start_hook: AtomicUsize::default(),
            declared: AtomicUsize::default(),
            peak_blocked: Counter::default(),
            returning: Returning::default(),
            shrinks: Counter::default(),
            stops: Counter::default(),
            caller_metrics: CallerMetrics::default(),
            rejected: Counter::default(),
        });
        pools().push((pool, Arc::downgrade(&shared)));
        shared
    }

    /// Returns a pool, unless nothing keeps its state any more.
    pub(crate) fn find(pool: PoolId) -> Option<Arc<Self>> {
        pools().iter().find(|(id, _)| *id == pool)?.1.upgrade()
    }

    /// Returns the word that counts the running tasks of the view.
    pub(super) fn running_of<'a>(&'a self, view: Option<&'a Arc<ViewCore>>) -> &'a InFlight {
        view.map_or(&self.running, |view| &view.running)
    }

    pub(crate) fn id(&self) -> PoolId {
        PoolId::of(&self.registry)
    }

    /// Reports a task that panicked or expired. Passes a panic that no handle received to the panic
    /// handler.
    #[inline]
    pub(crate) fn handle_failure(&self, outcome: &mut Outcome) {
        if let Outcome::Panicked(_) | Outcome::Expired = outcome {
            self.report_failure(outcome);
        }
    }

    #[cold]
    fn report_failure(&self, outcome: &mut Outcome) {
        let Outcome::Panicked(payload) = outcome else {
            return self.config.hooks.emit(&self.config.name, Event::Expired);
        };
        self.config
            .hooks
            .emit(&self.config.name, Event::Panicked(payload.as_deref().and_then(text_of)));
        if let Some(payload) = payload.take() {
            self.config.hooks.panicked(payload);
        }
    }

    /// In a bounded queue, acquires a permit, free or not.
    #[inline]
    pub(crate) fn acquire_over_limit(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.acquire_over_limit();
        }
    }

    /// In a bounded queue, releases a permit.
    #[inline]
    pub(crate) fn release_permit(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.release(&self.sizes);
        }
    }

    /// In a bounded queue, releases the permit of a task whose first entry stays in a queue without
    /// it, unless the entry keeps that.
    pub(crate) fn leave_entry(&self, is_cancelled: bool) {
        if let Some(capacity) = &self.capacity {
            capacity.leave_entry(&self.sizes, is_cancelled);
        }
    }

    /// In a bounded queue, releases the permits that stale entries have kept, which are no longer
    /// in a queue, or no longer stale.
    pub(crate) fn release_permits_of_entries(&self, count: usize) {
        if let Some(capacity) = &self.capacity {
            capacity.drop_entries(&self.sizes, count);
        }
    }

    /// Grants a permit, if one is free and a submitter waits: the limit may be a higher one.
    pub(crate) fn grant_permits(&self) {
        if let Some(capacity) = &self.capacity {
            capacity.grant(&self.sizes);
        }
    }

    /// Sets both sizes to what `change` makes of them.
    pub(crate) fn resize(
        self: &Arc<Self>,
        change: &dyn Fn(usize, usize) -> (usize, usize),
    ) -> Result<(), BuildError> {
        // Race 15: the reserves change under the same lock.
        let is_lower = self.policy.resize(&self.sizes, change)?;
        if is_lower {
            // Idle workers above the limit leave now, busy ones when they become idle.
            self.shrinks.increment();
        }
        // Parked workers compute their deadline again.
        self.idle.recheck_all();
        self.admit_returning();
        self.grant_permits();
        // The first worker that comes for queued work notifies the next one.
        MustLook::owed().look(self);
        Ok(())
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) {
        self.sizes.set_keep_alive(keep_alive);
        self.idle.recheck_all();
    }

    /// Accepts no more tasks. Accepted tasks run, those of paused views too; then the workers
    /// leave.
    pub(crate) fn close(self: &Arc<Self>) {
        self.refuse_tasks();
        self.resume_all();
    }

    /// Accepts no more tasks, but does not resume paused views yet.
    pub(crate) fn refuse_tasks(&self) {
        let status = self.in_flight.close();
        if let Some(capacity) = &self.capacity {
            capacity.close(None);
        }
        if status.is_over() {
            self.idle.recheck_all();
            self.keeper.recheck();
            // There may be no worker that does so when it leaves.
            self.free_pending();
        }
    }

    /// Frees what the list of pending futures keeps for later ones. In a pool that is over there
    /// are none.
    fn free_pending(&self) {
        self.pending.shut().for_each(drop);
    }

    /// Accepts no more tasks of a view. Its accepted tasks run.
    pub(crate) fn close_view(self: &Arc<Self>, view: &ViewCore) {
        view.in_flight.close();
        // Every view can be resumed.
        _ = self.change_view(view.id, &|terms| terms.is_paused = false);
        if let Some(capacity) = &self.capacity {
            // Race 10: after the change of the view's word.
            capacity.close(Some(view.id));
        }
    }

    /// Pops every job of every queue, for an immediate shutdown.
    pub(crate) fn drain(&self, mut each: impl FnMut(ViewJob)) {
        let default = self.queue.drain().into_iter();
        default.for_each(|job| each(ViewJob { job, view: None }));
        while let Some(jobs) = self.policy.pop_all_of_oldest() {
            jobs.for_each(&mut each);
        }
    }

    /// Drops the entries that are left in a pool which is over, and frees the memory of its queues.
    /// All entries are stale. One of a future holds the pool: it would stay for ever. A list of
    /// unstarted tasks may outlive the pool, and counts its entries.
    #[cold]
    pub(super) fn clear_if_over(&self, is_over: bool) {
        if is_over {
            self.drain(|ViewJob { job, view }| {
                job.take_if_stale();
                discard((job, view));
            });
            self.free_pending();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stops.get() > 0
    }

    pub(crate) fn stats(&self) -> Stats {
        let registry = self.registry.lock();
        // Counters are read in reverse order of a task's life, so no difference is negative.
        let mut sums = registry.sums();
        self.caller_metrics.lock().add_to(&mut sums);
        let in_flight = self.in_flight.count();
        let now = self.counts.load();
        let mut stats = registry.stats.clone();
        stats.workers = now.total();
        stats.idle = now.idle();
        stats.blocked = self.blocked_count(now);
        self.peak_blocked.raise(stats.blocked);
        stats.peak_blocked = self.peak_blocked.get();
        drop(registry);
        sums.describe(&mut stats, in_flight, self.queue_len());
        stats.rejected = self.rejected.get();
        stats.allowed = self.sizes.limit();
        let asleep = *self.sizing.asleep.lock();
        // Not `running`: that has workers in regions beyond `max_blocked`.
        let outside = (stats.workers - stats.idle).saturating_sub(stats.blocked);
        stats.asleep = asleep.all.min(outside);
        stats.asleep_on_threads = asleep.on_threads.min(stats.asleep);
        stats.asleep_on_disks = asleep.on_disks.min(stats.asleep);
        stats.awake = outside - stats.asleep;
        stats
    }

    /// Ends `count` tasks. Returns what is in flight then.
    pub(crate) fn finish(&self, count: usize) -> Status {
        let now = self.in_flight.finish(count);
        if now.is_over() {
            self.idle.recheck_all();
            // There may be no worker that does so when it leaves.
            self.keeper.recheck();
        }
        now
    }

    pub(crate) fn is_below_core(&self, now: Snapshot) -> bool {
        now.total() < self.sizes.core()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let id = self.id();
        pools().retain(|(pool, _)| *pool != id);
    }
}
