//! What a job is, and what it does.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// A job's work. In Redis it is text, such as `sleep:20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Waits for this many milliseconds, as for a database.
    Sleep(u64),
    /// Hashes this many KiB.
    Hash(u64),
    /// Reports an error.
    Fail,
    /// Panics.
    Panic,
    /// Ends its process without any cleanup, as if the system had killed it for want of memory.
    Abort,
}

impl Work {
    pub(crate) fn run(self) -> Result<(), String> {
        match self {
            Work::Sleep(0) => {}
            Work::Sleep(millis) => thread::sleep(Duration::from_millis(millis)),
            Work::Hash(kibibytes) => {
                let mut hash = Sha256::new();
                (0..kibibytes).for_each(|_| hash.update([0; 1024]));
                black_box(hash.finalize());
            }
            Work::Fail => return Err("the job failed".into()),
            Work::Panic => panic!("the job panicked"),
            Work::Abort => std::process::abort(),
        }
        Ok(())
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse().map_err(|error| format!("{text:?} is no number of the work: {error}"))
        };
        match text.split_once(':') {
            Some(("sleep", millis)) => number(millis).map(Work::Sleep),
            Some(("hash", kibibytes)) => number(kibibytes).map(Work::Hash),
            None if text == "fail" => Ok(Work::Fail),
            None if text == "panic" => Ok(Work::Panic),
            None if text == "abort" => Ok(Work::Abort),
            _ => Err(format!("{text:?} is no work")),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Sleep(millis) => write!(f, "sleep:{millis}"),
            Work::Hash(kibibytes) => write!(f, "hash:{kibibytes}"),
            Work::Fail => f.write_str("fail"),
            Work::Panic => f.write_str("panic"),
            Work::Abort => f.write_str("abort"),
        }
    }
}
