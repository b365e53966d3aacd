//! How a pool grows and shrinks: the same load on pools of elastipool, on rusty_pool and on tokio's
//! `spawn_blocking`, drawn over time.
//!
//! ```text
//! cargo run --release -p demos --bin breathe                                     # a table only
//! cargo run --release -p demos --bin breathe -- --svg breathe.svg                # and a chart
//! cargo run --release -p demos --bin breathe -- --load phases --svg sizes.svg    # another load
//! ```
//!
//! The bursts show
//! - what `core_size`, `max_size` and `keep_alive` do: workers start for a burst, and end when they
//!   were idle for long enough,
//! - that a trickle of short tasks does not keep surplus workers alive, because the worker with the
//!   lowest index is woken first,
//! - that workers in [`blocking`](elastipool::blocking) regions do not count against `max_size`,
//! - [`ThreadPool::stats`], which is read once in a while from outside.
//!
//! The phases show what sizes do to tasks that compute, to tasks that sleep, and to both, which
//! nothing marks as blocking: few workers are too few for tasks that sleep, many are too many for
//! tasks that compute. [`Growth::Measured`](elastipool::Growth::Measured), which
//! [`ThreadPool::default`] has, needs no size.
//!
//! The pools run one after the other.

mod chart;
mod engines;
mod load;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use elastipool::ThreadPool;

use crate::chart::{Chart, Panel};
use crate::engines::{Counts, Elastipool, Engine, RustyPool, Tokio};
use crate::load::{BURST, Recording, SECOND_BURST, SHORTER, THIRD_BURST, Work};

/// Draws how many workers some pools have under the same load.
#[derive(Parser)]
#[command(name = "breathe", version)]
struct Args {
    /// What the pools run
    #[arg(long, value_enum, default_value_t = Load::Bursts)]
    load: Load,
    /// Milliseconds that a task of a burst takes, and that a task sleeps; all other times are
    /// multiples or fractions of it
    #[arg(long, default_value_t = 50)]
    millis: u64,
    /// Draws a chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Load {
    /// Bursts, a trickle, and blocking regions
    Bursts,
    /// Tasks that compute, tasks that sleep, both, and tasks that wait for one lock
    Phases,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("breathe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if !(1..=10_000).contains(&args.millis) {
        return Err("a task takes between 1 and 10000 milliseconds".into());
    }
    let unit = Duration::from_millis(args.millis);
    let (chart, all) = match args.load {
        Load::Bursts => bursts(unit)?,
        Load::Phases => phases(unit)?,
    };
    if let Some(file) = &args.svg {
        chart::draw(file, &chart, &all)?;
        println!("\nThe chart is in {}.", file.display());
    }
    Ok(())
}

type Drawing = (Chart, Vec<Panel>);

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

// ----- bursts -----

const CORE_SIZE: usize = 2;
const MAX_SIZE: usize = 8;

/// In units of the time that a task takes.
const KEEP_ALIVE: u32 = 6;

fn bursts(unit: Duration) -> Result<Drawing, Box<dyn Error>> {
    let keep_alive = unit * KEEP_ALIVE;
    let record = |engine: &dyn Engine| load::record(engine, unit, load::bursts);
    let all = [
        record(&Elastipool::new("elastipool", ThreadPool::new(CORE_SIZE, MAX_SIZE, keep_alive))),
        record(&RustyPool::new(CORE_SIZE, MAX_SIZE, keep_alive)),
        record(&Tokio::new("tokio spawn_blocking", MAX_SIZE, keep_alive)?),
    ];
    let at = |units: u32| (unit * units).as_secs_f64();
    // On a busy machine no look at the counts may have seen the burst.
    let third_burst =
        |recording: &Recording| (recording.last_task() - at(THIRD_BURST)).max(0.0) * 1e3;
    println!(
        "core_size {CORE_SIZE}, max_size {MAX_SIZE}, keep_alive {keep_alive:?}. Three bursts of {BURST} tasks of {unit:?}.\n\
         The third one waits in blocking regions, which only elastipool has.\n"
    );
    println!("{:<22}{:^45}{:>15}", "", "workers", "third burst");
    println!(
        "{:<22}{:>9}{:>12}{:>12}{:>12}{:>15}",
        "", "1st burst", "before 2nd", "trickle end", "3rd burst", "takes, in ms"
    );
    for recording in &all {
        println!(
            "{:<22}{:>9}{:>12}{:>12}{:>12}{:>15.0}",
            recording.name,
            recording.at(at(1)).workers(),
            recording.at(at(SECOND_BURST - 1)).workers(),
            recording.at(at(THIRD_BURST - 1)).workers(),
            recording.peak(Counts::workers),
            third_burst(recording)
        );
    }
    let chart = Chart {
        title: format!(
            "core_size {CORE_SIZE}, max_size {MAX_SIZE}, keep_alive {} ms, tasks of {} ms",
            millis(keep_alive),
            millis(unit)
        ),
        running: "running",
        waiting: "in a blocking region",
        is_logarithmic: false,
        height: 230,
    };
    // tokio has no `core_size`.
    let sizes = [("max_size", MAX_SIZE), ("core_size", CORE_SIZE)];
    let panels = all.into_iter().zip([2, 2, 1]).map(|(recording, lines)| Panel {
        sum: format!("third burst: {:.0} ms", third_burst(&recording)),
        recording,
        lines: sizes[..lines].to_vec(),
    });
    Ok((chart, panels.collect()))
}

// ----- phases -----

/// The most workers, of pools with many.
const MANY: usize = 512;

fn phases(unit: Duration) -> Result<Drawing, Box<dyn Error>> {
    let keep_alive = Duration::from_secs(60);
    let measured = ThreadPool::default();
    let cpus = measured.core_size();
    let twice = 2 * cpus;
    let work = Work::of(unit / SHORTER);
    let record =
        |engine: &dyn Engine| load::record(engine, unit, |stage| load::phases(stage, cpus, work));
    let eager = |max_size: usize| {
        let pool = ThreadPool::new(cpus, max_size, keep_alive);
        Elastipool::new(format!("elastipool, {cpus} to {max_size} workers"), pool)
    };
    let all = [
        record(&Elastipool::new("elastipool, no size: ThreadPool::default()", measured)),
        record(&eager(twice)),
        record(&eager(MANY.max(twice))),
        record(&Tokio::new(format!("tokio spawn_blocking, {MANY} threads"), MANY, keep_alive)?),
    ];
    let shortest = all.iter().map(|recording| recording.end).fold(f64::MAX, f64::min);
    println!(
        "Tasks that compute for {} ms or sleep for {} ms, on {cpus} CPUs.\n\
         Each phase begins when the one before has ended.\n",
        millis(unit / SHORTER),
        millis(unit)
    );
    print!("{:<43}", "milliseconds:");
    for (_, phase) in &all[0].phases {
        print!("{phase:>9}");
    }
    println!("{:>9}{:>9}{:>9}{:>11}{:>9}", "in all", "ratio", "workers", "computing", "waiting");
    for recording in &all {
        print!("{:<43}", recording.name);
        for ((start, _), end) in recording.phases.iter().zip(recording.phase_ends()) {
            print!("{:>9.0}", (end - start) * 1e3);
        }
        println!(
            "{:>9.0}{:>9.2}{:>9}{:>11}{:>9}",
            recording.end * 1e3,
            recording.end / shortest,
            recording.peak(Counts::workers),
            recording.most_in("compute", |counts| counts.running),
            recording.most_in("lock", |counts| counts.waiting)
        );
    }
    let chart = Chart {
        title: format!(
            "Phases of tasks that compute for {} ms or sleep for {} ms, on {cpus} CPUs (logarithmic scale)",
            millis(unit / SHORTER),
            millis(unit)
        ),
        running: "computing",
        waiting: "asleep",
        is_logarithmic: true,
        height: 190,
    };
    let panel = |recording: Recording| {
        let workers = recording.peak(Counts::workers);
        let computing = recording.most_in("compute", |counts| counts.running);
        let locking = recording.most_in("lock", |counts| counts.waiting);
        let sum = format!(
            "{:.2} s with {workers} workers, at most {computing} compute, {locking} wait for the lock",
            recording.end
        );
        Panel { recording, sum, lines: vec![("CPUs", cpus)] }
    };
    Ok((chart, all.map(panel).into()))
}
