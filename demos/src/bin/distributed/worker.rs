//! A worker process: reads jobs, runs them on a pool, and drains it before it leaves.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use elastipool::ThreadPool;
use redis::RedisResult;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Result;
use crate::acknowledge::{Held, acknowledge};
use crate::job::Work;
use crate::store::{Delivery, Outcome, Store};

#[derive(Args)]
pub(crate) struct Options {
    /// Jobs that run at the same time
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Jobs that wait in this process; while so many do, it reads no more
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Jobs that are read in one request
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Milliseconds after which a job of a dead process is claimed by another, and a failed job is
    /// tried again
    #[arg(long, default_value_t = 30_000)]
    min_idle: u64,
    /// A job that was delivered so often and is not done goes to the dead-letter stream
    #[arg(long, default_value_t = 5)]
    max_deliveries: usize,
    /// The name of this process in the consumer group [default: its process id]
    #[arg(long)]
    name: Option<String>,
    /// Leaves when each job is done or dead, instead of waiting for more
    #[arg(long)]
    until_empty: bool,
}

/// How long a process without jobs waits until it looks at its signals.
const TICK: Duration = Duration::from_millis(200);

type Acknowledger = JoinHandle<RedisResult<(usize, usize)>>;

/// Works until a signal arrives.
pub(crate) fn work(open: impl Fn() -> Result<Store>, options: &Options) -> Result<()> {
    if options.batch == 0 || options.min_idle < 10 || options.max_deliveries < 2 {
        return Err(
            "it takes a batch of 1, an idle time of 10 ms, and 2 deliveries at least".into()
        );
    }
    let is_stopping = stop_signal()?;
    let pool = ThreadPool::builder()
        .name("jobs")
        .core_size(1)
        .max_size(options.workers)
        .queue_capacity(options.queue)
        .try_build()?;
    let consumer = options.name.clone().unwrap_or_else(|| process::id().to_string());
    let held = Arc::new(Held::default());
    let (outcomes, settled) = mpsc::channel();
    let acknowledger = {
        let (store, consumer, held) = (open()?, consumer.clone(), Arc::clone(&held));
        let interval = Duration::from_millis(options.min_idle) / 3;
        thread::spawn(move || acknowledge(store, &consumer, &settled, &held, interval))
    };
    let mut reader = Reader { store: open()?, consumer, held, outcomes, pool, acknowledger };
    eprintln!("worker {}: started", reader.consumer);

    // If Redis fails here, the process ends at once. Its jobs stay pending, and another process
    // claims them.
    reader.read(options, &is_stopping)?;
    let Reader { consumer, outcomes, pool, acknowledger, .. } = reader;
    eprintln!("worker {consumer}: finishes {} jobs", pool.stats().in_flight());
    // Runs everything that was accepted. The tasks have the other senders.
    pool.shutdown_join();
    drop(outcomes);
    let (done, failed) = acknowledger.join().map_err(|_| "the acknowledging thread panicked")??;
    eprintln!("worker {consumer}: {done} jobs done, {failed} attempts failed");
    Ok(())
}

/// Returns a flag that SIGTERM and SIGINT set. A second signal ends the process.
fn stop_signal() -> Result<Arc<AtomicBool>> {
    let is_stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // In this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&is_stopping))?;
        flag::register(signal, Arc::clone(&is_stopping))?;
    }
    Ok(is_stopping)
}

/// The thread that reads jobs and submits them.
struct Reader {
    store: Store,
    consumer: String,
    held: Arc<Held>,
    outcomes: Sender<Outcome>,
    pool: ThreadPool,
    acknowledger: Acknowledger,
}

impl Reader {
    /// Reads until the flag is set.
    fn read(&mut self, options: &Options, is_stopping: &AtomicBool) -> RedisResult<()> {
        let claim_interval = Duration::from_millis(options.min_idle) / 4;
        let mut next_claim = Instant::now();
        while !is_stopping.load(Ordering::Relaxed) && !self.acknowledger.is_finished() {
            if Instant::now() >= next_claim {
                self.claim(options, is_stopping)?;
                next_claim = Instant::now() + claim_interval;
            }
            let wait = claim_interval.min(TICK);
            let deliveries = self.store.read(&self.consumer, options.batch, wait)?;
            if deliveries.is_empty() && options.until_empty && self.store.is_empty()? {
                break;
            }
            deliveries.into_iter().for_each(|delivery| self.submit(delivery));
        }
        Ok(())
    }

    /// Takes over jobs of processes that have died, and jobs that have failed.
    fn claim(&mut self, options: &Options, is_stopping: &AtomicBool) -> RedisResult<()> {
        let min_idle = Duration::from_millis(options.min_idle);
        for (id, times) in self.store.overdue(options.batch, min_idle)? {
            if is_stopping.load(Ordering::Relaxed) {
                break;
            }
            let Some(delivery) = self.store.claim(&self.consumer, &id, min_idle)? else { continue };
            if times >= options.max_deliveries {
                self.store.bury(delivery)?;
            } else if times + 1 == options.max_deliveries {
                // The last attempt. If this job ends the process, it takes no other with it. So a
                // job does not become dead because of the jobs beside it.
                self.settle_all();
                self.submit(delivery);
                self.settle_all();
            } else {
                self.submit(delivery);
            }
        }
        Ok(())
    }

    /// Waits until this process holds no job.
    fn settle_all(&self) {
        // If the other thread has ended, Redis has failed there.
        while !self.held.wait_until_empty(TICK) && !self.acknowledger.is_finished() {}
    }

    /// Submits a job. Waits while the queue is full: this is what keeps the process from reading
    /// more than it can do.
    fn submit(&self, Delivery { id, number, work }: Delivery) {
        // This process claims a job of its own if it was too slow to keep it.
        if !self.held.insert(&id) {
            return;
        }
        let outcomes = self.outcomes.clone();
        self.pool.execute(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work.parse().and_then(Work::run)));
            let result = result.unwrap_or_else(|payload| Err(panic_text(&*payload)));
            // If the receiver is gone, Redis has failed, and the job stays pending.
            let _ = outcomes.send(Outcome { id, number, result });
        });
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}
