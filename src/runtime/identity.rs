//! Which worker of which pool a thread is.

use std::cell::Cell;
use std::sync::Arc;

use crate::runtime::registry::{Registry, ThreadKey};
use crate::sync::thread_local;

thread_local! {
    /// Which worker the thread is. Has no destructor, so that destructors of users' thread-locals can still read it.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static IDENTITY: Cell<Option<Identity>> = Cell::new(None);
}

/// Identifies a pool: the address of its registry. It stays unique while a task of the pool has not
/// ended or a thread of the pool has not exited, since each such thread keeps the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(usize);

impl PoolId {
    pub(super) fn of(registry: &Arc<Registry>) -> Self {
        PoolId(Arc::as_ptr(registry).addr())
    }
}

/// Which worker of which pool a thread is, from its first user code to its last.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) pool: PoolId,
    /// `None` after the stop hook: the index may be another worker's by then.
    pub(super) index: Option<usize>,
    /// Set once the worker has run its last task.
    pub(super) leaving: Option<ThreadKey>,
}

pub(super) fn identity() -> Option<Identity> {
    IDENTITY.try_with(Cell::get).ok().flatten()
}

/// Sets which worker of the pool the calling thread is.
pub(super) fn set_identity(pool: PoolId, index: Option<usize>, leaving: Option<ThreadKey>) {
    let identity = Identity { pool, index, leaving };
    IDENTITY.with(|current| current.set(Some(identity)));
}

/// Returns the index, within its pool, of the worker that the calling code runs on. `None` outside workers.
///
/// A worker gets the smallest index that is free when it starts. The index is free again when the worker has ended.
///
/// The index is below the pool's `max_size`, with two exceptions: the worker was started in place of one that was in a
/// [blocking region](crate::blocking()) or still in its stop hook, or `max_size` has been lowered since. A task of a
/// [scope](crate::ThreadPool::scope) that the scope's opener runs sees the opener's index, or `None` if that is a thread
/// outside the pool.
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

/// As [`worker_index`], but `None` in workers of other pools.
pub(super) fn worker_index_of(pool: PoolId) -> Option<usize> {
    identity().filter(|identity| identity.pool == pool)?.index
}
