//! What a worker does without a task: it spins, rests on the idle stack, and leaves.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use super::{Notice, Worker};
use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::idle::IdleWithdrawal;
use crate::runtime::retire::Retire;
use crate::sync::cpu::cpus;
use crate::sync::parker::Signal;
use crate::sync::spin::spin_until;

impl Worker {
    /// Spins for work before the worker becomes idle, if no other worker searches. Returns whether there may be work.
    pub(super) fn spin_for_work(&mut self) -> bool {
        let now = self.shared.counts.load();
        // Beside more running workers than CPUs, this one would take the CPU of a thread that has work.
        if !self.shared.config.spins || now.running() > cpus() || !self.begin_search(now) {
            return false;
        }
        let shared = &self.shared;
        let may_be_work = shared.watch_for_work();
        // Stops when a joiner waits: this worker reports its ended tasks only when it rests.
        spin_until(|| may_be_work() || shared.in_flight.is_awaited()) && shared.has_work()
    }

    /// Makes [`Search::Awake`] the worker's search. `false` if enough other workers search.
    fn begin_search(&mut self, now: Snapshot) -> bool {
        let begins = self.search == Some(Search::Awake)
            || self.shared.counts.begin_search(self.search, now.search_limit(cpus()));
        if begins {
            self.search = Some(Search::Awake);
        }
        begins
    }

    /// Gives back what a resting worker does not need, and publishes the worker on the idle stack. The caller looks at the queue.
    fn begin_rest(&mut self) -> Snapshot {
        // A worker that rests because too many are running has its place still.
        let freed = self.shared.release_place(&self.context);
        self.shared.grant_before_rest();
        self.context.rest();
        let run_before = mem::replace(&mut self.run_before, self.context.run_count());
        // Too small or zero after the quota was renewed, which affects only speed.
        self.shared.counts.note_rest(self.run_before.saturating_sub(run_before));
        let search = self.search.take();
        let relied = self.shared.idle.publish(&self.shared.counts, &self.parker, search).and(freed);
        // Published before it reports: the worker that makes the pool quiet counts as idle when the joiner returns.
        self.report();
        // Race 1: published first, then looks at the queue. The look is the loop of `rest_or_leave`.
        relied.fence(&self.shared)
    }

    /// Waits on the idle stack until there is or may be work. Returns `true` if the worker has left instead: it is off the stack
    /// and no longer counted.
    pub(super) fn rest_or_leave(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        // The keep-alive begins now.
        let mut since = Instant::now();
        let mut now = self.begin_rest();
        loop {
            if shared.has_work() {
                let max_size = shared.sizes.max();
                match shared.idle.withdraw_for_work(&shared.counts, &self.parker, max_size) {
                    IdleWithdrawal::Done(search) => return self.resume(search),
                    IdleWithdrawal::Claimed => return self.resume(self.await_claim()),
                    // Race 1: each running worker looks at the queue when it stops.
                    IdleWithdrawal::AtLimit => {}
                }
            }
            let is_over = shared.in_flight.is_over();
            if is_over || self.take_shrink(now) {
                let claimed = self.withdraw();
                let why = if is_over { Retire::Over } else { Retire::Excess };
                return (claimed.is_none() && self.leave(why)) || self.resume(claimed);
            }
            match self.parker.park(shared.rest_until(now, since)) {
                Signal::Unparked => return self.resume(Some(Search::Awake)),
                Signal::Recheck => now = shared.counts.load(),
                Signal::Expired => {
                    let claimed = self.withdraw();
                    // Race 1: off the stack and still counted. A submitter now relies on this worker. Each change by which it stops
                    // returns the look.
                    let is_needed =
                        shared.has_work() && !shared.is_above_limit(shared.counts.load());
                    if claimed.is_some() || is_needed {
                        return self.resume(claimed);
                    }
                    if self.leave(Retire::Surplus) {
                        return true;
                    }
                    // A new period: with the old one, the keep-alive would be over at once, again
                    // and again.
                    since = Instant::now();
                    now = shared.idle.publish(&shared.counts, &self.parker, None).fence(&shared);
                }
            }
        }
    }

    /// The worker is off the idle stack, and looks for work. Returns `false`: it has not left.
    fn resume(&mut self, search: Option<Search>) -> bool {
        self.search = search;
        self.notice = Notice::First;
        false
    }

    /// Returns whether `max_size` was lowered since the last call and more workers are runnable.
    fn take_shrink(&mut self, now: Snapshot) -> bool {
        let shrinks = self.shared.shrinks.get();
        mem::replace(&mut self.shrinks, shrinks) != shrinks
            && now.runnable() > self.shared.sizes.max()
    }

    /// Leaves if it may, and returns whether it has left. The worker is off the idle stack and holds no search.
    fn leave(&mut self, why: Retire) -> bool {
        let Some(left) = self.shared.try_retire(why, self.key, self.index) else {
            return false;
        };
        self.retired = why;
        // Race 19: what follows may call user code, whose submissions must not enter this context.
        self.context.shut();
        // Race 1: a task may have been pushed while this worker used up the last spare capacity.
        left.look(&self.shared);
        true
    }

    /// Leaves the idle stack. Returns the search if the worker was claimed instead.
    fn withdraw(&self) -> Option<Search> {
        if self.shared.idle.withdraw(&self.shared.counts, &self.parker) {
            return None;
        }
        self.await_claim()
    }

    /// Waits for the unpark signal of the claim that preceded the withdrawal.
    fn await_claim(&self) -> Option<Search> {
        // A recheck may come before it.
        while self.parker.park(None) != Signal::Unparked {}
        Some(Search::Awake)
    }
}
