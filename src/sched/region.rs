//! Blocking regions: a worker that waits does not count as runnable, so another worker may run in
//! its place (laws 1, 4 and 10).
//!
//! This file decides when the calling thread is in a region. What the pool does about it is in
//! `compensate.rs`.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::sched::context::{self, RegionKind, WorkerContext};
use crate::sched::poll_wait::{PollScope, Poller, has_waits};
use crate::sync::parker::{Parker, Signal};
use crate::thread::PoolId;

/// Whether a thread spins before it parks: an awaited task runs and may be about to end. A worker
/// that waits for something unknown parks at once. So does one with a deadline: if its wait is
/// short and comes again and again, it would hardly ever block, so that no other worker runs in its
/// place.
fn spins_first(is_worker: bool, dependency: Dependency, has_deadline: bool) -> bool {
    // A submitter waits for any worker, and leaves it the CPU.
    !matches!(dependency, Dependency::Capacity(_))
        && (!is_worker || (dependency != Dependency::Other && !has_deadline))
}

/// What a waiting thread depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// The end of a task of this pool, or a slot.
    Pool(PoolId),
    /// A permit of this pool's bounded queue.
    Capacity(PoolId),
    /// Something outside the pool, unless the awaited future [waits for the
    /// pool](super::poll_wait). A blocking region only in the latter case.
    Future,
    /// Something outside the pool, unless the awaited future [waits for the
    /// pool](super::poll_wait). Always a blocking region.
    Other,
}

/// Takes the calling worker out of its blocking region until this is dropped, while it runs a task
/// that it waits for. Meanwhile the task's waits do not count for the poll below it.
pub(crate) struct OutsideOfRegion {
    _left: Option<Region>,
    _meanwhile: Option<PollScope>,
}

impl OutsideOfRegion {
    pub(crate) fn enter() -> Self {
        let worker = context::worker().filter(|worker| worker.region.get().is_some());
        OutsideOfRegion {
            _left: worker.map(|worker| Region::change(worker, None)),
            _meanwhile: has_waits().then(|| PollScope::begin(Poller::Other)),
        }
    }
}

/// Whether a wait with this deadline is over. Asks the clock only if there is one.
pub(crate) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

/// Why a [`wait_for`] returns something.
pub(crate) const NO_LIMIT: &str = "a wait without a limit does not time out";

/// Blocks the calling thread until the future is ready or `deadline` has passed. A worker blocks in
/// a blocking region.
///
/// Uses no executor of another crate, so it nests with any of them in both directions.
pub(crate) fn wait_for<F: Future>(
    mut future: Pin<&mut F>,
    deadline: Option<Instant>,
    dependency: Dependency,
) -> Option<F::Output> {
    let mut output = None;
    let mut poll = |context: &mut Context<'_>| {
        let Poll::Ready(ready) = future.as_mut().poll(context) else { return false };
        output = Some(ready);
        true
    };
    wait_until(&mut poll, deadline, dependency);
    output
}

/// Not part of [`wait_for`], which is compiled for each type of future. `poll` returns whether the
/// wait is over.
fn wait_until(
    poll: &mut dyn FnMut(&mut Context<'_>) -> bool,
    deadline: Option<Instant>,
    dependency: Dependency,
) {
    // One parker per wait: with one per thread, a wait nested in an outer wait's poll would take
    // the outer one's signal.
    let parker = Arc::new(Parker::default());
    #[cfg(elastipool_loom)]
    crate::sync::models::register_wait(&parker);
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut in_time = true;
    // A wait for a task is known to depend on its pool. Other waits count what their future polls.
    let poller = match dependency {
        Dependency::Pool(_) | Dependency::Capacity(_) => Poller::Other,
        Dependency::Future | Dependency::Other => Poller::Wait(Arc::default()),
    };
    loop {
        let is_ready = {
            let _polls = PollScope::begin(poller.clone());
            poll(&mut context)
        };
        // Polls once more after the deadline: the future may have become ready at that moment.
        if is_ready || !in_time || has_passed(deadline) {
            return;
        }
        let worker = context::worker();
        if spins_first(worker.is_some(), dependency, deadline.is_some()) {
            parker.spin();
        }
        // The future has woken itself or was woken while spinning: poll again.
        if parker.try_park() == Some(Signal::Unparked) {
            continue;
        }
        let waits_for_own = matches!(&poller, Poller::Wait(pending) if pending.get() > 0);
        let dependency = match &worker {
            Some(worker) if waits_for_own => Dependency::Pool(worker.shared.id()),
            _ => dependency,
        };
        let signal = if dependency == Dependency::Future && worker.is_some() {
            // A completion that waits for something outside the pool stays runnable (law 4). No
            // task could end its wait.
            parker.park(deadline)
        } else {
            // The region covers only the wait: polling may be work.
            let _region = Region::enter(Some(dependency));
            parker.park(deadline)
        };
        in_time = signal != Signal::Expired;
    }
}

/// The calling worker is in another blocking region than before, or in none, until this is dropped.
pub(crate) struct Region {
    worker: Rc<WorkerContext>,
    before: Option<RegionKind>,
}

impl Region {
    /// Enters the region of a wait that parks. `wait` is `None` for any other code that blocks.
    /// Returns `None` outside of workers, and inside of a region that counts for this one too.
    #[must_use]
    pub(crate) fn enter(wait: Option<Dependency>) -> Option<Self> {
        let worker = context::worker()?;
        let pool = worker.shared.id();
        let kind = match wait {
            Some(Dependency::Pool(own) | Dependency::Capacity(own)) if own == pool => {
                RegionKind::Own
            }
            _ if worker.runs_tasks.get() => RegionKind::Declared,
            // A worker started in place of one in its start hook would run the same hook. So only
            // waits that may be for a task of the pool are regions there.
            None => return None,
            Some(_) => RegionKind::Own,
        };
        let begins = worker.region.get() < Some(kind) && worker.may_wait();
        begins.then(|| Region::change(worker, Some(kind)))
    }

    fn change(worker: Rc<WorkerContext>, to: Option<RegionKind>) -> Self {
        let before = worker.region.get();
        worker.change_region(to);
        Region { worker, before }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.worker.change_region(self.before);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
