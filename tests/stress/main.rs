//! Everything at once, at random, against an oracle: pools of random configuration with keep-alives
//! down to a microsecond, submissions in every way from outside and inside, scopes, task groups,
//! bounded queues, blocking regions, panics, errors, cancellations, abandoned futures, wakes from
//! foreign threads, joins, sizes that change meanwhile, closes and immediate shutdowns.
//!
//! Each task has a [`Case`], in which everybody who meets the task notes what he saw. When the pool
//! is quiet the cases are judged: what was accepted ran once, was handed back, or was dropped for a
//! reason; what was not accepted came back; its handle and the panic handler agree; and the
//! statistics are the sums of all that. A scope and a wait for a group return when all of their
//! tasks have ended, and say what these have done. Besides: never more tasks at once than
//! `max_size` and regions allow, never two on one worker but for a task that another one waits for,
//! on its stack, never more threads than waits for each other need, and no thread is left.
//!
//! Runs for `ELASTIPOOL_STRESS_SECONDS` (default 2). A failure names the seed of its round;
//! `ELASTIPOOL_STRESS_SEED` runs that round alone, again and again. (The threads' timing is not
//! part of the seed: it may take a while.)
#![cfg(feature = "async")]

mod checks;
#[path = "../common/mod.rs"]
mod common;
mod groups;
mod hops;
mod nests;
mod oracle;
mod scopes;
mod submit;
mod work;

use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use elastipool::{Growth, Priority, ThreadPool};
use fastrand::Rng;

use checks::Checker;
use hops::deliver_wakes;
use oracle::{EXPECTED, Flag, Oracle, Ticket, add, expected};
use scopes::{BodyPanic, LOST};
use submit::Round;

/// A round takes milliseconds: one that takes this long is stuck.
const STUCK: Duration = Duration::from_secs(120);

const KEEP_ALIVES: [Duration; 4] =
    [Duration::ZERO, Duration::from_micros(20), Duration::from_micros(400), Duration::MAX];

/// There was a panic that is not meant: a task's goes no further than to its worker.
static FAILED: Flag = Flag::new();

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
        .panic_handler(|payload| match payload.downcast::<BodyPanic>() {
            Ok(panic) => add(&panic.0),
            Err(payload) => add(&expected(payload).0.reports),
        });
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

/// Up to three views of random settings. Their limits and reserves have an oracle of their own in
/// `views/random.rs`: here tasks wait for each other, so that returning workers may run out of
/// patience.
fn random_views(rng: &mut Rng, pool: &ThreadPool) -> Vec<ThreadPool> {
    let mut views = Vec::new();
    for _ in 0..rng.usize(0..4) {
        let priority = [Priority::High, Priority::Normal, Priority::Low][rng.usize(0..3)];
        let builder = pool.view().priority(priority).weight(rng.usize(1..4));
        let reserve = rng.usize(0..2);
        let limit = [usize::MAX, 1, 2][rng.usize(0..3)];
        // The reserve is refused if it would leave no worker to the others.
        let view = builder.clone().reserve(reserve).limit(limit).try_build();
        views.push((*view.unwrap_or_else(|_| builder.limit(limit).build())).clone());
    }
    views
}

/// Several threads work on the pool at the same time, until all are done.
fn phase(round: &Round, rng: &mut Rng, is_last: bool) {
    let producers = rng.usize(1..4);
    let mut works: Vec<fn(&Round, &mut Rng)> = vec![Round::produce; producers];
    works.push(Round::observe);
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
    let (wakes, delayed) = mpsc::channel();
    let (cases, new_cases) = mpsc::channel();
    let (terms, new_terms) = mpsc::channel();
    let wakes_rng = rng.fork();
    let deliverer = thread::spawn(move || deliver_wakes(&delayed, wakes_rng));
    let handler = |pool: &ThreadPool| {
        pool.handler(|ticket: Ticket| {
            let _running = ticket.begin();
            ticket.end();
        })
    };
    let regions = rng.bool();
    let views = random_views(&mut rng, &pool);
    let views = Arc::new(views.into_iter().map(|view| (view.clone(), handler(&view))).collect());
    let handler = handler(&pool);
    let round = Round { pool: pool.clone(), views, handler, oracle, cases, terms, wakes, regions };
    let mut checker = Checker::new(round.clone(), new_cases, new_terms);
    for _ in 0..rng.u32(1..4) {
        phase(&round, &mut rng, false);
        pool.join();
        checker.check_quiet();
        if rng.bool() {
            checker.check_shrinks();
        }
    }
    phase(&round, &mut rng, true);
    pool.shutdown_join();
    checker.check_quiet();
    checker.check_over(has_hooks);
    drop((round, checker));
    deliverer.join().unwrap();
    #[cfg(target_os = "linux")]
    // The system lists a thread for a moment after it has been joined.
    common::wait_until("the pool's threads are gone", || {
        common::threads_named(&format!("{name}-")) == 0
    });
    assert!(!FAILED.get(), "a check has failed in a task");
}

#[test]
fn random_rounds_agree_with_the_oracle() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // The scope's owner knows whether any are lost.
        let text = info.payload().downcast_ref::<String>();
        let is_of_lost = text.is_some_and(|text| text.contains(LOST));
        if !is_of_lost && !EXPECTED.replace(false) {
            FAILED.set();
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
        let (done, ended) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            if ended.recv_timeout(STUCK) == Err(mpsc::RecvTimeoutError::Timeout) {
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
