//! What is known of the tasks and of the pool, and the [`Ticket`] by which each task reports.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use elastipool::{JoinError, worker_index};

use crate::groups::Term;

/// More indexes than workers can be at once in a round.
const INDEXES: usize = 4096;

thread_local! {
    /// Set where a panic is meant, to keep it off the terminal.
    pub(crate) static EXPECTED: Cell<bool> = const { Cell::new(false) };
    /// Set while this thread, which is none of the pool's, runs or drops what was handed back.
    pub(crate) static HANDED_BACK: Cell<bool> = const { Cell::new(false) };
    /// Set while this thread, a worker, is in what may be a blocking region.
    static IN_REGION: Cell<bool> = const { Cell::new(false) };
    /// How many tasks and polls this thread has run that were on top of no other: a worker's own
    /// count.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// How many tasks and polls are on this thread's stack.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// What this thread is in the middle of waiting for, the innermost wait last.
    static WAITS: RefCell<Vec<Wait>> = const { RefCell::new(Vec::new()) };
}

/// A fact. Relaxed, like all counts here: what a join does not make visible is missing.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) const fn new() -> Self {
        Flag(AtomicBool::new(false))
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

pub(crate) fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// To whom a task belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Free,
    Scoped,
    Grouped,
}

/// Tells scopes and terms of groups apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family(usize);

impl Family {
    pub(crate) const NONE: Family = Family(0);

    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);

        Family(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What is known of one task.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// The scope or the group's term that it belongs to.
    family: Family,

    // What became of the submission: neither, if the pool was closed meanwhile and the form does
    // not tell.
    pub(crate) accepted: Flag,
    pub(crate) rejected: Flag,
    /// It was rejected because its group was cancelled.
    pub(crate) group_cancelled: Flag,

    // What became of the task.
    pub(crate) ran: Flag,
    pub(crate) panicked: Flag,
    pub(crate) dropped: Flag,
    /// It ran, and returned an error.
    pub(crate) failed: Flag,
    /// One of these happened to it after it had been handed back.
    pub(crate) handed_back: Flag,
    /// Nothing is left of it.
    pub(crate) gone: Flag,
    /// It is a future that was pending at least once.
    pub(crate) waited: Flag,
    /// It was cancelled or abandoned on purpose.
    pub(crate) excused: Flag,

    // What its handle resolved to, if it had one that was awaited to the end.
    pub(crate) has_handle: Flag,
    received_value: Flag,
    pub(crate) received_panic: Flag,
    received_cancelled: Flag,
    /// How often the panic handler received it, or the owner of its scope.
    pub(crate) reports: AtomicUsize,
    /// How often its group said that it had failed or panicked.
    pub(crate) group_reports: AtomicUsize,
}

impl Case {
    pub(crate) fn new(kind: Kind, family: Family) -> Arc<Self> {
        Arc::new(Case { kind, family, ..Case::default() })
    }

    pub(crate) fn is_unsure(&self) -> bool {
        !self.accepted.get() && !self.rejected.get()
    }

    pub(crate) fn ended_in_pool(&self) -> bool {
        !self.rejected.get() && !self.handed_back.get()
    }

    /// The pool accepted it, and dropped it.
    pub(crate) fn is_dropped(&self) -> bool {
        !self.rejected.get() && self.dropped.get()
    }

    /// Its group hears of it.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get() || self.panicked.get()
    }

    /// Ends the task, or panics if it has ended before.
    fn end(&self, how: &Flag) {
        let ends = [&self.ran, &self.panicked, &self.dropped];
        assert!(!ends.iter().any(|end| end.get()), "a task ended twice: {self:?}");
        if HANDED_BACK.get() {
            self.handed_back.set();
        }
        how.set();
    }

    /// Notes what a handle that was waited for has said.
    pub(crate) fn hear(self: &Arc<Self>, result: Result<(), JoinError>) {
        match result.map_err(JoinError::try_into_panic) {
            Ok(()) => self.received_value.set(),
            Err(Ok(payload)) => {
                self.received_panic.set();
                let Expected(case) = expected(payload);
                assert!(Arc::ptr_eq(&case, self), "another task's panic: {case:?} {self:?}");
            }
            Err(Err(_)) => self.received_cancelled.set(),
        }
    }

    /// The task has ended: checks that everybody agrees on how.
    pub(crate) fn judge(&self, shut_down_now: bool) {
        let [ran, panicked, dropped] =
            [&self.ran, &self.panicked, &self.dropped].map(|end| usize::from(end.get()));
        assert_eq!(ran + panicked + dropped, 1, "lost, or ended twice: {self:?}");
        assert!(self.gone.get(), "not dropped yet: {self:?}");
        let is_tied = self.kind != Kind::Free;
        if self.rejected.get() {
            assert!(self.dropped.get(), "rejected, and ran: {self:?}");
        } else {
            assert!(
                !is_tied || !self.handed_back.get(),
                "handed back from a scope or group: {self:?}"
            );
        }
        // Of a group's tasks the group knows why they were dropped.
        if self.is_dropped() && self.accepted.get() && self.kind != Kind::Grouped {
            let may_shutdown = is_tied || self.waited.get() || self.handed_back.get();
            let by_shutdown = shut_down_now && may_shutdown;
            assert!(self.excused.get() || by_shutdown, "dropped without a reason: {self:?}");
        }
        let received =
            (self.received_value.get(), self.received_panic.get(), self.received_cancelled.get());
        let fits = match received {
            (false, false, false) => true,
            (true, false, false) => self.ran.get(),
            (false, true, false) => self.panicked.get(),
            (false, false, true) => self.dropped.get(),
            _ => false,
        };
        assert!(fits, "its handle received something else: {self:?}");
        let reports = get(&self.reports);
        let may_report = match (self.panicked.get(), self.kind) {
            (false, _) => reports == 0,
            // A waiter of the group has received it, or the panic handler.
            (true, Kind::Grouped) => reports + get(&self.group_reports) == 1,
            (true, _) if self.received_panic.get() => reports == 0,
            (true, Kind::Scoped) => reports == 1,
            // The handle was dropped, sooner or later than the panic came.
            (true, Kind::Free) if self.has_handle.get() => reports <= 1,
            (true, Kind::Free) => reports == 1,
        };
        assert!(may_report, "{reports} reports of its panic: {self:?}");
    }
}

/// The payload of a panic that is meant.
pub(crate) struct Expected(pub(crate) Arc<Case>);

pub(crate) fn expected(payload: Box<dyn Any + Send>) -> Expected {
    *payload.downcast().expect("no panic but those that are meant")
}

/// Panics without a word on the terminal.
pub(crate) fn panic_quietly(payload: impl Any + Send) -> ! {
    EXPECTED.set(true);
    panic::panic_any(payload);
}

/// What is known of the pool as a whole.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) capacity: Option<usize>,
    pub(crate) max_tasks: Option<usize>,
    /// `shutdown_now` has been or is about to be called.
    pub(crate) shut_down_now: Flag,
    /// The largest `max_size` that was ever set.
    pub(crate) largest_max: AtomicUsize,
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    /// Tasks in a region, or on their way in or out.
    blocked: AtomicUsize,
    most_blocked: AtomicUsize,
    /// Workers that run a task, by index.
    occupied: Vec<AtomicBool>,
    pub(crate) starts: AtomicUsize,
    pub(crate) stops: AtomicUsize,
    /// Tasks that were run by threads that waited for them.
    pub(crate) nested: AtomicUsize,
    /// Tasks and polls that were run by threads outside of the pool.
    pub(crate) run_outside: AtomicUsize,
}

impl Oracle {
    pub(crate) fn new(
        capacity: Option<usize>,
        max_tasks: Option<usize>,
        max_size: usize,
    ) -> Arc<Self> {
        Arc::new(Oracle {
            capacity,
            max_tasks,
            shut_down_now: Flag::default(),
            largest_max: AtomicUsize::new(max_size),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            most_blocked: AtomicUsize::new(0),
            occupied: (0..INDEXES).map(|_| AtomicBool::new(false)).collect(),
            starts: AtomicUsize::new(0),
            stops: AtomicUsize::new(0),
            nested: AtomicUsize::new(0),
            run_outside: AtomicUsize::new(0),
        })
    }

    /// Workers that may be runnable at once. None is started while as many are; from then on there
    /// can only be more because some of those that were in regions at that time have come back.
    pub(crate) fn most_runnable(&self) -> usize {
        get(&self.largest_max) + get(&self.most_blocked)
    }
}

/// What a thread may wait for, and run meanwhile.
pub(crate) enum Wait {
    /// For something that it does not run.
    Nothing,
    /// For this task.
    Task(Arc<Case>),
    /// Until a scope has ended.
    Scope(Family),
    /// For a group.
    Group(Family),
}

impl Wait {
    /// `depth` is how many tasks the thread runs already.
    fn permits(&self, case: &Arc<Case>, depth: usize) -> bool {
        // A thread outside only waits for groups and handles. But inside of a scope's task it runs
        // that of a scope's handle.
        let is_worker = worker_index().is_some();
        let runs_awaited = is_worker || (depth > 0 && case.kind == Kind::Scoped);
        match self {
            Wait::Nothing => false,
            Wait::Task(awaited) => runs_awaited && Arc::ptr_eq(awaited, case),
            Wait::Scope(family) => *family == case.family,
            Wait::Group(family) => is_worker && *family == case.family,
        }
    }
}

/// What may be, or contain, a blocking region of a task. One in another changes nothing.
pub(crate) fn in_region<R>(oracle: &Oracle, f: impl FnOnce() -> R) -> R {
    waiting(oracle, Wait::Nothing, f)
}

/// As [`in_region`], where tasks may be run by the thread that waits.
pub(crate) fn waiting<R>(oracle: &Oracle, wait: Wait, f: impl FnOnce() -> R) -> R {
    struct Waiting;

    impl Drop for Waiting {
        fn drop(&mut self) {
            WAITS.with_borrow_mut(Vec::pop);
        }
    }

    WAITS.with_borrow_mut(|waits| waits.push(wait));
    let _waiting = Waiting;
    blocked(oracle, f)
}

fn blocked<R>(oracle: &Oracle, f: impl FnOnce() -> R) -> R {
    struct Blocked<'a>(&'a Oracle);

    impl Drop for Blocked<'_> {
        fn drop(&mut self) {
            self.0.blocked.fetch_sub(1, Ordering::SeqCst);
            IN_REGION.set(false);
        }
    }

    // Outside of the workers there are no regions.
    let is_outermost = worker_index().is_some() && !IN_REGION.replace(true);
    let _blocked = is_outermost.then(|| {
        let blocked = oracle.blocked.fetch_add(1, Ordering::SeqCst) + 1;
        oracle.most_blocked.fetch_max(blocked, Ordering::Relaxed);
        Blocked(oracle)
    });
    f()
}

/// How a task ends, if it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Succeeds,
    /// Returns an error: only in groups.
    Fails,
    Panics,
}

/// The error of a group's task.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) Arc<Case>);

/// A task or a poll is on the stack of the thread until this is dropped.
#[must_use]
pub(crate) struct Running(bool);

impl Drop for Running {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - usize::from(self.0));
    }
}

/// Goes where the task goes and reports what became of it.
pub(crate) struct Ticket {
    case: Arc<Case>,
    oracle: Arc<Oracle>,
    fate: Fate,
    /// Of the group's, if it belongs to one.
    term: Option<Arc<Term>>,
    has_begun: Flag,
}

impl Ticket {
    pub(crate) fn new(
        case: &Arc<Case>,
        oracle: &Arc<Oracle>,
        fate: Fate,
        term: Option<Arc<Term>>,
    ) -> Self {
        let (case, oracle) = (Arc::clone(case), Arc::clone(oracle));
        Ticket { case, oracle, fate, term, has_begun: Flag::default() }
    }

    pub(crate) fn case(&self) -> &Case {
        &self.case
    }

    pub(crate) fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Each task and each poll begins with this.
    pub(crate) fn begin(&self) -> Running {
        if worker_index().is_none() {
            add(&self.oracle.run_outside);
        }
        if HANDED_BACK.get() {
            return Running(false);
        }
        let is_first = !self.has_begun.get();
        let depth = DEPTH.replace(DEPTH.get() + 1);
        let running = Running(true);
        if depth == 0 && worker_index().is_some() {
            TAKEN.set(TAKEN.get() + 1);
            // A worker whose replacement has come and gone already has one more term: rarely.
            let limit = self.oracle.max_tasks.map_or(usize::MAX, |max| 3 * max);
            assert!(TAKEN.get() <= limit, "{} tasks on one worker", TAKEN.get());
        } else {
            let permits =
                |waits: &Vec<Wait>| waits.last().is_some_and(|w| w.permits(&self.case, depth));
            let is_awaited = is_first && WAITS.with_borrow(permits);
            assert!(is_awaited, "run by a thread that does not wait for it: {:?}", self.case);
            add(&self.oracle.nested);
        }
        self.has_begun.set();
        if let (Some(term), true) = (&self.term, is_first) {
            term.begin_task();
        }
        self.step();
        running
    }

    /// Occupies the worker for a moment.
    pub(crate) fn step(&self) {
        if HANDED_BACK.get() {
            return;
        }
        let oracle = &self.oracle;
        // Outside of the workers a scope's owner runs its tasks.
        let Some(index) = worker_index() else { return thread::yield_now() };
        let occupied = &oracle.occupied[index];
        assert!(!occupied.swap(true, Ordering::Relaxed), "two tasks on one worker");
        let running = oracle.running.fetch_add(1, Ordering::SeqCst) + 1;
        oracle.most_running.fetch_max(running, Ordering::Relaxed);
        thread::yield_now();
        oracle.running.fetch_sub(1, Ordering::SeqCst);
        occupied.store(false, Ordering::Relaxed);
    }

    /// The end of a task that cannot fail.
    pub(crate) fn end(&self) {
        self.try_end().expect("only a group's tasks fail");
    }

    pub(crate) fn try_end(&self) -> Result<(), Failed> {
        match self.fate {
            Fate::Succeeds => self.case.end(&self.case.ran),
            Fate::Fails => {
                self.case.failed.set();
                self.case.end(&self.case.ran);
                return Err(Failed(Arc::clone(&self.case)));
            }
            Fate::Panics => {
                self.case.end(&self.case.panicked);
                panic_quietly(Expected(Arc::clone(&self.case)));
            }
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.case.kind != Kind::Free {
            // A thread that waits for the whole task does not return now.
            thread::yield_now();
        }
        if !self.case.ran.get() && !self.case.panicked.get() {
            self.case.end(&self.case.dropped);
        }
        if let (Some(term), true) = (&self.term, self.has_begun.get()) {
            term.end_task();
        }
        self.case.gone.set();
    }
}
