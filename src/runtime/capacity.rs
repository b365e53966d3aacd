//! The capacity of a bounded queue: permits, and the submitters that wait for one, in order.
//!
//! A task holds a permit from its acceptance until a worker starts it. A woken future needs none. There are `capacity`
//! permits, plus one for each of the `max_size` workers that is free, since that worker will take a task at once. So
//! the pool accepts `capacity + max_size` tasks that never end, however long its workers take to start.
//!
//! The thread that frees a permit grants it to the first waiting submitter. All numbers change under one lock, so no
//! permit is free while a submitter waits, no submitter overtakes another, and none is woken without a permit (race
//! 29).
//!
//! The permits are the pool's, whatever its views: tasks of a view that may have no more workers hold theirs until then, and a
//! worker that is reserved for a view counts as free for all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::runtime::policy::ViewId;
use crate::runtime::sizes::Sizes;
use crate::sync::parker::Parker;
use crate::sync::{Mutex, MutexGuard};

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
    state: Mutex<State>,
}

struct State {
    /// Permits held: accepted tasks that no worker has started.
    permits: usize,
    /// Workers that run a task and are not in a blocking region.
    working: usize,
    /// Waiting submitters, the first in front.
    submitters: VecDeque<Submitter>,
    is_closed: bool,
}

struct Submitter {
    parker: Arc<Parker>,
    view: ViewId,
    /// Set when its view is closed. It gets no permit, and leaves the queue itself.
    is_refused: bool,
}

impl Capacity {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { permits: 0, working: 0, submitters: VecDeque::new(), is_closed: false };
        Capacity { capacity, state: Mutex::new(state) }
    }

    /// Acquires a permit for one task, if one is free.
    pub(crate) fn try_acquire(&self, sizes: &Sizes) -> Result<(), NoPermit> {
        self.acquire(&mut self.state.lock(), sizes)
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
        let mut state = self.state.lock();
        // Race 37: looked at under the lock, which a closer takes after it has closed the view.
        if is_view_closed() {
            return Err(NoPermit::Closed);
        }
        let acquired = self.acquire(&mut state, sizes);
        if acquired == Err(NoPermit::Full) {
            state.submitters.push_back(Submitter {
                parker: Arc::clone(parker),
                view,
                is_refused: false,
            });
        }
        acquired
    }

    /// Ends a wait if the submitter was granted a permit, if the pool is closed, or if the submitter gives a `verdict`.
    /// The verdict `Ok` takes a permit over the limit. Returns `None` if the wait goes on.
    pub(crate) fn end_wait(
        &self,
        parker: &Arc<Parker>,
        verdict: Option<Result<(), NoPermit>>,
    ) -> Option<Result<(), NoPermit>> {
        let mut state = self.state.lock();
        let is_own = |other: &Submitter| Arc::ptr_eq(&other.parker, parker);
        let Some(position) = state.submitters.iter().position(is_own) else {
            return Some(Ok(()));
        };
        let verdict = if state.is_closed || state.submitters[position].is_refused {
            Err(NoPermit::Closed)
        } else {
            verdict?
        };
        state.submitters.remove(position);
        state.permits += usize::from(verdict.is_ok());
        Some(verdict)
    }

    fn acquire(&self, state: &mut State, sizes: &Sizes) -> Result<(), NoPermit> {
        if state.is_closed {
            return Err(NoPermit::Closed);
        }
        // `max_size` may have been raised and the waiting submitters not yet been granted the new permits: no
        // overtaking.
        let is_awaited = state.submitters.iter().any(|submitter| !submitter.is_refused);
        if is_awaited || !self.has_permit(state, sizes) {
            return Err(NoPermit::Full);
        }
        state.permits += 1;
        Ok(())
    }

    /// Acquires a permit, free or not, for a task that was accepted earlier and cannot wait.
    pub(crate) fn acquire_over_limit(&self) {
        self.state.lock().permits += 1;
    }

    /// A free worker starts a task: releases the task's permit and counts the worker as working.
    pub(crate) fn start(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.permits -= 1;
        state.working += 1;
        self.grant(state, sizes);
    }

    /// Counts a worker as working that polls a woken future, which has no permit, or that leaves a blocking region.
    pub(crate) fn begin_work(&self) {
        self.state.lock().working += 1;
    }

    /// Counts a worker as free: its task has ended, or it enters a blocking region.
    pub(crate) fn end_work(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.working -= 1;
        self.grant(state, sizes);
    }

    /// Releases the permit of a task that no worker will start.
    pub(crate) fn release_permit(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.permits -= 1;
        self.grant(state, sizes);
    }

    /// Grants the permits that a change of the sizes has added.
    pub(crate) fn resize(&self, sizes: &Sizes) {
        self.grant(self.state.lock(), sizes);
    }

    /// Ends all waits and refuses permits from now on.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for submitter in &state.submitters {
            submitter.parker.unpark();
        }
    }

    /// Ends the waits of the submitters to a view that was closed.
    pub(crate) fn close_view(&self, view: ViewId) {
        let mut state = self.state.lock();
        for submitter in state.submitters.iter_mut().filter(|submitter| submitter.view == view) {
            submitter.is_refused = true;
            submitter.parker.unpark();
        }
    }

    /// Whether a permit is free. Reads the sizes under the lock: a call that comes after a [`resize`](Self::resize) in
    /// the lock's order sees the new ones.
    fn has_permit(&self, state: &State, sizes: &Sizes) -> bool {
        let free = sizes.max().saturating_sub(state.working);
        state.permits < self.capacity.saturating_add(free)
    }

    /// Grants the free permits to the waiting submitters.
    fn grant(&self, mut state: MutexGuard<'_, State>, sizes: &Sizes) {
        while !state.is_closed && self.has_permit(&state, sizes) {
            let first = state.submitters.iter().position(|submitter| !submitter.is_refused);
            let Some(submitter) = first.and_then(|first| state.submitters.remove(first)) else {
                return;
            };
            state.permits += 1;
            submitter.parker.unpark();
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Capacity, NoPermit};
    use crate::runtime::policy::DEFAULT_VIEW;
    use crate::runtime::sizes::Sizes;
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
    fn there_is_a_permit_for_each_unit_of_capacity_and_each_free_worker() {
        let sizes = sizes(2);
        let capacity = Capacity::new(1);
        // Two workers are free and one task may queue, whether or not the workers have taken theirs yet.
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        capacity.start(&sizes);
        capacity.start(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        capacity.end_work(&sizes);
        capacity.start(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
        capacity.release_permit(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    }

    #[test]
    fn without_capacity_only_free_workers_count() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        capacity.start(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full));
        sizes.change(|core_size, _| (core_size, 2), 0).unwrap();
        capacity.resize(&sizes);
        assert_eq!(capacity.try_acquire(&sizes), Ok(()));
    }

    #[test]
    fn waiting_submitters_are_granted_permits_in_order() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
        let waiting: Vec<_> = (0..4).map(|_| wait(&capacity, &sizes)).collect();
        for (granted, parker) in waiting.iter().enumerate() {
            capacity.end_work(&sizes);
            assert_eq!(parker.try_park(), Some(Signal::Unparked));
            assert_eq!(capacity.end_wait(parker, None), Some(Ok(())));
            assert!(waiting[granted + 1..].iter().all(|other| other.try_park().is_none()));
            assert_eq!(capacity.try_acquire(&sizes), Err(NoPermit::Full), "none overtakes");
            capacity.start(&sizes);
        }
    }

    #[test]
    fn a_waiting_submitter_may_give_up_or_go_on_without_a_permit() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
        let late = wait(&capacity, &sizes);
        let full = Err(NoPermit::Full);
        assert_eq!(capacity.end_wait(&late, Some(full)), Some(full));
        let starved = wait(&capacity, &sizes);
        assert_eq!(capacity.end_wait(&starved, Some(Ok(()))), Some(Ok(())));
        let next = wait(&capacity, &sizes);
        capacity.end_work(&sizes);
        assert_eq!(next.try_park(), None, "the task without a permit has the free worker");
        capacity.start(&sizes);
        capacity.end_work(&sizes);
        assert_eq!(next.try_park(), Some(Signal::Unparked));
        // A granted permit is kept: it is too late to give up.
        assert_eq!(capacity.end_wait(&next, Some(full)), Some(Ok(())));
    }

    #[test]
    fn a_submitter_to_a_closed_view_holds_up_no_other() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
        let refused = wait(&capacity, &sizes);
        capacity.close_view(DEFAULT_VIEW);
        capacity.end_work(&sizes);
        let other = Arc::new(Parker::new());
        // It has not noticed yet, and the permit that has become free is not for it.
        assert_eq!(capacity.acquire_or_wait(&sizes, &other, DEFAULT_VIEW, || false), Ok(()));
        assert_eq!(capacity.end_wait(&refused, None), Some(Err(NoPermit::Closed)));
    }

    #[test]
    fn closing_ends_all_waits() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
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
        capacity.end_work(&sizes);
        assert_eq!(capacity.state.lock().submitters.len(), 0);
    }
}
