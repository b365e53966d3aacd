//! The workers, counted in one word, and the threads that are starting, beside it.
//!
//! | bits (64-bit word) | field | meaning |
//! |---|---|---|
//! | 0..3 | `searching` | workers that are awake and look for a task: woken, or spinning |
//! | 3 | `extra` | whether a worker runs beyond the limit, for ready futures only |
//! | 4..24 | `idle` | workers on the idle list |
//! | 24..44 | `blocked` | workers in blocking regions |
//! | 44..64 | `total` | all workers, the above included |
//!
//! In a 32-bit word each of the last three has 9 bits. No field overflows:
//! `idle + blocked <= total`, no thread is started at a `total` of [`MAX_WORKERS`], and no search
//! of this kind begins at [`MAX_SEARCHING`].
//!
//! `total - blocked` workers are *runnable*. Those that are not idle are *running*: the
//! limit bounds their number (law 4).
//!
//! `total` changes only under the registry's lock, `idle` only under the idle list's lock.
//! `blocked` is changed by the worker itself, or by the thread that releases it from the returning
//! queue. `searching` changes by compare-exchange when a search begins, and the holder ends it.
//!
//! # Orderings
//! Accesses are `Relaxed`, except to `starting`. The word publishes no data. A
//! `SeqCst` fence on both sides orders it against the queue (`protocol.md`, race 1). The
//! read-modify-writes of the in-flight word order it against that word (race 3). Its own
//! modification order orders its changes against each other: each is a read-modify-write.

use std::fmt;

use crate::sync::{AtomicUsize, Ordering};

const SEARCHING_BITS: u32 = 3;
const SEARCHING_MASK: usize = (1 << SEARCHING_BITS) - 1;
const ONE_SEARCHING: usize = 1;
const EXTRA_SHIFT: u32 = SEARCHING_BITS;
const ONE_EXTRA: usize = 1 << EXTRA_SHIFT;
const IDLE_SHIFT: u32 = EXTRA_SHIFT + 1;
const FIELD_BITS: u32 = (usize::BITS - IDLE_SHIFT) / 3;
const FIELD_MASK: usize = (1 << FIELD_BITS) - 1;
const BLOCKED_SHIFT: u32 = IDLE_SHIFT + FIELD_BITS;
const TOTAL_SHIFT: u32 = BLOCKED_SHIFT + FIELD_BITS;
const ONE_IDLE: usize = 1 << IDLE_SHIFT;
const ONE_BLOCKED: usize = 1 << BLOCKED_SHIFT;
const ONE_WORKER: usize = 1 << TOTAL_SHIFT;

/// Asserts what a change of the word requires, in debug builds and models. In a release build a
/// change never panics: it may be made while a task unwinds.
macro_rules! require {
    ($($condition:tt)*) => {
        if cfg!(any(debug_assertions, elastipool_loom)) {
            assert!($($condition)*);
        }
    };
}

/// Bounds the number of workers: the largest value of `total`, `blocked` and `idle`.
pub(crate) const MAX_WORKERS: usize = FIELD_MASK;

/// The largest value of `searching`.
pub(crate) const MAX_SEARCHING: usize = SEARCHING_MASK;

/// A worker that will look at the queue, on behalf of all submitters that see it in the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The holder was woken, or spins: counted in `searching`.
    Searching,
    /// The holder is a thread that was started for queued work, or is about to be, or a worker that
    /// has left its start hook: counted in `starting`.
    Starting,
}

/// The caller ran, searched, was about to start a thread, or held a place, and has just changed
/// that. A submitter may have relied on it and notified no worker, so the caller must look at the
/// queue (`sched/notify.rs`).
///
/// Race 1: the submitter pushes, fences, and reads the counts. The caller changes the counts,
/// fences, and looks at the queue.
/// - If the submitter's fence is first, the look sees the task.
/// - If the caller's fence is first, the submitter sees the change, and notifies another worker.
#[must_use = "a submitter may have relied on the caller: look at the queue"]
pub(crate) struct MustLook(());

impl MustLook {
    /// After a change that is no change of the counts here: a stolen batch, a free place, a
    /// successor.
    #[inline]
    pub(crate) fn owed() -> Self {
        MustLook(())
    }

    /// One look for two changes.
    #[inline]
    pub(crate) fn and(self, other: impl Into<Option<MustLook>>) -> Self {
        let _: Option<MustLook> = other.into();
        self
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

    /// How many workers run beyond the limit, for ready futures only: one at most.
    #[inline]
    pub(crate) fn extra(self) -> usize {
        (self.0 >> EXTRA_SHIFT) & 1
    }

    /// Whether one more worker may run under a limit of `max`.
    #[inline]
    pub(crate) fn has_spare_capacity(self, max: usize) -> bool {
        self.running() < max
    }

    /// Whether one of the workers is the extra one, if it polls: without it as many run as may.
    pub(crate) fn is_extra_needed(self, limit: usize, max: usize) -> bool {
        (limit + 1..=max).contains(&self.running())
    }

    /// Whether a worker may be started under a limit of `max`: not while any worker is idle.
    pub(crate) fn may_start(self, max: usize) -> bool {
        self.idle() == 0 && self.running() < max && self.total() < MAX_WORKERS
    }

    /// Workers that hold [`Search::Searching`], at most [`MAX_SEARCHING`].
    pub(crate) fn searching(self) -> usize {
        self.0 & SEARCHING_MASK
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("total", &self.total())
            .field("blocked", &self.blocked())
            .field("idle", &self.idle())
            .field("searching", &self.searching())
            .field("extra", &self.extra())
            .finish()
    }
}

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Counts {
    word: AtomicUsize,
    /// Searches of the kind [`Search::Starting`]. Any number: each submission below `core_size`
    /// begins one.
    starting: AtomicUsize,
}

impl Counts {
    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.word.load(Ordering::Relaxed))
    }

    /// How many threads are starting.
    pub(crate) fn starting(&self) -> usize {
        // Acquire: sees what was taken from the queue by a worker that is no longer counted here.
        self.starting.load(Ordering::Acquire)
    }

    /// Begins a search of the kind [`Search::Starting`].
    pub(crate) fn begin_starting(&self) {
        self.starting.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a search of the kind [`Search::Starting`], unless `enough` threads are starting.
    /// Returns how many are starting then.
    #[must_use]
    pub(crate) fn begin_starting_below(&self, enough: usize) -> Option<usize> {
        let change = |starting| (starting < enough).then_some(starting + 1);
        // Acquire: sees what was taken from the queue by a worker that has ended such a search.
        let before = self.starting.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        before.ok().map(|starting| starting + 1)
    }

    /// Adds a worker. The caller holds the registry's lock.
    pub(crate) fn add_worker(&self) -> Snapshot {
        let before = self.word.fetch_add(ONE_WORKER, Ordering::Relaxed);
        require!(Snapshot(before).total() < MAX_WORKERS);
        Snapshot(before + ONE_WORKER)
    }

    /// Removes a worker. The caller holds the registry's lock.
    pub(crate) fn remove_worker(&self) -> (Snapshot, MustLook) {
        let before = self.word.fetch_sub(ONE_WORKER, Ordering::Relaxed);
        require!(Snapshot(before).runnable() > Snapshot(before).idle());
        (Snapshot(before - ONE_WORKER), MustLook::owed())
    }

    /// Counts a worker as blocked: another worker may run in its place.
    pub(crate) fn add_blocked(&self) -> MustLook {
        let before = self.word.fetch_add(ONE_BLOCKED, Ordering::Relaxed);
        require!(Snapshot(before).runnable() > Snapshot(before).idle());
        MustLook::owed()
    }

    /// Counts a blocked worker as runnable again, however many are running.
    pub(crate) fn remove_blocked(&self) {
        let before = self.word.fetch_sub(ONE_BLOCKED, Ordering::Relaxed);
        require!(Snapshot(before).blocked() > 0, "no worker is blocked");
    }

    /// Counts a blocked worker as runnable again. `false` if more than `max` are running.
    #[must_use]
    pub(crate) fn return_from_region(&self, max: usize) -> bool {
        self.update(|now| {
            require!(now.blocked() > 0, "no worker is blocked");
            (now.running() <= max).then(|| now.0.wrapping_sub(ONE_BLOCKED))
        })
    }

    /// Makes the calling worker the extra one. `false` if there is one, or unless more than `limit`
    /// and at most `max` workers run. It owes no look: beside it as many run as may.
    #[must_use]
    pub(crate) fn begin_extra(&self, limit: usize, max: usize) -> bool {
        self.update(|now| {
            let may = now.extra() == 0 && now.is_extra_needed(limit, max);
            may.then(|| now.0 + ONE_EXTRA)
        })
    }

    /// There is no extra worker any more: the one that was is one of the others.
    pub(crate) fn end_extra(&self) -> MustLook {
        let before = self.word.fetch_sub(ONE_EXTRA, Ordering::Relaxed);
        require!(Snapshot(before).extra() == 1);
        MustLook::owed()
    }

    /// Adds an idle worker, which `was_extra` until now. The caller holds the idle list's lock.
    pub(crate) fn add_idle(&self, was_extra: bool) -> MustLook {
        let change = ONE_IDLE - usize::from(was_extra) * ONE_EXTRA;
        let before = self.word.fetch_add(change, Ordering::Relaxed);
        require!(Snapshot(before).idle() < Snapshot(before).runnable());
        MustLook::owed()
    }

    /// Removes an idle worker. The caller holds the idle list's lock.
    pub(crate) fn remove_idle(&self) {
        let before = self.word.fetch_sub(ONE_IDLE, Ordering::Relaxed);
        require!(Snapshot(before).idle() > 0);
    }

    /// Removes an idle worker and begins a search for it. `false` if no worker is idle, if `max`
    /// workers are running, or if `enough` search already. The caller holds the idle list's lock.
    #[must_use]
    pub(super) fn claim_idle(&self, max: usize, enough: usize) -> bool {
        self.update(|now| {
            let may = now.idle() > 0 && now.running() < max && now.searching() < enough;
            may.then(|| now.0 - ONE_IDLE + ONE_SEARCHING)
        })
    }

    /// Begins a search for a worker that spins. `false` if another worker searches.
    #[must_use]
    pub(crate) fn begin_search(&self) -> bool {
        self.update(|now| (now.searching() == 0).then(|| now.0 + ONE_SEARCHING))
    }

    /// Ends the search that the caller holds, if it holds one.
    pub(crate) fn end_search(&self, search: impl Into<Option<Search>>) -> MustLook {
        match search.into() {
            None => {}
            Some(Search::Searching) => {
                let before = self.word.fetch_sub(ONE_SEARCHING, Ordering::Relaxed);
                require!(Snapshot(before).searching() > 0);
            }
            Some(Search::Starting) => {
                // Release: the thread that sees the end sees what the worker has taken from the
                // queue.
                let before = self.starting.fetch_sub(1, Ordering::Release);
                require!(before > 0);
            }
        }
        MustLook::owed()
    }

    /// Applies `next` unless it returns `None`. Returns whether the word changed.
    fn update(&self, mut next: impl FnMut(Snapshot) -> Option<usize>) -> bool {
        let change = |word| next(Snapshot(word));
        self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
