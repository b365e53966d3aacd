//! Which workers exist, sleep and run, and how many may.
//!
//! Others use
//!
//! - `Counts`: the word of all workers.
//! - `Snapshot`: that word at one moment.
//! - `MustLook`, `Search`: what a change that others rely on returns, and what is owed then.
//! - `MAX_WORKERS`, `MAX_SEARCHING`: the largest numbers that the word holds.
//! - `IdleList`: a worker that rests publishes itself, a notifier claims the one with the lowest
//!   index.
//! - `Registry`, `RegistryState`: threads and indexes, and the wait until no thread is left.
//! - `ThreadKey`: names a thread in the registry.
//! - `Exit`: reports the exit of its thread when it is dropped.
//! - `Sizes`: `core_size`, `max_size`, `keep_alive`, and the limit.
//! - `check_sizes`, `check_reserves`: the errors of sizes that no pool can have.
//! - `WorkerMetrics`, `CallerMetrics`: the counters of one worker, and of all other threads.
//! - `Count`, `Sums`, `above_zero`: what is counted, its sums, and a difference of two of them.
//! - `Controller`: says how many workers may run beside those that sleep.
//! - `Measurement`, `Asleep`: what it is told.

mod awake;
mod counts;
mod idle;
mod metrics;
mod registry;
mod sizes;

pub(crate) use awake::{Asleep, Controller, Measurement};
pub(crate) use counts::{Counts, MAX_SEARCHING, MAX_WORKERS, MustLook, Search, Snapshot};
pub(crate) use idle::IdleList;
pub(crate) use metrics::{CallerMetrics, Count, Sums, WorkerMetrics, above_zero};
pub(crate) use registry::{Exit, Registry, RegistryState, ThreadKey};
pub(crate) use sizes::{Sizes, check_reserves, check_sizes};
