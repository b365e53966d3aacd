//! What a pool's threads have of the thread that builds the pool: the CPUs that they may run on,
//! and the signals that they block. By themselves they would have that of the thread that happens
//! to start them, the one that submits a task.
//!
//! Also how the system shows their names.

#[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
mod system {
    #![allow(
        unsafe_code,
        reason = "the standard library does not know of affinities, signal masks, and names of a \
            running thread"
    )]

    use std::ffi::CString;
    use std::mem::MaybeUninit;
    use std::{mem, ptr};

    /// What the threads of a pool inherit. `None`: the system does not tell. Then a thread keeps
    /// what its starter has, such as the one CPU of a worker that a start hook has pinned.
    #[derive(Clone, Copy)]
    pub(crate) struct Inherited {
        cpus: Option<libc::cpu_set_t>,
        blocked: Option<libc::sigset_t>,
    }

    /// Returns the CPUs that a thread may run on. Zero stands for the calling thread.
    pub(crate) fn affinity_of(thread: libc::pid_t) -> Option<libc::cpu_set_t> {
        // SAFETY: it is an array of integers, for which zero is valid.
        let mut cpus: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the pointer is valid for writes of this size during the call.
        let failed = unsafe { libc::sched_getaffinity(thread, size_of_val(&cpus), &raw mut cpus) };
        (failed == 0).then_some(cpus)
    }

    /// Lets the calling thread run on these CPUs only. If the system refuses, it keeps its own.
    pub(crate) fn set_affinity(cpus: &libc::cpu_set_t) {
        // SAFETY: the pointer is valid for reads of this size during the call.
        unsafe { libc::sched_setaffinity(0, size_of_val(cpus), cpus) };
    }

    impl Inherited {
        /// What the calling thread has.
        pub(crate) fn of_current() -> Self {
            let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: without a new set the call only writes the old one, for which the pointer is
            // valid.
            let failed = unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), blocked.as_mut_ptr())
            };
            // SAFETY: the call has succeeded, so it has written the set.
            let blocked = (failed == 0).then(|| unsafe { blocked.assume_init() });
            Inherited { cpus: affinity_of(0), blocked }
        }

        /// Gives it to the calling thread, a new one of the pool.
        pub(crate) fn apply(&self) {
            if let Some(blocked) = &self.blocked {
                // SAFETY: the set is valid, and the old one is not asked for.
                unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, ptr::null_mut()) };
            }
            // Not where they are the same: a set that a thread has asked for does not grow with
            // that of its control group. SAFETY: it only reads the sets.
            let differ = |now: &libc::cpu_set_t, then| !unsafe { libc::CPU_EQUAL(now, then) };
            if let (Some(now), Some(then)) = (&affinity_of(0), &self.cpus) {
                if differ(now, then) {
                    set_affinity(then);
                }
            }
        }
    }

    pub(super) fn set_name(name: &str) {
        if let Ok(name) = CString::new(name) {
            // SAFETY: the call reads the text up to its NUL byte, of which there is one.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(any(elastipool_loom, miri)))))]
mod system {
    #[derive(Clone, Copy)]
    pub(crate) struct Inherited;

    impl Inherited {
        pub(crate) fn of_current() -> Self {
            Inherited
        }

        pub(crate) fn apply(&self) {}
    }

    pub(super) fn set_name(_: &str) {}
}

pub(crate) use system::Inherited;
#[cfg(all(target_os = "linux", not(any(elastipool_loom, miri))))]
pub(super) use system::{affinity_of, set_affinity};

/// If the system would cut the name `{pool}-{index}` of the calling thread, makes it cut the pool's
/// name instead of the index. Only the system sees that: the thread keeps its whole name for panics
/// and [`std::thread::Thread::name`].
pub(crate) fn show_index(pool: &str, index: usize) {
    let index = format!("-{index}");
    // Linux keeps 15 bytes of a name. An index has fewer digits.
    let mut end = 15 - index.len();
    if pool.len() > end {
        while !pool.is_char_boundary(end) {
            end -= 1;
        }
        system::set_name(&format!("{}{index}", &pool[..end]));
    }
}
