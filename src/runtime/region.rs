//! Blocking regions: a worker that waits does not count as runnable, so that its place can be filled (laws 1,
//! 4 and 10).
//!
//! Knows a worker's pool only as an [`Compensate`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{cmp, mem};

use crate::runtime::context::{
    Kind, Phase, WorkerRole, is_worker, is_worker_of, poll_waits, replace_poll_waits, role,
    set_region,
};
use crate::runtime::shared::{PoolId, Shared};
use crate::sync::Counter;
use crate::sync::parker::{Parker, Signal};

/// The pauses before a refused thread is asked for again: from a millisecond to a second.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Pauses(Duration::from_millis(1))
    }

    fn next(&mut self) -> Duration {
        let longer = cmp::min(2 * self.0, Duration::from_secs(1));
        mem::replace(&mut self.0, longer)
    }
}

/// What a thread waits for, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// A task of this pool, or a place or room that its tasks make.
    Pool(PoolId),
    /// What the future depends on that is waited for, as far as it [says so](PollWait).
    Future,
    /// Something else, unless the future that is waited for [says so](PollWait).
    Other,
}

/// Whether a handle or a group counts as something that the thread which polls it waits for: from a poll that is not ready
/// until one that is, or until it is dropped. (The last poll alone does not say so: a combinator polls only those of its
/// children that have been woken.)
#[derive(Debug, Default)]
pub(crate) struct PollWait(Option<Arc<Counter>>);

impl PollWait {
    /// The calling thread has polled it, and it was not ready. Counts only if it is a task of the thread's own pool.
    pub(crate) fn begin(&mut self, pool: PoolId) {
        let pending = poll_waits();
        let pending = pending.filter(|_| is_worker_of(pool));
        let (before, now) = (self.0.as_ref(), pending.as_ref());
        if before.map(Arc::as_ptr) != now.map(Arc::as_ptr) {
            self.end();
            if let Some(pending) = &pending {
                pending.increment();
            }
            self.0 = pending;
        }
    }

    /// It is ready.
    pub(crate) fn end(&mut self) {
        if let Some(pending) = self.0.take() {
            pending.decrement();
        }
    }
}

impl Drop for PollWait {
    fn drop(&mut self) {
        self.end();
    }
}

/// The calling thread runs a task that it waits for, until this is dropped: if it is a worker in a region, it is back from
/// there meanwhile. What the task's polls wait for does not count for the poll below it.
pub(crate) struct OutsideOfRegion {
    left: Option<(WorkerRole, Kind)>,
    pending: Option<Arc<Counter>>,
}

impl OutsideOfRegion {
    pub(crate) fn enter() -> Self {
        let left = role().and_then(|role| role.region.map(|kind| (role, kind)));
        if let Some((role, kind)) = &left {
            set_region(None);
            role.pool.exit_region(role.phase, *kind);
        }
        OutsideOfRegion { left, pending: replace_poll_waits(None) }
    }
}

impl Drop for OutsideOfRegion {
    fn drop(&mut self) {
        replace_poll_waits(self.pending.take());
        if let Some((role, kind)) = self.left.take() {
            set_region(Some(kind));
            role.pool.enter_region(role.phase, kind);
        }
    }
}

/// Runs `f` as a blocking region: while it lasts, a worker of a pool does not count as one of the
/// [`max_size`](crate::ThreadPool::max_size) that may run, so if work is queued, or arrives, another worker takes its place.
/// At most [`max_blocked`](crate::Builder::max_blocked) workers are replaced at a time.
///
/// Use it around whatever may wait long for something other than the CPU: a lock, a socket, a child process, a
/// channel that another task of the same pool is to fill. Waiting for a [`JoinHandle`](crate::JoinHandle), a
/// [scope](crate::ThreadPool::scope) or a [group](crate::TaskGroup) is a blocking region by itself (after the worker has run
/// what it waits for, as far as that had not been started), as is a submission that waits for room in the queue of its
/// pool or for a place in its group. A [completion](crate::ThreadPool::complete) is in a region only while its future waits
/// for a handle or group of the same pool. Inside of another region, in worker hooks, and outside of workers, `blocking`
/// does nothing but call `f`.
///
/// Entering starts no thread if nothing is queued. If the system refuses the thread that would be needed, `f` is called
/// all the same; the next submission, or the next worker that blocks, tries again.
///
/// After the region the pool runs one worker too many until the next one ends its task. That one is kept idle for the next
/// region, until [`keep_alive`](crate::ThreadPool::keep_alive) is over. If the pool has one too many already, the end of the
/// region waits for that, but not longer than until no worker has ended a task for 100 ms.
///
/// A panic of `f` ends the region and goes on.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// // One runnable worker, and still the second task runs while the first one waits for it.
/// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
/// let (sender, receiver) = mpsc::channel();
/// let first = pool.evaluate(move || elastipool::blocking(|| receiver.recv()));
/// pool.execute(move || sender.send(42).unwrap());
/// assert_eq!(first.await_complete(), Ok(42));
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    let _region = Region::enter();
    f()
}

/// Blocks the calling thread until the future is ready, or until `deadline`; a worker in a blocking region.
///
/// Without an executor: it may be used inside of another one's `block_on`, and so may another one's inside of it.
pub(crate) fn wait_for<F: Future>(
    mut future: Pin<&mut F>,
    deadline: Option<Instant>,
    dependency: Dependency,
) -> Option<F::Output> {
    // A parker of its own for each wait: with one per thread, a wait inside of a poll of an outer
    // wait would take the outer one's signal.
    let parker = Arc::new(Parker::new());
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut in_time = true;
    // Of a wait for a task it is known what it depends on.
    let is_unknown = !matches!(dependency, Dependency::Pool(_));
    let pending = is_unknown.then(|| Arc::new(Counter::default()));
    loop {
        let outer = replace_poll_waits(pending.clone());
        let polled = future.as_mut().poll(&mut context);
        replace_poll_waits(outer);
        match polled {
            Poll::Ready(output) => return Some(output),
            // Polled once more after the deadline: it may have come in the last moment.
            Poll::Pending if !in_time => return None,
            Poll::Pending => {}
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return None;
        }
        // A worker that waits for a task of its pool waits for one that runs: it may be about to end.
        if !is_worker() || dependency != Dependency::Other {
            parker.spin();
        }
        // A future that yields has woken itself: there is nothing to wait for.
        if parker.try_park() == Some(Signal::Unparked) {
            continue;
        }
        let waits_for_own = pending.as_ref().is_some_and(|pending| pending.get() > 0);
        let dependency = match role().filter(|_| waits_for_own) {
            Some(role) => Dependency::Pool(role.pool.id()),
            None => dependency,
        };
        let signal = if dependency == Dependency::Future && is_worker() {
            // It waits for nothing that the pool has to do, and keeps its place.
            parker.park(deadline)
        } else {
            // Only while it waits: polling may be work.
            Region::enter_to_park(&parker, dependency).park(&parker, deadline)
        };
        in_time = signal != Signal::Expired;
    }
}

/// The calling thread is in a blocking region until this is dropped.
pub(crate) struct Region {
    /// The pool whose worker the caller is.
    own_pool: Option<Arc<Shared>>,
    /// Another pool that the wait depends on.
    other_pool: Option<Arc<Shared>>,
    phase: Phase,
    kind: Kind,
    /// Whether the caller is a worker of the pool that it waits for.
    waits_for_own: bool,
    /// Whether the worker counts as away: not outside of workers, and not by a region in a region.
    is_counted: bool,
    /// Whether this is a wait for the own pool in a declared region.
    is_own_in_declared: bool,
    /// Whether a thread was refused that would be needed.
    is_starved: bool,
    listening: Option<Arc<Parker>>,
}

impl Region {
    fn enter() -> Self {
        Region::enter_with(None, None, Dependency::Other)
    }

    /// For a wait with [`park`](Self::park): `parker` is also told when the system refuses a thread.
    pub(crate) fn enter_to_park(parker: &Arc<Parker>, dependency: Dependency) -> Self {
        Region::enter_with(Some(parker), None, dependency)
    }

    /// For a wait that depends on `pool`, also if the caller is no worker.
    pub(crate) fn enter_to_wait_for(pool: Arc<Shared>, parker: &Arc<Parker>) -> Self {
        let dependency = Dependency::Pool(pool.id());
        Region::enter_with(Some(parker), Some(pool), dependency)
    }

    fn enter_with(
        parker: Option<&Arc<Parker>>,
        pool: Option<Arc<Shared>>,
        dependency: Dependency,
    ) -> Self {
        let role = role().filter(|role| match role.phase {
            Phase::Tasks => true,
            // Each worker that was started in its place would be in the same hook. What it waits for may be a task of
            // the pool, though.
            Phase::StartHook => parker.is_some() && role.pool.may_wait_in_hook(),
        });
        let own = role.as_ref().map(|role| Dependency::Pool(role.pool.id()));
        let phase = role.as_ref().map_or(Phase::Tasks, |role| role.phase);
        let waits_for_own = own == Some(dependency);
        let is_exempt = waits_for_own || phase == Phase::StartHook;
        let kind = if is_exempt { Kind::Own } else { Kind::Declared };
        let pool = pool.filter(|_| !waits_for_own);
        let mut region = Region {
            own_pool: role.as_ref().map(|role| Arc::clone(&role.pool)),
            other_pool: pool,
            phase,
            kind,
            waits_for_own,
            is_counted: role.as_ref().is_some_and(|role| role.region.is_none()),
            is_own_in_declared: kind == Kind::Own
                && role.as_ref().is_some_and(|role| role.region == Some(Kind::Declared)),
            is_starved: false,
            listening: parker.cloned(),
        };
        // First of all: a refusal that comes after this is heard.
        if let Some(parker) = parker {
            region.listened_to().for_each(|pool| pool.listen_for_refusals(parker));
        }
        if region.is_counted {
            set_region(Some(kind));
            if let Some(WorkerRole { pool, phase, .. }) = role {
                region.is_starved = !pool.enter_region(phase, kind);
            }
            // The other pool, if there is one, has to be asked as well.
            region.is_starved |= region.other_pool.as_ref().is_some_and(|pool| !pool.retry());
        } else if region.is_own_in_declared {
            // The outer region may be one that is not replaced.
            set_region(Some(kind));
            if let Some(WorkerRole { pool, .. }) = role {
                region.is_starved = !pool.begin_own_wait() || !pool.retry();
            }
        } else if region.listening.is_some() {
            // Nobody has asked for a thread since it was refused: whoever entered the outer region does not.
            region.retry();
        }
        region
    }

    /// Those who may have to be asked for a thread again.
    fn listened_to(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.own_pool.iter().chain(&self.other_pool)
    }

    fn retry(&mut self) {
        // All of them, whatever the first one says.
        let refused = self.listened_to().filter(|pool| !pool.retry()).count();
        self.is_starved = refused > 0;
    }

    /// Whether the caller is a worker of the pool that it waits for.
    pub(crate) fn waits_for_own(&self) -> bool {
        self.waits_for_own
    }

    /// Whether the system has refused a thread while the calling worker was in this region.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Parks once: a recheck says that a thread was refused.
    pub(crate) fn park_once(&mut self, parker: &Parker, deadline: Option<Instant>) -> Signal {
        let signal = parker.park(deadline);
        self.is_starved |= signal == Signal::Recheck;
        signal
    }

    /// Parks until the parker is unparked or the deadline is over. If a thread is refused meanwhile, asks for
    /// it again, after a pause that grows: what the caller waits for may depend on it, and there may be
    /// nobody else to do it.
    pub(crate) fn park(&mut self, parker: &Parker, deadline: Option<Instant>) -> Signal {
        let mut pauses = Pauses::new();
        let mut retry_at = None;
        loop {
            if self.is_starved && retry_at.is_none() {
                retry_at = Some(Instant::now() + pauses.next());
            }
            let until = match (deadline, retry_at) {
                (Some(deadline), Some(retry_at)) => Some(cmp::min(deadline, retry_at)),
                (deadline, retry_at) => deadline.or(retry_at),
            };
            match self.park_once(parker, until) {
                Signal::Recheck => {}
                Signal::Expired if until != deadline => {
                    retry_at = None;
                    self.retry();
                }
                signal => return signal,
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(parker) = self.listening.take() {
            self.listened_to().for_each(|pool| pool.stop_listening(&parker));
        }
        let Some(pool) = self.own_pool.take() else { return };
        if self.is_counted {
            set_region(None);
            pool.exit_region(self.phase, self.kind);
        } else if self.is_own_in_declared {
            set_region(Some(Kind::Declared));
            pool.end_own_wait();
        }
    }
}
