//! Tasks that tasks submit: they wait in the queue of the worker that runs the submitter, where the
//! others find them, or in line with all others.

use crate::common;

use std::cell::RefCell;
#[cfg(feature = "async")]
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
#[cfg(feature = "async")]
use std::task::Poll;
use std::thread;
use std::time::Duration;

use common::{
    Gate, HOUR, LIMIT, block, joined, submit_interdependent, value, value_of_others, wait_until,
};
use elastipool::{Builder, ThreadPool, worker_index};

/// More tasks than are taken or accepted at once.
const MANY: usize = 2000;

// More than one batch: a worker that takes several tasks notifies another of those that it does not
// run.
#[test]
fn tasks_that_a_task_leaves_behind_all_start() {
    for core_size in [0, 8] {
        let pool = ThreadPool::new(core_size, 8, HOUR);
        for round in 0..300 {
            if round % 2 == 0 {
                wait_until("all are idle", || {
                    pool.idle_worker_count() == pool.current_worker_count()
                });
            }
            let inner = pool.clone();
            // The submitter's worker is one of the eight.
            let party = value(pool.evaluate(move || submit_interdependent(&inner, 8, || ())));
            party.into_iter().for_each(value);
        }
        pool.shutdown_join();
    }
}

/// A task that counts.
fn counting(count: &Arc<AtomicUsize>) -> impl Fn() + Send + Sync + 'static {
    let count = Arc::clone(count);
    move || {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that submits itself again until `end` is set.
fn feed(pool: &ThreadPool, end: &Arc<AtomicBool>) {
    let (inner, end) = (pool.clone(), Arc::clone(end));
    pool.execute(move || {
        if !end.load(Ordering::Relaxed) {
            feed(&inner, &end);
        }
    });
}

// Protects the occasional look into the channel (`Local::pop`).
#[test]
fn a_worker_that_feeds_itself_takes_what_comes_from_outside() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let end = Arc::new(AtomicBool::new(false));
    feed(&pool, &end);
    for _ in 0..50 {
        value(pool.evaluate(|| ()));
    }
    end.store(true, Ordering::Relaxed);
    pool.shutdown_join();
}

// The defect: each new future that yields began a turn of new tasks, the next of which was local.
#[cfg(feature = "async")]
#[test]
fn futures_that_spawn_the_next_one_and_yield_let_others_run() {
    fn chain(pool: &ThreadPool, end: &Arc<AtomicBool>, links: &Arc<AtomicUsize>) {
        let (inner, end, links) = (pool.clone(), Arc::clone(end), Arc::clone(links));
        let mut has_yielded = false;
        pool.spawn(poll_fn(move |context| {
            if has_yielded {
                links.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(());
            }
            has_yielded = true;
            if !end.load(Ordering::Relaxed) {
                chain(&inner, &end, &links);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let (end, links) = (Arc::new(AtomicBool::new(false)), Arc::default());
    chain(&pool, &end, &links);
    for _ in 0..50 {
        value(pool.evaluate(|| ()));
        let before = links.load(Ordering::Relaxed);
        wait_until("the futures go on", || links.load(Ordering::Relaxed) > before);
    }
    end.store(true, Ordering::Relaxed);
    pool.shutdown_join();
}

// 61 tasks would be long. Passes if that look comes at short intervals, and also if such tasks wait
// in line.
#[test]
fn a_worker_that_feeds_itself_long_tasks_soon_takes_what_comes_from_outside() {
    fn feed(pool: &ThreadPool, count: &Arc<AtomicUsize>, end: &Arc<AtomicBool>) {
        let (inner, count, end) = (pool.clone(), Arc::clone(count), Arc::clone(end));
        pool.execute(move || {
            // Long beside the 100 us in which a worker checks for others: time is the subject.
            thread::sleep(Duration::from_millis(2));
            count.fetch_add(1, Ordering::Relaxed);
            if !end.load(Ordering::Relaxed) {
                feed(&inner, &count, &end);
            }
        });
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let (count, end) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    feed(&pool, &count, &end);
    // The worker knows by now how long its tasks take.
    wait_until("it has run a few dozen", || count.load(Ordering::Relaxed) >= 50);
    // The fewest: this thread may lose its CPU before it submits.
    let between = (0..5).map(|_| {
        let (count, before) = (Arc::clone(&count), count.load(Ordering::Relaxed));
        value(pool.evaluate(move || count.load(Ordering::Relaxed) - before))
    });
    let fewest = between.min().unwrap();
    end.store(true, Ordering::Relaxed);
    pool.shutdown_join();
    assert!(fewest <= 5, "{fewest} tasks were run before another one");
}

// The defect: its task went to the worker's local queue. So under a backlog some tasks waited for
// many times as long as others.
#[test]
fn a_coarse_task_of_a_task_waits_behind_those_that_came_before() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = Gate::new();
    pool.execute({
        let gate = Arc::clone(&gate);
        move || gate.pass()
    });
    for _ in 0..50 {
        // The worker measures how long its tasks take: time is the subject.
        pool.execute(|| thread::sleep(Duration::from_millis(1)));
    }
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |number: usize| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(number)
    };
    let (inner, last) = (pool.clone(), noting(20));
    pool.execute(move || inner.execute(last));
    (0..20).for_each(|number| pool.execute(noting(number)));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(*order.lock().unwrap(), (0..=20).collect::<Vec<_>>());
    pool.shutdown_join();
}

// Protects the occasional look into the queues of others (`Local::pop`).
#[test]
fn a_worker_that_feeds_itself_takes_what_a_busy_one_has_left() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let end = Arc::new(AtomicBool::new(false));
    feed(&pool, &end);
    for _ in 0..20 {
        let (gate, inner) = (Gate::new(), pool.clone());
        let opening = Arc::clone(&gate);
        // Not in a blocking region: no worker runs instead.
        let parent = pool.evaluate(move || {
            inner.execute(move || opening.open());
            gate.pass();
        });
        value(parent);
    }
    end.store(true, Ordering::Relaxed);
    pool.shutdown_join();
}

#[test]
fn tasks_of_one_task_start_in_order() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (inner, started) = (pool.clone(), Arc::clone(&order));
    pool.execute(move || {
        for number in 0..MANY {
            let started = Arc::clone(&started);
            inner.execute(move || started.lock().unwrap().push(number));
        }
    });
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(*order.lock().unwrap(), (0..MANY).collect::<Vec<_>>());
    pool.shutdown_join();
}

#[test]
fn shutdown_now_gives_back_what_a_task_has_submitted() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (submitted, gate) = (Gate::new(), Gate::new());
    let (inner, arrives, passes) = (pool.clone(), Arc::clone(&submitted), Arc::clone(&gate));
    let ran = Arc::new(AtomicUsize::new(0));
    let tasks = [(); 10].map(|()| counting(&ran));
    pool.execute(move || {
        tasks.into_iter().for_each(|task| inner.execute(task));
        arrives.open();
        passes.pass();
    });
    submitted.pass();
    assert_eq!(pool.stats().queued, 10);
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 10);
    gate.open();
    pool.clone().shutdown_join();
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(pool.stats().handed_back, 10);
    tasks.into_iter().for_each(|task| task.run());
    assert_eq!(ran.load(Ordering::Relaxed), 10);
}

/// Submits two tasks that do the same, down to a `depth`.
fn branch(pool: &ThreadPool, depth: usize, ran: &Arc<AtomicUsize>) {
    ran.fetch_add(1, Ordering::Relaxed);
    if depth > 0 {
        for _ in 0..2 {
            let (inner, ran) = (pool.clone(), Arc::clone(ran));
            pool.execute(move || branch(&inner, depth - 1, &ran));
        }
    }
}

// With shares as small as they get: each worker leaves tasks behind, for its successor or for
// others.
#[test]
fn recycled_workers_lose_no_task_of_their_local_queues() {
    for (max_size, share) in [(1, 1), (3, 1), (3, 2), (3, 7)] {
        let builder = Builder::new().core_size(0).max_size(max_size).max_tasks_per_worker(share);
        let pool = builder.build();
        let ran = Arc::new(AtomicUsize::new(0));
        let (inner, count) = (pool.clone(), Arc::clone(&ran));
        pool.execute(move || branch(&inner, 8, &count));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(ran.load(Ordering::Relaxed), 511);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.in_flight()), (511, 0));
        pool.shutdown_join();
    }
}

// Its queue is for the others, also for those that have tasks of their own.
#[test]
fn tasks_in_the_local_queue_of_a_retired_worker_run() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let end = Arc::new(AtomicBool::new(false));
    let gate = Gate::new();
    let (inner, passes, ends) = (pool.clone(), Arc::clone(&gate), Arc::clone(&end));
    pool.execute(move || {
        passes.pass();
        feed(&inner, &ends);
    });
    gate.wait_for(1);
    let inner = pool.clone();
    let host = pool.evaluate(move || {
        let left = inner.evaluate(|| ());
        inner.set_max_size(1).unwrap();
        left
    });
    let left = value(host);
    wait_until("one has left", || pool.current_worker_count() == 1);
    gate.open();
    value(left);
    end.store(true, Ordering::Relaxed);
    pool.shutdown_join();
}

// Workers accept tasks in advance and report their ends late: readers may be a little off, but
// never below zero.
#[test]
fn statistics_of_tasks_that_submit_tasks_are_sound() {
    let pool = ThreadPool::new(3, 3, HOUR);
    let end = Arc::new(AtomicBool::new(false));
    let reader = {
        let (pool, end) = (pool.clone(), Arc::clone(&end));
        thread::spawn(move || {
            let mut before = 0;
            while !end.load(Ordering::Relaxed) {
                let stats = pool.stats();
                assert!(stats.in_flight() < 10 * MANY, "{stats:?}");
                assert!(stats.completed >= before, "{stats:?}");
                before = stats.completed;
            }
        })
    };
    for round in 1..=30 {
        let (inner, ran) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
        pool.execute(move || branch(&inner, 9, &ran));
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.in_flight(), stats.completed), (0, round * 1023), "{stats:?}");
        assert_eq!(stats.accepted(), stats.completed);
    }
    end.store(true, Ordering::Relaxed);
    joined(reader);
    pool.shutdown_join();
}

// Also while a worker has credit: a task that runs alone is the only one in flight.
#[test]
fn statistics_are_exact_while_a_task_waits() {
    let pool = ThreadPool::new(1, 1, HOUR);
    for count in [1, 15, 16, 17, 40] {
        let (submitted, gate) = (Gate::new(), Gate::new());
        let (inner, arrives, passes) = (pool.clone(), Arc::clone(&submitted), Arc::clone(&gate));
        pool.execute(move || {
            (0..count).for_each(|_| inner.execute(|| ()));
            arrives.open();
            passes.pass();
        });
        submitted.pass();
        let stats = pool.stats();
        assert_eq!((stats.active, stats.queued, stats.pending), (1, count, 0), "{stats:?}");
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().in_flight(), 0);
    }
    pool.shutdown_join();
}

// The blocked worker cannot look at its own local queue: the worker that runs instead must find the
// task.
#[test]
fn a_worker_waits_for_what_it_has_submitted() {
    let pool = ThreadPool::new(1, 1, HOUR);
    for depth in 1..=20 {
        fn nested(pool: &ThreadPool, depth: usize) -> usize {
            let inner = pool.clone();
            match depth {
                0 => 0,
                _ => 1 + value(pool.evaluate(move || nested(&inner, depth - 1))),
            }
        }
        assert_eq!(nested(&pool, depth), depth);
    }
    pool.shutdown_join();
}

#[test]
fn tasks_that_panic_after_they_have_submitted_others_take_nothing_with_them() {
    let panics = Arc::new(AtomicUsize::new(0));
    let count = counting(&panics);
    let pool = Builder::new().core_size(2).max_size(2).panic_handler(move |_| count()).build();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let (inner, ran) = (pool.clone(), Arc::clone(&ran));
        pool.execute(move || {
            for _ in 0..3 {
                let ran = Arc::clone(&ran);
                inner.execute(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    std::panic::resume_unwind(Box::new(()));
                });
            }
            std::panic::resume_unwind(Box::new(()));
        });
    }
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.panicked, stats.completed, stats.in_flight()), (400, 0, 0));
    assert_eq!(ran.load(Ordering::Relaxed), 300);
    assert_eq!(panics.load(Ordering::Relaxed), 400);
    pool.shutdown_join();
}

/// Submits a task when it is dropped.
struct Parting(ThreadPool, Arc<AtomicUsize>);

impl Drop for Parting {
    fn drop(&mut self) {
        // By now the pool may be closed.
        let _ = self.0.try_execute(counting(&self.1));
    }
}

thread_local! {
    static PARTING: RefCell<Option<Parting>> = const { RefCell::new(None) };
}

// The worker that submits never looks at its local queue again. Protects `WorkerContext::close`.
#[test]
fn what_a_worker_submits_when_it_leaves_is_run() {
    for share in [None, Some(1)] {
        let this = Arc::new(OnceLock::<ThreadPool>::new());
        let ran = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let hook = {
            let (this, ran, is_over) = (Arc::clone(&this), Arc::clone(&ran), Arc::clone(&is_over));
            move |_| {
                if !is_over.load(Ordering::SeqCst) {
                    this.get().unwrap().execute(counting(&ran));
                }
            }
        };
        let mut builder = Builder::new().core_size(0).max_size(2).on_worker_stop(hook);
        builder = builder.keep_alive(Duration::from_millis(1));
        if let Some(share) = share {
            builder = builder.max_tasks_per_worker(share);
        }
        let pool = builder.build();
        this.set(pool.clone()).unwrap();
        // Each of these ends a worker, or leads to the end of one, and so does what that submits.
        for _ in 0..5 {
            let (inner, ran) = (pool.clone(), Arc::clone(&ran));
            pool.execute(move || {
                PARTING.with(|parting| *parting.borrow_mut() = Some(Parting(inner, ran)));
            });
        }
        wait_until("many have left", || ran.load(Ordering::Relaxed) > 20);
        is_over.store(true, Ordering::SeqCst);
        assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
        wait_until("all have left", || pool.current_worker_count() == 0);
        // A thread may still be on its way out.
        wait_until("all that was submitted has run", || {
            let stats = pool.stats();
            stats.in_flight() == 0 && stats.completed == 5 + ran.load(Ordering::Relaxed)
        });
        pool.shutdown_join();
    }
}

// Its worker context is another pool's.
#[test]
fn a_task_submits_to_another_pool() {
    let [one, other] = [(); 2].map(|()| ThreadPool::new(1, 1, HOUR));
    let busy = block(&one);
    // The second pool is free, whatever its submitter's is.
    let inner = other.clone();
    let host = other.evaluate(move || {
        let nested = inner.clone();
        value_of_others(inner.evaluate(move || value_of_others(nested.evaluate(|| 7))))
    });
    assert_eq!(value(host), 7);
    busy.open();
    let inner = other.clone();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let host = one.evaluate(move || {
        let task = inner.evaluate(worker_index);
        // Not a region: no worker is started to run instead.
        passes.pass();
        task
    });
    wait_until("the other pool has run it", || other.stats().completed == 4);
    gate.open();
    assert!(value(value(host)).is_some());
    assert_eq!(other.stats().threads_started, 3, "two of them for those that wait");
    for pool in [one, other] {
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().in_flight(), 0);
        pool.shutdown_join();
    }
}

// One after another, not on top of each other.
#[test]
fn a_long_chain_of_submissions_ends() {
    fn link(pool: &ThreadPool, left: usize) {
        let inner = pool.clone();
        if left > 0 {
            pool.execute(move || link(&inner, left - 1));
        }
    }
    for max_size in [1, 3] {
        let pool = Builder::new().core_size(1).max_size(max_size).stack_size(64 * 1024).build();
        link(&pool, 100_000);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 100_000);
        pool.shutdown_join();
    }
}

#[test]
fn a_task_that_closes_the_pool_submits_nothing_more() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let inner = pool.clone();
    let accepted = pool.evaluate(move || {
        let before = inner.try_execute(|| ()).is_ok();
        inner.close();
        (before, inner.try_execute(|| ()).is_ok())
    });
    assert_eq!(value(accepted), (true, false));
    pool.clone().shutdown_join();
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.rejected, stats.in_flight()), (2, 1, 0));
}

#[cfg(feature = "async")]
mod futures {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::{
        Arc, AtomicUsize, Duration, Gate, HOUR, LIMIT, Mutex, Ordering, ThreadPool, common, thread,
        value,
    };
    use common::{triggered, wait_until};
    use elastipool::blocking;
    use futures::channel::mpsc;
    use futures::{SinkExt, StreamExt};

    /// A future that yields before it calls `f`: in a poll that a wake has led to.
    async fn after_yield<R>(f: impl FnOnce() -> R) -> R {
        let mut polls = 0;
        poll_fn(|context| {
            polls += 1;
            if polls > 1 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        f()
    }

    // They take turns, perhaps on one worker; another one is there for what comes from outside.
    #[test]
    fn futures_that_wake_each_other_leave_the_others_alone() {
        let pool = ThreadPool::new(2, 2, HOUR);
        let ((mut ping, mut pings), (mut pong, mut pongs)) = (mpsc::channel(0), mpsc::channel(0));
        let first = pool.spawn_await(async move {
            for number in 0..2000 {
                ping.send(number).await.unwrap();
                assert_eq!(pongs.next().await, Some(number));
            }
        });
        let second = pool.spawn_await(async move {
            while let Some(number) = pings.next().await {
                if pong.send(number).await.is_err() {
                    break;
                }
            }
        });
        let mut tasks = 0;
        while !first.is_finished() {
            value(pool.evaluate(|| ()));
            tasks += 1;
        }
        value(first);
        value(second);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.in_flight()), (tasks + 2, 0));
        pool.shutdown_join();
    }

    // As a coarse task of a task: the futures of a worker that had few of them were polled more
    // often than others.
    #[test]
    fn a_future_that_yields_in_coarse_polls_waits_behind_those_that_were_woken_before() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let order = Arc::new(Mutex::new(Vec::new()));
        let sleepers: Vec<_> = (0..20)
            .map(|number| {
                let ((trigger, triggered), order) = (triggered(), Arc::clone(&order));
                let handle = pool.spawn_await(async move {
                    triggered.await;
                    order.lock().unwrap().push(number);
                });
                wait_until("it waits", || trigger.waker().is_some());
                (trigger, handle)
            })
            .collect();
        let gate = Gate::new();
        let (passes, own_order) = (Arc::clone(&gate), Arc::clone(&order));
        let yielding = pool.spawn_await(async move {
            for _ in 0..50 {
                // The worker measures how long its tasks take: time is the subject.
                after_yield(|| thread::sleep(Duration::from_millis(1))).await;
            }
            passes.pass();
            after_yield(|| own_order.lock().unwrap().push(20)).await;
        });
        gate.wait_for(1);
        sleepers.iter().for_each(|(trigger, _)| trigger.fire());
        gate.open();
        value(yielding);
        sleepers.into_iter().for_each(|(_, handle)| value(handle));
        assert_eq!(*order.lock().unwrap(), (0..=20).collect::<Vec<_>>());
        pool.shutdown_join();
    }

    // No worker is notified of them during the poll: the worker does it after the poll.
    #[test]
    fn futures_that_a_poll_wakes_get_a_worker_each() {
        let pool = ThreadPool::new(4, 4, HOUR);
        for _ in 0..200 {
            let table = Gate::new();
            let sleepers = [(); 4].map(|()| {
                let ((trigger, triggered), table) = (triggered(), Arc::clone(&table));
                let handle = pool.spawn_await(async move {
                    triggered.await;
                    table.meet(4);
                });
                (trigger, handle)
            });
            for (trigger, _) in &sleepers {
                wait_until("it waits", || trigger.waker().is_some());
            }
            let (triggers, handles): (Vec<_>, Vec<_>) = sleepers.into_iter().unzip();
            let fires = Arc::new(triggers);
            let triggers = Arc::clone(&fires);
            pool.spawn(after_yield(move || fires.iter().for_each(|trigger| trigger.fire())));
            handles.into_iter().for_each(value);
            drop(triggers);
        }
        pool.shutdown_join();
    }

    // It is a task like any other, and not a future that has been woken.
    #[test]
    fn a_task_that_a_poll_lets_into_its_group_starts() {
        let pool = ThreadPool::new(2, 2, HOUR);
        assert_eq!(pool.start_core_threads(), 2);
        let group = pool.group::<()>().limit(1);
        let (trigger, triggered) = triggered();
        let (inside, gate) = (group.clone(), Gate::new());
        let opening = Arc::clone(&gate);
        group
            .spawn(async move {
                let task = move || {
                    opening.open();
                    Ok(())
                };
                inside.execute(task).unwrap();
                triggered.await;
                Ok(())
            })
            .unwrap();
        wait_until("the other one is in line", || trigger.waker().is_some());
        let (limited, own) = (group.clone(), pool.clone());
        value(pool.spawn_await(after_yield(move || {
            wait_until("the other worker rests", || own.idle_worker_count() == 1);
            limited.set_limit(2);
            gate.pass();
        })));
        trigger.fire();
        group.wait().unwrap();
        pool.shutdown_join();
    }

    // The defect: no worker was notified of a future that was woken in a poll, in a region that
    // lasted until it ran.
    #[test]
    fn a_poll_wakes_another_future_in_a_region_and_waits_for_it() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (trigger, triggered) = triggered();
        let gate = Gate::new();
        let opens = Arc::clone(&gate);
        pool.spawn(async move {
            triggered.await;
            opens.open();
        });
        wait_until("it waits", || trigger.waker().is_some());
        let handle = pool.spawn_await(after_yield(move || {
            blocking(|| {
                trigger.fire();
                gate.pass();
            });
        }));
        value(handle);
        pool.shutdown_join();
    }

    #[test]
    fn futures_that_spawn_futures_end() {
        let pool = ThreadPool::new(2, 2, HOUR);
        let ran = Arc::new(AtomicUsize::new(0));
        fn link(pool: &ThreadPool, left: usize, ran: &Arc<AtomicUsize>) {
            let (inner, ran) = (pool.clone(), Arc::clone(ran));
            pool.spawn(async move {
                after_yield(|| ran.fetch_add(1, Ordering::Relaxed)).await;
                if left > 0 {
                    link(&inner, left - 1, &ran);
                }
            });
        }
        link(&pool, 2000, &ran);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(ran.load(Ordering::Relaxed), 2001);
        assert_eq!(pool.stats().in_flight(), 0);
        pool.shutdown_join();
    }
}
