//! A deadline cancels a group, whether or not a thread waits.

use crate::common;

use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use common::{
    Drops, Gate, HOUR, LIMIT, block, failure, hold, in_line, millis, settled, under_way,
    wait_until, waited,
};
#[cfg(feature = "async")]
use elastipool::Growth;
use elastipool::{Builder, JoinError, RejectReason, ThreadPool};

fn pool() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

fn soon() -> Instant {
    Instant::now() + millis(5)
}

#[test]
fn it_may_be_given_as_a_duration() {
    let pool = pool();
    let gate = block(&pool);
    let group = pool.group::<&str>().deadline_in(millis(5));
    group.execute(|| Ok(())).unwrap();
    assert!(failure(&group).is_expired());
    // A time that the clock cannot represent.
    let group = pool.group::<&str>().deadline_in(std::time::Duration::MAX);
    group.execute(|| Ok(())).unwrap();
    gate.open();
    assert!(waited(&group).is_ok());
}

/// No thread waits: the unstarted tasks are dropped while the only worker is busy, and the running
/// one sees the token.
#[test]
fn it_cancels_the_group_beside_a_busy_worker() {
    let pool = pool();
    let drops = Drops::default();
    let group = pool.group::<&str>();
    let (token, held) = (group.token(), drops.issue());
    let started = Gate::new();
    let starts = Arc::clone(&started);
    group
        .execute(move || {
            let _held = held;
            starts.open();
            while !token.is_cancelled() {
                thread::yield_now();
            }
            Ok(())
        })
        .unwrap();
    started.pass();
    let mut handles = Vec::new();
    for _ in 0..10 {
        let (held, other) = (drops.issue(), drops.issue());
        group
            .execute(move || {
                drop(held);
                Ok(())
            })
            .unwrap();
        handles.push(group.evaluate(move || drop(other)));
    }
    let group = group.deadline(soon());
    wait_until("all tasks end", || drops.count() == 21);
    assert!(group.is_cancelled());
    let rejected = group.execute(|| Ok(())).unwrap_err();
    assert_eq!(rejected.reason(), RejectReason::Cancelled);
    let error = failure(&group);
    assert!(error.is_expired() && !error.is_cancelled() && !error.is_panic());
    assert_eq!(error.to_string(), "the deadline of the group has passed");
    for handle in handles {
        assert!(settled(handle).unwrap_err().is_cancelled());
    }
    // Once.
    group.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
}

#[cfg(feature = "async")]
#[test]
fn it_cancels_a_pending_future_and_wakes_the_waiters() {
    let pool = pool();
    let group = pool.group::<&str>();
    let (_trigger, future) = common::triggered();
    group
        .spawn(async move {
            future.await;
            Ok(())
        })
        .unwrap();
    group.set_deadline(soon());
    let waits = group.clone();
    let waiter = pool.spawn_await(async move { waits.await });
    assert!(settled(waiter).unwrap().unwrap_err().is_expired());
}

#[test]
fn it_refuses_those_that_wait_for_a_slot() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let group = pool.group::<&str>().limit(1);
    let gate = hold(&group);
    let submits = group.clone();
    let submitter = thread::spawn(move || submits.execute(|| Ok(())).unwrap_err().reason());
    wait_until("it waits", || in_line(&group) == 1);
    group.set_deadline(soon());
    assert_eq!(common::joined(submitter), RejectReason::Cancelled);
    gate.open();
    assert!(failure(&group).is_expired());
}

#[test]
fn tasks_that_end_in_time_have_not_failed() {
    let pool = pool();
    let group = pool.group::<&str>().deadline(soon());
    let at = Instant::now() + millis(5);
    // It may come too late on a busy machine.
    let is_accepted = group.execute(|| Ok(())).is_ok();
    let is_in_time = is_accepted && under_way(&group) == 0 && Instant::now() < at;
    wait_until("the deadline passes", || Instant::now() > at + millis(2));
    if is_in_time {
        assert!(waited(&group).is_ok(), "it was quiet at its deadline");
        // But is too late for more.
        assert!(group.execute(|| Ok(())).is_err());
        assert!(failure(&group).is_expired());
    }
}

/// Without a worker there is no keeper.
#[test]
fn a_deadline_that_has_passed_refuses_the_first_task() {
    let pool = pool();
    let group = pool.group::<&str>().deadline(Instant::now());
    assert_eq!(pool.current_worker_count(), 0);
    let rejected = group.try_execute(|| Ok(())).unwrap_err();
    assert_eq!(rejected.reason(), RejectReason::Cancelled);
    assert!(settled(group.evaluate(|| ())).unwrap_err().is_cancelled());
    assert!(failure(&group).is_expired());
    assert!(waited(&group).is_ok());
}

#[test]
fn the_last_one_that_is_set_counts() {
    let pool = pool();
    let group = pool.group::<&str>().deadline(soon()).deadline(Instant::now() + HOUR);
    let gate = hold(&group);
    thread::sleep(millis(10));
    assert!(!group.is_cancelled());
    group.set_deadline(soon());
    wait_until("it is cancelled", || group.is_cancelled());
    gate.open();
    assert!(failure(&group).is_expired());
}

#[test]
fn an_error_goes_before_the_deadline() {
    let pool = pool();
    let group = pool.group::<&str>();
    let gate = common::hold_then_fail(&group, "the disk is full");
    group.set_deadline(soon());
    wait_until("it is cancelled", || group.is_cancelled());
    gate.open();
    assert_eq!(failure(&group).to_string(), "the disk is full");
}

/// A wait that gives up leaves the error to the next one.
#[test]
fn an_error_that_no_waiter_took_stays() {
    use std::future::{Future, IntoFuture};
    use std::task::Context;

    let pool = pool();
    let group = pool.group::<&str>();
    let gate = hold(&group);
    let (wakes, waker) = common::CountingWaker::new();
    let mut wait = Box::pin(group.clone().into_future());
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    group.set_deadline(soon());
    wait_until("it is cancelled", || group.is_cancelled());
    gate.open();
    wait_until("the round ends", || wakes.count() > 0);
    drop(wait);
    assert!(failure(&group).is_expired());
}

/// Many deadlines, of groups that exist and of others.
#[test]
fn each_group_has_its_own() {
    let pool = pool();
    let view = pool.view().build();
    let gate = block(&pool);
    let groups: Vec<_> = (0..100)
        .map(|number| {
            let target = if number % 2 == 0 { &pool } else { &*view };
            let late = if number % 3 == 0 { HOUR } else { millis(number % 7) };
            let group = target.group::<&str>().deadline(Instant::now() + late);
            let is_late = group.execute(|| Ok(())).is_err();
            (number % 3 > 0, is_late, group)
        })
        .collect();
    drop(pool.group::<()>().deadline(soon()));
    for (expires, is_late, group) in &groups {
        assert!(*expires || !is_late);
        wait_until("it is cancelled", || group.is_cancelled() == *expires);
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    for (expires, _, group) in groups {
        assert_eq!(waited(&group).is_err(), expires);
    }
    assert!(view.join_timeout(LIMIT));
}

/// The keeper goes on after a destructor that panics.
#[test]
fn a_destructor_that_panics_is_contained() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    let pool = Builder::new().core_size(1).max_size(1).build();
    let gate = block(&pool);
    for _ in 0..3 {
        let group = pool.group::<&str>();
        let bomb = Bomb;
        group
            .execute(move || {
                drop(bomb);
                Ok(())
            })
            .unwrap();
        group.set_deadline(soon());
        assert!(failure(&group).is_expired());
    }
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_deadline_can_be_removed() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<()>().deadline(Instant::now());
    group.set_deadline(None);
    group.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
}

/// Also where the text is not the one of the group's error.
#[test]
fn the_error_names_the_deadline() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<JoinError>().deadline(Instant::now());
    assert!(group.execute(|| Ok(())).is_err());
    let error = waited(&group).unwrap_err();
    assert_eq!(error.to_string(), "the deadline of the group has passed");
    let error = error.into_error();
    assert!(error.is_expired());
    assert_eq!(error.to_string(), "the deadline of the group has passed");
}

/// Is dropped with a pending future of the group, by its deadline.
#[cfg(feature = "async")]
fn drop_at_a_deadline(pool: &ThreadPool, what: impl FnOnce() + Send + 'static) -> common::Trigger {
    struct Calls<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Calls<F> {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|what| what());
        }
    }

    let (trigger, future) = common::triggered();
    let (group, held) = (pool.group::<()>(), Calls(Some(what)));
    group
        .spawn(async move {
            let _held = held;
            future.await;
            Ok(())
        })
        .unwrap();
    wait_until("it is pending", || trigger.polls() == 1);
    group.set_deadline(soon());
    trigger
}

/// The keeper gives its task a worker.
#[cfg(feature = "async")]
#[test]
fn a_destructor_may_wait_for_the_pool() {
    for growth in [Growth::Eager, Growth::Stalled(millis(1)), Growth::measured(1)] {
        let builder = ThreadPool::builder().core_size(1).max_size(3).keep_alive(HOUR);
        let pool = builder.growth(growth).build();
        let (inner, (sender, answers)) = (pool.clone(), mpsc::channel());
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let trigger = drop_at_a_deadline(&pool, move || {
            passes.wait_for(1);
            sender.send(inner.evaluate(|| 7).await_complete()).unwrap();
        });
        // It sleeps in the only worker that runs.
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        assert_eq!(answers.recv_timeout(LIMIT), Ok(7), "{growth:?}");
        gate.open();
        drop(trigger);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// The keeper starts workers under these.
#[cfg(feature = "async")]
#[test]
fn a_destructor_that_takes_long_delays_no_start() {
    for growth in [Growth::Stalled(millis(1)), Growth::measured(1)] {
        let builder = ThreadPool::builder().core_size(0).max_size(3).keep_alive(HOUR);
        let (pool, gate) = (builder.growth(growth).build(), Gate::new());
        let passes = Arc::clone(&gate);
        let trigger = drop_at_a_deadline(&pool, move || passes.pass());
        gate.wait_for(1);
        let task = block(&pool);
        assert!(settled(pool.evaluate(|| ())).is_ok());
        task.open();
        gate.open();
        drop(trigger);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[cfg(feature = "async")]
#[test]
fn destructors_have_the_stack_of_a_worker() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).stack_size(common::LARGE_STACK);
    let (pool, (sender, ends)) = (builder.build(), mpsc::channel());
    let trigger = drop_at_a_deadline(&pool, move || {
        common::use_much_stack();
        sender.send(()).unwrap();
    });
    ends.recv_timeout(LIMIT).unwrap();
    drop(trigger);
}
