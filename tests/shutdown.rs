//! Ways to an end: `shutdown_now`, which gives back what has not begun, and what `shutdown_join` waits for.

mod common;

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use common::threads_named;
use common::{Drops, Gate, HOUR, LIMIT, block, refused, settled, value, wait_until};
use elastipool::{Builder, JoinHandle, RejectReason, Task, ThreadPool};

/// A time that a wait may well take. What it waits for is held back by a gate.
const MOMENT: Duration = Duration::from_millis(20);

/// A pool of one, whose worker is busy until the gate opens.
fn busy() -> (ThreadPool, Arc<Gate>) {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    (pool, gate)
}

#[track_caller]
fn cancelled<T: Debug>(handle: JoinHandle<T>) {
    assert!(settled(handle).expect_err("there can be no value").is_cancelled());
}

/// Cancelled, and not some time.
#[track_caller]
fn cancelled_by_now<T: Debug>(handle: JoinHandle<T>) {
    assert!(handle.is_finished());
    cancelled(handle);
}

/// Nothing is left.
#[track_caller]
fn ends(pool: ThreadPool) {
    let looker = pool.clone();
    assert!(pool.shutdown_join_timeout(LIMIT), "{:?}", looker.stats());
    let stats = looker.stats();
    assert_eq!((stats.workers, stats.in_flight()), (0, 0));
}

// ----- shutdown_now: what was queued -----

#[test]
fn queued_tasks_come_back_in_order() {
    let (pool, gate) = busy();
    let log = Arc::new(Mutex::new(Vec::new()));
    for number in 0..5 {
        let log = Arc::clone(&log);
        pool.execute(move || log.lock().unwrap().push(number));
    }
    let other = pool.clone();
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 5);
    assert!(pool.is_closed() && other.is_closed());
    refused(other.try_execute(|| ()), RejectReason::Closed);
    let stats = pool.stats();
    assert_eq!((stats.handed_back, stats.queued, stats.active), (5, 0, 1));
    assert_eq!(stats.accepted(), 6);
    gate.open();
    ends(other);
    assert!(log.lock().unwrap().is_empty(), "nobody has run them");
    tasks.into_iter().for_each(Task::run);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4]);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.handed_back, stats.accepted()), (1, 5, 6));
}

#[test]
fn a_task_that_is_run_settles_its_handle() {
    let (pool, gate) = busy();
    let here = thread::current().id();
    let handles =
        [pool.evaluate(|| thread::current().id()), pool.complete(async { thread::current().id() })];
    for task in pool.shutdown_now() {
        task.run();
    }
    for handle in handles {
        assert!(handle.is_finished());
        assert_eq!(value(handle), here);
    }
    gate.open();
    ends(pool);
}

#[test]
fn a_task_that_is_dropped_cancels_its_handle() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    let (one, other) = (drops.issue(), drops.issue());
    let handles = [pool.evaluate(move || drop(one)), pool.complete(async move { drop(other) })];
    let tasks = pool.shutdown_now();
    assert_eq!((tasks.len(), drops.count()), (2, 0));
    assert!(handles.iter().all(|handle| !handle.is_finished()));
    drop(tasks);
    assert_eq!(drops.count(), 2);
    handles.into_iter().for_each(cancelled_by_now);
    gate.open();
    ends(pool);
}

#[test]
fn a_task_whose_handle_is_cancelled_does_not_run() {
    let (pool, gate) = busy();
    let handle = pool.evaluate(|| panic!("it runs"));
    let tasks = pool.shutdown_now();
    handle.cancel();
    cancelled_by_now(handle);
    tasks.into_iter().for_each(Task::run);
    gate.open();
    ends(pool);
}

#[test]
fn tasks_that_were_cancelled_before_do_not_come_back() {
    let (pool, gate) = busy();
    let drops = Drops::default();
    let guard = drops.issue();
    let handle = pool.evaluate(move || drop(guard));
    handle.cancel();
    let stays = pool.evaluate(|| 1);
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    tasks.into_iter().for_each(Task::run);
    assert_eq!(value(stays), 1);
    cancelled(handle);
    gate.open();
    ends(pool.clone());
    assert_eq!(drops.count(), 1);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.handed_back), (1, 1, 1));
}

#[test]
fn no_join_waits_for_what_was_given_back() {
    let (pool, gate) = busy();
    let handle = pool.evaluate(|| 1);
    let tasks = pool.shutdown_now();
    assert!(!pool.join_timeout(Duration::ZERO), "it waits for what runs");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    ends(pool);
    assert!(!handle.is_finished());
    tasks.into_iter().for_each(Task::run);
    assert_eq!(value(handle), 1);
}

#[test]
fn a_task_says_whose_it_was_and_may_go_anywhere() {
    fn goes_anywhere<T: Send + Debug + 'static>(_: &T) {}

    let pool = ThreadPool::new_named("givers", 1, 1, HOUR);
    let gate = block(&pool);
    let handle = pool.evaluate(|| thread::current().id());
    let task = pool.shutdown_now().pop().unwrap();
    goes_anywhere(&task);
    let text = format!("{task:?}");
    assert!(text.contains("Task") && text.contains("givers"), "{text}");
    let other = thread::spawn(move || {
        task.run();
        thread::current().id()
    });
    assert_eq!(value(handle), other.join().unwrap());
    gate.open();
    ends(pool);
}

#[test]
fn a_panic_in_a_task_that_is_run_does_not_reach_its_runner() {
    let payloads = Arc::new(Mutex::new(Vec::new()));
    let gets = Arc::clone(&payloads);
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let handled = sizes.panic_handler(move |payload| gets.lock().unwrap().push(payload)).build();
    for (pool, is_handled) in [(handled, true), (ThreadPool::new(1, 1, HOUR), false)] {
        let gate = block(&pool);
        let handle = pool.evaluate(|| -> u8 { panic!("for the handle") });
        pool.execute(|| panic!("for the handler"));
        drop(pool.evaluate(|| -> u8 { panic!("for the handler") }));
        pool.shutdown_now().into_iter().for_each(Task::run);
        let payload = settled(handle).unwrap_err().into_panic();
        assert_eq!(payload.downcast_ref(), Some(&"for the handle"));
        let payloads = std::mem::take(&mut *payloads.lock().unwrap());
        assert_eq!(payloads.len(), if is_handled { 2 } else { 0 });
        for payload in payloads {
            assert_eq!(payload.downcast_ref(), Some(&"for the handler"));
        }
        gate.open();
        ends(pool);
    }
}

#[test]
fn a_task_whose_destructor_panics_can_be_dropped() {
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("dropped the bomb");
        }
    }

    let (pool, gate) = busy();
    let count = Arc::new(AtomicUsize::new(0));
    let (one, other) = (Bomb(Arc::clone(&count)), Bomb(Arc::clone(&count)));
    pool.execute(move || std::mem::forget(one));
    let handle = pool.evaluate(move || std::mem::forget(other));
    drop(pool.shutdown_now());
    cancelled_by_now(handle);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    gate.open();
    ends(pool);
}

// ----- shutdown_now: when and where -----

#[test]
fn a_closure_that_runs_runs_to_its_end() {
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
fn a_pool_is_shut_down_by_its_own_task() {
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
fn a_pool_is_shut_down_twice() {
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
fn a_closed_pool_gives_back_what_it_has_not_begun() {
    let (pool, gate) = busy();
    pool.execute(|| ());
    pool.close();
    assert_eq!(pool.shutdown_now().len(), 1);
    gate.open();
    ends(pool);
}

#[test]
fn a_pool_without_work_is_shut_down() {
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
fn whoever_waits_for_room_is_told() {
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = sizes.queue_capacity(1).build();
    let gate = block(&pool);
    pool.execute(|| ());
    let waits = pool.clone();
    let waiter = thread::spawn(move || waits.try_execute_for(|| (), HOUR).map_err(|e| e.reason()));
    // It may come later than that: then it is told at once.
    thread::yield_now();
    assert_eq!(pool.shutdown_now().len(), 1);
    wait_until("it is told", || waiter.is_finished());
    assert_eq!(waiter.join().unwrap(), Err(RejectReason::Closed));
    gate.open();
    ends(pool);
}

#[cfg(target_os = "linux")]
#[test]
fn no_thread_is_left() {
    let pool = ThreadPool::new_named("right-now", 3, 3, HOUR);
    assert_eq!(pool.start_core_threads(), 3);
    wait_until("the threads have their names", || threads_named("right-now") == 3);
    let gate = block(&pool);
    pool.execute(|| ());
    drop(pool.shutdown_now());
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    wait_until("the threads are gone", || threads_named("right-now") == 0);
}

/// Submitters in all ways: each accepted task ran, came back, or was told.
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
        common::dawdle(5_000);
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

// ----- shutdown_now: futures -----

#[cfg(feature = "async")]
mod futures_now {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::{Context, Poll, Wake, Waker};

    use common::{Teller, told};

    use super::*;

    /// A future that waits, and counts when it is dropped.
    fn spawn_told(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<()>, Teller) {
        let (teller, told) = told();
        let guard = drops.issue();
        let handle = pool.spawn_await(async move {
            let _captured = guard;
            told.await;
        });
        (handle, teller)
    }

    #[test]
    fn a_future_that_was_not_polled_comes_back_and_can_be_run() {
        let (pool, gate) = busy();
        let ready = pool.spawn_await(async { 1 });
        let (teller, told) = told();
        let waits = pool.spawn_await(async move {
            told.await;
            2
        });
        let drops = Drops::default();
        let (dropped, _teller) = spawn_told(&pool, &drops);
        let mut tasks = pool.shutdown_now().into_iter();
        assert_eq!(tasks.len(), 3);
        tasks.next().unwrap().run();
        assert_eq!(value(ready), 1);

        let second = tasks.next().unwrap();
        let runner = thread::spawn(move || second.run());
        wait_until("it is polled", || teller.polls() == 1);
        assert!(!waits.is_finished() && !runner.is_finished());
        teller.tell();
        assert_eq!(value(waits), 2);
        runner.join().unwrap();

        assert_eq!(drops.count(), 0);
        drop(tasks);
        assert_eq!(drops.count(), 1);
        cancelled_by_now(dropped);
        gate.open();
        ends(pool.clone());
        assert_eq!(pool.stats().handed_back, 3);
    }

    #[test]
    fn a_future_whose_handle_is_cancelled_is_not_polled() {
        let (pool, gate) = busy();
        let drops = Drops::default();
        // Before the shutdown, and after it.
        let (before, first) = spawn_told(&pool, &drops);
        let (after, second) = spawn_told(&pool, &drops);
        before.cancel();
        let tasks = pool.shutdown_now();
        assert_eq!(tasks.len(), 1);
        after.cancel();
        cancelled_by_now(before);
        cancelled_by_now(after);
        tasks.into_iter().for_each(Task::run);
        assert_eq!((first.polls(), second.polls(), drops.count()), (0, 0, 2));
        gate.open();
        ends(pool);
    }

    /// The handle of a future that is not being polled resolves at once.
    #[test]
    fn a_future_that_is_run_elsewhere_can_be_cancelled_while_it_waits() {
        let (pool, gate) = busy();
        let drops = Drops::default();
        let (handle, teller) = spawn_told(&pool, &drops);
        let task = pool.shutdown_now().pop().unwrap();
        let runner = thread::spawn(move || task.run());
        wait_until("it is pending", || teller.waker().is_some());
        handle.cancel();
        let result = handle.await_complete_timeout(LIMIT / 10);
        teller.tell();
        runner.join().unwrap();
        gate.open();
        ends(pool);
        assert!(result.expect("cancelled").unwrap_err().is_cancelled());
    }

    #[test]
    fn a_panic_of_a_future_that_is_run_goes_to_its_handle() {
        let (pool, gate) = busy();
        let handle = pool.spawn_await(async { panic!("for the handle") });
        pool.spawn(async { panic!("for nobody") });
        pool.shutdown_now().into_iter().for_each(Task::run);
        let error = settled(handle).unwrap_err();
        assert_eq!(error.to_string(), "the task panicked: for the handle");
        gate.open();
        ends(pool);
    }

    #[test]
    fn futures_that_wait_are_cancelled() {
        const COUNT: usize = 40;
        let pool = ThreadPool::new(1, 2, HOUR);
        let drops = Drops::default();
        let (handles, tellers): (Vec<_>, Vec<_>) =
            (0..COUNT).map(|_| spawn_told(&pool, &drops)).unzip();
        wait_until("all are polled", || tellers.iter().all(|teller| teller.polls() == 1));
        // And not being polled any more.
        wait_until("nobody is busy", || {
            pool.queued_count() == 0 && pool.idle_worker_count() == pool.current_worker_count()
        });
        assert!(pool.shutdown_now().is_empty());
        handles.into_iter().for_each(cancelled_by_now);
        ends(pool.clone());
        assert_eq!(drops.count(), COUNT, "dropped before that returned");
        tellers.iter().for_each(Teller::tell);
        assert!(tellers.iter().all(|teller| teller.polls() == 1));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.completed, stats.handed_back), (COUNT, 0, 0));
    }

    #[test]
    fn futures_that_were_woken_are_cancelled() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let drops = Drops::default();
        let (handles, tellers): (Vec<_>, Vec<_>) =
            (0..5).map(|_| spawn_told(&pool, &drops)).unzip();
        wait_until("all are pending", || pool.stats().pending == 5);
        let gate = block(&pool);
        tellers.iter().for_each(Teller::tell);
        assert_eq!(pool.stats().queued, 5);
        assert!(pool.shutdown_now().is_empty(), "they have begun");
        handles.into_iter().for_each(cancelled_by_now);
        assert_eq!(drops.count(), 5);
        assert!(tellers.iter().all(|teller| teller.polls() == 1));
        gate.open();
        ends(pool.clone());
        assert_eq!(pool.stats().cancelled, 5);
    }

    /// One thread has found the futures that wait, and is held up where it cancels the first of them: by the waker of
    /// whoever awaits that one. The others are in the queue, where another thread finds them.
    #[test]
    fn futures_that_were_woken_are_not_polled_by_a_second_shutdown() {
        struct HoldsUp(AtomicBool, Arc<Gate>);
        impl Wake for HoldsUp {
            fn wake(self: Arc<Self>) {
                if !self.0.swap(true, Ordering::SeqCst) {
                    self.1.pass();
                }
            }
        }
        let pool = ThreadPool::new(1, 1, HOUR);
        let (drops, held_up) = (Drops::default(), Gate::new());
        let (mut handles, tellers): (Vec<_>, Vec<_>) =
            (0..5).map(|_| spawn_told(&pool, &drops)).unzip();
        wait_until("all are pending", || pool.stats().pending == 5);
        let gate = block(&pool);
        tellers.iter().for_each(Teller::tell);
        let waker = Waker::from(Arc::new(HoldsUp(AtomicBool::new(false), Arc::clone(&held_up))));
        for handle in &mut handles {
            assert!(Pin::new(handle).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        thread::scope(|scope| {
            let first = scope.spawn(|| pool.shutdown_now());
            held_up.wait_for(1);
            assert!(pool.shutdown_now().is_empty());
            held_up.open();
            assert!(first.join().unwrap().is_empty());
        });
        assert!(tellers.iter().all(|teller| teller.polls() == 1));
        handles.into_iter().for_each(cancelled_by_now);
        assert_eq!(drops.count(), 5);
        gate.open();
        ends(pool);
    }

    /// In its first poll, or in a later one.
    #[test]
    fn a_future_that_is_being_polled_is_dropped_after_that() {
        for held_in in [1, 2] {
            let pool = ThreadPool::new(1, 1, HOUR);
            let (gate, drops) = (Gate::new(), Drops::default());
            let (passes, guard) = (Arc::clone(&gate), drops.issue());
            let mut polls = 0;
            let handle = pool.spawn_await(poll_fn(move |context| -> Poll<()> {
                let _captured = &guard;
                polls += 1;
                context.waker().wake_by_ref();
                if polls == held_in {
                    passes.pass();
                }
                assert!(polls <= held_in);
                Poll::Pending
            }));
            gate.wait_for(1);
            assert!(pool.shutdown_now().is_empty());
            assert_eq!((drops.count(), handle.is_finished()), (0, false));
            gate.open();
            cancelled(handle);
            ends(pool.clone());
            assert_eq!((drops.count(), pool.stats().cancelled), (1, 1));
        }
    }

    #[test]
    fn a_future_that_becomes_ready_in_that_poll_has_its_output() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let handle = pool.spawn_await(async move {
            passes.pass();
            1
        });
        gate.wait_for(1);
        assert!(pool.shutdown_now().is_empty());
        gate.open();
        assert_eq!(value(handle), 1);
        ends(pool);
    }

    /// Wakes, first polls and the shutdown, all at once.
    #[test]
    fn a_shutdown_among_wakes_settles_every_handle() {
        for round in 0..200 {
            let pool = ThreadPool::new(round % 2, 2, HOUR);
            let drops = Drops::default();
            let (handles, tellers): (Vec<_>, Vec<_>) =
                (0..10).map(|_| spawn_told(&pool, &drops)).unzip();
            let start = Gate::new();
            let mut tasks = Vec::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.meet(2);
                    tellers.iter().for_each(Teller::tell);
                });
                start.meet(2);
                common::dawdle(500);
                tasks = pool.shutdown_now();
            });
            ends(pool.clone());
            let given_back = tasks.len();
            assert_eq!(drops.count(), 10 - given_back);
            drop(tasks);
            let ready = handles.into_iter().map(settled).filter(Result::is_ok).count();
            assert_eq!(drops.count(), 10);
            let stats = pool.stats();
            assert_eq!((stats.completed, stats.handed_back), (ready, given_back));
            assert_eq!(stats.cancelled, 10 - ready - given_back);
        }
    }
}

// ----- shutdown_join -----

#[test]
fn after_the_deadline_the_drain_goes_on() {
    let (pool, gate) = busy();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let ran = Arc::clone(&ran);
        pool.execute(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    }
    let before = Instant::now();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    assert!(before.elapsed() >= MOMENT);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    gate.open();
    wait_until("the tasks run", || ran.load(Ordering::SeqCst) == 10);
}

/// One after the other, and two at the same time.
#[test]
fn everybody_waits_for_the_end() {
    let (pool, gate) = busy();
    pool.close();
    assert!(!pool.clone().shutdown_join_timeout(MOMENT));
    assert!(!pool.clone().shutdown_join_timeout(MOMENT), "the second one, too");
    let is_open = Arc::new(AtomicBool::new(false));
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let (pool, is_open) = (pool.clone(), Arc::clone(&is_open));
            thread::spawn(move || {
                pool.shutdown_join();
                assert!(is_open.load(Ordering::SeqCst), "it has not waited");
            })
        })
        .collect();
    thread::sleep(MOMENT);
    is_open.store(true, Ordering::SeqCst);
    gate.open();
    for waiter in waiters {
        wait_until("it returns", || waiter.is_finished());
        waiter.join().unwrap();
    }
    ends(pool);
}

/// It is told, and does not look from time to time: whether a task or a stop hook is the last to end.
#[test]
fn the_end_is_noticed_within_milliseconds() {
    for hook_is_last in [false, true] {
        let mut delays: Vec<_> = (0..15)
            .map(|_| {
                let (sender, end) = mpsc::channel();
                let last = move || {
                    // The other thread waits by then.
                    thread::sleep(Duration::from_millis(5));
                    sender.send(Instant::now()).unwrap();
                };
                let sizes = Builder::new().core_size(2).max_size(2).keep_alive(HOUR);
                let pool = if hook_is_last {
                    let pool = sizes.on_worker_stop(move |_| last()).build();
                    pool.execute(|| ());
                    pool
                } else {
                    let pool = sizes.build();
                    pool.execute(last);
                    pool
                };
                assert!(pool.shutdown_join_timeout(LIMIT));
                end.recv().unwrap().elapsed()
            })
            .collect();
        delays.sort();
        assert!(delays[delays.len() / 2] < Duration::from_millis(50), "{delays:?}");
    }
}
