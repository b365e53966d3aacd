//! The workers, counted in one word, and those that are arriving, beside it.
//!
//! | bits (64-bit word) | field | meaning |
//! |---|---|---|
//! | 0 | `searching` | an idle worker was claimed, or a worker spins or stands by, and still looks for a task |
//! | 1 | `monitoring` | a worker is the stall monitor (`Growth::Stalled` only) |
//! | 2..4 | `starting` | threads started for queued work, and workers that found work beside an awake one, before their first task |
//! | 4..24 | `idle` | workers on the idle stack |
//! | 24..44 | `blocked` | workers in blocking regions |
//! | 44..64 | `total` | all workers, the above included |
//!
//! In a 32-bit word each of the last three has 9 bits. No field overflows: `idle + blocked <=
//! total`, and no thread is started at a `total` of [`MAX_WORKERS`] or a full `starting`.
//!
//! `total - blocked` workers are *runnable*. Those that are not idle are *running*: `max_size`
//! limits their number (law 4).
//!
//! `total` changes only under the registry's lock, `idle` only under the idle stack's lock.
//! `blocked` is changed by the worker itself, by the thread that releases it from the returning
//! queue, or by a worker that leaves a declared region, for one in such a region that was not
//! counted (race 28). The flags and `starting` are set by compare-exchange and cleared by the holder of the
//! search.
//!
//! # Orderings
//! Accesses are `Relaxed`, except in [`Counts::begin_starting`]. The word publishes no data. A
//! `SeqCst` fence on both sides orders it against the queue (`protocol.md`, race 1). The
//! read-modify-writes of the in-flight word order it against that word (race 3). Its own
//! modification order orders its changes against each other: each is a read-modify-write.
//!
//! # Hints
//! Beside the word are flags, by which it is decided whether a second worker is woken ([`Counts::rely`]), or one for each of
//! several long tasks ([`Counts::are_tasks_long`]). They affect only speed, so they may be read late, and a change may be lost.

use std::fmt;

use crate::sync::{AtomicUsize, Hint, Ordering};

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

/// Asserts what a change of the word requires, in debug builds and models. In a release build a change never panics: it may be
/// made while a task unwinds.
macro_rules! require {
    ($($condition:tt)*) => {
        if cfg!(any(debug_assertions, elastipool_loom)) {
            assert!($($condition)*);
        }
    };
}

/// Bounds the number of workers: the largest value of `total`, `blocked` and `idle`.
pub(crate) const MAX_WORKERS: usize = FIELD_MASK;

/// A worker that will look at the queue, on behalf of all submitters that see it in the counts.
///
/// At most one is awake and at most one monitors. No thread is started while as many are starting as
/// tasks are queued or CPUs there are. So a burst of tasks wakes workers one after another, and only while work is left, except
/// that long tasks wake several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The holder was claimed from the idle stack, or spins, or stands by on the idle stack.
    Awake,
    /// The holder is a thread that was started for queued work, or an idle worker that found work while another worker was
    /// awake.
    Starting,
    /// The holder is a thread that a submission starts because there are fewer workers than `core_size`, from before its task is
    /// pushed. Their number has no limit, so it is not in the word.
    Arriving,
    /// The holder is the stall monitor: it starts threads if the others make no progress.
    Monitoring,
}

impl Search {
    /// The amount that it adds to the word.
    fn unit(self) -> usize {
        match self {
            Search::Awake => SEARCHING,
            Search::Starting => ONE_STARTING,
            Search::Arriving => 0,
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

    /// Workers outside of blocking regions.
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

    /// Whether a worker may be started under a limit of `max`: not while any worker is idle.
    pub(crate) fn may_start(self, max: usize) -> bool {
        self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS
    }

    /// Whether a worker holds [`Search::Awake`].
    pub(crate) fn has_searcher(self) -> bool {
        self.0 & SEARCHING != 0
    }

    /// Workers that hold [`Search::Starting`].
    pub(crate) fn starting(self) -> usize {
        (self.0 >> STARTING_SHIFT) & STARTING_MASK
    }

    fn holds(self, search: Search) -> bool {
        match search {
            Search::Awake => self.has_searcher(),
            Search::Starting => self.starting() > 0,
            Search::Arriving => true,
            Search::Monitoring => self.has_stall_monitor(),
        }
    }

    /// Whether one more thread may be starting: the first one, or one of at most `enough`.
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
            .field("blocked", &self.blocked())
            .field("idle", &self.idle())
            .field("searching", &self.has_searcher())
            .field("starting", &self.starting())
            .field("monitoring", &self.has_stall_monitor())
            .finish()
    }
}

/// See the [module's documentation](self).
pub(crate) struct Counts {
    word: AtomicUsize,
    /// Searches of the kind [`Search::Arriving`].
    arriving: AtomicUsize,
    /// Whether a task relies on the search of an awake worker. Cleared when that worker [ends](Self::end_search) its search,
    /// mostly because it has taken the task. It stays set if the worker becomes idle instead. Then a wake-up may be wasted.
    is_relied_on: Hint,
    /// Whether no second worker may be woken.
    is_second_forbidden: Hint,
    /// Whether the last worker that has run tasks and begun to rest had run long ones.
    tasks_are_long: Hint,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Counts {
            word: AtomicUsize::new(0),
            arriving: AtomicUsize::new(0),
            is_relied_on: Hint::default(),
            is_second_forbidden: Hint::default(),
            tasks_are_long: Hint::default(),
        }
    }

    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.word.load(Ordering::Relaxed))
    }

    /// Notes that a task relies on the search of an awake worker. Returns whether a second worker may be woken for it: it
    /// may if another task relies on that search already, and if it is not [forbidden](Self::forbid_second).
    #[must_use]
    pub(crate) fn rely(&self) -> bool {
        if self.is_second_forbidden.get() {
            return false;
        }
        let is_second = self.is_relied_on.get();
        if !is_second {
            self.is_relied_on.set(true);
        }
        is_second
    }

    /// Forbids to wake a second worker, until one is [allowed](Self::allow_second) again.
    pub(crate) fn forbid_second(&self) {
        self.is_second_forbidden.set(true);
    }

    /// Allows to wake a second worker.
    pub(crate) fn allow_second(&self) {
        if self.is_second_forbidden.get() {
            self.is_second_forbidden.set(false);
        }
    }

    /// Notes whether the tasks were long that a worker has run before it begins to rest.
    pub(crate) fn note_long_tasks(&self, are_long: bool) {
        // Written only if it changes: every notifier reads it.
        if self.tasks_are_long.get() != are_long {
            self.tasks_are_long.set(are_long);
        }
    }

    /// Whether the tasks are taken to be long.
    pub(crate) fn are_tasks_long(&self) -> bool {
        self.tasks_are_long.get()
    }

    /// Begins a search of the kind [`Search::Arriving`].
    pub(crate) fn begin_arriving(&self) -> Search {
        self.arriving.fetch_add(1, Ordering::Relaxed);
        Search::Arriving
    }

    /// How many workers are arriving.
    pub(crate) fn arriving(&self) -> usize {
        // Acquire: sees what was taken from the queue by a worker that is no longer counted here.
        self.arriving.load(Ordering::Acquire)
    }

    /// Counts the end of a search that is not counted in the word.
    fn end_arriving(&self, search: Option<Search>) {
        if search == Some(Search::Arriving) {
            // Release: as in `arriving`.
            let before = self.arriving.fetch_sub(1, Ordering::Release);
            require!(before > 0);
        }
    }

    /// Adds a worker. The caller holds the registry's lock.
    pub(crate) fn add_worker(&self) -> Snapshot {
        let before = self.word.fetch_add(ONE_WORKER, Ordering::Relaxed);
        require!(Snapshot(before).total() < MAX_WORKERS);
        Snapshot(before + ONE_WORKER)
    }

    /// Removes a worker. The caller holds the registry's lock.
    pub(crate) fn remove_worker(&self) -> Snapshot {
        let before = self.word.fetch_sub(ONE_WORKER, Ordering::Relaxed);
        require!(Snapshot(before).runnable() > Snapshot(before).idle());
        Snapshot(before - ONE_WORKER)
    }

    /// Counts a worker as blocked: another worker may run in its place.
    ///
    /// The caller must then look at the queue, behind a `SeqCst` fence.
    pub(crate) fn add_blocked(&self) -> Snapshot {
        let before = self.word.fetch_add(ONE_BLOCKED, Ordering::Relaxed);
        require!(Snapshot(before).runnable() > Snapshot(before).idle());
        Snapshot(before + ONE_BLOCKED)
    }

    /// Counts a blocked worker as runnable again.
    pub(crate) fn remove_blocked(&self) -> Snapshot {
        let before = self.word.fetch_sub(ONE_BLOCKED, Ordering::Relaxed);
        require!(Snapshot(before).blocked() > 0, "no worker is blocked");
        Snapshot(before.wrapping_sub(ONE_BLOCKED))
    }

    /// Counts a blocked worker as runnable again, unless more than `max` are running.
    #[must_use]
    pub(crate) fn return_from_region(&self, max: usize) -> Option<Snapshot> {
        let change = |word| {
            let now = Snapshot(word);
            require!(now.blocked() > 0, "no worker is blocked");
            (now.running() <= max).then_some(word.wrapping_sub(ONE_BLOCKED))
        };
        let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).ok()?;
        Some(Snapshot(before.wrapping_sub(ONE_BLOCKED)))
    }

    /// Adds an idle worker and ends the search that it held. The caller holds the idle stack's
    /// lock.
    pub(crate) fn add_idle(&self, search: Option<Search>) -> Snapshot {
        let ended = search.map_or(0, Search::unit);
        // One addition changes both fields: no other worker ends this search.
        let before = self.word.fetch_add(ONE_IDLE.wrapping_sub(ended), Ordering::Relaxed);
        require!(Snapshot(before).idle() < Snapshot(before).runnable());
        require!(search.is_none_or(|search| Snapshot(before).holds(search)));
        self.end_arriving(search);
        Snapshot(before.wrapping_add(ONE_IDLE).wrapping_sub(ended))
    }

    /// Removes an idle worker. The caller holds the idle stack's lock.
    pub(crate) fn remove_idle(&self) {
        let before = self.word.fetch_sub(ONE_IDLE, Ordering::Relaxed);
        require!(Snapshot(before).idle() > 0);
    }

    /// Removes an idle worker that has seen work, and returns its search: the one that it holds, or else [`Search::Awake`],
    /// or [`Search::Starting`] if another worker is awake. The inner `None`: `starting` is full.
    ///
    /// The outer `None`: `max` workers are running. The caller holds the idle stack's lock.
    #[must_use]
    pub(crate) fn search_from_idle(
        &self,
        held: Option<Search>,
        max: usize,
    ) -> Option<Option<Search>> {
        let begun = |now: Snapshot| match held {
            Some(_) => None,
            None if !now.has_searcher() => Some(Search::Awake),
            None => (now.starting() < STARTING_MASK).then_some(Search::Starting),
        };
        let change = |word| {
            let now = Snapshot(word);
            let may = now.idle() > 0 && now.running() < max;
            may.then(|| now.0 - ONE_IDLE + begun(now).map_or(0, Search::unit))
        };
        let before = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).ok()?;
        Some(held.or(begun(Snapshot(before))))
    }

    /// Removes an idle worker and sets `searching` for it. `false` if no worker is idle, if `max`
    /// workers are running, or if the flag is set. The caller holds the idle stack's lock.
    #[must_use]
    pub(crate) fn claim_idle(&self, max: usize) -> bool {
        let is_claimed = self.update(|now| {
            let claimable = now.idle() > 0 && now.running() < max && !now.has_searcher();
            claimable.then(|| (now.0 - ONE_IDLE) | SEARCHING)
        });
        if is_claimed {
            // By the task for which the worker is claimed.
            self.is_relied_on.set(true);
        }
        is_claimed
    }

    /// Sets `searching` for a worker that spins or stands by, and ends the search that it held. `false` if another worker is
    /// awake.
    #[must_use]
    pub(crate) fn begin_search(&self, held: Option<Search>) -> bool {
        let ended = held.map_or(0, Search::unit);
        let begins = self.update(|now| (!now.has_searcher()).then(|| (now.0 - ended) | SEARCHING));
        if begins {
            self.end_arriving(held);
        }
        begins
    }

    /// Adds one to `starting` and returns the new number. `None` if a worker is idle, awake or
    /// monitors, if `max` workers are running, or if `enough` are starting already.
    #[must_use]
    pub(crate) fn begin_starting(&self, max: usize, enough: usize) -> Option<usize> {
        let change = |word| {
            let now = Snapshot(word);
            let alone = !now.has_searcher() && !now.has_stall_monitor();
            let may = alone && now.may_start_more(enough) && now.may_start(max);
            may.then(|| now.0 + ONE_STARTING)
        };
        // Acquire: sees what was taken from the queue by a worker that ended one search, fenced,
        // and began another one before this (race 34).
        let before = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        before.ok().map(|word| Snapshot(word).starting() + 1)
    }

    /// Sets `monitoring` and ends the search that the worker held. `false` if another worker
    /// monitors.
    #[must_use]
    pub(crate) fn begin_monitoring(&self, search: Option<Search>) -> bool {
        let ended = search.map_or(0, Search::unit);
        require!(search != Some(Search::Arriving), "an arriving worker does not monitor");
        self.update(|now| {
            require!(search.is_none_or(|search| now.holds(search)));
            (!now.has_stall_monitor()).then_some((now.0 - ended) | MONITORING)
        })
    }

    /// Ends a search. Its holder must then look at the queue, behind a fence, unless the search was
    /// for a start that was refused (race 13). After an arriving worker was refused, it must too (race 45).
    pub(crate) fn end_search(&self, search: Search) {
        if search == Search::Awake && self.is_relied_on.get() {
            self.is_relied_on.set(false);
        }
        if search == Search::Arriving {
            return self.end_arriving(Some(search));
        }
        let before = self.word.fetch_sub(search.unit(), Ordering::Relaxed);
        require!(Snapshot(before).holds(search));
    }

    /// Applies `next` unless it returns `None`. Returns whether the word changed.
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
    fn any_number_may_be_arriving() {
        let counts = Counts::new();
        let searches = [(); 4].map(|()| {
            counts.add_worker();
            counts.begin_arriving()
        });
        assert_eq!((counts.arriving(), counts.load().starting()), (4, 0));
        let [took, rests, spins, last] = searches.map(Some);
        counts.end_search(took.unwrap());
        assert_eq!(counts.arriving(), 3);
        assert_eq!(counts.add_idle(rests).idle(), 1);
        assert_eq!(counts.arriving(), 2);
        assert!(counts.begin_search(spins));
        assert!(!counts.begin_search(last), "another one is awake");
        assert_eq!(counts.arriving(), 1);
        counts.end_search(last.unwrap());
        assert_eq!(counts.arriving(), 0);
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
    fn no_more_start_than_are_enough() {
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
    fn monitoring_takes_the_place_of_a_search() {
        let counts = Counts::new();
        counts.add_worker();
        assert_eq!(counts.begin_starting(2, 0), Some(1));
        assert!(counts.begin_monitoring(Some(Search::Starting)));
        let now = counts.load();
        assert!(now.has_stall_monitor() && now.starting() == 0);
        assert_eq!(counts.begin_starting(2, 0), None, "the monitor starts threads");
        counts.add_idle(None);
        assert!(counts.claim_idle(8), "a monitor does not keep an idle worker asleep");
        assert!(!counts.begin_monitoring(Some(Search::Awake)), "one monitor at a time");
        counts.end_search(Search::Monitoring);
        assert!(counts.begin_monitoring(Some(Search::Awake)));
    }

    #[test]
    fn blocked_workers_leave_spare_capacity() {
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
    fn a_spare_worker_stays_idle_at_the_limit() {
        let counts = Counts::new();
        counts.add_worker();
        counts.add_worker();
        counts.add_idle(None);
        assert!(!counts.claim_idle(1));
        assert_eq!(counts.search_from_idle(None, 1), None);
        counts.add_blocked();
        assert_eq!(counts.search_from_idle(None, 1), Some(Some(Search::Awake)));
        assert_eq!(counts.load().idle(), 0);
    }

    #[test]
    fn an_idle_worker_searches_beside_another() {
        let counts = Counts::new();
        for _ in 0..6 {
            counts.add_worker();
            counts.add_idle(None);
        }
        assert!(counts.claim_idle(8));
        let starting = Some(Some(Search::Starting));
        assert_eq!([(); 3].map(|()| counts.search_from_idle(None, 8)), [starting; 3]);
        assert_eq!(counts.search_from_idle(None, 8), Some(None), "no more can be counted");
        counts.end_search(Search::Awake);
        assert!(counts.begin_search(None) && !counts.begin_search(None));
        let held = Some(Search::Awake);
        assert_eq!(counts.search_from_idle(held, 8), Some(held), "it keeps the search");
        counts.end_search(Search::Awake);
        let now = counts.load();
        assert_eq!((now.idle(), now.starting(), now.has_searcher()), (0, 3, false));
        assert!(counts.begin_search(Some(Search::Starting)), "before it spins");
        assert!(!counts.begin_search(Some(Search::Starting)));
        assert_eq!((counts.load().starting(), counts.load().has_searcher()), (2, true));
    }

    #[test]
    fn nothing_is_claimed_from_an_empty_stack() {
        // The count must not pass through a value below zero.
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
            "Snapshot { total: 1, blocked: 0, idle: 0, searching: false, starting: 0, monitoring: false }"
        );
    }
}
