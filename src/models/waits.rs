//! Waits: who starts a task that another thread waits for, spare workers, and the bound on replaced ones.

use super::{
    Arc, AtomicBool, AtomicUsize, Gate, Mutex, Ordering, REFUSE_NEXT, Relaxed, Told, builder,
    counting, explore, pool, thread,
};
use crate::{ThreadPool, blocking};

/// Counts the tasks that run at the same time.
#[derive(Clone)]
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new() -> Self {
        Running(Arc::new(AtomicUsize::new(0)))
    }

    /// One more runs for a moment, beside `others` at most.
    fn mark_caller(&self, others: usize) {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) <= others, "too many run");
        thread::yield_now();
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With and without queues of the workers' own, in which the entry may be taken back by the worker that waits.
fn both_queues(core_size: usize, max_size: usize, model: impl Fn(&ThreadPool)) {
    for has_local_queues in [false, true] {
        let mut builder = builder(core_size, max_size);
        builder.has_local_queues = has_local_queues;
        model(&builder.build());
    }
}

/// The task is taken from the queue, and by the worker that waits for it: it runs once, and the joiner sees it.
#[test]
fn an_awaited_task_versus_its_entry() {
    for has_local_queues in [false, true] {
        explore(usize::from(has_local_queues), move || {
            let mut builder = builder(2, 2);
            builder.has_local_queues = has_local_queues;
            let pool = builder.build();
            assert_eq!(pool.start_core_threads(), 2);
            let (ran, inner) = (Relaxed::new(), pool.clone());
            let count = ran.clone();
            pool.execute(move || {
                inner.evaluate(counting(&count)).await_complete();
            });
            pool.join();
            assert_eq!(ran.get(), 1);
            assert_eq!(pool.shared().in_flight.count(), 0);
            pool.shutdown_join();
        });
    }
}

/// On a pool of one no other thread is needed, and none can be had.
#[test]
fn an_awaited_task_needs_no_thread() {
    explore(3, || {
        both_queues(1, 1, |pool| {
            let inner = pool.clone();
            let sum = pool.evaluate(move || {
                REFUSE_NEXT.set(true);
                let sum = inner.evaluate(|| 20).await_complete() + 22;
                assert!(REFUSE_NEXT.replace(false), "no thread was asked for");
                sum
            });
            assert_eq!(sum.await_complete(), 42);
            pool.join();
            assert_eq!(pool.stats().queued, 0);
            pool.clone().shutdown_join();
        });
    });
}

/// The task is cancelled while its handle is about to be waited for, by its entry or by its waiter: the handle says so if
/// and only if it does not run.
#[test]
fn an_awaited_task_versus_cancel() {
    explore(2, || {
        let pool = pool(1, 1);
        let (ran, inner) = (Relaxed::new(), pool.clone());
        let count = ran.clone();
        let outer = pool.evaluate(move || {
            let handle = Arc::new(Mutex::new(Some(inner.evaluate(counting(&count)))));
            let other = Arc::clone(&handle);
            let canceller = thread::spawn(move || {
                if let Some(handle) = &*other.lock().unwrap() {
                    handle.cancel();
                }
            });
            let handle = handle.lock().unwrap().take().unwrap();
            let result = handle.try_await_complete();
            canceller.join().unwrap();
            assert_eq!(count.get(), usize::from(result.is_ok()));
        });
        outer.await_complete();
        pool.shutdown_join();
    });
}

/// An immediate shutdown gives the task back, or the worker that waits for it runs it: not both, and not neither.
#[test]
fn an_awaited_task_versus_shutdown_now() {
    explore(2, || {
        both_queues(1, 1, |pool| {
            let (ran, inner) = (Relaxed::new(), pool.clone());
            let count = ran.clone();
            let outer = pool.try_evaluate(move || match inner.try_evaluate(counting(&count)) {
                Ok(handle) => handle.try_await_complete().is_ok(),
                Err(_) => false,
            });
            let tasks = pool.shutdown_now();
            tasks.into_iter().for_each(drop);
            // The outer one may have been given back as well.
            let ran_inner = outer.unwrap().try_await_complete().unwrap_or(false);
            assert_eq!(ran.get(), usize::from(ran_inner));
            pool.join();
            pool.clone().shutdown_join();
        });
    });
}

/// The thread that waits for a scope runs its task, or a worker does; another thread joins meanwhile.
#[test]
fn a_scope_from_outside_versus_a_worker_and_a_join() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let (joined, count) = (pool.clone(), ran.clone());
        let joiner = thread::spawn(move || {
            let before = count.get();
            joined.join();
            before
        });
        pool.scope(|scope| scope.execute(|| ran.increment()));
        assert_eq!(ran.get(), 1);
        joiner.join().unwrap();
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// A join that returns while the scope's entry has been skipped sees what the opener's thread wrote in the task.
#[test]
fn join_versus_a_scopes_task_outside() {
    explore(2, || {
        let pool = pool(1, 1);
        let (begun, ended) = (Arc::new(AtomicBool::new(false)), Relaxed::new());
        let (joined, is_begun, count) = (pool.clone(), Arc::clone(&begun), ended.clone());
        let joiner = thread::spawn(move || {
            if is_begun.load(Ordering::SeqCst) {
                joined.join();
                assert_eq!(count.get(), 1, "it runs");
            }
        });
        pool.scope(|scope| {
            scope.execute(|| {
                begun.store(true, Ordering::SeqCst);
                thread::yield_now();
                ended.increment();
            });
        });
        joiner.join().unwrap();
        pool.shutdown_join();
    });
}

/// Two tasks of a scope, which a worker opens and another helps with.
#[test]
fn a_workers_scope_versus_another_worker() {
    explore(1, || {
        let mut builder = builder(2, 2);
        builder.has_local_queues = true;
        let pool = builder.build();
        assert_eq!(pool.start_core_threads(), 2);
        let (ran, inner) = (Relaxed::new(), pool.clone());
        let count = ran.clone();
        pool.execute(move || {
            inner.scope(|scope| {
                scope.execute(|| count.increment());
                scope.execute(|| count.increment());
            });
            assert_eq!(count.get(), 2);
        });
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// A worker waits for a group of its pool, of which one task may run at a time, beside another worker. (With preemptions
/// it takes many minutes: a group's every step is under its lock.)
#[test]
fn a_workers_group_versus_another_worker() {
    explore(0, || {
        let pool = pool(2, 2);
        assert_eq!(pool.start_core_threads(), 2);
        let (ran, running, inner) = (Relaxed::new(), Running::new(), pool.clone());
        let count = ran.clone();
        pool.execute(move || {
            let group = inner.group::<()>().limit(1);
            for _ in 0..2 {
                let (count, running) = (count.clone(), running.clone());
                group
                    .execute(move || {
                        running.mark_caller(0);
                        count.increment();
                        Ok(())
                    })
                    .unwrap();
            }
            group.wait().unwrap();
            assert_eq!(count.get(), 2);
        });
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Two workers come back from their regions to a pool of one that a third works for: never more than one over. (Four threads:
/// with preemptions it takes many minutes.)
#[test]
fn workers_come_back_one_by_one() {
    explore(0, || {
        let pool = pool(1, 1);
        let running = Running::new();
        let gate = Gate::new();
        for _ in 0..2 {
            let (gate, running) = (gate.clone(), running.clone());
            pool.execute(move || {
                blocking(|| gate.pass());
                running.mark_caller(1);
            });
        }
        pool.execute(move || {
            gate.open();
            running.mark_caller(1);
        });
        pool.shutdown_join();
    });
}

/// A region ends while another begins: the place is filled as often as may be, and no task is forgotten.
#[test]
fn regions_beyond_the_bound() {
    explore(1, || {
        let pool = builder(1, 1).max_blocked(1).build();
        let gate = Gate::new();
        for _ in 0..2 {
            let gate = gate.clone();
            pool.execute(move || blocking(|| gate.pass()));
        }
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        gate.open();
        pool.shutdown_join();
        assert_eq!(ran.get(), 1);
    });
}

/// No declared region is replaced here. But a worker that waits for its pool's own future is, since that needs a worker
/// when it is woken: without that exemption this deadlocks, in whichever order the threads run. (So no preemptions.)
#[cfg(feature = "async")]
#[test]
fn a_wait_for_a_future_is_beyond_the_bound() {
    explore(0, || {
        let pool = builder(1, 1).max_blocked(0).build();
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<std::task::Waker>));
        let told = Told { ready: Arc::clone(&ready), waker: Arc::clone(&waker) };
        let inner = pool.clone();
        pool.execute(move || inner.spawn_await(told).await_complete());
        let wake = thread::spawn(move || {
            ready.store(true, Ordering::Relaxed);
            if let Some(waker) = waker.lock().unwrap().take() {
                waker.wake();
            }
        });
        wake.join().unwrap();
        pool.shutdown_join();
    });
}

/// The worker that waits for a future polls it first, and it is woken before and after its entry has been skipped.
#[cfg(feature = "async")]
#[test]
fn an_awaited_future_versus_a_wake() {
    explore(1, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<std::task::Waker>));
        let told = Told { ready: Arc::clone(&ready), waker: Arc::clone(&waker) };
        let inner = pool.clone();
        let outer = pool.evaluate(move || inner.spawn_await(told).await_complete());
        let wake = thread::spawn(move || {
            ready.store(true, Ordering::Relaxed);
            if let Some(waker) = waker.lock().unwrap().take() {
                waker.wake();
            }
        });
        wake.join().unwrap();
        outer.await_complete();
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// A completion whose future waits for something outside keeps its place; one that waits for a handle does not.
#[test]
fn a_completion_waits_for_a_handle() {
    explore(1, || {
        let pool = pool(1, 1);
        let inner = pool.clone();
        let sum = pool.complete(async move { inner.evaluate(|| 20).await.unwrap() + 22 });
        assert_eq!(sum.await_complete(), 42);
        pool.shutdown_join();
    });
}
