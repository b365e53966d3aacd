use super::{KeeperJob, PAUSE};
use crate::ThreadPool;

#[test]
fn a_wait_that_is_dropped_leaves_nothing_behind() {
    let pool = ThreadPool::default();
    let shared = pool.shared();
    for _ in 0..10 {
        drop(shared.begin_end_wait().unwrap());
    }
    let _end = shared.begin_end_wait().unwrap();
    assert_eq!(shared.keeper.state.lock().ends.len(), 1);
    pool.close();
}

/// The code came after its last look.
#[test]
fn the_helper_leaves_no_code_behind() {
    let pool = ThreadPool::default();
    let shared = pool.shared();
    // There is no helper: this thread is it.
    shared.keeper.state.lock().has_helper = true;
    shared.run_later(Box::new(|| ()));
    assert!(shared.try_leave(true).is_none());
    shared.keeper.state.lock().user_code.clear();
    assert!(shared.try_leave(true).is_some());
}

#[test]
fn the_pause_begins_anew_when_the_helper_has_started() {
    let pool = ThreadPool::default();
    let shared = pool.shared();
    let pause = || shared.keeper.state.lock().pauses[KeeperJob::Helper as usize];
    shared.ask_again(KeeperJob::Helper);
    assert!(pause() > PAUSE);
    shared.ensure_helper(&mut shared.registry.lock()).unwrap();
    assert_eq!(pause(), PAUSE);
}

#[test]
fn a_pool_that_is_gone_starts_no_thread_for_a_wait() {
    let pool = ThreadPool::default();
    pool.close();
    assert!(pool.shared().begin_end_wait().unwrap().is_none());
}
