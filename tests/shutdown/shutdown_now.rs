//! When `shutdown_now` may be called, and where.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::{Drops, Gate, HOUR, LIMIT, block, settled, value, wait_until};
use crate::{MOMENT, busy, ends};
use elastipool::{Builder, RejectReason, Task, ThreadPool};

#[test]
fn shutdown_now_lets_a_running_closure_end() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        1
    });
    gate.wait_for(1);
    assert!(pool.shutdown_now().is_empty());
    assert!(!handle.is_finished());
    assert!(!pool.clone().shutdown_join_timeout(MOMENT), "it waits for it");
    gate.open();
    assert_eq!(value(handle), 1);
    ends(pool);
}

#[test]
fn shutdown_now_may_be_called_by_a_task_of_the_pool() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
    let (own, passes) = (pool.clone(), Arc::clone(&gate));
    let first = pool.evaluate(move || {
        passes.pass();
        sender.send(own.shutdown_now()).unwrap();
        own.is_closed()
    });
    gate.wait_for(1);
    let handles: Vec<_> = (0..3).map(|number| pool.evaluate(move || number)).collect();
    gate.open();
    assert!(value(first));
    let tasks = receiver.recv_timeout(LIMIT).unwrap();
    assert_eq!(tasks.len(), 3);
    ends(pool);
    tasks.into_iter().for_each(Task::run);
    assert_eq!(handles.into_iter().map(value).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn shutdown_now_may_be_called_twice() {
    let (pool, gate) = busy();
    pool.execute(|| ());
    assert_eq!(pool.shutdown_now().len(), 1);
    assert!(pool.shutdown_now().is_empty());
    assert_eq!(pool.stats().handed_back, 1);
    gate.open();
    ends(pool.clone());
    assert!(pool.shutdown_now().is_empty());
}

#[test]
fn shutdown_now_of_a_closed_pool_hands_back_what_it_has_not_begun() {
    let (pool, gate) = busy();
    pool.execute(|| ());
    pool.close();
    assert_eq!(pool.shutdown_now().len(), 1);
    gate.open();
    ends(pool);
}

#[test]
fn shutdown_now_ends_a_pool_without_work() {
    let pool = ThreadPool::new(2, 2, HOUR);
    assert!(pool.shutdown_now().is_empty());
    ends(pool);
    let pool = ThreadPool::new(2, 2, HOUR);
    assert_eq!(pool.start_core_threads(), 2);
    wait_until("both are idle", || pool.idle_worker_count() == 2);
    assert!(pool.shutdown_now().is_empty());
    // Without a further word.
    wait_until("both have gone", || pool.current_worker_count() == 0);
    ends(pool);
}

#[test]
fn shutdown_now_rejects_waiting_submitters() {
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = sizes.queue_capacity(1).build();
    let gate = block(&pool);
    pool.execute(|| ());
    let waits = pool.clone();
    let waiter = thread::spawn(move || waits.try_execute_for(|| (), HOUR).map_err(|e| e.reason()));
    // It may come after the shutdown: then it is rejected at once.
    thread::yield_now();
    assert_eq!(pool.shutdown_now().len(), 1);
    wait_until("it is rejected", || waiter.is_finished());
    assert_eq!(waiter.join().unwrap(), Err(RejectReason::Closed));
    gate.open();
    ends(pool);
}

#[cfg(target_os = "linux")]
#[test]
fn no_thread_is_left_after_shutdown_now() {
    use crate::common::threads_named;

    let pool = ThreadPool::new_named("right-now", 3, 3, HOUR);
    assert_eq!(pool.start_core_threads(), 3);
    wait_until("the workers and the keeper have their names", || threads_named("right-now") == 4);
    let gate = block(&pool);
    pool.execute(|| ());
    drop(pool.shutdown_now());
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    wait_until("the threads are gone", || threads_named("right-now") == 0);
}

/// Submitters in all ways: each task ran, came back, or was rejected.
#[test]
fn a_shutdown_among_submissions_loses_nothing() {
    const ROUNDS: usize = 200;
    for round in 0..ROUNDS {
        let pool = ThreadPool::new(round % 3, 1 + round % 3, HOUR);
        let (ran, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        let start = Gate::new();
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (pool, start) = (pool.clone(), Arc::clone(&start));
                let (ran, drops) = (Arc::clone(&ran), drops.clone());
                thread::spawn(move || {
                    start.meet(3);
                    let (mut handles, mut executed) = (Vec::new(), 0);
                    loop {
                        let task = || {
                            let (ran, guard) = (Arc::clone(&ran), drops.issue());
                            move || {
                                ran.fetch_add(1, Ordering::SeqCst);
                                drop(guard);
                            }
                        };
                        let Ok(handle) = pool.try_evaluate(task()) else { break };
                        handles.push(handle);
                        if pool.try_execute(task()).is_err() {
                            break;
                        }
                        executed += 1;
                        #[cfg(feature = "async")]
                        {
                            let task = task();
                            let Ok(handle) = pool.try_spawn_await(async move { task() }) else {
                                break;
                            };
                            handles.push(handle);
                        }
                    }
                    (handles, executed)
                })
            })
            .collect();
        start.meet(3);
        crate::common::dawdle(5_000);
        let tasks = pool.shutdown_now();
        let (mut handles, mut executed) = (Vec::new(), 0);
        for submitter in submitters {
            let (more, count) = submitter.join().unwrap();
            handles.extend(more);
            executed += count;
        }
        ends(pool.clone());
        let (accepted, given_back) = (handles.len() + executed, tasks.len());
        assert_eq!(ran.load(Ordering::SeqCst) + given_back, accepted);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.handed_back), (accepted - given_back, given_back));
        assert_eq!(stats.accepted(), accepted);
        if round % 2 == 0 {
            tasks.into_iter().for_each(Task::run);
            handles.into_iter().for_each(value);
            assert_eq!(ran.load(Ordering::SeqCst), accepted);
        } else {
            drop(tasks);
            // All of them: those without a handle, and the rejected ones, have no say.
            let values = handles.into_iter().map(settled).filter(Result::is_ok).count();
            assert!(values + executed >= ran.load(Ordering::SeqCst));
        }
        assert!(drops.count() >= accepted);
    }
}
