//! The default size on Linux follows the CPUs that the process may run on.

#![cfg(all(target_os = "linux", not(any(miri, elastipool_loom))))]

use crate::common;

use std::sync::mpsc;
use std::thread;

use elastipool::ThreadPool;
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may run on.
fn allowed_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).expect("the kernel tells");
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Lets a thread run on these CPUs only.
fn restrict(thread: Option<Pid>, cpus: &[usize]) {
    let mut allowed = CpuSet::new();
    cpus.iter().for_each(|cpu| allowed.set(*cpu));
    sched_setaffinity(thread, &allowed).expect("they were allowed before");
}

/// Lets the main thread, which has the number of the process, and this one run on these CPUs only:
/// `taskset` does that to a whole process.
fn restrict_to(cpus: &[usize]) {
    restrict(Some(getpid()), cpus);
    restrict(None, cpus);
}

fn default_sizes() -> (usize, usize) {
    let pool = ThreadPool::default();
    // As many run, unless they sleep.
    (pool.core_size(), pool.stats().allowed)
}

#[test]
fn the_default_size_is_one_on_one_cpu() {
    common::child::run("the_default_size_is_one_on_one_cpu", [], || {
        // The last one: not the CPU that a program gets if it looks at none.
        let last = *allowed_cpus().last().expect("at least one");
        restrict_to(&[last]);
        assert_eq!(default_sizes(), (1, 1));
        // A smaller maximum limits both.
        let pool = ThreadPool::builder().max_size(1).build();
        assert_eq!((pool.core_size(), pool.max_size()), (1, 1));
    });
}

/// Neither for its own pool nor for those of other threads.
#[test]
fn a_pinned_thread_does_not_decide_the_default_size() {
    common::child::run("a_pinned_thread_does_not_decide_the_default_size", [], || {
        // The first pool of the process.
        let pinned = thread::spawn(|| {
            let last = *allowed_cpus().last().expect("at least one");
            restrict(None, &[last]);
            let sizes = default_sizes();
            assert_eq!(allowed_cpus(), [last], "it is still pinned");
            sizes
        });
        let sizes = pinned.join().unwrap();
        assert_eq!(sizes, default_sizes());
        let limit = thread::available_parallelism().unwrap().get();
        assert!(sizes.0 >= limit, "{sizes:?}, although {limit} may run");
    });
}

/// A program with one pinned thread for each CPU pins its main thread too.
#[test]
fn a_pinned_main_thread_does_not_decide_the_default_size() {
    common::child::run("a_pinned_main_thread_does_not_decide_the_default_size", [], || {
        let free = thread::spawn(|| {
            let limit = thread::available_parallelism().unwrap().get();
            restrict(Some(getpid()), &allowed_cpus()[..1]);
            let sizes = default_sizes();
            assert!(sizes.0 >= limit, "{sizes:?}, although {limit} may run");
        });
        free.join().unwrap();
    });
}

/// Not even for a moment.
#[test]
fn a_pinned_thread_that_builds_pools_stays_on_its_cpu() {
    common::child::run("a_pinned_thread_that_builds_pools_stays_on_its_cpu", [], || {
        let (sender, receiver) = mpsc::channel();
        let builds = thread::spawn(move || {
            let last = *allowed_cpus().last().expect("at least one");
            restrict(None, &[last]);
            sender.send(gettid()).unwrap();
            for _ in 0..3000 {
                default_sizes();
            }
        });
        let thread = receiver.recv().unwrap();
        let mut looks = 0;
        while let Ok(allowed) = sched_getaffinity(Some(thread)) {
            if builds.is_finished() {
                break;
            }
            assert_eq!(allowed.count(), 1, "after {looks} looks");
            looks += 1;
        }
        builds.join().unwrap();
    });
}

#[test]
fn the_default_size_follows_the_affinity() {
    common::child::run("the_default_size_follows_the_affinity", [], || {
        // A quota of the control group may be smaller. It is read once, with the first pool.
        let (limit, _) = default_sizes();
        let cpus = allowed_cpus();
        assert!((1..=cpus.len()).contains(&limit));
        if limit < cpus.len() {
            return eprintln!("skipped: the control group has a quota of {limit} CPUs");
        }
        for count in 1..=cpus.len() {
            restrict_to(&cpus[..count]);
            assert_eq!(default_sizes(), (count, count));
        }
    });
}
