//! How a pool grows that does not start a thread for each task that waits. Most of these tests run
//! one after another.

#[path = "../common/mod.rs"]
mod common;

mod measured;
mod stalled;
