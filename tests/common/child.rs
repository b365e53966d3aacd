//! Tests that run themselves again in a process of their own: what they do changes or ends the
//! whole process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Child, Command};
use std::{env, thread};

use super::LIMIT;

/// Is set in the environment of that process.
const CHILD: &str = "ELASTIPOOL_TEST_CHILD";

/// Runs `body` in a process of its own, with `settings` in its environment. Panics if that process
/// fails, in whatever way. `name` is the path of the test in its program, or the end of it.
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
    let program = env::current_exe().expect("a test knows its program");
    let output = Command::new(&program)
        .args(["--exact", &path_of(name, &program), "--nocapture", "--test-threads", "1"])
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

/// The path of the test in `program`.
#[track_caller]
fn path_of(name: &str, program: &Path) -> String {
    let output = Command::new(program).args(["--list", "--format", "terse"]).output();
    let tests = String::from_utf8(output.expect("the test's program can be started").stdout);
    let tests = tests.expect("names are text");
    let paths = tests.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_its = |path: &&str| {
        path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    };
    let paths: Vec<_> = paths.filter(is_its).collect();
    assert_eq!(paths.len(), 1, "one test is called {name}: {paths:?}");
    paths[0].to_owned()
}

/// Prints what the process writes to its standard error, a pipe, where the test harness captures
/// it: only a test that fails shows it.
pub(crate) fn capture_stderr(child: &mut Child) {
    let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
    // The harness captures the output of the test's threads too.
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            eprintln!("{line}");
        }
    });
}
