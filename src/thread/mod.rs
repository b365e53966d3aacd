//! What the calling thread is: a worker of which pool, inside which executor, with how much stack.
//!
//! What needs more than a thread's identity stands in `sched/context.rs`. Others use
//!
//! - `Identity`, `identity`, `set_identity`: which worker of which pool the thread is.
//! - `PoolId`: names a pool.
//! - `begin_worker`, `nest`, `may_nest`: whether an awaited task may run on its stack.
//! - `inside_executor`: makes executors of the `futures` crate refuse to run in it.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::Arc;
use std::{ptr, thread};

use futures_executor::{Enter, enter};

use crate::crew::{Registry, ThreadKey};
use crate::sync::unwind::{OnDrop, contain};
use crate::sync::{start_thread, thread_local};

thread_local! {
    /// Which worker the thread is. Has no destructor, so that destructors of users' thread-locals
    /// can still read it.
    static IDENTITY: Cell<Option<Identity>> = const { Cell::new(None) };

    /// `None` for a thread outside of pools that runs no scope's tasks.
    static STACK: Cell<Option<Stack>> = const { Cell::new(None) };

    /// Set while the thread [drives a future](inside_executor). `None` otherwise, or if it is
    /// inside an executor of that crate already.
    static ENTERED: RefCell<Option<Enter>> = RefCell::default();
}

/// Identifies a pool: the address of its registry. It stays unique while a task of the pool has not
/// ended or a thread of the pool has not exited, since each such thread keeps the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(usize);

impl PoolId {
    pub(crate) fn of(registry: &Arc<Registry>) -> Self {
        PoolId(Arc::as_ptr(registry).addr())
    }
}

/// Which worker of which pool a thread is, from its first user code to its last.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) pool: PoolId,
    /// `None` after the stop hook: the index may be another worker's by then.
    pub(crate) index: Option<usize>,
    /// Set once the worker has run its last task.
    pub(crate) leaving: Option<ThreadKey>,
}

pub(crate) fn identity() -> Option<Identity> {
    IDENTITY.try_with(Cell::get).ok().flatten()
}

/// Sets which worker of the pool the calling thread is.
pub(crate) fn set_identity(pool: PoolId, index: Option<usize>, leaving: Option<ThreadKey>) {
    let identity = Identity { pool, index, leaving };
    IDENTITY.with(|current| current.set(Some(identity)));
}

/// As much as a thread outside the pool nests, in bytes, since its outermost scope: its stack may
/// be of any size. One quarter of the smallest default of a main thread (1 MiB, on Windows).
const OUTSIDE: usize = 256 << 10;

/// The part of a thread's stack on which awaited tasks may begin.
#[derive(Clone, Copy)]
struct Stack {
    /// An address in its first frame.
    base: usize,
    len: usize,
    /// The size of the whole stack. `None` if it is not known.
    size: Option<usize>,
}

impl Stack {
    fn begin(len: usize, size: Option<usize>) -> Self {
        Stack { base: here(), len, size }
    }

    /// A stack may grow in either direction.
    fn has_room(self) -> bool {
        here().abs_diff(self.base) < self.len || self.has_last_room()
    }

    /// Whether no thread is to be had, which would continue a chain of waits, and an eighth of the
    /// stack is left for the task: little, but a wait might not end. The thread that is tried is
    /// one more for each half of a stack.
    #[cold]
    fn has_last_room(self) -> bool {
        let has_room = |size| here().abs_diff(self.base) < size - size / 8;
        self.size.is_some_and(|size| has_room(size) && is_thread_refused(size))
    }
}

/// Whether the system refuses a thread now.
fn is_thread_refused(stack_size: usize) -> bool {
    match start_thread("elasti-probe".into(), Some(stack_size), Box::new(|| ())) {
        Ok(thread) => {
            // Otherwise it might outlive the pool (law 9).
            let _ = thread.join();
            false
        }
        Err(_) => true,
    }
}

/// Returns an address in the caller's frame, or close to it.
fn here() -> usize {
    let local = 0_u8;
    ptr::from_ref(black_box(&local)).addr()
}

/// The calling thread, a worker whose stack has this size, begins.
///
/// It begins an awaited task on top of others only while it has used less than half of its stack.
/// So the task has one half at least: as much as a task that does not wait may count on, less a
/// constant factor. Where a chain of waits is longer, a new thread continues it.
pub(crate) fn begin_worker(stack_size: usize) {
    STACK.with(|stack| stack.set(Some(Stack::begin(stack_size / 2, Some(stack_size)))));
}

/// Calls `f`, which runs awaited tasks on the calling thread: not inside an executor that their
/// waiter is in.
pub(crate) fn nest<R>(f: impl FnOnce() -> R) -> R {
    let begins = |stack: &Cell<Option<Stack>>| {
        let is_outermost = stack.get().is_none();
        if is_outermost {
            stack.set(Some(Stack::begin(OUTSIDE, None)));
        }
        is_outermost
    };
    let is_outermost = STACK.try_with(begins).unwrap_or(false);
    let _end = is_outermost.then(|| OnDrop(|| _ = STACK.try_with(|stack| stack.set(None))));
    let _return = replace_entered(None).map(|_| OnDrop(|| _ = replace_entered(enter().ok())));
    f()
}

/// Whether a waiting thread may run the task that it waits for on its own stack (law 10). Otherwise
/// it only waits, a worker in a blocking region: then another thread runs the task.
///
/// Not while the thread unwinds: the task would see [`panicking`](thread::panicking) return `true`.
/// Not inside another crate's executor, as far as the pool can tell: the task would find itself
/// inside that executor, and could not enter it again. And not if little of the stack is left: a
/// chain of waits would overflow it. While the system refuses threads, less is enough.
///
/// On a worker that has used half
/// of its stack, starts a thread and joins it, to see whether the system refuses one.
pub(crate) fn may_nest() -> bool {
    let has_room = || STACK.try_with(|stack| stack.get().is_none_or(Stack::has_room));
    !thread::panicking() && !is_in_foreign_executor() && has_room().unwrap_or(true)
}

fn replace_entered(entered: Option<Enter>) -> Option<Enter> {
    ENTERED.try_with(|current| current.replace(entered)).ok().flatten()
}

/// Whether the thread is inside a `futures` executor that the pool has not marked it for. The pool
/// cannot tell for those of other crates.
fn is_in_foreign_executor() -> bool {
    let is_own = || ENTERED.try_with(|entered| entered.borrow().is_some()).unwrap_or(true);
    enter().is_err() && !is_own()
}

/// Calls `f` as if inside an executor of the `futures` crate, and contains its panic. Those of that
/// crate then refuse to run: they would block the worker without the pool's knowledge.
pub(crate) fn inside_executor<R>(f: impl FnOnce() -> R) -> thread::Result<R> {
    let outer = replace_entered(enter().ok());
    let result = contain(f);
    drop(replace_entered(outer));
    result
}
