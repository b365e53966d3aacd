use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::{AWAITED, Capacity, NoPermit, PERMIT, WAKE_UP};
use crate::ThreadPool;
use crate::runtime::policy::DEFAULT_VIEW;
use crate::runtime::sizes::Sizes;
use crate::sync::Ordering;
use crate::sync::parker::{Parker, Signal};

/// Longer than any wait of these tests.
const LIMIT: Duration = Duration::from_secs(60);

fn sizes(max_size: usize) -> Sizes {
    Sizes::new(0, max_size, Duration::from_secs(1))
}

/// Returns a capacity of this many permits, all of which are held.
fn full(permits: usize) -> (Sizes, Capacity) {
    let (sizes, capacity) = (sizes(permits), Capacity::new(0));
    (0..permits).for_each(|_| capacity.acquire_over_limit());
    (sizes, capacity)
}

/// Returns the parker of a waiting submitter.
fn wait(capacity: &Capacity, sizes: &Sizes) -> Arc<Parker> {
    let parker = Arc::new(Parker::new());
    assert_eq!(
        capacity.acquire_or_wait(sizes, &parker, DEFAULT_VIEW, || false),
        Err(NoPermit::Full)
    );
    assert_eq!(capacity.end_wait(sizes, &parker, None), None);
    parker
}

#[test]
fn there_is_a_permit_for_each_unit_of_capacity_and_each_worker() {
    let sizes = sizes(2);
    let capacity = Capacity::new(1);
    for _ in 0..3 {
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    }
    assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
    capacity.release(&sizes);
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
    let unlimited = Capacity::new(usize::MAX);
    for _ in 0..3 {
        assert_eq!(unlimited.try_acquire(&sizes), Ok(()));
    }
}

#[test]
fn a_change_of_the_sizes_changes_the_number_of_permits() {
    let sizes = sizes(1);
    let capacity = Capacity::new(0);
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    let waiting = wait(&capacity, &sizes);
    sizes.change(|core_size, _| (core_size, 3), 0).unwrap();
    capacity.grant(&sizes);
    assert_eq!(waiting.try_park(), Some(Signal::Unparked));
    assert_eq!(capacity.end_wait(&sizes, &waiting, None), Some(Ok(())));
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    sizes.change(|core_size, _| (core_size, 1), 0).unwrap();
    capacity.grant(&sizes);
    for _ in 0..3 {
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        capacity.release(&sizes);
    }
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
}

#[test]
fn a_change_of_the_sizes_grants_every_new_permit() {
    let (sizes, capacity) = full(1);
    let waiting: [_; 3] = std::array::from_fn(|_| wait(&capacity, &sizes));
    sizes.change(|core_size, _| (core_size, 3), 0).unwrap();
    capacity.grant(&sizes);
    // One grants the next permit.
    for granted in &waiting[..2] {
        assert_eq!(granted.try_park(), Some(Signal::Unparked));
        assert_eq!(capacity.end_wait(&sizes, granted, None), Some(Ok(())));
    }
    assert_eq!(waiting[2].try_park(), None);
    assert_eq!(capacity.end_wait(&sizes, &waiting[2], None), None);
}

#[test]
fn the_flag_is_set_while_submitters_wait() {
    let sizes = sizes(1);
    let capacity = Capacity::new(0);
    let is_set = || capacity.word.load(Ordering::Relaxed) & AWAITED != 0;
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    let waiting = [wait(&capacity, &sizes), wait(&capacity, &sizes)];
    assert!(is_set());
    capacity.release(&sizes);
    assert!(is_set());
    assert_eq!(capacity.end_wait(&sizes, &waiting[0], None), Some(Ok(())));
    assert_eq!(
        capacity.end_wait(&sizes, &waiting[1], Some(Err(NoPermit::Full))),
        Some(Err(NoPermit::Full))
    );
    assert!(!is_set());
}

#[test]
fn waiting_submitters_are_granted_permits_in_order() {
    let (sizes, capacity) = full(1);
    let waiting: Vec<_> = (0..4).map(|_| wait(&capacity, &sizes)).collect();
    for (granted, parker) in waiting.iter().enumerate() {
        capacity.release(&sizes);
        assert_eq!(parker.try_park(), Some(Signal::Unparked));
        assert_eq!(capacity.end_wait(&sizes, parker, None), Some(Ok(())));
        assert!(waiting[granted + 1..].iter().all(|other| other.try_park().is_none()));
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full), "none overtakes");
    }
}

#[test]
fn a_spin_acquires_a_free_permit() {
    let sizes = sizes(1);
    let capacity = Capacity::new(0);
    assert!(capacity.spin_to_acquire(&sizes));
    assert!(!capacity.spin_to_acquire(&sizes), "none is free");
    capacity.release(&sizes);
    assert!(capacity.spin_to_acquire(&sizes));
    capacity.release(&sizes);
    capacity.close();
    assert!(!capacity.spin_to_acquire(&sizes), "the pool is closed");
}

/// Releases two permits for two waiting submitters, the second one after `pause`. Returns the capacity, with no other permit
/// held, and the submitters.
fn release_two(pause: Duration) -> (Sizes, Capacity, [Arc<Parker>; 2]) {
    let (sizes, capacity) = full(2);
    let waiting = [wait(&capacity, &sizes), wait(&capacity, &sizes)];
    // Time is the subject: that of the grant counts, not that of the start.
    thread::sleep(2 * WAKE_UP);
    capacity.release(&sizes);
    assert_eq!(waiting[0].try_park(), Some(Signal::Unparked));
    thread::sleep(pause);
    capacity.release(&sizes);
    (sizes, capacity, waiting)
}

/// Calls `test` with the outcome of [`release_two`] while the first submitter still wakes up.
fn while_one_wakes_up(test: impl Fn(&Sizes, &Capacity, &[Arc<Parker>; 2])) {
    for _ in 0..1_000 {
        let (sizes, capacity, waiting) = release_two(Duration::ZERO);
        // Otherwise this thread had no CPU meanwhile.
        if waiting[1].try_park().is_none() {
            return test(&sizes, &capacity, &waiting);
        }
    }
    panic!("a release grants its permit while a submitter wakes up");
}

#[test]
fn a_free_permit_is_for_anyone_while_a_submitter_wakes_up() {
    while_one_wakes_up(|sizes, capacity, [first, second]| {
        assert_eq!(capacity.try_acquire(sizes), Ok(()));
        // As by a thread that has not taken the lock yet.
        capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
        assert_eq!(capacity.end_wait(sizes, first, None), Some(Ok(())));
        assert_eq!(second.try_park(), Some(Signal::Unparked), "granted by the first");
        assert_eq!(capacity.end_wait(sizes, second, None), Some(Ok(())));
    });
}

#[test]
fn a_submitter_that_gives_up_takes_a_free_permit() {
    while_one_wakes_up(|sizes, capacity, [first, second]| {
        assert_eq!(capacity.end_wait(sizes, second, Some(Err(NoPermit::Full))), Some(Ok(())));
        assert_eq!(capacity.end_wait(sizes, first, None), Some(Ok(())));
        assert_eq!(capacity.word.load(Ordering::Relaxed), 2 * PERMIT);
    });
}

#[test]
fn the_first_submitter_that_gives_up_takes_a_permit_that_is_about_to_be_granted() {
    let (sizes, capacity) = full(1);
    let waiting = [wait(&capacity, &sizes), wait(&capacity, &sizes)];
    // The first half of a release, by another thread.
    capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
    let full = Err(NoPermit::Full);
    assert_eq!(capacity.end_wait(&sizes, &waiting[1], Some(full)), Some(full));
    let other = wait(&capacity, &sizes);
    assert_eq!(capacity.end_wait(&sizes, &waiting[0], Some(full)), Some(Ok(())));
    capacity.grant(&sizes);
    assert_eq!(other.try_park(), None, "it has gone to the first");
}

#[test]
fn a_submission_overtakes_no_submitter_unless_one_wakes_up() {
    let (sizes, capacity) = full(1);
    let waiting = wait(&capacity, &sizes);
    // The first half of a release, by another thread.
    capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
    assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
    assert!(!capacity.spin_to_acquire(&sizes));
    capacity.grant(&sizes);
    assert_eq!(capacity.end_wait(&sizes, &waiting, None), Some(Ok(())));
    capacity.release(&sizes);
    assert_eq!(capacity.try_acquire(&sizes), Ok(()));
}

#[test]
fn a_worker_that_rests_leaves_no_permit_free() {
    // Mostly the second task ends just after the first.
    for _ in 0..50 {
        let pool = ThreadPool::builder().core_size(2).max_size(2).queue_capacity(0).build();
        let barrier = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let barrier = Arc::clone(&barrier);
            pool.execute(move || _ = barrier.wait());
        }
        let shared = pool.shared();
        let capacity = shared.capacity.as_ref().unwrap();
        // The first one never wakes up.
        let waiting = [wait(capacity, &shared.sizes), wait(capacity, &shared.sizes)];
        barrier.wait();
        for parker in waiting {
            assert_eq!(parker.park(Some(Instant::now() + LIMIT)), Signal::Unparked);
        }
        // The submitters have no task.
        capacity.release(&shared.sizes);
        capacity.release(&shared.sizes);
        pool.shutdown_join();
    }
}

#[test]
fn a_slow_wake_up_holds_up_no_other_submitter() {
    let (sizes, capacity, [first, second]) = release_two(2 * WAKE_UP);
    assert_eq!(second.try_park(), Some(Signal::Unparked));
    for granted in [first, second] {
        assert_eq!(capacity.end_wait(&sizes, &granted, None), Some(Ok(())));
    }
    assert_eq!(capacity.word.load(Ordering::Relaxed), 2 * PERMIT);
}

#[test]
fn a_waiting_submitter_may_give_up_or_go_on_without_a_permit() {
    let (sizes, capacity) = full(1);
    let late = wait(&capacity, &sizes);
    let full = Err(NoPermit::Full);
    assert_eq!(capacity.end_wait(&sizes, &late, Some(full)), Some(full));
    let starved = wait(&capacity, &sizes);
    assert_eq!(capacity.end_wait(&sizes, &starved, Some(Ok(()))), Some(Ok(())));
    let next = wait(&capacity, &sizes);
    capacity.release(&sizes);
    assert_eq!(next.try_park(), None, "the permit over the limit has used it up");
    capacity.release(&sizes);
    assert_eq!(next.try_park(), Some(Signal::Unparked));
    // A granted permit is kept: it is too late to give up.
    assert_eq!(capacity.end_wait(&sizes, &next, Some(full)), Some(Ok(())));
}

#[test]
fn a_submitter_to_a_closed_view_holds_up_no_other() {
    let (sizes, capacity) = full(1);
    let refused = wait(&capacity, &sizes);
    capacity.close_view(DEFAULT_VIEW);
    capacity.release(&sizes);
    let other = Arc::new(Parker::new());
    // It has not noticed yet, and the permit that has become free is not for it.
    assert_eq!(capacity.acquire_or_wait(&sizes, &other, DEFAULT_VIEW, || false), Ok(()));
    assert_eq!(capacity.end_wait(&sizes, &refused, None), Some(Err(NoPermit::Closed)));
}

#[test]
fn closing_ends_all_waits() {
    let (sizes, capacity) = full(1);
    let waiting = [wait(&capacity, &sizes), wait(&capacity, &sizes)];
    capacity.close();
    for parker in &waiting {
        assert_eq!(parker.try_park(), Some(Signal::Unparked));
        assert_eq!(capacity.end_wait(&sizes, parker, None), Some(Err(NoPermit::Closed)));
    }
    assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Closed));
    let parker = Arc::new(Parker::new());
    assert_eq!(
        capacity.acquire_or_wait(&sizes, &parker, DEFAULT_VIEW, || false),
        Err(NoPermit::Closed)
    );
    capacity.release(&sizes);
    assert_eq!(capacity.submitters.lock().len(), 0);
}
