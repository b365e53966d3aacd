//! Futures that are woken by the poll of another one.

use std::future::{Future, poll_fn};
use std::task::{Poll, Waker};

use super::{
    Arc, AtomicBool, Configuration, Gate, Mutex, Ordering, ThreadPool, explore, explore_as, long,
    pair, pool, thread, with_local_queues,
};
use crate::blocking;
use crate::queue::Kind;
use crate::sched::WorkerContext;
use crate::sync::{STARTS_KEEPER, TASK_NANOS};
use crate::task::{Action, Begin, Job, Outcome, Run, Withdrawal};

/// Spawns a future that runs `task` once `ready` is set and it is woken. Waits for its first
/// poll.
fn sleeper(
    pool: &ThreadPool,
    ready: &Arc<AtomicBool>,
    task: impl FnOnce() + Send + 'static,
) -> Waker {
    let slot = Arc::new(Mutex::new(None::<Waker>));
    let (ready, address, mut task) = (Arc::clone(ready), Arc::clone(&slot), Some(task));
    pool.spawn(poll_fn(move |context| {
        if ready.load(Ordering::Relaxed) {
            task.take().expect("polled once more")();
            return Poll::Ready(());
        }
        *address.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    }));
    loop {
        if let Some(waker) = slot.lock().unwrap().take() {
            return waker;
        }
        thread::yield_now();
    }
}

/// A future that yields, then calls `poll` in each poll until it returns `true`.
fn after_yield(mut poll: impl FnMut() -> bool + Send) -> impl Future<Output = ()> + Send {
    let mut has_yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut has_yielded, true) && poll() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A future wakes two others, which need each other: another worker gets one, after the poll.
#[test]
fn a_poll_wakes_two_that_need_each_other() {
    let before = TASK_NANOS.get();
    for nanos in [before, u32::MAX] {
        TASK_NANOS.set(nanos);
        explore(1, || {
            let pool = pool(1, 2);
            let ready = Arc::new(AtomicBool::new(false));
            let wakers = pair().map(|task| sleeper(&pool, &ready, task));
            let mut wakers = Some(wakers);
            pool.spawn(after_yield(move || {
                ready.store(true, Ordering::Relaxed);
                wakers.take().into_iter().flatten().for_each(Waker::wake);
                true
            }));
            pool.shutdown_join();
        });
    }
    TASK_NANOS.set(before);
}

/// A future wakes another one and waits for it in the same poll, unseen by the pool: the keeper
/// tells another worker.
#[test]
fn a_poll_waits_for_another_that_it_wakes() {
    explore(0, || {
        STARTS_KEEPER.set(true);
        let pool = with_local_queues(1, 2).build();
        let ready = Arc::new(AtomicBool::new(false));
        let (gate, ended) = (Gate::new(), Arc::new(AtomicBool::new(false)));
        let (opening, ends) = (gate.clone(), Arc::clone(&ended));
        let mut waker = Some(sleeper(&pool, &ready, move || opening.open()));
        pool.spawn(after_yield(move || {
            ready.store(true, Ordering::Relaxed);
            waker.take().expect("polled once").wake();
            gate.pass();
            ends.store(true, Ordering::Relaxed);
            true
        }));
        while !ended.load(Ordering::Relaxed) {
            pool.shared().keeper.expire();
            thread::yield_now();
        }
        pool.shutdown_join();
    });
}

/// A future wakes another one and yields; the other one needs its next poll.
#[test]
fn a_poll_wakes_another_and_yields() {
    explore(1, || {
        let pool = pool(1, 2);
        let ready = Arc::new(AtomicBool::new(false));
        let gate = Gate::new();
        let waiting = gate.clone();
        let mut waker = Some(sleeper(&pool, &ready, move || waiting.pass()));
        pool.spawn(after_yield(move || match waker.take() {
            Some(waker) => {
                ready.store(true, Ordering::Relaxed);
                waker.wake();
                false
            }
            None => {
                gate.open();
                true
            }
        }));
        pool.shutdown_join();
    });
}

/// A future wakes another one in a blocking region, and waits there for its effect.
#[test]
fn a_poll_wakes_another_in_a_region() {
    explore(1, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let gate = Gate::new();
        let opening = gate.clone();
        let mut waker = Some(sleeper(&pool, &ready, move || opening.open()));
        pool.spawn(after_yield(move || {
            ready.store(true, Ordering::Relaxed);
            blocking(|| {
                waker.take().expect("polled once").wake();
                gate.pass();
            });
            true
        }));
        pool.shutdown_join();
    });
}
/// A future yields, and its worker takes a task that needs the next poll: another worker makes it.
#[test]
fn a_yield_versus_a_task_that_needs_it() {
    // A worker of short tasks shares no woken futures before it runs one. That of coarse ones has
    // put this one in line.
    let before = TASK_NANOS.get();
    for (make, nanos, is_second) in [
        (crate::models::builder as fn(_, _) -> _, before, false),
        (with_local_queues, before, false),
        (with_local_queues, 0, false),
        (with_local_queues, u32::MAX, false),
        (with_local_queues, before, true),
    ] {
        TASK_NANOS.set(nanos);
        explore(1, move || {
            let pool = make(1, 2).build();
            let gate = Gate::new();
            let opening = gate.clone();
            pool.spawn(after_yield(move || {
                opening.open();
                true
            }));
            if is_second {
                // The one that comes first after the yield.
                pool.execute(|| ());
            }
            pool.execute(move || gate.pass());
            pool.shutdown_join();
        });
    }
    TASK_NANOS.set(before);
}

/// Race 22: a future that yields in a coarse poll goes to the injector, and the worker then takes
/// an older one from its local queue. Another thread, which is about to rest, looks at the injector
/// before that and at the local queue after it.
#[test]
fn a_coarse_yield_versus_a_look() {
    explore(3, || {
        let pool = pool(0, 1);
        let shared = Arc::clone(pool.shared());
        let worker = WorkerContext::new(&shared, Arc::default());
        worker.push(&shared.queue, Kind::Woken, Job::woken(Arc::new(Ended)));
        let looks = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.queue.is_empty())
        };
        let before = TASK_NANOS.replace(u32::MAX);
        worker.push_yielded(&shared.queue, Arc::new(Ended));
        TASK_NANOS.set(before);
        let take = || drop(worker.pop(&shared.queue).expect("it is queued").run());
        take();
        let needs_notify = worker.take_owed().is_some();
        let has_missed = looks.join().unwrap();
        assert!(needs_notify || !has_missed);
        take();
        _ = worker.close();
        pool.shutdown_join();
    });
}

/// A future that needs one poll more.
struct Ended;

impl Run for Ended {
    fn advance(self: Arc<Self>, _action: Action, _begin: Option<Begin<'_>>) -> Outcome {
        Outcome::Completed
    }

    fn take_if_stale(&self) -> bool {
        false
    }

    fn withdraw(&self, _is_new: bool) -> Withdrawal {
        Withdrawal::Abandon
    }

    fn cancel(self: Arc<Self>) {}
}

/// A future wakes another one, and its worker takes a task that needs the other one first.
#[test]
fn a_poll_wakes_another_versus_a_task_that_needs_it() {
    // With short intervals the worker takes the task before the future that it has woken.
    let before = TASK_NANOS.get();
    for (configuration, nanos) in [(Configuration::Shipped, before), (Configuration::Reduced, 0)] {
        TASK_NANOS.set(nanos);
        explore_as(configuration, long(1), || {
            let pool = pool(1, 2);
            let ready = Arc::new(AtomicBool::new(false));
            let gate = Gate::new();
            let opening = gate.clone();
            let mut waker = Some(sleeper(&pool, &ready, move || opening.open()));
            pool.spawn(after_yield(move || {
                ready.store(true, Ordering::Relaxed);
                waker.take().expect("polled once").wake();
                true
            }));
            pool.execute(move || gate.pass());
            pool.shutdown_join();
        });
    }
    TASK_NANOS.set(before);
}
