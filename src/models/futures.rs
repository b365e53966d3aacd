//! Handles and futures: wakes, polls, cancellations.

use std::future::{Future, pending, poll_fn};
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{
    Arc, AtomicBool, AtomicUsize, Flagged, Gate, Mutex, Ordering, Relaxed, counting,
    expire_all_workers, explore, explore_both, long, pool, thread,
};
use crate::sched::TaskRoute;
use crate::sync::unwind::contain;
use crate::task::{Job, Withdrawal};
use crate::wait::FutureTask;
use crate::{JoinHandle, Task, ThreadPool};

/// A handle is awaited while its task ends. The checker does not see what the oneshot channel
/// publishes, so the model only checks that the value is there.
#[test]
fn a_handle_versus_its_task() {
    explore(3, || {
        let pool = pool(1, 1);
        let handle = pool.evaluate(|| 7);
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    });
}

/// A handle is cancelled while its task starts: the task runs, or it does not.
#[test]
fn cancel_versus_run() {
    explore(3, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let handle = pool.evaluate(counting(&ran));
        handle.cancel();
        let cancelled = handle.try_await_complete().is_err();
        pool.shutdown_join();
        assert_eq!(ran.get(), usize::from(!cancelled));
    });
}

/// Wake versus poll: a foreign thread wakes the future at any time.
#[test]
fn wake_versus_poll() {
    explore_both(3, 2, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let handle =
            pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) });
        ready.store(true, Ordering::Relaxed);
        // Without a waker the future has not been polled, and will see that it is ready.
        let woken = waker.lock().unwrap().take();
        if let Some(waker) = woken {
            waker.wake();
        }
        assert!(handle.try_await_complete().is_ok());
        pool.shutdown_join();
    });
}

/// Two threads wake a future that two workers may poll: both wakes count, and polls never overlap.
#[test]
fn two_wakers_versus_two_workers() {
    struct Counting {
        wakes: Arc<AtomicUsize>,
        waker: Arc<Mutex<Option<Waker>>>,
        polled: Arc<AtomicBool>,
        is_registered: bool,
    }

    impl Future for Counting {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            assert!(!self.polled.swap(true, Ordering::Relaxed), "polled by two workers at once");
            // Only once: the lock must not order what only the wake should order.
            if !self.is_registered {
                self.is_registered = true;
                *self.waker.lock().unwrap() = Some(context.waker().clone());
            }
            let wakes = self.wakes.load(Ordering::Relaxed);
            self.polled.store(false, Ordering::Relaxed);
            if wakes == 2 { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    explore(long(2), || {
        let pool = pool(1, 2);
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let polled = Arc::new(AtomicBool::new(false));
        let (count, slot) = (Arc::clone(&wakes), Arc::clone(&waker));
        let handle = pool.spawn_await(Counting { wakes, waker, polled, is_registered: false });
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
            // Without a waker the future has not been polled, and will see the count.
            let waker = slot.lock().unwrap().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        let other = thread::spawn(wake.clone());
        wake();
        assert!(handle.try_await_complete().is_ok());
        other.join().unwrap();
        drop(wake);
        pool.shutdown_join();
    });
}

/// Race 4: a foreign thread drops the last waker of a future. The future is cancelled, and the
/// worker that stayed for it retires.
#[test]
fn an_abandoned_future_releases_the_last_worker() {
    explore_both(3, 2, || {
        let pool = pool(0, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let handle =
            pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) });
        let taken = waker.lock().unwrap().take();
        let polled = taken.is_some();
        drop(taken);
        if !polled {
            // Not polled yet: cancel it.
            handle.cancel();
        }
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.join();
        expire_all_workers(&pool);
        pool.shutdown_join();
    });
}

/// Race 4: a foreign thread drops the last waker of a closed pool's last future, and two workers
/// rest. Both leave.
#[test]
fn an_abandoned_future_ends_a_closed_pool() {
    explore(0, || {
        let pool = pool(0, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.execute(move || gate.open());
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        pool.spawn(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) });
        while pool.idle_worker_count() < 2 {
            thread::yield_now();
        }
        pool.close();
        let taken = waker.lock().unwrap().take();
        assert!(taken.is_some(), "the future was polled");
        drop(taken);
        pool.shutdown_join();
    });
}

/// Says whether a worker drops it.
struct DroppedBy(Relaxed);

impl Drop for DroppedBy {
    fn drop(&mut self) {
        if crate::worker_index().is_some() {
            self.0.increment();
        }
    }
}

/// Race 46: two threads drop the last wakers of a future. A worker drops the future, not one of
/// them, whether or not its poll has returned, and before a join does.
#[test]
fn the_last_wakers_versus_a_poll() {
    explore(2, || {
        let pool = pool(1, 1);
        let (slot, by_worker) = (Arc::new(Mutex::new(None::<Waker>)), Relaxed::new());
        let (place, guard) = (Arc::clone(&slot), DroppedBy(by_worker.clone()));
        let handle = pool.spawn_await(poll_fn(move |context| -> Poll<()> {
            let _captured = &guard;
            *place.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        }));
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take();
        let other = waker.clone();
        let dropper = thread::spawn(move || drop(other));
        drop(waker);
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        dropper.join().unwrap();
        pool.join();
        assert_eq!(by_worker.get(), 1);
        pool.shutdown_join();
    });
}

/// The last future of a scope is woken from outside while the scope's thread begins to wait, or
/// polls it: the scope ends after it, and sees what it wrote.
#[test]
fn the_end_of_a_scope_versus_a_wake_of_its_last_future() {
    explore(2, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let future = Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) };
        let waking = thread::spawn(move || {
            ready.store(true, Ordering::Relaxed);
            // Without a waker the future has not been polled, and will see that it is ready.
            let woken = waker.lock().unwrap().take();
            if let Some(waker) = woken {
                waker.wake();
            }
        });
        let ended = Relaxed::new();
        pool.scope(|scope| {
            scope.spawn(async {
                future.await;
                ended.increment();
            });
        });
        assert_eq!(ended.get(), 1);
        waking.join().unwrap();
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// Race 24: the body of a scope panics while a worker polls its future for the first time, or its
/// thread does. The future is dropped before the scope unwinds, though it has a waker.
#[test]
fn a_scope_that_panics_versus_a_poll() {
    struct DropsInto<'a>(&'a Relaxed);

    impl Drop for DropsInto<'_> {
        fn drop(&mut self) {
            self.0.increment();
        }
    }

    explore(2, || {
        let pool = pool(1, 1);
        let (waker, dropped) = (Mutex::new(None::<Waker>), Relaxed::new());
        let unwound = contain(|| {
            pool.scope(|scope| {
                let (guard, waker) = (DropsInto(&dropped), &waker);
                scope.spawn(poll_fn(move |context| {
                    let _captured = &guard;
                    *waker.lock().unwrap() = Some(context.waker().clone());
                    Poll::Pending
                }));
                resume_unwind(Box::new("of the body"));
            });
        });
        assert!(unwound.is_err());
        assert_eq!(dropped.get(), 1);
        assert!(waker.into_inner().unwrap().is_some(), "it was polled");
        pool.join();
        assert_eq!(pool.shared().in_flight.count(), 0);
        pool.shutdown_join();
    });
}

/// Race 46: the last waker of a future is dropped while its handle cancels it. It is in the queue
/// once.
#[test]
fn the_last_waker_versus_cancel() {
    explore(1, || {
        let pool = pool(1, 1);
        let (slot, by_worker) = (Arc::new(Mutex::new(None::<Waker>)), Relaxed::new());
        let (place, guard) = (Arc::clone(&slot), DroppedBy(by_worker.clone()));
        let handle = pool.spawn_await(poll_fn(move |context| -> Poll<()> {
            let _captured = &guard;
            *place.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        }));
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take();
        let canceller = thread::spawn(move || {
            handle.cancel();
            handle
        });
        drop(waker);
        let handle = canceller.join().expect("it does not panic");
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.join();
        // The worker drops the future, or the canceller does.
        assert!(by_worker.get() <= 1);
        assert_eq!(pool.stats().cancelled, 1);
        pool.shutdown_join();
    });
}

/// Race 46: the last waker of a future is dropped while a shutdown cancels it, and a worker takes
/// it. Its handle is settled once.
#[test]
fn the_last_waker_versus_shutdown_now() {
    explore(1, || {
        let pool = pool(1, 1);
        let (slot, by_worker) = (Arc::new(Mutex::new(None::<Waker>)), Relaxed::new());
        let (place, guard) = (Arc::clone(&slot), DroppedBy(by_worker.clone()));
        let handle = pool.spawn_await(poll_fn(move |context| -> Poll<()> {
            let _captured = &guard;
            *place.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        }));
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take();
        let dropper = thread::spawn(move || drop(waker));
        assert!(pool.shutdown_now().is_empty());
        dropper.join().expect("it does not panic");
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.shutdown_join();
        assert_eq!(by_worker.get(), 1);
    });
}

/// Returns the handle of a future that waits for a wake, the flag that makes it ready, and its
/// waker.
fn pending_future(pool: &ThreadPool) -> (JoinHandle<()>, Arc<AtomicBool>, Waker) {
    let ready = Arc::new(AtomicBool::new(false));
    let slot = Arc::new(Mutex::new(None::<Waker>));
    let future = Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&slot) };
    let handle = pool.spawn_await(future);
    while slot.lock().unwrap().is_none() {
        thread::yield_now();
    }
    let waker = slot.lock().unwrap().take().unwrap();
    (handle, ready, waker)
}

/// Race 8: a future is woken and cancelled during a shutdown. Its entry keeps the pool alive, so
/// no thread is started afterwards.
#[test]
fn wake_versus_cancel_versus_shutdown() {
    explore_both(2, 1, || {
        let pool = pool(0, 1);
        let (handle, _, waker) = pending_future(&pool);
        let shared = Arc::clone(pool.shared());
        let other = thread::spawn(move || waker.wake());
        handle.cancel();
        pool.shutdown_join();
        let started = shared.stats().threads_started;
        other.join().unwrap();
        assert_eq!(shared.stats().threads_started, started);
        assert_eq!(shared.stats().queued, 0);
        assert!(handle.is_finished());
    });
}

/// Race 16: the thread that wakes a future is slower than the future's cancellation and the
/// shutdown. The entry that it pushes is stale, and it starts no thread for that in a pool that is
/// over.
#[test]
fn a_slow_wake_versus_shutdown() {
    explore(1, || {
        let pool = pool(0, 1);
        let (handle, _, waker) = pending_future(&pool);
        let shared = Arc::clone(pool.shared());
        // The waker is the first thread, so that it loses its CPU once, and not twice.
        let other = thread::spawn(move || {
            handle.cancel();
            let shared = Arc::clone(pool.shared());
            pool.shutdown_join();
            shared.stats().threads_started
        });
        waker.wake();
        let started = other.join().unwrap();
        assert_eq!(shared.stats().threads_started, started);
        assert_eq!(shared.counts.load().total(), 0);
    });
}

/// A pending future is cancelled while a worker polls it.
#[test]
fn cancel_versus_poll() {
    explore(3, || {
        let pool = pool(1, 1);
        let handle = pool.spawn_await(pending::<()>());
        handle.cancel();
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.shutdown_join();
    });
}

/// A canceller waits until a future is gone, which a worker polls or drops meanwhile.
#[test]
fn cancel_and_wait_versus_poll() {
    explore(2, || {
        let pool = pool(1, 1);
        let (dropped, slot) = (Arc::new(DropCount::new(0)), Arc::new(Mutex::new(None)));
        let (guard, address) = (CountedDrop(Arc::clone(&dropped)), Arc::clone(&slot));
        // Its waker keeps it: it is dropped only because it is cancelled.
        let handle = pool.spawn_await(poll_fn(move |context| {
            let _guard = &guard;
            *address.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        assert!(handle.cancel_and_wait().is_err());
        assert_eq!(dropped.load(std::sync::atomic::Ordering::SeqCst), 1);
        drop(slot);
        pool.shutdown_join();
    });
}

/// A canceller waits until a closure is gone, which a worker runs or drops meanwhile.
#[test]
fn cancel_and_wait_versus_run() {
    explore(2, || {
        let pool = pool(1, 1);
        let dropped = Arc::new(DropCount::new(0));
        let guard = CountedDrop(Arc::clone(&dropped));
        let handle = pool.evaluate(move || drop(guard));
        let _ = handle.cancel_and_wait();
        assert_eq!(dropped.load(std::sync::atomic::Ordering::SeqCst), 1);
        pool.shutdown_join();
    });
}

/// Counts its drop out of the model's sight, which does not see that the channel of a result orders
/// it.
struct CountedDrop(Arc<DropCount>);

type DropCount = std::sync::atomic::AtomicUsize;

impl Drop for CountedDrop {
    fn drop(&mut self) {
        thread::yield_now();
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A future that was handed back is cancelled while its new owner runs it: it stops.
#[test]
fn cancel_versus_a_task_that_is_run() {
    explore(3, || {
        let pool = pool(0, 1);
        let (promise, mut handle) = JoinHandle::new(pool.route(), None);
        let own = TaskRoute::own_or(pool.route(), Location::caller(), true, || pool.owned_route());
        let task = FutureTask::task(pending::<()>(), promise, own);
        handle.set_task(&task);
        let job = Job::task(task);
        assert_eq!(job.withdraw(), Withdrawal::HandBack, "it was not started");
        let task = Task::new(job, Arc::clone(pool.shared()));
        let runner = thread::spawn(move || task.run());
        handle.cancel();
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        runner.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 24: an immediate shutdown versus the first poll of a future that never ends by itself.
#[test]
fn shutdown_now_versus_poll() {
    explore_both(2, 2, || {
        let pool = pool(0, 1);
        let handle = pool.spawn_await(pending::<()>());
        drop(pool.shutdown_now());
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.shutdown_join();
    });
}

/// An immediate shutdown versus a wake.
#[test]
fn shutdown_now_versus_wake() {
    explore_both(long(2), 1, || {
        let pool = pool(0, 1);
        let (handle, ready, waker) = pending_future(&pool);
        ready.store(true, Ordering::Relaxed);
        let other = thread::spawn(move || waker.wake());
        assert!(pool.shutdown_now().is_empty());
        other.join().unwrap();
        let _ = handle.try_await_complete();
        pool.shutdown_join();
    });
}
