//! `Growth::Measured`: the number of workers that may run changes, and who asks for the measurement
//! that changes it. In a model every worker sleeps when it is measured.

#[cfg(feature = "async")]
use std::task::Poll;

use super::notify::the_keeper_asks_again;
use super::stalled::{
    a_wait_that_the_pool_does_not_see, pass_time_until, the_last_look_versus_submit,
};
use super::{Gate, Relaxed, STARTS_KEEPER, builder, counting, explore, long, thread};
use crate::crew::MustLook;
use crate::sync::Ordering;
use crate::{Growth, ThreadPool};

fn measured() -> ThreadPool {
    builder(0, 2).growth(Growth::measured(1)).build()
}

/// Changes the number as a measurement does.
fn allow(pool: &ThreadPool, number: usize) {
    let shared = pool.shared();
    shared.policy.set_number(&shared.sizes, number);
    MustLook::owed().look(shared);
}

/// Races 1 and 15: the only worker that may run waits, unseen by the pool, for a task that is
/// submitted while another one is allowed.
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

/// Of two workers one must go idle at the end of its task, while tasks are submitted. They all run.
/// No preemptions: with one the model would take minutes.
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

/// Race 1: the number is lowered while two tasks run, which wait, unseen by the pool, for a task of
/// a view with a reserve. The worker of the view's first task rests because more run than may,
/// while the second task is submitted.
#[test]
fn a_reserved_place_beside_more_than_may_run() {
    explore(long(1), || {
        let pool = builder(0, 4).growth(Growth::measured(1)).build();
        let view = pool.view().reserve(1).build();
        let gate = Gate::new();
        allow(&pool, 2);
        for _ in 0..2 {
            let (begun, waiting) = (Gate::new(), gate.clone());
            let opening = begun.clone();
            pool.execute(move || {
                opening.open();
                waiting.pass();
            });
            begun.pass();
        }
        view.execute(|| ());
        allow(&pool, 1);
        view.execute(move || gate.open());
        drop(view);
        pool.shutdown_join();
    });
}

/// Tasks that submit to their pool's full queue: one of them may wait, in a region in which another
/// worker runs, and the others exceed the capacity.
#[test]
fn a_worker_does_not_wait_for_capacity_beside_another_one() {
    explore(1, || {
        let pool = builder(0, 2).growth(Growth::measured(1)).queue_capacity(0).build();
        let ran = Relaxed::new();
        let (own, count) = (pool.clone(), ran.clone());
        pool.execute(move || {
            let (inner, inner_count) = (own.clone(), count.clone());
            own.execute(move || inner.execute(counting(&inner_count)));
            own.execute(counting(&count));
        });
        pool.join();
        assert_eq!(ran.get(), 2);
        assert!(pool.stats().peak_blocked <= 1);
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

#[test]
fn a_task_gets_a_worker_after_a_measurement() {
    a_wait_that_the_pool_does_not_see(0, measured);
}

#[test]
fn the_last_measurement_versus_submit() {
    the_last_look_versus_submit(0, measured);
}

/// A measurement allows the worker whose thread is refused. The measurements after that leave it to
/// the keeper's other job.
#[test]
fn a_refused_thread_is_asked_for_again() {
    the_keeper_asks_again(0, measured);
}

/// More workers run than may, and one of them has a future that has yielded, so no worker was
/// notified of it. The other worker waits for that future, unseen by the pool. The worker polls it
/// as the extra one, or rests and asks for a measurement (race 42).
#[cfg(feature = "async")]
#[test]
fn a_worker_above_a_lowered_number_leaves_no_future() {
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
            inner.shared().policy.set_number(&inner.shared().sizes, 1);
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        pass_time_until(&pool, &end);
        pool.shutdown_join();
    });
}
