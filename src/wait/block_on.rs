//! Drives a future to its end on a worker, for [`complete`](crate::ThreadPool::complete).
//!
//! Meanwhile the thread is marked (`thread/executor.rs`) as inside an executor of the `futures`
//! crate, whose own executors then refuse to run.

use std::future::Future;
use std::pin::Pin;

use crate::sched::{Dependency, NO_LIMIT, wait_for};
use crate::sync::unwind::discard;
use crate::thread::inside_executor;

/// Drives a future to its end on the calling thread, in a blocking region while it waits.
pub(crate) fn block_on<T: Future>(mut future: Pin<Box<T>>) -> T::Output {
    let result = inside_executor(|| wait_for(future.as_mut(), None, Dependency::Future));
    // Drop it before unwinding: a destructor that panics while its future's panic unwinds aborts
    // the process.
    discard(future);
    match result {
        Ok(output) => output.expect(NO_LIMIT),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
