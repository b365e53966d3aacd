//! Which pending polls of handles and groups are waits for their pool (law 10): those of a future
//! that a worker drives to its end, and [waits for](super::region::wait_for). While any of them is
//! pending, that wait is a blocking region. After the poll of a spawned future the worker goes on:
//! nothing blocks it. What a closure polls by another crate's executor is out of the pool's sight.

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::{mem, ptr};

use crate::sched::context::{is_hook_of, is_outside_of_worker, works_for};
use crate::sync::unwind::discard;
use crate::sync::{Counter, thread_local};
use crate::thread::PoolId;

/// Who polls on the calling thread.
#[derive(Clone, Default)]
pub(super) enum Poller {
    /// A worker that goes on after the poll, or one that the pool does not know.
    #[default]
    Other,
    /// A waker that the pool calls, as an executor outside of the pool.
    Waker,
    /// A wait. Counts the pending handles and groups of the worker's own pool.
    Wait(Arc<Counter>),
}

thread_local! {
    static POLLER: RefCell<Poller> = RefCell::default();
}

fn poller() -> Poller {
    POLLER.try_with(|poller| poller.borrow().clone()).unwrap_or_default()
}

/// Whether the calling thread polls a future for which it waits.
pub(super) fn has_waits() -> bool {
    let is_wait = |poller: &RefCell<Poller>| matches!(*poller.borrow(), Poller::Wait(_));
    POLLER.try_with(is_wait).unwrap_or(false)
}

/// Whether a pending poll on the calling thread counts as a wait for `pool`.
pub(super) fn may_count(pool: PoolId) -> bool {
    has_waits() && works_for(pool)
}

/// Whether a pending poll blocks a worker of the pool, or a hook.
pub(crate) fn may_block_own(pool: PoolId) -> bool {
    match poller() {
        Poller::Waker if !is_outside_of_worker() => false,
        Poller::Wait(_) if works_for(pool) => true,
        _ => is_hook_of(pool),
    }
}

/// Counts a handle or a group among the waits of the thread that polls it: from its first pending
/// poll until it is ready or dropped. Looking at the thread's last poll alone would miss some: a
/// combinator polls only the children that have been woken.
///
/// Of a future that several share, two things are out of sight: a wait that has dropped its clone
/// still counts, and a poll that comes while another thread polls it does not.
#[derive(Debug, Default)]
pub(crate) struct PollWait {
    /// Several if they poll it with the same waker, which wakes all of them: that of a future which
    /// they share. Each wait has its counter as long as it lasts.
    waits: Vec<Weak<Counter>>,
    waker: Option<Waker>,
}

impl PollWait {
    /// As [`note`](Self::note), after a poll of several handles, which are of these pools. It may
    /// have polled none of them: they were polled by an earlier wait.
    pub(crate) fn note_any(
        &mut self,
        is_pending: bool,
        mut pools: impl Iterator<Item = PoolId>,
        waker: &Waker,
    ) {
        self.count(is_pending, || pools.any(works_for), waker);
    }

    /// After a poll on the calling thread: counts the wait if the poll was pending, and the thread
    /// is a worker of the awaited task's `pool`.
    pub(crate) fn note(&mut self, is_pending: bool, pool: PoolId, waker: &Waker) {
        self.count(is_pending, || works_for(pool), waker);
    }

    fn count(&mut self, is_pending: bool, is_own: impl FnOnce() -> bool, waker: &Waker) {
        if !is_pending || self.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            self.end();
        }
        let Poller::Wait(wait) = poller() else { return };
        let is_counted = self.waits.iter().any(|known| ptr::eq(known.as_ptr(), &*wait));
        if is_pending && !is_counted && is_own() {
            // A shared handle may outlive any number of waits.
            self.waits.retain(|known| known.strong_count() > 0);
            wait.increment();
            self.waits.push(Arc::downgrade(&wait));
            self.waker.get_or_insert_with(|| waker.clone());
        }
    }

    fn end(&mut self) {
        for wait in mem::take(&mut self.waits).iter().filter_map(Weak::upgrade) {
            wait.subtract(1);
        }
        discard(self.waker.take());
    }
}

impl Drop for PollWait {
    fn drop(&mut self) {
        self.end();
    }
}

/// Another one polls on the calling thread, until this is dropped.
pub(super) struct PollScope(Poller);

impl PollScope {
    pub(super) fn begin(poller: Poller) -> Self {
        PollScope(POLLER.try_with(|current| current.replace(poller)).unwrap_or_default())
    }
}

impl Drop for PollScope {
    fn drop(&mut self) {
        drop(POLLER.try_with(|current| current.replace(mem::take(&mut self.0))));
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use super::{PollScope, PollWait, Poller};
    use crate::sync::Counter;

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    /// A shared handle polls with one waker, on whichever thread it is polled.
    #[test]
    fn waits_that_are_over_are_forgotten() {
        let mut counted = PollWait::default();
        let (first, waker) = (Arc::new(Counter::new(0)), Waker::from(Arc::new(Nothing)));
        for wait in [&first, &first].into_iter().cloned().chain((0..100).map(|_| Arc::default())) {
            let _polls = PollScope::begin(Poller::Wait(wait));
            counted.count(true, || true, &waker);
        }
        assert!(counted.waits.len() <= 3);
        assert_eq!(first.get(), 1);
        counted.count(false, || true, &waker);
        assert_eq!((counted.waits.len(), first.get()), (0, 0));
    }
}
