use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Stint, Worker};
use crate::Builder;
use crate::runtime::counts::Search;
use crate::runtime::shared::{Shared, Start};
use crate::sync::Mutex;
use crate::sync::cpu::Cpu;
use crate::sync::cpu::cpus;
use crate::sync::spin::Gather;
use crate::task::job::Job;

/// A worker that is counted, without a thread.
fn worker(shared: &Arc<Shared>) -> Worker {
    shared.counts.add_worker();
    Worker::new(Start {
        shared: Arc::clone(shared),
        gate: Arc::new(Mutex::new(())),
        key: shared.registry.lock().next_keeper_key(),
        index: 0,
        metrics: Arc::default(),
        search: None,
        shrinks: 0,
    })
}

#[test]
fn a_worker_spins_beside_a_claimed_one_and_takes_its_search() {
    let pool = Builder::new().core_size(0).max_size(cpus() + 2).build();
    let shared = pool.shared();
    let mut spinning = worker(shared);
    assert_eq!(spinning.running.is_some(), Cpu::current().is_some());
    // Claimed, and without a CPU. As many others run as there are CPUs, with the spinning one.
    for _ in 0..cpus() {
        shared.counts.add_worker();
    }
    assert!(shared.counts.begin_search(None));
    assert!(!spinning.spin_for_work(), "there is no work");
    assert_eq!(spinning.search, None);
    shared.queue.push(Job::closure(|| ()));
    assert!(spinning.spin_for_work());
    assert_eq!(spinning.search, None, "the other one has it");
    // Either way it would not be too many that run.
    shared.counts.remove_worker();
    // It holds a search of another kind, on which submitters may rely.
    assert!(shared.counts.begin_monitoring(None));
    spinning.search = Some(Search::Monitoring);
    assert!(!spinning.spin_for_work());
    assert_eq!(spinning.search.take(), Some(Search::Monitoring));
    shared.counts.end_search(Search::Monitoring);
    // A standby worker has the other search.
    shared.standbys.increment();
    assert!(!spinning.spin_for_work());
    shared.standbys.decrement();
    shared.counts.add_worker();
    // Another one spins.
    shared.spinners.increment();
    assert!(!spinning.spin_for_work());
    shared.spinners.decrement();
    assert_eq!(shared.spinners.get(), 0);
    // One more runs than there are CPUs.
    shared.counts.add_worker();
    assert!(!spinning.spin_for_work());
    shared.counts.remove_worker();
    // The claimed worker rests.
    assert!(spinning.context.pop(&shared.queue).is_some_and(|job| job.run().is_end()));
    shared.counts.remove_worker();
    shared.counts.end_search(Search::Awake);
    assert!(!spinning.spin_for_work());
    assert_eq!(spinning.search, Some(Search::Awake));
    for _ in 0..cpus() {
        shared.counts.remove_worker();
    }
    shared.counts.end_search(Search::Awake);
}

#[test]
fn tasks_do_not_gather_while_a_joiner_waits() {
    let pool = Builder::new().core_size(0).max_size(1).build();
    let shared = pool.shared();
    let mut spinning = worker(shared);
    // As if it had run tasks.
    spinning.context.begin(false);
    assert!(shared.in_flight.accept(1));
    thread::scope(|scope| {
        scope.spawn(|| pool.join());
        while !shared.in_flight.is_awaited() {
            thread::yield_now();
        }
        assert!(!spinning.spin_for_work());
        // Before any assertion could fail: the joiner would wait for ever.
        assert!(shared.finish(1).is_quiet());
    });
    assert_eq!(spinning.gather, Gather::default());
    shared.counts.remove_worker();
    shared.counts.end_search(Search::Awake);
}

#[test]
fn a_stint_without_a_task_tells_nothing_about_tasks() {
    let mut stint = Stint::new();
    let after = |stint: &Stint, micros| stint.began + Duration::from_micros(micros);
    let now = after(&stint, 1_000);
    assert_eq!(stint.end(now, 0), None);
    assert_eq!(stint.end(now, 1), Some(true));
    stint.begin(now, 1);
    assert_eq!(stint.end(after(&stint, 1_000), 1), None);
    assert_eq!(stint.end(after(&stint, 1), 2), Some(false));
}
