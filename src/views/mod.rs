//! Views: which one's task is taken next, and how many workers may run tasks of each.
//!
//! Others use
//!
//! - `Policy`: push, take, and the places of workers, under one lock.
//! - `Terms`: what a view asks for. `protocol.md`, `src/view.rs`, `lib.rs`, `guide/views.md` and
//!   `docs/one-pool.md` describe it.
//! - `Gate`: through what workers take the tasks of the default view.
//! - `Place`: the right of a worker to run a task of a view.
//! - `ViewCore`: what the handles and tasks of a view share.
//! - `ViewHandle`: keeps a view's reserve too.
//! - `ViewJob`: a job, and the view that it belongs to.
//! - `ViewPool`: the pool as its views see it.

#![doc = include_str!("protocol.md")]

mod policy;
mod view;

pub(crate) use policy::{Gate, Place, Policy, Terms};
pub(crate) use view::{ViewCore, ViewHandle, ViewJob, ViewPool};
