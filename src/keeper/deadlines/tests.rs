use std::time::{Duration, Instant};

use crate::ThreadPool;

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
