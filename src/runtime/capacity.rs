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
//! While that submitter wakes up, further permits stay free, and whoever submits may acquire them. Otherwise each task would
//! cost a wake-up, and all permits could be held by submitters that sleep. Once awake, it grants a free permit to the next one
//! (race 29). If it takes longer than [`WAKE_UP`], others are granted permits beside it.
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
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Set in the word while a submitter waits or is about to. Changed under the lock.
const AWAITED: usize = 1;

/// Set in the word while a submitter that was granted a permit wakes up. Changed under the lock.
const WAKING: usize = 2;

/// Set in the word once the pool is closed.
const CLOSED: usize = 4;

/// One permit in the word. Each task takes more memory than this, so no number of permits overflows it.
const PERMIT: usize = 8;

/// How long free permits are left to others than the submitters that wait, while one of these wakes up. A wake-up takes this
/// long on a virtual machine, and longer if no CPU is free. Then the workers could run out of tasks.
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

    /// Acquires a permit for one task, if one is free.
    #[inline]
    pub(crate) fn try_acquire(&self, sizes: &Sizes) -> Result<(), NoPermit> {
        // Read here: under the lock, after the `grant` of a resize in the lock's order, these are the new sizes.
        let limit = self.limit(sizes);
        let acquire = |word| (word & CLOSED == 0 && word / PERMIT < limit).then(|| word + PERMIT);
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, acquire) {
            Ok(_) => Ok(()),
            Err(word) if word & CLOSED != 0 => Err(NoPermit::Closed),
            Err(_) => Err(NoPermit::Full),
        }
    }

    /// Acquires a permit for one task, if one becomes free in a moment. Spins meanwhile.
    pub(crate) fn spin_to_acquire(&self, sizes: &Sizes) -> bool {
        let may_end = || {
            // Relaxed: the acquisition looks again.
            let word = self.word.load(Ordering::Relaxed);
            word & CLOSED != 0 || word / PERMIT < self.limit(sizes)
        };
        spin_for(SPIN_LIMIT, may_end) && self.try_acquire(sizes).is_ok()
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
        // Race 37: looked at under the lock, which a closer takes after it has closed the view.
        if is_view_closed() {
            return Err(NoPermit::Closed);
        }
        // Race 29: sets the flag, then looks for a permit. Who releases one does it in the reverse order.
        self.word.fetch_or(AWAITED, Ordering::AcqRel);
        let acquired = self.try_acquire(sizes);
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
            drop(submitters);
            self.grant(sizes);
            return Some(Ok(()));
        };
        let is_closed = self.word.load(Ordering::Acquire) & CLOSED != 0;
        let verdict = if is_closed || submitters[position].is_refused {
            Err(NoPermit::Closed)
        } else {
            verdict?
        };
        submitters.remove(position);
        if verdict.is_ok() {
            self.acquire_over_limit();
        }
        self.update_flag(&submitters);
        Some(verdict)
    }

    /// The number of permits.
    fn limit(&self, sizes: &Sizes) -> usize {
        self.capacity.saturating_add(sizes.max())
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

    /// Ends the waits of the submitters to a view that was closed.
    pub(crate) fn close_view(&self, view: ViewId) {
        let mut submitters = self.submitters.lock();
        for submitter in submitters.iter_mut().filter(|submitter| submitter.view == view) {
            submitter.is_refused = true;
            submitter.parker.unpark();
        }
    }

    /// Grants a permit to the first submitter, if one is free, and wakes it. There may be a free one after a release, after a
    /// change of the sizes, and when a submitter has woken up.
    #[cold]
    pub(crate) fn grant(&self, sizes: &Sizes) {
        let mut submitters = self.submitters.lock();
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
        self.try_acquire(sizes).ok()?;
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

    /// Whether that was longer ago than a wake-up takes.
    fn is_old(&self) -> bool {
        let age = self.now().wrapping_sub(self.micros.load(Ordering::Relaxed));
        Duration::from_micros(age.into()) > WAKE_UP
    }
}

/// A model has no time: it never is long ago.
#[cfg(elastipool_loom)]
#[derive(Default)]
struct GrantTime;

#[cfg(elastipool_loom)]
impl GrantTime {
    fn set_now(&self) {}

    fn is_old(&self) -> bool {
        false
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{AWAITED, Capacity, NoPermit, PERMIT, WAKE_UP};
    use crate::runtime::policy::DEFAULT_VIEW;
    use crate::runtime::sizes::Sizes;
    use crate::sync::Ordering;
    use crate::sync::parker::{Parker, Signal};

    fn sizes(max_size: usize) -> Sizes {
        Sizes::new(0, max_size, Duration::from_secs(1))
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
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
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
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
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
        let sizes = sizes(2);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
        capacity.acquire_over_limit();
        let waiting = [wait(&capacity, &sizes), wait(&capacity, &sizes)];
        capacity.release(&sizes);
        assert_eq!(waiting[0].try_park(), Some(Signal::Unparked));
        thread::sleep(pause);
        capacity.release(&sizes);
        (sizes, capacity, waiting)
    }

    #[test]
    fn a_free_permit_is_for_anyone_while_a_submitter_wakes_up() {
        for _ in 0..1_000 {
            let begin = Instant::now();
            let (sizes, capacity, [first, second]) = release_two(Duration::ZERO);
            if begin.elapsed() > WAKE_UP {
                continue; // This thread had no CPU meanwhile.
            }
            assert_eq!(second.try_park(), None);
            assert_eq!(capacity.try_acquire(&sizes), Ok(()));
            capacity.release(&sizes);
            assert_eq!(capacity.end_wait(&sizes, &first, None), Some(Ok(())));
            assert_eq!(second.try_park(), Some(Signal::Unparked), "granted by the first");
            assert_eq!(capacity.end_wait(&sizes, &second, None), Some(Ok(())));
            return;
        }
        panic!("this machine is too slow");
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
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
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
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
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
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
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
}
