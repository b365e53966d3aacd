//! Counts instructions, which differ less from run to run than time does.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;
use std::{env, result};

use crate::Result;
use crate::child;
use crate::measure::Measurement;

/// The part of a row's work that is counted: a counted instruction takes some fifty times as long
/// under valgrind.
const PERF_PART: f64 = 0.5;
const VALGRIND_PART: f64 = 0.02;

/// To count those of a program that does nothing takes valgrind a second.
const PROBE_LIMIT: Duration = Duration::from_secs(60);

/// A program that counts the instructions of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    /// By the CPU, in user space.
    Perf,
    /// By simulation, one thread at a time.
    Valgrind,
}

impl Counter {
    /// The first of these that works. Virtual machines often have no counters for `perf`.
    pub(crate) fn find(wanted: &[Counter]) -> Result<Self> {
        let run = |command: &mut Command| child::output(command, PROBE_LIMIT).map(drop);
        let probe = |counter: Counter| counter.count_process("true", run).is_ok();
        let found = wanted.iter().copied().find(|&counter| probe(counter));
        found.ok_or_else(|| "neither perf nor valgrind counts instructions on this machine".into())
    }

    /// The instructions of the second half of the work: those of all, less those of a run with half
    /// of it. So what the program does once, such as to load and to start threads, does not count.
    pub(crate) fn count(self, work: Measurement, program: &Path, limit: Duration) -> Result<f64> {
        let part = match self {
            Counter::Perf => PERF_PART,
            Counter::Valgrind => VALGRIND_PART,
        };
        let count = |part: f64| {
            let work = Measurement { scale: work.scale * part, ..work };
            self.count_process(program, |command| work.output_of(command, limit).map(drop))
        };
        let (half, all) = (count(part / 2.0)?, count(part)?);
        Ok(all.saturating_sub(half) as f64)
    }

    /// `run` adds the program's arguments, and runs the command.
    pub(crate) fn count_process(
        self,
        program: impl AsRef<Path>,
        run: impl FnOnce(&mut Command) -> Result<()>,
    ) -> Result<u64> {
        let file = env::temp_dir().join(format!("versus-instructions-{}", process::id()));
        let mut command = match self {
            Counter::Perf => {
                let mut perf = Command::new("perf");
                perf.args(["stat", "-x,", "-e", "instructions:u", "-o"]).arg(&file).arg("--");
                perf
            }
            Counter::Valgrind => {
                let mut valgrind = Command::new("valgrind");
                let out = format!("--callgrind-out-file={}", file.display());
                valgrind.args(["--tool=callgrind", "--fair-sched=try", "-q", &out]);
                valgrind
            }
        };
        command.arg(program.as_ref());
        run(&mut command)?;
        let text = fs::read_to_string(&file)?;
        fs::remove_file(&file)?;
        Ok(self.parse(&text)?)
    }

    /// Finds the number in what the program has written.
    fn parse(self, text: &str) -> result::Result<u64, String> {
        let number = match self {
            Counter::Perf => text
                .lines()
                .find(|line| line.contains("instructions"))
                .and_then(|line| line.split(',').next()),
            Counter::Valgrind => text.lines().find_map(|line| line.strip_prefix("totals:")),
        };
        let number = number.and_then(|number| number.trim().parse().ok());
        number.ok_or_else(|| format!("{self} did not count the instructions"))
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Counter::Perf => "perf",
            Counter::Valgrind => "valgrind (callgrind)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Counter;

    #[test]
    fn counts_are_found_in_the_output() {
        let perf = "# started on Thu\n\n123456,,instructions:u,1000,100.00,,\n";
        assert_eq!(Counter::Perf.parse(perf), Ok(123_456));
        let none = "<not supported>,,instructions:u,0,100.00,,\n";
        assert!(Counter::Perf.parse(none).is_err());
        let callgrind = "version: 1\nevents: Ir\n\nfn=(0)\n16 3\n\ntotals: 987654\n";
        assert_eq!(Counter::Valgrind.parse(callgrind), Ok(987_654));
        assert!(Counter::Valgrind.parse("").is_err());
    }
}
