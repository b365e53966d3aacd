//! The capacity of a bounded queue: permits, and the submitters that wait for one.
//!
//! There are `capacity + max_size` permits. A task of a worker holds one from its acceptance until it has ended, so the
//! pool accepts that many tasks that never end, however long its workers take to start. A future releases its permit at
//! the end of its first poll, and the worker that polls it later takes one for the poll, free or not. A worker that counts
//! as blocked gives up the permit of its task, and takes one when it returns, free or not. So a worker that runs above
//! `max_size` takes a place in the queue.
//!
//! The number of permits held is in one word. A submission and the end of a task change it without a lock, unless a
//! submitter waits: a flag in the word says so. Then the thread that releases a permit takes the lock, grants the permit to
//! the submitter that waits longest, and wakes it. So none is woken for a permit that it does not get.
//!
//! While that submitter wakes up, further permits stay free, and any submission may acquire them. Otherwise each task would
//! cost a wake-up, and all permits could be held by submitters that sleep. Once awake, it grants a free permit to the next one
//! (race 29). So does a worker that rests, and the first release after [`WAKE_UP`].
//!
//! Before it waits, a submitter from outside the pool looks again for [a moment](SPIN_LIMIT): then neither it nor the tasks
//! that end take the lock.
//!
//! The permits are the pool's, whatever its views: tasks of a view that may have no more workers hold theirs until then, and
//! there is one for each worker that is reserved for a view, too, whichever view's task holds it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::runtime::policy::ViewId;
use crate::runtime::sizes::Sizes;
#[cfg(not(elastipool_loom))]
use crate::sync::AtomicU32;
use crate::sync::parker::Parker;
use crate::sync::spin::spin_for;
use crate::sync::{AtomicUsize, Counter, Mutex, MutexGuard, Ordering};

/// Set in the word while a submitter waits or is about to. Changed under the lock.
const AWAITED: usize = 1;

/// Set in the word while a submitter that was granted a permit wakes up. Changed under the lock.
const WAKING: usize = 2;

/// Set in the word once the pool is closed.
const CLOSED: usize = 4;

/// One permit in the word. Each task takes more memory than this, so no number of permits overflows it.
const PERMIT: usize = 8;

/// How long a release leaves its permit free after a submitter was woken. A wake-up takes this long on a virtual machine, and
/// longer if no CPU is free. Then the workers could run out of tasks.
#[cfg(not(elastipool_loom))]
const WAKE_UP: Duration = Duration::from_micros(50);

/// How long a submitter spins for a permit. Not as long as a wake-up takes: the tasks that it waits for are running, and need the
/// CPUs. If they take longer than this, it is better to park.
const SPIN_LIMIT: Duration = Duration::from_micros(2);

/// How long a submission waits for capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    /// Until this time; `None` waits for ever.
    Until(Option<Instant>),
}

/// Why a submission got no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPermit {
    Full,
    Closed,
}

/// See the [module's documentation](self).
pub(crate) struct Capacity {
    capacity: usize,
    /// The number of permits held times [`PERMIT`], and the flags.
    word: AtomicUsize,
    last_grant: GrantTime,
    /// Waiting submitters, the first in front.
    submitters: Mutex<VecDeque<Submitter>>,
}

/// How many workers of the pool wait for a permit, or for a slot of a group. Each of them costs a thread, and those that run
/// in their place may submit tasks as well: so at most `max_size` workers wait.
#[derive(Default)]
pub(crate) struct OwnWaits(Counter);

/// A worker of the pool waits for a permit or a slot, until this is dropped.
pub(crate) struct OwnWait<'a>(&'a OwnWaits);

impl OwnWaits {
    /// `None` if the caller must not wait, since as many workers wait as may run.
    pub(super) fn begin(&self, sizes: &Sizes) -> Option<OwnWait<'_>> {
        let others = self.0.increment();
        let wait = OwnWait(self);
        (others < sizes.max()).then_some(wait)
    }
}

impl Drop for OwnWait<'_> {
    fn drop(&mut self) {
        self.0.0.decrement();
    }
}

struct Submitter {
    parker: Arc<Parker>,
    view: ViewId,
    /// Set when its view is closed. It gets no permit, and leaves the queue itself.
    is_refused: bool,
}

impl Capacity {
    pub(crate) fn new(capacity: usize) -> Self {
        Capacity {
            capacity,
            word: AtomicUsize::new(0),
            last_grant: GrantTime::default(),
            submitters: Mutex::new(VecDeque::new()),
        }
    }

    /// Acquires a permit for one task, if one is free and not meant for a waiting submitter.
    #[inline]
    pub(crate) fn try_acquire(&self, sizes: &Sizes) -> Result<(), NoPermit> {
        match self.acquire_unless(is_reserved, sizes) {
            Err(word) if is_reserved(word) => {
                let submitters = self.submitters.lock();
                self.acquire_in_order(first_eligible(&submitters).is_none(), sizes)
            }
            acquired => acquired.map_err(refusal),
        }
    }

    /// As [`try_acquire`](Self::try_acquire), if a permit becomes free in a moment. Spins meanwhile.
    pub(crate) fn spin_to_acquire(&self, sizes: &Sizes) -> bool {
        let may_end = || {
            // Relaxed: the acquisition looks again.
            let word = self.word.load(Ordering::Relaxed);
            word & CLOSED != 0 || is_reserved(word) || word / PERMIT < self.limit(sizes)
        };
        spin_for(SPIN_LIMIT, may_end) && self.acquire_unless(is_reserved, sizes).is_ok()
    }

    /// As [`try_acquire`](Self::try_acquire), by a thread that holds the lock. One that `is_first` in line takes a reserved
    /// permit, too.
    #[cold]
    fn acquire_in_order(&self, is_first: bool, sizes: &Sizes) -> Result<(), NoPermit> {
        self.acquire_unless(|word| !is_first && is_reserved(word), sizes).map_err(refusal)
    }

    /// Acquires a permit or, if that fails with `Full`, queues the caller as a waiting submitter: `parker` is unparked
    /// when it has been granted a permit, or when the pool or the view closes. It must then call
    /// [`end_wait`](Self::end_wait).
    pub(crate) fn acquire_or_wait(
        &self,
        sizes: &Sizes,
        parker: &Arc<Parker>,
        view: ViewId,
        is_view_closed: impl FnOnce() -> bool,
    ) -> Result<(), NoPermit> {
        let mut submitters = self.submitters.lock();
        // Race 10: looked at under the lock, which a closer takes after it has closed the view.
        if is_view_closed() {
            return Err(NoPermit::Closed);
        }
        // Race 29: sets the flag, then looks for a permit. Who releases one does it in the reverse order.
        self.word.fetch_or(AWAITED, Ordering::AcqRel);
        let acquired = self.acquire_in_order(first_eligible(&submitters).is_none(), sizes);
        if acquired == Err(NoPermit::Full) {
            let parker = Arc::clone(parker);
            submitters.push_back(Submitter { parker, view, is_refused: false });
        }
        self.update_flag(&submitters);
        acquired
    }

    /// Ends a wait if the submitter was granted a permit, if the pool is closed, or if the submitter gives a `verdict`.
    /// The verdict `Ok` takes a permit over the limit. Returns `None` if the wait goes on.
    pub(crate) fn end_wait(
        &self,
        sizes: &Sizes,
        parker: &Arc<Parker>,
        verdict: Option<Result<(), NoPermit>>,
    ) -> Option<Result<(), NoPermit>> {
        let mut submitters = self.submitters.lock();
        let is_own = |other: &Submitter| Arc::ptr_eq(&other.parker, parker);
        let Some(position) = submitters.iter().position(is_own) else {
            // It was granted a permit, and is awake now.
            self.word.fetch_and(!WAKING, Ordering::AcqRel);
            self.grant_locked(submitters, sizes);
            return Some(Ok(()));
        };
        let is_closed = self.word.load(Ordering::Acquire) & CLOSED != 0;
        let verdict = if is_closed || submitters[position].is_refused {
            Err(NoPermit::Closed)
        } else {
            verdict?
        };
        let is_first = first_eligible(&submitters) == Some(position);
        submitters.remove(position);
        self.update_flag(&submitters);
        match verdict {
            Ok(()) => self.acquire_over_limit(),
            // One may be free: another submitter wakes up, or a permit is about to be granted.
            Err(NoPermit::Full) => return Some(self.acquire_in_order(is_first, sizes)),
            Err(NoPermit::Closed) => {}
        }
        Some(verdict)
    }

    /// The number of permits.
    fn limit(&self, sizes: &Sizes) -> usize {
        self.capacity.saturating_add(sizes.max())
    }

    /// Acquires a permit, if one is free, unless `is_barred` by the word. Otherwise returns the word.
    #[inline]
    fn acquire_unless(
        &self,
        is_barred: impl Fn(usize) -> bool,
        sizes: &Sizes,
    ) -> Result<(), usize> {
        // Read here: under the lock, after the `grant` of a resize in the lock's order, these are the new sizes.
        let limit = self.limit(sizes);
        let may_acquire = |word| word & CLOSED == 0 && word / PERMIT < limit && !is_barred(word);
        let acquire = |word| may_acquire(word).then(|| word + PERMIT);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, acquire).map(|_| ())
    }

    /// Acquires a permit, free or not: for a task that was accepted earlier and cannot wait, or for a worker that polls
    /// a woken future or leaves a blocking region.
    #[inline]
    pub(crate) fn acquire_over_limit(&self) {
        self.word.fetch_add(PERMIT, Ordering::AcqRel);
    }

    /// Releases a permit: a task or a poll has ended, a task will not be started, or its worker enters a blocking region.
    #[inline]
    pub(crate) fn release(&self, sizes: &Sizes) {
        let before = self.word.fetch_sub(PERMIT, Ordering::AcqRel);
        debug_assert!(before >= PERMIT, "each permit is released once");
        if before & AWAITED != 0 && (before & WAKING == 0 || self.last_grant.is_old()) {
            self.grant(sizes);
        }
    }

    /// Ends all waits and refuses permits from now on.
    pub(crate) fn close(&self) {
        let submitters = self.submitters.lock();
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
        for submitter in &*submitters {
            submitter.parker.unpark();
        }
    }

    /// Makes the waiting submitters evaluate their state again.
    pub(crate) fn recheck_submitters(&self) {
        for submitter in &*self.submitters.lock() {
            submitter.parker.recheck();
        }
    }

    /// Ends the waits of the submitters to a view that was closed.
    pub(crate) fn close_view(&self, view: ViewId) {
        let mut submitters = self.submitters.lock();
        for submitter in submitters.iter_mut().filter(|submitter| submitter.view == view) {
            submitter.is_refused = true;
            submitter.parker.unpark();
        }
    }

    /// As [`grant`](Self::grant), for a worker that is about to rest. It may have left a permit free.
    pub(crate) fn grant_before_rest(&self, sizes: &Sizes) {
        // Relaxed: the worker itself has seen the flag when it released its permit.
        if self.word.load(Ordering::Relaxed) & AWAITED != 0 {
            self.grant(sizes);
        }
    }

    /// Grants a permit to the first submitter, if one is free, and wakes it. There may be a free one after a release, after a
    /// change of the sizes, and when a submitter has woken up.
    #[cold]
    pub(crate) fn grant(&self, sizes: &Sizes) {
        self.grant_locked(self.submitters.lock(), sizes);
    }

    fn grant_locked(&self, mut submitters: MutexGuard<'_, VecDeque<Submitter>>, sizes: &Sizes) {
        let granted = self.grant_first(&mut submitters, sizes);
        self.update_flag(&submitters);
        // Unlock first: the submitter takes the lock when it is awake.
        drop(submitters);
        if let Some(submitter) = granted {
            submitter.parker.unpark();
        }
    }

    /// Grants a permit to the first submitter, if one is free. The caller unparks the submitter.
    fn grant_first(
        &self,
        submitters: &mut VecDeque<Submitter>,
        sizes: &Sizes,
    ) -> Option<Submitter> {
        let first = first_eligible(submitters)?;
        self.acquire_unless(|_| false, sizes).ok()?;
        self.last_grant.set_now();
        self.word.fetch_or(WAKING, Ordering::AcqRel);
        submitters.remove(first)
    }

    /// Clears the flag if no submitter waits. The caller holds the lock.
    fn update_flag(&self, submitters: &VecDeque<Submitter>) {
        if submitters.is_empty() {
            self.word.fetch_and(!AWAITED, Ordering::AcqRel);
        }
    }
}

/// The position of the first submitter that may be granted a permit.
fn first_eligible(submitters: &VecDeque<Submitter>) -> Option<usize> {
    submitters.iter().position(|submitter| !submitter.is_refused)
}

/// Whether free permits are reserved for the submitters that wait: none that was granted one still wakes up. All that wait
/// may be refused ones.
fn is_reserved(word: usize) -> bool {
    word & (AWAITED | WAKING | CLOSED) == AWAITED
}

/// Why there was no permit when this was the word.
fn refusal(word: usize) -> NoPermit {
    if word & CLOSED != 0 { NoPermit::Closed } else { NoPermit::Full }
}

/// When a permit was granted last.
#[cfg(not(elastipool_loom))]
struct GrantTime {
    zero: Instant,
    /// Since `zero`. It wraps around, which at worst defers a grant until the submitter that was woken is awake.
    micros: AtomicU32,
}

#[cfg(not(elastipool_loom))]
impl Default for GrantTime {
    fn default() -> Self {
        GrantTime { zero: Instant::now(), micros: AtomicU32::new(0) }
    }
}

#[cfg(not(elastipool_loom))]
impl GrantTime {
    #[allow(clippy::cast_possible_truncation, reason = "it wraps around")]
    fn now(&self) -> u32 {
        self.zero.elapsed().as_micros() as u32
    }

    // Relaxed, as below: it decides when a submitter is woken, and the flags decide whether one is.
    fn set_now(&self) {
        self.micros.store(self.now(), Ordering::Relaxed);
    }

    /// Whether the last grant was longer ago than a wake-up takes.
    fn is_old(&self) -> bool {
        // Loaded first: a grant in between would seem to be in the future.
        let granted = self.micros.load(Ordering::Relaxed);
        let age = self.now().wrapping_sub(granted);
        Duration::from_micros(age.into()) > WAKE_UP
    }
}

/// A model has no time: either each grant is old, or none is.
#[cfg(elastipool_loom)]
#[derive(Default)]
struct GrantTime;

#[cfg(elastipool_loom)]
impl GrantTime {
    fn set_now(&self) {}

    fn is_old(&self) -> bool {
        crate::queue::model::GRANTS_ARE_OLD.get()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
