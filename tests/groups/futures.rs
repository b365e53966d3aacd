//! Task groups of futures, groups as futures, and the futures of their tokens.
#![cfg(feature = "async")]

use crate::common;

use std::future::{Future, IntoFuture, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use common::{
    CountingWaker, Drops, Gate, HOUR, LIMIT, Triggered, failure, hold, in_line, panic_text,
    refused, settled, triggered, under_way, value, wait_until, waited,
};
use elastipool::{RejectReason, TaskGroup, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Spawns a task that waits for the teller.
#[track_caller]
fn spawn_triggered<E: Send + 'static>(
    group: &TaskGroup<E>,
    triggered: Triggered,
    captured: impl Send + 'static,
) {
    let spawned = group.try_spawn(async move {
        let _captured = captured;
        triggered.await;
        Ok(())
    });
    assert!(spawned.is_ok());
}

/// A task that fails when it is triggered.
#[track_caller]
fn fail_when_triggered(group: &TaskGroup<&'static str>, triggered: Triggered) {
    let spawned = group.spawn(async {
        triggered.await;
        Err("failed")
    });
    assert!(spawned.is_ok());
}

// ----- futures as tasks -----

#[test]
fn a_future_is_under_way_until_it_is_ready() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let (trigger, triggered) = triggered();
    let drops = Drops::default();
    spawn_triggered(&group, triggered, drops.issue());
    wait_until("it waits", || trigger.polls() == 1);
    assert!(group.wait_timeout(std::time::Duration::ZERO).is_none());
    trigger.fire();
    assert!(waited(&group).is_ok());
    assert_eq!((drops.count(), group.dropped_count()), (1, 0));
}

#[test]
fn a_futures_error_or_panic_is_returned() {
    let pool = pool(1);
    let group = pool.group();
    group.spawn(async { Err("an error") }).unwrap();
    assert_eq!(failure(&group).to_string(), "an error");
    group.spawn(async { panic!("a panic") }).unwrap();
    assert_eq!(failure(&group).to_string(), "the task panicked: a panic");
    group.try_spawn(async { Ok(()) }).unwrap();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_failure_drops_its_groups_pending_futures() {
    let pool = pool(1);
    let group = pool.group();
    let drops = Drops::default();
    let triggers: Vec<_> = (0..5)
        .map(|_| {
            let (trigger, triggered) = triggered();
            spawn_triggered(&group, triggered, drops.issue());
            trigger
        })
        .collect();
    wait_until("all wait", || triggers.iter().all(|trigger| trigger.polls() == 1));
    group.execute(|| Err("failed")).unwrap();
    assert_eq!(failure(&group).to_string(), "failed");
    assert_eq!((drops.count(), group.dropped_count()), (5, 5));
    assert!(triggers.iter().all(|trigger| trigger.polls() == 1));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().cancelled, pool.stats().pending), (5, 0));
    // Their wakers have no future to wake.
    triggers.iter().for_each(|trigger| trigger.fire());
    assert!(waited(&group).is_ok());
}

#[test]
fn a_future_that_was_never_polled_is_dropped_unpolled() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let (gate, drops) = (hold(&group), Drops::default());
    let (trigger, triggered) = triggered();
    spawn_triggered(&group, triggered, drops.issue());
    group.cancel();
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!(drops.count(), 1);
    assert_eq!(trigger.polls(), 0);
}

/// A future that meets the test in the poll of that number, and is not ready before the one after
/// it.
struct Interrupted {
    number: usize,
    polls: usize,
    gate: Arc<Gate>,
    waker: Arc<Mutex<Option<Waker>>>,
    is_ready: bool,
    _captured: common::Dropped,
}

impl Future for Interrupted {
    type Output = Result<(), &'static str>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        *self.waker.lock().unwrap() = Some(context.waker().clone());
        self.polls += 1;
        if self.polls < self.number {
            return Poll::Pending;
        }
        assert_eq!(self.polls, self.number, "polled after the cancellation");
        self.gate.pass();
        if self.is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

/// Cancels the group in the middle of the first or second poll, and returns how many tasks were
/// dropped.
fn dropped_by_a_cancellation_in_poll(number: usize, is_ready: bool) -> usize {
    let pool = pool(1);
    let group = pool.group();
    let (gate, waker, drops) = (Gate::new(), Arc::new(Mutex::new(None::<Waker>)), Drops::default());
    let future = Interrupted {
        number,
        polls: 0,
        gate: Arc::clone(&gate),
        waker: Arc::clone(&waker),
        is_ready,
        _captured: drops.issue(),
    };
    group.spawn(future).unwrap();
    for _ in 1..number {
        wait_until("it has been polled", || waker.lock().unwrap().is_some());
        let waker = waker.lock().unwrap().take().unwrap();
        waker.wake();
    }
    gate.wait_for(1);
    group.cancel();
    assert_eq!(drops.count(), 0);
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!(drops.count(), 1);
    group.dropped_count()
}

#[test]
fn a_cancellation_drops_a_future_at_the_end_of_its_poll() {
    assert_eq!(dropped_by_a_cancellation_in_poll(1, false), 1);
    assert_eq!(dropped_by_a_cancellation_in_poll(2, false), 1);
}

#[test]
fn a_future_that_is_ready_when_the_group_is_cancelled_has_finished() {
    assert_eq!(dropped_by_a_cancellation_in_poll(1, true), 0);
    assert_eq!(dropped_by_a_cancellation_in_poll(2, true), 0);
}

#[test]
fn a_future_that_cancels_its_own_group_is_dropped_after_that_poll() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let (own, after) = (group.clone(), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&after);
    group
        .spawn(async move {
            own.cancel();
            counts.fetch_add(1, Ordering::SeqCst);
            pending::<()>().await;
            unreachable!("polled again")
        })
        .unwrap();
    assert!(failure(&group).is_cancelled());
    assert_eq!((after.load(Ordering::SeqCst), group.dropped_count()), (1, 1));
}

#[test]
fn a_future_without_a_waker_cancels_its_group() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let drops = Drops::default();
    let captured = drops.issue();
    group
        .spawn(async move {
            let _captured = captured;
            pending().await
        })
        .unwrap();
    assert!(failure(&group).is_cancelled());
    assert_eq!((drops.count(), group.dropped_count()), (1, 1));
}

#[test]
fn a_cancelled_or_closed_group_hands_futures_back() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    group.cancel();
    let (trigger, triggered) = triggered();
    let future = refused(
        group.spawn(async {
            triggered.await;
            Ok(())
        }),
        RejectReason::Cancelled,
    )
    .into_task();
    let future = refused(group.try_spawn(future), RejectReason::Cancelled).into_task();
    assert!(failure(&group).is_cancelled());
    pool.close();
    let future = refused(group.spawn(future), RejectReason::Closed).into_task();
    drop(refused(group.try_spawn(future), RejectReason::Closed));
    assert_eq!(trigger.polls(), 0);
}

#[test]
fn an_immediate_shutdown_drops_futures_and_gives_none_away() {
    for keeps_going in [false, true] {
        let pool = pool(1);
        let group = pool.group::<&str>().limit(3);
        let group = if keeps_going { group.keep_going() } else { group };
        let drops = Drops::default();
        let (trigger, told_first) = triggered();
        spawn_triggered(&group, told_first, drops.issue());
        wait_until("it waits", || trigger.polls() == 1);
        // A closure that runs, and has futures deferred; and one future that was not polled.
        let (gate, inside, issues) = (Gate::new(), group.clone(), drops.clone());
        let passes = Arc::clone(&gate);
        group
            .execute(move || {
                let (_, told_queued) = triggered();
                spawn_triggered(&inside, told_queued, issues.issue());
                for _ in 0..2 {
                    let captured = issues.issue();
                    let deferred = async move {
                        let _captured = captured;
                        unreachable!("polled")
                    };
                    inside.spawn(deferred).unwrap();
                }
                passes.pass();
                Ok(())
            })
            .unwrap();
        gate.wait_for(1);
        assert_eq!((under_way(&group), in_line(&group)), (3, 2));
        assert!(pool.shutdown_now().is_empty());
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert!(failure(&group).is_cancelled());
        assert_eq!((drops.count(), group.dropped_count()), (4, 4));
        assert_eq!(trigger.polls(), 1);
    }
}

/// A future that is ready at once, and whose destructor panics.
struct Explosive;

impl Future for Explosive {
    type Output = Result<(), &'static str>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err("before that"))
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("a destructor");
    }
}

#[test]
fn a_future_whose_destructor_panics_costs_no_worker() {
    let pool = pool(1);
    let group = pool.group();
    group.spawn(Explosive).unwrap();
    assert_eq!(failure(&group).to_string(), "before that");
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    group.spawn(Explosive).unwrap();
    group.cancel();
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    assert_eq!(pool.stats().threads_started, 1);
}

// ----- the group as a future -----

#[test]
fn a_group_is_awaited_on_any_executor() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    group.execute(|| Ok(())).unwrap();
    assert!(futures_executor::block_on(group.clone().into_future()).is_ok());
    group.execute(|| Err("first")).unwrap();
    let first = futures_executor::block_on(async { (&group).await });
    assert_eq!(first.unwrap_err().to_string(), "first");
    group.execute(|| Err("second")).unwrap();
    let second = value(pool.spawn_await(async move { group.await }));
    assert_eq!(second.unwrap_err().to_string(), "second");
}

#[test]
fn an_empty_group_is_ready_at_the_first_poll() {
    let pool = pool(1);
    let (counting, waker) = CountingWaker::new();
    let mut wait = pool.group::<&str>().into_future();
    assert!(poll(&mut wait, &waker).is_ready());
    assert_eq!(counting.count(), 0);
}

#[test]
fn one_of_several_waits_for_a_group_receives_the_error_and_all_are_woken_once() {
    let pool = pool(1);
    let group = pool.group();
    let (trigger, triggered) = triggered();
    fail_when_triggered(&group, triggered);
    let mut waits: Vec<_> = (0..4)
        .map(|_| {
            let (counting, waker) = CountingWaker::new();
            let mut wait = (&group).into_future();
            assert!(poll(&mut wait, &waker).is_pending());
            (counting, waker, wait)
        })
        .collect();
    trigger.fire();
    let has_fired = |waits: &Vec<(Arc<CountingWaker>, _, _)>| {
        waits.iter().all(|(counting, _, _)| counting.count() == 1)
    };
    wait_until("all are woken", || has_fired(&waits));
    let polled = waits.iter_mut().map(|(_, waker, wait)| poll(wait, waker));
    let errors = polled.map(|polled| match polled {
        Poll::Ready(result) => result.unwrap_err(),
        Poll::Pending => panic!("woken for nothing"),
    });
    assert_eq!(errors.filter(|error| !error.is_cancelled()).count(), 1);
    assert!(waited(&group).is_ok());
}

#[test]
fn an_error_that_a_dropped_wait_has_received_is_not_returned_again() {
    let pool = pool(1);
    for second in [Ok(()), Err("second")] {
        let group = pool.group();
        let (trigger, triggered) = triggered();
        fail_when_triggered(&group, triggered);
        let (_, waker) = CountingWaker::new();
        let mut waits = [(&group).into_future(), (&group).into_future()];
        assert!(waits.iter_mut().all(|wait| poll(wait, &waker).is_pending()));
        trigger.fire();
        // Both are woken in the same moment: the first one that waited receives the error.
        wait_until("they are woken", || poll(&mut waits[0], &waker).is_ready());
        drop(waits);
        let spawned = group.spawn(async move { second });
        assert!(spawned.is_ok());
        assert_eq!(
            waited(&group).map_err(|error| error.to_string()),
            second.map_err(str::to_owned)
        );
    }
}

#[test]
fn a_cancellation_that_no_wait_has_returned_goes_after_an_error() {
    let pool = pool(1);
    let group = pool.group();
    let (trigger, triggered) = triggered();
    let spawned = group.spawn(async {
        triggered.await;
        Ok(())
    });
    assert!(spawned.is_ok());
    wait_until("it waits", || trigger.polls() == 1);
    let (counting, waker) = CountingWaker::new();
    let mut wait = (&group).into_future();
    assert!(poll(&mut wait, &waker).is_pending());
    group.cancel();
    wait_until("it is woken", || counting.count() == 1);
    drop(wait);
    assert!(group.spawn(async { Err("second") }).is_ok());
    assert_eq!(waited(&group).unwrap_err().to_string(), "second");
    assert!(waited(&group).is_ok());
}

#[test]
fn a_wait_for_a_group_is_woken_by_the_waker_of_its_last_poll() {
    let pool = pool(1);
    let group = pool.group();
    let (trigger, triggered) = triggered();
    fail_when_triggered(&group, triggered);
    let (old, old_waker) = CountingWaker::new();
    let (new, new_waker) = CountingWaker::new();
    let mut wait = (&group).into_future();
    assert!(poll(&mut wait, &old_waker).is_pending());
    assert!(poll(&mut wait, &new_waker).is_pending());
    trigger.fire();
    wait_until("it is woken", || new.count() == 1);
    assert!(poll(&mut wait, &new_waker).is_ready());
    assert_eq!(old.count(), 0);
    wait_until("its waker is dropped", || Arc::strong_count(&new) == 2);
}

#[test]
fn a_wait_for_a_group_that_is_dropped_midway_leaves_the_error_to_the_next() {
    let pool = pool(1);
    let group = pool.group();
    for is_told_first in [false, true] {
        let (trigger, triggered) = triggered();
        fail_when_triggered(&group, triggered);
        let (counting, waker) = CountingWaker::new();
        let mut wait = (&group).into_future();
        assert!(poll(&mut wait, &waker).is_pending());
        if is_told_first {
            trigger.fire();
            wait_until("it is woken", || counting.count() == 1);
            drop(wait);
        } else {
            drop(wait);
            trigger.fire();
            wait_until("the group ends", || under_way(&group) == 0);
            assert_eq!(counting.count(), 0);
        }
        wait_until("its waker is dropped", || Arc::strong_count(&counting) == 2);
        assert_eq!(failure(&group).to_string(), "failed");
        assert!(waited(&group).is_ok());
    }
}

#[test]
fn a_groups_error_that_no_wait_has_taken_comes_before_those_of_the_next_round() {
    let pool = pool(1);
    let group = pool.group();
    let (trigger, triggered) = triggered();
    fail_when_triggered(&group, triggered);
    let (counting, waker) = CountingWaker::new();
    let mut wait = (&group).into_future();
    assert!(poll(&mut wait, &waker).is_pending());
    trigger.fire();
    wait_until("it is woken", || counting.count() == 1);
    group.execute(|| Err("later")).unwrap();
    wait_until("it has failed", || under_way(&group) == 0);
    drop(wait);
    let errors: Vec<_> = group.wait_all().iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["failed", "later"]);
}

#[test]
fn a_wait_for_a_group_that_was_woken_does_not_wait_for_the_next_round() {
    let pool = pool(1);
    let group = pool.group();
    let (trigger, triggered) = triggered();
    fail_when_triggered(&group, triggered);
    let (counting, waker) = CountingWaker::new();
    let mut wait = (&group).into_future();
    assert!(poll(&mut wait, &waker).is_pending());
    trigger.fire();
    wait_until("it is woken", || counting.count() == 1);
    let gate = hold(&group);
    let Poll::Ready(result) = poll(&mut wait, &waker) else { panic!("it waits again") };
    assert_eq!(result.unwrap_err().to_string(), "failed");
    gate.open();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_task_that_awaits_its_own_group_panics() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let own = group.clone();
    group
        .spawn(async move {
            drop((&own).await);
            Ok(())
        })
        .unwrap();
    let error = failure(&group);
    let expected = "the task panicked: `await` was called by one of the group's own tasks";
    assert!(error.to_string().starts_with(expected), "{error}");

    let (own, texts) = (group.clone(), Arc::new(Mutex::new(String::new())));
    let writes = Arc::clone(&texts);
    group
        .execute(move || {
            let awaited = || futures_executor::block_on(own.into_future()).is_ok();
            *writes.lock().unwrap() = panic_text(awaited);
            Ok(())
        })
        .unwrap();
    assert!(waited(&group).is_ok());
    assert!(texts.lock().unwrap().starts_with("`await` was called"));
}

// ----- the token as a future -----

#[test]
fn the_cancelled_future_of_a_token_is_woken_by_the_cancellation() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let (counting, waker) = CountingWaker::new();
    let mut cancelled = group.token().cancelled();
    assert!(poll(&mut cancelled, &waker).is_pending());
    let on_pool = pool.spawn_await(group.token().cancelled());
    group.execute(|| Err("failed")).unwrap();
    assert_eq!(failure(&group).to_string(), "failed");
    value(on_pool);
    wait_until("it is woken", || counting.count() == 1);
    // Also after the group has begun a new round.
    assert!(poll(&mut cancelled, &waker).is_ready());
    assert!(poll(&mut cancelled, &waker).is_ready());
    assert_eq!(counting.count(), 1);
    wait_until("its waker is dropped", || Arc::strong_count(&counting) == 2);
}

#[test]
fn the_cancelled_future_of_a_cancelled_token_is_ready() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let token = group.token();
    group.cancel();
    futures_executor::block_on(token.cancelled());
    assert!(failure(&group).is_cancelled());
    futures_executor::block_on(token.cancelled());
    let mut fresh = group.token().cancelled();
    assert!(poll(&mut fresh, Waker::noop()).is_pending());
}

#[test]
fn cancelled_futures_of_a_token_may_be_dropped_leaked_and_polled_again() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let token = group.token();
    let (old, old_waker) = CountingWaker::new();
    let (counting, waker) = CountingWaker::new();
    let mut futures: Vec<_> = (0..8).map(|_| token.cancelled()).collect();
    drop(token.cancelled());
    for future in &mut futures {
        assert!(poll(future, &old_waker).is_pending());
        assert!(poll(future, &waker).is_pending());
    }
    assert_eq!((Arc::strong_count(&old), Arc::strong_count(&counting)), (2, 10));
    drop(futures.drain(..3));
    assert_eq!(Arc::strong_count(&counting), 7);
    futures.drain(..2).for_each(std::mem::forget);
    // Takes the slot of one that was dropped.
    let mut newest = token.cancelled();
    assert!(poll(&mut newest, &waker).is_pending());
    group.cancel();
    assert_eq!((old.count(), counting.count()), (0, 6));
    assert!(futures.iter_mut().chain([&mut newest]).all(|future| poll(future, &waker).is_ready()));
    drop((futures, newest));
    assert_eq!(Arc::strong_count(&counting), 2);
}

#[test]
fn a_task_waits_for_its_groups_token_and_for_something_else() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let outside = pool.group::<&str>();
    let (token, (trigger, triggered)) = (group.token(), triggered());
    outside
        .spawn(async move {
            let (mut cancelled, mut triggered) = (pin!(token.cancelled()), pin!(triggered));
            let both = poll_fn(|context| match triggered.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => cancelled.as_mut().poll(context).map(|()| Err("cancelled")),
            });
            both.await
        })
        .unwrap();
    wait_until("it waits", || trigger.polls() == 1);
    group.cancel();
    assert_eq!(failure(&outside).to_string(), "cancelled");
}

#[test]
fn a_handle_is_awaited_in_a_group() {
    let pool = pool(1);
    let group = pool.group();
    let handle = pool.evaluate(|| 7);
    let doubled = pool.spawn_await(async { 2 });
    group
        .spawn(async move {
            match (handle.await, doubled.await) {
                (Ok(7), Ok(2)) => Ok(()),
                _ => Err("other values"),
            }
        })
        .unwrap();
    assert!(waited(&group).is_ok());
    assert!(settled(pool.evaluate(|| ())).is_ok());
}
