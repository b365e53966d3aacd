//! What the system knows of a thread: how much CPU time it has used, whether it sleeps, and what
//! for.
//!
//! A thread that waits for a CPU does not sleep, and neither does one that is stopped by a signal
//! or a debugger. Any thread may ask about another one of its process. An answer about a thread
//! that has exited is `None`, or that of a thread with its number.

use crate::report::Wait;
use crate::sync::Counter;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// It runs, or waits for a CPU.
    Awake,
    /// It sleeps. `None`: the system does not tell what for.
    Asleep(Option<Wait>),
}

/// The thread that was named last by [`set_current`](Self::set_current). Only probes read it, so
/// models do not explore it.
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

    /// Returns the CPU time that the thread has used, in nanoseconds. `None`: the system does not
    /// tell.
    pub(crate) fn cpu_nanos(&self) -> Option<u64> {
        system::cpu_nanos(self.number()?)
    }

    /// Returns what the thread does. `None`: the system does not tell.
    pub(crate) fn state(&self) -> Option<ThreadState> {
        system::state(self.number()?)
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

    use super::{ThreadState, Wait};

    #[allow(
        unsafe_code,
        reason = "the standard library does not tell the system's number of a thread"
    )]
    pub(super) fn current() -> usize {
        // SAFETY: the call has no arguments, and returns a number. By number, since older C
        // libraries have no function for it.
        let number = unsafe { libc::syscall(libc::SYS_gettid) };
        usize::try_from(number).unwrap_or(0)
    }

    /// Asks the clock that `pthread_getcpuclockid` would return: without a handle, which must not
    /// outlive the thread.
    #[allow(unsafe_code, reason = "the standard library does not read such clocks")]
    pub(super) fn cpu_nanos(number: usize) -> Option<u64> {
        // From the kernel's `posix-timers.h`: the complement of the number, "per thread" (4), "time
        // on a CPU" (2).
        let clock = !libc::clockid_t::try_from(number).ok()? << 3 | 4 | 2;
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is valid for a write of a `timespec` during the call. An unknown
        // clock is an error.
        if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call has succeeded, so it has written the time.
        let time = unsafe { time.assume_init() };
        let (seconds, nanos) =
            (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        Some(seconds * 1_000_000_000 + nanos)
    }

    /// The system calls in which a thread sleeps until another one wakes it, and those that may
    /// wait for a disk. Empty where a machine lacks one of them, or has other numbers.
    const CALLS: &[(&[libc::c_long], &[libc::c_long])] = &[
        #[cfg(any(
            target_arch = "x86",
            target_arch = "x86_64",
            target_arch = "arm",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "powerpc64",
            target_arch = "s390x",
        ))]
        (
            // The last two are `futex_time64`, which only systems of 32 bits have, and
            // `futex_waitv`.
            &[libc::SYS_futex, 422, 449],
            &[
                libc::SYS_read,
                libc::SYS_readv,
                libc::SYS_pread64,
                libc::SYS_preadv,
                libc::SYS_write,
                libc::SYS_writev,
                libc::SYS_pwrite64,
                libc::SYS_pwritev,
                libc::SYS_fsync,
                libc::SYS_fdatasync,
                libc::SYS_msync,
                libc::SYS_openat,
                libc::SYS_getdents64,
                libc::SYS_copy_file_range,
            ],
        ),
    ];

    /// Reads `syscall`: `running`, or the number of the system call in which the thread sleeps. Of
    /// those that may wait for a disk, and where this file cannot be read, the third field of
    /// `stat` tells, after the name of the thread in parentheses: `S` and `D` sleep. `D` is a disk
    /// only in such a call: a thread that starts or touches new memory sleeps like that, too, for a
    /// moment.
    pub(super) fn state(number: usize) -> Option<ThreadState> {
        let call = CALLS.first().and_then(|calls| {
            let start = read(number, "syscall")?;
            let end = start.iter().position(|byte| byte.is_ascii_whitespace())?;
            Some((calls, std::str::from_utf8(&start[..end]).ok()?.parse().ok()))
        });
        match call {
            Some((_, None)) => return Some(ThreadState::Awake),
            Some(((of_threads, of_disks), Some(call))) => {
                if of_threads.contains(&call) {
                    return Some(ThreadState::Asleep(Some(Wait::Thread)));
                }
                if !of_disks.contains(&call) {
                    return Some(ThreadState::Asleep(Some(Wait::Outside)));
                }
            }
            None => {}
        }
        // The number has at most 10 digits, and the name at most 15 bytes.
        let stat = read(number, "stat")?;
        let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
        Some(match (stat.get(end_of_name + 2)?, call) {
            (b'S' | b'D', None) => ThreadState::Asleep(None),
            (b'S', _) => ThreadState::Asleep(Some(Wait::Outside)),
            (b'D', _) => ThreadState::Asleep(Some(Wait::Disk)),
            _ => ThreadState::Awake,
        })
    }

    /// Returns the start of the file about the thread.
    fn read(number: usize, file: &str) -> Option<[u8; 40]> {
        let mut start = [0; 40];
        let _ =
            File::open(format!("/proc/self/task/{number}/{file}")).ok()?.read(&mut start).ok()?;
        Some(start)
    }
}

#[cfg(all(target_vendor = "apple", not(any(elastipool_loom, miri))))]
mod system {
    use std::mem::MaybeUninit;

    use super::ThreadState;

    #[allow(
        unsafe_code,
        reason = "the standard library does not tell the system's number of a thread"
    )]
    pub(super) fn current() -> usize {
        // SAFETY: the handle is that of the calling thread, which exists. The port that it returns
        // belongs to the thread.
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
        // SAFETY: the pointer is valid for writes of that many words during the call. An unknown
        // port is an error.
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

    pub(super) fn state(port: usize) -> Option<ThreadState> {
        Some(match info(port)?.run_state {
            libc::TH_STATE_WAITING | libc::TH_STATE_UNINTERRUPTIBLE => ThreadState::Asleep(None),
            _ => ThreadState::Awake,
        })
    }
}

/// Other systems tell nothing. In a model the time of a tick never passes, and every thread sleeps
/// then.
#[cfg(not(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(elastipool_loom, miri))
)))]
mod system {
    use super::ThreadState;

    pub(super) fn current() -> usize {
        usize::from(cfg!(elastipool_loom))
    }

    pub(super) fn cpu_nanos(_: usize) -> Option<u64> {
        cfg!(elastipool_loom).then_some(0)
    }

    pub(super) fn state(_: usize) -> Option<ThreadState> {
        cfg!(elastipool_loom).then_some(ThreadState::Asleep(None))
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::hint::black_box;
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{ThreadId, ThreadState};

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
        assert!(becomes(|| waits.state().is_some_and(|state| state != ThreadState::Awake)));
        let used = waits.cpu_nanos().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let (computes, computing) = named(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                black_box(0);
            }
        });
        for _ in 0..100 {
            assert_eq!(computes.state(), Some(ThreadState::Awake), "also while it has no CPU");
        }
        let before = computes.cpu_nanos().unwrap();
        assert!(becomes(|| computes.cpu_nanos().unwrap() > before + 1_000_000));
        assert_eq!(waits.cpu_nanos(), Some(used), "its own clock");
        drop(stop);
        wake.send(()).unwrap();
        waiting.join().unwrap();
        computing.join().unwrap();
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn the_kinds_of_waits_are_told_apart() {
        use std::io::Read;
        use std::os::unix::net::UnixStream;
        use std::sync::{Condvar, Mutex};

        use super::Wait;

        let asleep = |id: &ThreadId, state| {
            assert!(becomes(|| id.state() == Some(state)), "{state:?}: {:?}", id.state());
        };
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().unwrap();
        let wanted = Arc::clone(&lock);
        let (locks, locking) = named(move || drop(wanted.lock().unwrap()));
        asleep(&locks, ThreadState::Asleep(Some(Wait::Thread)));
        drop(held);
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let waited = Arc::clone(&pair);
        let (waits, waiting) = named(move || {
            drop(waited.1.wait_while(waited.0.lock().unwrap(), |is_set| !*is_set).unwrap());
        });
        asleep(&waits, ThreadState::Asleep(Some(Wait::Thread)));
        *pair.0.lock().unwrap() = true;
        pair.1.notify_all();
        let (mut socket, peer) = UnixStream::pair().unwrap();
        let (reads, reading) = named(move || assert_eq!(socket.read(&mut [0]).unwrap(), 0));
        asleep(&reads, ThreadState::Asleep(Some(Wait::Outside)));
        drop(peer);
        let (stop, stopped) = mpsc::channel::<()>();
        let (sleeps, sleeping) = named(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                thread::sleep(Duration::from_millis(10));
            }
        });
        asleep(&sleeps, ThreadState::Asleep(Some(Wait::Outside)));
        drop(stop);
        [locking, waiting, reading, sleeping].into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn nothing_is_known_of_a_thread_without_a_name() {
        let id = ThreadId::default();
        assert_eq!((id.state(), id.cpu_nanos()), (None, None));
    }

    #[test]
    fn some_systems_tell() {
        let id = ThreadId::default();
        id.set_current();
        assert_eq!(id.state(), tells().then_some(ThreadState::Awake));
        assert_eq!(id.cpu_nanos().is_some(), tells());
    }
}
