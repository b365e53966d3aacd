#![doc = include_str!("protocol.md")]

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counts::{Counts, Search, Snapshot};
use crate::error::Refusal;
use crate::hooks::Hooks;
use crate::idle::IdleStack;
use crate::in_flight::InFlight;
use crate::job::Job;
#[cfg(feature = "async")]
use crate::job::Outcome;
use crate::queue::Queue;
use crate::roster::{Roster, ThreadKey};
use crate::stats::{Stats, Tally};
use crate::sync::{AtomicUsize, Ordering, Tick, fence, start_thread};

/// What a pool was built with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) core_size: usize,
    pub(crate) max_size: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) hooks: Hooks,
}

/// What a new worker's thread is given.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: ThreadKey,
    pub(crate) index: usize,
    pub(crate) tally: Arc<Tally>,
    pub(crate) search: Option<Search>,
}

/// What the handles, workers and wakers of one pool share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The body of a worker's thread. A worker knows what it shares, not the other way round.
    body: fn(Start),
    pub(crate) counts: Counts,
    pub(crate) idle: IdleStack,
    pub(crate) queue: Queue<Job>,
    pub(crate) in_flight: InFlight,
    /// Shared on its own: an exiting thread reports to it when it may no longer touch a task, and
    /// dropping the last `Shared` may drop tasks.
    pub(crate) roster: Arc<Roster>,
    /// Workers in their start hook. Only an estimate of who is about to come.
    in_start_hook: AtomicUsize,
    /// Tasks that ended outside of the workers.
    elsewhere: Tally,
    rejected: Tick,
}

/// An accepted task on its way into the queue, from [`Shared::admit`].
#[derive(Debug)]
#[must_use = "an admitted task is in flight until it is finished"]
pub(crate) struct Admitted {
    /// Whether the task starts a worker if there are fewer than `core_size`: each submission starts
    /// one, so not if it had to start the very first.
    fills_core: bool,
}

/// Why no thread was started.
#[derive(Debug)]
pub(crate) enum StartError {
    /// There is no room for one.
    NoRoom,
    /// The system refused it.
    Refused(io::Error),
}

impl Shared {
    pub(crate) fn new(config: Config, body: fn(Start)) -> Arc<Self> {
        Arc::new(Shared {
            config,
            body,
            counts: Counts::new(),
            idle: IdleStack::new(),
            queue: Queue::new(),
            in_flight: InFlight::new(),
            roster: Arc::new(Roster::new()),
            in_start_hook: AtomicUsize::new(0),
            elsewhere: Tally::default(),
            rejected: Tick::default(),
        })
    }

    // ----- submitting -----

    /// Accepts one task: from here on it is in flight, and there is a worker that may not leave
    /// before it is finished.
    ///
    /// After [`Refusal::NoThread`] the task *is* in flight: the caller finishes it, by
    /// [`retract`](Self::retract) or by running it.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, Refusal> {
        if !self.in_flight.accept() {
            self.rejected.increment();
            return Err(Refusal::Closed);
        }
        if self.counts.load().total() > 0 {
            return Ok(Admitted { fills_core: true });
        }
        let started = self.start_first().map_err(Refusal::NoThread)?;
        Ok(Admitted { fills_core: !started })
    }

    /// Takes back an acceptance that found no thread: the task goes back to its submitter.
    pub(crate) fn retract(&self) {
        self.rejected.increment();
        self.finish_elsewhere();
    }

    /// Queues an admitted task and makes sure that a worker comes for it.
    pub(crate) fn enqueue(self: &Arc<Self>, admitted: Admitted, job: Job) {
        self.queue.push(job);
        // Race 1: pushed first, then looked for idle workers; they look the other way round.
        fence(Ordering::SeqCst);
        let below_core = |now: Snapshot| now.total() < self.config.core_size;
        let started = admitted.fills_core
            && below_core(self.counts.load())
            && self.start_worker(None, below_core).is_ok();
        // If one was started it may be slow: one that is idle now is quicker.
        self.notify(!started);
    }

    /// Queues a task that was accepted before: a future that was woken. Never refused, not even by a
    /// closed pool.
    /// Queues a task that was accepted before: a future that was woken. A closed pool takes it as well.
    ///
    /// There is a worker as long as anything is in flight, but for one case: the system refused the first one
    /// when the future was spawned, and its first poll was the spawner's. If it refuses again there is nobody to
    /// run it: `Err`, and the job is dropped.
    #[cfg(feature = "async")]
    pub(crate) fn requeue(self: &Arc<Self>, job: Job) -> Result<(), io::Error> {
        if self.counts.load().total() == 0 {
            self.start_first()?;
        }
        self.enqueue(Admitted { fills_core: false }, job);
        Ok(())
    }

    /// Runs an admitted task on the calling thread, for want of any other.
    pub(crate) fn run_here(&self, job: Job) {
        let outcome = job.run();
        self.elsewhere.count(outcome);
        if outcome.is_end() {
            self.finish_elsewhere();
        }
    }

    /// Ends a task that was dropped by somebody else than a worker.
    #[cfg(feature = "async")]
    pub(crate) fn cancelled_elsewhere(&self) {
        self.elsewhere.count(Outcome::Cancelled);
        self.finish_elsewhere();
    }

    fn finish_elsewhere(&self) {
        if self.in_flight.finish(1).is_quiet() {
            // The last worker may have stayed for this task alone (race 4), and all workers of a
            // closed pool have.
            self.idle.nudge_all();
        }
    }

    // ----- waking and growing -----

    /// Sees to it that somebody looks for the work that is queued: wakes an idle worker or, if
    /// `may_start` and none is idle, starts one; unless somebody is on the way already, who will
    /// call this in turn.
    ///
    /// The caller has queued a task, or ended a search, and fenced.
    pub(crate) fn notify(self: &Arc<Self>, may_start: bool) {
        loop {
            let now = self.counts.load();
            if now.is_waking() {
                return;
            }
            if now.idle() > 0 {
                if let Some(parker) = self.idle.claim(&self.counts) {
                    parker.unpark();
                    return;
                }
                // They were claimed or have withdrawn since.
                continue;
            }
            if !may_start || now.is_starting() || now.total() >= self.config.max_size {
                return;
            }
            // One task does not start a crowd because the first workers are slow to start. They look at the
            // queue after their hooks, and pass on what they do not take.
            if self.queue.len() <= self.in_start_hook.load(Ordering::Relaxed) {
                return;
            }
            if self.counts.begin_starting(self.config.max_size) {
                let room = |now: Snapshot| now.total() < self.config.max_size;
                if self.start_worker(Some(Search::Starting), room).is_err() {
                    // The tasks (this one, and those whose submitters have relied on this attempt) run on
                    // the workers there are: there is at least one, and none of them goes idle without a
                    // look at the queue.
                    self.counts.end_search(Search::Starting);
                }
                return;
            }
        }
    }

    /// Ends a search that was successful, and passes it on if more work is queued.
    pub(crate) fn pass_on(self: &Arc<Self>, search: Option<Search>) {
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        // Race 2: whoever saw the search and relied on it queued first; the look comes after its end.
        fence(Ordering::SeqCst);
        if !self.queue.is_empty() {
            self.notify(true);
        }
    }

    /// Gives up a new worker's search before its start hook: that may take its time, and neither an idle
    /// worker nor further starts must wait for it.
    pub(crate) fn enter_start_hook(self: &Arc<Self>, search: Option<Search>) {
        self.in_start_hook.fetch_add(1, Ordering::Relaxed);
        self.pass_on(search);
    }

    pub(crate) fn exit_start_hook(&self) {
        self.in_start_hook.fetch_sub(1, Ordering::Relaxed);
    }

    /// Starts the first worker if there is none. `Ok` says whether one was started here.
    fn start_first(self: &Arc<Self>) -> Result<bool, io::Error> {
        // It searches for the task that is about to be queued, so that nobody starts another for it.
        let search = self.counts.begin_starting(1).then_some(Search::Starting);
        let started = self.start_worker(search, |now| now.total() == 0);
        if started.is_err() && search.is_some() {
            // Others may have relied on it, with tasks for a worker that somebody else has started.
            self.pass_on(search);
        }
        match started {
            Ok(()) => Ok(true),
            Err(StartError::NoRoom) => Ok(false),
            Err(StartError::Refused(error)) => Err(error),
        }
    }

    /// Starts a worker if there is `room` for it.
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        search: Option<Search>,
        room: impl Fn(Snapshot) -> bool,
    ) -> Result<(), StartError> {
        self.roster.reap();
        let mut roster = self.roster.lock();
        // A submitter may be slower than its task: by now the pool may have ended.
        if self.in_flight.is_over() || !room(self.counts.load()) {
            return Err(StartError::NoRoom);
        }
        let index = roster.take_index();
        let key = roster.next_key();
        let tally = Arc::new(Tally::default());
        let start =
            Start { shared: Arc::clone(self), key, index, tally: Arc::clone(&tally), search };
        let body = self.body;
        let name = format!("{}-{index}", self.config.name);
        match start_thread(name, move || body(start)) {
            Ok(handle) => {
                // The thread waits for the lock before it does anything.
                let now = self.counts.add_worker();
                roster.enter(handle, tally, now.total());
                drop(roster);
                if now.total() > self.config.core_size && now.idle() > 0 {
                    // They may have gone to sleep without a time limit: now one of them is surplus.
                    self.idle.nudge_all();
                }
                Ok(())
            }
            Err(error) => {
                roster.return_index(index);
                roster.refused += 1;
                Err(StartError::Refused(error))
            }
        }
    }

    /// Starts workers until there are `core_size`. Returns how many it started.
    pub(crate) fn start_core(self: &Arc<Self>) -> usize {
        let below_core = |now: Snapshot| now.total() < self.config.core_size;
        let mut started = 0;
        // In flight while it lasts, so that a pool that is closed meanwhile does not end before its
        // new workers.
        if self.in_flight.accept() {
            while self.start_worker(None, below_core).is_ok() {
                started += 1;
            }
            self.finish_elsewhere();
        }
        started
    }

    // ----- resting and leaving: called by workers -----

    /// Ends `count` tasks of a worker.
    pub(crate) fn finish(&self, count: usize) {
        if self.in_flight.finish(count).is_over() {
            self.idle.nudge_all();
        }
    }

    /// How long an idle worker may stay: `None` is for ever, or until it is nudged.
    pub(crate) fn rest_until(&self, now: Snapshot, since: Instant) -> Option<Instant> {
        let total = now.total();
        if total <= self.config.core_size || (total == 1 && !self.in_flight.status().is_quiet()) {
            return None;
        }
        since.checked_add(self.config.keep_alive)
    }

    /// Lets a worker that was idle for too long leave, if it is surplus. It remains counted until
    /// it [leaves](Self::leave).
    pub(crate) fn may_retire(&self) -> bool {
        let mut roster = self.roster.lock();
        let staying = self.counts.load().total() - roster.leaving;
        // Race 4: the last worker stays as long as anything is in flight.
        let surplus =
            staying > self.config.core_size && (staying > 1 || self.in_flight.status().is_quiet());
        roster.leaving += usize::from(surplus);
        surplus
    }

    /// Lets a worker leave whose pool is closed and has nothing left to do.
    pub(crate) fn retire_for_good(&self) {
        self.roster.lock().leaving += 1;
    }

    /// A worker's last act: it is counted no longer. `false` if it has to stay after all, because it
    /// was the last and a task was accepted meanwhile (race 3).
    pub(crate) fn leave(self: &Arc<Self>, key: ThreadKey, index: usize) -> bool {
        let mut roster = self.roster.lock();
        roster.leaving -= 1;
        let now = self.counts.remove_worker();
        if now.total() == 0 && !self.in_flight.status().is_quiet() {
            self.counts.add_worker();
            return false;
        }
        roster.strike_out(key, index);
        drop(roster);
        if now.total() > 0 {
            // Race 5: a task may have come that could not start a worker because this one was still
            // counted.
            self.pass_on(None);
        }
        true
    }

    // ----- closing -----

    /// Accepts no more tasks. What was accepted is done; then the workers leave.
    pub(crate) fn close(&self) {
        if self.in_flight.close().is_over() {
            self.idle.nudge_all();
        }
    }

    // ----- looking -----

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let roster = self.roster.lock();
        roster.add_to(&mut stats);
        let now = self.counts.load();
        drop(roster);
        self.elsewhere.add_to(&mut stats);
        stats.workers = now.total();
        stats.idle = now.idle();
        stats.queued = self.queue.len();
        stats.in_flight = self.in_flight.count();
        stats.rejected = self.rejected.get();
        stats
    }
}
