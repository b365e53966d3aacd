//! Waits in a pool whose queue is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{LIMIT, value};
use crate::{KINDS, ORDERS, assert_ended_on, at_work, builder, free_capacity, in_task, tree};

#[test]
fn nested_waits_in_a_bounded_queue_end_and_release_their_permits() {
    for capacity in [0, 1, 10] {
        for submit in KINDS {
            for order in ORDERS {
                for (width, depth, count) in [(1, 30, 31), (2, 5, 63), (25, 1, 26)] {
                    let pool = builder(1).queue_capacity(capacity).build();
                    assert_eq!(free_capacity(&pool), capacity);
                    let before = pool.stats().completed;
                    let own = pool.clone();
                    let counted =
                        value(pool.evaluate(move || tree(&own, *submit, order, width, depth)));
                    assert_eq!(counted, count);
                    assert!(pool.join_timeout(LIMIT));
                    assert_eq!(pool.queued_count(), 0);
                    let stats = pool.stats();
                    assert_eq!((stats.completed - before, stats.in_flight()), (count, 0));
                    assert_eq!(free_capacity(&pool), capacity, "{order:?} {width} {depth}");
                }
            }
        }
    }
}

#[test]
fn scopes_and_groups_in_a_bounded_queue_end_and_release_their_permits() {
    for capacity in [0, 1, 10] {
        let pool = builder(1).queue_capacity(capacity).build();
        let sum = in_task(&pool, |own| {
            let sum = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 {
                own.scope(|scope| {
                    for _ in 0..15 {
                        scope.execute(|| _ = sum.fetch_add(1, Ordering::Relaxed));
                    }
                });
                let group = own.group::<()>().limit(2);
                for _ in 0..15 {
                    let sum = Arc::clone(&sum);
                    group
                        .execute(move || {
                            sum.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        })
                        .unwrap();
                }
                group.wait().unwrap();
            }
            sum.load(Ordering::Relaxed)
        });
        assert_eq!(sum, 90);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().in_flight(), 0);
        assert_eq!(free_capacity(&pool), capacity);
    }
}

/// Until a worker has skipped the entry, the task keeps its permit, though it does not count as queued.
#[test]
fn an_entry_keeps_its_permit_until_it_is_skipped() {
    let pool = builder(1).queue_capacity(2).build();
    in_task(&pool, |own| {
        let (first, second) = (own.evaluate(|| 1), own.evaluate(|| 2));
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(second.await_complete(), 2);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (1, (1, 1, 0)));
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(first.await_complete(), 1);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (0, (1, 0, 0)));
        assert!(own.try_execute(|| ()).is_err());
    });
    assert_ended_on(1, &pool, 3);
    assert_eq!(free_capacity(&pool), 2);
}
