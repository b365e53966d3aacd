//! Law 3, Quiet: `join` returns only if, at some moment after it was called, no accepted task was
//! queued, running, or a spawned future still pending; what those tasks wrote is visible.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Gate, HOUR, LIMIT, dawdle, new_pool};
use elastipool::ThreadPool;

/// Submits a task that counts itself and submits `size - 1` others in turn, by a random tree.
fn plant(pool: &ThreadPool, size: usize, done: &Arc<AtomicUsize>) {
    let (inner, done) = (pool.clone(), Arc::clone(done));
    let task = move || {
        let mut left = size - 1;
        while left > 0 {
            let branch = fastrand::usize(1..=left);
            plant(&inner, branch, &done);
            left -= branch;
        }
        dawdle(200);
        // The last thing that the task does. Relaxed: it is `join` that must make it visible.
        done.fetch_add(1, Ordering::Relaxed);
    };
    match fastrand::u8(0..3) {
        0 => drop(pool.evaluate(task)),
        1 => drop(pool.complete(async move { task() })),
        _ => pool.execute(task),
    }
}

// The defect: 20 early returns in 680 joins. Protects that a task is counted until its end
// (`Worker::run`, `Worker::rest`), also when it is popped and when it submits others.
#[test]
fn join_returns_after_everything() {
    for (core_size, max_size, keep_alive) in
        [(1, 1, HOUR), (4, 4, HOUR), (1, 8, HOUR), (0, 3, Duration::from_micros(1))]
    {
        let pool = new_pool(core_size, max_size, keep_alive);
        for _ in 0..1500 {
            let done = Arc::new(AtomicUsize::new(0));
            let sizes: Vec<usize> =
                (0..fastrand::usize(0..4)).map(|_| fastrand::usize(1..6)).collect();
            for size in &sizes {
                plant(&pool, *size, &done);
            }
            dawdle(500);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(done.load(Ordering::Relaxed), sizes.iter().sum::<usize>());
        }
        pool.shutdown_join();
    }
}

// A thread that submits and then joins finds its own tasks done, whatever others do at the same
// time.
#[test]
fn each_of_several_joiners_finds_its_own_tasks_done() {
    let pool = new_pool(1, 4, Duration::from_micros(10));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let done = Arc::new(AtomicUsize::new(0));
                    plant(&pool, 3, &done);
                    assert!(pool.join_timeout(LIMIT));
                    assert_eq!(done.load(Ordering::Relaxed), 3);
                    // Leaves the others a chance of quiet.
                    dawdle(2000);
                }
            });
        }
    });
    pool.shutdown_join();
}

// Protects `notify_all` in `notify_joiners`, and that a joiner registers before it looks.
#[test]
fn all_joiners_return_and_none_does_before_the_end() {
    let pool = new_pool(1, 1, HOUR);
    for _ in 0..300 {
        let (release, done) = (Gate::new(), Arc::new(AtomicBool::new(false)));
        {
            let (release, done) = (Arc::clone(&release), Arc::clone(&done));
            pool.execute(move || {
                release.pass();
                done.store(true, Ordering::Relaxed);
            });
        }
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let since = Instant::now();
                    assert!(pool.join_timeout(LIMIT));
                    // A joiner that was not notified looks again at the end of its time, and would
                    // pass.
                    assert!(since.elapsed() < LIMIT);
                    assert!(done.load(Ordering::Relaxed));
                });
            }
            dawdle(30_000);
            release.open();
        });
    }
    pool.shutdown_join();
}

// A joiner is notified of a moment of quiet; it need not be quiet any more when it wakes up.
// Protects the `moments` in `in_flight.rs`.
#[test]
fn a_joiner_does_not_miss_its_moment_because_work_has_come_again() {
    for _ in 0..5 {
        let pool = new_pool(1, 2, HOUR);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Whenever it is quiet, not for long.
                while !is_over.load(Ordering::Relaxed) {
                    pool.execute(|| thread::sleep(Duration::from_millis(3)));
                    while pool.stats().in_flight() > 0 {
                        std::hint::spin_loop();
                    }
                }
            });
            let returned: Vec<bool> = (0..10).map(|_| pool.join_timeout(LIMIT)).collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(returned, [true; 10]);
        });
        pool.shutdown_join();
    }
}

#[test]
fn join_waits_for_a_task_that_has_lost_its_handle_or_was_cancelled_late() {
    let pool = new_pool(1, 1, HOUR);
    for is_cancelled in [false, true] {
        let (running, release) = (Gate::new(), Gate::new());
        let done = Arc::new(AtomicBool::new(false));
        let handle = {
            let (running, release) = (Arc::clone(&running), Arc::clone(&release));
            let done = Arc::clone(&done);
            pool.evaluate(move || {
                running.open();
                release.pass();
                done.store(true, Ordering::Relaxed);
            })
        };
        running.pass();
        if is_cancelled {
            handle.cancel();
        }
        drop(handle);
        assert!(!pool.join_timeout(Duration::from_millis(2)));
        release.open();
        assert!(pool.join_timeout(LIMIT));
        assert!(done.load(Ordering::Relaxed));
    }
    pool.shutdown_join();
}

#[test]
fn join_does_not_wait_for_what_was_not_accepted() {
    let pool = new_pool(1, 1, HOUR);
    assert!(pool.join_timeout(Duration::ZERO), "nothing was ever submitted");
    pool.close();
    for _ in 0..3 {
        assert!(pool.try_execute(|| ()).is_err());
    }
    assert!(pool.join_timeout(Duration::ZERO), "nothing was accepted");
    pool.shutdown_join();
}

#[cfg(feature = "async")]
mod futures {
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::{Poll, Waker};

    use super::{
        Arc, AtomicUsize, Duration, HOUR, LIMIT, Ordering, common, dawdle, new_pool, thread,
    };

    /// A thread that wakes whatever it is sent, a moment later.
    fn ferry() -> (mpsc::Sender<Waker>, thread::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel::<Waker>();
        let thread = thread::spawn(move || {
            for waker in receiver {
                dawdle(300);
                waker.wake();
            }
        });
        (sender, thread)
    }

    // Between its hops a future is neither queued nor running. Protects `Worker::run`, which does
    // not count a future's poll as its end.
    #[test]
    fn join_waits_for_futures_that_hop_between_threads() {
        let ferries = [ferry(), ferry()];
        for (core_size, keep_alive) in [(2, HOUR), (0, Duration::from_micros(1))] {
            let pool = new_pool(core_size, 3, keep_alive);
            for _ in 0..300 {
                let done = Arc::new(AtomicUsize::new(0));
                let count = fastrand::usize(1..5);
                for _ in 0..count {
                    let (done, mut hops) = (Arc::clone(&done), fastrand::usize(0..5));
                    let ways: Vec<_> = ferries.iter().map(|ferry| ferry.0.clone()).collect();
                    pool.spawn(poll_fn(move |context| {
                        if hops == 0 {
                            done.fetch_add(1, Ordering::Relaxed);
                            return Poll::Ready(());
                        }
                        hops -= 1;
                        ways[hops % 2].send(context.waker().clone()).unwrap();
                        dawdle(300);
                        Poll::Pending
                    }));
                }
                assert!(pool.join_timeout(LIMIT));
                assert_eq!(done.load(Ordering::Relaxed), count);
            }
            pool.shutdown_join();
        }
        for (sender, thread) in ferries {
            drop(sender);
            thread.join().unwrap();
        }
    }

    // The defect: pending futures were ignored.
    #[test]
    fn a_pending_future_keeps_join_waiting() {
        let pool = new_pool(0, 2, Duration::from_millis(1));
        let (trigger, triggered) = common::triggered();
        pool.spawn(triggered);
        common::wait_until("the future waits", || trigger.waker().is_some());
        assert!(!pool.join_timeout(Duration::from_millis(20)));
        trigger.fire();
        assert!(pool.join_timeout(LIMIT));
        pool.shutdown_join();
    }

    // These end outside of any worker, with the joiner already there. Protects `finish_on_caller`.
    #[test]
    fn join_returns_when_the_last_future_is_cancelled_or_abandoned() {
        let pool = new_pool(1, 1, HOUR);
        for round in 0..200 {
            let (trigger, triggered) = common::triggered();
            let handle = pool.spawn_await(triggered);
            if round % 4 < 2 {
                common::wait_until("the future waits", || trigger.waker().is_some());
            }
            thread::scope(|scope| {
                let joiner = scope.spawn(|| pool.join_timeout(LIMIT));
                dawdle(20_000);
                if round % 2 == 0 {
                    handle.cancel();
                } else {
                    drop(trigger);
                }
                assert!(joiner.join().unwrap());
            });
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        }
        pool.shutdown_join();
    }
}
