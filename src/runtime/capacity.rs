//! The capacity of a bounded queue: permits, and the submitters that wait for one, in order.
//!
//! There are `capacity + max_size` permits. A task of a worker holds one from its acceptance until it has ended, so the
//! pool accepts that many tasks that never end, however long its workers take to start. A future releases its permit at
//! the end of its first poll, and the worker that polls it later takes one for the poll, free or not. A worker that counts
//! as blocked gives up the permit of its task, and takes one when it returns, free or not. So a worker that runs above
//! `max_size` takes a place in the queue.
//!
//! The number of permits held is in one word. A submission and the end of a task change it without a lock, unless a
//! submitter waits: a flag in the word says so. Then the thread that releases a permit takes the lock, and grants the
//! permit to the first one. So no permit stays free while a submitter waits, none overtakes one that waits, and none is
//! woken for a permit that it does not get (race 29). Before it waits, a submitter from outside the pool looks again for
//! [a moment](SPIN_LIMIT): then neither it nor the tasks that end take the lock. Until it waits, others may overtake it.
//!
//! The permits are the pool's, whatever its views: tasks of a view that may have no more workers hold theirs until then, and
//! there is one for each worker that is reserved for a view, too, whichever view's task holds it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::runtime::policy::ViewId;
use crate::runtime::sizes::Sizes;
use crate::sync::parker::Parker;
use crate::sync::spin::spin_for;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Set in the word while a submitter waits or is about to. Changed under the lock.
const AWAITED: usize = 1;

/// Set in the word once the pool is closed.
const CLOSED: usize = 2;

/// One permit in the word. Each task takes more memory than this, so no number of permits overflows it.
const PERMIT: usize = 4;

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
        let submitters = Mutex::new(VecDeque::new());
        Capacity { capacity, word: AtomicUsize::new(0), submitters }
    }

    /// Acquires a permit for one task, if one is free and no submitter waits.
    #[inline]
    pub(crate) fn try_acquire(&self, sizes: &Sizes) -> Result<(), NoPermit> {
        match self.acquire_unless(AWAITED | CLOSED, sizes) {
            Err(word) if word & (AWAITED | CLOSED) == AWAITED => {
                self.acquire_in_order(&self.submitters.lock(), sizes)
            }
            acquired => acquired.map_err(refusal),
        }
    }

    /// Acquires a permit for one task, if one becomes free in a moment and no submitter waits. Spins meanwhile.
    pub(crate) fn spin_to_acquire(&self, sizes: &Sizes) -> bool {
        let may_end = || {
            // Relaxed: the acquisition looks again.
            let word = self.word.load(Ordering::Relaxed);
            word & (AWAITED | CLOSED) != 0 || word / PERMIT < self.limit(sizes)
        };
        spin_for(SPIN_LIMIT, may_end) && self.acquire_unless(AWAITED | CLOSED, sizes).is_ok()
    }

    /// Acquires a permit for one task, if one is free and no other submitter may be granted it. The caller holds the lock.
    #[cold]
    fn acquire_in_order(
        &self,
        submitters: &VecDeque<Submitter>,
        sizes: &Sizes,
    ) -> Result<(), NoPermit> {
        match first_eligible(submitters) {
            Some(_) => Err(refusal(self.word.load(Ordering::Acquire))),
            None => self.acquire_unless(CLOSED, sizes).map_err(refusal),
        }
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
        let acquired = self.acquire_in_order(&submitters, sizes);
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
        parker: &Arc<Parker>,
        verdict: Option<Result<(), NoPermit>>,
    ) -> Option<Result<(), NoPermit>> {
        let mut submitters = self.submitters.lock();
        let is_own = |other: &Submitter| Arc::ptr_eq(&other.parker, parker);
        let Some(position) = submitters.iter().position(is_own) else {
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

    /// Acquires a permit, if one is free and none of the `flags` is set. Otherwise returns the word.
    #[inline]
    fn acquire_unless(&self, flags: usize, sizes: &Sizes) -> Result<(), usize> {
        // Read here: under the lock, after the `grant` of a resize in the lock's order, these are the new sizes.
        let limit = self.limit(sizes);
        let acquire = |word| (word & flags == 0 && word / PERMIT < limit).then(|| word + PERMIT);
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
        if before & AWAITED != 0 {
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

    /// Grants the free permits to the waiting submitters. There may be some after a release and after a change of the sizes.
    #[cold]
    pub(crate) fn grant(&self, sizes: &Sizes) {
        loop {
            let mut submitters = self.submitters.lock();
            let granted = self.grant_first(&mut submitters, sizes);
            self.update_flag(&submitters);
            // Unlock first: the submitter takes the lock when it is awake.
            drop(submitters);
            match granted {
                Some(submitter) => submitter.parker.unpark(),
                None => return,
            }
        }
    }

    /// Grants a permit to the first submitter, if one is free. The caller unparks the submitter.
    fn grant_first(
        &self,
        submitters: &mut VecDeque<Submitter>,
        sizes: &Sizes,
    ) -> Option<Submitter> {
        let first = first_eligible(submitters)?;
        self.acquire_unless(CLOSED, sizes).ok()?;
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

/// Why there was no permit when this was the word.
fn refusal(word: usize) -> NoPermit {
    if word & CLOSED != 0 { NoPermit::Closed } else { NoPermit::Full }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{AWAITED, Capacity, NoPermit, PERMIT};
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
        assert_eq!(capacity.end_wait(&parker, None), None);
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
        assert_eq!(capacity.end_wait(&waiting, None), Some(Ok(())));
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
        assert_eq!(
            waiting.each_ref().map(|parker| parker.try_park().is_some()),
            [true, true, false]
        );
        assert_eq!(capacity.end_wait(&waiting[2], None), None);
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
        assert_eq!(capacity.end_wait(&waiting[0], None), Some(Ok(())));
        assert_eq!(
            capacity.end_wait(&waiting[1], Some(Err(NoPermit::Full))),
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
            assert_eq!(capacity.end_wait(parker, None), Some(Ok(())));
            assert!(waiting[granted + 1..].iter().all(|other| other.try_park().is_none()));
            assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full), "none overtakes");
        }
    }

    #[test]
    fn a_spin_acquires_a_free_permit_unless_a_submitter_waits() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        assert!(capacity.spin_to_acquire(&sizes));
        assert!(!capacity.spin_to_acquire(&sizes), "none is free");
        let waiting = wait(&capacity, &sizes);
        // The first half of a release, by another thread.
        capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
        assert!(!capacity.spin_to_acquire(&sizes), "a submitter waits");
        capacity.grant(&sizes);
        assert_eq!(capacity.end_wait(&waiting, None), Some(Ok(())));
        capacity.release(&sizes);
        assert!(capacity.spin_to_acquire(&sizes));
        capacity.release(&sizes);
        capacity.close();
        assert!(!capacity.spin_to_acquire(&sizes), "the pool is closed");
    }

    #[test]
    fn a_submission_overtakes_no_submitter() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
        let waiting = wait(&capacity, &sizes);
        // The first half of a release, by another thread.
        capacity.word.fetch_sub(PERMIT, Ordering::Relaxed);
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        capacity.grant(&sizes);
        assert_eq!(capacity.end_wait(&waiting, None), Some(Ok(())));
        capacity.release(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    }

    #[test]
    fn a_waiting_submitter_may_give_up_or_go_on_without_a_permit() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.acquire_over_limit();
        let late = wait(&capacity, &sizes);
        let full = Err(NoPermit::Full);
        assert_eq!(capacity.end_wait(&late, Some(full)), Some(full));
        let starved = wait(&capacity, &sizes);
        assert_eq!(capacity.end_wait(&starved, Some(Ok(()))), Some(Ok(())));
        let next = wait(&capacity, &sizes);
        capacity.release(&sizes);
        assert_eq!(next.try_park(), None, "the permit over the limit has used it up");
        capacity.release(&sizes);
        assert_eq!(next.try_park(), Some(Signal::Unparked));
        // A granted permit is kept: it is too late to give up.
        assert_eq!(capacity.end_wait(&next, Some(full)), Some(Ok(())));
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
        assert_eq!(capacity.end_wait(&refused, None), Some(Err(NoPermit::Closed)));
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
            assert_eq!(capacity.end_wait(parker, None), Some(Err(NoPermit::Closed)));
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
