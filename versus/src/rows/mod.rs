//! The rows: what is measured, with which engines, and what ours is to reach.

pub(crate) mod closures;
pub(crate) mod elastic;
pub(crate) mod futures;
pub(crate) mod resources;

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engines::Engine;

/// Workers of the row `idle`.
const IDLE_WORKERS: usize = 16;

/// Workers that the elastic engines may have.
const ELASTIC_LIMIT: usize = 64;

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    /// One producer, all workers blocked: the submission alone
    Submit,
    /// One producer, empty tasks, until all have run
    Empty,
    /// 11 producers, empty tasks, until all have run
    Multi,
    /// One task submits all others
    Fanout,
    /// Each task submits two, to a depth of 20
    Tree,
    /// A task, its result, the next task
    Roundtrip,
    /// Batches of 48 tasks of 256 nested calls, one after another
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
    /// What a queued task takes
    MemoryTask,
    /// What a pending future takes
    MemoryFuture,
    /// CPU time of 16 workers without work
    Idle,
    /// 64 tasks that block, until all have started
    Grow,
    /// 10,000 empty tasks at once
    Tiny,
    /// 2,000 tasks, of which each tenth blocks for 5 ms
    Mixed,
    /// The threads left after 16 tasks that block and 2 s of one empty task every 12 ms
    Trickle,
}

/// What a row needs of an engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Closures,
    Futures,
    /// Closures, of engines that start and end threads as needed.
    Elastic,
}

/// What is measured, per unit of work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    NanosPerTask,
    NanosPerPoll,
    NanosPerMessage,
    BytesPerTask,
    BytesPerFuture,
    MicrosPerSecond,
    Millis,
    Threads,
}

/// What ours is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// At most this, times the best of those that it is compared with.
    Ratio(f64),
    /// At most this.
    Value(f64),
    /// At most so many threads, and the ratio.
    Threads(u64, f64),
}

const CLOSURES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Threadpool,
    Engine::Rayon,
    Engine::TokioBlocking,
    Engine::Blocking,
    Engine::Floor,
];

const FUTURES: &[Engine] = &[
    Engine::Elastipool,
    Engine::RustyPool,
    Engine::Tokio,
    Engine::AsyncExecutor,
    Engine::FuturesPool,
];

const ELASTIC: &[Engine] = &[
    Engine::Elastipool,
    Engine::ElastipoolStalled,
    Engine::RustyPool,
    Engine::TokioBlocking,
    Engine::Blocking,
];

impl Row {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Row::Submit
            | Row::Empty
            | Row::Multi
            | Row::Fanout
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
            Row::Grow | Row::Tiny | Row::Mixed | Row::Trickle => Kind::Elastic,
        }
    }

    /// Whether it is about the number of workers.
    pub(crate) fn is_elastic(self) -> bool {
        self.kind() == Kind::Elastic
    }

    /// All engines that can do it.
    pub(crate) fn engines(self) -> &'static [Engine] {
        match self.kind() {
            Kind::Closures => CLOSURES,
            Kind::Futures => FUTURES,
            Kind::Elastic => ELASTIC,
        }
    }

    /// The peers of which the best is what ours is compared with: not always all, since a target may be about those
    /// that give the same promise.
    pub(crate) fn rivals(self) -> &'static [Engine] {
        match self {
            // Fair ones. The pool of futures polls a future that yields again at once, and lets the rest wait.
            Row::Yield => &[Engine::Tokio, Engine::AsyncExecutor],
            Row::Pingpong => &[Engine::Tokio],
            Row::MemoryTask | Row::Tiny => &[Engine::RustyPool],
            Row::MemoryFuture => &[Engine::RustyPool, Engine::AsyncExecutor],
            _ => self.engines(),
        }
    }

    /// For how many workers it is measured, of those that were asked for.
    pub(crate) fn workers(self, asked: &[usize]) -> Vec<usize> {
        match self {
            Row::Idle => vec![IDLE_WORKERS],
            // A byte is a byte, however many workers do not run the task.
            Row::MemoryTask | Row::MemoryFuture => asked.iter().copied().take(1).collect(),
            _ if self.is_elastic() => vec![ELASTIC_LIMIT],
            _ => asked.to_vec(),
        }
    }

    /// How much work one measurement is, in tasks if nothing else is said. It takes the fast engines about 0.1 s, unless
    /// it is the row's definition.
    fn full_size(self) -> u64 {
        match self {
            // All of them are in memory at once.
            Row::Submit | Row::Multi => 1_000_000,
            Row::Empty | Row::Fanout | Row::Handler => 2_000_000,
            Row::Spawn => 1_000_000,
            // The leaves: 20 levels of nodes are above them.
            Row::Tree => 1 << 20,
            Row::Roundtrip => 30_000,
            Row::Burst => 48 * 3_000,
            Row::Work1us => 200_000,
            Row::Work1ms => 300,
            Row::Yield => 20_000,
            // Messages each way, per pair.
            Row::Pingpong => 100_000,
            Row::Sleepers => 1_000_000,
            Row::MemoryTask | Row::MemoryFuture => 200_000,
            // Milliseconds.
            Row::Idle => 1_000,
            Row::Grow => ELASTIC_LIMIT as u64,
            Row::Tiny => 10_000,
            Row::Mixed => 2_000,
            Row::Trickle => 167,
        }
    }

    pub(crate) fn size(self, scale: f64) -> u64 {
        let full = self.full_size();
        match self {
            // Its size is the row's definition.
            Row::Grow => full,
            _ => ((full as f64 * scale) as u64).max(1),
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Row::Yield => Unit::NanosPerPoll,
            Row::Pingpong => Unit::NanosPerMessage,
            Row::MemoryTask => Unit::BytesPerTask,
            Row::MemoryFuture => Unit::BytesPerFuture,
            Row::Idle => Unit::MicrosPerSecond,
            Row::Grow | Row::Tiny | Row::Mixed => Unit::Millis,
            Row::Trickle => Unit::Threads,
            _ => Unit::NanosPerTask,
        }
    }

    pub(crate) fn target(self, ours: Engine) -> Target {
        let stalled = ours == Engine::ElastipoolStalled;
        match self {
            Row::Submit | Row::Burst | Row::Yield | Row::Sleepers => Target::Ratio(0.9),
            Row::Empty | Row::Multi | Row::Fanout | Row::Tree | Row::Handler => Target::Ratio(0.6),
            Row::Roundtrip => Target::Ratio(0.5),
            Row::Spawn => Target::Ratio(0.7),
            Row::Work1us | Row::Work1ms | Row::Pingpong => Target::Ratio(1.0),
            Row::MemoryTask | Row::MemoryFuture => Target::Ratio(1.0),
            // The clock itself is read within a microsecond or so; a wake-up costs more.
            Row::Idle => Target::Value(5.0),
            Row::Grow => Target::Ratio(1.1),
            Row::Tiny if stalled => Target::Threads(4, 1.0),
            Row::Tiny => Target::Threads(16, 1.5),
            Row::Mixed if stalled => Target::Ratio(1.5),
            Row::Mixed => Target::Ratio(1.0),
            Row::Trickle => Target::Value(2.0),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::NanosPerTask => "ns/task",
            Unit::NanosPerPoll => "ns/poll",
            Unit::NanosPerMessage => "ns/message",
            Unit::BytesPerTask => "bytes/task",
            Unit::BytesPerFuture => "bytes/future",
            Unit::MicrosPerSecond => "us CPU/s",
            Unit::Millis => "ms",
            Unit::Threads => "threads",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Ratio(ratio) => write!(f, "x {ratio:.1}"),
            Target::Value(value) => write!(f, "{value:.0}"),
            Target::Threads(threads, ratio) => write!(f, "x {ratio:.1}, {threads} threads"),
        }
    }
}
