//! Model checks of the protocol (`sched/protocol.md`): real pools of one to three workers, in every
//! interleaving up to a bound of preemptions, with every value that the memory model lets a load
//! return. `cargo xtask models` runs them; `cargo xtask mutants` shows that they can fail.
//!
//! One file for each subject. Helpers that several of them use stand here.
//!
//! A pool of a user has local queues and spins. The models of the core races explore such pools too
//! ([`explore_both`]); the others leave out what their race does not need, and explore more
//! preemptions of the rest. Constants that a few tasks would never reach are small in a model, each
//! where it is defined.
//!
//! A lost wake-up shows as a deadlock, which ends the process: no wait here has a time limit. A
//! keep-alive ends when a model says so.

mod capacity;
mod closing;
mod extra;
mod futures;
mod groups;
mod hooks;
mod local_queues;
mod measured;
mod notify;
#[cfg(elastipool_shuttle)]
mod pools;
mod regions;
mod retire;
mod ring;
mod stalled;
mod views;
mod waits;

use std::cell::Cell;
use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::process;
use std::sync::atomic::AtomicUsize as ExecutionCount;
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::keeper::Keeper;
use crate::sync::{REFUSE_NEXT, SHORT_INTERVAL, STARTS_KEEPER};
use crate::{Builder, ThreadPool};

const HOUR: Duration = Duration::from_secs(3600);

/// Of the requests that a worker of a shipped pool makes in a model, one checks a stalled worker
/// and one the injectors.
const INTERVAL: usize = 5;

/// What the pools of a model have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configuration {
    /// Neither local queues nor spinning: few steps, which leaves room for more preemptions.
    Reduced,
    /// Both, as in every pool of a user. The checks at intervals come soon.
    Shipped,
}

std::thread_local! {
    /// What makes the schedule that runs.
    #[cfg(elastipool_shuttle)]
    static SEED: Cell<u64> = const { Cell::new(0) };

    /// That of the model which the thread explores. All threads of a model run on one thread of the
    /// system.
    static CONFIGURATION: Cell<Configuration> = const { Cell::new(Configuration::Reduced) };
}

/// As many preemptions, for a model that takes a minute and more with them: one fewer in `.ci/run`,
/// which sets this variable, and all in `.ci/nightly`.
fn long(preemptions: usize) -> usize {
    preemptions - usize::from(std::env::var_os("ELASTIPOOL_SHORT_MODELS").is_some())
}

/// Explores a model of reduced pools, with at most `preemptions` unless the environment says
/// otherwise.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    explore_as(Configuration::Reduced, preemptions, model);
}

/// Explores a model of reduced pools, then of shipped ones, each with its own bound of preemptions.
fn explore_both(reduced: usize, shipped: usize, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let same = Arc::clone(&model);
    explore(reduced, move || same());
    explore_as(Configuration::Shipped, shipped, move || model());
}

/// Ends the process at the first unexpected panic: unwinding would drop the pool, and that may wait
/// for ever in a model that has stopped.
fn explore_as(
    configuration: Configuration,
    preemptions: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    static ABORT: Once = Once::new();
    ABORT.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            report(info);
            #[cfg(elastipool_shuttle)]
            eprintln!("to run this schedule again: ELASTIPOOL_SEED={}", SEED.get());
            process::abort();
        }));
    });
    let executions = Arc::new(ExecutionCount::new(0));
    let counter = Arc::clone(&executions);
    let begin = Instant::now();
    CONFIGURATION.set(configuration);
    SHORT_INTERVAL.set((configuration == Configuration::Shipped).then_some(INTERVAL));
    let how = check(preemptions, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    CONFIGURATION.set(Configuration::Reduced);
    SHORT_INTERVAL.set(None);
    let name = std::thread::current().name().map(str::to_owned).unwrap_or_default();
    let executions = executions.load(Ordering::Relaxed);
    let seconds = begin.elapsed().as_secs_f64();
    println!("{name}: {configuration:?}, {executions} executions {how}, {seconds:.1} s");
}

/// Runs every schedule with so many preemptions. Returns how, for the report.
#[cfg(not(elastipool_shuttle))]
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> String {
    let mut builder = loom::model::Builder::new();
    let preemptions = *builder.preemption_bound.get_or_insert(preemptions);
    // Bounds the steps of one execution. loom's own bound of 1000 is too low for the longest
    // models.
    builder.max_branches = builder.max_branches.max(5000);
    builder.check(model);
    format!("with {preemptions} preemptions")
}

/// Runs random schedules, each with a seed of its own, which is printed when one fails. Half of
/// them prefer threads by random priorities, which change a few times (probabilistic concurrency
/// testing: Burckhardt et al., ASPLOS 2010).
#[cfg(elastipool_shuttle)]
fn check(_: usize, model: impl Fn() + Send + Sync + 'static) -> String {
    use loom::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use loom::{Config, FailurePersistence, Runner};

    /// How often a priority changes.
    const DEPTH: usize = 3;

    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let count = number("ELASTIPOOL_SCHEDULES");
    let (seed, count) = match number("ELASTIPOOL_SEED") {
        Some(seed) => (seed, count.unwrap_or(1)),
        None => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let seed = now.expect("the clock is right").as_micros() as u64;
            (seed & !1, count.unwrap_or(1000))
        }
    };
    let model = Arc::new(model);
    for seed in seed..seed + count {
        SEED.set(seed);
        REFUSE_NEXT.set(false);
        STARTS_KEEPER.set(false);
        let scheduler: Box<dyn Scheduler + Send> = match seed % 2 {
            0 => Box::new(RandomScheduler::new_from_seed(seed, 1)),
            _ => Box::new(PctScheduler::new_from_seed(seed, DEPTH, 1)),
        };
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::None;
        let model = Arc::clone(&model);
        Runner::new(scheduler, config).run(move || model());
    }
    format!("from seed {seed}")
}

fn builder(core_size: usize, max_size: usize) -> Builder {
    let mut builder =
        Builder::new().name("model").core_size(core_size).max_size(max_size).keep_alive(HOUR);
    let is_shipped = CONFIGURATION.get() == Configuration::Shipped;
    builder.spins = is_shipped;
    builder.has_local_queues = is_shipped;
    builder
}

fn with_local_queues(core_size: usize, max_size: usize) -> Builder {
    let mut builder = builder(core_size, max_size);
    builder.has_local_queues = true;
    builder
}

fn with_spins(core_size: usize, max_size: usize) -> Builder {
    let mut builder = builder(core_size, max_size);
    builder.spins = true;
    builder
}

fn pool(core_size: usize, max_size: usize) -> ThreadPool {
    builder(core_size, max_size).build()
}

impl Keeper {
    /// Lets the deadline of the keeper's sleep pass.
    fn expire(&self) {
        self.parker.expire();
    }
}

/// Returns the gate for which a worker of the pool waits in a closure that has begun.
fn keep_busy(pool: &ThreadPool) -> Gate {
    let [begun, gate] = [Gate::new(), Gate::new()];
    let (opening, waiting) = (begun.clone(), gate.clone());
    pool.execute(move || {
        opening.open();
        waiting.pass();
    });
    begun.pass();
    gate
}

/// Lets keep-alives pass until all workers have left.
fn expire_all_workers(pool: &ThreadPool) {
    while pool.current_worker_count() > 0 {
        pool.shared().idle.expire_all();
        thread::yield_now();
    }
}

/// A gate that is shut until it is opened.
#[derive(Clone)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn new() -> Self {
        Gate(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut open = self.0.0.lock().unwrap();
        while !*open {
            open = self.0.1.wait(open).unwrap();
        }
    }
}

/// Two tasks that need each other.
fn pair() -> [impl FnOnce() + Send + 'static; 2] {
    let gates = [Gate::new(), Gate::new()];
    [(0, 1), (1, 0)].map(|(mine, other)| {
        let (mine, other) = (gates[mine].clone(), gates[other].clone());
        move || {
            mine.open();
            other.pass();
        }
    })
}

/// A counter that orders nothing: a task's write is visible only if the pool itself orders it.
#[derive(Clone)]
struct Relaxed(Arc<AtomicUsize>);

impl Relaxed {
    fn new() -> Self {
        Relaxed(Arc::new(AtomicUsize::new(0)))
    }

    fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn counting(count: &Relaxed) -> impl FnOnce() + Send + 'static {
    let count = count.clone();
    move || count.increment()
}

/// Publishes the waker of each poll, and is ready once `ready` is set.
struct Flagged {
    ready: Arc<AtomicBool>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Future for Flagged {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap() = Some(context.waker().clone());
        if self.ready.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}
