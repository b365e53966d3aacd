//! Task groups, and the tokens that cancel them.

#[path = "../common/mod.rs"]
mod common;

mod deadline;
mod destructors;
mod edges;
mod errgroup;
mod futures;
mod group;
mod handles;
mod limit;
mod race;
mod tokens;
