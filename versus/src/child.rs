//! Processes that may fail or hang.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::Result;

/// What clap's programs end with if they do not understand their arguments.
const USAGE: i32 = 2;

/// The program does not know an argument: it is older than the row or the engine that it was asked
/// for.
#[derive(Debug)]
pub(crate) struct Misunderstood;

/// Returns the output of a process. Kills it after `limit`. The error of a process that fails tells
/// what it wrote to stderr.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let stderr = child.stderr.take().map(read_all);
    let stdout = child.stdout.take().map(read_all);
    let stdout = stdout.ok_or("its output is a pipe")?.recv_timeout(limit);
    if stdout.is_err() {
        // It may just have ended.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let Ok(stdout) = stdout else { return Err(format!("no end after {limit:?}").into()) };
    if status.code() == Some(USAGE) {
        return Err(Misunderstood.into());
    }
    if !status.success() {
        let said = stderr.and_then(|stderr| stderr.recv().ok()).transpose()?.unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        return Err(format!("its process ended with {status}: {said}").into());
    }
    Ok(stdout?)
}

/// Reads in a thread of its own, so that a process that writes much to one pipe does not wait for a
/// reader of the other.
fn read_all(mut from: impl Read + Send + 'static) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = from.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody listens any more after the limit.
        let _ = sender.send(read);
    });
    receiver
}

impl std::fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this program does not know the row, the engine or a setting")
    }
}

impl std::error::Error for Misunderstood {}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{Misunderstood, output};

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> crate::Result<Vec<u8>> {
        output(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn output_and_errors_are_told_apart() {
        assert_eq!(shell("echo 1", LONG).unwrap(), b"1\n");
        let error = shell("echo why >&2; exit 1", LONG).unwrap_err();
        assert!(error.to_string().ends_with(": why"), "{error}");
        assert!(shell("exit 2", LONG).unwrap_err().is::<Misunderstood>());
        let error = shell("exec sleep 600", Duration::from_millis(10)).unwrap_err();
        assert!(error.to_string().starts_with("no end after"), "{error}");
    }
}
