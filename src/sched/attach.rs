//! Making a task's [attachment](crate::task::attachment): what the pool's builder asks for is captured when the task is
//! submitted.

use crate::sched::route::Route;
use crate::sync::unwind::{contain, discard};
use crate::task::attachment::{Attachment, Line, Submission};

impl Route<'_> {
    /// Whether it leads to the default view of a pool that attaches nothing to its tasks.
    #[inline]
    pub(crate) fn is_default_without_attachers(self) -> bool {
        self.view.is_none() && self.shared.attachers.is_empty()
    }

    /// Returns the attachment of a task that is submitted now. Mostly there is none. A part that panics is left out.
    #[inline]
    pub(crate) fn attachment(self, line: Line, is_future: bool) -> Option<Attachment> {
        if self.shared.attachers.is_empty() { None } else { self.attach(line, is_future) }
    }

    #[cold]
    fn attach(self, line: Line, is_future: bool) -> Option<Attachment> {
        let submission = Submission { pool: &self.shared.config.name, line, is_future };
        let mut parts = Vec::new();
        for attacher in &self.shared.attachers {
            let part = contain(|| attacher.attach(submission));
            parts.extend(part.map_err(discard).ok().flatten());
        }
        Attachment::new(parts)
    }
}
