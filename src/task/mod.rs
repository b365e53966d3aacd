//! What is queued: the job (a task without its type), the storage of its closure or future, and the
//! lists of unstarted tasks and pending futures. Others use
//!
//! - `Job`: a task without its type.
//! - `Run`: a task that its job, its handle and its wakers share.
//! - `Outcome`: how a run has ended.
//! - `Action`, `Moment`, `Begin`: what a thread does with a task that it has got, and how it got it.
//! - `Withdrawal`: what follows a try to withdraw a task.
//! - `Closure`: the storage of a closure.
//! - `Promise`, `Receiver`, `settle`: the ends of the channel to a handle, and what sends a result.
//! - `Sink`: what receives the output of a task.
//! - `AnyGroup`: a group, without the type of its errors.
//! - `Expiry`: when a task expires.
//! - `Line`, `Submission`: the line that submits a task, and what observers are told of it.
//! - `Attachment`, `Enter`: what observers keep beside a task, and one part of that.
//! - `FutureCell`, `Header`: a future with its state.
//! - `Taken`, `FutureOwner`, `Left`, `TransitionToIdle`: what a transition of that state leaves to do.
//! - `Wakeable`, `WakerDropped`: a cell as its wakers know it.
//! - `Pending`, `PendingKey`: the pending futures of a pool.
//! - `UnstartedList`, `TaskId`: the list of unstarted tasks of a scope or group.
//! - `Claim`, `Entry`: what a claim of a task on that list finds, and where its entry in a queue is.
//! - `Reporter`: what reports the end of a task on that list.
//! - `ScopeRecord`, `ScopeWait`, `ScopedFuture`: how a scope's tasks have ended, and a wait for them.
//! - `mark_cancelled`: cancels futures, for workers to drop them.
//! - `Numbered`, `Paged`: tables whose keys are numbers in order.
//! - `KEPT_TASKS`: for how many tasks an empty list keeps memory.
//! - `ViewId`, `DEFAULT_VIEW`: names a view.
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
//! A task that lies outside of the queues also touches
//!
//! - what empties the queues, `Shared::drain` and `shutdown_now`;
//! - the list of joiners' reasons (`has_paused_work`: a join panics for queued tasks only);
//! - what counts as `pending` (`Sums::describe`; law 3, `join`, `Stats`, `TaskState` and the
//!   texts in `integrations/metrics.rs` say so), and law 1, if a free worker does not start it;
//! - the observers: `take_stall` takes each task that has not started for queued, nothing tells
//!   them that a task enters a queue later, and a shutdown makes them forget such tasks
//!   (`forget_queued`);
//! - the metrics: the time in the queue begins with the submission;
//! - what `queue_capacity` promises, if the task takes a permit over the limit.

mod attachment;
mod closure;
mod expiry;
mod future_cell;
mod job;
mod numbered;
mod paged;
mod pending;
mod state;
mod unstarted;

#[cfg(feature = "async")]
pub(crate) use self::{state::WakerDropped, unstarted::ScopedFuture};
pub(crate) use attachment::{Attachment, Enter, Line, Submission};
pub(crate) use closure::Closure;
pub(crate) use expiry::Expiry;
pub(crate) use future_cell::{FutureCell, Wakeable};
pub(crate) use job::{
    Action, Begin, Job, Moment, Outcome, Promise, Receiver, Run, Sink, Withdrawal, settle,
};
pub(crate) use numbered::Numbered;
pub(crate) use paged::Paged;
pub(crate) use pending::{Pending, PendingKey};
pub(crate) use state::{FutureOwner, Header, Left, Taken, TransitionToIdle};
pub(crate) use unstarted::{
    AnyGroup, Claim, Entry, KEPT_TASKS, Reporter, ScopeRecord, ScopeWait, TaskId, UnstartedList,
    mark_cancelled,
};

/// Identifies a view of a pool: its number in the order of the views, from 1. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViewId(pub(crate) u64);

/// The view of tasks that are submitted to the pool itself.
pub(crate) const DEFAULT_VIEW: ViewId = ViewId(0);
