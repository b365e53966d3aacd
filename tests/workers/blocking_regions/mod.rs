//! Blocking regions: a worker that waits does not count as runnable, so another one may run
//! instead. When it comes back, the pool soon has as many as before. (With threads refused:
//! `law_07_refusal_proof`.)

use crate::common;

mod bounds;
mod compensation;
mod hooks;
mod returning;

use common::{HOUR, LIMIT, submit_interdependent, value, wait_until};
use elastipool::ThreadPool;

/// A pool of one.
fn one() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

/// How many workers run a task or look for one: what `max_size` limits.
fn running(pool: &ThreadPool) -> usize {
    let stats = pool.stats();
    stats.workers - stats.blocked - stats.idle
}

/// The pool can run as many tasks at once as it may, and has kept no worker busy with anything
/// else.
#[track_caller]
fn assert_is_itself_again(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT));
    wait_until("all workers are idle", || pool.stats().idle == pool.stats().workers);
    submit_interdependent(pool, pool.max_size(), || ()).into_iter().for_each(value);
    assert!(pool.join_timeout(LIMIT));
    wait_until("all workers are idle again", || pool.stats().idle == pool.stats().workers);
    let stats = pool.stats();
    assert_eq!((stats.blocked, stats.in_flight()), (0, 0));
}
