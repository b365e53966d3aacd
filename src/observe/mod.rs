//! What a pool tells its user.
//!
//! Others use
//!
//! - `Hooks`, the user's functions, and `Event`, what they are told;
//! - `Observe`, what the pool tells of each task, to the `Tracker` of reports and to integrations.

mod events;
mod hooks;
mod observer;
mod tracker;

pub(crate) use events::Event;
pub(crate) use hooks::{Hooks, Watch};
pub(crate) use observer::Observe;
pub(crate) use tracker::Tracker;
