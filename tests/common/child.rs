//! Tests that run themselves again in a process of their own: what they do changes or ends the whole process.

use std::io::{BufRead, BufReader};
use std::process::{self, Child, Command};
use std::{env, thread};

use super::LIMIT;

/// Is set in the environment of that process.
const CHILD: &str = "ELASTIPOOL_TEST_CHILD";

/// Runs `body` in a process of its own, with `settings` in its environment. Panics if that process fails, in whatever
/// way. `name` is the name of the test.
#[track_caller]
pub(crate) fn run(
    name: &str,
    settings: impl IntoIterator<Item = (&'static str, String)>,
    body: impl FnOnce(),
) {
    if env::var_os(CHILD).is_some() {
        // Whatever hangs in there must not hang the test.
        thread::spawn(|| {
            thread::sleep(LIMIT * 3);
            eprintln!("the process hangs");
            process::exit(1);
        });
        return body();
    }
    let output = Command::new(env::current_exe().expect("a test knows its program"))
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(CHILD, "1")
        .envs(settings)
        .output()
        .expect("the test's program can be started");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // A process that runs no test is successful, too.
    let passed = output.status.success() && stdout.contains("1 passed");
    assert!(passed, "{}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", output.status);
}

/// Prints what the process writes to its standard error, a pipe, where the test harness captures it: only a test that fails
/// shows it.
pub(crate) fn capture_stderr(child: &mut Child) {
    let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
    // The harness captures the output of the test's threads too.
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            eprintln!("{line}");
        }
    });
}
