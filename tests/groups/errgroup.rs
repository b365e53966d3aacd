//! The defects of a well-known package of the kind, Go's neilotoole/errgroup, that a task group
//! must not have. There a group is a queue of `qSize` functions and `numG` goroutines that run
//! them.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{
    Drops, Gate, HOUR, failure, hold, hold_then, hold_then_fail, in_line, joined, under_way,
    wait_until, waited,
};
use elastipool::{RejectReason, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

// ----- 1: `Go` from inside of a function of the group -----

#[test]
fn a_submission_from_inside_of_a_full_group_does_not_deadlock() {
    for (max_size, limit) in [(1, 1), (2, 2)] {
        let pool = pool(max_size);
        let group = pool.group::<&str>().limit(limit);
        let ran = Arc::new(AtomicUsize::new(0));
        let table = Gate::new();
        for _ in 0..limit {
            let (inside, ran, table) = (group.clone(), Arc::clone(&ran), Arc::clone(&table));
            let submits = move || {
                // The group is full of tasks that are about to submit.
                table.meet(limit);
                for _ in 0..10 {
                    let ran = Arc::clone(&ran);
                    let inner = move || {
                        ran.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    };
                    inside.execute(inner).unwrap();
                }
                Ok(())
            };
            group.execute(submits).unwrap();
        }
        assert!(waited(&group).is_ok());
        assert_eq!(ran.load(Ordering::SeqCst), 10 * limit);
    }
}

#[test]
fn a_submission_from_inside_of_a_group_does_not_deadlock_while_a_thread_waits() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let inside = group.clone();
    let gate = hold_then(&group, move || {
        inside.execute(|| Err("the inner one")).unwrap();
        Ok(())
    });
    let (begun, waits) = (Gate::new(), group.clone());
    let begins = Arc::clone(&begun);
    let waiter = thread::spawn(move || {
        begins.meet(1);
        failure(&waits).to_string()
    });
    begun.wait_for(1);
    gate.open();
    assert_eq!(joined(waiter), "the inner one");
}

// ----- 2: functions that are queued when an error comes, or after it -----

#[test]
fn no_task_of_a_group_is_lost_after_an_error() {
    for limit in [1, 2, 4] {
        let pool = pool(4);
        let group = pool.group().limit(limit);
        let (ran, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        // As many failures as there would be goroutines, and more.
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..50 {
            let (ran, captured) = (Arc::clone(&ran), drops.issue());
            let task = move || {
                drop(captured);
                ran.fetch_add(1, Ordering::SeqCst);
                Err("failed")
            };
            match group.execute(task) {
                Ok(()) => accepted += 1,
                Err(rejected) => {
                    assert_eq!(rejected.reason(), RejectReason::Cancelled);
                    refused += 1;
                }
            }
        }
        assert_eq!(failure(&group).to_string(), "failed");
        assert!(refused > 0 && accepted > 0);
        assert_eq!(ran.load(Ordering::SeqCst) + group.dropped_count(), accepted);
        // Whatever became of them, it is over when the wait returns.
        assert_eq!(drops.count(), 50);
    }
}

#[test]
fn an_error_rejects_a_submitter_that_waits_for_the_group() {
    let pool = pool(1);
    let group = pool.group().limit(1);
    let gate = hold_then_fail(&group, "failed");
    let submits = group.clone();
    let submitter = thread::spawn(move || submits.execute(|| Ok(())).unwrap_err().reason());
    wait_until("it is in line", || in_line(&group) == 1);
    gate.open();
    assert_eq!(joined(submitter), RejectReason::Cancelled);
    assert_eq!(failure(&group).to_string(), "failed");
}

// ----- 3: a queue of size 0 -----

#[test]
fn without_a_queue_as_many_tasks_as_the_groups_limit_run_at_the_same_time() {
    let builder = ThreadPool::builder().core_size(1).max_size(4).keep_alive(HOUR);
    let pool = builder.queue_capacity(0).build();
    let group = pool.group::<&str>().limit(4);
    let table = Gate::new();
    for _ in 0..4 {
        let table = Arc::clone(&table);
        group
            .execute(move || {
                table.meet(4);
                Ok(())
            })
            .unwrap();
    }
    assert!(waited(&group).is_ok());
}

// ----- 4: `Go` while another calls `Wait` -----

#[test]
fn submissions_to_a_group_and_waits_for_it_may_be_concurrent() {
    let pool = pool(2);
    let group = pool.group::<&str>().limit(2);
    let ran = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let ran = Arc::clone(&ran);
                    let task = move || {
                        ran.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    };
                    group.execute(task).unwrap();
                }
            });
            scope.spawn(|| (0..200).for_each(|_| assert!(waited(&group).is_ok())));
        }
    });
    assert!(waited(&group).is_ok());
    assert_eq!(ran.load(Ordering::SeqCst), 400);
}

#[test]
fn a_submission_during_a_wait_is_waited_for_if_the_group_has_not_ended() {
    let pool = pool(2);
    let group = pool.group();
    let gate = hold(&group);
    let (begun, waits) = (Gate::new(), group.clone());
    let begins = Arc::clone(&begun);
    let waiter = thread::spawn(move || {
        begins.meet(1);
        failure(&waits).to_string()
    });
    begun.wait_for(1);
    group.execute(|| Err("submitted during the wait")).unwrap();
    wait_until("it has failed", || under_way(&group) == 1);
    gate.open();
    assert_eq!(joined(waiter), "submitted during the wait");
}

// ----- 5: a group that is used again, and panics -----

#[test]
fn a_groups_error_is_returned_once_and_the_group_can_be_used_again() {
    let pool = pool(1);
    let group = pool.group().limit(1);
    for round in 0..5 {
        assert!(!group.is_cancelled() && !group.token().is_cancelled());
        group.execute(move || Err(format!("round {round}"))).unwrap();
        assert_eq!(failure(&group).to_string(), format!("round {round}"));
        assert!(!group.is_cancelled() && !group.token().is_cancelled());
        let token = group.token();
        group
            .execute(move || if token.is_cancelled() { Err("old".into()) } else { Ok(()) })
            .unwrap();
        assert!(waited(&group).is_ok());
    }
}

#[test]
fn a_panic_does_not_end_the_process_and_the_group_can_be_used_again() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    for _ in 0..3 {
        group.execute(|| panic!("caught")).unwrap();
        assert_eq!(failure(&group).to_string(), "the task panicked: caught");
        group.execute(|| Ok(())).unwrap();
        assert!(waited(&group).is_ok());
    }
}
