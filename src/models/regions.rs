//! Blocking regions, and waits for a handle of the own pool.

use std::task::Waker;

use super::{
    Arc, AtomicBool, AtomicUsize, Flagged, Gate, Mutex, Ordering, REFUSE_NEXT, STARTS_KEEPER,
    explore, explore_both, long, pool, thread,
};
use crate::blocking;

/// Race 1, a worker blocks: it enters a region while the task that it waits for is submitted.
#[test]
fn region_versus_submit() {
    explore_both(long(2), 1, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// As above; then the worker returns, and its replacement stops running, busy or idle.
#[test]
fn regions_end_and_the_pool_goes_back_to_its_limit() {
    explore_both(1, 1, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let (waiting, shared) = (gate.clone(), Arc::clone(pool.shared()));
        pool.execute(move || {
            blocking(|| waiting.pass());
            while shared.counts.load().running() > 1 {
                thread::yield_now();
            }
        });
        pool.execute(move || gate.open());
        pool.join();
        pool.evaluate(|| ()).await_complete();
        pool.shutdown_join();
    });
}

/// Race 1, a start that is not needed any more: a worker returns while its replacement is started.
/// Tasks outside of regions never overlap.
#[test]
fn the_end_of_a_region_versus_a_start() {
    explore_both(long(2), 1, || {
        let pool = pool(1, 1);
        let running = Arc::new(AtomicUsize::new(0));
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        while pool.shared().counts.load().blocked() == 0 {
            thread::yield_now();
        }
        gate.open();
        for _ in 0..2 {
            let running = Arc::clone(&running);
            pool.execute(move || {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
                thread::yield_now();
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        pool.shutdown_join();
    });
}

/// A task waits for another one in a pool of one.
#[test]
fn a_worker_waits_for_a_handle() {
    explore(1, || {
        let pool = pool(1, 1);
        let inner = pool.clone();
        let wait = move || inner.evaluate(|| 7).wait_for_others(None).unwrap().unwrap();
        assert_eq!(pool.evaluate(wait).await_complete(), 7);
        pool.shutdown_join();
    });
}

/// As above, but the thread is refused at first: the keeper asks again.
#[test]
fn a_worker_waits_for_a_handle_and_a_thread_is_refused() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = pool(1, 1);
        let inner = pool.clone();
        // A completion does not run the task itself.
        let handle = pool.complete(async move {
            REFUSE_NEXT.set(true);
            inner.evaluate(|| 7).await.unwrap()
        });
        while !handle.is_finished() {
            pool.shared().keeper.expire();
            thread::yield_now();
        }
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    });
}

/// The thread is refused to another thread, while the worker that needs it waits already.
#[test]
fn a_refusal_versus_a_worker_that_waits() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        let future = pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: slot.clone() });
        let waiting = pool.evaluate(move || future.try_await_complete().is_ok());
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        ready.store(true, Ordering::Relaxed);
        let waker = slot.lock().unwrap().take().unwrap();
        REFUSE_NEXT.set(true);
        waker.wake();
        while !waiting.is_finished() {
            pool.shared().keeper.expire();
            thread::yield_now();
        }
        REFUSE_NEXT.set(false);
        assert!(waiting.await_complete());
        pool.shutdown_join();
    });
}
