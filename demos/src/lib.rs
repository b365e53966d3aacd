//! Programs and tests of [`elastipool`] with other crates, whose dependencies the crate itself does
//! not need.
//!
//! The programs are in `src/bin`: `cargo run --release -p demos --bin dashboard`. This library is
//! empty but for the pages of the crate's documentation whose examples need those dependencies:
//! here they are tested.

/// The page about moving from other crates.
#[cfg(doctest)]
#[doc = include_str!("../../docs/migration.md")]
struct Migration;

/// The guide about futures.
#[cfg(doctest)]
#[doc = include_str!("../../src/guide/futures.md")]
struct Futures;

/// The guide with whole programs.
#[cfg(doctest)]
#[doc = include_str!("../../src/guide/recipes.md")]
struct Recipes;

/// The executor of hyper.
#[cfg(doctest)]
#[doc = include_str!("../../src/integrations/hyper.md")]
struct Hyper;
