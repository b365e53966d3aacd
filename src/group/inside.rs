//! Which groups' code the calling thread runs. A group's own task must not wait for the group.

use std::cell::RefCell;

use crate::sched::off_trampoline;
use crate::sync::thread_local;

thread_local! {
    /// The groups whose tasks the thread runs, the innermost last.
    static INSIDE: RefCell<Vec<usize>> = RefCell::default();
}

/// Whether the calling code is part of a task of the group with this [id](super::state::Inner::id).
pub(super) fn is_inside(group: usize) -> bool {
    INSIDE.try_with(|groups| groups.borrow().contains(&group)).unwrap_or(false)
}

/// Calls `f`, which runs or drops part of a task, as code of the group. It does not panic.
pub(super) fn call_inside<R>(group: usize, f: impl FnOnce() -> R) -> R {
    let _ = INSIDE.try_with(|groups| groups.borrow_mut().push(group));
    let result = off_trampoline(f);
    let _ = INSIDE.try_with(|groups| groups.borrow_mut().pop());
    result
}
