//! Blocking regions: a worker that waits does not count as runnable, so another worker may run in its place (laws 1, 4
//! and 10).
//!
//! This file decides when the calling thread is in a region. What the pool does about it is in `compensate.rs`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::runtime::context::{
    Phase, RegionKind, WorkerRole, is_in_region, is_worker, role, role_in_region, set_region,
};
use crate::runtime::identity::PoolId;
use crate::runtime::poll_wait::{Meanwhile, end_waits, is_polling, is_waiting};
use crate::runtime::shared::Shared;
use crate::sync::Counter;
use crate::sync::parker::{Parker, Signal};

/// Whether a thread spins before it parks: an awaited task runs and may be about to end. A worker that waits for something
/// unknown parks at once. So does one with a deadline: if its wait is short and comes again and again, it would hardly ever
/// block, so that no other worker runs in its place.
fn spins_first(is_worker: bool, dependency: Dependency, has_deadline: bool) -> bool {
    !is_worker || (dependency != Dependency::Other && !has_deadline)
}

/// What a waiting thread depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// Tasks of this pool: their end, a permit or a slot.
    Pool(PoolId),
    /// Something outside the pool, unless the awaited future [waits for the pool](super::poll_wait). A blocking region only in
    /// the latter case.
    Future,
    /// Something outside the pool, unless the awaited future [waits for the pool](super::poll_wait). Always a blocking region.
    Other,
}

impl Dependency {
    /// The pool whose tasks it is.
    fn pool(self) -> Option<PoolId> {
        match self {
            Dependency::Pool(pool) => Some(pool),
            Dependency::Future | Dependency::Other => None,
        }
    }
}

/// Takes the calling worker out of its blocking region until this is dropped, while it runs a task that it waits for.
/// Meanwhile the task's waits do not count for the poll below it.
pub(crate) struct OutsideOfRegion {
    left: Option<(WorkerRole, RegionKind)>,
    meanwhile: Option<Meanwhile>,
}

impl OutsideOfRegion {
    pub(crate) fn enter() -> Self {
        // Most tasks that wait for others are in neither.
        if !is_in_region() && !is_polling() {
            return OutsideOfRegion { left: None, meanwhile: None };
        }
        let left = role_in_region();
        if let Some((role, kind)) = &left {
            set_region(None);
            role.pool.exit_region(role.phase, *kind);
        }
        OutsideOfRegion { left, meanwhile: Some(Meanwhile::runs_closure()) }
    }

    /// Whether the worker goes back to a region.
    pub(crate) fn is_in_region(&self) -> bool {
        self.left.is_some()
    }
}

impl Drop for OutsideOfRegion {
    fn drop(&mut self) {
        end_waits();
        drop(self.meanwhile.take());
        if let Some((role, kind)) = self.left.take() {
            set_region(Some(kind));
            role.pool.enter_region(role.phase, kind);
        }
    }
}

/// Whether a wait with this deadline is over. Asks the clock only if there is one.
pub(crate) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

/// Blocks the calling thread until the future is ready or `deadline` has passed. A worker blocks in a blocking region.
///
/// Uses no executor of another crate, so it nests with any of them in both directions.
pub(crate) fn wait_for<F: Future>(
    mut future: Pin<&mut F>,
    deadline: Option<Instant>,
    dependency: Dependency,
) -> Option<F::Output> {
    // One parker per wait: with one per thread, a wait nested in an outer wait's poll would take the outer one's
    // signal.
    let parker = Arc::new(Parker::new());
    #[cfg(elastipool_loom)]
    crate::sync::parker::register_wait(&parker);
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut in_time = true;
    // A wait for a task is known to depend on its pool. Other waits count what their future polls.
    let is_unknown = dependency.pool().is_none();
    let pending = is_unknown.then(|| Arc::new(Counter::default()));
    loop {
        let polled = {
            let _polls = Meanwhile::polls(pending.clone());
            future.as_mut().poll(&mut context)
        };
        match polled {
            Poll::Ready(output) => return Some(output),
            // Poll once more after the deadline: the future may have become ready at that moment.
            Poll::Pending if !in_time => return None,
            Poll::Pending => {}
        }
        if has_passed(deadline) {
            return None;
        }
        let is_worker = is_worker();
        if spins_first(is_worker, dependency, deadline.is_some()) {
            parker.spin();
        }
        // The future has woken itself or was woken while spinning: poll again.
        if parker.try_park() == Some(Signal::Unparked) {
            continue;
        }
        let waits_for_own = pending.as_ref().is_some_and(|pending| pending.get() > 0);
        let dependency = match role().filter(|_| waits_for_own) {
            Some(role) => Dependency::Pool(role.pool.id()),
            None => dependency,
        };
        let signal = if dependency == Dependency::Future && is_worker {
            // A completion that waits for something outside the pool stays runnable (law 4). No task could end its wait.
            parker.park(deadline)
        } else {
            // The region covers only the wait: polling may be work.
            Region::enter_to_park(dependency).park(&parker, deadline)
        };
        in_time = signal != Signal::Expired;
    }
}

/// Keeps the calling thread in a blocking region until it is dropped.
pub(crate) struct Region {
    /// The pool that the caller is a worker of.
    own_pool: Option<Arc<Shared>>,
    phase: Phase,
    kind: RegionKind,
    /// Whether the caller is a worker of the pool that it waits for.
    waits_for_own: bool,
    /// Whether this region counts the worker as blocked: not outside of workers, and not inside another region.
    is_counted: bool,
    /// Whether this is a wait for the worker's own pool inside a declared region.
    is_own_in_declared: bool,
}

impl Region {
    /// Enters a declared region.
    pub(crate) fn enter() -> Self {
        Region::enter_with(false, Dependency::Other)
    }

    /// Enters the region of a wait with [`park`](Self::park).
    pub(crate) fn enter_to_park(dependency: Dependency) -> Self {
        Region::enter_with(true, dependency)
    }

    fn enter_with(parks: bool, dependency: Dependency) -> Self {
        // A region that polls have begun may be over.
        is_waiting();
        let role = role().filter(|role| match role.phase {
            Phase::Tasks => true,
            // A worker started in place of one in its start hook would run the same hook. So only waits that may be for
            // a task of the pool are regions there.
            Phase::StartHook => parks && role.pool.may_wait_in_hook(),
        });
        let phase = role.as_ref().map_or(Phase::Tasks, |role| role.phase);
        let waits_for_own =
            role.as_ref().is_some_and(|role| dependency.pool() == Some(role.pool.id()));
        let is_exempt = waits_for_own || phase == Phase::StartHook;
        let kind = if is_exempt { RegionKind::Own } else { RegionKind::Declared };
        let region = Region {
            own_pool: role.as_ref().map(|role| Arc::clone(&role.pool)),
            phase,
            kind,
            waits_for_own,
            is_counted: role.as_ref().is_some_and(|role| role.region.is_none()),
            is_own_in_declared: kind == RegionKind::Own
                && role.as_ref().is_some_and(|role| role.region == Some(RegionKind::Declared)),
        };
        if region.is_counted || region.is_own_in_declared {
            set_region(Some(kind));
        }
        if let Some(WorkerRole { pool, phase, .. }) = role {
            if region.is_counted {
                pool.enter_region(phase, kind);
            } else if region.is_own_in_declared {
                // The outer region may be beyond `max_blocked`, and its worker not replaced.
                pool.begin_own_wait();
            }
        }
        region
    }

    /// Whether the caller is a worker of the pool that it waits for.
    pub(crate) fn waits_for_own(&self) -> bool {
        self.waits_for_own
    }

    /// Parks until the parker is unparked or the deadline has passed.
    pub(crate) fn park(&self, parker: &Parker, deadline: Option<Instant>) -> Signal {
        loop {
            let signal = parker.park(deadline);
            if signal != Signal::Recheck {
                return signal;
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(pool) = self.own_pool.take() else { return };
        if self.is_counted {
            // Polls inside of it may have begun another one.
            end_waits();
            set_region(None);
            pool.exit_region(self.phase, self.kind);
        } else if self.is_own_in_declared {
            set_region(Some(RegionKind::Declared));
            pool.end_own_wait();
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
