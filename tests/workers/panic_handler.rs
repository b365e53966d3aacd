//! The panic handler receives the panics that no handle receives; and the other things that a
//! builder sets for threads: their names, and the size of their stacks.

use crate::common;

use std::any::Any;
use std::cell::Cell;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

#[cfg(feature = "async")]
use common::wait_until;
use common::{Gate, HOUR, LIMIT, block, settled, value};
use elastipool::{Builder, ThreadPool, worker_index};

/// What the tasks and hooks panic with.
#[derive(Debug, PartialEq, Eq)]
struct Typed(&'static str);

type Payload = Box<dyn Any + Send>;

fn builder(max_size: usize) -> Builder {
    Builder::new().core_size(1).max_size(max_size).keep_alive(HOUR)
}

/// A builder whose handler sends what it gets.
fn heard(max_size: usize) -> (Builder, mpsc::Receiver<Payload>) {
    let (sender, receiver) = mpsc::channel();
    (builder(max_size).panic_handler(move |payload| sender.send(payload).unwrap()), receiver)
}

/// The next payload, and no other.
#[track_caller]
fn hears(receiver: &mpsc::Receiver<Payload>, what: &'static str) {
    let payload = receiver.recv_timeout(LIMIT).expect("it receives nothing");
    assert_eq!(payload.downcast_ref(), Some(&Typed(what)));
    assert!(receiver.try_recv().is_err());
}

fn name_of_worker(pool: &ThreadPool) -> String {
    value(pool.evaluate(|| thread::current().name().unwrap().to_owned()))
}

// ----- whose panics -----

#[test]
fn the_panic_handler_gets_the_payload_of_a_task_without_a_handle() {
    let (builder, payloads) = heard(1);
    let pool = builder.build();
    pool.execute(|| panic_any(Typed("executed")));
    hears(&payloads, "executed");
    pool.try_execute(|| panic_any(Typed("tried"))).unwrap();
    hears(&payloads, "tried");
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().panicked, 2);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn the_panic_handler_gets_the_payload_of_a_future_without_a_handle() {
    let (builder, payloads) = heard(1);
    let pool = builder.build();
    pool.spawn(async { panic_any(Typed("first poll")) });
    hears(&payloads, "first poll");
    let (trigger, triggered) = common::triggered();
    pool.spawn(async move {
        triggered.await;
        panic_any(Typed("second poll"))
    });
    wait_until("it is pending", || trigger.waker().is_some());
    trigger.fire();
    hears(&payloads, "second poll");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_panic_handler_gets_the_payload_of_a_task_whose_handle_was_dropped() {
    let (builder, payloads) = heard(1);
    let pool = builder.build();
    let gate = block(&pool);
    drop(pool.evaluate(|| -> u8 { panic_any(Typed("queued")) }));
    drop(pool.complete(async { panic_any(Typed("completed")) }));
    gate.open();
    let payload = payloads.recv_timeout(LIMIT).unwrap();
    assert_eq!(payload.downcast_ref(), Some(&Typed("queued")));
    hears(&payloads, "completed");

    // While it runs.
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || -> u8 {
        passes.pass();
        panic_any(Typed("running"))
    });
    gate.wait_for(1);
    drop(handle);
    gate.open();
    hears(&payloads, "running");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[cfg(feature = "async")]
#[test]
fn the_panic_handler_gets_the_payload_of_a_future_whose_handle_was_dropped() {
    let (builder, payloads) = heard(1);
    let pool = builder.build();
    let (trigger, triggered) = common::triggered();
    drop(pool.spawn_await(async move {
        triggered.await;
        panic_any(Typed("spawned"))
    }));
    wait_until("it is pending", || trigger.waker().is_some());
    trigger.fire();
    hears(&payloads, "spawned");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn the_panic_handler_does_not_get_what_a_handle_gets() {
    let (builder, payloads) = heard(1);
    let pool = builder.build();
    let error = settled(pool.evaluate(|| -> u8 { panic_any(Typed("evaluated")) })).unwrap_err();
    assert_eq!(error.into_panic().downcast_ref(), Some(&Typed("evaluated")));
    let handle = pool.complete(async { panic_any(Typed("completed")) });
    assert!(pool.join_timeout(LIMIT));
    // The handle has it, whether or not it is awaited.
    drop(handle);
    #[cfg(feature = "async")]
    assert!(settled(pool.spawn_await(async { panic_any(Typed("spawned")) })).is_err());
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(payloads.try_recv().is_err());
}

#[test]
fn the_panic_handler_gets_the_payloads_of_hooks() {
    let (builder, payloads) = heard(1);
    let pool = builder
        .on_worker_start(|_| panic_any(Typed("start")))
        .on_worker_stop(|_| panic_any(Typed("stop")))
        .build();
    assert_eq!(value(pool.evaluate(|| 1)), 1);
    hears(&payloads, "start");
    assert!(pool.clone().join_timeout(LIMIT));
    assert!(pool.clone().stats().panicked == 0, "hooks are no tasks");
    assert!(pool.shutdown_join_timeout(LIMIT));
    hears(&payloads, "stop");
}

/// Without a thread to be had, on the thread that submits.
#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
#[test]
fn the_panic_handler_gets_the_payload_of_a_task_that_runs_on_the_caller() {
    let (builder, payloads) = heard(1);
    let pool = builder.stack_size(1 << 60).build();
    pool.execute(|| panic_any(Typed("here")));
    hears(&payloads, "here");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- how it is called -----

#[test]
fn the_panic_handler_is_called_by_the_worker() {
    let (sender, receiver) = mpsc::channel();
    let pool = builder(1).panic_handler(move |_| sender.send(worker_index()).unwrap()).build();
    pool.execute(|| panic!("contained"));
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(Some(0)));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_task_counts_until_its_panic_is_handled() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let pool = builder(1).panic_handler(move |_| passes.pass()).build();
    pool.execute(|| panic!("contained"));
    gate.wait_for(1);
    assert!(!pool.join_timeout(Duration::from_millis(20)));
    let stats = pool.stats();
    assert_eq!((stats.active, stats.panicked), (1, 0));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.active, stats.panicked), (0, 1));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_panic_handler_that_panics_is_contained() {
    /// One that panics again when it is dropped.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped the bomb");
        }
    }

    let calls = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&calls);
    let pool = builder(1)
        .on_worker_start(|_| panic!("start"))
        .on_worker_stop(|_| panic!("stop"))
        .panic_handler(move |payload| {
            counts.fetch_add(1, Ordering::SeqCst);
            std::mem::forget(payload);
            panic_any(Bomb)
        })
        .build();
    let first = value(pool.evaluate(|| thread::current().id()));
    for _ in 0..5 {
        pool.execute(|| panic!("contained"));
    }
    #[cfg(feature = "async")]
    pool.spawn(async { panic!("contained") });
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(value(pool.evaluate(|| thread::current().id())), first, "the worker lives on");
    let tasks = if cfg!(feature = "async") { 6 } else { 5 };
    let stats = pool.stats();
    assert_eq!((stats.panicked, stats.threads_started), (tasks, 1));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(calls.load(Ordering::SeqCst), tasks + 2);
}

/// It may submit: what failed, once more.
#[test]
fn the_panic_handler_may_use_its_pool() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let (place, (sender, receiver)) = (Arc::clone(&own), mpsc::channel());
    let pool = builder(1)
        .panic_handler(move |_| {
            let sender = sender.clone();
            let own = place.lock().unwrap().take().unwrap();
            own.execute(move || sender.send(()).unwrap());
        })
        .build();
    *own.lock().unwrap() = Some(pool.clone());
    pool.execute(|| panic!("contained"));
    assert!(pool.join_timeout(LIMIT), "the new task counts before the old one has ended");
    assert_eq!(receiver.try_recv(), Ok(()));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The last reference to a pool may be a waker that is kept: its thread does not hear of what the
/// user's hooks do when they are dropped.
#[cfg(feature = "async")]
#[test]
fn hooks_whose_drop_panics_do_not_panic_a_late_waker() {
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("dropped the bomb");
        }
    }

    impl Bomb {
        fn tick(&self) {}
    }

    let count = Arc::new(AtomicUsize::new(0));
    let bomb = || Bomb(Arc::clone(&count));
    let bombs = (bomb(), bomb(), bomb(), bomb(), bomb(), bomb());
    let pool = builder(1)
        .on_worker_start(move |_| bombs.0.tick())
        .on_worker_stop(move |_| bombs.1.tick())
        .panic_handler(move |_| bombs.2.tick())
        .thread_name(move |index| {
            bombs.3.tick();
            index.to_string()
        })
        .task_context(move || {
            bombs.4.tick();
            || ()
        })
        .stall_report(LIMIT, move |_| bombs.5.tick())
        .build();
    let (trigger, triggered) = common::triggered();
    let handle = pool.spawn_await(triggered);
    let mut waker = None;
    wait_until("it is pending", || {
        waker = trigger.waker();
        waker.is_some()
    });
    trigger.fire();
    value(handle);
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(count.load(Ordering::SeqCst), 0, "the waker keeps the pool");
    drop(waker);
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

// ----- names -----

/// What Linux keeps of a thread's name.
const KEPT_BYTES: usize = 15;

#[test]
fn the_default_name_of_a_thread_has_space_for_its_index() {
    let pool = builder(1).build();
    let name = name_of_worker(&pool);
    assert_eq!(name, format!("{}-0", pool.name()));
    let prefix = name.trim_end_matches("-0").trim_end_matches(|c: char| c.is_ascii_digit());
    assert!(format!("{prefix}999-9999").len() <= KEPT_BYTES, "{name}");
}

#[test]
fn threads_are_named_as_the_user_says() {
    let pool = builder(3).name("pool").thread_name(|index| format!("io #{index}")).build();
    let names = common::submit_interdependent(&pool, 3, || {
        (worker_index().unwrap(), thread::current().name().unwrap().to_owned())
    });
    let mut names: Vec<_> = names.into_iter().map(value).collect();
    names.sort();
    let expected = [0, 1, 2].map(|index| (index, format!("io #{index}")));
    assert_eq!(names, expected);
    assert_eq!(pool.name(), "pool");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_nul_in_a_thread_name_is_replaced() {
    let pool = builder(1).thread_name(|index| format!("a\0b{index}\0")).build();
    let name = name_of_worker(&pool);
    assert!(name.starts_with('a') && name.contains("b0") && !name.contains('\0'), "{name:?}");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_thread_name_function_that_panics_counts_as_none() {
    let (builder, payloads) = heard(1);
    let pool = builder.name("pool").thread_name(|_| panic_any(Typed("nameless"))).build();
    assert_eq!(name_of_worker(&pool), "pool-0");
    hears(&payloads, "nameless");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The submission needs a thread, which needs a name, whose panic the handler receives.
#[test]
fn a_panic_handler_may_submit_when_it_receives_the_panic_of_a_thread_name_function() {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }

    for max_size in [1, 3] {
        let own = Arc::new(Mutex::new(None::<ThreadPool>));
        let (place, deepest, count) =
            (Arc::clone(&own), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (deep, counts) = (Arc::clone(&deepest), Arc::clone(&count));
        let pool = builder(max_size)
            .name("pool")
            .thread_name(|_| panic!("nameless"))
            .panic_handler(move |_| {
                let depth = DEPTH.get();
                deep.fetch_max(depth, Ordering::SeqCst);
                // Deeper is as good as without end.
                if depth < 20 {
                    DEPTH.set(depth + 1);
                    let counts = Arc::clone(&counts);
                    let own = place.lock().unwrap().clone().unwrap();
                    own.execute(move || {
                        counts.fetch_add(1, Ordering::SeqCst);
                    });
                    DEPTH.set(depth);
                }
            })
            .build();
        *own.lock().unwrap() = Some(pool.clone());
        assert_eq!(value(pool.evaluate(|| 7)), 7);
        assert!(name_of_worker(&pool).starts_with("pool-"));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(deepest.load(Ordering::SeqCst), 0);
        assert!(count.load(Ordering::SeqCst) >= 1);
        drop(own.lock().unwrap().take());
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// The thread that calls it holds no lock that it takes.
#[test]
fn a_thread_name_function_may_look_at_its_pool() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let place = Arc::clone(&own);
    let pool = builder(2)
        .name("looks")
        .thread_name(move |index| {
            let own = place.lock().unwrap().clone().unwrap();
            let (stats, text) = (own.stats(), format!("{own:?}"));
            assert!(text.contains("looks"));
            let counts = own.idle_worker_count() + own.queued_count() + own.current_worker_count();
            assert!(counts < 10 && own.max_size() == 2 && !own.is_closed());
            format!("{}-{index}-after-{}", own.name(), stats.threads_started)
        })
        .build();
    *own.lock().unwrap() = Some(pool.clone());
    let (sender, receiver) = mpsc::channel();
    let submits = pool.clone();
    thread::spawn(move || {
        let gate = block(&submits);
        let second = name_of_worker(&submits);
        gate.open();
        sender.send(second).unwrap();
    });
    let second = receiver.recv_timeout(LIMIT).expect("it deadlocks");
    assert_eq!(second, "looks-1-after-1");
    own.lock().unwrap().take();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- stacks -----

/// Uses more than 4 KiB of stack per level.
fn dive(depth: usize) -> usize {
    let frame = std::hint::black_box([1_u8; 4096]);
    let below = if depth == 0 { 0 } else { dive(depth - 1) };
    below + usize::from(frame[depth % frame.len()])
}

/// 6 MiB at least, in unoptimized builds perhaps twice that: too much for the usual 2.
#[test]
fn a_deep_recursion_fits_into_a_large_stack() {
    let pool = builder(1).stack_size(32 << 20).build();
    assert_eq!(value(pool.evaluate(|| dive(1_500))), 1_501);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The keeper usually leaves last, and drops the pool.
#[test]
fn hooks_are_dropped_on_a_large_stack() {
    struct Deep(mpsc::Sender<usize>);

    impl Drop for Deep {
        fn drop(&mut self) {
            self.0.send(dive(1_500)).unwrap();
        }
    }

    for _ in 0..10 {
        let (sender, receiver) = mpsc::channel();
        let deep = Mutex::new(Deep(sender));
        let hook = move |_| drop(deep.lock().unwrap());
        let pool = builder(1).stack_size(32 << 20).on_worker_start(hook).build();
        pool.execute(|| ());
        // This thread may be the last one.
        let drops = thread::Builder::new().stack_size(32 << 20).spawn(|| drop(pool));
        drops.unwrap().join().unwrap();
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(1_501));
    }
}

#[test]
fn a_small_stack_is_rounded_up() {
    for stack_size in [0, 1, 4097] {
        let pool = builder(1).stack_size(stack_size).build();
        // Or it is refused, which is said.
        if let Ok(handle) = pool.try_evaluate(|| 1) {
            assert_eq!(value(handle), 1);
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
#[test]
fn a_stack_that_cannot_be_had_is_a_refused_thread() {
    use std::error::Error;

    use common::refused;
    use elastipool::RejectReason;

    for stack_size in [1 << 46, 1 << 60, usize::MAX / 2] {
        let pool = builder(2).stack_size(stack_size).build();
        let rejected = refused(pool.try_execute(|| ()), RejectReason::NoThread);
        assert!(rejected.source().is_some(), "what the system said");
        assert_eq!(pool.start_core_threads(), 0);
        let here = thread::current().id();
        assert_eq!(value(pool.evaluate(|| thread::current().id())), here);
        let stats = pool.stats();
        assert_eq!((stats.threads_refused, stats.threads_started, stats.workers), (3, 0, 0));
        assert_eq!((stats.rejected, stats.completed), (1, 1));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}
