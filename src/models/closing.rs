//! Joining, closing, and immediate shutdowns.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use super::{
    Arc, REFUSE_NEXT, Relaxed, STARTS_KEEPER, builder, counting, explore, explore_both, long, pool,
    thread,
};
use crate::RejectReason;
use crate::flight::InFlight;
use crate::sched::{Dependency, wait_for};

/// Race 12: two threads join while the last task ends.
#[test]
fn two_joiners_versus_the_last_task() {
    explore_both(3, 2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let other = {
            let (pool, ran) = (pool.clone(), ran.clone());
            thread::spawn(move || {
                pool.join();
                assert_eq!(ran.get(), 1);
            })
        };
        pool.join();
        assert_eq!(ran.get(), 1);
        other.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 12: the joiner's moment may pass while it begins to wait, before a task that does not end.
#[test]
fn a_joiner_versus_the_next_task() {
    explore(3, || {
        let in_flight = Arc::new(InFlight::default());
        assert!(in_flight.accept(1));
        let joiner = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || assert!(in_flight.wait_quiet(None)))
        };
        let is_awaited = in_flight.is_awaited();
        in_flight.finish(1);
        if is_awaited {
            assert!(in_flight.accept(1));
        }
        joiner.join().unwrap();
    });
}

/// Race 10: an accepted task runs, another is handed back.
#[test]
fn close_versus_submit() {
    explore_both(3, 2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let closer = {
            let pool = pool.clone();
            thread::spawn(move || pool.close())
        };
        let accepted = match pool.try_execute(counting(&ran)) {
            Ok(()) => 1,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Closed);
                0
            }
        };
        closer.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), accepted);
    });
}

/// A task submits another one while the pool closes.
#[test]
fn close_versus_submit_from_inside() {
    explore(3, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        let inner = pool.clone();
        let task = counting(&ran);
        let handle = pool.evaluate(move || inner.try_execute(task).is_ok());
        pool.close();
        let accepted = handle.await_complete();
        pool.shutdown_join();
        assert_eq!(ran.get(), usize::from(accepted));
    });
}

/// The last handle is dropped while the worker rests, runs or retires: its thread exits.
#[test]
fn drop_versus_rest() {
    explore_both(3, 2, || {
        let pool = pool(0, 1);
        let shared = Arc::clone(pool.shared());
        pool.execute(|| ());
        drop(pool);
        assert!(shared.registry.wait_gone(None, None));
        assert_eq!(shared.counts.load().total(), 0);
    });
}

/// A future waits for quiet while the last task ends, beside one that gives up.
#[test]
fn quiet_versus_the_last_task() {
    explore(2, || {
        let in_flight = Arc::new(InFlight::default());
        assert!(in_flight.accept(1));
        let gives_up = in_flight.begin_wait();
        let finisher = {
            let in_flight = Arc::clone(&in_flight);
            thread::spawn(move || in_flight.finish(1))
        };
        drop(gives_up);
        if let Some(quiet) = in_flight.begin_wait() {
            wait_for(pin!(quiet), None, Dependency::Other).unwrap();
        }
        finisher.join().unwrap();
        assert!(!in_flight.is_awaited());
    });
}

/// Race 42: the last worker leaves the waker of a future to the keeper, which starts the helper, or
/// calls the waker if that is refused. All leave.
#[test]
fn quiet_versus_the_end_of_the_keeper() {
    for is_refused in [false, true] {
        explore(long(2), move || {
            STARTS_KEEPER.set(true);
            let pool = builder(0, 1).build();
            let ran = Relaxed::new();
            pool.execute(counting(&ran));
            REFUSE_NEXT.set(is_refused);
            pool.close();
            wait_for(pin!(pool.quiet()), None, Dependency::Other).unwrap();
            assert_eq!(ran.get(), 1);
            pool.shutdown_join();
            REFUSE_NEXT.set(false);
        });
    }
}

/// Race 42: a worker leaves a waker to the keeper, while another thread starts the helper, which
/// has looked before.
#[test]
fn quiet_versus_the_start_of_the_helper() {
    explore(long(1), || {
        STARTS_KEEPER.set(true);
        let pool = builder(0, 1).build();
        pool.execute(|| ());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut context = Context::from_waker(Waker::noop());
                assert!(pin!(pool.terminated()).poll(&mut context).is_pending());
            })
        };
        wait_for(pin!(pool.quiet()), None, Dependency::Other).unwrap();
        other.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 42: the last worker leaves a second waker to the helper, which has called the first one.
#[test]
fn quiet_versus_the_end_of_the_helper() {
    explore(1, || {
        STARTS_KEEPER.set(true);
        let pool = builder(0, 1).build();
        pool.execute(|| ());
        wait_for(pin!(pool.quiet()), None, Dependency::Other).unwrap();
        pool.execute(|| ());
        pool.close();
        wait_for(pin!(pool.quiet()), None, Dependency::Other).unwrap();
        pool.shutdown_join();
    });
}

/// A future waits for the end of a pool which is closed, and whose worker may have left before.
#[test]
fn terminated_versus_close() {
    for has_worker in [false, true] {
        explore(2, move || {
            let pool = pool(0, 1);
            if has_worker {
                pool.execute(|| ());
            }
            let closer = {
                let pool = pool.clone();
                thread::spawn(move || pool.close())
            };
            wait_for(pin!(pool.terminated()), None, Dependency::Other).unwrap();
            assert!(pool.is_closed() && pool.shared().registry.lock().is_gone());
            closer.join().unwrap();
        });
    }
}

/// The system refuses the helper: the last thread that leaves, the keeper, wakes the future.
#[test]
fn terminated_without_a_helper() {
    explore(2, || {
        STARTS_KEEPER.set(true);
        let pool = builder(0, 1).build();
        pool.execute(|| ());
        REFUSE_NEXT.set(true);
        let mut end = pin!(pool.terminated());
        assert!(end.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(!REFUSE_NEXT.get());
        pool.close();
        wait_for(end, None, Dependency::Other).unwrap();
        assert!(pool.shared().registry.lock().is_gone());
    });
}

/// Law 9: a future that was dropped has started a thread.
#[test]
fn a_wait_for_the_end_that_was_dropped_versus_shutdown() {
    explore(2, || {
        let pool = pool(0, 1);
        let shared = Arc::downgrade(pool.shared());
        pool.execute(|| ());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(pool.terminated()).poll(&mut context).is_pending());
        pool.shutdown_join();
        assert!(shared.upgrade().is_none(), "a thread of the pool has it");
    });
}

/// Law 9: none of two futures is ready before the thread is gone that wakes them.
#[test]
fn two_waits_for_the_end_versus_close() {
    explore(2, || {
        let pool = pool(0, 1);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                wait_for(pin!(pool.terminated()), None, Dependency::Other).unwrap();
                assert!(pool.shared().registry.lock().is_gone());
            })
        };
        pool.close();
        wait_for(pin!(pool.terminated()), None, Dependency::Other).unwrap();
        assert!(pool.shared().registry.lock().is_gone());
        other.join().unwrap();
    });
}

/// An immediate shutdown versus a submission and a start: each task runs or is handed back.
#[test]
fn shutdown_now_versus_submit() {
    explore_both(2, 2, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.try_execute(task).is_ok())
        };
        let given_back = pool.shutdown_now().len();
        let accepted = 1 + usize::from(other.join().unwrap());
        pool.shutdown_join();
        assert_eq!(ran.get() + given_back, accepted);
    });
}
