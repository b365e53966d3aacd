//! The keeper: a pool's thread for what has to be done at a certain time, whatever the workers do.
//!
//! It does [jobs](KeeperJob), each when it is due: the thread that needs one
//! [asks](crate::keeper::Keeper::ask) for it. The keeper starts just before the pool's first
//! worker, sleeps until the earliest job is due, and exits after the last worker has left. It is no
//! worker, but belongs to the pool like its workers: `shutdown_join` waits for it (law 9). It may
//! queue tasks and start workers. The only user code that it runs then is the hook that names a
//! thread: events, destructors and wakers are for the helper.
//!
//! # Asking for a refused thread again
//! A thread for queued tasks is refused in one place, [`notify`](Shared::notify), which then asks
//! for [`KeeperJob::Threads`]. The job notifies for all queued tasks, without a delay
//! ([`Notifier::Keeper`]). If that is refused again it asks anew, after a pause that is twice as
//! long. Otherwise another thread
//! looks at the queue when it must: the new worker, or whichever made the notification unnecessary.
//! Each such look notifies too, and asks anew if it is refused (law 7). So nothing is asked for,
//! and the keeper sleeps, while nothing is refused.
//!
//! A keeper that was started when the first thread is refused would mostly be refused as well. Then
//! nothing would be left to ask if all workers wait where the pool does not see it. So there is no
//! worker without a keeper: if the system refuses the keeper, the first worker's start has failed,
//! and the task comes back to its submitter.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::crew::{RegistryState, ThreadKey};
use crate::keeper::{End, KeeperJob, PAUSE};
use crate::sched::helper;
use crate::sched::notify::Notifier;
use crate::sched::shared::Shared;
use crate::sync::default_stack_size;
use crate::sync::parker::Signal;
use crate::sync::unwind::{discard, quietly};
use crate::task::AnyGroup;

/// When a group is cancelled.
type Deadline = (Instant, Weak<dyn AnyGroup>);

/// The pause before a refused thread is asked for again doubles up to this one. It bounds how long
/// a pool takes to notice that threads are available again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Shared {
    /// Does jobs until the pool has no worker. Without a helper, returns what waits for the end of
    /// the pool, which has come.
    fn keep(self: &Arc<Self>, key: ThreadKey) -> Vec<End> {
        let mut is_late = false;
        // Race 42: looked at before each park. The last worker rechecks after it has left. The
        // keeper leaves also with a job due, unless user code lacks a helper: jobs are for tasks in
        // flight, and there are none without a worker.
        loop {
            if let Some(ends) = self.try_leave(false) {
                return self.end(key, ends);
            }
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
    }

    /// Starts the helper for user code. While the system refuses it, runs the code.
    fn run_or_leave_to_helper(self: &Arc<Self>) {
        let is_asked = self.keeper.state.lock().due[KeeperJob::Helper as usize].is_some();
        if is_asked || !self.try_start_helper() {
            let code = mem::take(&mut self.keeper.state.lock().user_code);
            code.into_iter().for_each(helper::run);
        }
    }

    /// Returns whether there is a helper now. Otherwise it is asked for again.
    fn try_start_helper(self: &Arc<Self>) -> bool {
        let started = self.ensure_helper(&mut self.registry.lock_reaped());
        let Err(error) = started else { return true };
        self.ask_for_helper_again(&error);
        false
    }

    fn run_job(self: &Arc<Self>, job: KeeperJob) {
        match job {
            KeeperJob::Threads => self.ask_for_threads(),
            KeeperJob::Stalls => (self.config.look_for_stalls)(self),
            KeeperJob::Deferred => self.look_for_deferred(),
            KeeperJob::Growth => (self.config.growing.look)(self),
            KeeperJob::Deadlines => self.expire_due(),
            KeeperJob::Helper => _ = self.try_start_helper(),
        }
    }

    /// Starts the keeper, unless it has been started. The caller starts a worker next.
    pub(super) fn ensure_keeper(self: &Arc<Self>, registry: &mut RegistryState) -> io::Result<()> {
        #[cfg(elastipool_loom)]
        if !crate::sync::models::STARTS_KEEPER.get() {
            return Ok(());
        }
        if self.keeper.state.lock().is_there {
            return Ok(());
        }
        // It may run user code: instead of a refused helper, and as it drops the last reference to
        // the pool.
        let stack_size = cmp::max(self.config.stack_size, default_stack_size());
        self.start_own(registry, "keeper", stack_size, Self::keep)?;
        self.keeper.state.lock().is_there = true;
        Ok(())
    }

    /// The system has refused a thread for queued tasks, or the helper. No other thread relies on
    /// that attempt any more: the job asks for it again later.
    #[cold]
    pub(super) fn ask_again(self: &Arc<Self>, job: KeeperJob) {
        let pause = {
            let mut state = self.keeper.state.lock();
            let is_asked = state.due[job as usize].is_some();
            let pause = &mut state.pauses[job as usize];
            let longer = cmp::min(2 * cmp::max(*pause, PAUSE), LONGEST_PAUSE);
            (!is_asked).then(|| cmp::max(mem::replace(pause, longer), PAUSE))
        };
        if let Some(pause) = pause {
            self.keeper.ask(job, Instant::now() + pause);
        }
        // Race 27: without a runnable worker no permit would become free. A worker that waits for
        // one is queued, then counts as blocked, then looks.
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
            self.keeper.state.lock().pauses[KeeperJob::Threads as usize] = PAUSE;
        }
    }

    /// Replaces the deadline of the group with this id: it is cancelled at the `next` one, while
    /// the pool has a worker.
    pub(crate) fn set_deadline(&self, of: usize, before: Option<Instant>, next: Option<Deadline>) {
        if let Some(before) = before {
            self.deadlines.remove((before, of));
        }
        if let Some((at, what)) = next {
            // Race 42: adds it, then asks. The keeper ends its request, then looks at the
            // deadlines.
            self.deadlines.add((at, of), what);
            self.keeper.ask(KeeperJob::Deadlines, at);
        }
    }

    /// [`KeeperJob::Deadlines`].
    fn expire_due(&self) {
        let (due, next) = self.deadlines.take_due();
        for group in due {
            self.run_later(Box::new(move || {
                if let Some(group) = group.upgrade() {
                    // Contained: it drops tasks, and this may be the last reference.
                    quietly(|| group.expire());
                    discard(group);
                }
            }));
        }
        if let Some(at) = next {
            self.keeper.ask(KeeperJob::Deadlines, at);
        }
    }

    /// [`KeeperJob::Stalls`].
    pub(crate) fn look_for_stalls(&self) {
        for observer in &self.observers {
            if let Some(code) = observer.look_for_stalls(&self.config.name, &|| self.stats()) {
                self.run_later(code);
            }
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
