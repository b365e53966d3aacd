//! What the operating system knows of this process.

pub(crate) use imp::{
    PinnedThread, exact_sleeps, heap, other_threads_cpu_time, own_cpu_time, peak_memory, pin_to,
    stolen_time, threads,
};

#[cfg(target_os = "linux")]
mod imp {
    use std::num::NonZero;
    use std::time::Duration;

    use procfs::process::Process;
    use procfs::{CurrentSI, KernelStats};
    use rustix::thread::{
        CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
    };
    use rustix::time::{ClockId, clock_gettime};

    use crate::Result;

    /// The most memory that was ever resident, in bytes.
    pub(crate) fn peak_memory() -> Result<Option<u64>> {
        Ok(Process::myself()?.status()?.vmhwm.map(|kib| kib * 1024))
    }

    /// How many threads there are.
    pub(crate) fn threads() -> Result<u64> {
        Ok(Process::myself()?.status()?.threads)
    }

    /// The resident bytes that are no file's: heap and stacks.
    ///
    /// Counted page by page and not, like those of `status`, with a delay.
    pub(crate) fn heap() -> Result<u64> {
        let rollup = Process::myself()?.smaps_rollup()?;
        let mapping = rollup.memory_map_rollup.into_iter().next();
        let bytes = mapping.and_then(|map| map.extension.map.get("Anonymous").copied());
        bytes.ok_or_else(|| "the system does not tell the anonymous memory".into())
    }

    /// The CPU time of all threads but the calling one.
    pub(crate) fn other_threads_cpu_time() -> Result<Duration> {
        // In this order: a little too much for this thread, never for the others.
        let process = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime))?;
        Ok(process.saturating_sub(own_cpu_time()?))
    }

    /// The CPU time of the calling thread.
    pub(crate) fn own_cpu_time() -> Result<Duration> {
        Ok(clock_gettime(ClockId::ThreadCPUTime).try_into()?)
    }

    /// The CPU time since the machine's start that a hypervisor gave to other guests, of all CPUs.
    pub(crate) fn stolen_time() -> Result<Option<Duration>> {
        let ticks = KernelStats::current()?.total.steal;
        let per_second = procfs::ticks_per_second() as f64;
        Ok(ticks.map(|ticks| Duration::from_secs_f64(ticks as f64 / per_second)))
    }

    /// From now on the calling thread's sleeps end when they should, not up to 50 us later to save
    /// wake-ups.
    pub(crate) fn exact_sleeps() -> Result<()> {
        Ok(set_current_timer_slack(NonZero::new(1))?)
    }

    /// A thread that may run on one CPU only.
    pub(crate) struct PinnedThread {
        thread: Pid,
        /// Where it might run before.
        before: CpuSet,
    }

    /// Moves the calling thread to one of the CPUs where it may run: the first one of them is
    /// number 0.
    pub(crate) fn pin_to(number: usize) -> Result<PinnedThread> {
        let before = sched_getaffinity(None)?;
        let cpu = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu)).nth(number);
        let mut only = CpuSet::new();
        only.set(cpu.ok_or("the process may not use so many CPUs")?);
        sched_setaffinity(None, &only)?;
        Ok(PinnedThread { thread: gettid(), before })
    }

    impl PinnedThread {
        pub(crate) fn unpin(self) -> Result<()> {
            Ok(sched_setaffinity(Some(self.thread), &self.before)?)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::time::Duration;

    use crate::Result;

    pub(crate) fn peak_memory() -> Result<Option<u64>> {
        Ok(None)
    }

    pub(crate) fn threads() -> Result<u64> {
        Err("threads are counted on Linux only".into())
    }

    pub(crate) fn heap() -> Result<u64> {
        Err("memory is measured on Linux only".into())
    }

    pub(crate) fn other_threads_cpu_time() -> Result<Duration> {
        Err("CPU time is measured on Linux only".into())
    }

    pub(crate) fn own_cpu_time() -> Result<Duration> {
        Err("CPU time is measured on Linux only".into())
    }

    pub(crate) fn stolen_time() -> Result<Option<Duration>> {
        Ok(None)
    }

    pub(crate) fn exact_sleeps() -> Result<()> {
        Ok(())
    }

    pub(crate) struct PinnedThread(());

    pub(crate) fn pin_to(_: usize) -> Result<PinnedThread> {
        Err("threads are pinned on Linux only".into())
    }

    impl PinnedThread {
        pub(crate) fn unpin(self) -> Result<()> {
            Ok(())
        }
    }
}
