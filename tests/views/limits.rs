//! `limit`: how many workers run tasks of a view at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(feature = "async")]
use std::{
    future::{Future, poll_fn},
    mem,
    sync::{Mutex, mpsc},
    task::{Poll, Waker},
};

#[cfg(feature = "async")]
use elastipool::Priority;

#[cfg(feature = "async")]
use crate::common::LIMIT;
use crate::common::{Gate, dawdle, wait_until};
use crate::{Level, at_gate, pool};

/// No more than `limit` run at a time, and all of them run.
#[test]
fn no_more_workers_run_a_view_than_its_limit() {
    for limit in [1, 2, 3] {
        let pool = pool(0, 8);
        let view = pool.view().limit(limit).build();
        let (level, ran) = (Level::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2000 {
            let (level, ran) = (level.clone(), Arc::clone(&ran));
            view.execute(move || {
                level.enter();
                dawdle(100);
                level.exit();
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
        view.join();
        assert_eq!(ran.load(Ordering::Relaxed), 2000);
        assert!(level.peak() <= limit, "{} of {limit}", level.peak());
        pool.shutdown_join();
    }
}

/// The limit is used: as many run at the same time.
#[test]
fn as_many_workers_run_a_view_as_its_limit() {
    let pool = pool(0, 8);
    let view = pool.view().limit(3).build();
    let gate = Gate::new();
    for _ in 0..3 {
        let gate = Arc::clone(&gate);
        view.execute(move || gate.meet(3));
    }
    view.join();
    pool.shutdown_join();
}

/// The tasks of others do not wait behind the queue of a limited view (law 1).
#[test]
fn a_full_view_delays_no_other() {
    let pool = pool(0, 2);
    let limited = pool.view().limit(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..100).for_each(|_| at_gate(&limited, &gate, &level));
    gate.wait_for(1);
    assert_eq!(pool.evaluate(|| 1).await_complete(), 1);
    assert_eq!(pool.view().build().evaluate(|| 2).await_complete(), 2);
    assert_eq!(level.now(), 1);
    gate.open();
    pool.shutdown_join();
}

/// Ten thousand tasks that may not run yet neither start threads nor wake workers.
#[test]
fn queued_tasks_of_a_full_view_start_no_thread() {
    let pool = pool(0, 8);
    let view = pool.view().limit(1).build();
    let gate = Gate::new();
    let level = Level::default();
    at_gate(&view, &gate, &level);
    gate.wait_for(1);
    (0..10_000).for_each(|_| view.execute(|| ()));
    // One for the running task. A second may have been started while that one was about to be
    // taken.
    assert!(pool.stats().threads_started <= 2, "{:?}", pool.stats());
    gate.open();
    view.join();
    pool.shutdown_join();
}

/// Polls of futures count for the limit, pending futures do not.
#[cfg(feature = "async")]
#[test]
fn polls_count_for_the_limit() {
    use futures::future::poll_fn;
    use std::task::Poll;

    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    let level = Level::default();
    for _ in 0..50 {
        let level = level.clone();
        let mut polls = 0;
        view.spawn(poll_fn(move |context| {
            level.enter();
            dawdle(100);
            level.exit();
            polls += 1;
            if polls == 20 {
                return Poll::Ready(());
            }
            // Half of the wakes come from outside the poll.
            if polls % 2 == 0 {
                context.waker().wake_by_ref();
            } else {
                let waker = context.waker().clone();
                std::thread::spawn(move || waker.wake());
            }
            Poll::Pending
        }));
    }
    view.spawn(async {});
    view.join();
    assert_eq!(level.peak(), 1);
    pool.shutdown_join();
}

/// A future that is pending leaves its place to other tasks.
#[cfg(feature = "async")]
#[test]
fn a_pending_future_holds_no_place() {
    let pool = pool(0, 2);
    let view = pool.view().limit(1).build();
    let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
    let future = view.spawn_await(receiver);
    assert_eq!(view.evaluate(|| 1).await_complete(), 1);
    sender.send(2).unwrap();
    assert_eq!(future.await_complete(), Ok(2));
}

/// The end of a task starts the next one of its view, whichever worker is free.
#[test]
fn a_task_that_ends_lets_the_next_one_start() {
    let pool = pool(0, 4);
    let view = pool.view().limit(1).build();
    for _ in 0..500 {
        let [first, second] = [view.evaluate(|| dawdle(50)), view.evaluate(|| dawdle(50))];
        first.await_complete();
        second.await_complete();
    }
    wait_until("all workers are idle", || pool.idle_worker_count() == pool.current_worker_count());
    pool.shutdown_join();
}

/// A worker polls a future of a limited view, which queues a closure of the view: it may not start
/// yet, so no worker is notified of it. The poll also wakes a future of the pool, of which no
/// worker is notified either, and which comes first. So when the worker takes that one, it must
/// notify another of the closure.
#[cfg(feature = "async")]
#[test]
fn a_worker_that_takes_another_task_notifies_of_the_one_that_may_start_now() {
    let pool = pool(2, 2);
    let view = pool.view().limit(1).priority(Priority::Low).build();
    let (first_waker, second_waker) = (Arc::default(), Arc::default());
    let (ran, waits) = mpsc::channel();
    let second = pool.spawn_await({
        let woken = woken(&second_waker);
        async move {
            woken.await;
            waits.recv_timeout(LIMIT)
        }
    });
    let first = view.spawn_await({
        let (woken, view) = (woken(&first_waker), view.clone());
        let second_waker = Arc::clone(&second_waker);
        async move {
            woken.await;
            view.execute(move || ran.send(()).unwrap());
            wake(&second_waker);
        }
    });
    wait_until("both are pending, and both workers rest", || {
        let stats = pool.stats();
        (stats.pending, stats.idle) == (2, 2)
    });
    wake(&first_waker);
    first.await_complete();
    assert_eq!(second.await_complete(), Ok(()), "the closure of the view runs meanwhile");
    pool.shutdown_join();
}

/// A future that is pending once, until [`wake`] is called.
#[cfg(feature = "async")]
fn woken(waker: &Arc<Mutex<Option<Waker>>>) -> impl Future<Output = ()> + Send + 'static {
    let waker = Arc::clone(waker);
    let mut is_first = true;
    poll_fn(move |context| {
        if !mem::take(&mut is_first) {
            return Poll::Ready(());
        }
        *waker.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    })
}

#[cfg(feature = "async")]
fn wake(waker: &Mutex<Option<Waker>>) {
    let waker = waker.lock().unwrap().take();
    waker.expect("the future was polled").wake();
}
