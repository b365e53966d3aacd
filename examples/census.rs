//! Files, bytes and lines by file extension: futures that pass work along through channels.
//!
//! ```text
//! cargo run --release --example census                 # the files of the Rust toolchain
//! cargo run --release --example census -- src /usr/share
//! ```
//!
//! A walker sends paths to a few counters, these send what they count to a merger, and a reporter
//! is woken by a timer meanwhile. All of them are futures on one pool; channels and timer know
//! nothing of it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_io::Timer;
use elastipool::ThreadPool;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use futures::lock::Mutex;
use futures::{SinkExt, StreamExt};
use lexopt::Arg::{Long, Short, Value};
use walkdir::WalkDir;

const COUNTERS: usize = 4;
const TICK: Duration = Duration::from_millis(200);

const HELP: &str = "\
Counts files, bytes and lines by file extension.

Usage: census [PATH]...

  PATH        Files and folders to count [default: the folder of the Rust toolchain]
  -h, --help  Print this
";

/// Files, bytes and lines of one file, or of all those with the same extension.
type Count = [u64; 3];
type Census = HashMap<String, Count>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut roots = arguments()?;
    if roots.is_empty() {
        let rustc = env::var_os("RUSTC").unwrap_or("rustc".into());
        let output = Command::new(rustc).args(["--print", "sysroot"]).output()?;
        roots.push(String::from_utf8(output.stdout)?.trim_end().into());
    }
    match io::stdout().write_all(table(take_census(roots)).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
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

fn take_census(roots: Vec<PathBuf>) -> Census {
    // Walker and counters block their workers while they read. Here that is all right: a woken
    // future that finds no idle worker gets another thread, up to `max_size`. So there is room for
    // all that may block and, whatever they do, for the merger and the reporter.
    let pool = ThreadPool::builder().name("census").core_size(2).max_size(COUNTERS + 3).build();
    // Short channels: a sender that is too far ahead waits, and occupies no worker meanwhile.
    let (to_counters, paths) = mpsc::channel(64);
    let (to_merger, counts) = mpsc::channel(64);
    let (work_lasts, work_ended) = oneshot::channel();
    let files_done = Arc::new(AtomicU64::new(0));

    pool.spawn(walk(roots, to_counters));
    let paths = Arc::new(Mutex::new(paths));
    for _ in 0..COUNTERS {
        pool.spawn(count(Arc::clone(&paths), to_merger.clone()));
    }
    // A stream ends when all of its senders are gone: this one must not stay.
    drop(to_merger);
    pool.spawn(report(Arc::clone(&files_done), work_ended));
    let census = pool.spawn_await(merge(counts, files_done)).await_complete();

    drop(work_lasts);
    pool.shutdown_join();
    census
}

/// Sends the path of each regular file.
async fn walk(roots: Vec<PathBuf>, mut paths: mpsc::Sender<PathBuf>) {
    for entry in roots.iter().flat_map(WalkDir::new) {
        match entry {
            Ok(entry) if !entry.file_type().is_file() => {}
            Ok(entry) => {
                if paths.send(entry.into_path()).await.is_err() {
                    return;
                }
            }
            Err(error) => eprintln!("census: {error}"),
        }
    }
}

/// Takes paths, in turn with the other counters, until there are no more.
async fn count(
    paths: Arc<Mutex<mpsc::Receiver<PathBuf>>>,
    mut counts: mpsc::Sender<(String, Count)>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // A statement of its own, so that the lock is free again before the file is read.
        let next = paths.lock().await.next().await;
        let Some(path) = next else { return };
        match count_file(&path, &mut buffer) {
            Ok(count) => {
                if counts.send((extension_of(&path), count)).await.is_err() {
                    return;
                }
            }
            Err(error) => eprintln!("census: {}: {error}", path.display()),
        }
    }
}

fn count_file(path: &Path, buffer: &mut [u8]) -> io::Result<Count> {
    let mut file = File::open(path)?;
    let (mut bytes, mut lines) = (0, 0);
    loop {
        let length = file.read(buffer)?;
        if length == 0 {
            return Ok([1, bytes, lines]);
        }
        bytes += length as u64;
        lines += buffer[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}

fn extension_of(path: &Path) -> String {
    path.extension().map_or("(none)".into(), |extension| extension.to_string_lossy().into_owned())
}

async fn merge(mut counts: mpsc::Receiver<(String, Count)>, files_done: Arc<AtomicU64>) -> Census {
    let mut census = Census::new();
    while let Some((extension, count)) = counts.next().await {
        add(census.entry(extension).or_default(), &count);
        files_done.fetch_add(1, Ordering::Relaxed);
    }
    census
}

fn add(sum: &mut Count, count: &Count) {
    sum.iter_mut().zip(count).for_each(|(sum, count)| *sum += count);
}

/// Prints a line at each tick, until the other end of `work_ended` is dropped.
async fn report(files_done: Arc<AtomicU64>, mut work_ended: oneshot::Receiver<()>) {
    let mut ticks = Timer::interval(TICK);
    while let Either::Right(_) = select(&mut work_ended, ticks.next()).await {
        eprintln!("census: {} files so far", files_done.load(Ordering::Relaxed));
    }
}

/// A line for each extension, that with the most bytes first, and one for all.
fn table(census: Census) -> String {
    let mut total = Count::default();
    census.values().for_each(|count| add(&mut total, count));
    let mut rows: Vec<_> = census.into_iter().collect();
    rows.sort_by_cached_key(|(extension, count)| (Reverse(count[1]), extension.clone()));
    rows.push(("all".into(), total));

    let mut table = format!("{:16} {:>10} {:>16} {:>12}\n", "extension", "files", "bytes", "lines");
    for (extension, [files, bytes, lines]) in rows {
        table += &format!("{extension:16} {files:>10} {bytes:>16} {lines:>12}\n");
    }
    table
}
