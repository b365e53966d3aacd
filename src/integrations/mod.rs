//! Traits of other crates, one file and one optional feature for each.

#[cfg(feature = "hyper")]
pub(crate) mod hyper;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "tracing")]
pub(crate) mod tracing;
