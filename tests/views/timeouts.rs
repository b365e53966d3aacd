//! `queue_timeout`: tasks that are not started in time. Time is the subject, so the tests sleep
//! past deadlines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use elastipool::{Builder, ScopedJoinHandle, View};

#[cfg(feature = "async")]
use crate::common::wait_until;
use crate::common::{Gate, HOUR, block, joined};
use crate::pool;

const SHORT: Duration = Duration::from_millis(2);

/// Counts its drop.
struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn expired(view: &View) {
    view.join();
    let stats = view.stats();
    assert_eq!((stats.completed, stats.expired, stats.cancelled), (0, 1, 0));
}

/// Its closure is dropped and never called, and the statistics count it once: the view's and the
/// pool's.
#[test]
fn a_task_that_is_late_is_dropped() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = OnDrop(Arc::clone(&dropped));
    view.execute(move || {
        let _guard = guard;
        unreachable!("it is late");
    });
    std::thread::sleep(2 * SHORT);
    assert_eq!(dropped.load(Ordering::SeqCst), 0, "a worker drops it");
    gate.open();
    expired(&view);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    pool.join();
    assert_eq!((pool.stats().expired, pool.stats().accepted()), (1, 2));
    pool.shutdown_join();
}

/// One that is started in time runs to its end, however long that takes.
#[test]
fn a_task_that_is_in_time_runs() {
    let pool = pool(1, 1);
    let hour = pool.view().queue_timeout(HOUR).build();
    assert_eq!(hour.evaluate(|| 1).await_complete(), 1);
    let forever = pool.view().queue_timeout(Duration::MAX).build();
    assert_eq!(forever.evaluate(|| 2).await_complete(), 2);
    let short = pool.view().queue_timeout(Duration::from_secs(5)).build();
    let long = move || std::thread::sleep(Duration::from_millis(5500));
    short.evaluate(long).await_complete();
}

/// In a bounded queue the time begins when there is capacity: a task that waits for it is not
/// queued yet.
#[test]
fn a_wait_for_capacity_does_not_count() {
    let ways: [fn(&View, u32) -> u32; 3] = [
        |view, number| view.evaluate(move || number).await_complete(),
        |view, number| {
            let (sender, receiver) = mpsc::channel();
            view.execute(move || sender.send(number).expect("this thread waits for it"));
            receiver.recv().expect("it has not expired")
        },
        |view, number| {
            let (sender, receiver) = mpsc::channel();
            let send = move |number| sender.send(number).expect("this thread waits for it");
            view.handler(send).invoke(number);
            receiver.recv().expect("it has not expired")
        },
    ];
    let pool = Builder::new().core_size(1).max_size(1).queue_capacity(0).build();
    let view = pool.view().queue_timeout(Duration::from_secs(1)).build();
    let gate = block(&pool);
    let submitters = ways.map(|way| {
        let view = view.clone();
        std::thread::spawn(move || way(&view, 7))
    });
    std::thread::sleep(Duration::from_millis(1500));
    gate.open();
    for submitter in submitters {
        assert_eq!(joined(submitter), 7);
    }
    pool.shutdown_join();
}

/// A blocking wait returns at the deadline, while the worker is still busy.
#[test]
fn a_blocking_wait_returns_at_the_deadline() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    let begin = Instant::now();
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = OnDrop(Arc::clone(&dropped));
    let handle = view.evaluate(move || {
        let _guard = guard;
        unreachable!("it is late");
    });
    let error = handle.try_await_complete().map(|(): ()| ()).unwrap_err();
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "the waiter has dropped it");
    assert_eq!((view.stats().expired, view.stats().in_flight(), view.stats().queued), (1, 0, 0));
    assert!(error.is_expired() && !error.is_cancelled() && !error.is_panic());
    assert!(begin.elapsed() >= SHORT);
    assert!(error.to_string().contains("expired"));
    let handle = view.evaluate(|| ());
    let error = handle.await_complete_timeout(HOUR).unwrap().unwrap_err();
    assert!(error.is_expired());
    gate.open();
    view.join();
    assert_eq!(view.stats().expired, 2);
}

/// A wait with an earlier limit of its own ends then, and the handle comes back.
#[test]
fn a_shorter_wait_ends_before_the_deadline() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(HOUR).build();
    let gate = block(&pool);
    let handle = view.evaluate(|| 1).await_complete_timeout(SHORT).unwrap_err();
    gate.open();
    assert_eq!(handle.await_complete(), 1);
}

/// A wait that passes the deadline of a running task goes on.
#[test]
fn a_wait_outlasts_the_deadline_of_a_started_task() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(Duration::from_secs(5)).build();
    let begun = Gate::new();
    let opens = Arc::clone(&begun);
    let handle = view.evaluate(move || {
        opens.open();
        std::thread::sleep(Duration::from_millis(5500));
        7
    });
    begun.pass();
    assert_eq!(handle.await_complete(), 7);
}

/// An awaited handle resolves when a worker reaches the task.
#[cfg(feature = "async")]
#[test]
fn an_awaited_handle_resolves_when_a_worker_comes() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    let handle = view.evaluate(|| ());
    let awaits = std::thread::spawn(|| async_io::block_on(handle));
    std::thread::sleep(2 * SHORT);
    assert!(!awaits.is_finished());
    gate.open();
    assert!(awaits.join().unwrap().unwrap_err().is_expired());
}

/// Of a future, the first poll must come in time.
#[cfg(feature = "async")]
#[test]
fn a_future_expires_before_its_first_poll_only() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    let late = view.spawn_await(async { unreachable!("it is late") });
    std::thread::sleep(2 * SHORT);
    gate.open();
    assert!(late.try_await_complete().map(|(): ()| ()).unwrap_err().is_expired());
    expired(&view);

    let view = pool.view().queue_timeout(Duration::from_secs(2)).build();
    let (sender, receiver) = futures::channel::oneshot::channel::<u32>();
    let polled = view.spawn_await(receiver);
    wait_until("it is pending", || view.stats().pending == 1);
    std::thread::sleep(Duration::from_millis(2100));
    sender.send(7).unwrap();
    assert_eq!(polled.await_complete(), Ok(7));
}

/// A worker that waits for an expired task does not run it.
#[test]
fn a_waiter_does_not_run_an_expired_task() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let inner = view.clone();
    let outcome = pool.evaluate(move || {
        let handle = inner.evaluate(|| unreachable!("it is late"));
        std::thread::sleep(2 * SHORT);
        handle.try_await_complete().map(|(): ()| ()).unwrap_err().is_expired()
    });
    assert!(outcome.await_complete());
    expired(&view);
}

/// A task that was cancelled in time is cancelled, one that has expired stays expired.
#[test]
fn cancelling_and_expiring_exclude_each_other() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let hour = pool.view().queue_timeout(HOUR).build();
    let gate = block(&pool);
    let cancelled = hour.evaluate(|| ());
    cancelled.cancel();
    assert!(cancelled.try_await_complete().unwrap_err().is_cancelled());
    let late = view.evaluate(|| ());
    std::thread::sleep(2 * SHORT);
    late.cancel();
    assert!(late.try_await_complete().unwrap_err().is_expired());
    let late = view.evaluate(|| ());
    std::thread::sleep(2 * SHORT);
    gate.open();
    assert!(late.cancel_and_wait().unwrap_err().is_expired());
    pool.join();
    assert_eq!((view.stats().expired, view.stats().cancelled), (2, 0));
    assert_eq!((hour.stats().expired, hour.stats().cancelled), (0, 1));
    // Cancelled by a worker, which drops it itself.
    let inner = view.clone();
    let is_expired = pool.evaluate(move || {
        let late = inner.evaluate(|| ());
        std::thread::sleep(2 * SHORT);
        late.cancel_and_wait().unwrap_err().is_expired()
    });
    assert!(is_expired.await_complete());
    pool.join();
    assert_eq!(view.stats().expired, 3);
}

/// Tasks of groups and scopes expire too, and their owners learn of it.
#[test]
fn groups_and_scopes_report_expired_tasks() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    let group = view.group::<()>().keep_going();
    group.execute(|| unreachable!("it is late")).unwrap();
    let handle = group.evaluate(|| ());
    std::thread::sleep(2 * SHORT);
    gate.open();
    assert!(handle.try_await_complete().unwrap_err().is_expired());
    assert!(group.wait().unwrap_err().is_cancelled());
    assert_eq!(group.dropped_count(), 2);
    view.join();
    assert_eq!(view.stats().expired, 2);

    let gate = block(&pool);
    let caught = std::panic::catch_unwind(|| {
        view.scope(|scope| {
            scope.execute(|| unreachable!("it is late"));
            let handle = scope.evaluate(|| ());
            std::thread::sleep(2 * SHORT);
            assert!(handle.try_await_complete().unwrap_err().is_expired());
        });
    });
    let text = *caught.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("expired in the queue of a view"), "{text}");
    gate.open();
    view.join();
    assert_eq!(view.stats().expired, 4);
    pool.shutdown_join();
}

/// A handler's call expires as well.
#[test]
fn a_call_of_a_handler_expires() {
    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let handler = view.handler(|_: u32| unreachable!("it is late"));
    let gate = block(&pool);
    handler.invoke(7);
    std::thread::sleep(2 * SHORT);
    gate.open();
    expired(&view);
}

/// Each task either runs or expires, and each handle says which.
#[test]
fn each_task_runs_or_expires() {
    let pool = pool(0, 2);
    for _ in 0..20 {
        let view = pool.view().queue_timeout(Duration::from_micros(200)).build();
        let ran = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..200)
            .map(|_| {
                let ran = Arc::clone(&ran);
                view.evaluate(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    crate::common::dawdle(200);
                })
            })
            .collect();
        let results: Vec<_> =
            handles.into_iter().map(|handle| handle.try_await_complete()).collect();
        view.join();
        let completed = results.iter().filter(|result| result.is_ok()).count();
        let expired = results.iter().flat_map(Result::as_ref).count();
        assert_eq!(completed, expired);
        let stats = view.stats();
        assert_eq!((stats.completed, stats.expired), (completed, 200 - completed));
        assert_eq!(ran.load(Ordering::Relaxed), completed);
        assert!(
            results
                .iter()
                .all(|result| result.as_ref().map_or_else(|error| error.is_expired(), |()| true))
        );
    }
    pool.shutdown_join();
}

/// A future that was handed back expires as in the queue: not once it was started.
#[cfg(feature = "async")]
#[test]
fn a_future_that_was_handed_back_expires_until_it_is_started() {
    let pool = pool(1, 1);
    // Long enough for a thread to start it in time on a busy machine.
    let timeout = Duration::from_secs(5);
    let (short, long) =
        (pool.view().queue_timeout(SHORT).build(), pool.view().queue_timeout(timeout).build());
    let gate = block(&pool);
    let late = short.spawn_await(async { unreachable!("it is late") });
    let (sender, receiver) = futures::channel::oneshot::channel();
    let in_time = long.spawn_await(async move { receiver.await.unwrap() });
    let mut tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 2);
    let started = std::thread::spawn({
        let task = tasks.pop().unwrap();
        move || task.run()
    });
    // The deadlines of both pass; one of the futures has been started.
    std::thread::sleep(timeout + SHORT);
    tasks.into_iter().for_each(|task| task.run());
    sender.send(7).unwrap();
    started.join().unwrap();
    let results: [Result<i32, _>; 2] = [late.try_await_complete(), in_time.try_await_complete()];
    assert!(results[0].as_ref().is_err_and(|error| error.is_expired()), "{results:?}");
    assert!(matches!(results[1], Ok(7)), "{results:?}");
    gate.open();
}

/// The deadline of a cancelled task may have passed: a wait until it is gone returns, on whichever
/// thread it is dropped.
#[test]
fn a_wait_for_a_cancelled_task_that_has_expired_returns() {
    let timeout = Duration::from_secs(1);
    let in_line = {
        let pool = pool(2, 2);
        let group = pool.view().queue_timeout(timeout).build().group::<()>().limit(1);
        let (gate, inner, (sender, receiver)) = (Gate::new(), group.clone(), mpsc::channel());
        let passes = Arc::clone(&gate);
        group
            .execute(move || {
                // Its slot is taken. A worker does not wait in line itself.
                sender.send(inner.evaluate(|| ())).unwrap();
                passes.pass();
                Ok(())
            })
            .unwrap();
        (receiver.recv().unwrap(), gate)
    };
    let handed_back = {
        let pool = pool(1, 1);
        let gate = block(&pool);
        let handle = pool.view().queue_timeout(timeout).build().evaluate(|| ());
        let tasks = pool.shutdown_now();
        assert_eq!(tasks.len(), 1);
        (handle, gate, tasks)
    };
    std::thread::sleep(timeout + SHORT);
    assert!(joined(std::thread::spawn(move || in_line.0.cancel_and_wait())).is_err());
    in_line.1.open();
    let (handle, gate, tasks) = handed_back;
    let waits = std::thread::spawn(move || handle.cancel_and_wait());
    drop(tasks);
    assert!(joined(waits).is_err());
    gate.open();
}

/// What each of them holds waits for the next one as it is dropped: the stack does not grow with
/// their number.
#[test]
fn a_chain_of_late_tasks_of_a_scope_does_not_nest_without_bound() {
    struct Waits<'scope>(Option<ScopedJoinHandle<'scope, ()>>);

    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            if let Some(handle) = self.0.take() {
                assert!(handle.try_await_complete().unwrap_err().is_expired());
            }
        }
    }

    let pool = pool(1, 1);
    let view = pool.view().queue_timeout(SHORT).build();
    let gate = block(&pool);
    view.scope(|scope| {
        let last = (0..10_000)
            .fold(Waits(None), |next, _| Waits(Some(scope.evaluate(move || drop(next)))));
        std::thread::sleep(2 * SHORT);
        drop(last);
    });
    assert_eq!(view.stats().expired, 10_000);
    gate.open();
    pool.shutdown_join();
}
