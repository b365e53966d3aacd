use super::{Counts, MAX_SEARCHING, MAX_WORKERS, Search};

#[test]
fn fields_do_not_touch_each_other() {
    let counts = Counts::default();
    counts.add_worker();
    counts.add_worker();
    _ = counts.add_idle(false);
    let now = counts.load();
    assert_eq!((now.total(), now.idle(), now.blocked(), now.runnable()), (2, 1, 0, 2));
    assert!(counts.claim_idle(8, 1));
    let now = counts.load();
    assert_eq!((now.total(), now.idle(), now.searching()), (2, 0, 1));
    _ = counts.add_blocked();
    let now = counts.load();
    assert_eq!((now.total(), now.idle(), now.blocked(), now.runnable()), (2, 0, 1, 1));
    assert_eq!(now.searching(), 1);
    _ = counts.add_idle(false).and(counts.end_search(Search::Searching));
    let now = counts.load();
    assert_eq!((now.total(), now.idle(), now.blocked(), now.searching()), (2, 1, 1, 0));
    counts.remove_idle();
    counts.remove_blocked();
    assert_eq!(counts.load().runnable(), 2);
    _ = counts.add_blocked();
    let (now, _) = counts.remove_worker();
    assert_eq!((now.total(), now.blocked(), now.runnable()), (1, 1, 0));
    assert_eq!(now.searching(), 0);
}

#[test]
fn any_number_may_be_starting() {
    let counts = Counts::default();
    for _ in 0..4 {
        counts.add_worker();
        counts.begin_starting();
    }
    assert_eq!(counts.begin_starting_below(4), None, "enough are starting");
    _ = counts.end_search(Search::Starting);
    assert_eq!(counts.begin_starting_below(4), Some(4));
    for left in [3, 2, 1, 0] {
        _ = counts.end_search(Search::Starting);
        assert_eq!(counts.starting(), left);
    }
}

#[test]
fn no_more_search_than_are_enough() {
    let counts = Counts::default();
    for _ in 0..9 {
        counts.add_worker();
        _ = counts.add_idle(false);
    }
    assert!(counts.claim_idle(9, 1) && !counts.claim_idle(9, 1));
    assert!(counts.claim_idle(9, 2) && !counts.claim_idle(9, 2));
    _ = counts.end_search(Search::Searching);
    assert!(!counts.begin_search());
    _ = counts.end_search(Search::Searching);
    assert!(counts.begin_search());
    while counts.claim_idle(9, MAX_SEARCHING) {}
    assert_eq!((counts.load().searching(), counts.load().idle()), (7, 1));
    counts.remove_idle();
    assert_eq!((counts.load().searching(), counts.load().idle()), (7, 0));
}

#[test]
fn blocked_workers_leave_spare_capacity() {
    let counts = Counts::default();
    counts.add_worker();
    assert!(!counts.load().may_start(1));
    _ = counts.add_blocked();
    assert!(counts.load().may_start(1));
    counts.add_worker();
    assert!(!counts.load().may_start(1));
    counts.remove_blocked();
    assert_eq!(counts.load().runnable(), 2, "one over the limit");
}

#[test]
fn a_spare_worker_stays_idle_at_the_limit() {
    let counts = Counts::default();
    counts.add_worker();
    counts.add_worker();
    _ = counts.add_idle(false);
    assert!(!counts.claim_idle(1, 1));
    _ = counts.add_blocked();
    assert!(counts.claim_idle(1, 1));
    assert_eq!(counts.load().idle(), 0);
    assert!(!counts.load().may_start(1), "an idle worker came first");
}

#[test]
fn nothing_is_claimed_from_an_empty_list() {
    // The count must not pass through a value below zero.
    assert!(!Counts::default().claim_idle(8, 1));
}

#[test]
fn the_limit_fits() {
    assert_eq!(MAX_WORKERS, (1 << ((usize::BITS - 4) / 3)) - 1);
    let counts = Counts::default();
    for _ in 0..MAX_WORKERS.min(1 << 21) {
        counts.add_worker();
        _ = counts.add_blocked();
    }
    let now = counts.load();
    assert_eq!((now.total(), now.blocked(), now.idle()), (MAX_WORKERS, MAX_WORKERS, 0));
    assert!(!now.may_start(1), "no more can be counted");
}

#[test]
fn debug_names_the_fields() {
    let counts = Counts::default();
    counts.add_worker();
    let text = format!("{:?}", counts.load());
    assert_eq!(text, "Snapshot { total: 1, blocked: 0, idle: 0, searching: 0, extra: 0 }");
}

#[test]
fn one_worker_is_the_extra_one_beyond_the_limit() {
    let counts = Counts::default();
    for _ in 0..3 {
        counts.add_worker();
    }
    assert!(!counts.begin_extra(3, 9), "three may run");
    assert!(!counts.begin_extra(1, 2), "at most two may");
    assert!(counts.begin_extra(2, 3));
    assert!(!counts.begin_extra(2, 3), "there is one");
    let now = counts.load();
    assert_eq!((now.running(), now.extra(), now.searching(), now.idle()), (3, 1, 0, 0));
    _ = counts.end_extra();
    assert_eq!(counts.load().extra(), 0);
    assert!(counts.begin_extra(0, 9));
}
