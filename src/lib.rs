//! A self-sizing thread pool that is also a futures executor.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod counts;
mod error;
mod hooks;
mod idle;
mod in_flight;
mod job;
mod join_handle;
#[cfg(all(test, elastipool_loom, feature = "async"))]
mod models;
mod parker;
mod pool;
mod queue;
mod roster;
mod shared;
mod stats;
mod sync;
mod unwind;
#[cfg(feature = "async")]
mod waker;
mod worker;

pub use builder::Builder;
pub use error::{BuildError, JoinError, RejectReason, Rejected};
pub use join_handle::JoinHandle;
pub use pool::ThreadPool;
pub use stats::Stats;
pub use worker::worker_index;
