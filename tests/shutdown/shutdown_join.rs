//! What `shutdown_join` waits for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{HOUR, LIMIT, wait_until};
use crate::{MOMENT, busy, ends};
use elastipool::Builder;

#[test]
fn the_drain_goes_on_after_the_deadline_of_a_shutdown() {
    let (pool, gate) = busy();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let ran = Arc::clone(&ran);
        pool.execute(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        });
    }
    let before = Instant::now();
    assert!(!pool.shutdown_join_timeout(MOMENT));
    assert!(before.elapsed() >= MOMENT);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    gate.open();
    wait_until("the tasks run", || ran.load(Ordering::SeqCst) == 10);
}

/// One after the other, and two at the same time.
#[test]
fn all_shutdowns_and_joins_wait_for_the_end() {
    let (pool, gate) = busy();
    pool.close();
    assert!(!pool.clone().shutdown_join_timeout(MOMENT));
    assert!(!pool.clone().shutdown_join_timeout(MOMENT), "the second one, too");
    let is_open = Arc::new(AtomicBool::new(false));
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let (pool, is_open) = (pool.clone(), Arc::clone(&is_open));
            thread::spawn(move || {
                pool.shutdown_join();
                assert!(is_open.load(Ordering::SeqCst), "it has not waited");
            })
        })
        .collect();
    thread::sleep(MOMENT);
    is_open.store(true, Ordering::SeqCst);
    gate.open();
    for waiter in waiters {
        wait_until("it returns", || waiter.is_finished());
        waiter.join().unwrap();
    }
    ends(pool);
}

/// The joiner is notified and does not poll, whether a task or a stop hook is the last to end.
#[test]
fn the_end_is_noticed_within_milliseconds() {
    for hook_is_last in [false, true] {
        let mut delays: Vec<_> = (0..15)
            .map(|_| {
                let (sender, end) = mpsc::channel();
                let last = move || {
                    // The other thread waits by then.
                    thread::sleep(Duration::from_millis(5));
                    sender.send(Instant::now()).unwrap();
                };
                let sizes = Builder::new().core_size(2).max_size(2).keep_alive(HOUR);
                let pool = if hook_is_last {
                    let pool = sizes.on_worker_stop(move |_| last()).build();
                    pool.execute(|| ());
                    pool
                } else {
                    let pool = sizes.build();
                    pool.execute(last);
                    pool
                };
                assert!(pool.shutdown_join_timeout(LIMIT));
                end.recv().unwrap().elapsed()
            })
            .collect();
        delays.sort();
        assert!(delays[delays.len() / 2] < Duration::from_millis(50), "{delays:?}");
    }
}
