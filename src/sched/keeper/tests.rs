use super::{Duration, KeeperJob, LONGEST_PAUSE, PAUSE};
use crate::Builder;

#[test]
fn the_pauses_grow_to_a_second_and_begin_anew_after_a_success() {
    let pool = Builder::new().core_size(0).build();
    let shared = pool.shared();
    let pause = || shared.keeper.state.lock().pauses[KeeperJob::Threads as usize];
    for _ in 0..20 {
        shared.keeper.state.lock().due = Default::default();
        shared.ask_again(KeeperJob::Threads);
    }
    assert_eq!(pause(), LONGEST_PAUSE);
    shared.ask_again(KeeperJob::Threads);
    assert_eq!(pause(), LONGEST_PAUSE, "it is asked for already");
    shared.keeper.state.lock().due = Default::default();
    shared.ask_for_threads();
    assert_eq!(pause(), PAUSE);
}

/// The keeper's other looks start workers meanwhile, and no permit exceeds the limit.
#[test]
fn a_refused_helper_is_no_refused_worker() {
    let pool = Builder::new().core_size(0).build();
    let shared = pool.shared();
    shared.ask_again(KeeperJob::Helper);
    let state = shared.keeper.state.lock();
    assert!(state.due[KeeperJob::Helper as usize].is_some());
    assert_eq!(state.pauses[KeeperJob::Threads as usize], Duration::ZERO);
    drop(state);
    assert!(!shared.keeper.is_starved());
}

/// The keeper may have looked, and fallen asleep, before the wake goes on.
#[cfg(feature = "async")]
#[test]
fn a_wake_that_others_rely_on_asks_for_a_look() {
    let pool = Builder::new().core_size(0).build();
    let shared = pool.shared();
    // There is no keeper: this thread does its job.
    let take_job = || shared.keeper.state.lock().due[KeeperJob::Deferred as usize].take();
    shared.watch_deferred();
    assert!(take_job().is_some());
    shared.look_for_deferred();
    assert!(take_job().is_some(), "it looks once more");
    shared.watch_deferred();
    assert!(take_job().is_some(), "a look that has begun may have missed it");
    shared.watch_deferred();
    assert!(take_job().is_none(), "it relies on the one before");
    shared.look_for_deferred();
    assert!(take_job().is_some());
    shared.look_for_deferred();
    assert!(take_job().is_none(), "it sleeps while no future is left behind");
}
