//! `pause` and `resume`: queued work of a view waits, running work ends.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{Gate, HOUR, block, joined, panic_text, wait_until, wait_until_asleep};
use elastipool::{Builder, RejectReason, ThreadPool, blocking};

/// Handles of the default view and of another one, each of a pool of its own with this number of
/// workers.
fn handles(core_size: usize, max_size: usize) -> [ThreadPool; 2] {
    let [pool, other] = [(); 2].map(|()| ThreadPool::new(core_size, max_size, HOUR));
    [pool, ThreadPool::clone(&other.view().name("imports").build())]
}

fn count(pool: &ThreadPool, tasks: usize) -> Arc<AtomicUsize> {
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..tasks {
        let ran = Arc::clone(&ran);
        pool.execute(move || _ = ran.fetch_add(1, Ordering::SeqCst));
    }
    ran
}

#[test]
fn queued_tasks_wait_and_all_run_after_it() {
    for pool in handles(2, 4) {
        pool.pause();
        pool.pause();
        let ran = count(&pool, 100);
        let handle = pool.evaluate(|| 7);
        assert!(pool.is_paused());
        // Time for a worker to take one, which must not happen.
        thread::sleep(Duration::from_millis(2));
        assert_eq!((ran.load(Ordering::SeqCst), pool.queued_count()), (0, 101));
        pool.resume();
        assert_eq!(handle.await_complete(), 7);
        assert!(!pool.is_paused());
        pool.join();
        assert_eq!(ran.load(Ordering::SeqCst), 100);
        pool.shutdown_join();
    }
}

/// All workers at once, not one after another (law 1).
#[test]
fn queued_tasks_start_at_once_after_it() {
    for pool in handles(0, 4) {
        for _ in 0..50 {
            pool.pause();
            let gate = Gate::new();
            for _ in 0..4 {
                let gate = Arc::clone(&gate);
                pool.execute(move || gate.meet(4));
            }
            pool.resume();
            pool.join();
        }
        pool.shutdown_join();
    }
}

/// Also in a pool that has never had a view, where workers take tasks without the policy of the
/// views until then.
#[test]
fn no_task_that_comes_after_it_starts() {
    for round in 0..200 {
        let pool = ThreadPool::new(2, 2, HOUR);
        let pool = if round % 2 == 0 { pool } else { ThreadPool::clone(&pool.view().build()) };
        // Workers that look for the next task all the time.
        let feeder = {
            let stop = Arc::new(AtomicBool::new(false));
            let (pool, stopped) = (pool.clone(), Arc::clone(&stop));
            let feeder = thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    pool.execute(|| ());
                    common::dawdle(50);
                }
            });
            (feeder, stop)
        };
        wait_until("tasks run", || pool.stats().completed > 5);
        let resumes = Arc::new(AtomicBool::new(false));
        pool.pause();
        let early = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let (resumes, early) = (Arc::clone(&resumes), Arc::clone(&early));
            pool.execute(move || {
                early.fetch_add(usize::from(!resumes.load(Ordering::SeqCst)), Ordering::SeqCst);
            });
        }
        common::dawdle(5000);
        resumes.store(true, Ordering::SeqCst);
        pool.resume();
        feeder.1.store(true, Ordering::Relaxed);
        joined(feeder.0);
        pool.join();
        assert_eq!(early.load(Ordering::SeqCst), 0, "in round {round}");
        pool.shutdown_join();
    }
}

#[test]
fn running_tasks_end_and_other_views_go_on() {
    let pool = ThreadPool::new(0, 2, HOUR);
    let view = pool.view().limit(1).build();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let running = view.evaluate(move || {
        // It gives its place away, and needs one to go on.
        blocking(|| passes.pass());
        1
    });
    gate.wait_for(1);
    view.pause();
    let queued = view.evaluate(|| 2);
    gate.open();
    assert_eq!(running.await_complete(), 1);
    assert_eq!(pool.evaluate(|| 3).await_complete(), 3);
    assert_eq!(pool.view().build().evaluate(|| 4).await_complete(), 4);
    assert!(!queued.is_finished());
    pool.pause();
    view.resume();
    assert_eq!(queued.await_complete(), 2, "the default view is paused, and this one is not");
    pool.shutdown_join();
}

/// What a task waits for is a part of it: the waiting worker runs it (law 10).
#[test]
fn a_running_task_does_not_wait_for_a_paused_one() {
    for pool in handles(0, 2) {
        let (gate, inner) = (Gate::new(), pool.clone());
        let passes = Arc::clone(&gate);
        let outer = pool.evaluate(move || {
            passes.pass();
            let sum = inner.scope(|scope| {
                let one = scope.evaluate(|| 1);
                one.await_complete() + inner.evaluate(|| 2).await_complete()
            });
            let group = inner.group::<()>();
            group.execute(|| Ok(())).unwrap();
            group.wait().unwrap();
            sum
        });
        gate.wait_for(1);
        pool.pause();
        gate.open();
        assert_eq!(outer.await_complete(), 3);
        let mut on_this_thread = 0;
        pool.scope(|scope| scope.execute(|| on_this_thread = 4));
        assert_eq!(on_this_thread, 4, "at the end of the scope");
        pool.shutdown_join();
    }
}

#[cfg(feature = "async")]
#[test]
fn a_woken_future_waits_too() {
    for pool in handles(1, 1) {
        let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
        let handle = pool.spawn_await(receiver);
        wait_until("it is pending", || {
            let stats = pool.stats();
            (stats.pending, stats.idle) == (1, 1)
        });
        pool.pause();
        sender.send(7).unwrap();
        assert_eq!((pool.queued_count(), handle.is_finished()), (1, false));
        pool.resume();
        assert_eq!(handle.await_complete(), Ok(7));
        pool.shutdown_join();
    }
}

/// The builder's pools with tasks of each kind in their queues: no thread of them wakes up now and
/// then.
#[test]
fn a_paused_pool_sleeps() {
    let _alone = common::alone();
    for (number, builder) in
        [Builder::new().core_size(1).max_size(4), Builder::new()].into_iter().enumerate()
    {
        let name = format!("nap{number}");
        let pool = builder.name(&*name).keep_alive(HOUR).build();
        let gate = Gate::new();
        #[cfg(feature = "async")]
        let (futures, _trigger) = {
            // A poll wakes others: they lie in the worker's local queue.
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..5).map(|_| futures::channel::oneshot::channel::<()>()).unzip();
            let futures: Vec<_> = receivers.into_iter().map(|one| pool.spawn_await(one)).collect();
            wait_until("all are pending", || pool.stats().pending == 5);
            let (trigger, triggered) = common::triggered();
            let passes = Arc::clone(&gate);
            let inner = pool.clone();
            pool.spawn(async move {
                triggered.await;
                inner.pause();
                senders.into_iter().for_each(|sender| sender.send(()).unwrap());
                passes.pass();
            });
            wait_until("it is pending, too", || pool.stats().pending == 6);
            trigger.fire();
            (futures, trigger)
        };
        #[cfg(not(feature = "async"))]
        {
            let passes = Arc::clone(&gate);
            pool.execute(move || passes.pass());
        }
        gate.wait_for(1);
        pool.pause();
        let ran = count(&pool, 100);
        gate.open();
        let threads = || pool.current_worker_count() + 1;
        wait_until("no task runs", || pool.idle_worker_count() == pool.current_worker_count());
        wait_until_asleep(threads(), Duration::from_millis(200), |other| other.starts_with(&name));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        pool.resume();
        pool.join();
        assert_eq!(ran.load(Ordering::SeqCst), 100);
        #[cfg(feature = "async")]
        futures.into_iter().for_each(|future| future.await_complete().unwrap());
        pool.shutdown_join();
    }
}

/// It could never return: so it says what to do (law 10).
#[test]
fn a_join_that_would_wait_for_paused_tasks_panics() {
    for pool in handles(1, 1) {
        pool.join();
        pool.pause();
        pool.join();
        let handle = pool.evaluate(|| 7);
        let text = panic_text(|| pool.join());
        let name = if text.contains("view") { "`imports`" } else { pool.name() };
        for part in ["`join`", name, "paused", "Call `resume` first", "`join_running`"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!pool.join_timeout(Duration::from_millis(1)));
        // Another thread resumes it.
        let waits = {
            let pool = pool.clone();
            thread::spawn(move || pool.join_timeout(Duration::MAX))
        };
        pool.resume();
        assert!(joined(waits));
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    }
}

/// That of the pool waits for the tasks of its views too.
#[test]
fn a_join_of_the_pool_says_so_for_a_paused_view() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let [view, other] = [pool.view().build(), pool.view().build()];
    view.pause();
    view.execute(|| ());
    other.join();
    let text = panic_text(|| pool.join());
    assert!(text.contains("of a view of the pool") && text.contains("are paused"), "{text}");
    view.resume();
    pool.join();
    pool.shutdown_join();
}

/// Neither is an entry in the queue whose task was cancelled.
#[test]
fn a_cancelled_task_is_no_reason_for_that() {
    for pool in handles(2, 2) {
        let gate = block(&pool);
        pool.pause();
        pool.evaluate(|| ()).cancel();
        let waits = {
            let pool = pool.clone();
            thread::spawn(move || pool.join())
        };
        gate.open();
        joined(waits);
        pool.shutdown_join();
    }
}

/// Nor does such an entry hide a paused task of another view.
#[test]
fn a_cancelled_task_hides_no_paused_one() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let view = pool.view().build();
    let gate = block(&pool);
    pool.evaluate(|| ()).cancel();
    view.pause();
    view.execute(|| ());
    let joins = pool.clone();
    let text = joined(thread::spawn(move || panic_text(|| joins.join())));
    assert!(text.contains("of a view of the pool"), "{text}");
    gate.open();
    view.resume();
    pool.shutdown_join();
}

/// A join in a destructor, while the thread unwinds, returns.
#[test]
fn a_join_of_a_paused_pool_does_not_panic_twice() {
    struct Joins(ThreadPool);

    impl Drop for Joins {
        fn drop(&mut self) {
            self.0.join();
        }
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    pool.pause();
    pool.execute(|| ());
    let joins = Joins(pool.clone());
    let text = panic_text(move || {
        let _joins = joins;
        std::panic::panic_any(String::from("the first one"))
    });
    assert_eq!(text, "the first one");
    pool.resume();
    pool.shutdown_join();
}

/// Everything that was accepted before runs (law 8).
#[test]
fn closing_resumes() {
    for pool in handles(1, 1) {
        pool.pause();
        let ran = count(&pool, 10);
        pool.close();
        pool.pause();
        assert!(!pool.is_paused());
        pool.join();
        assert_eq!(ran.load(Ordering::SeqCst), 10);
        pool.shutdown_join();
    }
}

/// The close of a pool resumes all its views, and so does dropping its last handle.
#[test]
fn the_end_of_the_pool_resumes_its_views() {
    type End = fn(ThreadPool);
    let ends: [End; 3] = [|pool| pool.close(), drop, ThreadPool::shutdown_join];
    for end in ends {
        let pool = ThreadPool::new(1, 1, HOUR);
        let view = pool.view().build();
        view.pause();
        pool.pause();
        let (in_view, in_pool) = (view.evaluate(|| 1), pool.evaluate(|| 2));
        drop(view);
        end(pool);
        assert_eq!((in_view.await_complete(), in_pool.await_complete()), (1, 2));
    }
}

/// None of them starts.
#[test]
fn an_immediate_shutdown_hands_paused_tasks_back() {
    for _ in 0..50 {
        for pool in handles(2, 2) {
            pool.pause();
            let ran = count(&pool, 1000);
            let tasks = pool.shutdown_now();
            assert_eq!((tasks.len(), ran.load(Ordering::SeqCst)), (1000, 0));
            tasks.into_iter().for_each(|task| task.run());
            assert_eq!(ran.load(Ordering::SeqCst), 1000);
            pool.join();
            pool.shutdown_join();
        }
    }
}

#[test]
fn a_bounded_queue_fills_up() {
    let pool = Builder::new().core_size(1).max_size(1).queue_capacity(2).build();
    pool.pause();
    let handles: Vec<_> = (0..3).map(|number| pool.evaluate(move || number)).collect();
    assert_eq!(pool.try_execute(|| ()).unwrap_err().reason(), RejectReason::Full);
    let waits = {
        let pool = pool.clone();
        thread::spawn(move || pool.evaluate(|| 3).await_complete())
    };
    pool.resume();
    assert_eq!(joined(waits), 3);
    let values: Vec<_> = handles.into_iter().map(|handle| handle.await_complete()).collect();
    assert_eq!(values, [0, 1, 2]);
    pool.shutdown_join();
}

/// A paused task expires.
#[test]
fn a_queue_timeout_goes_on() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let view = pool.view().queue_timeout(Duration::from_millis(1)).build();
    view.pause();
    let late = view.evaluate(|| ());
    assert!(late.try_await_complete().unwrap_err().is_expired());
    view.resume();
    pool.shutdown_join();
}
