//! The first worker is refused: the task runs on the caller or comes back.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::refusal::{Refusal, in_a_child};
use crate::common::{Drops, HOUR, LIMIT, settled, threads_named, value, wait_until, waited};
use crate::{assert_empty, assert_grows_to, comes_back, yields_once};
use elastipool::{JoinHandle, RejectReason, TaskGroup, ThreadPool};

/// The regression: `try_execute` panicked, one worker was counted without a thread, and join hung.
#[test]
fn a_task_without_any_worker_comes_back() {
    in_a_child("first_worker::a_task_without_any_worker_comes_back", || {
        let pool = ThreadPool::new(2, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();

        let guard = drops.issue();
        let task = comes_back(pool.try_execute(move || drop(guard)));
        assert_empty(&pool);
        assert_eq!(drops.count(), 0, "untouched");
        task();
        assert_eq!(drops.count(), 1);

        let guard = drops.issue();
        let task = comes_back(pool.try_evaluate(move || {
            drop(guard);
            7
        }));
        assert_empty(&pool);
        assert_eq!((task(), drops.count()), (7, 2));

        let guard = drops.issue();
        let task = comes_back(pool.try_complete(async move {
            drop(guard);
            7
        }));
        assert_empty(&pool);
        assert_eq!((futures_executor::block_on(task), drops.count()), (7, 3));

        let stats = pool.stats();
        assert_eq!((stats.rejected, stats.threads_refused), (3, 3));
        assert_eq!((stats.completed, stats.panicked, stats.cancelled), (0, 0, 0));
        pool.join();

        refusal.end();
        // The next submission tries again.
        assert_eq!(value(pool.evaluate(|| 8)), 8);
        assert_grows_to(&pool, 4);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

#[cfg(feature = "async")]
#[test]
fn a_future_without_any_worker_comes_back() {
    in_a_child("first_worker::a_future_without_any_worker_comes_back", || {
        let pool = ThreadPool::new(2, 4, HOUR);
        let drops = Drops::default();
        let refusal = Refusal::begin();
        let guard = drops.issue();
        let future = comes_back(pool.try_spawn(async move { drop(guard) }));
        assert_empty(&pool);
        assert_eq!(drops.count(), 0, "untouched");
        let future = comes_back(pool.try_spawn_await(future));
        assert_empty(&pool);
        futures_executor::block_on(future);
        assert_eq!(drops.count(), 1);
        assert_eq!((pool.stats().rejected, pool.stats().threads_refused), (2, 2));
        let future = comes_back(pool.try_spawn_await(async { 7 }));
        refusal.end();
        assert_eq!(value(pool.spawn_await(future)), 7);
        assert_grows_to(&pool, 4);
    });
}

#[test]
fn a_task_without_any_worker_runs_on_the_caller() {
    in_a_child("first_worker::a_task_without_any_worker_runs_on_the_caller", || {
        let pool = ThreadPool::new(2, 4, HOUR);
        let here = thread::current().id();
        let (sender, receiver) = mpsc::channel();
        let refusal = Refusal::begin();

        pool.execute(move || sender.send(thread::current().id()).unwrap());
        assert_eq!(receiver.try_recv(), Ok(here), "before `execute` returns");
        let handle = pool.evaluate(|| (thread::current().id(), elastipool::worker_index()));
        assert!(handle.is_finished());
        assert_eq!(value(handle), (here, None));
        let handle = pool.complete(async { thread::current().id() });
        assert!(handle.is_finished());
        assert_eq!(value(handle), here);
        assert_empty(&pool);

        // Here, too, a panic stays where it belongs.
        pool.execute(|| panic!("contained"));
        let handle = pool.evaluate(|| -> u8 { panic!("contained") });
        assert!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err().is_panic());
        assert_empty(&pool);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.cancelled), (3, 2, 0));
        assert_eq!((stats.rejected, stats.threads_refused), (0, 5));

        // It is a task of the pool, wherever it runs: it cannot wait for itself.
        let clone = pool.clone();
        let handle = pool.evaluate(move || {
            assert!(!clone.join_timeout(HOUR), "it says that its own task has ended");
            clone.join();
        });
        let error = handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err();
        assert!(error.to_string().contains("`join`"), "{error}");
        // But this thread is none of its own again.
        pool.join();
        // A task may submit others: they run inside of it.
        let clone = pool.clone();
        let handle = pool.evaluate(move || clone.evaluate(|| 7).await_complete());
        assert_eq!(value(handle), 7);
        assert_empty(&pool);

        refusal.end();
        assert_ne!(value(pool.evaluate(|| thread::current().id())), here);
        assert_grows_to(&pool, 4);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

#[test]
fn a_pool_that_never_had_a_thread_shuts_down() {
    in_a_child("first_worker::a_pool_that_never_had_a_thread_shuts_down", || {
        let pool = ThreadPool::new(0, 1, HOUR);
        let refusal = Refusal::begin();
        pool.execute(|| ());
        let task = comes_back(pool.try_execute(|| ()));
        let clone = pool.clone();
        assert!(clone.shutdown_join_timeout(Duration::ZERO));
        pool.close();
        let rejected = pool.try_execute(task).unwrap_err();
        assert_eq!(rejected.reason(), RejectReason::Closed);
        pool.shutdown_join();
        refusal.end();
    });
}

/// Workers may have been there before: what counts is whether there is one now.
#[test]
fn a_pool_that_has_shrunk_to_nothing_is_refused() {
    in_a_child("first_worker::a_pool_that_has_shrunk_to_nothing_is_refused", || {
        let pool = ThreadPool::new_named("shrinks", 0, 2, Duration::from_millis(1));
        assert_eq!(value(pool.evaluate(|| 1)), 1);
        wait_until("the worker has retired", || pool.current_worker_count() == 0);
        wait_until("its thread has exited", || threads_named("shrinks") == 0);
        // It has left its stack to the next thread. A start without memory joins it all the same.
        assert_eq!(pool.start_core_threads(), 0);
        let before = pool.stats();
        let refusal = Refusal::begin();
        let mut task = || 2;
        for refused in 1..=3 {
            task = comes_back(pool.try_evaluate(task));
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.in_flight(), stats.queued), (0, 0, 0));
            assert_eq!(stats.threads_started, before.threads_started);
            assert_eq!(stats.threads_retired, before.threads_retired);
            assert_eq!((stats.threads_refused, stats.rejected), (refused, refused));
        }
        refusal.end();
        assert_eq!(value(pool.evaluate(task)), 2);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The executor's `block_on` cannot be nested: the pool must not call it.
#[test]
fn a_future_without_any_worker_completes_inside_of_another_executor() {
    let name = "first_worker::a_future_without_any_worker_completes_inside_of_another_executor";
    in_a_child(name, || {
        let pool = ThreadPool::new(1, 2, HOUR);
        let here = thread::current().id();
        let refusal = Refusal::begin();
        assert_eq!(value(pool.complete(yields_once())), here);
        let own = pool.clone();
        let outer = futures_executor::block_on(async move {
            let inner = own.clone();
            let nested = async move { (yields_once().await, value(inner.complete(yields_once()))) };
            own.complete(nested).await.unwrap()
        });
        assert_eq!(outer, (here, here));
        // A panic is contained there, too.
        futures_executor::block_on(async {
            let handle = pool.complete(async { panic!("contained") });
            assert!(handle.await.unwrap_err().is_panic());
        });
        assert_empty(&pool);
        assert_eq!((pool.stats().completed, pool.stats().panicked), (3, 1));
        refusal.end();
        assert_grows_to(&pool, 2);
    });
}

/// It has not been lost when it is woken in its first poll: it is polled again, by the same thread.
#[cfg(feature = "async")]
#[test]
fn a_future_that_yields_without_any_worker_completes() {
    in_a_child("first_worker::a_future_that_yields_without_any_worker_completes", || {
        let pool = ThreadPool::new(0, 4, HOUR);
        let refusal = Refusal::begin();
        let handle = pool.spawn_await(yields_once());
        assert!(handle.is_finished());
        assert_eq!(value(handle), thread::current().id());
        assert_empty(&pool);
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 0));
        refusal.end();
        assert_grows_to(&pool, 4);
    });
}

#[test]
fn a_task_of_a_group_without_any_worker_runs_on_the_caller() {
    in_a_child("first_worker::a_task_of_a_group_without_any_worker_runs_on_the_caller", || {
        let pool = ThreadPool::new(2, 4, HOUR);
        let group = pool.group::<()>().limit(1);
        let here = thread::current().id();
        let refusal = Refusal::begin();
        let handle = group.evaluate(|| (thread::current().id(), elastipool::worker_index()));
        assert!(handle.is_finished(), "before `evaluate` returns");
        assert_eq!(value(handle), (here, None));
        let handle = group.evaluate(|| -> u8 { panic!("on purpose") });
        assert!(handle.is_finished());
        assert!(settled(handle).unwrap_err().is_panic());
        assert!(waited(&group).unwrap_err().is_cancelled(), "the handle has the panic");
        #[cfg(feature = "async")]
        {
            let handle = group.spawn_await(async { thread::current().id() });
            assert!(handle.is_finished(), "before `spawn_await` returns");
            assert_eq!(value(handle), here);
        }
        let task = comes_back(group.try_evaluate(|| 7));
        assert_eq!(task(), 7);
        // A task that waits for the slot of its submitter runs on the same thread after it.
        let inner = group.clone();
        let handle = value(group.evaluate(move || inner.evaluate(|| thread::current().id())));
        assert!(handle.is_finished());
        assert_eq!(value(handle), here);
        waited(&group).unwrap();
        assert_empty(&pool);
        refusal.end();
        assert_grows_to(&pool, 4);
    });
}

/// The waker of a handle may run user code that waits for its own follow-up work. Here it grants a
/// slot to a task of another group, which can only run on the caller as well.
#[test]
fn a_waker_that_is_called_on_the_caller_finds_its_follow_up_work_done() {
    /// Submits a task that waits for the slot of the calling one, and leads to a wake of the
    /// returned handle.
    type Submits = fn(&TaskGroup<()>) -> JoinHandle<()>;

    struct Grants(TaskGroup<()>, Drops, AtomicUsize);

    impl Wake for Grants {
        fn wake(self: Arc<Self>) {
            self.0.set_limit(2);
            self.2.store(self.1.count(), Ordering::SeqCst);
        }
    }

    let submits: &[(&str, Submits)] = &[
        ("it ends", |group| group.evaluate(|| ())),
        #[cfg(feature = "async")]
        ("it fails, and its group cancels a pending future", |group| {
            group.set_limit(2);
            let (trigger, triggered) = crate::common::triggered();
            let pending = group.spawn_await(triggered);
            // Keeps the waker.
            std::mem::forget(trigger);
            group.execute(|| Err(())).unwrap();
            pending
        }),
    ];
    let name = "first_worker::a_waker_that_is_called_on_the_caller_finds_its_follow_up_work_done";
    in_a_child(name, || {
        let _refusal = Refusal::begin();
        for &(name, submits) in submits {
            let pool = ThreadPool::new(0, 4, HOUR);
            let (first, second) = (pool.group::<()>().limit(1), pool.group::<()>().limit(1));
            let drops = Drops::default();
            let seen = AtomicUsize::new(usize::MAX);
            let grants = Arc::new(Grants(second.clone(), drops.clone(), seen));
            let (looks, own, outer) = (Arc::clone(&grants), first.clone(), second.clone());
            let task = move || {
                let dropped = drops.issue();
                let deferred = move || {
                    drop(dropped);
                    Ok(())
                };
                outer.execute(deferred).unwrap();
                let inner = own.clone();
                let handle = own.evaluate(move || {
                    let mut handle = submits(&inner);
                    let waker = Waker::from(looks);
                    let polled = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
                    assert!(polled.is_pending());
                    handle
                });
                assert!(value(handle).is_finished());
                Ok(())
            };
            second.execute(task).unwrap();
            assert_eq!(
                grants.2.load(Ordering::SeqCst),
                1,
                "{name}: not run when the grant returned"
            );
            let _ = waited(&first);
            waited(&second).unwrap();
            assert_empty(&pool);
        }
    });
}
