//! Which workers exist, sleep and run, and how many may.
//!
//! It knows `sync` and `task`.

pub(crate) mod awake;
pub(crate) mod counts;
pub(crate) mod idle;
pub(crate) mod metrics;
pub(crate) mod registry;
pub(crate) mod sizes;
