//! Threads that the operating system really refuses. A test runs itself again in a process of its
//! own, which lowers its limit of address space until the stack of one more thread does not fit.

use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::child;

/// The stack of a new thread in that process. More than the C library keeps of exited threads'
/// stacks (40 MiB): each thread needs a new one, and lets go of the old.
pub(crate) const STACK: u64 = 64 << 20;

/// What is left under the lowered limit: enough to work with, too little for a thread.
const LEFT: u64 = 16 << 20;

/// Runs `body` in a process of its own, which is called with the name of the test.
#[track_caller]
pub(crate) fn in_a_child(name: &str, body: impl FnOnce()) {
    let settings = [
        ("RUST_MIN_STACK", STACK.to_string()),
        // An arena for each thread would take the memory of a stack.
        ("MALLOC_ARENA_MAX", "1".to_string()),
        // So would the debug information that a backtrace is made from.
        ("RUST_BACKTRACE", "0".to_string()),
    ];
    child::run(name, settings, body);
}

/// While it exists, the system refuses every new thread.
pub(crate) struct Refusal {
    before: Rlimit,
}

impl Refusal {
    pub(crate) fn begin() -> Self {
        let before = getrlimit(Resource::As);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        let size: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
        let lowered = Rlimit { current: Some(size * 1024 + LEFT), ..before };
        setrlimit(Resource::As, lowered).unwrap();
        let refusal = Refusal { before };
        refusal.assert_effective();
        refusal
    }

    /// As [`begin`](Self::begin), but the system refuses threads only beyond `count` more.
    pub(crate) fn begin_beyond(threads: u64) -> Self {
        let refusal = Refusal::begin();
        let limit = getrlimit(Resource::As);
        let raised = Rlimit { current: limit.current.map(|size| size + threads * STACK), ..limit };
        setrlimit(Resource::As, raised).unwrap();
        refusal
    }

    /// The test is worth nothing if a thread can be had.
    #[track_caller]
    fn assert_effective(&self) {
        assert!(thread::Builder::new().spawn(|| ()).is_err(), "the system refuses no thread");
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.assert_effective();
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        setrlimit(Resource::As, self.before).unwrap();
        if !thread::panicking() {
            let thread = thread::Builder::new().spawn(|| ()).expect("threads can be had again");
            thread.join().unwrap();
        }
    }
}
