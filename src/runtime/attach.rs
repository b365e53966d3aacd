//! Making a task's [attachment](crate::task::attachment): what the pool's builder asks for is captured when the task is
//! submitted.

use std::sync::Arc;

use crate::runtime::route::Route;
use crate::sync::unwind::{contain, discard};
use crate::task::attachment::{Attachment, Line, Submission};
use crate::task::expiry::Expiry;
use crate::task::job::Job;

impl Route<'_> {
    /// Whether it leads to the default view of a pool that attaches nothing to its tasks.
    #[inline]
    pub(crate) fn is_default_without_attachers(self) -> bool {
        self.view.is_none() && self.shared.attachers.is_empty()
    }

    /// Wraps the job of a closure if it expires, or if the pool attaches something to its tasks.
    #[inline]
    pub(crate) fn wrap(self, job: Job, expiry: Option<Arc<Expiry>>, line: Line) -> Job {
        if expiry.is_none() && self.shared.attachers.is_empty() {
            return job;
        }
        self.wrap_rare(job, expiry, line)
    }

    /// Not inlined, so that the job of most tasks is not copied: the CPU waits when it reads what it has just written.
    #[cold]
    fn wrap_rare(self, job: Job, expiry: Option<Arc<Expiry>>, line: Line) -> Job {
        let job = match self.attachment(line, false) {
            Some(attachment) => job.with_attachment(attachment),
            None => job,
        };
        // Outside of the attachment, which an expired task does not enter.
        match expiry {
            Some(expiry) => job.expiring(expiry),
            None => job,
        }
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
