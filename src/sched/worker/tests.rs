use std::sync::Arc;

use super::{Start, Worker};
use crate::Builder;
#[cfg(feature = "async")]
use crate::Growth;
use crate::crew::Search;
use crate::queue::Kind;
use crate::sched::shared::Shared;
use crate::sync::Mutex;
use crate::sync::cpu::cpus;
use crate::task::Job;

/// A worker that is counted, without a thread.
fn worker(shared: &Arc<Shared>) -> Worker {
    shared.counts.add_worker();
    Worker::new(Start {
        shared: Arc::clone(shared),
        gate: Arc::new(Mutex::new(())),
        key: shared.registry.lock().take_key(),
        index: 0,
        has_default_name: true,
        metrics: Arc::default(),
        search: None,
        shrinks: 0,
    })
}

#[test]
fn a_worker_that_rests_does_not_search() {
    for is_starting in [true, false] {
        let pool = Builder::new().core_size(0).build();
        let shared = pool.shared();
        let mut worker = worker(shared);
        if is_starting {
            shared.counts.begin_starting();
            worker.search = Some(Search::Starting);
        } else {
            assert!(shared.counts.begin_search());
            worker.search = Some(Search::Searching);
        }
        worker.begin_rest();
        let now = shared.counts.load();
        assert_eq!((now.idle(), now.searching(), shared.counts.starting()), (1, 0, 0));
        shared.counts.remove_idle();
        _ = shared.counts.remove_worker();
    }
}

#[test]
fn a_worker_spins_while_no_other_searches() {
    let pool = Builder::new().core_size(0).max_size(cpus() + 2).build();
    let shared = pool.shared();
    let mut worker = worker(shared);
    // As many run as there are CPUs, with this one.
    for _ in 1..cpus() {
        shared.counts.add_worker();
    }
    assert!(shared.counts.begin_search());
    shared.queue.push(Kind::New, Job::closure(|| ()));
    assert!(!worker.spin_for_work(), "another one searches");
    assert_eq!(worker.search, None);
    _ = shared.counts.end_search(Search::Searching);
    shared.counts.begin_starting();
    worker.search = Some(Search::Starting);
    assert!(worker.spin_for_work());
    assert_eq!(worker.search, Some(Search::Searching));
    // Once more: it keeps its search.
    assert!(worker.spin_for_work());
    assert_eq!((shared.counts.load().searching(), shared.counts.starting()), (1, 0));
    // One more runs than there are CPUs.
    shared.counts.add_worker();
    assert!(!worker.spin_for_work());
    _ = shared.counts.remove_worker();
    assert!(worker.context.pop(&shared.queue).is_some_and(|job| job.run().is_end()));
    assert!(!worker.spin_for_work(), "there is no work");
    for _ in 0..cpus() {
        _ = shared.counts.remove_worker();
    }
    _ = shared.counts.end_search(Search::Searching);
}

/// Law 4: more than `max_size` run after a region.
#[cfg(feature = "async")]
#[test]
fn above_max_size_no_worker_goes_on_for_a_future() {
    let builder = Builder::new().core_size(0).max_size(2);
    let pool = builder.growth(Growth::measured(1)).build();
    let _view = pool.view().build();
    let shared = pool.shared();
    shared.queue.push(Kind::Woken, Job::closure(|| ()));
    for is_above in [false, false, true] {
        shared.counts.add_worker();
        assert_eq!(shared.is_above_limit(shared.counts.load()), is_above);
    }
    assert!(shared.queue.pop().is_some_and(|job| job.run().is_end()));
    (0..3).for_each(|_| _ = shared.counts.remove_worker());
}
