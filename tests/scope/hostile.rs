//! Futures of scopes, against whatever a user may do with them.

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{Drops, Gate, HOUR, LIMIT, block, dawdle, triggered, wait_until};
use crate::{MOMENT, OnDrop, assert_works, in_time, panic_of, pool, yields};
use elastipool::{Builder, ScopedJoinHandle, ThreadPool};

/// The scope's thread runs the task, which waits for the future.
#[test]
fn a_panic_of_the_body_cancels_a_future_for_which_an_unstarted_task_waits() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.spawn_await(triggered);
                wait_until("it is pending", || trigger.waker().is_some());
                let gate = block(&pool);
                scope.execute(move || {
                    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
                    gate.open();
                });
                panic!("of the body");
            });
        });
        assert_eq!(text, "of the body");
        assert_works(pool);
    });
}

/// As before, but a worker's task panics, while the scope's thread runs a task that waits for the
/// future.
#[test]
fn a_panic_of_a_task_cancels_a_future_for_which_another_task_waits() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let started = Gate::new();
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.spawn_await(triggered);
                wait_until("it is pending", || trigger.waker().is_some());
                scope.execute(|| {
                    started.meet(2);
                    // By then the scope's thread waits, most times. The outcome is the same in both
                    // orders.
                    thread::sleep(MOMENT);
                    panic!("of a task");
                });
                wait_until("it runs", || started.arrived() == 1);
                scope.execute(|| {
                    started.meet(2);
                    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
                });
            });
        });
        assert_eq!(text, "of a task");
        assert_works(pool);
    });
}

/// A scope also panics because a task was lost.
#[test]
fn a_lost_task_cancels_the_pending_futures() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.spawn(triggered);
                wait_until("it is pending", || trigger.waker().is_some());
                scope.spawn(async {
                    pending::<()>().await;
                    trigger.fire();
                });
            });
        });
        assert!(text.contains("of a scope's tasks were dropped"), "{text}");
        assert_works(pool);
    });
}

#[test]
fn an_expired_task_cancels_the_pending_futures() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let view = pool.view().queue_timeout(Duration::from_millis(500)).build();
        let text = panic_of(|| {
            view.scope(|scope| {
                scope.spawn(triggered);
                wait_until("it is pending", || trigger.waker().is_some());
                let gate = block(&pool);
                scope.execute(|| trigger.fire());
                // Until it has expired.
                thread::sleep(Duration::from_millis(600));
                gate.open();
            });
        });
        assert!(text.contains("of a scope's tasks were dropped"), "{text}");
        drop(view);
        assert_works(pool);
    });
}

/// The destructor of a cancelled future waits for another future of its scope.
#[test]
fn a_destructor_waits_for_another_future_that_is_cancelled() {
    in_time(|| {
        for order in [false, true] {
            let pool = pool(1);
            let ((first, one), (second, two)) = (triggered(), triggered());
            let text = panic_of(|| {
                pool.scope(|scope| {
                    let handle = Mutex::new(None);
                    let handle = Arc::new(handle);
                    let waits = Arc::clone(&handle);
                    let on_drop = OnDrop(move || {
                        let other: ScopedJoinHandle<'_, ()> = waits.lock().unwrap().take().unwrap();
                        assert!(other.try_await_complete().unwrap_err().is_cancelled());
                    });
                    let waiting = async move {
                        let _captured = &on_drop;
                        one.await;
                    };
                    if order {
                        scope.spawn(waiting);
                        wait_until("it is pending", || first.waker().is_some());
                        *handle.lock().unwrap() = Some(scope.spawn_await(two));
                        wait_until("it is pending", || second.waker().is_some());
                    } else {
                        *handle.lock().unwrap() = Some(scope.spawn_await(two));
                        wait_until("it is pending", || second.waker().is_some());
                        scope.spawn(waiting);
                        wait_until("it is pending", || first.waker().is_some());
                    }
                    panic!("of the body");
                });
            });
            assert_eq!(text, "of the body");
            assert_works(pool);
        }
    });
}

/// The only worker opens the scope and shuts the pool down.
#[test]
fn shutdown_now_inside_the_only_worker() {
    in_time(|| {
        for has_handle in [false, true] {
            let (pool, (trigger, triggered)) = (pool(1), triggered());
            let (inner, drops) = (pool.clone(), Drops::default());
            let guard = drops.issue();
            let outer = pool.evaluate(move || {
                inner.scope(|scope| {
                    let future = async move {
                        let _captured = guard;
                        triggered.await;
                    };
                    let handle = if has_handle {
                        Some(scope.spawn_await(future))
                    } else {
                        scope.spawn(future);
                        None
                    };
                    elastipool::blocking(|| {
                        wait_until("it is pending", || trigger.waker().is_some());
                    });
                    drop(inner.shutdown_now());
                    if let Some(handle) = handle {
                        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
                    }
                });
            });
            let result = outer.try_await_complete();
            assert_eq!(result.is_err(), !has_handle);
            assert_eq!(drops.count(), 1);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(pool.stats().in_flight(), 0);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// Futures inside of a future's poll, in nested scopes, that wake each other.
#[test]
fn a_scope_inside_of_a_poll() {
    fn nested(pool: &ThreadPool, depth: usize) -> usize {
        let sum = AtomicUsize::new(0);
        let (trigger, triggered) = triggered();
        pool.scope(|scope| {
            scope.spawn(async {
                triggered.await;
                sum.fetch_add(1, Ordering::Relaxed);
            });
            let (sum, trigger) = (&sum, &trigger);
            let handle = scope.spawn_await(async move {
                yields(1).await;
                if depth > 0 { nested(pool, depth - 1) } else { 0 }
            });
            scope.spawn(async move {
                yields(2).await;
                let inner = handle.await.unwrap();
                sum.fetch_add(inner, Ordering::Relaxed);
                trigger.fire();
            });
        });
        sum.into_inner()
    }
    in_time(|| {
        for size in [1, 2, 4] {
            for _ in 0..20 {
                let pool = pool(size);
                let inner = pool.clone();
                let handle = pool.spawn_await(async move {
                    yields(1).await;
                    nested(&inner, 3)
                });
                assert_eq!(handle.await_complete(), 4);
                let inner = pool.clone();
                let handle = pool.complete(async move {
                    yields(1).await;
                    nested(&inner, 3)
                });
                assert_eq!(handle.await_complete(), 4);
                assert_eq!(nested(&pool, 3), 4);
                futures_executor::block_on(async { assert_eq!(nested(&pool, 3), 4) });
                assert!(pool.join_timeout(LIMIT));
                let stats = pool.stats();
                assert_eq!((stats.in_flight(), stats.pending), (0, 0));
                assert_works(pool);
            }
        }
    });
}

/// A destructor spawns into its scope, while that ends or is cancelled.
#[test]
fn destructors_spawn_while_the_scope_ends() {
    in_time(|| {
        for fails in [false, true] {
            for size in [1, 2] {
                let (pool, (trigger, triggered)) = (pool(size), triggered());
                let count = AtomicUsize::new(0);
                let result = catch_unwind(AssertUnwindSafe(|| {
                    pool.scope(|scope| {
                        let count = &count;
                        let on_drop = OnDrop(move || {
                            scope.spawn(async move {
                                let again = OnDrop(move || {
                                    scope.execute(move || {
                                        count.fetch_add(1, Ordering::SeqCst);
                                    });
                                    scope.spawn(async move {
                                        count.fetch_add(1, Ordering::SeqCst);
                                    });
                                });
                                yields(2).await;
                                drop(again);
                            });
                        });
                        scope.spawn(async move {
                            let _captured = &on_drop;
                            triggered.await;
                        });
                        wait_until("it is pending", || trigger.waker().is_some());
                        assert!(!fails, "of the body");
                        trigger.fire();
                    });
                }));
                assert_eq!(result.is_err(), fails);
                assert_eq!(count.into_inner(), 2);
                drop(trigger);
                assert!(pool.join_timeout(LIMIT));
                assert_eq!(pool.stats().pending, 0);
                assert_works(pool);
            }
        }
    });
}

/// Reads what it borrows when it is dropped.
struct Reads<'a>(&'a Vec<usize>, &'a AtomicUsize);

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        self.1.fetch_add(self.0.iter().sum::<usize>(), Ordering::SeqCst);
    }
}

/// Values that borrow, and whose destructors read what they borrow, go to handles that are dropped,
/// forgotten, sent to other tasks and awaited, at the moment the future ends. Destructors of some
/// panic.
#[test]
fn results_that_borrow_are_dropped_before_the_scope_ends() {
    in_time(|| {
        let pool = pool(3);
        for round in 0..1500_usize {
            let (values, sum) = (vec![1_usize; 16], AtomicUsize::new(0));
            let forgotten = AtomicUsize::new(0);
            let fails = round % 5 == 0;
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    for number in 0..8_usize {
                        let (values, sum) = (&values, &sum);
                        let wait = fastrand::usize(0..4);
                        let handle = scope.spawn_await(async move {
                            let _own = Reads(values, sum);
                            yields(wait).await;
                            Reads(values, sum)
                        });
                        match number % 5 {
                            0 => drop(handle),
                            1 => {
                                mem::forget(handle);
                                forgotten.fetch_add(1, Ordering::SeqCst);
                            }
                            2 => scope.execute(move || drop(handle)),
                            3 => scope.spawn(async move { drop(handle.await) }),
                            _ => scope.spawn(async move {
                                let mut handle = handle;
                                let mut once = false;
                                poll_fn(|context| {
                                    let mut polled = std::pin::pin!(&mut handle);
                                    if mem::replace(&mut once, true) {
                                        return Poll::Ready(());
                                    }
                                    if polled.as_mut().poll(context).is_ready() {
                                        return Poll::Ready(());
                                    }
                                    context.waker().wake_by_ref();
                                    Poll::Pending
                                })
                                .await;
                            }),
                        }
                    }
                    dawdle(3000);
                    if fails {
                        std::panic::resume_unwind(Box::new("of the body"));
                    }
                });
            }));
            assert_eq!(result.is_err(), fails);
            drop(values);
            if !fails {
                assert_eq!(sum.into_inner(), 16 * (16 - forgotten.into_inner()));
            }
        }
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.in_flight(), stats.pending), (0, 0));
        assert_works(pool);
    });
}

/// Threads outside wake, clone and drop wakers at any time, also at the end of the scope and after
/// it.
#[test]
fn wakers_are_used_at_the_end_of_the_scope() {
    in_time(|| {
        let pool = pool(2);
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (wakers, is_over) = (Arc::clone(&wakers), Arc::clone(&is_over));
                thread::spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        let waker = {
                            let mut wakers = wakers.lock().unwrap();
                            if wakers.is_empty() {
                                None
                            } else {
                                let index = fastrand::usize(0..wakers.len());
                                Some(match fastrand::u8(0..3) {
                                    0 => wakers[index].clone(),
                                    _ => wakers.swap_remove(index),
                                })
                            }
                        };
                        match (waker, fastrand::u8(0..4)) {
                            (Some(waker), 0) => waker.wake(),
                            (Some(waker), 1) => waker.wake_by_ref(),
                            (Some(waker), 2) => drop(waker.clone()),
                            (Some(waker), _) => drop(waker),
                            (None, _) => thread::yield_now(),
                        }
                        dawdle(300);
                    }
                })
            })
            .collect();
        for round in 0..3000_usize {
            let (values, ended) = (vec![round; 4], AtomicUsize::new(0));
            let fails = fastrand::u8(0..3);
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    for value in &values {
                        let (kept, ended) = (Arc::clone(&wakers), &ended);
                        let mut left = fastrand::usize(1..4);
                        let on_drop = OnDrop(move || {
                            assert_eq!(*value, round);
                            ended.fetch_add(1, Ordering::SeqCst);
                            if fastrand::u8(0..4) == 0 {
                                std::panic::resume_unwind(Box::new("of a destructor"));
                            }
                        });
                        let handle =
                            scope.spawn_await(poll_fn(move |context: &mut Context<'_>| {
                                let _captured = &on_drop;
                                kept.lock().unwrap().push(context.waker().clone());
                                left -= 1;
                                match (left, fastrand::u8(0..8)) {
                                    (0, 0) => std::panic::resume_unwind(Box::new("of a poll")),
                                    (0, _) => Poll::Ready(*value),
                                    (_, 1) => {
                                        context.waker().wake_by_ref();
                                        Poll::Pending
                                    }
                                    _ => Poll::Pending,
                                }
                            }));
                        if fastrand::bool() {
                            mem::forget(handle);
                        } else {
                            scope.spawn(async move { drop(handle.await) });
                        }
                    }
                    dawdle(2000);
                    match fails {
                        0 => std::panic::resume_unwind(Box::new("of the body")),
                        1 => scope.execute(|| std::panic::resume_unwind(Box::new("of a task"))),
                        _ => {}
                    }
                });
            }));
            assert_eq!(result.is_err(), fails < 2);
            assert_eq!(ended.into_inner(), 4, "all were dropped");
            drop(values);
        }
        is_over.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        wakers.lock().unwrap().clear();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.in_flight(), stats.pending), (0, 0));
        assert_works(pool);
    });
}

/// Permits of a bounded queue, and what is in flight, after futures in all ways of ending.
#[test]
fn a_bounded_queue_gets_its_permits_back() {
    in_time(|| {
        let pool =
            Builder::new().core_size(1).max_size(1).queue_capacity(2).keep_alive(HOUR).build();
        for fails in [false, true].repeat(50) {
            let ((trigger, triggered), gate) = (triggered(), Gate::new());
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    scope.spawn(triggered);
                    scope.spawn(yields(3));
                    wait_until("it is pending", || trigger.waker().is_some());
                    scope.execute(|| gate.pass());
                    gate.wait_for(1);
                    scope.spawn(yields(3));
                    scope.spawn(yields(0));
                    assert!(scope.try_spawn(async {}).is_err(), "it is full");
                    if fails {
                        gate.open();
                        std::panic::resume_unwind(Box::new(()));
                    }
                    trigger.fire();
                    gate.open();
                });
            }));
            assert_eq!(result.is_err(), fails);
            assert!(pool.join_timeout(LIMIT));
            // Two fit again, and no more.
            let gate = block(&pool);
            pool.try_execute(|| ()).unwrap();
            pool.try_execute(|| ()).unwrap();
            assert!(pool.try_execute(|| ()).is_err());
            gate.open();
            assert!(pool.join_timeout(LIMIT));
        }
        assert_works(pool);
    });
}

#[test]
fn a_large_future_and_a_future_that_panics_on_the_scopes_thread() {
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let (values, mut sum) = ([1_u64; 4096], 0);
        pool.scope(|scope| {
            scope.spawn(async {
                let copy = values;
                yields(0).await;
                sum = copy.iter().sum();
            });
        });
        assert_eq!(sum, 4096);
        let drops = Drops::default();
        let text = panic_of(|| {
            pool.scope(|scope| {
                let guard = drops.issue();
                scope.spawn(async move {
                    let _captured = guard;
                    yields(0).await;
                    panic!("of a future");
                });
            });
        });
        assert_eq!((&*text, drops.count()), ("of a future", 1));
        gate.open();
        assert_works(pool);
    });
}

/// A future that never stops waking itself is cancelled too.
#[test]
fn a_future_that_yields_for_ever_is_cancelled() {
    in_time(|| {
        for size in [1, 2] {
            let pool = pool(size);
            let text = panic_of(|| {
                pool.scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(async {
                            loop {
                                yields(1).await;
                            }
                        });
                    }
                    dawdle(100_000);
                    panic!("of the body");
                });
            });
            assert_eq!(text, "of the body");
            assert_works(pool);
        }
    });
}

/// All workers are busy until the future is dropped: only the scope's thread, which waits, can do
/// that.
#[test]
fn a_panic_wakes_the_scopes_thread_which_drops_the_futures() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let (drops, started, was_dropped) = (Drops::default(), Gate::new(), AtomicBool::new(false));
        let text = panic_of(|| {
            pool.scope(|scope| {
                let guard = drops.issue();
                scope.spawn(async move {
                    let _captured = guard;
                    triggered.await;
                });
                wait_until("it is pending", || trigger.waker().is_some());
                let panicked = scope.evaluate(|| panic!("of a task"));
                wait_until("it has panicked", || panicked.is_finished());
                scope.execute(|| {
                    started.meet(1);
                    // By then the scope's thread waits, most times. The outcome is the same in both
                    // orders.
                    thread::sleep(MOMENT);
                    drop::<ScopedJoinHandle<'_, ()>>(panicked);
                    wait_until("the future was dropped", || drops.count() == 1);
                    was_dropped.store(true, Ordering::SeqCst);
                });
                started.wait_for(1);
            });
        });
        assert_eq!(text, "of a task");
        assert!(was_dropped.load(Ordering::SeqCst), "while the worker was busy");
        assert_works(pool);
    });
}

/// Wakers that are left when the pool is gone.
#[test]
fn wakers_outlive_the_pool() {
    in_time(|| {
        let mut wakers = Vec::new();
        for kind in 0..3 {
            let (pool, (trigger, triggered)) = (pool(1), triggered());
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    scope.spawn(triggered);
                    wait_until("it is pending", || trigger.waker().is_some());
                    wakers.extend([trigger.waker().unwrap(), trigger.waker().unwrap()]);
                    wakers.push(trigger.waker().unwrap());
                    match kind {
                        0 => trigger.fire(),
                        1 => panic!("of the body"),
                        _ => drop(pool.shutdown_now()),
                    }
                });
            }));
            assert_eq!(result.is_err(), kind > 0);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
        for (number, waker) in wakers.into_iter().enumerate() {
            match number % 3 {
                0 => waker.wake(),
                1 => drop(waker.clone()),
                _ => waker.wake_by_ref(),
            }
        }
    });
}

/// A paused view, a limited one, and one that is closed while its futures wait.
#[test]
fn views_of_scopes_that_panic() {
    in_time(|| {
        let pool = pool(2);
        for kind in 0..3 {
            let view = pool.view().limit(1).build();
            let (trigger, triggered) = triggered();
            let (drops, inner) = (Drops::default(), view.clone());
            let guards = [drops.issue(), drops.issue(), drops.issue()];
            let text = panic_of(|| {
                inner.scope(|scope| {
                    let [first, second, third] = guards;
                    scope.spawn(async move {
                        let _captured = first;
                        triggered.await;
                    });
                    wait_until("it is pending", || trigger.waker().is_some());
                    match kind {
                        0 => inner.pause(),
                        1 => inner.close(),
                        _ => {}
                    }
                    trigger.waker().unwrap().wake();
                    for guard in [second, third] {
                        let future = async move {
                            let _captured = guard;
                            yields(2).await;
                        };
                        drop(scope.try_spawn(future));
                    }
                    panic!("of the body");
                });
            });
            assert_eq!(text, "of the body");
            assert_eq!(drops.count(), 3);
            inner.resume();
            assert!(inner.join_timeout(LIMIT));
            assert_eq!(inner.stats().in_flight(), 0);
        }
        assert_works(pool);
    });
}

#[test]
fn a_report_names_the_futures_of_scopes_until_they_end() {
    in_time(|| {
        let pool =
            Builder::new().core_size(1).max_size(1).keep_alive(HOUR).track_tasks(true).build();
        let count =
            |pool: &ThreadPool| pool.report().unwrap().to_string().matches("hostile.rs").count();
        for fails in [false, true] {
            let (trigger, triggered) = triggered();
            let _ = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    scope.spawn(triggered);
                    wait_until("it is pending", || pool.stats().pending == 1);
                    assert_eq!(count(&pool), 1, "{}", pool.report().unwrap());
                    if fails {
                        std::panic::resume_unwind(Box::new(()));
                    }
                    trigger.fire();
                });
            }));
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(count(&pool), 0, "{}", pool.report().unwrap());
        }
        assert_works(pool);
    });
}

/// As for `std::thread::scope`, handles go where their task's scope and result may go.
#[test]
fn handles_and_scopes_are_send_and_sync() {
    fn assert_both<T: Send + Sync>(_: &T) {}

    let pool = pool(1);
    pool.scope(|scope| {
        assert_both(scope);
        // `Send`, not `Sync`.
        let handle = scope.spawn_await(async { std::cell::Cell::new(1) });
        assert_both(&handle);
        drop(handle);
    });
}
