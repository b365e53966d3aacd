//! One measurement, in a process of its own: what it does there, and how it is started.

use std::env;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use elastipool::Growth;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::engines::{
    AsyncExecutor, BLOCKING_LIMIT, Blocking, Engine, Executor, Floor, FuturesPool, Ours, Pool,
    Rayon, RustyPool, Threadpool, Tokio, TokioBlocking,
};
use crate::rows::elastic::{self, KEEP_ALIVE};
use crate::rows::{Kind, Row, Unit, closures, futures, resources};
use crate::system;

/// The delay of the pool that is slow to start threads.
const STALLED: Growth = Growth::Stalled(Duration::from_micros(100));

#[derive(Args, Clone, Copy)]
pub(crate) struct Measurement {
    #[arg(long)]
    pub(crate) row: Row,
    #[arg(long)]
    pub(crate) peer: Engine,
    #[arg(long)]
    pub(crate) workers: usize,
    #[arg(long)]
    pub(crate) scale: f64,
}

/// What one process measured.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(crate) struct Sample {
    /// In the row's unit.
    pub(crate) value: f64,
    /// The threads that the engine had, where this is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u64>,
    /// The most memory that was resident, in bytes.
    pub(crate) peak_memory: Option<u64>,
}

impl Measurement {
    /// Measures in this process, which must not have measured before.
    pub(crate) fn run(self) -> Result<Sample> {
        let (value, threads) = match self.row.kind() {
            Kind::Closures => (self.closures()?, None),
            Kind::Futures => (self.futures()?, None),
            Kind::Elastic => {
                let growth = self.elastic()?;
                let value = match self.row.unit() {
                    Unit::Threads => growth.threads as f64,
                    _ => growth.time.as_secs_f64() * 1e3,
                };
                (value, Some(growth.threads))
            }
        };
        Ok(Sample { value, threads, peak_memory: system::peak_memory()? })
    }

    fn closures(self) -> Result<f64> {
        match self.peer {
            Engine::Elastipool => self.on_pool(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_pool(RustyPool::fixed(self.workers)),
            Engine::Threadpool => self.on_pool(Threadpool::fixed(self.workers)),
            Engine::Rayon => self.on_pool(Rayon::fixed(self.workers)?),
            Engine::TokioBlocking => self.on_pool(TokioBlocking::fixed(self.workers)?),
            Engine::Blocking => self.on_pool(Blocking::limited(self.workers)?),
            Engine::Floor => self.on_pool(Floor::fixed(self.workers)),
            _ => self.impossible(),
        }
    }

    fn futures(self) -> Result<f64> {
        match self.peer {
            Engine::Elastipool => self.on_executor(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_executor(RustyPool::fixed(self.workers)),
            Engine::Tokio => self.on_executor(Tokio::fixed(self.workers)?),
            Engine::AsyncExecutor => self.on_executor(AsyncExecutor::fixed(self.workers)),
            Engine::FuturesPool => self.on_executor(FuturesPool::fixed(self.workers)?),
            _ => self.impossible(),
        }
    }

    fn elastic(self) -> Result<elastic::Growth> {
        let (row, limit, size) = (self.row, self.workers, self.size());
        let ours = |growth| Ours::elastic(limit, KEEP_ALIVE, growth);
        match self.peer {
            Engine::Elastipool => elastic::measure(row, ours(Growth::Eager), size),
            Engine::ElastipoolStalled => elastic::measure(row, ours(STALLED), size),
            Engine::RustyPool => elastic::measure(row, RustyPool::elastic(limit, KEEP_ALIVE), size),
            Engine::TokioBlocking => {
                elastic::measure(row, TokioBlocking::elastic(limit, KEEP_ALIVE)?, size)
            }
            Engine::Blocking => elastic::measure(row, Blocking::limited(limit)?, size),
            _ => self.impossible(),
        }
    }

    fn on_pool<P: Pool>(self, pool: &'static P) -> Result<f64> {
        match self.row {
            Row::MemoryTask => resources::queued_task(pool, self.workers, self.size()),
            Row::Idle => resources::idle(pool, self.workers, self.size()),
            row => closures::measure(row, pool, self.workers, self.size()),
        }
    }

    fn on_executor<E: Executor>(self, executor: &'static E) -> Result<f64> {
        match self.row {
            Row::MemoryFuture => resources::pending_future(executor, self.size()),
            row => futures::measure(row, executor, self.size()),
        }
    }

    fn size(self) -> u64 {
        self.row.size(self.scale)
    }

    fn impossible<T>(self) -> Result<T> {
        Err(format!("{} cannot do {}", self.peer, self.row).into())
    }

    /// Measures in a fresh process: no engine finds the memory, the threads or the caches as another left them.
    pub(crate) fn run_in_child(self) -> Result<Sample> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["run", "--row", &self.row.to_string(), "--peer", &self.peer.to_string()]);
        command.args(["--workers", &self.workers.to_string(), "--scale", &self.scale.to_string()]);
        command.env(BLOCKING_LIMIT, self.workers.to_string());
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("its process ended with {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
