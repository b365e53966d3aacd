//! Waits: which thread runs an awaited task, spare workers, and the bound on replaced workers.

use super::{
    Arc, AtomicBool, AtomicUsize, Flagged, Gate, Mutex, Ordering, REFUSE_NEXT, Relaxed, builder,
    counting, explore, explore_both, long, pair, pool, thread, with_local_queues,
};
use crate::sched::{RegionKind, WorkerContext};
use crate::{ThreadPool, blocking};

/// Counts the tasks that run at the same time.
#[derive(Clone)]
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new() -> Self {
        Running(Arc::new(AtomicUsize::new(0)))
    }

    /// Runs for a moment, beside at most `others`.
    fn run_beside(&self, others: usize) {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) <= others, "too many run");
        thread::yield_now();
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With and without local queues, from which the waiting worker may take the entry back.
fn both_queues(core_size: usize, max_size: usize, model: impl Fn(&ThreadPool)) {
    for has_local_queues in [false, true] {
        let mut builder = builder(core_size, max_size);
        builder.has_local_queues = has_local_queues;
        model(&builder.build());
    }
}

/// A worker takes the entry while the waiting worker claims the task: it runs once, before the
/// join. Preemptions only with local queues, where the worker has two ways to skip the entry; with
/// spinning as well the model would take a minute.
#[test]
fn an_awaited_task_versus_its_entry() {
    for has_local_queues in [false, true] {
        explore(if has_local_queues { long(1) } else { 0 }, move || {
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

/// A pool of one needs no other thread for an awaited task, and gets none.
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

/// The task is cancelled while its entry or its waiter starts it: the handle reports a cancellation
/// if and only if the task does not run.
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

/// A group is cancelled while a worker waits for its task by the handle. The task runs, or it is
/// dropped and the handle reports a cancellation.
#[test]
fn an_awaited_task_versus_the_cancel_of_its_group() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        let (ran, inner) = (Relaxed::new(), group.clone());
        let count = ran.clone();
        let outer =
            pool.evaluate(move || inner.evaluate(counting(&count)).try_await_complete().is_ok());
        group.cancel();
        let has_result = outer.await_complete();
        pool.shutdown_join();
        assert_eq!(ran.get(), usize::from(has_result));
    });
}

/// As above, with a future. It is claimed for its first poll.
#[cfg(feature = "async")]
#[test]
fn an_awaited_future_versus_the_cancel_of_its_group() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        let (ran, inner) = (Relaxed::new(), group.clone());
        let task = counting(&ran);
        let outer = pool.evaluate(move || {
            inner.spawn_await(async move { task() }).try_await_complete().is_ok()
        });
        group.cancel();
        let has_result = outer.await_complete();
        pool.shutdown_join();
        // It may be cancelled after its last poll.
        assert!(ran.get() >= usize::from(has_result));
    });
}

/// A group is cancelled while a worker waits for all of it.
#[test]
fn a_workers_group_versus_cancel() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        let (ran, inner) = (Relaxed::new(), group.clone());
        let count = ran.clone();
        let outer = pool.evaluate(move || {
            let task = counting(&count);
            let task = move || {
                task();
                Ok(())
            };
            let rejected = usize::from(inner.execute(task).is_err());
            let waited = inner.wait();
            assert!(waited.is_ok() || waited.unwrap_err().is_cancelled());
            count.get() + inner.dropped_count() + rejected
        });
        group.cancel();
        assert_eq!(outer.await_complete(), 1);
        pool.shutdown_join();
    });
}

/// An immediate shutdown hands the future back, or the waiting worker polls it.
#[cfg(feature = "async")]
#[test]
fn an_awaited_future_versus_shutdown_now() {
    explore(3, || {
        let pool = pool(1, 1);
        let (ran, inner) = (Relaxed::new(), pool.clone());
        let task = counting(&ran);
        let outer = pool.try_evaluate(move || match inner.try_spawn_await(async move { task() }) {
            Ok(handle) => handle.try_await_complete().is_ok(),
            Err(_) => false,
        });
        let tasks = pool.shutdown_now();
        let handed_back = tasks.len();
        tasks.into_iter().for_each(drop);
        let outer = outer.expect("accepted: the pool was open").try_await_complete();
        pool.shutdown_join();
        // It may be cancelled after its last poll.
        assert!(ran.get() >= usize::from(outer.unwrap_or(false)));
        assert!(ran.get() + handed_back <= 1);
    });
}

/// An immediate shutdown hands the task back, or the waiting worker runs it: exactly one of the
/// two.
#[test]
fn an_awaited_task_versus_shutdown_now() {
    explore(long(3), || {
        both_queues(1, 1, |pool| {
            let (ran, inner) = (Relaxed::new(), pool.clone());
            let count = ran.clone();
            let outer = pool.try_evaluate(move || match inner.try_evaluate(counting(&count)) {
                Ok(handle) => handle.try_await_complete().is_ok(),
                Err(_) => false,
            });
            let tasks = pool.shutdown_now();
            let handed_back = tasks.len();
            tasks.into_iter().for_each(drop);
            let outer = outer.expect("accepted: the pool was open").try_await_complete();
            pool.clone().shutdown_join();
            // The outer task may have been handed back as well.
            assert_eq!(ran.get(), usize::from(outer.unwrap_or(false)));
            assert!(ran.get() + handed_back <= 1);
        });
    });
}

/// The opener of a scope runs its task, or a worker does; another thread joins in the meantime.
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

/// Starts a thread that joins the pool if a task has begun, and then expects its end.
fn join_if(begun: &Arc<AtomicBool>, pool: &ThreadPool, ended: &Relaxed) -> thread::JoinHandle<()> {
    let (begun, pool, ended) = (Arc::clone(begun), pool.clone(), ended.clone());
    thread::spawn(move || {
        if begun.load(Ordering::SeqCst) {
            pool.join();
            assert_eq!(ended.get(), 1, "it runs");
        }
    })
}

/// A join that returns after the entry was skipped sees what the opener wrote in the task.
#[test]
fn join_versus_a_scopes_task_outside() {
    explore(2, || {
        let pool = pool(1, 1);
        let (begun, ended) = (Arc::new(AtomicBool::new(false)), Relaxed::new());
        let joiner = join_if(&begun, &pool, &ended);
        pool.scope(|scope| {
            scope.execute(|| {
                begun.store(true, Ordering::SeqCst);
                thread::yield_now();
                ended.increment();
            });
        });
        joiner.join().expect("its join was not early");
        pool.shutdown_join();
    });
}

/// A thread outside of the pool runs its scope's task, which opens a scope of one task and submits
/// one to its own scope. The next scopes of the thread rely on the entries that are left, which the
/// worker takes.
#[test]
fn a_nested_scope_outside_versus_a_worker() {
    explore(1, || {
        let pool = with_local_queues(1, 1).build();
        let ran = Relaxed::new();
        for _ in 0..2 {
            pool.scope(|scope| {
                pool.scope(|inner| {
                    inner.execute(|| {
                        scope.execute(|| ran.increment());
                        ran.increment();
                    });
                });
            });
        }
        assert_eq!(ran.get(), 4);
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// The two tasks of a worker's scope need each other. No preemptions: with two workers the model
/// would take many minutes.
#[test]
fn tasks_of_a_workers_scope_need_each_other() {
    explore(0, || {
        let pool = with_local_queues(1, 2).build();
        let inner = pool.clone();
        pool.execute(move || {
            inner.scope(|scope| pair().into_iter().for_each(|task| scope.execute(task)));
        });
        pool.shutdown_join();
    });
}

/// A worker opens a scope of two tasks; another worker takes part.
#[test]
fn a_workers_scope_versus_another_worker() {
    explore(1, || {
        let pool = with_local_queues(2, 2).build();
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

/// A worker waits for a group of its pool that runs one task at a time, beside another worker. No
/// preemptions: each step of a group is under its lock, and the model would take many minutes.
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
                        running.run_beside(0);
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

/// Two workers return to a pool of one in which a third runs: the limit is exceeded by one at most.
/// No preemptions: with four threads the model would take many minutes.
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
                running.run_beside(1);
            });
        }
        pool.execute(move || {
            gate.open();
            running.run_beside(1);
        });
        pool.shutdown_join();
    });
}

/// Race 7: a worker returns to a pool of one in which two run, while one of these stops running.
/// The other one never does.
#[test]
fn a_return_versus_a_worker_that_stops() {
    explore(3, || {
        let pool = pool(1, 1);
        let shared = Arc::clone(pool.shared());
        (0..3).for_each(|_| _ = shared.counts.add_worker());
        _ = shared.counts.add_blocked();
        let stops = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.counts.add_idle(false).fence(&shared))
        };
        shared.return_from_region();
        stops.join().unwrap();
        assert_eq!(shared.counts.load().running(), 2);
    });
}

/// One region ends while another begins. The task runs.
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

/// One region ends while another begins, which needs the task behind both.
#[test]
fn regions_take_turns_at_the_bound() {
    explore_both(1, 1, || {
        let pool = builder(1, 1).max_blocked(1).build();
        let gates = [Gate::new(), Gate::new()];
        let waiting = gates.clone();
        let [first, second] = waiting;
        pool.execute(move || blocking(|| first.pass()));
        let [first, last] = gates;
        pool.execute(move || {
            first.open();
            blocking(|| second.pass());
        });
        pool.execute(move || last.open());
        pool.shutdown_join();
    });
}

/// Workers enter and leave declared regions at once, below and above the bound, and one of them
/// waits for its pool inside of its region. Each count of a blocked worker is subtracted after it
/// was added: the counts check that. No count is left over.
#[test]
fn regions_end_at_once_at_the_bound() {
    for (workers, max_blocked, preemptions) in [(2, 0, 3), (2, 1, 3), (2, 2, 3), (3, 1, 2)] {
        explore(preemptions, move || {
            // None waits to return: the others would have to stop running.
            let pool = builder(1, workers).max_blocked(max_blocked).build();
            let shared = Arc::clone(pool.shared());
            (0..workers).for_each(|_| _ = shared.counts.add_worker());
            let blocks = |waits_for_own: bool| {
                let shared = Arc::clone(&shared);
                move || {
                    let worker = WorkerContext::new(&shared, Arc::default());
                    let change = |to| worker.change_region(to);
                    change(Some(RegionKind::Declared));
                    if waits_for_own {
                        change(Some(RegionKind::Own));
                        change(Some(RegionKind::Declared));
                    }
                    change(None);
                }
            };
            let others: Vec<_> = (1..workers).map(|_| thread::spawn(blocks(false))).collect();
            blocks(workers == 2)();
            others.into_iter().for_each(|other| other.join().unwrap());
            let now = shared.counts.load();
            assert_eq!((now.total(), now.blocked(), shared.blocked_count(now)), (workers, 0, 0));
        });
    }
}

/// Declared regions are not replaced here, but a wait for the pool's own future is: the future
/// needs a worker when it is woken. Without the exemption every order deadlocks, hence no
/// preemptions.
#[cfg(feature = "async")]
#[test]
fn a_wait_for_a_future_is_beyond_the_bound() {
    explore(0, || {
        let pool = builder(1, 1).max_blocked(0).build();
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<std::task::Waker>));
        let future = Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) };
        let inner = pool.clone();
        pool.execute(move || inner.spawn_await(future).await_complete());
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

/// The waiting worker polls the future first. It is woken before or after its entry was skipped.
#[cfg(feature = "async")]
#[test]
fn an_awaited_future_versus_a_wake() {
    explore(1, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<std::task::Waker>));
        let future = Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) };
        let inner = pool.clone();
        let outer = pool.evaluate(move || {
            // Uses up the worker's credit.
            inner.execute(|| ());
            inner.spawn_await(future).await_complete();
        });
        ready.store(true, Ordering::Relaxed);
        let woken = waker.lock().unwrap().take();
        if let Some(waker) = woken {
            waker.wake();
        }
        outer.await_complete();
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// A completion is in a region while it waits for a handle of its pool.
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
