//! A thread that waits for a task runs it (law 10): that very task, and no other.
//!
//! A worker does so for handles, scopes and groups of its own pool, any other thread for scopes
//! only. Where it can be, the pool has one worker: then there is no other that could run the task.

use crate::common;

mod bounded_queue;
mod chains;
mod complete;
mod endings;
#[cfg(feature = "async")]
mod futures;
mod groups;
mod handles;
mod other_executors;
mod other_tasks;
mod regions;
mod scopes;

use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{HOUR, LIMIT, block, settled};
use elastipool::{Builder, JoinError, JoinHandle, Stats, ThreadPool, worker_index};

/// A while in which what must not happen would have happened.
const WHILE: Duration = Duration::from_millis(30);

fn builder(size: usize) -> Builder {
    Builder::new().core_size(size).max_size(size).keep_alive(HOUR)
}

fn pool(size: usize) -> ThreadPool {
    builder(size).build()
}

/// Where code runs.
type Place = (ThreadId, Option<usize>);

fn here() -> Place {
    (thread::current().id(), worker_index())
}

/// What `test` returns, which is a task of the pool and is given the pool.
#[track_caller]
fn in_task<R: Send + 'static>(
    pool: &ThreadPool,
    test: impl FnOnce(&ThreadPool) -> R + Send + 'static,
) -> R {
    let own = pool.clone();
    let result = settled(pool.evaluate(move || test(&own)));
    result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Nothing is left of `ended` tasks, none of which has cost a thread.
#[track_caller]
fn assert_ended_on(threads: usize, pool: &ThreadPool, ended: usize) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.queued_count(), 0);
    let stats = pool.stats();
    assert_eq!((stats.active, stats.queued, stats.pending, stats.in_flight()), (0, 0, 0, 0));
    assert_eq!(stats.accepted(), ended, "{stats:?}");
    assert_eq!(stats.completed + stats.panicked + stats.cancelled, ended, "{stats:?}");
    assert_eq!(stats.threads_started, threads, "{stats:?}");
    assert_eq!(stats.blocked, 0);
}

/// How many tasks the pool is at, and how: active, queued, pending.
fn at_work(stats: &Stats) -> (usize, usize, usize) {
    (stats.active, stats.queued, stats.pending)
}

/// Submits a task of one kind that returns what it is given to call.
type Submit = fn(&ThreadPool, Box<dyn FnOnce() -> usize + Send>) -> JoinHandle<usize>;

const KINDS: &[Submit] = &[
    |pool, task| pool.evaluate(task),
    |pool, task| pool.complete(async { task() }),
    #[cfg(feature = "async")]
    |pool, task| pool.spawn_await(async { task() }),
];

/// In which order a task waits for those that it has submitted.
#[derive(Clone, Copy, Debug)]
enum Order {
    NewestFirst,
    OldestFirst,
    Random,
}

const ORDERS: [Order; 3] = [Order::NewestFirst, Order::OldestFirst, Order::Random];

impl Order {
    fn arrange<T>(self, handles: &mut [T]) {
        match self {
            Order::NewestFirst => handles.reverse(),
            Order::OldestFirst => {}
            Order::Random => fastrand::shuffle(handles),
        }
    }
}

/// The number of tasks in a tree of this depth, each of which waits for its children.
fn tree(pool: &ThreadPool, submit: Submit, order: Order, width: usize, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let child = |_| {
        let own = pool.clone();
        submit(pool, Box::new(move || tree(&own, submit, order, width, depth - 1)))
    };
    let mut children: Vec<_> = (0..width).map(child).collect();
    order.arrange(&mut children);
    children.into_iter().map(JoinHandle::await_complete).sum::<usize>() + 1
}

fn text(error: JoinError) -> String {
    let payload = error.into_panic();
    payload.downcast_ref::<&str>().expect("a fixed text").to_string()
}

/// How many tasks the pool accepts while its workers are busy. They are run before this returns.
#[track_caller]
fn free_capacity(pool: &ThreadPool) -> usize {
    let gates: Vec<_> = (0..pool.max_size()).map(|_| block(pool)).collect();
    let mut count = 0;
    while pool.try_execute(|| ()).is_ok() {
        count += 1;
    }
    gates.iter().for_each(|gate| gate.open());
    assert!(pool.join_timeout(LIMIT));
    count
}

/// Where the tasks of a scope have run, in that order.
type Runs = Mutex<Vec<(usize, Place)>>;

/// All were run here, the newest first.
#[track_caller]
fn assert_newest_first(runs: Runs, count: usize) {
    let expected: Vec<_> = (0..count).rev().map(|number| (number, here())).collect();
    assert_eq!(runs.into_inner().unwrap(), expected);
}
