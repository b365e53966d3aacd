//! Submitting: what is queued, where, and how much of it.

#[path = "../common/mod.rs"]
mod common;

mod bounded_queue;
mod handler;
mod large_tasks;
mod local_queues;
