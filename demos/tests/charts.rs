//! Runs the programs `mixed` and `breathe`.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::fs;
use std::process::Output;

use common::example::Folder;

const BREATHE: &str = env!("CARGO_BIN_EXE_breathe");
const MIXED: &str = env!("CARGO_BIN_EXE_mixed");

fn run(folder: &Folder, program: &str, args: &[&str]) -> Output {
    folder.command(program, args).output().expect("the program runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).replace("\r\n", "\n")
}

#[track_caller]
fn assert_ok(output: &Output) {
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

// ----- mixed -----

#[test]
fn mixed_prints_both_settings_and_draws_them() {
    let folder = Folder::new("mixed");
    let output = run(&folder, MIXED, &["--seconds", "0.1", "--millis", "1", "--svg", "mixed.svg"]);
    assert_ok(&output);
    let printed = text(&output.stdout);
    for setting in ["one pool ", "with reserve(1) "] {
        assert_eq!(
            printed.lines().filter(|line| line.starts_with(setting)).count(),
            1,
            "{printed}"
        );
    }
    let svg = fs::read_to_string(folder.0.join("mixed.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("with reserve(1): p50"), "{svg}");
}

#[test]
fn mixed_says_what_it_does_not_accept() {
    let folder = Folder::new("mixed-bad");
    for args in [["--workers", "0"], ["--seconds", "0"], ["--seconds", "nan"]] {
        let output = run(&folder, MIXED, &args);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("at least one worker"), "{output:?}");
    }
}

// ----- breathe -----

#[test]
fn breathe_prints_each_pool_and_draws_it() {
    let folder = Folder::new("breathe");
    let output = run(&folder, BREATHE, &["--millis", "4", "--svg", "breathe.svg"]);
    assert_ok(&output);
    let printed = text(&output.stdout);
    let svg = fs::read_to_string(folder.0.join("breathe.svg")).unwrap();
    assert!(svg.starts_with("<svg"), "{svg}");
    for pool in ["elastipool", "rusty_pool", "tokio spawn_blocking"] {
        let row = printed.lines().find(|line| line.starts_with(pool)).expect(pool);
        let numbers: Result<Vec<u32>, _> =
            row[pool.len()..].split_whitespace().map(str::parse).collect();
        assert!(numbers.is_ok_and(|numbers| numbers.len() == 5), "{row}");
        assert!(svg.contains(pool), "{svg}");
    }
    for text in ["running", "in a blocking region", "idle", "tasks in the queue", "max_size"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

#[test]
fn breathe_prints_the_phases_and_draws_them() {
    let folder = Folder::new("breathe-phases");
    let output =
        run(&folder, BREATHE, &["--load", "phases", "--millis", "4", "--svg", "sizes.svg"]);
    assert_ok(&output);
    let printed = text(&output.stdout);
    let svg = fs::read_to_string(folder.0.join("sizes.svg")).unwrap();
    let is_row = |line: &&str| line.starts_with("elastipool, ") || line.starts_with("tokio ");
    let rows: Vec<_> = printed.lines().filter(is_row).collect();
    assert_eq!(rows.len(), 4, "{printed}");
    for row in rows {
        let (name, numbers) = row.split_once("  ").expect("a name and numbers");
        // The times of six phases and of all, the ratio, the workers, how many of them compute, and
        // wait for the lock.
        let numbers: Result<Vec<f64>, _> = numbers.split_whitespace().map(str::parse).collect();
        assert!(numbers.is_ok_and(|numbers| numbers.len() == 11), "{row}");
        assert!(svg.contains(name), "{name}: {svg}");
    }
    for text in ["computing", "asleep", "idle", "tasks in the queue", "CPUs", "compute"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

#[test]
fn breathe_says_what_it_does_not_accept() {
    let folder = Folder::new("breathe-bad");
    for millis in ["0", "10001"] {
        let output = run(&folder, BREATHE, &["--millis", millis]);
        assert_eq!(output.status.code(), Some(1));
        let message = "breathe: a task takes between 1 and 10000 milliseconds\n";
        assert_eq!(text(&output.stderr), message);
    }
}
