//! What is queued: a task without its type, where its closure or future is stored, and what is left to do when it has ended.

pub(crate) mod closure;
pub(crate) mod evaluation;
#[cfg(feature = "async")]
pub(crate) mod future_cell;
pub(crate) mod job;
#[cfg(feature = "async")]
pub(crate) mod pending;
pub(crate) mod promise;
pub(crate) mod unstarted;
