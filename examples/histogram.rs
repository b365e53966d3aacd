//! How many files there are of which size: one function for thousands of small arguments.
//!
//! ```text
//! cargo run --release --example histogram                    # the files of the Rust toolchain
//! cargo run --release --example histogram -- src /usr/share
//! ```
//!
//! It shows
//! - a [handler](ThreadPool::handler): the function is prepared once, and each call only brings its
//!   argument, here the size of a file. An argument of up to two words costs no allocation,
//! - a result that all calls work on: atomic buckets, which the function holds by an `Arc`,
//! - [`join`](ThreadPool::join): when it returns, what the calls have written can be read.
//!
//! The walk counts as well, one file after another, and both counts must agree.

use std::array;
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{self, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use elastipool::ThreadPool;
use lexopt::Arg::{Long, Short, Value};
use walkdir::WalkDir;

const HELP: &str = "\
Prints a histogram of the sizes of files, by powers of two.

Usage: histogram [PATH]...

  PATH        Files and folders [default: the folder of the Rust toolchain]
  -h, --help  Print this

Symbolic links are not followed. What cannot be read is reported, and the exit status is 1 then.
";

/// One for empty files, and one for each number of bits that a size can have.
const BUCKETS: usize = 65;

/// How many characters the longest bar has.
const WIDTH: u64 = 50;

#[derive(Debug, PartialEq, Eq)]
struct Histogram {
    files: [u64; BUCKETS],
    bytes: u64,
}

/// The same, for many threads at a time.
struct SharedHistogram {
    files: [AtomicU64; BUCKETS],
    bytes: AtomicU64,
}

impl SharedHistogram {
    fn new() -> Self {
        let files = array::from_fn(|_| AtomicU64::new(0));
        SharedHistogram { files, bytes: AtomicU64::new(0) }
    }

    fn add(&self, size: u64) {
        // No task learns from one counter about another, and `join` makes all of them visible.
        self.files[bucket_of(size)].fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
    }

    fn read(&self) -> Histogram {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Histogram {
            files: array::from_fn(|bucket| read(&self.files[bucket])),
            bytes: read(&self.bytes),
        }
    }
}

fn main() -> ExitCode {
    let roots = match arguments() {
        Ok(roots) => roots,
        Err(error) => {
            eprintln!("histogram: {error} (see --help)");
            return ExitCode::from(2);
        }
    };
    match run(roots) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("histogram: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments, which are paths.
fn arguments() -> Result<Vec<PathBuf>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut paths = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(path) => paths.push(path.into()),
            Short('h') | Long("help") => {
                print!("{HELP}");
                process::exit(0);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(paths)
}

/// Prints the histogram, and returns whether everything could be read.
fn run(mut roots: Vec<PathBuf>) -> Result<bool, Box<dyn Error>> {
    if roots.is_empty() {
        roots.push(toolchain_folder()?);
    }
    let pool = ThreadPool::builder().name("histogram").build();
    let shared = Arc::new(SharedHistogram::new());
    let add = {
        let shared = Arc::clone(&shared);
        pool.handler(move |size: u64| shared.add(size))
    };
    let mut counted = Histogram { files: [0; BUCKETS], bytes: 0 };
    let mut all_read = true;
    for entry in roots.iter().flat_map(WalkDir::new) {
        // Of a link this says that it is one.
        match entry.and_then(|entry| entry.metadata()) {
            Ok(data) if !data.is_file() => {}
            Ok(data) => {
                add.invoke(data.len());
                counted.files[bucket_of(data.len())] += 1;
                counted.bytes += data.len();
            }
            Err(error) => {
                eprintln!("histogram: {error}");
                all_read = false;
            }
        }
    }
    // The handler may stay: it does not keep the pool open.
    pool.shutdown_join();

    let histogram = shared.read();
    // The reader may stop reading: that is no error.
    let _ = io::stdout().write_all(table(&histogram).as_bytes());
    if histogram != counted {
        return Err(format!("one after another it would be {counted:?}").into());
    }
    Ok(all_read)
}

/// The number of bits.
fn bucket_of(size: u64) -> usize {
    (u64::BITS - size.leading_zeros()) as usize
}

/// A line for each bucket from the first to the last that is not empty, and one for all.
fn table(histogram: &Histogram) -> String {
    let Histogram { files, bytes } = histogram;
    let used = |count: &u64| *count > 0;
    let first = files.iter().position(used).unwrap_or(0);
    let end = files.iter().rposition(used).map_or(0, |last| last + 1);
    let most = files.iter().copied().max().unwrap_or(0);
    let mut table = format!("{:>8}  {:>10}\n", "bytes", "files");
    for (bucket, &count) in files.iter().enumerate().take(end).skip(first) {
        // A bucket that is not empty has a bar.
        let length = (count * WIDTH).div_ceil(most.max(1)) as usize;
        let line = format!("{:>8}  {count:>10}  {}", label(bucket), "#".repeat(length));
        table += &format!("{}\n", line.trim_end());
    }
    table + &format!("{:>8}  {:>10}  {bytes} bytes\n", "all", files.iter().sum::<u64>())
}

/// The smallest size in a bucket, and a plus for those up to the next.
fn label(bucket: usize) -> String {
    match bucket.checked_sub(1) {
        None => "0".into(),
        Some(power) => {
            let unit = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power / 10];
            format!("{}{unit}+", 1 << (power % 10))
        }
    }
}

fn toolchain_folder() -> Result<PathBuf, String> {
    let rustc = env::var("RUSTC").unwrap_or("rustc".into());
    match Command::new(&rustc).args(["--print", "sysroot"]).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim_end().into())
        }
        Ok(_) => Err(format!("no PATH given, and {rustc} does not know its sysroot")),
        Err(error) => Err(format!("no PATH given, and cannot run {rustc}: {error}")),
    }
}
