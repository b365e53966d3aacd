//! Capacity in a bounded queue: who may come in, and who waits for it, in which order.
//!
//! A task takes up room from its acceptance until a worker starts it; what was started before, a future that is
//! woken, does not. There is room for `capacity` tasks, and one more for each worker, of the `max_size` that may be
//! runnable, that has nothing to do: that one will take a task at once. So `capacity + max_size` tasks that do not end
//! are accepted one after another, however long the workers take to start them.
//!
//! Whoever makes room lets in the first of those who wait, under the lock under which all the numbers
//! change: there is never room while somebody waits, nobody overtakes, and nobody is woken in vain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::runtime::sizes::Sizes;
use crate::sync::parker::Parker;
use crate::sync::{Mutex, MutexGuard};

/// How long a submission waits for capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    None,
    /// Until that time; `None` is for ever.
    Until(Option<Instant>),
}

/// Why a task was not let in.
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
    /// Tasks that were let in and not started.
    waiting: usize,
    /// Workers in a task, but not in a blocking region.
    working: usize,
    /// Submitters that wait to be let in, the first in front.
    submitters: VecDeque<Arc<Parker>>,
    is_closed: bool,
}

impl Capacity {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { waiting: 0, working: 0, submitters: VecDeque::new(), is_closed: false };
        Capacity { capacity, state: Mutex::new(state) }
    }

    /// Acquires a permit for one task, if one is free.
    pub(crate) fn try_acquire(&self, sizes: &Sizes) -> Result<(), NoPermit> {
        self.acquire(&mut self.state.lock(), sizes)
    }

    /// Acquires a permit, or enters the line of waiting submitters: `parker` is unparked when the submitter has a permit, or
    /// when the pool is closed. Then the submitter must ask [`end_wait`](Self::end_wait).
    pub(crate) fn acquire_or_wait(
        &self,
        sizes: &Sizes,
        parker: &Arc<Parker>,
    ) -> Result<(), NoPermit> {
        let mut state = self.state.lock();
        let acquired = self.acquire(&mut state, sizes);
        if acquired == Err(NoPermit::Full) {
            state.submitters.push_back(Arc::clone(parker));
        }
        acquired
    }

    /// Ends a wait if the submitter was granted a permit, if the pool is closed, or with the submitter's own `verdict`. `Ok`
    /// as a verdict takes a permit that is not free. `None` if the wait goes on.
    pub(crate) fn end_wait(
        &self,
        parker: &Arc<Parker>,
        verdict: Option<Result<(), NoPermit>>,
    ) -> Option<Result<(), NoPermit>> {
        let mut state = self.state.lock();
        let Some(place) = state.submitters.iter().position(|other| Arc::ptr_eq(other, parker))
        else {
            return Some(Ok(()));
        };
        let verdict = if state.is_closed { Err(NoPermit::Closed) } else { verdict? };
        state.submitters.remove(place);
        state.waiting += usize::from(verdict.is_ok());
        Some(verdict)
    }

    fn acquire(&self, state: &mut State, sizes: &Sizes) -> Result<(), NoPermit> {
        if state.is_closed {
            return Err(NoPermit::Closed);
        }
        // After a resize there may be permits that the waiting submitters have yet to be granted.
        if !state.submitters.is_empty() || !self.has_permit(state, sizes) {
            return Err(NoPermit::Full);
        }
        state.waiting += 1;
        Ok(())
    }

    /// A task comes in that was accepted earlier, and cannot wait.
    pub(crate) fn acquire_over_limit(&self) {
        self.state.lock().waiting += 1;
    }

    /// A task that was let in is started by a worker, which had nothing to do.
    pub(crate) fn start(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.waiting -= 1;
        state.working += 1;
        self.grant(state, sizes);
    }

    /// A worker has something to do that was not let in, a future that was woken; or it comes back from a blocking
    /// region.
    pub(crate) fn begin_work(&self) {
        self.state.lock().working += 1;
    }

    /// A worker has nothing to do, or enters a blocking region.
    pub(crate) fn end_work(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.working -= 1;
        self.grant(state, sizes);
    }

    /// A task that was let in will not be started by a worker.
    pub(crate) fn release_permit(&self, sizes: &Sizes) {
        let mut state = self.state.lock();
        state.waiting -= 1;
        self.grant(state, sizes);
    }

    /// The sizes have changed.
    pub(crate) fn resize(&self, sizes: &Sizes) {
        self.grant(self.state.lock(), sizes);
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for submitter in &state.submitters {
            submitter.unpark();
        }
    }

    /// The sizes are read under the lock: an event that comes after a [`resize`](Self::resize) knows the new ones.
    fn has_permit(&self, state: &State, sizes: &Sizes) -> bool {
        let free = sizes.max().saturating_sub(state.working);
        state.waiting < self.capacity.saturating_add(free)
    }

    fn grant(&self, mut state: MutexGuard<'_, State>, sizes: &Sizes) {
        while !state.is_closed && !state.submitters.is_empty() && self.has_permit(&state, sizes) {
            state.waiting += 1;
            if let Some(submitter) = state.submitters.pop_front() {
                submitter.unpark();
            }
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Capacity, NoPermit};
    use crate::runtime::sizes::Sizes;
    use crate::sync::parker::{Parker, Signal};

    fn sizes(max_size: usize) -> Sizes {
        Sizes::new(0, max_size, Duration::from_secs(1))
    }

    /// A submitter in line.
    fn wait(capacity: &Capacity, sizes: &Sizes) -> Arc<Parker> {
        let parker = Arc::new(Parker::new());
        assert_eq!(capacity.acquire_or_wait(sizes, &parker), Err(NoPermit::Full));
        assert_eq!(capacity.end_wait(&parker, None), None);
        parker
    }

    #[test]
    fn a_permit_is_free_for_each_place_in_the_queue_and_each_free_worker() {
        let sizes = sizes(2);
        let capacity = Capacity::new(1);
        // Two workers are free and one task may wait, whether or not they have taken theirs.
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
        sizes.set_max(2).unwrap();
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
        // It is granted: too late to give up.
        assert_eq!(capacity.end_wait(&next, Some(full)), Some(Ok(())));
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
        assert_eq!(capacity.acquire_or_wait(&sizes, &parker), Err(NoPermit::Closed));
        capacity.end_work(&sizes);
        assert_eq!(capacity.state.lock().submitters.len(), 0);
    }
}
