//! Waits in a pool whose queue is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::awaited::{
    KINDS, ORDERS, assert_ended_on, at_work, builder, free_capacity, in_task, tree,
};
use crate::common::{Gate, LIMIT, value};

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

/// A task that its waiter runs releases its permit when it ends, though its entry is still queued.
#[test]
fn an_awaited_task_releases_its_permit_when_it_ends() {
    let pool = builder(1).queue_capacity(2).build();
    in_task(&pool, |own| {
        let (first, second) = (own.evaluate(|| 1), own.evaluate(|| 2));
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(first.await_complete(), 1);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (1, (1, 1, 0)));
        own.try_execute(|| ()).expect("one permit is free");
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(second.await_complete(), 2);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (1, (1, 1, 0)));
        own.try_execute(|| ()).expect("one permit is free");
        assert!(own.try_execute(|| ()).is_err());
    });
    assert_ended_on(1, &pool, 5);
    assert_eq!(free_capacity(&pool), 2);
}

/// The only worker runs task after task that it waits for, so no worker takes their entries.
#[test]
fn a_worker_of_a_full_queue_waits_for_any_number_of_tasks() {
    let pool = builder(1).queue_capacity(1).build();
    in_task(&pool, |own| {
        for number in 0..1000 {
            let Ok(handle) = own.try_evaluate(move || number) else {
                panic!("task {number} got no permit");
            };
            assert_eq!(handle.await_complete(), number);
        }
    });
    assert_eq!(pool.stats().peak_workers, 1);
}

/// A thread that cancels it is in its destructor, and has not taken it off the group's list: the wait
/// for the group finds nothing to run.
#[test]
fn a_groups_task_that_is_being_cancelled_releases_one_permit() {
    struct Passes(Arc<Gate>);

    impl Drop for Passes {
        fn drop(&mut self) {
            self.0.pass();
        }
    }

    let pool = builder(1).queue_capacity(2).build();
    in_task(&pool, |own| {
        let (group, gate) = (own.group::<()>(), Gate::new());
        group.execute(|| Ok(())).unwrap();
        let passes = Passes(Arc::clone(&gate));
        let handle = group.evaluate(move || drop(passes));
        let stop = handle.abort_handle();
        let canceller = thread::spawn(move || stop.cancel());
        gate.wait_for(1);
        assert!(group.wait_timeout(Duration::from_millis(1)).is_none());
        gate.open();
        canceller.join().unwrap();
        assert!(handle.try_await_complete().is_err());
        group.wait().unwrap();
    });
    assert_eq!(free_capacity(&pool), 2);
}

/// Claimed by its handle, the task is not in the group's list when the group is waited for.
#[test]
fn a_groups_task_that_was_awaited_before_releases_one_permit() {
    let pool = builder(1).queue_capacity(2).build();
    in_task(&pool, |own| {
        let group = own.group::<()>();
        group.execute(|| Ok(())).unwrap();
        // The newest.
        let handle = group.evaluate(|| 1);
        assert_eq!(handle.await_complete(), 1);
        group.wait().unwrap();
    });
    assert_ended_on(1, &pool, 3);
    assert_eq!(free_capacity(&pool), 2);
}
