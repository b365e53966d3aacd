use std::time::{Duration, Instant};

use super::Progress;
use crate::ThreadPool;

#[test]
fn the_starts_double_without_progress_and_begin_anew_after_it() {
    let mut progress = Progress::since(10);
    assert_eq!(progress.count_starts(10, 100), 1);
    // The new worker has taken its task, and none of the others has.
    assert_eq!(progress.count_starts(11, 100), 2);
    assert_eq!(progress.count_starts(13, 100), 4);
    assert_eq!(progress.count_starts(18, 100), 0, "five tasks: at least one is not a first one");
    assert_eq!(progress.count_starts(18, 100), 8, "it may have been a second one");
    assert_eq!(progress.count_starts(18, 9), 1, "eight are on their way to nine tasks");
    assert_eq!(progress.count_starts(30, 100), 0);
    assert_eq!(progress.count_starts(31, 100), 0);
    assert_eq!(progress.count_starts(31, 100), 1, "progress twice: the others go on");
}

#[test]
fn a_worker_that_takes_nothing_hides_no_progress_for_ever() {
    let mut progress = Progress::since(0);
    assert_eq!(progress.count_starts(0, 1), 1);
    assert_eq!(progress.count_starts(0, 1), 0, "the new worker is on its way");
    assert_eq!(progress.count_starts(1, 1), 0, "another one has taken a task");
}

#[test]
fn a_group_that_is_dropped_leaves_none() {
    let pool = ThreadPool::new(1, 1, Duration::MAX);
    let count = || pool.shared().deadlines.0.lock().len();
    let at = Instant::now() + Duration::from_secs(3600);
    let groups = [(); 3].map(|()| pool.group::<()>().deadline(at));
    assert_eq!(count(), 3);
    groups[0].set_deadline(at + Duration::from_secs(1));
    assert_eq!(count(), 3, "it replaces the earlier one");
    drop(groups);
    assert_eq!(count(), 0);
}
