//! Notifying a worker of queued work: wake an idle one, or start a thread.

use std::io;
use std::sync::Arc;

use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::shared::Shared;
use crate::runtime::sizes::Growth;
use crate::runtime::spawn::StartError;
use crate::sync::{Ordering, fence};

impl Shared {
    pub(super) fn wake_or_start(self: &Arc<Self>, fills_core: bool) {
        let started = fills_core
            && self.is_below_core(self.counts.load())
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok();
        // If one was started it may be slow: one that is idle now is quicker.
        self.notify(!started);
    }

    /// Sees to it that somebody looks for the work that is queued: wakes an idle worker or, if
    /// `may_start` and none is idle, starts one; unless somebody is on the way already, who will
    /// call this in turn, or keeps the watch. `false` if the system refused the thread.
    ///
    /// The caller has queued a task, ended a search, or made room for a worker, and fenced.
    pub(crate) fn notify(self: &Arc<Self>, may_start: bool) -> bool {
        loop {
            let now = self.counts.load();
            let max_size = self.sizes.max();
            // Each of those that are running looks at the queue before it stops to run.
            if now.has_searcher() || !now.has_spare_capacity(max_size) {
                return true;
            }
            if now.idle() > 0 {
                if let Some(parker) = self.idle.claim(&self.counts, max_size) {
                    parker.unpark();
                    return true;
                }
                // They were claimed or have withdrawn since, or the limit has been reached.
                continue;
            }
            if !may_start || self.waits_for_hooks(now) {
                return true;
            }
            if now.has_stall_monitor() || !now.may_start(max_size) {
                return true;
            }
            // A submitter may be slower than its task: no thread is started for one that has been taken.
            let queued = self.queue.len();
            let enough = self.enough(queued);
            if queued == 0 || !now.may_start_more(enough) {
                return true;
            }
            let Some(starting) = self.counts.begin_starting(max_size, enough) else {
                continue;
            };
            // Some of the tasks may have been taken since they were counted, by threads that were starting then.
            let started = if starting > self.queue.len() {
                Err(StartError::AtLimit)
            } else {
                self.start_for_queue(Some(Search::Starting))
            };
            if started.is_err() {
                self.counts.end_search(Search::Starting);
                // As race 2: others may have relied on this attempt.
                fence(Ordering::SeqCst);
            }
            match started {
                Ok(()) | Err(StartError::Over) => return true,
                // There may be more tasks, or capacity, again.
                Err(StartError::AtLimit) => {}
                // The tasks (this one, and those whose submitters have relied on this attempt) run on
                // the workers there are: there is at least one, and none of them goes idle without a
                // look at the queue. If all of them are in blocking regions they have to ask again.
                Err(StartError::Refused(_)) => {
                    self.blocked.recheck_all();
                    return false;
                }
            }
        }
    }

    /// Ends a search that was successful, and passes it on if more work is queued. `false` if the system refused the
    /// thread that this would have taken.
    pub(crate) fn notify_next(self: &Arc<Self>, search: Option<Search>) -> bool {
        !self.end_search(search) || self.queue.is_empty() || self.notify(true)
    }

    /// As [`notify_next`](Self::notify_next), by one that knows of more work. (To look for it means to read what others write.)
    pub(crate) fn notify_more(self: &Arc<Self>, search: Option<Search>) {
        if self.end_search(search) {
            self.notify(true);
        }
    }

    /// Ends a search. `false` if there is nobody to pass it on to.
    pub(super) fn end_search(&self, search: Option<Search>) -> bool {
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        // Race 2: whoever saw the search and relied on it queued first; the look comes after its end.
        fence(Ordering::SeqCst);
        self.counts.load().has_spare_capacity(self.sizes.max())
    }

    /// How many threads may be on their way for so many tasks, if there may be more than one: not more than tasks, less
    /// those that workers in their start hooks will take.
    pub(super) fn enough(&self, queued: usize) -> usize {
        match self.config.growth {
            Growth::Eager => queued.saturating_sub(self.in_start_hook.load(Ordering::Relaxed)),
            Growth::Stalled(_) => 1,
        }
    }

    /// Under [`Growth::Stalled`], a worker in its start hook is on its way to the queue, and will look at it or watch
    /// over it. (One that waits for others is not; whoever is away makes up for that.)
    pub(super) fn waits_for_hooks(&self, now: Snapshot) -> bool {
        self.config.growth != Growth::Eager
            && self.in_start_hook.load(Ordering::Relaxed) > now.blocked()
    }

    /// Gives up a new worker's search before its start hook: that may take its time, and neither an idle
    /// worker nor further starts must wait for it.
    pub(crate) fn enter_start_hook(self: &Arc<Self>, search: Option<Search>) {
        let in_hooks = 1 + self.in_start_hook.fetch_add(1, Ordering::Relaxed);
        if let Some(search) = search {
            self.counts.end_search(search);
        }
        fence(Ordering::SeqCst);
        // One task does not start a crowd because the first workers are slow to start: they look at the queue after
        // their hooks, and pass on what they do not take.
        if self.queue.len() > in_hooks {
            self.notify(true);
        }
    }

    pub(crate) fn exit_start_hook(&self) {
        self.in_start_hook.fetch_sub(1, Ordering::Relaxed);
        // As race 2: whoever relied on this worker has pushed before, and its next look is at the queue.
        fence(Ordering::SeqCst);
    }

    /// Starts the first worker if there is none. `Ok` says whether one was started here.
    pub(super) fn start_first(self: &Arc<Self>) -> Result<bool, io::Error> {
        // It searches for the task that is about to be queued, so that nobody starts another for it.
        let search = self.counts.begin_starting(1, 1).map(|_| Search::Starting);
        let started = self.start_worker(search, |now| now.total() == 0);
        if started.is_err() && search.is_some() {
            // Others may have relied on it, with tasks for a worker that somebody else has started.
            self.notify_next(search);
        }
        match started {
            Ok(()) => Ok(true),
            Err(StartError::AtLimit | StartError::Over) => Ok(false),
            Err(StartError::Refused(error)) => Err(error),
        }
    }
}
