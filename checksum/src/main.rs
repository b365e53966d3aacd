//! SHA-256 of all files below some folders, one task per file: what the pool is for, on real input.
//!
//! ```text
//! cargo run --release -p checksum                     # the files of the Rust toolchain
//! cargo run --release -p checksum -- src Cargo.toml
//! cargo run --release -p checksum -- --jobs 8 --bench /usr/share
//! cargo run --release -p checksum | sha256sum --check --quiet
//! ```
//!
//! It shows
//! - a pool of a fixed size, for work that computes (`sum_on_pool`),
//! - [`map`](ThreadPool::map), which calls one function for all files: the results come in the
//!   order of the files, whatever the order in which they become ready,
//! - calls that fail without harm to the others,
//! - [`shutdown_join`](ThreadPool::shutdown_join), which waits for the end of all threads,
//! - state per worker in a thread-local: one buffer for each worker and not for each file.
//!
//! The output is that of `sha256sum` of the GNU coreutils, byte by byte, sorted by name. A last
//! line on stderr says how many files it was, and how long it took.

use std::borrow::Cow;
use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fmt, thread};

use elastipool::ThreadPool;
use indicatif::{ProgressBar, ProgressStyle};
use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;
use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};

/// How much of a file is in memory at a time.
const BUFFER_SIZE: usize = 128 * 1024;

const HELP: &str = "\
Prints the SHA-256 of each file, as `sha256sum` does, sorted by name.

Usage: checksum [OPTIONS] [PATH]...

  PATH          Files, and folders to search for files [default: the folder of the Rust toolchain]
  -j, --jobs N  How many files to read at the same time, 1 to 512 [default: the number of CPUs]
      --bench   Instead of the list, print on stderr how long it takes with and without the pool
  -h, --help    Print this

Symbolic links are followed if they are given as PATH, but not below a folder; whatever is not a
regular file is left out there. What cannot be read is reported, and the exit status is 1 then; all
the other files are still listed. Otherwise the last line on stderr sums up.

With --bench all files are read once to warm up the page cache, then hashed one after another by a
plain loop, then by the pool. It is an error if the results are not equal.
";

#[derive(Default)]
struct Args {
    paths: Vec<PathBuf>,
    jobs: Option<usize>,
    bench: bool,
}

impl Args {
    fn parse() -> Result<Args, lexopt::Error> {
        let mut args = Args::default();
        let mut parser = lexopt::Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Short('j') | Long("jobs") => args.jobs = Some(parser.value()?.parse_with(jobs)?),
                Long("bench") => args.bench = true,
                Value(path) => args.paths.push(path.into()),
                Short('h') | Long("help") => {
                    print!("{HELP}");
                    process::exit(0);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(args)
    }

    fn jobs(&self) -> usize {
        let cpus = || thread::available_parallelism().map_or(1, NonZero::get);
        self.jobs.unwrap_or_else(cpus)
    }
}

/// Each of them is an open file: many more than 512 would meet the system's limit.
fn jobs(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|jobs| (1..=512).contains(jobs)).ok_or("not a number from 1 to 512")
}

/// What became of one file.
type Sum = io::Result<[u8; 32]>;

fn main() -> ExitCode {
    let args = match Args::parse() {
        Ok(args) => args,
        Err(error) => {
            fail(format_args!("{error} (see --help)"));
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(1) => fail("1 file could not be read"),
        Ok(failures) => fail(format_args!("{failures} files could not be read")),
        Err(error) => fail(error),
    }
}

fn fail(reason: impl fmt::Display) -> ExitCode {
    complain(format!("{reason}").as_bytes());
    ExitCode::FAILURE
}

/// Does everything, and returns how many files and folders could not be read.
fn run(args: &Args) -> Result<usize, Box<dyn Error>> {
    let roots = if args.paths.is_empty() { vec![toolchain_folder()?] } else { args.paths.clone() };
    let (files, unreadable) = find_files(&roots);
    let jobs = args.jobs();
    if args.bench {
        let sums = bench(&files, jobs)?;
        return Ok(unreadable + report_failures(&files, &sums));
    }
    let (sums, time) = timed("hashing", &files, |bar| sum_on_pool(&files, jobs, bar));
    print_list(&files, &sums)?;
    let failures = unreadable + report_failures(&files, &sums);
    if failures == 0 {
        let (files, time) = (files.len(), time.as_secs_f64());
        complain(format!("{files} files in {time:.3} s, by {jobs} workers").as_bytes());
    }
    Ok(failures)
}

// ----- which files -----

/// The Rust toolchain's own folder: thousands of files of all sizes, on any machine that can build
/// this.
fn toolchain_folder() -> Result<PathBuf, Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let name = rustc.to_string_lossy();
    let asked = Command::new(&rustc).args(["--print", "sysroot"]).output();
    let output = asked.map_err(|error| format!("no PATH given, and cannot run {name}: {error}"))?;
    let sysroot = String::from_utf8(output.stdout)?;
    let sysroot = sysroot.trim_end_matches(['\r', '\n']);
    if !output.status.success() || sysroot.is_empty() {
        return Err(format!("no PATH given, and {name} does not know its sysroot").into());
    }
    Ok(PathBuf::from(sysroot))
}

/// All regular files, sorted by the bytes of their names, and the number of places that could not
/// be looked at.
fn find_files(roots: &[PathBuf]) -> (Vec<Arc<Path>>, usize) {
    let mut files: Vec<Arc<Path>> = Vec::new();
    let mut unreadable = 0;
    for root in roots {
        for entry in WalkDir::new(checkable(root)) {
            match entry {
                Ok(entry) if is_file(&entry) => files.push(entry.into_path().into()),
                // What was asked for is not left out without a word.
                Ok(entry) if entry.depth() == 0 && !entry.path().is_dir() => {
                    report(entry.path(), "neither a regular file nor a folder");
                    unreadable += 1;
                }
                Ok(_) => {}
                Err(error) => {
                    report_walk_error(root, &error);
                    unreadable += 1;
                }
            }
        }
    }
    // Not the order of paths, which compares component by component.
    files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    (files, unreadable)
}

/// Whether it is a regular file. Only what was asked for by name may be a link to one.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_file() || (entry.depth() == 0 && entry.path().is_file())
}

/// To `sha256sum --check` a dash is no name but its standard input.
fn checkable(root: &Path) -> &Path {
    if root.as_os_str() == "-" { Path::new("./-") } else { root }
}

// ----- hashing -----

/// The pool's part: each file is a task, and the sums come in the order of the files.
fn sum_on_pool(files: &[Arc<Path>], jobs: usize, bar: &ProgressBar) -> Vec<Sum> {
    // As many workers as asked for and no more: the tasks compute, they hardly ever wait.
    let pool = ThreadPool::builder().name("checksum").core_size(jobs).max_size(jobs).build();
    let bar = bar.clone();
    let sum = move |file: Arc<Path>| {
        let sum = sum_of(&file);
        bar.inc(1);
        sum
    };
    let sums = pool.map(files.to_vec(), sum).collect();
    pool.shutdown_join();
    sums
}

/// The same without a pool, to compare with.
fn sum_in_loop(files: &[Arc<Path>], bar: &ProgressBar) -> Vec<Sum> {
    let mut sums = Vec::with_capacity(files.len());
    for file in files {
        sums.push(sum_of(file));
        bar.inc(1);
    }
    sums
}

fn sum_of(file: &Path) -> Sum {
    let mut hasher = Sha256::new();
    for_each_chunk(file, |chunk| hasher.update(chunk))?;
    Ok(hasher.finalize().into())
}

/// Reads a file piece by piece, however large it is.
fn for_each_chunk(file: &Path, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
    thread_local! {
        // The pool's workers live longer than a task: each file would pay for a buffer of its own.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER_SIZE]);
    }
    let mut file = File::open(file)?;
    BUFFER.with_borrow_mut(|buffer| {
        loop {
            match file.read(buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => visit(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    })
}

// ----- measuring -----

/// Hashes everything twice and prints both times. Returns the sums.
fn bench(files: &[Arc<Path>], jobs: usize) -> Result<Vec<Sum>, Box<dyn Error>> {
    // Otherwise the first of the two would wait for the disk and the second would not.
    let bytes = timed("warming up", files, |bar| read_all(files, bar)).0;
    let (in_loop, loop_time) = timed("one thread", files, |bar| sum_in_loop(files, bar));
    // The pool's threads start and end within the time.
    let (on_pool, pool_time) = timed("pool", files, |bar| sum_on_pool(files, jobs, bar));
    for ((file, one), other) in files.iter().zip(&in_loop).zip(&on_pool) {
        if one.as_ref().ok() != other.as_ref().ok() {
            report(file, "the two results differ; did the file change meanwhile?");
            return Err("with the pool the results are not the same".into());
        }
    }
    let (loop_time, pool_time) = (loop_time.as_secs_f64(), pool_time.as_secs_f64());
    let text = format!(
        "files:         {}\n\
         bytes:         {bytes}\n\
         one thread:    {loop_time:.3} s\n\
         {:14} {pool_time:.3} s\n\
         ratio:         {:.2}\n",
        files.len(),
        format!("pool of {jobs}:"),
        loop_time / pool_time,
    );
    say(text.as_bytes());
    Ok(on_pool)
}

fn timed<R>(
    what: &'static str,
    files: &[Arc<Path>],
    work: impl FnOnce(&ProgressBar) -> R,
) -> (R, Duration) {
    let bar = progress_bar(what, files.len());
    let start = Instant::now();
    let result = work(&bar);
    let time = start.elapsed();
    bar.finish_and_clear();
    (result, time)
}

/// Reads all files for nothing, and returns how many bytes that is.
fn read_all(files: &[Arc<Path>], bar: &ProgressBar) -> u64 {
    let mut bytes = 0;
    for file in files {
        // What cannot be read is reported when it is hashed.
        let _ = for_each_chunk(file, |chunk| bytes += chunk.len() as u64);
        bar.inc(1);
    }
    bytes
}

// ----- printing -----

/// A bar on stderr. Where that is no terminal, indicatif shows nothing at all.
fn progress_bar(what: &'static str, files: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:10} {wide_bar} {pos}/{len} files {eta:>4}");
    let bar = ProgressBar::new(files as u64).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Prints the list on stdout. The reader may stop reading: `| head` is no error.
fn print_list(files: &[Arc<Path>], sums: &[Sum]) -> Result<(), Box<dyn Error>> {
    let mut output = BufWriter::new(io::stdout().lock());
    match write_list(&mut output, files, sums) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("standard output: {error}").into()),
        Ok(()) => Ok(()),
    }
}

fn write_list(output: &mut impl Write, files: &[Arc<Path>], sums: &[Sum]) -> io::Result<()> {
    for (file, sum) in files.iter().zip(sums) {
        if let Ok(sum) = sum {
            write_line(output, file, sum)?;
        }
    }
    output.flush()
}

/// A line as `sha256sum` prints it: a backslash at its beginning says that the name is escaped.
fn write_line(output: &mut impl Write, file: &Path, sum: &[u8; 32]) -> io::Result<()> {
    let name = name_of(file);
    let escaped = escape(&name);
    if escaped != name {
        output.write_all(b"\\")?;
    }
    for byte in sum {
        write!(output, "{byte:02x}")?;
    }
    output.write_all(b"  ")?;
    output.write_all(&escaped)?;
    output.write_all(b"\n")
}

/// A file's name as the system has it, which need not be UTF-8.
#[cfg(unix)]
fn name_of(file: &Path) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt;
    Cow::Borrowed(file.as_os_str().as_bytes())
}

#[cfg(not(unix))]
fn name_of(file: &Path) -> Cow<'_, [u8]> {
    match file.to_string_lossy() {
        Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
        Cow::Owned(name) => Cow::Owned(name.into_bytes()),
    }
}

/// Escapes what would break a line: nothing, in most names.
fn escape(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r')) {
        return Cow::Borrowed(name);
    }
    let mut escaped = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match byte {
            b'\\' => escaped.extend(b"\\\\"),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// Reports the files without a sum and returns how many there are.
fn report_failures(files: &[Arc<Path>], sums: &[Sum]) -> usize {
    let mut failures = 0;
    for (file, sum) in files.iter().zip(sums) {
        if let Err(error) = sum {
            report(file, error);
            failures += 1;
        }
    }
    failures
}

fn report_walk_error(root: &Path, error: &walkdir::Error) {
    let path = error.path().unwrap_or(root);
    match error.io_error() {
        // The whole error says the path once more.
        Some(reason) => report(path, reason),
        None => report(path, error),
    }
}

fn report(file: &Path, reason: impl fmt::Display) {
    let mut message = escape(&name_of(file)).into_owned();
    message.extend(format!(": {reason}").into_bytes());
    complain(&message);
}

fn complain(message: &[u8]) {
    say(&[b"checksum: ", message, b"\n"].concat());
}

/// Writes to stderr. Not by `eprintln`, which takes text only and panics if the reader is gone.
fn say(message: &[u8]) {
    // If this fails the message has no reader.
    let _ = io::stderr().write_all(message);
}
