//! Async waits whose futures are dropped, moved or left alone.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use common::waits::waker;
use common::{Gate, HOUR, LIMIT, block, joined, millis, wait_until, waited};
use elastipool::{GroupPermit, RejectReason, ThreadPool};
use futures::executor::block_on;

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn poll<T>(future: &mut Waiting<T>, waker: &Waker) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

/// The pool has no keeper, so the thread that drops the wait would call it.
#[test]
fn a_wait_for_a_slot_that_is_dropped_calls_no_waker_under_a_lock() {
    let pool = ThreadPool::new(0, 1, millis(1));
    let group = pool.group::<()>().limit(1);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    group
        .execute(move || {
            passes.pass();
            Ok(())
        })
        .unwrap();
    let ready = |group: elastipool::TaskGroup<()>| -> Waiting<_> {
        Box::pin(async move { group.ready().await.map(drop) })
    };
    let (mut first, mut second) = (ready(group.clone()), ready(group.clone()));
    assert!(poll(&mut first, Waker::noop()).is_pending());
    let (seen, calls) = (group.clone(), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&calls);
    let wakes = waker(move || {
        counts.fetch_add(1, Ordering::SeqCst);
        let _ = seen.is_cancelled();
    });
    assert!(poll(&mut second, &wakes).is_pending());
    gate.open();
    wait_until("the worker has left", || pool.current_worker_count() == 0);
    // Time for the keeper, which no count shows, to leave as well.
    thread::sleep(millis(50));
    joined(thread::spawn(move || drop(second)));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    drop(first);
    waited(&group).unwrap();
}

/// Nor one for capacity.
#[test]
fn a_wait_that_is_dropped_is_not_woken() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let gate = block(&pool);
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&calls);
    let wakes = waker(move || _ = counts.fetch_add(1, Ordering::SeqCst));
    let inner = pool.clone();
    let mut ready: Waiting<_> = Box::pin(async move { inner.ready().await.map(drop) });
    assert!(poll(&mut ready, &wakes).is_pending());
    drop(ready);
    let inner = pool.clone();
    let mut quiet: Waiting<_> = Box::pin(async move { inner.quiet().await });
    assert!(poll(&mut quiet, &wakes).is_pending());
    drop(quiet);
    let inner = pool.clone();
    let mut quiet: Waiting<_> = Box::pin(async move { inner.quiet().await });
    let woken = Gate::new();
    let opens = Arc::clone(&woken);
    assert!(poll(&mut quiet, &waker(move || opens.open())).is_pending());
    gate.open();
    wait_until("the keeper has called the last one", || woken.is_open());
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// First polled elsewhere, then blocked on by the task that has the only slot.
#[test]
fn a_wait_for_a_slot_that_moves_into_a_task_of_the_group_ends() {
    let pool = ThreadPool::new(2, 2, HOUR);
    let group = pool.group::<()>().limit(1);
    let (sender, receiver) = mpsc::channel::<Waiting<Result<GroupPermit<()>, RejectReason>>>();
    let (done, is_done) = mpsc::channel();
    group
        .execute(move || {
            let future = receiver.recv().unwrap();
            let permit = block_on(future).unwrap();
            permit.execute(move || done.send(()).map_err(drop)).unwrap();
            Ok(())
        })
        .unwrap();
    let own = group.clone();
    let mut future: Waiting<_> = Box::pin(async move { own.ready().await });
    assert!(poll(&mut future, Waker::noop()).is_pending());
    sender.send(future).ok().unwrap();
    is_done.recv_timeout(LIMIT).unwrap();
    waited(&group).unwrap();
}

/// It is held until the permit, or the future, is dropped.
#[test]
fn a_deferred_permit_after_an_immediate_shutdown_hands_its_task_back() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<()>().limit(1);
    let place = Arc::new(Mutex::new(None));
    let (own, keeps) = (group.clone(), Arc::clone(&place));
    group
        .execute(move || {
            *keeps.lock().unwrap() = Some(block_on(own.ready()).unwrap());
            Ok(())
        })
        .unwrap();
    waited(&group).unwrap();
    let deferred = place.lock().unwrap().take().unwrap();
    let with_slot = block_on(group.ready()).unwrap();
    drop(pool.shutdown_now());
    assert!(deferred.execute(|| Ok(())).is_err());
    drop(with_slot);
    let _ = group.wait();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_refused_permit_counts_one_rejection() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let group = pool.group::<()>().limit(5);
    let gate = block(&pool);
    let own = group.clone();
    let mut ready: Waiting<_> = Box::pin(async move { own.ready().await.map(drop) });
    assert!(poll(&mut ready, Waker::noop()).is_pending());
    let before = pool.stats().rejected;
    group.cancel();
    gate.open();
    assert!(block_on(ready).is_err());
    assert_eq!(pool.stats().rejected, before + 1);
}

/// The submitter calls it, which has the permit of its task.
#[test]
fn a_hook_on_a_submitter_exceeds_the_capacity() {
    [false, true].into_iter().for_each(assert_hook_exceeds_capacity);
}

fn assert_hook_exceeds_capacity(blocks: bool) {
    let handle = Arc::new(Mutex::new(None::<ThreadPool>));
    let inner = Arc::clone(&handle);
    let builder = ThreadPool::builder().core_size(0).max_size(1).queue_capacity(0);
    let named = builder.thread_name(move |_| {
        if let Some(pool) = inner.lock().unwrap().take() {
            if blocks {
                pool.execute(|| ());
            } else {
                block_on(pool.ready()).unwrap().execute(|| ()).unwrap();
            }
        }
        "named".to_owned()
    });
    let pool = named.build();
    *handle.lock().unwrap() = Some(pool.clone());
    let (sender, receiver) = mpsc::channel();
    let own = pool.clone();
    thread::spawn(move || {
        own.execute(|| ());
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(millis(5_000)).expect("hangs");
    assert!(pool.join_timeout(LIMIT));
}

#[cfg(target_os = "linux")]
mod refusal {
    use super::common::refusal::{Refusal, in_a_child};
    use super::common::value;
    use super::*;

    /// A task of the group that runs on its submitter, since there is no thread, asks for it.
    #[test]
    fn a_permit_without_a_slot_or_a_worker_runs_its_task() {
        in_a_child("refusal::a_permit_without_a_slot_or_a_worker_runs_its_task", || {
            let pool = ThreadPool::new(0, 1, millis(1));
            let group = pool.group::<()>().limit(1);
            let refusal = Refusal::begin();
            let place = Arc::new(Mutex::new(None));
            let (own, keeps) = (group.clone(), Arc::clone(&place));
            group
                .execute(move || {
                    *keeps.lock().unwrap() = Some(block_on(own.ready()).unwrap());
                    Ok(())
                })
                .unwrap();
            let permit = place.lock().unwrap().take().unwrap();
            let handle = permit.evaluate(|| 6 * 7);
            assert_eq!(value(handle), 42);
            waited(&group).unwrap();
            refusal.end();
            assert!(pool.shutdown_join_timeout(LIMIT));
        });
    }

    /// There is no thread of the pool to wait for.
    #[test]
    fn the_end_waits_for_a_task_on_its_submitter() {
        in_a_child("refusal::the_end_waits_for_a_task_on_its_submitter", || {
            let pool = ThreadPool::new(0, 1, millis(1));
            let (inner, gate) = (pool.clone(), Gate::new());
            let (begin, begun) = mpsc::channel();
            let passes = Arc::clone(&gate);
            let submitter = thread::spawn(move || {
                begun.recv().unwrap();
                inner.execute(move || passes.pass());
            });
            let refusal = Refusal::begin();
            begin.send(()).unwrap();
            gate.wait_for(1);
            refusal.end();
            pool.close();
            let mut end: Waiting<()> = {
                let pool = pool.clone();
                Box::pin(async move { pool.terminated().await })
            };
            let noop = Waker::noop();
            // Long enough for the thread that waits: nothing shows what it does.
            for _ in 0..20 {
                assert!(poll(&mut end, noop).is_pending());
                thread::sleep(millis(1));
            }
            gate.open();
            joined(submitter);
            block_on(end);
        });
    }

    /// The task runs on its submitter, and has the only permit.
    #[test]
    fn a_task_on_its_submitter_does_not_wait_for_capacity() {
        in_a_child("refusal::a_task_on_its_submitter_does_not_wait_for_capacity", || {
            let pool = ThreadPool::builder().core_size(0).max_size(1).queue_capacity(0).build();
            let refusal = Refusal::begin();
            let inner = pool.clone();
            let (sender, receiver) = mpsc::channel();
            pool.execute(move || {
                drop(block_on(inner.ready()));
                sender.send(()).unwrap();
            });
            receiver.recv_timeout(LIMIT).unwrap();
            refusal.end();
        });
    }

    /// At the end of a task that waited for its slot, on the thread that has freed it. The waker
    /// waits for such a task, too.
    #[test]
    fn a_waker_without_a_keeper_waits_for_a_task_that_waits_for_its_slot() {
        const NAME: &str =
            "refusal::a_waker_without_a_keeper_waits_for_a_task_that_waits_for_its_slot";
        in_a_child(NAME, || {
            let pool = ThreadPool::new(0, 1, millis(1));
            let (group, other) = (pool.group::<()>().limit(1), pool.group::<()>().limit(1));
            let (begin, begun) = mpsc::channel();
            let (polled, is_polled) = mpsc::channel();
            let (sender, receiver) = mpsc::channel();
            let inner = group.clone();
            let joiner = thread::spawn(move || {
                let mut ready: Waiting<_> = Box::pin(async move { inner.ready().await.map(drop) });
                let is_first = std::sync::atomic::AtomicBool::new(true);
                let wakes = waker(move || {
                    if is_first.swap(false, Ordering::SeqCst) {
                        let own = other.clone();
                        other.execute(move || own.execute(|| Ok(())).map_err(drop)).unwrap();
                        waited(&other).unwrap();
                        sender.send(()).unwrap();
                    }
                });
                begun.recv().unwrap();
                assert!(poll(&mut ready, &wakes).is_pending());
                polled.send(()).unwrap();
                receiver.recv_timeout(millis(5_000)).expect("hangs");
            });
            let submitter = {
                let (group, own) = (group.clone(), group.clone());
                let (go, goes) = mpsc::channel();
                let submitter = thread::spawn(move || {
                    goes.recv().unwrap();
                    group
                        .execute(move || {
                            own.execute(|| Ok(())).unwrap();
                            begin.send(()).unwrap();
                            is_polled.recv().unwrap();
                            Ok(())
                        })
                        .unwrap();
                });
                let refusal = Refusal::begin();
                go.send(()).unwrap();
                joined(joiner);
                joined(submitter);
                refusal
            };
            drop(submitter);
        });
    }

    /// The thread that waits for the end is refused, then had.
    #[test]
    fn a_wait_for_the_end_asks_for_its_thread_again() {
        in_a_child("refusal::a_wait_for_the_end_asks_for_its_thread_again", || {
            let pool = ThreadPool::new(0, 1, millis(1));
            let refusal = Refusal::begin();
            let inner = pool.clone();
            let mut end: Waiting<()> = Box::pin(async move { inner.terminated().await });
            let woken = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&woken);
            let wakes = waker(move || _ = counts.fetch_add(1, Ordering::SeqCst));
            for count in 1..5 {
                assert!(poll(&mut end, &wakes).is_pending());
                assert_eq!(woken.load(Ordering::SeqCst), count);
            }
            drop(refusal);
            assert!(poll(&mut end, &wakes).is_pending());
            assert_eq!(woken.load(Ordering::SeqCst), 4);
            pool.close();
            wait_until("it is woken", || woken.load(Ordering::SeqCst) == 5);
            assert!(poll(&mut end, &wakes).is_ready());
            block_on(pool.terminated());
        });
    }
}
