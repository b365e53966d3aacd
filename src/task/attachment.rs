//! What a pool keeps beside a task if its builder asks for it: the submitter's context, and the
//! record for a report.
//!
//! An attachment is entered on the thread that runs the task, before the closure is called or the
//! future polled, and left afterwards. It is part of the task's [route](crate::sched::TaskRoute).
//! So a pool without attachments pays one test for each task.

use std::any::Any;
use std::mem;
use std::panic::Location;

use crate::sync::unwind::{contain, discard};

/// The source line that submitted a task.
pub(crate) type Line = &'static Location<'static>;

/// What is known of a task when it is submitted.
#[derive(Clone, Copy)]
pub(crate) struct Submission<'a> {
    /// The pool's name.
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "only metrics name it"))]
    pub(crate) pool: &'a str,
    pub(crate) line: Line,
    pub(crate) is_future: bool,
}

/// One part of an attachment. Dropped with the task, whether it was run or not. Its methods are
/// called under no lock: those of the tracker take one, and ask the keeper.
pub(crate) trait Enter: Send + Sync {
    /// Enters it on the calling thread, which runs the task next. Dropping the result leaves it.
    /// May panic.
    fn enter(&self) -> Box<dyn Any>;

    /// The task has ended. Its memory, and so its attachment, may stay until its last waker or its
    /// entry is dropped.
    fn end(&self) {}
}

/// See the [module's documentation](self).
pub(crate) struct Attachment(Box<[Box<dyn Enter>]>);

/// An entered attachment. Parts are left in reverse order.
#[must_use]
pub(crate) struct Entered(Vec<Box<dyn Any>>);

impl Attachment {
    /// `None` without parts.
    pub(crate) fn new(parts: Vec<Box<dyn Enter>>) -> Option<Self> {
        (!parts.is_empty()).then(|| Attachment(parts.into_boxed_slice()))
    }

    /// Contains panics: a part that panics is not entered.
    pub(crate) fn enter(&self) -> Entered {
        let entered = self.0.iter().map(|part| contain(|| part.enter()));
        Entered(entered.filter_map(|entered| entered.map_err(discard).ok()).collect())
    }

    /// Tells each part that the task has ended. The parts themselves may stay until its last waker
    /// or its entry is dropped.
    pub(crate) fn end(&self) {
        for part in self.0.iter() {
            part.end();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        while let Some(part) = self.0.pop() {
            discard(part);
        }
    }
}

/// Contains panics of the parts' destructors.
impl Drop for Attachment {
    fn drop(&mut self) {
        for part in mem::take(&mut self.0) {
            discard(part);
        }
    }
}
