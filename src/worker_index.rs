//! Which worker runs the calling code.

use crate::thread::identity;

/// Returns the index, within its pool, of the worker that the calling code runs on. `None` outside
/// workers.
///
/// A worker gets the smallest index that is free when it starts. The index is free again when the
/// worker has ended.
///
/// The index is below the pool's `max_size`, with two exceptions: the worker was started in place
/// of one that was in a [blocking region](crate::blocking()) or still in its stop hook, or
/// `max_size` has been lowered since. A task of a [scope](crate::ThreadPool::scope) that the
/// scope's opener runs sees the opener's index, or `None` if that is a thread outside the pool.
///
/// Never blocks and never panics.
///
/// ```
/// let pool = elastipool::ThreadPool::new(1, 4, std::time::Duration::from_secs(1));
/// assert_eq!(pool.evaluate(elastipool::worker_index).await_complete(), Some(0));
/// assert_eq!(elastipool::worker_index(), None);
/// ```
#[doc(alias = "current_thread_index")]
pub fn worker_index() -> Option<usize> {
    identity()?.index
}
