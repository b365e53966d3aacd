//! What a pool tells its user.
//!
//! It knows `task`, `crew`, `thread` and `keeper`. Others use
//!
//! - `Hooks`, the user's functions, and `Event`, what they are told;
//! - `Observe`, what the pool tells of each task, to the `Tracker` of reports and to integrations.

pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod observer;
pub(crate) mod tracker;
