//! `TaskGroup::first_success`: a race.

use crate::common;

use std::sync::{Arc, Mutex};

use common::{
    Drops, Gate, HOUR, LIMIT, block, failure, hold, hold_then_fail, settled, wait_until, waited,
};
use elastipool::{Builder, RejectReason, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// The winner drops the unstarted tasks, and those that run see the token. No thread waits
/// meanwhile.
#[test]
fn the_first_success_cancels_the_others() {
    let pool = pool(3);
    let group = pool.group::<&str>().first_success();
    let failed = hold_then_fail(&group, "no such host");
    let running = hold(&group);
    let winner = hold(&group);
    let drops = Drops::default();
    for _ in 0..10 {
        let held = drops.issue();
        group
            .execute(move || {
                drop(held);
                Ok(())
            })
            .unwrap();
    }
    failed.open();
    wait_until("the worker takes the next task", || drops.count() > 0 || group.is_cancelled());
    winner.open();
    wait_until("the others are cancelled", || group.is_cancelled() && drops.count() == 10);
    assert_eq!(group.execute(|| Ok(())).unwrap_err().reason(), RejectReason::Cancelled);
    running.open();
    assert!(waited(&group).is_ok(), "one has won");
    assert!(!group.is_cancelled());
}

#[test]
fn errors_and_panics_cancel_nothing() {
    let panics = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&panics);
    let pool = Builder::new()
        .core_size(1)
        .max_size(1)
        .panic_handler(move |_| *counted.lock().unwrap() += 1)
        .build();
    let gate = block(&pool);
    let group = pool.group::<&str>().first_success();
    group.execute(|| Err("the first")).unwrap();
    group.execute(|| panic!("the second")).unwrap();
    group.execute(|| Ok(())).unwrap();
    gate.open();
    assert!(waited(&group).is_ok());
    pool.join();
    assert_eq!((*panics.lock().unwrap(), group.dropped_count()), (1, 0), "the panic of a loser");
}

#[test]
fn a_race_that_no_task_wins_has_the_first_error() {
    let pool = pool(1);
    let group = pool.group::<&str>().first_success();
    let gate = block(&pool);
    for error in ["the first", "the second", "the third"] {
        group.execute(move || Err(error)).unwrap();
    }
    gate.open();
    wait_until("all have run", || common::under_way(&group) == 0);
    let errors: Vec<_> = group.wait_all().iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["the first", "the second", "the third"]);
    assert!(waited(&group).is_ok(), "an empty round");
}

/// The same group races again.
#[test]
fn each_round_has_its_winner() {
    let pool = pool(4);
    let group = pool.group::<u32>().first_success();
    for round in 0..200 {
        for number in 0..8 {
            let wins = round % 4 > 0 && number == round % 8;
            let _ = group.execute(move || if wins { Ok(()) } else { Err(number) });
        }
        assert_eq!(waited(&group).is_ok(), round % 4 > 0, "round {round}");
    }
}

#[test]
fn a_cancelled_race_is_not_won_later() {
    let pool = pool(1);
    let group = pool.group::<&str>().first_success();
    let running = hold(&group);
    group.cancel();
    running.open();
    assert!(failure(&group).is_cancelled());
}

/// A value of a task with a handle says nothing about success.
#[test]
fn tasks_with_handles_do_not_take_part() {
    let pool = pool(1);
    let group = pool.group::<&str>().first_success();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let first = group.evaluate(move || passes.pass());
    let value = group.evaluate(|| Err::<(), _>("a value"));
    gate.open();
    assert!(settled(first).is_ok() && settled(value).unwrap().is_err());
    assert!(!group.is_cancelled());
    assert!(waited(&group).is_ok());
    // Behind the winner, which occupies the only worker.
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let winner = move || {
        passes.pass();
        Ok(())
    };
    group.execute(winner).unwrap();
    let late = group.evaluate(|| 7);
    gate.open();
    assert!(settled(late).unwrap_err().is_cancelled());
    assert!(waited(&group).is_ok());
    assert!(pool.join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn futures_race_too() {
    let pool = pool(1);
    let group = pool.group::<&str>().first_success();
    let drops = Drops::default();
    let triggers = [(); 3].map(|()| {
        let held = drops.issue();
        let (trigger, future) = common::triggered();
        group
            .spawn(async move {
                future.await;
                drop(held);
                Ok(())
            })
            .unwrap();
        trigger
    });
    wait_until("they are pending", || triggers.iter().all(|trigger| trigger.waker().is_some()));
    group.spawn(async { Err("no such host") }).unwrap();
    let _ = group.spawn(async { Ok(()) });
    assert!(waited(&group).is_ok());
    assert_eq!(drops.count(), 3);
}
