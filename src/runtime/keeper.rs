//! The keeper: a pool's thread for what has to be done at a certain time, whatever the workers do.
//!
//! It does [jobs](KeeperJob), each when it is due: the thread that needs one [asks](Keeper::ask) for it. The keeper starts just before
//! the pool's first worker, sleeps until the earliest job is due, and exits after the last worker has left. It is no worker, but belongs to the pool
//! like its workers: `shutdown_join` waits for it (law 9).
//!
//! # Asking for a refused thread again
//! A thread for queued tasks is refused in one place, [`notify`](Shared::notify), which then asks for [`KeeperJob::Threads`]. The job
//! notifies, as a submitter of the queued tasks would. If that is refused again it asks anew, after a pause that is twice as
//! long. Otherwise another thread looks at the queue when it must: the new worker, or whichever made the notification
//! unnecessary. Each such look notifies too, and asks anew if it is refused (law 7). So nothing is asked for, and the keeper
//! sleeps, while nothing is refused.
//!
//! A keeper that was started when the first thread is refused would mostly be refused as well. Then nothing would be left to ask
//! if all workers wait where the pool does not see it. So there is no worker without a keeper: if the system refuses the keeper,
//! the first worker's start has failed, and the task comes back to its submitter.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::report::Report;
use crate::runtime::identity::set_identity;
use crate::runtime::notify::Notifier;
use crate::runtime::registry::{Exit, RegistryState};
use crate::runtime::shared::Shared;
use crate::sync::parker::{Parker, Signal};
use crate::sync::unwind::{contain, discard};
use crate::sync::{Mutex, at_thread_exit, start_thread};

/// The pause before the keeper looks again: at what may be over in a moment, such as a refusal, or a poll that has woken a future. Few
/// polls last as long, and a thousand looks a second cost little.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// The pause before a refused thread is asked for again doubles up to this one. It bounds how long a pool takes to notice that
/// threads are available again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What the keeper does. A new kind needs a place in [`ALL`](Self::ALL), and a line in [`run`](Self::run).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeeperJob {
    /// Ask for a refused thread again.
    Threads,
    /// Look for stalled tasks.
    Stalls,
    /// Look for woken futures that wait for a poll which does not end.
    Deferred,
    /// Look whether queued tasks make progress, under [`Growth::Stalled`](crate::Growth::Stalled), and how many workers are awake,
    /// under [`Growth::Measured`](crate::Growth::Measured).
    Growth,
}

impl KeeperJob {
    const ALL: [KeeperJob; 4] =
        [KeeperJob::Threads, KeeperJob::Stalls, KeeperJob::Deferred, KeeperJob::Growth];

    fn run(self, shared: &Arc<Shared>) {
        match self {
            KeeperJob::Threads => shared.ask_for_threads(),
            KeeperJob::Stalls => shared.look_for_stalls(),
            KeeperJob::Deferred => shared.look_for_deferred(),
            KeeperJob::Growth if shared.sizes.follows_measurements() => shared.measure(),
            KeeperJob::Growth => shared.look_for_progress(),
        }
    }
}

/// See the [module's documentation](self).
pub(crate) struct Keeper {
    /// The thread's.
    parker: Parker,
    state: Mutex<KeeperState>,
}

struct KeeperState {
    /// When each job is due, in the order of [`KeeperJob::ALL`].
    due: [Option<Instant>; KeeperJob::ALL.len()],
    /// The next pause of [`KeeperJob::Threads`].
    pause: Duration,
}

impl Keeper {
    pub(crate) fn new() -> Self {
        let state = KeeperState { due: [None; KeeperJob::ALL.len()], pause: PAUSE };
        Keeper { parker: Parker::new(), state: Mutex::new(state) }
    }

    /// Asks for a job at a certain time, or earlier if that was asked for before. The job is done once.
    pub(crate) fn ask(&self, job: KeeperJob, at: Instant) {
        let mut state = self.state.lock();
        let first = state.due.iter().flatten().min().copied();
        let due = &mut state.due[job as usize];
        *due = Some(due.map_or(at, |due| cmp::min(due, at)));
        drop(state);
        if first.is_none_or(|first| at < first) {
            // Race 42: asked for first. The keeper looks before it parks, or the signal ends the park.
            self.parker.recheck();
        }
    }

    /// Makes the thread look whether the pool is over.
    pub(super) fn recheck(&self) {
        self.parker.recheck();
    }

    /// Whether a thread was refused, and was not asked for again since.
    pub(super) fn is_starved(&self) -> bool {
        self.state.lock().due[KeeperJob::Threads as usize].is_some()
    }

    /// Does jobs until the pool has no worker.
    fn keep(&self, shared: &Arc<Shared>) {
        let mut is_late = false;
        // Race 42: looked at before each park. The last worker rechecks after it has left.
        while !shared.may_keeper_leave() {
            let due = {
                let mut state = self.state.lock();
                let due = KeeperJob::ALL.into_iter().find(|job| state.take_if_due(*job, is_late));
                due.ok_or_else(|| state.due.iter().flatten().min().copied())
            };
            is_late = match due {
                Ok(job) => {
                    job.run(shared);
                    false
                }
                Err(until) => self.parker.park(until) == Signal::Expired,
            };
        }
    }

    /// Lets the deadline of the keeper's sleep pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire(&self) {
        self.parker.expire();
    }
}

impl KeeperState {
    /// A model has no time: there, a job is due when a sleep was `late`.
    fn take_if_due(&mut self, job: KeeperJob, is_late: bool) -> bool {
        let due = &mut self.due[job as usize];
        let is_due = match *due {
            Some(_) if cfg!(elastipool_loom) => is_late,
            Some(at) => at <= Instant::now(),
            None => false,
        };
        if is_due {
            *due = None;
        }
        is_due
    }
}

impl Shared {
    /// Starts the keeper, unless it has been started. The caller starts a worker next.
    pub(super) fn ensure_keeper(self: &Arc<Self>, registry: &mut RegistryState) -> io::Result<()> {
        // Most models are about what the other threads do: one more would multiply their executions.
        #[cfg(elastipool_loom)]
        if !crate::sync::STARTS_KEEPER.get() {
            return Ok(());
        }
        if registry.has_keeper {
            return Ok(());
        }
        let key = registry.take_key();
        let shared = Arc::clone(self);
        let name = format!("{}-keeper", self.config.name);
        // The thread cannot exit before it is registered: its exit takes the registry's lock.
        let started = start_thread(name, None, move || {
            // Made here: if the system refuses the thread, this closure is dropped under the registry's lock, which the
            // drop of an `Exit` takes.
            let exit = Exit { registry: Arc::clone(&shared.registry), key };
            let _exit = at_thread_exit(exit);
            // The hooks that it calls belong to the pool, like a worker's: they may not join the pool, which would wait for
            // them.
            set_identity(shared.id(), None, None);
            shared.keeper.keep(&shared);
            set_identity(shared.id(), None, Some(key));
            // This may drop the last reference to the pool, and with it the user's hooks.
            discard(shared);
        })?;
        registry.register(key, started);
        registry.has_keeper = true;
        Ok(())
    }

    /// Whether the keeper leaves: the pool has no worker. The next start of one starts another keeper.
    fn may_keeper_leave(&self) -> bool {
        if self.counts.load().total() > 0 {
            return false;
        }
        // The starter of the keeper holds the lock until the worker is counted.
        let mut registry = self.registry.lock();
        let leaves = self.counts.load().total() == 0;
        if leaves {
            registry.has_keeper = false;
        }
        leaves
    }

    /// The system has refused a thread for queued tasks, and no other thread relies on that attempt any more: asks for it again
    /// later.
    #[cold]
    pub(super) fn ask_again(self: &Arc<Self>) {
        let pause = {
            let mut state = self.keeper.state.lock();
            let is_asked = state.due[KeeperJob::Threads as usize].is_some();
            let longer = cmp::min(2 * state.pause, LONGEST_PAUSE);
            (!is_asked).then(|| mem::replace(&mut state.pause, longer))
        };
        if let Some(pause) = pause {
            self.keeper.ask(KeeperJob::Threads, Instant::now() + pause);
        }
        // Race 27: asked for first. A worker that waits for a permit is queued, then looks too.
        self.admit_if_starved();
    }

    /// If a thread was refused and no worker is runnable, no permit would become free: grants one over the limit to a worker that
    /// waits for it.
    pub(super) fn admit_if_starved(&self) {
        if let Some(capacity) = &self.capacity {
            if self.keeper.is_starved() && self.counts.load().runnable() == 0 {
                capacity.grant_over_limit(&self.sizes);
            }
        }
    }

    /// [`KeeperJob::Threads`].
    fn ask_for_threads(self: &Arc<Self>) {
        self.look_as(Notifier::Keeper);
        if !self.keeper.is_starved() {
            self.keeper.state.lock().pause = PAUSE;
        }
    }

    /// [`KeeperJob::Stalls`].
    fn look_for_stalls(&self) {
        let Some(tracker) = &self.tracker else { return };
        if let Some(hook) = tracker.take_stall() {
            if let Some(report) = self.report() {
                if let Err(payload) = contain(|| hook(&report)) {
                    self.config.hooks.panicked(payload);
                }
            }
        }
        tracker.watch_again();
    }

    /// `None` if the pool does not track its tasks.
    pub(crate) fn report(&self) -> Option<Report> {
        let tracker = self.tracker.as_ref()?;
        let stats = self.stats();
        Some(tracker.report(self.config.name.clone(), stats))
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    #[cfg(feature = "async")]
    use super::KeeperJob;
    use super::{LONGEST_PAUSE, PAUSE};
    use crate::Builder;

    #[test]
    fn the_pauses_grow_to_a_second_and_begin_anew_after_a_success() {
        let pool = Builder::new().core_size(0).build();
        let shared = pool.shared();
        let pause = || shared.keeper.state.lock().pause;
        for _ in 0..20 {
            shared.keeper.state.lock().due = Default::default();
            shared.ask_again();
        }
        assert_eq!(pause(), LONGEST_PAUSE);
        shared.ask_again();
        assert_eq!(pause(), LONGEST_PAUSE, "it is asked for already");
        shared.keeper.state.lock().due = Default::default();
        shared.ask_for_threads();
        assert_eq!(pause(), PAUSE);
    }

    /// The keeper may have looked, and fallen asleep, before the wake goes on.
    #[cfg(feature = "async")]
    #[test]
    fn a_wake_that_others_rely_on_asks_for_a_look() {
        let pool = Builder::new().core_size(0).build();
        let shared = pool.shared();
        // There is no keeper: this thread does its job.
        let take_job = || shared.keeper.state.lock().due[KeeperJob::Deferred as usize].take();
        shared.watch_deferred();
        assert!(take_job().is_some());
        shared.look_for_deferred();
        assert!(take_job().is_some(), "it looks once more");
        shared.watch_deferred();
        assert!(take_job().is_some(), "a look that has begun may have missed it");
        shared.watch_deferred();
        assert!(take_job().is_none(), "it relies on the one before");
        shared.look_for_deferred();
        assert!(take_job().is_some());
        shared.look_for_deferred();
        assert!(take_job().is_none(), "it sleeps while no future is left behind");
    }
}
