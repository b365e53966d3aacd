//! `JoinHandle::abort_handle` cancels from elsewhere, `cancel_on_drop` when the handle goes.

use crate::common;

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use common::{Drops, Gate, HOUR, LIMIT, block, hold, joined, millis, settled, value, waited};
use elastipool::{AbortHandle, Builder, JoinHandle, ThreadPool};

fn pool() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

/// A task of each kind, of a pool whose only worker is busy. Each holds a clone of what it has
/// captured.
fn tasks(pool: &ThreadPool, captured: &(impl Clone + Send + 'static)) -> Vec<JoinHandle<()>> {
    let [closure, completed, grouped] = [(); 3].map(|()| captured.clone());
    let group = pool.group::<()>();
    vec![
        pool.evaluate(move || drop(closure)),
        pool.complete(async move { drop(completed) }),
        group.evaluate(move || drop(grouped)),
        #[cfg(feature = "async")]
        pool.spawn_await({
            let captured = captured.clone();
            async move { drop(captured) }
        }),
    ]
}

#[test]
fn it_may_be_shared_with_any_thread() {
    fn check<T: Clone + Send + Sync + UnwindSafe + RefUnwindSafe + Unpin + 'static>() {}
    check::<AbortHandle>();
}

/// The canceller drops what the tasks hold, whether their handles exist or not.
#[test]
fn it_cancels_what_has_not_been_started() {
    let pool = pool();
    let view = pool.view().build();
    let gate = block(&pool);
    for (target, keeps) in [(&pool, true), (&pool, false), (&*view, true), (&*view, false)] {
        let captured = Arc::new(());
        let handles = tasks(target, &captured);
        let stops: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
        let count = stops.len();
        let handles = keeps.then_some(handles);
        assert_eq!(Arc::strong_count(&captured), 1 + count);
        let clones = stops.clone();
        joined(thread::spawn(move || clones.iter().for_each(AbortHandle::cancel)));
        assert_eq!(Arc::strong_count(&captured), 1, "they are gone");
        assert_eq!(target.queued_count(), 0);
        for handle in handles.into_iter().flatten() {
            assert!(settled(handle).unwrap_err().is_cancelled());
        }
        stops.iter().for_each(AbortHandle::cancel);
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().completed, 1);
}

#[test]
fn it_comes_too_late_for_a_closure_that_runs_and_a_task_that_has_ended() {
    let pool = pool();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let running = pool.evaluate(move || {
        passes.pass();
        1
    });
    gate.wait_for(1);
    let stop = running.abort_handle();
    stop.cancel();
    gate.open();
    assert_eq!(value(running), 1);
    stop.cancel();
    pool.close();
    let refused = pool.evaluate(|| 1);
    refused.abort_handle().cancel();
    assert!(settled(refused).unwrap_err().is_closed());
    drop(pool);
    stop.cancel();
}

/// It keeps neither what the task has captured nor its result, nor the pool.
#[test]
fn it_keeps_nothing_of_a_task_that_has_ended() {
    let pool = pool();
    let drops = Drops::default();
    let (captured, result) = (drops.issue(), drops.issue());
    let handle = pool.evaluate(move || {
        drop(captured);
        result
    });
    let stop = handle.abort_handle();
    drop(value(handle));
    assert_eq!(drops.count(), 2);
    let late = drops.issue();
    let handle = pool.evaluate(move || late);
    let other = handle.abort_handle();
    pool.join();
    drop(handle);
    assert_eq!(drops.count(), 3, "the result goes with the handle");
    assert!(pool.shutdown_join_timeout(LIMIT), "the threads are gone");
    stop.cancel();
    other.cancel();
}

#[cfg(feature = "async")]
#[test]
fn it_cancels_a_pending_future() {
    use common::{triggered, wait_until};

    let pool = pool();
    for is_dropped in [false, true] {
        let (trigger, future) = triggered();
        let drops = Drops::default();
        let held = drops.issue();
        let handle = pool.spawn_await(async move {
            future.await;
            drop(held);
        });
        // While a worker still polls it, that worker drops it.
        wait_until("it is pending", || trigger.waker().is_some() && pool.idle_worker_count() == 1);
        let stop = handle.abort_handle();
        if is_dropped {
            drop(handle.cancel_on_drop());
        } else {
            stop.cancel();
            assert!(settled(handle).unwrap_err().is_cancelled());
        }
        assert_eq!(drops.count(), 1);
    }
    assert!(pool.join_timeout(LIMIT));
}

/// A canceller that comes after the timeout finds the task expired.
#[test]
fn a_late_task_has_expired() {
    let pool = pool();
    let view = pool.view().queue_timeout(millis(1)).build();
    let gate = block(&pool);
    let handle = view.evaluate(|| ());
    let stop = handle.abort_handle();
    thread::sleep(millis(2));
    stop.cancel();
    assert!(settled(handle).unwrap_err().is_expired());
    gate.open();
}

#[test]
fn a_dropped_handle_cancels_if_it_was_asked_to() {
    let pool = pool();
    let gate = block(&pool);
    let captured = Arc::new(());
    for handle in tasks(&pool, &captured) {
        drop(handle.cancel_on_drop());
    }
    assert_eq!(Arc::strong_count(&captured), 1);
    // By a panic, too.
    let handle = pool.evaluate({
        let captured = Arc::clone(&captured);
        move || drop(captured)
    });
    let handle = handle.cancel_on_drop();
    let unwinds = AssertUnwindSafe(|| {
        let _handle = handle;
        panic!("on purpose");
    });
    assert!(catch_unwind(unwinds).is_err());
    assert_eq!((Arc::strong_count(&captured), pool.queued_count()), (1, 0));
    // A wait that fails returns the handle, which still cancels.
    let late = pool.evaluate(|| 1).cancel_on_drop();
    let late = late.await_complete_timeout(millis(1)).unwrap_err();
    drop(late);
    assert_eq!(pool.queued_count(), 0);
    // Those that are waited for give their results.
    let awaited = pool.evaluate(|| 2).cancel_on_drop();
    gate.open();
    assert_eq!(value(awaited), 2);
    pool.join();
    assert_eq!(pool.stats().completed, 2);
}

/// Asking a second time changes nothing: the task runs, and the drop of the handle cancels it.
#[test]
fn a_handle_may_be_asked_to_cancel_twice() {
    let pool = pool();
    let gate = block(&pool);
    let captured = Arc::new(());
    for handle in tasks(&pool, &captured) {
        let count = Arc::strong_count(&captured);
        let handle = handle.cancel_on_drop().cancel_on_drop();
        assert_eq!(Arc::strong_count(&captured), count, "it is still queued");
        drop(handle.cancel_on_drop());
        assert_eq!(Arc::strong_count(&captured), count - 1);
    }
    let awaited = pool.evaluate(|| 1).cancel_on_drop().cancel_on_drop();
    gate.open();
    assert_eq!(value(awaited), 1);
}

/// What a task of a group holds until it is started: its place in the line, its slot, and a permit
/// of the bounded queue.
#[test]
fn slots_and_permits_are_free_at_once() {
    let pool = Builder::new().core_size(1).max_size(1).queue_capacity(2).build();
    let group = pool.group::<()>().limit(2);
    let drops = Drops::default();
    for _ in 0..100 {
        let gate = hold(&group);
        let held = drops.issue();
        let slot = group.try_evaluate(move || drop(held)).expect("there is a slot");
        assert!(group.try_evaluate(|| ()).is_err(), "the group is full");
        let permit = pool.try_evaluate(|| ()).expect("there is a permit");
        assert!(pool.try_evaluate(|| ()).is_err(), "the queue is full");
        slot.abort_handle().cancel();
        drop(permit.cancel_on_drop());
        assert_eq!(pool.queued_count(), 0);
        assert!(group.try_execute(|| Ok(())).is_ok() && pool.try_execute(|| ()).is_ok());
        // The worker comes to the entries.
        gate.open();
        assert!(waited(&group).is_ok() && pool.join_timeout(LIMIT));
    }
    assert_eq!(drops.count(), 100);
}

/// Its task submits to a full group: the new task waits in line for its slot.
#[test]
fn a_task_that_waits_for_a_slot_leaves_the_line() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let group = pool.group::<()>().limit(1);
    let drops = Drops::default();
    let (own, held) = (group.clone(), drops.issue());
    let submits = group.evaluate(move || {
        let waits = own.evaluate(move || drop(held));
        let stop = waits.abort_handle();
        assert_eq!(common::in_line(&own), 1);
        stop.cancel();
        (common::in_line(&own), waits)
    });
    let (in_line, waits) = value(submits);
    assert_eq!((in_line, drops.count()), (0, 1));
    assert!(settled(waits).unwrap_err().is_cancelled());
    assert!(waited(&group).is_ok());
}
