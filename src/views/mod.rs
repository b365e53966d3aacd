//! Views: which one's task is taken next, and how many workers may run tasks of each.
//!
//! Others use
//!
//! - `Policy`: push, take, and the places of workers, under one lock;
//! - `ViewCore`: what the handles and tasks of a view share; `ViewHandle` keeps its reserve.

#![doc = include_str!("protocol.md")]

mod policy;
mod view;

pub(crate) use policy::{Gate, Policy, Terms};
pub(crate) use view::{ViewCore, ViewHandle, ViewJob, ViewPool};
