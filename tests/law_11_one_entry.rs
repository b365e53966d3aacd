//! Law 11, One entry: a future is in the queue at most once and polled by one worker at a time,
//! however often and from wherever it is woken; no wake is lost.

#![cfg(feature = "async")]

mod common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use common::{Drops, Gate, HOUR, LIMIT, block, dawdle, wait_until};
use elastipool::{JoinHandle, ThreadPool};

/// What is known of one future from outside.
#[derive(Default)]
struct Record {
    /// How often it was woken, counted before each wake.
    wakes: AtomicUsize,
    polls: AtomicUsize,
    is_inside: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Of panics, which the pool turns into the handle's, some would hear too late.
    double_entries: AtomicUsize,
}

impl Record {
    /// Counts a wake, then wakes, in one of the ways there are.
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap().clone();
        let waker = waker.expect("the future was polled");
        if fastrand::bool() { waker.wake() } else { waker.wake_by_ref() }
    }

    #[track_caller]
    fn check(&self) {
        let (polls, wakes) = (self.polls.load(Ordering::SeqCst), self.wakes.load(Ordering::SeqCst));
        assert_eq!(self.double_entries.load(Ordering::SeqCst), 0);
        assert!(polls <= wakes + 1, "{polls} polls for {wakes} wakes");
    }
}

/// Ready when it has seen `goal` wakes: if the last is lost, never.
struct Woken {
    record: Arc<Record>,
    goal: usize,
    /// Not shared: the worker that polls next must see it.
    polls: usize,
}

fn woken(goal: usize) -> (Arc<Record>, Woken) {
    let record = Arc::new(Record::default());
    (Arc::clone(&record), Woken { record, goal, polls: 0 })
}

impl Future for Woken {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let record = Arc::clone(&self.record);
        if record.is_inside.swap(true, Ordering::SeqCst) {
            record.double_entries.fetch_add(1, Ordering::SeqCst);
        }
        self.polls += 1;
        if record.polls.fetch_add(1, Ordering::SeqCst) + 1 != self.polls {
            record.double_entries.fetch_add(1, Ordering::SeqCst);
        }
        {
            let mut waker = record.waker.lock().unwrap();
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        // Relaxed: the wake must make visible what came before it.
        let wakes = record.wakes.load(Ordering::Relaxed);
        dawdle(200);
        record.is_inside.store(false, Ordering::SeqCst);
        if wakes < self.goal { Poll::Pending } else { Poll::Ready(wakes) }
    }
}

#[track_caller]
fn await_soon<T>(handle: JoinHandle<T>) -> T {
    match handle.await_complete_timeout(LIMIT) {
        Ok(result) => result.unwrap(),
        Err(_) => panic!("a wake was lost"),
    }
}

// The defect: one future, five wakes during its poll: six busy workers. Protects the state
// `NOTIFIED`.
#[test]
fn wakes_during_a_poll_lead_to_one_more_poll() {
    for count in [1, 5, 1000] {
        for by_value in [false, true] {
            let pool = ThreadPool::new(8, 8, HOUR);
            // Plenty of workers that could take what should not be there.
            pool.start_core_threads();
            wait_until("all are idle", || pool.idle_worker_count() == 8);
            let polls = Arc::new(AtomicUsize::new(0));
            let (observer, counter) = (pool.clone(), Arc::clone(&polls));
            let future = std::future::poll_fn(move |context| {
                let poll = counter.fetch_add(1, Ordering::SeqCst);
                if poll == 3 {
                    return Poll::Ready(true);
                }
                for _ in 0..count {
                    if by_value {
                        let waker = context.waker().clone();
                        waker.wake();
                    } else {
                        context.waker().wake_by_ref();
                    }
                }
                let is_alone = observer.queued_count() == 0
                    && observer.stats().in_flight() == 1
                    && counter.load(Ordering::SeqCst) == poll + 1;
                if is_alone { Poll::Pending } else { Poll::Ready(false) }
            });
            assert!(await_soon(pool.spawn_await(future)), "a wake during the poll was queued");
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(polls.load(Ordering::SeqCst), 4);
            assert_eq!(pool.queued_count(), 0);
            pool.shutdown_join();
        }
    }
}

// Protects that a future that waits is scheduled by one of its wakers only
// (`transition_to_scheduled`).
#[test]
fn wakes_of_a_queued_future_lead_to_one_poll() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (record, future) = woken(1000);
    let handle = pool.spawn_await(future);
    wait_until("the future waits", || {
        record.waker.lock().unwrap().is_some() && pool.idle_worker_count() == 1
    });
    assert_eq!(record.polls.load(Ordering::SeqCst), 1);
    let (running, release) = (Gate::new(), Gate::new());
    {
        let (running, release) = (Arc::clone(&running), Arc::clone(&release));
        pool.execute(move || {
            running.open();
            release.pass();
        });
    }
    running.pass();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    record.wake();
                    assert!(pool.queued_count() <= 1, "it is queued more than once");
                }
            });
        }
    });
    assert_eq!(pool.queued_count(), 1);
    release.open();
    assert_eq!(await_soon(handle), 1000);
    assert_eq!(record.polls.load(Ordering::SeqCst), 2);
    record.check();
    pool.shutdown_join();
}

#[test]
fn wakes_from_many_threads_lead_to_polls_at_any_time() {
    for (core_size, max_size, keep_alive) in
        [(4, 4, HOUR), (1, 4, HOUR), (0, 3, Duration::from_micros(1))]
    {
        let pool = ThreadPool::new(core_size, max_size, keep_alive);
        for _ in 0..15 {
            let (record, future) = woken(8 * 100);
            let handle = pool.spawn_await(future);
            wait_until("the future was polled", || record.waker.lock().unwrap().is_some());
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            // How often it is queued now cannot be known: it moves from queue to
                            // queue meanwhile.
                            record.wake();
                            dawdle(1000);
                        }
                    });
                }
            });
            assert_eq!(await_soon(handle), 800);
            record.check();
        }
        pool.shutdown_join();
    }
}

// Each wake may be the last one: this is where a lost one would show.
#[test]
fn no_single_wake_is_lost() {
    for (core_size, max_size, keep_alive) in [(2, 2, HOUR), (0, 2, Duration::from_micros(1))] {
        let pool = ThreadPool::new(core_size, max_size, keep_alive);
        for _ in 0..2000 {
            let (record, future) = woken(2);
            let handle = pool.spawn_await(future);
            wait_until("the future was polled", || record.waker.lock().unwrap().is_some());
            // The first poll may be about to end, or the second one may be in progress.
            dawdle(300);
            record.wake();
            dawdle(300);
            record.wake();
            assert_eq!(await_soon(handle), 2);
            record.check();
        }
        pool.shutdown_join();
    }
}

#[test]
fn many_futures_do_not_disturb_each_other() {
    let pool = ThreadPool::new(1, 4, Duration::from_micros(50));
    for _ in 0..5 {
        let (records, handles): (Vec<_>, Vec<_>) = (0..100)
            .map(|_| {
                let (record, future) = woken(4 * 10);
                (record, pool.spawn_await(future))
            })
            .unzip();
        wait_until("all were polled", || {
            records.iter().all(|record| record.waker.lock().unwrap().is_some())
        });
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut order: Vec<_> = (0..100).flat_map(|index| [index; 10]).collect();
                    fastrand::shuffle(&mut order);
                    for index in order {
                        records[index].wake();
                    }
                });
            }
        });
        for (record, handle) in records.iter().zip(handles) {
            assert_eq!(await_soon(handle), 40);
            record.check();
        }
    }
    pool.shutdown_join();
}

// Nothing moves between queues while they are counted, since both workers are busy.
#[test]
fn a_future_is_queued_once_however_often_it_is_woken() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let (records, handles): (Vec<_>, Vec<_>) = (0..100)
        .map(|_| {
            let (record, future) = woken(4 * 10);
            (record, pool.spawn_await(future))
        })
        .unzip();
    wait_until("all are pending", || pool.stats().pending == 100);
    let gates = [block(&pool), block(&pool)];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| records.iter().for_each(|record| record.wake())));
        }
    });
    assert_eq!(pool.queued_count(), 100);
    gates.iter().for_each(|gate| gate.open());
    for (record, handle) in records.iter().zip(handles) {
        assert_eq!(await_soon(handle), 40);
        record.check();
    }
    pool.shutdown_join();
}

// Woken by tasks and by polls of other futures of the same pool, which is where an executor might
// be tempted to poll on the spot.
#[test]
fn futures_that_wake_each_other_are_all_polled() {
    let pool = ThreadPool::new(0, 3, Duration::from_micros(20));
    for _ in 0..100 {
        let (left, left_future) = woken(50);
        let (right, right_future) = woken(50);
        let handles = [pool.spawn_await(left_future), pool.spawn_await(right_future)];
        wait_until("both were polled", || {
            [&left, &right].iter().all(|record| record.waker.lock().unwrap().is_some())
        });
        for _ in 0..5 {
            let (left, right) = (Arc::clone(&left), Arc::clone(&right));
            // Half of the wakes come from polls, half from closures.
            pool.execute(move || {
                for _ in 0..5 {
                    left.wake();
                    right.wake();
                }
            });
        }
        for (own, other) in [(&left, &right), (&right, &left)] {
            let (own, other) = (Arc::clone(own), Arc::clone(other));
            let mut turns = 0;
            pool.spawn(std::future::poll_fn(move |context| {
                own.wake();
                other.wake();
                own.wake();
                turns += 1;
                if turns < 9 {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            }));
        }
        for (record, handle) in [&left, &right].into_iter().zip(handles) {
            await_soon(handle);
            record.check();
        }
        assert!(pool.join_timeout(LIMIT));
    }
    pool.shutdown_join();
}

/// Keeps its waker in the record after its end, and its drops are counted.
fn ends_at_once(pool: &ThreadPool, drops: &Drops) -> (Arc<Record>, JoinHandle<usize>) {
    let (record, future) = woken(0);
    let dropped = drops.issue();
    let handle = pool.spawn_await(async move {
        let _dropped = dropped;
        future.await
    });
    (record, handle)
}

// Protects the state `DONE`, and that there is no way from it.
#[test]
fn a_wake_after_the_end_changes_nothing() {
    let drops = Drops::default();
    let pool = ThreadPool::new(0, 2, Duration::from_millis(1));
    let (finished, handle) = ends_at_once(&pool, &drops);
    await_soon(handle);
    let (cancelled, future) = woken(1000);
    let handle = pool.spawn_await(future);
    wait_until("the future waits", || cancelled.waker.lock().unwrap().is_some());
    handle.cancel();
    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
    assert!(pool.join_timeout(LIMIT));
    wait_until("no worker is left", || pool.current_worker_count() == 0);
    let before = pool.stats();
    for _ in 0..10 {
        finished.wake();
        cancelled.wake();
    }
    assert_eq!(pool.stats(), before, "not even a thread was started");
    assert_eq!((before.completed, before.cancelled, before.panicked), (1, 1, 0));

    let (late, handle) = ends_at_once(&pool, &drops);
    await_soon(handle);
    pool.close();
    late.wake();
    pool.shutdown_join();
    // The pool is gone, and the wakers are what is left of it.
    for record in [&finished, &cancelled, &late] {
        record.wake();
        record.waker.lock().unwrap().take().unwrap().wake();
    }
    assert_eq!(finished.polls.load(Ordering::SeqCst), 1);
    assert_eq!(late.polls.load(Ordering::SeqCst), 1);
    assert_eq!(cancelled.double_entries.load(Ordering::SeqCst), 0);
    assert_eq!(drops.count(), 2);
}

// What was accepted before the close is still woken after it.
#[test]
fn a_wake_after_the_close_leads_to_a_poll() {
    for _ in 0..100 {
        let pool = ThreadPool::new(0, 2, Duration::from_micros(1));
        let (record, future) = woken(3);
        let handle = pool.spawn_await(future);
        wait_until("the future waits", || record.waker.lock().unwrap().is_some());
        // The last handle: closes the pool.
        drop(pool);
        for _ in 0..3 {
            record.wake();
            dawdle(1000);
        }
        assert_eq!(await_soon(handle), 3);
        record.check();
        record.wake();
    }
}
