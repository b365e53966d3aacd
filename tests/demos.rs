//! Runs the tests of `demos` and `checksum`, so that one `cargo test` runs all. They are packages
//! of their own: the dependencies of `demos` would be built for each example, and `checksum`, which
//! is built first by most, needs no dev-dependency.

mod common;

use std::env;
use std::process::ExitCode;

/// Passes the arguments on: a filter, say.
fn main() -> ExitCode {
    // No programs are run under miri, and none are built for the model checker. These tests run
    // once, with the default features, and not on a system of 32 bits.
    #[cfg(not(any(miri, elastipool_loom)))]
    if cfg!(feature = "async") && cfg!(target_pointer_width = "64") {
        let mut command = common::example::cargo("test");
        command
            .args(["--package", "checksum", "--package", "demos", "--"])
            .args(env::args_os().skip(1));
        let status = command.status().expect("cargo runs");
        return if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    ExitCode::SUCCESS
}
