//! Futures in a full queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bounded_queue::{Submitter, assert_capacity, pool};
use crate::common::{block, refused, triggered, value, wait_until};
use elastipool::RejectReason;

#[test]
fn a_woken_future_needs_no_permit() {
    for capacity in [0, 1, 2] {
        let pool = pool(1, capacity);
        let futures = [triggered(), triggered(), triggered()].map(|(trigger, triggered)| {
            let handle = pool.spawn_await(triggered);
            wait_until("it is pending", || trigger.polls() == 1);
            (trigger, handle)
        });
        let gate = block(&pool);
        let (first, rest) = futures.split_first().unwrap();
        // This thread would wait for ever.
        first.0.fire();
        for _ in 0..capacity {
            pool.try_execute(|| ()).expect("it holds no permit");
        }
        refused(pool.try_execute(|| ()), RejectReason::Full);
        for (trigger, _) in rest {
            trigger.fire();
        }
        assert_eq!(pool.queued_count(), capacity + 3);
        let submitter = Submitter::waiting(&pool, |pool| pool.evaluate(|| 7));
        gate.open();
        for (_teller, handle) in futures {
            value(handle);
        }
        assert_eq!(value(submitter.finish()), 7);
        assert_capacity(&pool, capacity);
    }
}

#[test]
fn a_future_that_wakes_itself_goes_on_while_submitters_wait() {
    let pool = pool(1, 0);
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let future = pool.spawn_await(std::future::poll_fn(move |context| {
        if ends.load(Ordering::SeqCst) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    }));
    let submitters: Vec<_> =
        (0..20).map(|_| Submitter::start(&pool, |pool| pool.evaluate(|| ()))).collect();
    for submitter in submitters {
        value(submitter.finish());
    }
    is_over.store(true, Ordering::SeqCst);
    value(future);
    assert_capacity(&pool, 0);
}
