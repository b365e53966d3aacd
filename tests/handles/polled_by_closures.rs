//! Handles and groups that a closure polls by the executor of another crate, which then blocks its worker (law 10). From the
//! first pending poll the worker counts as blocked, until the handle is ready or dropped or the closure ends.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, block, settled, value, wait_until};
use elastipool::{Builder, JoinHandle, ThreadPool, blocking};
use futures::future::{BoxFuture, FutureExt, join_all};

fn builder() -> Builder {
    Builder::new().core_size(1).max_size(1).keep_alive(HOUR)
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns a handle that was pending when it was polled.
fn pending(pool: &ThreadPool) -> JoinHandle<()> {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let mut handle = pool.evaluate(move || passes.pass());
    assert!(poll(&mut handle).is_pending());
    gate.open();
    handle
}

/// Nothing is left of the waits.
#[track_caller]
fn assert_is_itself_again(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT), "{:?}", pool.stats());
    wait_until("all workers rest", || {
        let stats = pool.stats();
        stats.idle == stats.workers
    });
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.active, stats.in_flight()), (0, 0, 0), "{stats:?}");
    // As many run as before: a second task waits while the first one runs.
    let gates: Vec<_> = (0..pool.max_size()).map(|_| block(pool)).collect();
    let queued = pool.evaluate(|| ());
    assert_eq!(pool.stats().active, pool.max_size());
    assert!(!queued.is_finished());
    gates.iter().for_each(|gate| gate.open());
    value(queued);
}

type BlockOn = fn(BoxFuture<'_, usize>) -> usize;

const EXECUTORS: [BlockOn; 2] =
    [|future| futures::executor::block_on(future), |future| async_io::block_on(future)];

async fn add(pool: &ThreadPool, number: usize) -> usize {
    pool.evaluate(move || number).await.unwrap() + 1
}

/// Ways to wait for tasks of the pool in async code. Each returns 6.
type Wait = for<'a> fn(&'a ThreadPool) -> BoxFuture<'a, usize>;

const WAITS: &[Wait] = &[
    |pool| pool.evaluate(|| 6).map(Result::unwrap).boxed(),
    |pool| add(pool, 5).boxed(),
    |pool| async { add(pool, 1).await + add(pool, 2).await + 1 }.boxed(),
    |pool| join_all((1..4).map(|number| add(pool, number - 1))).map(|all| all.iter().sum()).boxed(),
    |pool| {
        // Each of these is polled in turn, by wakers of the combinator.
        let tasks = (0..40).map(|number| pool.evaluate(move || usize::from(number < 6)));
        join_all(tasks).map(|all| all.into_iter().map(Result::unwrap).sum()).boxed()
    },
    |pool| {
        let group = pool.group::<()>();
        group.execute(|| Ok(())).unwrap();
        let handle = group.evaluate(|| 6);
        async move {
            group.await.unwrap();
            handle.await.unwrap()
        }
        .boxed()
    },
    |pool| pool.evaluate(|| 6).cancelling().map(|result| result.unwrap_or(6)).boxed(),
    |pool| pool.complete(async { 6 }).map(Result::unwrap).boxed(),
    #[cfg(feature = "async")]
    |pool| {
        let own = pool.clone();
        pool.spawn_await(async move { add(&own, 5).await }).map(Result::unwrap).boxed()
    },
];

#[test]
fn a_closure_may_block_on_tasks_of_its_pool() {
    for block_on in EXECUTORS {
        for capacity in [None, Some(100)] {
            let pool = match capacity {
                Some(capacity) => builder().queue_capacity(capacity).build(),
                None => builder().build(),
            };
            for wait in WAITS {
                let own = pool.clone();
                assert_eq!(value(pool.evaluate(move || block_on(wait(&own)))), 6);
            }
            assert_is_itself_again(&pool);
        }
    }
}

#[test]
fn as_many_requests_as_workers_may_block_on_tasks() {
    for block_on in EXECUTORS {
        let pool = Builder::new().core_size(2).max_size(4).build();
        let requests: Vec<_> = (0..4 * pool.max_size())
            .map(|number| {
                let own = pool.clone();
                pool.evaluate(move || block_on(add(&own, number).boxed()))
            })
            .collect();
        let sum: usize = requests.into_iter().map(value).sum();
        let count = 4 * pool.max_size();
        assert_eq!(sum, count * (count + 1) / 2);
        assert_is_itself_again(&pool);
    }
}

#[test]
fn a_closure_of_a_view_may_block_on_tasks_of_its_view() {
    let pool = Builder::new().core_size(2).max_size(2).keep_alive(HOUR).build();
    let view = pool.view().limit(1).build();
    let (own, gate) = (view.clone(), Gate::new());
    let passes = Arc::clone(&gate);
    let task = move || {
        let number = futures::executor::block_on(own.evaluate(|| 7)).unwrap();
        passes.pass();
        number
    };
    let task = view.evaluate(task);
    gate.wait_for(1);
    // It has its place again while it goes on: another task of the view waits, although a worker is free.
    let queued = view.evaluate(|| ()).await_complete_timeout(Duration::from_millis(20));
    let queued = queued.expect_err("the limit holds");
    gate.open();
    assert_eq!(value(task), 7);
    value(queued);
    assert_is_itself_again(&pool);
    // The limit holds.
    let gate = block(&view);
    let queued = view.evaluate(|| ());
    assert_eq!((view.stats().active, queued.is_finished()), (1, false));
    gate.open();
    value(queued);
}

/// In a declared region it is a wait for the pool, which is replaced beyond `max_blocked`.
#[test]
fn a_region_may_block_on_tasks_of_its_pool() {
    for max_blocked in [0, 1] {
        let pool = builder().max_blocked(max_blocked).build();
        let own = pool.clone();
        let task = move || {
            blocking(|| {
                let number = futures::executor::block_on(own.evaluate(|| 7)).unwrap();
                // The region goes on, and may have no replacement.
                assert_eq!(own.stats().blocked, 1);
                // Pending at the end of the region.
                (number, pending(&own))
            })
        };
        let (number, kept) = value(pool.evaluate(task));
        assert_eq!(number, 7);
        value(kept);
        assert_is_itself_again(&pool);
    }
}

/// Polls a handle once on a worker of a pool of one, calls `then`, and lets the awaited task end.
fn after_a_pending_poll<R: Send + 'static>(
    then: impl FnOnce(&ThreadPool, JoinHandle<usize>, Arc<Gate>) -> R + Send + 'static,
) -> (ThreadPool, R) {
    let pool = builder().build();
    let own = pool.clone();
    let result = value(pool.evaluate(move || {
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let mut handle = own.evaluate(move || {
            passes.pass();
            7
        });
        assert_eq!(own.stats().blocked, 0);
        assert!(poll(&mut handle).is_pending());
        // The worker computes on, and counts as blocked: another one runs the task.
        assert_eq!(own.stats().blocked, 1);
        gate.wait_for(1);
        then(&own, handle, gate)
    }));
    (pool, result)
}

#[test]
fn a_poll_with_a_result_ends_the_wait() {
    let (pool, ()) = after_a_pending_poll(|own, mut handle, gate| {
        assert!(poll(&mut handle).is_pending(), "again");
        assert_eq!(own.stats().blocked, 1);
        gate.open();
        wait_until("it has ended", || handle.is_finished());
        assert_eq!(own.stats().blocked, 1, "nothing has polled it");
        assert!(matches!(poll(&mut handle), Poll::Ready(Ok(7))));
        assert_eq!(own.stats().blocked, 0);
    });
    assert_is_itself_again(&pool);
}

#[test]
fn the_drop_of_the_handle_ends_the_wait() {
    let (pool, ()) = after_a_pending_poll(|own, handle, gate| {
        drop(handle);
        assert_eq!(own.stats().blocked, 0);
        gate.open();
    });
    assert_is_itself_again(&pool);
}

#[test]
fn a_blocking_wait_for_the_handle_ends_the_wait() {
    let (pool, ()) = after_a_pending_poll(|own, handle, gate| {
        gate.open();
        assert_eq!(handle.await_complete(), 7);
        assert_eq!(own.stats().blocked, 0);
    });
    assert_is_itself_again(&pool);
}

#[test]
fn the_wait_lasts_while_one_of_several_handles_is_pending() {
    let (pool, ()) = after_a_pending_poll(|own, handle, gate| {
        let mut others = [own.evaluate(|| ()), own.evaluate(|| ())];
        assert!(others.iter_mut().all(|other| poll(other).is_pending()));
        drop(handle);
        assert_eq!(own.stats().blocked, 1);
        gate.open();
        for mut other in others {
            wait_until("it has ended", || poll(&mut other).is_ready());
        }
        assert_eq!(own.stats().blocked, 0);
    });
    assert_is_itself_again(&pool);
}

/// The worker notices when it next waits for the pool, or ends its closure.
#[test]
fn another_thread_may_poll_or_drop_the_handle() {
    for waits in [false, true] {
        for polls in [false, true] {
            let (pool, ()) = after_a_pending_poll(move |own, mut handle, gate| {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        if polls {
                            gate.open();
                            wait_until("it has ended", || poll(&mut handle).is_ready());
                        }
                        drop(handle);
                    });
                });
                gate.open();
                if waits {
                    let place = thread::current().id();
                    let runs_here = || own.evaluate(|| thread::current().id()).await_complete();
                    // Until it has noticed, another worker may be faster.
                    wait_until("it runs what it waits for", || runs_here() == place);
                    assert_eq!(own.stats().blocked, 0);
                }
            });
            assert_is_itself_again(&pool);
        }
    }
}

#[test]
fn the_end_of_the_closure_ends_the_wait() {
    let (pool, (handle, gate)) = after_a_pending_poll(|_, handle, gate| (handle, gate));
    wait_until("the closure has ended", || pool.stats().blocked == 0);
    gate.open();
    assert_eq!(value(handle), 7);
    assert_is_itself_again(&pool);
}

#[test]
fn the_end_of_a_closure_without_a_handle_ends_the_wait() {
    let pool = builder().build();
    let own = pool.clone();
    let (sender, receiver) = mpsc::channel();
    pool.execute(move || {
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let mut handle = own.evaluate(move || passes.pass());
        assert!(poll(&mut handle).is_pending());
        assert_eq!(own.stats().blocked, 1);
        sender.send((handle, gate)).unwrap();
    });
    let (handle, gate) = receiver.recv().expect("its handle is pending");
    wait_until("the closure has ended", || pool.stats().blocked == 0);
    gate.open();
    value(handle);
    assert_is_itself_again(&pool);
}

/// A task that runs on its waiter's stack has waits of its own.
#[test]
fn a_task_on_its_waiters_stack_may_block_on_tasks() {
    let pool = builder().build();
    let own = pool.clone();
    let place = value(pool.evaluate(move || {
        let inner = own.clone();
        let outer = thread::current().id();
        let (place, kept) = own
            .evaluate(move || {
                assert_eq!(futures::executor::block_on(inner.evaluate(|| 7)).unwrap(), 7);
                (thread::current().id(), pending(&inner))
            })
            .await_complete();
        assert_eq!(own.stats().blocked, 0, "the inner task has ended");
        value(kept);
        place == outer
    }));
    assert!(place);
    assert_is_itself_again(&pool);
}

/// The pool polls these: no executor blocks the worker.
#[test]
fn what_the_pool_polls_does_not_block_its_worker() {
    let pool = builder().build();
    let own = pool.clone();
    #[cfg(feature = "async")]
    assert_eq!(value(pool.spawn_await(async move { add(&own, 5).await })), 6);
    #[cfg(not(feature = "async"))]
    drop(own);
    assert_eq!(pool.stats().peak_blocked, 0);
    // A blocking wait polls the handle too, and runs its task.
    let own = pool.clone();
    assert_eq!(value(pool.evaluate(move || own.evaluate(|| 7).await_complete())), 7);
    assert_eq!((pool.stats().peak_blocked, pool.stats().threads_started), (0, 1));
}

#[test]
fn a_start_hook_may_block_on_a_task() {
    let (place, number) = (Arc::new(OnceLock::<ThreadPool>::new()), Arc::new(OnceLock::new()));
    let (own, sets) = (Arc::clone(&place), Arc::clone(&number));
    let pool = Builder::new()
        .core_size(1)
        .max_size(1)
        .keep_alive(HOUR)
        .on_worker_start(move |index| {
            if index == 0 {
                let handle = own.get().unwrap().evaluate(|| 7);
                sets.set(futures::executor::block_on(handle).unwrap()).unwrap();
            }
        })
        .build();
    place.set(pool.clone()).unwrap();
    pool.execute(|| ());
    wait_until("the hook has ended", || number.get() == Some(&7));
    assert_is_itself_again(&pool);
}

/// Inside an executor that waits for the pool, a task of a blocking wait does not run on the waiter's stack.
#[test]
fn a_blocking_wait_beside_a_pending_handle_runs_no_task() {
    let pool = builder().build();
    let own = pool.clone();
    let places = value(pool.evaluate(move || {
        async_io::block_on(async {
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let mut first = own.evaluate(move || passes.pass());
            assert!(futures::poll!(&mut first).is_pending());
            gate.open();
            let place = own.evaluate(|| thread::current().id()).await_complete();
            first.await.unwrap();
            (thread::current().id(), place)
        })
    }));
    assert_ne!(places.0, places.1);
    assert_is_itself_again(&pool);
}

/// Waits for a task of the pool in its destructor, by the executor of another crate.
struct WaitsOnDrop(ThreadPool);

impl Drop for WaitsOnDrop {
    fn drop(&mut self) {
        assert_eq!(futures::executor::block_on(self.0.evaluate(|| 7)).unwrap(), 7);
    }
}

/// What a task captured, and a result without a receiver, are dropped by the worker: as by a closure.
#[test]
fn a_destructor_may_block_on_a_task() {
    let pool = builder().build();
    let (gate, passes) = (Gate::new(), Gate::new());
    let drops = |open: &Arc<Gate>| {
        let (open, waits) = (Arc::clone(open), WaitsOnDrop(pool.clone()));
        move || {
            open.pass();
            waits
        }
    };
    let task = drops(&gate);
    pool.execute(move || drop(task()));
    drop(pool.evaluate(drops(&gate)));
    let group = pool.group::<()>();
    drop(group.evaluate(drops(&passes)));
    #[cfg(feature = "async")]
    {
        let output = WaitsOnDrop(pool.clone());
        drop(pool.spawn_await(async move { output }));
    }
    gate.open();
    passes.open();
    drop(group);
    assert_is_itself_again(&pool);
}

/// A task that has expired is dropped by the worker that would have run it.
#[test]
fn the_destructor_of_an_expired_task_may_block_on_a_task() {
    let pool = builder().build();
    let view = pool.view().queue_timeout(Duration::from_millis(1)).build();
    let gate = block(&pool);
    let (captured, executed) = (WaitsOnDrop(pool.clone()), WaitsOnDrop(pool.clone()));
    let expired = view.evaluate(move || drop(captured));
    view.execute(move || drop(executed));
    thread::sleep(Duration::from_millis(20));
    gate.open();
    assert!(settled(expired).unwrap_err().is_expired());
    assert_is_itself_again(&pool);
}
