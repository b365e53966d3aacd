//! Blocking regions that user code declares.

use crate::sched::Region;

/// Runs `f` as a blocking region: while `f` runs, the calling worker does not count towards
/// [`max_size`](crate::ThreadPool::max_size), so another worker runs queued tasks in its place. At
/// most [`max_blocked`](crate::Builder::max_blocked) workers are replaced at a time.
///
/// Use it around code that may wait long for something other than the CPU: a lock, a socket, a
/// child process, or a channel that another task of the same pool fills.
///
/// Some waits are blocking regions by themselves:
///
/// - Waiting for a [`JoinHandle`](crate::JoinHandle), a [scope](crate::ThreadPool::scope) or a
///   [group](crate::TaskGroup). The worker first runs the tasks that it waits for, unless they have
///   been started.
/// - A submission that waits for capacity in the queue of its pool, or for a slot in its group.
/// - A [completion](crate::ThreadPool::complete), but only while its future waits for a handle or
///   group of the same pool.
///
/// Inside another region, in worker hooks and outside workers, `blocking` only calls `f`.
///
/// # Blocking
/// Entering the region starts no thread if nothing is queued. If a thread is needed and the system
/// refuses it, `f` is called nevertheless, and the pool asks for the thread
/// [again](crate#the-laws).
///
/// After the region the pool runs one worker too many, until the next worker ends its task. That
/// worker stays idle for the next region until its [`keep_alive`](crate::ThreadPool::keep_alive) is
/// over. If the pool already runs one too many, `blocking` waits after `f` until a worker ends its
/// task, or until no worker has ended one for 100 ms.
///
/// # Panics
/// If `f` panics. The region has ended when the panic continues.
///
/// # Example
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// // At most one worker runs, yet the second task runs while the first one waits for it.
/// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
/// let (sender, receiver) = mpsc::channel();
/// let first = pool.evaluate(move || elastipool::blocking(|| receiver.recv()));
/// pool.execute(move || sender.send(42).unwrap());
/// assert_eq!(first.await_complete(), Ok(42));
/// ```
#[doc(alias = "block_in_place")]
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    let _region = Region::enter(None);
    f()
}
