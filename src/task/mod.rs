//! What is queued: a task without its type, where its closure or future is stored, and what is left to do when it has ended.

pub(crate) mod closure;
#[cfg(feature = "async")]
pub(crate) mod future_cell;
pub(crate) mod job;
#[cfg(feature = "async")]
pub(crate) mod pending;
pub(crate) mod unstarted;
