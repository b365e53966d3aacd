//! Workers: how many there are, what they inherit, and what a task finds on them.

#[path = "../common/mod.rs"]
mod common;

mod around_worker;
mod blocking_regions;
mod current_pool;
mod default_size;
mod inherited;
mod max_blocked;
mod panic_handler;
mod recycling;
mod resizing;
mod task_context;
mod weak_handles;
