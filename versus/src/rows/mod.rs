//! The rows: what is measured, with which engines, and what ours is to reach.

pub(crate) mod awaited;
pub(crate) mod backlog;
pub(crate) mod closures;
pub(crate) mod elastic;
mod figures;
pub(crate) mod futures;
pub(crate) mod http;
pub(crate) mod latency;
pub(crate) mod limits;
pub(crate) mod loads;
pub(crate) mod overload;
pub(crate) mod relay;
pub(crate) mod resources;
pub(crate) mod scheduler;
mod stories;
pub(crate) mod submitters;
pub(crate) mod views;
pub(crate) mod waiting;

use std::num::NonZero;
use std::{fmt, thread};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub(crate) use self::figures::{Figure, Outcome, Setting, Target, Unit};
pub(crate) use self::stories::Story;
use crate::engines::Engine;

/// Workers of the row `idle`.
const IDLE_WORKERS: usize = 16;

/// Workers that the pools of the rows of awaited calls may have.
const AWAITED_LIMIT: usize = 4;

/// Threads that tokio has for `spawn_blocking` unless it is told otherwise.
pub(crate) const TOKIO_BLOCKING_THREADS: usize = 512;

/// Workers that the elastic engines may have, except in the rows that start more.
const ELASTIC_LIMIT: usize = 64;

/// Tasks of the row `batch-sleep`, and its workers.
const BATCH_SLEEPERS: usize = 100;

/// Workers of the row `wide`. Their number is scaled too, so that a quick look does not start
/// thousands of threads.
const WIDE: [u64; 4] = [64, 512, 2_000, 6_000];

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    /// One producer, all workers blocked: the submission alone
    Submit,
    /// One producer, empty tasks, until all have run; also beside busy processes
    Empty,
    /// 11 producers, empty tasks, until all have run
    Multi,
    /// One task submits all others
    Fanout,
    /// As `empty`, with closures of 200 bytes
    #[value(name = "closures-200")]
    #[serde(rename = "closures-200")]
    Closures200,
    /// As `empty`, with 64, 512, 2,000 and 6,000 workers
    Wide,
    /// Each task submits two, to a depth of 20
    Tree,
    /// A task, its result, the next task; also beside busy processes
    Roundtrip,
    /// A task, the pool's own `join`, the next task
    ExecuteJoin,
    /// 100 pools, one after the other: each is made, runs 100 empty tasks, and is shut down
    Lifetime,
    /// 300,000 tasks with handles, then all their results
    Bulk,
    /// 100 tasks of about 20 us with handles, then all their results, again and again
    Collect,
    /// Empty tasks through a queue that holds none, of 1 and of 11 producers
    #[value(name = "bounded-0")]
    #[serde(rename = "bounded-0")]
    Bounded0,
    /// Empty tasks through a queue that holds 100, of 1 and of 11 producers
    #[value(name = "bounded-100")]
    #[serde(rename = "bounded-100")]
    Bounded100,
    /// Tasks that compute for about 20 us, through a queue that holds 10, of 1 and of 11 producers
    BoundedWork,
    /// Batches of 48 tasks of 256 nested calls, one after another; also beside busy processes
    Burst,
    /// One function, many arguments
    Handler,
    /// Tasks that compute for about 1 us
    #[value(name = "work-1us")]
    #[serde(rename = "work-1us")]
    Work1us,
    /// Tasks that compute for about 1 ms
    #[value(name = "work-1ms")]
    #[serde(rename = "work-1ms")]
    Work1ms,
    /// Futures that are ready at once
    Spawn,
    /// 20,000 futures that yield 100 times each
    Yield,
    /// 8 pairs of futures that send each other messages
    Pingpong,
    /// 1,000,000 futures that sleep for 10 ms each
    Sleepers,
    /// A future spawns 10,000 others, which count down; until all have run, again and again
    SpawnLocal,
    /// A thread outside spawns 10,000 futures, then awaits all their handles, again and again
    SpawnAwait,
    /// The same beside futures that compute for 10 us and yield, two for each worker
    BesideYields,
    /// The same with 1,000, beside futures that compute for 10 us and spawn their successor, one
    /// for each worker
    BesideSpawns,
    /// 200 futures that yield 1,000 times each
    #[value(name = "yield-200")]
    #[serde(rename = "yield-200")]
    Yield200,
    /// 1,000 futures, each of which exchanges two oneshot messages with one that it spawns
    Oneshots,
    /// A future that spawns the next one, 1,000 times
    Chain,
    /// What a queued task takes
    MemoryTask,
    /// What a pending future takes
    MemoryFuture,
    /// CPU time of 16 workers without work
    Idle,
    /// 64 tasks that block, until all have started
    Grow,
    /// The same with 512
    #[value(name = "grow-512")]
    #[serde(rename = "grow-512")]
    Grow512,
    /// The same with 2,000
    #[value(name = "grow-2000")]
    #[serde(rename = "grow-2000")]
    Grow2000,
    /// The same with 6,000
    #[value(name = "grow-6000")]
    #[serde(rename = "grow-6000")]
    Grow6000,
    /// 1,000 tasks that compute for 2 ms, nothing marked, on pools of several sizes
    LoadCompute,
    /// 2,000 tasks that sleep for 10 ms
    LoadSleep,
    /// 2,000 tasks: each second one sleeps for 20 ms, the others compute for 1 ms
    LoadHalf,
    /// Four phases: computing, sleeping, computing, sleeping
    LoadPhases,
    /// 64 tasks, each of which waits for one that is queued behind all of them
    LoadWaits,
    /// A short task behind 20 that sleep for 300 ms: until it starts
    LoadShort,
    /// A task each 1.2 ms that computes for 0.5 ms, sleeps for 5, and computes for 0.5: until it
    /// starts
    LoadOpen,
    /// 2,000 tasks, each of which sleeps for 1 ms under one lock
    LoadLock,
    /// 2,000 tasks that compute for 0.5 ms, then sleep for 0.5 ms under one lock
    LoadHalfLock,
    /// 2,000 tasks that share ten connections, and hold one for 5 ms
    LoadConnections,
    /// 2,000 tasks that read 1 MiB each from the disk, past the page cache
    LoadDisk,
    /// 2,000 tasks that wait 10 ms for a reply of a thread outside
    LoadReplies,
    /// The same, 100 ms
    #[value(name = "load-replies-100")]
    #[serde(rename = "load-replies-100")]
    LoadReplies100,
    /// 1,024 tasks that wait 1 s for a reply
    #[value(name = "load-replies-1000")]
    #[serde(rename = "load-replies-1000")]
    LoadReplies1000,
    /// 2,000 tasks that read 256 KiB from the disk, compute for 0.3 ms, and write to a socket
    LoadStages,
    /// As many tasks that block as a fixed pool has threads, 64, 512 and 2,000: until all have
    /// started
    Fill,
    /// 10,000 empty tasks at once
    Tiny,
    /// 2,000 tasks, of which each tenth blocks for 5 ms
    Mixed,
    /// 64 tasks that block for 1 ms, on 64 idle workers, after each pause of 5 ms
    Waves,
    /// The threads left after 16 tasks that block and 2 s of one empty task every 12 ms
    Trickle,
    /// fib(30), each call submits one half and waits for its handle; sequential below 10
    FibHandles,
    /// fib(30), each call submits one half to a scope and waits for that; sequential below 10
    FibScopes,
    /// 2,000,000 integers sorted, each call submits one half to a scope; sequential below 1,000
    Quicksort,
    /// A tree of scopes from outside the pool: each submits two and waits for them, 12 deep
    ScopeTree,
    /// 500 steps of a loop outside the pool: each submits 16 tasks of about 5 us to a scope and
    /// waits for them
    Chunks,
    /// A scope opened outside the pool, with 300,000 empty tasks
    #[value(name = "scope-300k")]
    #[serde(rename = "scope-300k")]
    Scope300k,
    /// 1,000 futures that wait for 2 ms each, run to their end by two workers
    Complete,
    /// 10,000 tasks that sleep for 10 ms in a blocking region, on two workers
    BlockingSleep,
    /// 100,000 tasks of an empty blocking region
    BlockingNothing,
    /// The time to start one task after each pause, beside busy processes
    Neighbours,
    /// The time from a task's submission until its result is there, one after each pause of 300 us,
    /// beside busy processes
    Sporadic,
    /// The time from the submission of four tasks of about 20 us until all have ended, after each
    /// pause of 500 us
    Frames,
    /// The same, waiting by the pool's own `join`
    FramesJoin,
    /// 48 tasks of about a microsecond, submitted at once after each pause of 500 us: until all
    /// have ended
    Batch,
    /// 100 tasks that sleep for 1 ms, submitted at once to as many workers after each pause: until
    /// all have ended
    BatchSleep,
    /// Tasks of about 20 us in four pools, each of which submits the next one to the next pool, two
    /// at a time
    Relay,
    /// The time to start both of two tasks of 100 us, submitted together after each pause of 1 ms
    Pair,
    /// The same on workers that have run last on one CPU
    PairSame,
    /// The same on workers that have run last on two CPUs
    PairApart,
    /// The time to start tasks of 100 us at random times, from when each is due, beside a busy
    /// process
    OpenLoop,
    /// How late a future runs that sleeps for 1 ms at a time, beside 40 queued closures of 10 ms;
    /// and the time per closure
    Backlog,
    /// How late a future runs that sleeps for 1 ms at a time, beside 40 queued closures of 10 ms,
    /// in a pool without sizes; and the time per closure
    Ticks,
    /// The same with four futures
    Ticks4,
    /// The same with 64 futures
    Ticks64,
    /// The same with 63 futures, beside one that blocks its thread for 20 ms at a time
    TicksBlocked,
    /// A future submits eight closures of about 50 us to its own pool and awaits them all, again
    /// and again
    Gather,
    /// 200 requests at a time on 64 workers, each of three closures that block for 1 ms and submit
    /// the next one: the time of a request
    Stages,
    /// The same requests as futures, each of which awaits one closure after the other
    Requests,
    /// 200 futures at a time on two workers, each of which computes for 100 us and yields, five
    /// times: the time of a future
    Polls,
    /// Submission to start of a closure of high priority every 5 ms, beside 10,000 queued ones of 1
    /// ms of low priority
    Urgent,
    /// Closures of high priority, of which some are always queued, that run for each one of low
    /// priority
    Flood,
    /// How far two tenants' shares of the workers are from those of their weights; one has 100
    /// times as many closures queued
    Tenants,
    /// One task of a tokio runtime calls a function of about 1 us and awaits its result, again and
    /// again
    #[value(name = "awaited-1")]
    #[serde(rename = "awaited-1")]
    Awaited1,
    /// The same with 64 tasks
    #[value(name = "awaited-64")]
    #[serde(rename = "awaited-64")]
    Awaited64,
    /// One task of a tokio runtime submits 16 empty closures and awaits all their results, 100
    /// times
    #[value(name = "batches-1")]
    #[serde(rename = "batches-1")]
    Batches1,
    /// The same with two tasks
    #[value(name = "batches-2")]
    #[serde(rename = "batches-2")]
    Batches2,
    /// A hyper server that greets, 64 keep-alive connections
    Http,
    /// A hyper server on tokio, each request of which awaits a closure that blocks for 1 ms; 64
    /// keep-alive connections
    HttpBlocking,
}

/// What a row needs of an engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Closures,
    Futures,
    /// Closures, of submitters that wait.
    Submitters,
    /// Closures, of engines that start and end threads as needed.
    Elastic,
    /// Pools of several sizes, and one that finds its size.
    Loads,
    /// Tasks that wait for tasks.
    Waiting,
    /// Tasks that wait for something else.
    Limits,
    /// Closures, timed one by one.
    Latency,
    /// Closures, of several pools.
    Pools,
    /// Futures, in the rounds of tokio's benchmark.
    Scheduler,
    /// Both closures and futures.
    Both,
    /// Futures, most of which await closures of the same engine.
    Requests,
    /// Closures of different importance.
    Views,
    /// Closures whose results a tokio runtime awaits.
    Awaited,
    /// Futures that do I/O.
    Server,
    /// Closures whose results the requests of a server await.
    BlockingServer,
}

const CLOSURES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Threadpool,
    Engine::Qubit,
    Engine::Rayon,
    Engine::TokioBlocking,
    Engine::TokioSharded,
    Engine::Blocking,
    Engine::Executors,
    Engine::Affinitypool,
    Engine::Floor,
];

/// As [`CLOSURES`], with forte.
const CLOSURES_AND_FORTE: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Threadpool,
    Engine::Qubit,
    Engine::Rayon,
    Engine::TokioBlocking,
    Engine::TokioSharded,
    Engine::Blocking,
    Engine::Executors,
    Engine::Affinitypool,
    #[cfg(feature = "forte")]
    Engine::Forte,
    Engine::Floor,
];

const FUTURES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Tokio,
    Engine::AsyncExecutor,
    Engine::Smolscale,
    Engine::FuturesPool,
];

/// Without rayon, whose idle workers look at each other's queues: with 6,000 of them it takes
/// minutes.
const WIDE_ENGINES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Threadpool,
    Engine::TokioBlocking,
    Engine::TokioSharded,
    Engine::Blocking,
    Engine::Executors,
    Engine::Affinitypool,
    Engine::Floor,
];

const ELASTIC: &[Engine] = &[
    Engine::Elastipool,
    Engine::ElastipoolStalled,
    Engine::RustyPool,
    Engine::Qubit,
    Engine::TokioBlocking,
    Engine::TokioSharded,
    Engine::Blocking,
];

const FORKS: &[Engine] = &[
    Engine::Elastipool,
    Engine::RayonJoin,
    Engine::RayonScope,
    #[cfg(feature = "forte")]
    Engine::ForteJoin,
    #[cfg(feature = "forte")]
    Engine::ForteScope,
];

const SCOPES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RayonScope,
    #[cfg(feature = "forte")]
    Engine::ForteScope,
];

impl Row {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Row::Submit
            | Row::Empty
            | Row::Multi
            | Row::Fanout
            | Row::Closures200
            | Row::Wide
            | Row::Tree
            | Row::Roundtrip
            | Row::Burst
            | Row::Handler
            | Row::Work1us
            | Row::Work1ms
            | Row::MemoryTask
            | Row::Idle => Kind::Closures,
            Row::Spawn | Row::Yield | Row::Pingpong | Row::Sleepers | Row::MemoryFuture => {
                Kind::Futures
            }
            Row::SpawnLocal | Row::SpawnAwait | Row::BesideYields | Row::BesideSpawns => {
                Kind::Scheduler
            }
            Row::Yield200 | Row::Oneshots | Row::Chain => Kind::Scheduler,
            Row::ExecuteJoin | Row::Lifetime | Row::Bulk | Row::Collect => Kind::Submitters,
            Row::Bounded0 | Row::Bounded100 | Row::BoundedWork => Kind::Submitters,
            Row::Grow | Row::Grow512 | Row::Grow2000 | Row::Grow6000 => Kind::Elastic,
            Row::Fill => Kind::Elastic,
            Row::Tiny | Row::Mixed | Row::Waves | Row::Trickle => Kind::Elastic,
            Row::LoadCompute | Row::LoadSleep | Row::LoadHalf | Row::LoadPhases => Kind::Loads,
            Row::LoadWaits | Row::LoadShort | Row::LoadOpen => Kind::Loads,
            Row::LoadLock | Row::LoadHalfLock | Row::LoadConnections => Kind::Loads,
            Row::LoadDisk | Row::LoadReplies | Row::LoadReplies100 => Kind::Loads,
            Row::LoadReplies1000 | Row::LoadStages => Kind::Loads,
            Row::FibHandles | Row::FibScopes | Row::Quicksort => Kind::Waiting,
            Row::ScopeTree | Row::Chunks | Row::Scope300k => Kind::Waiting,
            Row::Complete | Row::BlockingSleep | Row::BlockingNothing => Kind::Limits,
            Row::Neighbours | Row::Sporadic | Row::Frames | Row::FramesJoin => Kind::Latency,
            Row::Batch | Row::BatchSleep => Kind::Latency,
            Row::Pair | Row::PairSame | Row::PairApart => Kind::Latency,
            Row::OpenLoop | Row::Stages => Kind::Latency,
            Row::Relay => Kind::Pools,
            Row::Backlog | Row::Ticks | Row::Ticks4 | Row::Ticks64 | Row::TicksBlocked => {
                Kind::Both
            }
            Row::Gather | Row::Requests | Row::Polls => Kind::Requests,
            Row::Urgent | Row::Flood | Row::Tenants => Kind::Views,
            Row::Awaited1 | Row::Awaited64 | Row::Batches1 | Row::Batches2 => Kind::Awaited,
            Row::Http => Kind::Server,
            Row::HttpBlocking => Kind::BlockingServer,
        }
    }

    /// Whether its time is mostly that of a fixed number of instructions, not of waiting.
    pub(crate) fn is_bound_by_instructions(self) -> bool {
        let is_closure_row = matches!(
            self,
            Row::Submit | Row::Empty | Row::Fanout | Row::Tree | Row::Handler | Row::Closures200
        );
        is_closure_row || matches!(self, Row::Spawn | Row::Yield | Row::Pingpong)
    }

    /// Whether it is about the number of workers.
    pub(crate) fn is_elastic(self) -> bool {
        self.kind() == Kind::Elastic
    }

    /// All engines that can do it.
    pub(crate) fn engines(self) -> &'static [Engine] {
        match self {
            Row::Empty | Row::Fanout | Row::Tree | Row::Roundtrip | Row::Burst => {
                CLOSURES_AND_FORTE
            }
            Row::Wide => WIDE_ENGINES,
            Row::ExecuteJoin | Row::FramesJoin | Row::Lifetime => {
                &[Engine::Elastipool, Engine::RustyPool, Engine::Threadpool, Engine::Qubit]
            }
            Row::Bulk | Row::Collect => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Qubit,
                Engine::TokioBlocking,
                Engine::TokioSharded,
                Engine::Blocking,
                Engine::Affinitypool,
                Engine::Floor,
            ],
            // No peer has such a queue.
            Row::Bounded0 | Row::Bounded100 | Row::BoundedWork => {
                &[Engine::Elastipool, Engine::Floor]
            }
            Row::FibHandles | Row::FibScopes => FORKS,
            Row::Quicksort | Row::ScopeTree | Row::Chunks => SCOPES,
            // rusty_pool has no scopes: it executes the tasks and joins.
            Row::Scope300k => &[Engine::Elastipool, Engine::RayonScope, Engine::RustyPool],
            Row::Complete | Row::Fill => &[Engine::Elastipool, Engine::RustyPool],
            Row::BlockingSleep => {
                &[Engine::Elastipool, Engine::TokioBlocking, Engine::TokioSharded]
            }
            // In the pool of futures, those that yield would keep all workers.
            Row::BesideYields => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Tokio,
                Engine::AsyncExecutor,
                Engine::Smolscale,
            ],
            Row::BlockingNothing => &[Engine::Elastipool, Engine::TokioBlockInPlace],
            Row::Neighbours => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Threadpool,
                Engine::Rayon,
                Engine::Tokio,
                Engine::TokioBlocking,
            ],
            Row::Sporadic
            | Row::Frames
            | Row::Batch
            | Row::BatchSleep
            | Row::Relay
            | Row::Stages => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Threadpool,
                Engine::Qubit,
                Engine::Rayon,
                Engine::TokioBlocking,
                Engine::TokioSharded,
            ],
            Row::Pair | Row::PairSame | Row::PairApart => {
                &[Engine::Elastipool, Engine::RustyPool, Engine::Rayon, Engine::Tokio]
            }
            Row::OpenLoop => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Rayon,
                Engine::Tokio,
                Engine::TokioBlocking,
                Engine::TokioSharded,
            ],
            Row::Backlog => &[
                Engine::Elastipool,
                Engine::ElastipoolReserve,
                Engine::ElastipoolTwo,
                Engine::RustyPool,
                Engine::TokioBoth,
            ],
            _ if self.is_ticks() => {
                &[Engine::ElastipoolMeasured, Engine::ElastipoolTwo, Engine::TokioBoth]
            }
            Row::Gather | Row::Requests | Row::Polls => {
                &[Engine::Elastipool, Engine::RustyPool, Engine::TokioBoth]
            }
            // No peer has views.
            Row::Urgent | Row::Flood | Row::Tenants => &[Engine::Elastipool],
            Row::Awaited1 | Row::Awaited64 => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Threadpool,
                Engine::TokioBlocking,
                Engine::TokioSharded,
                Engine::Affinitypool,
            ],
            Row::Batches1 | Row::Batches2 => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Threadpool,
                Engine::TokioBlocking,
                Engine::TokioSharded,
                Engine::Blocking,
                Engine::Affinitypool,
            ],
            Row::Http => &[
                Engine::Elastipool,
                Engine::ElastipoolTokioIo,
                Engine::Tokio,
                Engine::AsyncExecutor,
            ],
            Row::HttpBlocking => &[
                Engine::Elastipool,
                Engine::RustyPool,
                Engine::Threadpool,
                Engine::TokioBlocking,
                Engine::TokioSharded,
                Engine::Blocking,
            ],
            _ => match self.kind() {
                Kind::Futures | Kind::Scheduler => FUTURES,
                Kind::Elastic => ELASTIC,
                Kind::Loads => &[
                    Engine::ElastipoolMeasured,
                    Engine::Elastipool,
                    Engine::RustyPool,
                    Engine::TokioBlocking,
                ],
                _ => CLOSURES,
            },
        }
    }

    /// The peers of which the best is what ours is compared with: not always all, since a target
    /// may be about those that give the same promise.
    pub(crate) fn rivals(self) -> &'static [Engine] {
        match self {
            // Fair ones. The pool of futures polls a future that yields again at once, and lets the
            // rest wait.
            Row::Yield => &[Engine::Tokio, Engine::AsyncExecutor, Engine::Smolscale],
            Row::Pingpong => &[Engine::Tokio, Engine::Smolscale],
            Row::MemoryTask | Row::Tiny | Row::Bulk => &[Engine::RustyPool],
            Row::MemoryFuture => &[Engine::RustyPool, Engine::AsyncExecutor],
            Row::FibHandles | Row::FibScopes => &[Engine::RayonJoin],
            Row::Quicksort | Row::ScopeTree | Row::Chunks => &[Engine::RayonScope],
            Row::PairSame | Row::PairApart => &[Engine::Tokio],
            Row::Neighbours => &[Engine::Tokio, Engine::TokioBlocking],
            // It has threads of their own for futures.
            Row::Backlog => &[Engine::TokioBoth],
            _ if self.is_ticks() => &[Engine::ElastipoolTwo, Engine::TokioBoth],
            // Its own benchmarks.
            Row::Batches1 | Row::Batches2 => &[Engine::TokioBlocking],
            _ if self.kind() == Kind::Scheduler => &[Engine::Tokio],
            _ => self.engines(),
        }
    }

    /// For how many workers it is measured, of those that were asked for.
    pub(crate) fn workers(self, asked: &[usize], scale: f64) -> Vec<usize> {
        match self {
            Row::Wide => {
                let mut workers =
                    WIDE.map(|workers| scaled(workers, scale.min(1.0)) as usize).to_vec();
                // At a very small scale some are the same.
                workers.dedup();
                workers
            }
            Row::Grow512 | Row::Grow2000 | Row::Grow6000 => vec![self.full_size() as usize],
            Row::Fill => vec![64, 512, 2_000],
            Row::Idle => vec![IDLE_WORKERS],
            // A byte is a byte, however many workers do not run the task.
            Row::MemoryTask | Row::MemoryFuture => asked.iter().copied().take(1).collect(),
            // With fewer, they wait for ever.
            Row::LoadWaits => vec![128, 512],
            Row::LoadLock | Row::LoadHalfLock | Row::LoadConnections => vec![2, 4, 8, 16, 64, 512],
            Row::LoadDisk | Row::LoadStages => vec![2, 4, 8, 16, 64, 512],
            // With fewer, they take minutes.
            Row::LoadReplies | Row::LoadReplies100 | Row::LoadReplies1000 => vec![64, 512],
            _ if self.kind() == Kind::Loads => vec![2, 4, 8, 16, 32, 64, 128, 256, 512],
            _ if self.is_elastic() => vec![ELASTIC_LIMIT],
            _ if self.kind() == Kind::Scheduler => vec![scheduler::WORKERS],
            Row::Complete | Row::BlockingSleep | Row::OpenLoop | Row::Http => vec![2],
            Row::Awaited1 | Row::Awaited64 => vec![AWAITED_LIMIT],
            Row::Batches1 | Row::Batches2 => vec![AWAITED_LIMIT, TOKIO_BLOCKING_THREADS],
            // In http-blocking, one for each connection.
            Row::HttpBlocking | Row::Stages | Row::Requests => vec![ELASTIC_LIMIT],
            Row::BlockingNothing => vec![1, 2],
            Row::Neighbours | Row::Sporadic | Row::Frames | Row::FramesJoin => vec![2, 4],
            Row::Batch => vec![2, 4],
            Row::BatchSleep => vec![BATCH_SLEEPERS],
            Row::Relay | Row::Polls | Row::PairSame | Row::PairApart => vec![2],
            Row::Backlog => vec![2, 8],
            // The other engines; a pool without sizes has as many as there are CPUs.
            _ if self.is_ticks() => vec![2],
            Row::Urgent | Row::Flood | Row::Tenants => vec![2],
            Row::Pair | Row::Collect | Row::Gather => vec![2, 4, 10],
            Row::Lifetime => vec![2, 10, 64],
            _ => asked.to_vec(),
        }
    }

    /// What it is measured with, one after another.
    pub(crate) fn settings(self) -> Vec<Setting> {
        match self {
            Row::Empty | Row::Roundtrip | Row::Sporadic | Row::Burst => Setting::busy(&[0, 1, 2]),
            Row::Bounded0 | Row::Bounded100 | Row::BoundedWork => {
                Setting::producers(&[1, closures::PRODUCERS])
            }
            Row::Neighbours => Setting::pauses(&[1_000, 300], &[0, 1, 2]),
            Row::Tenants => Setting::weights(&[1, 3]),
            Row::OpenLoop => Setting::loads(&[10, 50, 80, 90], &[0, 1]),
            _ => vec![Setting::default()],
        }
    }

    /// Whether it is about futures beside closures in a pool without sizes.
    fn is_ticks(self) -> bool {
        matches!(self, Row::Ticks | Row::Ticks4 | Row::Ticks64 | Row::TicksBlocked)
    }

    /// What one measurement gives.
    pub(crate) fn figures(self) -> &'static [Figure] {
        match self {
            Row::Complete => &[Figure::Value, Figure::AtOnce],
            Row::Neighbours | Row::Sporadic | Row::Frames | Row::FramesJoin => {
                &[Figure::P50, Figure::P99]
            }
            Row::Batch | Row::BatchSleep => &[Figure::P50, Figure::P99],
            Row::Backlog | Row::Http | Row::HttpBlocking => {
                &[Figure::Value, Figure::P50, Figure::P99]
            }
            Row::Ticks | Row::Ticks4 | Row::Ticks64 | Row::TicksBlocked => {
                &[Figure::Value, Figure::P50, Figure::P99]
            }
            Row::Urgent => &[Figure::P50, Figure::P99],
            Row::Stages | Row::Requests | Row::Polls => &[Figure::P50, Figure::P99],
            Row::Pair | Row::PairSame | Row::PairApart => &[Figure::P50, Figure::P90],
            Row::LoadOpen => &[Figure::P50, Figure::P99],
            Row::OpenLoop => &[Figure::P50, Figure::P90, Figure::P99, Figure::P999],
            _ => &[Figure::Value],
        }
    }

    /// How much work one measurement is, in tasks if nothing else is said. It takes the fast
    /// engines about 0.1 s, unless it is the row's definition.
    fn full_size(self) -> u64 {
        match self {
            // All of them are in memory at once.
            Row::Submit | Row::Multi | Row::Closures200 => 1_000_000,
            Row::Empty | Row::Fanout | Row::Handler => 2_000_000,
            Row::Spawn => 1_000_000,
            // The leaves: 20 levels of nodes are above them.
            Row::Tree => 1 << 20,
            Row::Wide => 200_000,
            Row::Roundtrip => 30_000,
            Row::ExecuteJoin => 10_000,
            // Pools.
            Row::Lifetime => 100,
            // Its size is the row's definition: all handles exist at once.
            Row::Bulk => 300_000,
            // 100 batches.
            Row::Collect => 10_000,
            Row::Bounded0 => 100_000,
            Row::Bounded100 => 300_000,
            Row::BoundedWork => 20_000,
            Row::Burst => 48 * 3_000,
            Row::Work1us => 200_000,
            Row::Work1ms => 300,
            Row::Yield => 20_000,
            // Messages each way, per pair.
            Row::Pingpong => 100_000,
            Row::Sleepers => 1_000_000,
            // Rounds.
            Row::SpawnLocal => 100,
            Row::SpawnAwait => 50,
            Row::BesideYields => 2,
            Row::BesideSpawns => 50,
            Row::Yield200 => 10,
            Row::Oneshots => 100,
            Row::Chain => 500,
            Row::MemoryTask | Row::MemoryFuture => 200_000,
            // Milliseconds.
            Row::Idle => 1_000,
            Row::Grow => ELASTIC_LIMIT as u64,
            Row::Grow512 => 512,
            Row::Grow2000 => 2_000,
            // If it has as many threads.
            Row::Fill => 2_000,
            Row::Grow6000 => 6_000,
            Row::Tiny => 10_000,
            Row::Mixed => 2_000,
            Row::Waves => 50,
            Row::Trickle => 167,
            Row::LoadCompute => 1_000,
            Row::LoadSleep | Row::LoadHalf => 2_000,
            // Tasks of a phase that compute; 20 times as many sleep.
            Row::LoadPhases => 250,
            Row::LoadWaits => 64,
            Row::LoadShort => 20,
            Row::LoadOpen => 1_250,
            Row::LoadReplies1000 => 1_024,
            Row::LoadLock | Row::LoadHalfLock | Row::LoadDisk | Row::LoadStages => 2_000,
            Row::LoadConnections | Row::LoadReplies | Row::LoadReplies100 => 2_000,
            // About the number of calls: the value of fib(30).
            Row::FibHandles | Row::FibScopes => 832_040,
            // Integers.
            Row::Quicksort => 2_000_000,
            // The leaves.
            Row::ScopeTree => 1 << 12,
            // Steps.
            Row::Chunks => 500,
            Row::Scope300k => 300_000,
            // A second, two at a time.
            Row::Complete => 1_000,
            Row::BlockingSleep => 10_000,
            Row::BlockingNothing => 100_000,
            // Pauses.
            Row::Neighbours | Row::Sporadic | Row::Pair => 1_000,
            Row::Frames | Row::FramesJoin | Row::Batch => 1_000,
            Row::BatchSleep => 100,
            // Each takes twice as long.
            Row::PairSame | Row::PairApart => 500,
            Row::Relay => 20_000,
            // Milliseconds.
            Row::OpenLoop => 1_000,
            Row::Backlog => 5_000,
            Row::Ticks | Row::Ticks4 | Row::Ticks64 | Row::TicksBlocked => 5_000,
            Row::Flood | Row::Tenants => 2_000,
            // Urgent closures.
            Row::Urgent => 500,
            // Calls.
            Row::Awaited1 => 20_000,
            Row::Awaited64 => 100_000,
            // Five rounds.
            Row::Gather => 4_000,
            // 40 and 20 rounds.
            Row::Batches1 | Row::Batches2 => 64_000,
            // Requests.
            Row::Http => 30_000,
            Row::HttpBlocking => 20_000,
            Row::Stages | Row::Requests => 10_000,
            Row::Polls => 1_500,
        }
    }

    pub(crate) fn size(self, scale: f64) -> u64 {
        let full = self.full_size();
        match self {
            // Its size is the row's definition.
            Row::Grow | Row::LoadWaits | Row::LoadShort => full,
            // More than that would not run at once.
            Row::Grow512 | Row::Grow2000 | Row::Grow6000 | Row::Fill => {
                scaled(full, scale.min(1.0))
            }
            _ => scaled(full, scale),
        }
    }

    pub(crate) fn unit(self, figure: Figure) -> Unit {
        match self {
            _ if figure == Figure::AtOnce => Unit::Futures,
            _ if figure.percentile().is_some() => Unit::Micros,
            Row::Backlog => Unit::Micros,
            _ if self.is_ticks() => Unit::Micros,
            Row::Flood => Unit::Takes,
            Row::Tenants => Unit::PerCent,
            Row::Yield | Row::Yield200 => Unit::NanosPerPoll,
            Row::Pingpong | Row::Oneshots => Unit::NanosPerMessage,
            Row::MemoryTask => Unit::BytesPerTask,
            Row::MemoryFuture => Unit::BytesPerFuture,
            Row::Idle => Unit::MicrosPerSecond,
            Row::Grow | Row::Grow512 | Row::Grow2000 | Row::Grow6000 => Unit::Millis,
            Row::Fill | Row::Tiny | Row::Mixed | Row::Waves => Unit::Millis,
            Row::FibHandles | Row::FibScopes | Row::Quicksort => Unit::Millis,
            Row::ScopeTree | Row::Chunks | Row::Scope300k => Unit::Millis,
            Row::Lifetime | Row::Complete | Row::BlockingSleep => Unit::Millis,
            Row::Trickle => Unit::Threads,
            _ if self.kind() == Kind::Loads => Unit::Millis,
            Row::Awaited1 | Row::Awaited64 | Row::Batches1 | Row::Batches2 | Row::Gather => {
                Unit::NanosPerCall
            }
            Row::Http | Row::HttpBlocking => Unit::NanosPerRequest,
            _ => Unit::NanosPerTask,
        }
    }

    pub(crate) fn target(
        self,
        setting: Setting,
        figure: Figure,
        ours: Engine,
        workers: usize,
    ) -> Target {
        let stalled = ours == Engine::ElastipoolStalled;
        let cpus = thread::available_parallelism().map_or(1, NonZero::get) as u64;
        match self {
            // For information.
            Row::Empty | Row::Roundtrip | Row::Sporadic | Row::Burst if setting.busy > 0 => {
                Target::NONE
            }
            // The bare channel is all that a submission needs.
            Row::Submit | Row::Multi => Target::ratio(0.9).and_floor(1.0),
            Row::Empty | Row::Fanout | Row::Handler | Row::Roundtrip => Target::ratio(0.6),
            Row::Tree | Row::Yield => Target::ratio(0.9),
            Row::Spawn | Row::Pingpong | Row::Burst | Row::Sleepers => Target::ratio(0.95),
            Row::Work1us | Row::Work1ms => Target::ratio(1.0),
            Row::MemoryTask | Row::MemoryFuture => Target::ratio(1.0),
            Row::SpawnLocal | Row::SpawnAwait | Row::BesideYields | Row::BesideSpawns => {
                Target::ratio(1.0)
            }
            Row::Yield200 | Row::Oneshots | Row::Chain => Target::ratio(1.0),
            Row::Batches1 | Row::Batches2 => Target::ratio(1.0),
            // The clock itself is read within a microsecond or so; a wake-up costs more.
            Row::Idle => Target::value(5.0),
            Row::Wide => Target::ratio(0.3),
            Row::ExecuteJoin => Target::ratio(0.9),
            Row::Bulk => Target::ratio(0.7),
            Row::Bounded0 => Target::floor(3.0),
            Row::Bounded100 => Target::floor(1.5),
            Row::BoundedWork => Target::NONE,
            Row::Grow | Row::Grow512 | Row::Grow2000 | Row::Grow6000 | Row::Fill => {
                Target::ratio(1.05)
            }
            Row::Tiny if stalled => Target::ratio(1.0).and_threads(4),
            Row::Tiny => Target::ratio(1.5).and_threads(16),
            Row::Mixed if stalled => Target::ratio(1.5),
            Row::Mixed => Target::ratio(1.0),
            Row::Waves => Target::ratio(1.05),
            Row::Trickle => Target::value(2.0),
            // The sizes that a user might have set.
            _ if self.kind() == Kind::Loads && ours != Engine::ElastipoolMeasured => Target::NONE,
            // Of the pool that finds its size, beside the best of them.
            Row::LoadCompute => Target::ratio(1.05).and_threads(cpus + 4),
            Row::LoadSleep => Target::ratio(1.2),
            Row::LoadHalf => Target::ratio(1.1),
            Row::LoadPhases => Target::ratio(1.05),
            Row::LoadWaits => Target::value(20.0),
            Row::LoadShort => Target::value(15.0),
            Row::LoadOpen => Target::ratio(2.0),
            Row::LoadLock => Target::ratio(1.05).and_threads(8 * cpus),
            Row::LoadHalfLock => Target::ratio(1.1).and_threads(8 * cpus),
            Row::LoadConnections => Target::ratio(1.1).and_threads(32 * cpus),
            Row::LoadDisk => Target::ratio(1.1).and_threads(32 * cpus).and_memory(100),
            Row::LoadReplies1000 | Row::LoadStages => Target::ratio(1.1),
            Row::LoadReplies => Target::ratio(2.0),
            Row::LoadReplies100 => Target::ratio(1.3),
            Row::FibHandles | Row::FibScopes => Target::ratio(4.0).and_threads(workers as u64 + 4),
            Row::Quicksort => Target::ratio(1.2),
            Row::ScopeTree | Row::Scope300k => Target::ratio(2.0),
            Row::Lifetime | Row::Chunks | Row::Closures200 => Target::ratio(1.0),
            Row::Complete if figure == Figure::AtOnce => Target::value(workers as f64),
            Row::Complete => Target::threads(workers as u64 + 2),
            // The workers, and as many as are replaced by default.
            Row::BlockingSleep => Target::threads(workers as u64 + 512),
            Row::BlockingNothing => Target::value(300.0).and_threads(4),
            Row::Neighbours if figure == Figure::P99 => Target::ratio(1.0).and_value(100.0),
            Row::Neighbours => Target::ratio(1.0),
            Row::Sporadic | Row::Frames | Row::FramesJoin => Target::ratio(1.1),
            Row::Batch | Row::BatchSleep => Target::ratio(1.0),
            Row::Relay | Row::Pair | Row::OpenLoop => Target::ratio(1.1),
            Row::PairSame | Row::PairApart => Target::ratio(1.3),
            Row::Collect | Row::Gather => Target::ratio(1.1),
            Row::Stages | Row::Requests | Row::Polls => Target::ratio(1.1),
            // The engine whose futures run late has more time for the closures.
            Row::Backlog if figure == Figure::Value => Target::NONE,
            Row::Backlog if ours == Engine::ElastipoolReserve && figure == Figure::P99 => {
                Target::ratio(1.5)
            }
            Row::TicksBlocked if figure == Figure::P99 => Target::value(5_000.0),
            _ if self.is_ticks() && figure == Figure::P99 => Target::value(1_000.0),
            _ if self.is_ticks() && figure == Figure::P50 => Target::value(100.0),
            Row::Ticks | Row::Ticks4 | Row::Ticks64 | Row::TicksBlocked => Target::ratio(1.03),
            // Until one of the running closures ends.
            Row::Backlog if figure == Figure::P99 => Target::value(11_000.0),
            Row::Backlog => Target::NONE,
            // Until one of the running closures ends.
            Row::Urgent if figure == Figure::P99 => Target::value(1_200.0),
            Row::Urgent => Target::NONE,
            // One take in 20 is for the others.
            Row::Flood => Target::value(19.0),
            Row::Tenants => Target::value(5.0),
            // Four clients on the server's CPUs: the value includes what they wait for each other.
            Row::Http | Row::HttpBlocking if figure != Figure::Value => Target::NONE,
            Row::Awaited1 | Row::Awaited64 | Row::Http | Row::HttpBlocking => Target::ratio(1.0),
        }
    }
}

/// At least 1.
fn scaled(number: u64, factor: f64) -> u64 {
    ((number as f64 * factor) as u64).max(1)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}
