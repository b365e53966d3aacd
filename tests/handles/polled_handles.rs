//! A handle returns its task's result once. A poll or a wait after that panics, and `FusedFuture`
//! says so before.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use common::{CountingWaker, Gate, HOUR, LIMIT, panic_text, wait_until};
use elastipool::{JoinHandle, ThreadPool};
use futures::channel::mpsc;
use futures::future::FusedFuture;
use futures::{StreamExt, select};
use futures_executor::block_on;

const TEXT: &str = "a handle was polled or waited for after a poll had returned its task's result: keep that, or ask \
                    `is_terminated` before";

fn pool() -> ThreadPool {
    ThreadPool::new(1, 2, HOUR)
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls until the handle is ready. Until then it is not terminated, however often one looks.
#[track_caller]
fn poll_to_end<T: Send + 'static>(handle: &mut JoinHandle<T>) -> Result<T, elastipool::JoinError> {
    let mut result = None;
    wait_until("it has ended", || {
        assert!(!handle.is_terminated());
        match poll(handle) {
            Poll::Ready(ready) => result = Some(ready),
            Poll::Pending => {}
        }
        result.is_some()
    });
    result.expect("it was ready")
}

#[test]
fn a_loop_with_select_gets_each_result_once() {
    let pool = pool();
    let (ticker, mut ticks) = mpsc::unbounded();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let mut late = pool.evaluate(move || {
        passes.pass();
        2
    });
    let mut early = pool.evaluate(|| 1);
    let (mut numbers, mut count) = (Vec::new(), 0);
    block_on(async {
        ticker.unbounded_send(()).unwrap();
        loop {
            select! {
                result = early => {
                    numbers.push(result.unwrap());
                    // The loop goes round many times with this handle.
                    for _ in 0..100 {
                        ticker.unbounded_send(()).unwrap();
                    }
                }
                result = late => {
                    numbers.push(result.unwrap());
                    ticker.close_channel();
                }
                tick = ticks.next() => {
                    count += usize::from(tick.is_some());
                    if count == 101 {
                        gate.open();
                    }
                }
                complete => break,
            }
        }
    });
    assert_eq!((numbers, count), (vec![1, 2], 101));
    pool.shutdown_join();
}

#[test]
fn a_finished_handle_is_not_terminated_before_its_result_was_taken() {
    let pool = pool();
    let mut handle = pool.evaluate(|| 42);
    wait_until("it has ended", || handle.is_finished());
    assert!(!handle.is_terminated());
    assert!(matches!(poll(&mut handle), Poll::Ready(Ok(42))));
    assert!(handle.is_terminated() && handle.is_finished());
    assert!(handle.is_terminated(), "looking at it changes nothing");
    pool.close();
    let mut handle = pool.evaluate(|| 42);
    assert!(!handle.is_terminated());
    assert!(poll_to_end(&mut handle).unwrap_err().is_cancelled());
    assert!(handle.is_terminated() && handle.is_finished());
}

#[test]
fn polling_or_waiting_for_a_handle_after_its_end_panics() {
    type Use = fn(JoinHandle<u32>);

    let uses: [(&str, Use); 5] = [
        ("poll", |mut handle| drop(poll(&mut handle))),
        ("await_complete", |handle| assert_eq!(handle.await_complete(), 0)),
        ("try_await_complete", |handle| drop(handle.try_await_complete())),
        ("await_complete_timeout", |handle| drop(handle.await_complete_timeout(LIMIT))),
        ("cancel_and_wait", |handle| drop(handle.cancel_and_wait())),
    ];
    for (name, use_again) in uses {
        let pool = pool();
        let panics = || -> u32 { panic!("on purpose") };
        let accepted = [pool.evaluate(|| 42), pool.evaluate(panics)];
        pool.close();
        for mut handle in accepted.into_iter().chain([pool.evaluate(|| 42)]) {
            drop(poll_to_end(&mut handle));
            assert!(handle.is_finished(), "{name}");
            assert_eq!(panic_text(|| use_again(handle)), TEXT, "{name}");
        }
    }
}

/// A worker that runs the task which it waits for keeps the channel for another task: not with a
/// waker in it.
#[test]
fn a_waker_is_not_kept_for_another_task() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let inner = pool.clone();
    let references = pool.evaluate(move || {
        let (wakes, waker) = CountingWaker::new();
        let mut handle = inner.evaluate(|| 42);
        assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(handle.await_complete(), 42);
        drop(waker);
        Arc::strong_count(&wakes)
    });
    assert_eq!(references.await_complete(), 1);
}

#[test]
fn a_handle_of_a_scope_does_the_same() {
    let pool = pool();
    pool.scope(|scope| {
        let ended = || {
            let mut handle = scope.evaluate(|| 42);
            assert!(!handle.is_terminated());
            wait_until("it has ended", || poll(&mut handle).is_ready());
            assert!(handle.is_terminated() && handle.is_finished());
            handle
        };
        assert_eq!(panic_text(|| poll(&mut ended())), TEXT);
        assert_eq!(panic_text(|| ended().await_complete()), TEXT);
        assert_eq!(panic_text(|| ended().try_await_complete()), TEXT);
        assert_eq!(panic_text(|| ended().await_complete_timeout(LIMIT).is_ok()), TEXT);
    });
}
