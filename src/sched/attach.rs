//! Making a task's [attachment](crate::task::attachment) when the task is submitted: a part for
//! each [observer](crate::observe::Observe) of the pool.

use crate::sched::route::Route;
use crate::sync::unwind::{contain, discard};
use crate::task::attachment::{Attachment, Line, Submission};

impl Route<'_> {
    /// Whether it leads to the default view of a pool without observers.
    #[inline]
    pub(crate) fn is_default_without_observers(self) -> bool {
        self.view.is_none() && self.shared.observers.is_empty()
    }

    /// Returns the attachment of a task that is submitted now. Mostly there is none. A part that
    /// panics is left out.
    #[inline]
    pub(crate) fn attachment(self, line: Line, is_future: bool) -> Option<Attachment> {
        if self.shared.observers.is_empty() { None } else { self.attach(line, is_future) }
    }

    #[cold]
    fn attach(self, line: Line, is_future: bool) -> Option<Attachment> {
        let submission = Submission { pool: &self.shared.config.name, line, is_future };
        let mut parts = Vec::new();
        for observer in &self.shared.observers {
            let part = contain(|| observer.submitted(submission));
            parts.extend(part.map_err(discard).ok().flatten());
        }
        Attachment::new(parts)
    }
}
