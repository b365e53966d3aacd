#![doc = include_str!("protocol.md")]

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::blocking::{Duty, Employer, Kind, PoolId};
use crate::counts::{Counts, Search, Snapshot};
use crate::desk::{self, Desk};
use crate::error::{BuildError, Refusal};
use crate::hooks::Hooks;
use crate::idle::IdleStack;
use crate::in_flight::InFlight;
#[cfg(feature = "async")]
use crate::job::Run;
use crate::job::{Job, Outcome};
use crate::parker::Parker;
#[cfg(feature = "async")]
use crate::pending::Pending;
use crate::queue::Queue;
use crate::returning::Returning;
use crate::room::{NoEntry, Patience, Room};
use crate::roster::{Roster, State, ThreadKey};
use crate::sizes::{Growth, Sizes};
use crate::stats::{SharedTally, Stats, Tally};
use crate::sync::{
    AtomicUsize, Mutex, MutexGuard, Ordering, Peak, ThreadHandle, Tick, fence, start_thread,
};
use crate::waiters::Waiters;

/// What a pool was built with and keeps.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) queue_capacity: Option<usize>,
    pub(crate) max_tasks_per_worker: Option<usize>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) growth: Growth,
    /// Whether a worker waits a moment for work before it rests.
    pub(crate) spins: bool,
    /// How many workers in declared blocking regions are replaced at a time.
    pub(crate) max_blocked: usize,
    /// Whether a worker has a queue of its own.
    pub(crate) has_local_queues: bool,
    pub(crate) hooks: Hooks,
}

/// What a new worker's thread is given.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    /// To pass through first.
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) key: ThreadKey,
    pub(crate) index: usize,
    pub(crate) tally: Arc<Tally>,
    pub(crate) search: Option<Search>,
}

/// What the handles, workers and wakers of one pool share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) sizes: Sizes,
    /// The body of a worker's thread. A worker knows what it shares, not the other way round.
    body: fn(Start),
    pub(crate) counts: Counts,
    pub(crate) idle: IdleStack,
    pub(crate) queue: Queue<Job>,
    /// If the queue is bounded.
    pub(crate) room: Option<Room>,
    pub(crate) in_flight: InFlight,
    #[cfg(feature = "async")]
    pub(crate) pending: Pending,
    /// Shared on its own: an exiting thread reports to it when it may no longer touch a task, and
    /// dropping the last `Shared` may drop tasks.
    pub(crate) roster: Arc<Roster>,
    /// Workers in their start hook. Only an estimate of who is about to come.
    in_start_hook: AtomicUsize,
    /// The worker that keeps the watch, if there is one.
    pub(crate) watch: Waiters,
    /// Workers that wait in blocking regions.
    pub(crate) blocked: Waiters,
    /// Workers in declared blocking regions. Beyond `max_blocked`, they are not counted as away. All changes acquire and
    /// release: a worker that takes itself off `away` comes after the one for which that was counted.
    declared: AtomicUsize,
    /// The most workers that were away at a time.
    peak_blocked: Peak,
    /// Workers that come back from blocking regions.
    pub(crate) returning: Returning,
    /// How often `max_size` has been lowered.
    pub(crate) shrinks: Tick,
    /// Immediate shutdowns.
    stops: Tick,
    /// Tasks that ended outside of the workers.
    elsewhere: SharedTally,
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
    /// The pool has ended.
    Over,
    /// The system refused it.
    Refused(io::Error),
}

impl Shared {
    pub(crate) fn new(config: Config, sizes: Sizes, body: fn(Start)) -> Arc<Self> {
        Arc::new(Shared {
            room: config.queue_capacity.map(Room::new),
            config,
            sizes,
            body,
            counts: Counts::new(),
            idle: IdleStack::new(),
            queue: Queue::new(),
            in_flight: InFlight::new(),
            #[cfg(feature = "async")]
            pending: Pending::new(),
            roster: Arc::new(Roster::new()),
            in_start_hook: AtomicUsize::new(0),
            watch: Waiters::new(),
            blocked: Waiters::new(),
            declared: AtomicUsize::new(0),
            peak_blocked: Peak::default(),
            returning: Returning::new(),
            shrinks: Tick::default(),
            stops: Tick::default(),
            elsewhere: SharedTally::default(),
            rejected: Tick::default(),
        })
    }

    pub(crate) fn id(self: &Arc<Self>) -> PoolId {
        PoolId::of(self)
    }

    // ----- submitting -----

    /// Accepts one task: from here on it is in flight, and there is a worker that may not leave
    /// before it is finished. If the queue is bounded, waits for room as long as `patience` says.
    ///
    /// After [`Refusal::NoThread`] the task *is* in flight, with its room: the caller finishes it, by
    /// [`retract`](Self::retract) or by [`run_here`](Self::run_here).
    #[inline]
    pub(crate) fn admit(
        self: &Arc<Self>,
        desk: Option<&Desk>,
        patience: Patience,
    ) -> Result<Admitted, Refusal> {
        if let Some(room) = &self.room {
            self.enter(room, patience)?;
        }
        if !self.count_in(desk) {
            self.vacate();
            self.rejected.increment();
            return Err(Refusal::Closed);
        }
        // Where there is a desk there is a worker.
        if desk.is_some() || self.counts.load().total() > 0 {
            return Ok(Admitted { fills_core: true });
        }
        let started = self.start_first().map_err(Refusal::NoThread)?;
        Ok(Admitted { fills_core: !started })
    }

    /// Counts one more task as in flight. `false` if the pool is closed.
    #[inline]
    #[must_use]
    pub(crate) fn count_in(&self, desk: Option<&Desk>) -> bool {
        match desk {
            Some(desk) => desk.accept(self),
            None => self.in_flight.accept(1),
        }
    }

    /// Is let into a bounded queue.
    fn enter(self: &Arc<Self>, room: &Room, patience: Patience) -> Result<(), Refusal> {
        let enter = |patience| {
            let pool = || Arc::clone(self) as Arc<dyn Employer>;
            room.enter(&self.sizes, patience, pool, || self.counts.load().runnable() == 0)
        };
        let mut entered = enter(Patience::None);
        if entered == Err(NoEntry::Full) {
            // If a thread was refused, this submission is the next one, which tries again.
            self.pass_on(None);
            if let Patience::Until(_) = patience {
                entered = enter(patience);
            }
        }
        entered.map_err(|reason| {
            self.rejected.increment();
            match reason {
                NoEntry::Full => Refusal::Full,
                NoEntry::Closed => Refusal::Closed,
            }
        })
    }

    /// Takes back an acceptance: the task goes back to its submitter.
    pub(crate) fn retract(&self) {
        self.vacate();
        self.rejected.increment();
        self.finish_elsewhere();
    }

    /// A task that was let into a bounded queue will not be started by a worker.
    fn vacate(&self) {
        if let Some(room) = &self.room {
            room.vacate(&self.sizes);
        }
    }

    /// Queues the job of an admitted task and makes sure that a worker comes for it.
    #[inline]
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        desk: Option<&Desk>,
        admitted: Admitted,
        job: impl FnOnce() -> Job,
    ) {
        match desk {
            Some(desk) => desk.push(&self.queue, job),
            None => self.queue.push(job()),
        }
        self.announce(admitted);
    }

    /// Makes sure that a worker comes for a task that has just been queued.
    #[inline]
    fn announce(self: &Arc<Self>, admitted: Admitted) {
        // Race 1: pushed first, then looked for idle workers; they look the other way round.
        fence(Ordering::SeqCst);
        let now = self.counts.load();
        if now.total() < self.sizes.core() || now.has_spare_capacity(self.sizes.max()) {
            self.find_worker(admitted);
        }
    }

    fn find_worker(self: &Arc<Self>, admitted: Admitted) {
        let started = admitted.fills_core
            && self.is_below_core(self.counts.load())
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok();
        // If one was started it may be slow: one that is idle now is quicker.
        self.notify(!started);
    }

    pub(crate) fn count_rejection(&self) {
        self.rejected.increment();
    }

    /// Counts a task that comes into the queue whether or not there is room: it was accepted earlier.
    pub(crate) fn enter_over_capacity(&self) {
        if let Some(room) = &self.room {
            room.enter_over_capacity();
        }
    }

    fn is_below_core(&self, now: Snapshot) -> bool {
        now.total() < self.sizes.core()
    }

    /// Queues a future that was woken. If it is woken by the poll of another one, nobody is told of it before that has
    /// ended. The future comes back if there is [nobody to run it](Self::requeue).
    #[cfg(feature = "async")]
    pub(crate) fn wake(self: &Arc<Self>, task: Arc<dyn Run>) -> Result<(), Arc<dyn Run>> {
        let desk = desk::current(self);
        if let Some(desk) = desk.as_ref().filter(|desk| desk.is_in_poll()) {
            desk.push_untold(&self.queue, || Job::woken(task));
        } else if self.has_nobody() {
            return Err(task);
        } else {
            let admitted = Admitted { fills_core: false };
            self.enqueue(desk.as_deref(), admitted, || Job::woken(task));
        }
        Ok(())
    }

    /// Queues a task that was accepted before, and had to wait for others. A closed pool takes it as well.
    ///
    /// There is a worker as long as anything is in flight, but for one case: the system refused the first one
    /// when the future was spawned, and its first poll was the spawner's. If it refuses again there is nobody to
    /// run it, and the job comes back.
    pub(crate) fn requeue(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        if self.has_nobody() {
            return Err(job);
        }
        let admitted = Admitted { fills_core: false };
        self.enqueue(desk::current(self).as_deref(), admitted, || job);
        Ok(())
    }

    /// Whether there is no worker, nor can there be one.
    fn has_nobody(self: &Arc<Self>) -> bool {
        self.counts.load().total() == 0 && self.start_first().is_err()
    }

    /// Runs an admitted task on the calling thread, for want of any other.
    pub(crate) fn run_here(self: &Arc<Self>, job: Job) {
        if job.is_new() {
            self.vacate();
        }
        let mut again = Some(job);
        while let Some(job) = again.take() {
            self.elsewhere.lock().take();
            let mut outcome = job.run();
            self.handle_panic(&mut outcome);
            let tally = self.elsewhere.lock();
            tally.put_down(&outcome);
            if outcome.is_end() {
                tally.report(1);
                drop(tally);
                self.finish_elsewhere();
                return;
            }
            drop(tally);
            #[cfg(feature = "async")]
            if let Outcome::Woken(task) = outcome {
                // Without a thread it is polled again at once.
                again = self.wake(task).err().map(Job::woken);
            }
        }
    }

    /// Counts one more task as in flight, for a thread that is about to run some outside of the workers without their
    /// entries. The caller knows of an entry that is in flight.
    pub(crate) fn hold_elsewhere(&self) {
        self.in_flight.hold();
        self.elsewhere.lock().advance(1);
    }

    /// Runs a task of a scope on the calling thread, which waits for it and [holds](Self::hold_elsewhere) it.
    pub(crate) fn run_awaited_here(&self, run: impl FnOnce() -> Outcome) {
        let tally = self.elsewhere.lock();
        tally.take();
        tally.claim();
        drop(tally);
        let mut outcome = run();
        self.handle_panic(&mut outcome);
        debug_assert!(outcome.is_end(), "a scope has closures only");
        self.elsewhere.lock().put_down(&outcome);
    }

    /// Undoes one [`hold_elsewhere`](Self::hold_elsewhere).
    pub(crate) fn release_elsewhere(&self) {
        self.elsewhere.lock().report(1);
        self.finish_elsewhere();
    }

    /// Queues a future that was woken during its first poll, which the calling worker has made without its entry.
    #[cfg(feature = "async")]
    pub(crate) fn enqueue_woken(self: &Arc<Self>, desk: &Desk, task: Arc<dyn Run>) {
        self.enqueue(Some(desk), Admitted { fills_core: false }, || Job::woken(task));
    }

    /// Tells the panic handler of a panic that no handle has received.
    #[inline]
    pub(crate) fn handle_panic(&self, outcome: &mut Outcome) {
        if let Outcome::Panicked(payload) = outcome {
            if let Some(payload) = payload.take() {
                self.config.hooks.panicked(payload);
            }
        }
    }

    /// Takes a task out of the queue for somebody who will not run it here.
    pub(crate) fn hand_back(&self) {
        self.vacate();
        let tally = self.elsewhere.lock();
        tally.hand_back();
        tally.report(1);
        drop(tally);
        self.finish_elsewhere();
    }

    /// Ends a task that was dropped by somebody else than a worker.
    pub(crate) fn cancelled_elsewhere(&self) {
        let tally = self.elsewhere.lock();
        tally.take();
        tally.put_down(&Outcome::Cancelled);
        tally.report(1);
        drop(tally);
        self.finish_elsewhere();
    }

    fn finish_elsewhere(&self) {
        if self.in_flight.finish(1).is_quiet() {
            // The last worker may have stayed for this task alone (race 4), and all workers of a
            // closed pool have.
            self.nudge_all();
        }
    }

    /// Makes the workers that have nothing to do look again whether they may stay.
    fn nudge_all(&self) {
        self.idle.nudge_all();
        self.watch.nudge_all();
    }

    // ----- waking and growing -----

    /// Sees to it that somebody looks for the work that is queued: wakes an idle worker or, if
    /// `may_start` and none is idle, starts one; unless somebody is on the way already, who will
    /// call this in turn, or keeps the watch. `false` if the system refused the thread.
    ///
    /// The caller has queued a task, ended a search, or made room for a worker, and fenced.
    pub(crate) fn notify(self: &Arc<Self>, may_start: bool) -> bool {
        loop {
            let now = self.counts.load();
            let max_size = self.sizes.max();
            // Each of those that are running looks at the queue before it stops to run.
            if now.is_waking() || !now.has_spare_capacity(max_size) {
                return true;
            }
            if now.idle() > 0 {
                if let Some(parker) = self.idle.claim(&self.counts, max_size) {
                    parker.unpark();
                    return true;
                }
                // They were claimed or have withdrawn since, or the limit has been reached.
                continue;
            }
            if !may_start || self.waits_for_hooks(now) {
                return true;
            }
            if now.is_watching() || !now.may_start(max_size) {
                return true;
            }
            // A submitter may be slower than its task: no thread is started for one that has been taken.
            let queued = self.queue.len();
            let enough = self.enough(queued);
            if queued == 0 || !now.may_come(enough) {
                return true;
            }
            let Some(coming) = self.counts.begin_starting(max_size, enough) else {
                continue;
            };
            // Some of the tasks may have been taken since they were counted, by threads that were coming then.
            let started = if coming > self.queue.len() {
                Err(StartError::NoRoom)
            } else {
                self.start_for_queue(Some(Search::Starting))
            };
            if started.is_err() {
                self.counts.end_search(Search::Starting);
                // As race 2: others may have relied on this attempt.
                fence(Ordering::SeqCst);
            }
            match started {
                Ok(()) | Err(StartError::Over) => return true,
                // There may be more tasks, or room, again.
                Err(StartError::NoRoom) => {}
                // The tasks (this one, and those whose submitters have relied on this attempt) run on
                // the workers there are: there is at least one, and none of them goes idle without a
                // look at the queue. If all of them are in blocking regions they have to ask again.
                Err(StartError::Refused(_)) => {
                    self.blocked.nudge_all();
                    return false;
                }
            }
        }
    }

    /// How many threads may be on their way for so many tasks, if there may be more than one: not more than tasks, less
    /// those that workers in their start hooks will take.
    fn enough(&self, queued: usize) -> usize {
        match self.config.growth {
            Growth::Eager => queued.saturating_sub(self.in_start_hook.load(Ordering::Relaxed)),
            Growth::Stalled(_) => 1,
        }
    }

    /// Under [`Growth::Stalled`], a worker in its start hook is on its way to the queue, and will look at it or watch
    /// over it. (One that waits for others is not; whoever is away makes up for that.)
    fn waits_for_hooks(&self, now: Snapshot) -> bool {
        self.config.growth != Growth::Eager
            && self.in_start_hook.load(Ordering::Relaxed) > now.away()
    }

    /// Starts a worker, if there may be one more runnable.
    fn start_for_queue(self: &Arc<Self>, search: Option<Search>) -> Result<(), StartError> {
        self.start_worker(search, |now| now.may_start(self.sizes.max()))
    }

    /// Ends a search that was successful, and passes it on if more work is queued. `false` if the system refused the
    /// thread that this would have taken.
    pub(crate) fn pass_on(self: &Arc<Self>, search: Option<Search>) -> bool {
        !self.give_up(search) || self.queue.is_empty() || self.notify(true)
    }

    /// As [`pass_on`](Self::pass_on), by one that knows of more work. (To look for it means to read what others write.)
    pub(crate) fn pass_on_more(self: &Arc<Self>, search: Option<Search>) {
        if self.give_up(search) {
            self.notify(true);
        }
    }

    /// Ends a search. `false` if there is nobody to pass it on to.
    fn give_up(&self, search: Option<Search>) -> bool {
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        // Race 2: whoever saw the search and relied on it queued first; the look comes after its end.
        fence(Ordering::SeqCst);
        self.counts.load().has_spare_capacity(self.sizes.max())
    }

    /// Gives up a new worker's search before its start hook: that may take its time, and neither an idle
    /// worker nor further starts must wait for it.
    pub(crate) fn enter_start_hook(self: &Arc<Self>, search: Option<Search>) {
        let in_hooks = 1 + self.in_start_hook.fetch_add(1, Ordering::Relaxed);
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        fence(Ordering::SeqCst);
        // One task does not start a crowd because the first workers are slow to start: they look at the queue after
        // their hooks, and pass on what they do not take.
        if self.queue.len() > in_hooks {
            self.notify(true);
        }
    }

    pub(crate) fn exit_start_hook(&self) {
        self.in_start_hook.fetch_sub(1, Ordering::Relaxed);
        // As race 2: whoever relied on this worker has pushed before, and its next look is at the queue.
        fence(Ordering::SeqCst);
    }

    /// A worker has taken a job, and tells the visitors of a bounded queue.
    #[inline]
    pub(crate) fn begin_work(&self, is_new: bool) {
        match &self.room {
            Some(room) if is_new => room.start(&self.sizes),
            Some(room) => room.begin_work(),
            None => {}
        }
    }

    /// A worker has nothing to do.
    #[inline]
    pub(crate) fn end_work(&self) {
        if let Some(room) = &self.room {
            room.end_work(&self.sizes);
        }
    }

    /// Starts the first worker if there is none. `Ok` says whether one was started here.
    fn start_first(self: &Arc<Self>) -> Result<bool, io::Error> {
        // It searches for the task that is about to be queued, so that nobody starts another for it.
        let search = self.counts.begin_starting(1, 1).map(|_| Search::Starting);
        let started = self.start_worker(search, |now| now.total() == 0);
        if started.is_err() && search.is_some() {
            // Others may have relied on it, with tasks for a worker that somebody else has started.
            self.pass_on(search);
        }
        match started {
            Ok(()) => Ok(true),
            Err(StartError::NoRoom | StartError::Over) => Ok(false),
            Err(StartError::Refused(error)) => Err(error),
        }
    }

    /// Starts a worker if there is `room` for it.
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        search: Option<Search>,
        room: impl Fn(Snapshot) -> bool,
    ) -> Result<(), StartError> {
        let may = || room(self.counts.load());
        let (mut roster, index, name) = self.prepare_start(State::next_index, may)?;
        roster.take_index();
        let entered =
            self.start_named(&mut roster, index, name, search, |roster, handle, tally| {
                let now = self.counts.add_worker();
                roster.enter(handle, tally, now.total());
                now
            });
        match entered {
            Ok(now) => {
                drop(roster);
                if now.total() > self.sizes.core() && now.idle() > 0 {
                    // They may have gone to sleep without a time limit: now one of them is surplus.
                    self.idle.nudge_all();
                }
                Ok(())
            }
            Err(error) => {
                roster.return_index(index);
                Err(StartError::Refused(error))
            }
        }
    }

    /// Locks the roster, if a thread `may` be started, and finds the index and the name for it.
    fn prepare_start(
        &self,
        index: impl Fn(&State) -> usize,
        may: impl Fn() -> bool,
    ) -> Result<(MutexGuard<'_, State>, usize, String), StartError> {
        self.roster.reap();
        let mut roster = self.roster.lock();
        // The name for an index, if the user gives the names.
        let mut given = None;
        let (index, name) = loop {
            // A submitter may be slower than its task: by now the pool may have ended.
            if self.in_flight.is_over() {
                return Err(StartError::Over);
            }
            if !may() {
                return Err(StartError::NoRoom);
            }
            let index = index(&roster);
            match given.take() {
                Some((for_index, name)) if for_index == index => break (index, name),
                _ if self.config.hooks.thread_name.is_some() => {
                    // Not under the lock. The index may be somebody else's afterwards.
                    drop(roster);
                    given = Some((index, self.config.hooks.thread_name(index)));
                    roster = self.roster.lock();
                }
                _ => break (index, None),
            }
        };
        Ok((roster, index, name.unwrap_or_else(|| format!("{}-{index}", self.config.name))))
    }

    /// Starts a thread, which does nothing before `enter` has entered it.
    fn start_named<R>(
        self: &Arc<Self>,
        roster: &mut State,
        index: usize,
        name: String,
        search: Option<Search>,
        enter: impl FnOnce(&mut State, ThreadHandle<()>, Arc<Tally>) -> R,
    ) -> io::Result<R> {
        let key = roster.next_key();
        let tally = Arc::new(Tally::default());
        let gate = Arc::new(Mutex::new(()));
        let start = Start {
            shared: Arc::clone(self),
            gate: Arc::clone(&gate),
            key,
            index,
            tally: Arc::clone(&tally),
            search,
        };
        let body = self.body;
        let shut = gate.lock();
        let started = start_thread(name, self.config.stack_size, move || body(start));
        roster.refused += usize::from(started.is_err());
        let entered = started.map(|handle| enter(roster, handle, tally));
        drop(shut);
        entered
    }

    /// Starts workers until there are `core_size`. Returns how many it started.
    pub(crate) fn start_core(self: &Arc<Self>) -> usize {
        let mut started = 0;
        while !self.in_flight.is_closed()
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok()
        {
            started += 1;
        }
        started
    }

    // ----- resizing -----

    pub(crate) fn set_core_size(self: &Arc<Self>, core_size: usize) -> Result<(), BuildError> {
        self.sizes.set_core(core_size)?;
        // Whoever rests works out anew how long it may.
        self.nudge_all();
        fence(Ordering::SeqCst);
        while !self.queue.is_empty()
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok()
        {}
        Ok(())
    }

    pub(crate) fn set_max_size(self: &Arc<Self>, max_size: usize) -> Result<(), BuildError> {
        if max_size < self.sizes.set_max(max_size)? {
            // Idle workers above the limit leave now, busy ones when they have ended their tasks.
            self.shrinks.increment();
        }
        self.nudge_all();
        self.admit_returning();
        if let Some(room) = &self.room {
            room.resize(&self.sizes);
        }
        self.pass_on(None);
        Ok(())
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), BuildError> {
        self.sizes.set_keep_alive(keep_alive)?;
        self.nudge_all();
        Ok(())
    }

    // ----- resting and leaving: called by workers -----

    /// Ends `count` tasks of a worker.
    pub(crate) fn finish(&self, count: usize) {
        if self.in_flight.finish(count).is_over() {
            self.nudge_all();
        }
    }

    /// How long an idle worker may stay: `None` is for ever, or until it is nudged.
    pub(crate) fn rest_until(&self, now: Snapshot, since: Instant) -> Option<Instant> {
        let total = now.total();
        if total <= self.sizes.core() || (total == 1 && !self.in_flight.status().is_quiet()) {
            return None;
        }
        since.checked_add(self.sizes.keep_alive())
    }

    /// Whether more workers are running than may be: some have come back from blocking regions, or the limit has been
    /// lowered.
    #[inline]
    pub(crate) fn is_above_limit(&self, now: Snapshot) -> bool {
        now.running() > self.sizes.max()
    }

    /// Lets a worker that is not on the idle stack leave, if that is right: it is counted no longer, and its place
    /// can be filled. Whatever it was relied on for must then be [passed on](Self::pass_on).
    #[must_use]
    pub(crate) fn may_leave(self: &Arc<Self>, why: Leave, key: ThreadKey, index: usize) -> bool {
        let mut roster = loop {
            if why == Leave::Recycled {
                match self.succeed(key, index) {
                    Ok(()) => return true,
                    Err(StartError::Refused(_)) => return false,
                    // Nobody needs to follow.
                    Err(StartError::NoRoom | StartError::Over) => {}
                }
            }
            let roster = self.roster.lock();
            // Looked at again under the lock: two workers may be used up at the same time.
            if why != Leave::Recycled || !self.needs_successor() {
                break roster;
            }
        };
        let now = self.counts.load();
        let may = match why {
            Leave::Surplus => now.total() > self.sizes.core(),
            Leave::Excess => now.runnable() > self.sizes.max(),
            Leave::Recycled | Leave::Over => true,
        };
        if !may {
            return false;
        }
        // Races 3 and 4: the last worker stays as long as anything is in flight. It is counted off before that is
        // looked at.
        let now = self.counts.remove_worker();
        if now.total() == 0 && !self.in_flight.status().is_quiet() {
            self.counts.add_worker();
            return false;
        }
        self.tell_watch(now);
        roster.strike_out(key);
        if !self.config.hooks.has_stop_hook() {
            roster.return_index(index);
        }
        true
    }

    /// Starts a worker in the place of the calling one, which leaves: the counts do not change. Only if there is work
    /// for it, or the pool would fall below `core_size`.
    fn succeed(self: &Arc<Self>, key: ThreadKey, index: usize) -> Result<(), StartError> {
        // In its stop hook the old worker still has its index.
        let keeps_index = self.config.hooks.has_stop_hook();
        let its_index = |roster: &State| if keeps_index { roster.next_index() } else { index };
        let (mut roster, its_index, name) =
            self.prepare_start(its_index, || self.needs_successor())?;
        let entered =
            self.start_named(&mut roster, its_index, name, None, |roster, handle, tally| {
                if keeps_index {
                    roster.take_index();
                }
                roster.enter(handle, tally, self.counts.load().total());
                roster.strike_out(key);
            });
        entered.map_err(StartError::Refused)
    }

    /// Whether a worker that leaves is missed: there is work for it, or the pool would fall below `core_size`.
    fn needs_successor(&self) -> bool {
        let now = self.counts.load();
        let others = now.total() - 1;
        let status = self.in_flight.status();
        !self.is_above_limit(now)
            && ((others < self.sizes.core() && !status.is_closed())
                || (others == 0 && !status.is_quiet())
                || (!self.queue.is_empty() && now.idle() == 0))
    }

    /// Perhaps there is nothing to watch for any more: others have gone, there is no room, or no task is queued.
    pub(crate) fn tell_watch(&self, now: Snapshot) {
        if now.is_watching() {
            self.watch.nudge_all();
        }
    }

    // ----- keeping the watch: called by workers -----

    /// Whether a worker that has come for work should keep the watch instead: under [`Growth::Stalled`], the last one
    /// above the core that is free, while others are at work and more could be started.
    pub(crate) fn should_watch(&self) -> bool {
        let now = self.counts.load();
        !now.is_watching() && self.is_worth_watching(now)
    }

    /// Whether a watch can have a consequence.
    pub(crate) fn is_worth_watching(&self, now: Snapshot) -> bool {
        now.total() > self.sizes.core() && now.running() > 1 && now.may_start(self.sizes.max())
    }

    /// How often a task or future has been taken from the queue.
    pub(crate) fn taken(&self) -> usize {
        self.roster.lock().taken()
    }

    /// Starts up to `count` workers, as long as there is room. Returns how many.
    pub(crate) fn start_stalled(self: &Arc<Self>, count: usize) -> usize {
        (0..count).take_while(|_| self.start_for_queue(None).is_ok()).count()
    }

    // ----- closing -----

    /// Accepts no more tasks. What was accepted is done; then the workers leave.
    pub(crate) fn close(&self) {
        let status = self.in_flight.close();
        if let Some(room) = &self.room {
            room.close();
        }
        if status.is_over() {
            self.nudge_all();
        }
    }

    /// Tasks that come into the queue from now on are cancelled instead: it is being emptied.
    pub(crate) fn stop(&self) {
        self.stops.increment();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stops.get() > 0
    }

    // ----- looking -----

    /// How many tasks are in the queue: entries whose tasks have been started by the threads that wait for them are none.
    pub(crate) fn queued_count(&self) -> usize {
        let mut sums = self.roster.lock().sums();
        self.elsewhere.lock().add_to(&mut sums);
        self.queue.len().saturating_sub(sums.stale())
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let roster = self.roster.lock();
        // What comes first in a task's life is read last: so nothing is counted before it came, or negative.
        let mut sums = roster.sums();
        self.elsewhere.lock().add_to(&mut sums);
        let in_flight = self.in_flight.count().saturating_sub(sums.unreported());
        let now = self.counts.load();
        roster.describe(&mut stats);
        stats.workers = now.total();
        stats.idle = now.idle();
        stats.blocked = self.blocked_count(now);
        self.peak_blocked.raise(stats.blocked);
        stats.peak_blocked = self.peak_blocked.get();
        drop(roster);
        stats.queued = self.queue.len().saturating_sub(sums.stale());
        // A worker may still be on its way out of a future that somebody else has polled to its end since.
        stats.active = sums.active().min(in_flight.saturating_sub(stats.queued));
        stats.pending = in_flight.saturating_sub(stats.queued + stats.active);
        stats.completed = sums.completed;
        stats.panicked = sums.panicked;
        stats.cancelled = sums.cancelled;
        stats.handed_back = sums.handed_back;
        stats.rejected = self.rejected.get();
        stats
    }
}

/// Why a worker would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It was idle for too long, and is not of the core.
    Surplus,
    /// `max_size` has been lowered, and more workers than that are not blocked.
    Excess,
    /// It has run as many tasks as a worker may.
    Recycled,
    /// The pool is closed and has nothing left to do.
    Over,
}

/// What a pool is to its workers while they block.
impl Employer for Shared {
    fn enter_region(self: Arc<Self>, duty: Duty, kind: Kind) -> bool {
        if let Some(desk) = desk::current(&self) {
            desk.end_silence();
        }
        let is_replaced = kind == Kind::Own
            || self.declared.fetch_add(1, Ordering::AcqRel) < self.config.max_blocked;
        if is_replaced {
            let now = self.counts.add_away();
            self.tell_watch(now);
            if duty == Duty::Tasks {
                self.end_work();
            }
        }
        self.peak_blocked.raise(self.blocked_count(self.counts.load()));
        self.stopped_running(self.counts.load());
        // As race 1: the place is free first, then the look at the queue; submitters do it the other way round.
        self.pass_on(None)
    }

    fn exit_region(self: Arc<Self>, duty: Duty, kind: Kind) {
        match kind {
            Kind::Own => self.return_from_region(duty),
            Kind::Declared => self.return_from_declared_region(),
        }
    }

    fn begin_own_wait(self: Arc<Self>) -> bool {
        if self.declared.fetch_sub(1, Ordering::AcqRel) <= self.config.max_blocked {
            // Away as before.
            return true;
        }
        // As many are away for their declared regions as before: one more for its own pool.
        self.replace_another()
    }

    fn end_own_wait(self: Arc<Self>) {
        if self.declared.fetch_add(1, Ordering::AcqRel) >= self.config.max_blocked {
            self.return_from_region(Duty::Tasks);
        }
    }

    fn may_wait_in_hook(&self) -> bool {
        // The calling worker is one of them.
        self.in_start_hook.load(Ordering::Relaxed) <= self.sizes.max()
    }

    fn attend(&self, parker: &Arc<Parker>) {
        self.blocked.add(parker);
    }

    fn unattend(&self, parker: &Arc<Parker>) {
        self.blocked.remove(parker);
    }

    fn retry(self: Arc<Self>) -> bool {
        // With a running worker there is hope; should it block too, it asks itself, and tells us.
        self.counts.load().running() > 0 || self.pass_on(None)
    }
}

/// How workers come back from blocking regions.
impl Shared {
    /// Counts the calling worker as runnable again; waits in line if more are running than may be.
    fn return_from_region(&self, duty: Duty) {
        let max_size = self.sizes.max();
        let returned =
            if self.returning.is_empty() { self.counts.return_from_region(max_size) } else { None };
        match returned {
            Some(now) => self.tell_watch(now),
            None => self.return_in_line(),
        }
        match &self.room {
            Some(room) if duty == Duty::Tasks => room.begin_work(),
            _ => {}
        }
    }

    /// Counts one more worker as away, which runs a task and is in a region already. `false` as for
    /// [`enter_region`](Employer::enter_region).
    fn replace_another(self: &Arc<Self>) -> bool {
        let now = self.counts.add_away();
        self.tell_watch(now);
        self.end_work();
        self.stopped_running(self.counts.load());
        self.pass_on(None)
    }

    #[cold]
    fn return_in_line(&self) {
        let parker = self.returning.join();
        // In line first, then a look whether there is a place; workers that stop to run do it the other way round.
        fence(Ordering::SeqCst);
        self.admit_returning();
        self.returning.wait(&parker, || {
            self.counts.remove_away();
        });
        self.tell_watch(self.counts.load());
    }

    /// As [`return_from_region`](Self::return_from_region), for one of those that `max_blocked` limits: the number of
    /// them that count as away is never larger than that, nor than the number of them all.
    fn return_from_declared_region(self: &Arc<Self>) {
        let one_less = |declared| (declared > self.config.max_blocked).then(|| declared - 1);
        // One that is not counted takes the place of this one, which need not wait then.
        if self.declared.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
            return;
        }
        self.return_from_region(Duty::Tasks);
        if self.declared.fetch_sub(1, Ordering::AcqRel) > self.config.max_blocked {
            // Another one has come meanwhile, and was not counted.
            self.replace_another();
        }
    }

    /// A worker has stopped to run: it is idle, has left, or is away, by a change of the counts to `now`. Fences, then lets
    /// out a worker that is in line.
    #[inline]
    pub(crate) fn stopped_running(&self, now: Snapshot) {
        fence(Ordering::SeqCst);
        // A worker in line counts as away.
        if now.away() > 0 && !self.returning.is_empty() {
            self.admit_returning();
        }
    }

    #[cold]
    fn admit_returning(&self) {
        let max_size = self.sizes.max();
        self.returning.admit(|| self.counts.return_from_region(max_size).is_some());
        self.tell_watch(self.counts.load());
    }

    /// How many workers are in blocking regions, whether or not they are counted as away.
    fn blocked_count(&self, now: Snapshot) -> usize {
        let declared = self.declared.load(Ordering::Relaxed);
        now.away() + declared.saturating_sub(self.config.max_blocked)
    }
}
