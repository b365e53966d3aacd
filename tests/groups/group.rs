//! Task groups: what becomes of errors, panics and cancelled tasks, and who waits for what.

use crate::common;

use std::error::Error;
use std::num::ParseIntError;
use std::panic::{RefUnwindSafe, UnwindSafe, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{
    Drops, Gate, HOUR, LIMIT, block, failure, hold, hold_then, hold_then_fail, in_line, joined,
    refused, settled, under_way, value, wait_until, waited,
};
use elastipool::{
    CancellationToken, Cancelled, GroupError, GroupWait, RejectReason, TaskGroup, ThreadPool,
};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

fn texts<E: std::fmt::Display>(errors: &[GroupError<E>]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of all tasks, which have ended within the limit.
#[track_caller]
fn all<E: Send + 'static>(group: &TaskGroup<E>) -> Vec<GroupError<E>> {
    wait_until("the tasks end", || under_way(group) == 0);
    group.wait_all()
}

// ----- waiting -----

#[test]
fn a_wait_for_an_empty_group_returns_at_once() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    for _ in 0..3 {
        assert!(group.wait().is_ok());
        assert!(group.wait_all().is_empty());
        assert!(group.wait_timeout(Duration::ZERO).expect("nothing to wait for").is_ok());
    }
    assert_eq!(pool.stats().threads_started, 0);
}

#[test]
fn a_wait_for_a_group_lasts_until_all_its_tasks_have_ended() {
    let pool = pool(2);
    let group = pool.group::<&str>();
    let (first, second) = (hold(&group), hold(&group));
    assert!(group.wait_timeout(Duration::ZERO).is_none());
    first.open();
    wait_until("one has ended", || under_way(&group) == 1);
    assert!(group.wait_timeout(Duration::ZERO).is_none());
    second.open();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_wait_for_a_group_is_not_for_other_groups_nor_for_plain_tasks() {
    let pool = pool(3);
    let (group, other) = (pool.group::<&str>(), pool.group::<&str>());
    let gates = [block(&pool), hold(&other)];
    group.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
    gates.iter().for_each(|gate| gate.open());
    assert!(waited(&other).is_ok());
}

#[test]
fn what_tasks_have_written_is_visible_after_a_wait_for_their_group() {
    let pool = pool(4);
    let group = pool.group::<&str>();
    let cells: Arc<[AtomicUsize]> = (0..8).map(|_| AtomicUsize::new(0)).collect();
    for round in 1..200 {
        for i in 0..8 {
            let cells = Arc::clone(&cells);
            group
                .execute(move || {
                    cells[i].store(round, Ordering::Relaxed);
                    Ok(())
                })
                .unwrap();
        }
        assert!(waited(&group).is_ok());
        assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == round));
    }
}

#[test]
fn one_of_several_waiters_receives_the_error_and_the_others_a_cancellation() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    for _ in 0..20 {
        let gate = hold_then_fail(&group, "once");
        let begun = Gate::new();
        let wait = |_| {
            let (group, begun) = (group.clone(), Arc::clone(&begun));
            thread::spawn(move || {
                begun.meet(4);
                waited(&group)
            })
        };
        let waiters: Vec<_> = (0..4).map(wait).collect();
        begun.wait_for(4);
        gate.open();
        // A waiter that comes late finds an empty group.
        let errors: Vec<_> =
            waiters.into_iter().filter_map(|waiter| joined(waiter).err()).collect();
        assert_eq!(errors.iter().filter(|error| !error.is_cancelled()).count(), 1);
    }
}

#[test]
fn a_groups_error_after_a_timeout_is_for_the_next_wait() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let gate = hold(&group);
    group.execute(|| Err("late")).unwrap();
    assert!(group.wait_timeout(Duration::from_millis(1)).is_none());
    gate.open();
    assert_eq!(failure(&group).to_string(), "late");
    assert!(waited(&group).is_ok());
}

#[test]
fn a_worker_of_a_pool_of_one_waits_for_a_group() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let waits = group.clone();
    let handle = pool.evaluate(move || {
        for _ in 0..3 {
            waits.execute(|| Ok(())).unwrap();
        }
        waits.execute(|| Err("inner")).unwrap();
        waits.wait().map_err(|error| error.to_string())
    });
    assert_eq!(value(handle), Err("inner".to_owned()));
}

#[test]
fn a_task_of_one_group_waits_for_another_on_a_pool_of_one() {
    let pool = pool(1);
    let (outer, inner) = (pool.group::<String>().limit(1), pool.group::<&str>().limit(1));
    let waits = inner.clone();
    outer
        .execute(move || {
            for _ in 0..3 {
                waits.execute(|| Ok(())).unwrap();
            }
            waits.execute(|| Err("inner")).unwrap();
            waits.wait().map_err(|error| error.to_string())
        })
        .unwrap();
    assert_eq!(failure(&outer).to_string(), "inner");
}

#[test]
fn a_task_that_waits_for_its_own_group_panics() {
    type Wait = fn(&TaskGroup<&'static str>);
    let waits: [Wait; 2] = [|group| drop(group.wait()), |group| drop(group.wait_all())];
    let pool = pool(1);
    let group = pool.group::<&str>();
    for wait in waits {
        let own = group.clone();
        group
            .execute(move || {
                wait(&own);
                Ok(())
            })
            .unwrap();
        let error = failure(&group);
        assert!(error.is_panic());
        let expected = "the task panicked: `wait` was called by one of the group's own tasks";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    // Outside of its own tasks the worker may.
    assert!(value(pool.evaluate(move || group.wait().is_ok())));
}

#[test]
fn a_task_that_waits_for_its_own_group_with_a_limit_returns_at_once() {
    let pool = pool(1);
    let group = pool.group();
    let own = group.clone();
    group
        .execute(move || match own.wait_timeout(HOUR) {
            None => Ok(()),
            Some(_) => Err("it says that its own task has ended"),
        })
        .unwrap();
    assert!(waited(&group).is_ok());
}

// ----- errors -----

#[test]
fn a_group_returns_the_first_error_by_time() {
    let pool = pool(2);
    let group = pool.group();
    let gate = hold_then_fail(&group, "submitted first");
    group.execute(|| Err("failed first")).unwrap();
    wait_until("it has failed", || under_way(&group) == 1);
    gate.open();
    assert_eq!(failure(&group).to_string(), "failed first");
}

#[test]
fn a_group_returns_all_errors_in_the_order_in_which_they_came() {
    let pool = pool(3);
    let group = pool.group();
    let gates =
        [0, 1, 2].map(|i| hold_then(&group, move || if i == 1 { panic!("{i}") } else { Err(i) }));
    for (i, ended) in [(2, 2), (1, 1), (0, 0)] {
        gates[i].open();
        wait_until("it has ended", || under_way(&group) == ended);
    }
    assert_eq!(texts(&all(&group)), ["2", "the task panicked: 1", "0"]);
    assert!(all(&group).is_empty());
}

#[test]
fn a_group_returns_the_payload_of_the_first_panic() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    group.execute(|| panic_any(7_u32)).unwrap();
    let GroupError::Join(error) = failure(&group) else { panic!("not a panic") };
    assert_eq!(error.into_panic().downcast_ref(), Some(&7_u32));
    wait_until("it is counted", || pool.stats().panicked == 1);
    assert!(waited(&group).is_ok());
}

#[test]
fn a_groups_first_failure_may_be_a_panic_or_an_error() {
    for panics_first in [false, true] {
        let pool = pool(2);
        let group = pool.group();
        let fail = |panics| if panics { panic!("a panic") } else { Err("an error") };
        let gate = hold_then(&group, move || fail(!panics_first));
        group.execute(move || fail(panics_first)).unwrap();
        wait_until("it has failed", || group.is_cancelled());
        gate.open();
        assert_eq!(failure(&group).is_panic(), panics_first);
    }
}

#[test]
fn a_group_that_keeps_going_runs_everything() {
    let pool = pool(1);
    let group = pool.group().keep_going();
    for i in 0..6 {
        group
            .execute(move || match i % 3 {
                0 => Ok(()),
                1 => Err(i),
                _ => panic!("{i}"),
            })
            .unwrap();
    }
    let errors = all(&group);
    assert_eq!(texts(&errors), ["1", "the task panicked: 2", "4", "the task panicked: 5"]);
    assert_eq!(group.dropped_count(), 0);
    assert!(!group.is_cancelled());
}

#[test]
fn a_group_that_keeps_going_can_be_cancelled() {
    let pool = pool(1);
    let group = pool.group::<&str>().keep_going();
    let gate = hold(&group);
    let queued = block_queue(&group, 3);
    group.cancel();
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!((queued.count(), group.dropped_count()), (3, 3));
}

#[test]
fn a_group_error_says_what_its_cause_says() {
    let pool = pool(1);
    let group = pool.group::<Wrapped>();
    let parse = || "x".parse::<u32>().map(drop).map_err(Wrapped);
    group.execute(parse).unwrap();
    let error = failure(&group);
    assert!(!error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "wrapped");
    assert!(error.source().is_none(), "an error of the group has none");
    let GroupError::Failed(error) = error else { panic!("not the task's error: {error}") };
    let source = error.source().expect("the source of the task's error");
    assert!(source.is::<ParseIntError>());

    group.execute(|| panic!("boom")).unwrap();
    let error = failure(&group);
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: boom");
    assert!(error.source().is_none());

    group.cancel();
    let error = failure(&group);
    assert!(!error.is_panic() && error.is_cancelled());
    assert_eq!(error.to_string(), "the group was cancelled");
    assert!(error.source().is_none());
}

#[derive(Debug)]
struct Wrapped(ParseIntError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

// ----- cancelling -----

/// Queues tasks that must not run, and returns the drops of what they have captured.
fn block_queue<E: Send + 'static>(group: &TaskGroup<E>, count: usize) -> Drops {
    let drops = Drops::default();
    for _ in 0..count {
        let captured = drops.issue();
        let submitted = group.execute(move || {
            std::mem::forget(captured);
            panic!("it was run")
        });
        assert!(submitted.is_ok());
    }
    drops
}

#[test]
fn a_failure_drops_its_groups_queued_tasks() {
    for panics in [false, true] {
        let pool = pool(1);
        let group = pool.group();
        let gate =
            hold_then(&group, move || if panics { panic!("a failure") } else { Err("a failure") });
        let queued = block_queue(&group, 5);
        gate.open();
        assert!(failure(&group).to_string().ends_with("a failure"));
        // Before the wait has returned.
        assert_eq!((queued.count(), group.dropped_count()), (5, 5));
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.completed + stats.panicked), (5, 1));
    }
}

#[test]
fn a_running_closure_sees_its_groups_token() {
    let pool = pool(2);
    let group = pool.group();
    let token = group.token();
    let running = Gate::new();
    let runs = Arc::clone(&running);
    group
        .execute(move || {
            runs.meet(1);
            wait_until("the token is cancelled", || token.is_cancelled());
            Ok(())
        })
        .unwrap();
    running.wait_for(1);
    group.execute(|| Err("stop")).unwrap();
    assert_eq!(failure(&group).to_string(), "stop");
    assert_eq!(group.dropped_count(), 0);
}

#[test]
fn a_cancelled_group_hands_tasks_back_until_it_has_been_waited_for() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    group.cancel();
    assert!(group.is_cancelled());
    let drops = Drops::default();
    let captured = drops.issue();
    let task = move || {
        drop(captured);
        Ok(())
    };
    let task = refused(group.execute(task), RejectReason::Cancelled).into_task();
    let rejected = refused(group.try_execute(task), RejectReason::Cancelled);
    assert_eq!(rejected.to_string(), "the task was not accepted: the group was cancelled");
    assert_eq!((drops.count(), pool.stats().rejected, pool.stats().accepted()), (0, 2, 0));
    assert!(failure(&group).is_cancelled());

    assert!(!group.is_cancelled());
    group.execute(rejected.into_task()).unwrap();
    assert!(waited(&group).is_ok());
    assert_eq!((drops.count(), group.dropped_count()), (1, 0));
}

#[test]
fn a_groups_error_goes_before_a_cancellation() {
    let pool = pool(1);
    let group = pool.group();
    let gate = hold_then_fail(&group, "failed");
    group.cancel();
    group.cancel();
    gate.open();
    assert_eq!(texts(&all(&group)), ["failed"]);
}

#[test]
fn each_round_of_a_group_has_its_own_token() {
    let pool = pool(1);
    let group = pool.group();
    let before = group.token();
    group.execute(|| Err("first")).unwrap();
    assert_eq!(failure(&group).to_string(), "first");
    let after = group.token();
    assert!(before.is_cancelled() && before.clone().is_cancelled());
    assert!(!after.is_cancelled());
    group.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
    // A round that succeeds leaves the token as it is.
    group.cancel();
    assert!(after.is_cancelled());
}

#[test]
fn clones_of_a_group_are_the_same_group() {
    let pool = pool(1);
    let group = pool.group();
    let clone = group.clone().limit(1);
    let gate = hold(&group);
    refused(group.try_execute(|| Ok(())), RejectReason::Full);
    clone.cancel();
    assert!(group.is_cancelled());
    gate.open();
    assert!(failure::<&str>(&group).is_cancelled());
    assert!(waited(&clone).is_ok());
}

#[test]
fn a_failure_does_not_cancel_other_groups() {
    let pool = pool(1);
    let (failing, other) = (pool.group(), pool.group::<&str>());
    let gate = hold(&other);
    failing.execute(|| Err("fails")).unwrap();
    other.execute(|| Ok(())).unwrap();
    gate.open();
    assert_eq!(failure(&failing).to_string(), "fails");
    assert!(waited(&other).is_ok());
    assert_eq!(other.dropped_count(), 0);
}

#[test]
fn a_dropped_group_is_detached() {
    let pool = pool(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let gate = block(&pool);
    let group = pool.group::<&str>();
    for _ in 0..3 {
        let ran = Arc::clone(&ran);
        let task = move || {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        group.execute(task).unwrap();
    }
    drop(group);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

// ----- the pool's end -----

#[test]
fn a_group_does_not_keep_the_pool_open() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let gate = hold(&group);
    drop(pool);
    refused(group.execute(|| Ok(())), RejectReason::Closed);
    refused(group.try_execute(|| Ok(())), RejectReason::Closed);
    gate.open();
    assert!(waited(&group).is_ok());
    refused(group.execute(|| Ok(())), RejectReason::Closed);
    assert!(waited(&group).is_ok());
}

#[test]
fn a_groups_tasks_that_a_closed_pool_has_accepted_end() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let (gate, ran) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let (inside, passes, counts) = (group.clone(), Arc::clone(&gate), Arc::clone(&ran));
    group
        .execute(move || {
            for _ in 0..3 {
                let counts = Arc::clone(&counts);
                let deferred = move || {
                    counts.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                };
                inside.execute(deferred).unwrap();
            }
            passes.pass();
            refused(inside.execute(|| Ok(())), RejectReason::Closed);
            Ok(())
        })
        .unwrap();
    gate.wait_for(1);
    assert_eq!(in_line(&group), 3);
    pool.close();
    let submits = group.clone();
    let submitter =
        thread::spawn(move || drop(refused(submits.execute(|| Ok(())), RejectReason::Closed)));
    gate.open();
    // Those in line are in flight.
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    joined(submitter);
    assert!(waited(&group).is_ok());
}

#[test]
fn an_immediate_shutdown_drops_the_tasks_of_groups_and_gives_none_away() {
    for keeps_going in [false, true] {
        let pool = pool(1);
        let (group, other) = (pool.group::<&str>().limit(1), pool.group::<&str>());
        let group = if keeps_going { group.keep_going() } else { group };
        let (gate, drops) = (Gate::new(), Drops::default());
        let (inside, passes, issues) = (group.clone(), Arc::clone(&gate), drops.clone());
        group
            .execute(move || {
                for _ in 0..3 {
                    let captured = issues.issue();
                    let deferred = move || {
                        std::mem::forget(captured);
                        Ok(())
                    };
                    inside.execute(deferred).unwrap();
                }
                passes.pass();
                Ok(())
            })
            .unwrap();
        gate.wait_for(1);
        let queued = block_queue(&other, 4);
        let plain = pool.evaluate(|| 7);
        let tasks = pool.shutdown_now();
        assert_eq!((tasks.len(), queued.count()), (1, 4));
        assert!(failure(&other).is_cancelled());
        assert_eq!(other.dropped_count(), 4);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert!(failure(&group).is_cancelled());
        assert_eq!((drops.count(), group.dropped_count()), (3, 3));
        drop(tasks);
        assert!(settled(plain).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_hundred_thousand_waiting_tasks_are_dropped_one_after_another() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = builder.stack_size(256 << 10).build();
    let group = pool.group::<&str>().limit(1).keep_going();
    let (gate, inside) = (Gate::new(), group.clone());
    let passes = Arc::clone(&gate);
    group
        .execute(move || {
            for _ in 0..100_000 {
                inside.execute(|| panic!("it was run")).unwrap();
            }
            passes.pass();
            Ok(())
        })
        .unwrap();
    gate.wait_for(1);
    assert!(pool.shutdown_now().is_empty());
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(failure(&group).is_cancelled());
    assert_eq!(group.dropped_count(), 100_000);
}

// ----- the types -----

#[test]
fn the_types_of_groups_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    fn check_clone<T: Send + Sync + Clone + UnwindSafe + RefUnwindSafe>() {}
    // Of an error type that can only be sent.
    type Error = std::cell::Cell<u8>;
    check_clone::<TaskGroup<Error>>();
    check_clone::<CancellationToken>();
    check::<GroupWait<Error>>();
    check::<Cancelled>();
    check::<GroupError<u8>>();
}

// ----- a cancelled or failed group beside tasks of others -----

/// The only worker is busy with another task of the pool: the group's unstarted tasks end all the
/// same.
#[test]
fn a_cancelled_group_ends_while_all_workers_are_busy() {
    for limit in [usize::MAX, 2] {
        let pool = pool(1);
        let gate = block(&pool);
        let group = pool.group::<&str>().limit(limit);
        let captured = Arc::new(());
        let mut handles = Vec::new();
        for _ in 0..limit.min(10) / 2 {
            let [one, other] = [(); 2].map(|()| Arc::clone(&captured));
            let task = move || {
                drop(one);
                Ok(())
            };
            group.execute(task).unwrap();
            handles.push(group.evaluate(move || drop(other)));
        }
        let count = 2 * handles.len();
        assert_eq!(pool.stats().queued, count);
        group.cancel();
        assert_eq!(Arc::strong_count(&captured), 1, "the canceller has dropped them");
        for handle in handles {
            assert!(handle.is_finished());
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        }
        let result = group.wait_timeout(Duration::ZERO).expect("nothing of it is left");
        assert!(result.unwrap_err().is_cancelled());
        assert_eq!(group.dropped_count(), count);
        let stats = pool.stats();
        assert_eq!((stats.queued, stats.in_flight(), stats.cancelled), (0, 1, count));
        // The group can be used again, beside the entries that are left.
        let number = group.evaluate(|| 1);
        group.execute(|| Ok(())).unwrap();
        assert!(group.wait_timeout(Duration::ZERO).is_none());
        gate.open();
        assert_eq!(settled(number).unwrap(), 1);
        assert!(waited(&group).is_ok());
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (3, count, 0));
    }
}

/// An error is known before tasks of others that were queued between the group's have run.
#[test]
fn a_failed_group_is_reported_before_the_backlog() {
    for has_view in [false, true] {
        let pool = pool(1);
        let (first, gate) = (block(&pool), Gate::new());
        let view = has_view.then(|| pool.view().build());
        let target = view.as_deref().unwrap_or(&pool);
        let group = target.group();
        group.execute(|| Err("no such file")).unwrap();
        let others = (0..10).map(|_| Arc::clone(&gate));
        others.for_each(|gate| target.execute(move || gate.pass()));
        for _ in 0..100 {
            group.execute(|| unreachable!("the group has failed")).unwrap();
        }
        let waits = group.clone();
        let waiter = ThreadPool::new(1, 1, HOUR).evaluate(move || waits.wait());
        first.open();
        let error = settled(waiter).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "no such file");
        assert_eq!(group.dropped_count(), 100);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (12, 100, 0));
    }
}

/// A bounded queue is as empty afterwards as if the tasks had run.
#[test]
fn a_cancelled_group_gives_its_permits_back() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(10).build();
    for _ in 0..10 {
        let gate = block(&pool);
        let group = pool.group::<()>();
        for _ in 0..10 {
            group.try_execute(|| Ok(())).expect("there is capacity");
        }
        assert_eq!(group.try_execute(|| Ok(())).unwrap_err().reason(), RejectReason::Full);
        group.cancel();
        // At once, although the worker has yet to come to the entries.
        (0..10).for_each(|_| pool.try_execute(|| ()).expect("there is capacity"));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
    }
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (110, 100));
    let gate = block(&pool);
    (0..10).for_each(|_| pool.try_execute(|| ()).expect("there is capacity"));
    assert!(pool.try_execute(|| ()).is_err(), "no permit was given back twice");
    gate.open();
}

/// Tasks are submitted, taken by workers, and cancelled at the same time, again and again. Each
/// runs or is dropped, once.
#[test]
fn a_cancellation_that_races_with_workers_and_submitters_loses_no_task() {
    let pool = ThreadPool::builder().core_size(2).max_size(2).queue_capacity(20).build();
    let group = pool.group::<()>();
    let (drops, ran) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let mut accepted = 0;
    for _ in 0..1000 {
        thread::scope(|scope| {
            let group = &group;
            scope.spawn(move || {
                common::dawdle(2000);
                group.cancel();
            });
            let mut handles = Vec::new();
            for number in 0..20 {
                let (captured, ran) = (drops.issue(), Arc::clone(&ran));
                let task = move || {
                    let _captured = captured;
                    ran.fetch_add(1, Ordering::SeqCst);
                };
                if number % 2 == 0 {
                    accepted += 1;
                    handles.push(group.evaluate(task));
                } else {
                    let task = move || {
                        task();
                        Ok(())
                    };
                    accepted += usize::from(group.execute(task).is_ok());
                }
            }
            handles.into_iter().for_each(|handle| drop(settled(handle)));
        });
        let _ = waited(&group);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 20_000);
    let stats = pool.stats();
    assert!(stats.completed <= accepted);
    assert_eq!(stats.completed, ran.load(Ordering::SeqCst));
    assert_eq!((stats.queued, stats.in_flight()), (0, 0));
    let gate = block(&pool);
    let gates: Vec<_> = (1..2).map(|_| block(&pool)).collect();
    (0..20).for_each(|_| pool.try_execute(|| ()).expect("there is capacity"));
    assert!(pool.try_execute(|| ()).is_err(), "no permit was given back twice");
    gate.open();
    gates.iter().for_each(|gate| gate.open());
}
