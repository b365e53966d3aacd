//! What the pool's threads have of the thread that built the pool, and not of the one that submits.
//! And how the system shows their names.

#![cfg(target_os = "linux")]

use crate::common;

use std::fs;
use std::process::Command;
use std::thread;

use common::{HOUR, joined, wait_until};
use elastipool::ThreadPool;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that the calling thread may run on.
fn own_cpus() -> CpuSet {
    sched_getaffinity(None).unwrap()
}

/// Runs `f` on a new thread that may run on one CPU only, and returns what it does with that CPU.
fn pinned<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> (R, CpuSet) {
    joined(thread::spawn(|| {
        let allowed = own_cpus();
        let last = (0..CpuSet::MAX_CPU).rfind(|&cpu| allowed.is_set(cpu)).unwrap();
        let mut only = CpuSet::new();
        only.set(last);
        sched_setaffinity(None, &only).unwrap();
        (f(), only)
    }))
}

/// What the system says of a thread: the value of a line of its status.
fn status_of(path: &str, name: &str) -> String {
    let status = fs::read_to_string(format!("{path}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

/// The paths of the pool's threads below `/proc`, the keeper's too.
fn threads_of(pool: &ThreadPool) -> Vec<String> {
    let paths = fs::read_dir("/proc/self/task").unwrap();
    let paths = paths.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
    let is_own = |path: &String| {
        let name = fs::read_to_string(format!("{path}/comm")).unwrap_or_default();
        name.starts_with(pool.name())
    };
    paths.filter(is_own).collect()
}

#[test]
fn a_pinned_submitter_pins_no_worker() {
    let pool = ThreadPool::new_named("free", 1, 1, HOUR);
    let submitter = pool.clone();
    // The first submission, which starts the worker and the keeper.
    let (in_worker, _) = pinned(move || submitter.evaluate(own_cpus).await_complete());
    assert_eq!(in_worker, own_cpus());
    let expected = status_of("/proc/thread-self", "Cpus_allowed");
    wait_until("the keeper too", || {
        let threads = threads_of(&pool);
        threads.len() == 2 && threads.iter().all(|path| status_of(path, "Cpus_allowed") == expected)
    });
    pool.shutdown_join();
}

#[test]
fn a_pool_that_a_pinned_thread_builds_is_pinned() {
    let (pool, only) = pinned(|| ThreadPool::new(1, 1, HOUR));
    assert_eq!(pool.evaluate(own_cpus).await_complete(), only);
    pool.shutdown_join();
}

/// Neither does a child process that a task starts.
#[test]
fn a_submitter_that_blocks_signals_does_not_make_workers_block_them() {
    let pool = ThreadPool::new_named("signals", 1, 1, HOUR);
    let before = status_of("/proc/thread-self", "SigBlk");
    let submitter = pool.clone();
    let (in_worker, in_child) = joined(thread::spawn(move || {
        block_one_signal();
        assert_ne!(status_of("/proc/thread-self", "SigBlk"), before, "one is blocked");
        let in_worker = || status_of("/proc/thread-self", "SigBlk");
        let in_child = || Command::new("cat").arg("/proc/self/status").output().unwrap().stdout;
        (
            submitter.evaluate(in_worker).await_complete(),
            submitter.evaluate(in_child).await_complete(),
        )
    }));
    let expected = status_of("/proc/thread-self", "SigBlk");
    assert_eq!(in_worker, expected);
    let in_child = String::from_utf8(in_child).unwrap();
    assert!(in_child.contains(&format!("SigBlk:\t{expected}")), "{in_child}");
    let threads = threads_of(&pool);
    assert!(threads.iter().all(|path| status_of(path, "SigBlk") == expected), "the keeper too");
    pool.shutdown_join();
}

#[test]
fn a_pool_that_is_built_with_blocked_signals_blocks_them() {
    let (pool, expected) = joined(thread::spawn(|| {
        block_one_signal();
        (ThreadPool::new(1, 1, HOUR), status_of("/proc/thread-self", "SigBlk"))
    }));
    let in_worker = pool.evaluate(|| status_of("/proc/thread-self", "SigBlk"));
    assert_eq!(in_worker.await_complete(), expected);
    pool.shutdown_join();
}

fn block_one_signal() {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call initialises the set, and the others use it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Returns the names of the thread: the system's, and that which panics show.
fn names() -> (String, String) {
    let comm = fs::read_to_string("/proc/thread-self/comm").unwrap();
    (comm.trim_end().to_owned(), thread::current().name().unwrap().to_owned())
}

/// The names of the workers of a pool with this name, in the order of their indexes.
fn names_of_workers(pool: ThreadPool, count: usize) -> Vec<(String, String)> {
    let gate = common::Gate::new();
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let gate = gate.clone();
            pool.evaluate(move || {
                gate.meet(count);
                (elastipool::worker_index(), names())
            })
        })
        .collect();
    let mut names: Vec<_> = tasks.into_iter().map(|task| task.await_complete()).collect();
    names.sort();
    pool.shutdown_join();
    names.into_iter().map(|(_, names)| names).collect()
}

#[test]
fn the_index_is_visible_beside_a_long_name() {
    let names = |name: &str| names_of_workers(ThreadPool::new_named(name, 12, 12, HOUR), 12);
    let long = names("elastipool-10");
    assert_eq!(long[1], ("elastipool-10-1".to_owned(), "elastipool-10-1".to_owned()));
    assert_eq!(long[10], ("elastipool-1-10".to_owned(), "elastipool-10-10".to_owned()));
    let wide = names("Überläufer-Gruppe");
    assert_eq!(wide[11], ("Überläufer-11".to_owned(), "Überläufer-Gruppe-11".to_owned()));
    assert_eq!(names("short")[11], ("short-11".to_owned(), "short-11".to_owned()));
}

/// A name that the user gives is the user's: the system shows the first 15 bytes.
#[test]
fn the_users_names_are_cut_as_they_are() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).name("a-long-pool-name");
    let pool = builder.thread_name(|index| format!("worker {index} of many")).build();
    let names = pool.evaluate(names).await_complete();
    assert_eq!(names, ("worker 0 of man".to_owned(), "worker 0 of many".to_owned()));
    pool.shutdown_join();
}
