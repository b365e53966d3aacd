//! `Growth::Stalled`: queued tasks that are left to the keeper.

use std::future::Future;
use std::task::{Context, Wake, Waker};

use super::{
    Arc, Gate, HOUR, Mutex, Relaxed, STARTS_KEEPER, builder, explore, explore_both, keep_busy,
    thread,
};
use crate::{Growth, ThreadPool, blocking};

fn stalled() -> ThreadPool {
    builder(0, 2).growth(Growth::Stalled(HOUR)).build()
}

/// Submits a task that opens the gate, and lets time pass until it has run.
fn submit_and_pass_time(pool: &ThreadPool, gate: Gate) {
    let ran = Relaxed::new();
    let count = ran.clone();
    pool.execute(move || {
        count.increment();
        gate.open();
    });
    pass_time_until(pool, &ran);
}

/// Lets the deadlines of the keeper's sleeps pass until the count is no longer zero.
pub(super) fn pass_time_until(pool: &ThreadPool, has_come: &Relaxed) {
    while has_come.get() == 0 {
        pool.shared().keeper.expire();
        thread::yield_now();
    }
}

/// Race 42: a worker waits for a queued task, unseen by the pool. The keeper gives that task a
/// worker.
pub(super) fn a_wait_that_the_pool_does_not_see(preemptions: usize, pool: fn() -> ThreadPool) {
    explore(preemptions, move || {
        STARTS_KEEPER.set(true);
        let pool = pool();
        let gate = keep_busy(&pool);
        submit_and_pass_time(&pool, gate);
        pool.shutdown_join();
    });
}

/// Race 42: the keeper's last look finds the queue empty, while a task is submitted that relies on
/// it. The only worker waits for that task, unseen by the pool.
pub(super) fn the_last_look_versus_submit(preemptions: usize, pool: fn() -> ThreadPool) {
    explore(preemptions, move || {
        STARTS_KEEPER.set(true);
        let pool = pool();
        let [begun, gate] = [Gate::new(), Gate::new()];
        // The next one is left to the keeper.
        pool.execute(|| ());
        let (inner, opening, waiting) = (pool.clone(), begun.clone(), gate.clone());
        pool.execute(move || {
            inner.shared().keeper.expire();
            opening.open();
            waiting.pass();
        });
        begun.pass();
        submit_and_pass_time(&pool, gate);
        pool.shutdown_join();
    });
}

#[test]
fn a_task_gets_a_worker_after_the_delay() {
    a_wait_that_the_pool_does_not_see(1, stalled);
}

#[test]
fn the_last_look_of_the_keeper_versus_submit() {
    the_last_look_versus_submit(1, stalled);
}

/// The waker of a future waits, unseen by the pool, for a task that the keeper starts a worker for.
#[test]
fn a_waker_that_waits_for_a_task_that_is_left_to_the_keeper() {
    struct Waits(Gate, Gate);

    impl Wake for Waits {
        fn wake(self: Arc<Self>) {
            self.0.open();
            self.1.pass();
        }
    }

    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = stalled();
        let [end, called, begun, gate] = [(); 4].map(|()| Gate::new());
        let ending = end.clone();
        pool.execute(move || ending.pass());
        let waker = Waker::from(Arc::new(Waits(called.clone(), gate.clone())));
        let mut quiet = Box::pin(pool.quiet());
        assert!(quiet.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        end.open();
        called.pass();
        let (opening, waiting) = (begun.clone(), gate.clone());
        pool.execute(move || {
            opening.open();
            waiting.pass();
        });
        begun.pass();
        submit_and_pass_time(&pool, gate);
        drop(quiet);
        pool.shutdown_join();
    });
}

/// Race 1, a worker blocks: the only running worker enters a region, while a task is left to the
/// keeper. It waits for that task, which gets a worker without a delay.
#[test]
fn a_region_versus_a_task_that_is_left_to_the_keeper() {
    explore_both(1, 1, || {
        let pool = stalled();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// A worker in its start hook waits for a task of its pool. That needs a second worker, whose hook
/// returns at once. No preemptions: if the first worker kept the second one from being started,
/// every order would deadlock, and with one preemption the model would take minutes.
#[test]
fn a_wait_in_a_start_hook() {
    for growth in [Growth::Eager, Growth::Stalled(HOUR)] {
        explore(0, move || {
            let slot = Arc::new(Mutex::new(None::<ThreadPool>));
            let address = Arc::clone(&slot);
            let pool = builder(0, 2)
                .growth(growth)
                .on_worker_start(move |index| {
                    let pool = if index == 0 { address.lock().unwrap().take() } else { None };
                    if let Some(pool) = pool {
                        assert_eq!(pool.evaluate(|| 7).await_complete(), 7);
                    }
                })
                .build();
            *slot.lock().unwrap() = Some(pool.clone());
            pool.execute(|| ());
            pool.shutdown_join();
        });
    }
}
