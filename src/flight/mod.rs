//! Which tasks are accepted and have not ended: the permits of a bounded queue, and the in-flight count.
//!
//! It knows `sync`, `task` and, for the limit of permits, `crew`.

pub(crate) mod capacity;
pub(crate) mod in_flight;
