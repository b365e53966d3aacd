//! Whether the calling thread is inside an executor of the `futures` crate.
//!
//! While a worker drives a future to its end ([`inside_executor`]) it is marked as inside such an
//! executor: those of that crate then refuse to run. They would block the worker without the pool's
//! knowledge.

use std::cell::RefCell;
use std::thread;

use futures_executor::{Enter, enter};

use crate::sync::thread_local;
use crate::sync::unwind::contain;

thread_local! {
    /// Set while the thread [drives a future](inside_executor). `None` otherwise, or if it is
    /// inside an executor of that crate already.
    static ENTERED: RefCell<Option<Enter>> = RefCell::new(None);
}

fn replace_entered(entered: Option<Enter>) -> Option<Enter> {
    ENTERED.try_with(|current| current.replace(entered)).ok().flatten()
}

/// Whether the thread is inside a `futures` executor that the pool has not marked it for. The pool
/// cannot tell for those of other crates.
pub(crate) fn is_in_foreign_executor() -> bool {
    let is_own = || ENTERED.try_with(|entered| entered.borrow().is_some()).unwrap_or(true);
    enter().is_err() && !is_own()
}

/// Runs `f` as if the thread were not inside an executor: a task on the stack of its waiter is not.
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

/// Calls `f` as if inside an executor of that crate, and contains its panic.
pub(crate) fn inside_executor<R>(f: impl FnOnce() -> R) -> thread::Result<R> {
    let outer = replace_entered(enter().ok());
    let result = contain(f);
    drop(replace_entered(outer));
    result
}
