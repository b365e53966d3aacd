//! Futures of scopes.

use std::future::{pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{Drops, Gate, HOUR, LIMIT, block, dawdle, refused, triggered, wait_until};
use crate::{
    MOMENT, OnDrop, assert_received, assert_works, handled, hosted, in_time, panic_of, pool,
    wait_for_wait, yields,
};
use elastipool::{RejectReason, Scope, ThreadPool};
use futures::future::{join_all, select};
use futures_executor::block_on;

#[test]
fn a_future_borrows_and_its_scope_waits_for_the_wake() {
    hosted(|host| {
        let (pool, (trigger, triggered)) = (pool(2), triggered());
        let (numbers, mut sum) = (vec![1, 2, 3], 0);
        thread::scope(|threads| {
            threads.spawn(|| {
                wait_for_wait(host);
                wait_until("it is pending", || trigger.waker().is_some());
                trigger.fire();
            });
            pool.scope(|scope| {
                scope.spawn(async {
                    yields(3).await;
                    triggered.await;
                    yields(3).await;
                    sum = numbers.iter().sum();
                });
            });
        });
        assert_eq!(sum, 6);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 1);
        assert_works(pool);
    });
}

#[test]
fn the_handle_of_a_future_is_awaited_by_others_and_waited_for_in_the_body() {
    in_time(|| {
        let text = String::from("one two three");
        // The last pool's only worker opens the scope.
        for (size, is_worker) in [(1, false), (2, false), (2, true), (1, true)] {
            let pool = pool(size);
            let open = || {
                pool.scope(|scope| {
                    let words = scope.spawn_await(async {
                        yields(2).await;
                        text.split(' ')
                    });
                    let longest = scope.spawn_await(async {
                        yields(2).await;
                        words.await.unwrap().max_by_key(|word| word.len()).unwrap()
                    });
                    let length = scope.spawn_await(async { longest.await.unwrap().len() });
                    let doubled = scope.evaluate(|| 2 * length.await_complete());
                    doubled.await_complete()
                })
            };
            let length = if is_worker {
                pool.scope(|scope| scope.evaluate(open).await_complete())
            } else {
                open()
            };
            assert_eq!(length, 10);
            assert_works(pool);
        }
    });
}

#[test]
fn a_handle_resolves_after_its_future_was_dropped() {
    // The second one keeps no waker, so it is dropped before its end.
    for polled in [Poll::Ready(()), Poll::Pending] {
        hosted(move |_| {
            let (pool, dropped) = (pool(1), AtomicBool::new(false));
            pool.scope(|scope| {
                let on_drop = OnDrop(|| {
                    thread::sleep(MOMENT);
                    dropped.store(true, Ordering::SeqCst);
                });
                // Captured, so dropped with the future, not at the end of the block.
                let handle = scope.spawn_await(poll_fn(move |_| {
                    let _captured = &on_drop;
                    polled
                }));
                assert_eq!(handle.try_await_complete().is_ok(), polled.is_ready());
                assert!(dropped.load(Ordering::SeqCst));
            });
        });
    }
}

#[test]
fn a_future_spawns_into_its_scope() {
    fn spawn<'scope>(scope: &'scope Scope<'scope, '_>, count: &'scope AtomicUsize, depth: u32) {
        count.fetch_add(1, Ordering::Relaxed);
        for _ in 0..2 * depth.min(1) {
            scope.spawn(async move {
                yields(1).await;
                spawn(scope, count, depth - 1);
            });
        }
    }

    in_time(|| {
        let (pool, count) = (pool(2), AtomicUsize::new(0));
        pool.scope(|scope| spawn(scope, &count, 6));
        assert_eq!(count.into_inner(), 127);
        assert_works(pool);
    });
}

/// The scope's thread polls it. It is no worker of the pool, and its only worker is busy.
#[test]
fn a_scope_outside_polls_its_unstarted_futures() {
    in_time(|| {
        let (pool, caller) = (pool(1), thread::current().id());
        let gate = block(&pool);
        let mut polled_by = None;
        pool.scope(|scope| scope.spawn(async { polled_by = Some(thread::current().id()) }));
        assert_eq!(polled_by, Some(caller));
        let stats = pool.stats();
        assert_eq!((stats.in_flight(), stats.active, stats.pending), (1, 1, 0));
        gate.open();
        assert_works(pool);
    });
}

/// The scope's thread polls it for the first time, and a worker ends it.
#[test]
fn a_future_that_its_scope_outside_has_polled_ends_on_a_worker() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let gate = block(&pool);
        let mut ended_by = None;
        thread::scope(|threads| {
            threads.spawn(|| {
                wait_until("it is pending", || trigger.waker().is_some());
                wait_until("it is counted as pending", || pool.stats().pending == 1);
                trigger.fire();
                gate.open();
            });
            pool.scope(|scope| {
                scope.spawn(async {
                    triggered.await;
                    ended_by = elastipool::worker_index();
                });
            });
        });
        assert_eq!(ended_by, Some(0));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 2);
        assert_works(pool);
    });
}

#[test]
fn a_scope_in_the_only_worker_waits_for_futures_that_wait_for_each_other() {
    in_time(|| {
        let pool = pool(1);
        let inner = pool.clone();
        let sum = pool.evaluate(move || {
            let (trigger, triggered) = triggered();
            let (numbers, mut sum) = ([1, 2, 3], 0);
            inner.scope(|scope| {
                scope.spawn(async {
                    triggered.await;
                    sum = numbers.iter().sum();
                });
                scope.spawn(async {
                    yields(3).await;
                    trigger.fire();
                });
            });
            sum
        });
        assert_eq!(sum.await_complete(), 6);
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_the_body_cancels_pending_futures_though_the_workers_are_busy() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        let gate = block(&pool);
        let (trigger, triggered) = triggered();
        let mut was_dropped_before = false;
        let text = panic_of(|| {
            pool.scope(|scope| {
                let (guard, dropped) = (drops.issue(), OnDrop(|| was_dropped_before = true));
                scope.spawn(async {
                    let _captured = (guard, dropped);
                    triggered.await;
                });
                let guard = drops.issue();
                let handle = scope.spawn_await(async {
                    let _captured = guard;
                    pending::<()>().await;
                });
                mem::forget(handle);
                panic!("of the body");
            })
        });
        assert_eq!(text, "of the body");
        assert_eq!(drops.count(), 2);
        assert!(was_dropped_before);
        // Held elsewhere: what is left of the task is of no use to it.
        let waker = trigger.waker().expect("it was polled");
        waker.wake_by_ref();
        drop(trigger);
        mem::forget(waker.clone());
        waker.wake();
        assert_eq!(pool.stats().in_flight(), 1, "what occupies the worker");
        gate.open();
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_the_body_waits_for_a_poll_and_then_for_the_drop() {
    hosted(|host| {
        let (pool, poll, drops) = (pool(1), Gate::new(), Drops::default());
        let drop_gate = Gate::new();
        let (host, opens) = (host.clone(), Arc::clone(&poll));
        let opens_drop = Arc::clone(&drop_gate);
        let opener = thread::spawn(move || {
            wait_for_wait(&host);
            opens.open();
            opens_drop.wait_for(1);
            assert_eq!(host.stats().blocked, 1, "it waits for the drop");
            opens_drop.open();
        });
        let has_ended = AtomicBool::new(false);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let guard = drops.issue();
                let on_drop = OnDrop(|| drop_gate.pass());
                let (poll, has_ended) = (&poll, &has_ended);
                let mut polls = 0;
                scope.spawn(poll_fn(move |context| {
                    let _captured = (&guard, &on_drop);
                    polls += 1;
                    if polls == 1 {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    poll.pass();
                    has_ended.store(true, Ordering::SeqCst);
                    mem::forget(context.waker().clone());
                    Poll::<()>::Pending
                }));
                poll.wait_for(1);
                panic!("of the body");
            })
        });
        assert_eq!(text, "of the body");
        assert!(has_ended.into_inner(), "the poll has returned");
        assert_eq!(drops.count(), 1);
        opener.join().unwrap();
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_a_task_cancels_the_futures_that_are_pending_after_the_body() {
    in_time(|| {
        for is_future in [false, true] {
            let (pool, (trigger, triggered)) = (pool(2), triggered());
            let (mut dropped, gate) = (false, Gate::new());
            let text = panic_of(|| {
                pool.scope(|scope| {
                    let on_drop = OnDrop(|| dropped = true);
                    scope.spawn(async {
                        let _captured = on_drop;
                        triggered.await;
                    });
                    wait_until("it is pending", || trigger.waker().is_some());
                    let handle = scope.evaluate(|| panic!("for the handle"));
                    assert!(handle.try_await_complete().unwrap_err().is_panic());
                    let fails = || {
                        gate.wait_for(1);
                        panic!("of a task")
                    };
                    if is_future {
                        scope.spawn(async move { fails() });
                    } else {
                        scope.execute(fails);
                    }
                    scope.execute(|| gate.meet(1));
                });
            });
            assert_eq!(text, "of a task");
            assert!(dropped);
            drop(trigger);
            assert_works(pool);
        }
    });
}

/// The dropped handle of a panicked task is what makes the scope panic, while its thread waits.
#[test]
fn a_panic_whose_handle_a_pending_future_drops_cancels_the_futures() {
    hosted(|host| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        let panics = AtomicUsize::new(0);
        thread::scope(|threads| {
            threads.spawn(|| {
                wait_for_wait(host);
                wait_until("it is pending", || trigger.waker().is_some());
                trigger.fire();
            });
            let text = panic_of(|| {
                pool.scope(|scope| {
                    let panicked = scope.evaluate(|| {
                        panics.fetch_add(1, Ordering::SeqCst);
                        panic!("of a task")
                    });
                    wait_until("it has panicked", || panicked.is_finished());
                    scope.spawn(async move {
                        triggered.await;
                        drop::<elastipool::ScopedJoinHandle<'_, ()>>(panicked);
                        // Pending for ever, with a waker that is kept.
                        poll_fn(|context| {
                            mem::forget(context.waker().clone());
                            Poll::<()>::Pending
                        })
                        .await;
                    });
                });
            });
            assert_eq!(text, "of a task");
        });
        assert_eq!(panics.into_inner(), 1);
        assert_works(pool);
    });
}

#[test]
fn a_future_that_is_spawned_after_the_panic_runs_until_it_is_pending() {
    in_time(|| {
        let (pool, mut polls, gate) = (pool(2), 0, Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    gate.pass();
                    scope.spawn(async {
                        polls += 1;
                        let mut elsewhere = None;
                        poll_fn(|context| {
                            elsewhere = Some(context.waker().clone());
                            Poll::<()>::Pending
                        })
                        .await;
                        polls += 1;
                    });
                });
                gate.wait_for(1);
                gate.open();
                panic!("of the body");
            })
        });
        assert_eq!((&*text, polls), ("of the body", 1));
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_a_future_goes_to_its_handle_or_its_scope() {
    in_time(|| {
        let (pool, received) = handled(1);
        pool.scope(|scope| {
            let handle = scope.spawn_await(async {
                yields(1).await;
                panic!("for the handle")
            });
            let error: elastipool::JoinError = handle.try_await_complete().unwrap_err();
            assert_eq!(error.to_string(), "the task panicked: for the handle");
        });
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.spawn_await(async { panic!("of a future") });
                wait_until("it has panicked", || handle.is_finished());
                drop::<elastipool::ScopedJoinHandle<'_, ()>>(handle);
                scope.spawn(async { panic!("a later one") });
            });
        });
        assert_eq!(text, "of a future");
        assert_received(&pool, &received, &["a later one"]);
        assert_works(pool);
    });
}

/// A waker that panics when it is woken.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("of the waker");
    }
}

/// The destructor of the future panics, then the waker of its handle, which learns that it is
/// cancelled.
#[test]
fn panics_of_destructors_are_contained() {
    in_time(|| {
        for cancels in [false, true] {
            let (pool, (trigger, triggered)) = (pool(1), triggered());
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    let on_drop = OnDrop(|| panic!("of the destructor"));
                    let mut handle = scope.spawn_await(async move {
                        let _captured = &on_drop;
                        triggered.await;
                    });
                    let waker = Waker::from(Arc::new(Bomb));
                    wait_until("it is pending", || trigger.waker().is_some());
                    let mut polled = std::pin::pin!(&mut handle);
                    let context = &mut std::task::Context::from_waker(&waker);
                    assert!(polled.as_mut().poll(context).is_pending());
                    mem::forget(handle);
                    assert!(!cancels, "of the body");
                    trigger.fire();
                });
            }));
            assert_eq!(result.is_err(), cancels);
            assert_works(pool);
        }
    });
}

#[test]
fn a_scope_says_that_nothing_can_wake_its_future() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| pool.scope(|scope| scope.spawn(pending())));
        assert!(text.contains("nothing could wake a future any more"), "{text}");
        pool.scope(|scope| {
            let (trigger, triggered) = triggered();
            let handle = scope.spawn_await(triggered);
            wait_until("it is pending", || trigger.waker().is_some());
            drop(trigger);
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
        assert_works(pool);
    });
}

#[test]
fn shutdown_now_drops_a_scopes_futures() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        let (trigger, triggered) = triggered();
        let text = panic_of(|| {
            pool.scope(|scope| {
                let guard = drops.issue();
                let handle = scope.spawn_await(async move {
                    let _captured = guard;
                    triggered.await;
                });
                wait_until("it is pending", || trigger.waker().is_some());
                let gate = block(&pool);
                let guards = [drops.issue(), drops.issue()];
                let [queued, other] = guards.map(|guard| async move { drop(guard) });
                let queued = scope.spawn_await(queued);
                scope.spawn(other);
                assert_eq!(pool.shutdown_now().len(), 0);
                assert!(queued.is_finished());
                assert!(queued.try_await_complete().unwrap_err().is_cancelled());
                // The worker drops it.
                gate.open();
                assert!(handle.try_await_complete().unwrap_err().is_cancelled());
            });
        });
        assert!(text.starts_with("1 of a scope's tasks were dropped"), "{text}");
        assert_eq!(drops.count(), 3);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().cancelled, 3);
    });
}

#[test]
fn a_closed_pool_hands_a_scopes_futures_back() {
    in_time(|| {
        let pool = ThreadPool::new(1, 1, HOUR);
        pool.close();
        pool.scope(|scope| {
            let rejected = refused(scope.try_spawn(async {}), RejectReason::Closed);
            block_on(rejected.into_task());
            let rejected = refused(scope.try_spawn_await(async { 1 }), RejectReason::Closed);
            assert_eq!(block_on(rejected.into_task()), 1);
            let error = scope.spawn_await(async {}).try_await_complete().unwrap_err();
            assert!(error.is_closed(), "{error}");
            let text = panic_of(|| scope.spawn(async {}));
            assert!(text.contains("`try_spawn`"), "{text}");
        });
    });
}

#[test]
fn a_scopes_futures_keep_the_rules_of_its_view() {
    in_time(|| {
        let pool = pool(2);
        let view = pool.view().limit(1).build();
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let inner = view.clone();
        let sum = view.evaluate(move || {
            inner.scope(|scope| {
                let handles = (0..20).map(|number| {
                    let (running, most) = (&running, &most);
                    scope.spawn_await(async move {
                        for _ in 0..3 {
                            most.fetch_max(
                                running.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            thread::yield_now();
                            running.fetch_sub(1, Ordering::SeqCst);
                            yields(1).await;
                        }
                        number
                    })
                });
                let handles: Vec<_> = handles.collect();
                let sum = scope.spawn_await(async {
                    join_all(handles).await.into_iter().map(Result::unwrap).sum::<u32>()
                });
                (sum.await_complete(), most.load(Ordering::SeqCst))
            })
        });
        assert_eq!(sum.await_complete(), (190, 1));
        let late = pool.view().queue_timeout(Duration::from_millis(1)).build();
        let gates = [block(&pool), block(&pool)];
        late.scope(|scope| {
            let handle = scope.spawn_await(async {});
            assert!(handle.try_await_complete().unwrap_err().is_expired());
        });
        gates.iter().for_each(|gate| gate.open());
        assert_works(pool);
    });
}

#[test]
fn a_scope_shows_its_pending_futures() {
    in_time(|| {
        let (pool, (trigger, triggered)) = (pool(1), triggered());
        pool.scope(|scope| {
            let gate = block(&pool);
            scope.spawn(triggered);
            assert!(format!("{scope:?}").contains("unfinished: 1"), "{scope:?}");
            gate.open();
            wait_until("it is pending", || pool.stats().pending == 1);
            assert!(format!("{scope:?}").contains("unfinished: 1"), "{scope:?}");
            trigger.fire();
            wait_until("it has ended", || format!("{scope:?}").contains("unfinished: 0"));
        });
        assert_works(pool);
    });
}

/// The next scope of a thread uses the list of the one before. A worker that polled a future of
/// that one may return late.
#[test]
fn scopes_with_futures_follow_each_other() {
    in_time(|| {
        let pool = pool(2);
        for round in 0..2000_usize {
            let (trigger, triggered) = triggered();
            let mut count = 0;
            thread::scope(|threads| {
                threads.spawn(|| {
                    dawdle(2000);
                    trigger.fire();
                });
                pool.scope(|scope| {
                    scope.spawn(async {
                        triggered.await;
                        count += 1;
                    });
                });
            });
            assert_eq!(count, 1, "round {round}");
        }
        assert_works(pool);
    });
}

/// Futures that wait for each other and for threads outside, with wakers that outlive them, in
/// scopes some of which panic. For the sanitizers.
#[test]
fn scopes_end_whatever_their_futures_do() {
    in_time(|| {
        let pool = pool(2);
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (late, over) = (Arc::clone(&wakers), Arc::clone(&is_over));
        let waking = thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                dawdle(500);
                let waker = late.lock().unwrap().pop();
                if let Some(waker) = waker {
                    if fastrand::bool() { waker.wake() } else { waker.wake_by_ref() }
                }
            }
        });
        let panics = AtomicUsize::new(0);
        for _ in 0..1000 {
            let values = vec![1_usize; 8];
            let (done, kept) = (AtomicUsize::new(0), Arc::clone(&wakers));
            let fails = fastrand::u8(0..4);
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    for value in &values {
                        let (kept, done) = (Arc::clone(&kept), &done);
                        let mut left = fastrand::usize(0..4);
                        let waits = scope.spawn_await(poll_fn(move |context| {
                            kept.lock().unwrap().push(context.waker().clone());
                            left = left.saturating_sub(1);
                            if left == 0 { Poll::Ready(value) } else { Poll::Pending }
                        }));
                        scope.spawn(async move {
                            let either = select(waits, Box::pin(yields(50))).await;
                            drop(either);
                            done.fetch_add(*value, Ordering::SeqCst);
                        });
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
            panics.fetch_add(usize::from(fails < 2), Ordering::Relaxed);
            assert!(fails < 2 || done.into_inner() == 8);
        }
        is_over.store(true, Ordering::SeqCst);
        waking.join().unwrap();
        assert!(panics.into_inner() > 0);
        assert_works(pool);
    });
}
