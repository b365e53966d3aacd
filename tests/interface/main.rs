//! What a program sees: arguments, errors, panics, statistics and reports.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod conversions;
mod misuse;
mod report;
mod statistics;
mod usage;
