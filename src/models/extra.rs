//! The extra worker of a pool that measures, for ready futures beside closures. In a model without
//! a keeper nothing is measured, so the number stays as it is.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::stalled::pass_time_until;
use super::{
    Flagged, Gate, Mutex, Relaxed, STARTS_KEEPER, builder, explore, explore_both, keep_busy, long,
    thread,
};
use crate::sync::TASK_NANOS;
use crate::{Growth, Priority, ThreadPool, blocking};

/// One worker may run, and at most `max_size` beside futures.
fn measured(max_size: usize) -> ThreadPool {
    builder(0, max_size).growth(Growth::measured(1)).build()
}

/// A closure that waits, unseen by the pool, until the gate is open.
fn wait_for(gate: &Gate) -> impl FnOnce() + Send + 'static {
    let gate = gate.clone();
    move || gate.pass()
}

/// Race 1: the worker that takes the closure waits for the future, which is spawned meanwhile.
#[test]
fn a_spawned_future_versus_a_closure_that_begins() {
    explore_both(1, 1, || {
        let (pool, gate) = (measured(2), Gate::new());
        pool.execute(wait_for(&gate));
        pool.spawn(async move { gate.open() });
        pool.shutdown_join();
    });
}

/// Race 1: as above, with a future that is woken.
#[test]
fn a_woken_future_versus_a_closure_that_begins() {
    explore_both(1, 1, || {
        let (pool, gate) = (measured(2), Gate::new());
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None));
        let (flagged, end) =
            (Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) }, gate.clone());
        pool.spawn(async move {
            flagged.await;
            end.open();
        });
        pool.execute(wait_for(&gate));
        ready.store(true, Ordering::Relaxed);
        let waker = waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        pool.shutdown_join();
    });
}

/// Race 1: the extra worker rests, or is about to poll, while another future comes, for which the
/// closure waits.
#[test]
fn a_rest_of_the_extra_worker_versus_a_future() {
    explore_both(1, 0, || {
        let pool = measured(2);
        let gate = keep_busy(&pool);
        pool.spawn(async {});
        pool.spawn(async move { gate.open() });
        pool.shutdown_join();
    });
}

/// Law 4: one thread comes for futures that are ready one after another, also while it goes to rest.
#[test]
fn a_rest_of_the_extra_worker_versus_a_start() {
    explore(1, || {
        let (pool, polled) = (measured(3), Gate::new());
        let (gate, polling) = (keep_busy(&pool), polled.clone());
        pool.spawn(async move { polling.open() });
        polled.pass();
        pool.spawn(async move { gate.open() });
        pool.join();
        assert!(pool.stats().peak_workers <= 2, "a second thread has come for futures");
        pool.shutdown_join();
    });
}

/// Law 4: as above, while the worker that was started is in its start hook, and leaves it.
#[test]
fn a_start_hook_of_the_extra_worker_versus_a_start() {
    explore(long(2), || {
        let pool = builder(0, 3).growth(Growth::measured(1)).on_worker_start(|_| ()).build();
        let gate = keep_busy(&pool);
        pool.spawn(async {});
        pool.spawn(async move { gate.open() });
        pool.join();
        assert!(pool.stats().peak_workers <= 2, "a second thread has come for futures");
        pool.shutdown_join();
    });
}

/// Race 1: a worker looks for futures while a closure is submitted that may run by then: its
/// submitter may rely on that worker.
#[test]
fn a_search_for_futures_versus_a_closure() {
    explore_both(1, 0, || {
        let (pool, gate) = (measured(2), Gate::new());
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        pool.spawn(async {});
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// Law 4: the extra worker takes no closure, and becomes one of the others if these rest.
#[test]
fn the_extra_worker_versus_closures() {
    explore_both(1, 1, || {
        let pool = measured(2);
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let running = Arc::clone(&running);
            pool.execute(move || {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "one may run");
                thread::yield_now();
                running.fetch_sub(1, Ordering::Relaxed);
            });
            pool.spawn(async {});
        }
        pool.shutdown_join();
    });
}

/// The extra worker polls, and waits in that for a closure: the worker whose closure ends takes it.
#[test]
fn a_poll_that_waits_for_a_closure() {
    poll_that_waits_for_a_closure(false);
}

/// The same in a pool with views, by the place for ready futures.
#[test]
fn a_poll_beside_a_view_that_waits_for_a_closure() {
    poll_that_waits_for_a_closure(true);
}

fn poll_that_waits_for_a_closure(has_view: bool) {
    explore(1, move || {
        let (pool, second) = (measured(2), Gate::new());
        let view = has_view.then(|| pool.view().build());
        let first = keep_busy(&pool);
        let waiting = second.clone();
        pool.spawn(async move {
            first.open();
            waiting.pass();
        });
        pool.execute(move || second.open());
        drop(view);
        pool.shutdown_join();
    });
}

/// A poll in a region waits for another future. Its worker is not the extra one meanwhile: the
/// closure behind it gets no place beyond the limit, and the other future does.
#[test]
fn a_poll_that_enters_a_region_versus_a_future() {
    explore(long(1), || {
        let (pool, [gate, inner]) = (measured(3), [Gate::new(), Gate::new()]);
        let (closure, [begun, entered]) = (gate.clone(), [Gate::new(), Gate::new()]);
        let opening = begun.clone();
        pool.execute(move || {
            opening.open();
            closure.pass();
        });
        begun.pass();
        // Before the region: its look must leave it where it is.
        pool.execute(wait_for(&gate));
        let (entering, waiting) = (entered.clone(), inner.clone());
        pool.spawn(async move {
            blocking(|| {
                entering.open();
                waiting.pass();
            });
        });
        entered.pass();
        pool.spawn(async move {
            inner.open();
            gate.open();
        });
        pool.shutdown_join();
    });
}

/// A future that yields goes on beside the closure that its worker takes in its turn, and which
/// waits for the future. All tasks before were short.
#[test]
fn a_future_that_yields_versus_a_closure() {
    let before = TASK_NANOS.replace(0);
    explore_both(1, 1, || {
        let (pool, gate) = (measured(2), Gate::new());
        let (mut has_yielded, end) = (false, gate.clone());
        // So that the closure is the first choice of the request after the first poll.
        pool.execute(|| ());
        pool.spawn(poll_fn(move |context| {
            if has_yielded {
                end.open();
                return Poll::Ready(());
            }
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        pool.execute(wait_for(&gate));
        pool.shutdown_join();
    });
    TASK_NANOS.set(before);
}

/// A poll waits, unseen by the pool, for another future: a measurement finds it asleep.
#[test]
fn a_poll_that_sleeps_versus_a_measurement() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let (pool, [gate, inner], end) = (measured(3), [Gate::new(), Gate::new()], Relaxed::new());
        pool.execute(wait_for(&gate));
        let waiting = inner.clone();
        pool.spawn(async move { waiting.pass() });
        let ended = end.clone();
        pool.spawn(async move {
            inner.open();
            gate.open();
            ended.increment();
        });
        pass_time_until(&pool, &end);
        pool.shutdown_join();
    });
}

/// Race 3: the quota of the extra worker is used.
#[test]
fn an_extra_worker_that_is_recycled() {
    explore(1, || {
        let pool = builder(0, 2).growth(Growth::measured(1)).max_tasks_per_worker(1).build();
        let gate = Gate::new();
        pool.execute(wait_for(&gate));
        pool.spawn(async {});
        pool.spawn(async move { gate.open() });
        pool.shutdown_join();
    });
}

/// The pool is paused for the first time while the extra worker polls. It polls no future that is
/// spawned after that.
#[test]
fn a_future_behind_the_first_pause() {
    explore(1, || {
        let (pool, gate, resumed) = (measured(2), Gate::new(), Relaxed::new());
        pool.execute(wait_for(&gate));
        pool.spawn(async {});
        pool.pause();
        let seen = resumed.clone();
        pool.spawn(async move { assert_eq!(seen.get(), 1, "it starts in a paused pool") });
        thread::yield_now();
        resumed.increment();
        pool.resume();
        gate.open();
        pool.shutdown_join();
    });
}

/// Race 35: as above for a pool with views, which has a place for ready futures. The worker that
/// takes the closure waits for the future, which is spawned meanwhile.
#[test]
fn a_future_versus_a_closure_beside_a_view() {
    for in_view in [false, true] {
        explore_both(1, 1, move || {
            let (pool, gate) = (measured(2), Gate::new());
            let view = pool.view().build();
            pool.execute(wait_for(&gate));
            let of = if in_view { &view } else { &pool };
            of.spawn(async move { gate.open() });
            drop(view);
            pool.shutdown_join();
        });
    }
}

/// Race 35: a poll in that place ends while another future comes, for which both closures wait. Its
/// worker takes none of them.
#[test]
fn the_end_of_a_poll_beside_a_view_versus_a_future() {
    explore(1, || {
        let pool = measured(2);
        let view = pool.view().build();
        let gate = keep_busy(&pool);
        pool.execute(wait_for(&gate));
        view.spawn(async {});
        pool.spawn(async move { gate.open() });
        drop(view);
        pool.shutdown_join();
    });
}

/// A poll in that place waits in a region for another future, which gets the place.
#[test]
fn a_region_in_a_poll_beside_a_view_versus_a_future() {
    explore(long(1), || {
        let (pool, [gate, inner]) = (measured(3), [Gate::new(), Gate::new()]);
        let view = pool.view().build();
        pool.execute(wait_for(&gate));
        let waiting = inner.clone();
        view.spawn(async move { blocking(|| waiting.pass()) });
        pool.spawn(async move {
            inner.open();
            gate.open();
        });
        drop(view);
        pool.shutdown_join();
    });
}

/// A closure and a future wait, unseen by the pool, for a task with a reserve. With that all
/// workers are needed which `max_size` lets run.
#[test]
fn a_future_beside_a_reserve() {
    explore(1, || {
        let pool = measured(2);
        let urgent = pool.view().reserve(1).build();
        let gate = keep_busy(&pool);
        let waiting = gate.clone();
        pool.spawn(async move { waiting.pass() });
        urgent.execute(move || gate.open());
        drop(urgent);
        pool.shutdown_join();
    });
}

/// A worker has popped the future when a task of a view with a higher priority comes, which waits
/// for the future.
#[test]
fn a_future_that_is_put_back() {
    explore(1, || {
        let (pool, gate) = (measured(2), Gate::new());
        let high = pool.view().priority(Priority::High).build();
        let end = gate.clone();
        pool.execute(|| ());
        pool.spawn(async move { end.open() });
        high.execute(wait_for(&gate));
        drop(high);
        pool.shutdown_join();
    });
}
