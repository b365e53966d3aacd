//! What is queued: the job (a task without its type), the storage of its closure or future, and the
//! lists of unstarted tasks and pending futures.

pub(crate) mod attachment;
pub(crate) mod closure;
pub(crate) mod expiry;
pub(crate) mod future_cell;
pub(crate) mod job;
pub(crate) mod numbered;
pub(crate) mod paged;
pub(crate) mod pending;
pub(crate) mod promise;
pub(crate) mod state;
pub(crate) mod unstarted;

/// Identifies a view of a pool: its number in the order of the views, from 1. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViewId(pub(crate) u64);

/// The view of tasks that are submitted to the pool itself.
pub(crate) const DEFAULT_VIEW: ViewId = ViewId(0);
