//! Which workers exist, sleep and run, and how many may.
//!
//! It knows `sync` and `task`. Others use
//!
//! - `Counts`, the word of all workers: a change that others rely on returns a `MustLook` or
//!   a `Search`;
//! - `IdleList`: a worker that rests publishes itself, a notifier claims the one with the lowest
//!   index;
//! - `Registry`, under its lock: threads, keys and indexes, and the wait until no thread is left;
//! - `Sizes`: `core_size`, `max_size`, `keep_alive`, and the limit;
//! - `WorkerMetrics` of each worker, `CallerMetrics` of other threads, and their `Sums`;
//! - `Controller`, which says how many workers may run beside those that sleep.

pub(crate) mod awake;
pub(crate) mod counts;
pub(crate) mod idle;
pub(crate) mod metrics;
pub(crate) mod registry;
pub(crate) mod sizes;
