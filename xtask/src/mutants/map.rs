//! One function over many inputs.

use super::By::{Test, Unit};
use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "map: its drop cancels nothing", "src/map.rs",
        "        handles.iter().for_each(|(_, handle)| handle.cancel());\n"
        => "", Test("scope", "dropping_it_cancels");
    "map: it goes on after an error", "src/map.rs",
        "is_some_and(|is_last| is_last(&value))"
        => "is_some_and(|is_last| is_last(&value) && self.taken == 0)", Test("scope", "the_first_error_ends_it");
    "map: a refused call is not the last one", "src/map.rs",
        "                Err(refusal) => {\n                    self.inputs = None;\n"
        => "                Err(refusal) => {\n", Test("scope", "a_closed_pool_ends_it");
    "map: a worker runs no call itself while it waits for any result", "src/join_handle/set.rs",
        "iter_mut().any("
        => "iter_mut().take(0).any(", Test("scope", "nested_ones_need_no_second_thread");
    "map: the only worker submits more and more calls behind stale entries", "src/map.rs",
        "if is_behind { 1 }"
        => "if is_behind && self.taken == 0 { 1 }", Unit("map::tests::the_only_worker_leaves_few_entries");
    "map: as few calls are in flight in a pool that grows", "src/map.rs",
        "true => sizes.limit() + cpus(),"
        => "true => 2 * cpus(),", Test("scope", "calls_that_sleep_let_the_default_pool_grow");
    "map: a stream waits for capacity while a call is in flight", "src/map.rs",
        "map.fill(false)"
        => "map.fill(true)", Test("scope", "a_stream_does_not_block_at_a_full_queue");
};
