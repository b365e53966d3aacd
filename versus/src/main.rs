//! Measures elastipool side by side with its peers.
//!
//! ```text
//! cargo run --release -p versus                              # everything: about an hour and a half on two cores
//! cargo run --release -p versus -- --rows empty,tree --rounds 3
//! cargo run --release -p versus -- ab main --user            # this commit against another one: about twenty minutes
//! ```
//!
//! What is measured, and why it is fair, is in the README beside this.

mod ab;
mod busy;
mod campaign;
mod chart;
mod child;
mod code_size;
mod counter;
mod engines;
mod feed;
mod gate;
mod instructions;
mod latch;
mod measure;
mod placement;
mod quantile;
mod report;
mod rows;
mod selection;
mod system;
mod tally;
mod wake_ups;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;
use std::{env, io, thread};

use clap::{Parser, Subcommand};

use crate::ab::Ab;
use crate::campaign::Plan;
use crate::code_size::CodeSize;
use crate::instructions::Instructions;
use crate::measure::Measurement;
use crate::report::Report;
use crate::wake_ups::WakeUps;

/// Far more than any measurement takes.
const LIMIT: Duration = Duration::from_secs(300);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures elastipool side by side with its peers, and prints what it found.
#[derive(Parser)]
#[command(name = "versus", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    plan: Plan,

    /// Write docs/versus.json and docs/versus.svg, instead of the same beside the program
    #[arg(long)]
    save: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Measures in this process
    #[command(hide = true)]
    Run(Measurement),
    /// Compares with another commit of this repository, against the noise of that commit with
    /// itself
    Ab(Ab),
    /// Measures the bytes of code and the seconds to compile that call sites cost
    CodeSize(CodeSize),
    /// Counts the instructions of single operations, and compares elastipool's with
    /// versus/instructions.json
    Instructions(Instructions),
    /// Simulates how long it takes until all workers of a burst run
    WakeUps(WakeUps),
    /// Computes all the time, beside a measurement
    #[command(hide = true)]
    Spin,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.command {
        Some(Command::Run(measurement)) => run(measurement),
        Some(Command::Ab(ab)) => ab.run(),
        Some(Command::CodeSize(code_size)) => code_size.run(),
        Some(Command::Instructions(instructions)) => instructions.run(),
        Some(Command::WakeUps(wake_ups)) => wake_ups.run(),
        Some(Command::Spin) => busy::spin(),
        None => compare(&args.plan, args.save),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The child's part: prints one line for the parent.
fn run(measurement: Measurement) -> Result<()> {
    // An engine that hangs must not take all the others' measurements with it.
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("versus: no end after {LIMIT:?}");
        process::exit(1);
    });
    serde_json::to_writer(io::stdout().lock(), &measurement.run()?)?;
    println!();
    Ok(())
}

fn compare(plan: &Plan, save: bool) -> Result<()> {
    let stem = if save { docs()? } else { beside_the_program()? };
    let (json, svg) = (stem.with_extension("json"), stem.with_extension("svg"));
    let failures = plan.run(|records| {
        let report = Report::new(plan, records);
        println!("{report}");
        fs::write(&json, report.to_json()?)?;
        chart::draw(&svg, &report.comparisons)
    })?;
    println!("written: {}, {}", json.display(), svg.display());
    for failure in &failures {
        eprintln!("versus: {failure}");
    }
    match failures.len() {
        0 => Ok(()),
        count => Err(format!("{count} measurements failed").into()),
    }
}

fn docs() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let docs = root.ok_or("this package is a folder of the workspace")?.join("docs");
    fs::create_dir_all(&docs)?;
    Ok(docs.join("versus"))
}

/// In the target folder, wherever that is.
fn beside_the_program() -> Result<PathBuf> {
    Ok(env::current_exe()?)
}
