//! `Builder::task_context`: the submitter's context reaches the task, whatever call submitted it
//! and whichever thread runs it.

use crate::common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Gate, HOUR, block, settled};
use elastipool::{Builder, ThreadPool};

thread_local! {
    static CONTEXT: Cell<u32> = const { Cell::new(0) };
    /// What the hooks of this thread did, in order.
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Restores the context that it replaced.
struct Entered(u32);

impl Drop for Entered {
    fn drop(&mut self) {
        CONTEXT.set(self.0);
    }
}

fn builder() -> Builder {
    Builder::new().core_size(1).max_size(1).keep_alive(HOUR).task_context(|| {
        let context = CONTEXT.get();
        move || Entered(CONTEXT.replace(context))
    })
}

fn pool() -> ThreadPool {
    builder().build()
}

/// Calls `submit` in a context, and checks that the closure which it must run sees the context, and
/// that the next task of the worker does not.
#[track_caller]
fn assert_reaches(
    pool: &ThreadPool,
    submit: impl FnOnce(&ThreadPool, Box<dyn Fn() + Send + Sync>),
) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    CONTEXT.set(7);
    submit(pool, Box::new(move || sees.lock().unwrap().push(CONTEXT.get())));
    CONTEXT.set(0);
    pool.join();
    assert_eq!(*seen.lock().unwrap(), [7]);
    assert_eq!(settled(pool.evaluate(|| CONTEXT.get())).unwrap(), 0, "the context was not left");
}

/// Every call that submits a closure.
fn assert_reaches_closures(pool: &ThreadPool) {
    assert_reaches(pool, |pool, see| pool.execute(see));
    assert_reaches(pool, |pool, see| pool.try_execute(see).unwrap());
    assert_reaches(pool, |pool, see| drop(pool.evaluate(see)));
    assert_reaches(pool, |pool, see| drop(pool.try_evaluate_for(see, HOUR).unwrap()));
    assert_reaches(pool, |pool, see| drop(pool.complete(async move { see() })));
    assert_reaches(pool, |pool, see| pool.handler(move |()| see()).invoke(()));
    assert_reaches(pool, |pool, see| {
        pool.scope(|scope| {
            scope.execute(&see);
            // This thread may run the task itself.
            CONTEXT.set(0);
        });
    });
    assert_reaches(pool, |pool, see| {
        pool.scope(|scope| {
            let handle = scope.evaluate(&see);
            CONTEXT.set(0);
            handle.await_complete();
        });
    });
    assert_reaches(pool, |pool, see| {
        let group = pool.group::<()>();
        group
            .execute(move || {
                see();
                Ok(())
            })
            .unwrap();
        group.wait().unwrap();
    });
    assert_reaches(pool, |pool, see| pool.group::<()>().evaluate(see).await_complete());
    let large = [0_u8; 4096];
    assert_reaches(pool, |pool, see| {
        pool.execute(move || {
            see();
            assert_eq!(large[9], 0);
        });
    });
}

#[test]
fn closures_run_in_the_context_of_their_submitter() {
    assert_reaches_closures(&pool());
    assert_reaches_closures(&pool().view().weight(2).build());
    assert_reaches_closures(&pool().view().queue_timeout(HOUR).build());
    assert_reaches_closures(&builder().queue_capacity(10).build());
}

#[test]
fn a_task_submitted_by_a_task_inherits_its_context() {
    let pool = pool();
    CONTEXT.set(7);
    let inner = pool.clone();
    let nested = pool.evaluate(move || inner.evaluate(|| CONTEXT.get()));
    CONTEXT.set(0);
    assert_eq!(settled(settled(nested).unwrap()).unwrap(), 7);
}

/// The waiter runs the awaited task on its own stack, and gets its own context back.
#[test]
fn an_awaited_task_runs_in_its_own_context() {
    let pool = pool();
    let inner = pool.clone();
    CONTEXT.set(7);
    let seen = pool.evaluate(move || {
        CONTEXT.set(8);
        let awaited = inner.evaluate(|| CONTEXT.get());
        CONTEXT.set(9);
        (awaited.await_complete(), CONTEXT.get())
    });
    CONTEXT.set(0);
    assert_eq!(settled(seen).unwrap(), (8, 9));
}

#[test]
fn a_task_that_was_handed_back_runs_in_its_context() {
    let pool = pool();
    let gate = block(&pool);
    CONTEXT.set(7);
    let handle = pool.evaluate(|| CONTEXT.get());
    CONTEXT.set(0);
    pool.shutdown_now().into_iter().for_each(elastipool::Task::run);
    assert_eq!(settled(handle).unwrap(), 7);
    assert_eq!(CONTEXT.get(), 0);
    gate.open();
}

#[test]
fn hooks_are_entered_in_order_and_left_in_reverse() {
    struct Logs(&'static str);

    impl Drop for Logs {
        fn drop(&mut self) {
            LOG.with_borrow_mut(|log| log.push(format!("leave {}", self.0)));
        }
    }

    let hook = |name: &'static str| {
        move || {
            move || {
                LOG.with_borrow_mut(|log| log.push(format!("enter {name}")));
                Logs(name)
            }
        }
    };
    let pool =
        Builder::new().max_size(1).task_context(hook("first")).task_context(hook("second")).build();
    pool.execute(|| LOG.with_borrow_mut(|log| log.push("run".to_owned())));
    pool.join();
    let log = settled(pool.evaluate(|| LOG.take())).unwrap();
    assert_eq!(log[..5], ["enter first", "enter second", "run", "leave second", "leave first"]);
}

#[test]
fn a_panic_of_a_hook_is_contained() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a guard's destructor");
        }
    }

    let stage = Arc::new(AtomicUsize::new(0));
    let at = Arc::clone(&stage);
    let pool = builder()
        .task_context(move || {
            assert_ne!(at.load(Ordering::SeqCst), 0, "the capture panics");
            let at = Arc::clone(&at);
            move || {
                assert_ne!(at.load(Ordering::SeqCst), 1, "the entry panics");
                (at.load(Ordering::SeqCst) == 2).then_some(Bomb)
            }
        })
        .build();
    for step in 0..3 {
        stage.store(step, Ordering::SeqCst);
        CONTEXT.set(7);
        let seen = pool.evaluate(|| CONTEXT.get());
        let closure = Gate::new();
        let passes = Arc::clone(&closure);
        pool.execute(move || passes.open());
        #[cfg(feature = "async")]
        let future = pool.spawn_await(async { CONTEXT.get() });
        CONTEXT.set(0);
        assert_eq!(settled(seen).unwrap(), 7, "the other hook still works");
        #[cfg(feature = "async")]
        assert_eq!(settled(future).unwrap(), 7);
        closure.pass();
        pool.join();
    }
    assert_eq!(pool.stats().panicked, 0);
    pool.shutdown_join();
}

/// What a hook captured is dropped with its task, whether that was run, dropped or expired.
#[test]
fn a_captured_context_is_dropped_with_its_task() {
    let captured = Arc::new(());
    let captures = Arc::clone(&captured);
    let pool = Builder::new()
        .core_size(1)
        .max_size(1)
        .task_context(move || {
            let held = Arc::clone(&captures);
            move || {
                let _ = &held;
            }
        })
        .build();
    let idle = Arc::strong_count(&captured);
    let gate = block(&pool);
    let view = pool.view().queue_timeout(Duration::from_nanos(1)).build();
    view.execute(|| panic!("it expires"));
    let expired = view.evaluate(|| panic!("it expires"));
    let cancelled = pool.evaluate(|| panic!("it is cancelled"));
    cancelled.cancel();
    pool.execute(|| panic!("a panic of the task"));
    let panicked = pool.evaluate(|| panic!("a panic with a handle"));
    assert!(Arc::strong_count(&captured) > idle);
    gate.open();
    pool.join();
    assert!(settled(expired).is_err() && settled(panicked).is_err());
    common::wait_until("each context was dropped", || Arc::strong_count(&captured) == idle);
    let refused = catch_unwind(AssertUnwindSafe(|| {
        pool.close();
        pool.execute(|| ());
    }));
    assert!(refused.is_err());
    assert_eq!(Arc::strong_count(&captured), idle, "of a task that was not accepted");
}

#[cfg(feature = "async")]
mod futures {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread;

    use super::{AtomicUsize, Builder, CONTEXT, Duration, Ordering, assert_reaches, pool, settled};

    /// Not when its last waker is dropped, perhaps under a lock that the context's destructor
    /// takes.
    #[test]
    fn a_captured_context_is_dropped_when_its_future_ends() {
        let captured = Arc::new(());
        let captures = Arc::clone(&captured);
        let builder = Builder::new().core_size(1).max_size(1);
        let pool = builder
            .task_context(move || {
                let held = Arc::clone(&captures);
                move || drop(Arc::clone(&held))
            })
            .build();
        let idle = Arc::strong_count(&captured);
        for cancels in [false, true] {
            let slot = Arc::new(Mutex::new(None::<Waker>));
            let place = Arc::clone(&slot);
            let handle = pool.spawn_await(poll_fn(move |context| {
                match place.lock().unwrap().replace(context.waker().clone()) {
                    Some(_) => Poll::Ready(()),
                    None => Poll::Pending,
                }
            }));
            let kept = || slot.lock().unwrap().clone();
            crate::common::wait_until("it is pending", || {
                kept().is_some() && pool.stats().pending == 1
            });
            let waker = kept().unwrap();
            assert!(Arc::strong_count(&captured) > idle);
            if cancels {
                handle.cancel();
            } else {
                waker.wake_by_ref();
            }
            assert_eq!(settled(handle).is_err(), cancels);
            pool.join();
            crate::common::wait_until("it was dropped", || Arc::strong_count(&captured) == idle);
            drop(waker);
        }
    }

    #[test]
    fn futures_are_polled_in_the_context_of_their_submitter() {
        let pool = pool();
        assert_reaches(&pool, |pool, see| pool.spawn(async move { see() }));
        assert_reaches(&pool, |pool, see| pool.try_spawn(async move { see() }).unwrap());
        assert_reaches(&pool, |pool, see| drop(pool.spawn_await(async move { see() })));
        assert_reaches(&pool, |pool, see| {
            pool.group::<()>()
                .spawn(async move {
                    see();
                    Ok(())
                })
                .unwrap();
        });
        assert_reaches(&pool, |pool, see| {
            pool.group::<()>().spawn_await(async move { see() }).await_complete();
        });
        let view = pool.view().weight(2).build();
        assert_reaches(&view, |view, see| view.spawn(async move { see() }));
    }

    /// Wakes come from another thread, from the poll itself, and from another task.
    #[test]
    fn each_poll_is_in_the_context() {
        let pool = pool();
        CONTEXT.set(7);
        let mut polls = 0;
        let seen = pool.spawn_await(poll_fn(move |context| {
            polls += 1;
            assert_eq!(CONTEXT.get(), 7);
            let waker = context.waker().clone();
            match polls {
                1 => waker.wake(),
                2 => drop(thread::spawn(|| waker.wake())),
                _ => return Poll::Ready(polls),
            }
            Poll::Pending
        }));
        CONTEXT.set(0);
        assert_eq!(settled(seen).unwrap(), 3);
    }

    /// Records the context in which it is dropped, and that in which it wakes.
    struct Witness(Arc<Mutex<Vec<(&'static str, u32)>>>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(("dropped", CONTEXT.get()));
        }
    }

    impl Wake for Witness {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().push(("woken", CONTEXT.get()));
        }
    }

    #[test]
    fn a_future_ends_outside_of_its_context() {
        let pool = pool();
        let gate = super::block(&pool);
        let log = Arc::default();
        let (captured, waker) = (Witness(Arc::clone(&log)), Arc::new(Witness(Arc::clone(&log))));
        CONTEXT.set(7);
        let mut handle = pool.spawn_await(poll_fn(move |_| {
            let _captured = &captured;
            Poll::Ready(CONTEXT.get())
        }));
        CONTEXT.set(0);
        let waker = Waker::from(waker);
        assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
        gate.open();
        pool.join();
        let seen = log.lock().unwrap().clone();
        assert_eq!(seen, [("dropped", 0), ("woken", 0)]);
        assert_eq!(settled(handle).unwrap(), 7);
    }

    #[test]
    fn a_future_that_is_not_polled_does_not_enter_its_context() {
        let entered = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&entered);
        let pool = Builder::new().core_size(1).max_size(1).task_context(move || {
            let count = Arc::clone(&count);
            move || count.fetch_add(1, Ordering::Relaxed)
        });
        let pool = pool.build();
        let gate = super::block(&pool);
        let view = pool.view().queue_timeout(Duration::from_nanos(1)).build();
        let expired = view.spawn_await(async { panic!("it has expired") });
        let group = pool.group::<()>();
        group.spawn(async { panic!("its group was cancelled") }).unwrap();
        group.cancel();
        let polled = pool.spawn_await(async {});
        gate.open();
        assert!(settled(expired).unwrap_err().is_expired());
        settled(polled).unwrap();
        pool.join();
        assert_eq!(entered.load(Ordering::Relaxed), 2, "the gate's task and the polled future");
    }

    #[test]
    fn a_future_that_was_handed_back_runs_in_its_context() {
        let pool = pool();
        let gate = super::block(&pool);
        CONTEXT.set(7);
        let handle = pool.spawn_await(async { CONTEXT.get() });
        CONTEXT.set(0);
        pool.shutdown_now().into_iter().for_each(elastipool::Task::run);
        assert_eq!(settled(handle).unwrap(), 7);
        gate.open();
    }
}

/// A closure that is dropped instead of run does not enter its context, nor does its destructor.
#[test]
fn a_closure_that_is_not_run_is_dropped_outside_its_context() {
    struct Sees(Arc<Mutex<Vec<u32>>>);

    impl Drop for Sees {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(CONTEXT.get());
        }
    }

    let pool = pool();
    let gate = block(&pool);
    let view = pool.view().queue_timeout(Duration::from_nanos(1)).build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = || Sees(Arc::clone(&seen));
    CONTEXT.set(7);
    let (first, second, third, fourth) = (sees(), sees(), sees(), sees());
    view.execute(move || drop(first));
    let expired = view.evaluate(move || drop(second));
    let cancelled = pool.evaluate(move || drop(third));
    let run = pool.evaluate(move || drop(fourth));
    CONTEXT.set(0);
    cancelled.cancel();
    gate.open();
    pool.join();
    assert!(settled(expired).unwrap_err().is_expired());
    settled(run).unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [0, 0, 0, 7], "only the closure that was run is in the context");
}
