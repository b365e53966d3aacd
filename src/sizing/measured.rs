//! [`Growth::Measured`](crate::Growth::Measured): the keeper measures how many workers are awake,
//! and changes how many may run ([`Sizes::limit`](crate::crew::Sizes::limit)) as
//! `crew/awake.rs` says.
//!
//! A *measurement* is asked for while a task is queued and as many workers run as are wanted awake:
//! by whichever thread sees that when it submits or looks. The keeper looks after each one, so it
//! asks for the next one as long as tasks are queued. An idle pool uses no CPU.
//!
//! A measurement reads the clock of CPU time of each worker with a task. Of those that have run
//! since the last one, and of those that have not, it asks a few whether they are awake, and takes
//! these for all of their kind: the few that are awake among many that sleep are mostly of the
//! first kind. Workers in blocking regions count as asleep, whatever they do.
//!
//! A raised number is a change of a limit (race 15): it is written, then the keeper looks at the
//! queue. Workers above a lowered one become idle at the end of their task.

use std::cmp;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::crew::{Asleep, Measurement, Snapshot, WorkerMetrics, above_zero};
use crate::keeper::{KeeperJob, PAUSE, Previous, SizingState};
use crate::observe::Event;
use crate::report::Wait;
use crate::sched::{Growing, Notifier, Shared, enable_extra};
use crate::sync::Ordering;
use crate::sync::probe::{ThreadId, ThreadState};
use crate::task::ViewId;

/// While the number stays as it is, the reading takes at most one part in so many of a CPU. The
/// keeper's wake-up takes half as much again. While the number changes, at most twenty times as
/// much. In between the pauses double: the first measurement of a load says little.
const COST: u32 = 200;

/// The pause where the system does not tell who is awake. Tasks that compute for as long, or get no
/// CPU for as long if it tells the clocks, are taken for tasks that sleep.
const UNTOLD_PAUSE: Duration = Duration::from_millis(20);

/// How many workers of each kind a measurement asks at most whether they are awake: each takes some
/// 5 microseconds.
const SAMPLES: usize = 4;

/// Returns what the keeper does under [`Growth::Measured`](crate::Growth::Measured), for a pool
/// that will be built.
pub(crate) fn measured() -> Growing {
    enable_extra();
    Growing {
        delay: None,
        ask: Shared::request_measurement,
        look: Shared::measure,
        is_asleep: |worker| worker.thread.state() != Some(ThreadState::Awake),
    }
}

impl Shared {
    /// Whether one more worker may run. Also asks for a measurement, as
    /// [`ask_if_all_run`](Self::ask_if_all_run) does: its answer may be another one after that. The
    /// caller has fenced after the change by which there is more work, or fewer run.
    #[inline]
    pub(crate) fn may_run_another(&self, now: Snapshot) -> bool {
        self.ask_if_all_run(now);
        now.has_spare_capacity(self.run_limit(now))
    }

    /// How many workers may run when one is woken or started: one more than run beside a ready
    /// future, if no worker is the extra one or searches; otherwise as many as
    /// [`own_limit`](Self::own_limit) says.
    #[inline]
    pub(crate) fn run_limit(&self, now: Snapshot) -> usize {
        let limit = self.sizes.limit();
        // What may run below the limit needs no more.
        if now.running() < limit || limit >= self.sizes.max() {
            return limit;
        }
        self.limit_for_another(now)
    }

    #[cold]
    fn limit_for_another(&self, now: Snapshot) -> usize {
        // Race 1: a worker that searches looks when it has taken its task.
        if now.extra() == 0 && now.searching() == 0 && self.has_ready_future() {
            return self.sizes.max().min(now.running() + 1);
        }
        self.own_limit(now)
    }

    /// How many workers may run, with the one beyond the limit that polls: as many as the limit or,
    /// beside a queued task with a free place of its view's reserve, `max_size`.
    #[cold]
    pub(crate) fn own_limit(&self, now: Snapshot) -> usize {
        let beyond = now.extra() + self.policy.beyond_limit();
        self.sizes.max().min(self.sizes.limit() + beyond)
    }

    /// Asks for a measurement if as many workers run as are wanted awake. The caller has fenced, as
    /// for [`may_run_another`](Self::may_run_another).
    #[inline]
    pub(crate) fn ask_if_all_run(&self, now: Snapshot) {
        // Never in a pool whose number of workers does not follow measurements.
        if now.running() >= self.sizes.wanted_awake() {
            self.ask_of_all(now);
        }
    }

    #[cold]
    fn ask_of_all(&self, now: Snapshot) {
        if now.extra() > 0 {
            self.watch_extra();
        }
        self.ask_to_measure();
    }

    /// Asks the keeper to measure the workers, if tasks are queued that more of them could run.
    #[inline]
    pub(crate) fn ask_to_measure(&self) {
        // Race 42: relies on the measurement that is asked for: it fences and looks after it has
        // ended this request.
        if self.sizes.follows_measurements() && !self.sizing.is_asked.load(Ordering::Relaxed) {
            (self.config.growing.ask)(self, PAUSE);
        }
    }

    #[cold]
    fn request_measurement(&self, pause: Duration) {
        if self.is_short_of_workers() {
            self.measure_after(pause);
        }
    }

    /// Asks for a measurement, unless the number may not change. Returns whether it may.
    fn measure_after(&self, pause: Duration) -> bool {
        let (core_size, max_size) = self.sizes.both();
        let may_change = self.sizes.wanted_awake().max(core_size) < max_size;
        if may_change && !self.sizing.is_asked.swap(true, Ordering::Relaxed) {
            let at = Some(Instant::now() + pause);
            let earliest = *self.sizing.earliest.lock();
            self.keeper.ask(KeeperJob::Growth, cmp::max(at, earliest).expect("one is set"));
        }
        may_change
    }

    /// Whether a task is queued that a worker could take if `max_size` might run, or a submitter of
    /// such a task waits for a permit or was rejected without one: with a capacity of 0, or while
    /// `Reservation`s hold the permits, none is queued then.
    fn is_short_of_workers(&self) -> bool {
        let may_start = |view: ViewId| self.policy.may_start_another(view);
        self.capacity
            .as_ref()
            .is_some_and(|capacity| capacity.awaiting_views().into_iter().any(may_start))
            || self.sizing.has_rejected.get()
            || self.policy.eligible_of_all(self.queue.len()) > 0
    }

    /// [`KeeperJob::Growth`] under [`Growth::Measured`](crate::Growth::Measured).
    fn measure(self: &Arc<Self>) {
        let mut state = self.sizing.state.lock();
        let begun = Instant::now();
        let keeper = ThreadId::of_current();
        let used_before = keeper.cpu_nanos();
        let is_told = used_before.is_some();
        // Without `/proc`, or while the process may open no more files, only the clocks tell, and
        // only of a longer time: a worker that has not run meanwhile is taken for asleep.
        let tells_states = is_told && keeper.state().is_some();
        let has_work = self.is_short_of_workers();
        self.sizing.has_rejected.set(false);
        let limit = self.sizes.limit();
        let mut measured = self.measure_workers(&mut state, begun, has_work, is_told);
        // Later there is no measurement, and what this one finds says nothing of other tasks.
        let asleep = if has_work { measured.sleepers() } else { Asleep::default() };
        *self.sizing.asleep.lock() = asleep;
        // Those with reserved places were measured too. While there are any, the tasks that end may
        // all be theirs.
        let reserved = self.policy.reserved_places();
        if reserved > 0 {
            measured.on = [0.0; 2];
        }
        let allowed = (self.sizes.number() + reserved).max(self.sizes.core());
        let (wanted, sizes) = (self.sizes.wanted_awake(), self.sizes.both());
        let next = state.controller.next(allowed, wanted, sizes, measured);
        // Where only progress is known, nothing tells when the tasks that slept are over: the next
        // ones begin anew.
        let next = if is_told || has_work { next } else { 0 };
        let next = self.policy.set_number(&self.sizes, next.saturating_sub(reserved));
        let may_rise = next < self.sizes.max();
        let is_undecided = state.is_growing || state.controller.is_undecided(may_rise);
        // A refused thread is asked for again after a pause, and nothing changes before.
        let is_undecided = is_undecided && !self.keeper.is_starved();
        let is_calm = next == limit && !is_undecided;
        state.calm = if is_calm { state.calm + 1 } else { 0 };
        let cost = cmp::min((COST / 20) << state.calm.min(5), COST);
        drop(state);
        let used = keeper.cpu_nanos().zip(used_before);
        let used = used.map_or(0, |(now, before)| now.saturating_sub(before));
        let pause = if tells_states { Duration::from_nanos(used) * cost } else { UNTOLD_PAUSE };
        self.sizing.end_request(Instant::now() + pause);
        // Race 15: a submitter that has read the lower number has pushed before, or waits for a
        // permit. Race 42: the request has ended, now the keeper fences and looks, and asks again
        // if tasks are queued or submitters wait.
        self.grant_permits();
        self.look_as(Notifier::KeeperLook);
        // The next one forgets those that slept, if nothing is queued by then. `max_size` may have
        // been lowered: then there is none.
        let is_next_asked = (is_undecided || asleep.all > 0) && self.measure_after(PAUSE);
        if !is_next_asked {
            *self.sizing.asleep.lock() = Asleep::default();
        }
        // The helper calls the subscriber.
        if next != limit {
            self.emit(Event::Sized { allowed: next, running: measured.running, asleep });
        }
    }

    /// Measures the workers. `is_told`: the system tells who is awake.
    fn measure_workers(
        &self,
        state: &mut SizingState,
        now: Instant,
        has_work: bool,
        is_told: bool,
    ) -> Measurement {
        let counts = self.counts.load();
        // A poll that returns pending ends no task.
        let (mut busy, taken, ended) = {
            let registry = self.registry.lock();
            (registry.busy(), registry.taken(), registry.sums().ended_within_limit())
        };
        // The worker beyond the limit is none of those that closures may have.
        let with_task = busy.len();
        busy.retain(|worker| !worker.polls_only());
        let beyond = counts.extra().max(with_task - busy.len());
        let running = counts.running().saturating_sub(beyond);
        let is_short = has_work && (running >= self.sizes.limit() || !self.has_work());
        state.number += 1;
        // What was found long before a measurement was asked for says nothing of these tasks.
        let is_old =
            self.sizing.earliest.lock().is_none_or(|earliest| now > earliest + UNTOLD_PAUSE * 10);
        let last =
            state.last.replace(Previous { at: now, taken, ended, running }).filter(|_| !is_old);
        if last.is_none() {
            state.controller.begin();
            state.calm = 0;
        }
        let elapsed = last.as_ref().map_or(Duration::MAX, |last| now - last.at);
        let (awake, on, used) = match is_told {
            true => {
                let (awake, on, cpus) = probe(&busy, state.number, elapsed);
                // The others look for a task, or are in their start hooks.
                let with_task = busy.len() + beyond;
                let without_task = (counts.total() - counts.idle()).saturating_sub(with_task);
                let awake = (awake + without_task as f64).min(running as f64);
                let is_settled = last.as_ref().is_some_and(|last| running <= last.running);
                (awake, on, if is_settled { cpus } else { awake })
            }
            // A worker that has taken a task was awake.
            false if last.as_ref().is_some_and(|last| last.taken == taken) => (0.0, [0.0; 2], 0.0),
            false => (running as f64, [0.0; 2], running as f64),
        };
        state.is_growing = has_work && last.as_ref().is_some_and(|last| running > last.running);
        // An end on the extra worker is told from others only after it was counted as one of them.
        let (elapsed, ended) = last.map_or((Duration::ZERO, 0), |last| {
            (elapsed, above_zero(ended.wrapping_sub(last.ended)))
        });
        Measurement { running, awake, on, used, ended, elapsed, has_work, is_short }
    }
}

/// Estimates how many of the workers with a task are awake, sleep until another thread wakes them,
/// and sleep in the queue of a disk. Returns also how many CPUs they have used on average in the
/// time `elapsed` since the last measurement.
fn probe(busy: &[Arc<WorkerMetrics>], number: usize, elapsed: Duration) -> (f64, [f64; 2], f64) {
    let (mut kinds, mut cpus) = ([Vec::new(), Vec::new()], 0.0);
    for worker in busy.iter().filter(|worker| !worker.is_in_region.get()) {
        // A worker of which the system tells nothing has ended meanwhile.
        let Some(used) = worker.take_cpu_time() else { continue };
        // Not more than one: a worker that had no task at the last measurement has not been read
        // for longer.
        cpus += used.div_duration_f64(elapsed).min(1.0);
        kinds[usize::from(used > Duration::ZERO)].push(&worker.thread);
    }
    let (mut awake, mut on) = (0.0, [0.0; 2]);
    for (threads, has_run) in kinds.iter().zip([false, true]) {
        let step = threads.len().div_ceil(SAMPLES).max(1);
        let asked = threads.iter().skip(number % step).step_by(step);
        // Each one that is asked stands for so many.
        let weight = threads.len() as f64 / cmp::max(asked.len(), 1) as f64;
        for thread in asked {
            match thread.state() {
                Some(ThreadState::Awake) => awake += weight,
                None if has_run => awake += weight,
                Some(ThreadState::Asleep(Some(Wait::Thread))) => on[0] += weight,
                Some(ThreadState::Asleep(Some(Wait::Disk))) => on[1] += weight,
                _ => {}
            }
        }
    }
    (awake, on, cpus)
}

#[cfg(all(test, not(elastipool_loom), any(target_os = "linux", target_vendor = "apple")))]
mod tests;
