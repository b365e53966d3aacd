//! Handlers: one function, many arguments. A call is a task like any other: where it is refused, counted, given back
//! and dropped, and in which order it comes. (What it costs: `allocations.rs`.)

mod common;

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{Dropped, Drops, Gate, HOUR, LIMIT, block, panic_text, refused, value, wait_until};
use elastipool::{Builder, Handler, RejectReason, Task, ThreadPool, worker_index};

/// A time in which nothing happens that a gate holds back.
const MOMENT: Duration = Duration::from_millis(20);

fn one() -> Builder {
    Builder::new().core_size(1).max_size(1).keep_alive(HOUR)
}

/// A pool of one.
fn pool() -> ThreadPool {
    one().build()
}

/// A pool of one, whose worker is busy until the gate opens.
fn busy(builder: Builder) -> (ThreadPool, Arc<Gate>) {
    let pool = builder.build();
    let gate = block(&pool);
    (pool, gate)
}

/// A builder whose panic handler counts.
fn heard() -> (Builder, Arc<AtomicUsize>) {
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&heard);
    let builder = one().panic_handler(move |_| {
        hears.fetch_add(1, Ordering::SeqCst);
    });
    (builder, heard)
}

type Log<T> = Arc<Mutex<Vec<T>>>;

/// A handler that writes down its arguments.
fn writer<T: Send + 'static>(pool: &ThreadPool) -> (Handler<T>, Log<T>) {
    let log = Log::default();
    let handler = {
        let log = Arc::clone(&log);
        pool.handler(move |argument| log.lock().unwrap().push(argument))
    };
    (handler, log)
}

#[track_caller]
fn written<T>(pool: &ThreadPool, log: &Log<T>) -> Vec<T> {
    assert!(pool.join_timeout(LIMIT));
    std::mem::take(&mut log.lock().unwrap())
}

fn worker_of(pool: &ThreadPool) -> ThreadId {
    value(pool.evaluate(|| thread::current().id()))
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a destructor's, on purpose");
    }
}

// ----- what a call does -----

#[test]
fn each_argument_is_given_to_the_function_once() {
    let pool = ThreadPool::new(2, 4, HOUR);
    let (handler, log) = writer(&pool);
    for number in 0..1000 {
        if number % 2 == 0 {
            handler.invoke(number);
        } else {
            handler.try_invoke(number).unwrap();
        }
    }
    let mut numbers = written(&pool, &log);
    numbers.sort();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[test]
fn the_function_runs_on_a_worker() {
    let pool = pool();
    let (sender, receiver) = mpsc::channel();
    let handler =
        pool.handler(move |()| sender.send((thread::current().id(), worker_index())).unwrap());
    handler.invoke(());
    let (id, index) = receiver.recv_timeout(LIMIT).unwrap();
    assert_eq!((id, index), (worker_of(&pool), Some(0)));
    handler.try_invoke(()).unwrap();
    assert_eq!(receiver.recv_timeout(LIMIT), Ok((id, index)));
}

#[test]
fn calls_run_at_the_same_time() {
    let pool = ThreadPool::new(0, 3, HOUR);
    let table = Gate::new();
    let meets = Arc::clone(&table);
    let handler = pool.handler(move |party| meets.meet(party));
    (0..3).for_each(|_| handler.invoke(3));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((table.arrived(), pool.stats().panicked), (3, 0));
}

#[test]
fn clones_call_the_same_function() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let clone = handler.clone();
    handler.invoke(1);
    clone.invoke(2);
    drop(handler);
    clone.clone().invoke(3);
    assert_eq!(written(&pool, &log), [1, 2, 3]);
}

#[test]
fn several_threads_share_a_handler() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let (handler, log) = writer(&pool);
    thread::scope(|scope| {
        for thread in 0..4 {
            let handler = &handler;
            scope.spawn(move || (0..100).for_each(|number| handler.invoke(100 * thread + number)));
        }
    });
    let mut numbers = written(&pool, &log);
    numbers.sort();
    assert_eq!(numbers, (0..400).collect::<Vec<_>>());
}

#[test]
fn a_handler_is_send_and_sync_whatever_its_argument_is() {
    fn is_all<T: Send + Sync + UnwindSafe + RefUnwindSafe + Clone + 'static>(_: &T) {}

    let pool = pool();
    let (handler, log) = writer::<Cell<u8>>(&pool);
    is_all(&handler);
    thread::scope(|scope| {
        scope.spawn(|| handler.invoke(Cell::new(1)));
    });
    assert_eq!(written(&pool, &log), [Cell::new(1)]);
}

#[test]
fn its_debug_text_names_the_pool() {
    let pool = one().name("of-the-handler").build();
    let handler = pool.handler(|_: u8| ());
    assert_eq!(format!("{handler:?}"), "Handler { pool: \"of-the-handler\", .. }");
}

#[test]
fn join_waits_for_calls() {
    let (pool, gate) = busy(one());
    let passes = Arc::clone(&gate);
    let handler = pool.handler(move |()| passes.pass());
    handler.invoke(());
    // Queued,
    assert!(!pool.join_timeout(MOMENT));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    // and running.
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handler = pool.handler(move |()| passes.pass());
    handler.invoke(());
    gate.wait_for(1);
    assert!(!pool.join_timeout(MOMENT));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

#[test]
fn what_the_function_writes_is_visible_after_join() {
    let pool = ThreadPool::new(4, 4, HOUR);
    let sum = Arc::new(AtomicUsize::new(0));
    let adds = Arc::clone(&sum);
    // Relaxed: it is the join that makes it visible.
    let handler = pool.handler(move |number| {
        adds.fetch_add(number, Ordering::Relaxed);
    });
    for round in 1..=200 {
        (0..10).for_each(|_| handler.invoke(1));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(sum.load(Ordering::Relaxed), 10 * round);
    }
}

// ----- arguments of all kinds -----

#[test]
fn a_large_argument_arrives_whole() {
    let pool = pool();
    let (handler, log) = writer::<[u8; 1024]>(&pool);
    let argument = |number: u8| std::array::from_fn(|place| number ^ place as u8);
    (0..100).for_each(|number| handler.invoke(argument(number)));
    assert!(written(&pool, &log).into_iter().eq((0..100).map(argument)));
}

#[test]
fn an_argument_may_be_of_any_size_around_the_limit() {
    fn check<const WORDS: usize>() {
        let pool = pool();
        let (handler, log) = writer::<[usize; WORDS]>(&pool);
        let argument = |number: usize| std::array::from_fn(|place| 10 * number + place);
        (0..10).for_each(|number| handler.invoke(argument(number)));
        assert!(written(&pool, &log).into_iter().eq((0..10).map(argument)), "{WORDS} words");
    }

    check::<1>();
    check::<2>();
    check::<3>();
    check::<4>();
}

#[test]
fn an_argument_without_a_size_arrives() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);

    struct Nothing;

    impl Drop for Nothing {
        fn drop(&mut self) {
            LEFT.fetch_sub(1, Ordering::SeqCst);
        }
    }

    let pool = pool();
    let (handler, log) = writer(&pool);
    LEFT.store(100, Ordering::SeqCst);
    (0..100).for_each(|_| handler.invoke(Nothing));
    let arrived = written(&pool, &log);
    assert_eq!((arrived.len(), LEFT.load(Ordering::SeqCst)), (100, 100));
    drop(arrived);
    assert_eq!(LEFT.load(Ordering::SeqCst), 0);
}

#[test]
fn an_argument_is_aligned_as_it_must_be() {
    #[repr(align(128))]
    struct Aligned(u8);

    let pool = pool();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |argument: Aligned| {
        // The address is looked at where it is used: a copy elsewhere would be aligned anyway.
        let address = std::hint::black_box(&raw const argument).addr();
        logs.lock().unwrap().push((address % 128, argument.0));
    });
    (0..50).for_each(|number| handler.invoke(Aligned(number)));
    assert!(written(&pool, &log).into_iter().eq((0..50).map(|number| (0, number))));
}

/// Small enough to lie in the queue, but for its alignment.
#[test]
fn an_argument_that_is_nothing_but_aligned_arrives() {
    #[repr(align(16))]
    struct Aligned;

    let pool = pool();
    let (handler, log) = writer(&pool);
    (0..50).for_each(|_| handler.invoke(Aligned));
    assert_eq!(written(&pool, &log).len(), 50);
}

// ----- arguments that come back -----

#[test]
fn a_closed_pool_hands_the_argument_back_untouched() {
    let pool = pool();
    let drops = Drops::default();
    let (handler, log) = writer(&pool);
    pool.close();
    let argument = Box::new((7, drops.issue()));
    let address = &raw const *argument;
    let rejected = refused(handler.try_invoke(argument), RejectReason::Closed);
    assert_eq!(rejected.to_string(), "the task was not accepted: the pool is closed");
    let argument = rejected.into_task();
    assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 7, 0));
    assert!(written(&pool, &log).is_empty());
    assert_eq!((pool.stats().rejected, pool.stats().accepted()), (1, 0));
}

#[test]
fn a_full_queue_hands_the_argument_back_untouched() {
    let (pool, gate) = busy(one().queue_capacity(2));
    let drops = Drops::default();
    let (handler, log) = writer(&pool);
    for number in [1, 2] {
        handler.try_invoke(Box::new((number, drops.issue()))).unwrap();
    }
    let argument = Box::new((3, drops.issue()));
    let address = &raw const *argument;
    let rejected = refused(handler.try_invoke(argument), RejectReason::Full);
    let argument = rejected.into_task();
    assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 3, 0));
    assert_eq!((pool.stats().rejected, pool.queued_count()), (1, 2));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    handler.try_invoke(argument).unwrap();
    let numbers: Vec<_> = written(&pool, &log).iter().map(|argument| argument.0).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[cfg(target_os = "linux")]
mod without_threads {
    use super::*;
    use common::refusal::{Refusal, in_a_child};

    #[test]
    fn without_a_thread_try_invoke_hands_the_argument_back() {
        in_a_child("without_threads::without_a_thread_try_invoke_hands_the_argument_back", || {
            let pool = pool();
            let drops = Drops::default();
            let (handler, log) = writer(&pool);
            let refusal = Refusal::begin();
            let argument = Box::new((7, drops.issue()));
            let address = &raw const *argument;
            let rejected = refused(handler.try_invoke(argument), RejectReason::NoThread);
            let argument = rejected.into_task();
            assert_eq!((&raw const *argument, argument.0, drops.count()), (address, 7, 0));
            assert!(log.lock().unwrap().is_empty());
            let stats = pool.stats();
            assert_eq!((stats.rejected, stats.threads_refused), (1, 1));
            assert_eq!((stats.accepted(), stats.in_flight(), stats.workers), (0, 0, 0));
            assert!(pool.join_timeout(Duration::ZERO), "there is nothing to wait for");
            refusal.end();
            // The next one tries again.
            handler.try_invoke(argument).unwrap();
            assert_eq!(written(&pool, &log).len(), 1);
        });
    }

    #[test]
    fn without_a_thread_invoke_calls_the_function_here() {
        in_a_child("without_threads::without_a_thread_invoke_calls_the_function_here", || {
            let (builder, heard) = heard();
            let pool = builder.build();
            let (sender, receiver) = mpsc::channel();
            let handler = pool.handler(move |number: u8| {
                assert!(number > 0, "contained");
                sender.send((number, thread::current().id())).unwrap();
            });
            let here = thread::current().id();
            let refusal = Refusal::begin();
            handler.invoke(7);
            assert_eq!(receiver.try_recv(), Ok((7, here)), "before `invoke` returns");
            handler.invoke(0);
            assert_eq!(heard.load(Ordering::SeqCst), 1, "here, too, it is contained");
            let stats = pool.stats();
            assert_eq!((stats.completed, stats.panicked, stats.rejected), (1, 1, 0));
            assert_eq!((stats.in_flight(), stats.workers, stats.threads_refused), (0, 0, 2));
            refusal.end();
            handler.invoke(8);
            let (number, there) = receiver.recv_timeout(LIMIT).unwrap();
            assert_eq!((number, there == here), (8, false));
        });
    }
}

// ----- panics -----

#[test]
fn a_panic_goes_to_the_panic_handler_and_costs_no_worker() {
    let (sender, payloads) = mpsc::channel();
    let pool = one().panic_handler(move |payload| sender.send(payload).unwrap()).build();
    let worker = worker_of(&pool);
    let handler = pool.handler(|number: u32| panic_any(number));
    handler.invoke(1);
    handler.try_invoke(2).unwrap();
    for number in [1_u32, 2] {
        let payload = payloads.recv_timeout(LIMIT).expect("it is told");
        assert_eq!(payload.downcast_ref(), Some(&number));
    }
    assert!(pool.join_timeout(LIMIT));
    assert!(payloads.try_recv().is_err());
    assert_eq!((pool.stats().panicked, pool.stats().completed), (2, 1));
    assert_eq!((worker_of(&pool), pool.stats().threads_started), (worker, 1));
}

#[test]
fn after_a_panic_the_function_is_called_again() {
    let pool = pool();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |number: u32| {
        assert!(number % 2 == 0, "on purpose");
        logs.lock().unwrap().push(number);
    });
    (0..6).for_each(|number| handler.invoke(number));
    assert_eq!(written(&pool, &log), [0, 2, 4]);
    assert_eq!((pool.stats().panicked, pool.stats().completed), (3, 3));
}

#[test]
fn a_panic_drops_the_argument_once() {
    let pool = pool();
    let drops = Drops::default();
    let handler = pool.handler(|_guard: Dropped| panic!("on purpose"));
    handler.invoke(drops.issue());
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_destructor_of_the_argument_that_panics_costs_no_worker() {
    let pool = pool();
    let worker = worker_of(&pool);
    let handler = pool.handler(|_bomb: Bomb| ());
    (0..3).for_each(|_| handler.invoke(Bomb));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().panicked, pool.stats().completed), (3, 1));
    assert_eq!((worker_of(&pool), pool.stats().threads_started), (worker, 1));
}

#[test]
fn a_destructor_of_the_function_that_panics_costs_no_worker() {
    let (pool, gate) = busy(one());
    let log = Log::default();
    let (logs, bomb) = (Arc::clone(&log), Bomb);
    let handler = pool.handler(move |number| {
        let _captured = &bomb;
        logs.lock().unwrap().push(number);
    });
    handler.invoke(1);
    // The call is the last to hold the function.
    drop(handler);
    gate.open();
    assert_eq!(written(&pool, &log), [1]);
    assert_eq!(pool.stats().panicked, 1);
    worker_of(&pool);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.threads_started, stats.in_flight()), (1, 1, 0));
}

#[test]
fn a_destructor_that_panics_in_the_hands_of_the_caller_is_the_callers() {
    let pool = pool();
    let bomb = Bomb;
    let handler = pool.handler(move |()| {
        let _captured = &bomb;
    });
    handler.invoke(());
    assert!(pool.join_timeout(LIMIT));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(handler)));
    assert_eq!(dropped.unwrap_err().downcast_ref(), Some(&"a destructor's, on purpose"));
    assert_eq!((pool.stats().panicked, pool.stats().completed), (0, 1));
}

// ----- counts and order -----

#[test]
fn calls_are_counted_as_tasks() {
    let (pool, gate) = busy(one());
    let handler = pool.handler(|fails: bool| assert!(!fails, "on purpose"));
    [false, true, false, false].into_iter().for_each(|fails| handler.invoke(fails));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.active, stats.in_flight()), (4, 1, 5));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled, stats.rejected), (4, 1, 0, 0));
    assert_eq!((stats.accepted(), stats.in_flight()), (5, 0));
}

#[test]
fn one_worker_makes_calls_in_order() {
    let (pool, gate) = busy(one());
    let (handler, log) = writer(&pool);
    (0..5000).for_each(|number| handler.invoke(number));
    gate.open();
    assert_eq!(written(&pool, &log), (0..5000).collect::<Vec<_>>());
}

#[test]
fn calls_and_other_tasks_come_in_the_order_of_one_thread() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let add = |number| {
        let log = Arc::clone(&log);
        move || log.lock().unwrap().push(number)
    };
    let other = {
        let log = Arc::clone(&log);
        pool.handler(move |number: usize| log.lock().unwrap().push(number))
    };
    for _ in 0..20 {
        for number in 0..100 {
            match fastrand::u8(0..4) {
                0 => handler.invoke(number),
                1 => other.try_invoke(number).unwrap(),
                2 => pool.execute(add(number)),
                _ => drop(pool.evaluate(add(number))),
            }
            // So that the worker is met at work, about to rest, and at rest.
            common::dawdle(3000);
        }
        assert_eq!(written(&pool, &log), (0..100).collect::<Vec<_>>());
    }
}

// ----- the end of the pool -----

#[test]
fn a_handler_does_not_keep_the_pool_open() {
    let pool = pool();
    let (handler, log) = writer(&pool);
    let clone = pool.clone();
    drop(pool);
    handler.invoke("open");
    assert_eq!(written(&clone, &log), ["open"]);
    drop(clone);
    assert_eq!(refused(handler.try_invoke("late"), RejectReason::Closed).into_task(), "late");
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn invoke_on_a_closed_pool_panics_with_a_message() {
    let pool = pool();
    let drops = Drops::default();
    let handler = pool.handler(drop::<Dropped>);
    drop(pool);
    assert_eq!(
        panic_text(|| handler.invoke(drops.issue())),
        "the task was not accepted: the pool is closed; `try_invoke` hands it back"
    );
    assert_eq!(drops.count(), 1);
    // The destructor runs apart from the panic, or this would abort.
    let handler = {
        let pool = self::pool();
        pool.handler(drop::<Bomb>)
    };
    assert!(panic_text(|| handler.invoke(Bomb)).contains("closed"));
}

#[test]
fn calls_that_were_accepted_are_made_after_the_pool_was_dropped() {
    let (pool, gate) = busy(one());
    let (handler, log) = writer(&pool);
    (0..100).for_each(|number| handler.invoke(number));
    drop(pool);
    refused(handler.try_invoke(100), RejectReason::Closed);
    gate.open();
    wait_until("all calls are made", || log.lock().unwrap().len() == 100);
    assert_eq!(*log.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn the_pool_ends_while_there_is_a_handler() {
    let pool = Builder::new().name("h-ends").core_size(2).max_size(2).build();
    let (handler, log) = writer(&pool);
    (0..100).for_each(|number| handler.invoke(number));
    let clone = handler.clone();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(log.lock().unwrap().len(), 100);
    #[cfg(target_os = "linux")]
    wait_until("its threads are gone", || common::threads_named("h-ends") == 0);
    for handler in [handler, clone] {
        refused(handler.try_invoke(100), RejectReason::Closed);
    }
}

#[test]
fn shutdown_now_gives_the_calls_back_to_be_made_or_not() {
    let (builder, heard) = heard();
    let (pool, gate) = busy(builder);
    let drops = Drops::default();
    let log = Log::default();
    let logs = Arc::clone(&log);
    let handler = pool.handler(move |(number, _guard): (u32, Dropped)| {
        logs.lock().unwrap().push((number, thread::current().id()));
        assert!(number != 1, "on purpose");
    });
    (0..4).for_each(|number| handler.invoke((number, drops.issue())));
    let mut tasks = pool.shutdown_now();
    assert_eq!((tasks.len(), pool.stats().handed_back, drops.count()), (4, 4, 0));
    refused(handler.try_invoke((4, drops.issue())), RejectReason::Closed);
    assert_eq!(drops.count(), 1, "that of the refused one");
    // The last two are not made, and drop their arguments.
    drop(tasks.split_off(2));
    assert_eq!(drops.count(), 3);
    assert!(log.lock().unwrap().is_empty());
    tasks.into_iter().for_each(Task::run);
    assert_eq!(drops.count(), 5);
    let here = thread::current().id();
    assert_eq!(*log.lock().unwrap(), [(0, here), (1, here)]);
    assert_eq!(heard.load(Ordering::SeqCst), 1, "its panic goes where it would have gone");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 4));
}

#[test]
fn a_call_that_was_given_back_may_be_dropped_with_whatever_destructor() {
    let (pool, gate) = busy(one());
    let handler = pool.handler(|_bomb: Bomb| ());
    (0..3).for_each(|_| handler.invoke(Bomb));
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 3);
    drop(tasks);
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_function_is_dropped_after_the_last_handler_and_the_last_call() {
    let (pool, gate) = busy(one());
    let drops = Drops::default();
    let guard = drops.issue();
    let handler = pool.handler(move |passes: Arc<Gate>| {
        let _captured = &guard;
        passes.pass();
    });
    let (first, second) = (Gate::new(), Gate::new());
    handler.invoke(Arc::clone(&first));
    handler.clone().invoke(Arc::clone(&second));
    drop(handler);
    assert_eq!(drops.count(), 0, "two calls are queued");
    gate.open();
    first.wait_for(1);
    first.open();
    second.wait_for(1);
    assert_eq!(drops.count(), 0, "a call is made");
    second.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1, "as part of the call, so before the join");
    // And by the last handler if there is no call.
    let guard = drops.issue();
    let handler = pool.handler(move |()| {
        let _captured = &guard;
    });
    handler.invoke(());
    let clone = handler.clone();
    drop(handler);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
    drop(clone);
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_call_that_was_given_back_keeps_the_function() {
    let (pool, gate) = busy(one());
    let drops = Drops::default();
    let guard = drops.issue();
    let handler = pool.handler(move |()| {
        let _captured = &guard;
    });
    handler.invoke(());
    drop(handler);
    let tasks = pool.shutdown_now();
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!((tasks.len(), drops.count()), (1, 0));
    drop(tasks);
    assert_eq!(drops.count(), 1);
}

// ----- bounded queues, and workers with a limit -----

#[test]
fn invoke_waits_for_room() {
    let (pool, gate) = busy(one().queue_capacity(1));
    let (handler, log) = writer(&pool);
    handler.invoke(1);
    let clone = handler.clone();
    let producer = thread::spawn(move || (2..=20).for_each(|number| clone.invoke(number)));
    thread::sleep(MOMENT);
    assert!(!producer.is_finished(), "it does not wait");
    assert_eq!(pool.queued_count(), 1);
    gate.open();
    wait_until("it is let in", || producer.is_finished());
    producer.join().unwrap();
    assert_eq!(written(&pool, &log), (1..=20).collect::<Vec<_>>());
    assert_eq!(pool.stats().rejected, 0);
}

#[test]
fn an_invoke_that_waits_for_room_is_told_of_the_end() {
    let (pool, gate) = busy(one().queue_capacity(0));
    let (handler, log) = writer(&pool);
    let producer = thread::spawn(move || panic_text(|| handler.invoke(1)));
    // Met before it waits, it is told as well.
    thread::sleep(MOMENT);
    assert!(!producer.is_finished(), "it does not wait");
    pool.close();
    wait_until("it is told", || producer.is_finished());
    let text = producer.join().unwrap();
    assert!(text.ends_with("the pool is closed; `try_invoke` hands it back"), "{text}");
    gate.open();
    assert!(written(&pool, &log).is_empty());
}

/// Law 10: the function invokes its own handler, on a pool of one without room.
#[test]
fn a_function_may_invoke_itself_on_a_full_pool_of_one() {
    for capacity in [0, 1, 2] {
        let pool = one().queue_capacity(capacity).build();
        let calls = Arc::new(AtomicUsize::new(0));
        let myself = Arc::new(OnceLock::<Handler<u32>>::new());
        // Weak, or the function would own itself.
        let (counts, weak) = (Arc::clone(&calls), Arc::downgrade(&myself));
        let handler = pool.handler(move |depth| {
            counts.fetch_add(1, Ordering::SeqCst);
            let Some(myself) = weak.upgrade() else { return };
            for _ in 0..if depth > 0 { 2 } else { 0 } {
                myself.get().unwrap().invoke(depth - 1);
            }
        });
        assert!(myself.set(handler.clone()).is_ok());
        handler.invoke(4);
        assert!(pool.join_timeout(LIMIT), "capacity {capacity}: {:?}", pool.stats());
        assert_eq!(calls.load(Ordering::SeqCst), 31);
        assert_eq!((pool.stats().completed, pool.stats().rejected), (31, 0));
    }
}

#[test]
fn calls_count_for_the_limit_of_tasks_per_worker() {
    let pool = one().max_tasks_per_worker(3).build();
    let (sender, receiver) = mpsc::channel();
    let handler = pool.handler(move |()| sender.send(thread::current().id()).unwrap());
    (0..12).for_each(|_| handler.invoke(()));
    assert!(pool.join_timeout(LIMIT));
    let mut calls: HashMap<ThreadId, usize> = HashMap::new();
    receiver.try_iter().for_each(|id| *calls.entry(id).or_default() += 1);
    assert_eq!(calls.into_values().collect::<Vec<_>>(), [3; 4]);
}
