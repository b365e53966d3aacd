//! Everything at once, at random, against an oracle: pools of random configuration with keep-alives down to
//! a microsecond, submissions in every way from outside and inside, bounded queues, blocking regions, panics,
//! cancellations, abandoned futures, wakes from foreign threads, joins, sizes that change meanwhile, closes and
//! immediate shutdowns.
//!
//! Each task has a [`Case`], in which everybody who meets the task notes what he saw. When the pool is quiet the
//! cases are judged: what was accepted ran once, was handed back, or was dropped for a reason; what was not accepted
//! came back; its handle and the panic handler were told the same; and the statistics are the sums of all that.
//! Besides: never more tasks at once than `max_size` and regions allow, never two on one worker, no thread is left.
//!
//! Runs for `ELASTIPOOL_STRESS_SECONDS` (default 2). A failure names the seed of its round;
//! `ELASTIPOOL_STRESS_SEED` runs that round alone, again and again. (The threads' timing is not part
//! of the seed: it may take a while.)
#![cfg(feature = "async")]

mod common;

use std::any::Any;
use std::cell::Cell;
use std::env;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use elastipool::{
    Growth, JoinError, JoinHandle, RejectReason, Rejected, Stats, Task, ThreadPool, blocking,
    worker_index,
};
use fastrand::Rng;

/// A round takes milliseconds: one that takes this long is stuck.
const STUCK: Duration = Duration::from_secs(120);

/// More indexes than workers can be at once in a round.
const INDEXES: usize = 4096;

const KEEP_ALIVES: [Duration; 4] =
    [Duration::from_micros(1), Duration::from_micros(20), Duration::from_micros(400), common::HOUR];

thread_local! {
    /// Set where a panic is meant, to keep it off the terminal.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
    /// Set while this thread, which is none of the pool's, runs or drops what was handed back.
    static AWAY: Cell<bool> = const { Cell::new(false) };
    /// How many tasks and polls this thread has run: a worker's own count.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

// ----- the oracle -----

/// A fact. Relaxed, like all counts here: what a join does not make visible is missing.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Flag {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// What is known of one task.
#[derive(Debug, Default)]
struct Case {
    // What became of the submission: neither, if the pool was closed meanwhile and the form does not tell.
    accepted: Flag,
    rejected: Flag,

    // What became of the task.
    ran: Flag,
    panicked: Flag,
    dropped: Flag,
    /// One of these happened to it after it had been handed back.
    away: Flag,
    /// It is a future that was pending at least once.
    waited: Flag,
    /// Somebody cancelled or abandoned it on purpose.
    excused: Flag,

    // What its handle was told, if it had one and somebody listened to the end.
    has_handle: Flag,
    told_value: Flag,
    told_panic: Flag,
    told_cancelled: Flag,
    /// How often the panic handler was told.
    reports: AtomicUsize,
}

impl Case {
    fn is_unsure(&self) -> bool {
        !self.accepted.get() && !self.rejected.get()
    }

    fn ended_in_pool(&self) -> bool {
        !self.rejected.get() && !self.away.get()
    }

    /// Ends the task, or panics if it has ended before.
    fn end(&self, how: &Flag) {
        let ends = [&self.ran, &self.panicked, &self.dropped];
        assert!(!ends.iter().any(|end| end.get()), "a task ended twice: {self:?}");
        if AWAY.get() {
            self.away.set();
        }
        how.set();
    }

    /// Notes what a handle that was waited for has said.
    fn hear(self: &Arc<Self>, result: Result<(), JoinError>) {
        match result.map_err(JoinError::try_into_panic) {
            Ok(()) => self.told_value.set(),
            Err(Ok(payload)) => {
                self.told_panic.set();
                let Expected(case) = expected(payload);
                assert!(Arc::ptr_eq(&case, self), "somebody else's panic: {case:?} {self:?}");
            }
            Err(Err(_)) => self.told_cancelled.set(),
        }
    }

    /// The task has ended: checks that everybody agrees on how.
    fn judge(&self, shut_down_now: bool) {
        let [ran, panicked, dropped] =
            [&self.ran, &self.panicked, &self.dropped].map(|end| usize::from(end.get()));
        assert_eq!(ran + panicked + dropped, 1, "lost, or ended twice: {self:?}");
        if self.rejected.get() {
            assert!(self.dropped.get(), "rejected, and ran: {self:?}");
        } else if dropped > 0 && self.accepted.get() {
            let by_shutdown = shut_down_now && (self.waited.get() || self.away.get());
            assert!(self.excused.get() || by_shutdown, "dropped without a reason: {self:?}");
        }
        let told = (self.told_value.get(), self.told_panic.get(), self.told_cancelled.get());
        let fits = match told {
            (false, false, false) => true,
            (true, false, false) => self.ran.get(),
            (false, true, false) => self.panicked.get(),
            (false, false, true) => self.dropped.get(),
            _ => false,
        };
        assert!(fits, "its handle was told something else: {self:?}");
        let reports = get(&self.reports);
        let may_report = match (self.panicked.get(), self.has_handle.get()) {
            (false, _) => reports == 0,
            (true, false) => reports == 1,
            (true, true) if self.told_panic.get() => reports == 0,
            // The handle was dropped, sooner or later than the panic came.
            (true, true) => reports <= 1,
        };
        assert!(may_report, "the panic handler was told {reports} times: {self:?}");
    }
}

/// The payload of a panic that is meant.
struct Expected(Arc<Case>);

fn expected(payload: Box<dyn Any + Send>) -> Expected {
    *payload.downcast().expect("no panic but those that are meant")
}

/// Panics without a word on the terminal.
fn panic_quietly(case: Arc<Case>) -> ! {
    EXPECTED.set(true);
    panic::panic_any(Expected(case));
}

/// What is known of the pool as a whole.
#[derive(Debug)]
struct Oracle {
    capacity: Option<usize>,
    max_tasks: Option<usize>,
    /// `shutdown_now` has been or is about to be called.
    shut_down_now: Flag,
    /// The largest `max_size` that was ever set.
    largest_max: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
    /// Tasks in a region, or on their way in or out.
    blocked: AtomicUsize,
    most_blocked: AtomicUsize,
    /// Workers that run a task, by index.
    occupied: Vec<AtomicBool>,
    starts: AtomicUsize,
    stops: AtomicUsize,
}

impl Oracle {
    fn new(capacity: Option<usize>, max_tasks: Option<usize>, max_size: usize) -> Arc<Self> {
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
        })
    }

    /// Workers that may be runnable at once. None is started while as many are; from then on there can only be more
    /// because some of those that were in regions at that time have come back.
    fn most_runnable(&self) -> usize {
        get(&self.largest_max) + get(&self.most_blocked)
    }
}

// ----- tasks -----

/// Goes where the task goes and reports what became of it.
struct Ticket {
    case: Arc<Case>,
    oracle: Arc<Oracle>,
    panics: bool,
}

impl Ticket {
    /// Each task and each poll begins with this.
    fn begin(&self) {
        if AWAY.get() {
            return;
        }
        TAKEN.set(TAKEN.get() + 1);
        // A worker whose replacement has come and gone already has one more term: rarely.
        let limit = self.oracle.max_tasks.map_or(usize::MAX, |max| 3 * max);
        assert!(TAKEN.get() <= limit, "{} tasks on one worker", TAKEN.get());
        self.step();
    }

    /// Occupies the worker for a moment.
    fn step(&self) {
        if AWAY.get() {
            return;
        }
        let oracle = &self.oracle;
        let occupied = &oracle.occupied[worker_index().expect("tasks run on workers")];
        assert!(!occupied.swap(true, Ordering::Relaxed), "two tasks on one worker");
        let running = oracle.running.fetch_add(1, Ordering::SeqCst) + 1;
        oracle.most_running.fetch_max(running, Ordering::Relaxed);
        thread::yield_now();
        oracle.running.fetch_sub(1, Ordering::SeqCst);
        occupied.store(false, Ordering::Relaxed);
    }

    fn end(&self) {
        if self.panics {
            self.case.end(&self.case.panicked);
            panic_quietly(Arc::clone(&self.case));
        }
        self.case.end(&self.case.ran);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.case.ran.get() && !self.case.panicked.get() {
            self.case.end(&self.case.dropped);
        }
    }
}

/// A waker on its way to a foreign thread.
struct Letter {
    waker: Waker,
    /// To be dropped and not to be woken.
    abandon: bool,
    /// Whether a copy may be kept: not of a future that will be abandoned, which would live on in it.
    copy: bool,
}

/// A future that is woken some times by a foreign thread before it is ready.
struct Hops {
    ticket: Ticket,
    left: u32,
    abandoned_at: Option<u32>,
    post: mpsc::Sender<Letter>,
    polled: AtomicBool,
}

impl Future for Hops {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(!self.polled.swap(true, Ordering::Relaxed), "polled twice at the same time");
        self.ticket.begin();
        self.polled.store(false, Ordering::Relaxed);
        if self.left == 0 {
            self.ticket.end();
            return Poll::Ready(());
        }
        self.ticket.case.waited.set();
        // Who runs it away from the pool waits for its end: that must come.
        let abandon = self.abandoned_at == Some(self.left) && !AWAY.get();
        if abandon {
            self.ticket.case.excused.set();
        }
        self.left -= 1;
        let waker = context.waker().clone();
        let letter = Letter { waker, abandon, copy: self.abandoned_at.is_none() };
        self.post.send(letter).expect("the post office closes last");
        Poll::Pending
    }
}

/// Wakes what it is sent: at once or late, once or more often, or not at all.
fn post_office(letters: &mpsc::Receiver<Letter>, mut rng: Rng) {
    let mut late = Vec::new();
    for Letter { waker, abandon, copy } in letters {
        if abandon {
            continue;
        }
        match rng.u8(0..8) {
            0 => thread::yield_now(),
            1 => waker.wake_by_ref(),
            2 if copy => late.push(waker.clone()),
            _ => {}
        }
        waker.wake();
    }
    // Long after their futures have ended, and their pool.
    late.into_iter().for_each(Waker::wake);
}

// ----- submitting -----

/// What a submission does if there is no room.
enum Manner {
    Try,
    TryFor(Duration),
    Wait,
}

/// A handle that is still of interest.
type Kept = (Arc<Case>, JoinHandle<()>);

/// One round's surroundings.
#[derive(Clone)]
struct Round {
    pool: ThreadPool,
    oracle: Arc<Oracle>,
    cases: mpsc::Sender<Arc<Case>>,
    post: mpsc::Sender<Letter>,
    /// Whether tasks enter blocking regions.
    regions: bool,
}

impl Round {
    fn ticket(&self, case: &Arc<Case>, rng: &mut Rng) -> Ticket {
        let panics = rng.u8(..) < 16;
        Ticket { case: Arc::clone(case), oracle: Arc::clone(&self.oracle), panics }
    }

    fn closure(
        &self,
        case: &Arc<Case>,
        rng: &mut Rng,
        depth: u32,
    ) -> impl FnOnce() + Send + 'static + use<> {
        let ticket = self.ticket(case, rng);
        // Only some tasks hold the pool: they submit to it.
        let inner = (depth > 0 && rng.u8(..) < 96).then(|| (self.clone(), rng.fork()));
        let ends_in_region = self.regions && rng.u8(..) < 8;
        move || {
            ticket.begin();
            if let Some((round, mut rng)) = inner {
                round.work_inside(&ticket, &mut rng, depth - 1);
            }
            if ends_in_region {
                let oracle = Arc::clone(&ticket.oracle);
                in_region(&oracle, || blocking(|| ticket.end()));
            } else {
                ticket.end();
            }
        }
    }

    fn future(&self, case: &Arc<Case>, rng: &mut Rng) -> Hops {
        let left = rng.u32(0..5);
        Hops {
            ticket: self.ticket(case, rng),
            left,
            abandoned_at: (rng.u8(..) < 16).then(|| rng.u32(0..=left)),
            post: self.post.clone(),
            polled: AtomicBool::new(false),
        }
    }

    fn manner(&self, rng: &mut Rng) -> Manner {
        match rng.u8(0..4) {
            0 => Manner::TryFor(Duration::from_micros(rng.u64(0..200))),
            1 => Manner::Wait,
            _ => Manner::Try,
        }
    }

    /// Submits one task in one of all ways.
    fn submit(&self, rng: &mut Rng, depth: u32) -> Option<Kept> {
        let case = Arc::new(Case::default());
        self.cases.send(Arc::clone(&case)).expect("the cases are judged last");
        let manner = self.manner(rng);
        let handle = match rng.u8(0..6) {
            0 | 1 => {
                self.execute(&case, manner, self.closure(&case, rng, depth));
                None
            }
            2 => self.evaluate(&case, manner, self.closure(&case, rng, depth)),
            3 => {
                let ticket = self.ticket(&case, rng);
                self.complete(&case, manner, async move {
                    ticket.begin();
                    ticket.end();
                })
            }
            4 => {
                self.spawn(&case, manner, self.future(&case, rng));
                None
            }
            _ => self.spawn_await(&case, manner, self.future(&case, rng)),
        };
        let handle = handle?;
        case.has_handle.set();
        if rng.u8(..) < 32 {
            case.excused.set();
            handle.cancel();
        }
        Some((case, handle))
    }

    fn execute(&self, case: &Case, manner: Manner, task: impl FnOnce() + Send + 'static) {
        match manner {
            Manner::Try => _ = self.note(case, self.pool.try_execute(task)),
            Manner::TryFor(timeout) => {
                let submit = || self.pool.try_execute_for(task, timeout);
                self.note(case, in_region(&self.oracle, submit));
            }
            Manner::Wait => self.note_panic(case, || self.pool.execute(task)),
        }
    }

    fn evaluate(
        &self,
        case: &Case,
        manner: Manner,
        task: impl FnOnce() + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try => self.note(case, self.pool.try_evaluate(task)),
            Manner::TryFor(timeout) => {
                let submit = || self.pool.try_evaluate_for(task, timeout);
                self.note(case, in_region(&self.oracle, submit))
            }
            Manner::Wait => Some(self.note_guess(case, || self.pool.evaluate(task))),
        }
    }

    fn complete(
        &self,
        case: &Case,
        manner: Manner,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try | Manner::TryFor(_) => self.note(case, self.pool.try_complete(future)),
            Manner::Wait => Some(self.note_guess(case, || self.pool.complete(future))),
        }
    }

    fn spawn(&self, case: &Case, manner: Manner, future: Hops) {
        match manner {
            Manner::Try | Manner::TryFor(_) => _ = self.note(case, self.pool.try_spawn(future)),
            Manner::Wait => self.note_panic(case, || self.pool.spawn(future)),
        }
    }

    fn spawn_await(&self, case: &Case, manner: Manner, future: Hops) -> Option<JoinHandle<()>> {
        match manner {
            Manner::Try | Manner::TryFor(_) => self.note(case, self.pool.try_spawn_await(future)),
            Manner::Wait => Some(self.note_guess(case, || self.pool.spawn_await(future))),
        }
    }

    /// Notes what became of a submission that tells, and checks that a task that was refused came back.
    fn note<H, F>(&self, case: &Case, submitted: Result<H, Rejected<F>>) -> Option<H> {
        match submitted {
            Ok(handle) => {
                case.accepted.set();
                Some(handle)
            }
            Err(rejected) => {
                match rejected.reason() {
                    RejectReason::Closed => assert!(self.pool.is_closed()),
                    RejectReason::Full => assert!(self.oracle.capacity.is_some(), "no limit"),
                    other => panic!("rejected: {other:?}"),
                }
                assert!(!case.dropped.get(), "it does not come back: {case:?}");
                case.rejected.set();
                drop(rejected.into_task());
                None
            }
        }
    }

    /// Notes what became of a submission that waits for room, and panics if the pool is closed.
    fn note_panic(&self, case: &Case, submit: impl FnOnce()) {
        EXPECTED.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| in_region(&self.oracle, submit)));
        EXPECTED.set(false);
        match result {
            Ok(()) => case.accepted.set(),
            Err(payload) => {
                let text = payload.downcast_ref::<String>().expect("a text");
                assert!(
                    text.starts_with("the task was not accepted: the pool is closed"),
                    "{text}"
                );
                assert!(self.pool.is_closed());
                case.rejected.set();
            }
        }
    }

    /// Notes what became of a submission that waits for room, and does not tell whether it was accepted.
    fn note_guess<H>(&self, case: &Case, submit: impl FnOnce() -> H) -> H {
        let was_closed = self.pool.is_closed();
        let handle = in_region(&self.oracle, submit);
        if was_closed {
            case.rejected.set();
        } else if !self.pool.is_closed() {
            case.accepted.set();
        }
        handle
    }
}

/// What may be, or contain, a blocking region of a task.
fn in_region<R>(oracle: &Arc<Oracle>, f: impl FnOnce() -> R) -> R {
    struct Blocked<'a>(&'a Oracle);

    impl Drop for Blocked<'_> {
        fn drop(&mut self) {
            self.0.blocked.fetch_sub(1, Ordering::SeqCst);
        }
    }

    // Outside of the workers there are no regions.
    let _blocked = worker_index().map(|_| {
        let blocked = oracle.blocked.fetch_add(1, Ordering::SeqCst) + 1;
        oracle.most_blocked.fetch_max(blocked, Ordering::Relaxed);
        Blocked(oracle)
    });
    f()
}

// ----- what the threads of a round do -----

impl Round {
    /// What some tasks do.
    fn work_inside(&self, ticket: &Ticket, rng: &mut Rng, depth: u32) {
        for _ in 0..rng.u32(1..4) {
            match rng.u8(0..8) {
                0 if self.regions => in_region(&self.oracle, || blocking(thread::yield_now)),
                1 if self.regions => in_region(&self.oracle, || {
                    // The inner one changes nothing.
                    blocking(|| blocking(|| drop(self.submit(rng, depth))));
                }),
                2 | 3 if self.regions => {
                    if let Some((case, handle)) = self.submit(rng, depth) {
                        case.hear(in_region(&self.oracle, || handle.try_await_complete()));
                    }
                }
                _ => drop(self.submit(rng, depth)),
            }
            ticket.step();
        }
    }

    /// What one thread outside does to the pool.
    fn produce(&self, rng: &mut Rng) {
        let mut kept: Vec<Kept> = Vec::new();
        for _ in 0..rng.u32(1..60) {
            let submitted = self.submit(rng, 3);
            match (rng.u8(0..16), submitted) {
                (0..2, Some((case, handle))) => case.hear(handle.try_await_complete()),
                (2..4, Some(submitted)) => kept.push(submitted),
                (4, Some((case, handle))) => {
                    let timeout = Duration::from_micros(rng.u64(0..200));
                    match handle.await_complete_timeout(timeout) {
                        Ok(result) => case.hear(result),
                        Err(handle) => kept.push((case, handle)),
                    }
                }
                (5, _) => drop(self.pool.join_timeout(Duration::from_micros(rng.u64(0..500)))),
                (6, _) => drop(self.pool.start_core_threads()),
                (7, _) => assert!(format!("{:?}", self.pool).contains("ThreadPool")),
                (8, _) => thread::sleep(Duration::from_micros(rng.u64(0..100))),
                _ => {}
            }
        }
        for (case, handle) in kept {
            case.hear(handle.try_await_complete());
        }
    }

    /// Changes the sizes, to pairs that make sense and to others.
    fn tune(&self, rng: &mut Rng) {
        for _ in 0..rng.u32(1..20) {
            let size = rng.usize(0..8);
            match rng.u8(0..4) {
                0 => drop(self.pool.set_core_size(size)),
                1 | 2 => {
                    self.oracle.largest_max.fetch_max(size, Ordering::SeqCst);
                    drop(self.pool.set_max_size(size));
                }
                _ => self.pool.set_keep_alive(KEEP_ALIVES[rng.usize(0..4)]).unwrap(),
            }
            thread::sleep(Duration::from_micros(rng.u64(0..100)));
        }
    }

    /// Looks at the statistics while everything moves.
    fn watch(&self, rng: &mut Rng) {
        let mut before = self.pool.stats();
        for _ in 0..rng.u32(1..50) {
            let now = self.pool.stats();
            check_progress(&before, &now);
            before = now;
            thread::sleep(Duration::from_micros(rng.u64(0..50)));
        }
    }

    /// Closes the pool, in one of all ways.
    fn end(&self, rng: &mut Rng) {
        thread::sleep(Duration::from_micros(rng.u64(0..300)));
        if rng.bool() {
            self.pool.close();
            return;
        }
        self.oracle.shut_down_now.set();
        for task in self.pool.shutdown_now() {
            dispose(task, rng);
        }
        assert!(self.pool.is_closed());
    }
}

/// Runs or drops a task that was handed back.
fn dispose(task: Task, rng: &mut Rng) {
    AWAY.set(true);
    if rng.bool() {
        task.run();
    } else {
        drop(task);
    }
    AWAY.set(false);
}

// ----- checking -----

/// What only grows has grown, and what one lock keeps consistent is.
fn check_progress(before: &Stats, now: &Stats) {
    let growing = |stats: &Stats| {
        [
            stats.completed,
            stats.panicked,
            stats.cancelled,
            stats.handed_back,
            stats.rejected,
            stats.peak_workers,
            stats.threads_started,
            stats.threads_refused,
            stats.threads_retired,
        ]
    };
    let shrunk = growing(before).iter().zip(growing(now)).any(|(&before, now)| now < before);
    assert!(!shrunk, "{before:?} {now:?}");
    assert_eq!(now.threads_started, now.workers + now.threads_retired, "{now:?}");
    assert!(now.workers >= now.idle + now.blocked, "{now:?}");
    assert!(now.workers <= now.peak_workers, "{now:?}");
}

/// The cases of a round, and what else there is to check when the pool is quiet.
struct Court {
    round: Round,
    incoming: mpsc::Receiver<Arc<Case>>,
    cases: Vec<Arc<Case>>,
}

impl Court {
    /// After a join: everything that was accepted has ended, and everybody agrees on how.
    fn check_quiet(&mut self) {
        self.cases.extend(self.incoming.try_iter());
        for case in &self.cases {
            case.judge(self.round.oracle.shut_down_now.get());
        }
        let stats = self.round.pool.stats();
        self.check_sums(&stats);
        self.check_workers(&stats);
    }

    fn count(&self, which: impl Fn(&Case) -> bool) -> usize {
        self.cases.iter().filter(|case| which(case)).count()
    }

    /// The statistics are the sums of the cases.
    fn check_sums(&self, stats: &Stats) {
        let accepted = self.count(|case| case.accepted.get());
        let unsure = self.count(Case::is_unsure);
        assert_eq!((stats.queued, stats.active, stats.pending), (0, 0, 0), "{stats:?}");
        assert_eq!(stats.accepted() + stats.rejected, self.cases.len(), "{stats:?}");
        assert!((accepted..=accepted + unsure).contains(&stats.accepted()), "{accepted} {stats:?}");
        let in_pool =
            |end: fn(&Case) -> &Flag| self.count(|case| case.ended_in_pool() && end(case).get());
        let ran = in_pool(|case| &case.ran);
        let panicked = in_pool(|case| &case.panicked);
        assert_eq!((stats.completed, stats.panicked), (ran, panicked), "{stats:?}");
        let handed_back = self.count(|case| !case.rejected.get() && case.away.get());
        assert_eq!(stats.handed_back, handed_back, "{stats:?}");
        // Those among the unsure ones that were dropped may have been rejected.
        let rejected = self.count(|case| case.rejected.get());
        let dropped = in_pool(|case| &case.dropped);
        assert_eq!(stats.cancelled + stats.rejected, rejected + dropped, "{stats:?}");
    }

    fn check_workers(&self, stats: &Stats) {
        let oracle = &self.round.oracle;
        let most_runnable = oracle.most_runnable();
        assert!(get(&oracle.most_running) <= most_runnable, "{stats:?}");
        check_progress(stats, stats);
        if oracle.max_tasks.is_none() {
            // Those that are replaced are counted until they have gone.
            assert!(stats.peak_workers <= most_runnable, "{most_runnable} {stats:?}");
            assert_eq!(stats.blocked, 0, "{stats:?}");
        }
    }

    /// Without work the pool shrinks to what it may be.
    fn check_shrinks(&self) {
        let pool = &self.round.pool;
        let limit =
            if pool.keep_alive() < common::HOUR { pool.core_size() } else { pool.max_size() };
        common::wait_until("the pool shrinks", || pool.current_worker_count() <= limit);
    }

    /// After a `shutdown_join`: nothing is left.
    fn check_over(&self, has_hooks: bool) {
        let stats = self.round.pool.stats();
        assert_eq!((stats.workers, stats.blocked), (0, 0), "{stats:?}");
        assert_eq!(stats.threads_started, stats.threads_retired, "{stats:?}");
        if has_hooks {
            let oracle = &self.round.oracle;
            assert_eq!(get(&oracle.starts), stats.threads_started, "{stats:?}");
            assert_eq!(get(&oracle.stops), stats.threads_started, "{stats:?}");
        }
    }
}

// ----- a round -----

/// A pool of random configuration. Says whether it has hooks.
fn random_pool(rng: &mut Rng, name: &str) -> (ThreadPool, Arc<Oracle>, bool) {
    let core_size = rng.usize(0..4);
    let max_size = core_size.max(1) + rng.usize(0..5);
    let capacity = [None, None, Some(0), Some(1), Some(2), Some(8)][rng.usize(0..6)];
    let max_tasks = [None, None, Some(1), Some(3), Some(50)][rng.usize(0..5)];
    let oracle = Oracle::new(capacity, max_tasks, max_size);
    let mut builder = ThreadPool::builder()
        .name(name)
        .core_size(core_size)
        .max_size(max_size)
        .keep_alive(KEEP_ALIVES[rng.usize(0..4)])
        .panic_handler(|payload| add(&expected(payload).0.reports));
    if let Some(capacity) = capacity {
        builder = builder.queue_capacity(capacity);
    }
    if let Some(max_tasks) = max_tasks {
        builder = builder.max_tasks_per_worker(max_tasks);
    }
    if rng.bool() {
        let delay = [1, 10, 100, 1000][rng.usize(0..4)];
        builder = builder.growth(Growth::Stalled(Duration::from_micros(delay)));
    }
    let has_hooks = rng.bool();
    if has_hooks {
        let (starts, stops) = (Arc::clone(&oracle), Arc::clone(&oracle));
        builder = builder
            .on_worker_start(move |_| add(&starts.starts))
            .on_worker_stop(move |_| add(&stops.stops));
    }
    (builder.build(), oracle, has_hooks)
}

/// Several threads work on the pool at the same time, until all are done.
fn phase(round: &Round, rng: &mut Rng, is_last: bool) {
    let producers = rng.usize(1..4);
    let mut works: Vec<fn(&Round, &mut Rng)> = vec![Round::produce; producers];
    works.push(Round::watch);
    if rng.u8(0..3) == 0 {
        works.push(Round::tune);
    }
    if is_last {
        works.push(Round::end);
    }
    thread::scope(|scope| {
        for work in works {
            let mut rng = rng.fork();
            scope.spawn(move || work(round, &mut rng));
        }
    });
}

fn round(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    // Short, so that the system shows it whole.
    let name = format!("s{:x}", seed & 0xff_ffff);
    let (pool, oracle, has_hooks) = random_pool(&mut rng, &name);
    let (post, letters) = mpsc::channel();
    let (cases, incoming) = mpsc::channel();
    let post_rng = rng.fork();
    let office = thread::spawn(move || post_office(&letters, post_rng));
    let round = Round { pool: pool.clone(), oracle, cases, post, regions: rng.bool() };
    let mut court = Court { round: round.clone(), incoming, cases: Vec::new() };
    for _ in 0..rng.u32(1..4) {
        phase(&round, &mut rng, false);
        pool.join();
        court.check_quiet();
        if rng.bool() {
            court.check_shrinks();
        }
    }
    phase(&round, &mut rng, true);
    pool.shutdown_join();
    court.check_quiet();
    court.check_over(has_hooks);
    drop((round, court));
    office.join().unwrap();
    #[cfg(target_os = "linux")]
    assert_eq!(threads_left(&name), 0, "threads are left");
}

/// How many threads of the pool of this name there still are.
#[cfg(target_os = "linux")]
fn threads_left(name: &str) -> usize {
    let prefix = format!("{name}-");
    // A thread that has been joined may be listed for a moment longer: its name is empty or its file
    // gone in the meantime. Look twice.
    if common::threads_named(&prefix) == 0 {
        return 0;
    }
    thread::sleep(Duration::from_millis(50));
    common::threads_named(&prefix)
}

#[test]
fn random_rounds_agree_with_the_oracle() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !EXPECTED.replace(false) {
            default_hook(info);
        }
    }));
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let limit = Duration::from_secs(number("ELASTIPOOL_STRESS_SECONDS").unwrap_or(2));
    let fixed = number("ELASTIPOOL_STRESS_SEED");
    let begin = Instant::now();
    let mut rounds = 0;
    while begin.elapsed() < limit {
        let seed = fixed.unwrap_or_else(|| fastrand::u64(..));
        let (done, watched) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            if watched.recv_timeout(STUCK) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("stuck: ELASTIPOOL_STRESS_SEED={seed}");
                process::abort();
            }
        });
        let result = catch_unwind(AssertUnwindSafe(|| round(seed)));
        drop(done);
        watchdog.join().unwrap();
        if let Err(payload) = result {
            eprintln!("failed after {rounds} rounds: ELASTIPOOL_STRESS_SEED={seed}");
            panic::resume_unwind(payload);
        }
        rounds += 1;
    }
    println!("{rounds} rounds");
}
