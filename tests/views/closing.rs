//! Closing a view, and closing or shutting down its pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use elastipool::{Builder, RejectReason, ThreadPool};

use crate::common::{block, wait_until};
use crate::pool;

#[test]
fn a_closed_view_accepts_nothing_and_the_others_do() {
    let pool = pool(1, 1);
    let [one, other] = [pool.view().build(), pool.view().build()];
    let gate = block(&pool);
    let queued = one.evaluate(|| 1);
    one.close();
    assert!(one.is_closed() && !other.is_closed() && !pool.is_closed());
    let rejected = one.try_execute(|| ()).unwrap_err();
    assert_eq!(rejected.reason(), RejectReason::Closed);
    assert_eq!(rejected.to_string(), "the task was not accepted: the view is closed");
    assert!(one.evaluate(|| ()).try_await_complete().unwrap_err().is_cancelled());
    assert_eq!((one.stats().rejected, pool.stats().rejected), (2, 2));
    gate.open();
    assert_eq!(queued.await_complete(), 1);
    assert_eq!(other.evaluate(|| 2).await_complete(), 2);
    assert_eq!(pool.evaluate(|| 3).await_complete(), 3);
    one.join();
    pool.shutdown_join();
}

/// Another thread closes the view while it gets a task: whether the task is accepted or not, its
/// permit of the bounded queue goes back. (The model `close_of_a_view_versus_a_bounded_queue`
/// visits each order.)
#[test]
fn a_task_that_is_refused_with_a_permit_gives_it_back() {
    let pool = Builder::new().core_size(1).max_size(1).queue_capacity(0).build();
    for _ in 0..200 {
        let view = pool.view().build();
        let closer = {
            let view = view.clone();
            thread::spawn(move || view.close())
        };
        let submitted = view.try_execute(|| ());
        closer.join().expect("closing does not panic");
        pool.join();
        assert_eq!(view.stats().rejected, usize::from(submitted.is_err()));
        assert!(pool.try_execute(|| ()).is_ok(), "there is capacity for one");
        pool.join();
    }
    pool.shutdown_join();
}

/// Nothing is captured for a task that is not accepted.
#[test]
fn a_context_hook_is_not_called_for_a_task_that_is_refused() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let builder = Builder::new().core_size(1).max_size(1).queue_capacity(1);
    let pool = builder
        .task_context(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            || ()
        })
        .build();
    let view = pool.view().build();
    view.close();
    assert!(view.evaluate(|| ()).try_await_complete().unwrap_err().is_cancelled());
    assert!(view.try_execute(|| ()).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    pool.shutdown_join();
}

#[test]
fn the_pool_closes_its_views() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&pool);
    let queued = view.evaluate(|| 1);
    pool.close();
    assert!(view.is_closed());
    assert_eq!(view.try_execute(|| ()).unwrap_err().reason(), RejectReason::Closed);
    gate.open();
    assert_eq!(queued.await_complete(), 1);
    view.join();
    assert_eq!(view.stats().in_flight(), 0);
}

/// A view keeps the pool open, and its drop closes nothing.
#[test]
fn dropping_a_view_closes_nothing() {
    let pool = pool(1, 1);
    let view = pool.view().limit(1).build();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let ran = Arc::clone(&ran);
        view.execute(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(view);
    assert!(!pool.is_closed());
    pool.join();
    assert_eq!(ran.load(Ordering::Relaxed), 100);
    let view = pool.view().build();
    drop(pool);
    assert_eq!(view.evaluate(|| 1).await_complete(), 1);
}

/// The shutdown waits for all views and their threads.
#[test]
fn a_shutdown_covers_the_views() {
    let pool = pool(0, 4);
    let ran = Arc::new(AtomicUsize::new(0));
    let view = pool.view().limit(1).build();
    for _ in 0..1000 {
        let ran = Arc::clone(&ran);
        view.execute(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(view);
    pool.shutdown_join();
    assert_eq!(ran.load(Ordering::Relaxed), 1000);
}

#[test]
fn an_immediate_shutdown_hands_back_the_tasks_of_views() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&pool);
    let handles: Vec<_> = (0..3).map(|i| view.evaluate(move || i)).collect();
    #[cfg(feature = "async")]
    let pending = view.spawn_await(futures::future::pending::<()>());
    let tasks = view.shutdown_now();
    assert_eq!(tasks.len(), 3 + usize::from(cfg!(feature = "async")));
    assert_eq!(view.stats().handed_back, tasks.len());
    // They no longer belong to the view.
    view.join();
    tasks.into_iter().take(3).for_each(elastipool::Task::run);
    let results: Vec<_> = handles.into_iter().map(|handle| handle.await_complete()).collect();
    assert_eq!(results, [0, 1, 2]);
    #[cfg(feature = "async")]
    assert!(pending.try_await_complete().unwrap_err().is_cancelled());
    gate.open();
    drop(view);
    pool.shutdown_join();
}

/// A pending future of a view is cancelled, and ends the view's join.
#[cfg(feature = "async")]
#[test]
fn an_immediate_shutdown_cancels_pending_futures_of_views() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let (_sender, receiver) = futures::channel::oneshot::channel::<()>();
    let pending = view.spawn_await(receiver);
    wait_until("it is pending", || view.stats().pending == 1);
    assert!(pool.shutdown_now().is_empty());
    assert!(pending.try_await_complete().unwrap_err().is_cancelled());
    view.join();
    assert_eq!(view.stats().cancelled, 1);
}

/// Submitters that wait for capacity learn at once that their view was closed, and others do not.
#[test]
fn a_close_ends_the_waits_of_the_views_submitters() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let [one, other] = [pool.view().build(), pool.view().build()];
    let gate = block(&pool);
    let waiting = {
        let one = one.clone();
        thread::spawn(move || one.evaluate(|| ()).try_await_complete())
    };
    let unconcerned = {
        let other = other.clone();
        thread::spawn(move || other.evaluate(|| 7).await_complete())
    };
    // So that both wait by now, most of the time. A late one is refused at once, or accepted later.
    thread::sleep(std::time::Duration::from_millis(5));
    one.close();
    assert!(waiting.join().unwrap().unwrap_err().is_cancelled());
    assert!(!unconcerned.is_finished());
    gate.open();
    assert_eq!(unconcerned.join().unwrap(), 7);
    pool.shutdown_join();
}

/// A full queue does not hide that the view is closed: the caller would try again.
#[test]
fn a_closed_view_of_a_full_pool_is_closed() {
    let pool = ThreadPool::builder().core_size(0).max_size(1).queue_capacity(0).build();
    let view = pool.view().build();
    let gate = block(&pool);
    assert_eq!(view.try_execute(|| ()).unwrap_err().reason(), RejectReason::Full);
    view.close();
    assert_eq!(view.try_execute(|| ()).unwrap_err().reason(), RejectReason::Closed);
    gate.open();
    pool.shutdown_join();
}

// The defect: a thread outside that already ran a task of the pool did not count the view's task,
// whose entry a worker skips.
#[test]
fn a_join_of_a_view_waits_for_a_nested_scope_outside_the_pool() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&pool);
    pool.scope(|scope| {
        scope.execute(|| {
            view.scope(|inner| {
                inner.execute(|| {
                    gate.open();
                    wait_until("the worker has skipped the entries", || {
                        pool.queued_count() == 0 && pool.idle_worker_count() == 1
                    });
                    // From a thread that runs no task of the pool. Time is the subject: a join that
                    // ends early ends at once.
                    let join = || view.join_timeout(Duration::from_millis(1));
                    let ended = thread::scope(|threads| threads.spawn(join).join());
                    assert_eq!(ended.ok(), Some(false), "this task of the view runs");
                });
            });
        });
    });
    view.join();
    pool.shutdown_join();
}
