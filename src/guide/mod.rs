//! Guides: one page for each decision that a user of the pool makes. They have no code of their own.
//!
//! | page | answers |
//! |---|---|
//! | [`sizing`] | how many workers, when threads start and end, how long the queue may become |
//! | [`blocking`] | what a task may wait for, and which waits the pool must be told about |
//! | [`futures`] | `spawn`, `complete` or a closure; where I/O and timers come from; how to cancel |
//! | [`views`] | how to set up priorities, limits, reserves and queue timeouts, and how to watch them |
//! | [`one_pool_or_several`](crate::one_pool_or_several) | when a view is enough, and when to have two pools |
//! | [`shutdown`] | how a program ends without lost tasks, and without waiting forever |
//! | [`errors`] | what can fail, who learns of it, and what to do then |
//! | [`performance`] | what a task costs, and which form of submission is the cheapest |
//! | [`migration`](crate::migration) | what changes in a program that used another pool |

#[doc = include_str!("sizing.md")]
pub mod sizing {}

#[doc = include_str!("blocking.md")]
pub mod blocking {}

#[cfg(feature = "async")]
#[doc = include_str!("futures.md")]
pub mod futures {}

#[doc = include_str!("views.md")]
pub mod views {}

#[doc = include_str!("shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("performance.md")]
pub mod performance {}
