//! Which workers exist, sleep and run, and how many may.
//!
//! Others use
//!
//! - `Counts`, the word of all workers: a change that others rely on returns a `MustLook` or
//!   a `Search`;
//! - `IdleList`: a worker that rests publishes itself, a notifier claims the one with the lowest
//!   index;
//! - `Registry`, under its lock: threads, keys and indexes, and the wait until no thread is left;
//! - `Sizes`: `core_size`, `max_size`, `keep_alive`, and the limit;
//! - `WorkerMetrics` of each worker, `CallerMetrics` of other threads, and their `Sums`;
//! - `Controller`, which says how many workers may run beside those that sleep.

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
