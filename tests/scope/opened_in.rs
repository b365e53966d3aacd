//! Scopes are opened in workers, hooks, futures and threads of all kinds.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::{Gate, HOUR, LIMIT, block, value, wait_until};
use crate::{assert_works, in_time, pool};
use elastipool::{Builder, Scope, ThreadPool, blocking, worker_index};

/// The wait for a task that another worker has begun is a blocking region.
#[test]
fn a_scope_opens_in_a_worker_of_its_pool() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let handle = pool.evaluate(move || {
            let (mut left, mut right) = (0, None);
            let (begun, is_back) = (Gate::new(), Gate::new());
            own.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    is_back.pass();
                    wait_until("the owner waits", || own.stats().blocked == 1);
                    left = 1;
                });
                // The worker that runs while the owner is blocked begins it.
                blocking(|| begun.meet(2));
                is_back.open();
                // This one the owner runs before it waits.
                scope.execute(|| right = Some(own.stats().blocked));
            });
            (left, right)
        });
        assert_eq!(value(handle), (1, Some(0)));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().blocked, 0);
        assert_works(pool);
    });
}

/// Each is opened in a worker of the other, and needs both.
#[test]
fn a_scope_opens_in_a_task_of_another_pool() {
    in_time(|| {
        let (one, other) = (pool(1), pool(1));
        let (inner, outer) = (one.clone(), other.clone());
        let handle = one.evaluate(move || {
            let mut number = 0;
            outer.scope(|scope| {
                scope.execute(|| inner.scope(|scope| scope.execute(|| number = 1)));
            });
            number
        });
        assert_eq!(value(handle), 1);
        assert_works(one);
        assert_works(other);
    });
}

#[test]
fn a_scope_opens_in_a_completed_future() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let handle = pool.complete(async move {
            let mut number = 0;
            own.scope(|scope| scope.execute(|| number = 1));
            number
        });
        assert_eq!(value(handle), 1);
        assert_works(pool);
    });
}

/// In its first poll and in a later one.
#[cfg(feature = "async")]
#[test]
fn a_scope_opens_in_a_poll_of_a_spawned_future() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let (trigger, triggered) = crate::common::triggered();
        let handle = pool.spawn_await(async move {
            let (mut first, mut second) = (0, 0);
            own.scope(|scope| scope.execute(|| first = 1));
            triggered.await;
            own.scope(|scope| scope.execute(|| second = 2));
            first + second
        });
        wait_until("it is pending", || trigger.waker().is_some());
        trigger.fire();
        assert_eq!(value(handle), 3);
        assert_works(pool);
    });
}

#[test]
fn a_scope_opens_in_a_start_hook() {
    in_time(|| {
        let place = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let takes = Arc::clone(&place);
        let pool = Builder::new()
            .core_size(1)
            .max_size(1)
            .keep_alive(HOUR)
            .on_worker_start(move |_| {
                let own = takes.lock().unwrap().take();
                if let Some(own) = own {
                    let mut number = 0;
                    own.scope(|scope| scope.execute(|| number = 1));
                    sender.send(number).unwrap();
                }
            })
            .build();
        *place.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(1));
        assert_works(pool);
    });
}

#[test]
fn a_scope_opens_in_a_stop_hook() {
    in_time(|| {
        let place = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let takes = Arc::clone(&place);
        let pool = Builder::new()
            .core_size(0)
            .max_size(2)
            .keep_alive(Duration::from_millis(1))
            .on_worker_stop(move |_| {
                let own = takes.lock().unwrap().take();
                if let Some(own) = own {
                    let mut number = 0;
                    own.scope(|scope| scope.execute(|| number = 1));
                    sender.send(number).unwrap();
                }
            })
            .build();
        *place.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(1));
        assert_works(pool);
    });
}

#[test]
fn scopes_open_in_several_threads_over_and_over() {
    const ROUNDS: usize = 300;
    in_time(|| {
        let pool = pool(2);
        thread::scope(|threads| {
            for thread in 0..3 {
                let pool = &pool;
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut numbers = [0; 3];
                        pool.scope(|scope| {
                            for number in &mut numbers {
                                scope.execute(move || *number = thread * ROUNDS + round);
                            }
                        });
                        assert_eq!(numbers, [thread * ROUNDS + round; 3]);
                    }
                });
            }
        });
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 3 * 3 * ROUNDS);
    });
}

/// Opens a binary tree of scopes, and counts the tasks.
fn open_tree(pool: &ThreadPool, depth: u32, visit: &(dyn Fn() + Sync)) {
    visit();
    if depth > 0 {
        pool.scope(|scope| {
            for _ in 0..2 {
                scope.execute(move || open_tree(pool, depth - 1, visit));
            }
        });
    }
}

/// The only worker is busy: all tasks run on the thread that opens the outermost scope. It is no
/// worker meanwhile.
#[test]
fn scopes_open_in_tasks_that_their_opener_runs() {
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let opener = thread::current().id();
        open_tree(&pool, 6, &|| {
            assert_eq!((thread::current().id(), worker_index()), (opener, None));
        });
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.queued, stats.active), (126, 0, 1));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (127, 0));
        assert_works(pool);
    });
}

/// The only worker is busy, and stays so.
#[test]
fn a_task_that_its_scopes_opener_waits_for_runs_there() {
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let opener = thread::current().id();
        pool.scope(|scope| {
            scope.execute(|| {
                let ran_on = pool.scope(|inner| {
                    let awaited = inner.evaluate(|| (thread::current().id(), worker_index()));
                    inner.execute(|| ());
                    awaited.await_complete()
                });
                assert_eq!(ran_on, (opener, None));
                let panicked = pool.scope(|inner| {
                    inner.evaluate(|| -> () { panic!("on purpose") }).try_await_complete()
                });
                assert!(panicked.is_err_and(|error| error.is_panic()));
            });
        });
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.in_flight()), (4, 1, 0));
        assert_works(pool);
    });
}

/// While the opener runs the last task, other threads that this task waits for submit to its scope.
#[test]
fn a_scopes_last_task_has_others_submitted_elsewhere() {
    in_time(|| {
        let (pool, other) = (pool(1), pool(1));
        let gate = block(&pool);
        for _ in 0..100 {
            let mut ran = [false; 2];
            let [by_thread, by_pool] = &mut ran;
            pool.scope(|scope| {
                let other = &other;
                scope.execute(move || {
                    thread::scope(|threads| {
                        threads.spawn(|| scope.execute(|| *by_thread = true));
                    });
                    other.scope(|inner| inner.execute(|| scope.execute(|| *by_pool = true)));
                });
            });
            assert_eq!(ran, [true; 2]);
        }
        gate.open();
        assert_works(pool);
        assert_works(other);
    });
}

/// The tasks of each innermost scope need each other.
#[test]
fn scopes_in_tasks_that_their_opener_runs_get_workers() {
    in_time(|| {
        let pool = pool(2);
        for _ in 0..200 {
            pool.scope(|scope| {
                scope.execute(|| {
                    let gate = Gate::new();
                    pool.scope(|scope| {
                        for _ in 0..2 {
                            scope.execute(|| gate.meet(2));
                        }
                    });
                });
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 600);
        assert_works(pool);
    });
}

/// Each task opens a scope of the other pool.
#[test]
fn scopes_of_two_pools_nest_outside_of_both() {
    fn open(pools: [&ThreadPool; 2], depth: u32) {
        let [pool, other] = pools;
        if depth > 0 {
            pool.scope(|scope| {
                for _ in 0..2 {
                    scope.execute(move || open([other, pool], depth - 1));
                }
            });
        }
    }
    in_time(|| {
        let pools = [pool(1), pool(1)];
        for _ in 0..20 {
            open([&pools[0], &pools[1]], 6);
        }
        for (pool, completed) in pools.into_iter().zip([20 * (2 + 8 + 32), 20 * (4 + 16 + 64)]) {
            assert!(pool.join_timeout(LIMIT));
            assert_eq!((pool.stats().completed, pool.stats().in_flight()), (completed, 0));
            assert_works(pool);
        }
    });
}

/// A task that its opener runs submits to the scope that it is of.
#[test]
fn tasks_that_their_opener_runs_submit_to_their_scope() {
    fn submit<'scope>(pool: &'scope ThreadPool, scope: &'scope Scope<'scope, '_>, depth: u32) {
        if depth > 0 {
            pool.scope(|inner| inner.execute(|| ()));
            for _ in 0..2 {
                scope.execute(move || submit(pool, scope, depth - 1));
            }
        }
    }
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        pool.scope(|scope| scope.execute(|| submit(&pool, scope, 6)));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (1 + 127 + 63, 0));
        assert_works(pool);
    });
}

/// The first pool's worker is busy, so the thread runs the first scope's tasks, and their entries
/// stay in that pool's queue.
#[test]
fn after_a_scope_of_another_pool_a_worker_starts_the_next_ones_tasks() {
    in_time(|| {
        let [first, second] = [pool(1), pool(1)];
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        first.execute(move || passes.pass());
        gate.wait_for(1);
        for _ in 0..3 {
            first.scope(|scope| (0..5).for_each(|_| scope.execute(|| ())));
            second.scope(|scope| {
                let started = Gate::new();
                let starts = Arc::clone(&started);
                scope.execute(move || starts.meet(1));
                started.wait_for(1);
            });
        }
        gate.open();
        assert_works(first);
        assert_works(second);
    });
}
