use std::future::poll_fn;
use std::pin::pin;

use super::{Dependency, spins_first, wait_for};
use crate::sched::poll_wait::has_waits;
use crate::sync::unwind::contain;

#[test]
fn a_worker_with_a_deadline_does_not_spin() {
    let spins = |is_worker, has_deadline| {
        [Dependency::Future, Dependency::Other]
            .map(|dependency| spins_first(is_worker, dependency, has_deadline))
    };
    assert_eq!(spins(true, false), [true, false]);
    assert_eq!(spins(true, true), [false; 2]);
    assert_eq!(spins(false, true), [true; 2]);
}

#[test]
fn a_poll_that_panics_leaves_no_counter_behind() {
    let poll = pin!(poll_fn::<(), _>(|_| {
        assert!(has_waits());
        panic!("on purpose")
    }));
    assert!(contain(|| wait_for(poll, None, Dependency::Future)).is_err());
    assert!(!has_waits());
}
