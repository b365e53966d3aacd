//! Jobs for many processes: each runs the jobs of a Redis stream on a pool of its own.
//!
//! ```text
//! cargo run --release -p demos --bin distributed -- produce --jobs 1000 --work sleep:20
//! cargo run --release -p demos --bin distributed -- work       # in as many terminals as you like
//! cargo run --release -p demos --bin distributed -- report
//! cargo run --release -p demos --bin distributed -- bench      # throughput with 1, 2 and 4 processes
//! ```
//!
//! It needs a Redis server (6.2 or newer). It shows
//! - a bounded queue as backpressure: a process reads no more jobs while its queue is full,
//! - a consumer group: a job is acknowledged when it is done; the jobs of a process that was killed
//!   are claimed by another,
//! - an orderly end: after SIGTERM a process reads no more, finishes and acknowledges what it has
//!   taken, and leaves,
//! - a dead-letter stream for jobs that were delivered too often.
//!
//! `docs/distributed.md` in the repository states the guarantees. `worker.rs` is where the pool is
//! used, `store.rs` has all that concerns Redis.

mod acknowledge;
mod bench;
mod job;
mod report;
mod store;
mod worker;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::job::Work;
use crate::store::Store;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs jobs from a Redis stream on a pool, in any number of processes.
#[derive(Parser)]
#[command(name = "distributed", version)]
struct Args {
    /// The Redis server
    #[arg(long, global = true, value_name = "URL", default_value = "redis://127.0.0.1:6379/")]
    redis: String,
    /// What the names of the keys in Redis start with
    #[arg(long, global = true, default_value = "elastipool")]
    prefix: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Adds jobs to the stream
    Produce {
        /// How many
        #[arg(long, default_value_t = 100)]
        jobs: usize,
        /// What each does: sleep:MILLISECONDS, hash:KIBIBYTES, fail, panic or abort
        #[arg(long, default_value = "sleep:20")]
        work: Work,
    },
    /// Runs jobs until it gets SIGTERM or SIGINT; the second signal ends it at once
    Work(worker::Options),
    /// Prints what has become of all jobs; fails if one is lost
    Report,
    /// Measures jobs per second with several processes
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(is_successful) if is_successful => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("distributed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    let open = || Store::open(&args.redis, &args.prefix);
    match &args.command {
        Command::Produce { jobs, work } => {
            open()?.add(*jobs, *work)?;
            println!("added {jobs} jobs");
        }
        Command::Work(options) => worker::work(open, options)?,
        Command::Report => {
            let report = report::Report::new(&mut open()?)?;
            print!("{report}");
            return Ok(report.lost.is_empty());
        }
        Command::Bench(options) => bench::bench(&args.redis, options)?,
    }
    Ok(true)
}
