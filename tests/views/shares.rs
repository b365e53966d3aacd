//! `priority` and `weight`: which view is served next.

use std::sync::{Arc, Mutex};

use elastipool::{Priority, ThreadPool, View};

use crate::common::block;
use crate::pool;

/// Runs `count` tasks of each view on one worker, and returns the views' numbers in the order in
/// which their tasks ran.
fn order(pool: &ThreadPool, views: &[(&ThreadPool, usize)]) -> Vec<usize> {
    let gate = block(pool);
    let order = Arc::new(Mutex::new(Vec::new()));
    for (number, (view, count)) in views.iter().enumerate() {
        for _ in 0..*count {
            let order = Arc::clone(&order);
            view.execute(move || order.lock().unwrap().push(number));
        }
    }
    gate.open();
    pool.join();
    std::mem::take(&mut *order.lock().unwrap())
}

fn share(order: &[usize], number: usize) -> f64 {
    order.iter().filter(|&&other| other == number).count() as f64 / order.len() as f64
}

fn view(pool: &ThreadPool, priority: Priority) -> View {
    pool.view().priority(priority).build()
}

#[test]
fn higher_priorities_come_first() {
    let pool = pool(1, 1);
    let [low, high] = [Priority::Low, Priority::High].map(|priority| view(&pool, priority));
    let order = order(&pool, &[(&low, 5), (&pool, 5), (&high, 5)]);
    assert_eq!(order, [2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
}

/// Each lower level gets at least one take in 20, two of them at the same time.
#[test]
fn lower_priorities_do_not_starve() {
    let pool = pool(1, 1);
    let [low, high] = [Priority::Low, Priority::High].map(|priority| view(&pool, priority));
    let order = order(&pool, &[(&high, 1000), (&low, 100), (&pool, 100)]);
    for window in order[..1000].windows(20) {
        assert!(window.contains(&1) && window.contains(&2), "{window:?}");
    }
    let high = share(&order[..1000], 0);
    assert!(high >= 0.89, "high priority gets {high}");
}

/// An empty default view takes nothing from a lower level.
#[test]
fn one_lower_priority_gets_its_takes_beside_an_empty_default_view() {
    let pool = pool(1, 1);
    let [low, high] = [Priority::Low, Priority::High].map(|priority| view(&pool, priority));
    let order = order(&pool, &[(&high, 1000), (&low, 100)]);
    for window in order[..1000].windows(20) {
        assert!(window.contains(&1), "{window:?}");
    }
    assert!(share(&order[..1000], 0) >= 0.94);
}

#[test]
fn weights_are_shares() {
    for weights in [[3, 1], [1, 1], [10, 1], [2, 5]] {
        let pool = pool(1, 1);
        let views = weights.map(|weight| pool.view().weight(weight).build());
        // However many each has queued.
        let order = order(&pool, &[(&views[0], 20_000), (&views[1], 2_000)]);
        let until = order.iter().rposition(|&number| number == 1).unwrap();
        let wanted = weights[0] as f64 / (weights[0] + weights[1]) as f64;
        let share = share(&order[..until], 0);
        assert!((share - wanted).abs() < 0.01, "{weights:?}: {share}");
    }
}

/// As long as all views have tasks queued, none is ever further from its share than one take for
/// each view.
#[test]
fn random_weights_are_shares_at_every_moment() {
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..20 {
        let pool = pool(1, 1);
        let weights: Vec<_> = (0..rng.usize(2..7)).map(|_| rng.usize(1..20)).collect();
        let sum: usize = weights.iter().sum();
        let builder = |weight: &usize| pool.view().weight(*weight).build();
        let views: Vec<_> = weights.iter().map(builder).collect();
        // The smallest one must not run out: 50 rounds of all weights.
        let queued: Vec<_> =
            views.iter().zip(&weights).map(|(view, weight)| (&**view, 50 * weight)).collect();
        let order = order(&pool, &queued);
        let mut counts = vec![0_usize; weights.len()];
        let bound = weights.len() as f64;
        for (taken, &number) in order.iter().take(49 * sum).enumerate() {
            counts[number] += 1;
            for (count, weight) in counts.iter().zip(&weights) {
                let due = ((taken + 1) * weight) as f64 / sum as f64;
                let distance = (*count as f64 - due).abs();
                assert!(distance <= bound, "{weights:?}: {counts:?} after {}", taken + 1);
            }
        }
    }
}

/// The default view has weight 1 beside others of normal priority.
#[test]
fn the_default_view_has_a_share() {
    let pool = pool(1, 1);
    let view = pool.view().weight(3).build();
    let order = order(&pool, &[(&pool, 2_000), (&view, 2_000)]);
    let share = share(&order[..2000], 1);
    assert!((share - 0.75).abs() < 0.01, "{share}");
}

/// A view that comes late, or has paused, gets its share from then on and no more.
#[test]
fn idle_times_give_no_credit() {
    let pool = pool(1, 1);
    let [one, other] = [1, 1].map(|weight| pool.view().weight(weight).build());
    assert_eq!(order(&pool, &[(&one, 1000)]).len(), 1000);
    let order = order(&pool, &[(&one, 500), (&other, 500)]);
    let early = share(&order[..100], 1);
    assert!((early - 0.5).abs() < 0.05, "{early}");
}

/// A task in a local queue does not hide an urgent one: the worker turns to it after the current
/// task.
#[test]
fn a_local_queue_hides_no_urgent_task() {
    let pool = pool(1, 1);
    let high = view(&pool, Priority::High);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (inner, urgent, log) = (pool.clone(), high.clone(), Arc::clone(&order));
    pool.execute(move || {
        for number in 0..1000 {
            let (log, urgent) = (Arc::clone(&log), urgent.clone());
            inner.execute(move || {
                log.lock().unwrap().push("low");
                if number == 10 {
                    urgent.execute(move || log.lock().unwrap().push("urgent"));
                }
            });
        }
    });
    pool.join();
    let order = order.lock().unwrap();
    assert_eq!(order.iter().position(|&what| what == "urgent"), Some(11));
}

/// Within a view woken futures come before new tasks, and new tasks are not starved by futures that
/// wake themselves.
#[cfg(feature = "async")]
#[test]
fn started_work_of_a_view_comes_first() {
    use futures::future::poll_fn;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;

    let pool = pool(1, 1);
    let view = pool.view().build();
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let future = view.spawn_await(async move {
        receiver.await.unwrap();
        log.lock().unwrap().push(true);
    });
    let gate = block(&view);
    for _ in 0..100 {
        let log = Arc::clone(&order);
        view.execute(move || log.lock().unwrap().push(false));
    }
    sender.send(()).unwrap();
    gate.open();
    future.await_complete();
    assert!(order.lock().unwrap().iter().take(2).any(|&is_woken| is_woken));
    view.join();

    // A storm of wakes.
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    view.spawn(poll_fn(move |context| {
        context.waker().wake_by_ref();
        if seen.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }));
    view.evaluate(move || stop.store(true, Ordering::Relaxed)).await_complete();
    view.join();
}
