//! Parses every `Cargo.toml` below some folders, and stops at the first that is broken: tasks that
//! find more tasks, and belong together.
//!
//! ```text
//! cargo run --release -p demos --bin manifests                    # what cargo has downloaded
//! cargo run --release -p demos --bin manifests -- --limit 2 --nested --keep-going ~/projects
//! ```
//!
//! It shows
//! - a [`TaskGroup`] whose tasks submit tasks to the same group: each folder is a task, which
//!   submits one for each folder and manifest that it finds there (`Search::folder`). One wait is
//!   for all of them,
//! - a limit that is the group's and not the pool's: it bounds how many files and folders are open
//!   at a time. If a task of the full group submits another, that one waits in line, and its
//!   submitter continues,
//! - the first error, which cancels the rest; or, with `--keep-going`, all of them.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use elastipool::{GroupError, TaskGroup, ThreadPool};

/// Parses every `Cargo.toml` below some folders, up to the first that cannot be read.
///
/// Symbolic links are not followed. The exit status is 1 if something cannot be read.
#[derive(Parser)]
#[command(name = "manifests", version)]
struct Args {
    /// Folders to search, and manifests [default: cargo's registry, or else the Rust toolchain]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// How many files and folders to read at the same time
    #[arg(short, long, value_name = "N", default_value = "8")]
    limit: NonZero<usize>,

    /// Read all that can be read, and report everything that cannot
    #[arg(short, long)]
    keep_going: bool,

    /// Search below a folder that has a manifest, too
    ///
    /// What lies there is often the data of its tests, broken on purpose.
    #[arg(short, long)]
    nested: bool,
}

/// Where something is wrong, and what.
struct Failure {
    path: PathBuf,
    reason: String,
}

impl Failure {
    fn new(path: &Path, reason: impl fmt::Display) -> Self {
        Failure { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason.trim_end())
    }
}

/// What all tasks share. A clone is the same search.
#[derive(Clone)]
struct Search {
    group: TaskGroup<Failure>,
    nested: bool,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    folders: AtomicUsize,
    manifests: AtomicUsize,
}

impl Search {
    /// Submits a task to the group: from outside as well as from one of its tasks.
    fn submit(
        &self,
        path: PathBuf,
        read: impl FnOnce(&Search, &Path) -> Result<(), Failure> + Send + 'static,
    ) {
        let search = self.clone();
        // After a failure the group takes no more tasks. Then there is nothing left to do for this
        // one, and the waiter of the group gets the failure.
        let _ = self.group.execute(move || read(&search, &path));
    }

    /// Reads a file that the user has asked for by name.
    fn root(&self, path: &Path) -> Result<(), Failure> {
        let kind = fs::metadata(path).map_err(|error| Failure::new(path, error))?;
        if kind.is_dir() { self.folder(path) } else { self.manifest(path) }
    }

    /// Reads a folder, and leaves what is in there to others.
    fn folder(&self, path: &Path) -> Result<(), Failure> {
        let failure = |error: io::Error| Failure::new(path, error);
        let (mut has_manifest, mut folders) = (false, Vec::new());
        for entry in fs::read_dir(path).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            // Of a link this says that it is one.
            let kind = entry.file_type().map_err(failure)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name() == "Cargo.toml" {
                has_manifest = true;
                self.submit(entry.path(), Search::manifest);
            }
        }
        self.counts.folders.fetch_add(1, Ordering::Relaxed);
        if self.nested || !has_manifest {
            for folder in folders {
                self.submit(folder, Search::folder);
            }
        }
        Ok(())
    }

    fn manifest(&self, path: &Path) -> Result<(), Failure> {
        let text = fs::read_to_string(path).map_err(|error| Failure::new(path, error))?;
        text.parse::<toml::Table>().map_err(|error| Failure::new(path, error))?;
        self.counts.manifests.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.paths.is_empty() {
        match default_folder() {
            Ok(folder) => args.paths.push(folder),
            Err(reason) => return fail(&[reason]),
        }
    }
    let (summary, failures) = search(args);
    // The reader may stop reading: that is no error.
    let _ = io::stdout().write_all(summary.as_bytes());
    if failures.is_empty() { ExitCode::SUCCESS } else { fail(&failures) }
}

fn fail(reasons: &[impl fmt::Display]) -> ExitCode {
    reasons.iter().for_each(|reason| eprintln!("manifests: {reason}"));
    ExitCode::FAILURE
}

/// Returns what has been read, and what could not be.
fn search(args: Args) -> (String, Vec<GroupError<Failure>>) {
    let pool = ThreadPool::default();
    let mut group = pool.group().limit(args.limit.get());
    if args.keep_going {
        group = group.keep_going();
    }
    let search = Search { group, nested: args.nested, counts: Arc::default() };
    for path in args.paths {
        search.submit(path, Search::root);
    }
    let mut failures = search.group.wait_all();
    if !args.keep_going {
        // Tasks that were running when the first one failed may have failed as well.
        failures.truncate(1);
    }
    let Counts { folders, manifests } = &*search.counts;
    let mut summary = format!("folders:    {folders:?}\nmanifests:  {manifests:?}\n");
    if !failures.is_empty() && !args.keep_going {
        summary += &format!("dropped:    {}\n", search.group.dropped_count());
    }
    (summary, failures)
}

/// Where cargo keeps the packages that it has downloaded. Their own manifests were written by
/// cargo: none is broken.
fn default_folder() -> Result<PathBuf, String> {
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    let in_home = home.map(|home| Path::new(&home).join(".cargo"));
    match env::var_os("CARGO_HOME").map(PathBuf::from).or(in_home).map(|it| it.join("registry/src"))
    {
        Some(registry) if registry.is_dir() => Ok(registry),
        _ => toolchain_folder(),
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
