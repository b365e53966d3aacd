//! `JoinSet`: results in the order in which tasks end.

use crate::common;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use common::{CountingWaker, Drops, Gate, HOUR, LIMIT, block, joined, value, wait_until};
use elastipool::{JoinHandle, JoinSet, ThreadPool};
use futures::{Stream, StreamExt};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// A task that ends when its gate opens.
fn gated(pool: &ThreadPool, number: usize) -> (Arc<Gate>, JoinHandle<usize>) {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        number
    });
    (gate, handle)
}

#[test]
fn a_wait_with_a_limit_leaves_the_set_as_it_is() {
    let pool = pool(2);
    let (gate, handle) = gated(&pool, 7);
    let mut set: JoinSet<_> = [handle].into_iter().collect();
    assert!(set.next_finished_timeout(common::millis(1)).is_none());
    assert_eq!(set.len(), 1);
    gate.open();
    assert_eq!(set.next_finished_timeout(LIMIT).unwrap().unwrap().unwrap(), 7);
    assert!(set.next_finished_timeout(LIMIT).unwrap().is_none(), "the set is empty");
    // A worker begins no task once the time is over.
    let (own, held) = (pool.clone(), pool.clone());
    let in_task = pool.evaluate(move || {
        let gate = block(&held);
        let mut set: JoinSet<_> = [own.evaluate(|| thread::current().id())].into_iter().collect();
        assert!(set.next_finished_timeout(common::millis(0)).is_none());
        let result = set.next_finished_timeout(LIMIT).unwrap().unwrap().unwrap();
        gate.open();
        result == thread::current().id()
    });
    assert!(value(in_task), "it runs the task itself");
}

#[test]
fn results_come_in_the_order_in_which_tasks_end() {
    let pool = pool(8);
    let (gates, mut set): (Vec<_>, JoinSet<_>) = (0..8).map(|number| gated(&pool, number)).unzip();
    assert_eq!((set.len(), set.is_empty()), (8, false));
    let order = [3, 7, 0, 1, 6, 2, 5, 4];
    for number in order {
        gates[number].open();
        assert_eq!(set.next_finished().unwrap().unwrap(), number);
    }
    assert!(set.next_finished().is_none() && set.is_empty());
    // And again.
    set.push(pool.evaluate(|| 42));
    assert_eq!(set.next_finished().unwrap().unwrap(), 42);
}

#[test]
fn tasks_that_have_ended_before_come_in_the_order_of_the_handles() {
    let pool = pool(1);
    let handles: Vec<_> = (0..10).map(|number| pool.evaluate(move || number)).collect();
    pool.join();
    let mut set = JoinSet::from_iter(handles);
    let results: Vec<_> = std::iter::from_fn(|| set.next_finished()).map(Result::unwrap).collect();
    assert_eq!(results, (0..10).collect::<Vec<_>>());
}

#[test]
fn panics_and_cancellations_are_results() {
    let pool = pool(1);
    let busy = block(&pool);
    let mut set = JoinSet::default();
    set.push(pool.evaluate(|| panic!("on purpose")));
    let cancelled = pool.evaluate(|| ());
    cancelled.cancel();
    set.push(cancelled);
    assert!(set.next_finished().unwrap().unwrap_err().is_cancelled());
    busy.open();
    assert!(set.next_finished().unwrap().unwrap_err().is_panic());
    pool.close();
    set.push(pool.evaluate(|| ()));
    assert!(set.next_finished().unwrap().unwrap_err().is_closed());
}

#[test]
fn the_handles_may_be_of_any_kind_and_pool() {
    let pools = [pool(1), pool(1)];
    let view = pools[0].view().build();
    let group = pools[1].group::<()>().limit(1);
    let mut set = JoinSet::new();
    set.extend([pools[0].evaluate(|| 1), pools[1].complete(async { 2 }), view.evaluate(|| 3)]);
    set.extend((4..8).map(|number| group.evaluate(move || number)));
    #[cfg(feature = "async")]
    set.push(pools[0].spawn_await(async { 8 }));
    #[cfg(not(feature = "async"))]
    set.push(pools[0].evaluate(|| 8));
    let mut sum = 0;
    while let Some(result) = set.next_finished() {
        sum += result.unwrap();
    }
    assert_eq!(sum, 36);
}

#[test]
fn dropping_it_cancels_what_is_left() {
    let pool = pool(1);
    let busy = block(&pool);
    let drops = Drops::default();
    let task = || {
        let held = drops.issue();
        pool.evaluate(move || drop(held))
    };
    let set: JoinSet<_> = (0..10).map(|_| task()).collect();
    assert_eq!(drops.count(), 0);
    drop(set);
    assert_eq!((drops.count(), pool.queued_count()), (10, 0));
    let mut set: JoinSet<_> = (0..10).map(|_| task()).collect();
    set.cancel_all();
    assert_eq!(drops.count(), 20);
    assert_eq!(set.len(), 10, "the results are still there");
    let is_cancelled =
        |result: Result<(), elastipool::JoinError>| result.unwrap_err().is_cancelled();
    assert!(std::iter::from_fn(|| set.next_finished()).all(is_cancelled));
    busy.open();
}

/// The worker runs the tasks itself: nested waits cost no thread.
#[test]
fn the_only_worker_waits_for_its_own_tasks() {
    fn count(pool: &ThreadPool, depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let task = |_| {
            let inner = pool.clone();
            pool.evaluate(move || count(&inner, depth - 1))
        };
        let mut set: JoinSet<_> = (0..3).map(task).collect();
        std::iter::from_fn(|| set.next_finished()).map(Result::unwrap).sum()
    }

    let pool = pool(1);
    let own = pool.clone();
    assert_eq!(value(pool.evaluate(move || count(&own, 5))), 243);
    assert_eq!(pool.stats().threads_started, 1);
}

/// What it waits for runs already: another worker runs in its place.
#[test]
fn a_worker_that_waits_is_replaced() {
    let pool = pool(2);
    let (gate, handle) = gated(&pool, 1);
    gate.wait_for(1);
    let waiter = pool.evaluate(move || {
        let mut set = JoinSet::from_iter([handle]);
        set.next_finished().unwrap().unwrap()
    });
    wait_until("it is in a region", || pool.stats().blocked == 1);
    let other = pool.evaluate(|| 2);
    assert_eq!(value(other), 2);
    gate.open();
    assert_eq!(value(waiter), 1);
}

#[test]
fn a_future_waits_without_a_thread() {
    let pool = pool(2);
    let (gates, set): (Vec<_>, JoinSet<_>) = (0..2).map(|number| gated(&pool, number)).unzip();
    let driver = ThreadPool::new(1, 1, HOUR);
    let (sender, results) = std::sync::mpsc::channel();
    let ends = driver.complete(set.for_each(move |result| {
        sender.send(result.unwrap()).unwrap();
        std::future::ready(())
    }));
    for number in [1, 0] {
        gates[number].open();
        assert_eq!(results.recv_timeout(LIMIT), Ok(number));
    }
    value(ends);
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let pool = pool(1);
    let (gate, handle) = gated(&pool, 1);
    let mut set = JoinSet::from_iter([handle]);
    let (first, second) = (CountingWaker::new(), CountingWaker::new());
    assert_eq!(set.size_hint(), (1, Some(1)));
    for waker in [&first.1, &second.1] {
        assert!(set.poll_next_finished(&mut Context::from_waker(waker)).is_pending());
    }
    gate.open();
    wait_until("it is woken", || second.0.count() == 1);
    assert_eq!(first.0.count(), 0);
    let polled = Pin::new(&mut set).poll_next(&mut Context::from_waker(&second.1));
    assert!(matches!(polled, Poll::Ready(Some(Ok(1)))));
}

/// Tasks end while the set is polled, and handles come meanwhile.
#[test]
fn no_result_is_lost() {
    let pool = pool(4);
    for _ in 0..200 {
        let mut set = JoinSet::new();
        let mut sum = 0;
        for number in 0..50 {
            set.push(pool.evaluate(move || {
                common::dawdle(100);
                number
            }));
            if number % 3 == 0 {
                sum += set.next_finished().unwrap().unwrap();
            }
        }
        let (own, set) = (pool.clone(), set);
        let rest = joined(thread::spawn(move || {
            let mut set = set;
            let mut rest = 0;
            let wait = poll_fn(move |context| {
                loop {
                    match set.poll_next_finished(context) {
                        Poll::Ready(Some(result)) => rest += result.unwrap(),
                        Poll::Ready(None) => return Poll::Ready(rest),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            });
            value(own.complete(wait))
        }));
        assert_eq!(sum + rest, 50 * 49 / 2);
    }
    assert!(pool.join_timeout(LIMIT));
}

/// Law 10: each wait for tasks of the worker's own pool has the worker replaced, whatever
/// `max_blocked` is. The handles were polled by the first one.
#[cfg(feature = "async")]
#[test]
fn a_worker_that_waits_again_for_its_own_pool_is_replaced() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).max_blocked(0).build();
    let (triggers, futures): (Vec<_>, Vec<_>) = (0..3).map(|_| common::triggered()).unzip();
    let (own, taken) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let takes = Arc::clone(&taken);
    let waits = pool.evaluate(move || {
        let futures = futures.into_iter().map(|future| own.spawn_await(future));
        let mut set: JoinSet<_> = futures.collect();
        while let Some(result) = set.next_finished() {
            result.unwrap();
            takes.fetch_add(1, Ordering::SeqCst);
        }
    });
    for (number, trigger) in triggers.iter().enumerate() {
        wait_until("the worker waits for the next one", || {
            let is_next = taken.load(Ordering::SeqCst) == number;
            let stats = pool.stats();
            is_next && stats.blocked == 1 && stats.idle + 1 == stats.workers
        });
        assert!(trigger.waker().is_some());
        trigger.fire();
    }
    value(waits);
}

/// As before, in a completion. Another thread has polled the handles.
#[cfg(feature = "async")]
#[test]
fn a_completion_waits_for_handles_that_another_thread_has_polled() {
    let pool = pool(1);
    let (trigger, triggered) = common::triggered();
    let mut set: JoinSet<_> = [pool.spawn_await(triggered)].into_iter().collect();
    wait_until("it is pending", || trigger.waker().is_some() && pool.stats().pending == 1);
    assert!(set.next_finished_timeout(common::millis(0)).is_none());
    let completed = pool.complete(async move { set.next().await.unwrap().unwrap() });
    wait_until("the completion has begun", || pool.stats().active == 1);
    trigger.fire();
    value(completed);
}

/// A first poll is not the end of a future, and the limit may be over after it.
#[cfg(feature = "async")]
#[test]
fn a_worker_begins_no_future_after_the_limit() {
    let pool = pool(1);
    let own = pool.clone();
    let begun = pool.evaluate(move || {
        let begun = Arc::new(std::sync::Mutex::new(Vec::new()));
        let future = |_| {
            let begun = Arc::clone(&begun);
            own.spawn_await(poll_fn(move |context| {
                begun.lock().unwrap().push(context.waker().clone());
                // Until the limit is over.
                thread::sleep(common::millis(5));
                Poll::<()>::Pending
            }))
        };
        let mut set: JoinSet<_> = (0..3).map(future).collect();
        assert!(set.next_finished_timeout(common::millis(1)).is_none());
        begun.lock().unwrap().len()
    });
    // None, if the time was over before the first look.
    assert!(value(begun) <= 1);
}

/// It says so once, and goes on with the other handles.
#[test]
fn a_handle_that_has_returned_its_result_is_removed_by_the_panic() {
    let pool = pool(1);
    let mut handle = pool.evaluate(|| 1);
    futures_executor::block_on(&mut handle).unwrap();
    let mut set: JoinSet<_> = [handle, pool.evaluate(|| 2)].into_iter().collect();
    let text = common::panic_text(|| set.next_finished());
    assert!(text.contains("after a poll had returned"), "{text}");
    assert_eq!(set.next_finished_timeout(LIMIT).unwrap().unwrap().unwrap(), 2);
    assert!(set.next_finished_timeout(LIMIT).expect("it hangs").is_none());
}
