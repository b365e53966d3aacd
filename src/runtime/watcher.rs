//! The thread that watches for stalls, of a pool with [`Builder::stall_report`](crate::Builder::stall_report).
//!
//! It starts with the first task, sleeps while there is none, and exits when the pool is over. It belongs to the pool like
//! its workers: `shutdown_join` waits for it (law 9). If the system refuses it, the next submission tries again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::runtime::events::Event;
use crate::runtime::identity::set_identity;
use crate::runtime::registry::{Exit, ThreadKey};
use crate::runtime::shared::Shared;
use crate::runtime::spawn::StartError;
use crate::runtime::tracker::{Tracker, Watch, Watcher};
use crate::sync::unwind::{contain, discard};
use crate::sync::{at_thread_exit, start_thread};

/// The watcher looks this many times in the time after which it reports, so a report comes at most a quarter of it late.
const LOOKS: u32 = 4;

/// The shortest time between two looks: at one per millisecond they take about one percent of a CPU.
const MIN_PAUSE: Duration = Duration::from_millis(1);

impl Tracker {
    /// Starts the watcher of a pool that reports stalls, if there is none. If that is impossible now, the next submission tries again.
    pub(super) fn ensure_watcher(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.watch.is_none() || !self.claim_start() {
            return;
        }
        if let Err(error) = self.start(shared) {
            self.state.lock().watcher = Watcher::Absent;
            if let StartError::Refused(error) = error {
                shared.emit(Event::Refused(&error));
            }
        }
    }

    /// Returns whether the caller starts the watcher: there is none, and no other submission starts it.
    fn claim_start(&self) -> bool {
        let watcher = &mut self.state.lock().watcher;
        *watcher == Watcher::Absent && {
            *watcher = Watcher::Awake;
            true
        }
    }

    fn start(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), StartError> {
        let mut registry = shared.registry.lock();
        // Race 16: the pool may be over by now, and a join may have found all threads gone.
        if shared.in_flight.is_over() {
            return Err(StartError::Over);
        }
        let (tracker, pool) = (Arc::clone(self), Arc::clone(shared));
        let name = format!("{}-watcher", shared.config.name);
        // The thread cannot exit before it is registered: its exit takes the registry's lock.
        let started = start_thread(name, None, move || {
            // Made here: if the system refuses the thread, this closure is dropped under the registry's lock, which the
            // drop of an `Exit` takes.
            let exit = Exit { registry: Arc::clone(&pool.registry), key: ThreadKey::WATCHER };
            let _exit = at_thread_exit(exit);
            // The hook belongs to the pool, like a worker's hooks: it may not join the pool, which would wait for it.
            set_identity(pool.id(), None, None);
            if let Some(watch) = tracker.watch.clone() {
                tracker.watch(&watch, &pool);
            }
            set_identity(pool.id(), None, Some(ThreadKey::WATCHER));
            drop(tracker);
            // This may drop the last reference to the pool, and with it the user's hooks.
            discard(pool);
        });
        started.map(|handle| registry.register_watcher(handle)).map_err(StartError::Refused)
    }

    /// Watches until the pool is over.
    fn watch(&self, watch: &Watch, pool: &Shared) {
        let pause = (watch.after / LOOKS).max(MIN_PAUSE);
        let mut state = self.state.lock();
        // Race 42: checked under the lock that `recheck` takes when the pool is over, which is held until the wait.
        while !pool.in_flight.is_over() {
            let now = Instant::now();
            if state.take_stall(now, watch.after) {
                drop(state);
                report(watch, pool);
                state = self.state.lock();
                // The pool may have ended during the hook, and the notification found no thread that waits.
                continue;
            }
            let next_look = state.is_busy().then_some(now + pause);
            state.watcher = if next_look.is_some() { Watcher::Awake } else { Watcher::Asleep };
            state = self.changed.wait(state, next_look).0;
        }
    }
}

/// Calls the user's hook.
fn report(watch: &Watch, pool: &Shared) {
    if let Some(report) = pool.report() {
        if let Err(payload) = contain(|| watch.hook.call(&report)) {
            pool.config.hooks.panicked(payload);
        }
    }
}

impl Shared {
    /// `None` if the pool does not track its tasks.
    pub(crate) fn report(&self) -> Option<Report> {
        let tracker = self.tracker.as_ref()?;
        let stats = self.stats();
        let (running, oldest_queued, oldest_pending) =
            tracker.state.lock().describe(Instant::now());
        Some(Report {
            pool: self.config.name.clone(),
            stats,
            running,
            oldest_queued,
            oldest_pending,
        })
    }
}
