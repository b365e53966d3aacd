//! Every row runs with every engine that can do it, at a thousandth of its size. How long it takes
//! is not looked at.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn every_row_runs_with_every_engine() {
    let program = Path::new(env!("CARGO_BIN_EXE_versus"));
    let output = Command::new(program)
        .args(["--rounds", "1", "--workers", "2", "--scale", "0.001"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let report = fs::read(program.with_extension("json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let records = report["records"].as_array().unwrap();
    assert!(!records.is_empty());
    for record in records {
        assert_eq!(record["samples"].as_array().unwrap().len(), 1, "{record}");
    }
    // Some rows have several figures.
    assert!(report["summaries"].as_array().unwrap().len() > records.len());
    let text = String::from_utf8_lossy(&output.stdout);
    for comparison in report["comparisons"].as_array().unwrap() {
        assert!(text.contains(comparison["row"].as_str().unwrap()), "{comparison}");
    }
    let picture = fs::read_to_string(program.with_extension("svg")).unwrap();
    assert!(picture.starts_with("<svg"), "{picture}");
}

/// A program of another commit may lack rows: here one is played by a script.
#[test]
fn a_program_is_compared_with_itself_and_failures_are_reported() {
    let program = env!("CARGO_BIN_EXE_versus");
    let compare = |base: &str, rows: &str| {
        let args = ["--rows", rows, "--workers", "2", "--scale", "0.001", "--repetitions", "2"];
        Command::new(program).args(["ab", base]).args(args).output().unwrap()
    };
    let output = compare(program, "empty,closures-200,frames");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    // Three settings, one, and two figures for each of two numbers of workers.
    let lines = text.lines().filter(|line| line.contains("| elastipool "));
    assert_eq!(lines.count(), 3 + 1 + 4, "{text}");
    assert!(text.contains("inside the noise (~)"), "{text}");

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("older");
        let lines = format!(
            "#!/bin/sh\ncase \"$*\" in\n*closures-200*) exit 2 ;;\n*tree*) echo broken >&2; exit 1 ;;\nesac\nexec {program} \"$@\"\n"
        );
        fs::write(&script, lines).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let output = compare(script.to_str().unwrap(), "closures-200,tree,fanout");
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.lines().filter(|line| line.contains("| elastipool ")).count(), 1, "{text}");
        assert!(text.contains("closures-200, 2 workers: elastipool: skipped"), "{text}");
        assert!(text.contains("base failed") && text.contains("broken"), "{text}");
    }
}
