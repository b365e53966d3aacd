//! Law 10, no self-made deadlock: `join` and `shutdown_join*` from inside the pool's own task,
//! which could never return, say so instead of hanging: the forms with a time limit by `false`, at
//! once, the others by a panic. A worker that waits for a task of its own pool runs that task, so
//! that tasks which wait for tasks need no threads.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, WAYS, Way, submit_interdependent, value, wait_until};
use elastipool::{Builder, JoinHandle, ThreadPool, blocking};

fn named(name: &str) -> ThreadPool {
    ThreadPool::new_named(name, 1, 2, HOUR)
}

/// What waiting for a pool has come to: what it returned, or what it panicked with.
type Answer = Result<Option<bool>, String>;

/// Waits for `pool` in this way, where it would wait for itself.
fn answer(pool: ThreadPool, way: Way) -> Answer {
    catch_unwind(AssertUnwindSafe(|| way(pool)))
        .map_err(|payload| payload.downcast_ref::<String>().expect("a text").clone())
}

/// A wait with a limit returns that the pool is not done. The others panic and name the wait and
/// the pool.
#[track_caller]
fn assert_refuses(answer: &Answer, way: &str, pool: &str) {
    match answer {
        Ok(returned) => {
            assert!(way.ends_with("_timeout"), "`{way}` returned");
            assert_eq!(*returned, Some(false), "`{way}`");
        }
        Err(text) => {
            assert!(!way.ends_with("_timeout"), "`{way}` panicked: {text}");
            assert!(text.contains(&format!("`{way}`")), "not by name: {text}");
            assert!(text.contains(&format!("`{pool}`")), "not of which pool: {text}");
        }
    }
}

/// The pool is none the worse for it.
#[track_caller]
fn assert_works(pool: ThreadPool) {
    assert!(!pool.is_closed());
    submit_interdependent(&pool, 2, || ()).into_iter().for_each(value);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().in_flight(), 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- waiting for oneself -----

#[test]
fn a_closure_that_waits_for_its_pool_fails() {
    for (name, way) in WAYS {
        let pool = named("closures");
        let own = pool.clone();
        let answered = value(pool.evaluate(move || answer(own, way)));
        assert_refuses(&answered, name, "closures");

        let (own, (sender, receiver)) = (pool.clone(), mpsc::channel());
        pool.execute(move || sender.send(answer(own, way)).unwrap());
        let answered = receiver.recv_timeout(LIMIT).expect("it hangs");
        assert_refuses(&answered, name, "closures");
        assert_works(pool);
    }
}

#[test]
fn a_future_that_waits_for_its_pool_while_it_blocks_a_worker_fails() {
    for (name, way) in WAYS {
        let pool = named("completions");
        let own = pool.clone();
        let answered = value(pool.complete(async move { answer(own, way) }));
        assert_refuses(&answered, name, "completions");
        assert_works(pool);
    }
}

#[cfg(feature = "async")]
#[test]
fn a_spawned_future_that_waits_for_its_pool_fails() {
    for (name, way) in WAYS {
        let pool = named("futures");
        let (trigger, triggered) = common::triggered();
        let own = pool.clone();
        let handle = pool.spawn_await(async move {
            let first = answer(own.clone(), way);
            triggered.await;
            (first, answer(own, way))
        });
        wait_until("it is pending", || trigger.polls() == 1);
        trigger.fire();
        let (first, second) = value(handle);
        assert_refuses(&first, name, "futures");
        assert_refuses(&second, name, "futures");
        assert_works(pool);
    }
}

#[test]
fn a_start_hook_that_waits_for_its_pool_fails() {
    for (name, way) in WAYS {
        let own = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let place = Arc::clone(&own);
        let pool = Builder::new()
            .name("hooks")
            .core_size(1)
            .max_size(2)
            .keep_alive(HOUR)
            .on_worker_start(move |_| {
                if let Some(own) = place.lock().unwrap().take() {
                    sender.send(answer(own, way)).unwrap();
                }
            })
            .build();
        *own.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        let answered = receiver.recv_timeout(LIMIT).expect("it hangs");
        assert_refuses(&answered, name, "hooks");
        assert_works(pool);
    }
}

/// A stop hook may wait for the others to be gone, but not for its pool to be quiet: it may be the
/// one that has to see to that.
#[test]
fn a_stop_hook_that_joins_its_pool() {
    for (name, way) in &WAYS[..2] {
        let own = Arc::new(Mutex::new(None::<ThreadPool>));
        let (sender, receiver) = mpsc::channel();
        let (place, way) = (Arc::clone(&own), *way);
        let pool = Builder::new()
            .name("hooks")
            .core_size(1)
            .max_size(1)
            .on_worker_stop(move |_| {
                if let Some(own) = place.lock().unwrap().take() {
                    sender.send(answer(own, way)).unwrap();
                }
            })
            .build();
        *own.lock().unwrap() = Some(pool.clone());
        pool.execute(|| ());
        pool.close();
        let answered = receiver.recv_timeout(LIMIT).expect("it hangs");
        assert_refuses(&answered, name, "hooks");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// In all stop hooks at once: each waits for all others, except for those that wait for it.
#[test]
fn stop_hooks_that_shut_down_their_pool() {
    const SIZE: usize = 2;
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let met = Gate::new();
    let (sender, receiver) = mpsc::channel();
    let (place, meets) = (Arc::clone(&own), Arc::clone(&met));
    let pool = Builder::new()
        .name("hooks")
        .core_size(SIZE)
        .max_size(SIZE)
        .on_worker_stop(move |_| {
            let own = place.lock().unwrap().clone().unwrap();
            meets.meet(SIZE);
            sender.send(own.shutdown_join_timeout(LIMIT)).unwrap();
        })
        .build();
    *own.lock().unwrap() = Some(pool.clone());
    assert_eq!(pool.start_core_threads(), SIZE);
    pool.close();
    for _ in 0..SIZE {
        let returned = receiver.recv_timeout(2 * LIMIT).unwrap();
        assert!(returned, "each waited for the other, for as long as it could");
    }
    own.lock().unwrap().take();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The only worker there may be is in its stop hook when a task is accepted: it has to come back
/// for it, so it cannot wait for the task in the hook. It returns, or says so.
#[test]
fn a_stop_hook_that_waits_for_work_that_waits_for_it() {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let gate = Gate::new();
    let (sender, receiver) = mpsc::channel();
    let (place, passes) = (Arc::clone(&own), Arc::clone(&gate));
    let pool = Builder::new()
        .name("hooks")
        .core_size(0)
        .max_size(1)
        .keep_alive(Duration::from_millis(1))
        .on_worker_stop(move |_| {
            passes.pass();
            let own = place.lock().unwrap().take();
            let Some(own) = own else { return };
            let wait = || own.shutdown_join_timeout(LIMIT);
            sender.send(catch_unwind(AssertUnwindSafe(wait)).unwrap_or(true)).unwrap();
        })
        .build();
    pool.execute(|| ());
    gate.wait_for(1);
    let handle = pool.evaluate(|| 1);
    *own.lock().unwrap() = Some(pool);
    gate.open();
    let returned = receiver.recv_timeout(2 * LIMIT).unwrap();
    assert_eq!(value(handle), 1);
    assert!(returned, "it waited for a task that waited for it, for as long as it could");
}

/// A panic out of the task, as it comes without a catch: the pool contains it.
#[test]
fn a_join_in_a_task_is_the_tasks_panic() {
    let pool = named("complains");
    for (name, way) in WAYS {
        let own = pool.clone();
        let handle = pool.evaluate(move || way(own));
        let settled = handle.await_complete_timeout(LIMIT).expect("it hangs");
        assert_refuses(&settled.map_err(|error| error.to_string()), name, "complains");
    }
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.panicked, stats.completed), (2, 2));
    assert_works(pool);
}

// ----- waiting for others -----

#[test]
fn a_task_may_wait_for_another_pool() {
    for (name, way) in WAYS {
        let (pool, other) = (named("one"), named("other"));
        let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
        let passes = Arc::clone(&gate);
        other.execute(move || {
            passes.pass();
            sender.send(()).unwrap();
        });
        let handle = pool.evaluate(move || {
            assert_ne!(way(other), Some(false), "`{name}` has not waited");
            receiver.try_recv()
        });
        gate.open();
        assert_eq!(value(handle), Ok(()), "it returned before the other pool was quiet");
        assert_works(pool);
    }
}

/// A pool inside of a pool inside of a pool: only its own tasks are in the way.
#[test]
fn a_task_may_use_and_shut_down_an_inner_pool() {
    let (outer, middle, inner) = (named("outer"), named("middle"), named("inner"));
    let middle_of_task = middle.clone();
    let answered = value(outer.evaluate(move || {
        let handle = middle_of_task.evaluate(move || {
            let own = inner.clone();
            let answered = value(inner.evaluate(move || answer(own, WAYS[0].1)));
            inner.shutdown_join();
            answered
        });
        let answered = value(handle);
        middle_of_task.join();
        answered
    }));
    assert_refuses(&answered, "join", "inner");
    assert_works(middle);
    assert_works(outer);
}

/// A worker of a pool is not a worker of the next one at the same address.
#[test]
fn a_new_pool_is_not_taken_for_an_old_one() {
    let host = named("host");
    let handle = host.evaluate(|| {
        for _ in 0..100 {
            let pool = ThreadPool::new(1, 1, HOUR);
            pool.execute(|| ());
            pool.join();
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
    value(handle);
    assert_works(host);
}

// ----- other things that look as if they hung -----

#[test]
fn a_last_handle_may_end_in_its_own_task() {
    // As it is dropped, and as it is shut down.
    let ways: [fn(ThreadPool); 2] = [drop, ThreadPool::shutdown];
    for end in ways {
        let pool = named("own");
        let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
        let (passes, own) = (Arc::clone(&gate), pool.clone());
        pool.execute(move || {
            passes.pass();
            end(own);
            sender.send(()).unwrap();
        });
        drop(pool);
        gate.open();
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(()), "it hangs");
    }
}

/// A task that gives up the last handle by `shutdown_join*` panics or returns, and the handle is
/// given up.
#[test]
fn a_last_handle_that_waits_in_its_own_task_is_given_up() {
    for (name, way) in &WAYS[2..] {
        let (stopped, way) = (Gate::new(), *way);
        let stops = Arc::clone(&stopped);
        let pool = Builder::new()
            .core_size(1)
            .max_size(1)
            .on_worker_stop(move |_| stops.open())
            .name("own")
            .build();
        let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
        let (passes, own) = (Arc::clone(&gate), pool.clone());
        pool.execute(move || {
            passes.pass();
            sender.send(answer(own, way)).unwrap();
        });
        drop(pool);
        gate.open();
        assert_refuses(&receiver.recv_timeout(LIMIT).expect("it hangs"), name, "own");
        // The stop hook.
        stopped.pass();
    }
}

#[test]
fn a_task_may_wait_for_another_task() {
    let pool = ThreadPool::new(1, 3, HOUR);
    let own = pool.clone();
    let outer = pool.evaluate(move || {
        let inner = own.clone();
        let middle = own.evaluate(move || value(inner.evaluate(|| 1)) + 1);
        value(middle) + 1
    });
    assert_eq!(value(outer), 3);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().completed, 3);
}

type Tree = fn(&ThreadPool, usize) -> usize;

/// How many leaves there are: each task submits two others and waits for both.
fn leaves_by_handles(pool: &ThreadPool, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let submit = || {
        let own = pool.clone();
        pool.evaluate(move || leaves_by_handles(&own, depth - 1))
    };
    let (left, right) = (submit(), submit());
    left.await_complete() + right.await_complete()
}

fn leaves_by_scopes(pool: &ThreadPool, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let (mut left, mut right) = (0, 0);
    pool.scope(|scope| {
        scope.execute(|| left = leaves_by_scopes(pool, depth - 1));
        scope.execute(|| right = leaves_by_scopes(pool, depth - 1));
    });
    left + right
}

fn leaves_by_groups(pool: &ThreadPool, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let (group, sum) = (pool.group::<()>(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..2 {
        let (own, sum) = (pool.clone(), Arc::clone(&sum));
        let submitted = group.execute(move || {
            sum.fetch_add(leaves_by_groups(&own, depth - 1), Ordering::Relaxed);
            Ok(())
        });
        submitted.unwrap();
    }
    group.wait().unwrap();
    sum.load(Ordering::Relaxed)
}

const TREES: [(&str, Tree); 3] =
    [("handles", leaves_by_handles), ("scopes", leaves_by_scopes), ("groups", leaves_by_groups)];

/// Breadth first, it would take a thread for each task that waits: 511.
#[test]
fn a_tree_of_tasks_that_wait_takes_few_threads() {
    const DEPTH: usize = 9;
    for (name, leaves) in TREES {
        let pool = ThreadPool::new(2, 2, HOUR);
        let own = pool.clone();
        let counted = pool.evaluate(move || leaves(&own, DEPTH));
        assert_eq!(value(counted), 1 << DEPTH, "{name}");
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        println!("{name}: {} threads", stats.peak_workers);
        assert!(stats.peak_workers <= MOST_FOR_A_TREE, "{name}: {stats:?}");
        assert_eq!(stats.completed, stats.accepted(), "{name}");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// The same, when there are not as many threads as tasks wait.
#[cfg(target_os = "linux")]
#[test]
fn a_tree_of_tasks_that_wait_ends_where_threads_are_refused() {
    use common::refusal::{Refusal, in_a_child};
    const DEPTH: usize = 9;
    in_a_child("a_tree_of_tasks_that_wait_ends_where_threads_are_refused", || {
        for threads in [1, 2, 8, 300] {
            for (name, leaves) in TREES {
                let refusal = Refusal::begin_beyond(threads);
                let pool = ThreadPool::new(2, 2, HOUR);
                let own = pool.clone();
                let counted = pool.evaluate(move || leaves(&own, DEPTH));
                assert_eq!(value(counted), 1 << DEPTH, "{name}, {threads}");
                assert!(pool.join_timeout(LIMIT));
                let stats = pool.stats();
                assert!(stats.peak_workers <= MOST_FOR_A_TREE, "{name}, {threads}: {stats:?}");
                assert!(pool.shutdown_join_timeout(LIMIT));
                drop(refusal);
            }
        }
    });
}

/// The most workers that a tree takes on a pool of two. One waits only for a task that another one
/// runs, so those that wait for each other are as many as the tree is deep, at most.
const MOST_FOR_A_TREE: usize = 16;

/// However deep, and with no worker but one that may be runnable.
#[test]
fn tasks_of_a_pool_of_one_may_wait_for_each_other() {
    fn sum_to(pool: &ThreadPool, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let own = pool.clone();
        let rest = match number % 3 {
            0 => value(pool.complete(async move { sum_to(&own, number - 1) })),
            1 => value(pool.evaluate(move || sum_to(&own, number - 1))),
            // The worker waits in the executor of its own future.
            _ => {
                let outer = own.clone();
                value(outer.complete(async move {
                    let inner = own.clone();
                    own.evaluate(move || sum_to(&inner, number - 1)).await.unwrap()
                }))
            }
        };
        number + rest
    }
    let pool = ThreadPool::new(1, 1, HOUR);
    let own = pool.clone();
    assert_eq!(value(pool.evaluate(move || sum_to(&own, 12))), 78);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().blocked, 0);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The only worker does not wait for capacity of its own full queue.
#[test]
fn a_task_may_submit_to_its_own_full_queue() {
    for capacity in [0, 1] {
        let builder = Builder::new().core_size(1).max_size(1).queue_capacity(capacity);
        let pool = builder.build();
        let (sender, receiver) = mpsc::channel();
        let own = pool.clone();
        pool.execute(move || {
            for number in 0..20 {
                let sender = sender.clone();
                own.execute(move || sender.send(number).unwrap());
            }
        });
        let received: Vec<_> =
            (0..20).map(|_| receiver.recv_timeout(LIMIT).expect("it hangs")).collect();
        assert_eq!(received.iter().sum::<usize>(), 190);
        assert!(pool.join_timeout(LIMIT));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

#[test]
fn a_wait_for_another_task_may_have_a_limit() {
    let pool = named("limits");
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    assert!(!pool.join_timeout(Duration::ZERO));
    assert!(!pool.join_timeout(Duration::from_millis(1)));
    assert!(!pool.clone().shutdown_join_timeout(Duration::from_millis(1)));
    gate.open();
    assert!(pool.join_timeout(Duration::MAX));
    assert!(pool.shutdown_join_timeout(Duration::MAX));
}

/// Whose worker a thread is does not depend on whose task it drops meanwhile.
#[cfg(feature = "async")]
#[test]
fn a_destructor_of_another_pools_future_that_waits_for_the_workers_own_pool() {
    struct Complains(ThreadPool, Way, mpsc::Sender<(Answer, Option<usize>)>);
    impl Drop for Complains {
        fn drop(&mut self) {
            let answered = answer(self.0.clone(), self.1);
            self.2.send((answered, elastipool::worker_index())).unwrap();
        }
    }

    for (name, way) in WAYS {
        let (worker, other) = (named("worker"), named("other"));
        let (sender, receiver) = mpsc::channel();
        for whose in [&worker, &other] {
            let (trigger, triggered) = common::triggered();
            let complains = Complains(whose.clone(), way, sender.clone());
            let handle = other.spawn_await(async move {
                let _captured = complains;
                triggered.await;
            });
            wait_until("it is being polled", || trigger.waker().is_some());
            // The poll holds the future, too. An idle worker may be another one than that which
            // polls.
            wait_until("the poll has ended", || other.stats().active == 0);
            // The canceller drops it.
            let index = value(worker.evaluate(move || {
                handle.cancel();
                elastipool::worker_index()
            }));
            let (answered, index_in_there) = receiver.recv_timeout(LIMIT).expect("it hangs");
            assert_refuses(&answered, name, whose.name());
            assert!(index.is_some());
            assert_eq!(index_in_there, index);
        }
        assert_works(other);
        assert_works(worker);
    }
}

/// A combinator polls only those of its children that have been woken: the last poll of this
/// completion looks at none of the handles that it waits for.
#[test]
fn a_completion_waits_for_handles_that_its_last_poll_did_not_look_at() {
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;

    let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
    let (own, gate, has_fired) = (pool.clone(), Gate::new(), Arc::new(AtomicBool::new(false)));
    let (passes, fires) = (Arc::clone(&gate), Arc::clone(&has_fired));
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    let completed = pool.complete(async move {
        let handles: FuturesUnordered<_> = (0..3)
            .map(|_| {
                own.evaluate({
                    let passes = Arc::clone(&passes);
                    move || passes.pass()
                })
            })
            .collect();
        let triggered = async {
            receiver.await.unwrap();
            fires.store(true, Ordering::SeqCst);
        };
        futures::future::join(handles.count(), triggered).await.0
    });
    gate.wait_for(1);
    sender.send(()).unwrap();
    wait_until("it has been polled again", || has_fired.load(Ordering::SeqCst));
    gate.open();
    assert_eq!(value(completed), 3);
    pool.shutdown_join();
}

/// Waits for a task again and again, for a short time each.
fn poll_until_done(mut handle: JoinHandle<()>) {
    while let Err(pending) = handle.await_complete_timeout(Duration::from_micros(20)) {
        handle = pending;
    }
}

#[test]
fn many_short_waits_let_the_awaited_task_run() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = Gate::new();
    // Workers that wait for the pool: beside them, others spin longer before they wait without a
    // timeout.
    let waiting = (1..=4).map(|count| {
        let task = gate.clone();
        let started = pool.evaluate(move || blocking(|| task.pass()));
        gate.wait_for(count);
        pool.evaluate(move || value(started))
    });
    let waiting: Vec<_> = waiting.collect();
    let own = pool.clone();
    let polling = pool.evaluate(move || poll_until_done(own.evaluate(|| ())));
    polling.await_complete_timeout(LIMIT).expect("it hangs").expect("it has a value");
    gate.open();
    waiting.into_iter().for_each(value);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// As before. Another thread was the last to poll the handle, which it shares with the completion.
#[test]
fn a_completion_waits_for_a_shared_handle_that_another_thread_has_polled() {
    use futures::FutureExt;

    completes_beside_another_poller(|handle| handle.map(Result::unwrap).boxed());
}

/// As before. The handle lies in a set, which does not poll it again.
#[test]
fn a_completion_waits_for_a_shared_set_that_another_thread_has_polled() {
    use futures::{FutureExt, StreamExt};

    completes_beside_another_poller(|handle| {
        let mut set: elastipool::JoinSet<()> = [handle].into_iter().collect();
        async move { set.next().await.unwrap().unwrap() }.boxed()
    });
}

fn completes_beside_another_poller(
    wait: impl FnOnce(JoinHandle<()>) -> futures::future::BoxFuture<'static, ()>,
) {
    use futures::stream::FuturesUnordered;
    use futures::{FutureExt, StreamExt};

    let pool = ThreadPool::new(1, 1, HOUR);
    let has_fired = Arc::new(AtomicBool::new(false));
    let fires = Arc::clone(&has_fired);
    let (share, shared) = futures::channel::oneshot::channel();
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    let completed = pool.complete(async move {
        let handles: FuturesUnordered<_> = [shared.await.unwrap()].into_iter().collect();
        let triggered = async {
            receiver.await.unwrap();
            fires.store(true, Ordering::SeqCst);
        };
        futures::future::join(handles.count(), triggered).await.0
    });
    wait_until("the completion has begun", || pool.stats().active == 1);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    let handle = wait(pool.evaluate(|| ())).shared();
    assert!(handle.clone().now_or_never().is_none());
    share.send(handle.clone()).unwrap();
    gate.wait_for(1);
    assert!(handle.clone().now_or_never().is_none());
    sender.send(()).unwrap();
    wait_until("it has been polled again", || has_fired.load(Ordering::SeqCst));
    gate.open();
    assert_eq!(value(completed), 1);
    pool.shutdown_join();
}
