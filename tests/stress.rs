//! Everything at once, at random, against an oracle: pools of random size with keep-alives down to
//! a microsecond, submissions from outside and inside, panics, cancellations, abandoned futures, wakes from
//! foreign threads, joins and closes.
//!
//! Checked: what was accepted ran once or was cancelled by somebody, what was not accepted came back, never
//! more than `max_size` at once, every handle resolved, the statistics add up, no thread is left.
//!
//! Runs for `ELASTIPOOL_STRESS_SECONDS` (default 2). A failure names the seed of its round;
//! `ELASTIPOOL_STRESS_SEED` runs that round alone, again and again. (The threads' timing is not part
//! of the seed: it may take a while.)
#![cfg(feature = "async")]

#[cfg(target_os = "linux")]
mod common;

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

use elastipool::{JoinHandle, RejectReason, Rejected, ThreadPool, worker_index};
use fastrand::Rng;

/// A round takes milliseconds: one that takes this long is stuck.
const STUCK: Duration = Duration::from_secs(120);

thread_local! {
    /// Set in tasks that are meant to panic, to keep their panics off the terminal.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What really happened, counted by the tasks themselves. All counts are relaxed: what a join does not
/// make visible is missing here.
#[derive(Debug, Default)]
struct Oracle {
    accepted: AtomicUsize,
    rejected: AtomicUsize,
    /// Tasks that ran to their end, or to their panic.
    ran: AtomicUsize,
    panicked: AtomicUsize,
    /// Accepted tasks that were dropped before their end.
    dropped: AtomicUsize,
    /// Reasons for that: cancellations asked for and futures abandoned on purpose.
    excuses: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
    starts: AtomicUsize,
    stops: AtomicUsize,
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

/// A task's ticket: goes where the task goes and reports what became of it.
struct Ticket {
    oracle: Arc<Oracle>,
    used: bool,
    panics: bool,
}

impl Ticket {
    fn new(oracle: &Arc<Oracle>, rng: &mut Rng) -> Self {
        Ticket { oracle: Arc::clone(oracle), used: false, panics: rng.u8(..) < 16 }
    }

    /// Occupies the worker for a moment.
    fn step(&self, max_size: usize) {
        let running = self.oracle.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.oracle.most_running.fetch_max(running, Ordering::Relaxed);
        // Workers in their stop hooks keep their indexes, and are counted no longer.
        assert!(worker_index().is_some_and(|index| index < 2 * max_size));
        thread::yield_now();
        self.oracle.running.fetch_sub(1, Ordering::SeqCst);
    }

    fn end(&mut self) {
        assert!(!self.used, "a task ran twice");
        self.used = true;
        add(&self.oracle.ran);
        if self.panics {
            add(&self.oracle.panicked);
            EXPECTED.set(true);
            panic::panic_any(Expected);
        }
    }
}

struct Expected;

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.used {
            add(&self.oracle.dropped);
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
    max_size: usize,
    polled: AtomicBool,
}

impl Future for Hops {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(!self.polled.swap(true, Ordering::Relaxed), "polled twice at the same time");
        self.ticket.step(self.max_size);
        self.polled.store(false, Ordering::Relaxed);
        if self.left == 0 {
            self.ticket.end();
            return Poll::Ready(());
        }
        let abandon = self.abandoned_at == Some(self.left);
        if abandon {
            add(&self.ticket.oracle.excuses);
        }
        self.left -= 1;
        let waker = context.waker().clone();
        let letter = Letter { waker, abandon, copy: self.abandoned_at.is_none() };
        self.post.send(letter).expect("the post office closes last");
        Poll::Pending
    }
}

/// One round's surroundings.
#[derive(Clone)]
struct Round {
    pool: ThreadPool,
    oracle: Arc<Oracle>,
    post: mpsc::Sender<Letter>,
}

impl Round {
    /// Counts what became of a submission, and checks that a task that was refused came back.
    fn count<H, F>(&self, submitted: Result<H, Rejected<F>>) -> Option<H> {
        match submitted {
            Ok(handle) => {
                add(&self.oracle.accepted);
                Some(handle)
            }
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Closed);
                drop(rejected.into_task());
                // Its ticket has reported a drop that was none of the pool's doing.
                self.oracle.dropped.fetch_sub(1, Ordering::Relaxed);
                add(&self.oracle.rejected);
                None
            }
        }
    }

    fn closure(&self, rng: &mut Rng, depth: u32) -> impl FnOnce() + Send + 'static + use<> {
        let mut ticket = Ticket::new(&self.oracle, rng);
        let max_size = self.pool.max_size();
        // Only some tasks hold the pool: they submit to it.
        let inner = (depth > 0 && rng.u8(..) < 96).then(|| (self.clone(), rng.fork()));
        move || {
            ticket.step(max_size);
            if let Some((round, mut rng)) = inner {
                for _ in 0..rng.u32(1..4) {
                    drop(round.submit(&mut rng, depth - 1));
                }
            }
            ticket.end();
        }
    }

    fn future(&self, rng: &mut Rng) -> Hops {
        let left = rng.u32(0..5);
        Hops {
            ticket: Ticket::new(&self.oracle, rng),
            left,
            abandoned_at: (rng.u8(..) < 16).then(|| rng.u32(0..=left)),
            post: self.post.clone(),
            max_size: self.pool.max_size(),
            polled: AtomicBool::new(false),
        }
    }

    /// Submits one task in one of all ways.
    fn submit(&self, rng: &mut Rng, depth: u32) -> Option<JoinHandle<()>> {
        let pool = &self.pool;
        let handle = match rng.u8(0..6) {
            0 | 1 => {
                self.count(pool.try_execute(self.closure(rng, depth)));
                None
            }
            2 => self.count(pool.try_evaluate(self.closure(rng, depth))),
            3 => {
                let mut ticket = Ticket::new(&self.oracle, rng);
                let max_size = pool.max_size();
                self.count(pool.try_complete(async move {
                    ticket.step(max_size);
                    ticket.end();
                }))
            }
            4 => {
                self.count(pool.try_spawn(self.future(rng)));
                None
            }
            _ => self.count(pool.try_spawn_await(self.future(rng))),
        };
        if let Some(handle) = &handle {
            if rng.u8(..) < 32 {
                add(&self.oracle.excuses);
                handle.cancel();
            }
        }
        handle
    }

    /// What one thread outside does to the pool.
    fn produce(&self, rng: &mut Rng) {
        for _ in 0..rng.u32(1..60) {
            let handle = self.submit(rng, 3);
            match (rng.u8(0..16), handle) {
                (0..4, Some(handle)) => drop(handle.try_await_complete()),
                (4, Some(handle)) => {
                    let timeout = Duration::from_micros(rng.u64(0..200));
                    drop(handle.await_complete_timeout(timeout));
                }
                (5, _) => drop(self.pool.join_timeout(Duration::from_micros(rng.u64(0..500)))),
                (6, _) => drop(self.pool.start_core_threads()),
                (7, _) => assert!(format!("{:?}", self.pool).contains("ThreadPool")),
                (8, _) => thread::sleep(Duration::from_micros(rng.u64(0..100))),
                _ => {}
            }
        }
    }

    /// After a join: everything that was accepted has ended, and everybody agrees on how.
    fn check_quiet(&self) {
        let oracle = &self.oracle;
        let stats = self.pool.stats();
        let (accepted, ran) = (get(&oracle.accepted), get(&oracle.ran));
        let (panicked, dropped) = (get(&oracle.panicked), get(&oracle.dropped));
        assert_eq!(ran + dropped, accepted, "lost or run twice: {oracle:?} {stats:?}");
        assert!(dropped <= get(&oracle.excuses), "dropped without a reason: {oracle:?} {stats:?}");
        assert_eq!(
            stats.completed + stats.panicked + stats.cancelled,
            accepted,
            "{oracle:?} {stats:?}"
        );
        assert_eq!((stats.panicked, stats.cancelled), (panicked, dropped), "{oracle:?} {stats:?}");
        assert_eq!(stats.rejected, get(&oracle.rejected));
        assert!(stats.peak_workers <= self.pool.max_size(), "{stats:?}");
        assert!(get(&oracle.most_running) <= self.pool.max_size(), "{oracle:?}");
        assert_eq!(stats.in_flight(), 0);
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

fn round(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let core_size = rng.usize(0..4);
    let max_size = core_size.max(1) + rng.usize(0..5);
    let keep_alive = [1, 20, 400, 3_600_000_000][rng.usize(0..4)];
    let oracle = Arc::new(Oracle::default());
    let (starts, stops) = (Arc::clone(&oracle), Arc::clone(&oracle));
    // Short, so that the system shows it whole.
    let name = format!("s{:x}", seed & 0xff_ffff);
    let mut builder = ThreadPool::builder()
        .name(name.as_str())
        .core_size(core_size)
        .max_size(max_size)
        .keep_alive(Duration::from_micros(keep_alive));
    let hooks = rng.bool();
    if hooks {
        builder = builder
            .on_worker_start(move |_| add(&starts.starts))
            .on_worker_stop(move |_| add(&stops.stops));
    }
    let (post, letters) = mpsc::channel();
    let round = Round { pool: builder.build(), oracle, post };
    let post_rng = rng.fork();
    let office = thread::spawn(move || post_office(&letters, post_rng));

    let produce = |close_in_between: bool, rng: &mut Rng| {
        thread::scope(|scope| {
            for _ in 0..rng.u32(1..4) {
                let (round, mut rng) = (&round, rng.fork());
                scope.spawn(move || round.produce(&mut rng));
            }
            if close_in_between {
                let pause = Duration::from_micros(rng.u64(0..300));
                let pool = &round.pool;
                scope.spawn(move || {
                    thread::sleep(pause);
                    pool.close();
                });
            }
        });
    };
    for _ in 0..rng.u32(1..4) {
        produce(false, &mut rng);
        round.pool.join();
        round.check_quiet();
    }
    produce(true, &mut rng);
    let Round { pool, oracle, post } = round;
    let last = Round { pool: pool.clone(), oracle: Arc::clone(&oracle), post };
    pool.shutdown_join();
    last.check_quiet();
    assert_eq!(last.pool.current_worker_count(), 0);
    let stats = last.pool.stats();
    assert_eq!(stats.threads_started, stats.threads_retired, "{stats:?}");
    if hooks {
        assert_eq!(get(&oracle.starts), get(&oracle.stops), "{oracle:?}");
    }
    drop(last);
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
