//! Guides: one page for each decision that a user of the pool makes, and small whole programs in
//! [`recipes`].
//!
//! The usual order: [`sizing`] when the pool is created, [`blocking`] and [`futures`] when tasks
//! wait, [`errors`] and [`shutdown`] before the program goes live, [`views`] and [`performance`]
//! when it is measured. Two more pages stand beside these:
//! [`one_pool_or_several`](crate::one_pool_or_several) and [`migration`](crate::migration).
//! [`reference`](mod@reference) lists all functions, settings, features, dependencies and
//! platforms.

#[cfg(feature = "async")]
// Its examples need tokio and signal-hook, and are tested in `demos`.
#[cfg_attr(not(doctest), doc = include_str!("recipes.md"))]
pub mod recipes {}

#[doc = include_str!("sizing.md")]
pub mod sizing {}

#[doc = include_str!("blocking.md")]
pub mod blocking {}

#[cfg(feature = "async")]
// Its examples need tokio, and are tested in `demos`.
#[cfg_attr(not(doctest), doc = include_str!("futures.md"))]
pub mod futures {}

#[doc = include_str!("views.md")]
pub mod views {}

#[doc = include_str!("shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("reference.md")]
pub mod reference {}
