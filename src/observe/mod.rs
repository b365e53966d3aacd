//! What a pool tells its user.
//!
//! Others use
//!
//! - `Hooks`: the user's functions.
//! - `Watch`: when the keeper reports stalls, and to which hook.
//! - `Event`: what a pool tells the subscriber of events.
//! - `Observe`: what a pool tells of each task, to the tracker and to integrations.
//! - `Tracker`: the records of a pool's tasks for reports.

mod events;
mod hooks;
mod observer;
mod tracker;

pub(crate) use events::Event;
pub(crate) use hooks::{Hooks, Watch};
pub(crate) use observer::Observe;
pub(crate) use tracker::Tracker;
