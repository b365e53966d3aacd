//! Notifying a worker of queued work: wake an idle one, or start a thread.

use std::io;
use std::sync::Arc;

use crate::runtime::context;
use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::events::Event;
use crate::runtime::idle::is_used;
use crate::runtime::shared::Shared;
use crate::runtime::sizes::Growth;
use crate::runtime::spawn::StartError;
use crate::sync::cpu::Cpu;
use crate::sync::cpu::cpus;
use crate::sync::parker::Parker;
use crate::sync::waking::Waking;
use crate::sync::{Ordering, fence};

impl Shared {
    /// Notifies for a task that was just queued. If `fills_core`, also starts a worker if there are
    /// fewer than `core_size`.
    pub(super) fn wake_or_start(self: &Arc<Self>, fills_core: bool) {
        let now = self.counts.load();
        // A search counts as a free worker: the task relies on it, as without `core_size`. If nothing is queued, a
        // worker has taken the task already.
        let leaves_to_free =
            self.config.prefers_idle && (now.idle() > 0 || now.has_searcher() || !self.has_work());
        if fills_core && !leaves_to_free && self.is_below_core(now) {
            self.start_arriving(self.counts.begin_arriving());
        } else {
            self.notify_unless(now, Err(StartError::AtLimit));
        }
    }

    /// Begins the search of a worker that is to be started for a task which is pushed next. `None` if there are enough workers, and
    /// with [`Builder::prefer_idle`](crate::Builder::prefer_idle), where that is decided after the push.
    pub(super) fn expect_arrival(&self) -> Option<Search> {
        let fills_core = !self.config.prefers_idle && self.is_below_core(self.counts.load());
        fills_core.then(|| self.counts.begin_arriving())
    }

    /// Starts a worker with a search of the kind [`Search::Arriving`], if there are still fewer than `core_size`, and notifies. The
    /// caller has pushed a task.
    pub(super) fn start_arriving(self: &Arc<Self>, search: Search) {
        let started = self.start_worker(Some(search), |now| self.is_below_core(now));
        if started.is_err() {
            self.counts.end_search(search);
            // Race 45: others may have relied on this attempt.
            fence(Ordering::SeqCst);
        }
        self.notify_unless(self.counts.load(), started);
    }

    /// Notifies, unless a worker was started for the task.
    fn notify_unless(self: &Arc<Self>, now: Snapshot, started: Result<(), StartError>) {
        if started.is_err() && now.has_searcher() && self.counts.rely() {
            self.wake_second(now);
        }
        // A new thread may be slow: an idle worker is faster. No second thread is started.
        self.notify(started.is_err());
        self.report_start(started);
    }

    /// Wakes a second worker for a task that is the second one to rely on a worker's search. That worker still wakes up,
    /// has lost its CPU, or lets tasks gather. It would wake the second one itself, but later, and some kernels leave a
    /// woken thread on the CPU of its waker, while the CPU of the submitter falls idle.
    ///
    /// A submitter outside of the pool does so up to as many workers as CPUs. A task of the pool does only if the worker that
    /// it relies on is *stuck*: it waits for the very CPU that the task uses, perhaps for a time slice. So it does not count
    /// as one of these workers.
    ///
    /// At most once until a worker resumes whose rest was longer than a short spin, and whose last tasks were no stream of
    /// short ones: such a stream is left to few workers. Not if a worker stands by: that one is awake. Both tasks rely on the
    /// search, so the second worker only saves time.
    #[cold]
    fn wake_second(self: &Arc<Self>, now: Snapshot) {
        if now.idle() == 0 || self.standbys.get() > 0 {
            return;
        }
        let is_outside = context::current(self).is_none();
        // The worker that the task relies on may be the one that waits.
        let is_stuck = || Cpu::current().is_some_and(Waking::is_any);
        if may_wake_second(now, is_outside, cpus(), is_stuck) {
            self.counts.forbid_second();
            self.idle.recheck_newest(1);
        }
    }

    /// Makes a worker look for the queued work: wakes an idle one or, if `may_start` and none is
    /// idle, starts a thread. Does nothing if another worker searches or monitors, or is enough.
    ///
    /// The caller has queued a task, ended a search or made spare capacity, and has then fenced.
    pub(crate) fn notify(self: &Arc<Self>, may_start: bool) {
        loop {
            let now = self.counts.load();
            let max_size = self.sizes.max();
            // Race 6: without spare capacity, each running worker looks at the queue before it
            // stops.
            if now.has_searcher() || !now.has_spare_capacity(max_size) {
                return;
            }
            if self.queue.may_have_views() && !self.has_work() {
                // Race 35: what is queued waits for a place, and the next worker that releases one
                // looks.
                return;
            }
            if now.idle() > 0 {
                if let Some(parker) = self.idle.claim(&self.counts, max_size) {
                    self.unpark_claimed(&parker);
                    return;
                }
                // All idle workers were claimed or have withdrawn, or the limit was reached.
                continue;
            }
            if !may_start || self.should_wait_for_hooks(now) {
                return;
            }
            if now.has_stall_monitor() || !now.may_start(max_size) {
                return;
            }
            // Race 16: starts no thread for tasks that were taken already.
            let queued = self.uncovered_len();
            let enough = self.start_limit(queued);
            if queued == 0 || !now.may_start_more(enough) {
                return;
            }
            let Some(starting) = self.counts.begin_starting(max_size, enough) else {
                continue;
            };
            // Race 34: a starting thread may have taken some of the tasks since they were counted.
            let started = if starting > self.uncovered_len() {
                Err(StartError::AtLimit)
            } else {
                self.start_for_queue(Some(Search::Starting))
            };
            if started.is_err() {
                self.counts.end_search(Search::Starting);
                // Race 2: other submitters may have relied on this attempt.
                fence(Ordering::SeqCst);
            }
            match started {
                Ok(()) | Err(StartError::Over) => return,
                // Race 14: there may be more tasks, or spare capacity again.
                Err(StartError::AtLimit) => {}
                // Race 13: the tasks that relied on this attempt run on the existing workers. There
                // is at least one, and none becomes idle without a look at the queue. If none of them becomes
                // free, the keeper asks for the thread again.
                Err(StartError::Refused(error)) => {
                    self.emit(Event::Refused(&error));
                    return self.ask_again();
                }
            }
        }
    }

    /// How many tasks are queued beyond those that arriving workers will take.
    ///
    /// Race 45: each of them takes one, and then looks for more.
    fn uncovered_len(&self) -> usize {
        // Before the look and after it: meanwhile one may come and take its task, and another one may be expected.
        let before = self.counts.arriving();
        let queued = self.work_len();
        queued.saturating_sub(before.max(self.counts.arriving()))
    }

    /// Wakes the worker that was claimed for queued work, and rechecks others:
    ///
    /// - If the tasks are long, one for each further task. Otherwise the tasks of a burst that block would start one by one, each
    ///   a wake-up later: the claimed worker would wake the next one, and so on.
    /// - If the claimed worker may have to wait for its CPU until another worker rests, the next idle ones, as far as one that
    ///   need not.
    ///
    /// None for a single task, which is the claimed worker's (law 5), and for long tasks no more than may run.
    fn unpark_claimed(&self, claimed: &Parker) {
        // Before it runs there itself.
        let must_wait = claimed.cpu.get().is_some_and(is_used);
        claimed.unpark();
        let are_long = self.counts.are_tasks_long();
        if !must_wait && !are_long {
            return;
        }
        let may_run = self.sizes.max().saturating_sub(self.counts.load().running());
        let further = self.work_len().saturating_sub(1).min(may_run);
        if further == 0 {
            return;
        }
        let least = if are_long { further } else { 0 };
        if must_wait {
            self.idle.recheck_on_free_cpu(least);
        } else {
            self.idle.recheck_newest(least);
        }
    }

    /// Ends a search, and notifies if more work is queued.
    pub(crate) fn notify_next(self: &Arc<Self>, search: Option<Search>) {
        if self.end_search(search) && self.has_work() {
            self.notify(true);
        }
    }

    /// As [`notify_next`](Self::notify_next), for a caller that knows of more work: the queue,
    /// which other workers write to, is not read.
    pub(crate) fn notify_more(self: &Arc<Self>, search: Option<Search>) {
        if self.end_search(search) {
            self.notify(true);
        }
    }

    /// Ends a search, if there is one. Returns whether there is spare capacity.
    pub(super) fn end_search(&self, search: Option<Search>) -> bool {
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        // Race 2: a submitter that relied on the search pushed first; the look comes after its end.
        fence(Ordering::SeqCst);
        self.counts.load().has_spare_capacity(self.sizes.max())
    }

    /// How many threads may be starting at a time for `queued` tasks. Under [`Growth::Eager`]
    /// workers in their start hooks count as takers of one task each. Not more than there are CPUs: further ones only
    /// wait for the kernel's lock of the process's memory, which each start takes several times.
    pub(super) fn start_limit(&self, queued: usize) -> usize {
        match self.config.growth {
            Growth::Eager => {
                let in_hooks = self.in_start_hook.load(Ordering::Relaxed);
                queued.saturating_sub(in_hooks).min(cpus())
            }
            Growth::Stalled(_) => 1,
        }
    }

    /// Whether a worker in its start hook makes a start unnecessary, under [`Growth::Stalled`]: it
    /// will look at the queue or monitor it. A blocked worker may be one of those in a hook, and
    /// will not.
    pub(super) fn should_wait_for_hooks(&self, now: Snapshot) -> bool {
        self.config.growth != Growth::Eager
            && self.in_start_hook.load(Ordering::Relaxed) > now.blocked()
    }

    /// Ends a new worker's search before its start hook, which may be slow: neither idle workers
    /// nor further starts wait for it (race 17).
    pub(crate) fn enter_start_hook(self: &Arc<Self>, search: Option<Search>) {
        let in_hooks = 1 + self.in_start_hook.fetch_add(1, Ordering::Relaxed);
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        fence(Ordering::SeqCst);
        // Each worker in a hook will take one task, and so will each arriving one. Notifies only for more than that.
        if self.uncovered_len() > in_hooks {
            self.notify(true);
        }
    }

    pub(crate) fn exit_start_hook(&self) {
        self.in_start_hook.fetch_sub(1, Ordering::Relaxed);
        // Race 2: a submitter that relied on this worker has pushed; the worker's next look is at
        // the queue.
        fence(Ordering::SeqCst);
    }

    /// Starts the first worker if there is none. `Ok` tells whether this call started it.
    pub(super) fn start_first(self: &Arc<Self>) -> Result<bool, io::Error> {
        // It searches for the task that is about to be queued, so no thread is started for that
        // task.
        let search = self.counts.begin_starting(1, 1).map(|_| Search::Starting);
        let started = self.start_worker(search, |now| now.total() == 0);
        if started.is_err() && search.is_some() {
            // Race 13: other submitters may have relied on it, with tasks for another starter's
            // worker.
            self.notify_next(search);
        }
        match started {
            Ok(()) => Ok(true),
            Err(StartError::AtLimit | StartError::Over) => Ok(false),
            Err(StartError::Refused(error)) => {
                self.emit(Event::Refused(&error));
                Err(error)
            }
        }
    }
}

/// Whether a submitter may wake a second worker. See [`Shared::wake_second`].
fn may_wake_second(
    now: Snapshot,
    is_outside: bool,
    cpus: usize,
    is_stuck: impl FnOnce() -> bool,
) -> bool {
    if is_outside {
        now.has_spare_capacity(cpus)
    } else {
        // The stuck worker counts as running, and has no CPU.
        now.has_spare_capacity(cpus + 1) && is_stuck()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::may_wake_second;
    use crate::runtime::counts::Counts;

    #[test]
    fn a_task_wakes_a_second_worker_if_the_first_one_is_stuck() {
        let counts = Counts::new();
        let may = |cpus, is_stuck| may_wake_second(counts.load(), false, cpus, || is_stuck);
        for _ in 0..3 {
            counts.add_worker();
        }
        counts.add_idle(None);
        // The task's worker and the stuck one run.
        assert!(may(2, true));
        assert!(!may(2, false));
        assert!(!may(1, true), "no CPU is free");
        assert!(may_wake_second(counts.load(), true, 3, || false), "from outside it does anyway");
    }
}
