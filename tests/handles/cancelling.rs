//! The handle of a cancelled task resolves when the task is gone, however far it has come.

use crate::common;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use common::{CountingWaker, Drops, Gate, HOUR, LIMIT, block, panic_text, settled, wait_until};
use elastipool::{JoinError, JoinHandle, Task, ThreadPool};

/// A value whose destructor passes a gate, and is counted after that.
struct SlowDrop(Arc<Gate>, #[allow(dead_code, reason = "its drop is counted")] common::Dropped);

impl Drop for SlowDrop {
    fn drop(&mut self) {
        self.0.pass();
    }
}

/// Cancels and waits on a thread of its own, which fails instead of hanging.
fn cancelled<T: Send + 'static>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    let waiter = ThreadPool::new(1, 1, HOUR);
    settled(waiter.evaluate(|| handle.cancel_and_wait())).expect("the wait does not panic")
}

/// Cancels the task. Asserts that it is not gone until `open` is called, and that its waiter is
/// woken then.
fn gone_after<T>(
    handle: JoinHandle<T>,
    drops: &Drops,
    open: impl FnOnce(),
) -> Result<T, JoinError> {
    handle.cancel();
    let (wakes, waker) = CountingWaker::new();
    let mut handle = pin!(handle);
    let mut poll = || handle.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    thread::yield_now();
    assert!(poll().is_pending());
    assert_eq!((wakes.count(), drops.count()), (0, 0));
    open();
    wait_until("the waiter is woken", || wakes.count() > 0);
    loop {
        if let Poll::Ready(result) = poll() {
            assert_eq!(drops.count(), 1);
            return result;
        }
        thread::yield_now();
    }
}

#[test]
fn a_task_that_has_ended_delivers_its_result() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let handle = pool.evaluate(|| 1);
    pool.join();
    assert_eq!(cancelled(handle).unwrap(), 1);
    let handle = pool.evaluate(|| -> u8 { panic!("on purpose") });
    pool.join();
    assert!(cancelled(handle).unwrap_err().is_panic());
    pool.close();
    assert!(cancelled(pool.evaluate(|| 1)).unwrap_err().is_cancelled());
}

#[test]
fn a_closure_that_runs_is_waited_for() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, drops) = (Gate::new(), Drops::default());
    let (passes, captured) = (Arc::clone(&gate), drops.issue());
    let handle = pool.evaluate(move || {
        let _captured = captured;
        passes.pass();
        1
    });
    gate.wait_for(1);
    assert_eq!(gone_after(handle, &drops, || gate.open()).unwrap(), 1);
}

/// Another thread drops it, as the canceller of its group.
#[test]
fn a_closure_that_is_being_dropped_is_not_gone() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, slow, drops) = (block(&pool), Gate::new(), Drops::default());
    let captured = SlowDrop(Arc::clone(&slow), drops.issue());
    let group = pool.group::<()>();
    let handle = group.evaluate(move || drop(captured));
    let canceller = thread::spawn(move || group.cancel());
    slow.wait_for(1);
    let result = gone_after(handle, &drops, || slow.open());
    assert!(result.unwrap_err().is_cancelled());
    canceller.join().unwrap();
    gate.open();
}

#[test]
fn a_closure_that_was_handed_back_is_gone_when_its_task_is_dropped() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, drops) = (block(&pool), Drops::default());
    let [one, other] = [(); 2].map(|()| {
        let captured = drops.issue();
        pool.evaluate(move || drop(captured))
    });
    let mut tasks = pool.shutdown_now();
    gate.open();
    assert!(gone_after(one, &drops, || drop(tasks.remove(0))).is_err());
    tasks.remove(0).run();
    settled(other).unwrap();

    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, slow, drops) = (block(&pool), Gate::new(), Drops::default());
    let captured = SlowDrop(Arc::clone(&slow), drops.issue());
    let handle = pool.evaluate(move || drop(captured));
    let tasks = pool.shutdown_now();
    gate.open();
    let dropper = thread::spawn(move || drop(tasks));
    slow.wait_for(1);
    assert!(gone_after(handle, &drops, || slow.open()).is_err());
    dropper.join().unwrap();
}

/// The future was polled or not: its task stays cancelled, and nothing waits for it. The tasks are
/// still with the owner that they were handed back to.
#[test]
fn dropping_the_wait_detaches_the_task_which_stays_cancelled() {
    for is_polled in [false, true] {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (gate, drops, runs) = (block(&pool), Drops::default(), Drops::default());
        let [(captured, run), other] = [(); 2].map(|()| (drops.issue(), runs.clone()));
        let closure = pool.evaluate(move || drop((captured, run.issue())));
        let (captured, run) = other;
        #[cfg(feature = "async")]
        let other = pool.spawn_await(async move { drop((captured, run.issue())) });
        #[cfg(not(feature = "async"))]
        let other = pool.evaluate(move || drop((captured, run.issue())));
        let tasks = pool.shutdown_now();
        assert_eq!(tasks.len(), 2);
        let (wakes, waker) = CountingWaker::new();
        for handle in [closure, other] {
            handle.cancel();
            let mut wait = handle;
            if is_polled {
                let context = &mut Context::from_waker(&waker);
                assert!(pin!(&mut wait).poll(context).is_pending());
            }
            drop(wait);
        }
        assert_eq!(drops.count(), 0, "it did not wait");
        tasks.into_iter().for_each(Task::run);
        assert_eq!((drops.count(), runs.count()), (2, 0));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert!(wakes.count() <= 2);
    }
}

/// The worker itself drops the task that no worker has started: no other thread comes for it.
#[test]
fn a_worker_drops_what_it_waits_for() {
    let pool = ThreadPool::new(1, 2, HOUR);
    let gate = block(&pool);
    let inner = pool.clone();
    let waits = pool.evaluate(move || {
        for cancels_first in [false, true] {
            let drops = Drops::default();
            let captured = drops.issue();
            let handle = inner.evaluate(move || drop(captured));
            if cancels_first {
                handle.cancel();
            }
            assert!(handle.cancel_and_wait().unwrap_err().is_cancelled());
            assert_eq!(drops.count(), 1);
        }
        #[cfg(feature = "async")]
        {
            let drops = Drops::default();
            let captured = drops.issue();
            let handle = inner.spawn_await(async move { drop(captured) });
            assert!(handle.cancel_and_wait().unwrap_err().is_cancelled());
            assert_eq!(drops.count(), 1);
        }
        inner.stats().peak_blocked
    });
    assert_eq!(settled(waits).unwrap(), 0, "it did not block");
    gate.open();
    assert!(pool.join_timeout(HOUR));
    let stats = pool.stats();
    assert_eq!(stats.cancelled, if cfg!(feature = "async") { 3 } else { 2 });
    assert_eq!((stats.completed, stats.in_flight()), (2, 0));
}

/// The defect: the worker that waited dropped the task of a `Task`, whose own drop then panicked.
#[test]
fn a_task_that_was_handed_back_is_gone_when_its_owner_drops_it() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let (first, second) = (block(&pool), Gate::new());
    let (sender, receiver) = std::sync::mpsc::channel::<JoinHandle<()>>();
    let (sends, is_waiting) = std::sync::mpsc::channel();
    let arrives = Arc::clone(&second);
    pool.execute(move || {
        arrives.meet(2);
        let handle = receiver.recv_timeout(LIMIT).unwrap();
        handle.cancel();
        sends.send(handle.cancel_and_wait().is_err()).unwrap();
    });
    second.meet(2);
    let drops = Drops::default();
    let captured = drops.issue();
    let handle = pool.evaluate(move || drop(captured));
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 1);
    sender.send(handle).unwrap();
    wait_until("it waits", || pool.stats().blocked == 1 || drops.count() > 0);
    assert_eq!(drops.count(), 0);
    drop(tasks);
    assert!(is_waiting.recv_timeout(LIMIT).unwrap());
    assert_eq!(drops.count(), 1);
    first.open();
    assert!(pool.join_timeout(LIMIT));
}

/// The ways to cancel a handle's task, none of which waits for a worker.
const WAYS: [fn(JoinHandle<()>); 3] = [
    |handle| {
        handle.cancel();
        assert!(handle.is_finished(), "this call has dropped the task");
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
    },
    |handle| drop(handle.cancel_on_drop()),
    |handle| assert!(handle.cancel_and_wait().unwrap_err().is_cancelled()),
];

/// The tasks that can be cancelled while the pool's only worker is busy.
fn cancellable(pool: &ThreadPool, captured: impl Clone + Send + 'static) -> Vec<JoinHandle<()>> {
    let (closure, completed) = (captured.clone(), captured.clone());
    vec![
        pool.evaluate(move || drop(closure)),
        pool.complete(async move { drop(completed) }),
        #[cfg(feature = "async")]
        pool.spawn_await(async move { drop(captured) }),
    ]
}

/// Nothing of a cancelled task waits for a worker: neither what it captured, nor its place in the
/// counts of its pool and view.
#[test]
fn a_canceller_drops_a_task_that_has_not_been_started() {
    for way in WAYS {
        for is_in_view in [false, true] {
            let pool = ThreadPool::new(1, 1, HOUR);
            let gate = block(&pool);
            let view = is_in_view.then(|| pool.view().build());
            let target = view.as_deref().unwrap_or(&pool);
            let captured = Arc::new(());
            let handles = cancellable(target, Arc::clone(&captured));
            let count = handles.len();
            let busy = usize::from(!is_in_view);
            assert_eq!(target.stats().queued, count);
            handles.into_iter().for_each(way);
            assert_eq!(Arc::strong_count(&captured), 1, "it was dropped");
            let stats = target.stats();
            assert_eq!((stats.queued, stats.in_flight(), stats.cancelled), (0, busy, count));
            assert_eq!(target.queued_count(), 0);
            assert_eq!((pool.stats().queued, pool.stats().in_flight()), (0, 1));
            assert_eq!(target.join_timeout(Duration::ZERO), is_in_view);
            gate.open();
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (1, count, 0));
            settled(pool.evaluate(|| ())).unwrap();
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    }
}

/// In a bounded queue another task takes its permit.
#[test]
fn a_cancelled_task_gives_its_permit_back() {
    for way in WAYS {
        let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
        for _ in 0..100 {
            let gate = block(&pool);
            let handle = pool.evaluate(|| unreachable!("it is cancelled"));
            assert!(pool.try_execute(|| ()).is_err(), "the queue is full");
            way(handle);
            let last = pool.try_evaluate(|| 1).expect("there is capacity");
            assert!(pool.try_execute(|| ()).is_err(), "the queue is full");
            gate.open();
            assert_eq!(settled(last).unwrap(), 1);
            assert!(pool.join_timeout(LIMIT));
        }
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (200, 100));
        // All permits are free.
        let gate = block(&pool);
        let last = pool.try_evaluate(|| 1).expect("there is capacity");
        assert!(pool.try_execute(|| ()).is_err(), "the queue is full");
        gate.open();
        settled(last).unwrap();
    }
}

/// The entries that cancelled tasks leave behind are in no count: a shutdown that finds them gives
/// nothing back twice.
#[test]
fn an_immediate_shutdown_skips_what_was_cancelled() {
    for capacity in [None, Some(10)] {
        let builder = ThreadPool::builder().core_size(1).max_size(1);
        let pool = match capacity {
            Some(capacity) => builder.queue_capacity(capacity),
            None => builder,
        }
        .build();
        let gate = block(&pool);
        let drops = Drops::default();
        let handles = cancellable(&pool, Arc::new(drops.issue()));
        let count = handles.len();
        handles.iter().for_each(JoinHandle::cancel);
        assert_eq!(drops.count(), 1);
        let group = pool.group::<()>();
        (0..3).for_each(|_| group.execute(|| Ok(())).unwrap());
        group.cancel();
        let kept = pool.evaluate(|| 1);
        let tasks = pool.shutdown_now();
        assert_eq!(tasks.len(), 1);
        tasks.into_iter().for_each(elastipool::Task::run);
        assert_eq!(settled(kept).unwrap(), 1);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.cancelled, stats.handed_back), (1, count + 3, 1));
        assert_eq!((stats.queued, stats.in_flight()), (0, 0));
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// What each task holds cancels the next one as it is dropped: the stack does not grow with their
/// number.
#[test]
fn a_chain_of_cancellations_does_not_nest_without_bound() {
    struct CancelOnDrop(Option<JoinHandle<()>>);

    impl Drop for CancelOnDrop {
        fn drop(&mut self) {
            if let Some(handle) = self.0.take() {
                handle.cancel();
            }
        }
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    let count = 50_000;
    let mut last = None;
    for number in 0..count {
        let next = CancelOnDrop(last);
        #[cfg(feature = "async")]
        if number % 2 == 0 {
            last = Some(pool.spawn_await(async move { drop(next) }));
            continue;
        }
        let _ = number;
        last = Some(pool.evaluate(move || drop(next)));
    }
    drop(CancelOnDrop(last));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    // A worker drops those that are too deep: it may have run some of them before.
    let stats = pool.stats();
    assert!(stats.cancelled > 1);
    assert_eq!((stats.cancelled + stats.completed, stats.panicked), (count + 1, 0));
}

/// It would wait for its own end: in a destructor of what it has captured, and while it runs.
#[test]
fn a_task_that_waits_for_its_own_handle_panics() {
    struct Waits(Option<mpsc::Receiver<JoinHandle<()>>>, mpsc::Sender<String>);

    impl Waits {
        fn wait(&mut self) {
            if let Some(own) = self.0.take().and_then(|own| own.recv_timeout(LIMIT).ok()) {
                self.1.send(panic_text(|| own.try_await_complete())).unwrap();
            }
        }
    }

    impl Drop for Waits {
        fn drop(&mut self) {
            self.wait();
        }
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    for is_run in [false, true] {
        let gate = block(&pool);
        for is_future in [false, true] {
            let ((sends, own), (texts, text)) = (mpsc::channel(), mpsc::channel());
            let mut waits = Waits(Some(own), texts);
            let handle = if is_future {
                pool.complete(async move { waits.wait() })
            } else {
                let inner = pool.clone();
                pool.evaluate(move || {
                    // On top of this one.
                    inner.evaluate(|| ()).await_complete();
                    waits.wait();
                })
            };
            let stop = handle.abort_handle();
            sends.send(handle).unwrap();
            if is_run {
                gate.open();
            } else {
                stop.cancel();
            }
            let text = text.recv_timeout(LIMIT).unwrap();
            assert!(text.contains("its own handle"), "{text}");
        }
        gate.open();
        assert!(pool.join_timeout(LIMIT));
    }
    // Not a wait with a limit, nor one for the end of another task.
    let (sends, own) = mpsc::channel::<JoinHandle<bool>>();
    let other = pool.evaluate(|| 7);
    let handle = pool.evaluate(move || {
        let own = own.recv().unwrap();
        assert_eq!(other.await_complete(), 7);
        let own = own.await_complete_timeout(Duration::from_millis(1)).unwrap_err();
        // At once: it could not end in time.
        own.await_complete_timeout(HOUR).is_err()
    });
    let seen = handle.abort_handle();
    sends.send(handle).unwrap();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().panicked, pool.stats().in_flight()), (0, 0), "{seen:?}");
}

/// A destructor that panics, or joins the pool, on the canceller's thread.
#[test]
fn a_canceller_contains_what_a_destructor_does() {
    struct Bomb(Option<ThreadPool>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            match self.0.take() {
                Some(pool) => drop(pool.join_timeout(HOUR)),
                None => panic!("on purpose"),
            }
        }
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let gate = block(&pool);
    for joins in [false, true] {
        let bomb = || Bomb(joins.then(|| pool.clone()));
        let (first, second) = (bomb(), bomb());
        let handle = pool.evaluate(move || drop(first));
        handle.cancel();
        assert!(settled(handle).is_err());
        let handle = pool.complete(async move { drop(second) });
        assert!(cancelled(handle).is_err());
    }
    assert_eq!((pool.stats().cancelled, pool.stats().in_flight()), (4, 1));
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

#[cfg(feature = "async")]
mod futures {
    use std::future::{pending, poll_fn};

    use super::common::{Trigger, triggered};
    use super::*;

    /// Spawns a future that holds `captured` and is pending.
    fn spawn_pending<T: Send + 'static>(
        pool: &ThreadPool,
        captured: T,
    ) -> (JoinHandle<()>, Trigger) {
        let (trigger, triggered) = triggered();
        let handle = pool.spawn_await(async move {
            let _captured = captured;
            triggered.await;
        });
        wait_until("it is pending", || trigger.polls() == 1);
        (handle, trigger)
    }

    #[test]
    fn a_pending_future_is_dropped_before_the_wait_ends() {
        let pool = ThreadPool::new(2, 2, HOUR);
        for round in 0..1000 {
            let drops = Drops::default();
            let captured = drops.issue();
            let handle = pool.spawn_await(async move {
                let _captured = captured;
                pending::<()>().await;
            });
            if round % 3 == 0 {
                handle.cancel();
            }
            let _ = handle.cancel_and_wait();
            assert_eq!(drops.count(), 1);
        }
    }

    /// It waits for a wake, or was woken and is queued again: the canceller drops it while its
    /// worker is busy.
    #[test]
    fn a_future_whose_worker_is_busy_is_dropped_by_its_canceller() {
        for way in WAYS {
            for is_woken in [false, true] {
                let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
                let drops = Drops::default();
                let (handle, trigger) = spawn_pending(&pool, drops.issue());
                let gate = block(&pool);
                if is_woken {
                    trigger.fire();
                }
                let queued = usize::from(is_woken);
                assert_eq!((pool.stats().queued, pool.stats().pending), (queued, 1 - queued));
                way(handle);
                assert_eq!(drops.count(), 1);
                let stats = pool.stats();
                assert_eq!((stats.in_flight(), stats.queued, stats.cancelled), (1, 0, 1));
                // Late wakes find nothing.
                trigger.fire();
                pool.try_execute(|| ()).expect("there is capacity");
                assert!(pool.try_execute(|| ()).is_err(), "the queue is full");
                gate.open();
                assert!(pool.join_timeout(LIMIT));
                let stats = pool.stats();
                assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (2, 1, 0));
                let gate = block(&pool);
                pool.try_execute(|| ()).expect("there is capacity");
                assert!(pool.try_execute(|| ()).is_err(), "the queue is full");
                gate.open();
                assert!(pool.shutdown_join_timeout(LIMIT));
            }
        }
    }

    #[test]
    fn a_future_that_is_being_dropped_is_not_gone() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (slow, drops) = (Gate::new(), Drops::default());
        let group = pool.group::<()>();
        let (trigger, triggered) = triggered();
        let captured = SlowDrop(Arc::clone(&slow), drops.issue());
        let handle = group.spawn_await(async move {
            let _captured = captured;
            triggered.await;
        });
        wait_until("it is pending", || trigger.polls() == 1);
        let canceller = thread::spawn(move || group.cancel());
        slow.wait_for(1);
        let result = gone_after(handle, &drops, || slow.open());
        assert!(result.unwrap_err().is_cancelled());
        canceller.join().unwrap();
    }

    /// No thread has cancelled it: nothing can wake it any more.
    #[test]
    fn a_future_that_is_dropped_with_its_last_waker_is_not_gone_before() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (slow, drops) = (Gate::new(), Drops::default());
        let (handle, trigger) = spawn_pending(&pool, SlowDrop(Arc::clone(&slow), drops.issue()));
        let dropper = thread::spawn(|| drop(trigger));
        slow.wait_for(1);
        let result = gone_after(handle, &drops, || slow.open());
        assert!(result.unwrap_err().is_cancelled());
        dropper.join().unwrap();
    }

    #[test]
    fn a_future_that_is_polled_is_waited_for() {
        for is_ready in [false, true] {
            let pool = ThreadPool::new(1, 1, HOUR);
            let (gate, drops) = (Gate::new(), Drops::default());
            let (passes, captured) = (Arc::clone(&gate), drops.issue());
            let handle = pool.spawn_await(poll_fn(move |_| {
                let _captured = &captured;
                passes.pass();
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            }));
            gate.wait_for(1);
            let result = gone_after(handle, &drops, || gate.open());
            assert_eq!(result.is_ok(), is_ready);
        }
    }

    /// Its destructor panics: it is gone all the same.
    #[test]
    fn a_future_whose_drop_panics_is_gone() {
        struct Bomb;

        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }

        let pool = ThreadPool::new(1, 1, HOUR);
        let (handle, _trigger) = spawn_pending(&pool, Bomb);
        assert!(cancelled(handle).unwrap_err().is_cancelled());
    }

    /// The only worker waits for the drop of a future that it cannot claim: another thread takes
    /// its place (law 10).
    #[test]
    fn a_worker_that_waits_is_replaced() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let drops = Drops::default();
        let (handle, _trigger) = spawn_pending(&pool, drops.issue());
        let waits = pool.evaluate(move || (handle.cancel_and_wait().is_err(), drops.count()));
        assert_eq!(settled(waits).unwrap(), (true, 1));
        // As a future, it leaves its worker free.
        let drops = Drops::default();
        let (handle, _trigger) = spawn_pending(&pool, drops.issue());
        let waits = pool.spawn_await(async move {
            handle.cancel();
            (handle.await.is_err(), drops.count())
        });
        assert_eq!(settled(waits).unwrap(), (true, 1));
    }

    #[test]
    fn an_immediate_shutdown_cancels_first() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let drops = Drops::default();
        let slow = Gate::new();
        let (handle, _trigger) = spawn_pending(&pool, SlowDrop(Arc::clone(&slow), drops.issue()));
        let stops = thread::spawn(move || drop(pool.shutdown_now()));
        slow.wait_for(1);
        let result = gone_after(handle, &drops, || slow.open());
        assert!(result.unwrap_err().is_cancelled());
        stops.join().unwrap();
    }
}

/// As above, in the destructor of a future that is cancelled in its poll: the polling thread drops
/// it.
#[cfg(feature = "async")]
#[test]
fn a_future_that_is_cancelled_in_its_poll_may_not_wait_for_its_own_handle() {
    struct Waits(mpsc::Receiver<JoinHandle<()>>, mpsc::Sender<String>);

    impl Drop for Waits {
        fn drop(&mut self) {
            let own = self.0.recv_timeout(LIMIT).unwrap();
            self.1.send(panic_text(|| own.await_complete())).unwrap();
        }
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let ((sends, own), (texts, text)) = (mpsc::channel(), mpsc::channel());
    let (gate, waits) = (Gate::new(), Waits(own, texts));
    let passes = Arc::clone(&gate);
    let handle = pool.spawn_await(async move {
        let _waits = waits;
        passes.pass();
        std::future::pending::<()>().await;
    });
    gate.wait_for(1);
    handle.cancel();
    sends.send(handle).unwrap();
    gate.open();
    let text = text.recv_timeout(LIMIT).expect("it does not hang");
    assert!(text.contains("its own handle"), "{text}");
    assert!(pool.join_timeout(LIMIT));
}
