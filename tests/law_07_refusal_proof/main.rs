//! Law 7, refusal-proof: when the operating system refuses a thread, nothing panics and no count is
//! wrong; the task runs on an existing worker or, where there is none, comes back to the caller.
//!
//! The refusals are real: see `common/refusal.rs`.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod asks_again;
mod compensation;
mod first_worker;
mod full_queue;
#[cfg(feature = "async")]
mod futures_without_workers;
mod later_worker;
mod storm;
mod terminated;
mod watcher;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{Gate, LIMIT, refused, submit_interdependent, value, wait_until};
use elastipool::{JoinHandle, RejectReason, Rejected, Stats, ThreadPool};

#[track_caller]
fn comes_back<F, H>(result: Result<H, Rejected<F>>) -> F {
    let rejected = refused(result, RejectReason::NoThread);
    let text = rejected.to_string();
    assert!(text.contains("no worker") && text.contains("refused"), "{text}");
    let source = rejected.source().expect("what the system said");
    let source = source.downcast_ref::<io::Error>().expect("an error of the system");
    assert_eq!(source.kind(), io::ErrorKind::WouldBlock, "{source}");
    rejected.into_task()
}

/// Asserts that `refused` are `own` refusals, and those that the pool's keeper may have met
/// `within` that time: it asks again after a millisecond, after two more, after four more, and so
/// on.
#[track_caller]
fn assert_refused(refused: usize, own: usize, within: Duration) {
    let by_keeper = (within.as_millis() + 1).ilog2() as usize;
    assert!((own..=own + by_keeper).contains(&refused), "{refused} within {within:?}");
}

/// Nothing is there and nothing is left over: neither workers nor tasks.
#[track_caller]
fn assert_empty(pool: &ThreadPool) {
    let stats = pool.stats();
    assert_eq!((stats.workers, stats.idle, stats.peak_workers), (0, 0, 0));
    assert_eq!((stats.queued, stats.in_flight()), (0, 0));
    assert_eq!((stats.threads_started, stats.threads_retired), (0, 0));
    assert_eq!(pool.current_worker_count(), 0);
    assert!(pool.join_timeout(Duration::ZERO), "there is nothing to wait for");
}

/// A pool works as if nothing had happened, with as many workers as it may have.
#[track_caller]
fn assert_grows_to(pool: &ThreadPool, size: usize) {
    let stats = runs_at_once(pool, size);
    assert_eq!((stats.workers, stats.queued, stats.in_flight()), (size, 0, 0));
}

/// As [`assert_grows_to`], where workers may be left that ran while others were blocked.
#[track_caller]
fn assert_runs_at_once(pool: &ThreadPool, size: usize) {
    let stats = runs_at_once(pool, size);
    assert_eq!((stats.blocked, stats.queued, stats.in_flight()), (0, 0, 0));
    wait_until("all workers are idle", || pool.stats().idle == pool.stats().workers);
}

/// Runs as many tasks at once. Returns the statistics after them.
#[track_caller]
fn runs_at_once(pool: &ThreadPool, size: usize) -> Stats {
    let handles = submit_interdependent(pool, size, || thread::current().id());
    let ids: std::collections::HashSet<ThreadId> = handles.into_iter().map(value).collect();
    assert_eq!(ids.len(), size);
    assert!(pool.join_timeout(LIMIT));
    pool.stats()
}

/// Ready at the second poll, which it asks for during the first.
fn yields_once() -> impl Future<Output = ThreadId> {
    let mut has_yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(thread::current().id());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
}

/// A pool of one whose worker runs `task` once the gate opens, and has arrived at it.
fn held_back<T: Send + 'static>(
    pool: &ThreadPool,
    task: impl FnOnce(ThreadPool) -> T + Send + 'static,
) -> (JoinHandle<T>, Arc<Gate>) {
    let (gate, own) = (Gate::new(), pool.clone());
    let passes = Arc::clone(&gate);
    let handle = pool.evaluate(move || {
        passes.pass();
        task(own)
    });
    gate.wait_for(1);
    (handle, gate)
}
