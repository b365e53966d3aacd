//! Futures that are dropped before they are ready.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{Dropped, Drops, Gate, LIMIT, Trigger, block, settled, triggered, wait_until};
use crate::{DropBomb, Typed, cancelled, panicked, pool, stays_finished};
use elastipool::{JoinHandle, ThreadPool};

/// Spawns a future that waits for its trigger and then resolves to 1.
fn spawn_triggered(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<u8>, Trigger) {
    let (trigger, triggered) = triggered();
    let guard = drops.issue();
    let handle = pool.spawn_await(async move {
        triggered.await;
        drop(guard);
        1
    });
    (handle, trigger)
}

/// As [`spawn_told`], when the first poll is over.
fn spawn_pending(pool: &ThreadPool, drops: &Drops) -> (JoinHandle<u8>, Trigger) {
    let (handle, trigger) = spawn_triggered(pool, drops);
    wait_until("the future is polled", || trigger.polls() == 1);
    let idle = || pool.stats().idle == pool.current_worker_count();
    wait_until("no worker polls it any more", idle);
    (handle, trigger)
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
    let (handle, trigger) = spawn_pending(&pool, &drops);
    let waker = trigger.waker().unwrap();
    drop(trigger);
    assert_eq!(drops.count(), 0, "there is another waker");
    assert!(!handle.is_finished());
    let gate = block(&pool);
    let dropper = thread::spawn(move || drop(waker));
    dropper.join().unwrap();
    assert_eq!(drops.count(), 0, "it is dropped by a worker, and in flight until then");
    assert!(!pool.join_timeout(Duration::ZERO));
    gate.open();
    cancelled(handle);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
}

/// A worker has to drop it, and none is free. The handle does not wait for that.
#[test]
fn a_future_whose_last_waker_is_gone_is_cancelled() {
    type End = fn(&ThreadPool, &JoinHandle<u8>);

    let ends: [(End, bool); 2] = [
        (|_, handle| handle.cancel(), true),
        // A worker drops it.
        (|pool, _| assert!(pool.shutdown_now().is_empty()), false),
    ];
    for (end, is_dropped) in ends {
        let pool = pool(1);
        let drops = Drops::default();
        let (handle, trigger) = spawn_pending(&pool, &drops);
        let gate = block(&pool);
        drop(trigger);
        assert!(!handle.is_finished());
        end(&pool, &handle);
        assert_eq!((handle.is_finished(), drops.count()), (is_dropped, usize::from(is_dropped)));
        gate.open();
        cancelled(handle);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 1);
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
    }
}

#[test]
fn a_pending_future_is_cancelled_at_once() {
    let pool = pool(1);
    let drops = Drops::default();
    let (handle, trigger) = spawn_pending(&pool, &drops);
    let gate = block(&pool);
    handle.cancel();
    assert!(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 1, "the canceller drops it");
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 1);
    // Late wakes find nothing.
    for _ in 0..3 {
        trigger.waker().unwrap().wake();
    }
    trigger.fire();
    settled(pool.evaluate(|| ())).unwrap();
    assert_eq!((trigger.polls(), drops.count()), (1, 1));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (1, 0));
    // Again, also of one that has gone.
    let (handle, trigger) = spawn_pending(&pool, &drops);
    handle.cancel();
    handle.cancel();
    assert!(pool.join_timeout(LIMIT));
    assert!(handle.is_finished());
    handle.cancel();
    cancelled(handle);
    assert_eq!((trigger.polls(), drops.count()), (1, 2));
}

#[test]
fn a_queued_future_is_cancelled_at_once() {
    let pool = pool(1);
    let drops = Drops::default();
    // Before its first poll.
    let gate = block(&pool);
    let (handle, trigger) = spawn_triggered(&pool, &drops);
    handle.cancel();
    assert!(handle.is_finished());
    cancelled(handle);
    assert_eq!(drops.count(), 1);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((trigger.polls(), drops.count()), (0, 1));
    // When it was woken.
    let (handle, trigger) = spawn_pending(&pool, &drops);
    let gate = block(&pool);
    trigger.fire();
    assert!(!handle.is_finished());
    handle.cancel();
    cancelled(handle);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((trigger.polls(), drops.count()), (1, 2));
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
    // Cancelled by its handle, and for lack of a waker.
    let (trigger, triggered) = triggered();
    let bomb = DropBomb;
    let handle = pool.spawn_await(async move {
        let _captured = &bomb;
        triggered.await;
    });
    wait_until("the future is polled", || trigger.polls() == 1);
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
    let (trigger, triggered) = triggered();
    let slow_drop = SlowDrop(Arc::clone(&gate));
    let handle = pool.spawn_await(async move {
        let _captured = &slow_drop;
        triggered.await;
    });
    wait_until("the future is polled", || trigger.polls() == 1);
    drop(trigger);
    gate.wait_for(1);
    let is_finished = handle.is_finished();
    let waited = handle.await_complete_timeout(Duration::ZERO);
    gate.open();
    assert_eq!(is_finished, waited.is_ok(), "is_finished; waiting does not block");
    match waited {
        Ok(result) => assert!(result.unwrap_err().is_cancelled()),
        Err(handle) => cancelled(handle),
    }
}

/// A future is abandoned, or woken, and cancelled, all at once: from `is_finished` there is no way
/// back.
#[test]
fn a_future_that_is_finished_stays_finished() {
    let pool = pool(2);
    let drops = Drops::default();
    for round in 0..1_500 {
        let (handle, trigger) = spawn_triggered(&pool, &drops);
        if round % 4 != 0 {
            wait_until("the future is polled", || trigger.polls() == 1);
        }
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                crate::common::dawdle(500);
                if round % 2 == 0 {
                    trigger.fire();
                }
                drop(trigger);
            });
            start.wait();
            crate::common::dawdle(500);
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
        let (handle, trigger) = spawn_triggered(&pool, &drops);
        wait_until("the future is polled", || trigger.polls() == 1);
        let waker = trigger.waker().unwrap();
        let start = Barrier::new(3);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                waker.wake_by_ref();
                trigger.fire();
            });
            scope.spawn(|| {
                start.wait();
                waker.wake_by_ref();
                waker.wake_by_ref();
            });
            start.wait();
            crate::common::dawdle(2_000);
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

/// Where wakers are kept. Futures take its lock when they are dropped, and a thread that lets
/// wakers go holds it meanwhile.
type Registry = Arc<Mutex<Vec<Waker>>>;

struct LocksWhenDropped(Registry, #[allow(dead_code, reason = "counts")] Dropped);

impl Drop for LocksWhenDropped {
    fn drop(&mut self) {
        drop(self.0.lock());
    }
}

/// Registers its waker, and waits until it is woken once.
fn registered(registry: &Registry, drops: &Drops) -> impl Future<Output = ()> + Send + use<> {
    let locks = LocksWhenDropped(Arc::clone(registry), drops.issue());
    let mut is_first = true;
    std::future::poll_fn(move |context| {
        if !std::mem::take(&mut is_first) {
            return Poll::Ready(());
        }
        locks.0.lock().unwrap().push(context.waker().clone());
        Poll::Pending
    })
}

/// Spawns a future in each of the ways there are.
fn spawn_registered(pool: &ThreadPool, registry: &Registry, drops: &Drops) {
    let registered = || registered(registry, drops);
    pool.spawn(registered());
    let view = pool.view().build();
    view.spawn(registered());
    drop(view.spawn_await(registered()));
    let group = pool.group::<()>();
    assert!(group.spawn(async_ok(registered())).is_ok());
    drop(pool.spawn_await(registered()));
    wait_until_pending(pool, registry, 5);
}

/// Waits until so many futures have registered their wakers, and are pending. A future may count as
/// pending for a moment before its poll.
fn wait_until_pending(pool: &ThreadPool, registry: &Registry, count: usize) {
    wait_until("all are pending", || {
        registry.lock().unwrap().len() == count && pool.stats().pending == count
    });
}

async fn async_ok(future: impl Future<Output = ()>) -> Result<(), ()> {
    future.await;
    Ok(())
}

/// Calls `f` on a thread of its own, which may hang.
fn in_time<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let thread = thread::spawn(f);
    wait_until("it returns", || thread.is_finished());
    thread.join().unwrap()
}

// The defect: the thread that dropped the last waker dropped the future, under its own lock.
#[test]
fn the_last_wakers_are_dropped_under_a_lock_that_the_futures_take() {
    for is_busy in [false, true] {
        let pool = pool(2);
        let (registry, drops) = (Registry::default(), Drops::default());
        spawn_registered(&pool, &registry, &drops);
        let gates = is_busy.then(|| [(); 2].map(|()| block(&pool)));
        let clears = Arc::clone(&registry);
        in_time(move || clears.lock().unwrap().clear());
        if let Some(gates) = gates {
            assert_eq!((drops.count(), pool.stats().cancelled), (0, 0));
            gates.iter().for_each(|gate| gate.open());
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 5);
        assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (5, 0));
    }
}

/// By value, also after they have ended or were cancelled.
#[test]
fn futures_are_woken_under_a_lock_that_they_take() {
    for is_cancelled in [false, true] {
        let pool = pool(2);
        let (registry, drops) = (Registry::default(), Drops::default());
        let handles: Vec<_> =
            (0..10).map(|_| pool.spawn_await(registered(&registry, &drops))).collect();
        wait_until_pending(&pool, &registry, 10);
        if is_cancelled {
            handles[..5].iter().for_each(JoinHandle::cancel);
        } else {
            let wakes = Arc::clone(&registry);
            in_time(move || wakes.lock().unwrap()[..5].iter().for_each(Waker::wake_by_ref));
        }
        let wakes = Arc::clone(&registry);
        in_time(move || wakes.lock().unwrap().drain(..).for_each(Waker::wake));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(drops.count(), 10);
    }
}

#[test]
fn shutdown_now_is_called_under_a_lock_that_the_futures_take() {
    for is_woken in [false, true] {
        let pool = pool(2);
        let (registry, drops) = (Registry::default(), Drops::default());
        spawn_registered(&pool, &registry, &drops);
        let gates = [(); 2].map(|()| block(&pool));
        let (own, locks) = (pool.clone(), Arc::clone(&registry));
        in_time(move || {
            let wakers = locks.lock().unwrap();
            if is_woken {
                wakers.iter().for_each(Waker::wake_by_ref);
            }
            assert!(own.shutdown_now().is_empty());
        });
        assert_eq!(drops.count(), 0, "each is dropped by a worker, and in flight until then");
        gates.iter().for_each(|gate| gate.open());
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert_eq!(drops.count(), 5);
    }
}

/// Wakers are cloned and dropped while the future is polled and cancelled: it ends once, and no
/// later than its last waker.
#[test]
fn wakers_that_come_and_go_end_a_future_once() {
    const ROUNDS: usize = 500;
    let pool = pool(2);
    let drops = Drops::default();
    for round in 0..ROUNDS {
        let registry = Registry::default();
        let handle = pool.spawn_await(registered(&registry, &drops));
        wait_until("it has registered", || !registry.lock().unwrap().is_empty());
        let waker = registry.lock().unwrap().pop().unwrap();
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                let waker = waker.clone();
                scope.spawn(|| {
                    start.wait();
                    crate::common::dawdle(100);
                    let another = waker.clone();
                    drop(waker);
                    drop(another);
                });
            }
            drop(waker);
            start.wait();
            if round % 2 == 0 {
                crate::common::dawdle(100);
                handle.cancel();
            }
        });
        cancelled(handle);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), ROUNDS);
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (ROUNDS, 0));
}
