//! Which groups' code the calling thread runs. A group's own task must not wait for the group.

use std::cell::RefCell;

use crate::sched::off_trampoline;
use crate::sync::thread_local;

thread_local! {
    /// The groups whose tasks the thread runs, the innermost last.
    static INSIDE: RefCell<Vec<GroupId>> = RefCell::new(Vec::new());
}

/// Identifies a group among those that exist at the same time: the address of its state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(usize);

impl GroupId {
    pub(super) fn of<T>(group: &T) -> Self {
        GroupId(std::ptr::from_ref(group).addr())
    }

    pub(super) fn address(self) -> usize {
        self.0
    }
}

/// Whether the calling code is part of a task of this group.
pub(super) fn is_inside(group: GroupId) -> bool {
    INSIDE.try_with(|groups| groups.borrow().contains(&group)).unwrap_or(false)
}

/// Calls `f`, which runs or drops part of a task, as code of the group.
pub(super) fn call_inside<R>(group: GroupId, f: impl FnOnce() -> R) -> R {
    struct Leave;

    impl Drop for Leave {
        fn drop(&mut self) {
            let _ = INSIDE.try_with(|groups| groups.borrow_mut().pop());
        }
    }

    let _ = INSIDE.try_with(|groups| groups.borrow_mut().push(group));
    let _leave = Leave;
    off_trampoline(f)
}
