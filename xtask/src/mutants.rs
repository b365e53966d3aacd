//! Every mechanism, broken on purpose: a test that cannot fail proves nothing.
//!
//! Each mutant is one replacement in a copy of the sources and the test that must notice. (A tool like
//! cargo-mutants makes hundreds of arbitrary ones; these are the ones that a colleague might make.)

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::protocol;
use crate::tree::{Tree, copy_sources};
use crate::{LOOM, models_command, root};

/// A model that does not end in time has not noticed: a deadlock ends it at once. Those of the sound code take half a
/// minute at most on a quiet machine.
const MODEL_LIMIT: Duration = Duration::from_secs(300);
/// A test that hangs has noticed: tests take seconds.
const TEST_LIMIT: Duration = Duration::from_secs(60);

/// Whatever its test: a mutant that does not build shows nothing.
const NO_BUILD: &str = "it does not build";
/// The argument for a look at the texts alone.
const TEXTS: &str = "--texts";

/// Who must notice.
pub(crate) enum By {
    /// A model, by its path below `src/models`.
    Model(&'static str),
    /// An integration test: file and name.
    Test(&'static str, &'static str),
    /// A test beside the code, by its path.
    Unit(&'static str),
}

impl By {
    /// The module of a model.
    fn module(&self) -> Option<&'static str> {
        let By::Model(name) = self else { return None };
        name.split("::").next()
    }
}

struct Mutant {
    title: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    judges: &'static [By],
}

/// Each mutant: a title, the file, the text that is replaced, its replacement, and the checks that must all fail.
macro_rules! mutants {
    ($($title:literal, $file:literal, $from:literal => $to:literal, $($judge:expr),+;)*) => {
        &[$(Mutant { title: $title, file: $file, from: $from, to: $to, judges: &[$($judge),+] }),*]
    };
}

mod async_waits;
mod groups;
mod leaving;
mod local_queues;
mod map;
mod ring;
mod sizing;
mod submitting;
mod sync;
mod tasks;
mod views;
mod waiting;
mod waking;

/// One file for each subject. A mutant may change any file.
const SUBJECTS: [&[Mutant]; 13] = [
    waking::MUTANTS,
    sizing::MUTANTS,
    leaving::MUTANTS,
    submitting::MUTANTS,
    waiting::MUTANTS,
    async_waits::MUTANTS,
    views::MUTANTS,
    local_queues::MUTANTS,
    ring::MUTANTS,
    tasks::MUTANTS,
    groups::MUTANTS,
    map::MUTANTS,
    sync::MUTANTS,
];

fn all() -> impl Iterator<Item = &'static Mutant> {
    SUBJECTS.into_iter().flatten()
}

/// The title of each mutant, with each check that must notice it.
pub(crate) fn judges() -> impl Iterator<Item = (&'static str, &'static By)> {
    all().flat_map(|mutant| mutant.judges.iter().map(|by| (mutant.title, by)))
}

pub(crate) fn run(wanted: &[String]) -> bool {
    let root = root();
    let work = root.join("target/mutants");
    // One for the models and one for the tests.
    let (tree, models) = (work.join("tree"), work.join("models-tree"));
    copy_sources(&root, &tree, Tree::Complete);
    copy_sources(&root, &models, Tree::ForModels);
    // All of them, whatever is wanted: the code may have changed under one. With `TEXTS`, which no
    // title contains, no more is done.
    for mutant in all() {
        let source = fs::read_to_string(tree.join(mutant.file)).expect("the mutant's file exists");
        let places = source.matches(mutant.from).count();
        assert_eq!(places, 1, "{}: the text to replace must be there once", mutant.title);
    }
    let titles = all().map(|mutant| mutant.title).collect();
    let missing = protocol::missing(&tree, &titles);
    assert!(missing.is_empty(), "protocol.md names what does not exist:\n{}", missing.join("\n"));
    // Otherwise nothing would run for it, and that would look like success.
    let unknown = |text: &&String| *text != TEXTS && !all().any(|it| it.title.contains(*text));
    if let Some(text) = wanted.iter().find(unknown) {
        eprintln!("no mutant's title contains {text:?}");
        return false;
    }
    let is_chosen = |mutant: &&Mutant| {
        wanted.is_empty() || wanted.iter().any(|text| mutant.title.contains(text))
    };
    let mut chosen: Vec<_> = all().filter(is_chosen).collect();
    chosen.sort_by_key(|mutant| mutant.judges.iter().find_map(By::module));
    let mut survivors = Vec::new();
    let mut count = 0;
    for mutant in chosen {
        count += 1;
        let begin = Instant::now();
        let verdict = mutant.judges.iter().try_fold("", |_, by| {
            let tree = if by.module().is_some() { &models } else { &tree };
            if let Some(module) = by.module() {
                keep_module(tree, module);
            }
            let file = tree.join(mutant.file);
            let original = fs::read_to_string(&file).expect("the mutant's file exists");
            let mutated = original.replace(mutant.from, mutant.to);
            fs::write(&file, mutated).expect("the copy is writable");
            let verdict = judge(by, tree, &work);
            fs::write(&file, original).expect("the copy is writable");
            verdict
        });
        let seconds = begin.elapsed().as_secs();
        match verdict {
            Ok(how) => println!("killed    {} ({how}, {seconds} s)", mutant.title),
            Err(how) => {
                let word = if how == NO_BUILD { "BROKEN  " } else { "SURVIVED" };
                println!("{word}  {} ({how}, {seconds} s)", mutant.title);
                survivors.push(mutant.title);
            }
        }
    }
    println!("{count} mutants, {} survived", survivors.len());
    survivors.is_empty()
}

/// Leaves one module of models in the tree, and those that it uses. With all of them a mutant
/// compiles four times as long.
fn keep_module(tree: &Path, module: &str) {
    let models = |name: &str| format!("src/models/{name}.rs");
    let read = |name: String| fs::read_to_string(root().join(name)).expect("there are models");
    let (list, own) = (read(models("mod")), read(models(module)));
    let is_other = |line: &str| {
        let name = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        name.is_some_and(|name| name != module && !own.contains(&format!("super::{name}::")))
    };
    // An attribute of the line needs an item.
    let kept = list.lines().map(|line| if is_other(line) { "const _: () = ();" } else { line });
    let kept = kept.map(|line| format!("{line}\n")).collect::<String>();
    let file = tree.join(models("mod"));
    // Untouched if unchanged, so that cargo does not rebuild it.
    if fs::read_to_string(&file).expect("there are models") != kept {
        fs::write(&file, kept).expect("the copy is writable");
    }
}

/// `Ok` if the check noticed the mutant in the tree.
fn judge(by: &By, tree: &Path, work: &Path) -> Result<&'static str, &'static str> {
    let mut build;
    let mut test;
    let limit;
    match *by {
        By::Model(name) => {
            let target = work.join("models");
            build = models_command(tree, &target, LOOM);
            test = models_command(tree, &target, LOOM);
            for command in [&mut build, &mut test] {
                command.arg(format!("models::{name}"));
            }
            // Most of the time would go to the compiler. Less optimised, it is a third.
            for command in [&mut build, &mut test] {
                command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
            }
            limit = MODEL_LIMIT;
        }
        By::Test(_, name) | By::Unit(name) => {
            let cargo = || {
                let mut command = Command::new(env!("CARGO"));
                command.current_dir(tree).arg("test");
                match by {
                    By::Test(file, _) => command.args(["--test", file]),
                    _ => command.arg("--lib"),
                };
                command.arg("--target-dir").arg(work.join("tests")).arg("--").arg(name);
                command
            };
            build = cargo();
            test = cargo();
            limit = TEST_LIMIT;
        }
    }
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    };
    let listed = build.arg("--list").output().expect("cargo can be started");
    if !listed.status.success() {
        return Err(NO_BUILD);
    }
    if !String::from_utf8_lossy(&listed.stdout).contains(": test\n") {
        return Err("it has no test of that name");
    }
    quiet(&mut test);
    let mut child = in_own_group(&mut test).spawn().expect("cargo can be started");
    let begin = Instant::now();
    loop {
        match child.try_wait().expect("the child is ours") {
            Some(status) if status.success() => return Err("its test passed"),
            Some(_) => return Ok("test failed"),
            None if begin.elapsed() > limit => {
                kill_all(&mut child);
                return match by {
                    By::Model(_) => Err("its model has found nothing in time"),
                    By::Test(..) | By::Unit(_) => Ok("test hung"),
                };
            }
            None => sleep(Duration::from_millis(50)),
        }
    }
}

/// Makes the command the head of a process group, so that its children can be reached.
#[cfg(unix)]
fn in_own_group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

#[cfg(not(unix))]
fn in_own_group(command: &mut Command) -> &mut Command {
    command
}

/// Ends cargo, and where that can be done the test that it runs.
fn kill_all(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.is_ok_and(|status| status.success()), "the test cannot be stopped");
    } else {
        child.kill().expect("the child is ours");
    }
    child.wait().expect("the child is ours");
}
