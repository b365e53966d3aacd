use std::sync::{Arc, Barrier};
use std::time::Duration;

use futures_executor::block_on;

use super::{AWAITED, Capacity, Granted, PERMIT, Permits, WAKING, Waits};
use crate::ThreadPool;
use crate::crew::Sizes;
use crate::sync::Ordering;
use crate::task::DEFAULT_VIEW;

fn sizes(max_size: usize) -> Sizes {
    Sizes::new(0, max_size, Duration::from_secs(1))
}

/// Returns a capacity of this many permits, all of which are held.
fn full(permits: usize) -> (Sizes, Capacity) {
    let (sizes, capacity) = (sizes(permits), Capacity::new(0));
    (0..permits).for_each(|_| capacity.acquire_over_limit());
    (sizes, capacity)
}

fn wait_as(capacity: &dyn Permits, sizes: &Sizes, waits: Waits) -> Granted {
    let mut waits = capacity.begin_wait(sizes, DEFAULT_VIEW, waits);
    assert_eq!(waits.try_recv(), Ok(None));
    waits
}

/// Begins the wait of a submitter from outside.
fn wait(capacity: &dyn Permits, sizes: &Sizes) -> Granted {
    wait_as(capacity, sizes, Waits::Outside)
}

/// Ends the wait of a submitter that was granted a permit or refused.
fn wake_up(capacity: &dyn Permits, sizes: &Sizes, mut submitter: Granted) -> bool {
    let granted = submitter.try_recv();
    assert_ne!(granted, Ok(None), "the wait has ended");
    capacity.end_wait(sizes, submitter, granted.is_ok())
}

fn time_out(capacity: &dyn Permits, sizes: &Sizes, submitter: Granted) -> bool {
    capacity.end_wait(sizes, submitter, false)
}

#[test]
fn there_is_a_permit_for_each_unit_of_capacity_and_each_worker() {
    let sizes = sizes(2);
    let capacity = Capacity::new(1);
    for _ in 0..3 {
        assert!(capacity.try_acquire(&sizes));
    }
    assert!(!capacity.try_acquire(&sizes));
    capacity.release(&sizes);
    assert!(capacity.try_acquire(&sizes));
    assert!(!capacity.try_acquire(&sizes));
    let unlimited = Capacity::new(usize::MAX);
    for _ in 0..3 {
        assert!(unlimited.try_acquire(&sizes));
    }
}

#[test]
fn a_change_of_the_sizes_changes_the_number_of_permits() {
    let sizes = sizes(1);
    let capacity = Capacity::new(0);
    assert!(capacity.try_acquire(&sizes));
    let waiting = wait(&capacity, &sizes);
    sizes.change(|core_size, _| (core_size, 3), 0).unwrap();
    capacity.grant(&sizes);
    assert!(wake_up(&capacity, &sizes, waiting));
    assert!(capacity.try_acquire(&sizes));
    sizes.change(|core_size, _| (core_size, 1), 0).unwrap();
    capacity.grant(&sizes);
    for _ in 0..3 {
        assert!(!capacity.try_acquire(&sizes));
        capacity.release(&sizes);
    }
    assert!(capacity.try_acquire(&sizes));
}

#[test]
fn a_change_of_the_sizes_grants_every_new_permit() {
    let (sizes, capacity) = full(1);
    let [first, second, mut third] = std::array::from_fn(|_| wait(&capacity, &sizes));
    sizes.change(|core_size, _| (core_size, 3), 0).unwrap();
    capacity.grant(&sizes);
    // One grants the next permit.
    for granted in [first, second] {
        assert!(wake_up(&capacity, &sizes, granted));
    }
    assert_eq!(third.try_recv(), Ok(None));
}

#[test]
fn futures_are_granted_every_free_permit_at_once() {
    let (sizes, capacity) = full(1);
    let [mut first, mut second, last] = [Waits::Future, Waits::Future, Waits::Outside]
        .map(|waits| wait_as(&capacity, &sizes, waits));
    sizes.change(|core_size, _| (core_size, 4), 0).unwrap();
    capacity.grant(&sizes);
    assert_eq!(capacity.word.load(Ordering::Relaxed), (4 * PERMIT) | WAKING);
    assert_eq!((first.try_recv(), second.try_recv()), (Ok(Some(())), Ok(Some(()))));
    assert!(wake_up(&capacity, &sizes, last));
    assert_eq!(capacity.word.load(Ordering::Relaxed), 4 * PERMIT);
}

#[test]
fn a_future_that_gives_up_leaves_nothing_behind() {
    let (sizes, capacity) = full(1);
    let [granted, waiting] = [(); 2].map(|()| wait_as(&capacity, &sizes, Waits::Future));
    capacity.release(&sizes);
    capacity.give_up(&sizes, granted);
    assert_eq!(capacity.word.load(Ordering::Relaxed), PERMIT, "it goes to the next one");
    capacity.give_up(&sizes, waiting);
    assert_eq!(capacity.word.load(Ordering::Relaxed), 0);
    assert!(capacity.try_acquire(&sizes));
    capacity.give_up(&sizes, wait_as(&capacity, &sizes, Waits::Future));
    assert_eq!(capacity.word.load(Ordering::Relaxed), PERMIT);
}

#[test]
fn the_flag_is_set_while_submitters_wait() {
    let sizes = sizes(1);
    let capacity = Capacity::new(0);
    let is_set = || capacity.word.load(Ordering::Relaxed) & AWAITED != 0;
    assert!(capacity.try_acquire(&sizes));
    let [first, second] = std::array::from_fn(|_| wait(&capacity, &sizes));
    assert!(is_set());
    capacity.release(&sizes);
    assert!(is_set());
    assert!(wake_up(&capacity, &sizes, first));
    assert!(!time_out(&capacity, &sizes, second));
    assert!(!is_set());
}

#[test]
fn waiting_submitters_are_granted_permits_in_order() {
    let (sizes, capacity) = full(1);
    let mut waiting: Vec<_> = (0..4).map(|_| wait(&capacity, &sizes)).collect();
    while !waiting.is_empty() {
        capacity.release(&sizes);
        assert!(wake_up(&capacity, &sizes, waiting.remove(0)));
        assert!(waiting.iter_mut().all(|other| other.try_recv() == Ok(None)));
        assert!(!capacity.try_acquire(&sizes), "none overtakes");
    }
}

/// Calls `test` with two submitters, and as many free permits: the first submitter has been granted
/// one, and wakes up.
fn while_one_wakes_up(test: impl Fn(&Sizes, &Capacity, [Granted; 2])) {
    let (sizes, capacity) = full(2);
    let mut waiting = std::array::from_fn(|_| wait(&capacity, &sizes));
    capacity.release(&sizes);
    capacity.release(&sizes);
    assert_eq!(waiting[1].try_recv(), Ok(None));
    test(&sizes, &capacity, waiting);
}

#[test]
fn a_free_permit_is_for_anyone_while_a_submitter_wakes_up() {
    while_one_wakes_up(|sizes, capacity, [first, second]| {
        assert!(capacity.try_acquire(sizes));
        // As by a thread that has not taken the lock yet.
        capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
        assert!(wake_up(capacity, sizes, first));
        assert!(wake_up(capacity, sizes, second), "granted by the first");
    });
}

#[test]
fn a_submitter_that_gives_up_takes_a_free_permit() {
    while_one_wakes_up(|sizes, capacity, [first, second]| {
        assert!(time_out(capacity, sizes, second));
        assert!(wake_up(capacity, sizes, first));
        assert_eq!(capacity.word.load(Ordering::Relaxed), 2 * PERMIT);
    });
}

#[test]
fn the_first_submitter_that_gives_up_takes_a_permit_that_is_about_to_be_granted() {
    let (sizes, capacity) = full(1);
    let [first, second] = std::array::from_fn(|_| wait(&capacity, &sizes));
    // The first half of a release, by another thread.
    capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
    assert!(!time_out(&capacity, &sizes, second));
    let mut other = wait(&capacity, &sizes);
    assert!(time_out(&capacity, &sizes, first));
    capacity.grant(&sizes);
    assert_eq!(other.try_recv(), Ok(None), "it has gone to the first");
}

#[test]
fn a_submission_overtakes_no_submitter_unless_one_wakes_up() {
    let (sizes, capacity) = full(1);
    let waiting = wait(&capacity, &sizes);
    // The first half of a release, by another thread.
    capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
    assert!(!capacity.try_acquire(&sizes));
    capacity.grant(&sizes);
    assert!(wake_up(&capacity, &sizes, waiting));
    capacity.release(&sizes);
    assert!(capacity.try_acquire(&sizes));
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
        let capacity = shared.capacity.as_deref().unwrap();
        // The first one never wakes up.
        let waiting: [_; 2] = std::array::from_fn(|_| wait(capacity, &shared.sizes));
        barrier.wait();
        for granted in waiting {
            assert_eq!(block_on(granted), Ok(()));
        }
        // The submitters have no task.
        capacity.release(&shared.sizes);
        capacity.release(&shared.sizes);
        pool.shutdown_join();
    }
}

#[test]
fn a_waiting_submitter_may_give_up_or_go_on_without_a_permit() {
    let (sizes, capacity) = full(1);
    let late = wait(&capacity, &sizes);
    assert!(!time_out(&capacity, &sizes, late));
    let mut outside = wait(&capacity, &sizes);
    let starved = wait_as(&capacity, &sizes, Waits::Worker);
    capacity.grant_over_limit(&sizes);
    assert!(wake_up(&capacity, &sizes, starved));
    assert_eq!(outside.try_recv(), Ok(None), "it is no worker");
    capacity.grant_over_limit(&sizes);
    assert_eq!(capacity.word.load(Ordering::Relaxed), (2 * PERMIT) | AWAITED);
    capacity.release(&sizes);
    assert_eq!(outside.try_recv(), Ok(None), "the permit over the limit has used it up");
    capacity.release(&sizes);
    // A granted permit is kept: it is too late to give up.
    assert!(time_out(&capacity, &sizes, outside));
}

#[test]
fn a_permit_for_a_submitter_that_has_just_given_up_is_for_the_next_one() {
    let (sizes, capacity) = full(1);
    let [mut late, next] = std::array::from_fn(|_| wait(&capacity, &sizes));
    // The first half of giving up, by another thread.
    late.close();
    capacity.release(&sizes);
    assert!(wake_up(&capacity, &sizes, next));
    assert_eq!(capacity.word.load(Ordering::Relaxed), PERMIT);
    assert!(!time_out(&capacity, &sizes, late));
}

#[test]
fn a_submitter_to_a_closed_view_holds_up_no_other() {
    let (sizes, capacity) = full(1);
    let refused = wait(&capacity, &sizes);
    capacity.close(Some(DEFAULT_VIEW));
    capacity.release(&sizes);
    // It has not noticed yet, and the permit that has become free is not for it.
    assert!(capacity.try_acquire(&sizes));
    assert!(!wake_up(&capacity, &sizes, refused));
}

#[test]
fn closing_ends_all_waits() {
    let (sizes, capacity) = full(1);
    let waiting: [_; 2] = std::array::from_fn(|_| wait(&capacity, &sizes));
    capacity.close(None);
    for refused in waiting {
        assert!(!wake_up(&capacity, &sizes, refused));
    }
    assert!(!capacity.try_acquire(&sizes));
    let late = wait(&capacity, &sizes);
    capacity.close(Some(DEFAULT_VIEW));
    assert!(!wake_up(&capacity, &sizes, late));
    capacity.release(&sizes);
    assert_eq!(capacity.submitters.lock().len(), 0);
}
