//! Blocked workers, and tasks that their waiter runs.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use elastipool::{JoinSet, ThreadPool, View, blocking};

use crate::common::{Gate, HOUR, block, value, wait_until};
use crate::{Level, at_gate, pool};

/// A blocked worker does not count for the limit.
#[test]
fn a_blocked_worker_holds_no_place() {
    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    let (sender, receiver) = mpsc::channel();
    let waits = view.evaluate(move || blocking(|| receiver.recv()));
    view.execute(move || sender.send(7).unwrap());
    assert_eq!(waits.await_complete(), Ok(7));
    pool.shutdown_join();
}

/// When it comes back, it waits until its view may have one more worker.
#[test]
fn a_returning_worker_waits_for_a_place() {
    let pool = pool(0, 16);
    let view = pool.view().limit(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    let handles: Vec<_> = (0..8)
        .map(|_| {
            let (gate, level) = (Arc::clone(&gate), level.clone());
            view.evaluate(move || {
                blocking(|| gate.pass());
                level.enter();
                // Long enough to meet the others, if they do not wait.
                std::thread::sleep(Duration::from_millis(1));
                level.exit();
            })
        })
        .collect();
    gate.wait_for(8);
    gate.open();
    handles.into_iter().for_each(|handle| handle.await_complete());
    // Two only if the one that runs loses its CPU for 100 ms.
    assert!(level.peak() <= 2, "{} at a time", level.peak());
    pool.shutdown_join();
}

/// A returning worker comes before the tasks in the queue, whose number would never end.
#[test]
fn a_returning_worker_comes_before_queued_tasks() {
    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    let (begun, go, leaves) = (Gate::new(), Gate::new(), Gate::new());
    let (arrives, waits, last) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&leaves));
    let returning = view.evaluate(move || {
        blocking(|| {
            arrives.open();
            waits.pass();
            last.open();
        });
        Instant::now()
    });
    begun.pass();
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&view, &gate, &level);
    gate.wait_for(1);
    (0..1000).for_each(|_| view.execute(|| ()));
    let last = view.evaluate(Instant::now);
    go.open();
    leaves.pass();
    // Time to come back and wait, also beside busy processes.
    std::thread::sleep(Duration::from_millis(50));
    gate.open();
    assert!(returning.await_complete() < last.await_complete());
    pool.shutdown_join();
}

/// If the running task needs what a returning worker holds, the latter is let in after a while.
#[test]
fn a_returning_worker_is_let_in_if_nothing_ends() {
    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    let (begun, go, back) = (Gate::new(), Gate::new(), Gate::new());
    let (arrives, waits, opens) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&back));
    view.execute(move || {
        blocking(|| {
            arrives.open();
            waits.pass();
        });
        opens.open();
    });
    begun.pass();
    let opens = Arc::clone(&go);
    view.execute(move || {
        opens.open();
        back.pass();
    });
    view.join();
    pool.shutdown_join();
}

/// A task waits for another one of its view: with a limit of one, on any way of waiting.
#[test]
fn tasks_of_a_view_may_wait_for_each_other() {
    let pool = pool(0, 2);
    let view = pool.view().limit(1).build();
    let inner = view.clone();
    let claimed = move || inner.evaluate(|| 1).await_complete();
    assert_eq!(view.evaluate(claimed).await_complete(), 1);
    let inner = view.clone();
    let timed = move || inner.evaluate(|| 2).await_complete_timeout(HOUR).unwrap().unwrap();
    assert_eq!(view.evaluate(timed).await_complete(), 2);
    let inner = view.clone();
    let scoped = move || {
        let mut sum = 0;
        inner.scope(|scope| scope.execute(|| sum += 3));
        sum
    };
    assert_eq!(view.evaluate(scoped).await_complete(), 3);
    let inner = view.clone();
    let grouped = move || {
        let group = inner.group::<()>();
        (0..10).for_each(|_| group.execute(|| Ok(())).unwrap());
        group.wait().is_ok()
    };
    assert!(view.evaluate(grouped).await_complete());
    view.join();
    assert_eq!(view.stats().in_flight(), 0);
    pool.shutdown_join();
}

/// A deep chain of waits across two limited views.
#[test]
fn nested_waits_across_views() {
    fn nest(views: [ThreadPool; 2], depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        let inner = views.clone();
        1 + views[depth % 2].evaluate(move || nest(inner, depth - 1)).await_complete()
    }

    let pool = pool(0, 2);
    let views = [1, 1].map(|limit| (*pool.view().limit(limit).build()).clone());
    assert_eq!(nest(views.clone(), 50), 50);
    pool.join();
    for view in &views {
        assert_eq!((view.stats().completed, view.stats().in_flight()), (25, 0));
        // All places are free again.
        let (gate, level) = (Gate::new(), Level::default());
        at_gate(view, &gate, &level);
        gate.wait_for(1);
        gate.open();
    }
    drop(views);
    pool.shutdown_join();
}

/// A claimed task counts for its own view, also one of a group: never more than its limit run it.
#[test]
fn a_claimed_task_holds_a_place_of_its_own_view() {
    let pool = pool(0, 4);
    let limited = pool.view().limit(1).build();
    let (group, level) = (limited.group::<()>(), Level::default());
    let handles: Vec<_> = (0..200)
        .map(|number| {
            let (limited, group, level) = (limited.clone(), group.clone(), level.clone());
            pool.evaluate(move || {
                let level = level.clone();
                let task = move || {
                    level.enter();
                    crate::common::dawdle(200);
                    level.exit();
                };
                let is_grouped = number % 2 == 0;
                let handle = if is_grouped { group.evaluate(task) } else { limited.evaluate(task) };
                handle.await_complete();
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.await_complete());
    assert_eq!(level.peak(), 1);
    pool.shutdown_join();
}

/// The task's waiter runs it, since no other worker is free. Until it ends, its view is full.
#[test]
fn a_claimed_task_keeps_others_of_its_view_out() {
    let pool = pool(0, 2);
    let limited = (*pool.view().limit(1).build()).clone();
    let (busy, gate) = (block(&pool), Gate::new());
    let (inner, passes) = (limited.clone(), Arc::clone(&gate));
    let waits = pool.evaluate(move || inner.evaluate(move || passes.pass()).await_complete());
    gate.wait_for(1);
    busy.open();
    let late = pool.evaluate(move || {
        limited.evaluate(|| ()).await_complete_timeout(Duration::from_millis(1)).is_err()
    });
    assert!(value(late));
    gate.open();
    value(waits);
    pool.shutdown_join();
}

/// Occupies a view's only place, and returns what counts tasks beside that one.
fn occupied_view() -> (ThreadPool, View, Arc<Gate>, Level) {
    let pool = pool(0, 4);
    let limited = pool.view().limit(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&limited, &gate, &level);
    gate.wait_for(1);
    (pool, limited, gate, level)
}

fn occupied() -> (ThreadPool, ThreadPool, Arc<Gate>, Level) {
    let (pool, limited, gate, level) = occupied_view();
    (pool, (*limited).clone(), gate, level)
}

/// Also while the task that has the place runs for long, unlike a worker at the end of a region. Of a
/// paused view no other worker would run it.
#[test]
fn a_claimed_task_waits_for_a_place_as_long_as_it_takes() {
    for is_paused in [false, true] {
        waits_for_a_place(is_paused);
    }
}

fn waits_for_a_place(is_paused: bool) {
    let (pool, limited, gate, level) = occupied();
    if is_paused {
        limited.pause();
    }
    let counts = level.clone();
    let task = move || {
        counts.enter();
        counts.exit();
    };
    let waits = pool.evaluate(move || limited.evaluate(task).await_complete());
    // Time is the subject: a worker at the end of a region is let in after less than this.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((level.peak(), waits.is_finished()), (1, false));
    gate.open();
    value(waits);
    assert_eq!(level.peak(), 1);
    pool.shutdown_join();
}

/// Such a worker gets the place that a larger limit adds.
#[test]
fn a_larger_limit_begins_a_claimed_task() {
    let (pool, limited, gate, _) = occupied_view();
    limited.pause();
    let inner = (*limited).clone();
    let waits = pool.evaluate(move || inner.evaluate(|| 7).await_complete());
    wait_until("it waits for the place", || pool.stats().blocked == 1);
    limited.set_limit(2).unwrap();
    assert_eq!(value(waits), 7);
    gate.open();
    pool.shutdown_join();
}

/// A wait with a limit, or for any of several tasks, does not wait for a place.
#[test]
fn a_wait_that_may_end_before_claims_no_task_of_a_full_view() {
    let (pool, limited, gate, _) = occupied();
    let inner = limited.clone();
    let waits = pool.evaluate(move || {
        inner.evaluate(|| ()).await_complete_timeout(Duration::from_millis(1)).is_err()
    });
    assert!(value(waits), "its time is over");
    let inner = limited.clone();
    let waits = pool.evaluate(move || {
        let group = inner.group::<()>();
        group.execute(|| Ok(())).unwrap();
        group.wait_timeout(Duration::from_millis(1)).is_none()
    });
    assert!(value(waits), "its time is over");
    let inner = limited.clone();
    let waits = pool.evaluate(move || {
        inner.scope(|scope| {
            let handle = scope.evaluate(|| ());
            let is_late = handle.await_complete_timeout(Duration::from_millis(1)).is_err();
            gate.open();
            is_late
        })
    });
    assert!(value(waits), "its time is over");
    pool.shutdown_join();
}

/// A task that its waiter leaves queued expires, is cancelled and is handed back like any other.
#[test]
fn an_awaited_task_of_a_full_view_stays_queued() {
    let (pool, limited, gate, level) = occupied();
    let task = || {
        let counts = level.clone();
        move || counts.enter()
    };
    let expiring = pool.view().limit(1).build();
    let busy = Gate::new();
    at_gate(&expiring, &busy, &Level::default());
    busy.wait_for(1);
    expiring.set_queue_timeout(Duration::from_millis(1)).unwrap();
    let (expiring, counted) = ((*expiring).clone(), task());
    let expires = pool.evaluate(move || expiring.evaluate(counted).try_await_complete().is_err());
    assert!(value(expires), "its wait is over before the view has a place");
    let (sender, receiver) = mpsc::channel();
    let (inner, counted) = (limited.clone(), task());
    let waits = pool.evaluate(move || {
        let handle = inner.evaluate(counted);
        sender.send(handle.abort_handle()).unwrap();
        handle.try_await_complete().is_err()
    });
    receiver.recv().unwrap().cancel();
    assert!(value(waits), "it is cancelled");
    busy.open();
    gate.open();
    pool.join();
    assert_eq!(level.peak(), 1, "neither has begun");
    pool.shutdown_join();
}

/// No worker takes it: the thread that waits for it drops it, and the scope can end.
#[test]
fn an_awaited_task_of_a_scope_expires_in_a_paused_view_that_is_full() {
    let (pool, limited, gate, _) = occupied_view();
    limited.set_queue_timeout(Duration::from_millis(1)).unwrap();
    limited.pause();
    let inner = (*limited).clone();
    let expires = pool
        .evaluate(move || inner.scope(|scope| scope.evaluate(|| ()).try_await_complete().is_err()));
    assert!(value(expires));
    assert_eq!(pool.stats().expired, 1);
    gate.open();
    pool.shutdown_join();
}

/// Its deadline cancels the tasks where they are queued.
#[test]
fn a_group_with_a_deadline_expires_in_a_paused_view_that_is_full() {
    let (pool, limited, gate, level) = occupied();
    limited.pause();
    let counts = level.clone();
    let waits = pool.evaluate(move || {
        let group = limited.group::<()>().deadline_in(Duration::from_millis(1));
        let begins = move || {
            counts.enter();
            Ok(())
        };
        group.execute(begins).unwrap();
        group.wait().unwrap_err().is_expired()
    });
    assert!(value(waits));
    gate.open();
    pool.join();
    assert_eq!(level.peak(), 1, "its task has not begun");
    pool.shutdown_join();
}

/// The same of a set, one of whose tasks has ended.
#[test]
fn a_wait_for_one_of_several_claims_no_task_of_a_full_view() {
    let (pool, limited, gate, level) = occupied();
    let (own, counts) = (pool.clone(), level.clone());
    let waits = pool.evaluate(move || {
        let mut set = JoinSet::new();
        set.push(limited.evaluate(move || counts.enter()));
        set.push(own.evaluate(|| ()));
        set.next_finished().unwrap().unwrap();
        set.len()
    });
    assert_eq!((value(waits), level.peak()), (1, 1));
    gate.open();
    pool.shutdown_join();
}

/// While a waiter runs a task of another view, its own view has its place.
#[test]
fn a_waiting_task_holds_no_place() {
    let pool = pool(0, 4);
    let [one, other] = [1, 1].map(|limit| pool.view().limit(limit).build());
    let gate = Gate::new();
    let (inner, passes) = (other.clone(), Arc::clone(&gate));
    let waits = one.evaluate(move || inner.evaluate(move || passes.pass()).await_complete());
    gate.wait_for(1);
    assert_eq!(one.evaluate(|| 1).await_complete(), 1);
    gate.open();
    waits.await_complete();
    pool.shutdown_join();
}

/// One worker beyond `max_blocked` is not replaced. When another one's region ends, it takes over
/// that one's share, and no place is missing.
#[test]
fn a_worker_that_takes_over_a_share_of_max_blocked_holds_no_place() {
    let pool =
        ThreadPool::builder().core_size(0).max_size(2).max_blocked(1).keep_alive(HOUR).build();
    let _view = pool.view().build();
    let [first, second, end] = [(); 3].map(|()| Gate::new());
    let (inside, outside) = (Arc::clone(&first), Arc::clone(&end));
    let replaced = pool.evaluate(move || {
        blocking(|| inside.pass());
        outside.pass();
    });
    first.wait_for(1);
    let inside = Arc::clone(&second);
    let unreplaced = pool.evaluate(move || blocking(|| inside.pass()));
    second.wait_for(1);
    first.open();
    end.wait_for(1);
    // One worker runs, one is blocked in the place of the first: so another task may run.
    pool.evaluate(|| ()).await_complete();
    [second, end].iter().for_each(|gate| gate.open());
    replaced.await_complete();
    unreplaced.await_complete();
    pool.shutdown_join();
}

/// Under a quota, workers are replaced and give their places back.
#[test]
fn recycled_workers_give_their_places_back() {
    let pool = ThreadPool::builder().core_size(1).max_size(4).max_tasks_per_worker(1).build();
    let view = pool.view().limit(1).build();
    let level = Level::default();
    for _ in 0..100 {
        let level = level.clone();
        view.execute(move || {
            level.enter();
            level.exit();
        });
        pool.execute(|| ());
    }
    pool.join();
    assert_eq!(level.peak(), 1);
    pool.shutdown_join();
}

/// With a stall delay, no thread is started for tasks that may not run.
#[test]
fn a_stall_starts_no_thread_for_a_full_view() {
    let pool = ThreadPool::builder()
        .core_size(1)
        .max_size(64)
        .keep_alive(HOUR)
        .growth(elastipool::Growth::Stalled(Duration::from_millis(1)))
        .build();
    let view = pool.view().limit(2).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..100).for_each(|_| at_gate(&view, &gate, &level));
    gate.wait_for(2);
    // Some may have been started before the second one ran, and four more may be on their way.
    let before = pool.current_worker_count();
    // As many delays as would start all threads.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(level.now(), 2);
    assert!(pool.current_worker_count() <= before + 4, "{before} workers, then {:?}", pool.stats());
    gate.open();
    wait_until("all have run", || view.stats().completed == 100);
    pool.shutdown_join();
}
