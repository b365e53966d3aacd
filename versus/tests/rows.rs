//! Every row runs with every engine that can do it, at a thousandth of its size. How long it takes is not looked at.

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
