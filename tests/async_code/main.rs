//! Futures on the pool, and async code that waits for it.

#[path = "../common/mod.rs"]
mod common;

mod chaos;
mod deadlocks;
mod edges;
mod ends;
mod waits;
mod wakers;
mod woken_first;
