//! `cancel_and_wait` and `cancelling` end when the task is gone, however far it has come.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use common::{CountingWaker, Drops, Gate, HOUR, LIMIT, block, settled, wait_until};
use elastipool::{Cancelling, JoinError, JoinHandle, ThreadPool};

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

/// Asserts that the task is not gone until `open` is called, and that its waiter is woken then.
fn gone_after<T>(
    cancelling: Cancelling<T>,
    drops: &Drops,
    open: impl FnOnce(),
) -> Result<T, JoinError> {
    let (wakes, waker) = CountingWaker::new();
    let mut cancelling = pin!(cancelling);
    let mut poll = || cancelling.as_mut().poll(&mut Context::from_waker(&waker));
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
    assert_eq!(gone_after(handle.cancelling(), &drops, || gate.open()).unwrap(), 1);
}

#[test]
fn a_queued_closure_is_dropped_by_a_worker() {
    for cancels_first in [false, true] {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (gate, drops) = (block(&pool), Drops::default());
        let captured = drops.issue();
        let handle = pool.evaluate(move || drop(captured));
        if cancels_first {
            handle.cancel();
            assert!(handle.is_finished(), "a cancelled handle resolves at once");
        }
        let result = gone_after(handle.cancelling(), &drops, || gate.open());
        assert!(result.unwrap_err().is_cancelled());
    }
}

#[test]
fn a_closure_that_is_being_dropped_is_not_gone() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (gate, slow, drops) = (block(&pool), Gate::new(), Drops::default());
    let captured = SlowDrop(Arc::clone(&slow), drops.issue());
    let handle = pool.evaluate(move || drop(captured));
    handle.cancel();
    gate.open();
    slow.wait_for(1);
    let result = gone_after(handle.cancelling(), &drops, || slow.open());
    assert!(result.unwrap_err().is_cancelled());
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
    assert!(gone_after(one.cancelling(), &drops, || drop(tasks.remove(0))).is_err());
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
    assert!(gone_after(handle.cancelling(), &drops, || slow.open()).is_err());
    dropper.join().unwrap();
}

/// The future was polled or not: its task stays cancelled, and nothing waits for it.
#[test]
fn dropping_the_wait_detaches_the_task_which_stays_cancelled() {
    for is_polled in [false, true] {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (gate, drops, runs) = (block(&pool), Drops::default(), Drops::default());
        let mut waits = Vec::new();
        let (captured, run) = (drops.issue(), runs.clone());
        waits.push(pool.evaluate(move || drop((captured, run.issue()))).cancelling());
        #[cfg(feature = "async")]
        {
            let (captured, run) = (drops.issue(), runs.clone());
            let future = async move { drop((captured, run.issue())) };
            waits.push(pool.spawn_await(future).cancelling());
        }
        let count = waits.len();
        let (wakes, waker) = CountingWaker::new();
        for mut wait in waits {
            if is_polled {
                let context = &mut Context::from_waker(&waker);
                assert!(pin!(&mut wait).poll(context).is_pending());
            }
            drop(wait);
        }
        assert_eq!(drops.count(), 0, "it did not wait");
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((drops.count(), runs.count()), (count, 0));
        assert_eq!(pool.stats().cancelled, count);
        assert!(wakes.count() <= count);
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

    #[test]
    fn a_future_whose_worker_is_busy_is_dropped_later() {
        for cancels_first in [false, true] {
            let pool = ThreadPool::new(1, 1, HOUR);
            let drops = Drops::default();
            let (handle, _trigger) = spawn_pending(&pool, drops.issue());
            let gate = block(&pool);
            if cancels_first {
                handle.cancel();
                assert!(handle.is_finished(), "a cancelled handle resolves at once");
            }
            let result = gone_after(handle.cancelling(), &drops, || gate.open());
            assert!(result.unwrap_err().is_cancelled());
        }
    }

    #[test]
    fn a_future_that_is_being_dropped_is_not_gone() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (slow, drops) = (Gate::new(), Drops::default());
        let (handle, _trigger) = spawn_pending(&pool, SlowDrop(Arc::clone(&slow), drops.issue()));
        handle.cancel();
        slow.wait_for(1);
        let result = gone_after(handle.cancelling(), &drops, || slow.open());
        assert!(result.unwrap_err().is_cancelled());
    }

    /// No thread has cancelled it: nothing can wake it any more.
    #[test]
    fn a_future_that_is_dropped_with_its_last_waker_is_not_gone_before() {
        let pool = ThreadPool::new(1, 1, HOUR);
        let (slow, drops) = (Gate::new(), Drops::default());
        let (handle, trigger) = spawn_pending(&pool, SlowDrop(Arc::clone(&slow), drops.issue()));
        let dropper = thread::spawn(|| drop(trigger));
        slow.wait_for(1);
        let result = gone_after(handle.cancelling(), &drops, || slow.open());
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
            let result = gone_after(handle.cancelling(), &drops, || gate.open());
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

    /// The only worker waits for the drop of a future that it cannot claim: another thread takes its place (law 10).
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
        let waits =
            pool.spawn_await(async move { (handle.cancelling().await.is_err(), drops.count()) });
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
        let result = gone_after(handle.cancelling(), &drops, || slow.open());
        assert!(result.unwrap_err().is_cancelled());
        stops.join().unwrap();
    }
}
