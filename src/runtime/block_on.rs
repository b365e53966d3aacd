//! Drives a future to its end on a worker, for [`complete`](crate::ThreadPool::complete).
//!
//! Meanwhile the thread is marked as inside an executor of the `futures` crate, whose own executors then refuse to run:
//! they would block the worker without the pool's knowledge.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;

use futures_executor::{Enter, enter};

use crate::runtime::region::{Dependency, NO_LIMIT, wait_for};
use crate::sync::thread_local;
use crate::sync::unwind::{contain, discard};

thread_local! {
    /// Set inside [`block_on`]: keeps the `futures` executors from running there. `None` outside of it, or if the
    /// thread is inside such an executor already.
    static ENTERED: RefCell<Option<Enter>> = RefCell::new(None);
}

fn replace_entered(entered: Option<Enter>) -> Option<Enter> {
    ENTERED.try_with(|current| current.replace(entered)).ok().flatten()
}

/// Whether the thread is inside a `futures` executor that does not run in [`block_on`]. The pool cannot tell for those of other
/// crates.
pub(crate) fn is_in_foreign_executor() -> bool {
    let is_own = || ENTERED.try_with(|entered| entered.borrow().is_some()).unwrap_or(true);
    enter().is_err() && !is_own()
}

/// Runs `f` as if the thread were not inside [`block_on`]: a task on the stack of its waiter is not.
pub(crate) fn outside_of_executor<R>(f: impl FnOnce() -> R) -> R {
    struct Return;

    impl Drop for Return {
        fn drop(&mut self) {
            replace_entered(enter().ok());
        }
    }

    let _return = replace_entered(None).map(|_| Return);
    f()
}

/// Drives a future to its end on the calling thread, in a blocking region while it waits.
pub(crate) fn block_on<T: Future>(mut future: Pin<Box<T>>) -> T::Output {
    let outer = replace_entered(enter().ok());
    let result = contain(|| wait_for(future.as_mut(), None, Dependency::Future));
    drop(replace_entered(outer));
    // Drop it before unwinding: a destructor that panics while its future's panic unwinds aborts the process.
    discard(future);
    match result {
        Ok(output) => output.expect(NO_LIMIT),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
