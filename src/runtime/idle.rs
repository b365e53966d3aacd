//! The idle workers: a stack. The newest one is woken first, so the others go cold and retire (law
//! 5).
//!
//! - [`publish`](IdleStack::publish) pushes a worker: from then on it may be claimed.
//! - [`claim`](IdleStack::claim) pops the newest one for a search, if there is spare capacity.
//! - [`withdraw`](IdleStack::withdraw) removes the calling worker; it fails if the worker was
//!   claimed.
//! - [`withdraw_for_work`](IdleStack::withdraw_for_work) also begins a search.
//! - [`recheck_all`](IdleStack::recheck_all) makes all of them evaluate their state again,
//!   [`recheck_newest`](IdleStack::recheck_newest) and [`recheck_on_free_cpu`](IdleStack::recheck_on_free_cpu) the newest ones,
//!   beside a claim.
//!
//! A worker is on the stack if and only if it is counted as idle: both change under the stack's
//! lock. Outside of it, two workers and two submitters could carry the idle count below zero, into
//! the bits of its neighbour.
//!
//! The order and its effect on caches and on shrinking are those of folly's `LifoSem`.

use std::sync::Arc;

use crate::runtime::counts::{Counts, Search, Snapshot};
use crate::sync::cpu::Cpu;
use crate::sync::parker::Parker;
use crate::sync::running::Running;
use crate::sync::waiters::{Waiters, position};
use crate::sync::waking::Waking;

/// See the [module's documentation](self).
pub(crate) struct IdleStack {
    waiters: Waiters,
}

/// The outcome of [`IdleStack::withdraw_for_work`].
#[must_use]
pub(crate) enum Withdrawal {
    /// The worker is off the stack. `None` for its search if `starting` is full.
    Done(Option<Search>),
    /// The worker was claimed: its parker has been or will be unparked.
    Claimed,
    /// The worker stays on the stack: there is no spare capacity.
    AtLimit,
}

impl IdleStack {
    pub(crate) fn new() -> Self {
        IdleStack { waiters: Waiters::new() }
    }

    /// Pushes the worker and ends the search that it held.
    ///
    /// The caller must then look at the queue, behind a `SeqCst` fence: the submitter of an earlier
    /// task did not see this worker (race 1).
    pub(crate) fn publish(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        search: Option<Search>,
    ) -> Snapshot {
        parker.cpu.note();
        let mut parkers = self.waiters.lock();
        parkers.push(Arc::clone(parker));
        counts.add_idle(search)
    }

    /// Removes the worker. `false` if it was claimed: its parker has been or will be unparked, and
    /// it holds [`Search::Awake`].
    #[must_use]
    pub(crate) fn withdraw(&self, counts: &Counts, parker: &Arc<Parker>) -> bool {
        let mut parkers = self.waiters.lock();
        let Some(place) = position(&parkers, parker) else { return false };
        parkers.remove(place);
        counts.remove_idle();
        true
    }

    /// As [`withdraw`](Self::withdraw), for a worker that has seen work: only while fewer than
    /// `max` workers are running, and with a search, unless it holds one
    /// ([`Counts::search_from_idle`]).
    pub(crate) fn withdraw_for_work(
        &self,
        counts: &Counts,
        parker: &Arc<Parker>,
        held: Option<Search>,
        max: usize,
    ) -> Withdrawal {
        let mut parkers = self.waiters.lock();
        let Some(place) = position(&parkers, parker) else { return Withdrawal::Claimed };
        let Some(search) = counts.search_from_idle(held, max) else {
            return Withdrawal::AtLimit;
        };
        parkers.remove(place);
        Withdrawal::Done(search)
    }

    /// Pops the newest idle worker for a search; the caller must unpark it. `None` if no worker is
    /// idle, if `max` workers are running, or if another worker is awake.
    #[must_use]
    pub(crate) fn claim(&self, counts: &Counts, max: usize) -> Option<Arc<Parker>> {
        let mut parkers = self.waiters.lock();
        if counts.claim_idle(max) { parkers.pop() } else { None }
    }

    /// Makes every worker on the stack evaluate again whether it may stay, and for how long.
    ///
    /// A worker that is published later sees, after taking the lock, what the caller did before.
    pub(crate) fn recheck_all(&self) {
        self.waiters.recheck_all();
    }

    /// As [`recheck_all`](Self::recheck_all), for that many of the newest ones, 8 at most.
    pub(crate) fn recheck_newest(&self, count: usize) {
        self.waiters.recheck_newest(|_| count);
    }

    /// As [`recheck_newest`](Self::recheck_newest), for `least` of them and as far as one that last ran on a CPU that is not
    /// [used](is_used), if the newest or the one below it did. Both then, so that no worker is woken before a newer one (law 5).
    pub(crate) fn recheck_on_free_cpu(&self, least: usize) {
        let is_on_free = |parker: &Arc<Parker>| parker.cpu.get().is_some_and(|cpu| !is_used(cpu));
        self.waiters.recheck_newest(|parkers| {
            let place = parkers.iter().rev().take(2).position(is_on_free);
            place.map_or(0, |place| place + 1).max(least)
        });
    }

    /// As [`recheck_all`](Self::recheck_all), if only one worker is on the stack.
    pub(crate) fn recheck_only(&self) {
        self.waiters.recheck_only();
    }

    /// Lets the keep-alive of every worker on the stack pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire_all(&self) {
        self.waiters.expire_all();
    }
}

/// Whether a worker runs on that CPU, or a thread of the process waits for it or wakes another one there.
pub(crate) fn is_used(cpu: Cpu) -> bool {
    Running::is_any(cpu) || Waking::is_any(cpu)
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;

    use super::IdleStack;
    use crate::runtime::counts::Counts;
    use crate::sync::cpu::Cpu;
    use crate::sync::parker::Parker;
    use crate::sync::running::Running;
    use crate::sync::waking::Waking;

    #[test]
    fn the_two_newest_workers_are_rechecked_as_far_as_a_free_cpu() {
        let (counts, idle) = (Counts::new(), IdleStack::new());
        idle.recheck_on_free_cpu(0);
        let cpus = [3, 4, 5].map(Cpu::unusual);
        let parkers = cpus.map(|cpu| {
            counts.add_worker();
            let parker = Arc::new(Parker::new());
            idle.publish(&counts, &parker, None);
            parker.cpu.set(Some(cpu));
            parker
        });
        let rechecked = || {
            idle.recheck_on_free_cpu(0);
            parkers.each_ref().map(|parker| parker.try_park().is_some())
        };
        let [_, below, newest] = cpus;
        assert_eq!(rechecked(), [false, false, true]);
        let running = Running::begin_on(newest);
        assert_eq!(rechecked(), [false, true, true]);
        let waking = Waking::begin(below);
        assert_eq!(rechecked(), [false; 3], "no third one is looked at");
        drop(running);
        assert_eq!(rechecked(), [false, false, true]);
        drop(waking);
        parkers[2].cpu.set(None);
        assert_eq!(rechecked(), [false, true, true], "where the newest one ran is not known");
        idle.recheck_on_free_cpu(1);
        assert!(parkers[1].is_signalled(), "as far as the free CPU");
        idle.recheck_on_free_cpu(3);
        assert!(parkers[0].is_signalled());
    }
}
