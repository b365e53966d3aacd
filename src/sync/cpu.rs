//! The CPU that a thread runs on.

/// The number of a CPU. On a machine with more than [`COUNT`](Self::COUNT) of them several share a number, which affects only
/// speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu(usize);

impl Cpu {
    /// How many numbers there are.
    pub(crate) const COUNT: usize = 64;

    /// Returns where the calling thread runs, which may change at any time. `None` if the system does not tell.
    #[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
    #[allow(
        unsafe_code,
        reason = "the standard library does not tell; see `Waking` for what it buys"
    )]
    pub(crate) fn current() -> Option<Self> {
        // SAFETY: it has no arguments, and returns a number.
        let number = unsafe { libc::sched_getcpu() };
        // Negative if the system does not tell.
        Some(Cpu(usize::try_from(number).ok()? % Self::COUNT))
    }

    /// As above.
    #[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
    pub(crate) fn current() -> Option<Self> {
        None
    }

    pub(crate) fn index(self) -> usize {
        self.0
    }

    /// One that few threads run on.
    #[cfg(test)]
    pub(crate) const LAST: Cpu = Cpu(Self::COUNT - 1);
}
