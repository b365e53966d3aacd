//! A worker's life: start, work, rest, leave.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crate::counts::Search;
use crate::job::Job;
use crate::parker::{Parker, Signal};
use crate::roster::Exit;
use crate::shared::{Shared, Start};
use crate::stats::Tally;
use crate::sync::{Ordering, at_thread_exit, fence, thread_local};
use crate::unwind::discard;

/// What a thread has to do with a pool.
#[derive(Clone, Copy)]
struct Place {
    /// The address of the pool's roster, to compare and not to be used. (The thread keeps the roster until
    /// it exits, so no other pool's can have that address meanwhile.)
    pool: usize,
    /// `None` on a thread that is no worker and runs a task for want of one.
    index: Option<usize>,
    /// Whether the worker is in its stop hook, past its last task.
    is_leaving: bool,
}

thread_local! {
    // Not `const`: the model checker's macro does not know that.
    #[allow(clippy::missing_const_for_thread_local, reason = "see above")]
    static PLACE: Cell<Option<Place>> = Cell::new(None);
}

fn place() -> Option<Place> {
    // No place any more while the thread's locals are destroyed.
    PLACE.try_with(Cell::get).ok().flatten()
}

fn address(shared: &Arc<Shared>) -> usize {
    Arc::as_ptr(&shared.roster).addr()
}

/// The index of the worker that the calling code runs on, in its own pool: dense, below the pool's
/// `max_size`, and reused when a worker has ended. `None` outside of workers.
///
/// ```
/// let pool = elastipool::ThreadPool::new(1, 4, std::time::Duration::from_secs(1));
/// assert_eq!(pool.evaluate(elastipool::worker_index).await_complete(), Some(0));
/// assert_eq!(elastipool::worker_index(), None);
/// ```
pub fn worker_index() -> Option<usize> {
    place().and_then(|place| place.index)
}

/// The calling thread, as seen from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It does not belong to the pool.
    Outside,
    /// It runs a task or the start hook of the pool.
    Busy,
    /// It is a worker of the pool in its stop hook.
    Leaving,
}

/// What the calling thread is to the pool.
pub(crate) fn caller(shared: &Arc<Shared>) -> Caller {
    match place() {
        Some(place) if place.pool == address(shared) => {
            if place.is_leaving {
                Caller::Leaving
            } else {
                Caller::Busy
            }
        }
        _ => Caller::Outside,
    }
}

/// Marks the calling thread as one that runs a task of the pool, until the guard is dropped.
pub(crate) fn visit(shared: &Arc<Shared>) -> Visit {
    let before = place();
    let here = Place { pool: address(shared), index: None, is_leaving: false };
    // Without thread-locals left there is nothing to mark, and nobody to be told.
    let _ = PLACE.try_with(|place| place.set(Some(here)));
    Visit(before)
}

/// See [`visit`].
pub(crate) struct Visit(Option<Place>);

impl Drop for Visit {
    fn drop(&mut self) {
        let _ = PLACE.try_with(|place| place.set(self.0));
    }
}

/// The body of a worker's thread.
pub(crate) fn run(start: Start) {
    let Start { shared, key, index, tally, search } = start;
    // Before any user code, so that it is the last of the thread's locals to go.
    let _exit = at_thread_exit(Exit { roster: Arc::clone(&shared.roster), key });
    // Whoever started this thread holds the roster until the thread is entered and counted.
    drop(shared.roster.lock());
    let mut worker = Worker {
        shared,
        index,
        parker: Arc::new(Parker::new()),
        tally,
        finished: 0,
        search,
        is_fresh: true,
    };
    loop {
        worker.start();
        worker.work();
        worker.stop();
        if worker.shared.leave(key, index) {
            break;
        }
        // A task came while the last worker was leaving: it lives once more, from its start hook on.
        worker.is_fresh = true;
    }
    // For the destructors of the thread's locals: the index is somebody else's now.
    worker.mark(None, true);
    worker.shared.roster.reap();
    // This may be the last reference to the pool, and thereby to the user's hooks.
    discard(worker.shared);
}

/// Why a worker's rest has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// There is or may be work.
    Over,
    /// The worker has decided to leave; it is off the idle stack and registered as leaving.
    ForGood,
}

struct Worker {
    shared: Arc<Shared>,
    index: usize,
    parker: Arc<Parker>,
    tally: Arc<Tally>,
    /// Tasks that ended here and are still counted as in flight. One write for many tasks: the count is
    /// only ever too high, and only while this worker is busy.
    finished: usize,
    search: Option<Search>,
    /// Whether the worker has yet to find its first task since it started or rested: then it must
    /// see to it that somebody comes for the next one.
    is_fresh: bool,
}

impl Worker {
    fn start(&mut self) {
        self.mark(Some(self.index), false);
        if self.shared.config.hooks.on_worker_start.is_some() {
            let search = self.search.take();
            self.shared.enter_start_hook(search);
            self.shared.config.hooks.worker_started(self.index);
            self.shared.exit_start_hook();
        }
    }

    fn stop(&mut self) {
        self.mark(Some(self.index), true);
        self.shared.config.hooks.worker_stops(self.index);
    }

    fn mark(&self, index: Option<usize>, is_leaving: bool) {
        let here = Place { pool: address(&self.shared), index, is_leaving };
        PLACE.with(|place| place.set(Some(here)));
    }

    /// Runs tasks until it is time to leave.
    fn work(&mut self) {
        loop {
            while let Some(job) = self.shared.queue.pop() {
                if self.is_fresh {
                    self.is_fresh = false;
                    let search = self.search.take();
                    self.shared.pass_on(search);
                }
                self.run(job);
            }
            match self.rest() {
                Rest::Over => self.is_fresh = true,
                Rest::ForGood => return,
            }
        }
    }

    fn run(&mut self, job: Job) {
        let outcome = job.run();
        self.tally.count(outcome);
        self.finished += usize::from(outcome.is_end());
    }

    /// Waits on the idle stack for work, or until it is time to leave.
    fn rest(&mut self) -> Rest {
        let shared = &*self.shared;
        let mut since = Instant::now();
        let mut now = shared.idle.publish(&shared.counts, &self.parker, self.search.take());
        if self.finished > 0 {
            // Idle first: after a join, the workers are seen to be idle.
            shared.finish(mem::take(&mut self.finished));
        }
        // Race 1: published first, then looked at the queue; submitters do it the other way round.
        fence(Ordering::SeqCst);
        loop {
            if !shared.queue.is_empty() {
                self.search = self.withdraw();
                return Rest::Over;
            }
            if shared.in_flight.is_over() {
                self.search = self.withdraw();
                if self.search.is_some() {
                    return Rest::Over;
                }
                shared.retire_for_good();
                return Rest::ForGood;
            }
            match self.parker.park(shared.rest_until(now, since)) {
                Signal::Unparked => {
                    self.search = Some(Search::Waking);
                    return Rest::Over;
                }
                Signal::Nudged => now = shared.counts.load(),
                Signal::Expired => {
                    self.search = self.withdraw();
                    // Not on the stack and still counted: whoever queues a task now relies on this
                    // worker's next look at the queue. Each way from here leads to one.
                    if self.search.is_some() || !shared.queue.is_empty() {
                        return Rest::Over;
                    }
                    if shared.may_retire() {
                        return Rest::ForGood;
                    }
                    // A new term: the old one has run out, and would again and again.
                    since = Instant::now();
                    now = shared.idle.publish(&shared.counts, &self.parker, None);
                    fence(Ordering::SeqCst);
                }
            }
        }
    }

    /// Leaves the idle stack. If the worker has been claimed instead, it has the search.
    fn withdraw(&self) -> Option<Search> {
        if self.shared.idle.withdraw(&self.shared.counts, &self.parker) {
            return None;
        }
        // The signal is on its way; a nudge may come before it.
        while self.parker.park(None) != Signal::Unparked {}
        Some(Search::Waking)
    }
}
