//! A worker that waits for a spawned future polls it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread;

use crate::awaited::{
    Place, WHILE, assert_ended_on, assert_newest_first, at_work, builder, here, in_task, pool,
};
use crate::common::{
    Drops, Gate, LIMIT, Trigger, Triggered, block, joined, triggered, value, wait_until,
};
use elastipool::JoinHandle;

/// Notes where it is polled.
struct Noting {
    polls: Arc<Mutex<Vec<Place>>>,
    triggered: Triggered,
}

impl Future for Noting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.polls.lock().unwrap().push(here());
        Pin::new(&mut self.triggered).poll(context)
    }
}

fn noting() -> (Trigger, Noting, Arc<Mutex<Vec<Place>>>) {
    let (trigger, triggered) = triggered();
    let polls = Arc::default();
    (trigger, Noting { polls: Arc::clone(&polls), triggered }, polls)
}

/// After its first poll it is queued as others are: another thread wakes it, and another worker
/// polls it.
#[test]
fn a_future_that_has_to_wait_after_its_first_poll_goes_on_as_others_do() {
    let pool = pool(1);
    let (trigger, future, polls) = noting();
    let own = pool.clone();
    let waiter = pool.evaluate(move || {
        own.spawn_await(future).await_complete();
        thread::current().id()
    });
    wait_until("the worker waits", || pool.stats().blocked == 1);
    let stats = pool.stats();
    assert_eq!((at_work(&stats), pool.queued_count()), ((1, 0, 1), 0), "{stats:?}");
    trigger.fire();
    let thread = value(waiter);
    let polls = polls.lock().unwrap();
    assert_eq!((polls.len(), polls[0].0), (2, thread));
    assert_ne!(polls[1].0, thread, "it waits");
    assert_ended_on(2, &pool, 2);
}

/// Its entry is in the injector, and the only worker is the one that waits. It is woken and ends
/// while that entry is there.
#[test]
fn a_future_is_woken_while_its_entry_is_in_the_queue() {
    for capacity in [None, Some(2)] {
        let pool = capacity.map_or(builder(1), |n| builder(1).queue_capacity(n)).build();
        let (trigger, future, polls) = noting();
        let (sender, receiver) = mpsc::channel::<JoinHandle<()>>();
        let waiter = pool.evaluate(move || receiver.recv().unwrap().await_complete());
        let spawned = pool.spawn_await(future);
        pool.execute(|| ());
        sender.send(spawned).unwrap();
        wait_until("it waits", || trigger.waker().is_some());
        trigger.fire();
        value(waiter);
        assert_eq!(polls.lock().unwrap().len(), 2);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.in_flight(), pool.queued_count()), (3, 0, 0));
    }
}

#[test]
fn a_future_that_is_woken_during_its_first_poll_is_polled_again() {
    let pool = pool(1);
    let polls = in_task(&pool, |own| {
        let mut polls = Vec::new();
        let future = poll_fn(move |context| {
            polls.push(here());
            if polls.len() == 3 {
                return Poll::Ready(polls.clone());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let polls = own.spawn_await(future).await_complete();
        assert_eq!(polls[0], here());
        polls
    });
    assert_eq!(polls.len(), 3);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (2, 0));
}

/// By another thread, while the waiter polls it.
#[test]
fn a_future_that_another_thread_wakes_during_its_first_poll_is_polled_again() {
    let pool = pool(1);
    for _ in 0..300 {
        let own = pool.clone();
        let waiter = pool.evaluate(move || {
            let mut wakes = None;
            let future = poll_fn(move |context| {
                if wakes.is_some() {
                    return Poll::Ready(wakes.take());
                }
                let waker = context.waker().clone();
                wakes = Some(thread::spawn(move || waker.wake()));
                crate::common::dawdle(20_000);
                Poll::Pending
            });
            own.spawn_await(future).await_complete().expect("it was woken").join().unwrap();
        });
        value(waiter);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (600, 0));
}

#[test]
fn a_future_that_is_cancelled_after_its_first_poll_settles_its_waiter() {
    let pool = pool(1);
    let (trigger, future, polls) = noting();
    let (drops, own) = (Drops::default(), pool.clone());
    let guard = drops.issue();
    let waiter = pool.evaluate(move || {
        let future = async move {
            let _guard = guard;
            future.await;
        };
        own.spawn_await(future).try_await_complete().unwrap_err().is_cancelled()
    });
    wait_until("it waits", || trigger.waker().is_some() && pool.stats().blocked == 1);
    assert!(pool.shutdown_now().is_empty());
    assert!(value(waiter));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((drops.count(), polls.lock().unwrap().len()), (1, 1));
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// While the waiter polls the future, its entry in the queue is skipped by another worker. Then it
/// has to wait, and nothing can wake it: it is dropped when the poll has ended. A task is still in
/// flight, the waiter.
#[test]
fn a_join_waits_for_a_task_whose_awaited_future_ends_in_the_moment_of_its_first_poll() {
    let pool = pool(2);
    let (busy, skipped, ends) = (block(&pool), Gate::new(), Gate::new());
    let (sender, receiver) = mpsc::channel::<JoinHandle<()>>();
    let passes = Arc::clone(&ends);
    let waiter = pool.evaluate(move || {
        let awaited = receiver.recv().unwrap();
        assert!(awaited.try_await_complete().unwrap_err().is_cancelled());
        passes.pass();
    });
    wait_until("it runs", || pool.stats().active == 2);
    let (trigger, triggered) = triggered();
    drop(trigger);
    let passes = Arc::clone(&skipped);
    let awaited = pool.spawn_await(async move {
        passes.pass();
        triggered.await;
    });
    sender.send(awaited).unwrap();
    skipped.wait_for(1);
    busy.open();
    wait_until("the entry is skipped", || pool.idle_worker_count() == 1);
    wait_until("that is reported", || at_work(&pool.stats()) == (2, 0, 0));
    skipped.open();
    ends.wait_for(1);
    assert!(!pool.join_timeout(WHILE), "a task runs");
    assert_eq!(at_work(&pool.stats()), (1, 0, 0));
    ends.open();
    value(waiter);
    assert_ended_on(2, &pool, 3);
    assert_eq!(pool.stats().cancelled, 1);
}

/// As fast as it can be woken: the poll that has returned it counts for nothing any more.
#[test]
fn a_join_waits_for_a_task_whose_awaited_future_is_woken_at_once() {
    let pool = pool(2);
    for _ in 0..500 {
        let ended = Arc::new(AtomicUsize::new(0));
        let (own, ends) = (pool.clone(), Arc::clone(&ended));
        let (trigger, triggered) = triggered();
        pool.execute(move || {
            let trigger = Arc::new(trigger);
            let wakes = Arc::clone(&trigger);
            own.execute(move || wakes.fire());
            let spawned = own.spawn_await(triggered);
            own.execute(|| ());
            spawned.await_complete();
            crate::common::dawdle(2_000);
            ends.store(1, Ordering::Relaxed);
        });
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (2000, 0));
}

#[test]
fn a_worker_that_waits_for_a_group_polls_its_futures() {
    let pool = pool(1);
    let polls = in_task(&pool, |own| {
        let (group, polls) = (own.group::<()>(), Arc::new(Mutex::new(Vec::new())));
        for number in 0..5 {
            let polls = Arc::clone(&polls);
            let spawned = group.spawn(async move {
                polls.lock().unwrap().push((number, here()));
                Ok(())
            });
            spawned.unwrap();
        }
        group.wait().unwrap();
        let polls = Arc::into_inner(polls).expect("the futures are gone");
        assert_newest_first(polls, 5);
        let (trigger, future, polls) = noting();
        let future = async move {
            future.await;
            Ok(())
        };
        group.spawn(future).unwrap();
        let fires = thread::spawn(move || {
            wait_until("it waits", || trigger.waker().is_some());
            trigger.fire();
            trigger
        });
        group.wait().unwrap();
        drop(joined(fires));
        let polls = polls.lock().unwrap();
        assert_eq!(polls[0], here());
        polls.len()
    });
    assert_eq!(polls, 2);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (7, 0));
}

/// A pending future counts for the limit of its group.
#[test]
fn the_limit_of_a_group_holds_for_futures_that_its_waiter_polls() {
    let pool = pool(2);
    for _ in 0..50 {
        in_task(&pool, |own| {
            let group = own.group::<()>().limit(1);
            let crowd = Arc::new(AtomicUsize::new(0));
            for _ in 0..8 {
                let crowd = Arc::clone(&crowd);
                let mut polls = 0;
                let future = poll_fn(move |context| {
                    if polls == 0 {
                        assert_eq!(crowd.fetch_add(1, Ordering::SeqCst), 0);
                    }
                    polls += 1;
                    if polls == 3 {
                        crowd.fetch_sub(1, Ordering::SeqCst);
                        return Poll::Ready(Ok(()));
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                });
                group.spawn(future).unwrap();
            }
            group.wait().unwrap();
        });
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (450, 0));
}
