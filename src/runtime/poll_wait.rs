//! Which pending polls of handles and groups block a worker. That depends on who polls:
//!
//! - The pool polls a spawned future. When the poll returns, the worker goes on: nothing blocks it.
//! - The pool drives a future to its end, on a thread that [waits for it](super::region::wait_for). It counts the handles and
//!   groups of the worker's pool that are pending. While there are any, its wait is a blocking region.
//! - A closure polls, by the executor of another crate, which then blocks the thread out of the pool's sight (race 47). From the
//!   first pending poll, the worker is in a blocking region: until all that are pending have been polled with a result or
//!   dropped, or the closure ends. The closure may also compute meanwhile. Then it still counts as blocked, and the pool may run
//!   one worker more. No poll waits: at the end of the region the worker runs at once, however many others do.
//!
//! The worker itself begins and ends the region. Another thread that polls or drops a handle only subtracts from the count: the
//! worker notices when it next waits for the pool, or when its closure ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::runtime::compensate::Return;
use crate::runtime::context::{RegionKind, WorkerContext, is_hook_of, worker, works_for};
use crate::runtime::identity::PoolId;
use crate::sync::{Counter, thread_local};

/// What the calling thread does, as far as polls are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// It runs a closure, or is outside of the pools.
    Closure,
    /// The pool polls on it.
    Pool,
    /// It runs a closure whose polls have begun a region. The kind of the region around that one.
    Waits(Option<RegionKind>),
}

// Read at the end of each task.
#[cfg(not(elastipool_loom))]
thread_local! {
    static DRIVER: Cell<Driver> = const { Cell::new(Driver::Closure) };
}

#[cfg(elastipool_loom)]
thread_local! {
    static DRIVER: Cell<Driver> = Cell::new(Driver::Closure);
}

thread_local! {
    /// How many handles and groups of the thread's own pool are pending: of the future that the pool drives, or of a closure.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static WAITS: RefCell<Option<Arc<Counter>>> = RefCell::new(None);
}

#[inline]
fn driver() -> Driver {
    DRIVER.try_with(Cell::get).unwrap_or(Driver::Pool)
}

fn replace_waits(waits: Option<Arc<Counter>>) -> Option<Arc<Counter>> {
    WAITS.try_with(|current| current.replace(waits)).ok().flatten()
}

fn waits() -> Option<Arc<Counter>> {
    WAITS.try_with(|waits| waits.borrow().clone()).ok().flatten()
}

pub(super) fn has_waits() -> bool {
    WAITS.try_with(|waits| waits.borrow().is_some()).unwrap_or(false)
}

/// Whether a pending poll may block the calling thread.
fn may_block() -> bool {
    driver() != Driver::Pool || has_waits()
}

/// Whether a pending poll on the calling thread counts as a wait for `pool`.
pub(crate) fn may_count(pool: PoolId) -> bool {
    may_block() && works_for(pool)
}

/// Whether a pending poll may block a worker of the pool, or a hook.
pub(crate) fn may_block_own(pool: PoolId) -> bool {
    may_block() && (works_for(pool) || is_hook_of(pool))
}

/// Counts a handle or a group among the waits of the thread that polls it: from its first pending poll until it is
/// ready or dropped. Looking at the thread's last poll alone would miss some: a combinator polls only the children that
/// have been woken.
#[derive(Debug, Default)]
pub(crate) struct PollWait(Option<Arc<Counter>>);

impl PollWait {
    /// Counts the wait after a pending poll on the calling thread, if that is a worker of the awaited task's `pool`.
    pub(crate) fn begin(&mut self, pool: PoolId) {
        let begins = if driver() == Driver::Closure { may_begin_region(pool) } else { None };
        let now = match &begins {
            Some(_) => Some(Arc::new(Counter::default())),
            None => waits().filter(|_| works_for(pool)),
        };
        if self.0.as_ref().map(Arc::as_ptr) == now.as_ref().map(Arc::as_ptr) {
            return;
        }
        self.end();
        if let Some(waits) = &now {
            waits.increment();
        }
        self.0.clone_from(&now);
        if let Some(worker) = begins {
            begin_region(&worker, now);
        }
    }

    /// Ends the wait after a ready poll.
    pub(crate) fn end(&mut self) {
        let Some(ended) = self.0.take() else { return };
        ended.decrement();
        let is_own = |waits: &RefCell<Option<Arc<Counter>>>| {
            waits.borrow().as_ref().is_some_and(|own| Arc::ptr_eq(own, &ended))
        };
        if WAITS.try_with(is_own).unwrap_or(false) {
            end_region_if_over();
        }
    }
}

impl Drop for PollWait {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the calling worker, if its polls may begin a region. In a region that counts as a wait for the pool, they need none.
fn may_begin_region(pool: PoolId) -> Option<Rc<WorkerContext>> {
    worker().filter(|worker| {
        let is_in_own = worker.region.get() == Some(RegionKind::Own);
        worker.shared.id() == pool && !is_in_own && worker.may_wait()
    })
}

#[cold]
fn begin_region(worker: &WorkerContext, waits: Option<Arc<Counter>>) {
    // Set before the pool is told, which may call user code.
    DRIVER.with(|driver| driver.set(Driver::Waits(worker.region.get())));
    replace_waits(waits);
    worker.change_region(Some(RegionKind::Own), Return::AtOnce);
}

#[cold]
fn end_region(outer: Option<RegionKind>) {
    // `None` while user code runs as if outside of the worker.
    let Some(worker) = worker() else { return };
    DRIVER.with(|driver| driver.set(Driver::Closure));
    drop(replace_waits(None));
    worker.change_region(outer, Return::AtOnce);
}

/// Ends the region that a closure's polls have begun, if no handle is pending any more.
#[inline]
pub(super) fn end_region_if_over() {
    if let Driver::Waits(outer) = driver() {
        if waits().is_none_or(|waits| waits.get() == 0) {
            end_region(outer);
        }
    }
}

/// Whether the calling thread runs a closure in which an executor of another crate waits for the pool. Ends that region first, if it is
/// over.
#[inline]
pub(super) fn is_waiting() -> bool {
    end_region_if_over();
    matches!(driver(), Driver::Waits(_))
}

/// Ends the region that polls have begun, if any: the closure has ended, or a region around that one ends.
#[inline]
pub(super) fn end_waits() {
    if let Driver::Waits(outer) = driver() {
        end_region(outer);
    }
}

/// Whether the calling thread does anything that a task on top of it must not see.
#[inline]
pub(super) fn is_polling() -> bool {
    driver() != Driver::Closure
}

/// What a thread does meanwhile, until this is dropped.
pub(super) struct Meanwhile {
    outer: Driver,
    waits: Option<Arc<Counter>>,
}

impl Meanwhile {
    /// Only a future that the pool drives to its end has a counter of its `waits`. Those of a closure on top of another task do not count
    /// for that one.
    pub(super) fn begin(driver: Driver, waits: Option<Arc<Counter>>) -> Self {
        let outer = DRIVER.try_with(|current| current.replace(driver)).unwrap_or(Driver::Pool);
        Meanwhile { outer, waits: replace_waits(waits) }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        end_waits();
        let _ = DRIVER.try_with(|driver| driver.set(self.outer));
        drop(replace_waits(self.waits.take()));
    }
}

/// Calls a closure from the poll that runs it: what the closure polls is not polled by the pool.
pub(crate) fn in_closure<R>(f: impl FnOnce() -> R) -> R {
    let _poll = Meanwhile::begin(Driver::Closure, None);
    f()
}

/// Calls `f`, a poll that the pool makes, which does not panic.
#[inline(always)]
pub(crate) fn in_poll<R>(f: impl FnOnce() -> R) -> R {
    let outer = DRIVER.try_with(|driver| driver.replace(Driver::Pool));
    let result = f();
    if let Ok(outer) = outer {
        let _ = DRIVER.try_with(|driver| driver.set(outer));
    }
    result
}
