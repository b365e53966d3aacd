//! Which worker of which pool a thread is.

use std::cell::Cell;
use std::sync::Arc;

use crate::crew::{Registry, ThreadKey};
use crate::sync::thread_local;

thread_local! {
    /// Which worker the thread is. Has no destructor, so that destructors of users' thread-locals
    /// can still read it.
    static IDENTITY: Cell<Option<Identity>> = Cell::new(None);
}

/// Identifies a pool: the address of its registry. It stays unique while a task of the pool has not
/// ended or a thread of the pool has not exited, since each such thread keeps the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(usize);

impl PoolId {
    pub(crate) fn of(registry: &Arc<Registry>) -> Self {
        PoolId(Arc::as_ptr(registry).addr())
    }
}

/// Which worker of which pool a thread is, from its first user code to its last.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) pool: PoolId,
    /// `None` after the stop hook: the index may be another worker's by then.
    pub(crate) index: Option<usize>,
    /// Set once the worker has run its last task.
    pub(crate) leaving: Option<ThreadKey>,
}

pub(crate) fn identity() -> Option<Identity> {
    IDENTITY.try_with(Cell::get).ok().flatten()
}

/// Sets which worker of the pool the calling thread is.
pub(crate) fn set_identity(pool: PoolId, index: Option<usize>, leaving: Option<ThreadKey>) {
    let identity = Identity { pool, index, leaving };
    IDENTITY.with(|current| current.set(Some(identity)));
}

/// Whether the calling thread is the keeper of this pool, or its helper.
pub(crate) fn is_own_thread(pool: PoolId) -> bool {
    let is_own = |own: Identity| own.pool == pool && own.index.is_none() && own.leaving.is_none();
    identity().is_some_and(is_own)
}

/// Returns the index of the worker that the calling code runs on. `None` outside workers, and in
/// workers of other pools.
pub(crate) fn worker_index_of(pool: PoolId) -> Option<usize> {
    identity().filter(|identity| identity.pool == pool)?.index
}
