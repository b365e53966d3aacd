//! What is due at a certain time: the jobs of the keeper, and what it saw when it last looked.
//!
//! It knows `sync` and, for what a measurement finds, `crew`. What the jobs do stands in `sched` and `sizing`.

pub(crate) mod deadlines;
pub(crate) mod due;
