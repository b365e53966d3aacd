//! Task groups and destructors: one that panics, wherever it runs, costs no worker, and one that
//! turns to its own group finds it unlocked.

use crate::common;

use std::future::Future;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
#[cfg(feature = "async")]
use std::time::Instant;

use common::{
    Drops, Gate, HOUR, LIMIT, block, failure, hold, joined, settled, under_way, value, wait_until,
};
#[cfg(feature = "async")]
use common::{Trigger, hold_then, triggered, waited};
use elastipool::{JoinHandle, RejectReason, TaskGroup, ThreadPool};
use futures::FutureExt;

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// A value whose destructor panics.
struct Bomb(Drops);

impl Drop for Bomb {
    fn drop(&mut self) {
        drop(self.0.issue());
        panic!("a destructor");
    }
}

/// A value whose destructor calls a function.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// What is called in the innermost of nested destructors.
type Innermost = Box<dyn FnOnce() + Send>;

/// Cancels tasks whose destructors cancel tasks, and so on.
fn nest(pool: &ThreadPool, depth: usize, f: Innermost) {
    if depth == 0 {
        return f();
    }
    let (inner, mut f) = (pool.clone(), Some(f));
    let captured = OnDrop(move || nest(&inner, depth - 1, f.take().unwrap()));
    pool.evaluate(move || drop(captured)).cancel();
}

/// A group that is cancelled where drops do not nest deeper leaves its tasks to a worker, which
/// runs none of them.
#[test]
fn a_group_that_is_cancelled_deep_inside_destructors_runs_no_task() {
    let pool = pool(1);
    let gate = block(&pool);
    let (group, drops, ran) = (pool.group::<()>(), Drops::default(), Arc::new(AtomicUsize::new(0)));
    let task = || {
        let (captured, ran) = (drops.issue(), Arc::clone(&ran));
        move || {
            drop(captured);
            ran.fetch_add(1, Ordering::SeqCst);
        }
    };
    let (with_handle, without) = (group.evaluate(task()), task());
    let execute = move || {
        without();
        Ok(())
    };
    assert!(group.execute(execute).is_ok());
    let inner = group.clone();
    nest(&pool, 32, Box::new(move || inner.cancel()));
    assert_eq!(drops.count(), 0, "a worker drops them");
    gate.open();
    assert!(settled(with_handle).unwrap_err().is_cancelled());
    assert!(group.wait().unwrap_err().is_cancelled());
    assert_eq!((drops.count(), ran.load(Ordering::SeqCst)), (2, 0));
}

/// How a task waits while its group is cancelled.
#[cfg(feature = "async")]
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// For a worker.
    Queued,
    /// For a slot of its group, which a future has that waits as well.
    InLine,
    /// For a wake.
    Pending,
}

/// Groups with one task each, all of which wait so. The destructor of what a task holds cancels the
/// next group, by hand or by its token. Returns the first group and what keeps the futures.
#[cfg(feature = "async")]
fn chain(
    pool: &ThreadPool,
    waits: Waits,
    count: usize,
    drops: &Drops,
) -> (TaskGroup<&'static str>, Vec<Trigger>) {
    let mut triggers = Vec::new();
    let mut next: Option<TaskGroup<&str>> = None;
    for number in 0..count {
        let group = pool.group().limit(1);
        let (counted, after) = (drops.issue(), next.replace(group.clone()));
        let captured = OnDrop(move || {
            let _ = &counted;
            match &after {
                Some(after) if number % 2 == 0 => after.cancel(),
                Some(after) => after.token().cancel(),
                None => {}
            }
        });
        let task = move || {
            drop(captured);
            Ok(())
        };
        if let Waits::Queued = waits {
            assert!(group.execute(task).is_ok());
            continue;
        }
        let (trigger, triggered) = triggered();
        let own = group.clone();
        let future = async move {
            let mut held = Some(task);
            if let Waits::InLine = waits {
                // The only slot is that of this future.
                assert!(own.execute(held.take().unwrap()).is_ok());
            }
            drop(own);
            triggered.await;
            drop(held);
            Ok(())
        };
        assert!(group.spawn(future).is_ok());
        triggers.push(trigger);
    }
    wait_until("the futures wait", || triggers.iter().all(|trigger| trigger.polls() == 1));
    (next.expect("there is a group"), triggers)
}

/// What each group's task holds cancels the next group as it is dropped: the stack does not grow
/// with their number, whatever cancels the first one.
#[cfg(feature = "async")]
#[test]
fn a_chain_of_cancelled_groups_does_not_nest_without_bound() {
    let count = 10_000;
    let ways: [fn(&TaskGroup<&'static str>); 3] = [
        |group| group.cancel(),
        |group| group.token().cancel(),
        |group| group.set_deadline(Instant::now()),
    ];
    for waits in [Waits::Queued, Waits::InLine, Waits::Pending] {
        for cancel in ways {
            let (pool, drops) = (pool(1), Drops::default());
            let gate = if let Waits::Queued = waits { Some(block(&pool)) } else { None };
            let (first, triggers) = chain(&pool, waits, count, &drops);
            cancel(&first);
            if let Some(gate) = gate {
                gate.open();
            }
            wait_until(&format!("all are dropped that were {waits:?}"), || drops.count() == count);
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(pool.stats().panicked, 0);
            drop(triggers);
        }
    }
}

/// A task that ends cancels the first group of the chain: it fails, or has won a race.
#[cfg(feature = "async")]
#[test]
fn a_chain_of_groups_that_ends_a_group_does_not_nest_without_bound() {
    let count = 10_000;
    for wins in [false, true] {
        let (pool, drops) = (pool(2), Drops::default());
        let (first, triggers) = chain(&pool, Waits::InLine, count, &drops);
        let ends = pool.group::<&str>().limit(2);
        let ends = if wins { ends.first_success() } else { ends };
        let held = OnDrop(move || first.cancel());
        let own = ends.clone();
        let running = hold_then(&ends, move || if wins { Ok(()) } else { Err("no such host") });
        // It keeps the other slot, and what waits in line holds the chain.
        let (trigger, triggered) = triggered();
        let future = async move {
            let in_line = move || {
                drop(held);
                Ok(())
            };
            assert!(own.execute(in_line).is_ok());
            drop(own);
            triggered.await;
            Ok(())
        };
        assert!(ends.spawn(future).is_ok());
        wait_until("the future waits", || trigger.polls() == 1);
        running.open();
        wait_until("all are dropped", || drops.count() == count);
        assert_eq!(waited(&ends).is_ok(), wins);
        drop(triggers);
        assert!(pool.join_timeout(LIMIT));
    }
}

/// The only worker there has ever been goes on.
#[track_caller]
fn assert_unharmed(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.workers, stats.queued), (1, 1, 0));
}

#[test]
fn a_destructor_that_panics_in_a_cancelled_task_costs_no_worker() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let (gate, drops) = (hold(&group), Drops::default());
    for _ in 0..3 {
        let bomb = Bomb(drops.clone());
        let task = move || {
            std::mem::forget(bomb);
            Ok(())
        };
        group.execute(task).unwrap();
    }
    group.cancel();
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!((drops.count(), group.dropped_count()), (3, 3));
    assert_unharmed(&pool);
}

#[test]
fn a_destructor_that_panics_in_a_task_is_the_tasks_panic() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let bomb = Bomb(Drops::default());
    group
        .execute(move || {
            let _bomb = bomb;
            Ok(())
        })
        .unwrap();
    assert_eq!(failure(&group).to_string(), "the task panicked: a destructor");
    assert_unharmed(&pool);
}

#[test]
fn errors_and_payloads_whose_destructors_panic_cost_no_worker() {
    let pool = pool(1);
    let drops = Drops::default();
    for is_detached in [false, true] {
        let group = pool.group().keep_going();
        let gate = hold(&group);
        for panics in [false, true, false] {
            let bomb = Bomb(drops.clone());
            let task = move || if panics { panic_any(bomb) } else { Err(bomb) };
            assert!(group.execute(task).is_ok());
        }
        if is_detached {
            drop(group);
            gate.open();
        } else {
            gate.open();
            // Only the first one is returned, and goes by a panic of this thread.
            std::mem::forget(failure(&group));
        }
        assert_unharmed(&pool);
    }
    wait_until("all but one are dropped", || drops.count() == 5);
}

#[test]
fn a_destructor_may_submit_to_its_group_and_cancel_it() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let gate = hold(&group);
    let reasons = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let (own, reasons) = (group.clone(), Arc::clone(&reasons));
        let captured = OnDrop(move || {
            own.cancel();
            if own.execute(|| Ok(())).unwrap_err().reason() == RejectReason::Cancelled {
                reasons.fetch_add(1, Ordering::SeqCst);
            }
        });
        let task = move || {
            std::mem::forget(captured);
            Ok(())
        };
        assert!(group.execute(task).is_ok());
    }
    group.cancel();
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!(reasons.load(Ordering::SeqCst), 3);
    assert_unharmed(&pool);
}

/// The canceller of a group drops its tasks one after the other. The destructor of one may wait for
/// another one: of those that are unstarted, that wait for a slot, and that are pending.
#[test]
fn a_destructor_may_wait_for_another_task_of_its_cancelled_group() {
    for waits_for_slot in [false, true] {
        let pool = pool(1);
        let group = pool.group::<()>();
        let (captured, other, ended) = waits_for_another();
        let submit = move |group: &TaskGroup<()>| {
            let execute = move || {
                drop(captured);
                Ok(())
            };
            assert!(group.execute(execute).is_ok());
            *other.lock().unwrap() = Some(group.evaluate(|| ()));
        };
        let gate = if waits_for_slot {
            group.set_limit(1);
            let (own, gate) = (group.clone(), Gate::new());
            let passes = Arc::clone(&gate);
            let held = group.execute(move || {
                submit(&own);
                passes.pass();
                Ok(())
            });
            assert!(held.is_ok());
            gate.wait_for(1);
            gate
        } else {
            let gate = block(&pool);
            submit(&group);
            gate
        };
        cancel_elsewhere(&group, &gate, &ended);
        assert_unharmed(&pool);
    }
}

/// The same, for pending futures.
#[cfg(feature = "async")]
#[test]
fn a_destructor_may_wait_for_another_future_of_its_cancelled_group() {
    let pool = pool(1);
    let group = pool.group::<()>();
    let (captured, other, ended) = waits_for_another();
    let [(_first, pending), (_second, others)] = [triggered(), triggered()];
    let spawned = group.spawn(async move {
        pending.await;
        drop(captured);
        Ok(())
    });
    assert!(spawned.is_ok());
    *other.lock().unwrap() = Some(group.spawn_await(others));
    pool.evaluate(|| ()).await_complete();
    cancel_elsewhere(&group, &block(&pool), &ended);
    assert_unharmed(&pool);
}

/// The handle of the other task.
type Other = Arc<Mutex<Option<JoinHandle<()>>>>;

/// What waits for another task when it is dropped. It tells that it begins to wait, and whether that
/// task was cancelled.
fn waits_for_another() -> (impl Drop + Send + 'static, Other, mpsc::Receiver<bool>) {
    let other = Other::default();
    let (handle, (sender, receiver)) = (Arc::clone(&other), mpsc::channel());
    let captured = OnDrop(move || {
        let handle = handle.lock().unwrap().take().unwrap();
        sender.send(false).unwrap();
        sender.send(settled(handle).is_err()).unwrap();
    });
    (captured, other, receiver)
}

/// Cancels the group on a thread of its own, and opens the gate when the destructor waits.
#[track_caller]
fn cancel_elsewhere(group: &TaskGroup<()>, gate: &Gate, ended: &mpsc::Receiver<bool>) {
    let own = group.clone();
    let canceller = thread::spawn(move || own.cancel());
    assert_eq!(ended.recv_timeout(LIMIT), Ok(false));
    gate.open();
    assert_eq!(ended.recv_timeout(LIMIT), Ok(true), "the other task is cancelled");
    assert!(failure(group).is_cancelled());
    joined(canceller);
}

/// The waker of a foreign executor may run user code that waits for its own follow-up work. Here an
/// immediate shutdown drops a task that waited for a slot, which calls the waker. The waker does
/// the same to another group.
#[test]
fn a_waker_that_a_dropped_task_calls_finds_its_follow_up_work_done() {
    /// Submits a task from inside of the group, and holds the only slot that both could have.
    /// Returns what `submit` does.
    fn defer<R: Send + 'static>(
        group: &TaskGroup<&'static str>,
        submit: impl FnOnce(&TaskGroup<&'static str>) -> R + Send + 'static,
    ) -> (Arc<Gate>, R) {
        let gate = Gate::new();
        let (inside, passes) = (group.clone(), Arc::clone(&gate));
        let (send, receive) = std::sync::mpsc::channel();
        let holder = move || {
            send.send(submit(&inside)).unwrap();
            drop(inside);
            passes.pass();
            Ok(())
        };
        assert!(group.execute(holder).is_ok());
        (gate, receive.recv_timeout(LIMIT).unwrap())
    }

    /// Cancels a task where the call does not drop it, since drops do not nest deeper.
    fn cancelling(handle: JoinHandle<()>) -> JoinHandle<()> {
        let pool = pool(1);
        let gate = block(&pool);
        let (send, receive) = std::sync::mpsc::channel();
        let cancels = move || {
            handle.cancel();
            send.send(handle).unwrap();
        };
        nest(&pool, 32, Box::new(cancels));
        gate.open();
        receive.recv_timeout(LIMIT).unwrap()
    }

    /// Grants the deferred task of its group a slot, and notes how many were dropped when that call
    /// has returned.
    struct Grants(TaskGroup<&'static str>, Drops, AtomicUsize);

    impl Wake for Grants {
        fn wake(self: Arc<Self>) {
            self.0.set_limit(2);
            self.2.store(self.1.count(), Ordering::SeqCst);
        }
    }

    type Waits = Pin<Box<dyn Future<Output = ()> + Send>>;
    type Submits = fn(&TaskGroup<&'static str>) -> Waits;

    let waits_for: &[(&str, Submits)] = &[
        ("the token", |group| {
            assert!(group.execute(|| Ok(())).is_ok());
            Box::pin(group.token().cancelled())
        }),
        ("a handle", |group| Box::pin(group.evaluate(|| ()).map(drop))),
        ("a task to be gone", |group| Box::pin(cancelling(group.evaluate(|| ())).map(drop))),
        #[cfg(feature = "async")]
        ("a future's handle", |group| Box::pin(group.spawn_await(async {}).map(drop))),
        #[cfg(feature = "async")]
        ("a future to be gone", |group| {
            Box::pin(cancelling(group.spawn_await(async {})).map(drop))
        }),
    ];
    for (name, submits) in waits_for {
        let pool = pool(2);
        let (first, second) = (pool.group::<&str>().limit(1), pool.group::<&str>().limit(1));
        let drops = Drops::default();
        let dropped = drops.issue();
        let (gate, mut waits) = defer(&first, *submits);
        let (other_gate, ()) = defer(&second, move |group| {
            let deferred = move || {
                drop(dropped);
                Ok(())
            };
            assert!(group.execute(deferred).is_ok());
        });
        let grants = Arc::new(Grants(second.clone(), drops, AtomicUsize::new(usize::MAX)));
        let waker = Waker::from(Arc::clone(&grants));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "{name}");
        assert_eq!(pool.shutdown_now().len(), 0);
        gate.open();
        let _ = common::waited(&first);
        wait_until("the waker was called", || grants.2.load(Ordering::SeqCst) < usize::MAX);
        assert_eq!(
            grants.2.load(Ordering::SeqCst),
            1,
            "{name}: not dropped when the grant returned"
        );
        other_gate.open();
        assert!(failure(&second).is_cancelled());
        pool.shutdown_join();
    }
}

// ----- when they run -----

/// A value whose destructor notes how many tasks are under way.
fn looks(group: &TaskGroup<&'static str>, seen: &Arc<AtomicUsize>) -> impl Send + Unpin + 'static {
    let (own, seen) = (group.clone(), Arc::clone(seen));
    OnDrop(move || seen.store(under_way(&own), Ordering::SeqCst))
}

#[test]
fn a_task_is_under_way_until_it_has_been_dropped() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let seen = Arc::new(AtomicUsize::new(0));
    let (inside, notes) = (group.clone(), Arc::clone(&seen));
    group
        .execute(move || {
            let captured = looks(&inside, &notes);
            let deferred = move || {
                std::mem::forget(captured);
                Ok(())
            };
            assert!(inside.execute(deferred).is_ok());
            inside.cancel();
            Ok(())
        })
        .unwrap();
    assert!(failure(&group).is_cancelled());
    assert_eq!(seen.load(Ordering::SeqCst), 2, "this one and its submitter");

    let group = group.limit(2);
    let gate = hold(&group);
    let captured = looks(&group, &seen);
    let queued = move || {
        std::mem::forget(captured);
        Ok(())
    };
    assert!(group.execute(queued).is_ok());
    group.cancel();
    assert_eq!(seen.load(Ordering::SeqCst), 2, "this one and the one that runs");
    gate.open();
    assert!(failure(&group).is_cancelled());
}

#[cfg(feature = "async")]
#[test]
fn a_future_is_under_way_until_it_has_been_dropped() {
    /// A future with a capture, ready at its first poll or never.
    struct Keeps<C>(
        std::task::Poll<Result<(), &'static str>>,
        #[allow(dead_code, reason = "its drop is what matters")] C,
    );

    impl<C: Unpin> std::future::Future for Keeps<C> {
        type Output = Result<(), &'static str>;

        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Self::Output> {
            self.0
        }
    }

    let pool = pool(1);
    let group = pool.group::<&str>();
    let seen = Arc::new(AtomicUsize::new(0));
    assert!(group.spawn(Keeps(std::task::Poll::Ready(Ok(())), looks(&group, &seen))).is_ok());
    assert!(common::waited(&group).is_ok());
    assert_eq!(seen.swap(0, Ordering::SeqCst), 1);
    // This one can never be woken.
    assert!(group.spawn(Keeps(std::task::Poll::Pending, looks(&group, &seen))).is_ok());
    assert!(failure(&group).is_cancelled());
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}
