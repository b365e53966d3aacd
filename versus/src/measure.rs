//! One measurement, in a process of its own: what it does there, and how it is started.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use async_io::Timer;
use clap::Args;
use elastipool::{Growth, Priority};
use futures_lite::future::block_on;
use serde::{Deserialize, Serialize};

#[cfg(feature = "forte")]
use crate::engines::Forte;
use crate::engines::{
    Affinitypool, AsyncExecutor, BLOCKING_LIMIT, Blocking, Calls, Engine, Executor, Executors,
    Floor, FutureHandles, FuturesPool, Handles, Ours, Pool, Qubit, QubitElastic, Rayon, RustyPool,
    Smolscale, Threadpool, Tokio, TokioBlocking, TokioBoth,
};
use crate::quantile::quantile;
use crate::rows::elastic::{self, KEEP_ALIVE};
use crate::rows::http::{self, Served};
use crate::rows::{
    Figure, Kind, Row, Setting, TOKIO_BLOCKING_THREADS, Unit, awaited, backlog, closures, futures,
    latency, limits, loads, overload, relay, resources, scheduler, submitters, views, waiting,
};
use crate::{Result, child, system};

/// The delay of the pool that is slow to start threads.
const STALLED: Growth = Growth::Stalled(Duration::from_micros(100));

/// A sample with a larger part of stolen CPU time is measured again. A quiet machine shows less
/// than 1 %; bursts of stolen time take 10 % and more, and multiply the time of a wake-up.
const MAX_STOLEN: f64 = 0.02;

/// How often a sample is measured before the least disturbed one is kept.
const ATTEMPTS: u32 = 5;

/// The pause before a disturbed sample is measured again: bursts of stolen time last about a
/// second.
const RECOVERY: Duration = Duration::from_secs(1);

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
    #[command(flatten)]
    pub(crate) setting: Setting,
}

/// What one process measured.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Sample {
    /// All figures of the row.
    #[serde(flatten)]
    pub(crate) figures: BTreeMap<Figure, f64>,
    /// The threads that the engine had, where this is not given: in rows about waiting and limits
    /// the most at any moment, in `blocking-nothing` all that it ever started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u64>,
    /// The most memory that was resident, in bytes.
    pub(crate) peak_memory: Option<u64>,
    /// The part of the machine's CPU time that a hypervisor gave to other guests meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stolen: Option<f64>,
}

impl Sample {
    fn of(figures: impl IntoIterator<Item = (Figure, f64)>, threads: Option<u64>) -> Self {
        Sample { figures: figures.into_iter().collect(), threads, peak_memory: None, stolen: None }
    }

    /// Whether so much CPU time was stolen meanwhile that the figures are about the neighbours.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.stolen.is_some_and(|stolen| stolen > MAX_STOLEN)
    }

    fn value(value: f64) -> Self {
        Sample::of([(Figure::Value, value)], None)
    }

    fn with_threads(value: f64, threads: u64) -> Self {
        Sample::of([(Figure::Value, value)], Some(threads))
    }
}

impl Measurement {
    /// Measures in this process, which must not have measured before.
    pub(crate) fn run(self) -> Result<Sample> {
        let sample = match self.row.kind() {
            Kind::Closures => Sample::value(self.closures()?),
            Kind::Futures | Kind::Scheduler => Sample::value(self.futures()?),
            Kind::Submitters => Sample::value(self.submitters()?),
            Kind::Pools => Sample::value(self.pools()?),
            Kind::Elastic => self.elastic()?,
            Kind::Loads => self.loads()?,
            Kind::Waiting => self.waiting()?,
            Kind::Limits => self.limits()?,
            Kind::Latency => self.latency()?,
            Kind::Both => self.both()?,
            Kind::Requests => self.requests()?,
            Kind::Views => self.views()?,
            Kind::Awaited => self.awaited()?,
            Kind::Server => self.served(self.server()?, None),
            Kind::BlockingServer => self.blocking_server()?,
        };
        Ok(Sample { peak_memory: system::peak_memory()?, ..sample })
    }

    fn closures(self) -> Result<f64> {
        match self.peer {
            Engine::Elastipool => self.on_pool(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_pool(RustyPool::fixed(self.workers)),
            Engine::Threadpool => self.on_pool(Threadpool::fixed(self.workers)),
            Engine::Qubit => self.on_pool(Qubit::fixed(self.workers)?),
            Engine::Rayon => self.on_pool(Rayon::fixed(self.workers)?),
            Engine::TokioBlocking | Engine::TokioSharded => {
                self.on_pool(TokioBlocking::fixed(self.workers)?)
            }
            Engine::Blocking => self.on_pool(Blocking::limited(self.workers)?),
            Engine::Executors => self.on_pool(Executors::fixed(self.workers)),
            Engine::Affinitypool => self.on_pool(Affinitypool::fixed(self.workers)),
            Engine::Floor => self.on_pool(Floor::fixed(self.workers)),
            #[cfg(feature = "forte")]
            Engine::Forte => self.on_pool(Forte::fixed(self.workers)?),
            _ => self.impossible(),
        }
    }

    fn futures(self) -> Result<f64> {
        match self.peer {
            Engine::Elastipool => self.on_executor(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_executor(RustyPool::fixed(self.workers)),
            Engine::Tokio => self.on_executor(Tokio::fixed(self.workers)?),
            Engine::AsyncExecutor => self.on_executor(AsyncExecutor::fixed(self.workers)),
            Engine::Smolscale => self.on_executor(Smolscale::start()?),
            Engine::FuturesPool => self.on_executor(FuturesPool::fixed(self.workers)?),
            _ => self.impossible(),
        }
    }

    fn submitters(self) -> Result<f64> {
        match self.row {
            Row::ExecuteJoin => self.execute_join(),
            Row::Lifetime => self.lifetime(),
            Row::Bulk | Row::Collect => self.handles(),
            Row::Bounded0 => self.bounded(0),
            Row::Bounded100 => self.bounded(100),
            Row::BoundedWork => self.bounded(10),
            _ => self.impossible(),
        }
    }

    fn execute_join(self) -> Result<f64> {
        let (workers, tasks) = (self.workers, self.size());
        match self.peer {
            Engine::Elastipool => submitters::joined(Ours::fixed(workers), workers, tasks),
            Engine::RustyPool => submitters::joined(RustyPool::fixed(workers), workers, tasks),
            Engine::Threadpool => submitters::joined(Threadpool::fixed(workers), workers, tasks),
            Engine::Qubit => submitters::joined(Qubit::fixed(workers)?, workers, tasks),
            _ => self.impossible(),
        }
    }

    fn lifetime(self) -> Result<f64> {
        let (workers, pools) = (self.workers, self.size());
        match self.peer {
            Engine::Elastipool => submitters::lifetime::<Ours>(workers, pools),
            Engine::RustyPool => submitters::lifetime::<RustyPool>(workers, pools),
            Engine::Threadpool => submitters::lifetime::<Threadpool>(workers, pools),
            Engine::Qubit => submitters::lifetime::<Qubit>(workers, pools),
            _ => self.impossible(),
        }
    }

    fn handles(self) -> Result<f64> {
        match self.peer {
            Engine::Elastipool => self.on_handles(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_handles(RustyPool::fixed(self.workers)),
            Engine::Qubit => self.on_handles(Qubit::fixed(self.workers)?),
            Engine::TokioBlocking | Engine::TokioSharded => {
                self.on_handles(TokioBlocking::fixed(self.workers)?)
            }
            Engine::Blocking => self.on_handles(Blocking::limited(self.workers)?),
            Engine::Affinitypool => self.on_handles(Affinitypool::fixed(self.workers)),
            Engine::Floor => self.on_handles(Floor::fixed(self.workers)),
            _ => self.impossible(),
        }
    }

    fn on_handles<H: Handles>(self, pool: &'static H) -> Result<f64> {
        match self.row {
            Row::Bulk => submitters::bulk(pool, self.workers, self.size()),
            _ => submitters::collect(pool, self.workers, self.size()),
        }
    }

    fn bounded(self, capacity: usize) -> Result<f64> {
        let (workers, tasks) = (self.workers, self.size());
        let producers = self.setting.producers.ok_or("the row needs a number of producers")?;
        let setting = (self.row, workers, producers, tasks);
        match self.peer {
            Engine::Elastipool => submitters::bounded(Ours::bounded(workers, capacity), setting),
            Engine::Floor => submitters::bounded(Floor::bounded(workers, capacity), setting),
            _ => self.impossible(),
        }
    }

    fn elastic(self) -> Result<Sample> {
        let (row, limit, size) = (self.row, self.workers, self.size());
        let ours = |growth| Ours::elastic(limit, KEEP_ALIVE, growth);
        let tasks = size.min(limit as u64);
        let growth = match self.peer {
            Engine::Elastipool if row == Row::Fill => {
                elastic::measure(row, Ours::between(limit, limit), tasks)
            }
            Engine::RustyPool if row == Row::Fill => {
                elastic::measure(row, RustyPool::between(limit, limit), tasks)
            }
            Engine::Elastipool => elastic::measure(row, ours(Growth::Eager), size),
            Engine::ElastipoolStalled => elastic::measure(row, ours(STALLED), size),
            Engine::RustyPool => elastic::measure(row, RustyPool::elastic(limit, KEEP_ALIVE), size),
            Engine::TokioBlocking | Engine::TokioSharded => {
                elastic::measure(row, TokioBlocking::elastic(limit, KEEP_ALIVE)?, size)
            }
            Engine::Qubit => elastic::measure(row, QubitElastic::new(limit, KEEP_ALIVE)?, size),
            Engine::Blocking => elastic::measure(row, Blocking::limited(limit)?, size),
            _ => self.impossible(),
        }?;
        let value = match row.unit(Figure::Value) {
            Unit::Threads => growth.threads as f64,
            _ => millis(growth.time),
        };
        Ok(Sample::with_threads(value, growth.threads))
    }

    fn loads(self) -> Result<Sample> {
        let (row, workers, size) = (self.row, self.workers, self.size());
        let core = workers.min(2);
        let (mut values, threads) = match self.peer {
            Engine::ElastipoolMeasured => loads::measure(row, Ours::measured(), size),
            Engine::Elastipool => loads::measure(row, Ours::between(core, workers), size),
            Engine::RustyPool => loads::measure(row, RustyPool::between(core, workers), size),
            Engine::TokioBlocking => loads::measure(row, TokioBlocking::fixed(workers)?, size),
            _ => self.impossible(),
        }?;
        match values.as_mut_slice() {
            [value] => Ok(Sample::with_threads(*value, threads)),
            latencies => Ok(Sample::of(self.percentiles(latencies), Some(threads))),
        }
    }

    fn waiting(self) -> Result<Sample> {
        let (row, workers, size) = (self.row, self.workers, self.size());
        let threads = PeerThreads::before()?;
        let value = match self.peer {
            Engine::Elastipool => {
                let ours = Ours::fixed(workers);
                let value = match row {
                    Row::FibHandles => waiting::by_forks(ours, size),
                    _ => waiting::by_scopes(row, ours, size),
                }?;
                return Ok(Sample::with_threads(value, ours.peak_threads()));
            }
            Engine::RayonJoin => waiting::by_forks(Rayon::fixed(workers)?, size),
            Engine::RayonScope => waiting::by_scopes(row, Rayon::fixed(workers)?, size),
            Engine::RustyPool => waiting::by_join(RustyPool::fixed(workers), size),
            #[cfg(feature = "forte")]
            Engine::ForteJoin => waiting::by_forks(Forte::fixed(workers)?, size),
            #[cfg(feature = "forte")]
            Engine::ForteScope => waiting::by_scopes(row, Forte::fixed(workers)?, size),
            _ => self.impossible(),
        }?;
        Ok(Sample::with_threads(value, threads.started()?))
    }

    fn limits(self) -> Result<Sample> {
        match self.row {
            Row::Complete => self.complete(),
            Row::BlockingSleep => self.blocking_sleep(),
            Row::BlockingNothing => self.blocking_nothing(),
            _ => self.impossible(),
        }
    }

    fn complete(self) -> Result<Sample> {
        // The timers have a thread, which is not the engine's.
        block_on(Timer::after(Duration::from_millis(1)));
        let (workers, size) = (self.workers, self.size());
        let threads = PeerThreads::before()?;
        let ((time, at_once), threads) = match self.peer {
            Engine::Elastipool => {
                let ours = Ours::fixed(workers);
                (limits::complete(ours, size)?, ours.peak_threads())
            }
            Engine::RustyPool => {
                (limits::complete(RustyPool::fixed(workers), size)?, threads.started()?)
            }
            _ => self.impossible()?,
        };
        let figures = [(Figure::Value, millis(time)), (Figure::AtOnce, at_once as f64)];
        Ok(Sample::of(figures, Some(threads)))
    }

    fn blocking_sleep(self) -> Result<Sample> {
        let threads = PeerThreads::before()?;
        let (time, threads) = match self.peer {
            Engine::Elastipool => {
                let ours = Ours::fixed(self.workers);
                (limits::sleeps(ours, self.size())?, ours.peak_threads())
            }
            Engine::TokioBlocking | Engine::TokioSharded => {
                let tokio = TokioBlocking::fixed(TOKIO_BLOCKING_THREADS)?;
                (limits::sleeps(tokio, self.size())?, threads.started()?)
            }
            _ => self.impossible()?,
        };
        Ok(Sample::with_threads(millis(time), threads))
    }

    fn blocking_nothing(self) -> Result<Sample> {
        let threads = PeerThreads::before()?;
        let (nanos, threads) = match self.peer {
            Engine::Elastipool => {
                let ours = Ours::fixed(self.workers);
                (limits::nothing(ours, self.size())?, ours.threads_started())
            }
            Engine::TokioBlockInPlace => {
                (limits::nothing(Tokio::fixed(self.workers)?, self.size())?, threads.started()?)
            }
            _ => self.impossible()?,
        };
        Ok(Sample::with_threads(nanos, threads))
    }

    fn latency(self) -> Result<Sample> {
        let mut latencies = match self.peer {
            _ if self.row == Row::FramesJoin => self.joined_frames(),
            Engine::Elastipool => self.latencies(Ours::fixed(self.workers)),
            Engine::RustyPool => self.latencies(RustyPool::fixed(self.workers)),
            Engine::Threadpool => self.latencies(Threadpool::fixed(self.workers)),
            Engine::Qubit => self.latencies(Qubit::fixed(self.workers)?),
            Engine::Rayon => self.latencies(Rayon::fixed(self.workers)?),
            Engine::Tokio => self.latencies(Tokio::fixed(self.workers)?),
            Engine::TokioBlocking | Engine::TokioSharded => {
                self.latencies(TokioBlocking::fixed(self.workers)?)
            }
            _ => self.impossible(),
        }?;
        Ok(Sample::of(self.percentiles(&mut latencies), None))
    }

    fn joined_frames(self) -> Result<Vec<f64>> {
        let (workers, frames) = (self.workers, self.size());
        match self.peer {
            Engine::Elastipool => latency::measure_joined(Ours::fixed(workers), workers, frames),
            Engine::RustyPool => {
                latency::measure_joined(RustyPool::fixed(workers), workers, frames)
            }
            Engine::Qubit => latency::measure_joined(Qubit::fixed(workers)?, workers, frames),
            Engine::Threadpool => {
                latency::measure_joined(Threadpool::fixed(workers), workers, frames)
            }
            _ => self.impossible(),
        }
    }

    fn pools(self) -> Result<f64> {
        let workers = self.workers;
        match self.peer {
            Engine::Elastipool => self.relay(|| Ok(Ours::fixed(workers))),
            Engine::RustyPool => self.relay(|| Ok(RustyPool::fixed(workers))),
            Engine::Threadpool => self.relay(|| Ok(Threadpool::fixed(workers))),
            Engine::Qubit => self.relay(|| Qubit::fixed(workers)),
            Engine::Rayon => self.relay(|| Rayon::fixed(workers)),
            Engine::TokioBlocking | Engine::TokioSharded => {
                self.relay(|| TokioBlocking::fixed(workers))
            }
            _ => self.impossible(),
        }
    }

    fn relay<P: Pool>(self, pool: impl Fn() -> Result<&'static P>) -> Result<f64> {
        let pools = (0..relay::POOLS).map(|_| pool()).collect::<Result<Vec<_>>>()?;
        relay::measure(pools.leak(), self.workers, self.size())
    }

    fn percentiles(self, latencies: &mut [f64]) -> Vec<(Figure, f64)> {
        latencies.sort_unstable_by(f64::total_cmp);
        let figure = |figure: Figure| Some((figure, quantile(latencies, figure.percentile()?)?));
        self.row.figures().iter().copied().filter_map(figure).collect()
    }

    fn both(self) -> Result<Sample> {
        let (workers, size) = (self.workers, self.size());
        let (futures, has_blocking) = match self.row {
            Row::Ticks4 => (4, false),
            Row::Ticks64 => (64, false),
            Row::TicksBlocked => (63, true),
            _ => (1, false),
        };
        let (mut lateness, value) = match self.peer {
            Engine::Elastipool => {
                let ours = Ours::fixed(workers);
                backlog::measure(ours, ours, workers, futures, has_blocking, size)
            }
            Engine::ElastipoolMeasured => {
                let ours = Ours::measured();
                backlog::measure(ours, ours, workers, futures, has_blocking, size)
            }
            Engine::ElastipoolReserve => {
                let (ours, view) = Ours::with_reserve(workers + 1);
                backlog::measure(ours, view, workers, futures, has_blocking, size)
            }
            Engine::ElastipoolTwo => {
                let executor = Ours::fixed(1);
                let pool = Ours::fixed(workers);
                backlog::measure(pool, executor, workers, futures, has_blocking, size)
            }
            Engine::RustyPool => {
                let pool = RustyPool::fixed(workers);
                backlog::measure(pool, pool, workers, futures, has_blocking, size)
            }
            Engine::TokioBoth => {
                let tokio = TokioBoth::fixed(workers)?;
                backlog::measure(tokio, tokio, workers, futures, has_blocking, size)
            }
            _ => self.impossible(),
        }?;
        let mut figures = self.percentiles(&mut lateness);
        figures.push((Figure::Value, value));
        Ok(Sample::of(figures, None))
    }

    fn requests(self) -> Result<Sample> {
        match self.peer {
            Engine::Elastipool => self.on_both(Ours::fixed(self.workers)),
            Engine::RustyPool => self.on_both(RustyPool::fixed(self.workers)),
            Engine::TokioBoth => {
                // As many threads for the future as a caller has.
                self.on_both(Tokio::with_blocking(awaited::CALLER_THREADS, self.workers)?)
            }
            _ => self.impossible(),
        }
    }

    fn on_both<P: Calls + Executor>(self, pool: &'static P) -> Result<Sample> {
        let mut latencies = match self.row {
            Row::Requests => overload::awaited(pool, self.size()),
            Row::Polls => overload::polls(pool, self.size()),
            row => return Ok(Sample::value(awaited::measure(row, pool, pool, self.size())?)),
        }?;
        Ok(Sample::of(self.percentiles(&mut latencies), None))
    }

    fn views(self) -> Result<Sample> {
        let (workers, size) = (self.workers, self.size());
        let ours = Ours::fixed(workers);
        let high = || ours.view_of_priority(Priority::High);
        let low = || ours.view_of_priority(Priority::Low);
        match self.row {
            Row::Urgent => {
                let mut latencies = views::urgent(high(), low(), workers, size)?;
                Ok(Sample::of(self.percentiles(&mut latencies), None))
            }
            Row::Flood => Ok(Sample::value(views::ratio(high(), low(), workers, size)?)),
            _ => {
                let weight = self.setting.weight.ok_or("the row needs a weight")?;
                let (many, few) = (ours.view_of_weight(weight as usize), ours.view_of_weight(1));
                let ratio = views::ratio(many, few, workers, size)?;
                // Of all takes.
                let per_cent = |ratio: f64| 100.0 * ratio / (1.0 + ratio);
                Ok(Sample::value((per_cent(ratio) - per_cent(weight as f64)).abs()))
            }
        }
    }

    fn latencies<P: Pool>(self, pool: &'static P) -> Result<Vec<f64>> {
        if self.row == Row::Stages {
            return overload::stages(pool, self.workers, self.size());
        }
        latency::measure(self.row, self.setting, pool, self.workers, self.size())
    }

    fn awaited(self) -> Result<Sample> {
        let (core, limit) = (awaited::CORE, self.workers);
        let callers = Tokio::with_blocking(awaited::CALLER_THREADS, limit)?;
        // The callers' threads are not the engine's.
        let threads = PeerThreads::before()?;
        let nanos = match self.peer {
            Engine::Elastipool => self.calls(Ours::between(core, limit), callers),
            Engine::RustyPool => self.calls(RustyPool::between(core, limit), callers),
            Engine::Threadpool => self.calls(Threadpool::fixed(limit), callers),
            Engine::TokioBlocking | Engine::TokioSharded => self.calls(callers, callers),
            Engine::Blocking => self.calls(Blocking::limited(limit)?, callers),
            Engine::Affinitypool => self.calls(Affinitypool::fixed(limit), callers),
            _ => self.impossible(),
        }?;
        Ok(Sample::with_threads(nanos, threads.started()?))
    }

    fn calls<C: Calls>(self, pool: &'static C, callers: &'static Tokio) -> Result<f64> {
        awaited::measure(self.row, pool, callers, self.size())
    }

    fn server(self) -> Result<Served> {
        match self.peer {
            Engine::Elastipool => http::on_async_io(Ours::fixed(self.workers), self.size()),
            Engine::ElastipoolTokioIo => {
                http::on_tokio_io(Ours::with_tokio_io(self.workers)?, self.size())
            }
            Engine::Tokio => http::on_tokio_io(Tokio::with_io(self.workers)?, self.size()),
            Engine::AsyncExecutor => {
                http::on_async_io(AsyncExecutor::with_io(self.workers), self.size())
            }
            _ => self.impossible(),
        }
    }

    fn blocking_server(self) -> Result<Sample> {
        let (core, limit, size) = (awaited::CORE, self.workers, self.size());
        let tokio = Tokio::with_io_and_blocking(awaited::CALLER_THREADS, limit)?;
        // The runtime's threads and the clients' are not the engine's.
        let threads = PeerThreads::before()?;
        let served = match self.peer {
            Engine::Elastipool => http::blocking_on_tokio(tokio, Ours::between(core, limit), size),
            Engine::RustyPool => {
                http::blocking_on_tokio(tokio, RustyPool::between(core, limit), size)
            }
            Engine::Threadpool => http::blocking_on_tokio(tokio, Threadpool::fixed(limit), size),
            Engine::TokioBlocking | Engine::TokioSharded => {
                http::blocking_on_tokio(tokio, tokio, size)
            }
            Engine::Blocking => http::blocking_on_tokio(tokio, Blocking::limited(limit)?, size),
            _ => self.impossible(),
        }?;
        Ok(self.served(served, Some(threads.started()?)))
    }

    fn served(self, mut served: Served, threads: Option<u64>) -> Sample {
        let mut figures = self.percentiles(&mut served.latencies);
        figures.push((Figure::Value, served.nanos_per_request));
        Sample::of(figures, threads)
    }

    fn on_pool<P: Pool>(self, pool: &'static P) -> Result<f64> {
        match self.row {
            Row::MemoryTask => resources::queued_task(pool, self.workers, self.size()),
            Row::Idle => resources::idle(pool, self.workers, self.size()),
            row => closures::measure(row, self.setting, pool, self.workers, self.size()),
        }
    }

    fn on_executor<E: FutureHandles>(self, executor: &'static E) -> Result<f64> {
        match self.row {
            Row::MemoryFuture => resources::pending_future(executor, self.size()),
            row if row.kind() == Kind::Scheduler => scheduler::measure(row, executor, self.size()),
            row => futures::measure(row, executor, self.size()),
        }
    }

    fn size(self) -> u64 {
        self.row.size(self.scale)
    }

    fn impossible<T>(self) -> Result<T> {
        Err(format!("{} cannot do {}", self.peer, self.row).into())
    }

    /// Measures in a fresh process of a versus program, again if too much CPU time was stolen
    /// meanwhile.
    ///
    /// Returns the sample with the least stolen time. A process that takes longer than `limit` is
    /// killed.
    pub(crate) fn run_undisturbed(self, program: &Path, limit: Duration) -> Result<Sample> {
        let mut best = self.run_in_child(program, limit)?;
        for _ in 1..ATTEMPTS {
            if !best.is_disturbed() {
                break;
            }
            thread::sleep(RECOVERY);
            let sample = self.run_in_child(program, limit)?;
            if sample.stolen < best.stolen {
                best = sample;
            }
        }
        Ok(best)
    }

    /// Measures in a fresh process: no engine finds the memory, the threads or the caches as
    /// another left them.
    fn run_in_child(self, program: &Path, limit: Duration) -> Result<Sample> {
        let stolen = StolenTime::start()?;
        let output = self.output_of(&mut Command::new(program), limit)?;
        let stolen = stolen.fraction()?;
        Ok(Sample { stolen, ..serde_json::from_slice(&output)? })
    }

    /// Runs a versus program, perhaps by way of another program that is told to run it, and returns
    /// what it printed.
    pub(crate) fn output_of(self, command: &mut Command, limit: Duration) -> Result<Vec<u8>> {
        command.args(["run", "--row", &self.row.to_string(), "--peer", &self.peer.to_string()]);
        command.args(["--workers", &self.workers.to_string(), "--scale", &self.scale.to_string()]);
        command.args(self.setting.args());
        command.env(BLOCKING_LIMIT, self.workers.to_string());
        command.envs(self.peer.environment());
        child::output(command, limit)
    }
}

/// Measures how much of the machine's CPU time a hypervisor gives to other guests.
struct StolenTime {
    start: Instant,
    before: Option<Duration>,
}

impl StolenTime {
    fn start() -> Result<Self> {
        Ok(StolenTime { before: system::stolen_time()?, start: Instant::now() })
    }

    /// `None` where the system does not tell.
    fn fraction(&self) -> Result<Option<f64>> {
        let cpus = thread::available_parallelism()?.get();
        let passed = self.start.elapsed().as_secs_f64() * cpus as f64;
        let stolen = system::stolen_time()?.zip(self.before);
        Ok(stolen.map(|(after, before)| after.saturating_sub(before).as_secs_f64() / passed))
    }
}

/// Counts the threads of a peer, which end none in the rows that ask.
struct PeerThreads(u64);

impl PeerThreads {
    /// Before the peer has any.
    fn before() -> Result<Self> {
        Ok(PeerThreads(system::threads()?))
    }

    fn started(&self) -> Result<u64> {
        Ok(system::threads()?.saturating_sub(self.0))
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
