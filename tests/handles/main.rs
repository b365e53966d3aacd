//! Handles: waiting for results, polling them, and cancelling.

#[path = "../common/mod.rs"]
mod common;

mod abort_handle;
mod awaited;
mod cancelling;
mod join_set;
mod polled_by_closures;
mod polled_handles;
