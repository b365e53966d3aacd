//! What the system knows of a thread: how much CPU time it has used, and whether it sleeps.
//!
//! A thread that waits for a CPU does not sleep, and neither does one that is stopped by a signal or a debugger. Any thread may
//! ask about another one of its process. An answer about a thread that has exited is `None`, or that of a thread with its number.

use crate::sync::Counter;

/// The thread that was named last by [`set_current`](Self::set_current). Only probes read it, so models do not explore it.
#[derive(Debug, Default)]
pub(crate) struct ThreadId(
    /// The system's number of the thread. Zero: unknown.
    Counter,
);

impl ThreadId {
    pub(crate) fn of_current() -> Self {
        let id = ThreadId::default();
        id.set_current();
        id
    }

    /// Names the calling thread.
    pub(crate) fn set_current(&self) {
        self.0.replace_alone(system::current());
    }

    /// Returns the CPU time that the thread has used, in nanoseconds. `None`: the system does not tell.
    pub(crate) fn cpu_nanos(&self) -> Option<u64> {
        system::cpu_nanos(self.number()?)
    }

    /// Whether the thread runs or waits for a CPU, and not for anything else. `None`: the system does not tell.
    pub(crate) fn is_awake(&self) -> Option<bool> {
        system::is_awake(self.number()?)
    }

    fn number(&self) -> Option<usize> {
        Some(self.0.get()).filter(|&number| number > 0)
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(any(elastipool_loom, miri))))]
mod system {
    use std::fs::File;
    use std::io::Read;
    use std::mem::MaybeUninit;

    #[allow(
        unsafe_code,
        reason = "the standard library does not tell the system's number of a thread"
    )]
    pub(super) fn current() -> usize {
        // SAFETY: the call has no arguments, and returns a number. By number, since older C libraries have no function for it.
        let number = unsafe { libc::syscall(libc::SYS_gettid) };
        usize::try_from(number).unwrap_or(0)
    }

    /// Asks the clock that `pthread_getcpuclockid` would return: without a handle, which must not outlive the thread.
    #[allow(unsafe_code, reason = "the standard library does not read such clocks")]
    pub(super) fn cpu_nanos(number: usize) -> Option<u64> {
        // From the kernel's `posix-timers.h`: the complement of the number, "per thread" (4), "time on a CPU" (2).
        let clock = !libc::clockid_t::try_from(number).ok()? << 3 | 4 | 2;
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is valid for a write of a `timespec` during the call. An unknown clock is an error.
        if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call has succeeded, so it has written the time.
        let time = unsafe { time.assume_init() };
        let (seconds, nanos) =
            (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        Some(seconds * 1_000_000_000 + nanos)
    }

    /// Reads the third field of `stat`, after the name of the thread in parentheses: `S` and `D` sleep.
    pub(super) fn is_awake(number: usize) -> Option<bool> {
        // The number has at most 10 digits, and the name at most 15 bytes.
        let mut start = [0; 40];
        let len =
            File::open(format!("/proc/self/task/{number}/stat")).ok()?.read(&mut start).ok()?;
        let end_of_name = start[..len].iter().rposition(|&byte| byte == b')')?;
        let state = start.get(end_of_name + 2)?;
        Some(!matches!(state, b'S' | b'D'))
    }
}

#[cfg(all(target_vendor = "apple", not(any(elastipool_loom, miri))))]
mod system {
    use std::mem::MaybeUninit;

    #[allow(
        unsafe_code,
        reason = "the standard library does not tell the system's number of a thread"
    )]
    pub(super) fn current() -> usize {
        // SAFETY: the handle is that of the calling thread, which exists. The port that it returns belongs to the thread.
        let port = unsafe { libc::pthread_mach_thread_np(libc::pthread_self()) };
        port as usize
    }

    #[allow(unsafe_code, reason = "the standard library tells nothing of other threads")]
    fn info(port: usize) -> Option<libc::thread_basic_info> {
        const WORDS: usize = size_of::<libc::thread_basic_info>() / size_of::<libc::integer_t>();

        let port = libc::thread_inspect_t::try_from(port).ok()?;
        let mut info = MaybeUninit::<libc::thread_basic_info>::uninit();
        let mut words = WORDS as libc::mach_msg_type_number_t;
        let flavor = libc::THREAD_BASIC_INFO as libc::thread_flavor_t;
        // SAFETY: the pointer is valid for writes of that many words during the call. An unknown port is an error.
        let failed =
            unsafe { libc::thread_info(port, flavor, info.as_mut_ptr().cast(), &raw mut words) };
        // SAFETY: the call has succeeded, so it has written all fields.
        (failed == 0).then(|| unsafe { info.assume_init() })
    }

    pub(super) fn cpu_nanos(port: usize) -> Option<u64> {
        let info = info(port)?;
        let nanos = |time: libc::time_value_t| {
            u64::try_from(time.seconds).unwrap_or(0) * 1_000_000_000
                + u64::try_from(time.microseconds).unwrap_or(0) * 1_000
        };
        Some(nanos(info.user_time) + nanos(info.system_time))
    }

    pub(super) fn is_awake(port: usize) -> Option<bool> {
        let sleeps = [libc::TH_STATE_WAITING, libc::TH_STATE_UNINTERRUPTIBLE];
        let state = info(port)?.run_state;
        Some(!sleeps.contains(&state))
    }
}

/// In a model the time of a tick never passes, and every thread sleeps then.
#[cfg(elastipool_loom)]
mod system {
    pub(super) fn current() -> usize {
        1
    }

    pub(super) fn cpu_nanos(_: usize) -> Option<u64> {
        Some(0)
    }

    pub(super) fn is_awake(_: usize) -> Option<bool> {
        Some(false)
    }
}

#[cfg(not(any(
    all(any(target_os = "linux", target_os = "android"), not(miri)),
    all(target_vendor = "apple", not(miri)),
    elastipool_loom
)))]
mod system {
    pub(super) fn current() -> usize {
        0
    }

    pub(super) fn cpu_nanos(_: usize) -> Option<u64> {
        None
    }

    pub(super) fn is_awake(_: usize) -> Option<bool> {
        None
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::hint::black_box;
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::ThreadId;

    fn tells() -> bool {
        cfg!(all(any(target_os = "linux", target_vendor = "apple"), not(miri)))
    }

    /// Starts a thread that runs `body`, and returns what names it.
    fn named(body: impl FnOnce() + Send + 'static) -> (Arc<ThreadId>, thread::JoinHandle<()>) {
        let id = Arc::new(ThreadId::default());
        let (sender, receiver) = mpsc::channel();
        let own = Arc::clone(&id);
        let thread = thread::spawn(move || {
            own.set_current();
            sender.send(()).unwrap();
            body();
        });
        receiver.recv().unwrap();
        (id, thread)
    }

    fn becomes(what: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(10) {
            if what() {
                return true;
            }
            thread::yield_now();
        }
        false
    }

    #[test]
    fn a_thread_that_waits_is_asleep_and_one_that_computes_is_awake() {
        if !tells() {
            return;
        }
        let (wake, gate) = mpsc::channel::<()>();
        let (waits, waiting) = named(move || gate.recv().unwrap());
        assert!(becomes(|| waits.is_awake() == Some(false)));
        let used = waits.cpu_nanos().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let (computes, computing) = named(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                black_box(0);
            }
        });
        for _ in 0..100 {
            assert_eq!(computes.is_awake(), Some(true), "also while it has no CPU");
        }
        let before = computes.cpu_nanos().unwrap();
        assert!(becomes(|| computes.cpu_nanos().unwrap() > before + 1_000_000));
        assert_eq!(waits.cpu_nanos(), Some(used), "its own clock");
        drop(stop);
        wake.send(()).unwrap();
        waiting.join().unwrap();
        computing.join().unwrap();
    }

    #[test]
    fn nothing_is_known_of_a_thread_without_a_name() {
        let id = ThreadId::default();
        assert_eq!((id.is_awake(), id.cpu_nanos()), (None, None));
    }

    #[test]
    fn some_systems_tell() {
        let id = ThreadId::default();
        id.set_current();
        assert_eq!(id.is_awake(), tells().then_some(true));
        assert_eq!(id.cpu_nanos().is_some(), tells());
    }
}
