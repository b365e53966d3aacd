//! Processes that compute all the time, beside the one that measures.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{self, Child, Command, Stdio};
use std::time::Instant;
use std::{env, thread};

use crate::{LIMIT, Result};

/// Computing until this is dropped.
pub(crate) struct Busy(Vec<Child>);

impl Busy {
    /// Returns when all of them compute.
    pub(crate) fn start(processes: usize) -> Result<Self> {
        let mut busy = Busy(Vec::new());
        for _ in 0..processes {
            let mut command = Command::new(env::current_exe()?);
            command.arg("spin").stdin(Stdio::piped()).stdout(Stdio::piped());
            busy.0.push(command.spawn()?);
        }
        for child in &mut busy.0 {
            let stdout = child.stdout.as_mut().ok_or("its output is a pipe")?;
            if BufReader::new(stdout).read_line(&mut String::new())? == 0 {
                return Err("a busy process has ended at once".into());
            }
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the busy process does: computes until its input ends, as it does when the measuring process
/// dies without having dropped its [`Busy`], and at most as long as a measurement may take.
pub(crate) fn spin() -> Result<()> {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(0);
    });
    let start = Instant::now();
    println!("started");
    while start.elapsed() < LIMIT {}
    Ok(())
}
