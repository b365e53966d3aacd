//! What a worker has at hand: its own queue, and tasks that it has accepted in advance.
//!
//! A task that submits others does so through the desk of the worker it runs on. That costs no write to anything that
//! other workers write too, but for the fence that each submission needs:
//!
//! - The new task goes to the worker's [own queue](crate::queue), where the others find it.
//! - It is counted as in flight without being counted: the worker does not report each task that ends, so the count is
//!   too high by those, its *credit*, and a new task takes the place of one of them. If there is none the worker accepts
//!   several at once. The count is only ever too high, and only while the worker is busy; before it rests or leaves it
//!   gives the rest back. Whether the pool is closed is looked at for each task: a submission that finds it open comes
//!   before the close.
//!
//! A future that is woken by another one's poll goes to the same queue, and nobody else is woken for it: the worker's
//! next look is at that queue. If it takes something else from there, it sees to it that somebody comes. (A first poll may
//! be long, as any new task may, and a blocking region may wait for what was woken: there everybody hears of it.)
//!
//! In a pool with a bounded queue there are no desks: there each task needs room.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::job::Job;
use crate::queue::{Local, Queue};
use crate::shared::Shared;
use crate::stats::Tally;
use crate::sync::thread_local;

/// So many tasks are accepted at once.
const ADVANCE: usize = 16;

thread_local! {
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static DESK: RefCell<Option<Rc<Desk>>> = RefCell::new(None);
}

/// See the [module's documentation](self).
pub(crate) struct Desk {
    /// The pool's address, to compare and not to be used. (The worker keeps the pool.)
    pool: usize,
    local: Local<Job>,
    tally: Arc<Tally>,
    /// How much higher the count of tasks in flight is than it should be because of this worker.
    credit: Cell<usize>,
    /// Whether the worker polls a future, not for the first time and not in a blocking region.
    in_poll: Cell<bool>,
    /// Whether there may be something in the queue that nobody but the worker knows of.
    is_untold: Cell<bool>,
}

impl Desk {
    pub(crate) fn new(shared: &Arc<Shared>, tally: Arc<Tally>) -> Rc<Self> {
        Rc::new(Desk {
            pool: address(shared),
            local: shared.queue.open_local(),
            tally,
            credit: Cell::new(0),
            in_poll: Cell::new(false),
            is_untold: Cell::new(false),
        })
    }

    /// The calling worker's tasks use it from now on.
    pub(crate) fn open(self: &Rc<Self>) {
        DESK.with(|place| *place.borrow_mut() = Some(Rc::clone(self)));
    }

    /// Nobody uses it any more: no user code of the calling thread finds it.
    pub(crate) fn shut(&self) {
        DESK.with(|place| *place.borrow_mut() = None);
    }

    /// Takes the next task, from wherever there is one.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<Job>) -> Option<Job> {
        if self.local.is_turn_of_others() {
            if let Some(job) = self.steal(|| self.local.relieve(queue)) {
                return Some(job);
            }
        }
        if let Some(job) = self.local.pop(queue) {
            return Some(job);
        }
        self.steal(|| self.local.steal(queue))
    }

    #[cold]
    fn steal(&self, steal: impl FnOnce() -> Option<Job>) -> Option<Job> {
        let stolen = steal();
        if stolen.is_some() {
            // What came with it was in nobody's reach for a moment.
            self.is_untold.set(true);
        }
        stolen
    }

    /// Whether somebody has to be told of what is in the queue. Asked once.
    #[inline]
    pub(crate) fn has_untold(&self) -> bool {
        self.is_untold.replace(false) && self.local.has_more()
    }

    /// Queues the job that `make` makes. Nobody is told.
    #[inline]
    pub(crate) fn push(&self, queue: &Queue<Job>, make: impl FnOnce() -> Job) {
        if !self.local.push(queue, make) {
            // It is in the channel, and the worker looks into its own queue first.
            self.is_untold.set(true);
        }
    }

    /// Whether the worker will look at its queue soon: as soon as a poll has ended.
    #[cfg(feature = "async")]
    pub(crate) fn is_in_poll(&self) -> bool {
        self.in_poll.get()
    }

    /// Queues a future that is woken by the poll of another one: the worker will see to it after that.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn push_untold(&self, queue: &Queue<Job>, make: impl FnOnce() -> Job) {
        self.push(queue, make);
        self.is_untold.set(true);
    }

    /// The worker runs a job. If that is a poll, and not the first one of the future, others hear of what it wakes only
    /// after it.
    #[inline]
    pub(crate) fn begin(&self, is_poll: bool) {
        self.in_poll.set(is_poll);
    }

    /// The worker enters a blocking region: others have to hear at once of whatever it wakes from now on.
    pub(crate) fn enter_region(&self) {
        self.in_poll.set(false);
    }

    /// It has run it.
    #[inline]
    pub(crate) fn end(&self, is_end: bool) {
        self.in_poll.set(false);
        if is_end {
            self.credit.set(self.credit.get() + 1);
        }
    }

    /// How much is to be reported. The caller reports it.
    pub(crate) fn take_credit(&self) -> usize {
        self.credit.take()
    }

    /// The worker has nothing to do.
    pub(crate) fn rest(&self) {
        self.local.shrink();
    }

    /// Gives up the queue: what is in it is for others.
    pub(crate) fn close(self: Rc<Self>, queue: &Queue<Job>) {
        debug_assert_eq!(self.credit.get(), 0);
        if let Ok(desk) = Rc::try_unwrap(self) {
            queue.close_local(desk.local);
        }
    }

    /// Accepts a task. `false` if the pool is closed.
    #[inline]
    #[must_use]
    pub(crate) fn accept(&self, shared: &Shared) -> bool {
        if shared.in_flight.is_closed() {
            return false;
        }
        if self.credit.get() == 0 {
            if !shared.in_flight.accept(ADVANCE) {
                return false;
            }
            self.tally.advance(ADVANCE);
            self.credit.set(ADVANCE);
        }
        self.credit.set(self.credit.get() - 1);
        self.tally.report(1);
        true
    }
}

fn address(shared: &Arc<Shared>) -> usize {
    Arc::as_ptr(shared).addr()
}

/// The desk of the calling thread, if it works for the pool and has one.
#[inline]
pub(crate) fn current(shared: &Arc<Shared>) -> Option<Rc<Desk>> {
    let pool = address(shared);
    DESK.try_with(|place| place.borrow().as_ref().filter(|desk| desk.pool == pool).cloned())
        .ok()
        .flatten()
}
