//! Retiring, recycling, and changed sizes.

use super::{
    Arc, Gate, REFUSE_NEXT, Relaxed, builder, counting, expire_all_workers, explore, explore_both,
    long, pool, thread,
};

/// Retire versus submit: the task comes while the only worker's keep-alive ends.
#[test]
fn retire_versus_submit() {
    explore_both(long(3), 2, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let time = {
            let shared = Arc::clone(pool.shared());
            thread::spawn(move || shared.idle.expire_all())
        };
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        time.join().unwrap();
        pool.shutdown_join();
    });
}

/// As above, without a thread to be had: the task is handed back, or the worker stays for it.
#[test]
fn retire_versus_submit_without_a_thread() {
    explore_both(long(3), 2, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let time = {
            let shared = Arc::clone(pool.shared());
            thread::spawn(move || shared.idle.expire_all())
        };
        REFUSE_NEXT.set(true);
        let accepted = usize::from(pool.try_execute(counting(&ran)).is_ok());
        pool.join();
        REFUSE_NEXT.set(false);
        assert_eq!(ran.get(), 1 + accepted);
        time.join().unwrap();
        pool.shutdown_join();
    });
}

/// Two workers of which one may stay. Their keep-alives end together.
/// Only reduced: the registry's lock decides, and no task is queued meanwhile.
#[test]
fn two_workers_retire_down_to_the_core() {
    explore(1, || {
        let pool = pool(1, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.execute(move || gate.open());
        pool.join();
        for _ in 0..3 {
            thread::yield_now();
            pool.shared().idle.expire_all();
        }
        assert!(pool.current_worker_count() >= 1, "the core stays");
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 1);
        pool.shutdown_join();
    });
}

/// Race 1, a worker leaves: retire versus submit at the limit. One worker leaves while the other
/// waits for the new task. Only reduced: shipped it would take minutes.
/// `local_queues::leave_versus_a_hook_that_submits` has local queues.
#[test]
fn leave_versus_submit() {
    explore(1, || {
        let pool = pool(0, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.evaluate(|| ()).await_complete();
        pool.shared().idle.expire_all();
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// Race 15: the limit is raised while a task waits behind a busy worker.
#[test]
fn a_higher_limit_versus_submit() {
    explore(1, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.set_max_size(2).unwrap())
        };
        pool.execute(move || gate.open());
        other.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 15: the limit is lowered while two workers rest. No preemptions: without the recheck every
/// order deadlocks, and with one preemption the model would take minutes.
#[test]
fn a_lower_limit_versus_rest() {
    explore(0, || {
        let pool = pool(1, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.execute(move || gate.open());
        while pool.idle_worker_count() < 2 {
            thread::yield_now();
        }
        pool.set_max_size(1).unwrap();
        while pool.current_worker_count() > 1 {
            thread::yield_now();
        }
        pool.shutdown_join();
    });
}

/// Race 15: the limit is lowered while a worker that was started under the old one has not run yet.
#[test]
fn a_lower_limit_versus_start() {
    explore(1, || {
        let pool = pool(2, 2);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.set_sizes(1, 1).unwrap();
        while pool.current_worker_count() > 1 {
            thread::yield_now();
        }
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Race 15: a worker's keep-alive ends while the core grows, or shrinks and the worker has no
/// deadline.
#[test]
fn another_core_size_versus_retire() {
    for (before, after) in [(0, 1), (1, 0)] {
        explore(2, move || {
            let pool = pool(before, 1);
            let ran = Relaxed::new();
            pool.execute(counting(&ran));
            pool.join();
            let time = {
                let shared = Arc::clone(pool.shared());
                thread::spawn(move || shared.idle.expire_all())
            };
            pool.set_core_size(after).unwrap();
            time.join().unwrap();
            if after == 0 {
                expire_all_workers(&pool);
            }
            pool.execute(counting(&ran));
            pool.join();
            assert_eq!(ran.get(), 2);
            pool.shutdown_join();
        });
    }
}

/// Each task uses up its worker's quota while another is submitted, so each has a worker of its
/// own.
#[test]
fn recycle_versus_submit() {
    explore_both(2, 2, || {
        let pool = builder(0, 1).max_tasks_per_worker(1).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        assert_eq!(pool.stats().threads_started, 2);
        pool.shutdown_join();
    });
}

/// The successor is refused, so the old worker continues.
#[test]
fn recycle_versus_a_refused_thread() {
    explore_both(2, 2, || {
        let pool = builder(1, 1).max_tasks_per_worker(1).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let task = counting(&ran);
        pool.execute(move || {
            REFUSE_NEXT.set(true);
            task();
        });
        pool.join();
        assert_eq!(ran.get(), 2);
        for _ in 0..2 {
            thread::yield_now();
            assert_eq!(pool.current_worker_count(), 1);
        }
        REFUSE_NEXT.set(false);
        pool.shutdown_join();
    });
}
