//! What a region does not do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::blocking_regions::{assert_is_itself_again, one};
use crate::common::{HOUR, LIMIT, settled, submit_region, value, wait_until};
use elastipool::{ThreadPool, blocking};

#[test]
fn a_region_starts_no_thread_if_nothing_is_queued() {
    let pool = one();
    for _ in 0..20 {
        assert_eq!(value(pool.evaluate(|| blocking(|| 7))), 7);
        assert!(pool.join_timeout(LIMIT));
        // It waits for this thread, which submits nothing.
        let (task, gate) = submit_region(&pool);
        gate.open();
        value(task);
        assert!(pool.join_timeout(LIMIT));
    }
    // A submitter that is slow finds its task's worker in the region, and may start one for
    // nothing: rarely.
    let started = pool.stats().threads_started;
    assert!(started < 10, "{started} threads for 40 regions");
}

#[test]
fn a_region_in_a_region_counts_once() {
    let pool = one();
    let own = pool.clone();
    let task = pool.evaluate(move || {
        let blocked = || own.stats().blocked;
        let before = blocked();
        let (outer, inner, waited, after_inner) = blocking(|| {
            let outer = blocked();
            let (inner, waited) = blocking(|| {
                let inner = blocked();
                (inner, value(own.evaluate(|| 7)))
            });
            (outer, inner, waited, blocked())
        });
        (before, outer, inner, waited, after_inner, blocked())
    });
    assert_eq!(value(task), (0, 1, 1, 7, 1, 0));
    assert_eq!(pool.stats().peak_workers, 2);
    assert_is_itself_again(&pool);
}

#[test]
fn stats_count_the_regions() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let mut regions = Vec::new();
    for count in 1..=3 {
        regions.push(submit_region(&pool));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.active, stats.in_flight()), (count, count, count));
        assert!(stats.workers >= stats.blocked + stats.idle, "{stats:?}");
    }
    for (left, (task, gate)) in regions.into_iter().enumerate() {
        gate.open();
        value(task);
        wait_until("one less", || pool.stats().blocked == 2 - left);
    }
    assert_is_itself_again(&pool);
}

#[test]
fn blocking_outside_of_a_pool_calls_the_closure() {
    assert_eq!(blocking(|| blocking(|| 7)), 7);
    let pool = one();
    let here = thread::current().id();
    assert_eq!(blocking(|| thread::current().id()), here);
    let blocked = blocking(|| value(pool.evaluate(|| 7)));
    assert_eq!((blocked, pool.stats().blocked), (7, 0));
    let panicked = catch_unwind(|| blocking(|| panic!("goes on")));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"goes on"));
}

#[test]
fn a_panic_ends_its_region_and_goes_on() {
    let pool = one();
    let own = pool.clone();
    let task = pool.evaluate(move || {
        let inner = || blocking(|| -> u8 { panic!("goes on") });
        let payload = catch_unwind(AssertUnwindSafe(|| blocking(inner))).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"goes on"));
        assert_eq!(own.stats().blocked, 0);
        // There is a region again for the next one.
        assert_eq!(blocking(|| value(own.evaluate(|| 7))), 7);
        blocking(|| -> u8 { panic!("to the end") })
    });
    let error = settled(task).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: to the end");
    assert_eq!(pool.stats().blocked, 0);
    assert_is_itself_again(&pool);
}
