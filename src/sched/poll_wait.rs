//! Which pending polls of handles and groups are waits for their pool (law 10): those of a future
//! that a worker drives to its end, and [waits for](super::region::wait_for). While any of them is
//! pending, that wait is a blocking region. After the poll of a spawned future the worker goes on:
//! nothing blocks it. What a closure polls by another crate's executor is out of the pool's sight.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;

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
#[derive(Debug, Default)]
pub(crate) struct PollWait {
    /// More than one if they poll it with the same waker, which wakes all of them: that of a future
    /// which they share.
    waits: Vec<Arc<Counter>>,
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
        let is_wait = is_pending && has_waits();
        match is_wait.then(|| pools.find(|pool| works_for(*pool))).flatten() {
            Some(pool) => self.note(true, pool, waker),
            None => self.end(),
        }
    }

    /// After a poll on the calling thread: counts the wait if the poll was pending, and the thread
    /// is a worker of the awaited task's `pool`.
    pub(crate) fn note(&mut self, is_pending: bool, pool: PoolId, waker: &Waker) {
        if !is_pending || self.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            self.end();
        }
        match poller() {
            Poller::Wait(wait)
                if is_pending
                    && works_for(pool)
                    && !self.waits.iter().any(|known| Arc::ptr_eq(known, &wait)) =>
            {
                wait.increment();
                self.waits.push(wait);
                self.waker = Some(waker.clone());
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        self.waits.drain(..).for_each(|wait| _ = wait.subtract(1));
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
        drop(POLLER.try_with(|current| current.replace(std::mem::take(&mut self.0))));
    }
}
