//! Law 7, refusal-proof: when the operating system refuses a thread, nothing panics and no count is
//! wrong; the task runs on an existing worker or, where there is none, comes back to the caller.
//!
//! The refusals are real: see `common/refusal.rs`.
#![cfg(target_os = "linux")]

mod common;

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::refusal::{Refusal, STACK, in_a_child};
use common::{Drops, Gate, HOUR, LIMIT, refused, submit_party, threads_named, value, wait_until};
use elastipool::{JoinHandle, RejectReason, Rejected, Stats, ThreadPool, blocking};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[track_caller]
fn comes_back<F, H>(result: Result<H, Rejected<F>>) -> F {
    let rejected = refused(result, RejectReason::NoThread);
    let text = rejected.to_string();
    assert!(text.contains("no worker") && text.contains("refused"), "{text}");
    let source = rejected.source().expect("what the system said");
    let source = source.downcast_ref::<io::Error>().expect("an error of the system");
    assert_eq!(source.kind(), io::ErrorKind::WouldBlock, "{source}");
    rejected.into_task()
}

/// Nothing is there and nothing is left over: neither workers nor tasks.
#[track_caller]
fn assert_empty(pool: &ThreadPool) {
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.idle, stats.peak_workers), (0, 0, 0));
    assert_eq!((stats.queued, stats.in_flight()), (0, 0));
    assert_eq!((stats.threads_started, stats.threads_retired), (0, 0));
    assert_eq!(pool.current_worker_count(), 0);
    assert!(pool.join_timeout(Duration::ZERO), "there is nothing to wait for");
}

/// A pool works as if nothing had happened, with as many workers as it may have.
#[track_caller]
fn assert_grows_to(pool: &ThreadPool, size: usize) {
    let stats = runs_at_once(pool, size);
    assert_eq!((stats.workers, stats.queued, stats.in_flight()), (size, 0, 0));
}

/// As [`assert_grows_to`], where workers may be left that took the places of blocked ones.
#[track_caller]
fn assert_runs_at_once(pool: &ThreadPool, size: usize) {
    let stats = runs_at_once(pool, size);
    assert_eq!((stats.blocked, stats.queued, stats.in_flight()), (0, 0, 0));
    wait_until("all workers are idle", || pool.stats().idle == pool.stats().workers);
}

/// Runs as many tasks at once. Returns the statistics after them.
#[track_caller]
fn runs_at_once(pool: &ThreadPool, size: usize) -> Stats {
    let handles = submit_party(pool, size, || thread::current().id());
    let ids: std::collections::HashSet<ThreadId> = handles.into_iter().map(value).collect();
    assert_eq!(ids.len(), size);
    assert!(pool.join_timeout(LIMIT));
    pool.stats()
}

// ----- the first worker is refused -----

/// The regression: `try_execute` panicked, one worker was counted without a thread, and join hung.
#[test]
fn a_task_without_any_worker_comes_back() {
    in_a_child("a_task_without_any_worker_comes_back", || {
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
    in_a_child("a_future_without_any_worker_comes_back", || {
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
fn a_task_without_any_worker_runs_here() {
    in_a_child("a_task_without_any_worker_runs_here", || {
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
    in_a_child("a_pool_that_never_had_a_thread_shuts_down", || {
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
    in_a_child("a_pool_that_has_shrunk_to_nothing_is_refused", || {
        let pool = ThreadPool::new_named("shrinks", 0, 2, Duration::from_millis(1));
        assert_eq!(value(pool.evaluate(|| 1)), 1);
        wait_until("the worker has retired", || pool.current_worker_count() == 0);
        wait_until("its thread has exited", || threads_named("shrinks") == 0);
        // It has left its stack to the next thread. A start that has no room joins it none the less.
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

// ----- futures whose first poll was the spawner's -----

#[cfg(feature = "async")]
mod futures_without_workers {
    use super::*;
    use common::{Teller, settled, told};

    /// A future that was spawned without a thread to be had and is pending.
    fn spawn_here(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<ThreadId>, Teller) {
        let (teller, told) = told();
        let guard = drops.issue();
        let handle = pool.spawn_await(async move {
            told.await;
            drop(guard);
            thread::current().id()
        });
        assert_eq!(teller.polls(), 1, "polled before `spawn_await` returns");
        assert_eq!((pool.stats().workers, pool.stats().in_flight()), (0, 1));
        assert!(!pool.join_timeout(Duration::ZERO), "it is pending");
        (handle, teller)
    }

    #[test]
    fn a_ready_future_runs_here() {
        let name = "futures_without_workers::a_ready_future_runs_here";
        in_a_child(name, || {
            let pool = ThreadPool::new(2, 4, HOUR);
            let drops = Drops::default();
            let refusal = Refusal::begin();
            let guard = drops.issue();
            pool.spawn(async move { drop(guard) });
            assert_eq!(drops.count(), 1);
            let handle = pool.spawn_await(async { thread::current().id() });
            assert!(handle.is_finished());
            assert_eq!(value(handle), thread::current().id());
            pool.spawn(async { panic!("contained") });
            assert_empty(&pool);
            assert_eq!((pool.stats().completed, pool.stats().panicked), (2, 1));
            refusal.end();
            assert_grows_to(&pool, 4);
        });
    }

    #[test]
    fn a_future_that_is_woken_when_threads_can_be_had_again_completes() {
        let name = "futures_without_workers::\
                    a_future_that_is_woken_when_threads_can_be_had_again_completes";
        in_a_child(name, || {
            let pool = ThreadPool::new(0, 4, HOUR);
            let drops = Drops::default();
            let refusal = Refusal::begin();
            let (handle, teller) = spawn_here(&pool, &drops);
            refusal.end();
            teller.tell();
            assert_ne!(value(handle), thread::current().id(), "on a worker");
            assert!(pool.join_timeout(LIMIT));
            assert_eq!((drops.count(), pool.stats().completed), (1, 1));
            assert_eq!(pool.stats().threads_started, 1);
        });
    }

    #[test]
    fn a_future_that_is_woken_without_a_thread_is_cancelled() {
        let name = "futures_without_workers::a_future_that_is_woken_without_a_thread_is_cancelled";
        in_a_child(name, || {
            let pool = ThreadPool::new(0, 4, HOUR);
            let drops = Drops::default();
            let refusal = Refusal::begin();
            let (handle, teller) = spawn_here(&pool, &drops);
            teller.tell();
            assert_eq!(drops.count(), 1);
            assert!(handle.is_finished());
            let settled = handle.await_complete_timeout(Duration::ZERO).expect("resolves");
            assert!(settled.unwrap_err().is_cancelled());
            assert_empty(&pool);
            assert_eq!((pool.stats().completed, pool.stats().cancelled), (0, 1));
            refusal.end();
            assert_grows_to(&pool, 4);
        });
    }

    /// The same, but the waker that woke it lives on, as one does that wakes by reference.
    #[test]
    fn a_future_that_is_woken_without_a_thread_is_cancelled_whoever_holds_a_waker() {
        let name = "futures_without_workers::\
                    a_future_that_is_woken_without_a_thread_is_cancelled_whoever_holds_a_waker";
        in_a_child(name, || {
            let pool = ThreadPool::new(0, 4, HOUR);
            let drops = Drops::default();
            let refusal = Refusal::begin();
            let (handle, teller) = spawn_here(&pool, &drops);
            let waker = teller.waker().unwrap();
            waker.wake_by_ref();
            // Either it is dropped, or it can still be woken: it may not stay for ever.
            refusal.end();
            waker.wake_by_ref();
            teller.tell();
            if let Err(error) = settled(handle) {
                assert!(error.is_cancelled(), "{error}");
            }
            assert!(pool.join_timeout(LIMIT), "in flight for ever");
            assert_eq!(drops.count(), 1);
            drop(waker);
        });
    }

    #[test]
    fn a_future_that_wakes_itself_without_a_thread_is_settled() {
        let name =
            "futures_without_workers::a_future_that_wakes_itself_without_a_thread_is_settled";
        in_a_child(name, || {
            let pool = ThreadPool::new(0, 4, HOUR);
            let drops = Drops::default();
            let refusal = Refusal::begin();
            let guard = drops.issue();
            let mut polls = 0;
            let handle = pool.spawn_await(std::future::poll_fn(move |context| {
                let _captured = &guard;
                polls += 1;
                if polls > 3 {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            }));
            if let Err(error) = settled(handle) {
                assert!(error.is_cancelled(), "{error}");
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(drops.count(), 1);
            assert_empty(&pool);
            refusal.end();
        });
    }

    /// A worker is busy, and a thread that has nothing to do with the pool wakes a future.
    #[test]
    fn a_worker_that_a_waker_starts_is_refused() {
        let name = "futures_without_workers::a_worker_that_a_waker_starts_is_refused";
        in_a_child(name, || {
            let pool = ThreadPool::new(1, 4, HOUR);
            let (teller, told) = told();
            let handle = pool.spawn_await(async move {
                told.await;
                thread::current().id()
            });
            wait_until("the future is polled", || teller.polls() == 1);
            wait_until("the worker is idle", || pool.idle_worker_count() == 1);
            let (gate, go) = (Gate::new(), Gate::new());
            let passes = Arc::clone(&gate);
            let busy = pool.evaluate(move || {
                passes.pass();
                thread::current().id()
            });
            gate.wait_for(1);
            let waits = Arc::clone(&go);
            let foreign = thread::spawn(move || {
                waits.pass();
                teller.tell();
                // The future looks at it when it is polled.
                teller
            });
            go.wait_for(1);
            let (refusal, refused) = (Refusal::begin(), pool.stats().threads_refused);
            go.open();
            wait_until("the start is refused", || pool.stats().threads_refused > refused);
            assert_eq!((pool.stats().workers, pool.stats().queued), (1, 1));
            gate.open();
            assert_eq!(value(handle), value(busy), "on the worker that there is");
            assert!(pool.join_timeout(LIMIT));
            drop(refusal);
            assert!(foreign.join().is_ok(), "a panic in the waker's thread");
            assert_eq!((pool.stats().completed, pool.stats().cancelled), (2, 0));
            assert_grows_to(&pool, 4);
        });
    }
}

// ----- a later worker is refused -----

#[test]
fn a_task_runs_on_the_worker_that_there_is() {
    in_a_child("a_task_runs_on_the_worker_that_there_is", || {
        for core_size in [0, 1, 4] {
            let pool = ThreadPool::new(core_size, 4, HOUR);
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let first = pool.evaluate(move || {
                passes.pass();
                thread::current().id()
            });
            gate.wait_for(1);
            let refusal = Refusal::begin();
            let handles: Vec<_> =
                (0..10).map(|_| pool.evaluate(|| thread::current().id())).collect();
            let (sender, receiver) = mpsc::channel();
            assert!(
                pool.try_execute(move || sender.send(()).unwrap()).is_ok(),
                "there is a worker"
            );
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.queued, stats.in_flight()), (1, 11, 12));
            assert!(stats.threads_refused >= 11, "each submission tries: {stats:?}");
            gate.open();
            let worker = value(first);
            for handle in handles {
                assert_eq!(value(handle), worker);
            }
            assert_eq!(receiver.recv_timeout(LIMIT), Ok(()));
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.workers, stats.peak_workers, stats.threads_started), (1, 1, 1));
            assert_eq!((stats.completed, stats.rejected, stats.in_flight()), (12, 0, 0));
            refusal.end();
            assert_grows_to(&pool, 4);
            // With the indexes that the refused ones would have had.
            let indexes = submit_party(&pool, 4, elastipool::worker_index);
            let mut indexes: Vec<_> = indexes.into_iter().map(value).collect();
            indexes.sort();
            assert_eq!(indexes, [Some(0), Some(1), Some(2), Some(3)]);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

#[test]
fn start_core_threads_starts_what_it_can() {
    in_a_child("start_core_threads_starts_what_it_can", || {
        let pool = ThreadPool::new(4, 8, HOUR);
        let refusal = Refusal::begin();
        assert_eq!(pool.start_core_threads(), 0);
        assert_empty(&pool);
        assert_eq!(pool.stats().threads_refused, 1);
        drop(refusal);
        assert_eq!(value(pool.evaluate(|| 1)), 1);
        let refusal = Refusal::begin();
        assert_eq!(pool.start_core_threads(), 0);
        assert_eq!(pool.current_worker_count(), 1);
        assert!(pool.join_timeout(LIMIT));
        drop(refusal);
        assert_eq!(pool.start_core_threads(), 3);
        assert_eq!(pool.start_core_threads(), 0);
        assert_grows_to(&pool, 8);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// Room for two stacks and no more: the third start is refused.
#[test]
fn start_core_threads_says_how_many_it_started() {
    in_a_child("start_core_threads_says_how_many_it_started", || {
        let pool = ThreadPool::new(4, 8, HOUR);
        let refusal = Refusal::begin();
        let limit = getrlimit(Resource::As);
        let room = Rlimit { current: limit.current.map(|size| size + 2 * STACK), ..limit };
        setrlimit(Resource::As, room).unwrap();
        assert_eq!(pool.start_core_threads(), 2);
        assert_eq!(pool.current_worker_count(), 2);
        refusal.end();
        assert_eq!(pool.start_core_threads(), 2);
        assert_grows_to(&pool, 8);
    });
}

// ----- the worker that would take the place of one that blocks is refused -----

/// Ready at the second poll, which it asks for during the first.
fn yields_once() -> impl Future<Output = ThreadId> {
    let mut has_yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(thread::current().id());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
}

/// A pool of one whose worker runs `task` once the gate opens, and has arrived at it.
fn held_back<T: Send + 'static>(
    pool: &ThreadPool,
    task: impl FnOnce(ThreadPool) -> T + Send + 'static,
) -> (JoinHandle<T>, Arc<Gate>) {
    let (gate, own) = (Gate::new(), pool.clone());
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        task(own)
    });
    gate.wait_for(1);
    (handle, gate)
}

#[test]
fn a_blocking_region_is_entered_all_the_same() {
    in_a_child("a_blocking_region_is_entered_all_the_same", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (task, gate) = held_back(&pool, |own| {
            let blocked = blocking(|| own.stats().blocked);
            (blocked, own.stats().threads_refused, thread::current().id())
        });
        let queued = pool.evaluate(|| thread::current().id());
        let refusal = Refusal::begin();
        gate.open();
        let (blocked, refused, worker) = value(task);
        assert_eq!((blocked, refused), (1, 1));
        assert_eq!(value(queued), worker, "by the worker that there is");
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.workers, stats.threads_started), (0, 1, 1));
        refusal.end();
        assert_grows_to(&pool, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The next submission tries again, also while everybody is in a region.
#[test]
fn a_submission_starts_what_a_region_was_refused() {
    in_a_child("a_submission_starts_what_a_region_was_refused", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let region = Gate::new();
        let passes = Arc::clone(&region);
        let (task, gate) = held_back(&pool, move |_| blocking(|| passes.pass()));
        let queued = pool.evaluate(|| 7);
        let refusal = Refusal::begin();
        gate.open();
        region.wait_for(1);
        let later = pool.evaluate(|| 8);
        let stats = pool.stats();
        assert_eq!((stats.queued, stats.threads_refused, stats.workers), (2, 2, 1));
        refusal.end();
        assert_eq!(value(pool.evaluate(|| 9)), 9);
        assert_eq!((value(queued), value(later)), (7, 8));
        region.open();
        value(task);
        assert_runs_at_once(&pool, 1);
    });
}

/// What a task waits for that can be had from a queued task of the same pool only.
type Wait = fn(&ThreadPool) -> u8;

/// With a time limit a wait runs nothing.
fn wait_with_a_limit(pool: &ThreadPool) -> u8 {
    value(pool.evaluate(|| 7))
}

/// A future that has been polled is in no thread's hands: what wakes it is another task.
#[cfg(feature = "async")]
fn wait_for_a_future_that_a_task_wakes(pool: &ThreadPool) -> u8 {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let future = pool.spawn_await(async move { receiver.await.unwrap() });
    // Before the queued task, and on this stack.
    let handle = future.await_complete_timeout(Duration::ZERO).unwrap_err();
    pool.execute(move || sender.send(7).unwrap());
    handle.await_complete()
}

#[cfg(feature = "async")]
const WAITS: [Wait; 2] = [wait_with_a_limit, wait_for_a_future_that_a_task_wakes];
#[cfg(not(feature = "async"))]
const WAITS: [Wait; 1] = [wait_with_a_limit];

/// A worker of a pool of one waits as `task` does, while threads are refused and then are not.
#[track_caller]
fn assert_asks_again(task: impl FnOnce(ThreadPool) -> u8 + Send + 'static) {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (task, gate) = held_back(&pool, task);
    let refusal = Refusal::begin();
    gate.open();
    wait_until("it asks again", || pool.stats().threads_refused >= 4);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.queued, stats.workers), (1, 1, 1));
    refusal.end();
    assert_eq!(value(task), 7);
    assert_runs_at_once(&pool, 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Nobody submits anything: those who wait ask again by themselves.
#[test]
fn a_wait_goes_on_when_threads_can_be_had_again() {
    in_a_child("a_wait_goes_on_when_threads_can_be_had_again", || {
        for wait in WAITS {
            assert_asks_again(move |own| wait(&own));
        }
    });
}

/// Each of the two has to ask: the outer one for the inner one's worker, that one for the last one's.
#[test]
fn a_nested_wait_goes_on_when_threads_can_be_had_again() {
    in_a_child("a_nested_wait_goes_on_when_threads_can_be_had_again", || {
        assert_asks_again(|own| {
            let inner = own.clone();
            value(own.evaluate(move || wait_with_a_limit(&inner)))
        });
    });
}

/// What a wait without a limit runs on its own stack takes no thread.
#[test]
fn a_nested_wait_without_a_limit_needs_no_thread() {
    in_a_child("a_nested_wait_without_a_limit_needs_no_thread", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (task, gate) = held_back(&pool, |own| {
            let (inner, scopes) = (own.clone(), own.clone());
            let handles = own.evaluate(move || inner.evaluate(|| 7).await_complete());
            let mut in_scope = 0;
            scopes.scope(|scope| scope.execute(|| in_scope = 8));
            let group = own.group::<()>();
            group.execute(|| Ok(())).unwrap();
            group.wait().unwrap();
            (handles.await_complete(), in_scope)
        });
        let refusal = Refusal::begin();
        gate.open();
        assert_eq!(value(task), (7, 8));
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.threads_refused, stats.threads_started, stats.completed), (0, 1, 5));
        refusal.end();
        assert_grows_to(&pool, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The same for a worker that is inside of the executor of `complete`.
#[test]
fn a_completion_goes_on_when_threads_can_be_had_again() {
    in_a_child("a_completion_goes_on_when_threads_can_be_had_again", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (go, own) = (Gate::new(), pool.clone());
        let passes = Arc::clone(&go);
        let task = pool.complete(async move {
            passes.pass();
            own.evaluate(|| 7).await.unwrap()
        });
        go.wait_for(1);
        let refusal = Refusal::begin();
        go.open();
        wait_until("it was refused", || pool.stats().threads_refused > 0);
        refusal.end();
        assert_eq!(value(task), 7);
        assert!(pool.join_timeout(LIMIT));
    });
}

/// Whoever entered the outer region does not ask again: the wait does.
#[test]
fn a_wait_in_a_region_goes_on_when_threads_can_be_had_again() {
    in_a_child("a_wait_in_a_region_goes_on_when_threads_can_be_had_again", || {
        for wait in WAITS {
            assert_asks_again(move |own| blocking(|| wait(&own)));
        }
    });
}

/// It waits already when another thread submits what it waits for, and is refused the worker.
#[cfg(feature = "async")]
#[test]
fn a_completion_goes_on_after_the_refusal_of_another_thread() {
    in_a_child("a_completion_goes_on_after_the_refusal_of_another_thread", || {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (sender, receiver) = futures::channel::oneshot::channel();
        // The future waits for a task of its own pool: only that is a region.
        let future = pool.spawn_await(receiver);
        let task = pool.complete(async move { future.await.unwrap() });
        wait_until("it waits", || pool.stats().blocked == 1);
        let refusal = Refusal::begin();
        pool.execute(move || sender.send(7).unwrap());
        wait_until("it asks again", || pool.stats().threads_refused >= 4);
        refusal.end();
        assert_eq!(value(task), Ok(7));
        assert!(pool.join_timeout(LIMIT));
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The next submission tries again, also one that is not accepted: the task that needs the thread takes up the room.
#[test]
fn a_submission_to_a_full_queue_starts_what_was_refused() {
    in_a_child("a_submission_to_a_full_queue_starts_what_was_refused", || {
        let submissions: [fn(&ThreadPool); 3] = [
            |pool| drop(refused(pool.try_execute(|| ()), RejectReason::Full)),
            |pool| pool.try_execute_for(|| (), LIMIT).expect("there is room soon"),
            |pool| pool.execute(|| ()),
        ];
        for submit in submissions {
            let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
            let pool = builder.queue_capacity(0).build();
            let (region, second) = (Gate::new(), Gate::new());
            let waits = Arc::clone(&region);
            let (first, gate) = held_back(&pool, move |_| blocking(|| waits.pass()));
            gate.open();
            region.wait_for(1);
            let refusal = Refusal::begin();
            let (opens, runs) = (region, Arc::clone(&second));
            pool.execute(move || {
                opens.open();
                runs.pass();
            });
            let stats = pool.stats();
            assert_eq!((stats.queued, stats.threads_refused, stats.workers), (1, 1, 1));
            refusal.end();
            // Two of them wait for room until the second task has ended.
            let producer = pool.clone();
            let producer = thread::spawn(move || submit(&producer));
            second.wait_for(1);
            second.open();
            value(first);
            producer.join().unwrap();
            assert_runs_at_once(&pool, 1);
            assert_room(&pool, 0);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// As above, but the submission is refused a thread too, and then waits for room: it goes on asking.
#[test]
fn a_submitter_that_waits_for_room_asks_again() {
    in_a_child("a_submitter_that_waits_for_room_asks_again", || {
        let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
        let pool = builder.queue_capacity(0).build();
        let (region, submit) = (Gate::new(), Gate::new());
        let waits = Arc::clone(&region);
        let (first, gate) = held_back(&pool, move |_| blocking(|| waits.pass()));
        gate.open();
        region.wait_for(1);
        let producer = {
            let (pool, submit) = (pool.clone(), Arc::clone(&submit));
            thread::spawn(move || {
                submit.pass();
                pool.execute(|| ());
            })
        };
        submit.wait_for(1);
        let refusal = Refusal::begin();
        pool.execute(move || region.open());
        submit.open();
        wait_until("both were refused", || pool.stats().threads_refused >= 2);
        refusal.end();
        value(first);
        producer.join().unwrap();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// Rather a task too many than a pool that waits for itself.
#[test]
fn a_task_that_submits_to_its_full_queue_is_let_in() {
    in_a_child("a_task_that_submits_to_its_full_queue_is_let_in", || {
        for (max_size, capacity) in [(1, 0), (1, 1), (2, 0), (2, 3)] {
            let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
            let pool = builder.queue_capacity(capacity).build();
            let (go, ran) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
            let submitters: Vec<_> = (0..max_size)
                .map(|number| {
                    let (passes, ran, own) = (Arc::clone(&go), Arc::clone(&ran), pool.clone());
                    let handle = pool.evaluate(move || {
                        passes.pass();
                        for _ in 0..20 {
                            let ran = Arc::clone(&ran);
                            own.execute(move || _ = ran.fetch_add(1, Ordering::SeqCst));
                        }
                    });
                    go.wait_for(number + 1);
                    handle
                })
                .collect();
            let refusal = Refusal::begin();
            go.open();
            submitters.into_iter().for_each(value);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(ran.load(Ordering::SeqCst), 20 * max_size);
            let stats = pool.stats();
            assert_eq!((stats.rejected, stats.blocked, stats.threads_started), (0, 0, max_size));
            assert!(stats.threads_refused > 0, "there was no want of threads");
            refusal.end();
            assert_room(&pool, capacity);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// As many as may run, and as many as may wait.
#[track_caller]
fn assert_room(pool: &ThreadPool, capacity: usize) {
    let gate = Gate::new();
    for running in 1..=pool.max_size() {
        let passes = Arc::clone(&gate);
        pool.try_execute(move || passes.pass()).expect("a worker is free");
        gate.wait_for(running);
    }
    for _ in 0..capacity {
        pool.try_execute(|| ()).expect("the queue has room");
    }
    refused(pool.try_execute(|| ()), RejectReason::Full);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

/// It waits neither, nor does it take up room that nobody gives back.
#[test]
fn a_task_without_any_worker_takes_up_no_room() {
    in_a_child("a_task_without_any_worker_takes_up_no_room", || {
        for capacity in [0, 1] {
            let pool = ThreadPool::builder().max_size(2).queue_capacity(capacity).build();
            let refusal = Refusal::begin();
            for _ in 0..5 {
                comes_back(pool.try_execute(|| ()))();
                comes_back(pool.try_execute_for(|| (), HOUR))();
                pool.execute(|| ());
                let own = pool.clone();
                let nested = pool.evaluate(move || value(own.evaluate(|| 7)));
                assert_eq!(value(nested), 7);
                #[cfg(feature = "async")]
                assert_eq!(value(pool.spawn_await(yields_once())), thread::current().id());
            }
            assert_empty(&pool);
            refusal.end();
            assert_room(&pool, capacity);
            // An exiting thread's stack would be room for another one.
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// The executor's `block_on` cannot be nested. It is not.
#[test]
fn a_future_without_any_worker_completes_inside_of_another_executor() {
    let name = "a_future_without_any_worker_completes_inside_of_another_executor";
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
    in_a_child("a_future_that_yields_without_any_worker_completes", || {
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

// ----- all of it -----

/// Three threads submit in every way, while threads are refused and then are not: every task runs or
/// comes back, and the counts say which.
#[test]
fn a_storm_of_refusals() {
    in_a_child("a_storm_of_refusals", || {
        const SUBMITTERS: usize = 3;
        const ROUNDS: usize = 200;
        let pool = ThreadPool::new(2, 4, HOUR);
        let (go, done) = (Gate::new(), Gate::new());
        let (ran, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let (pool, go, done) = (pool.clone(), Arc::clone(&go), Arc::clone(&done));
                let (ran, drops) = (Arc::clone(&ran), drops.clone());
                thread::spawn(move || {
                    go.pass();
                    let mut rejected = 0;
                    for _ in 0..ROUNDS {
                        let task = || {
                            let (ran, guard) = (Arc::clone(&ran), drops.issue());
                            move || {
                                ran.fetch_add(1, Ordering::Relaxed);
                                drop(guard);
                            }
                        };
                        pool.execute(task());
                        drop(pool.evaluate(task()));
                        if let Err(refused) = pool.try_execute(task()) {
                            assert_eq!(refused.reason(), RejectReason::NoThread);
                            rejected += 1;
                        }
                        let (future, task) = (task(), task());
                        drop(pool.complete(async move { future() }));
                        if pool.try_evaluate(task).is_err() {
                            rejected += 1;
                        }
                    }
                    done.pass();
                    rejected
                })
            })
            .collect();
        go.wait_for(SUBMITTERS);
        let refusal = Refusal::begin();
        go.open();
        done.wait_for(SUBMITTERS);
        assert!(pool.join_timeout(LIMIT));
        assert_empty(&pool);
        refusal.end();
        done.open();
        let rejected: usize = submitters.into_iter().map(|thread| thread.join().unwrap()).sum();
        // Without a worker nothing else is possible.
        assert_eq!(rejected, SUBMITTERS * ROUNDS * 2);
        let submitted = SUBMITTERS * ROUNDS * 5;
        assert_eq!(drops.count(), submitted);
        assert_eq!(ran.load(Ordering::Relaxed), submitted - rejected);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.rejected), (submitted - rejected, rejected));
        assert_grows_to(&pool, 4);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// There is room for the stack of one more thread, and three threads have their pools contend for it:
/// whatever the pools get, nothing is lost.
#[test]
fn a_storm_with_room_for_one_thread() {
    in_a_child("a_storm_with_room_for_one_thread", || {
        const SUBMITTERS: usize = 3;
        const ROUNDS: usize = 100;
        const TASKS: usize = 10;
        let go = Gate::new();
        let done = Gate::new();
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let (go, done) = (Arc::clone(&go), Arc::clone(&done));
                thread::spawn(move || {
                    go.pass();
                    let (mut started, mut refused) = (0, 0);
                    for _ in 0..ROUNDS {
                        let pool = ThreadPool::new(1, 2, Duration::from_nanos(1));
                        let drops = Drops::default();
                        let mut rejected = 0;
                        for _ in 0..TASKS / 2 {
                            let guard = drops.issue();
                            pool.execute(move || drop(guard));
                            let guard = drops.issue();
                            let result = pool.try_execute(move || drop(guard));
                            rejected += usize::from(result.is_err());
                        }
                        assert!(pool.join_timeout(LIMIT));
                        assert_eq!(drops.count(), TASKS);
                        let stats = pool.stats();
                        assert_eq!((stats.completed, stats.rejected), (TASKS - rejected, rejected));
                        assert_eq!((stats.queued, stats.in_flight()), (0, 0));
                        (started, refused) =
                            (started + stats.threads_started, refused + stats.threads_refused);
                        assert!(pool.shutdown_join_timeout(LIMIT));
                    }
                    done.pass();
                    (started, refused)
                })
            })
            .collect();
        go.wait_for(SUBMITTERS);
        let refusal = Refusal::begin();
        let limit = getrlimit(Resource::As);
        let room = Rlimit { current: limit.current.map(|size| size + STACK), ..limit };
        setrlimit(Resource::As, room).unwrap();
        go.open();
        done.wait_for(SUBMITTERS);
        drop(refusal);
        done.open();
        let counts: Vec<_> = submitters.into_iter().map(|thread| thread.join().unwrap()).collect();
        println!("threads started and refused: {counts:?}");
        assert!(counts.iter().any(|&(_, refused)| refused > 0), "there was no want of threads");
    });
}
