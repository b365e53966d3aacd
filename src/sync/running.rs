//! Workers of this process that run, on the CPU where each began to: when it started, or after its last rest.
//!
//! A kernel may leave a woken thread on the CPU where it ran last, even if that one is in use and another one is idle. Linux
//! does so when two CPUs that share a cache are busy for two thirds of the time: it does not look for an idle one then
//! (`SIS_UTIL`, in `update_idle_cpu_scan` of its `fair.c`). So a notifier does not rely on such a worker alone: see
//! `IdleStack::recheck_on_free_cpu`.
//!
//! The counts may be wrong: a worker may have moved since, or may block. They affect only speed.

use crate::sync::cpu::{CountsByCpu, Cpu};

static COUNTS: CountsByCpu = CountsByCpu::new();

/// Counts the calling worker until it is dropped.
#[derive(Debug)]
pub(crate) struct Running(Cpu);

impl Running {
    /// The worker runs here. `None` if the system does not tell where.
    pub(crate) fn begin() -> Option<Self> {
        Cpu::current().map(Self::begin_on)
    }

    pub(crate) fn begin_on(cpu: Cpu) -> Self {
        COUNTS.of(cpu).increment();
        Running(cpu)
    }

    /// Whether any worker runs on that CPU.
    pub(crate) fn is_any(cpu: Cpu) -> bool {
        COUNTS.of(cpu).get() > 0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        COUNTS.of(self.0).decrement();
    }
}
