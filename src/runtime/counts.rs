//! The workers, counted in one word.
//!
//! | bits (64-bit word) | field | meaning |
//! |---|---|---|
//! | 0 | `waking` | an idle worker was claimed and has not yet found a task or given up |
//! | 1 | `watching` | a worker keeps the watch over queued work (`Growth::Stalled` only) |
//! | 2..4 | `starting` | threads that were started for queued work and have not yet found a task or given up |
//! | 4..24 | `idle` | workers on the idle stack |
//! | 24..44 | `away` | workers in a blocking region |
//! | 44..64 | `total` | workers alive, all of these included |
//!
//! A 32-bit word has 9 bits for each of the last three. `idle + away <= total` and no count leaves its
//! field: no thread is started when `total` is [`MAX_WORKERS`], or `starting` is as large as it can be.
//!
//! `total - away` workers are *runnable*. Those of them that are not idle are *running*: they run a task, or look for one.
//! That is what `max_size` limits (law 4). A worker that is idle beyond that is a *spare*: it was started in the place of a
//! blocked one, and is kept for the next.
//!
//! Who changes what: `total` changes only under the registry's lock and `idle` only under the idle
//! stack's lock; `away` is changed by the worker itself, or for it by the one that lets it out of the line; the flags are taken, and `starting` grows, by compare-exchange; their
//! holder gives them up.
//!
//! # Orderings
//! Accesses are `Relaxed`. (All but one, so that threads are counted well.) The word carries no data; what must be ordered
//! against it is ordered by its neighbours. Against the queue: a `SeqCst` fence on both sides (`protocol.md`, race 1). Against
//! the in-flight word: that word's read-modify-writes, which acquire and release (race 3). Between
//! two changes of this word: its own modification order, since every change is a
//! read-modify-write.

use std::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicUsize, Ordering};

const SEARCHING: usize = 1;
const MONITORING: usize = 1 << 1;
const STARTING_SHIFT: u32 = 2;
const STARTING_BITS: u32 = 2;
const STARTING_MASK: usize = (1 << STARTING_BITS) - 1;
const ONE_STARTING: usize = 1 << STARTING_SHIFT;
const IDLE_SHIFT: u32 = STARTING_SHIFT + STARTING_BITS;
const FIELD_BITS: u32 = (usize::BITS - IDLE_SHIFT) / 3;
const FIELD_MASK: usize = (1 << FIELD_BITS) - 1;
const BLOCKED_SHIFT: u32 = IDLE_SHIFT + FIELD_BITS;
const TOTAL_SHIFT: u32 = BLOCKED_SHIFT + FIELD_BITS;
const ONE_IDLE: usize = 1 << IDLE_SHIFT;
const ONE_BLOCKED: usize = 1 << BLOCKED_SHIFT;
const ONE_WORKER: usize = 1 << TOTAL_SHIFT;

/// The largest number of workers that a count can hold.
pub(crate) const MAX_WORKERS: usize = FIELD_MASK;

/// The phase to look for queued work on behalf of all submitters. At most one worker is woken and one watches at a time, and
/// no more threads are started at a time than tasks are queued; so a burst of tasks wakes (or starts) workers one after another,
/// and only as long as work is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The holder was claimed from the idle stack.
    Awake,
    /// The holder is a thread that was started for queued work.
    Starting,
    /// The holder waits for the others to take the queued work, and does something about it if they
    /// do not.
    Monitoring,
}

impl Search {
    /// What it adds to the word.
    fn unit(self) -> usize {
        match self {
            Search::Awake => SEARCHING,
            Search::Starting => ONE_STARTING,
            Search::Monitoring => MONITORING,
        }
    }
}

/// The counts at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(usize);

impl Snapshot {
    pub(crate) fn total(self) -> usize {
        self.0 >> TOTAL_SHIFT
    }

    pub(crate) fn blocked(self) -> usize {
        (self.0 >> BLOCKED_SHIFT) & FIELD_MASK
    }

    pub(crate) fn idle(self) -> usize {
        (self.0 >> IDLE_SHIFT) & FIELD_MASK
    }

    /// Workers that are not in a blocking region.
    pub(crate) fn runnable(self) -> usize {
        self.total() - self.blocked()
    }

    /// Workers that run a task or look for one.
    #[inline]
    pub(crate) fn running(self) -> usize {
        self.total() - self.blocked() - self.idle()
    }

    /// Whether one more worker may run under a limit of `max`.
    #[inline]
    pub(crate) fn has_spare_capacity(self, max: usize) -> bool {
        self.running() < max
    }

    /// Whether one more worker may be started under a limit of `max`: idle workers come first.
    pub(crate) fn may_start(self, max: usize) -> bool {
        self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS
    }

    /// Whether an idle worker was claimed for queued work and has not found any yet.
    pub(crate) fn has_searcher(self) -> bool {
        self.0 & SEARCHING != 0
    }

    /// Threads that were started for queued work and have not come yet.
    pub(crate) fn starting(self) -> usize {
        (self.0 >> STARTING_SHIFT) & STARTING_MASK
    }

    fn holds(self, search: Search) -> bool {
        match search {
            Search::Awake => self.has_searcher(),
            Search::Starting => self.starting() > 0,
            Search::Monitoring => self.has_stall_monitor(),
        }
    }

    /// Whether one more may be on its way: the first, or one of no more than `enough`.
    pub(crate) fn may_start_more(self, enough: usize) -> bool {
        self.starting() == 0 || self.starting() < enough.min(STARTING_MASK)
    }

    pub(crate) fn has_stall_monitor(self) -> bool {
        self.0 & MONITORING != 0
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("total", &self.total())
            .field("away", &self.blocked())
            .field("idle", &self.idle())
            .field("waking", &self.has_searcher())
            .field("starting", &self.starting())
            .field("watching", &self.has_stall_monitor())
            .finish()
    }
}

/// See the [module's documentation](self).
pub(crate) struct Counts {
    word: CachePadded<AtomicUsize>,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Counts { word: CachePadded::new(AtomicUsize::new(0)) }
    }

    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.word.load(Ordering::Relaxed))
    }

    /// Counts one more worker. Under the registry's lock.
    pub(crate) fn add_worker(&self) -> Snapshot {
        let before = self.word.fetch_add(ONE_WORKER, Ordering::Relaxed);
        debug_assert!(Snapshot(before).total() < MAX_WORKERS);
        Snapshot(before + ONE_WORKER)
    }

    /// Counts one worker less. Under the registry's lock.
    pub(crate) fn remove_worker(&self) -> Snapshot {
        let before = self.word.fetch_sub(ONE_WORKER, Ordering::Relaxed);
        debug_assert!(Snapshot(before).runnable() > Snapshot(before).idle());
        Snapshot(before - ONE_WORKER)
    }

    /// Counts a worker as not runnable: others may be started for it.
    ///
    /// The caller must then look at the queue, behind a `SeqCst` fence.
    pub(crate) fn add_blocked(&self) -> Snapshot {
        let before = self.word.fetch_add(ONE_BLOCKED, Ordering::Relaxed);
        debug_assert!(Snapshot(before).runnable() > Snapshot(before).idle());
        Snapshot(before + ONE_BLOCKED)
    }

    /// Counts a worker as runnable again.
    pub(crate) fn remove_blocked(&self) -> Snapshot {
        let before = self.word.fetch_sub(ONE_BLOCKED, Ordering::Relaxed);
        debug_assert!(Snapshot(before).blocked() > 0);
        Snapshot(before - ONE_BLOCKED)
    }

    /// Counts a worker as runnable again, unless more than `max` are running already.
    #[must_use]
    pub(crate) fn return_from_region(&self, max: usize) -> Option<Snapshot> {
        let change = |word| (Snapshot(word).running() <= max).then_some(word - ONE_BLOCKED);
        let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).ok()?;
        debug_assert!(Snapshot(before).blocked() > 0);
        Some(Snapshot(before - ONE_BLOCKED))
    }

    /// Counts one more idle worker and ends the search that it held. Under the idle stack's lock.
    pub(crate) fn add_idle(&self, search: Option<Search>) -> Snapshot {
        let ended = search.map_or(0, Search::unit);
        // One addition changes both fields: the search is counted and nobody else ends it.
        let before = self.word.fetch_add(ONE_IDLE.wrapping_sub(ended), Ordering::Relaxed);
        debug_assert!(Snapshot(before).idle() < Snapshot(before).runnable());
        debug_assert!(search.is_none_or(|search| Snapshot(before).holds(search)));
        Snapshot(before.wrapping_add(ONE_IDLE).wrapping_sub(ended))
    }

    /// Counts one idle worker less. Under the idle stack's lock.
    pub(crate) fn remove_idle(&self) {
        let before = self.word.fetch_sub(ONE_IDLE, Ordering::Relaxed);
        debug_assert!(Snapshot(before).idle() > 0);
    }

    /// Counts one idle worker less, which is going to search: it takes the search of a woken worker, unless another
    /// has it. `None` if `max` workers are running. Under the idle stack's lock.
    #[must_use]
    pub(crate) fn search_from_idle(&self, max: usize) -> Option<Option<Search>> {
        let change = |word| {
            let now = Snapshot(word);
            (now.idle() > 0 && now.running() < max).then(|| (now.0 - ONE_IDLE) | SEARCHING)
        };
        let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).ok()?;
        Some((!Snapshot(before).has_searcher()).then_some(Search::Awake))
    }

    /// Takes an idle worker for a search: counts one idle worker less and sets `waking`. `false` if there is no idle worker,
    /// if `max` workers are running, or if a woken worker is searching already. Under the idle stack's lock.
    #[must_use]
    pub(crate) fn claim_idle(&self, max: usize) -> bool {
        self.update(|now| {
            let claimable = now.idle() > 0 && now.running() < max && !now.has_searcher();
            claimable.then(|| (now.0 - ONE_IDLE) | SEARCHING)
        })
    }

    /// Takes the search of a woken worker, for one that has not gone to rest yet. Fails if somebody has it.
    #[must_use]
    pub(crate) fn begin_spinning(&self) -> bool {
        self.update(|now| (!now.has_searcher()).then_some(now.0 | SEARCHING))
    }

    /// Takes the right to start a thread for queued work: only while no worker is idle, nobody was woken or
    /// watches, and fewer than `max` workers are running; and while others are starting, only if
    /// fewer than `enough`. Says how many are starting then.
    #[must_use]
    pub(crate) fn begin_starting(&self, max: usize, enough: usize) -> Option<usize> {
        let change = |word| {
            let now = Snapshot(word);
            let alone = !now.has_searcher() && !now.has_stall_monitor();
            let may = alone && now.may_start_more(enough) && now.may_start(max);
            may.then(|| now.0 + ONE_STARTING)
        };
        // Acquire: what those had taken that have ended a search, fenced and begun another one before this.
        let before = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        before.ok().map(|word| Snapshot(word).starting() + 1)
    }

    /// Takes the watch, and ends the search that the worker held, unless somebody keeps the watch already.
    #[must_use]
    pub(crate) fn begin_monitoring(&self, search: Option<Search>) -> bool {
        let ended = search.map_or(0, Search::unit);
        self.update(|now| {
            debug_assert!(search.is_none_or(|search| now.holds(search)));
            (!now.has_stall_monitor()).then_some((now.0 - ended) | MONITORING)
        })
    }

    /// Ends a search. Its holder must look at the queue afterwards, behind a fence; unless the search was
    /// for a start that was refused (`protocol.md`, "A start is refused").
    pub(crate) fn end_search(&self, search: Search) {
        let before = self.word.fetch_sub(search.unit(), Ordering::Relaxed);
        debug_assert!(Snapshot(before).holds(search));
    }

    /// Changes the word if `next` wants to, and says whether it did.
    fn update(&self, mut next: impl FnMut(Snapshot) -> Option<usize>) -> bool {
        let change = |word| next(Snapshot(word));
        self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::{Counts, MAX_WORKERS, Search};

    #[test]
    fn fields_do_not_touch_each_other() {
        let counts = Counts::new();
        counts.add_worker();
        counts.add_worker();
        let now = counts.add_idle(None);
        assert_eq!((now.total(), now.idle(), now.blocked(), now.runnable()), (2, 1, 0, 2));
        assert!(counts.claim_idle(8));
        let now = counts.load();
        assert_eq!((now.total(), now.idle(), now.has_searcher()), (2, 0, true));
        let now = counts.add_blocked();
        assert_eq!((now.total(), now.idle(), now.blocked(), now.runnable()), (2, 0, 1, 1));
        assert!(now.has_searcher() && now.starting() == 0 && !now.has_stall_monitor());
        let now = counts.add_idle(Some(Search::Awake));
        assert_eq!((now.total(), now.idle(), now.blocked(), now.has_searcher()), (2, 1, 1, false));
        counts.remove_idle();
        assert_eq!(counts.remove_blocked().runnable(), 2);
        assert_eq!(counts.begin_starting(3, 0), Some(1));
        counts.end_search(Search::Starting);
        counts.add_blocked();
        let now = counts.remove_worker();
        assert_eq!((now.total(), now.blocked(), now.runnable()), (1, 1, 0));
    }

    #[test]
    fn a_search_excludes_another_of_its_kind() {
        let counts = Counts::new();
        for _ in 0..3 {
            counts.add_worker();
        }
        counts.add_idle(None);
        counts.add_idle(None);
        assert_eq!(counts.begin_starting(8, 0), None, "idle workers come first");
        assert!(counts.claim_idle(8));
        assert!(!counts.claim_idle(8), "one woken worker searches at a time");
        counts.end_search(Search::Awake);
        assert!(counts.claim_idle(8));
        counts.end_search(Search::Awake);
        assert_eq!(counts.begin_starting(3, 0), None, "the limit is reached");
        assert_eq!(counts.begin_starting(4, 0), Some(1));
        assert_eq!(counts.begin_starting(4, 0), None);
        counts.add_idle(None);
        assert!(counts.claim_idle(8), "a starting thread does not keep an idle worker asleep");
    }

    #[test]
    fn no_more_come_than_are_enough() {
        let counts = Counts::new();
        counts.add_worker();
        assert_eq!(counts.begin_starting(8, 2), Some(1));
        assert_eq!(counts.begin_starting(8, 2), Some(2));
        assert_eq!(counts.begin_starting(8, 2), None);
        assert_eq!(counts.begin_starting(8, 100), Some(3));
        assert_eq!(counts.begin_starting(8, 100), None, "no more can be counted");
        assert_eq!((counts.load().starting(), counts.load().idle()), (3, 0));
        for _ in 0..3 {
            counts.end_search(Search::Starting);
        }
        assert_eq!(counts.begin_starting(8, 2), Some(1));
    }

    #[test]
    fn a_watch_takes_the_place_of_a_search() {
        let counts = Counts::new();
        counts.add_worker();
        assert_eq!(counts.begin_starting(2, 0), Some(1));
        assert!(counts.begin_monitoring(Some(Search::Starting)));
        let now = counts.load();
        assert!(now.has_stall_monitor() && now.starting() == 0);
        assert_eq!(counts.begin_starting(2, 0), None, "the watch sees to it");
        counts.add_idle(None);
        assert!(counts.claim_idle(8), "a watch does not keep an idle worker asleep");
        assert!(!counts.begin_monitoring(Some(Search::Awake)), "one watch at a time");
        counts.end_search(Search::Monitoring);
        assert!(counts.begin_monitoring(Some(Search::Awake)));
    }

    #[test]
    fn those_who_are_away_make_room() {
        let counts = Counts::new();
        counts.add_worker();
        assert_eq!(counts.begin_starting(1, 0), None);
        counts.add_blocked();
        assert_eq!(counts.begin_starting(1, 0), Some(1));
        counts.add_worker();
        counts.end_search(Search::Starting);
        assert_eq!(counts.begin_starting(1, 0), None);
        assert_eq!(counts.remove_blocked().runnable(), 2, "one over the limit");
    }

    #[test]
    fn nothing_is_claimed_where_nobody_is() {
        // The word must not be reckoned below zero on the way to the answer.
        assert!(!Counts::new().claim_idle(8));
    }

    #[test]
    fn the_limit_fits() {
        assert_eq!(MAX_WORKERS, (1 << ((usize::BITS - 4) / 3)) - 1);
        let counts = Counts::new();
        for _ in 0..MAX_WORKERS.min(1 << 21) {
            counts.add_worker();
            counts.add_blocked();
        }
        let now = counts.load();
        assert_eq!((now.total(), now.blocked(), now.idle()), (MAX_WORKERS, MAX_WORKERS, 0));
        assert!(!now.may_start(1), "no more can be counted");
    }

    #[test]
    fn debug_names_the_fields() {
        let counts = Counts::new();
        counts.add_worker();
        let text = format!("{:?}", counts.load());
        assert_eq!(
            text,
            "Snapshot { total: 1, away: 0, idle: 0, waking: false, starting: 0, watching: false }"
        );
    }
}
