//! What a pool tells its user: hooks, events, and the records of its tasks for reports.
//!
//! It knows `task`, `crew`, `thread` and `keeper`.

pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod observer;
pub(crate) mod tracker;
