//! Futures in a full queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{block, refused, told, value, wait_until};
use crate::{Producer, assert_room, pool};
use elastipool::RejectReason;

#[test]
fn a_woken_future_needs_no_permit() {
    for capacity in [0, 1, 2] {
        let pool = pool(1, capacity);
        let futures = [told(), told(), told()].map(|(teller, told)| {
            let handle = pool.spawn_await(told);
            wait_until("it is pending", || teller.polls() == 1);
            (teller, handle)
        });
        let gate = block(&pool);
        let (first, rest) = futures.split_first().unwrap();
        // This thread would wait for ever.
        first.0.tell();
        for _ in 0..capacity {
            pool.try_execute(|| ()).expect("it takes up no room");
        }
        refused(pool.try_execute(|| ()), RejectReason::Full);
        for (teller, _) in rest {
            teller.tell();
        }
        assert_eq!(pool.queued_count(), capacity + 3);
        let producer = Producer::waiting(&pool, |pool| pool.evaluate(|| 7));
        gate.open();
        for (_teller, handle) in futures {
            value(handle);
        }
        assert_eq!(value(producer.finish()), 7);
        assert_room(&pool, capacity);
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
    let producers: Vec<_> =
        (0..20).map(|_| Producer::start(&pool, |pool| pool.evaluate(|| ()))).collect();
    for producer in producers {
        value(producer.finish());
    }
    is_over.store(true, Ordering::SeqCst);
    value(future);
    assert_room(&pool, 0);
}
