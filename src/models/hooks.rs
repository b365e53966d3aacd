//! Start and stop hooks, task contexts, and the keeper of a pool that reports stalls.

use super::{
    Arc, Gate, HOUR, Mutex, Relaxed, STARTS_KEEPER, builder, counting, explore, explore_both, long,
    pair, thread,
};

/// Race 1, the end of a search before a start hook: the first worker's start hook needs the second
/// of two tasks. Another worker runs it.
#[test]
fn a_slow_start_hook_versus_submit() {
    explore_both(1, 1, || {
        let gate = Gate::new();
        let waiting = gate.clone();
        let pool = builder(0, 2)
            .on_worker_start(move |index| {
                if index == 0 {
                    waiting.pass();
                }
            })
            .build();
        let ran = Relaxed::new();
        for _ in 0..2 {
            let (gate, task) = (gate.clone(), counting(&ran));
            pool.execute(move || {
                gate.open();
                task();
            });
        }
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Two tasks that need each other, while each worker that starts or stops calls hooks.
#[test]
fn interdependent_tasks_with_hooks() {
    explore_both(1, 1, || {
        let (started, stopped) = (Relaxed::new(), Relaxed::new());
        let (start, stop) = (started.clone(), stopped.clone());
        let pool = builder(0, 2)
            .on_worker_start(move |_| start.increment())
            .on_worker_stop(move |_| stop.increment())
            .build();
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
        assert_eq!(started.get(), 2);
        assert_eq!(stopped.get(), 2);
    });
}

/// The only worker retires, and its stop hook needs a task that is submitted meanwhile. Its
/// successor runs it.
#[test]
fn a_slow_stop_hook_versus_submit() {
    explore_both(2, 2, || {
        let gate = Gate::new();
        let waiting = gate.clone();
        let pool = builder(0, 1).on_worker_stop(move |_| waiting.pass()).build();
        pool.execute(|| ());
        let time = {
            let shared = Arc::clone(pool.shared());
            thread::spawn(move || shared.idle.expire_all())
        };
        pool.execute(move || gate.open());
        time.join().unwrap();
        pool.shutdown_join();
    });
}

/// Each task uses up its worker's quota. Hooks with the same index never overlap.
#[test]
fn recycle_with_hooks() {
    explore_both(2, 2, || {
        let in_use = Arc::new(Mutex::new([false; 3]));
        let freed = Arc::clone(&in_use);
        let pool = builder(0, 1)
            .max_tasks_per_worker(1)
            .on_worker_start(move |index| {
                let before = std::mem::replace(&mut in_use.lock().unwrap()[index], true);
                assert!(!before, "the index has an owner");
            })
            .on_worker_stop(move |index| {
                thread::yield_now();
                freed.lock().unwrap()[index] = false;
            })
            .build();
        let ran = Relaxed::new();
        for _ in 0..2 {
            pool.execute(counting(&ran));
        }
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// Race 8: a worker takes the entry of a task while the waiting worker claims the task. The one
/// that runs it enters the context, and the other does not.
#[test]
fn the_context_of_an_awaited_task_versus_its_entry() {
    for has_local_queues in [false, true] {
        explore(if has_local_queues { long(1) } else { 0 }, move || {
            let entered = Relaxed::new();
            let enters = entered.clone();
            let mut builder = builder(2, 2).task_context(move || {
                let enters = enters.clone();
                move || enters.increment()
            });
            builder.has_local_queues = has_local_queues;
            let pool = builder.build();
            assert_eq!(pool.start_core_threads(), 2);
            let (inner, seen) = (pool.clone(), entered.clone());
            pool.execute(move || {
                // In the context of both tasks.
                inner.evaluate(move || assert!(seen.get() > 0)).await_complete();
            });
            pool.join();
            assert_eq!(entered.get(), 2);
            pool.shutdown_join();
        });
    }
}

/// Race 42: the keeper falls asleep while the pool's last task ends. It leaves, or the shutdown
/// would wait for it.
#[test]
fn the_keeper_versus_the_end_of_the_pool() {
    explore(2, || {
        STARTS_KEEPER.set(true);
        let pool = builder(0, 1).stall_report(HOUR, |_| ()).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.shutdown_join();
        assert_eq!(ran.get(), 1);
    });
}
