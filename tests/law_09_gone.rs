//! Law 9, gone: when `shutdown_join` of the last handle returns, every thread of the pool has
//! exited, stop hooks and thread-locals' destructors included.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use common::threads_named;
use common::waits::{waiting, waker};
use common::{CountingWaker, Gate, HOUR, LIMIT, block, wait_until};
use elastipool::{Builder, ThreadPool};

/// A time that a wait may well take. What it waits for is held back by a gate.
const MOMENT: Duration = Duration::from_millis(20);

/// Who came and who went.
#[derive(Clone, Default)]
struct Log {
    started: Arc<Mutex<BTreeMap<usize, usize>>>,
    stopped: Arc<Mutex<BTreeMap<usize, usize>>>,
    /// Threads that have called the start hook. One that is needed again at its end calls it again.
    threads: Arc<AtomicUsize>,
    /// Threads that have run the destructors of their thread-locals.
    cleaned: Arc<AtomicUsize>,
}

impl Log {
    fn of(&self, builder: Builder) -> Builder {
        let (started, stopped) = (Arc::clone(&self.started), Arc::clone(&self.stopped));
        let (threads, cleaned) = (Arc::clone(&self.threads), Arc::clone(&self.cleaned));
        builder
            .on_worker_start(move |index| {
                *started.lock().unwrap().entry(index).or_default() += 1;
                let cleaned = Arc::clone(&cleaned);
                let is_first = at_thread_exit(move || {
                    // So slow that a shutdown that does not wait for it returns first.
                    thread::sleep(Duration::from_millis(1));
                    cleaned.fetch_add(1, Ordering::SeqCst);
                });
                threads.fetch_add(usize::from(is_first), Ordering::SeqCst);
            })
            .on_worker_stop(move |index| {
                *stopped.lock().unwrap().entry(index).or_default() += 1;
            })
    }

    fn started(&self) -> usize {
        self.started.lock().unwrap().values().sum()
    }

    fn stopped(&self) -> usize {
        self.stopped.lock().unwrap().values().sum()
    }

    /// Everybody has gone who came: now, not some time.
    #[track_caller]
    fn assert_gone(&self, count: usize) {
        assert_eq!(self.stopped(), count, "stop hooks");
        assert_eq!(*self.stopped.lock().unwrap(), *self.started.lock().unwrap(), "by index");
        let threads = self.threads.load(Ordering::SeqCst);
        assert_eq!(self.cleaned.load(Ordering::SeqCst), threads, "thread-locals");
    }
}

/// Runs when the thread exits, as the destructor of a thread-local. Returns whether this
/// thread had none before; otherwise it replaces that one.
fn at_thread_exit(f: impl FnOnce() + 'static) -> bool {
    type Boxed = Box<dyn FnOnce()>;
    struct Runs(RefCell<Option<Boxed>>);
    impl Drop for Runs {
        fn drop(&mut self) {
            if let Some(f) = self.0.take() {
                f();
            }
        }
    }
    thread_local! {
        static LAST_WORDS: Runs = const { Runs(RefCell::new(None)) };
    }
    LAST_WORDS.with(|runs| runs.0.replace(Some(Box::new(f))).is_none())
}

fn builder(core_size: usize, max_size: usize) -> Builder {
    Builder::new().core_size(core_size).max_size(max_size).keep_alive(HOUR)
}

/// A pool of `size` workers that have been started.
fn staffed(log: &Log, size: usize) -> ThreadPool {
    let pool = log.of(builder(size, size)).build();
    assert_eq!(pool.start_core_threads(), size);
    pool
}

// ----- everybody goes -----

/// The regression: none of four stop hooks had run.
#[test]
fn stop_hooks_and_thread_locals_have_run_when_shutdown_join_returns() {
    for _ in 0..50 {
        let log = Log::default();
        let pool = staffed(&log, 4);
        for _ in 0..20 {
            pool.execute(|| ());
        }
        pool.shutdown_join();
        assert_eq!(log.started(), 4);
        log.assert_gone(4);
    }
}

#[test]
fn shutdown_join_waits_for_slow_stop_hooks_and_slow_thread_locals() {
    let steps = Arc::new(AtomicUsize::new(0));
    let (hook, local) = (Arc::clone(&steps), Arc::clone(&steps));
    let pool = builder(2, 2)
        .on_worker_start(move |_| {
            let local = Arc::clone(&local);
            at_thread_exit(move || {
                thread::sleep(MOMENT);
                local.fetch_add(1, Ordering::SeqCst);
            });
        })
        .on_worker_stop(move |_| {
            thread::sleep(MOMENT);
            hook.fetch_add(1, Ordering::SeqCst);
        })
        .build();
    assert_eq!(pool.start_core_threads(), 2);
    pool.shutdown_join();
    assert_eq!(steps.load(Ordering::SeqCst), 4);
}

/// Thread-locals of the tasks, too, whenever they were made and whatever they make in their end.
#[test]
fn shutdown_join_waits_for_thread_locals_of_tasks() {
    thread_local! {
        static FIRST: Slow = const { Slow(RefCell::new(None)) };
        static SECOND: Slow = const { Slow(RefCell::new(None)) };
    }
    struct Slow(RefCell<Option<Arc<AtomicUsize>>>);
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(MOMENT);
            let Some(count) = self.0.take() else { return };
            // The first one to go makes another one, which goes last.
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                let _ = SECOND.try_with(|slow| slow.0.replace(Some(count)));
            }
        }
    }

    let count = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::new(1, 1, HOUR);
    let counts = Arc::clone(&count);
    pool.execute(move || FIRST.with(|slow| drop(slow.0.replace(Some(counts)))));
    pool.shutdown_join();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_has_no_thread_of_the_pool_when_shutdown_join_returns() {
    let pool = ThreadPool::new_named("gone-from-here", 4, 4, HOUR);
    assert_eq!(pool.start_core_threads(), 4);
    // A thread names itself when it starts. The fifth one is the keeper.
    wait_until("the threads have their names", || threads_named("gone-from-her") == 5);
    assert_eq!(threads_named("gone-from-there"), 0);
    pool.shutdown_join();
    // The system takes its time to strike a thread off its list after it has reported its end.
    wait_until("the threads are gone", || threads_named("gone-from-her") == 0);
}

#[test]
fn all_tasks_have_run_when_shutdown_join_returns() {
    let log = Log::default();
    let pool = staffed(&log, 2);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..1_000 {
        let (counts, own) = (Arc::clone(&ran), pool.clone());
        pool.execute(move || {
            let inner = Arc::clone(&counts);
            own.execute(move || {
                inner.fetch_add(1, Ordering::Relaxed);
            });
            counts.fetch_add(1, Ordering::Relaxed);
        });
    }
    pool.shutdown_join();
    assert_eq!(ran.load(Ordering::Relaxed), 2_000);
    log.assert_gone(2);
}

#[cfg(feature = "async")]
#[test]
fn shutdown_join_waits_for_pending_futures() {
    let log = Log::default();
    let pool = staffed(&log, 2);
    let (trigger, triggered) = common::triggered();
    let (sender, receiver) = mpsc::channel();
    pool.spawn(async move {
        triggered.await;
        sender.send(()).unwrap();
    });
    wait_until("it is pending", || trigger.polls() == 1);
    let looker = pool.clone();
    looker.close();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    assert_eq!(log.stopped(), 0);
    let triggered = thread::spawn(move || {
        trigger.fire();
        trigger
    });
    assert!(looker.shutdown_join_timeout(LIMIT));
    assert_eq!(receiver.try_recv(), Ok(()));
    log.assert_gone(2);
    triggered.join().unwrap();
}

#[test]
fn a_pool_that_was_never_used_shuts_down() {
    ThreadPool::new(4, 4, HOUR).shutdown_join();
    assert!(ThreadPool::new(4, 4, HOUR).shutdown_join_timeout(Duration::ZERO));
    let pool = ThreadPool::new(0, 4, HOUR);
    pool.close();
    pool.shutdown_join();
}

#[test]
fn an_idle_pool_that_was_used_shuts_down() {
    let log = Log::default();
    let pool = staffed(&log, 3);
    wait_until("all are idle", || pool.idle_worker_count() == 3);
    pool.shutdown_join();
    log.assert_gone(3);
}

/// Workers that have retired are no longer counted, but their threads may still be at it.
#[cfg_attr(
    windows,
    ignore = "Windows runs the destructors of thread-locals one at a time, and starts no thread meanwhile"
)]
#[test]
fn shutdown_join_waits_for_workers_that_have_just_retired() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let exited = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&exited);
    let pool = Builder::new()
        .core_size(0)
        .max_size(2)
        .keep_alive(Duration::from_millis(1))
        .on_worker_start(move |_| {
            let (passes, counts) = (Arc::clone(&passes), Arc::clone(&counts));
            at_thread_exit(move || {
                passes.pass();
                counts.fetch_add(1, Ordering::SeqCst);
            });
        })
        .build();
    let met = Gate::new();
    for _ in 0..2 {
        let met = Arc::clone(&met);
        pool.execute(move || met.meet(2));
    }
    wait_until("both have retired", || pool.current_worker_count() == 0);
    gate.wait_for(2);
    assert_eq!(pool.stats().threads_retired, 2);
    pool.close();
    assert!(!pool.clone().shutdown_join_timeout(MOMENT), "their threads have not exited");
    assert_eq!(exited.load(Ordering::SeqCst), 0);
    let opener = thread::spawn(move || gate.open());
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert_eq!(exited.load(Ordering::SeqCst), 2);
    opener.join().unwrap();
}

/// At every moment of the life of a worker that retires.
#[test]
fn shutdown_join_waits_for_workers_that_are_retiring() {
    for round in 0..300 {
        let log = Log::default();
        let builder = Builder::new().core_size(0).max_size(2).keep_alive(Duration::from_nanos(1));
        let pool = log.of(builder).build();
        pool.execute(|| ());
        common::dawdle(20_000);
        pool.execute(|| ());
        if round % 2 == 0 {
            common::dawdle(20_000);
        }
        pool.shutdown_join();
        log.assert_gone(log.started());
        assert!(log.started() > 0);
    }
}

/// The thread that waits for the end in async code belongs to the pool, and keeps its hooks until
/// it exits.
#[test]
fn a_wait_for_the_end_that_was_dropped_leaves_nothing_behind() {
    for has_task in [true, false].repeat(200) {
        let hook = Arc::new(());
        let held = Arc::clone(&hook);
        let pool = builder(1, 1).on_worker_start(move |_| _ = &held).build();
        drop(waiting(pool.terminated()));
        if has_task {
            pool.execute(|| ());
        }
        pool.shutdown_join();
        assert_eq!(Arc::strong_count(&hook), 1, "a thread of the pool has it");
    }
}

/// It belongs to the pool as well when it calls their wakers.
#[test]
fn each_wait_for_the_end_waits_for_the_thread_that_wakes_it() {
    for _ in 0..20 {
        let pool = builder(1, 1).build();
        pool.execute(|| ());
        let (begun, exited) = (Arc::new(Barrier::new(4)), Arc::new(AtomicUsize::new(0)));
        let waits: Vec<_> = (0..3)
            .map(|_| {
                let (pool, begun) = (pool.clone(), Arc::clone(&begun));
                let exited = Arc::clone(&exited);
                thread::spawn(move || {
                    let (woken, is_woken) = mpsc::channel();
                    let counts = Arc::clone(&exited);
                    let waker = waker(move || {
                        let counts = Arc::clone(&counts);
                        at_thread_exit(move || {
                            thread::sleep(MOMENT);
                            counts.fetch_add(1, Ordering::SeqCst);
                        });
                        let _ = woken.send(());
                    });
                    let mut context = Context::from_waker(&waker);
                    let mut end = pin!(pool.terminated());
                    assert!(end.as_mut().poll(&mut context).is_pending());
                    begun.wait();
                    is_woken.recv_timeout(LIMIT).unwrap();
                    assert!(end.as_mut().poll(&mut context).is_ready());
                    assert_eq!(exited.load(Ordering::SeqCst), 1, "it has exited");
                })
            })
            .collect();
        begun.wait();
        pool.close();
        pool.shutdown_join();
        assert_eq!(exited.load(Ordering::SeqCst), 1);
        waits.into_iter().for_each(common::joined);
    }
}

// ----- in time or not -----

#[test]
fn shutdown_join_timeout_returns_before_a_slow_task_ends() {
    let log = Log::default();
    let pool = staffed(&log, 2);
    let gate = block(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&ran);
    let before = Instant::now();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    assert!(before.elapsed() >= MOMENT);
    drop(counts);
    // It goes on in the background.
    gate.open();
    wait_until("the workers are gone", || log.cleaned.load(Ordering::SeqCst) == 2);
    log.assert_gone(2);
    assert_eq!(Arc::strong_count(&ran), 1);
}

#[test]
fn shutdown_join_timeout_returns_before_a_slow_stop_hook_ends() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let stopped = Arc::new(AtomicUsize::new(0));
    let stops = Arc::clone(&stopped);
    let pool = builder(2, 2)
        .on_worker_stop(move |_| {
            passes.pass();
            stops.fetch_add(1, Ordering::SeqCst);
        })
        .build();
    assert_eq!(pool.start_core_threads(), 2);
    let looker = pool.clone();
    pool.close();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    gate.wait_for(2);
    assert!(!looker.clone().shutdown_join_timeout(Duration::ZERO));
    assert_eq!(stopped.load(Ordering::SeqCst), 0);
    let opener = thread::spawn(move || gate.open());
    assert!(looker.shutdown_join_timeout(LIMIT));
    assert_eq!(stopped.load(Ordering::SeqCst), 2);
    opener.join().unwrap();
}

#[cfg_attr(
    windows,
    ignore = "Windows runs the destructors of thread-locals one at a time, and starts no thread meanwhile"
)]
#[test]
fn shutdown_join_timeout_returns_before_a_slow_thread_local_ends() {
    let gate = Gate::new();
    let exited = Arc::new(AtomicUsize::new(0));
    let (passes, exits) = (Arc::clone(&gate), Arc::clone(&exited));
    let pool = ThreadPool::new(1, 1, HOUR);
    pool.execute(move || {
        at_thread_exit(move || {
            passes.pass();
            exits.fetch_add(1, Ordering::SeqCst);
        });
    });
    let looker = pool.clone();
    pool.close();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    gate.wait_for(1);
    assert!(!looker.clone().shutdown_join_timeout(MOMENT));
    assert_eq!((exited.load(Ordering::SeqCst), looker.stats().workers), (0, 0));
    let opener = thread::spawn(move || gate.open());
    assert!(looker.shutdown_join_timeout(LIMIT));
    assert_eq!(exited.load(Ordering::SeqCst), 1);
    opener.join().unwrap();
}

#[test]
fn shutdown_does_not_block() {
    let log = Log::default();
    let pool = staffed(&log, 2);
    let gate = block(&pool);
    // If it blocked, it would do so for as long as the gate is shut: for ever.
    pool.clone().shutdown();
    pool.shutdown();
    gate.open();
    wait_until("the workers are gone", || log.cleaned.load(Ordering::SeqCst) == 2);
    log.assert_gone(2);
}

// ----- several at a time -----

#[test]
fn two_clones_shut_down_at_the_same_time() {
    for round in 0..100 {
        let log = Log::default();
        let pool = staffed(&log, 3);
        let (one, other) = (pool.clone(), pool);
        // Closed or not: whichever is the last waits for the threads, and in a closed pool both do.
        let is_closed = round % 2 == 0;
        if is_closed {
            one.close();
        }
        thread::scope(|scope| {
            for handle in [one, other] {
                let log = &log;
                scope.spawn(move || {
                    handle.shutdown_join();
                    if is_closed {
                        log.assert_gone(3);
                    }
                });
            }
        });
        log.assert_gone(3);
    }
}

#[test]
fn another_handle_keeps_the_pool_alive() {
    let log = Log::default();
    let pool = staffed(&log, 2);
    let other = pool.clone();
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&ran);
    pool.execute(move || {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    pool.shutdown_join();
    assert_eq!(ran.load(Ordering::Relaxed), 1, "it has waited for the task");
    assert!(!other.is_closed());
    assert_eq!(log.stopped(), 0);
    assert_eq!(other.evaluate(|| 1).await_complete(), 1);
    other.shutdown_join();
    log.assert_gone(2);
}

#[test]
fn a_task_may_hold_the_last_other_handle_at_a_shutdown() {
    for _ in 0..50 {
        let log = Log::default();
        let pool = staffed(&log, 2);
        let gate = Gate::new();
        let (passes, own) = (Arc::clone(&gate), pool.clone());
        pool.execute(move || {
            passes.pass();
            own.execute(|| common::dawdle(1_000));
            drop(own);
            common::dawdle(1_000);
        });
        gate.wait_for(1);
        let opener = thread::spawn(move || gate.open());
        pool.shutdown_join();
        log.assert_gone(2);
        opener.join().unwrap();
    }
}

// ----- from within -----

#[test]
fn a_stop_hook_that_shuts_down_waits_for_all_other_workers() {
    for _ in 0..50 {
        const SIZE: usize = 4;
        let own = Arc::new(Mutex::new(None::<ThreadPool>));
        let (cleaned, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = mpsc::channel();
        let cleans = Arc::clone(&cleaned);
        let (place, stops, seen) = (Arc::clone(&own), Arc::clone(&stopped), Arc::clone(&cleaned));
        let pool = builder(SIZE, SIZE)
            .on_worker_start(move |_| {
                let cleans = Arc::clone(&cleans);
                at_thread_exit(move || {
                    thread::sleep(Duration::from_millis(1));
                    cleans.fetch_add(1, Ordering::SeqCst);
                });
            })
            .on_worker_stop(move |_| {
                let own = place.lock().unwrap().take();
                if let Some(own) = own {
                    own.shutdown_join();
                    let counts = (stops.load(Ordering::SeqCst), seen.load(Ordering::SeqCst));
                    sender.send(counts).unwrap();
                } else {
                    stops.fetch_add(1, Ordering::SeqCst);
                }
            })
            .build();
        *own.lock().unwrap() = Some(pool.clone());
        assert_eq!(pool.start_core_threads(), SIZE);
        pool.close();
        let counts = receiver.recv_timeout(LIMIT).expect("it waits for itself");
        assert_eq!(counts, (SIZE - 1, SIZE - 1), "stop hooks and thread-locals of the others");
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert_eq!(cleaned.load(Ordering::SeqCst), SIZE);
    }
}

/// Its pool is still open: it is a worker that retires.
#[test]
fn a_stop_hook_of_a_worker_that_retires_shuts_the_pool_down() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let (sender, receiver) = mpsc::channel();
    let place = Arc::clone(&own);
    let pool = Builder::new()
        .core_size(0)
        .max_size(2)
        .keep_alive(Duration::from_millis(1))
        .on_worker_stop(move |_| {
            let own = place.lock().unwrap().take();
            if let Some(own) = own {
                sender.send(own.shutdown_join_timeout(LIMIT)).unwrap();
            }
        })
        .build();
    pool.execute(|| ());
    *own.lock().unwrap() = Some(pool);
    // The worker may have retired before it was there to be taken.
    let late = own.lock().unwrap().as_ref().map(ThreadPool::clone);
    if let Some(late) = late {
        late.execute(|| ());
        drop(late);
    }
    assert_eq!(receiver.recv_timeout(2 * LIMIT), Ok(true));
}

/// A thread-local's destructor is the pool's own thread, too.
#[cfg_attr(
    windows,
    ignore = "Windows runs the destructors of thread-locals one at a time, and starts no thread meanwhile"
)]
#[test]
fn a_thread_local_that_shuts_down_waits_for_all_other_workers() {
    let log = Log::default();
    let pool = staffed(&log, 3);
    let (sender, receiver) = mpsc::channel();
    let (own, stopped) = (pool.clone(), log.clone());
    pool.execute(move || {
        thread_local! {
            static PLACE: RefCell<Option<Shuts>> = const { RefCell::new(None) };
        }
        struct Shuts(Option<ThreadPool>, mpsc::Sender<(bool, usize)>, Log);
        impl Drop for Shuts {
            fn drop(&mut self) {
                let is_done = self.0.take().unwrap().shutdown_join_timeout(LIMIT);
                self.1.send((is_done, self.2.stopped())).unwrap();
            }
        }
        PLACE.with(|place| *place.borrow_mut() = Some(Shuts(Some(own), sender, stopped)));
    });
    pool.close();
    assert_eq!(receiver.recv_timeout(2 * LIMIT), Ok((true, 3)));
    assert!(pool.shutdown_join_timeout(LIMIT));
    log.assert_gone(3);
}

/// Two that retire at the same time: the one that is through waits for the other after that, and
/// the other must not wait for it.
#[test]
fn two_stop_hooks_shut_the_pool_down() {
    for _ in 0..30 {
        let own = Arc::new(Mutex::new(Vec::new()));
        let both_are_through = Gate::new();
        let (place, meets) = (Arc::clone(&own), Arc::clone(&both_are_through));
        let (sender, receiver) = mpsc::channel();
        let pool = builder(2, 2)
            .name("two-hooks")
            .on_worker_stop(move |_| {
                let own: ThreadPool = place.lock().unwrap().pop().unwrap();
                // The second one comes when the first one waits, and no exit tells that one of it.
                #[cfg(target_os = "linux")]
                if place.lock().unwrap().is_empty() {
                    wait_until("the keeper is gone", || threads_named("two-hooks-keepe") == 0);
                }
                let is_done = own.shutdown_join_timeout(LIMIT);
                meets.meet(2);
                sender.send(is_done).unwrap();
            })
            .build();
        *own.lock().unwrap() = vec![pool.clone(), pool.clone()];
        assert_eq!(pool.start_core_threads(), 2);
        pool.close();
        for _ in 0..2 {
            assert_eq!(receiver.recv_timeout(2 * LIMIT), Ok(true));
        }
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Once the wait of a stop hook is over, another one waits for that thread too.
#[test]
fn a_stop_hook_waits_for_one_whose_wait_has_timed_out() {
    let own = Arc::new(Mutex::new(Vec::new()));
    let (timed_out, has_waited) = (Gate::new(), Gate::new());
    let place = Arc::clone(&own);
    let (sender, receiver) = mpsc::channel();
    let pool = builder(2, 2)
        .on_worker_stop(move |_| {
            let mut handles = place.lock().unwrap();
            let (own, is_first): (ThreadPool, _) = (handles.pop().unwrap(), !handles.is_empty());
            drop(handles);
            if !is_first {
                timed_out.pass();
            }
            sender.send(own.shutdown_join_timeout(MOMENT)).unwrap();
            if is_first {
                timed_out.open();
                has_waited.pass();
            } else {
                has_waited.open();
            }
        })
        .build();
    *own.lock().unwrap() = vec![pool.clone(), pool.clone()];
    assert_eq!(pool.start_core_threads(), 2);
    pool.close();
    for _ in 0..2 {
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(false));
    }
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// One worker waits for a future that has not been polled. The other one retires, and its stop hook
/// waits for the first. The future gets a third worker.
#[cfg(feature = "async")]
#[test]
fn a_stop_hook_that_waits_delays_no_other_worker() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let place = Arc::clone(&own);
    let (stopping, go) = (Gate::new(), Gate::new());
    let (stops, passes) = (Arc::clone(&stopping), Arc::clone(&go));
    let (sender, receiver) = mpsc::channel();
    let pool = Builder::new()
        .core_size(0)
        .max_size(2)
        .keep_alive(Duration::from_millis(1))
        .on_worker_stop(move |_| {
            stops.open();
            passes.pass();
            let own = place.lock().unwrap().take();
            if let Some(own) = own {
                sender.send(own.shutdown_join_timeout(LIMIT)).unwrap();
            }
        })
        .build();
    let (ready, spawned) = (Gate::new(), Gate::new());
    let (readies, waits) = (Arc::clone(&ready), Arc::clone(&spawned));
    let (polled, has_polled) = mpsc::channel();
    let last = pool.clone();
    let closure = pool.evaluate(move || {
        readies.pass();
        last.spawn(async move { polled.send(()).unwrap() });
        *own.lock().unwrap() = Some(last);
        waits.open();
        // No blocking region: only one other worker may run.
        has_polled.recv_timeout(LIMIT)
    });
    ready.wait_for(1);
    // The other worker starts and retires.
    pool.execute(|| ());
    stopping.pass();
    drop(pool);
    ready.open();
    spawned.pass();
    go.open();
    assert_eq!(common::value(closure), Ok(()), "the future has no worker");
    assert_eq!(receiver.recv_timeout(2 * LIMIT), Ok(true));
}

/// The thread that wakes it waits for those too that wait for the others in their stop hooks: such a
/// wait must not block the thread that polls it.
#[test]
fn a_wait_for_the_end_is_not_woken_beside_a_stop_hook_that_shuts_down() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let gate = Gate::new();
    let (place, passes) = (Arc::clone(&own), Arc::clone(&gate));
    let hooked = builder(1, 1).on_worker_stop(move |_| {
        let own = place.lock().unwrap().take().unwrap();
        assert!(own.shutdown_join_timeout(LIMIT));
        passes.pass();
    });
    let pool = hooked.build();
    pool.execute(|| ());
    let mut end = Box::pin(pool.terminated());
    let (woken, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    assert!(end.as_mut().poll(&mut context).is_pending());
    *own.lock().unwrap() = Some(pool.clone());
    pool.close();
    gate.wait_for(1);
    // Time for a defect.
    thread::sleep(Duration::from_millis(20));
    let count = woken.count();
    gate.open();
    assert_eq!(count, 0, "a thread of the pool exists");
    wait_until("it is woken", || woken.count() > 0);
    assert!(end.as_mut().poll(&mut context).is_ready());
}
