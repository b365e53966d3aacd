//! Blocking regions: a worker that waits does not count as runnable, so others may run in its place; and when
//! it comes back there are soon as many as before. (With threads refused: `law_07_refusal_proof.rs`.)

mod common;

use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Gate, HOUR, LIMIT, block, dawdle, settled, submit_party, submit_region, value, wait_until,
};
use elastipool::{Builder, Growth, JoinHandle, ThreadPool, blocking};

/// A pool of one.
fn one() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

/// How many workers run a task or look for one: what `max_size` limits.
fn running(pool: &ThreadPool) -> usize {
    let stats = pool.stats();
    stats.workers - stats.blocked - stats.idle
}

/// The pool can run as many tasks at once as it may, and has kept no worker busy with anything else.
#[track_caller]
fn assert_is_itself_again(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT));
    wait_until("all workers are idle", || pool.stats().idle == pool.stats().workers);
    submit_party(pool, pool.max_size(), || ()).into_iter().for_each(value);
    assert!(pool.join_timeout(LIMIT));
    wait_until("all workers are idle again", || pool.stats().idle == pool.stats().workers);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.in_flight()), (0, 0));
}

// ----- others run meanwhile -----

type Wait = fn(JoinHandle<usize>) -> usize;

fn nested(pool: &ThreadPool, depth: usize, wait: Wait) -> usize {
    if depth == 0 {
        return 0;
    }
    let own = pool.clone();
    wait(pool.evaluate(move || nested(&own, depth - 1, wait))) + 1
}

/// A wait with a limit runs nothing: each of them takes a worker. One without runs what it waits for.
#[test]
fn ten_tasks_wait_for_each_other_on_a_pool_of_one() {
    let waits: [(Wait, usize); 2] = [(value, 10), (JoinHandle::await_complete, 1)];
    for (wait, workers) in waits {
        for core_size in [0, 1] {
            for growth in [Growth::Eager, Growth::Stalled(Duration::from_millis(1))] {
                let builder = Builder::new().core_size(core_size).max_size(1).keep_alive(HOUR);
                let pool = builder.growth(growth).build();
                let own = pool.clone();
                // Also the outermost waits in a task.
                assert_eq!(value(pool.evaluate(move || nested(&own, 9, wait))), 9);
                // The last one does not wait.
                let stats = pool.stats();
                assert_eq!((stats.peak_workers, stats.peak_blocked), (workers, workers - 1));
                assert_is_itself_again(&pool);
            }
        }
    }
}

#[test]
fn a_queued_task_runs_while_the_only_worker_is_in_a_region() {
    let pool = one();
    let (enters, sent) = (Gate::new(), Gate::new());
    let (passes, receives) = (Arc::clone(&enters), Arc::clone(&sent));
    let first = pool.evaluate(move || {
        passes.pass();
        blocking(|| receives.pass());
    });
    enters.wait_for(1);
    let second = pool.evaluate(move || sent.open());
    assert_eq!(pool.queued_count(), 1);
    enters.open();
    value(second);
    value(first);
    assert_is_itself_again(&pool);
}

#[test]
fn a_task_that_comes_later_runs_while_the_only_worker_is_in_a_region() {
    let pool = one();
    let (first, gate) = submit_region(&pool);
    assert_eq!(pool.stats().threads_started, 1);
    for number in 0..5 {
        assert_eq!(value(pool.evaluate(move || number)), number);
    }
    assert!(!first.is_finished());
    // One is enough for all of them.
    assert_eq!(pool.stats().threads_started, 2);
    gate.open();
    value(first);
    assert_is_itself_again(&pool);
}

/// As many workers as are in regions may be started in addition, all at the same time.
#[test]
fn max_size_tasks_run_beside_those_in_regions() {
    let pool = ThreadPool::new(1, 3, HOUR);
    let regions: Vec<_> = (0..5).map(|_| submit_region(&pool)).collect();
    submit_party(&pool, 3, || ()).into_iter().for_each(value);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.workers, stats.peak_workers), (5, 8, 8));
    for (task, gate) in regions {
        gate.open();
        value(task);
    }
    assert_is_itself_again(&pool);
}

#[test]
fn a_wait_with_a_limit_is_a_region() {
    let pool = one();
    let (gate, own) = (Gate::new(), pool.clone());
    let opens = Arc::clone(&gate);
    let task = pool.evaluate(move || {
        let passes = Arc::clone(&opens);
        let handle = own.evaluate(move || {
            passes.pass();
            7
        });
        // It has begun, on another worker, but it does not end in time.
        let mut handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
        while opens.arrived() == 0 {
            handle = handle.await_complete_timeout(Duration::from_millis(1)).unwrap_err();
        }
        assert_eq!(own.stats().blocked, 0);
        opens.open();
        handle.await_complete_timeout(LIMIT).unwrap().unwrap()
    });
    assert_eq!(value(task), 7);
    assert_is_itself_again(&pool);
}

#[test]
fn a_wait_for_a_task_of_another_pool_is_a_region() {
    let (pool, other) = (one(), one());
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = other.evaluate(move || {
        passes.pass();
        7
    });
    gate.wait_for(1);
    let waits = pool.evaluate(move || handle.await_complete());
    wait_until("it waits", || pool.stats().blocked == 1);
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    assert_eq!((pool.stats().blocked, other.stats().blocked), (1, 0));
    gate.open();
    assert_eq!(value(waits), 7);
    assert_is_itself_again(&pool);
    assert_eq!(other.stats().threads_started, 1);
}

/// Only such a wait of `complete` is a region: `law_04_bounded.rs` has the others.
#[test]
fn a_completion_that_waits_for_a_task_of_its_pool_is_in_a_region() {
    let pool = one();
    let own = pool.clone();
    let task = pool.complete(async move { own.evaluate(|| 7).await.unwrap() + 1 });
    assert_eq!(value(task), 8);

    // Not while it is polled.
    let (region, polls, own) = (Gate::new(), Gate::new(), pool.clone());
    let (passes, polled) = (Arc::clone(&region), Arc::clone(&polls));
    let task = pool.complete(async move {
        own.evaluate(move || blocking(|| passes.pass())).await.unwrap();
        let blocked = own.stats().blocked;
        polled.pass();
        blocked
    });
    region.wait_for(1);
    wait_until("both wait", || pool.stats().blocked == 2);
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    region.open();
    polls.wait_for(1);
    wait_until("the other task has ended", || running(&pool) == 1);
    assert_eq!(pool.stats().blocked, 0);
    polls.open();
    assert_eq!(value(task), 0);
    assert_is_itself_again(&pool);
}

/// It is run by a task of another pool, which knows nothing of what it waits for.
#[cfg(feature = "async")]
#[test]
fn a_future_that_was_given_back_is_in_a_region_only_while_it_waits() {
    let (pool, other) = (one(), one());
    let gate = block(&other);
    let (tellers, tolds): (Vec<_>, Vec<_>) = [common::told(), common::told()].into_iter().unzip();
    let computed = [Gate::new(), Gate::new()];
    let computes = computed.clone();
    other.spawn(async move {
        for (told, gate) in tolds.into_iter().zip(computes) {
            told.await;
            gate.pass();
        }
    });
    let task = other.shutdown_now().pop().unwrap();
    pool.execute(|| task.run());
    for (teller, gate) in tellers.iter().zip(&computed) {
        wait_until("it waits", || pool.stats().blocked == 1);
        assert_eq!(value(pool.evaluate(|| 7)), 7);
        teller.tell();
        gate.wait_for(1);
        assert_eq!(pool.stats().blocked, 0);
        wait_until("it runs alone", || running(&pool) == 1);
        gate.open();
    }
    assert_is_itself_again(&pool);
    gate.open();
    assert!(other.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn a_spawned_future_that_blocks_is_in_a_region() {
    let pool = one();
    let own = pool.clone();
    let task = pool.spawn_await(async move { nested(&own, 3, value) });
    assert_eq!(value(task), 3);
    assert_eq!(pool.stats().peak_blocked, 3);
    // A woken future runs beside a region, too.
    let (teller, told) = common::told();
    let future = pool.spawn_await(told);
    wait_until("it is pending", || teller.polls() == 1);
    let (region, gate) = submit_region(&pool);
    teller.tell();
    value(future);
    gate.open();
    value(region);
    assert_is_itself_again(&pool);
}

/// Wherever a worker may wait: in a destructor of a task's, in a panic handler.
#[test]
fn what_belongs_to_a_task_may_wait_as_well() {
    struct Waits(ThreadPool);
    impl Drop for Waits {
        fn drop(&mut self) {
            value(self.0.evaluate(|| ()));
        }
    }
    for capacity in [0, 4] {
        let own = Arc::new(OnceLock::<ThreadPool>::new());
        let (place, handled) = (Arc::clone(&own), Gate::new());
        let handles = Arc::clone(&handled);
        let builder = Builder::new().core_size(1).max_size(1).queue_capacity(capacity);
        let pool = builder
            .panic_handler(move |_| {
                value(place.get().unwrap().evaluate(|| ()));
                handles.open();
            })
            .build();
        own.set(pool.clone()).unwrap();
        let waits = Waits(pool.clone());
        value(pool.evaluate(move || drop(waits)));
        pool.execute(|| panic!("contained"));
        handled.pass();
        let (waits, gate) = (Waits(pool.clone()), block(&pool));
        if capacity > 0 {
            let cancelled = pool.evaluate(move || drop(waits));
            cancelled.cancel();
            assert!(settled(cancelled).unwrap_err().is_cancelled());
        }
        gate.open();
        assert_is_itself_again(&pool);
    }
}

// ----- no more than that -----

#[test]
fn a_region_starts_no_thread_if_nothing_is_queued() {
    let pool = one();
    for _ in 0..20 {
        assert_eq!(value(pool.evaluate(|| blocking(|| 7))), 7);
        assert!(pool.join_timeout(LIMIT));
        // It waits for this thread, which submits nothing.
        let (task, gate) = submit_region(&pool);
        gate.open();
        value(task);
        assert!(pool.join_timeout(LIMIT));
    }
    // A submitter that is slow finds its task's worker in the region, and may start one for nothing: rarely.
    let started = pool.stats().threads_started;
    assert!(started < 10, "{started} threads for 40 regions");
}

#[test]
fn a_region_in_a_region_counts_once() {
    let pool = one();
    let own = pool.clone();
    let task = pool.evaluate(move || {
        let blocked = || own.stats().blocked;
        let before = blocked();
        let (outer, inner, waited, after_inner) = blocking(|| {
            let outer = blocked();
            let (inner, waited) = blocking(|| {
                let inner = blocked();
                (inner, value(own.evaluate(|| 7)))
            });
            (outer, inner, waited, blocked())
        });
        (before, outer, inner, waited, after_inner, blocked())
    });
    assert_eq!(value(task), (0, 1, 1, 7, 1, 0));
    assert_eq!(pool.stats().peak_workers, 2);
    assert_is_itself_again(&pool);
}

#[test]
fn stats_count_the_regions() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let mut regions = Vec::new();
    for count in 1..=3 {
        regions.push(submit_region(&pool));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.active, stats.in_flight()), (count, count, count));
        assert!(stats.workers >= stats.blocked + stats.idle, "{stats:?}");
    }
    for (left, (task, gate)) in regions.into_iter().enumerate() {
        gate.open();
        value(task);
        wait_until("one less", || pool.stats().blocked == 2 - left);
    }
    assert_is_itself_again(&pool);
}

#[test]
fn outside_of_a_pool_it_is_a_call() {
    assert_eq!(blocking(|| blocking(|| 7)), 7);
    let pool = one();
    let here = thread::current().id();
    assert_eq!(blocking(|| thread::current().id()), here);
    let blocked = blocking(|| value(pool.evaluate(|| 7)));
    assert_eq!((blocked, pool.stats().blocked), (7, 0));
    let panicked = catch_unwind(|| blocking(|| panic!("goes on")));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"goes on"));
}

#[test]
fn a_panic_ends_the_region_and_goes_on() {
    let pool = one();
    let own = pool.clone();
    let task = pool.evaluate(move || {
        let inner = || blocking(|| -> u8 { panic!("goes on") });
        let payload = catch_unwind(AssertUnwindSafe(|| blocking(inner))).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"goes on"));
        assert_eq!(own.stats().blocked, 0);
        // There is a region again for the next one.
        assert_eq!(blocking(|| value(own.evaluate(|| 7))), 7);
        blocking(|| -> u8 { panic!("to the end") })
    });
    let error = settled(task).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: to the end");
    assert_eq!(pool.stats().blocked, 0);
    assert_is_itself_again(&pool);
}

// ----- back to max_size -----

/// Those that were started in the places of others are idle then, and serve the next regions.
#[test]
fn the_pool_goes_back_to_max_size() {
    for (core_size, max_size) in [(0, 1), (1, 1), (2, 3)] {
        let pool = ThreadPool::new(core_size, max_size, HOUR);
        for _ in 0..5 {
            let regions: Vec<_> = (0..max_size + 4).map(|_| submit_region(&pool)).collect();
            assert!(pool.current_worker_count() >= max_size + 4);
            for (_, gate) in &regions {
                gate.open();
            }
            for (task, _) in regions {
                value(task);
            }
            wait_until("all are idle", || running(&pool) == 0);
        }
        assert!(pool.current_worker_count() >= core_size);
        // No worker is started while one is idle, or while `max_size` are not blocked; and none has left.
        let started = pool.stats().threads_started;
        assert!(started <= 2 * max_size + 4, "{started} threads for {} regions", max_size + 4);
        assert_is_itself_again(&pool);
    }
}

/// The worker that was started in the place of a blocked one is kept for the next, and runs nothing meanwhile.
#[test]
fn an_idle_worker_is_a_spare_when_another_comes_back() {
    let pool = one();
    let (regions, works) = ([Gate::new(), Gate::new()], [Gate::new(), Gate::new()]);
    let (blocks, computes) = (regions.clone(), works.clone());
    let task = pool.evaluate(move || {
        for (region, work) in blocks.iter().zip(&computes) {
            blocking(|| region.pass());
            work.pass();
        }
    });
    for (region, work) in regions.iter().zip(&works) {
        region.wait_for(1);
        value(pool.evaluate(|| ()));
        wait_until("the other one is idle", || pool.idle_worker_count() == 1);
        region.open();
        work.wait_for(1);
        let queued = pool.evaluate(|| ());
        // Time for a defect.
        thread::sleep(Duration::from_millis(20));
        assert!(!queued.is_finished(), "two tasks run on a pool of one");
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.idle, stats.queued), (2, 1, 1));
        work.open();
        value(queued);
    }
    value(task);
    assert_eq!(pool.stats().threads_started, 2);
    assert_is_itself_again(&pool);
}

#[test]
fn a_spare_retires_after_its_keep_alive() {
    for core_size in [0, 1] {
        let pool = ThreadPool::new(core_size, 1, Duration::from_millis(50));
        let (region, works) = (Gate::new(), Gate::new());
        let (blocks, computes) = (Arc::clone(&region), Arc::clone(&works));
        let task = pool.evaluate(move || {
            blocking(|| blocks.pass());
            computes.pass();
        });
        region.wait_for(1);
        let second = block(&pool);
        region.open();
        works.wait_for(1);
        assert_eq!((pool.stats().workers, pool.stats().idle), (2, 0));
        let before = Instant::now();
        second.open();
        // While the other one works, and while a task is queued that the spare may not take.
        let queued = pool.evaluate(|| ());
        wait_until("the spare has retired", || pool.current_worker_count() == 1);
        assert!(before.elapsed() >= Duration::from_millis(50), "{:?}", before.elapsed());
        assert!(!queued.is_finished());
        works.open();
        value(queued);
        value(task);
        assert_eq!(pool.stats().threads_started, 2);
        assert_is_itself_again(&pool);
    }
}

/// One over, until the next one ends its task: that one is a spare then, and no other task is started.
#[test]
fn a_worker_that_comes_back_is_one_too_many_until_the_next_task_ends() {
    for first_ends in [false, true] {
        let pool = one();
        let (region, comes_back) = (Gate::new(), Gate::new());
        let gates = [Arc::clone(&region), Arc::clone(&comes_back)];
        let first = pool.evaluate(move || {
            blocking(|| gates[0].pass());
            gates[1].pass();
        });
        region.wait_for(1);
        let second = block(&pool);
        let third = Gate::new();
        let passes = Arc::clone(&third);
        let queued = pool.evaluate(move || passes.pass());
        region.open();
        comes_back.wait_for(1);
        // Both run: no worker is stopped.
        assert_eq!((pool.stats().active, running(&pool)), (2, 2));
        let (next, last) = if first_ends { (&comes_back, &second) } else { (&second, &comes_back) };
        next.open();
        wait_until("one is idle", || pool.idle_worker_count() == 1);
        // Time for a defect.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(
            (third.arrived(), pool.queued_count(), running(&pool)),
            (0, 1, 1),
            "two tasks run on a pool of one"
        );
        last.open();
        third.wait_for(1);
        assert_eq!(running(&pool), 1);
        third.open();
        value(first);
        value(queued);
        assert_is_itself_again(&pool);
    }
}

/// As above, with luck: those that have come back from a region may be too many, nobody else.
#[test]
fn never_more_than_max_size_tasks_begin_beside_each_other() {
    #[derive(Default)]
    struct Watch {
        /// Tasks that run and have not been in a region.
        fresh: AtomicUsize,
        most: AtomicUsize,
    }
    for max_size in [1, 2] {
        let pool = ThreadPool::new(0, max_size, Duration::from_micros(50));
        let watch = Arc::new(Watch::default());
        let mut handles = Vec::new();
        for _ in 0..400 {
            let watch = Arc::clone(&watch);
            handles.push(pool.evaluate(move || {
                let fresh = watch.fresh.fetch_add(1, Ordering::SeqCst) + 1;
                watch.most.fetch_max(fresh, Ordering::SeqCst);
                dawdle(300);
                watch.fresh.fetch_sub(1, Ordering::SeqCst);
                if fastrand::bool() {
                    blocking(|| dawdle(300));
                    dawdle(100);
                }
            }));
            dawdle(300);
        }
        handles.into_iter().for_each(value);
        assert!(watch.most.load(Ordering::SeqCst) <= max_size, "{:?}", watch.most);
        assert!(pool.join_timeout(LIMIT));
        wait_until("none is left", || pool.current_worker_count() == 0);
        assert_eq!(pool.stats().blocked, 0);
    }
}

/// A worker that only computes is not replaced, however much is queued.
#[test]
fn without_regions_it_is_max_size() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let (begun, is_over) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    for _ in 0..2 {
        let (begins, ends) = (Arc::clone(&begun), Arc::clone(&is_over));
        pool.execute(move || {
            begins.meet(2);
            while !ends.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    }
    begun.wait_for(2);
    let handles: Vec<_> = (0..20).map(|number| pool.evaluate(move || number)).collect();
    // A wait of somebody else's is not theirs.
    let deadline = Instant::now() + Duration::from_millis(30);
    while Instant::now() < deadline {
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.threads_started, stats.queued), (2, 2, 20));
        thread::yield_now();
    }
    is_over.store(true, Ordering::Relaxed);
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(value(handle), number);
    }
    assert_eq!((pool.stats().peak_workers, pool.stats().threads_started), (2, 2));
}

// ----- hooks -----

type Hook = Box<dyn Fn(usize) + Send + Sync>;

/// A pool whose hook is called with it, by the first worker only.
fn with_hook(
    builder: Builder,
    set: fn(Builder, Hook) -> Builder,
    hook: impl Fn(&ThreadPool) + Send + Sync + 'static,
) -> ThreadPool {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let place = Arc::clone(&own);
    let call = move |_: usize| {
        let own = place.lock().unwrap().take();
        if let Some(own) = own {
            hook(&own);
        }
    };
    let pool = set(builder, Box::new(call)).build();
    *own.lock().unwrap() = Some(pool.clone());
    pool
}

#[test]
fn a_start_hook_may_wait_for_a_task_of_its_pool() {
    for core_size in [0, 1] {
        let (sender, receiver) = std::sync::mpsc::channel();
        let builder = Builder::new().core_size(core_size).max_size(1).keep_alive(HOUR);
        let pool = with_hook(
            builder,
            |builder, hook| builder.on_worker_start(hook),
            move |own| sender.send(own.evaluate(|| 7).await_complete()).unwrap(),
        );
        assert_eq!(value(pool.evaluate(|| 8)), 8);
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(7));
        assert_is_itself_again(&pool);
    }
}

/// Also if its queue is full by then.
#[test]
fn a_start_hook_may_wait_for_a_task_of_its_bounded_pool() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let builder = Builder::new().core_size(1).max_size(1).queue_capacity(0);
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_start(hook),
        move |own| sender.send(own.evaluate(|| 7).await_complete()).unwrap(),
    );
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(7));
    assert_is_itself_again(&pool);
}

#[test]
fn a_start_hook_that_does_not_return_holds_nobody_back() {
    let (stuck, release) = (Gate::new(), Gate::new());
    let (arrives, waits) = (Arc::clone(&stuck), Arc::clone(&release));
    let builder = Builder::new().core_size(0).max_size(8).keep_alive(HOUR);
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_start(hook),
        move |_| {
            arrives.open();
            waits.pass();
        },
    );
    let first = pool.evaluate(|| ());
    stuck.pass();
    // What it waits for.
    let opens = Arc::clone(&release);
    value(pool.evaluate(move || opens.open()));
    value(first);
    assert_is_itself_again(&pool);
}

/// Those that were started in their places would come to the same hook.
#[test]
fn start_hooks_that_block_keep_their_places() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let builder = Builder::new().core_size(0).max_size(2).keep_alive(HOUR);
    let pool = builder.on_worker_start(move |_| blocking(|| passes.pass())).build();
    let tasks: Vec<_> = (0..3).map(|_| pool.evaluate(|| ())).collect();
    gate.wait_for(2);
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.blocked), (2, 0));
    gate.open();
    tasks.into_iter().for_each(value);
    assert_is_itself_again(&pool);
    assert_eq!(pool.stats().threads_started, 2);
}

/// Which waits for a task of the pool, and the first worker is busy.
#[test]
fn start_hooks_that_wait_start_no_more_than_max_size_in_addition() {
    const MAX_SIZE: usize = 2;
    let own = Arc::new(OnceLock::<ThreadPool>::new());
    let place = Arc::clone(&own);
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(HOUR);
    let wait = move |_| {
        if let Some(own) = place.get() {
            value(own.evaluate(|| ()));
        }
    };
    let pool = builder.on_worker_start(wait).build();
    let gate = block(&pool);
    own.set(pool.clone()).unwrap();
    pool.set_max_size(MAX_SIZE).unwrap();
    let task = pool.evaluate(|| ());
    wait_until("as many have come", || pool.current_worker_count() >= 2 * MAX_SIZE);
    // Time for a defect.
    thread::sleep(Duration::from_millis(20));
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.blocked), (2 * MAX_SIZE, MAX_SIZE));
    gate.open();
    value(task);
    assert_is_itself_again(&pool);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_stop_hook_may_wait_for_a_task_of_its_pool() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(Duration::from_millis(1));
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_stop(hook),
        move |own| {
            let blocked = blocking(|| own.stats().blocked);
            sender.send((blocked, own.evaluate(|| 7).await_complete())).unwrap();
        },
    );
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    // The worker is counted no longer, so there is no region for it, and no need of one.
    assert_eq!(receiver.recv_timeout(LIMIT), Ok((0, 7)));
    assert_is_itself_again(&pool);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A future that yields has nothing to wait for: its worker keeps its place, though a task is queued.
#[test]
fn a_completion_that_yields_is_in_no_region() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (queued, is_queued) = mpsc::channel::<()>();
    let completion = pool.complete(async move {
        is_queued.recv().unwrap();
        for _ in 0..1_000 {
            let mut yielded = false;
            poll_fn(|context| {
                if mem::replace(&mut yielded, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    });
    let task = pool.evaluate(|| ());
    queued.send(()).unwrap();
    completion.await_complete();
    task.await_complete();
    assert_eq!(pool.stats().threads_started, 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}
