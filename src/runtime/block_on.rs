//! Driving a future to its end on a worker, for [`complete`](crate::ThreadPool::complete).
//!
//! Meanwhile the thread counts as being inside of an executor of `futures`: that crate's own executors refuse to run there,
//! which would block the worker without its pool's knowledge.

use std::cell::RefCell;
use std::future::Future;

use futures_executor::{Enter, enter};

use crate::runtime::region::{Dependency, wait_for};
use crate::sync::thread_local;
use crate::sync::unwind::{contain, discard};

thread_local! {
    /// Tells the executors of that crate not to run inside of [`block_on`]. `None` outside of it, and if the thread is inside
    /// of one of them already, which does no harm.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro does not know `const`")]
    static ENTERED: RefCell<Option<Enter>> = RefCell::new(None);
}

fn replace_entered(entered: Option<Enter>) -> Option<Enter> {
    ENTERED.try_with(|place| place.replace(entered)).ok().flatten()
}

/// Runs a task on the stack of one that waits for it. Only that one is perhaps inside of [`block_on`].
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

/// Drives a future to its end on this thread, in a blocking region while it waits.
pub(crate) fn block_on<T: Future>(future: T) -> T::Output {
    let mut future = Box::pin(future);
    let outer = replace_entered(enter().ok());
    let result = contain(|| wait_for(future.as_mut(), None, Dependency::Future));
    drop(replace_entered(outer));
    // Not dropped by the unwinding of its own panic: if its destructor panics as well, that would
    // abort the process.
    discard(future);
    match result {
        Ok(output) => output.expect("a wait without a limit does not time out"),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
