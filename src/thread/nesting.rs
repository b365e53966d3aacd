//! Whether a waiting thread may run the task that it waits for on its own stack (law 10). Otherwise
//! it only waits, a worker in a blocking region: then another thread runs the task.
//!
//! Not while the thread unwinds: the task would see [`panicking`](thread::panicking) return `true`.
//! Not inside another crate's executor, as far as the pool can tell: the task would find itself
//! inside that executor, and could not enter it again. And not if little of the stack is left: a
//! chain of waits would overflow it. While the system refuses threads, less is enough.

use std::cell::Cell;
use std::hint::black_box;
use std::{ptr, thread};

use crate::sync::{start_thread, thread_local};
use crate::thread::executor::is_in_foreign_executor;

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

thread_local! {
    /// `None` for a thread outside of pools that runs no scope's tasks.
    static STACK: Cell<Option<Stack>> = Cell::new(None);
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

/// Calls `f`, which runs awaited tasks on the calling thread.
pub(crate) fn nest<R>(f: impl FnOnce() -> R) -> R {
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            let _ = STACK.try_with(|stack| stack.set(None));
        }
    }

    let begins = |stack: &Cell<Option<Stack>>| {
        let is_outermost = stack.get().is_none();
        if is_outermost {
            stack.set(Some(Stack::begin(OUTSIDE, None)));
        }
        is_outermost
    };
    let is_outermost = STACK.try_with(begins).unwrap_or(false);
    let _end = is_outermost.then(|| End);
    f()
}

/// Whether the calling thread may run an awaited task on its stack. On a worker that has used half
/// of its stack, starts a thread and joins it, to see whether the system refuses one.
pub(crate) fn may_nest() -> bool {
    let has_room = || STACK.try_with(|stack| stack.get().is_none_or(Stack::has_room));
    !thread::panicking() && !is_in_foreign_executor() && has_room().unwrap_or(true)
}
