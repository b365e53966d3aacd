//! The instructions of single operations, which no other program on the machine disturbs, and which
//! change only with the code: `versus instructions`. Those of elastipool are compared with the file
//! of the repository.
//!
//! The operations are a program of their own, `bin/operations.rs`, which this one builds.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::counter::Counter;
use crate::report::{align_right, table};
use crate::{Result, beside_the_program, child};

/// How often the operation is run. What happens once is in both counts: the figure is their
/// difference, for one operation.
const COUNTS: [u64; 2] = [2_000, 12_000];

/// The least of so many counts is taken: a worker that finds nothing for a moment, and looks again,
/// adds up to one percent.
const REPETITIONS: u32 = 3;

/// An operation that needs more instructions than the file says is an error, beyond this part of
/// them. A part of an operation, which is a difference of two counts, may grow by this part of the
/// whole.
const TOLERANCE: f64 = 0.02;

/// Under valgrind an operation takes a second or two.
const LIMIT: Duration = Duration::from_secs(240);

const OURS: &str = "elastipool";

/// What the table shows: its name, the operation that is counted, and the one that it begins with,
/// whose count is not its own.
const ROWS: [(&str, &str, Option<&str>); 12] = [
    ("execute-inside", "execute-inside", None),
    ("execute-inside beside a view", "execute-inside-view", None),
    ("execute-outside", "execute-outside", None),
    ("execute-outside beside a view", "execute-outside-view", None),
    ("evaluate", "evaluate", None),
    ("evaluate: submission", "evaluate-submit", None),
    ("evaluate: run", "evaluate-run", Some("evaluate-submit")),
    ("evaluate: reading", "evaluate", Some("evaluate-run")),
    ("claim", "claim", None),
    ("scope", "scope", None),
    ("spawn", "spawn", None),
    ("yield", "yield", None),
];

#[derive(Args)]
pub(crate) struct Instructions {
    /// Write what was counted to versus/instructions.json, instead of comparing with it
    #[arg(long)]
    update: bool,
}

/// The file: what elastipool's operations took when it was written.
#[derive(Clone, Deserialize, Serialize)]
struct Recorded {
    /// The same code has the same count only with the same compiler and C library.
    counted_with: String,
    operations: BTreeMap<String, u64>,
}

/// The instructions of each operation, by its name and that of the engine.
type Counts = BTreeMap<(String, String), u64>;

impl Instructions {
    pub(crate) fn run(&self) -> Result<()> {
        let counter = Counter::find(&[Counter::Valgrind, Counter::Perf])?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let root = root.ok_or("this package is a folder of the workspace")?;
        let counted_with = format!("{}, {counter}", system(root)?);
        println!("counted with {counted_with}\n");
        let rows = rows(&count_all(counter, &build(root)?)?);
        let ours = rows.iter().filter_map(|(row, engines)| {
            let (_, count) = engines.iter().find(|(engine, _)| engine == OURS)?;
            Some((row.clone(), *count))
        });
        let now = Recorded { counted_with, operations: ours.collect() };

        let file = root.join("versus").join("instructions.json");
        let recorded = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text)?,
            Err(_) if self.update => Recorded { operations: BTreeMap::new(), ..now.clone() },
            Err(error) => return Err(format!("{}: {error}", file.display()).into()),
        };
        print(&rows, &recorded);
        if self.update {
            fs::write(&file, serde_json::to_string_pretty(&now)? + "\n")?;
            println!("written: {}. Say in the commit's message why it changes.", file.display());
            return Ok(());
        }
        if recorded.counted_with != now.counted_with {
            println!("not compared: the file was counted with {}", recorded.counted_with);
            return Ok(());
        }
        let grown = grown(&recorded.operations, &now.operations);
        match grown.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "more instructions than {} says: {}. If that is meant, run it with --update",
                file.display(),
                grown.join("; ")
            )
            .into()),
        }
    }
}

/// Compiler, C library and processor: what the counts depend on beside the code.
fn system(root: &Path) -> Result<String> {
    let first_line = |program: OsString, args: &[&str]| {
        let output = child::output(Command::new(program).current_dir(root).args(args), LIMIT)?;
        let text = String::from_utf8(output)?;
        Ok::<_, Box<dyn Error>>(text.lines().next().unwrap_or_default().to_owned())
    };
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let library = first_line("getconf".into(), &["GNU_LIBC_VERSION"]);
    let library = library.unwrap_or_else(|_| env::consts::OS.to_owned());
    Ok(format!("{}, {library}, {}", first_line(rustc, &["-V"])?, env::consts::ARCH))
}

/// Builds the program of the operations, beside this one.
fn build(root: &Path) -> Result<PathBuf> {
    let program = beside_the_program()?;
    let target = program.parent().and_then(Path::parent);
    let target = target.ok_or("the program is in a target folder")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--quiet", "--release", "-p", "versus"]);
    command.args(["--bin", "operations", "--target-dir"]).arg(target);
    if !command.status()?.success() {
        return Err("cargo build has failed".into());
    }
    Ok(target.join("release").join(format!("operations{}", env::consts::EXE_SUFFIX)))
}

fn count_all(counter: Counter, program: &Path) -> Result<Counts> {
    let names = String::from_utf8(child::output(&mut Command::new(program), LIMIT)?)?;
    let names: Vec<_> = names.lines().filter_map(|line| line.split_once(' ')).collect();
    let bar = ProgressBar::new(names.len() as u64);
    let mut counts = Counts::new();
    for (operation, engine) in names {
        let count = |times: u64| {
            counter.count_process(program, |command| {
                command.args([operation, engine, &times.to_string()]);
                child::output(command, LIMIT).map(drop)
            })
        };
        let least = |times: u64| {
            let counts = (0..REPETITIONS).map(|_| count(times)).collect::<Result<Vec<_>>>()?;
            Ok::<_, Box<dyn Error>>(counts.into_iter().min().unwrap_or_default())
        };
        let [few, many] = COUNTS;
        let difference = least(many)?.saturating_sub(least(few)?) as f64;
        let each = (difference / (many - few) as f64).round() as u64;
        counts.insert((operation.to_owned(), engine.to_owned()), each);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(counts)
}

/// Each row of the table, with its engines, elastipool first, and their instructions.
fn rows(counts: &Counts) -> Vec<(String, Vec<(String, u64)>)> {
    let row = |(name, operation, begins_with): (&str, &str, Option<&str>)| {
        let of = |name: &str, engine: &String| counts.get(&(name.to_owned(), engine.clone()));
        let engines = counts.keys().filter(|(name, _)| name == operation).map(|(_, engine)| engine);
        let own = |engine: &String| {
            let before = begins_with.and_then(|name| of(name, engine)).copied().unwrap_or(0);
            Some((engine.clone(), of(operation, engine)?.saturating_sub(before)))
        };
        let mut engines: Vec<_> = engines.filter_map(own).collect();
        engines.sort_by_key(|(engine, _)| engine != OURS);
        (name.to_owned(), engines)
    };
    ROWS.into_iter().map(row).collect()
}

fn print(rows: &[(String, Vec<(String, u64)>)], recorded: &Recorded) {
    let mut table = table(&["operation", OURS, "recorded", "peers"]);
    for (name, engines) in rows {
        let [ours, peers] = [true, false].map(|is_ours| {
            let of = |(engine, count): &(String, u64)| match is_ours {
                true => count.to_string(),
                false => format!("{engine} {count}"),
            };
            let wanted = engines.iter().filter(|(engine, _)| (engine == OURS) == is_ours);
            wanted.map(of).collect::<Vec<_>>().join(", ")
        });
        let recorded = recorded.operations.get(name).map(u64::to_string).unwrap_or_default();
        table.add_row([name.clone(), ours, recorded, peers]);
    }
    align_right(&mut table, &[1, 2]);
    println!("{table}\n");
}

/// The operations that take more than was recorded, and how much.
fn grown(recorded: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let mut grown = Vec::new();
    for (name, &now) in now {
        let whole = name.split(':').next().and_then(|operation| recorded.get(operation));
        match recorded.get(name) {
            None => grown.push(format!("{name} is not recorded")),
            Some(&before)
                if now as f64 > before as f64 + TOLERANCE * *whole.unwrap_or(&before) as f64 =>
            {
                let percent = (now as f64 / before as f64 - 1.0) * 100.0;
                grown.push(format!("{name} takes {now} instead of {before} (+{percent:.1} %)"));
            }
            Some(_) => {}
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Counts, OURS, ROWS, grown, rows};

    #[test]
    fn an_operation_that_grows_is_named() {
        let recorded = BTreeMap::from([("a".to_owned(), 1000), ("b".to_owned(), 1000)]);
        let now = |a, b| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        assert_eq!(grown(&recorded, &now(1020, 5)), Vec::<String>::new());
        assert_eq!(grown(&recorded, &now(1020, 1021)), ["b takes 1021 instead of 1000 (+2.1 %)"]);
        let parts = |a, part| BTreeMap::from([("a".to_owned(), a), ("a: part".to_owned(), part)]);
        assert_eq!(grown(&parts(1000, 100), &parts(1020, 120)), Vec::<String>::new());
        let part = "a: part takes 121 instead of 100 (+21.0 %)";
        assert_eq!(grown(&parts(1000, 100), &parts(1000, 121)), [part]);
        assert_eq!(grown(&BTreeMap::new(), &now(1, 1)), ["a is not recorded", "b is not recorded"]);
    }

    #[test]
    fn an_operation_is_split_into_its_parts() {
        let mut counts = Counts::new();
        for (operation, ours, peer) in
            [("evaluate-submit", 10, 1), ("evaluate-run", 30, 3), ("evaluate", 60, 6)]
        {
            counts.insert((operation.to_owned(), OURS.to_owned()), ours);
            counts.insert((operation.to_owned(), "a peer".to_owned()), peer);
        }
        let both = |ours, peer| vec![(OURS.to_owned(), ours), ("a peer".to_owned(), peer)];
        for (name, engines) in rows(&counts) {
            let expected = match &*name {
                "evaluate" => both(60, 6),
                "evaluate: submission" => both(10, 1),
                "evaluate: run" => both(20, 2),
                "evaluate: reading" => both(30, 3),
                _ => vec![],
            };
            assert_eq!(engines, expected, "{name}");
        }
    }

    /// By its text: a test of this program cannot run the other one.
    #[test]
    fn each_row_is_one_of_the_other_program() {
        let program = include_str!("bin/operations.rs");
        for (_, operation, begins_with) in ROWS {
            for name in [Some(operation), begins_with].into_iter().flatten() {
                assert!(program.contains(&format!("(\"{name}\", \"{OURS}\", ")), "{name}");
            }
        }
    }
}
