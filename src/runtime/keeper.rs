//! The keeper: a pool's thread for what has to be done at a certain time, whatever the workers do.
//!
//! It does [jobs](Job), each when it is due: whoever needs one [asks](Keeper::ask) for it. It starts when the first one is asked
//! for, sleeps until the earliest is due, and exits when the pool is over. It is no worker, but belongs to the pool like its
//! workers: `shutdown_join` waits for it (law 9).
//!
//! # Asking for a refused thread again
//! A thread for queued tasks is refused in one place, [`notify`](Shared::notify), which then asks for [`Job::Threads`]. The job
//! notifies, as a submitter of the queued tasks would. If that is refused again it asks anew, after a pause that is twice as
//! long. Otherwise another thread looks at the queue when it must: the new worker, or whichever made the notification
//! unnecessary. Each such look notifies too, and asks anew if it is refused (law 7). So nothing is asked for, and the keeper
//! sleeps, while nothing is refused.
//!
//! If the system refuses the keeper as well, the thread that asks [insists](Keeper::insist) for a moment, once. After that others
//! [stand in](Keeper::stand_in) for the keeper, with the same pauses: each worker before its next task, each thread that waits for
//! tasks or capacity of the pool, or in a blocking region, and submissions, which start the keeper. If all workers wait where the
//! pool does not see it, and no other thread waits for the pool or calls it, none is left to ask.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::report::Report;
use crate::runtime::events::Event;
use crate::runtime::identity::set_identity;
use crate::runtime::in_flight::InFlight;
use crate::runtime::registry::{Exit, ThreadKey};
use crate::runtime::shared::Shared;
use crate::runtime::spawn::StartError;
use crate::runtime::tracker::Watch;
use crate::sync::parker::{Parker, Signal};
use crate::sync::unwind::{contain, discard};
use crate::sync::{Hint, Mutex, at_thread_exit, start_thread};

/// The first pause before a refused thread is asked for again: short, since the refusal may be over at once.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest such pause. It bounds how long a pool takes to notice that threads are available again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often the first thread that needs a keeper tries to start it again, after pauses of 1, 2, 4 and 8 ms: longer than many
/// refusals last, and short enough for a submission.
const ATTEMPTS: u32 = 4;

/// What the keeper does. A new kind needs a place in [`ALL`](Self::ALL), and a line in [`run`](Self::run).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Ask for a refused thread again.
    Threads,
    /// Look for stalled tasks.
    Stalls,
    /// Look for woken futures that wait for a poll which does not end.
    Deferred,
}

impl Job {
    const ALL: [Job; 3] = [Job::Threads, Job::Stalls, Job::Deferred];

    fn run(self, shared: &Arc<Shared>) {
        match self {
            Job::Threads => shared.ask_for_threads(),
            Job::Stalls => shared.look_for_stalls(),
            Job::Deferred => shared.look_for_deferred(),
        }
    }
}

/// See the [module's documentation](self).
pub(crate) struct Keeper {
    /// The thread's.
    parker: Parker,
    state: Mutex<State>,
    /// Whether jobs are asked for and there is no thread. Set under the lock; a later look corrects an outdated one.
    is_missed: Hint,
}

struct State {
    has_thread: bool,
    /// When each job is due, in the order of [`Job::ALL`].
    due: [Option<Instant>; Job::ALL.len()],
    /// The next pause of [`Job::Threads`].
    pause: Duration,
    /// Whether a thread has [insisted](Keeper::insist).
    has_insisted: bool,
}

impl Keeper {
    pub(crate) fn new() -> Self {
        let state = State {
            has_thread: false,
            due: [None; Job::ALL.len()],
            pause: FIRST_PAUSE,
            has_insisted: false,
        };
        Keeper { parker: Parker::new(), state: Mutex::new(state), is_missed: Hint::default() }
    }

    /// Asks for a job at a certain time, or earlier if that was asked for before. The job is done once. The caller must then
    /// [start](Self::ensure) the thread, unless it is the keeper itself.
    pub(crate) fn ask(&self, job: Job, at: Instant) {
        let mut state = self.state.lock();
        let first = state.earliest();
        let due = &mut state.due[job as usize];
        *due = Some(due.map_or(at, |due| cmp::min(due, at)));
        if !state.has_thread {
            self.is_missed.set(true);
        } else if first.is_none_or(|first| at < first) {
            drop(state);
            // Race 42: asked for first. The keeper looks before it parks, or the signal ends the park.
            self.parker.recheck();
        }
    }

    /// Starts the thread if a job is asked for and there is none. If that is impossible now, the next call tries again.
    #[inline]
    pub(crate) fn ensure(&self, shared: &Arc<Shared>) {
        if self.is_missed.get() {
            self.start(shared);
        }
    }

    #[cold]
    fn start(&self, shared: &Arc<Shared>) {
        {
            let mut state = self.state.lock();
            if state.has_thread {
                return;
            }
            // Claimed: one thread starts it.
            state.has_thread = true;
            self.is_missed.set(false);
        }
        if let Err(error) = shared.start_keeper() {
            {
                let mut state = self.state.lock();
                state.has_thread = false;
                self.is_missed.set(true);
            }
            if let StartError::Refused(error) = error {
                shared.emit(Event::Refused(&error));
            }
        }
    }

    /// Tries a few times more to start a thread that the system has refused: there may be no other thread to do it later. Only
    /// once for each pool, because it blocks the caller. Never in a model, which has no time.
    #[cold]
    fn insist(&self, shared: &Arc<Shared>) {
        if cfg!(elastipool_loom) || mem::replace(&mut self.state.lock().has_insisted, true) {
            return;
        }
        for attempt in 0..ATTEMPTS {
            let pause = FIRST_PAUSE * (1 << attempt);
            Parker::new().park(Some(Instant::now() + pause));
            self.ensure(shared);
            if !self.is_missed() {
                return;
            }
        }
    }

    /// Makes the thread look whether the pool is over.
    pub(super) fn recheck(&self) {
        self.parker.recheck();
    }

    /// Whether others stand in for the keeper.
    #[inline]
    pub(super) fn is_missed(&self) -> bool {
        self.is_missed.get()
    }

    /// When a thread that waits stands in for the keeper. `None`: it need not.
    pub(super) fn stand_in_at(&self) -> Option<Instant> {
        if !self.is_missed() {
            return None;
        }
        let state = self.state.lock();
        if state.has_thread { None } else { state.due[Job::Threads as usize] }
    }

    /// Asks for a refused thread again, if that is due and the keeper is missed. In a model `is_late` decides what is due: the
    /// caller has waited until then.
    #[cold]
    pub(super) fn stand_in(&self, shared: &Arc<Shared>, is_late: bool) {
        let is_due = {
            let mut state = self.state.lock();
            let is_due = !state.has_thread && state.take_if_due(Job::Threads, is_late);
            self.is_missed.set(!state.has_thread && state.earliest().is_some());
            is_due
        };
        if is_due {
            Job::Threads.run(shared);
        }
    }

    /// Whether a thread was refused, and was not asked for again since.
    pub(super) fn is_starved(&self) -> bool {
        self.state.lock().due[Job::Threads as usize].is_some()
    }

    /// Does jobs until the pool is over.
    fn keep(&self, shared: &Arc<Shared>) {
        let mut is_late = false;
        // Race 42: looked at before each park. The thread that ends the pool rechecks afterwards.
        while !shared.in_flight.is_over() {
            let due = {
                let mut state = self.state.lock();
                let due = Job::ALL.into_iter().find(|job| state.take_if_due(*job, is_late));
                due.ok_or_else(|| state.earliest())
            };
            is_late = match due {
                Ok(job) => {
                    job.run(shared);
                    false
                }
                Err(until) => self.parker.park(until) == Signal::Expired,
            };
        }
    }

    /// Lets the deadline of the keeper's sleep pass.
    #[cfg(elastipool_loom)]
    pub(crate) fn expire(&self) {
        self.parker.expire();
    }
}

impl State {
    fn earliest(&self) -> Option<Instant> {
        self.due.iter().flatten().min().copied()
    }

    /// A model has no time: there, a job is due when a sleep was `late`.
    fn take_if_due(&mut self, job: Job, is_late: bool) -> bool {
        let due = &mut self.due[job as usize];
        let is_due = match *due {
            Some(_) if cfg!(elastipool_loom) => is_late,
            Some(at) => at <= Instant::now(),
            None => false,
        };
        if is_due {
            *due = None;
        }
        is_due
    }
}

impl Shared {
    fn start_keeper(self: &Arc<Self>) -> Result<(), StartError> {
        let mut registry = self.registry.lock();
        // Race 16: the pool may be over by now, and a join may have found all threads gone.
        if self.in_flight.is_over() {
            return Err(StartError::Over);
        }
        let shared = Arc::clone(self);
        let name = format!("{}-keeper", self.config.name);
        // The thread cannot exit before it is registered: its exit takes the registry's lock.
        let started = start_thread(name, None, move || {
            // Made here: if the system refuses the thread, this closure is dropped under the registry's lock, which the
            // drop of an `Exit` takes.
            let exit = Exit { registry: Arc::clone(&shared.registry), key: ThreadKey::KEEPER };
            let _exit = at_thread_exit(exit);
            // The hooks that it calls belong to the pool, like a worker's: they may not join the pool, which would wait for
            // them.
            set_identity(shared.id(), None, None);
            shared.keeper.keep(&shared);
            set_identity(shared.id(), None, Some(ThreadKey::KEEPER));
            // This may drop the last reference to the pool, and with it the user's hooks.
            discard(shared);
        });
        started.map(|handle| registry.register_keeper(handle)).map_err(StartError::Refused)
    }

    /// The system has refused a thread for queued tasks, and no other thread relies on that attempt any more: asks for it again
    /// later.
    #[cold]
    pub(super) fn ask_again(self: &Arc<Self>) {
        let pause = {
            let mut state = self.keeper.state.lock();
            // Without a keeper, this attempt was the one that was due.
            let _ = !state.has_thread && state.take_if_due(Job::Threads, false);
            let is_asked = state.due[Job::Threads as usize].is_some();
            let longer = cmp::min(2 * state.pause, LONGEST_PAUSE);
            (!is_asked).then(|| mem::replace(&mut state.pause, longer))
        };
        if let Some(pause) = pause {
            self.keeper.ask(Job::Threads, Instant::now() + pause);
            self.keeper.ensure(self);
            if self.keeper.is_missed() {
                self.keeper.insist(self);
            }
        }
        // Race 27: asked for first. A worker that waits registers, then looks whether it stands in for the keeper.
        self.blocked.recheck_all();
    }

    /// Blocks until the pool, or the view whose count this is, was quiet at some moment, or until the deadline. Stands in for the
    /// keeper if it was missed at the call.
    pub(crate) fn wait_quiet(
        self: &Arc<Self>,
        in_flight: &InFlight,
        deadline: Option<Instant>,
    ) -> bool {
        loop {
            let until = deadline.into_iter().chain(self.keeper.stand_in_at()).min();
            if in_flight.wait_quiet(until) {
                return true;
            }
            if until == deadline {
                return false;
            }
            self.keeper.stand_in(self, true);
        }
    }

    /// [`Job::Threads`].
    fn ask_for_threads(self: &Arc<Self>) {
        self.notify_next(None);
        if !self.keeper.is_starved() {
            self.keeper.state.lock().pause = FIRST_PAUSE;
        }
    }

    /// [`Job::Stalls`].
    fn look_for_stalls(&self) {
        let Some(tracker) = &self.tracker else { return };
        let Some(watch) = &tracker.watch else { return };
        if tracker.take_stall(watch) {
            self.report_stall(watch);
        }
        tracker.watch_again(watch);
    }

    /// Calls the user's hook.
    fn report_stall(&self, watch: &Watch) {
        if let Some(report) = self.report() {
            if let Err(payload) = contain(|| watch.hook.call(&report)) {
                self.config.hooks.panicked(payload);
            }
        }
    }

    /// `None` if the pool does not track its tasks.
    pub(crate) fn report(&self) -> Option<Report> {
        let tracker = self.tracker.as_ref()?;
        let stats = self.stats();
        let (running, oldest_queued, oldest_pending) =
            tracker.state.lock().describe(Instant::now());
        Some(Report {
            pool: self.config.name.clone(),
            stats,
            running,
            oldest_queued,
            oldest_pending,
        })
    }
}
