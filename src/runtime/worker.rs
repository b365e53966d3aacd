//! A worker's life: start, work, rest, leave.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use std::{cmp, mem};

use crate::runtime::context::{Phase, WorkerContext, set_identity, set_worker};
use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::idle::Withdrawal;
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::registry::{Exit, ThreadKey};
use crate::runtime::retire::Retire;
use crate::runtime::shared::{Shared, Start};
use crate::runtime::sizes::Growth;
use crate::sync::at_thread_exit;
use crate::sync::parker::{Parker, Signal};
use crate::sync::spin::spin_until;
use crate::sync::unwind::discard;
use crate::task::job::Job;
#[cfg(feature = "async")]
use crate::task::job::Outcome;

/// The body of a worker's thread.
pub(crate) fn run(start: Start) {
    let Start { shared, gate, key, index, metrics, search } = start;
    // Before any user code, so that it is the last of the thread's locals to go.
    let _exit = at_thread_exit(Exit { registry: Arc::clone(&shared.registry), key });
    // Whoever started this thread holds the gate until the thread is entered and counted. (Not the registry: by now the
    // same thread may be starting the next one.)
    drop(gate.lock());
    let context = WorkerContext::new(&shared, Arc::clone(&metrics));
    let shrinks = shared.shrinks.get();
    let mut worker = Worker {
        shared,
        key,
        index,
        parker: Arc::new(Parker::new()),
        context,
        metrics,
        shrinks,
        search,
        may_monitor: search.is_some(),
        is_fresh: true,
    };
    worker.start();
    worker.work();
    worker.stop();
}

/// Why a worker's rest has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// There is or may be work.
    Over,
    /// The worker has decided to leave; it is off the idle stack and counted no longer.
    ForGood,
}

struct Worker {
    shared: Arc<Shared>,
    key: ThreadKey,
    index: usize,
    parker: Arc<Parker>,
    context: Rc<WorkerContext>,
    metrics: Arc<WorkerMetrics>,
    /// How often `max_size` had been lowered when the worker last looked.
    shrinks: usize,
    search: Option<Search>,
    /// Whether it has come for queued work, and has done nothing since: it may keep the watch instead.
    may_monitor: bool,
    /// Whether the worker has yet to find its first task since it started or rested: then it must
    /// see to it that somebody comes for the next one.
    is_fresh: bool,
}

impl Worker {
    fn start(&mut self) {
        set_identity(&self.shared, Some(self.index), None);
        if self.shared.config.hooks.on_worker_start.is_some() {
            self.set_worker(Phase::StartHook);
            let search = self.search.take();
            self.shared.enter_start_hook(search);
            self.shared.config.hooks.worker_started(self.index);
            self.shared.exit_start_hook();
        }
        self.set_worker(Phase::Tasks);
        self.context.open();
    }

    fn set_worker(&self, phase: Phase) {
        set_worker(Some((Arc::clone(&self.shared), phase)));
    }

    fn stop(self) {
        // It is counted no longer: there are no blocking regions for it.
        set_worker(None);
        let Worker { shared, context, key, index, .. } = self;
        context.close();
        if shared.config.hooks.has_stop_hook() {
            set_identity(&shared, Some(index), Some(key));
            shared.config.hooks.worker_stops(index);
            shared.registry.lock().return_index(index);
        }
        // For the destructors of the thread's locals: the index is another worker's now.
        set_identity(&shared, None, Some(key));
        shared.registry.reap();
        // This may be the last reference to the pool, and thereby to the user's hooks.
        discard(shared);
    }

    /// Runs tasks until it is time to leave.
    fn work(&mut self) {
        loop {
            self.monitor_stalls();
            if self.is_quota_used() && self.try_recycle() {
                return;
            }
            // Also one that has just been woken or started: a worker may have come back from a blocking region since.
            let is_spare = self.shared.is_above_limit(self.shared.counts.load());
            let job = if is_spare { None } else { self.next() };
            if let Some(job) = job {
                if self.context.take_needs_notify() {
                    self.is_fresh = false;
                    let search = self.search.take();
                    self.shared.notify_more(search);
                } else if self.is_fresh {
                    self.is_fresh = false;
                    let search = self.search.take();
                    self.shared.notify_next(search);
                }
                self.run(job);
            } else if !is_spare && self.spin_for_work() {
                self.is_fresh = true;
                self.may_monitor = true;
            } else {
                match self.rest() {
                    Rest::Over => {
                        self.is_fresh = true;
                        self.may_monitor = self.search.is_some();
                    }
                    Rest::ForGood => return,
                }
            }
        }
    }

    #[inline]
    fn next(&self) -> Option<Job> {
        self.context.pop(&self.shared.queue)
    }

    fn run(&mut self, job: Job) {
        let is_new = job.is_new();
        self.shared.begin_work(is_new);
        self.context.begin(!is_new);
        let mut outcome = job.run();
        self.shared.handle_panic(&mut outcome);
        self.context.end(&outcome);
        self.shared.end_work();
        #[cfg(feature = "async")]
        if let Outcome::Woken(task) = outcome {
            // To the end of the queue. Nobody is woken for it: this worker's next look is at the queue, and if it
            // takes something else, somebody has been woken for that.
            self.context.push(&self.shared.queue, || Job::woken(task));
        }
    }

    /// Reports the tasks that have ended here.
    fn report(&mut self) {
        let finished = self.context.take_credit();
        if finished > 0 {
            // Counted as reported no later than it is reported: once it is, the pool may be quiet.
            self.metrics.report(finished);
            self.shared.finish(finished);
        }
    }

    fn is_quota_used(&self) -> bool {
        let max = self.shared.config.max_tasks_per_worker;
        max.is_some_and(|max| self.context.run_count() >= max)
    }

    /// Leaves as one that has run its share of tasks, if another can take its place.
    fn try_recycle(&mut self) -> bool {
        // Before the decision: the last worker is one that has something in flight.
        self.report();
        // The decision may call the user's code, and what that submits is not to be counted here.
        self.context.shut();
        let leaves = self.shared.try_retire(Retire::Recycled, self.key, self.index);
        if leaves {
            self.shared.stopped_running(self.shared.counts.load());
            let search = self.search.take();
            self.shared.notify_next(search);
        } else {
            // No thread can take its place: the quota begins anew.
            self.context.renew_quota();
            self.context.open();
        }
        leaves
    }

    /// Keeps the watch over queued work instead of taking it, if that is called for (`protocol.md`, "Monitoring"). On
    /// return the worker goes on as if it had just come; it may hold the search [`Search::Monitoring`].
    fn monitor_stalls(&mut self) {
        let Growth::Stalled(delay) = self.shared.config.growth else { return };
        let shared = &self.shared;
        let may = mem::take(&mut self.may_monitor)
            && !shared.queue.is_empty()
            && shared.should_monitor()
            && shared.counts.begin_monitoring(self.search);
        if !may {
            return;
        }
        self.search = Some(Search::Monitoring);
        // First of all: whatever happens after this is heard.
        shared.stall_monitor.add(&self.parker);
        let mut step = 1;
        // Whether there was progress in the last period.
        let mut flows = false;
        // Workers that were started here and have yet to take their first task.
        let mut expected = 0;
        let mut taken = shared.taken();
        let mut until = Instant::now() + delay;
        while !shared.queue.is_empty() && shared.is_worth_monitoring(shared.counts.load()) {
            // Surplus, it does not stay for longer than that without a look whether there is still work.
            let glance = Instant::now() + shared.sizes.keep_alive();
            if self.parker.park(Some(cmp::min(until, glance))) != Signal::Expired || glance < until
            {
                continue;
            }
            let before = mem::replace(&mut taken, shared.taken());
            let progress = taken.wrapping_sub(before);
            if progress > expected {
                // Twice in a row: one period's progress may be the merit of those that were just started.
                if flows {
                    step = 1;
                }
                flows = true;
                expected = 0;
            } else {
                flows = false;
                expected -= progress;
                let count = cmp::min(step, shared.queue.len().saturating_sub(expected));
                let started = shared.start_stalled(count);
                if started < count {
                    break;
                }
                // Half of them are forgotten every time: one that does not come does not stop the others for ever.
                expected = expected / 2 + started;
                step = step.saturating_mul(2);
            }
            until = Instant::now() + delay;
        }
        shared.stall_monitor.remove(&self.parker);
    }

    /// Waits a moment for work, before it takes the trouble to rest. One worker at a time does so: it holds the search,
    /// and submitters rely on it as on one that has been woken. Says whether there may be work.
    fn spin_for_work(&mut self) -> bool {
        let shared = &self.shared;
        if !shared.config.spins || (self.search.is_none() && !shared.counts.begin_spinning()) {
            return false;
        }
        self.search.get_or_insert(Search::Awake);
        // Those who wait for quiet do not wait for this: what has ended here is reported when the worker rests.
        let look = || !shared.queue.is_empty() || shared.in_flight.is_awaited();
        spin_until(look) && !shared.queue.is_empty()
    }

    /// Waits on the idle stack for work, or until it is time to leave.
    fn rest(&mut self) -> Rest {
        self.context.rest();
        let mut since = Instant::now();
        let search = self.search.take();
        let mut now = self.shared.idle.publish(&self.shared.counts, &self.parker, search);
        // Idle first: after a join, the workers are seen to be idle.
        self.report();
        let shared = Arc::clone(&self.shared);
        // Race 1: published first, then looked at the queue; submitters do it the other way round.
        shared.stopped_running(now);
        if shared.queue.is_empty() {
            // There is nothing to watch.
            shared.recheck_stall_monitor(now);
        }
        loop {
            if !shared.queue.is_empty() {
                let max_size = shared.sizes.max();
                match shared.idle.withdraw_for_work(&shared.counts, &self.parker, max_size) {
                    Withdrawal::Done(search) => {
                        self.search = search;
                        return Rest::Over;
                    }
                    Withdrawal::Claimed => {
                        self.search = self.await_claim();
                        return Rest::Over;
                    }
                    // Each of those that are running looks at the queue before it stops to run.
                    Withdrawal::AtLimit => {}
                }
            }
            let is_over = shared.in_flight.is_over();
            if is_over || self.check_for_shrink(now) {
                self.search = self.withdraw();
                if self.search.is_some() {
                    return Rest::Over;
                }
                return self.leave(if is_over { Retire::Over } else { Retire::Excess });
            }
            match self.parker.park(shared.rest_until(now, since)) {
                Signal::Unparked => {
                    self.search = Some(Search::Awake);
                    return Rest::Over;
                }
                Signal::Recheck => now = shared.counts.load(),
                Signal::Expired => {
                    self.search = self.withdraw();
                    // Not on the stack and still counted: a submitter that queues a task now relies on this
                    // worker's next look at the queue. Each way from here leads to one.
                    let is_needed =
                        !shared.queue.is_empty() && !shared.is_above_limit(shared.counts.load());
                    if self.search.is_some() || is_needed {
                        return Rest::Over;
                    }
                    if self.leave(Retire::Surplus) == Rest::ForGood {
                        return Rest::ForGood;
                    }
                    // A new term: the old one has run out, and would again and again.
                    since = Instant::now();
                    now = shared.idle.publish(&shared.counts, &self.parker, None);
                    shared.stopped_running(now);
                }
            }
        }
    }

    /// Whether `max_size` has been lowered since the worker last looked, and more workers than that are not blocked.
    fn check_for_shrink(&mut self, now: Snapshot) -> bool {
        let shrinks = self.shared.shrinks.get();
        mem::replace(&mut self.shrinks, shrinks) != shrinks
            && now.runnable() > self.shared.sizes.max()
    }

    /// Leaves, off the idle stack and without a search, if it may.
    fn leave(&self, why: Retire) -> Rest {
        if !self.shared.try_retire(why, self.key, self.index) {
            return Rest::Over;
        }
        // What follows may call the user's code, and what that submits is for others.
        self.context.shut();
        self.shared.stopped_running(self.shared.counts.load());
        // Race 5: there is room for another from now on, and a task may have come when there was not.
        self.shared.notify_next(None);
        Rest::ForGood
    }

    /// Leaves the idle stack. If the worker has been claimed instead, it has the search.
    fn withdraw(&self) -> Option<Search> {
        if self.shared.idle.withdraw(&self.shared.counts, &self.parker) {
            return None;
        }
        self.await_claim()
    }

    /// Waits to be told of the claim that was quicker than the withdrawal.
    fn await_claim(&self) -> Option<Search> {
        // The signal is on its way; a recheck may come before it.
        while self.parker.park(None) != Signal::Unparked {}
        Some(Search::Awake)
    }
}
