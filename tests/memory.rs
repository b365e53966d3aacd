//! A pool gives memory back after a burst.
//!
//! One test only: the count is that of all threads of the process.

mod common;

use std::alloc::System;
use std::sync::{Arc, Barrier};
#[cfg(feature = "async")]
use std::task::Poll;
use std::time::Duration;

use common::wait_until;
use elastipool::{Builder, ThreadPool};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bytes that are allocated now.
fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Each worker of a burst fills its local queue, and leaves.
fn workers_that_have_left() {
    const WORKERS: usize = 50;
    const TASKS: usize = 1000;

    let pool = ThreadPool::new(0, WORKERS, Duration::from_millis(1));
    let burst = || {
        let (all, pool) = (Arc::new(Barrier::new(WORKERS)), &pool);
        for _ in 0..WORKERS {
            let (all, inner) = (Arc::clone(&all), pool.clone());
            pool.execute(move || {
                all.wait();
                (0..TASKS).for_each(|_| inner.execute(|| ()));
                all.wait();
            });
        }
        pool.join();
        wait_until("the workers have left", || pool.current_worker_count() == 0);
    };
    let before = live();
    burst();
    burst();
    wait_until("at most 2 KiB stay for each worker that has left", || {
        live() < before + WORKERS * 2048
    });
}

/// Futures that have been pending at the same time end, all but a few.
#[cfg(feature = "async")]
fn futures_that_were_pending() {
    use futures::channel::oneshot;

    const FUTURES: usize = 100_000;
    const KEPT: usize = 10;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let before = live();
    let wakers = (0..FUTURES).map(|_| {
        let (sender, receiver) = oneshot::channel::<()>();
        pool.spawn(async move { receiver.await.unwrap_or(()) });
        sender
    });
    let mut wakers: Vec<_> = wakers.collect();
    wait_until("all are pending", || pool.stats().pending == FUTURES);
    let kept: Vec<_> = (0..KEPT).map(|_| wakers.swap_remove(wakers.len() / 2)).collect();
    drop(wakers);
    wait_until("most have ended", || pool.stats().pending == KEPT);
    wait_until("the list of pending futures gives its memory back", || {
        live() < before + 4 * FUTURES
    });
    drop(kept);
    pool.join();
}

/// A worker waits for tasks that it runs itself, whose entries are in the queue of a view, or under
/// another task's in its own.
fn tasks_that_ran_on_their_waiters() {
    const TASKS: usize = 10_000;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let view = pool.view().build();
    let (inner, last) = (pool.clone(), view.clone());
    let outer = pool.evaluate(move || {
        // Nothing takes these before this task has ended.
        inner.execute(|| ());
        last.execute(|| ());
        let before = live();
        for _ in 0..TASKS {
            let [first, second, third] = [(); 3].map(|()| inner.evaluate(|| ()));
            first.await_complete();
            third.await_complete();
            inner.evaluate(|| ()).await_complete();
            second.await_complete();
        }
        for _ in 0..TASKS {
            last.evaluate(|| ()).await_complete();
            let (first, second) = (last.evaluate(|| ()), last.evaluate(|| ()));
            first.await_complete();
            second.await_complete();
        }
        assert!(live() < before + 64 * 1024, "{} bytes more", live() - before);
        assert_eq!((inner.queued_count(), last.queued_count()), (2, 1), "of the pool, of the view");
    });
    outer.await_complete();
    pool.join();
    assert_eq!((pool.stats().completed, view.stats().completed), (7 * TASKS + 3, 3 * TASKS + 1));
}

/// A worker waits for tasks of a group by their handles, and cancels others.
fn tasks_of_a_group_that_ran_on_their_waiters() {
    const TASKS: usize = 10_000;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let view = pool.view().build();
    for own in [pool.clone(), (*view).clone()] {
        let inner = own.clone();
        let outer = own.evaluate(move || {
            let group = inner.group::<()>();
            // Nothing takes it before this task has ended.
            inner.execute(|| ());
            let before = live();
            for _ in 0..TASKS {
                let [first, second, third] = [(); 3].map(|()| group.evaluate(|| ()));
                first.await_complete();
                third.cancel();
                second.await_complete();
            }
            assert!(live() < before + 64 * 1024, "{} bytes more", live() - before);
            assert_eq!(inner.queued_count(), 1);
        });
        outer.await_complete();
        pool.join();
        let stats = own.stats();
        assert_eq!((stats.queued, stats.in_flight()), (0, 0));
    }
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled), (4 * TASKS + 4, 2 * TASKS));
}

/// The only worker is busy, so a thread outside runs all tasks of its scopes. Each inner task
/// submits to the outer scope.
fn scopes_inside_scopes_beside_a_busy_worker() {
    const ROUNDS: usize = 2000;

    for pool in [
        ThreadPool::new(1, 1, Duration::from_secs(3600)),
        Builder::new().core_size(1).max_size(1).queue_capacity(4).build(),
    ] {
        let [begin, end] = [(); 2].map(|()| Arc::new(Barrier::new(2)));
        let (begins, ends) = (Arc::clone(&begin), Arc::clone(&end));
        pool.execute(move || {
            begins.wait();
            ends.wait();
        });
        begin.wait();
        let rounds = |count| {
            for _ in 0..count {
                pool.scope(|first| pool.scope(|inner| inner.execute(|| first.execute(|| ()))));
            }
        };
        rounds(10);
        let before = live();
        rounds(ROUNDS);
        assert!(live() < before + 16 * 1024, "{} bytes more", live() - before);
        assert_eq!((pool.queued_count(), pool.stats().in_flight()), (0, 1));
        end.wait();
        pool.join();
        assert_eq!(pool.stats().completed, 2 * (10 + ROUNDS) + 1);
    }
}

/// Tasks are cancelled, or are late, while the only worker is busy: what they have captured does
/// not stay.
fn cancelled_tasks_behind_a_busy_worker() {
    const TASKS: usize = 400;

    type Captured = [u8; 64 * 1024];
    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let (late, inner) = (pool.view().queue_timeout(Duration::from_millis(1)).build(), pool.clone());
    let busy = pool.evaluate(move || {
        let group = inner.group::<()>();
        let before = live();
        std::thread::scope(|scope| {
            // Not on the worker, which would run some of them.
            scope.spawn(|| {
                for number in 0..TASKS {
                    let captured: Captured = [1; 64 * 1024];
                    let task = move || _ = std::hint::black_box(captured);
                    match number % 5 {
                        0 => inner.evaluate(task).cancel(),
                        1 => drop(inner.evaluate(task).cancel_on_drop()),
                        2 => drop(group.evaluate(task)),
                        3 => drop(late.evaluate(task).try_await_complete()),
                        _ => {
                            let completed =
                                inner.complete(async move { _ = std::hint::black_box(captured) });
                            assert!(completed.cancel_and_wait().is_err());
                        }
                    }
                }
                group.cancel();
            });
        });
        assert!(live() < before + 1024 * 1024, "{} bytes more", live() - before);
        assert_eq!((inner.stats().queued, inner.stats().in_flight()), (0, 1));
    });
    busy.await_complete();
    pool.join();
    assert_eq!(pool.stats().cancelled, TASKS / 5 * 4);
}

/// Many more, from elsewhere: with what they have captured they would take 640 MB.
fn tasks_that_are_cancelled_from_elsewhere() {
    const TASKS: usize = 10_000;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let view = pool.view().build();
    let group = pool.group::<()>();
    let [begin, end] = [(); 2].map(|()| Arc::new(Barrier::new(2)));
    let (begins, ends) = (Arc::clone(&begin), Arc::clone(&end));
    pool.execute(move || {
        begins.wait();
        ends.wait();
    });
    begin.wait();
    let before = live();
    let mut peak = 0;
    for number in 0..TASKS {
        let captured = [1_u8; 64 * 1024];
        let task = move || _ = std::hint::black_box(captured);
        let handle = match number % 4 {
            0 => pool.evaluate(task),
            1 => view.evaluate(task),
            2 => group.evaluate(task),
            _ => pool.complete(async move { _ = std::hint::black_box(captured) }),
        };
        peak = peak.max(live());
        match number % 3 {
            0 => handle.abort_handle().cancel(),
            1 => drop(handle.cancel_on_drop()),
            _ => handle.cancel(),
        }
    }
    // What stays are the entries in the queue, and the tasks' empty memory.
    assert!(peak < before + TASKS * 512, "{} bytes more", peak - before);
    assert_eq!((pool.queued_count(), pool.stats().in_flight()), (0, 1));
    end.wait();
    pool.join();
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, TASKS));
}

/// What a handler, a group or a waker keeps of a pool that is over.
fn pools_that_have_ended() {
    const TASKS: usize = 1000;

    for (core, workers) in [(1, 1), (4, 4), (64, 64), (0, 4)] {
        let before = live();
        let pool = ThreadPool::new(core, workers, Duration::from_millis(1));
        let (handler, group) = (pool.handler(|()| ()), pool.group::<()>());
        let all = Arc::new(Barrier::new(workers));
        for _ in 0..workers {
            let (all, inner) = (Arc::clone(&all), pool.clone());
            pool.execute(move || {
                all.wait();
                for _ in 0..TASKS {
                    inner.execute(|| ());
                    #[cfg(feature = "async")]
                    inner.spawn(std::future::pending());
                }
            });
        }
        drop(all);
        #[cfg(feature = "async")]
        let waker = pool
            .spawn_await(std::future::poll_fn(|context| Poll::Ready(context.waker().clone())))
            .await_complete();
        pool.join();
        // Some pools end with the last worker, others have no worker any more.
        wait_until("workers that are not needed leave", || pool.current_worker_count() == core);
        pool.shutdown_join();
        let kept = live().saturating_sub(before);
        assert!(kept <= 11 * 1024 + workers * 1700, "{workers} workers: {kept} bytes");
        #[cfg(feature = "async")]
        drop(waker);
        drop((handler, group));
        let kept = live().saturating_sub(before);
        assert!(kept <= 1024, "{workers} workers: {kept} bytes in the end");
    }
}

/// A view's queue was long once.
fn a_view_after_a_burst() {
    const TASKS: usize = 100_000;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let view = pool.view().build();
    view.evaluate(|| ()).await_complete();
    let before = live();
    (0..TASKS).for_each(|_| view.execute(|| ()));
    view.join();
    wait_until("the view's queue gives its memory back", || live() < before + 128 * 1024);
}

/// A worker leaves while its queue is long, and the other one takes all tasks.
fn a_worker_that_left_its_tasks() {
    const TASKS: usize = 100_000;

    let pool = ThreadPool::new(2, 2, Duration::from_secs(3600));
    let before = live();
    let (all, own, inner) = (Arc::new(Barrier::new(2)), pool.clone(), pool.clone());
    let waits = Arc::clone(&all);
    pool.execute(move || {
        waits.wait();
        wait_until("the other worker has left", || own.current_worker_count() == 1);
    });
    pool.execute(move || {
        all.wait();
        (0..TASKS).for_each(|_| inner.execute(|| ()));
        inner.set_sizes(1, 1).expect("sizes that fit each other");
    });
    pool.join();
    wait_until("the queue's memory is given back", || live() < before + 64 * 1024);
}

#[test]
fn memory_is_given_back_after_a_burst() {
    workers_that_have_left();
    a_worker_that_left_its_tasks();
    tasks_that_ran_on_their_waiters();
    tasks_of_a_group_that_ran_on_their_waiters();
    scopes_inside_scopes_beside_a_busy_worker();
    a_view_after_a_burst();
    cancelled_tasks_behind_a_busy_worker();
    tasks_that_are_cancelled_from_elsewhere();
    pools_that_have_ended();
    #[cfg(feature = "async")]
    futures_that_were_pending();
}
