use std::sync::{Arc, Barrier};
use std::thread;

use super::{RegionKind, WorkerContext};
use crate::Builder;

/// The test's threads stand for workers.
#[test]
fn a_worker_that_waits_to_be_in_a_declared_region_counts_once() {
    let pool = Builder::new().core_size(0).max_size(1).max_blocked(1).build();
    let shared = pool.shared();
    for _ in 0..5 {
        shared.counts.add_worker();
    }
    let worker = || WorkerContext::new(shared, Arc::default());
    let (own, declared) = (Some(RegionKind::Own), Some(RegionKind::Declared));
    let has_left = Barrier::new(2);
    let first = worker();
    first.change_region(declared);
    thread::scope(|scope| {
        scope.spawn(|| {
            let second = worker();
            second.change_region(declared);
            assert_eq!(shared.counts.load().blocked(), 1, "one is counted");
            second.change_region(own);
            assert_eq!(shared.counts.load().blocked(), 2);
            // More run than may.
            second.change_region(declared);
            has_left.wait();
            assert_eq!(shared.counts.load().blocked(), 1, "it is counted in its declared region");
            second.change_region(None);
        });
        while shared.returning.is_empty() {
            thread::yield_now();
        }
        // Its region ends, and it does not wait for its turn.
        assert!(shared.leave_counted(RegionKind::Declared));
        shared.counts.remove_blocked();
        assert_eq!(shared.counts.load().blocked(), 1, "the one that waits");
        has_left.wait();
    });
    assert_eq!(shared.counts.load().blocked(), 0);
}
