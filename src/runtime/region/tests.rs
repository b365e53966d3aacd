use super::{Dependency, MAX_SPINS, spins_beside, spins_first};
use crate::runtime::context::remember_pool;
use crate::runtime::counts::Counts;
use crate::sync::cpu::cpus;
use crate::task::job::Job;

#[test]
fn a_worker_with_a_deadline_does_not_spin() {
    let spins = |is_worker, has_deadline| {
        [Dependency::Future, Dependency::Other]
            .map(|dependency| spins_first(is_worker, dependency, has_deadline))
    };
    assert_eq!(spins(true, false), [true, false]);
    assert_eq!(spins(true, true), [false; 2]);
    assert_eq!(spins(false, true), [true; 2]);
}

#[test]
fn a_thread_does_not_spin_behind_a_backlog() {
    let pool = crate::Builder::new().core_size(0).max_size(cpus() + 1).build();
    let shared = pool.shared();
    let tasks = Dependency::Pool(shared.id());
    let spins = |dependency| spins_first(false, dependency, false);
    for _ in 0..cpus() {
        shared.counts.add_worker();
        shared.queue.push(Job::closure(|| ()));
    }
    assert!(spins(tasks), "the thread has asked for no handle");
    remember_pool(shared);
    assert!(!spins(tasks));
    assert!(spins(Dependency::Scope(shared.id())));
    assert!(spins(Dependency::Future));
    shared.counts.remove_worker();
    assert!(spins(tasks), "a CPU is free");
    shared.counts.add_worker();
    assert!(!spins(tasks));
    assert!(shared.queue.pop().is_some());
    assert!(spins(tasks), "the next worker that ends its task is free");
    shared.queue.push(Job::closure(|| ()));
    let other = crate::ThreadPool::default();
    assert!(spins(Dependency::Pool(other.shared().id())), "another pool");
    assert_eq!(other.evaluate(|| 1).await_complete(), 1);
    assert!(spins(tasks), "the thread has asked another pool since");
    other.shutdown_join();
    for _ in 0..cpus() {
        shared.counts.remove_worker();
    }
}

#[test]
fn each_wait_for_the_pool_adds_two_spins_up_to_a_bound() {
    let counts = Counts::new();
    for _ in 0..4 {
        counts.add_worker();
    }
    let spins: Vec<_> = (0..6).map(|waits| spins_beside(counts.load(), waits, 4)).collect();
    assert_eq!(spins, [1, 3, 5, 7, MAX_SPINS, MAX_SPINS]);
    assert_eq!(spins_beside(counts.load(), 4, 3), 1, "more are running than CPUs");
}
