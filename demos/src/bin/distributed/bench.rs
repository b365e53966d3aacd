//! Jobs per second, by the number of processes.

use std::env;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Result;
use crate::job::Work;
use crate::store::Store;

#[derive(Args)]
pub(crate) struct Options {
    /// Jobs for each measurement of the shortest work; the others get a tenth
    #[arg(long, default_value_t = 40_000)]
    jobs: usize,
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    processes: Vec<usize>,
    /// Jobs that run at the same time in each process
    #[arg(long, default_value_t = 8)]
    workers: usize,
}

/// A process without a job in this time has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes that are killed if they are still there.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

pub(crate) fn bench(redis: &str, options: &Options) -> Result<()> {
    // The first is nothing but overhead, the second waits, the third computes (about a
    // millisecond).
    let works = [
        (Work::Sleep(0), options.jobs),
        (Work::Sleep(5), options.jobs / 10),
        (Work::Hash(1024), options.jobs / 10),
    ];
    if options.jobs < 100 || options.processes.contains(&0) {
        return Err("it takes at least 100 jobs, and one process".into());
    }
    println!("jobs per second; each process runs {} at a time\n", options.workers);
    println!("{:>10}{:>12}{:>12}{:>12}", "processes", "sleep:0", "sleep:5", "hash:1024");
    for &count in &options.processes {
        print!("{count:>10}");
        for (work, jobs) in works {
            print!("{:>12.0}", measure(redis, work, jobs, count, options.workers)?);
        }
        println!();
    }
    Ok(())
}

/// Adds the jobs, then starts the processes. The time runs from the last look before a tenth of the
/// jobs was done.
fn measure(redis: &str, work: Work, jobs: usize, count: usize, workers: usize) -> Result<f64> {
    let prefix = format!("elastipool-bench-{}", process::id());
    let mut store = Store::open(redis, &prefix)?;
    store.add(jobs, work)?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["--redis", redis, "--prefix", &prefix, "work", "--until-empty", "--workers"]);
    command.arg(workers.to_string()).stderr(Stdio::null());
    let mut processes = Processes(Vec::new());
    for _ in 0..count {
        processes.0.push(command.spawn()?);
    }
    let ((started, start), _) = wait_for(&mut store, jobs / 10)?;
    let (_, (ended, end)) = wait_for(&mut store, jobs)?;
    for process in &mut processes.0 {
        let status = process.wait()?;
        if !status.success() {
            return Err(format!("a worker process failed: {status}").into());
        }
    }
    store.clear()?;
    Ok((ended - started) as f64 / (end - start).as_secs_f64())
}

/// How many jobs were done, and when.
type Look = (usize, Instant);

/// Waits until `wanted` jobs are done. Returns the last look before that, and the one that found
/// it. Without a look before, the first is zero jobs at the start of the call.
fn wait_for(store: &mut Store, wanted: usize) -> Result<(Look, Look)> {
    let mut before = (0, Instant::now());
    let mut changed = before.1;
    loop {
        let look = (store.done_count()?, Instant::now());
        if look.0 >= wanted {
            return Ok((before, look));
        }
        if look.0 > before.0 {
            changed = look.1;
        }
        before = look;
        if changed.elapsed() > PATIENCE {
            return Err(format!("no job was done in {PATIENCE:?}, after {} jobs", look.0).into());
        }
        thread::sleep(Duration::from_millis(2));
    }
}
