//! Many tasks in one step.

use super::{Relaxed, builder, counting, explore, explore_both, pair, pool, thread};

/// Race 1: one fence follows all pushes. The worker rests between two of them, or before the notification.
#[test]
fn a_batch_versus_idle() {
    explore_both(2, 2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        for round in 1..=2 {
            pool.execute_all([(); 2].map(|()| counting(&ran)));
            pool.join();
            assert_eq!(ran.get(), 2 * round);
        }
        pool.shutdown_join();
    });
}

/// Race 1, the end of a search. The tasks need each other: the second must not wait behind the first.
#[test]
fn interdependent_tasks_of_a_batch_get_a_worker_each() {
    for core_size in [0, 2] {
        explore(1, move || {
            let pool = pool(core_size, 2);
            pool.execute_all(pair());
            pool.shutdown_join();
        });
    }
}

/// Race 10: all of a batch are accepted, or none.
#[test]
fn close_versus_a_batch() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let closer = {
            let pool = pool.clone();
            thread::spawn(move || pool.close())
        };
        let tasks = [(); 2].map(|()| counting(&ran));
        let accepted = pool
            .try_execute_all(tasks)
            .map_or_else(|rejected| 2 - rejected.into_task().len(), |()| 2);
        closer.join().unwrap();
        pool.shutdown_join();
        assert!([0, 2].contains(&accepted));
        assert_eq!(ran.get(), accepted);
    });
}

/// Race 29: a batch acquires several permits at once, and waits for the others.
#[test]
fn a_batch_versus_a_full_queue() {
    for capacity in [0, 1] {
        explore(2, move || {
            let pool = builder(1, 1).queue_capacity(capacity).build();
            let ran = Relaxed::new();
            pool.execute_all([(); 3].map(|()| counting(&ran)));
            pool.join();
            assert_eq!(ran.get(), 3);
            pool.shutdown_join();
        });
    }
}

/// Race 20: a task submits a batch, which is more than its worker's credit.
#[test]
fn join_versus_a_batch_from_inside() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        for round in 1..=2 {
            let (inner, tasks) = (pool.clone(), [(); 3].map(|()| counting(&ran)));
            pool.execute(move || inner.execute_all(tasks));
            pool.join();
            assert_eq!(ran.get(), 3 * round);
        }
        pool.shutdown_join();
    });
}
