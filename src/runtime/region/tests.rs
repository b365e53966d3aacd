use super::{Dependency, spins_first};

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
