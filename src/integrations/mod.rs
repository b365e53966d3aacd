//! Traits of other crates, one file and one optional feature for each.

pub(crate) mod hyper;
