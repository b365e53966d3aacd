//! Law 2, settled: every handle resolves, to the value, to the panic's payload, or to cancelled, and
//! nobody waits for ever on a task that will not run.

mod common;

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{CountingWaker, Drops, Gate, HOUR, LIMIT, block, panic_text, settled, wait_until};
use elastipool::{Builder, JoinError, JoinHandle, RejectReason, Rejected, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(max_size.min(2), max_size, HOUR)
}

#[track_caller]
fn cancelled<T: std::fmt::Debug>(handle: JoinHandle<T>) {
    let error = settled(handle).expect_err("there can be no value");
    assert!(error.is_cancelled(), "{error}");
}

#[track_caller]
fn panicked<T: std::fmt::Debug>(handle: JoinHandle<T>) -> Box<dyn Any + Send> {
    settled(handle).expect_err("there can be no value").into_panic()
}

/// A task of `pool` that returns 1 when the gate opens.
fn slow(pool: &ThreadPool) -> (JoinHandle<u8>, Arc<Gate>) {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        1
    });
    (handle, gate)
}

/// Panics when it is dropped.
struct DropBomb;

impl Drop for DropBomb {
    fn drop(&mut self) {
        panic!("dropped the bomb");
    }
}

/// A payload that is not a text.
#[derive(Debug, PartialEq)]
struct Typed(u32);

/// A payload that cannot be shared between threads.
struct SendOnly(std::cell::Cell<u32>);

// ----- to the value -----

#[test]
fn a_value_comes_back() {
    let pool = pool(2);
    assert_eq!(settled(pool.evaluate(|| 1)).unwrap(), 1);
    assert_eq!(settled(pool.try_evaluate(|| 2).unwrap()).unwrap(), 2);
    assert_eq!(settled(pool.complete(async { 3 })).unwrap(), 3);
    assert_eq!(settled(pool.try_complete(async { 4 }).unwrap()).unwrap(), 4);
    assert_eq!(pool.evaluate(|| 5).await_complete(), 5);
    assert_eq!(pool.evaluate(|| 6).try_await_complete().unwrap(), 6);
}

#[cfg(feature = "async")]
#[test]
fn a_value_comes_back_from_a_spawned_future() {
    let pool = pool(2);
    assert_eq!(settled(pool.spawn_await(async { 1 })).unwrap(), 1);
    assert_eq!(settled(pool.try_spawn_await(async { 2 }).unwrap()).unwrap(), 2);
    let (sender, receiver) = futures::channel::oneshot::channel();
    let handle = pool.spawn_await(receiver);
    sender.send(3).unwrap();
    assert_eq!(handle.await_complete().unwrap(), 3);
}

/// Wherever it lies, and however it ends: from its first poll on it is not moved.
#[cfg(feature = "async")]
#[test]
fn a_spawned_future_of_any_size_and_alignment_stays_where_it_is() {
    use std::pin::Pin;

    #[repr(align(16))]
    struct Loose;
    #[repr(align(4096))]
    struct Strict;

    type End = fn(usize) -> Poll<usize>;

    /// Is woken once, and ends at its second poll.
    struct Placed<A, const BYTES: usize> {
        _alignment: [A; 0],
        bytes: [u8; BYTES],
        place: Option<usize>,
        end: End,
        /// Told once if it was not moved.
        in_place: Arc<AtomicUsize>,
    }

    impl<A, const BYTES: usize> Placed<A, BYTES> {
        fn address(&self) -> usize {
            std::ptr::from_ref(self).addr()
        }
    }

    impl<A, const BYTES: usize> Future for Placed<A, BYTES>
    where
        A: Unpin,
    {
        type Output = usize;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
            if self.place.is_none() {
                assert_eq!(self.address() % align_of::<A>(), 0);
                self.place = Some(self.address());
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            (self.end)(self.bytes.iter().copied().map(usize::from).sum())
        }
    }

    impl<A, const BYTES: usize> Drop for Placed<A, BYTES> {
        fn drop(&mut self) {
            let is_in_place = self.place == Some(self.address());
            self.in_place.fetch_add(usize::from(is_in_place), Ordering::Relaxed);
        }
    }

    fn check<A: Send + Unpin + 'static, const BYTES: usize>(pool: &ThreadPool) {
        let in_place = Arc::new(AtomicUsize::new(0));
        let placed = |end| Placed::<A, BYTES> {
            _alignment: [],
            bytes: [1; BYTES],
            place: None,
            end,
            in_place: Arc::clone(&in_place),
        };
        assert_eq!(settled(pool.spawn_await(placed(Poll::Ready))).unwrap(), BYTES);
        let panics = pool.spawn_await(placed(|sum| panic_any(sum)));
        assert_eq!(panicked(panics).downcast_ref(), Some(&BYTES));
        cancelled(pool.spawn_await(placed(|_| Poll::Pending)));
        let ready = placed(Poll::Ready);
        pool.spawn(async move { assert_eq!(ready.await, BYTES) });
        let group = pool.group::<()>();
        let ready = placed(Poll::Ready);
        let task = async move {
            assert_eq!(ready.await, BYTES);
            Ok(())
        };
        group.spawn(task).unwrap();
        assert!(group.wait().is_ok());
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(in_place.load(Ordering::Relaxed), 5, "{BYTES} bytes");
    }

    let pool = pool(1);
    check::<Loose, 0>(&pool);
    check::<Strict, 0>(&pool);
    check::<Loose, 1_900>(&pool);
    check::<Loose, 2_100>(&pool);
    check::<Strict, 2_100>(&pool);
    check::<Loose, 10_000>(&pool);
    assert_eq!(pool.stats().panicked, 6, "the ones that were to panic");
}

#[test]
fn a_value_outlives_the_pool() {
    let pool = pool(2);
    let handle = pool.evaluate(|| String::from("still here"));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(handle.is_finished());
    assert_eq!(settled(handle).unwrap(), "still here");
}

// ----- to the payload -----

#[test]
fn a_panic_comes_back_with_its_payload() {
    let pool = pool(2);
    let payload = panicked(pool.evaluate(|| -> u8 { panic_any(Typed(1)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    let payload = panicked(pool.complete(async { panic_any(Typed(2)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(2)));
    let payload = panicked(pool.evaluate(|| -> u8 { panic_any(SendOnly(3.into())) }));
    assert_eq!(payload.downcast_ref::<SendOnly>().map(|only| only.0.get()), Some(3));
    let payload = panicked(pool.evaluate(|| -> u8 { panic!("text") }));
    assert_eq!(payload.downcast_ref(), Some(&"text"));
}

#[cfg(feature = "async")]
#[test]
fn a_panic_of_a_spawned_future_comes_back_with_its_payload() {
    let pool = pool(2);
    let payload = panicked(pool.spawn_await(async { panic_any(Typed(1)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    // In a later poll than the first.
    let (sender, receiver) = futures::channel::oneshot::channel();
    let handle = pool.spawn_await(async { panic_any(Typed(receiver.await.unwrap())) });
    sender.send(2).unwrap();
    assert_eq!(panicked(handle).downcast_ref(), Some(&Typed(2)));
}

#[test]
fn await_complete_resumes_the_panic() {
    let pool = pool(2);
    let handle = pool.evaluate(|| -> u8 { panic_any(Typed(1)) });
    let payload = catch_unwind(AssertUnwindSafe(|| handle.await_complete())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    let handle = pool.complete(async { panic_any(Typed(2)) });
    let payload = catch_unwind(AssertUnwindSafe(|| handle.await_complete())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&Typed(2)));
}

#[test]
fn await_complete_says_that_there_is_no_value() {
    let pool = pool(2);
    pool.close();
    let handle = pool.evaluate(|| 1);
    let text = panic_text(|| handle.await_complete());
    assert!(text.contains("await_complete") && text.contains("cancelled"), "{text}");
}

// ----- to cancelled -----

#[test]
fn a_queued_task_is_cancelled_at_once() {
    let pool = pool(1);
    let gate = block(&pool);
    let ran = Arc::new(AtomicUsize::new(0));

    let (drops, counts) = (Drops::default(), Arc::clone(&ran));
    let guard = drops.issue();
    let handle = pool.evaluate(move || {
        counts.fetch_add(1, Ordering::Relaxed);
        drop(guard);
    });
    assert!(!handle.is_finished());
    handle.cancel();
    assert!(handle.is_finished());
    cancelled(handle);
    assert_eq!(
        drops.count(),
        0,
        "what it captured is dropped by a worker, and in flight until then"
    );
    assert!(!pool.join_timeout(Duration::ZERO));

    let counts = Arc::clone(&ran);
    let guard = drops.issue();
    let handle = pool.complete(async move {
        counts.fetch_add(1, Ordering::Relaxed);
        drop(guard);
    });
    handle.cancel();
    handle.cancel();
    cancelled(handle);

    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 2);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (1, 2, 0));
}

#[test]
fn cancelling_wakes_whoever_waits() {
    // Another thread is blocked on the handle of a queued task that this one cancels: they share it.
    struct Shared(std::sync::Mutex<JoinHandle<u8>>);
    impl Future for &Shared {
        type Output = Result<u8, JoinError>;
        fn poll(self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            std::pin::Pin::new(&mut *self.0.lock().unwrap()).poll(context)
        }
    }

    let pool = pool(1);
    let gate = block(&pool);
    let shared = Arc::new(Shared(pool.evaluate(|| 1).into()));
    let waits = Arc::clone(&shared);
    let waiter = thread::spawn(move || futures_executor::block_on(&*waits));
    shared.0.lock().unwrap().cancel();
    wait_until("the waiter has its answer", || waiter.is_finished());
    assert!(waiter.join().unwrap().unwrap_err().is_cancelled());
    gate.open();
}

#[test]
fn a_closed_pool_cancels() {
    let pool = pool(2);
    pool.close();
    let drops = Drops::default();

    let guard = drops.issue();
    let handle = pool.evaluate(move || drop(guard));
    assert_eq!(drops.count(), 1, "nobody needs the task any more");
    assert!(handle.is_finished());
    handle.cancel();
    cancelled(handle);

    let guard = drops.issue();
    let handle = pool.complete(async move { drop(guard) });
    assert_eq!(drops.count(), 2);
    assert!(handle.is_finished());
    cancelled(handle);
    assert_eq!(pool.stats().rejected, 2);
}

#[cfg(feature = "async")]
#[test]
fn a_closed_pool_cancels_a_future() {
    let pool = pool(2);
    pool.close();
    let drops = Drops::default();
    let guard = drops.issue();
    let handle = pool.spawn_await(async move { drop(guard) });
    assert_eq!(drops.count(), 1);
    assert!(handle.is_finished());
    cancelled(handle);
}

#[test]
fn a_panicking_start_hook_loses_no_task() {
    let pool = Builder::new()
        .core_size(1)
        .max_size(2)
        .on_worker_start(|index| panic!("worker {index} does not feel like it"))
        .build();
    let handles: Vec<_> = (0..10).map(|number| pool.evaluate(move || number)).collect();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(settled(handle).unwrap(), number);
    }
}

#[test]
fn a_running_closure_is_not_cancelled() {
    let pool = pool(1);
    let (handle, gate) = slow(&pool);
    gate.wait_for(1);
    handle.cancel();
    assert!(!handle.is_finished());
    let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
    gate.open();
    assert_eq!(settled(handle).unwrap(), 1);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 0));
}

#[test]
fn a_finished_task_is_not_cancelled() {
    let pool = pool(1);
    let handle = pool.evaluate(|| 7);
    assert!(pool.join_timeout(LIMIT));
    handle.cancel();
    assert_eq!(settled(handle).unwrap(), 7);
    assert_eq!(pool.stats().cancelled, 0);
}

/// One closure is taken and cancelled at the same time: it runs, or it is dropped, and the handle says
/// which.
#[test]
fn a_cancellation_that_races_with_the_start_has_one_result() {
    let pool = pool(2);
    let drops = Drops::default();
    let mut ran = 0;
    const ROUNDS: usize = 2_000;
    for _ in 0..ROUNDS {
        let guard = drops.issue();
        let handle = pool.evaluate(move || drop(guard));
        handle.cancel();
        match settled(handle) {
            Ok(()) => ran += 1,
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), ROUNDS);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (ran, ROUNDS - ran, 0));
}

// ----- waiting -----

#[test]
fn a_handle_comes_back_when_its_time_is_over() {
    let pool = pool(1);
    let (handle, gate) = slow(&pool);
    let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
    let handle = handle.await_complete_timeout(Duration::from_nanos(1)).unwrap_err();
    let before = Instant::now();
    let handle = handle.await_complete_timeout(Duration::from_millis(20)).unwrap_err();
    assert!(before.elapsed() >= Duration::from_millis(20));
    gate.open();
    assert_eq!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap(), 1);

    // What is there already is there in no time.
    let handle = pool.evaluate(|| 2);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 2);
    let handle = pool.evaluate(|| 3);
    assert_eq!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap(), 3);
    let handle = pool.evaluate(|| -> u8 { panic!("four") });
    assert!(handle.await_complete_timeout(Duration::MAX).unwrap().unwrap_err().is_panic());
}

#[test]
fn is_finished_says_that_waiting_does_not_block() {
    let pool = pool(1);
    let gate = block(&pool);
    let handles = [pool.evaluate(|| 1), pool.complete(async { 1 })];
    for handle in &handles {
        assert!(!handle.is_finished());
        assert_eq!(format!("{handle:?}"), "JoinHandle { is_finished: false }");
    }
    gate.open();
    for handle in handles {
        wait_until("the task has ended", || handle.is_finished());
        assert_eq!(format!("{handle:?}"), "JoinHandle { is_finished: true }");
        assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), 1);
    }
    let handle = pool.evaluate(|| -> u8 { panic!("a panic ends it, too") });
    wait_until("the task has ended", || handle.is_finished());
    assert!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err().is_panic());
}

/// Waits until the handle is finished: then it stays so, and waiting does not block.
#[track_caller]
fn stays_finished<T: std::fmt::Debug>(handle: JoinHandle<T>) {
    let since = Instant::now();
    while !handle.is_finished() {
        assert!(since.elapsed() < LIMIT, "it does not resolve");
        thread::yield_now();
    }
    for _ in 0..3 {
        assert!(handle.is_finished(), "it was finished before");
    }
    handle.await_complete_timeout(Duration::ZERO).expect("waiting blocks").ok();
}

/// Also while a worker is about to drop the closure, and while it does.
#[test]
fn a_cancelled_closure_that_is_being_dropped_stays_finished() {
    struct SlowDrop(Arc<Gate>);
    impl Drop for SlowDrop {
        fn drop(&mut self) {
            self.0.pass();
        }
    }

    let pool = pool(1);
    let gate = block(&pool);
    let slow = Gate::new();
    let slow_drop = SlowDrop(Arc::clone(&slow));
    let handle = pool.evaluate(move || drop(slow_drop));
    handle.cancel();
    assert!(handle.is_finished());
    gate.open();
    slow.wait_for(1);
    assert!(handle.is_finished());
    handle.cancel();
    assert!(handle.is_finished());
    let waited = handle.await_complete_timeout(Duration::ZERO);
    assert!(!pool.join_timeout(Duration::ZERO), "it is in flight until it is dropped");
    slow.open();
    assert!(waited.expect("waiting blocks").unwrap_err().is_cancelled());
    assert!(pool.join_timeout(LIMIT));
}

#[test]
fn a_closure_that_is_finished_stays_finished() {
    let pool = pool(2);
    for round in 0..3_000 {
        let handle = pool.evaluate(move || round);
        common::dawdle(300);
        handle.cancel();
        stays_finished(handle);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().in_flight(), 0);
}

/// As soon as `is_finished` says so, not a moment later: polled from the task's very end on.
#[test]
fn is_finished_is_never_early() {
    let pool = pool(2);
    for round in 0..10_000 {
        let handle = pool.evaluate(move || round);
        let since = Instant::now();
        while !(0..100).any(|_| handle.is_finished()) {
            assert!(since.elapsed() < LIMIT);
            thread::yield_now();
        }
        assert_eq!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap(), round);
    }
}

#[test]
fn a_handle_is_a_future_for_any_executor() {
    let (ours, theirs) = (pool(2), pool(2));
    // On this thread.
    assert_eq!(futures_executor::block_on(ours.evaluate(|| 1)).unwrap(), 1);
    // On a worker of another pool, and on one of the same.
    let handle = ours.evaluate(|| 2);
    assert_eq!(settled(theirs.complete(handle)).unwrap().unwrap(), 2);
    let handle = ours.evaluate(|| 3);
    assert_eq!(settled(ours.complete(handle)).unwrap().unwrap(), 3);
    // Several at a time.
    let handles: Vec<_> = (0..20).map(|number| ours.evaluate(move || number)).collect();
    let all = futures_executor::block_on(futures::future::try_join_all(handles)).unwrap();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    // A panic and a cancellation arrive that way, too.
    let error = futures_executor::block_on(ours.evaluate(|| -> u8 { panic!("four") })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: four");
    ours.close();
    assert!(futures_executor::block_on(ours.evaluate(|| 5)).unwrap_err().is_cancelled());
}

#[cfg(feature = "async")]
#[test]
fn a_handle_is_a_future_for_a_spawned_one() {
    let (ours, theirs) = (pool(2), pool(2));
    let (inner, gate) = slow(&ours);
    let middle = theirs.spawn_await(async move { inner.await.unwrap() + 1 });
    let outer = ours.spawn_await(async move { middle.await.unwrap() + 1 });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 3);
}

#[test]
fn blocking_on_a_handle_works_inside_of_an_executor() {
    let (ours, theirs) = (pool(2), pool(2));
    let (handle, gate) = slow(&ours);
    let opener = thread::spawn(move || gate.open());
    assert_eq!(futures_executor::block_on(async { settled(handle).unwrap() }), 1);
    opener.join().unwrap();

    let (handle, gate) = slow(&ours);
    let outer = theirs.complete(async move { settled(handle).unwrap() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);

    let (handle, gate) = slow(&ours);
    let outer = ours.complete(async move { handle.await_complete() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);

    let (handle, gate) = slow(&ours);
    let outer = ours.evaluate(move || futures_executor::block_on(async { settled(handle) }));
    gate.open();
    assert_eq!(settled(outer).unwrap().unwrap(), 1);

    // All of it at once: an executor inside of a wait inside of an executor.
    let (handle, gate) = slow(&ours);
    let nested = theirs.complete(async move {
        let inner = ours.complete(handle);
        inner.await_complete()
    });
    gate.open();
    assert_eq!(settled(nested).unwrap().unwrap(), 1);
}

#[cfg(feature = "async")]
#[test]
fn blocking_on_a_handle_works_inside_of_a_spawned_future() {
    let (ours, theirs) = (pool(2), pool(2));
    let (inner, gate) = slow(&ours);
    let outer = theirs.spawn_await(async move { inner.await_complete() });
    gate.open();
    assert_eq!(settled(outer).unwrap(), 1);
}

#[test]
fn a_wait_takes_nobody_elses_wake_up() {
    let pool = pool(1);
    let gate = block(&pool);
    let handle = pool.evaluate(|| 1);
    // A token that is there before does not end the wait early, and is there after it.
    thread::current().unpark();
    let handle = handle.await_complete_timeout(Duration::from_millis(5)).unwrap_err();
    gate.open();
    assert_eq!(settled(handle).unwrap(), 1);
    let before = Instant::now();
    thread::park_timeout(LIMIT);
    assert!(before.elapsed() < LIMIT, "the wait has eaten the token");
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let pool = pool(1);
    let gate = block(&pool);
    let mut handle = pin!(pool.evaluate(|| 1));
    let ((early, first), (late, second)) = (CountingWaker::new(), CountingWaker::new());
    for waker in [first, second] {
        assert!(handle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    gate.open();
    wait_until("the handle is woken", || late.count() > 0);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(handle.as_mut().poll(&mut context), Poll::Ready(Ok(1))));
    assert_eq!((early.count(), late.count()), (0, 1));
}

// ----- not waiting -----

#[test]
fn dropping_a_handle_detaches_the_task() {
    let pool = pool(1);
    let gate = block(&pool);
    let drops = Drops::default();
    let ran = Arc::new(AtomicUsize::new(0));
    let (guard, counts) = (drops.issue(), Arc::clone(&ran));
    drop(pool.evaluate(move || {
        counts.fetch_add(1, Ordering::Relaxed);
        guard
    }));
    let (guard, counts) = (drops.issue(), Arc::clone(&ran));
    drop(pool.complete(async move {
        counts.fetch_add(1, Ordering::Relaxed);
        guard
    }));
    assert_eq!((drops.count(), ran.load(Ordering::Relaxed)), (0, 0));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((drops.count(), ran.load(Ordering::Relaxed)), (2, 2));
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (3, 0));
}

#[cfg(feature = "async")]
#[test]
fn dropping_a_handle_detaches_the_future() {
    let pool = pool(1);
    let drops = Drops::default();
    let guard = drops.issue();
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    drop(pool.spawn_await(async move {
        receiver.await.unwrap();
        guard
    }));
    assert!(!pool.join_timeout(Duration::from_millis(1)), "the future is still pending");
    assert_eq!(drops.count(), 0);
    sender.send(()).unwrap();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
    assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 0));
}

/// The handle goes away in the very moment in which the result is delivered.
#[test]
fn a_result_that_nobody_takes_is_dropped_once() {
    let pool = pool(2);
    let drops = Drops::default();
    const ROUNDS: usize = 2_000;
    for _ in 0..ROUNDS {
        let guard = drops.issue();
        drop(pool.evaluate(move || guard));
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), ROUNDS);
}

// ----- futures that do not come to their end -----

#[cfg(feature = "async")]
mod futures_that_end_early {
    use std::pin::Pin;
    use std::sync::{Barrier, mpsc};

    use super::*;
    use common::{Dropped, Teller, told};

    /// Spawns a future that waits to be told, and is 1 then.
    fn spawn_told(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<u8>, Teller) {
        let (teller, told) = told();
        let guard = drops.issue();
        let handle = pool.spawn_await(async move {
            told.await;
            drop(guard);
            1
        });
        (handle, teller)
    }

    /// As [`spawn_told`], when the first poll is over.
    fn spawn_pending(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<u8>, Teller) {
        let (handle, teller) = spawn_told(pool, drops);
        wait_until("the future is polled", || teller.polls() == 1);
        let idle = || pool.stats().idle == pool.current_worker_count();
        wait_until("nobody polls it any more", idle);
        (handle, teller)
    }

    #[test]
    fn a_future_that_keeps_no_waker_is_cancelled() {
        let pool = pool(1);
        let drops = Drops::default();
        let guard = drops.issue();
        let handle = pool.spawn_await(async move {
            std::future::pending::<()>().await;
            drop(guard);
        });
        cancelled(handle);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
    }

    #[test]
    fn a_future_is_cancelled_when_its_last_waker_is_dropped() {
        let pool = pool(1);
        let drops = Drops::default();
        let (handle, teller) = spawn_pending(&pool, &drops);
        let waker = teller.waker().unwrap();
        drop(teller);
        assert_eq!(drops.count(), 0, "there is another waker");
        assert!(!handle.is_finished());
        let dropper = thread::spawn(move || drop(waker));
        dropper.join().unwrap();
        assert_eq!(drops.count(), 1, "dropped by the thread that dropped the waker");
        assert!(handle.is_finished());
        cancelled(handle);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
    }

    #[test]
    fn a_pending_future_is_cancelled_at_once() {
        let pool = pool(1);
        let drops = Drops::default();
        let (handle, teller) = spawn_pending(&pool, &drops);
        let gate = block(&pool);
        handle.cancel();
        assert!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err().is_cancelled());
        assert_eq!(drops.count(), 0, "it is dropped by a worker, and in flight until then");
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        // Late wakes find nothing.
        for _ in 0..3 {
            teller.waker().unwrap().wake();
        }
        teller.tell();
        settled(pool.evaluate(|| ())).unwrap();
        assert_eq!((teller.polls(), drops.count()), (1, 1));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
        // Again, also of one that has gone.
        let (handle, teller) = spawn_pending(&pool, &drops);
        handle.cancel();
        handle.cancel();
        assert!(pool.join_timeout(LIMIT));
        assert!(handle.is_finished());
        handle.cancel();
        cancelled(handle);
        assert_eq!((teller.polls(), drops.count()), (1, 2));
    }

    #[test]
    fn a_queued_future_is_cancelled_at_once() {
        let pool = pool(1);
        let drops = Drops::default();
        // Before its first poll.
        let gate = block(&pool);
        let (handle, teller) = spawn_told(&pool, &drops);
        handle.cancel();
        assert!(handle.is_finished());
        cancelled(handle);
        assert_eq!(drops.count(), 0);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((teller.polls(), drops.count()), (0, 1));
        // When it was woken.
        let (handle, teller) = spawn_pending(&pool, &drops);
        let gate = block(&pool);
        teller.tell();
        assert!(!handle.is_finished());
        handle.cancel();
        cancelled(handle);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((teller.polls(), drops.count()), (1, 2));
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (2, 0));
    }

    /// Is inside of its poll until the gate opens.
    struct Slow {
        gate: Arc<Gate>,
        polls: Arc<AtomicUsize>,
        is_polled: bool,
        result: Poll<u8>,
        wakes_itself: bool,
        guard: Option<Dropped>,
    }

    impl Future for Slow {
        type Output = u8;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u8> {
            self.polls.fetch_add(1, Ordering::SeqCst);
            self.is_polled = true;
            if self.wakes_itself {
                context.waker().wake_by_ref();
            }
            self.gate.pass();
            self.is_polled = false;
            self.result
        }
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            if self.is_polled {
                // One drop too few in the count.
                std::mem::forget(self.guard.take());
            }
        }
    }

    /// Cancels a future inside of its poll. Returns its handle, when the pool has ended, and the
    /// number of its polls.
    fn cancel_while_polled(result: Poll<u8>, wakes_itself: bool) -> (JoinHandle<u8>, usize) {
        let pool = pool(1);
        let (gate, polls, drops) = (Gate::new(), Arc::<AtomicUsize>::default(), Drops::default());
        let handle = pool.spawn_await(Slow {
            gate: Arc::clone(&gate),
            polls: Arc::clone(&polls),
            is_polled: false,
            result,
            wakes_itself,
            guard: Some(drops.issue()),
        });
        gate.wait_for(1);
        handle.cancel();
        handle.cancel();
        assert_eq!(drops.count(), 0, "dropped while it is polled");
        assert!(!handle.is_finished());
        assert!(!pool.join_timeout(Duration::ZERO), "it is still running");
        let handle = handle.await_complete_timeout(Duration::ZERO).unwrap_err();
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        let stats = pool.stats();
        let completed = usize::from(result.is_ready());
        assert_eq!((stats.completed, stats.cancelled), (completed, 1 - completed));
        assert!(pool.shutdown_join_timeout(LIMIT));
        (handle, polls.load(Ordering::SeqCst))
    }

    #[test]
    fn a_future_that_is_polled_is_cancelled_after_the_poll() {
        // Woken meanwhile or not: it is not polled again.
        for wakes_itself in [false, true] {
            let (handle, polls) = cancel_while_polled(Poll::Pending, wakes_itself);
            cancelled(handle);
            assert_eq!(polls, 1);
        }
    }

    #[test]
    fn a_future_that_is_ready_after_all_is_not_cancelled() {
        for wakes_itself in [false, true] {
            let (handle, polls) = cancel_while_polled(Poll::Ready(7), wakes_itself);
            assert_eq!((settled(handle).unwrap(), polls), (7, 1));
        }
    }

    #[test]
    fn a_future_can_cancel_itself() {
        let pool = pool(1);
        let (sender, receiver) = mpsc::channel::<Arc<JoinHandle<()>>>();
        let drops = Drops::default();
        let guard = drops.issue();
        let handle = Arc::new(pool.spawn_await(async move {
            let own = receiver.recv_timeout(LIMIT).unwrap();
            own.cancel();
            drop(own);
            futures::pending!();
            drop(guard);
        }));
        sender.send(Arc::clone(&handle)).unwrap();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        cancelled(Arc::into_inner(handle).expect("the future has dropped its own"));
    }

    type End = fn() -> Poll<()>;

    /// Wakes and cancels itself and lets its own handle go, in its poll or in its destructor.
    struct Meddler {
        in_poll: bool,
        end: End,
        own: mpsc::Receiver<JoinHandle<()>>,
        outside: mpsc::Sender<Waker>,
        waker: Option<Waker>,
        _guard: Dropped,
    }

    impl Meddler {
        fn meddle(&self) {
            let own = self.own.recv_timeout(LIMIT).unwrap();
            let waker = self.waker.as_ref().unwrap();
            waker.wake_by_ref();
            own.cancel();
            waker.wake_by_ref();
            own.cancel();
            drop(own);
            waker.wake_by_ref();
        }
    }

    impl Future for Meddler {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.waker = Some(context.waker().clone());
            self.outside.send(context.waker().clone()).unwrap();
            if self.in_poll {
                self.meddle();
            }
            (self.end)()
        }
    }

    impl Drop for Meddler {
        fn drop(&mut self) {
            if !self.in_poll {
                self.meddle();
            }
        }
    }

    #[test]
    fn a_future_that_meddles_with_itself_ends_once() {
        let ready = || Poll::Ready(());
        let panics = || panic!("on purpose");
        let waits = || Poll::Pending;
        let ends: [(End, _); 3] = [(ready, (1, 0, 0)), (panics, (0, 1, 0)), (waits, (0, 0, 1))];
        for (end, expected) in ends {
            for in_poll in [false, true] {
                let pool = pool(1);
                let drops = Drops::default();
                let (sender, own) = mpsc::channel();
                let (outside, wakers) = mpsc::channel();
                let _guard = drops.issue();
                let meddler = Meddler { in_poll, end, own, outside, waker: None, _guard };
                sender.send(pool.spawn_await(meddler)).unwrap();
                let waker = wakers.recv_timeout(LIMIT).unwrap();
                // For the one that waits, and meddles only when it is dropped.
                assert!(pool.shutdown_now().is_empty());
                assert!(pool.clone().shutdown_join_timeout(LIMIT));
                assert_eq!(drops.count(), 1);
                assert!(wakers.recv().is_err(), "it was polled once");
                let stats = pool.stats();
                let ended = (stats.completed, stats.panicked, stats.cancelled);
                assert_eq!((ended, stats.in_flight()), (expected, 0));
                // The waker is all that is left of it.
                drop(pool);
                waker.wake_by_ref();
                drop(waker);
                assert_eq!(drops.count(), 1);
            }
        }
    }

    #[test]
    fn a_destructor_that_panics_does_not_change_the_result() {
        let pool = pool(1);
        // Ready: the value.
        let bomb = DropBomb;
        let handle = pool.spawn_await(std::future::poll_fn(move |_| {
            let _captured = &bomb;
            Poll::Ready(1)
        }));
        assert_eq!(settled(handle).unwrap(), 1);
        // A panic: the poll's.
        let bomb = DropBomb;
        let handle = pool.spawn_await(std::future::poll_fn(move |_| -> Poll<u8> {
            let _captured = &bomb;
            panic_any(Typed(2))
        }));
        assert_eq!(panicked(handle).downcast_ref(), Some(&Typed(2)));
        // Cancelled, by hand and for want of a waker.
        let (teller, told) = told();
        let bomb = DropBomb;
        let handle = pool.spawn_await(async move {
            let _captured = &bomb;
            told.await;
        });
        wait_until("the future is polled", || teller.polls() == 1);
        handle.cancel();
        cancelled(handle);
        let bomb = DropBomb;
        let handle = pool.spawn_await(async move {
            let _captured = &bomb;
            std::future::pending::<()>().await;
        });
        cancelled(handle);

        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        let ended = (stats.completed, stats.panicked, stats.cancelled);
        assert_eq!((ended, stats.in_flight()), ((1, 1, 2), 0));
    }

    /// `is_finished` promises that waiting does not block. While the future's destructor runs, it does.
    #[test]
    fn a_future_that_is_being_dropped_is_not_finished() {
        struct SlowDrop(Arc<Gate>);
        impl Drop for SlowDrop {
            fn drop(&mut self) {
                self.0.pass();
            }
        }

        let pool = pool(1);
        let gate = Gate::new();
        let (teller, told) = told();
        let slow_drop = SlowDrop(Arc::clone(&gate));
        let handle = pool.spawn_await(async move {
            let _captured = &slow_drop;
            told.await;
        });
        wait_until("the future is polled", || teller.polls() == 1);
        let dropper = thread::spawn(move || drop(teller));
        gate.wait_for(1);
        let is_finished = handle.is_finished();
        let waited = handle.await_complete_timeout(Duration::ZERO);
        gate.open();
        dropper.join().unwrap();
        assert_eq!(is_finished, waited.is_ok(), "is_finished; waiting does not block");
        match waited {
            Ok(result) => assert!(result.unwrap_err().is_cancelled()),
            Err(handle) => cancelled(handle),
        }
    }

    /// A future is abandoned, or woken, and cancelled, all at once: from `is_finished` there is no way back.
    #[test]
    fn a_future_that_is_finished_stays_finished() {
        let pool = pool(2);
        let drops = Drops::default();
        for round in 0..1_500 {
            let (handle, teller) = spawn_told(&pool, &drops);
            if round % 4 != 0 {
                wait_until("the future is polled", || teller.polls() == 1);
            }
            let start = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    common::dawdle(500);
                    if round % 2 == 0 {
                        teller.tell();
                    }
                    drop(teller);
                });
                start.wait();
                common::dawdle(500);
                if round % 3 != 0 {
                    handle.cancel();
                }
                stays_finished(handle);
            });
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1_500);
    }

    /// Two threads wake a future and a third cancels it, all at once, with its polls in between.
    #[test]
    fn a_cancellation_that_races_with_wakes_has_one_result() {
        const ROUNDS: usize = 300;
        let pool = pool(2);
        let drops = Drops::default();
        let mut values = 0;
        for round in 1..=ROUNDS {
            let (handle, teller) = spawn_told(&pool, &drops);
            wait_until("the future is polled", || teller.polls() == 1);
            let waker = teller.waker().unwrap();
            let start = Barrier::new(3);
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    waker.wake_by_ref();
                    teller.tell();
                });
                scope.spawn(|| {
                    start.wait();
                    waker.wake_by_ref();
                    waker.wake_by_ref();
                });
                start.wait();
                common::dawdle(2_000);
                handle.cancel();
            });
            match settled(handle) {
                Ok(value) => values += usize::from(value),
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(drops.count(), round);
        }
        let stats = pool.stats();
        let ended = (stats.completed, stats.panicked, stats.cancelled);
        assert_eq!((ended, stats.in_flight()), ((values, 0, ROUNDS - values), 0));
    }
}

/// A future that a worker blocks on has a destructor, too.
#[test]
fn a_destructor_that_panics_does_not_change_the_result_of_complete() {
    let pool = pool(1);
    let bomb = DropBomb;
    let handle = pool.complete(std::future::poll_fn(move |_| -> Poll<u8> {
        let _captured = &bomb;
        Poll::Ready(1)
    }));
    assert_eq!(settled(handle).unwrap(), 1);
    let bomb = DropBomb;
    let handle = pool.complete(std::future::poll_fn(move |_| -> Poll<u8> {
        let _captured = &bomb;
        panic_any(Typed(2))
    }));
    assert_eq!(panicked(handle).downcast_ref(), Some(&Typed(2)));
}

#[test]
fn a_captured_destructor_that_panics_does_not_change_a_cancellation() {
    let pool = pool(1);
    let gate = block(&pool);
    let bomb = DropBomb;
    let handle = pool.evaluate(move || std::mem::forget(bomb));
    handle.cancel();
    assert!(handle.is_finished());
    cancelled(handle);
    pool.close();
    let bomb = DropBomb;
    cancelled(pool.evaluate(move || std::mem::forget(bomb)));
    gate.open();
}

// ----- the errors -----

#[test]
fn a_join_error_says_what_happened() {
    fn an_error<E: Error + Send + Sync + 'static>(_: &E) {}

    let pool = pool(1);
    let error = settled(pool.evaluate(|| -> u8 { panic!("static") })).unwrap_err();
    an_error(&error);
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: static");
    assert_eq!(format!("{error:?}"), "JoinError(the task panicked: static)");
    assert!(error.source().is_none());
    assert_eq!(error.into_panic().downcast_ref(), Some(&"static"));

    let place = String::from("here");
    let error = settled(pool.evaluate(move || -> u8 { panic!("made {place}") })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: made here");
    let payload = error.try_into_panic().unwrap();
    assert_eq!(payload.downcast_ref(), Some(&String::from("made here")));

    let error = settled(pool.evaluate(|| -> u8 { panic_any(Typed(1)) })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked");
    assert_eq!(format!("{error:?}"), "JoinError(the task panicked)");

    pool.close();
    let error = settled(pool.evaluate(|| 1)).unwrap_err();
    assert!(error.is_cancelled() && !error.is_panic());
    assert_eq!(error.to_string(), "the task was cancelled");
    assert_eq!(format!("{error:?}"), "JoinError(the task was cancelled)");
    let error = error.try_into_panic().unwrap_err();
    assert!(error.is_cancelled());
    let payload = catch_unwind(AssertUnwindSafe(|| error.into_panic())).unwrap_err();
    let text = payload.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("into_panic") && text.contains("cancelled"), "{text}");
}

#[test]
fn a_rejected_task_needs_no_debug() {
    /// Neither `Debug` nor `Clone` nor anything.
    struct Opaque(u8);

    let pool = pool(1);
    pool.close();
    let opaque = Opaque(7);
    let rejected = pool.try_evaluate(move || opaque.0).unwrap_err();
    assert_eq!(rejected.reason(), RejectReason::Closed);
    assert_eq!(rejected.to_string(), "the task was not accepted: the pool is closed");
    let text = format!("{rejected:?}");
    assert!(text.contains("Rejected") && text.contains("Closed"), "{text}");
    assert!(rejected.source().is_none(), "the system has nothing to do with it");
    assert_eq!(rejected.into_task()(), 7);

    fn is_error<F>(rejected: Rejected<F>) -> Box<dyn Error + Send + Sync>
    where
        F: Send + Sync + 'static,
    {
        Box::new(rejected)
    }
    let opaque = Opaque(8);
    let error = is_error(pool.try_execute(move || assert_eq!(opaque.0, 8)).unwrap_err());
    assert!(error.to_string().contains("closed"));
}
