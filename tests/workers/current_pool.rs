//! `ThreadPool::current` and `View::current`: the pool inside its tasks.

use crate::common;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvError, Sender};

use common::{Gate, HOUR, LIMIT, block, millis, value};
use elastipool::{Builder, ThreadPool, View, WeakThreadPool};

fn small_pool() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

#[track_caller]
fn within<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(LIMIT).expect("it is sent")
}

#[test]
fn each_kind_of_task_sees_its_pool() {
    let pool = ThreadPool::default();
    let weak = Some(pool.downgrade());
    let (sender, seen) = mpsc::channel();
    let tell = {
        let sender = sender.clone();
        move || sender.send(ThreadPool::current()).unwrap()
    };
    pool.execute(tell.clone());
    assert_eq!(within(&seen), weak);
    assert_eq!(value(pool.evaluate(ThreadPool::current)), weak);
    assert_eq!(pool.complete(async { ThreadPool::current() }).await_complete(), weak);
    pool.handler(move |()| tell()).invoke(());
    assert_eq!(within(&seen), weak);
    let group = pool.group::<()>();
    assert_eq!(group.evaluate(ThreadPool::current).await_complete(), weak);
    let scoped = || ThreadPool::current();
    assert_eq!(pool.scope(|scope| scope.evaluate(scoped).await_complete()), weak);
    assert_eq!(ThreadPool::current(), None);
    assert_eq!(View::current(), None);
}

#[cfg(feature = "async")]
#[test]
fn each_poll_sees_its_pool() {
    use std::future::poll_fn;
    use std::task::Poll;

    let pool = ThreadPool::default();
    let view = pool.view().build();
    for pool in [&pool, &*view] {
        let mut polls = 0;
        let seen = pool.spawn_await(poll_fn(move |context| {
            polls += 1;
            if polls < 3 {
                context.waker().wake_by_ref();
                assert!(ThreadPool::current().is_some());
                return Poll::Pending;
            }
            Poll::Ready(ThreadPool::current())
        }));
        assert_eq!(seen.await_complete(), Some(pool.downgrade()));
    }
}

#[test]
fn a_task_of_a_view_sees_the_view() {
    let pool = small_pool();
    let view = pool.view().name("reports").build();
    let weak = (Some(view.downgrade()), Some(view.downgrade()));
    let see = || (ThreadPool::current(), View::current());
    assert_eq!(value(view.evaluate(see)), weak);
    assert_eq!(view.group::<()>().evaluate(see).await_complete(), weak);
    let default = (Some(pool.downgrade()), None);
    assert_eq!(value(pool.evaluate(see)), default);
    let name = || View::current().and_then(|view| view.upgrade_view()).unwrap().name().to_owned();
    assert_eq!(value(view.evaluate(name)), "reports");
    // What a task submits through the current handle belongs to the view.
    let submit = || {
        let pool = ThreadPool::current().and_then(|pool| pool.upgrade()).unwrap();
        pool.evaluate(View::current).await_complete()
    };
    assert_eq!(value(view.evaluate(submit)), weak.1);
    assert!(view.join_timeout(LIMIT));
    assert_eq!(view.stats().completed, 5, "and counts there");
}

/// The only worker runs the awaited tasks on its stack.
#[test]
fn an_awaited_task_sees_its_own_view_and_the_waiter_its_own_again() {
    let pool = small_pool();
    let [low, high] = [(); 2].map(|()| pool.view().build());
    let (own, other, all) = (low.downgrade(), high.downgrade(), pool.downgrade());
    let see = ThreadPool::current;
    let tasks = (pool.downgrade(), high.downgrade());
    let waiter = low.evaluate(move || {
        let (pool, high) = (tasks.0.upgrade().unwrap(), tasks.1.upgrade().unwrap());
        let inner = high.evaluate(move || (see(), pool.evaluate(see).await_complete(), see()));
        (see(), inner.await_complete(), see())
    });
    let (before, inner, after) = waiter.await_complete();
    assert_eq!((before, after), (Some(own.clone()), Some(own)));
    assert_eq!(inner, (Some(other.clone()), Some(all), Some(other)));
    assert_eq!(pool.stats().threads_started, 1);
}

#[test]
fn a_thread_outside_sees_the_pool_while_it_runs_a_task_of_its_scope() {
    let pool = small_pool();
    let view = pool.view().build();
    let busy = block(&pool);
    for pool in [&pool, &*view] {
        let mut seen = None;
        pool.scope(|scope| {
            scope.execute(|| seen = Some((ThreadPool::current(), elastipool::worker_index())));
            assert_eq!(ThreadPool::current(), None, "the body is no task");
        });
        assert_eq!(seen, Some((Some(pool.downgrade()), None)), "on this thread");
        assert_eq!(ThreadPool::current(), None);
    }
    busy.open();
}

/// A worker of one pool runs a task of another one in a scope, in which it runs one of its own
/// pool, which it awaits.
#[test]
fn of_nested_pools_the_innermost_counts() {
    let [outer, inner] = [(); 2].map(|()| small_pool());
    let (weak_outer, weak_inner) = (outer.downgrade(), inner.downgrade());
    let busy = block(&inner);
    let seen = outer.evaluate({
        let (inner, outer) = (inner.clone(), outer.downgrade());
        move || {
            let mut seen = Vec::new();
            inner.scope(|scope| {
                scope.execute(|| {
                    seen.push(ThreadPool::current());
                    let awaited = outer.upgrade().unwrap().evaluate(ThreadPool::current);
                    seen.push(awaited.await_complete());
                    seen.push(ThreadPool::current());
                });
            });
            seen.push(ThreadPool::current());
            seen
        }
    });
    let expected =
        [&weak_inner, &weak_outer, &weak_inner, &weak_outer].map(|weak| Some(weak.clone()));
    assert_eq!(value(seen), expected);
    busy.open();
}

/// Tells its pool when it is dropped.
struct TellsPool(Sender<Option<WeakThreadPool>>);

impl Drop for TellsPool {
    fn drop(&mut self) {
        self.0.send(ThreadPool::current()).unwrap();
    }
}

#[test]
fn a_destructor_sees_the_pool_of_its_cancelled_task() {
    let pool = small_pool();
    let view = pool.view().build();
    let busy = block(&pool);
    let (sender, seen) = mpsc::channel();
    let tells = TellsPool(sender);
    view.evaluate(move || drop(tells)).cancel();
    assert_eq!(seen.try_recv(), Ok(Some(view.downgrade())));
    assert_eq!(ThreadPool::current(), None);
    busy.open();
}

#[test]
fn hooks_and_thread_locals_see_the_pool_of_their_thread() {
    thread_local! {
        static LAST: RefCell<Option<TellsPool>> = const { RefCell::new(None) };
    }

    let (sender, seen) = mpsc::channel();
    let tell = move || TellsPool(sender.clone());
    let (start, stop) = (tell.clone(), tell.clone());
    let pool = Builder::new()
        .core_size(0)
        .max_size(1)
        .keep_alive(millis(1))
        .on_worker_start(move |_| drop(start()))
        .on_worker_stop(move |_| drop(stop()))
        .build();
    let weak = pool.downgrade();
    pool.execute(move || LAST.set(Some(tell())));
    for what in ["start", "stop", "thread-local"] {
        assert_eq!(within(&seen), Some(weak.clone()), "{what}");
    }
}

#[test]
fn it_does_not_keep_the_pool_open() {
    let pool = small_pool();
    let (sender, seen) = mpsc::channel();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || {
        let weak = ThreadPool::current().unwrap();
        sender.send(weak.clone()).unwrap();
        passes.pass();
        sender.send(weak).unwrap();
        assert_eq!(ThreadPool::current(), None, "all handles are gone");
        drop(sender);
    });
    assert!(within(&seen).upgrade().is_some());
    drop(pool);
    gate.open();
    assert!(within(&seen).upgrade().is_none());
    assert_eq!(seen.recv(), Err(RecvError));
}
