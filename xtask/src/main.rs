//! Checks that are more than a cargo command: `cargo xtask models`, `cargo xtask schedules`,
//! `cargo xtask mutants`, `cargo xtask names`, `cargo xtask rooms`, `cargo xtask examples` and
//! `cargo xtask weight`.
//!
//! All run in CI; nothing here is published.

mod examples;
mod mutants;
mod names;
mod protocol;
mod rooms;
mod sources;
mod tree;
mod walks;
mod weight;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tree::Tree;

const HELP: &str = "\
usage: cargo xtask COMMAND

  models [NAME ...]   run the model checks (of these names; default: all)
  schedules [NAME ...] run random schedules of the models (of these names; default: all), and of
                      larger pools: ELASTIPOOL_SCHEDULES of each (default: 1000), the
                      first with ELASTIPOOL_SEED (default: from the clock)
  mutants [TEXT ...]  break the crate on purpose, one mechanism at a time, and see that a
                      test or model fails each time (those whose title contains TEXT; default: all).
                      Before, see that the text of each is there once (mutants --texts: only that)
  names               see that a type is defined once, and that comments and mutants name what exists
  rooms [ROOM ...]    see that each folder of src knows only those below it, and that its mod.rs
                      lists its doors (and print these doors, with their users)
  examples            see that the documentation of each public item has an example, and that
                      names of other crates lead to ours
  weight [--update]   see that small programs with a pool do not grow (--update: write what they weigh now)
";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let success = match command.as_deref() {
        Some("models") => models(&rest),
        Some("schedules") => schedules(&rest),
        Some("mutants") => mutants::run(&rest),
        Some("names") => names::run(),
        Some("rooms") => rooms::run(&rest),
        Some("examples") => examples::run(),
        Some("weight") => weight::run(&rest),
        _ => {
            eprint!("{HELP}");
            false
        }
    };
    if success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The workspace's root.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("this package is a folder of the workspace").to_owned()
}

/// A command that builds and runs the models of the workspace at `root`. Optimised, since a model
/// runs thousands of times, and in a folder of its own, since its flags would rebuild everything
/// else.
fn models_command(root: &Path, target: &Path, flags: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root)
        .args(["test", "--release", "--package", "elastipool", "--lib", "--target-dir"])
        .arg(target)
        .arg("--")
        .env("RUSTFLAGS", flags);
    command
}

/// What compiles the crate for model checks.
pub(crate) const LOOM: &str = "--cfg elastipool_loom";

fn models(names: &[String]) -> bool {
    run_models(names, "target/models", Tree::ForModels, LOOM)
}

fn schedules(names: &[String]) -> bool {
    let flags = format!("{LOOM} --cfg elastipool_shuttle");
    run_models(names, "target/schedules", Tree::ForSchedules, &flags)
}

fn run_models(names: &[String], target: &str, kind: Tree, flags: &str) -> bool {
    let root = root();
    let target = root.join(target);
    let copy = target.join("tree");
    tree::copy_sources(&root, &copy, kind);
    if let Some(name) = unknown_model(names, models_command(&copy, &target, flags)) {
        eprintln!("no model is called {name:?}");
        return false;
    }
    let mut command = models_command(&copy, &target, flags);
    if names.is_empty() {
        command.arg("models::");
    }
    // Each model prints how much it has explored, in which time.
    let status = command.args(names).arg("--nocapture").status();
    status.expect("cargo can be started").success()
}

/// Returns a name that no model has: nothing would run for it, and that would look like success.
/// `None` also if the models do not compile.
fn unknown_model(names: &[String], mut command: Command) -> Option<&String> {
    if names.is_empty() {
        return None;
    }
    let listed = command.arg("--list").stderr(Stdio::inherit()).output();
    let listed = listed.expect("cargo can be started");
    let tests = String::from_utf8_lossy(&listed.stdout);
    let is_known = |name: &str| {
        tests.lines().filter_map(|line| line.strip_suffix(": test")).any(|test| test.contains(name))
    };
    names.iter().find(|name| listed.status.success() && !is_known(name))
}
