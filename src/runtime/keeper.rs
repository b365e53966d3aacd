//! The keeper: a pool's thread for what has to be done at a certain time, whatever the workers do.
//!
//! It does [jobs](KeeperJob), each when it is due: the thread that needs one [asks](super::due::Keeper::ask) for it. The keeper starts just before
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
use crate::runtime::due::{End, KeeperJob, PAUSE};
use crate::runtime::events::Event;
use crate::runtime::helper;
use crate::runtime::notify::Notifier;
use crate::runtime::registry::{RegistryState, ThreadKey};
use crate::runtime::shared::Shared;
use crate::sync::parker::Signal;
use crate::sync::unwind::{contain, discard, quietly};

/// The pause before a refused thread is asked for again doubles up to this one. It bounds how long a pool takes to notice that
/// threads are available again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Shared {
    /// Does jobs until the pool has no worker.
    fn keep(self: &Arc<Self>, _: ThreadKey) -> Vec<End> {
        let mut is_late = false;
        // Race 42: looked at before each park. The last worker rechecks after it has left. The keeper leaves also with a job due, unless
        // user code lacks a helper: jobs are for queued work or running tasks, and there are none without a worker.
        while !self.try_leave_keeper() {
            let mut state = self.keeper.state.lock();
            let due = KeeperJob::ALL.into_iter().find(|job| state.take_if_due(*job, is_late));
            let lacks_helper = state.lacks_helper();
            let until = state.due.iter().flatten().min().copied();
            drop(state);
            is_late = false;
            match due {
                Some(job) => self.run_job(job),
                None if lacks_helper => self.run_or_leave_to_helper(),
                None => is_late = self.keeper.parker.park(until) == Signal::Expired,
            }
        }
        Vec::new()
    }

    /// Starts the helper for user code. While the system refuses it, runs the code.
    fn run_or_leave_to_helper(self: &Arc<Self>) {
        let wants_helper = self.keeper.state.lock().wants_helper;
        if wants_helper || !self.try_start_helper() {
            let code = mem::take(&mut self.keeper.state.lock().user_code);
            code.into_iter().for_each(helper::run);
        }
    }

    /// Returns whether there is a helper now. Otherwise it is asked for again.
    fn try_start_helper(self: &Arc<Self>) -> bool {
        let started = self.ensure_helper(&mut self.registry.lock_reaped());
        let Err(error) = started else { return true };
        self.ask_again();
        self.emit(Event::refused(&error));
        false
    }

    fn run_job(self: &Arc<Self>, job: KeeperJob) {
        match job {
            KeeperJob::Threads => self.ask_for_threads(),
            KeeperJob::Stalls => self.look_for_stalls(),
            KeeperJob::Deferred => self.look_for_deferred(),
            KeeperJob::Growth if self.sizes.follows_measurements() => self.measure(),
            KeeperJob::Growth => self.look_for_progress(),
            KeeperJob::Deadlines => self.expire_due(),
        }
    }

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
        // No user code runs on it, as long as the system does not refuse the helper.
        self.start_own(registry, "keeper", None, Self::keep)?;
        registry.has_keeper = true;
        self.keeper.state.lock().is_there = true;
        Ok(())
    }

    /// Lets the keeper leave if the pool has no worker, and returns whether it does. The next start of one starts another keeper.
    #[must_use]
    fn try_leave_keeper(&self) -> bool {
        if self.counts.load().total() > 0 {
            return false;
        }
        // The starter of the keeper holds the lock until the worker is counted.
        let mut registry = self.registry.lock();
        let mut state = self.keeper.state.lock();
        let leaves = self.counts.load().total() == 0 && !state.lacks_helper();
        if leaves {
            registry.has_keeper = false;
            state.is_there = false;
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
        if self.keeper.state.lock().wants_helper {
            self.try_start_helper();
        }
        if !self.keeper.is_starved() {
            self.keeper.state.lock().pause = PAUSE;
        }
    }

    /// Asks for what has a deadline at that time to be ended then, while the pool has a worker.
    ///
    /// Race 42: the caller has added it. The keeper ends its request, then looks at the deadlines.
    pub(crate) fn ask_to_expire(&self, at: Instant) {
        self.keeper.ask(KeeperJob::Deadlines, at);
    }

    /// [`KeeperJob::Deadlines`].
    fn expire_due(&self) {
        let next = loop {
            match self.deadlines.take_due() {
                Ok(due) => self.run_later(Box::new(move || {
                    if let Some(due) = due.upgrade() {
                        // Contained: it drops tasks, and this may be the last reference.
                        quietly(|| due.expire());
                        discard(due);
                    }
                })),
                Err(next) => break next,
            }
        };
        if let Some(at) = next {
            self.keeper.ask(KeeperJob::Deadlines, at);
        }
    }

    /// [`KeeperJob::Stalls`].
    fn look_for_stalls(&self) {
        let Some(tracker) = &self.tracker else { return };
        if let (Some(hook), Some(report)) = (tracker.take_stall(), self.report()) {
            let hooks = self.config.hooks.clone();
            self.run_later(Box::new(move || {
                if let Err(payload) = contain(|| hook(&report)) {
                    hooks.panicked(payload);
                }
            }));
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
