//! The laws beside ticking futures, in a pool with a view that nothing uses.

#[path = "laws_beside_ticking_futures.rs"]
mod with_a_view;
