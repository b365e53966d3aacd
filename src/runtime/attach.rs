//! Making a task's [attachment](crate::task::attachment): what the pool's builder asks for is captured when the task is
//! submitted.

use std::sync::Arc;

use crate::runtime::route::Route;
use crate::sync::unwind::{contain, discard};
use crate::task::attachment::{Attachment, Line, Submission};
use crate::task::evaluation::Extras;
use crate::task::expiry::Expiry;
use crate::task::job::Job;

impl Route<'_> {
    /// Makes the job of a closure without a handle. Wraps it if it is of a view with a queue timeout, or if the pool attaches
    /// something to its tasks.
    ///
    /// The job is made in each branch, and returned with the handle, because the compiler copies it otherwise.
    #[inline(always)]
    pub(crate) fn wrap(self, make: impl FnOnce() -> Job, line: Line) -> (Job, ()) {
        if self.is_default_without_attachers() {
            return (make(), ());
        }
        (self.wrap_slow(make(), self.expiry(), line), ())
    }

    /// Whether it leads to the default view of a pool that attaches nothing to its tasks.
    #[inline]
    pub(crate) fn is_default_without_attachers(self) -> bool {
        self.view.is_none() && !self.has_attachers()
    }

    /// As [`wrap`](Self::wrap), for a job that was made before, and an expiry that a handle may share.
    #[inline]
    pub(crate) fn wrap_expiring(self, job: Job, expiry: Option<Arc<Expiry>>, line: Line) -> Job {
        if expiry.is_none() && !self.has_attachers() {
            return job;
        }
        self.wrap_slow(job, expiry, line)
    }

    /// Not inlined, so that the job of most tasks is not copied: the CPU waits when it reads what it has just written.
    #[cold]
    fn wrap_slow(self, job: Job, expiry: Option<Arc<Expiry>>, line: Line) -> Job {
        let attachment = if self.has_attachers() { self.attachment(line, false) } else { None };
        let job = match attachment {
            Some(attachment) => job.with_attachment(attachment),
            None => job,
        };
        // Outside of the attachment, which an expired task does not enter.
        match expiry {
            Some(expiry) => job.expiring(expiry),
            None => job,
        }
    }

    #[inline]
    fn has_attachers(self) -> bool {
        !self.shared.attachers.is_empty()
    }

    /// Makes what lies beside a closure with a handle, and its expiry, for the handle.
    #[inline(never)]
    pub(crate) fn extras(self, line: Line) -> (Option<Box<Extras>>, Option<Arc<Expiry>>) {
        if self.is_default_without_attachers() {
            return (None, None);
        }
        let (expiry, attachment) = (self.expiry(), self.attachment(line, false));
        let is_needed = expiry.is_some() || attachment.is_some();
        (is_needed.then(|| Box::new(Extras { expiry: expiry.clone(), attachment })), expiry)
    }

    /// Returns the attachment of a task that is submitted now. A part that panics is left out.
    pub(crate) fn attachment(self, line: Line, is_future: bool) -> Option<Attachment> {
        let submission = Submission { pool: &self.shared.config.name, line, is_future };
        let mut parts = Vec::new();
        for attacher in &self.shared.attachers {
            let part = contain(|| attacher.attach(submission));
            parts.extend(part.map_err(discard).ok().flatten());
        }
        Attachment::new(parts)
    }
}
