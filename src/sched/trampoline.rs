//! Runs follow-up work iteratively instead of nested: each call may lead to another, and a chain of
//! nested calls would overflow the stack.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::sched::route::{OwnedRoute, Route};
use crate::sync::thread_local;
use crate::task::Job;

/// A deferred call with a task.
type Deferral = (OwnedRoute, Job, fn(Route<'_>, Job));

/// The calls that [`trampoline`] has yet to make. `None` while it is not running.
type Steps = Option<VecDeque<Deferral>>;

thread_local! {
    static STEPS: RefCell<Steps> = RefCell::default();
}

/// Calls `what` with the task. Inside of another such call, defers it until that one has returned.
pub(crate) fn trampoline(route: Route<'_>, job: Job, what: fn(Route<'_>, Job)) {
    let mut next = Some((OwnedRoute::new(route), job, what));
    let _ = STEPS.try_with(|steps| match &mut *steps.borrow_mut() {
        Some(steps) => steps.extend(next.take()),
        none => *none = Some(VecDeque::new()),
    });
    let is_outermost = next.is_some();
    while let Some((route, job, what)) = next {
        what(route.route(), job);
        next = STEPS.try_with(|steps| steps.borrow_mut().as_mut()?.pop_front()).ok().flatten();
    }
    if is_outermost {
        replace_steps(None);
    }
}

fn replace_steps(steps: Steps) -> Steps {
    STEPS.try_with(|current| current.replace(steps)).ok().flatten()
}

/// Runs user code off the trampoline: its follow-up work is not deferred to a call below it,
/// because the code may wait for that work. `f` does not panic.
pub(crate) fn off_trampoline<R>(f: impl FnOnce() -> R) -> R {
    // Mostly it does not run, and then nothing is moved.
    if !STEPS.try_with(|steps| steps.borrow().is_some()).unwrap_or(false) {
        return f();
    }
    let left = replace_steps(None);
    let result = f();
    replace_steps(left);
    result
}
