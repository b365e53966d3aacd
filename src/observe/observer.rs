//! What a pool's builder asks for beside running tasks: each *observer* is told what happens to the
//! tasks, and may add a part to each attachment (`task/attachment.rs`).
//!
//! Pools call their observers through `dyn`, and only methods of the builder make one. So a program
//! that calls none of these methods does not contain what they need.

use std::any::Any;
use std::sync::Arc;

use crate::keeper::UserCode;
use crate::report::Report;
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::unwind::{Contained, discard};
use crate::task::{Enter, Submission};

/// See the [module's documentation](self).
pub(crate) trait Observe: Send + Sync {
    /// A task is submitted, on this thread. Returns its part of the task's attachment. `None`:
    /// nothing is kept for it. May panic.
    fn submitted(&self, submission: Submission<'_>) -> Option<Box<dyn Enter>>;

    /// The innermost task of the pool on this thread enters a blocking region, or leaves it.
    fn set_blocked(&self, _is_blocked: bool) {}

    /// An immediate shutdown has emptied the queue.
    fn forget_queued(&self) {}

    /// The keeper looks for stalls in the pool of this name, as the observer has asked it to.
    /// Returns what the helper runs then.
    fn look_for_stalls(&self, _pool: &str, _stats: &dyn Fn() -> Stats) -> Option<UserCode> {
        None
    }

    /// Returns what the tasks of the pool of this name do, if this observer knows.
    fn report(&self, _pool: &str, _stats: Stats) -> Option<Report> {
        None
    }
}

/// A function, such as a hook of the user's, that captures the submitter's context. What it returns
/// enters the context. `None`: there is nothing to enter.
impl<F, E, G> Observe for Contained<F>
where
    F: Fn(Submission<'_>) -> Option<E> + Send + Sync,
    E: Fn() -> G + Send + Sync + 'static,
    G: 'static,
{
    fn submitted(&self, submission: Submission<'_>) -> Option<Box<dyn Enter>> {
        let context = self.get()(submission)?;
        Some(Box::new(Context(Mutex::new(Some(Arc::new(context))))))
    }
}

/// A captured context, until its task ends. Its destructor is the user's too, and must not run
/// where the last waker, or a stale entry, is dropped. The memory of a cancelled task may stay
/// longer, and would keep a span open.
struct Context<E>(Mutex<Option<Arc<E>>>);

impl<E, G> Enter for Context<E>
where
    E: Fn() -> G + Send + Sync,
    G: 'static,
{
    fn enter(&self) -> Box<dyn Any> {
        let context = self.0.lock().clone().expect("a task that has ended is not entered");
        Box::new(context())
    }

    fn end(&self) {
        let context = self.0.lock().take();
        discard(context);
    }
}
