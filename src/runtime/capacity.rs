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

use crate::runtime::region::{Compensate, Region};
use crate::runtime::sizes::Sizes;
use crate::sync::parker::{Parker, Signal};
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

    /// Lets one task into the queue of `pool`. Waits for room as long as `patience` says; a worker waits in a blocking
    /// region.
    ///
    /// If the system refuses the thread that would have to make capacity, and `is_deserted` says that no worker is left who
    /// could, then a worker of it that waits is let in without capacity: better a task too many than a pool that waits for
    /// itself. Others ask for the thread again.
    pub(crate) fn acquire(
        &self,
        sizes: &Sizes,
        patience: Patience,
        pool: impl FnOnce() -> Arc<dyn Compensate>,
        is_deserted: impl Fn() -> bool,
    ) -> Result<(), NoPermit> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(NoPermit::Closed);
        }
        // After a resize there may be room that those who wait have yet to be given.
        if state.submitters.is_empty() && self.has_permit(&state, sizes) {
            state.waiting += 1;
            return Ok(());
        }
        let Patience::Until(deadline) = patience else {
            return Err(NoPermit::Full);
        };
        let parker = Arc::new(Parker::new());
        state.submitters.push_back(Arc::clone(&parker));
        drop(state);
        // After queueing up: the caller's own place may be the one that becomes free.
        let mut region = Region::enter_to_wait_for(pool(), &parker);
        loop {
            let must_go = if !region.waits_for_own() {
                (region.park(&parker, deadline) == Signal::Expired).then_some(Err(NoPermit::Full))
            } else if region.is_starved() && is_deserted() {
                Some(Ok(()))
            } else {
                let signal = region.park_once(&parker, deadline);
                (signal == Signal::Expired).then_some(Err(NoPermit::Full))
            };
            let mut state = self.state.lock();
            let Some(place) = state.submitters.iter().position(|other| Arc::ptr_eq(other, &parker))
            else {
                return Ok(());
            };
            let verdict = if state.is_closed { Some(Err(NoPermit::Closed)) } else { must_go };
            if let Some(verdict) = verdict {
                state.submitters.remove(place);
                state.waiting += usize::from(verdict.is_ok());
                return verdict;
            }
        }
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
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{Capacity, NoPermit, Patience};
    use crate::runtime::region::{Compensate, Kind, Phase};
    use crate::runtime::sizes::Sizes;
    use crate::sync::parker::Parker;

    /// A pool in which nothing happens.
    struct Nobody;

    impl Compensate for Nobody {
        fn enter_region(self: Arc<Self>, _: Phase, _: Kind) -> bool {
            true
        }

        fn exit_region(self: Arc<Self>, _: Phase, _: Kind) {}

        fn begin_own_wait(self: Arc<Self>) -> bool {
            true
        }

        fn end_own_wait(self: Arc<Self>) {}

        fn may_wait_in_hook(&self) -> bool {
            true
        }

        fn listen_for_refusals(&self, _: &Arc<Parker>) {}

        fn stop_listening(&self, _: &Arc<Parker>) {}

        fn retry(self: Arc<Self>) -> bool {
            true
        }
    }

    fn nobody() -> Arc<dyn Compensate> {
        Arc::new(Nobody)
    }

    fn sizes(max_size: usize) -> Sizes {
        Sizes::new(0, max_size, Duration::from_secs(1))
    }

    fn try_enter(capacity: &Capacity, sizes: &Sizes) -> Result<(), NoPermit> {
        capacity.acquire(sizes, Patience::None, nobody, || false)
    }

    #[test]
    fn capacity_and_free_workers_make_room() {
        let sizes = sizes(2);
        let capacity = Capacity::new(1);
        // Two workers are free and one task may wait, whether or not they have taken theirs.
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
        assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Full));
        capacity.start(&sizes);
        capacity.start(&sizes);
        assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Full));
        capacity.end_work(&sizes);
        capacity.start(&sizes);
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
        capacity.release_permit(&sizes);
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
    }

    #[test]
    fn without_capacity_only_free_workers_count() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
        assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Full));
        capacity.start(&sizes);
        assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Full));
        sizes.set_max(2).unwrap();
        capacity.resize(&sizes);
        assert_eq!(try_enter(&capacity, &sizes), Ok(()));
    }

    #[test]
    fn visitors_are_let_in_in_order() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
        let (entered, order) = mpsc::channel();
        thread::scope(|scope| {
            for submitter in 0..4 {
                let (capacity, sizes, entered) = (&capacity, &sizes, entered.clone());
                scope.spawn(move || {
                    capacity.acquire(sizes, Patience::Until(None), nobody, || false).unwrap();
                    entered.send(submitter).unwrap();
                });
                while capacity.state.lock().submitters.len() <= submitter {
                    thread::yield_now();
                }
            }
            for submitter in 0..4 {
                capacity.end_work(&sizes);
                assert_eq!(order.recv().unwrap(), submitter);
                assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Full), "nobody overtakes");
                capacity.start(&sizes);
            }
        });
    }

    #[test]
    fn impatience_and_closing_end_a_wait() {
        let sizes = sizes(1);
        let capacity = Capacity::new(0);
        capacity.begin_work();
        let soon = Patience::Until(Some(Instant::now() + Duration::from_millis(1)));
        assert_eq!(capacity.acquire(&sizes, soon, nobody, || false), Err(NoPermit::Full));
        thread::scope(|scope| {
            let waiting =
                scope.spawn(|| capacity.acquire(&sizes, Patience::Until(None), nobody, || false));
            while capacity.state.lock().submitters.is_empty() {
                thread::yield_now();
            }
            capacity.close();
            assert_eq!(waiting.join().unwrap(), Err(NoPermit::Closed));
        });
        assert_eq!(try_enter(&capacity, &sizes), Err(NoPermit::Closed));
        capacity.end_work(&sizes);
        assert_eq!(capacity.state.lock().submitters.len(), 0);
    }
}
