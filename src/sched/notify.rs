//! Notifying a worker of queued work: wake an idle one, or start a thread. And rule A, "rely, then
//! look": the look that a thread owes after a change by which it stops being one that others rely
//! on (`protocol.md`, race 1).

use std::io;
use std::sync::Arc;

use crate::crew::{MAX_SEARCHING, MustLook, Search, Snapshot};
use crate::keeper::KeeperJob;
use crate::sched::shared::Shared;
use crate::sync::cpu::cpus;
use crate::sync::{Ordering, fence};

/// Who notifies, which decides how many searching workers are enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notifier {
    /// One: the worker that it wakes, or that another thread has woken, wakes others when it has
    /// taken its task. Linux would put a second worker on the CPU that it has found for the first
    /// one, which does not run yet.
    Submitter,
    /// One, as for a submitter. It starts a thread itself next, so this starts none.
    BeforeStart,
    /// As many as tasks are queued, up to [`MAX_SEARCHING`]. Each woken worker wakes up to two
    /// others, so n of them are awake after log2(n) wake-ups.
    Woken,
    /// The keeper, for tasks that have waited for the delay of
    /// [`Growth::Stalled`](crate::Growth::Stalled), or for a refused thread.
    Keeper,
    /// The keeper otherwise: as a submitter, but it starts no thread while one that the system has
    /// refused is asked for.
    KeeperLook,
}

impl Notifier {
    fn enough_searchers(self) -> usize {
        match self {
            Notifier::Submitter | Notifier::BeforeStart | Notifier::KeeperLook => 1,
            Notifier::Woken | Notifier::Keeper => MAX_SEARCHING,
        }
    }
}

impl MustLook {
    /// For a caller that looks at the queue itself, right after this, as [`Shared::notify`] does.
    /// Returns the counts.
    #[inline]
    pub(crate) fn fence(self, shared: &Shared) -> Snapshot {
        shared.fence_and_admit()
    }

    /// Notifies if work is queued.
    pub(crate) fn look(self, shared: &Arc<Shared>) {
        shared.look_as(Notifier::Submitter);
    }

    /// Notifies if work is queued beside the task that a worker has taken, the first one since it
    /// started, rested or spun. Wakes up to two other workers for what is left.
    pub(crate) fn look_as_woken(self, shared: &Arc<Shared>) {
        let is_notified = shared.look_as(Notifier::Woken);
        // For a second task, if there is one: the first one is that of the worker which was woken.
        // Without this, `notify` finds the same.
        if is_notified && shared.work_len() > 1 {
            shared.notify(Notifier::Woken);
        }
    }
}

impl Shared {
    /// Notifies for a task that was just queued. If `fills_core`, also starts a worker if there are
    /// fewer than `core_size`, and with `prefer_idle` none is free.
    pub(crate) fn wake_or_start(self: &Arc<Self>, fills_core: bool) {
        let now = self.counts.load();
        // A search counts as a free worker: the task relies on it, as without `core_size`. If
        // nothing is queued, a worker has taken the task already.
        let leaves_to_free =
            self.config.prefers_idle && (now.idle() > 0 || now.searching() > 0 || !self.has_work());
        if fills_core && !leaves_to_free && self.is_below_core(now) {
            // No other thread starts one for this task meanwhile.
            self.counts.begin_starting();
            // An idle worker is faster than a new thread.
            self.notify(Notifier::BeforeStart);
            let _ = self.start_searching(&|now| self.is_below_core(now));
        } else {
            self.notify(Notifier::Submitter);
        }
    }

    /// Makes a worker look for the queued work: wakes the idle one with the lowest index or, if
    /// none is idle, starts a thread. Does nothing if enough workers search already.
    ///
    /// The caller has queued a task, ended a search or made spare capacity, and has then fenced.
    fn notify(self: &Arc<Self>, notifier: Notifier) {
        loop {
            let now = self.counts.load();
            let limit = self.run_limit(now);
            // Race 1: without spare capacity the notifier relies on the running workers, each of
            // which looks at the queue when it stops. If enough search, it relies on these: each
            // looks when it takes a task.
            if !self.may_run_another(now) || self.is_enough(now, notifier) {
                return;
            }
            if self.policy.is_used() && !self.has_work() {
                // Race 35: what is queued waits for a place, and the next worker that releases one
                // looks.
                return;
            }
            if now.idle() > 0 {
                let enough = notifier.enough_searchers();
                if let Some(parker) = self.idle.claim(&self.counts, limit, enough) {
                    parker.unpark();
                    return;
                }
                // All idle workers were claimed or have withdrawn, or a limit was reached.
                continue;
            }
            // Race 1: relies on the thread that the caller starts next; on the workers that exist,
            // if there can be no more; or on the worker in its start hook. It looks when the hook
            // has returned.
            if notifier == Notifier::BeforeStart
                || !now.may_start(limit)
                || self.should_wait_for_hooks(now)
            {
                return;
            }
            if let (Some(delay), true) = (self.start_delay(now), notifier != Notifier::Keeper) {
                // Relies on the keeper, which looks after the delay (race 42).
                return (self.config.growing.ask)(self, delay);
            }
            let is_keeper = matches!(notifier, Notifier::Keeper | Notifier::KeeperLook);
            if is_keeper && self.keeper.is_starved() {
                // Law 7: relies on the look of `KeeperJob::Threads`, after its pause. Only the
                // keeper ends that request, and then looks.
                return;
            }
            let queued = self.work_len();
            let enough = match notifier {
                // Taken already.
                _ if queued == 0 => return,
                _ if self.is_beyond_limit(now) => 1,
                Notifier::Keeper => queued,
                _ => self.start_limit(queued),
            };
            // Race 1: otherwise relies on the threads that are starting. Each looks when it takes a
            // task.
            let Some(starting) = self.counts.begin_starting_below(enough) else { return };
            // Looks at the queue once more: a worker that was starting may have taken its task.
            let may = |now: Snapshot| {
                starting <= self.work_len()
                    && now.may_start(self.run_limit(now))
                    && (starting == 1 || !self.is_beyond_limit(now))
                    && !self.should_wait_for_hooks(now)
            };
            let started = self.start_worker(Some(Search::Starting), None, &may);
            if let Ok(true) = started {
                return;
            }
            // Race 1: other submitters may have relied on this attempt. The look is the next round
            // of this loop: there may be more tasks by now, or spare capacity again. Or the pool is
            // over, and a stale entry was queued since the attempt cleared the queue: the next one
            // clears it again.
            self.counts.end_search(Search::Starting).fence(self);
            if let Err(error) = started {
                // The next round would only be refused again. There is at least one worker, and it
                // looks at the queue when it stops. If none becomes free, the keeper asks for the
                // thread again.
                self.ask_again(KeeperJob::Threads);
                return self.report_refusal(&error);
            }
        }
    }

    /// Whether enough workers search for what is queued. The notifier may rely on any one of them
    /// (race 1); the length of the queue may be outdated.
    fn is_enough(&self, now: Snapshot, notifier: Notifier) -> bool {
        match now.searching() {
            0 => false,
            searching => searching >= notifier.enough_searchers() || self.work_len() <= searching,
        }
    }

    /// How many threads may be starting at a time for `queued` tasks. Workers in their start hooks
    /// count as takers of one task each. Not more than there are CPUs: further ones only wait for
    /// the kernel's lock of the process's memory, which each start takes several times.
    fn start_limit(&self, queued: usize) -> usize {
        let in_hooks = self.in_start_hook.load(Ordering::Relaxed);
        queued.saturating_sub(in_hooks).clamp(1, cpus())
    }

    /// Whether one more worker may run only as the extra one: one thread is started for that.
    fn is_beyond_limit(&self, now: Snapshot) -> bool {
        now.running() >= self.own_limit(now)
    }

    /// Whether a worker in its start hook makes a start unnecessary, of an extra worker or under
    /// [`Growth::Stalled`](crate::Growth::Stalled): it will look at the queue. A blocked worker may
    /// be one of those in a hook, and will not.
    fn should_wait_for_hooks(&self, now: Snapshot) -> bool {
        (self.config.growing.delay.is_some() || self.is_beyond_limit(now))
            // Acquire: a worker that has left its hook searches.
            && self.in_start_hook.load(Ordering::Acquire) > now.blocked()
    }

    /// Ends a new worker's search before its start hook, which may be slow: neither idle workers
    /// nor further starts wait for it.
    pub(super) fn enter_start_hook(self: &Arc<Self>, search: Option<Search>) {
        let in_hooks = 1 + self.in_start_hook.fetch_add(1, Ordering::Relaxed);
        self.counts.end_search(search).fence(self);
        // Each worker in a hook will take one task, and so will each starting one. Notifies only
        // for more than that.
        if self.work_len() > in_hooks + self.counts.starting() {
            self.notify(Notifier::Submitter);
        }
    }

    /// Returns a search for the submitters that have relied on the worker
    /// ([`should_wait_for_hooks`](Self::should_wait_for_hooks)).
    pub(super) fn exit_start_hook(&self) -> Search {
        self.counts.begin_starting();
        self.in_start_hook.fetch_sub(1, Ordering::Release);
        Search::Starting
    }

    /// Starts the first worker if there is none. `Ok` tells whether this call started it.
    pub(crate) fn start_first(self: &Arc<Self>) -> io::Result<bool> {
        // It searches for the task that is about to be queued, so no thread is started for that
        // task.
        self.counts.begin_starting();
        self.start_searching(&|now| now.total() == 0)
    }

    /// Admits returning workers, and notifies if work is queued. Returns whether there was any.
    pub(crate) fn look_as(self: &Arc<Self>, notifier: Notifier) -> bool {
        let now = self.fence_and_admit();
        let is_needed = self.may_run_another(now) && self.has_work();
        if is_needed {
            self.notify(notifier);
        }
        is_needed
    }

    /// Fences, then admits workers from the returning queue. Returns the counts.
    #[inline]
    fn fence_and_admit(&self) -> Snapshot {
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        // A returning worker is still counted as blocked.
        if now.blocked() > 0 && !self.returning.is_empty() {
            self.admit_returning();
        }
        now
    }
}
