//! What is queued: the job (a task without its type), the storage of its closure or future, and the
//! lists of unstarted tasks and pending futures.
//!
//! # What an accepted task holds
//! Each one is in flight, and has been told to the observers, as queued. Its deadline and
//! its attachment were made at that time (`TaskRoute::own`), also of one that enters a queue later.
//!
//! | a task that is | permit of a bounded queue | entry in a queue | claimed by a waiter | if it is cancelled | `shutdown_now` |
//! |---|---|---|---|---|---|
//! | queued, without a handle | one | its own | never | - | hands it back |
//! | queued, with a handle | one | its own | as the awaited one | is dropped; the entry is stale, and the permit released | hands it back |
//! | in the list of a scope or group | one | any of the list's | as the newest, or the awaited one | is taken off the list | drops it |
//! | in line for a slot of its group | none, and one over the limit when it gets its slot | none | never: it is withdrawn | leaves the line (`AnyGroup`) | drops it when it gets its slot |
//! | a pending future | none since the end of its first poll | none | never | is dropped | queues it as cancelled: a worker drops it |
//! | a woken future | none; its worker takes one for the poll | one | never | is dropped; the entry is stale | as a pending one |
//! | running | one, and none while its worker counts as blocked, or if a waiter has claimed it | none | - | a closure runs on; a future is dropped after the poll | lets a closure end, and the poll of a future |
//!
//! A task that lies outside of the queues also touches `Shared::drain` and `shutdown_now`, the list
//! of joiners' reasons (`has_paused_work`: a join panics for queued tasks only), what counts as
//! `pending` (`Sums::describe`), the observers (`take_stall` takes each task that has not started
//! for queued, and a shutdown makes them forget these: `forget_queued`), and the metrics (the time
//! in the queue begins with the submission).

pub(crate) mod attachment;
pub(crate) mod closure;
pub(crate) mod expiry;
pub(crate) mod future_cell;
pub(crate) mod job;
pub(crate) mod numbered;
pub(crate) mod paged;
pub(crate) mod pending;
pub(crate) mod state;
pub(crate) mod unstarted;

/// Identifies a view of a pool: its number in the order of the views, from 1. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViewId(pub(crate) u64);

/// The view of tasks that are submitted to the pool itself.
pub(crate) const DEFAULT_VIEW: ViewId = ViewId(0);
