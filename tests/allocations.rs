//! What a task costs in allocations once the pool is warm: none, if what it brings along is small.
//!
//! One test only: the count is that of all threads of the process.

use std::alloc::System;
#[cfg(feature = "async")]
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(feature = "async")]
use std::task::{Context, Poll};
use std::time::Duration;

use elastipool::ThreadPool;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many tasks the queue, crossbeam's, puts into one of its blocks.
const TASKS_PER_BLOCK: usize = 31;

const BLOCKS: usize = 1000;
const TASKS: usize = TASKS_PER_BLOCK * BLOCKS;

/// For what happens once and not for each task, such as waiting at the end. A multiple of what was
/// ever seen.
const SLACK: usize = 50;

const LIMIT: Duration = Duration::from_secs(60);

/// What all tasks add to, so that it need not be captured.
static SUM: AtomicUsize = AtomicUsize::new(0);

fn add<const WORDS: usize>(words: [usize; WORDS]) {
    SUM.fetch_add(1 + words.iter().sum::<usize>(), Ordering::Relaxed);
}

/// How many allocations [`TASKS`] tasks cost, besides the queue's blocks.
#[track_caller]
fn cost(pool: &ThreadPool, words: usize, submit: impl Fn()) -> usize {
    let run = || {
        SUM.store(0, Ordering::Relaxed);
        (0..TASKS).for_each(|_| submit());
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(SUM.load(Ordering::Relaxed), TASKS * (1 + words), "each task has run, once");
    };
    // The worker has been started, and has waited for work, and so has this thread for the pool.
    run();
    let region = Region::new(ALLOCATOR);
    run();
    let change = region.change();
    let allocations = change.allocations + change.reallocations;
    let besides = allocations.checked_sub(BLOCKS - 1);
    besides.unwrap_or_else(|| panic!("not even the queue's blocks: {allocations}"))
}

#[track_caller]
fn costs_nothing(pool: &ThreadPool, words: usize, submit: impl Fn()) {
    let allocations = cost(pool, words, submit);
    assert!(allocations <= SLACK, "{allocations} allocations for {TASKS} tasks of {words} words");
}

/// Checks the exact number for each.
#[track_caller]
fn costs(each: usize, pool: &ThreadPool, words: usize, submit: impl Fn()) {
    let allocations = cost(pool, words, submit);
    let is_exact = (each * TASKS..=each * TASKS + SLACK).contains(&allocations);
    assert!(is_exact, "{allocations} allocations for {TASKS} tasks of {words} words");
}

/// One for the future, one for the handle's channel, and one more for a future of more than 2 KiB.
#[cfg(feature = "async")]
fn futures(pool: &ThreadPool) {
    /// No larger than its words: an `async` block knows as well how far it has come.
    struct Add<const WORDS: usize>([usize; WORDS]);

    impl<const WORDS: usize> Future for Add<WORDS> {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            add(self.0);
            Poll::Ready(())
        }
    }

    const LIMIT_WORDS: usize = 2048 / size_of::<usize>();
    costs(1, pool, 1, || pool.spawn(Add([1; 1])));
    costs(2, pool, 1, || drop(pool.spawn_await(Add([1; 1]))));
    costs(1, pool, LIMIT_WORDS, || pool.spawn(Add([1; LIMIT_WORDS])));
    costs(2, pool, LIMIT_WORDS + 1, || pool.spawn(Add([1; LIMIT_WORDS + 1])));
    costs(3, pool, LIMIT_WORDS + 1, || drop(pool.spawn_await(Add([1; LIMIT_WORDS + 1]))));
    let group = pool.group::<()>();
    costs(1, pool, 1, || {
        let task = async {
            Add([1; 1]).await;
            Ok(())
        };
        group.spawn(task).expect("the group is not cancelled");
    });
}

/// A future that is handed back and run outside of the pool: its polls cost nothing.
#[cfg(feature = "async")]
fn polls_elsewhere() {
    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    pool.execute(move || gate.recv().expect("the gate is opened"));
    let mut polls = 0;
    pool.spawn(std::future::poll_fn(move |context| {
        polls += 1;
        context.waker().wake_by_ref();
        if polls == TASKS { Poll::Ready(()) } else { Poll::Pending }
    }));
    while pool.stats().active == 0 {
        std::thread::yield_now();
    }
    let task = pool.shutdown_now().pop().expect("the future has not been polled");
    let region = Region::new(ALLOCATOR);
    task.run();
    let allocations = region.change().allocations;
    assert!(allocations <= SLACK, "{allocations} allocations for {TASKS} polls");
    open.send(()).expect("the gate is there");
    pool.shutdown_join();
}

/// One for the task, one for its handle's channel, also if the waiter runs the task itself.
fn awaited_by_a_worker() {
    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let inner = pool.clone();
    let allocations = pool.evaluate(move || {
        let run = || (0..TASKS).for_each(|_| inner.evaluate(|| add([])).await_complete());
        run();
        let region = Region::new(ALLOCATOR);
        run();
        region.change().allocations
    });
    let allocations = allocations.await_complete();
    let is_exact = (2 * TASKS..=2 * TASKS + SLACK).contains(&allocations);
    assert!(is_exact, "{allocations} allocations for {TASKS} awaited tasks");
    pool.shutdown_join();
}

#[test]
fn a_small_task_costs_no_allocation() {
    for workers in [1, 2] {
        let pool = ThreadPool::new(workers, workers, Duration::from_secs(3600));
        pool.start_core_threads();

        let (none, one) = (pool.handler(add::<0>), pool.handler(add::<1>));
        costs_nothing(&pool, 0, || none.invoke([]));
        costs_nothing(&pool, 1, || one.invoke([1; 1]));
        // 16 bytes, where a word has 8: that is the promise.
        let two = pool.handler(add::<2>);
        costs_nothing(&pool, 2, || two.invoke([1; 2]));
        costs_nothing(&pool, 2, || two.try_invoke([1; 2]).expect("the pool is open"));
        let clone = two.clone();
        costs_nothing(&pool, 2, || clone.invoke([1; 2]));
        // However much the function has captured, it is not copied for a call.
        let captured = [0_usize; 100];
        let large = pool.handler(move |words: [usize; 2]| add([words[0], words[1] + captured[99]]));
        costs_nothing(&pool, 2, || large.invoke([1; 2]));
        // And this is its limit: a third word does not fit.
        let three = pool.handler(add::<3>);
        costs(1, &pool, 3, || three.invoke([1; 3]));

        // A closure has no function to point to: one word more.
        let [a, b, c, d] = std::hint::black_box([1; 4]);
        costs_nothing(&pool, 0, || pool.execute(|| add([])));
        costs_nothing(&pool, 2, || pool.execute(move || add([a, b])));
        costs_nothing(&pool, 3, || pool.execute(move || add([a, b, c])));
        costs(1, &pool, 4, || pool.execute(move || add([a, b, c, d])));
        // One for the task, one for its handle's channel, and one more for a larger closure.
        costs(2, &pool, 3, || drop(pool.evaluate(move || add([a, b, c]))));
        costs(3, &pool, 4, || drop(pool.evaluate(move || add([a, b, c, d]))));
        let group = pool.group::<()>();
        costs(1, &pool, 3, || {
            drop(group.execute(move || {
                add([a, b, c]);
                Ok(())
            }));
        });
        costs(2, &pool, 4, || {
            drop(group.execute(move || {
                add([a, b, c, d]);
                Ok(())
            }));
        });
        #[cfg(feature = "async")]
        futures(&pool);
        pool.shutdown_join();
    }
    awaited_by_a_worker();
    #[cfg(feature = "async")]
    polls_elsewhere();
}
