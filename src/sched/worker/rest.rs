//! What a worker does without a task: it spins, rests on the idle list, and leaves.
//!
//! # Why an idle worker leaves
//! What makes a reason true rechecks the idle workers (race 4).
//!
//! | reason | rechecked by |
//! |---|---|
//! | the pool is over | `finish`, `refuse_tasks` |
//! | `max_size` was lowered since the worker last looked, and more are runnable | `resize` |
//! | its keep-alive is over, and `total` is above `core_size` | nothing: its deadline. It gets another one by `start_worker`, `resize` and `set_keep_alive` |
//!
//! What users read about the end of an idle worker: search `keep_alive`, `surplus`, `shrink` and
//! `stay`, in any case, in `src/*.rs`, `src/guide`, `README.md` and `docs/migration.md`.
//!
//! A reason is a variant of `Retire`, whose name is in events, an arm of `try_retire`, and a part
//! of what `Stats::threads_retired` says. A worker above a lowered *limit* has none: it is idle,
//! and the next raise wakes it. So is the extra worker between futures.
//!
//! The only worker has no deadline while anything is in flight, so that it does not leave and come
//! back in a loop: `finish_on_caller` rechecks it. A worker that has ended the last task itself
//! returns its credit before it parks.
//!
//! The worker leaves the idle list first (`withdraw`). Whether it may leave the pool is decided
//! under the registry's lock (`try_retire`), where the counts tell of several workers with a reason
//! how many may. One that may not rests again, so its reason must not hold at once again. What has
//! to hold of the number of *idle* workers would be decided under the idle list's lock; `sizes.rs`
//! says what its code may weigh.

use std::sync::Arc;
use std::time::Instant;

use super::{Retire, Worker};
use crate::crew::{Search, Snapshot};
use crate::sched::context::set_worker;
use crate::sync::cpu::cpus;
use crate::sync::parker::Signal;
use crate::sync::spin::spin_until;
use crate::views::Gate;

impl Worker {
    /// Spins for work before the worker becomes idle, if no other worker searches. Returns whether
    /// there may be work.
    #[inline(never)]
    pub(super) fn spin_for_work(&mut self) -> bool {
        let now = self.shared.counts.load();
        // Beside more running workers than CPUs, this one would take the CPU of a thread that has
        // work.
        if !self.shared.config.spins || now.running() > cpus() || !self.begin_search() {
            return false;
        }
        let shared = &self.shared;
        // Takes no lock. Eligible work of a view shuts the gate. (So do a pause of the pool, and a
        // worker that waits for a place: then this one does not spin.)
        let may_be_work = || !shared.queue.is_empty() || shared.policy.has_gate(Gate::Shut);
        // Stops when a joiner waits: this worker returns its credit only when it rests.
        let must_look = || may_be_work() || shared.in_flight.is_awaited();
        shared.has_work() || (spin_until(must_look) && shared.has_work())
    }

    /// Makes [`Search::Searching`] the worker's search. `false` if another worker searches.
    fn begin_search(&mut self) -> bool {
        if self.search == Some(Search::Searching) {
            return true;
        }
        let begins = self.shared.counts.begin_search();
        if begins {
            // It still searches, so it owes no look.
            let _ = self.shared.counts.end_search(self.search.replace(Search::Searching));
        }
        begins
    }

    /// Gives back what a resting worker does not need, publishes the worker on the idle list, and
    /// looks at the queue: that may wake any idle worker, this one too.
    pub(super) fn begin_rest(&mut self) {
        // A worker that rests because too many are running has its place still.
        let freed = self.shared.release_place(&self.context);
        if let Some(capacity) = &self.shared.capacity {
            capacity.grant_before_rest(&self.shared.sizes);
        }
        self.context.rest();
        // In one change: no thread is started for a future that comes in between.
        let was_extra = self.context.metrics.end_extra();
        let shared = &self.shared;
        let owed = shared.idle.publish(&shared.counts, self.index, &self.parker, was_extra);
        let owed = owed.and(self.end_search()).and(freed);
        // Published before it returns its credit: the worker that makes the pool quiet counts as
        // idle when the joiner returns.
        self.return_credit();
        // Race 1: published first, then looks at the queue. Race 42: more work may wait than the
        // running workers may take.
        owed.look(&self.shared);
    }

    /// Waits on the idle list until there is or may be work. Returns why the worker has left
    /// instead: then it is off the list and no longer counted.
    #[inline(never)]
    pub(super) fn rest_or_leave(&mut self) -> Option<Retire> {
        let shared = Arc::clone(&self.shared);
        self.is_woken = true;
        // The keep-alive begins now.
        let since = Instant::now();
        self.begin_rest();
        let why = loop {
            // Race 4: published first, then looks whether there are views.
            self.end_running();
            let now = shared.counts.load();
            if shared.in_flight.is_over() {
                break Retire::Over;
            }
            if self.is_excess(now) {
                break Retire::Excess;
            }
            match self.parker.park(shared.rest_until(now, since)) {
                Signal::Unparked => {
                    self.search = Some(Search::Searching);
                    return None;
                }
                Signal::Recheck => {}
                Signal::Expired => break Retire::Surplus,
            }
        };
        if !shared.idle.withdraw(&shared.counts, self.index) {
            // Waits for the claim's signal. A recheck may come before it.
            while self.parker.park(None) != Signal::Unparked {}
            self.search = Some(Search::Searching);
            return None;
        }
        // Race 1: off the list and still counted. A submitter now relies on this worker. Each
        // change by which it stops returns the look.
        let is_needed = shared.has_work() && !shared.is_above_limit(shared.counts.load());
        (!is_needed && self.leave(why)).then_some(why)
    }

    /// Whether `max_size` was lowered, and more workers have been runnable ever since.
    fn is_excess(&mut self, now: Snapshot) -> bool {
        let shrinks = self.shared.shrinks.get();
        let is_excess = self.shrinks != shrinks && now.runnable() > self.shared.sizes.max();
        if !is_excess {
            self.shrinks = shrinks;
        }
        is_excess
    }

    /// Leaves if it may, and returns whether it has left. The worker is off the idle list.
    pub(super) fn leave(&mut self, why: Retire) -> bool {
        // Before a hook that starting its successor may call: it runs no task meanwhile. The wakers
        // of joiners find a keeper still.
        let passed = self.stop_running();
        let Some(left) = self.shared.try_retire(why, self.key, self.index) else {
            if passed != Gate::None {
                // Before its next pop, as when it started.
                self.shared.running.add();
                self.passes = passed;
            }
            return false;
        };
        // Race 19: what follows may call user code, whose submissions must not enter this context.
        // The worker is no longer counted: regions have no effect on its thread either.
        set_worker(None);
        // Race 1: a task may have been pushed while this worker used up the last spare capacity.
        left.and(self.end_search()).look(&self.shared);
        true
    }
}
