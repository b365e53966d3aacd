//! Single operations of the crate and of its peers, for `versus instructions`:
//! `operations OPERATION ENGINE COUNT`. A program of its own, so that a change of the rows does not
//! change what the compiler makes of it.
//!
//! Each engine has one worker. Where a thread outside of the pool submits, a task holds the worker
//! meanwhile: two threads that run beside each other wait for each other, now and then, and what
//! they do then depends on the moment.

use std::env;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::process::{self, ExitCode};
use std::sync::mpsc::{self, Sender};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::future::block_on;

const FOR_EVER: Duration = Duration::from_secs(3600);

/// Runs the operation that many times.
type Run = fn(u64);

/// Each operation, by its name and that of the engine.
const OPERATIONS: &[(&str, &str, Run)] = &[
    ("execute-inside", "elastipool", |count| execute_inside(count, &pool())),
    ("execute-inside-view", "elastipool", |count| beside_a_view(count, execute_inside)),
    ("execute-inside", "rayon", rayon_spawn),
    ("execute-outside", "elastipool", |count| execute_outside(count, &pool())),
    ("execute-outside-view", "elastipool", |count| beside_a_view(count, execute_outside)),
    ("execute-outside", "rusty_pool", rusty_pool_execute),
    // `evaluate` as far as to its submission, its run, and its end, when the result has been read.
    ("evaluate-submit", "elastipool", |count| evaluate(count, Stage::Submitted)),
    ("evaluate-submit", "rusty_pool", |count| rusty_pool_evaluate(count, Stage::Submitted)),
    ("evaluate-run", "elastipool", |count| evaluate(count, Stage::Run)),
    ("evaluate-run", "rusty_pool", |count| rusty_pool_evaluate(count, Stage::Run)),
    ("evaluate", "elastipool", |count| evaluate(count, Stage::Read)),
    ("evaluate", "rusty_pool", |count| rusty_pool_evaluate(count, Stage::Read)),
    ("claim", "elastipool", claim),
    ("claim", "rayon", rayon_join),
    ("scope", "elastipool", scope),
    ("scope", "rayon", rayon_scope),
    ("spawn", "elastipool", spawn),
    ("spawn", "tokio", tokio_spawn),
    ("spawn", "async-executor", async_executor_spawn),
    ("yield", "elastipool", yield_now),
    ("yield", "tokio", tokio_yield),
    ("yield", "async-executor", async_executor_yield),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [operation, engine, count] = args.as_slice() else {
        OPERATIONS.iter().for_each(|(operation, engine, _)| println!("{operation} {engine}"));
        return ExitCode::SUCCESS;
    };
    let wanted = |of: &&(&str, &str, Run)| of.0 == operation && of.1 == engine;
    match (OPERATIONS.iter().find(wanted), count.parse()) {
        (Some((.., run)), Ok(count)) => run(count),
        _ => return ExitCode::from(2),
    }
    // The threads of the peers are not waited for.
    process::exit(0)
}

// ----- elastipool -----

fn pool() -> elastipool::ThreadPool {
    elastipool::ThreadPool::new(1, 1, FOR_EVER)
}

/// Keeps the worker in a task until the sender is dropped.
fn hold(execute: impl FnOnce(Box<dyn FnOnce() + Send>)) -> Sender<()> {
    let (sender, receiver) = mpsc::channel();
    execute(Box::new(move || _ = receiver.recv()));
    sender
}

/// The same in a pool that has a view, which nothing uses.
fn beside_a_view(count: u64, operation: fn(u64, &elastipool::ThreadPool)) {
    let pool = pool();
    let view = pool.view().build();
    operation(count, &pool);
    drop(view);
}

fn execute_inside(count: u64, pool: &elastipool::ThreadPool) {
    let inside = pool.clone();
    pool.execute(move || (0..count).for_each(|i| inside.execute(move || _ = black_box(i))));
    pool.join();
}

fn execute_outside(count: u64, pool: &elastipool::ThreadPool) {
    let held = hold(|task| pool.execute(task));
    (0..count).for_each(|i| pool.execute(move || _ = black_box(i)));
    drop(held);
    pool.join();
}

/// How far `evaluate` is counted.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Submitted,
    Run,
    Read,
}

/// All results are there before the first one is read.
fn evaluate(count: u64, stage: Stage) {
    let pool = pool();
    let held = hold(|task| pool.execute(task));
    let mut handles = Vec::with_capacity(count as usize);
    handles.extend((0..count).map(|i| pool.evaluate(move || i)));
    if stage == Stage::Submitted {
        process::exit(0);
    }
    drop(held);
    pool.join();
    if stage == Stage::Run {
        process::exit(0);
    }
    handles.into_iter().for_each(|handle| _ = black_box(handle.await_complete()));
}

fn claim(count: u64) {
    let pool = pool();
    let inside = pool.clone();
    let task = pool.evaluate(move || {
        (0..count).for_each(|i| _ = black_box(inside.evaluate(move || i).await_complete()));
    });
    task.await_complete();
}

fn scope(count: u64) {
    let pool = pool();
    let inside = pool.clone();
    let task = pool.evaluate(move || {
        for i in 0..count {
            let mut result = 0;
            inside.scope(|scope| scope.execute(|| result = i));
            black_box(result);
        }
    });
    task.await_complete();
}

fn spawn(count: u64) {
    let pool = pool();
    let inside = pool.clone();
    pool.execute(move || (0..count).for_each(|i| inside.spawn(async move { _ = black_box(i) })));
    pool.shutdown_join();
}

fn yield_now(count: u64) {
    let pool = pool();
    pool.spawn(yields(count));
    pool.shutdown_join();
}

// ----- peers -----

fn rayon_pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool")
}

fn rayon_spawn(count: u64) {
    let pool = rayon_pool();
    pool.install(|| (0..count).for_each(|i| rayon::spawn(move || _ = black_box(i))));
    // Its worker takes this after all of its own tasks.
    pool.install(|| ());
}

fn rayon_join(count: u64) {
    rayon_pool().install(|| {
        (0..count).for_each(|i| _ = black_box(rayon::join(|| black_box(i), || black_box(1))));
    });
}

fn rayon_scope(count: u64) {
    rayon_pool().install(|| {
        for i in 0..count {
            let mut result = 0;
            rayon::scope(|scope| scope.spawn(|_| result = i));
            black_box(result);
        }
    });
}

fn rusty_pool_execute(count: u64) {
    let pool = rusty_pool::ThreadPool::new(1, 1, FOR_EVER);
    let held = hold(|task| pool.execute(task));
    (0..count).for_each(|i| pool.execute(move || _ = black_box(i)));
    drop(held);
    pool.join();
}

fn rusty_pool_evaluate(count: u64, stage: Stage) {
    let pool = rusty_pool::ThreadPool::new(1, 1, FOR_EVER);
    let held = hold(|task| pool.execute(task));
    let mut handles = Vec::with_capacity(count as usize);
    handles.extend((0..count).map(|i| pool.evaluate(move || i)));
    if stage == Stage::Submitted {
        process::exit(0);
    }
    drop(held);
    pool.join();
    if stage == Stage::Run {
        process::exit(0);
    }
    handles.into_iter().for_each(|handle| _ = black_box(handle.await_complete()));
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
}

fn tokio_spawn(count: u64) {
    let runtime = tokio_runtime();
    let metrics = runtime.metrics();
    let task = runtime.spawn(async move {
        (0..count).for_each(|i| drop(tokio::spawn(async move { _ = black_box(i) })));
        // Itself is the last one.
        while metrics.num_alive_tasks() > 1 {
            tokio::task::yield_now().await;
        }
    });
    runtime.block_on(task).expect("it does not panic");
}

fn tokio_yield(count: u64) {
    let runtime = tokio_runtime();
    runtime.block_on(runtime.spawn(yields(count))).expect("it does not panic");
}

fn async_executor_spawn(count: u64) {
    let executor = async_executor::Executor::new();
    block_on(executor.run(async {
        (0..count).for_each(|i| executor.spawn(async move { _ = black_box(i) }).detach());
        while !executor.is_empty() {
            yields(1).await;
        }
    }));
}

fn async_executor_yield(count: u64) {
    let executor = async_executor::Executor::new();
    block_on(executor.run(async { executor.spawn(yields(count)).await }));
}

// ----- futures -----

async fn yields(count: u64) {
    for _ in 0..count {
        Yield(false).await;
    }
}

/// Wakes itself, and is ready at the second poll.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
