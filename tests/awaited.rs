//! A thread that waits for a task runs it (law 10): that very task, and no other.
//!
//! A worker does so for handles, scopes and groups of its own pool, any other thread for scopes only. Where it can be, the
//! pool has one worker: then there is no other that could run the task.

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{
    Drops, Gate, HOUR, LIMIT, block, in_line, joined, panic_text, settled, under_way, value,
    wait_until,
};
use elastipool::{
    Builder, JoinError, JoinHandle, Scope, Stats, Task, TaskGroup, ThreadPool, blocking,
    worker_index,
};

/// A while in which what must not happen would have happened.
const WHILE: Duration = Duration::from_millis(30);

fn builder(size: usize) -> Builder {
    Builder::new().core_size(size).max_size(size).keep_alive(HOUR)
}

fn pool(size: usize) -> ThreadPool {
    builder(size).build()
}

/// Where code runs.
type Place = (ThreadId, Option<usize>);

fn here() -> Place {
    (thread::current().id(), worker_index())
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a part of a task, which is told how many of these are on the stack.
fn nested<R>(f: impl FnOnce(usize) -> R) -> R {
    let depth = DEPTH.get() + 1;
    DEPTH.set(depth);
    let result = f(depth);
    DEPTH.set(depth - 1);
    result
}

/// What `test` returns, which is a task of the pool and is given the pool.
#[track_caller]
fn in_task<R: Send + 'static>(
    pool: &ThreadPool,
    test: impl FnOnce(&ThreadPool) -> R + Send + 'static,
) -> R {
    let own = pool.clone();
    let result = settled(pool.evaluate(move || test(&own)));
    result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// What `test` returns, which must not take for ever.
#[track_caller]
fn in_thread<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    joined(thread::spawn(test))
}

/// Nothing is left of `ended` tasks, none of which has cost a thread.
#[track_caller]
fn assert_ended_on(threads: usize, pool: &ThreadPool, ended: usize) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.queued_count(), 0);
    let stats = pool.stats();
    assert_eq!((stats.active, stats.queued, stats.pending, stats.in_flight()), (0, 0, 0, 0));
    assert_eq!(stats.accepted(), ended, "{stats:?}");
    assert_eq!(stats.completed + stats.panicked + stats.cancelled, ended, "{stats:?}");
    assert_eq!(stats.threads_started, threads, "{stats:?}");
    assert_eq!(stats.blocked, 0);
}

/// How many tasks the pool is at, and how: active, queued, pending.
fn at_work(stats: &Stats) -> (usize, usize, usize) {
    (stats.active, stats.queued, stats.pending)
}

// ----- handles -----

/// Submits a task of one kind that returns what it is given to call.
type Submit = fn(&ThreadPool, Box<dyn FnOnce() -> usize + Send>) -> JoinHandle<usize>;

const KINDS: &[Submit] = &[
    |pool, task| pool.evaluate(task),
    |pool, task| pool.complete(async { task() }),
    #[cfg(feature = "async")]
    |pool, task| pool.spawn_await(async { task() }),
];

#[test]
fn a_worker_runs_the_task_that_it_waits_for() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            nested(|outer| {
                let (place, inside) = (here(), own.clone());
                let handle = submit(
                    own,
                    Box::new(move || {
                        nested(|depth| {
                            assert_eq!(here(), place);
                            let stats = inside.stats();
                            assert_eq!(at_work(&stats), (2, 0, 0), "{stats:?}");
                            assert_eq!((stats.workers, stats.idle, stats.blocked), (1, 0, 0));
                            assert_eq!(inside.queued_count(), 0);
                            depth
                        })
                    }),
                );
                assert_eq!(at_work(&own.stats()), (1, 1, 0));
                assert_eq!(handle.await_complete(), outer + 1);
                let stats = own.stats();
                assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 1), "{stats:?}");
            });
        });
        assert_ended_on(1, &pool, 2);
        assert_eq!(pool.stats().completed, 2);
    }
}

/// Its entry is in the channel, where the worker does not find it.
#[test]
fn a_worker_runs_a_task_that_was_submitted_by_another_thread() {
    for submit in KINDS {
        let pool = pool(1);
        let (sender, receiver) = mpsc::channel::<JoinHandle<usize>>();
        let own = pool.clone();
        let first = pool.evaluate(move || {
            let queued = receiver.recv().unwrap();
            let result = queued.await_complete();
            let stats = own.stats();
            assert_eq!((at_work(&stats), stats.completed), ((1, 1, 0), 1), "{stats:?}");
            assert_eq!(own.queued_count(), 1);
            (here(), result)
        });
        let (places, inside) = (Arc::new(Mutex::new(Vec::new())), pool.clone());
        let noted = Arc::clone(&places);
        let queued = submit(
            &pool,
            Box::new(move || {
                noted.lock().unwrap().push(here());
                let stats = inside.stats();
                assert_eq!(at_work(&stats), (2, 1, 0), "{stats:?}");
                assert_eq!(inside.queued_count(), 1);
                7
            }),
        );
        // This one comes later, and is not awaited.
        pool.execute(|| ());
        sender.send(queued).unwrap();
        let (place, result) = value(first);
        assert_eq!((&*places.lock().unwrap(), result), (&vec![place], 7));
        assert_ended_on(1, &pool, 3);
    }
}

#[test]
fn recursion_costs_no_thread() {
    fn descend(pool: &ThreadPool, submit: Submit, levels: usize) -> usize {
        nested(|depth| {
            if levels == 0 {
                let stats = pool.stats();
                assert_eq!(at_work(&stats), (depth, 0, 0), "{stats:?}");
                return depth;
            }
            let own = pool.clone();
            submit(pool, Box::new(move || descend(&own, submit, levels - 1))).await_complete()
        })
    }

    for submit in KINDS {
        let pool = builder(1).stack_size(16 << 20).build();
        let depth = in_task(&pool, move |own| descend(own, *submit, 200));
        assert_eq!(depth, 201);
        assert_ended_on(1, &pool, 201);
    }
}

/// In which order a task waits for those that it has submitted.
#[derive(Clone, Copy, Debug)]
enum Order {
    NewestFirst,
    OldestFirst,
    Random,
}

const ORDERS: [Order; 3] = [Order::NewestFirst, Order::OldestFirst, Order::Random];

impl Order {
    fn arrange<T>(self, handles: &mut [T]) {
        match self {
            Order::NewestFirst => handles.reverse(),
            Order::OldestFirst => {}
            Order::Random => fastrand::shuffle(handles),
        }
    }
}

/// The number of tasks in a tree of this depth, each of which waits for its children.
fn tree(pool: &ThreadPool, submit: Submit, order: Order, width: usize, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let child = |_| {
        let own = pool.clone();
        submit(pool, Box::new(move || tree(&own, submit, order, width, depth - 1)))
    };
    let mut children: Vec<_> = (0..width).map(child).collect();
    order.arrange(&mut children);
    children.into_iter().map(JoinHandle::await_complete).sum::<usize>() + 1
}

#[test]
fn a_tree_of_tasks_costs_no_thread() {
    for submit in KINDS {
        for order in ORDERS {
            for (width, depth, count) in [(2, 9, 1023), (50, 1, 51), (10, 2, 111)] {
                let pool = pool(1);
                let own = pool.clone();
                let counted =
                    value(pool.evaluate(move || tree(&own, *submit, order, width, depth)));
                assert_eq!(counted, count, "{order:?}");
                assert_ended_on(1, &pool, count);
            }
        }
    }
}

/// A task that is being run elsewhere is waited for in a region: at most one thread more for each worker.
#[test]
fn a_tree_of_tasks_on_several_workers_ends() {
    for order in ORDERS {
        let pool = pool(4);
        let own = pool.clone();
        let counted = value(pool.evaluate(move || tree(&own, KINDS[0], order, 2, 11)));
        assert_eq!(counted, 4095);
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.in_flight()), (4095, 0), "{stats:?}");
        assert_eq!(pool.queued_count(), 0);
    }
}

#[test]
fn a_task_that_another_worker_runs_is_waited_for() {
    let pool = pool(2);
    in_task(&pool, |own| {
        let (begun, inside) = (Gate::new(), own.clone());
        let begins = Arc::clone(&begun);
        let handle = own.evaluate(move || {
            begins.meet(2);
            wait_until("the other worker waits", || inside.stats().blocked == 1);
            here()
        });
        begun.meet(2);
        let place = handle.await_complete();
        assert!(place != here() && place.1.is_some(), "{place:?}");
    });
    assert_ended_on(2, &pool, 2);
}

// ----- no other task -----

/// The worker waits for a task that another one runs; there are others before and after it in the queue, which another
/// worker runs meanwhile. All of them take a lock that the waiting task holds.
#[test]
fn a_worker_runs_no_other_task_than_the_awaited_one() {
    let pool = pool(2);
    let lock = Arc::new(Mutex::new(()));
    let (begun, awaited) = (Gate::new(), Gate::new());
    begun.open();
    // Notes that it has begun, takes the lock, and says where.
    let takes = || {
        let (lock, begun) = (Arc::clone(&lock), Arc::clone(&begun));
        move || {
            begun.pass();
            drop(lock.lock().unwrap());
            thread::current().id()
        }
    };
    let passes = Arc::clone(&awaited);
    let target = pool.evaluate(move || passes.pass());
    awaited.wait_for(1);
    let (holds, waits) = (Arc::clone(&lock), Gate::new());
    let goes = Arc::clone(&waits);
    let (own, inside) = (pool.clone(), takes());
    let waiter = pool.evaluate(move || {
        let held = holds.lock().unwrap();
        goes.pass();
        // In its own queue.
        let from_inside = own.evaluate(inside);
        target.await_complete();
        drop(held);
        (thread::current().id(), from_inside)
    });
    waits.wait_for(1);
    let before = pool.evaluate(takes());
    waits.open();
    let after = pool.evaluate(takes());
    // It is another worker that comes for them, and waits for the lock.
    begun.wait_for(1);
    awaited.open();
    let (_, from_inside) = value(waiter);
    for other in [before, from_inside, after] {
        value(other);
    }
    assert_ended_on(3, &pool, 5);
}

/// The only worker waits, for one task after another, with others around it in the queue.
#[test]
fn the_only_worker_leaves_other_tasks_in_the_queue() {
    let pool = pool(1);
    let (sender, receiver) = mpsc::channel::<JoinHandle<u32>>();
    let ran = Arc::new(AtomicUsize::new(0));
    let own = pool.clone();
    let foreign = |pool: &ThreadPool, ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        pool.execute(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    };
    let counted = Arc::clone(&ran);
    let first = pool.evaluate(move || {
        let from_outside = receiver.recv().unwrap();
        foreign(&own, &counted);
        let from_inside = own.evaluate(|| 2);
        foreign(&own, &counted);
        let sum = from_outside.await_complete() + from_inside.await_complete();
        let mut scoped = 0;
        own.scope(|scope| {
            scope.execute(|| scoped = 3);
            foreign(&own, &counted);
        });
        let group = own.group::<()>();
        group.execute(|| Ok(())).unwrap();
        foreign(&own, &counted);
        group.wait().unwrap();
        let stats = own.stats();
        assert_eq!(at_work(&stats), (1, 6, 0), "{stats:?}");
        (sum, scoped, counted.load(Ordering::SeqCst))
    });
    foreign(&pool, &ran);
    let from_outside = pool.evaluate(|| 1);
    foreign(&pool, &ran);
    sender.send(from_outside).unwrap();
    assert_eq!(value(first), (3, 3, 0));
    assert_ended_on(1, &pool, 11);
    assert_eq!(ran.load(Ordering::SeqCst), 6);
}

/// The lock is one that the awaited task does not need.
#[test]
fn a_lock_is_held_across_the_wait() {
    let pool = pool(1);
    let lock = Arc::new(Mutex::new(0));
    let others: Vec<_> = in_task(&pool, {
        let lock = Arc::clone(&lock);
        move |own| {
            let mut held = lock.lock().unwrap();
            let others = (0..5).map(|_| {
                let lock = Arc::clone(&lock);
                own.evaluate(move || *lock.lock().unwrap() += 1)
            });
            let others = others.collect();
            *held += own.evaluate(|| 10).await_complete();
            others
        }
    });
    others.into_iter().for_each(value);
    assert_eq!(*lock.lock().unwrap(), 15);
    assert_ended_on(1, &pool, 7);
}

/// As if the awaited task were called.
#[test]
fn a_thread_local_that_is_borrowed_across_the_wait_is_seen_borrowed() {
    thread_local! {
        static LOCAL: RefCell<u32> = const { RefCell::new(0) };
    }

    let pool = pool(1);
    in_task(&pool, |own| {
        let is_borrowed = || LOCAL.with(|local| local.try_borrow_mut().is_err());
        LOCAL.with(|local| {
            let _borrowed = local.borrow_mut();
            assert!(own.evaluate(is_borrowed).await_complete());
        });
        assert!(!own.evaluate(is_borrowed).await_complete());
    });
}

// ----- how it ends -----

#[test]
fn a_task_that_was_cancelled_before_the_wait_is_not_run() {
    for submit in KINDS {
        let pool = pool(1);
        let (drops, ran) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
        let (guard, counted, seen) = (drops.issue(), Arc::clone(&ran), drops.clone());
        in_task(&pool, move |own| {
            let handle = submit(
                own,
                Box::new(move || {
                    drop(guard);
                    counted.fetch_add(1, Ordering::SeqCst)
                }),
            );
            handle.cancel();
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
            assert_eq!(seen.count(), 0, "a worker that comes to it drops it");
        });
        assert_ended_on(1, &pool, 2);
        assert_eq!((drops.count(), ran.load(Ordering::SeqCst)), (1, 0));
        assert_eq!(pool.stats().cancelled, 1);
    }
}

fn text(error: JoinError) -> String {
    let payload = error.into_panic();
    payload.downcast_ref::<&str>().expect("a fixed text").to_string()
}

#[test]
fn a_panic_of_an_awaited_task_reaches_its_handle() {
    for submit in KINDS {
        let handled = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&handled);
        let handler = move |_| _ = counts.fetch_add(1, Ordering::SeqCst);
        let pool = builder(1).panic_handler(handler).build();
        let outer = pool.clone();
        let error = settled(pool.evaluate(move || {
            let inner = outer.clone();
            let middle = submit(
                &outer,
                Box::new(move || {
                    let innermost = submit(&inner, Box::new(|| panic!("innermost")));
                    assert_eq!(text(innermost.try_await_complete().unwrap_err()), "innermost");
                    submit(&inner, Box::new(|| panic!("inner"))).await_complete()
                }),
            );
            middle.await_complete()
        }));
        assert_eq!(text(error.unwrap_err()), "inner");
        let place = in_task(&pool, |own| {
            let here = here();
            assert_eq!(own.evaluate(self::here).await_complete(), here);
            here
        });
        assert_eq!(place.1, Some(0));
        assert_ended_on(1, &pool, 6);
        let stats = pool.stats();
        assert_eq!((stats.panicked, stats.completed), (4, 2));
        assert_eq!(handled.load(Ordering::SeqCst), 0);
    }
}

/// Of a scope's two panics one is for the handler; here that runs where the task has run, on the thread that waits.
#[test]
fn a_panic_that_no_handle_receives_reaches_the_handler() {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&handled);
    let pool = builder(1)
        .panic_handler(move |payload| {
            let text = *payload.downcast_ref::<&str>().unwrap();
            notes.lock().unwrap().push((text, here()));
        })
        .build();
    let place = in_task(&pool, |own| {
        let result = catch_unwind(AssertUnwindSafe(|| {
            own.scope(|scope| {
                drop(scope.evaluate(|| panic!("later")));
                scope.execute(|| panic!("first"));
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"first"));
        here()
    });
    assert_ended_on(1, &pool, 3);
    assert_eq!(*handled.lock().unwrap(), [("later", place)]);
}

/// It is recycled where it has no task: all of those that it has run on top of each other come to their end first.
#[test]
fn awaited_tasks_count_for_the_task_quota() {
    let pool = builder(1).max_tasks_per_worker(3).build();
    let threads = in_task(&pool, |own| {
        let outer = thread::current().id();
        let mut threads = vec![outer];
        threads.extend((0..5).map(|_| own.evaluate(|| thread::current().id()).await_complete()));
        threads
    });
    assert!(threads.iter().all(|thread| *thread == threads[0]), "{threads:?}");
    let next = value(pool.evaluate(|| thread::current().id()));
    assert_ne!(next, threads[0], "the quota is used up");
    let [with_one, after] = [0, 1].map(|_| {
        in_task(&pool, |own| {
            assert_eq!(own.evaluate(here).await_complete(), here());
            thread::current().id()
        })
    });
    assert_eq!(with_one, next, "one of three");
    assert_ne!(after, next, "three of three");
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().threads_started, 3);
}

/// Entries that are skipped count for no quota.
#[test]
fn skipped_entries_do_not_count_for_the_task_quota() {
    // With a bounded queue all entries are in the channel, which is where they are skipped.
    let pool = builder(1).queue_capacity(20).max_tasks_per_worker(12).build();
    let thread = in_task(&pool, |own| {
        let handles: Vec<_> = (0..5).map(|number| own.evaluate(move || number)).collect();
        own.execute(|| ());
        for (number, handle) in handles.into_iter().enumerate().rev() {
            assert_eq!(handle.await_complete(), number);
        }
        thread::current().id()
    });
    for _ in 0..5 {
        assert_eq!(value(pool.evaluate(|| thread::current().id())), thread);
    }
    assert_ne!(value(pool.evaluate(|| thread::current().id())), thread);
}

/// Has a worker wait for a task that `shutdown_now` has given back before.
fn await_what_was_given_back(
    submit: Submit,
    then: impl FnOnce(Task),
) -> (Place, Result<usize, JoinError>, Option<Place>, ThreadPool) {
    let pool = pool(1);
    let (ready, given_back) = (Gate::new(), Gate::new());
    let (arrives, passes) = (Arc::clone(&ready), Arc::clone(&given_back));
    let ran_at = Arc::new(Mutex::new(None));
    let (own, notes) = (pool.clone(), Arc::clone(&ran_at));
    let waiter = pool.evaluate(move || {
        let task = move || {
            *notes.lock().unwrap() = Some(here());
            7
        };
        let handle = submit(&own, Box::new(task));
        arrives.open();
        passes.pass();
        (here(), handle.try_await_complete())
    });
    ready.pass();
    let mut tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    given_back.open();
    wait_until("the worker waits", || pool.stats().blocked == 1);
    thread::sleep(WHILE);
    assert!(!waiter.is_finished());
    then(tasks.remove(0));
    let (place, result) = value(waiter);
    let ran_at = *ran_at.lock().unwrap();
    (place, result, ran_at, pool)
}

#[test]
fn a_task_that_was_given_back_is_not_run_by_the_worker_that_waits_for_it() {
    for submit in KINDS {
        let (_, result, ran_at, pool) = await_what_was_given_back(*submit, Task::run);
        assert_eq!(result.unwrap(), 7);
        assert_eq!(ran_at, Some(here()));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 1));

        let (_, result, ran_at, pool) = await_what_was_given_back(*submit, drop);
        assert!(result.unwrap_err().is_cancelled());
        assert_eq!(ran_at, None);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().handed_back), (1, 1));
    }
}

/// The entry is still in the queue, but there is nothing to give back.
#[test]
fn a_shutdown_finds_an_awaited_task_running() {
    for submit in KINDS {
        let pool = pool(1);
        let (sender, receiver) = mpsc::channel::<JoinHandle<usize>>();
        let waiter = pool.evaluate(move || receiver.recv().unwrap().await_complete());
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let task = move || {
            passes.pass();
            7
        };
        sender.send(submit(&pool, Box::new(task))).unwrap();
        gate.wait_for(1);
        assert!(pool.shutdown_now().is_empty());
        let stats = pool.stats();
        assert_eq!((at_work(&stats), stats.handed_back), ((2, 0, 0), 0), "{stats:?}");
        gate.open();
        assert_eq!(value(waiter), 7);
        assert_ended_on(1, &pool, 2);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Each task runs once, or is given back once, wherever the shutdown finds it.
#[test]
fn a_shutdown_among_nested_waits_loses_nothing() {
    for round in 0..200 {
        let pool = pool(1 + round % 2);
        let ran = Arc::new(AtomicUsize::new(0));
        let (own, counted) = (pool.clone(), Arc::clone(&ran));
        let begun = Gate::new();
        let begins = Arc::clone(&begun);
        let waiter = pool.evaluate(move || {
            begins.meet(2);
            let mut handles = Vec::new();
            for _ in 0..20 {
                let counted = Arc::clone(&counted);
                let task = move || _ = counted.fetch_add(1, Ordering::SeqCst);
                handles.extend(own.try_evaluate(task));
            }
            let submitted = handles.len();
            Order::Random.arrange(&mut handles);
            let waited = handles.into_iter().map(JoinHandle::try_await_complete);
            (submitted, waited.filter(Result::is_err).count())
        });
        begun.meet(2);
        common::dawdle(5_000);
        let given_back = pool.shutdown_now();
        let cancelled = given_back.len();
        drop(given_back);
        let (submitted, failed) = value(waiter);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((ran.load(Ordering::SeqCst), failed), (submitted - cancelled, cancelled));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.handed_back), (submitted - cancelled + 1, cancelled));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

// ----- waits with a limit, waits in regions, waits while unwinding -----

#[test]
fn a_wait_with_a_limit_runs_nothing() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let (place, ran_at) = (here(), Arc::new(Mutex::new(None)));
            let notes = Arc::clone(&ran_at);
            let task = move || {
                *notes.lock().unwrap() = Some(here());
                1
            };
            // Nobody else could.
            let handle = submit(own, Box::new(task));
            let Err(handle) = handle.await_complete_timeout(Duration::ZERO) else {
                panic!("another worker has no time to come");
            };
            assert_eq!(handle.await_complete_timeout(LIMIT).unwrap().unwrap(), 1);
            assert_ne!(ran_at.lock().unwrap().expect("it ran"), place);

            let scoped =
                own.scope(|s| s.evaluate(here).await_complete_timeout(LIMIT).unwrap().unwrap());
            assert_ne!(scoped, place);

            let (group, ran_at) = (own.group::<()>(), Arc::new(Mutex::new(None)));
            let notes = Arc::clone(&ran_at);
            let noted = group.execute(move || {
                *notes.lock().unwrap() = Some(here());
                Ok(())
            });
            noted.unwrap();
            assert!(group.wait_timeout(LIMIT).expect("it ends").is_ok());
            assert_ne!(ran_at.lock().unwrap().expect("it ran"), place);
        });
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (4, 0));
    }
}

/// The worker is runnable while it runs what it waits for, and blocked before and after.
#[test]
fn a_worker_that_waits_in_a_region_comes_back_for_the_task() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let place = here();
            blocking(|| {
                // The worker in its place has something else to do.
                let other = block(own);
                assert_eq!(own.stats().blocked, 1);
                let inside = own.clone();
                let task = move || {
                    assert_eq!(here(), place);
                    inside.stats().blocked
                };
                assert_eq!(submit(own, Box::new(task)).await_complete(), 0);
                assert_eq!(own.stats().blocked, 1);

                let mut scoped = Vec::new();
                own.scope(|scope| scope.execute(|| scoped.push((here(), own.stats().blocked))));
                assert_eq!((scoped, own.stats().blocked), (vec![(place, 0)], 1));

                // A region in the awaited task is one.
                let inside = own.clone();
                let task = move || blocking(|| inside.stats().blocked);
                assert_eq!(submit(own, Box::new(task)).await_complete(), 1);
                assert_eq!(own.stats().blocked, 1);
                other.open();
            });
            assert_eq!(own.stats().blocked, 0);
        });
        assert_ended_on(2, &pool, 5);
    }
}

/// The limit is for what others may never end. Here the pool itself ends the wait, if it has a worker for that.
#[test]
fn a_wait_for_the_own_pool_in_a_region_is_not_limited_by_max_blocked() {
    for max_blocked in [0, 1] {
        let pool = builder(1).max_blocked(max_blocked).queue_capacity(1).build();
        let regions: Vec<_> = (0..max_blocked)
            .map(|_| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                pool.execute(move || blocking(|| passes.pass()));
                gate.wait_for(1);
                gate
            })
            .collect();
        in_task(&pool, |own| {
            blocking(|| {
                let handle = own.evaluate(|| 1);
                let handle = handle.await_complete_timeout(LIMIT);
                assert_eq!(handle.expect("another worker runs it").unwrap(), 1);
                // Waits for room.
                for _ in 0..5 {
                    own.execute(|| ());
                }
            });
            let group = own.group::<()>();
            blocking(|| {
                group.execute(|| Ok(())).unwrap();
                group.wait_timeout(LIMIT).expect("another worker runs it").unwrap();
            });
        });
        regions.iter().for_each(|gate| gate.open());
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.in_flight()), (0, 0), "{stats:?}");
        assert_eq!(room(&pool), 1);
    }
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Where tasks run that a destructor waits for while its thread unwinds: by a handle, by a scope and by a group; the first
/// two only if the thread is a worker. They find themselves not panicking.
fn waits_while_unwinding(pool: &ThreadPool) -> Vec<ThreadId> {
    let places = Mutex::new(Vec::new());
    let note = || {
        assert!(!thread::panicking());
        thread::current().id()
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _waits = OnDrop(|| {
            assert!(thread::panicking());
            let mut scoped = None;
            pool.scope(|scope| {
                scope.execute(|| scoped = Some(note()));
            });
            places.lock().unwrap().extend(scoped);
            places.lock().unwrap().push(pool.evaluate(note).await_complete());
            let group = pool.group::<()>();
            let (sender, receiver) = mpsc::channel();
            group.execute(move || sender.send(note()).map_err(drop)).unwrap();
            group.wait().unwrap();
            places.lock().unwrap().push(receiver.recv().unwrap());
        });
        panic!("the waiter unwinds");
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"the waiter unwinds"));
    places.into_inner().unwrap()
}

#[test]
fn a_thread_that_unwinds_runs_nothing() {
    let pool = pool(1);
    let (place, places) =
        in_task(&pool, |own| (thread::current().id(), waits_while_unwinding(own)));
    assert_eq!(places.len(), 3);
    assert!(!places.contains(&place), "{place:?} {places:?}");
    let here = thread::current().id();
    let places = waits_while_unwinding(&pool);
    assert!(places.len() == 3 && !places.contains(&here), "{here:?} {places:?}");
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (7, 0));
}

// ----- bounded queues -----

/// How many tasks the pool accepts while its workers are busy. They are run before this returns.
#[track_caller]
fn room(pool: &ThreadPool) -> usize {
    let gates: Vec<_> = (0..pool.max_size()).map(|_| block(pool)).collect();
    let mut room = 0;
    while pool.try_execute(|| ()).is_ok() {
        room += 1;
    }
    gates.iter().for_each(|gate| gate.open());
    assert!(pool.join_timeout(LIMIT));
    room
}

#[test]
fn nested_waits_in_a_bounded_queue_end_and_give_the_room_back() {
    for capacity in [0, 1, 10] {
        for submit in KINDS {
            for order in ORDERS {
                for (width, depth, count) in [(1, 30, 31), (2, 5, 63), (25, 1, 26)] {
                    let pool = builder(1).queue_capacity(capacity).build();
                    assert_eq!(room(&pool), capacity);
                    let before = pool.stats().completed;
                    let own = pool.clone();
                    let counted =
                        value(pool.evaluate(move || tree(&own, *submit, order, width, depth)));
                    assert_eq!(counted, count);
                    assert!(pool.join_timeout(LIMIT));
                    assert_eq!(pool.queued_count(), 0);
                    let stats = pool.stats();
                    assert_eq!((stats.completed - before, stats.in_flight()), (count, 0));
                    assert_eq!(room(&pool), capacity, "{order:?} {width} {depth}");
                }
            }
        }
    }
}

#[test]
fn scopes_and_groups_in_a_bounded_queue_end_and_give_the_room_back() {
    for capacity in [0, 1, 10] {
        let pool = builder(1).queue_capacity(capacity).build();
        let sum = in_task(&pool, |own| {
            let sum = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 {
                own.scope(|scope| {
                    for _ in 0..15 {
                        scope.execute(|| _ = sum.fetch_add(1, Ordering::Relaxed));
                    }
                });
                let group = own.group::<()>().limit(2);
                for _ in 0..15 {
                    let sum = Arc::clone(&sum);
                    group
                        .execute(move || {
                            sum.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        })
                        .unwrap();
                }
                group.wait().unwrap();
            }
            sum.load(Ordering::Relaxed)
        });
        assert_eq!(sum, 90);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().in_flight(), 0);
        assert_eq!(room(&pool), capacity);
    }
}

/// Until a worker has skipped the entry it takes up its room, though it does not count as queued.
#[test]
fn an_entry_takes_up_room_until_it_is_skipped() {
    let pool = builder(1).queue_capacity(2).build();
    in_task(&pool, |own| {
        let (first, second) = (own.evaluate(|| 1), own.evaluate(|| 2));
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(second.await_complete(), 2);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (1, (1, 1, 0)));
        assert!(own.try_execute(|| ()).is_err());
        assert_eq!(first.await_complete(), 1);
        assert_eq!((own.queued_count(), at_work(&own.stats())), (0, (1, 0, 0)));
        assert!(own.try_execute(|| ()).is_err());
    });
    assert_ended_on(1, &pool, 3);
    assert_eq!(room(&pool), 2);
}

// ----- scopes -----

/// Where the tasks of a scope have run, in that order.
type Runs = Mutex<Vec<(usize, Place)>>;

/// Submits this many tasks, which note where they run.
fn submit_noting<'scope>(scope: &'scope Scope<'scope, '_>, runs: &'scope Runs, count: usize) {
    for number in 0..count {
        scope.execute(move || runs.lock().unwrap().push((number, here())));
    }
}

/// All were run here, the newest first.
#[track_caller]
fn assert_newest_first(runs: Runs, count: usize) {
    let expected: Vec<_> = (0..count).rev().map(|number| (number, here())).collect();
    assert_eq!(runs.into_inner().unwrap(), expected);
}

#[test]
fn a_scope_outside_of_the_pool_runs_its_tasks_if_all_workers_are_busy() {
    in_thread(|| {
        let pool = pool(1);
        let (gate, runs) = (block(&pool), Runs::default());
        pool.scope(|scope| {
            submit_noting(scope, &runs, 5);
            scope.execute(|| {
                let stats = pool.stats();
                assert_eq!(at_work(&stats), (2, 5, 0), "{stats:?}");
                assert_eq!((stats.workers, stats.idle, stats.blocked), (1, 0, 0));
                assert_eq!((pool.queued_count(), worker_index()), (5, None));
            });
            assert_eq!(pool.queued_count(), 6);
        });
        assert_newest_first(runs, 5);
        let stats = pool.stats();
        assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 6), "{stats:?}");
        assert_eq!(pool.queued_count(), 0);
        gate.open();
        assert_ended_on(1, &pool, 7);
    });
}

#[test]
fn a_scope_in_a_worker_of_the_pool_runs_its_tasks() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let runs = Runs::default();
        own.scope(|scope| submit_noting(scope, &runs, 5));
        assert_newest_first(runs, 5);
        assert_eq!(at_work(&own.stats()), (1, 0, 0));
    });
    assert_ended_on(1, &pool, 6);
}

#[test]
fn a_scope_in_a_worker_of_another_pool_runs_its_tasks() {
    let (host, pool) = (pool(1), pool(1));
    let gate = block(&pool);
    let own = pool.clone();
    in_task(&host, move |host| {
        let (runs, place) = (Runs::default(), here());
        own.scope(|scope| {
            submit_noting(scope, &runs, 5);
            // A worker of the host is one meanwhile, and runs what it waits for there.
            scope.execute(|| assert_eq!(host.evaluate(here).await_complete(), place));
        });
        assert_newest_first(runs, 5);
        assert_eq!((place.1, host.stats().blocked), (Some(0), 0));
    });
    assert_ended_on(1, &host, 2);
    gate.open();
    assert_ended_on(1, &pool, 7);
}

#[test]
fn a_scope_in_a_start_hook_runs_its_tasks() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let (sender, receiver) = mpsc::channel();
    let takes = Arc::clone(&own);
    let pool = builder(1)
        .on_worker_start(move |_| {
            let Some(own) = takes.lock().unwrap().take() else { return };
            let runs = Runs::default();
            own.scope(|scope| submit_noting(scope, &runs, 5));
            assert_newest_first(runs, 5);
            sender.send(here()).unwrap();
        })
        .build();
    *own.lock().unwrap() = Some(pool.clone());
    let place = value(pool.evaluate(here));
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(place));
    assert_ended_on(1, &pool, 6);
}

/// A tree of scopes, as deep as this. Returns how many scopes there were.
fn scopes(pool: &ThreadPool, depth: usize, place: Place) -> usize {
    if depth == 0 {
        return 1;
    }
    let (mut left, mut right) = (0, 0);
    pool.scope(|scope| {
        for count in [&mut left, &mut right] {
            scope.execute(move || {
                assert_eq!(here(), place);
                *count = scopes(pool, depth - 1, place);
            });
        }
    });
    left + right + 1
}

#[test]
fn scopes_in_scopes_cost_no_thread() {
    let inside = pool(1);
    assert_eq!(in_task(&inside, |own| scopes(own, 12, here())), 8191);
    assert_ended_on(1, &inside, 8191);

    in_thread(|| {
        let pool = pool(1);
        let gate = block(&pool);
        assert_eq!(scopes(&pool, 12, here()), 8191);
        assert_eq!((pool.queued_count(), pool.stats().active), (0, 1));
        gate.open();
        assert_ended_on(1, &pool, 8191);
    });
}

#[test]
fn scopes_in_scopes_on_several_workers_end() {
    fn tree(pool: &ThreadPool, depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let (mut left, mut right) = (0, 0);
        pool.scope(|scope| {
            scope.execute(|| left = tree(pool, depth - 1));
            scope.execute(|| right = tree(pool, depth - 1));
        });
        left + right + 1
    }

    in_thread(|| {
        let pool = pool(4);
        for _ in 0..5 {
            assert_eq!(tree(&pool, 10), 2047);
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.queued_count()), (5 * 2046, 0));
    });
}

/// Law 3: its entry is gone, and the task runs.
#[test]
fn a_join_waits_for_a_task_that_a_scope_runs_outside_of_the_pool() {
    let pool = pool(1);
    let (busy, gate) = (block(&pool), Gate::new());
    let (own, passes) = (pool.clone(), Arc::clone(&gate));
    let opener = thread::spawn(move || {
        let mut ran_at = None;
        own.scope(|scope| {
            scope.execute(|| {
                passes.pass();
                ran_at = Some(here());
            });
        });
        ran_at == Some(here())
    });
    gate.wait_for(1);
    busy.open();
    wait_until("the worker has skipped the entry", || pool.idle_worker_count() == 1);
    assert!(!pool.join_timeout(WHILE));
    let stats = pool.stats();
    assert_eq!((at_work(&stats), stats.completed), ((1, 0, 0), 1), "{stats:?}");
    // Neither does it end with its last task in the queue.
    pool.close();
    assert!(!pool.join_timeout(WHILE));
    gate.open();
    assert!(joined(opener));
    assert_ended_on(1, &pool, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// It runs a task of the pool, though it is none of its workers.
#[test]
fn a_task_that_a_scope_runs_outside_of_the_pool_cannot_join_it() {
    in_thread(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let text = panic_text(|| pool.scope(|scope| scope.execute(|| pool.join())));
        assert!(text.contains("`join`"), "{text}");
        let mut in_time = None;
        pool.scope(|scope| scope.execute(|| in_time = Some(pool.join_timeout(HOUR))));
        assert_eq!(in_time, Some(false));
        gate.open();
        // Afterwards it is an ordinary thread.
        pool.join();
        assert_ended_on(1, &pool, 3);
    });
}

#[test]
fn a_panic_of_a_task_that_a_scope_runs_is_resumed() {
    fn is_resumed(pool: &ThreadPool) {
        let runs = Runs::default();
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                submit_noting(scope, &runs, 2);
                scope.execute(|| panic!("on the stack of the scope"));
                submit_noting(scope, &runs, 1);
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"on the stack of the scope"));
        let places: Vec<_> = runs.into_inner().unwrap();
        assert_eq!(places, [0, 1, 0].map(|number| (number, here())));
    }

    let pool = pool(1);
    in_task(&pool, is_resumed);
    let gate = block(&pool);
    is_resumed(&pool);
    gate.open();
    assert_ended_on(1, &pool, 10);
    assert_eq!(pool.stats().panicked, 2);
}

#[test]
fn a_scoped_handle_that_a_worker_waits_for_runs_that_very_task() {
    let pool = pool(1);
    in_task(&pool, |own| {
        for order in ORDERS {
            let runs = Runs::default();
            let awaited = own.scope(|scope| {
                let note = |number| {
                    let runs = &runs;
                    scope.evaluate(move || {
                        runs.lock().unwrap().push((number, here()));
                        number
                    })
                };
                let mut handles: Vec<_> = (0..9).map(note).collect();
                order.arrange(&mut handles);
                let rest = handles.split_off(6);
                let awaited = handles.into_iter().map(|handle| handle.await_complete());
                let awaited = awaited.collect::<Vec<_>>();
                assert_eq!(at_work(&own.stats()), (1, 3, 0));
                drop(rest);
                awaited
            });
            let runs = runs.into_inner().unwrap();
            assert!(runs.iter().all(|(_, place)| *place == here()));
            let numbers: Vec<_> = runs.into_iter().map(|(number, _)| number).collect();
            assert_eq!((&numbers[..6], numbers.len()), (&awaited[..], 9));
        }
    });
    assert_ended_on(1, &pool, 28);
}

/// Only the end of the scope is the place where it runs tasks: a handle may be waited for anywhere.
#[test]
fn a_thread_outside_of_the_pool_waits_for_handles() {
    let pool = pool(1);
    let gate = block(&pool);
    let own = pool.clone();
    let waiter = thread::spawn(move || {
        let handle = own.evaluate(here).await_complete();
        let scoped = own.scope(|scope| scope.evaluate(here).await_complete());
        (here().0, handle, scoped)
    });
    wait_until("it is queued", || pool.queued_count() == 1);
    thread::sleep(WHILE);
    assert_eq!((pool.queued_count(), waiter.is_finished()), (1, false));
    gate.open();
    let (thread, handle, scoped) = joined(waiter);
    assert_eq!((handle.1, scoped.1), (Some(0), Some(0)));
    assert!(handle.0 != thread && scoped.0 != thread);
    assert_ended_on(1, &pool, 3);
}

/// A worker of another pool is a thread outside of this one.
#[test]
fn a_worker_of_another_pool_waits_for_handles_and_groups() {
    let (host, pool) = (pool(1), pool(1));
    let own = pool.clone();
    let (place, handle, grouped) = in_task(&host, move |_| {
        let gate = block(&own);
        let (sender, receiver) = mpsc::channel();
        let (handle, group) = (own.evaluate(here), own.group::<()>());
        group.execute(move || sender.send(here()).map_err(drop)).unwrap();
        thread::spawn(move || {
            thread::sleep(WHILE);
            gate.open();
        });
        group.wait().unwrap();
        (here(), handle.await_complete(), receiver.recv().unwrap())
    });
    assert!(handle == grouped && place != handle, "{place:?} {handle:?}");
    assert_ended_on(1, &host, 1);
    assert_ended_on(1, &pool, 3);
}

// ----- groups -----

#[test]
fn a_worker_that_waits_for_a_group_runs_its_tasks() {
    let waits: [fn(&TaskGroup<u32>) -> bool; 2] =
        [|group| group.wait().is_ok(), |group| group.wait_all().is_empty()];
    for wait in waits {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let (runs, group) = (Arc::new(Runs::default()), own.group());
            for number in 0..5 {
                let runs = Arc::clone(&runs);
                let noted = group.execute(move || {
                    runs.lock().unwrap().push((number, here()));
                    Ok(())
                });
                noted.unwrap();
            }
            assert!(wait(&group));
            assert_newest_first(Arc::into_inner(runs).expect("the tasks are gone"), 5);
            assert_eq!(at_work(&own.stats()), (1, 0, 0));
        });
        assert_ended_on(1, &pool, 6);
    }
}

#[test]
fn a_thread_outside_of_the_pool_waits_for_a_group() {
    let pool = pool(1);
    let (gate, group) = (block(&pool), pool.group::<()>());
    let (sender, receiver) = mpsc::channel();
    group.execute(move || sender.send(here()).map_err(drop)).unwrap();
    let waits = group.clone();
    let waiter = thread::spawn(move || waits.wait().is_ok());
    thread::sleep(WHILE);
    assert_eq!((pool.queued_count(), waiter.is_finished()), (1, false));
    gate.open();
    assert!(joined(waiter));
    assert_eq!(receiver.recv().unwrap().1, Some(0));
    assert_ended_on(1, &pool, 2);
}

/// Notes how many tasks run at once.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn visit(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        common::dawdle(300);
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Workers take the group's tasks while one waits for it and takes them as well. Half of them are submitted by others of
/// the group.
#[test]
fn the_limit_of_a_group_holds_for_those_that_its_waiter_runs() {
    for (size, limit) in [(1, 1), (2, 1), (3, 1), (3, 2)] {
        let pool = pool(size);
        for _ in 0..20 {
            let most = in_task(&pool, move |own| {
                let (crowd, group) = (Arc::new(Crowd::default()), own.group::<()>().limit(limit));
                for _ in 0..10 {
                    let (inside, crowd) = (group.clone(), Arc::clone(&crowd));
                    let submitted = group.execute(move || {
                        crowd.visit();
                        let crowd = Arc::clone(&crowd);
                        let submitted = inside.execute(move || {
                            crowd.visit();
                            Ok(())
                        });
                        submitted.map_err(drop)
                    });
                    assert!(submitted.is_ok());
                }
                assert!(group.wait().is_ok());
                assert_eq!((under_way(&group), in_line(&group)), (0, 0));
                crowd.most.load(Ordering::SeqCst)
            });
            assert!((1..=limit).contains(&most), "{most} at once");
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (20 * 21, 0));
    }
}

/// A group whose only place is taken by a task on another worker has nothing for its waiter to run until that has ended.
#[test]
fn a_waiter_does_not_run_what_is_in_line() {
    let pool = pool(2);
    let group = pool.group::<()>().limit(1);
    let (crowd, gate) = (Arc::new(Crowd::default()), Gate::new());
    let (inside, counted, passes) = (group.clone(), Arc::clone(&crowd), Arc::clone(&gate));
    let held = group.execute(move || {
        for _ in 0..3 {
            let counted = Arc::clone(&counted);
            let submitted = inside.execute(move || {
                counted.visit();
                Ok(())
            });
            submitted.map_err(drop)?;
        }
        passes.pass();
        Ok(())
    });
    held.unwrap();
    gate.wait_for(1);
    let waits = group.clone();
    let waiter = pool.evaluate(move || waits.wait().is_ok());
    wait_until("the worker waits", || pool.stats().blocked == 1);
    assert_eq!((in_line(&group), crowd.most.load(Ordering::SeqCst)), (3, 0));
    gate.open();
    assert!(value(waiter));
    assert_eq!(crowd.most.load(Ordering::SeqCst), 1);
}

#[test]
fn errors_of_tasks_that_the_waiter_runs_end_the_group() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let (drops, group) = (Drops::default(), own.group());
        let fill = |error: fn() -> Result<(), u32>| {
            for _ in 0..3 {
                let guard = drops.issue();
                let task = move || {
                    drop(guard);
                    Ok(())
                };
                group.execute(task).unwrap();
            }
            group.execute(error).unwrap();
        };
        fill(|| Err(7));
        // The newest one is run first; the others are cancelled.
        assert_eq!(group.wait().unwrap_err().to_string(), "7");
        assert_eq!((drops.count(), group.dropped_count()), (3, 3));
        fill(|| panic!("on the stack of the waiter"));
        let errors = group.wait_all();
        assert!(errors.len() == 1 && errors[0].is_panic(), "{errors:?}");
        assert_eq!((drops.count(), group.dropped_count()), (6, 6));
        let cancels = group.clone();
        fill(|| Ok(()));
        let task = move || {
            cancels.cancel();
            Ok(())
        };
        group.execute(task).unwrap();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!((drops.count(), group.dropped_count()), (9, 10));

        let group = own.group().keep_going();
        group.execute(|| Ok(())).unwrap();
        for error in 0..3 {
            group.execute(move || Err(error)).unwrap();
        }
        let errors: Vec<_> = group.wait_all().iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["2", "1", "0"]);
        assert_eq!(group.dropped_count(), 0);
    });
    assert_ended_on(1, &pool, 18);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled), (7, 1, 10));
}

/// A group is over when it is quiet for a moment: what comes after that the waiter does not depend on. Here that comes in
/// the same moment, and needs the waiter.
#[test]
fn a_waiter_runs_nothing_that_comes_after_its_group_was_quiet() {
    use std::future::IntoFuture;
    use std::pin::pin;
    use std::task::{Context, Wake, Waker};

    /// Submits a task to the group that it is told of, and does not end before the gate is opened.
    struct Submits(TaskGroup<()>, Arc<Gate>);

    impl Wake for Submits {
        fn wake(self: Arc<Self>) {
            let gate = Arc::clone(&self.1);
            let task = move || {
                gate.pass();
                Ok(())
            };
            self.0.execute(task).unwrap();
        }
    }

    let pool = pool(1);
    let (group, gate) = (pool.group(), Gate::new());
    let (own, opens) = (pool.clone(), Arc::clone(&gate));
    let waits = group.clone();
    let (begun, go) = (Gate::new(), Gate::new());
    let (begins, goes) = (Arc::clone(&begun), Arc::clone(&go));
    let waiter = pool.evaluate(move || {
        waits.execute(|| Ok(())).unwrap();
        begins.open();
        goes.pass();
        let is_ok = waits.wait().is_ok();
        let queued = own.queued_count();
        opens.open();
        (is_ok, queued)
    });
    begun.pass();
    let mut other = pin!(group.clone().into_future());
    let waker = Waker::from(Arc::new(Submits(group.clone(), gate)));
    assert!(other.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    go.open();
    assert_eq!(value(waiter), (true, 1));
    assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    group.wait().unwrap();
    assert_ended_on(1, &pool, 3);
}

/// Another thread cancels the group while its waiter runs one of its tasks.
#[test]
fn a_group_that_is_cancelled_while_its_waiter_runs_it_drops_the_rest() {
    let pool = pool(1);
    let (group, gate) = (pool.group::<()>(), Gate::new());
    let (waits, passes) = (group.clone(), Arc::clone(&gate));
    let waiter = pool.evaluate(move || {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let ran = Arc::clone(&ran);
            waits.execute(move || Ok(_ = ran.fetch_add(1, Ordering::SeqCst))).unwrap();
        }
        let task = move || {
            passes.pass();
            Ok(())
        };
        waits.execute(task).unwrap();
        let error = waits.wait().unwrap_err();
        (error.is_cancelled(), waits.dropped_count(), ran.load(Ordering::SeqCst))
    });
    gate.wait_for(1);
    group.cancel();
    gate.open();
    assert_eq!(value(waiter), (true, 3, 0));
    assert_ended_on(1, &pool, 5);
    assert_eq!(pool.stats().cancelled, 3);
}

// ----- `complete` -----

/// The task that a poll waits for polls in turn, and waits for a handle. That is nothing to the outer future, which goes on
/// to wait for something outside of the pool, and holds its place.
#[test]
#[cfg(feature = "async")]
fn a_completed_future_holds_its_place_after_a_nested_wait() {
    let pool = pool(1);
    let (teller, told) = common::told();
    let own = pool.clone();
    let holds = pool.complete(async move {
        let inside = own.clone();
        own.spawn_await(async move { inside.evaluate(|| ()).await.unwrap() }).await_complete();
        told.await;
    });
    wait_until("it waits outside of the pool", || teller.waker().is_some());
    let queued = pool.evaluate(|| ());
    thread::sleep(WHILE);
    let stats = pool.stats();
    assert_eq!((stats.blocked, queued.is_finished()), (0, false), "{stats:?}");
    teller.tell();
    value(holds);
    value(queued);
}

/// While `complete` drives a future, its thread is marked as an executor's. That is not meant for what it waits for, which
/// is a task of its own.
#[test]
fn a_task_that_a_completed_future_waits_for_may_block_on_a_future() {
    fn block_on(number: u32) -> u32 {
        futures_executor::block_on(async { number })
    }

    let pool = pool(1);
    let (scoping, own) = (pool.clone(), pool.clone());
    let sum = pool.complete(async move {
        let mut sum = own.evaluate(|| block_on(1)).await_complete();
        own.scope(|scope| scope.execute(|| sum += block_on(2)));
        let inside = own.clone();
        let future = async move { inside.evaluate(|| block_on(4)).await_complete() };
        sum += own.complete(future).await_complete();
        assert!(catch_unwind(|| block_on(0)).is_err(), "still marked");
        sum
    });
    assert_eq!(value(sum), 7);
    assert_ended_on(1, &pool, 5);
    // The owner of a scope, in a future of another pool.
    let (host, gate) = (self::pool(1), block(&pool));
    let sum = host.complete(async move {
        let mut sum = 0;
        scoping.scope(|scope| scope.execute(|| sum = block_on(8)));
        sum
    });
    assert_eq!(value(sum), 8);
    gate.open();
}

// ----- futures -----

#[cfg(feature = "async")]
mod futures {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;
    use crate::common::{Teller, Told, told};

    /// Notes where it is polled.
    struct Noting {
        polls: Arc<Mutex<Vec<Place>>>,
        told: Told,
    }

    impl Future for Noting {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.polls.lock().unwrap().push(here());
            Pin::new(&mut self.told).poll(context)
        }
    }

    fn noting() -> (Teller, Noting, Arc<Mutex<Vec<Place>>>) {
        let (teller, told) = told();
        let polls = Arc::default();
        (teller, Noting { polls: Arc::clone(&polls), told }, polls)
    }

    /// After its first poll it goes on without its entry: another thread wakes it, and another worker polls it.
    #[test]
    fn a_future_that_has_to_wait_after_its_first_poll_goes_on_as_others_do() {
        let pool = pool(1);
        let (teller, future, polls) = noting();
        let own = pool.clone();
        let waiter = pool.evaluate(move || {
            own.spawn_await(future).await_complete();
            thread::current().id()
        });
        wait_until("the worker waits", || pool.stats().blocked == 1);
        let stats = pool.stats();
        assert_eq!((at_work(&stats), pool.queued_count()), ((1, 0, 1), 0), "{stats:?}");
        teller.tell();
        let thread = value(waiter);
        let polls = polls.lock().unwrap();
        assert_eq!((polls.len(), polls[0].0), (2, thread));
        assert_ne!(polls[1].0, thread, "it waits");
        assert_ended_on(2, &pool, 2);
    }

    /// Its entry is in the channel, and the only worker is the one that waits. It is woken and ends while that entry is
    /// there.
    #[test]
    fn a_future_is_woken_while_its_entry_is_in_the_queue() {
        for capacity in [None, Some(2)] {
            let pool = capacity.map_or(builder(1), |n| builder(1).queue_capacity(n)).build();
            let (teller, future, polls) = noting();
            let (sender, receiver) = mpsc::channel::<JoinHandle<()>>();
            let waiter = pool.evaluate(move || receiver.recv().unwrap().await_complete());
            let spawned = pool.spawn_await(future);
            pool.execute(|| ());
            sender.send(spawned).unwrap();
            wait_until("it waits", || teller.waker().is_some());
            teller.tell();
            value(waiter);
            assert_eq!(polls.lock().unwrap().len(), 2);
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.completed, stats.in_flight(), pool.queued_count()), (3, 0, 0));
        }
    }

    #[test]
    fn a_future_that_is_woken_during_its_first_poll_is_polled_again() {
        let pool = pool(1);
        let polls = in_task(&pool, |own| {
            let mut polls = Vec::new();
            let future = poll_fn(move |context| {
                polls.push(here());
                if polls.len() == 3 {
                    return Poll::Ready(polls.clone());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            });
            let polls = own.spawn_await(future).await_complete();
            assert_eq!(polls[0], here());
            polls
        });
        assert_eq!(polls.len(), 3);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (2, 0));
    }

    /// By another thread, while the waiter polls it.
    #[test]
    fn a_future_that_another_thread_wakes_during_its_first_poll_is_polled_again() {
        let pool = pool(1);
        for _ in 0..300 {
            let own = pool.clone();
            let waiter = pool.evaluate(move || {
                let mut wakes = None;
                let future = poll_fn(move |context| {
                    if wakes.is_some() {
                        return Poll::Ready(wakes.take());
                    }
                    let waker = context.waker().clone();
                    wakes = Some(thread::spawn(move || waker.wake()));
                    common::dawdle(20_000);
                    Poll::Pending
                });
                own.spawn_await(future).await_complete().expect("it was woken").join().unwrap();
            });
            value(waiter);
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (600, 0));
    }

    #[test]
    fn a_future_that_is_cancelled_after_its_first_poll_settles_its_waiter() {
        let pool = pool(1);
        let (teller, future, polls) = noting();
        let (drops, own) = (Drops::default(), pool.clone());
        let guard = drops.issue();
        let waiter = pool.evaluate(move || {
            let future = async move {
                let _guard = guard;
                future.await;
            };
            own.spawn_await(future).try_await_complete().unwrap_err().is_cancelled()
        });
        wait_until("it waits", || teller.waker().is_some() && pool.stats().blocked == 1);
        assert!(pool.shutdown_now().is_empty());
        assert!(value(waiter));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((drops.count(), polls.lock().unwrap().len()), (1, 1));
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }

    /// While the waiter polls the future, its entry in the queue is skipped by another worker. Then it has to wait, and
    /// nothing can wake it: it is dropped when the poll has ended. A task is still in flight, the waiter.
    #[test]
    fn a_join_waits_for_a_task_whose_awaited_future_ends_in_the_moment_of_its_first_poll() {
        let pool = pool(2);
        let (busy, skipped, ends) = (block(&pool), Gate::new(), Gate::new());
        let (sender, receiver) = mpsc::channel::<JoinHandle<()>>();
        let passes = Arc::clone(&ends);
        let waiter = pool.evaluate(move || {
            let awaited = receiver.recv().unwrap();
            assert!(awaited.try_await_complete().unwrap_err().is_cancelled());
            passes.pass();
        });
        wait_until("it runs", || pool.stats().active == 2);
        let (teller, told) = told();
        drop(teller);
        let passes = Arc::clone(&skipped);
        let awaited = pool.spawn_await(async move {
            passes.pass();
            told.await;
        });
        sender.send(awaited).unwrap();
        skipped.wait_for(1);
        busy.open();
        wait_until("the entry is skipped", || pool.idle_worker_count() == 1);
        assert_eq!(at_work(&pool.stats()), (2, 0, 0));
        skipped.open();
        ends.wait_for(1);
        assert!(!pool.join_timeout(WHILE), "a task runs");
        assert_eq!(at_work(&pool.stats()), (1, 0, 0));
        ends.open();
        value(waiter);
        assert_ended_on(2, &pool, 3);
        assert_eq!(pool.stats().cancelled, 1);
    }

    /// As fast as it can be woken: the poll that has returned it counts for nothing any more.
    #[test]
    fn a_join_waits_for_a_task_whose_awaited_future_is_woken_at_once() {
        let pool = pool(2);
        for _ in 0..500 {
            let ended = Arc::new(AtomicUsize::new(0));
            let (own, ends) = (pool.clone(), Arc::clone(&ended));
            let (teller, told) = told();
            pool.execute(move || {
                let teller = Arc::new(teller);
                let wakes = Arc::clone(&teller);
                own.execute(move || wakes.tell());
                let spawned = own.spawn_await(told);
                own.execute(|| ());
                spawned.await_complete();
                common::dawdle(2_000);
                ends.store(1, Ordering::Relaxed);
            });
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(ended.load(Ordering::Relaxed), 1);
        }
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (2000, 0));
    }

    #[test]
    fn a_worker_that_waits_for_a_group_polls_its_futures() {
        let pool = pool(1);
        let polls = in_task(&pool, |own| {
            let (group, polls) = (own.group::<()>(), Arc::new(Mutex::new(Vec::new())));
            for number in 0..5 {
                let polls = Arc::clone(&polls);
                let spawned = group.spawn(async move {
                    polls.lock().unwrap().push((number, here()));
                    Ok(())
                });
                spawned.unwrap();
            }
            group.wait().unwrap();
            let polls = Arc::into_inner(polls).expect("the futures are gone");
            assert_newest_first(polls, 5);
            let (teller, future, polls) = noting();
            let future = async move {
                future.await;
                Ok(())
            };
            group.spawn(future).unwrap();
            let tells = thread::spawn(move || {
                wait_until("it waits", || teller.waker().is_some());
                teller.tell();
                teller
            });
            group.wait().unwrap();
            drop(joined(tells));
            let polls = polls.lock().unwrap();
            assert_eq!(polls[0], here());
            polls.len()
        });
        assert_eq!(polls, 2);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (7, 0));
    }

    /// A future that has to wait keeps its place in the group.
    #[test]
    fn the_limit_of_a_group_holds_for_futures_that_its_waiter_polls() {
        let pool = pool(2);
        for _ in 0..50 {
            in_task(&pool, |own| {
                let group = own.group::<()>().limit(1);
                let crowd = Arc::new(AtomicUsize::new(0));
                for _ in 0..8 {
                    let crowd = Arc::clone(&crowd);
                    let mut polls = 0;
                    let future = poll_fn(move |context| {
                        if polls == 0 {
                            assert_eq!(crowd.fetch_add(1, Ordering::SeqCst), 0);
                        }
                        polls += 1;
                        if polls == 3 {
                            crowd.fetch_sub(1, Ordering::SeqCst);
                            return Poll::Ready(Ok(()));
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    });
                    group.spawn(future).unwrap();
                }
                group.wait().unwrap();
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (450, 0));
    }
}
