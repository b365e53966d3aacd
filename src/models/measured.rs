//! `Growth::Measured`: the number of workers that may run changes, and who asks for the measurement that changes it. In a model
//! every worker sleeps when it is measured.

use std::task::Poll;

use super::{Gate, Relaxed, STARTS_KEEPER, builder, explore, thread};
use crate::sync::Ordering;
use crate::{Growth, ThreadPool};

fn measured() -> ThreadPool {
    builder(0, 2).growth(Growth::measured(1)).build()
}

/// Changes the number as a measurement does.
fn allow(pool: &ThreadPool, limit: usize) {
    let shared = pool.shared();
    shared.policy.set_limit(&shared.sizes, limit);
    shared.look();
}

/// Races 1 and 15: the only worker that may run waits, unseen by the pool, for a task that is submitted while another one is allowed.
#[test]
fn a_raised_number_versus_submit() {
    explore(1, || {
        let pool = measured();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let raised = pool.clone();
        let raiser = thread::spawn(move || allow(&raised, 2));
        pool.execute(move || gate.open());
        raiser.join().unwrap();
        pool.shutdown_join();
    });
}

/// Of two workers one must go idle at the end of its task, while tasks are submitted. They all run. No preemptions: with one the
/// model would take minutes.
#[test]
fn a_lowered_number_versus_submit_and_rest() {
    explore(0, || {
        let pool = measured();
        allow(&pool, 2);
        pool.execute(|| ());
        let lowered = pool.clone();
        let lowerer = thread::spawn(move || allow(&lowered, 1));
        pool.execute(|| ());
        lowerer.join().unwrap();
        pool.execute(|| ());
        pool.shutdown_join();
    });
}

/// A change of the number and of `max_size`: the number stays within it.
#[test]
fn a_raised_number_versus_resize_and_close() {
    explore(2, || {
        let pool = measured();
        pool.execute(|| ());
        let raised = pool.clone();
        let raiser = thread::spawn(move || allow(&raised, 2));
        pool.set_max_size(1).unwrap();
        assert_eq!(pool.shared().sizes.limit(), 1);
        pool.close();
        raiser.join().unwrap();
        assert_eq!(pool.shared().sizes.limit(), 1);
        pool.shutdown_join();
    });
}

/// Submits a task that opens the gate, and lets time pass until it has run.
fn submit_and_pass_time(pool: &ThreadPool, gate: Gate) {
    let ran = Relaxed::new();
    let count = ran.clone();
    pool.execute(move || {
        count.increment();
        gate.open();
    });
    while ran.get() == 0 {
        pool.shared().keeper.expire();
        thread::yield_now();
    }
}

/// Race 42: a worker waits for a queued task, unseen by the pool. That task gets a worker after a measurement.
#[test]
fn a_task_gets_a_worker_after_a_measurement() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = measured();
        let [begun, gate] = [Gate::new(), Gate::new()];
        let (opening, waiting) = (begun.clone(), gate.clone());
        pool.execute(move || {
            opening.open();
            waiting.pass();
        });
        begun.pass();
        submit_and_pass_time(&pool, gate);
        pool.shutdown_join();
    });
}

/// Race 42: a measurement finds the queue empty, while a task is submitted that relies on it. The only worker waits for that task,
/// unseen by the pool.
#[test]
fn the_last_measurement_versus_submit() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = measured();
        let [begun, gate] = [Gate::new(), Gate::new()];
        // The next one asks for a measurement.
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

/// Race 42: a worker rests because more run than may. The future that it leaves in the queue has yielded, so nobody was notified of it,
/// and the other worker waits for it, unseen by the pool.
#[cfg(feature = "async")]
#[test]
fn a_worker_above_a_lowered_number_asks_for_a_measurement() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = measured();
        allow(&pool, 2);
        let [begun, gate] = [Gate::new(), Gate::new()];
        let end = Relaxed::new();
        let (opening, waiting) = (begun.clone(), gate.clone());
        pool.execute(move || {
            opening.open();
            waiting.pass();
        });
        begun.pass();
        let (inner, ended, mut polls) = (pool.clone(), end.clone(), 0);
        pool.spawn(std::future::poll_fn(move |context| {
            polls += 1;
            if polls == 2 {
                gate.open();
                ended.increment();
                return Poll::Ready(());
            }
            // The measurement that the submission has asked for, and those after it.
            while inner.shared().sizing.is_asked.load(Ordering::Relaxed) {
                inner.shared().keeper.expire();
                thread::yield_now();
            }
            inner.shared().policy.set_limit(&inner.shared().sizes, 1);
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        while end.get() == 0 {
            pool.shared().keeper.expire();
            thread::yield_now();
        }
        pool.shutdown_join();
    });
}
