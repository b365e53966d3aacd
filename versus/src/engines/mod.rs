//! The engines: what can run closures, futures, or both, behind the two traits that the rows are
//! written against.
//!
//! All of them are used as their own documentation shows. They live until the process ends, so that
//! a closure refers to its engine by a plain reference, not by a handle whose reference count all
//! workers would share.

mod affinitypool;
mod executors;
mod floor;
#[cfg(feature = "forte")]
mod forte;
mod futures_pool;
mod ours;
mod qubit;
mod rayon;
mod rusty_pool;
mod smol;
mod smolscale;
mod threadpool;
mod tokio;

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use futures_lite::future;
use serde::{Deserialize, Serialize};

pub(crate) use self::affinitypool::Affinitypool;
pub(crate) use self::executors::Executors;
pub(crate) use self::floor::Floor;
#[cfg(feature = "forte")]
pub(crate) use self::forte::Forte;
pub(crate) use self::futures_pool::FuturesPool;
pub(crate) use self::ours::Ours;
pub(crate) use self::qubit::{Qubit, QubitElastic};
pub(crate) use self::rayon::Rayon;
pub(crate) use self::rusty_pool::RustyPool;
pub(crate) use self::smol::{AsyncExecutor, Blocking};
pub(crate) use self::smolscale::Smolscale;
pub(crate) use self::threadpool::Threadpool;
pub(crate) use self::tokio::{Tokio, TokioBlocking, TokioBoth};

/// For engines of a fixed size: longer than any row takes.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// The environment variable by which the crate `blocking` is told how many threads it may have.
pub(crate) const BLOCKING_LIMIT: &str = "BLOCKING_MAX_THREADS";

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// This crate's pool, with `Growth::Eager`
    Elastipool,
    /// The same with `Growth::Stalled`, of 100 us
    ElastipoolStalled,
    /// This crate's default pool, which finds its size
    ElastipoolMeasured,
    /// The same with one more worker, and a view for the futures that reserves one
    ElastipoolReserve,
    /// The same with tokio's I/O, whose reactor has a thread of its own
    ElastipoolTokioIo,
    /// Two of this crate's pools, one for the closures and one of a single worker for the futures
    ElastipoolTwo,
    /// The pool of the crate rusty_pool
    RustyPool,
    /// The pool of the crate threadpool
    Threadpool,
    /// A pool of the crate qubit-thread-pool
    Qubit,
    /// `spawn` in a pool of the crate rayon
    Rayon,
    /// rayon's `join`
    RayonJoin,
    /// rayon's `scope`
    RayonScope,
    /// tokio's `spawn_blocking`
    TokioBlocking,
    /// tokio's `spawn_blocking`, with the sharded queue
    TokioSharded,
    /// `unblock` of the crate blocking
    Blocking,
    /// The work-stealing pool of the crate executors
    Executors,
    /// The pool of the crate affinitypool
    Affinitypool,
    /// tokio's `spawn`, on its runtime of several threads
    Tokio,
    /// tokio's `spawn` for futures and `spawn_blocking` for closures: two threads for the futures
    TokioBoth,
    /// tokio's `spawn`, with tasks that call `block_in_place`
    TokioBlockInPlace,
    /// The executor of the crate async-executor, run by several threads
    AsyncExecutor,
    /// The executor of the crate smolscale, which has a thread for each CPU
    Smolscale,
    /// The `ThreadPool` of the crate futures
    FuturesPool,
    /// `spawn` in a pool of the crate forte
    #[cfg(feature = "forte")]
    Forte,
    /// forte's `join`
    #[cfg(feature = "forte")]
    ForteJoin,
    /// forte's `scope`
    #[cfg(feature = "forte")]
    ForteScope,
    /// No peer: a channel and threads that take closures from it
    Floor,
}

impl Engine {
    pub(crate) fn is_ours(self) -> bool {
        matches!(
            self,
            Engine::Elastipool
                | Engine::ElastipoolStalled
                | Engine::ElastipoolMeasured
                | Engine::ElastipoolReserve
                | Engine::ElastipoolTokioIo
        )
    }

    /// The most workers that it can have, where that is fewer than a row asks for.
    pub(crate) fn most_workers(self) -> Option<usize> {
        match self {
            Engine::Affinitypool => Some(affinitypool::MOST_WORKERS),
            Engine::Executors => Some(executors::MOST_WORKERS),
            _ => None,
        }
    }

    /// What its process finds in the environment.
    pub(crate) fn environment(self) -> Option<(&'static str, &'static str)> {
        // Without a build of tokio for its unstable features, this variable is the only way to
        // choose the queue.
        (self == Engine::TokioSharded).then_some(("TOKIO_UNSTABLE_SHARDED_BLOCKING_QUEUE", "1"))
    }

    /// Whether ours is compared with it. The floor only shows what a queue alone costs, and a
    /// second pool what a view spares.
    pub(crate) fn is_peer(self) -> bool {
        !self.is_ours() && !matches!(self, Engine::ElastipoolTwo | Engine::Floor)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// Runs closures.
pub(crate) trait Pool: Sync + 'static {
    fn execute(&'static self, task: impl FnOnce() + Send + 'static);

    /// Runs it on a worker, waits, and returns the result: in the way that the engine has for this.
    fn evaluate<R: Send + 'static>(&'static self, task: impl FnOnce() -> R + Send + 'static) -> R;

    /// What runs one function with many arguments.
    fn handler<T, F>(&'static self, function: F) -> impl Fn(T)
    where
        T: Send + 'static,
        F: Fn(T) + Copy + Send + Sync + 'static,
    {
        move |argument| self.execute(move || function(argument))
    }
}

/// Has a way to wait until all its tasks have run.
pub(crate) trait Joins: Pool {
    /// Whether `join` is known to return, once in a while, before the last task has run.
    const MAY_BE_EARLY: bool = false;

    fn join(&'static self);
}

/// Can be shut down.
pub(crate) trait Ends {
    /// Makes a pool, submits the tasks, and shuts the pool down when all have run.
    fn run_all<T: FnOnce() + Send + 'static>(workers: usize, tasks: impl Iterator<Item = T>);
}

/// Returns a handle for each closure.
pub(crate) trait Handles: Pool {
    /// Submits it. The returned closure waits for the result.
    fn start<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl FnOnce() -> R;
}

/// Runs closures whose results futures await.
pub(crate) trait Calls: Sync + 'static {
    /// Submits it at once, in the way that the engine has for this. The returned future waits for
    /// the result.
    fn call<R: Send + 'static>(
        &'static self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = R> + Send;
}

/// Runs recursive closures, of which each submits one half and waits for it.
pub(crate) trait Fork: Pool {
    /// Submits `half`, runs `other` on the calling worker, and waits for both.
    fn fork<R: Send + 'static>(
        &'static self,
        half: impl FnOnce() -> R + Send + 'static,
        other: impl FnOnce() -> R + Send + 'static,
    ) -> (R, R);
}

/// Runs closures that borrow.
pub(crate) trait Scopes: Pool {
    /// Opens a scope, submits all tasks to it, runs `other` itself, and waits for the tasks.
    fn scope<T: FnOnce() + Send>(
        &'static self,
        tasks: impl IntoIterator<Item = T> + Send,
        other: impl FnOnce() + Send,
    );
}

/// Runs closures that wait for something other than the pool.
pub(crate) trait Waits: Pool {
    /// Waits in a task, and says so in the way that the engine has for this.
    fn blocking(wait: impl FnOnce());
}

/// Runs each future on one worker, which waits with it.
pub(crate) trait Complete: Sync + 'static {
    fn complete(&'static self, future: impl Future<Output = ()> + Send + 'static);
}

/// Runs futures.
pub(crate) trait Executor: Sync + 'static {
    fn spawn(&'static self, future: impl Future<Output = ()> + Send + 'static);

    /// Lets other futures run: in the way that the engine has for this, or by waking itself.
    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }
}

/// Returns a handle for each future.
pub(crate) trait FutureHandles: Executor {
    /// Submits it. The returned future waits for the result.
    fn start_future<R: Send + 'static>(
        &'static self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> impl Future<Output = R>;
}

/// Keeps it until the process ends.
pub(crate) fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
