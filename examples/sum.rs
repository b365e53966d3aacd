//! Adds up the numbers in a file, chunk by chunk, in tasks that borrow: from the stack, and without
//! an `Arc`.
//!
//! ```text
//! cargo run --release --example sum                          # the numbers from 1 to 2^24
//! cargo run --release --example sum -- /usr/bin/git
//! cargo run --release --example sum -- --chunks 64 Cargo.lock
//! ```
//!
//! It shows
//! - a [scope](ThreadPool::scope): its tasks read a slice that belongs to the caller, and each
//!   writes to an element of its own of another one (`sum_on_pool`). When the scope has returned,
//!   all of that is the caller's again,
//! - how little there is to it: no handle, no channel, no lock.
//!
//! A file is taken for 64-bit numbers, the smallest byte first, with zeros for what is missing in
//! the last one. The sum has 128 bits, so it is exact, and the same in whichever order it is made.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use elastipool::ThreadPool;
use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;

/// How many numbers there are without a file, 128 MiB: one CPU adds for some milliseconds, so the
/// tasks of a pool are worth their microseconds.
const DEFAULT_NUMBERS: u64 = 1 << 24;

const HELP: &str = "\
Adds up 64-bit numbers, with and without the pool.

Usage: sum [OPTIONS] [FILE]

  FILE            The file with the numbers [default: none, and the numbers from 1 to 16777216]
  -c, --chunks N  How many parts to add up in tasks of their own [default: the number of CPUs]
  -h, --help      Print this

The exit status is 1 if the two sums differ, or the file cannot be read.
";

#[derive(Default)]
struct Args {
    file: Option<PathBuf>,
    chunks: Option<NonZero<usize>>,
}

impl Args {
    fn parse() -> Result<Args, lexopt::Error> {
        let mut args = Args::default();
        let mut parser = lexopt::Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Short('c') | Long("chunks") => args.chunks = Some(parser.value()?.parse()?),
                Value(file) if args.file.is_none() => args.file = Some(file.into()),
                Short('h') | Long("help") => {
                    print!("{HELP}");
                    process::exit(0);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(args)
    }
}

fn main() -> ExitCode {
    let args = match Args::parse() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("sum: {error} (see --help)");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("sum: with the pool the sum is another one");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("sum: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints both sums, and returns whether they are equal.
fn run(args: &Args) -> Result<bool, Box<dyn Error>> {
    let numbers = match &args.file {
        Some(file) => {
            let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
            numbers_in(&bytes)
        }
        None => (1..=DEFAULT_NUMBERS).collect(),
    };
    let cpus = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let chunks = args.chunks.unwrap_or(cpus).get();

    let pool = ThreadPool::builder().name("sum").core_size(cpus.get()).max_size(cpus.get()).build();
    // A pool starts its threads when there is work. Here this would be most of the time that is
    // measured.
    pool.start_core_threads();
    let (in_loop, loop_time) = timed(|| sum(&numbers));
    let (on_pool, pool_time) = timed(|| sum_on_pool(&pool, &numbers, chunks));
    let text = format!(
        "numbers:     {}\n\
         sequential:  {in_loop} in {loop_time:.3?}\n\
         on the pool: {on_pool} in {pool_time:.3?}\n\
         equal:       {}\n",
        numbers.len(),
        if in_loop == on_pool { "yes" } else { "no" },
    );
    // The reader may stop reading: that is no error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(in_loop == on_pool)
}

fn numbers_in(bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(padded)
    };
    bytes.chunks(8).map(number).collect()
}

/// The pool's part: a task for each chunk, and a place for the result of each.
fn sum_on_pool(pool: &ThreadPool, numbers: &[u64], chunks: usize) -> u128 {
    // No chunk is empty, so for few numbers there are less.
    let size = numbers.len().div_ceil(chunks).max(1);
    let mut partial_sums = vec![0; numbers.len().div_ceil(size)];
    pool.scope(|scope| {
        for (chunk, partial_sum) in numbers.chunks(size).zip(&mut partial_sums) {
            scope.execute(move || *partial_sum = sum(chunk));
        }
        // Tasks may still run here. When the scope returns, all have ended.
    });
    partial_sums.iter().sum()
}

fn sum(numbers: &[u64]) -> u128 {
    numbers.iter().copied().map(u128::from).sum()
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}
