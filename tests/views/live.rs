//! Settings that change while the view lives.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use elastipool::{BuildError, Priority, ThreadPool, View};

use crate::common::{Gate, HOUR, block, wait_until};
use crate::{Level, at_gate, pool};

/// Queued tasks start, as many as the new limit lets (law 1).
#[test]
fn a_raised_limit_starts_queued_tasks_at_once() {
    for _ in 0..50 {
        let pool = pool(0, 8);
        let view = pool.view().limit(1).build();
        let (gate, level) = (Gate::new(), Level::default());
        (0..10).for_each(|_| at_gate(&view, &gate, &level));
        gate.wait_for(1);
        view.set_limit(4).unwrap();
        gate.wait_for(4);
        view.set_limit(usize::MAX).unwrap();
        gate.wait_for(8);
        assert_eq!((view.limit(), level.peak()), (None, 8));
        gate.open();
        pool.shutdown_join();
    }
}

/// Running tasks go on, and the next one starts when fewer than the new limit run.
#[test]
fn a_lowered_limit_takes_effect_as_tasks_end() {
    let pool = pool(0, 8);
    let view = pool.view().limit(4).build();
    let gates = [(); 4].map(|()| block(&view));
    view.set_limit(1).unwrap();
    let (last, level) = (Gate::new(), Level::default());
    at_gate(&view, &last, &level);
    for gate in &gates[..3] {
        gate.open();
        // Time for the queued task to start, which must not happen.
        thread::sleep(Duration::from_millis(2));
        assert_eq!(level.peak(), 0, "one runs already");
    }
    gates[3].open();
    last.wait_for(1);
    last.open();
    pool.shutdown_join();
}

#[test]
fn a_lowered_reserve_lets_others_start() {
    for _ in 0..50 {
        let pool = pool(0, 3);
        let view = pool.view().reserve(2).build();
        let (gate, level) = (Gate::new(), Level::default());
        (0..4).for_each(|_| at_gate(&pool, &gate, &level));
        gate.wait_for(1);
        view.set_reserve(1).unwrap();
        gate.wait_for(2);
        view.set_reserve(0).unwrap();
        gate.wait_for(3);
        gate.open();
        pool.shutdown_join();
    }
}

/// A larger reserve is free once the tasks that occupy it have ended.
#[test]
fn a_raised_reserve_takes_effect_as_tasks_end() {
    let pool = pool(0, 2);
    let view = pool.view().build();
    let gates = [(); 2].map(|()| block(&pool));
    view.set_reserve(1).unwrap();
    let (last, level) = (Gate::new(), Level::default());
    at_gate(&pool, &last, &level);
    let urgent = view.evaluate(|| 7);
    gates[0].open();
    assert_eq!(urgent.await_complete(), 7);
    assert_eq!((view.reserve(), level.peak()), (1, 0), "the other worker is reserved");
    gates[1].open();
    last.wait_for(1);
    assert_eq!(view.evaluate(|| 8).await_complete(), 8);
    last.open();
    pool.shutdown_join();
}

/// As the builder's: the error names the values, and nothing changes.
#[test]
fn wrong_values_are_refused_as_by_the_builder() {
    let pool = pool(0, 4);
    let view = pool.view().limit(3).reserve(2).weight(5).queue_timeout(HOUR).build();
    let other = pool.view().reserve(1).build();
    let below = |limit, reserve| Err(BuildError::ViewLimitBelowReserve { limit, reserve });
    assert_eq!(view.set_limit(0), Err(BuildError::ViewLimitZero));
    assert_eq!(view.set_limit(1), below(1, 2));
    assert_eq!(view.set_reserve(4), below(3, 4));
    assert_eq!(
        view.set_reserve(3),
        Err(BuildError::ReservesTooLarge { reserved: 4, max_size: 4 }),
        "with that of the other view"
    );
    assert_eq!(view.set_weight(0), Err(BuildError::ViewWeightZero));
    let zero = view.set_queue_timeout(Some(Duration::ZERO));
    assert_eq!(zero, Err(BuildError::QueueTimeoutZero));
    let unchanged = (Some(3), 2, 5, Some(HOUR), Priority::Normal);
    let settings =
        (view.limit(), view.reserve(), view.weight(), view.queue_timeout(), view.priority());
    assert_eq!(settings, unchanged);
    // The sum of the reserves follows, for views and for sizes.
    drop(other);
    view.set_reserve(3).unwrap();
    let too_small = Err(BuildError::ReservesTooLarge { reserved: 3, max_size: 3 });
    assert_eq!(pool.set_max_size(3), too_small);
    view.set_reserve(0).unwrap();
    pool.set_max_size(1).unwrap();
    pool.shutdown_join();
}

#[test]
fn every_handle_of_the_view_sees_the_change() {
    let pool = pool(0, 4);
    let view = pool.view().name("reports").build();
    let other = view.clone();
    view.set_weight(7).unwrap();
    view.set_priority(Priority::Low);
    assert_eq!((other.weight(), other.priority()), (7, Priority::Low));
    let text = format!("{other:?}");
    for part in ["weight: 7", "Low", "is_paused: false"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Queues tasks of both views behind a running one, calls `change`, and returns the order of the
/// first ten.
fn order_after(change: impl FnOnce(&[View; 2])) -> String {
    let pool = pool(1, 1);
    let views = [(); 2].map(|()| pool.view().build());
    let (gate, order) = (block(&pool), Arc::new(Mutex::new(String::new())));
    for (view, name) in views.iter().zip(['a', 'b']) {
        for _ in 0..10 {
            let order = Arc::clone(&order);
            view.execute(move || order.lock().unwrap().push(name));
        }
    }
    change(&views);
    gate.open();
    pool.join();
    order.lock().unwrap()[..10].to_owned()
}

#[test]
fn another_priority_or_weight_counts_for_queued_tasks() {
    assert_eq!(order_after(|_| ()), "ababababab");
    assert_eq!(order_after(|views| views[1].set_priority(Priority::High)), "bbbbbbbbbb");
    assert_eq!(order_after(|views| views[0].set_priority(Priority::Low)), "bbbbbbbbbb");
    let heavier = order_after(|views| views[1].set_weight(4).unwrap());
    assert_eq!(heavier.matches('b').count(), 8, "{heavier}");
}

/// It concerns the tasks that are submitted after the change.
#[test]
fn another_queue_timeout_is_that_of_later_tasks() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&pool);
    let first = view.evaluate(|| 1);
    view.set_queue_timeout(Some(Duration::from_millis(1))).unwrap();
    let second = view.evaluate(|| 2);
    view.execute(|| panic!("it has expired"));
    view.set_queue_timeout(None).unwrap();
    let third = view.evaluate(|| 3);
    assert!(second.try_await_complete().unwrap_err().is_expired());
    gate.open();
    assert_eq!((first.await_complete(), third.await_complete()), (1, 3));
    pool.join();
    let stats = pool.stats();
    assert_eq!((stats.expired, stats.panicked), (2, 0));
    pool.shutdown_join();
}

/// A stress: settings change while tasks run. All run, and never more than the largest limit.
#[test]
fn changes_lose_no_task() {
    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    let (level, done) = (Level::default(), Gate::new());
    let changer = {
        let (view, done) = (view.clone(), Arc::clone(&done));
        thread::spawn(move || {
            let mut number = 0;
            while !done.is_open() {
                number += 1;
                view.set_limit(number % 2 + 1).unwrap();
                view.set_reserve(number % 2).unwrap();
                view.set_weight(number % 7 + 1).unwrap();
                let change = if number % 3 == 0 { ThreadPool::pause } else { ThreadPool::resume };
                change(&view);
                view.set_reserve(0).unwrap();
            }
            view.resume();
        })
    };
    let submit = |pool: &ThreadPool, level: Option<Level>| {
        pool.execute(move || {
            level.iter().for_each(Level::enter);
            crate::common::dawdle(200);
            level.iter().for_each(Level::exit);
        });
    };
    for _ in 0..3000 {
        submit(&view, Some(level.clone()));
        submit(&pool, None);
    }
    wait_until("all have run", || pool.stats().completed == 6000);
    done.open();
    changer.join().unwrap();
    assert!(level.peak() <= 2, "{}", level.peak());
    pool.shutdown_join();
}
