//! Calls in a bounded queue, and calls that count for the task quota.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, ThreadId};

use crate::common::{LIMIT, panic_text, wait_until};
use crate::handler::{MOMENT, busy, one, writer, written};
use elastipool::Handler;

#[test]
fn invoke_waits_for_capacity() {
    let (pool, gate) = busy(one().queue_capacity(1));
    let (handler, log) = writer(&pool);
    handler.invoke(1);
    let clone = handler.clone();
    let submitter = thread::spawn(move || (2..=20).for_each(|number| clone.invoke(number)));
    thread::sleep(MOMENT);
    assert!(!submitter.is_finished(), "it does not wait");
    assert_eq!(pool.queued_count(), 1);
    gate.open();
    wait_until("it is admitted", || submitter.is_finished());
    submitter.join().unwrap();
    assert_eq!(written(&pool, &log), (1..=20).collect::<Vec<_>>());
    assert_eq!(pool.stats().rejected, 0);
}

#[test]
fn an_invoke_that_waits_for_capacity_panics_when_the_pool_is_closed() {
    let (pool, gate) = busy(one().queue_capacity(0));
    let (handler, log) = writer(&pool);
    let submitter = thread::spawn(move || panic_text(|| handler.invoke(1)));
    // If it does not wait yet, it panics as well.
    thread::sleep(MOMENT);
    assert!(!submitter.is_finished(), "it does not wait");
    pool.close();
    wait_until("it panics", || submitter.is_finished());
    let text = submitter.join().unwrap();
    assert!(text.ends_with("the pool is closed; `try_invoke` hands it back"), "{text}");
    gate.open();
    assert!(written(&pool, &log).is_empty());
}

/// Law 10: the function invokes its own handler, on a pool of one without capacity.
#[test]
fn a_function_may_invoke_itself_on_a_full_pool_of_one() {
    for capacity in [0, 1, 2] {
        let pool = one().queue_capacity(capacity).build();
        let calls = Arc::new(AtomicUsize::new(0));
        let myself = Arc::new(OnceLock::<Handler<u32>>::new());
        // Weak, or the function would own itself.
        let (counts, weak) = (Arc::clone(&calls), Arc::downgrade(&myself));
        let handler = pool.handler(move |depth| {
            counts.fetch_add(1, Ordering::SeqCst);
            let Some(myself) = weak.upgrade() else { return };
            for _ in 0..if depth > 0 { 2 } else { 0 } {
                myself.get().unwrap().invoke(depth - 1);
            }
        });
        assert!(myself.set(handler.clone()).is_ok());
        handler.invoke(4);
        assert!(pool.join_timeout(LIMIT), "capacity {capacity}: {:?}", pool.stats());
        assert_eq!(calls.load(Ordering::SeqCst), 31);
        assert_eq!((pool.stats().completed, pool.stats().rejected), (31, 0));
    }
}

#[test]
fn calls_count_for_the_task_quota() {
    let pool = one().max_tasks_per_worker(3).build();
    let (sender, receiver) = mpsc::channel();
    let handler = pool.handler(move |()| sender.send(thread::current().id()).unwrap());
    (0..12).for_each(|_| handler.invoke(()));
    assert!(pool.join_timeout(LIMIT));
    let mut calls: HashMap<ThreadId, usize> = HashMap::new();
    receiver.try_iter().for_each(|id| *calls.entry(id).or_default() += 1);
    assert_eq!(calls.into_values().collect::<Vec<_>>(), [3; 4]);
}
