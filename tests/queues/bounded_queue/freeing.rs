//! What frees capacity.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::bounded_queue::{Submitter, assert_capacity, pool};
use crate::common::{Gate, LIMIT, block, dawdle, refused, settled, value, wait_until};
use elastipool::{JoinHandle, RejectReason, ThreadPool, blocking};

#[test]
fn a_canceller_frees_the_permit_of_a_queued_task() {
    let pool = pool(1, 1);
    let gate = block(&pool);
    let queued = pool.evaluate(|| ());
    refused(pool.try_execute(|| ()), RejectReason::Full);
    let submitter = Submitter::waiting(&pool, |pool| pool.evaluate(|| 7));
    queued.cancel();
    assert!(settled(queued).unwrap_err().is_cancelled());
    let submitted = submitter.finish();
    refused(pool.try_execute(|| ()), RejectReason::Full);
    gate.open();
    assert_eq!(value(submitted), 7);
    assert_capacity(&pool, 1);
}

/// Submits a task without waiting for capacity, and cancels it. `false` if there is none.
type Cancelled = fn(&ThreadPool) -> bool;

/// Beside a busy worker the memory of cancelled tasks is bounded: as many as the capacity leave
/// their entries without a permit.
#[test]
fn entries_of_cancelled_tasks_do_not_pile_up() {
    let kinds: &[Cancelled] = &[
        |pool| pool.try_evaluate(|| ()).map(JoinHandle::cancel_on_drop).is_ok(),
        |pool| pool.try_complete(async {}).is_ok_and(|handle| handle.cancel_and_wait().is_err()),
        |pool| {
            let group = pool.group::<()>();
            let is_accepted = group.try_execute(|| Ok(())).is_ok();
            group.cancel();
            is_accepted
        },
        #[cfg(feature = "async")]
        |pool| {
            let handle = pool.try_spawn_await(std::future::pending::<()>());
            handle.is_ok_and(|handle| {
                handle.abort_handle().cancel();
                true
            })
        },
    ];
    for cancelled in kinds {
        for capacity in [0, 4] {
            let pool = pool(1, capacity);
            let gate = block(&pool);
            let accepted = (0..100).take_while(|_| cancelled(&pool)).count();
            assert_eq!(accepted, 2 * capacity, "then all permits are kept");
            let stats = pool.stats();
            assert_eq!((stats.queued, stats.cancelled), (0, accepted));
            let submitter = Submitter::waiting(&pool, |pool| pool.evaluate(|| 7));
            gate.open();
            assert_eq!(value(submitter.finish()), 7);
            assert_capacity(&pool, capacity);
            assert_eq!(pool.stats().queued, 0);
        }
    }
}

/// The queue of a view gives the entries back.
#[test]
fn a_view_keeps_no_entries_of_cancelled_tasks() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&pool);
    let mut newest = view.evaluate(|| ());
    for _ in 0..100 {
        newest.cancel();
        newest = view.try_evaluate(|| ()).expect("there is capacity");
    }
    newest.cancel();
    assert_eq!((view.stats().queued, pool.stats().queued), (0, 0));
    gate.open();
    assert_capacity(&pool, 1);
}

/// What is left in the queue when the pool is shut down.
#[test]
fn shutdown_now_beside_entries_of_cancelled_tasks() {
    let pool = pool(1, 2);
    let gate = block(&pool);
    for _ in 0..4 {
        drop(pool.evaluate(|| ()).cancel_on_drop());
    }
    let submitter = Submitter::waiting(&pool, |pool| pool.try_evaluate_for(|| (), LIMIT));
    assert_eq!(pool.shutdown_now().len(), 0);
    refused(submitter.finish(), RejectReason::Closed);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().cancelled, 4);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A worker that waits for a permit which a stale entry has kept: another one takes the entry.
#[test]
fn a_worker_may_cancel_any_number_of_its_tasks() {
    for capacity in [0, 1, 8] {
        for max_size in [1, 2] {
            let pool = pool(max_size, capacity);
            let inner = pool.clone();
            let cancels = pool.evaluate(move || {
                for _ in 0..200 {
                    drop(inner.evaluate(|| ()).cancel_on_drop());
                }
                inner.evaluate(|| 7).await_complete()
            });
            assert_eq!(value(cancels), 7);
            assert_capacity(&pool, capacity);
        }
    }
}

#[test]
fn a_raised_max_size_admits_waiting_submitters() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let submitters = [(); 3].map(|()| {
        let gate = Arc::clone(&gate);
        Submitter::waiting(&pool, move |pool| pool.evaluate(move || gate.pass()))
    });
    pool.set_max_size(3).unwrap();
    // Two of them, on workers of their own.
    gate.wait_for(3);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    let returned = || submitters.iter().filter(|submitter| submitter.thread.is_finished()).count();
    wait_until("two have returned", || returned() == 2);
    submitters[2].wait_until_it_waits();
    gate.open();
    submitters.into_iter().map(Submitter::finish).for_each(value);
    assert_capacity(&pool, 0);
    pool.set_max_size(1).unwrap();
    assert_capacity(&pool, 0);
}

#[test]
fn a_worker_that_enters_a_region_frees_capacity() {
    let pool = pool(1, 0);
    let (enters, leaves, ends) = (Gate::new(), Gate::new(), Gate::new());
    let gates = [Arc::clone(&enters), Arc::clone(&leaves), Arc::clone(&ends)];
    pool.execute(move || {
        gates[0].pass();
        blocking(|| gates[1].pass());
        gates[2].pass();
    });
    enters.wait_for(1);
    let submitter = Submitter::waiting(&pool, |pool| pool.evaluate(|| 7));
    enters.open();
    assert_eq!(value(submitter.finish()), 7);
    leaves.wait_for(1);
    wait_until("the other worker is free", || pool.idle_worker_count() == 1);
    pool.try_execute(|| ()).expect("a worker is free");
    // Back at work: as many as may be are running, and the other worker, which is idle, frees no
    // capacity.
    leaves.open();
    ends.wait_for(1);
    wait_until("it runs alone", || pool.stats().active == 1 && pool.idle_worker_count() == 1);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    ends.open();
    assert_capacity(&pool, 0);
}

#[test]
fn a_task_above_max_size_takes_a_place_in_the_queue() {
    // After a region.
    let pool = pool(1, 1);
    let (leaves, ends) = (Gate::new(), Gate::new());
    let gates = [Arc::clone(&leaves), Arc::clone(&ends)];
    pool.execute(move || {
        blocking(|| gates[0].pass());
        gates[1].pass();
    });
    leaves.wait_for(1);
    let other = Arc::clone(&ends);
    pool.execute(move || other.pass());
    ends.wait_for(1);
    leaves.open();
    ends.wait_for(2);
    assert_eq!(pool.queued_count(), 0);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    ends.open();
    assert_capacity(&pool, 1);
    // After `max_size` was lowered.
    pool.set_max_size(3).unwrap();
    let gate = Gate::new();
    for _ in 0..2 {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.pass());
    }
    gate.wait_for(2);
    pool.set_max_size(1).unwrap();
    refused(pool.try_execute(|| ()), RejectReason::Full);
    gate.open();
    assert_capacity(&pool, 1);
}

/// The thread that starts another one calls it: also a worker between two tasks.
#[test]
fn a_thread_name_function_may_block() {
    let named = Arc::new(AtomicUsize::new(0));
    let names = Arc::clone(&named);
    let builder = ThreadPool::builder().core_size(0).max_size(2).queue_capacity(4);
    let pool = builder
        .keep_alive(Duration::from_millis(1))
        .thread_name(move |index| {
            blocking(|| dawdle(100));
            names.fetch_add(1, Ordering::SeqCst);
            format!("named {index}")
        })
        .build();
    for _ in 0..100 {
        value(pool.evaluate(|| ()));
        let gate = Gate::new();
        for _ in 0..2 {
            let meets = Arc::clone(&gate);
            pool.execute(move || meets.meet(2));
        }
        gate.wait_for(2);
        assert!(pool.join_timeout(LIMIT));
        wait_until("none is left", || pool.current_worker_count() == 0);
    }
    assert_eq!(pool.stats().blocked, 0);
    assert!(named.load(Ordering::SeqCst) >= pool.stats().threads_started);
    assert_capacity(&pool, 4);
}
