//! Permits: async code waits for capacity of a bounded queue, or for a slot of a group, and then
//! submits.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use common::waits::{resolved, waiting, waker};
use common::{
    HOUR, LIMIT, block, hold, in_line, joined, millis, refused, settled, under_way, value,
    wait_until, waited,
};
use elastipool::{GroupPermit, Permit, RejectReason, TaskGroup, ThreadPool, blocking};

/// A pool of one worker whose queue holds no waiting task.
fn small() -> ThreadPool {
    ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build()
}

/// Polls the future once. Its wake has no effect.
fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Whether one task finds capacity. It runs at once.
fn has_capacity(pool: &ThreadPool) -> bool {
    pool.try_evaluate(|| ()).map(value).is_ok()
}

#[track_caller]
fn permit(pool: &ThreadPool) -> Permit {
    resolved(pool.ready()).expect("the pool is open")
}

#[track_caller]
fn slot(group: &TaskGroup<()>) -> GroupPermit<()> {
    resolved(group.ready()).expect("the group is open")
}

#[test]
fn a_permit_is_for_one_task_that_cannot_be_refused_for_capacity() {
    let pool = small();
    let permit = permit(&pool);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    assert_eq!(value(permit.evaluate(|| 6 * 7)), 42);
    pool.join();
    assert!(has_capacity(&pool), "the task has given it back");
    assert_eq!(pool.stats().rejected, 1);
    pool.shutdown_join();
}

#[test]
fn a_future_waits_for_capacity() {
    let pool = small();
    let gate = block(&pool);
    let ready = waiting(pool.ready());
    gate.open();
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    resolved(ready).unwrap().execute(move || runs.store(true, Ordering::Relaxed)).unwrap();
    pool.join();
    assert!(ran.load(Ordering::Relaxed));
    pool.shutdown_join();
}

#[cfg(feature = "async")]
#[test]
fn a_permit_spawns_futures() {
    let pool = small();
    assert_eq!(value(permit(&pool).spawn_await(async { 6 * 7 })), 42);
    let (sender, receiver) = std::sync::mpsc::channel();
    permit(&pool).spawn(async move { sender.send(1).unwrap() }).unwrap();
    pool.join();
    assert_eq!(receiver.recv(), Ok(1));
    pool.shutdown_join();
}

#[test]
fn a_permit_that_is_dropped_goes_to_the_next_one() {
    let pool = small();
    let permit = permit(&pool);
    let ready = waiting(pool.ready());
    drop(permit);
    drop(resolved(ready).unwrap());
    assert!(has_capacity(&pool));
    pool.shutdown_join();
}

/// A future that is not polled once it may go on, as in a `join!` beside others, keeps only its own
/// permit.
#[test]
fn a_future_that_is_not_polled_holds_up_no_other() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
    let held = [permit(&pool), permit(&pool)];
    let sleeps = waiting(pool.ready());
    let awake = waiting(pool.ready());
    let thread = {
        let pool = pool.clone();
        thread::spawn(move || pool.execute(|| ()))
    };
    drop(held);
    let permit = resolved(awake).unwrap();
    drop(permit);
    joined(thread);
    assert!(resolved(sleeps).is_ok());
    pool.shutdown_join();
}

#[test]
fn a_wait_that_is_dropped_loses_no_permit() {
    let pool = small();
    let permit = permit(&pool);
    let mut waits: Vec<_> = (0..4).map(|_| waiting(pool.ready())).collect();
    // In line: its place is given up.
    drop(waits.remove(1));
    drop(permit);
    // The first one was granted the permit, and has not noticed.
    drop(waits.remove(0));
    let permit = resolved(waits.remove(0)).unwrap();
    drop(waits);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    drop(permit);
    assert!(has_capacity(&pool));
    pool.shutdown_join();
}

#[test]
fn futures_and_threads_wait_in_one_line() {
    let pool = small();
    let gate = block(&pool);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    };
    let first = waiting(pool.ready());
    let second = {
        let (pool, task) = (pool.clone(), note("thread"));
        thread::spawn(move || pool.execute(task))
    };
    // Nothing shows that a thread waits. Time is the subject: if it came late, the order would be
    // another one.
    thread::sleep(millis(100));
    let third = waiting(pool.ready());
    gate.open();
    resolved(first).unwrap().execute(note("first")).unwrap();
    joined(second);
    resolved(third).unwrap().execute(note("third")).unwrap();
    pool.shutdown_join();
    assert_eq!(*order.lock().unwrap(), ["first", "thread", "third"]);
}

#[test]
fn a_close_ends_the_wait() {
    let pool = small();
    let gate = block(&pool);
    let ready = waiting(pool.ready());
    let view = pool.view().build();
    view.close();
    let closed = |reason| assert_eq!(reason, RejectReason::Closed);
    closed(resolved(view.ready()).unwrap_err());
    pool.close();
    closed(resolved(ready).unwrap_err());
    closed(resolved(pool.ready()).unwrap_err());
    gate.open();
    let unbounded = ThreadPool::new(1, 1, HOUR);
    unbounded.close();
    closed(resolved(unbounded.ready()).unwrap_err());
}

#[test]
fn a_close_of_a_view_ends_its_waits_only() {
    let pool = small();
    let gate = block(&pool);
    let view = pool.view().build();
    let (of_view, of_pool) = (waiting(view.ready()), waiting(pool.ready()));
    view.close();
    assert_eq!(resolved(of_view).unwrap_err(), RejectReason::Closed);
    gate.open();
    assert!(resolved(of_pool).is_ok());
}

/// What it submits was accepted before the close.
#[test]
fn a_permit_outlives_a_close() {
    let pool = ThreadPool::builder().queue_capacity(3).core_size(1).max_size(1).build();
    let permits = [(); 3].map(|()| permit(&pool));
    pool.close();
    let [first, second, third] = permits;
    assert_eq!(value(first.evaluate(|| 6 * 7)), 42);
    second.execute(|| ()).unwrap();
    assert!(!pool.join_timeout(millis(1)), "one is held");
    drop(third);
    resolved(pool.terminated());
    assert_eq!(pool.stats().completed, 2);
}

#[test]
fn an_immediate_shutdown_refuses_what_a_permit_submits() {
    let pool = ThreadPool::builder().queue_capacity(3).core_size(1).max_size(1).build();
    let group = pool.group::<()>().limit(2);
    let (first, second, third, fourth) = (permit(&pool), permit(&pool), slot(&group), slot(&group));
    assert_eq!(pool.stats().pending, 4);
    assert!(pool.shutdown_now().is_empty());
    let rejected = refused(first.execute(|| ()), RejectReason::Closed);
    rejected.into_task()();
    let error = settled(second.evaluate(|| ())).unwrap_err();
    assert!(error.is_closed());
    refused(third.execute(|| Ok(())), RejectReason::Closed);
    assert!(settled(fourth.evaluate(|| ())).unwrap_err().is_closed());
    waited(&group).unwrap();
    resolved(pool.terminated());
    assert_eq!(pool.stats().rejected, 4);
}

/// It holds the pool, but not open.
#[test]
fn a_permit_may_be_the_last_of_a_pool() {
    let pool = small();
    let permit = permit(&pool);
    drop(pool);
    assert_eq!(value(permit.evaluate(|| 6 * 7)), 42);
}

#[test]
fn a_permit_of_a_view_is_for_a_task_of_the_view() {
    let pool = small();
    let view = pool.view().limit(1).build();
    let permit = permit(&view);
    assert_eq!(value(permit.evaluate(|| 6 * 7)), 42);
    view.join();
    assert_eq!((view.stats().completed, pool.stats().completed), (1, 1));
}

#[test]
fn without_a_bound_there_is_always_capacity() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let mut permits: Vec<_> = (0..100).map(|_| permit(&pool)).collect();
    drop(permits.split_off(50));
    assert!(!pool.join_timeout(millis(1)), "it waits for the permits");
    for permit in permits {
        permit.execute(|| ()).unwrap();
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().completed, 50);
}

#[test]
fn a_permit_starts_a_worker_that_waits_for_it() {
    let pool = ThreadPool::new(0, 1, millis(1));
    let permit = permit(&pool);
    assert_eq!(pool.stats().workers, 1);
    drop(permit);
    wait_until("it has left", || pool.stats().workers == 0);
}

/// The task's own permit is the next to become free.
#[test]
fn a_task_may_wait_for_capacity_of_its_own_full_queue() {
    async fn answer(pool: ThreadPool) -> u32 {
        pool.ready().await.unwrap().evaluate(|| 6 * 7).await.unwrap()
    }

    let pool = small();
    assert_eq!(value(pool.complete(answer(pool.clone()))), 42);
    #[cfg(feature = "async")]
    assert_eq!(value(pool.spawn_await(answer(pool.clone()))), 42);
    pool.shutdown_join();
}

/// Polls a wait once, with a waker that calls `wake`.
fn poll_calling<T>(
    future: &mut Pin<Box<dyn Future<Output = T> + '_>>,
    wake: impl Fn() + Send + Sync + 'static,
) {
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker(wake))).is_pending());
}

/// The keeper calls it.
#[test]
fn a_waker_that_panics_submits_or_blocks_harms_no_worker() {
    let pool = small();
    let woken = Arc::new(AtomicUsize::new(0));
    for round in 1..=2 {
        let gate = block(&pool);
        let mut ready = waiting(pool.ready());
        let (inner, count) = (pool.clone(), Arc::clone(&woken));
        poll_calling(&mut ready, move || {
            count.fetch_add(1, Ordering::Relaxed);
            refused(inner.try_execute(|| ()), RejectReason::Full);
            panic!("on purpose");
        });
        let mut quiet = waiting(pool.quiet());
        let (inner, blocked) = (pool.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
        let seen = Arc::clone(&blocked);
        poll_calling(&mut quiet, move || {
            seen.store(blocking(|| inner.stats().blocked), Ordering::Relaxed);
        });
        gate.open();
        wait_until("it is woken", || woken.load(Ordering::Relaxed) == round);
        wait_until("it is quiet", || blocked.load(Ordering::Relaxed) < usize::MAX);
        assert_eq!(blocked.load(Ordering::Relaxed), 0, "no worker calls it");
        drop(resolved(ready).unwrap());
        resolved(quiet);
        assert!(has_capacity(&pool));
    }
    assert_eq!(pool.stats().workers, 1);
    pool.shutdown_join();
}

#[test]
fn many_submitters_that_give_up_at_random_lose_no_permit() {
    let pool = ThreadPool::builder().core_size(2).max_size(2).queue_capacity(1).build();
    let ran = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|seed: usize| {
            let (pool, ran) = (pool.clone(), Arc::clone(&ran));
            thread::spawn(move || {
                (0..500)
                    .filter(|round| {
                        let mut ready = Box::pin(pool.ready());
                        let polled = poll(&mut ready);
                        if polled.is_pending() && (seed + round) % 3 == 0 {
                            return false;
                        }
                        let permit = match polled {
                            Poll::Ready(permit) => permit,
                            Poll::Pending => resolved(ready),
                        };
                        let ran = Arc::clone(&ran);
                        let task = move || _ = ran.fetch_add(1, Ordering::Relaxed);
                        match (seed + round) % 5 {
                            0 => drop(permit),
                            1 => {
                                drop(permit);
                                pool.execute(task);
                            }
                            _ => permit.unwrap().execute(task).unwrap(),
                        }
                        (seed + round) % 5 != 0
                    })
                    .count()
            })
        })
        .collect();
    let submitted: usize = threads.into_iter().map(joined).sum();
    pool.join();
    assert_eq!(ran.load(Ordering::Relaxed), submitted);
    let permits: Vec<_> = (0..3).map(|_| permit(&pool)).collect();
    refused(pool.try_execute(|| ()), RejectReason::Full);
    drop(permits);
}

#[test]
fn a_future_waits_for_a_slot_of_a_group() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let group = pool.group::<()>().limit(1);
    let gate = hold(&group);
    let ready = waiting(group.ready());
    assert_eq!(in_line(&group), 1);
    gate.open();
    resolved(ready).unwrap().execute(|| Ok(())).unwrap();
    assert_eq!(value(slot(&group).evaluate(|| 6 * 7)), 42);
    #[cfg(feature = "async")]
    {
        assert_eq!(value(slot(&group).spawn_await(async { 6 * 7 })), 42);
        slot(&group).spawn(async { Ok(()) }).unwrap();
    }
    waited(&group).unwrap();
    pool.shutdown_join();
}

#[test]
fn a_slot_whose_permit_or_wait_is_dropped_goes_to_the_next_one() {
    let pool = small();
    let group = pool.group::<()>().limit(1);
    let permit = slot(&group);
    refused(group.try_execute(|| Ok(())), RejectReason::Full);
    let mut waits: Vec<_> = (0..4).map(|_| waiting(group.ready())).collect();
    drop(waits.remove(1));
    assert_eq!(in_line(&group), 3);
    drop(permit);
    // The first one was granted the slot, and has not noticed.
    drop(waits.remove(0));
    let permit = resolved(waits.remove(0)).unwrap();
    drop(waits);
    assert_eq!((under_way(&group), in_line(&group)), (1, 0));
    drop(permit);
    waited(&group).unwrap();
    assert!(has_capacity(&pool));
}

/// It has its slot, and waits for capacity of the pool's queue.
#[test]
fn a_slot_is_given_back_by_a_wait_for_capacity_that_is_dropped() {
    let pool = small();
    let group = pool.group::<()>().limit(1);
    let gate = block(&pool);
    let ready = waiting(group.ready());
    assert_eq!((under_way(&group), in_line(&group)), (1, 0));
    drop(ready);
    assert_eq!(under_way(&group), 0);
    gate.open();
    let permit = slot(&group);
    assert!(!has_capacity(&pool), "it has capacity too");
    drop(permit);
    assert!(has_capacity(&pool));
}

#[test]
fn a_cancelled_group_ends_the_wait_and_hands_the_task_back() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<()>().limit(2);
    let permits = [(); 2].map(|()| slot(&group));
    let ready = waiting(group.ready());
    group.cancel();
    let rejected = resolved(ready).unwrap_err();
    assert_eq!(rejected, RejectReason::Cancelled);
    assert_eq!(resolved(group.ready()).unwrap_err(), RejectReason::Cancelled);
    let [first, second] = permits;
    refused(first.execute(|| Ok(())), RejectReason::Cancelled);
    assert!(group.wait_timeout(millis(1)).is_none(), "a permit is held");
    drop(second);
    assert!(waited(&group).unwrap_err().is_cancelled());
    assert!(slot(&group).execute(|| Ok(())).is_ok());
    pool.close();
    assert_eq!(resolved(group.ready()).unwrap_err(), RejectReason::Closed);
    waited(&group).unwrap();
}

/// Its own slot may be the next to become free.
#[test]
fn a_task_of_a_group_does_not_wait_for_a_slot_of_that_group() {
    let pool = small();
    let group = pool.group::<()>().limit(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let (inner, count) = (group.clone(), Arc::clone(&ran));
    let task = move || {
        let permit = slot(&inner);
        assert_eq!(under_way(&inner), 1);
        permit.execute(move || Ok(_ = count.fetch_add(1, Ordering::Relaxed))).unwrap();
        assert_eq!(in_line(&inner), 1);
        drop(slot(&inner));
        Ok(())
    };
    group.execute(task).unwrap();
    waited(&group).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    // It outlives the task, and the slot is free.
    let (inner, place) = (group.clone(), Arc::new(Mutex::new(None)));
    let keeps = Arc::clone(&place);
    let keep = move || {
        *keeps.lock().unwrap() = Some(slot(&inner));
        Ok(())
    };
    group.execute(keep).unwrap();
    waited(&group).unwrap();
    let permit = place.lock().unwrap().take().unwrap();
    assert_eq!(under_way(&group), 0);
    assert_eq!(value(permit.evaluate(|| 6 * 7)), 42);
    waited(&group).unwrap();
    pool.join();
    assert!(has_capacity(&pool));
}

/// There is no worker, and so no keeper that would cancel the group.
#[test]
fn a_deadline_that_has_passed_refuses_a_slot() {
    let pool = ThreadPool::builder().core_size(0).build();
    let group = pool.group::<()>().deadline(Instant::now());
    assert_eq!(resolved(group.ready()).unwrap_err(), RejectReason::Cancelled);
    assert!(waited(&group).unwrap_err().is_expired());
    // Over with the round that it has cancelled.
    let permit = resolved(group.ready()).unwrap();
    permit.execute(|| Ok(())).unwrap();
    assert!(waited(&group).is_ok());
}
