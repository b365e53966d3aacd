//! Scopes: tasks that borrow, and the call that waits for them.
//!
//! Whether a scope waits is told by its owner being a worker of a second pool, the host: while it waits, it is in a
//! blocking region, which the host's statistics show. The owner waits only for tasks that have been started, and runs the
//! others itself. So where it has to wait, a worker begins the task before the body ends.

mod common;

use std::any::Any;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{Drops, Gate, HOUR, LIMIT, block, refused, value, wait_until};
use elastipool::{
    Builder, RejectReason, Scope, ScopedJoinHandle, ThreadPool, blocking, worker_index,
};
use futures_executor::block_on;

/// How long a destructor takes that is slow.
const MOMENT: Duration = Duration::from_millis(20);

/// A scope that hangs fails its test, and does not hang it.
#[track_caller]
fn in_time<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = test();
        let _ = sender.send(());
        result
    });
    if receiver.recv_timeout(LIMIT * 2) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    thread.join().unwrap_or_else(|payload| resume_unwind(payload))
}

fn pool(size: usize) -> ThreadPool {
    ThreadPool::new(size, size, HOUR)
}

/// Runs `test` on the only worker of the host, which it is given.
#[track_caller]
fn hosted<R: Send + 'static>(test: impl FnOnce(&ThreadPool) -> R + Send + 'static) -> R {
    in_time(|| {
        let host = pool(1);
        let own = host.clone();
        host.evaluate(move || test(&own)).await_complete()
    })
}

/// The owner of a scope waits for its tasks, all of which have been started.
#[track_caller]
fn wait_for_wait(host: &ThreadPool) {
    wait_until("the owner waits", || host.stats().blocked == 1);
}

fn text(payload: &(dyn Any + Send)) -> String {
    let fixed = payload.downcast_ref::<&str>().map(ToString::to_string);
    fixed.or_else(|| payload.downcast_ref().cloned()).expect("a text")
}

/// What the panic says that comes out of `f`.
#[track_caller]
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let result = catch_unwind(AssertUnwindSafe(|| drop(f())));
    text(&*result.expect_err("no panic comes out"))
}

/// What a panic handler was told.
type Told = Arc<Mutex<Vec<String>>>;

fn handled(size: usize) -> (ThreadPool, Told) {
    let told = Told::default();
    let hears = Arc::clone(&told);
    let pool = Builder::new()
        .core_size(size)
        .max_size(size)
        .keep_alive(HOUR)
        .panic_handler(move |payload| hears.lock().unwrap().push(text(&*payload)))
        .build();
    (pool, told)
}

/// Everything that the pool has been told by now, which must be no more than that.
#[track_caller]
fn assert_told(pool: &ThreadPool, told: &Told, expected: &[&str]) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(*told.lock().unwrap(), expected);
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The pool is none the worse for it.
#[track_caller]
fn assert_works(pool: ThreadPool) {
    let mut ran = false;
    pool.scope(|scope| scope.execute(|| ran = true));
    assert!(ran);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().in_flight(), 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- borrowing -----

#[test]
fn tasks_share_what_lives_outside_of_the_scope() {
    in_time(|| {
        let texts = [String::from("one"), String::from("three")];
        let sum = AtomicUsize::new(0);
        pool(2).scope(|scope| {
            for _ in 0..10 {
                scope.execute(|| {
                    sum.fetch_add(texts.iter().map(String::len).sum(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!((sum.into_inner(), texts.len()), (80, 2));
    });
}

#[test]
fn tasks_change_what_lives_outside_of_the_scope() {
    in_time(|| {
        let mut numbers = vec![0; 100];
        pool(2).scope(|scope| {
            for (index, part) in numbers.chunks_mut(7).enumerate() {
                scope.execute(move || part.fill(index));
            }
        });
        assert!((0..100).all(|index| numbers[index] == index / 7), "{numbers:?}");
    });
}

#[test]
fn tasks_run_on_workers_and_the_body_on_the_caller() {
    in_time(|| {
        let here = thread::current().id();
        let pool = pool(1);
        pool.scope(|scope| {
            assert_eq!(thread::current().id(), here);
            let there = scope.evaluate(|| (thread::current().id(), worker_index()));
            let (thread, index) = there.await_complete();
            assert_ne!(thread, here);
            assert_eq!(index, Some(0));
        });
    });
}

#[test]
fn a_scope_waits_for_a_task() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            scope.execute(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                ended.store(true, Ordering::Relaxed);
            });
            begun.meet(2);
        });
        assert!(ended.into_inner());
    });
}

#[test]
fn a_scope_waits_for_a_task_whose_handle_was_dropped() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            drop(scope.evaluate(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                ended.store(true, Ordering::Relaxed);
            }));
            begun.meet(2);
        });
        assert!(ended.into_inner());
    });
}

#[test]
fn a_scope_waits_for_the_last_of_many_tasks() {
    hosted(|host| {
        let (pool, ended, begun) = (pool(3), AtomicUsize::new(0), Gate::new());
        pool.scope(|scope| {
            for place in 0..3 {
                let (ended, pool, begun) = (&ended, &pool, &begun);
                scope.execute(move || {
                    begun.meet(4);
                    wait_for_wait(host);
                    wait_until("the others have ended", || pool.stats().completed == place);
                    thread::sleep(MOMENT / 4);
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
            begun.meet(4);
        });
        assert_eq!(ended.into_inner(), 3);
    });
}

/// When the task has returned its captures are still there, and may look at what is borrowed.
#[test]
fn a_scope_waits_for_slow_destructors_of_captures() {
    hosted(|host| {
        let (dropped, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            let capture = OnDrop(|| {
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            let begins = Arc::clone(&begun);
            scope.execute(move || {
                let _captured = &capture;
                begins.meet(2);
            });
            begun.meet(2);
        });
        assert!(dropped.into_inner());
    });
}

#[test]
fn a_scope_waits_for_slow_destructors_of_results_that_nobody_wants() {
    hosted(|host| {
        let dropped = AtomicBool::new(false);
        pool(1).scope(|scope| {
            let result = OnDrop(|| {
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            // With its handle gone by then, or whoever drops that would drop the result.
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            drop(scope.evaluate(move || {
                passes.pass();
                result
            }));
            gate.wait_for(1);
            gate.open();
        });
        assert!(dropped.into_inner());
    });
}

/// Without a further synchronisation. By many tasks, so that there is more than one last.
#[test]
fn what_tasks_wrote_is_visible_after_the_scope() {
    in_time(|| {
        let pool = pool(3);
        for _ in 0..200 {
            let count = AtomicUsize::new(0);
            let mut plain = [0_u8; 8];
            pool.scope(|scope| {
                for part in &mut plain {
                    let count = &count;
                    scope.execute(move || {
                        count.fetch_add(1, Ordering::Relaxed);
                        *part = 1;
                    });
                }
            });
            assert_eq!(count.load(Ordering::Relaxed), 8);
            assert_eq!(plain, [1; 8]);
        }
    });
}

// ----- submitting from inside -----

#[test]
fn tasks_submit_tasks_to_their_scope() {
    fn submit<'scope>(scope: &'scope Scope<'scope, '_>, depth: usize, count: &'scope AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            for _ in 0..2 {
                scope.execute(move || submit(scope, depth - 1, count));
            }
        }
    }

    in_time(|| {
        for size in [1, 3] {
            let count = AtomicUsize::new(0);
            pool(size).scope(|scope| submit(scope, 7, &count));
            assert_eq!(count.into_inner(), 255);
        }
    });
}

/// The scope's only task ends only after it has submitted the next: there is no moment without any.
#[test]
fn a_scope_waits_for_what_is_submitted_after_its_body() {
    hosted(|host| {
        let (mut last, begun) = (0, Gate::new());
        pool(1).scope(|scope| {
            scope.execute(|| {
                begun.meet(2);
                wait_for_wait(host);
                scope.execute(|| {
                    thread::sleep(MOMENT);
                    last = 2;
                });
            });
            begun.meet(2);
        });
        assert_eq!(last, 2);
    });
}

#[test]
fn a_destructor_of_a_capture_submits() {
    hosted(|host| {
        let (mut last, begun) = (0, Gate::new());
        let pool = pool(1);
        pool.scope(|scope| {
            let mut task = Some(|| {
                thread::sleep(MOMENT);
                last = 1;
            });
            let begins = Arc::clone(&begun);
            let capture = OnDrop(move || {
                begins.meet(2);
                wait_for_wait(host);
                scope.execute(task.take().unwrap());
            });
            scope.execute(move || drop(capture));
            begun.meet(2);
        });
        assert_eq!(last, 1);
    });
}

#[test]
fn a_task_waits_for_a_task_of_its_scope() {
    in_time(|| {
        let pool = pool(1);
        let sum = pool.scope(|scope| {
            let outer = scope.evaluate(|| {
                let inner = scope.evaluate(|| scope.evaluate(|| 1).await_complete() + 1);
                inner.await_complete() + 1
            });
            outer.await_complete()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_scope_in_a_task_borrows_from_that_task() {
    in_time(|| {
        let (pool, mut sums) = (pool(2), [0; 3]);
        pool.scope(|scope| {
            for (index, sum) in sums.iter_mut().enumerate() {
                let pool = &pool;
                scope.execute(move || {
                    let mut parts = [0; 4];
                    pool.scope(|scope| {
                        for part in &mut parts {
                            scope.execute(move || *part = index);
                        }
                    });
                    *sum = parts.iter().sum();
                });
            }
        });
        assert_eq!(sums, [0, 4, 8]);
    });
}

#[test]
fn a_task_of_an_inner_scope_submits_to_the_outer_one() {
    hosted(|host| {
        let (pool, mut ended, begun) = (pool(1), false, Gate::new());
        pool.scope(|outer| {
            let (pool, ended, begun) = (&pool, &mut ended, &begun);
            pool.scope(|inner| {
                inner.execute(move || {
                    outer.execute(move || {
                        begun.meet(2);
                        wait_for_wait(host);
                        thread::sleep(MOMENT);
                        *ended = true;
                    });
                });
            });
            begun.meet(2);
        });
        assert!(ended);
    });
}

#[test]
fn scopes_nest_deeply_in_a_pool_of_one() {
    fn sum_to(pool: &ThreadPool, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let mut rest = 0;
        pool.scope(|scope| scope.execute(|| rest = sum_to(pool, number - 1)));
        number + rest
    }

    in_time(|| {
        let pool = pool(1);
        assert_eq!(sum_to(&pool, 25), 325);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().blocked, 0);
        assert_works(pool);
    });
}

// ----- where scopes are opened -----

/// The wait for a task that another worker has begun is a blocking region.
#[test]
fn in_a_worker_of_the_same_pool() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let handle = pool.evaluate(move || {
            let (mut left, mut right) = (0, None);
            let (begun, is_back) = (Gate::new(), Gate::new());
            own.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    is_back.pass();
                    wait_until("the owner waits", || own.stats().blocked == 1);
                    left = 1;
                });
                // The worker in the owner's place begins it.
                blocking(|| begun.meet(2));
                is_back.open();
                // This one the owner runs before it waits.
                scope.execute(|| right = Some(own.stats().blocked));
            });
            (left, right)
        });
        assert_eq!(value(handle), (1, Some(0)));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().blocked, 0);
        assert_works(pool);
    });
}

/// Each is opened in a worker of the other, and needs both.
#[test]
fn in_a_task_of_another_pool() {
    in_time(|| {
        let (one, other) = (pool(1), pool(1));
        let (inner, outer) = (one.clone(), other.clone());
        let handle = one.evaluate(move || {
            let mut number = 0;
            outer.scope(|scope| {
                scope.execute(|| inner.scope(|scope| scope.execute(|| number = 1)));
            });
            number
        });
        assert_eq!(value(handle), 1);
        assert_works(one);
        assert_works(other);
    });
}

#[test]
fn in_a_completed_future() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let handle = pool.complete(async move {
            let mut number = 0;
            own.scope(|scope| scope.execute(|| number = 1));
            number
        });
        assert_eq!(value(handle), 1);
        assert_works(pool);
    });
}

/// In its first poll and in a later one.
#[cfg(feature = "async")]
#[test]
fn in_a_poll_of_a_spawned_future() {
    in_time(|| {
        let pool = pool(1);
        let own = pool.clone();
        let (teller, told) = common::told();
        let handle = pool.spawn_await(async move {
            let (mut first, mut second) = (0, 0);
            own.scope(|scope| scope.execute(|| first = 1));
            told.await;
            own.scope(|scope| scope.execute(|| second = 2));
            first + second
        });
        wait_until("it is pending", || teller.waker().is_some());
        teller.tell();
        assert_eq!(value(handle), 3);
        assert_works(pool);
    });
}

#[test]
fn in_a_start_hook() {
    in_time(|| {
        let place = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let takes = Arc::clone(&place);
        let pool = Builder::new()
            .core_size(1)
            .max_size(1)
            .keep_alive(HOUR)
            .on_worker_start(move |_| {
                let own = takes.lock().unwrap().take();
                if let Some(own) = own {
                    let mut number = 0;
                    own.scope(|scope| scope.execute(|| number = 1));
                    sender.send(number).unwrap();
                }
            })
            .build();
        *place.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(1));
        assert_works(pool);
    });
}

#[test]
fn in_a_stop_hook() {
    in_time(|| {
        let place = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let takes = Arc::clone(&place);
        let pool = Builder::new()
            .core_size(0)
            .max_size(2)
            .keep_alive(Duration::from_millis(1))
            .on_worker_stop(move |_| {
                let own = takes.lock().unwrap().take();
                if let Some(own) = own {
                    let mut number = 0;
                    own.scope(|scope| scope.execute(|| number = 1));
                    sender.send(number).unwrap();
                }
            })
            .build();
        *place.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(1));
        assert_works(pool);
    });
}

#[test]
fn in_several_threads_over_and_over() {
    const ROUNDS: usize = 300;
    in_time(|| {
        let pool = pool(2);
        thread::scope(|threads| {
            for thread in 0..3 {
                let pool = &pool;
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut numbers = [0; 3];
                        pool.scope(|scope| {
                            for number in &mut numbers {
                                scope.execute(move || *number = thread * ROUNDS + round);
                            }
                        });
                        assert_eq!(numbers, [thread * ROUNDS + round; 3]);
                    }
                });
            }
        });
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 3 * 3 * ROUNDS);
    });
}

// ----- what comes out -----

#[test]
fn the_bodys_value_is_returned() {
    in_time(|| {
        let text = String::from("of the caller's");
        let borrowed: &str = pool(1).scope(|scope| {
            scope.execute(|| ());
            &text[..2]
        });
        assert_eq!(borrowed, "of");
    });
}

#[test]
fn a_scope_without_tasks_starts_no_thread() {
    in_time(|| {
        let pool = pool(2);
        assert_eq!(pool.scope(|_| 7), 7);
        let stats = pool.stats();
        assert_eq!((stats.threads_started, stats.accepted()), (0, 0));
        pool.close();
        assert_eq!(pool.scope(|_| 8), 8);
    });
}

#[test]
fn a_panic_of_the_body_is_resumed_when_the_tasks_have_ended() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool(1).scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
                panic!("the body");
            });
        });
        assert_eq!(text, "the body");
        assert!(ended.into_inner());
    });
}

#[test]
fn a_panic_of_a_task_is_resumed_when_the_others_have_ended() {
    hosted(|host| {
        let (pool, ended, begun) = (pool(1), AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("the task"));
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
            });
        });
        assert_eq!(text, "the task");
        assert!(ended.into_inner());
        assert_works(pool);
    });
}

#[test]
fn the_bodys_value_is_dropped_if_a_task_panics() {
    in_time(|| {
        let drops = Drops::default();
        let result = panic_of(|| {
            pool(1).scope(|scope| {
                scope.execute(|| panic!("the task"));
                drops.issue()
            })
        });
        assert_eq!((&*result, drops.count()), ("the task", 1));
    });
}

#[test]
fn of_two_tasks_that_panic_the_first_one_counts() {
    in_time(|| {
        let (pool, told) = handled(2);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    wait_until("the other has panicked", || pool.stats().panicked == 1);
                    panic!("later");
                });
                scope.execute(|| panic!("first"));
            });
        });
        assert_eq!(text, "first");
        assert_told(&pool, &told, &["later"]);
        assert_works(pool);
    });
}

#[test]
fn a_task_that_panics_before_the_body_counts() {
    in_time(|| {
        let (pool, told) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("the task"));
                wait_until("the task has panicked", || pool.stats().panicked == 1);
                panic!("the body");
            });
        });
        assert_eq!(text, "the task");
        assert_told(&pool, &told, &["the body"]);
    });
}

#[test]
fn a_body_that_panics_before_the_tasks_counts() {
    hosted(|host| {
        let (pool, told) = handled(1);
        let begun = Gate::new();
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    panic!("the task");
                });
                begun.meet(2);
                panic!("the body");
            });
        });
        assert_eq!(text, "the body");
        assert_told(&pool, &told, &["the task"]);
    });
}

#[test]
fn a_panic_of_an_inner_scope_goes_through_the_outer_one() {
    in_time(|| {
        let (pool, told) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| pool.scope(|scope| scope.execute(|| panic!("inside"))));
            });
        });
        assert_eq!(text, "inside");
        assert_told(&pool, &told, &[]);
        assert_eq!(pool.stats().panicked, 2);
    });
}

#[test]
fn the_same_pool_has_a_scope_without_a_panic_after_one_with() {
    in_time(|| {
        let pool = pool(1);
        for _ in 0..3 {
            assert_eq!(panic_of(|| pool.scope(|s| s.execute(|| panic!("again")))), "again");
            assert_eq!(pool.scope(|scope| scope.evaluate(|| 1).await_complete()), 1);
        }
        assert_works(pool);
    });
}

// ----- panics and handles -----

#[test]
fn a_panic_that_a_handle_has_received_is_not_resumed() {
    in_time(|| {
        let (pool, told) = handled(1);
        pool.scope(|scope| {
            let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
            let error = handle.try_await_complete().unwrap_err();
            assert_eq!(text(&*error.into_panic()), "for the handle");

            let handle = scope.evaluate(|| -> u8 { panic!("for the future") });
            assert!(block_on(handle).unwrap_err().is_panic());

            let handle = scope.evaluate(|| -> u8 { panic!("in time") });
            assert!(handle.await_complete_timeout(LIMIT).unwrap().unwrap_err().is_panic());
        });
        assert_told(&pool, &told, &[]);
    });
}

#[test]
fn a_panic_that_a_handle_resumes_is_the_bodys() {
    in_time(|| {
        let (pool, told) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
                handle.await_complete()
            })
        });
        assert_eq!(text, "for the handle");
        assert_told(&pool, &told, &[]);
    });
}

#[test]
fn a_panic_after_its_handle_was_dropped_is_resumed() {
    in_time(|| {
        let (pool, told) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                let handle = scope.evaluate(move || {
                    passes.pass();
                    panic!("nobody reads it");
                });
                drop::<ScopedJoinHandle<'_, u8>>(handle);
                gate.open();
            });
        });
        assert_eq!(text, "nobody reads it");
        assert_told(&pool, &told, &[]);
    });
}

#[test]
fn a_panic_before_its_handle_is_dropped_is_resumed() {
    in_time(|| {
        let (pool, told) = handled(1);
        for looks in [false, true] {
            let text = panic_of(|| {
                pool.scope(|scope| {
                    let before = pool.stats().panicked;
                    let handle = scope.evaluate(|| -> u8 { panic!("nobody reads it") });
                    wait_until("it has panicked", || pool.stats().panicked == before + 1);
                    assert!(!looks || handle.is_finished());
                    drop(handle);
                });
            });
            assert_eq!(text, "nobody reads it");
        }
        assert_told(&pool, &told, &[]);
    });
}

#[test]
fn a_panic_after_a_timeout_is_resumed_if_the_handle_is_dropped() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                let handle = scope.evaluate(move || -> u8 {
                    passes.pass();
                    panic!("nobody reads it");
                });
                let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
                gate.open();
                wait_until("it has panicked", || pool.stats().panicked == 1);
                drop(handle);
            });
        });
        assert_eq!(text, "nobody reads it");
    });
}

#[test]
fn a_panic_is_resumed_if_the_handle_is_dropped_with_another_task() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("nobody reads it") });
                scope.execute(move || drop(handle));
            });
        });
        assert_eq!(text, "nobody reads it");
    });
}

/// A handle is dropped while its task panics: one of the two sees to the payload.
#[test]
fn a_panic_among_drops_of_its_handle_is_resumed() {
    in_time(|| {
        let pool = pool(1);
        for _ in 0..3_000 {
            let text = panic_of(|| {
                let is_about_to = AtomicBool::new(false);
                pool.scope(|scope| {
                    let handle = scope.evaluate(|| -> u8 {
                        is_about_to.store(true, Ordering::Release);
                        resume_unwind(Box::new("nobody reads it"))
                    });
                    wait_until("it runs", || is_about_to.load(Ordering::Acquire));
                    common::dawdle(1_000);
                    drop(handle);
                });
            });
            assert_eq!(text, "nobody reads it");
        }
    });
}

#[test]
fn later_panics_of_dropped_handles_go_to_the_handler() {
    in_time(|| {
        let (pool, told) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("first"));
                drop(scope.evaluate(|| panic!("dropped before")));
                let handle = scope.evaluate(|| panic!("dropped after"));
                wait_until("all have panicked", || pool.stats().panicked == 3);
                drop::<ScopedJoinHandle<'_, ()>>(handle);
            });
        });
        assert_eq!(text, "first");
        assert_told(&pool, &told, &["dropped before", "dropped after"]);
    });
}

// ----- handles -----

#[test]
fn a_handle_resolves_to_a_result_that_borrows() {
    in_time(|| {
        let text = String::from("one two three");
        let longest = pool(1).scope(|scope| {
            let words = scope.evaluate(|| text.split(' ').collect::<Vec<&str>>());
            let words = words.await_complete();
            words.into_iter().max_by_key(|word| word.len()).unwrap()
        });
        assert_eq!(longest, "three");
    });
}

#[test]
fn a_handle_that_has_waited_for_long_enough_comes_back() {
    in_time(|| {
        pool(1).scope(|scope| {
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let handle = scope.evaluate(move || {
                passes.pass();
                1
            });
            let handle = handle.await_complete_timeout(MOMENT / 10).unwrap_err();
            assert!(!handle.is_finished());
            assert!(format!("{handle:?}").contains("is_finished: false"), "{handle:?}");
            gate.open();
            wait_until("it has ended", || handle.is_finished());
            assert!(format!("{handle:?}").contains("is_finished: true"), "{handle:?}");
            assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 1);
        });
    });
}

#[test]
fn a_handle_is_a_future() {
    in_time(|| {
        let numbers = [1, 2, 3];
        let doubled = pool(2).scope(|scope| {
            let handles = numbers.iter().map(|number| scope.evaluate(move || 2 * number));
            block_on(futures::future::try_join_all(handles))
        });
        assert_eq!(doubled.unwrap(), [2, 4, 6]);
    });
}

#[test]
fn a_handle_is_not_polled_after_it_has_resolved() {
    in_time(|| {
        pool(1).scope(|scope| {
            let mut handle = scope.evaluate(|| 1);
            assert_eq!(block_on(&mut handle).unwrap(), 1);
            assert!(handle.is_finished());
            let text = panic_of(|| block_on(&mut handle));
            assert!(text.contains("ScopedJoinHandle"), "{text}");
        });
    });
}

#[test]
fn a_handle_is_waited_for_by_another_task() {
    in_time(|| {
        let sum = pool(1).scope(|scope| {
            let one = scope.evaluate(|| 1);
            let two = scope.evaluate(move || one.await_complete() + 1);
            scope.evaluate(move || two.await_complete() + 1).await_complete()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_handle_may_be_leaked() {
    in_time(|| {
        let mut ran = false;
        pool(1).scope(|scope| std::mem::forget(scope.evaluate(|| ran = true)));
        assert!(ran);
    });
}

/// Nobody wants the result: the panic is contained as that of any destructor is.
#[test]
fn a_panic_of_a_results_destructor_is_contained_in_the_task() {
    in_time(|| {
        let pool = pool(1);
        let drops = AtomicUsize::new(0);
        pool.scope(|scope| {
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let drops = &drops;
            drop(scope.evaluate(move || {
                passes.pass();
                OnDrop(move || {
                    drops.fetch_add(1, Ordering::SeqCst);
                    panic!("dropped the result");
                })
            }));
            gate.open();
        });
        assert_eq!(drops.into_inner(), 1);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 1);
        assert_works(pool);
    });
}

/// Whoever drops the handle drops the result.
#[test]
fn a_panic_of_a_results_destructor_is_that_of_who_drops_the_handle() {
    in_time(|| {
        let (pool, ended) = (pool(1), AtomicBool::new(false));
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| OnDrop(|| panic!("dropped the result")));
                wait_until("it has ended", || handle.is_finished());
                scope.execute(|| ended.store(true, Ordering::Relaxed));
                drop(handle);
            });
        });
        assert_eq!(text, "dropped the result");
        assert!(ended.into_inner());
        assert_works(pool);
    });
}

#[test]
fn a_panic_of_a_captures_destructor_is_the_tasks() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                let capture = OnDrop(|| panic!("dropped the capture"));
                scope.execute(move || drop(capture));
            });
        });
        assert_eq!(text, "dropped the capture");
        pool.scope(|scope| {
            let capture = OnDrop(|| panic!("dropped the capture"));
            let handle = scope.evaluate(move || {
                let _captured = &capture;
            });
            assert!(handle.try_await_complete().unwrap_err().is_panic());
        });
        assert_works(pool);
    });
}

// ----- tasks that are not accepted -----

#[test]
fn a_closed_pool_makes_execute_panic_and_the_scope_waits_for_the_others() {
    hosted(|host| {
        let (pool, drops) = (pool(1), Drops::default());
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
                pool.close();
                let guard = drops.issue();
                scope.execute(move || drop(guard));
            });
        });
        assert!(text.contains("closed") && text.contains("`try_execute`"), "{text}");
        assert!(ended.into_inner());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_closed_pool_cancels_what_is_evaluated() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        pool.close();
        pool.scope(|scope| {
            let guard = drops.issue();
            let handle = scope.evaluate(move || drop(guard));
            assert!(handle.is_finished());
            assert_eq!(drops.count(), 1);
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_closed_pool_hands_closures_back() {
    in_time(|| {
        let (pool, mut numbers) = (pool(1), (0, 0));
        pool.close();
        pool.scope(|scope| {
            let (left, right) = (&mut numbers.0, &mut numbers.1);
            refused(scope.try_execute(|| *left = 1), RejectReason::Closed).into_task()();
            let rejected = refused(scope.try_evaluate(|| *right = 2), RejectReason::Closed);
            rejected.into_task()();
        });
        assert_eq!(numbers, (1, 2));
        assert_eq!(pool.stats().rejected, 2);
    });
}

#[test]
fn a_full_queue_hands_closures_back() {
    in_time(|| {
        let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
        let pool = sizes.queue_capacity(1).build();
        let (mut queued, mut back) = (false, false);
        let gate = block(&pool);
        pool.scope(|scope| {
            let handle = scope.try_evaluate(|| queued = true).unwrap();
            refused(scope.try_execute(|| back = true), RejectReason::Full).into_task()();
            refused(scope.try_evaluate(|| 7), RejectReason::Full);
            gate.open();
            handle.await_complete();
        });
        assert!(queued && back);
        assert_works(pool);
    });
}

#[test]
fn a_scope_in_a_worker_of_its_pool_waits_for_room_in_the_queue() {
    in_time(|| {
        for capacity in [0, 1] {
            let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
            let pool = sizes.queue_capacity(capacity).build();
            let own = pool.clone();
            let handle = pool.evaluate(move || {
                let mut numbers = [0; 20];
                own.scope(|scope| {
                    for number in &mut numbers {
                        scope.execute(move || *number = 1);
                    }
                });
                numbers
            });
            assert_eq!(value(handle), [1; 20]);
            assert_works(pool);
        }
    });
}

// ----- the pool's side -----

#[test]
fn scoped_tasks_are_counted() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| ());
                scope.evaluate(|| ()).await_complete();
                let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
                handle.try_await_complete().unwrap_err();
                scope.execute(|| panic!("for the scope"));
            });
        });
        assert_eq!(text, "for the scope");
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.cancelled), (2, 2, 0));
        assert_eq!((stats.accepted(), stats.in_flight(), stats.rejected), (4, 0, 0));
    });
}

#[test]
fn a_scope_tells_how_many_tasks_have_not_ended() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        pool.scope(|scope| {
            let handles = [scope.evaluate(|| gate.pass()), scope.evaluate(|| ())];
            assert!(format!("{scope:?}").contains("unfinished: 2"), "{scope:?}");
            gate.open();
            handles.into_iter().for_each(ScopedJoinHandle::await_complete);
            wait_until("they have ended", || format!("{scope:?}").contains("unfinished: 0"));
        });
    });
}

#[test]
fn a_scoped_task_cannot_join_its_pool() {
    in_time(|| {
        let pool = ThreadPool::new_named("own", 1, 1, HOUR);
        let text = panic_of(|| pool.scope(|scope| scope.execute(|| pool.join())));
        assert!(text.contains("`join`") && text.contains("`own`"), "{text}");
        assert_works(pool);
    });
}

/// As any accepted task.
#[test]
fn scoped_tasks_of_a_closed_pool_run() {
    in_time(|| {
        let (pool, mut ran) = (pool(1), false);
        let gate = block(&pool);
        pool.scope(|scope| {
            scope.execute(|| ran = true);
            pool.close();
            gate.open();
        });
        assert!(ran);
    });
}

// ----- shutdown_now -----

#[test]
fn queued_tasks_are_dropped_by_shutdown_now_and_the_handles_cancelled() {
    in_time(|| {
        let (pool, drops) = (pool(1), Drops::default());
        let gate = block(&pool);
        let ran = AtomicBool::new(false);
        pool.scope(|scope| {
            let guard = drops.issue();
            let handle = scope.evaluate(|| {
                let _captured = guard;
                ran.store(true, Ordering::SeqCst);
            });
            pool.execute(|| ());
            let tasks = pool.shutdown_now();
            assert_eq!(tasks.len(), 1, "the one that is not scoped");
            assert_eq!(drops.count(), 1);
            assert!(handle.is_finished());
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
        assert!(!ran.into_inner());
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.handed_back, stats.completed), (1, 1, 1));
    });
}

#[test]
fn a_scope_says_how_many_tasks_shutdown_now_has_dropped() {
    in_time(|| {
        let pool = ThreadPool::new_named("dropper", 1, 1, HOUR);
        let drops = Drops::default();
        let gate = block(&pool);
        let text = panic_of(|| {
            pool.scope(|scope| {
                for _ in 0..2 {
                    let guard = drops.issue();
                    scope.execute(move || drop(guard));
                }
                drop(scope.evaluate(|| ()));
                assert!(pool.shutdown_now().is_empty());
                drops.issue()
            })
        });
        assert!(text.starts_with("2 of a scope's tasks"), "{text}");
        assert!(text.contains("`dropper`") && text.contains("`shutdown_now`"), "{text}");
        assert_eq!(drops.count(), 3, "two captures, and the body's value");
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().cancelled, 3);
    });
}

#[test]
fn a_task_that_shutdown_now_finds_running_runs_to_its_end() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        let mut ran = false;
        pool.scope(|scope| {
            scope.execute(|| {
                gate.pass();
                ran = true;
            });
            gate.wait_for(1);
            assert!(pool.shutdown_now().is_empty());
            gate.open();
        });
        assert!(ran);
    });
}

/// And not of what was not run because of it.
#[test]
fn a_panic_is_told_rather_than_what_shutdown_now_has_dropped() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    scope.execute(|| ());
                    assert!(pool.shutdown_now().is_empty());
                    panic!("the task");
                });
            });
        });
        assert_eq!(text, "the task");
    });
}

/// The destructor of a task that is not run may still look at what is borrowed.
#[test]
fn a_scope_waits_for_slow_destructors_of_what_shutdown_now_drops() {
    hosted(|host| {
        let (pool, dropped, begun) = (pool(1), AtomicBool::new(false), Gate::new());
        let gate = block(&pool);
        pool.scope(|scope| {
            let capture = OnDrop(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            drop(scope.evaluate(move || {
                let _captured = &capture;
            }));
            let other = pool.clone();
            // Not by the owner, which waits meanwhile.
            thread::spawn(move || other.shutdown_now());
            begun.meet(2);
        });
        assert!(dropped.into_inner());
        gate.open();
    });
}

#[test]
fn a_capture_whose_destructor_panics_is_dropped_by_shutdown_now() {
    in_time(|| {
        let (pool, drops) = (pool(1), AtomicUsize::new(0));
        let gate = block(&pool);
        pool.scope(|scope| {
            let capture = OnDrop(|| {
                drops.fetch_add(1, Ordering::SeqCst);
                panic!("dropped the capture");
            });
            let handle = scope.evaluate(move || drop(capture));
            assert!(pool.shutdown_now().is_empty());
            assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        });
        assert_eq!(drops.into_inner(), 1);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// It is still a member of the scope, but the pool is closed.
#[test]
fn a_destructor_of_what_shutdown_now_drops_cannot_submit() {
    in_time(|| {
        let (pool, mut back) = (pool(1), None);
        let gate = block(&pool);
        pool.scope(|scope| {
            let reason = &mut back;
            let capture = OnDrop(move || {
                *reason = scope.try_execute(|| ()).err().map(|rejected| rejected.reason());
            });
            drop(scope.evaluate(move || drop(capture)));
            assert!(pool.shutdown_now().is_empty());
        });
        assert_eq!(back, Some(RejectReason::Closed));
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// A handle in the captures of a task that is dropped is dropped with it: the panic that it has not received is the
/// scope's.
#[test]
fn a_panic_whose_handle_shutdown_now_drops_is_resumed() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                let handle = scope.evaluate(|| -> u8 { panic!("nobody reads it") });
                wait_until("it has panicked", || handle.is_finished());
                scope.execute(|| gate.pass());
                gate.wait_for(1);
                drop(scope.evaluate(move || handle.await_complete()));
                assert!(pool.shutdown_now().is_empty());
                gate.open();
            });
        });
        assert_eq!(text, "nobody reads it");
    });
}

/// Every task runs or is dropped before its scope returns, wherever the shutdown finds it.
#[test]
fn a_shutdown_among_scoped_tasks_leaves_none() {
    in_time(|| {
        for round in 0..150 {
            let pool = pool(1 + round % 2);
            let drops = Drops::default();
            let (ran, mut cancelled) = (AtomicUsize::new(0), 0);
            let start = Gate::new();
            let (other, meets) = (pool.clone(), Arc::clone(&start));
            let stopper = thread::spawn(move || {
                meets.meet(2);
                common::dawdle(3_000);
                other.shutdown_now().len()
            });
            let issued = pool.scope(|scope| {
                start.meet(2);
                let mut handles = Vec::new();
                for _ in 0..30 {
                    let (guard, ran) = (drops.issue(), &ran);
                    handles.push(scope.evaluate(move || {
                        ran.fetch_add(1, Ordering::Relaxed);
                        drop(guard);
                    }));
                }
                let issued = handles.len();
                for handle in handles {
                    cancelled += usize::from(handle.try_await_complete().is_err());
                }
                issued
            });
            assert_eq!(drops.count(), issued);
            assert_eq!(ran.into_inner() + cancelled, issued);
            assert_eq!(stopper.join().unwrap(), 0, "none is given away");
        }
    });
}

// ----- closures of all sizes -----

#[test]
fn closures_may_be_of_any_size() {
    in_time(|| {
        let (pool, total) = (pool(2), AtomicUsize::new(0));
        let sum = &total;
        macro_rules! words {
            ($($words:literal)*) => {
                pool.scope(|scope| {$(
                    let numbers = [1_usize; $words];
                    scope.execute(move || {
                        sum.fetch_add(black_box(numbers).iter().sum(), Ordering::Relaxed);
                    });
                    assert_eq!(scope.evaluate(move || numbers).await_complete(), numbers);
                )*})
            };
        }
        words!(0 1 2 3 4 5 6 7 8 1000);
        assert_eq!(total.into_inner(), 1036);
    });
}

#[test]
fn closures_may_be_of_no_size() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    in_time(|| {
        pool(1).scope(|scope| {
            for _ in 0..10 {
                scope.execute(|| {
                    COUNT.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 10);
    });
}

/// So small that they lie in the job itself, but for that.
#[test]
fn closures_without_a_size_may_be_strictly_aligned() {
    #[repr(align(16))]
    struct Aligned;

    in_time(|| {
        let misplaced = pool(1).scope(|scope| {
            let aligned = Aligned;
            let place = move || std::ptr::from_ref(black_box(&aligned)).addr() % 16;
            scope.evaluate(place).await_complete()
        });
        assert_eq!(misplaced, 0);
        pool(1).scope(|scope| {
            let aligned = Aligned;
            scope.execute(move || {
                assert_eq!(std::ptr::from_ref(black_box(&aligned)).addr() % 16, 0);
            });
        });
    });
}

#[test]
fn closures_may_be_strictly_aligned() {
    #[repr(align(256))]
    struct Aligned(u8);

    in_time(|| {
        let mut places = [0; 3];
        pool(1).scope(|scope| {
            for (index, place) in places.iter_mut().enumerate() {
                let aligned = Aligned(7);
                scope.execute(move || {
                    let aligned = black_box(&aligned);
                    let misplaced = std::ptr::from_ref(aligned).addr() % 256;
                    *place = misplaced + usize::from(aligned.0) + index;
                });
            }
        });
        assert_eq!(places, [7, 8, 9]);
    });
}

// ----- without threads -----

#[cfg(target_os = "linux")]
mod refused_threads {
    use super::common::refusal::{Refusal, in_a_child};
    use super::*;

    #[test]
    fn tasks_run_on_the_caller_if_there_is_no_thread() {
        in_a_child("refused_threads::tasks_run_on_the_caller_if_there_is_no_thread", || {
            let pool = pool(2);
            let here = thread::current().id();
            let (mut executed, mut inner) = (None, None);
            let refusal = Refusal::begin();
            pool.scope(|scope| {
                scope.execute(|| {
                    executed = Some(thread::current().id());
                    scope.execute(|| inner = Some(thread::current().id()));
                });
                let handle = scope.evaluate(|| thread::current().id());
                assert!(handle.is_finished());
                assert_eq!(handle.await_complete(), here);
                refused(scope.try_execute(|| ()), RejectReason::NoThread).into_task()();
                refused(scope.try_evaluate(|| 7), RejectReason::NoThread);
            });
            assert_eq!((executed, inner), (Some(here), Some(here)));
            assert_eq!(panic_of(|| pool.scope(|s| s.execute(|| panic!("the task")))), "the task");
            let stats = pool.stats();
            assert_eq!((stats.completed, stats.panicked, stats.rejected), (3, 1, 2));
            assert_eq!((stats.workers, stats.in_flight()), (0, 0));
            refusal.end();
            assert_works(pool);
        });
    }

    /// A worker waits for its scoped task, which another one runs; that one blocks until one more task has run, for which
    /// a thread is refused until later. Only the wait for the scope can ask for it again.
    #[test]
    fn a_worker_that_waits_asks_for_a_thread_again() {
        in_a_child("refused_threads::a_worker_that_waits_asks_for_a_thread_again", || {
            let pool = pool(1);
            let (own, gate) = (pool.clone(), Gate::new());
            let passes = Arc::clone(&gate);
            let handle = pool.evaluate(move || {
                let ran = Gate::new();
                own.scope(|scope| {
                    scope.execute(|| {
                        passes.pass();
                        let opens = Arc::clone(&ran);
                        own.execute(move || opens.open());
                        elastipool::blocking(|| ran.pass());
                    });
                    elastipool::blocking(|| passes.wait_for(1));
                });
            });
            gate.wait_for(1);
            wait_until("the worker waits", || pool.stats().blocked == 1);
            let refusal = Refusal::begin();
            let before = pool.stats().threads_refused;
            gate.open();
            wait_until("it asks again", || pool.stats().threads_refused >= before + 4);
            assert_eq!((pool.stats().workers, pool.stats().blocked), (2, 2));
            refusal.end();
            value(handle);
            assert_works(pool);
        });
    }

    #[test]
    fn a_worker_that_runs_its_scoped_tasks_asks_for_no_thread() {
        in_a_child(
            "refused_threads::a_worker_that_runs_its_scoped_tasks_asks_for_no_thread",
            || {
                let pool = pool(1);
                let (own, gate) = (pool.clone(), Gate::new());
                let passes = Arc::clone(&gate);
                let handle = pool.evaluate(move || {
                    passes.pass();
                    let mut sum = 0;
                    own.scope(|scope| {
                        let one = scope.evaluate(|| 1);
                        scope.execute(|| sum = own.scope(|s| s.evaluate(|| 2).await_complete()));
                        assert_eq!(one.await_complete(), 1);
                    });
                    sum
                });
                gate.wait_for(1);
                let refusal = Refusal::begin();
                gate.open();
                assert_eq!(value(handle), 2);
                assert_eq!(pool.stats().threads_refused, 0);
                refusal.end();
                assert_works(pool);
            },
        );
    }
}
