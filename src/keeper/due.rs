//! What the keeper knows: when each of its jobs is due, and what it saw when it last looked. Plain
//! state, which the pool has; what is done with it stands in `keeper.rs`, `stall.rs`, `measured.rs`
//! and `deferred.rs`.

use std::sync::Weak;
use std::time::{Duration, Instant};
use std::{cmp, mem};

use futures_channel::oneshot;

use crate::crew::{Asleep, Controller};
use crate::sync::parker::Parker;
use crate::sync::{AtomicBool, Hint, Mutex, Ordering};
use crate::task::AnyGroup;

/// The pause before the keeper looks again: at what may be over in a moment, such as a refusal, or
/// a poll that has woken a future. Few polls last as long, and a thousand looks a second cost
/// little.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// What the keeper does. A new kind needs a place in [`ALL`](Self::ALL), and a line where the
/// keeper runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeeperJob {
    /// Ask for a refused thread again.
    Threads,
    /// Look for stalled tasks.
    Stalls,
    /// Look for woken futures that wait for a poll which does not end.
    Deferred,
    /// Look whether queued tasks make progress, under [`Growth::Stalled`](crate::Growth::Stalled),
    /// and how many workers are awake, under [`Growth::Measured`](crate::Growth::Measured).
    Growth,
    /// Cancel groups whose deadlines have passed.
    Deadlines,
    /// Ask for the refused helper again.
    Helper,
}

impl KeeperJob {
    /// In the order in which those that are due are done.
    pub(crate) const ALL: [KeeperJob; 6] = {
        use KeeperJob::*;
        [Threads, Stalls, Deferred, Growth, Deadlines, Helper]
    };
}

/// Code of the user's that the helper runs. See `helper.rs`.
pub(crate) type UserCode = Box<dyn FnOnce() + Send>;

/// What the end of the pool is sent to.
pub(crate) type End = oneshot::Sender<()>;

/// The keeper, and its helper, as the threads see them that ask them for jobs.
#[derive(Default)]
pub(crate) struct Keeper {
    /// The keeper's.
    pub(crate) parker: Parker,
    /// The helper's.
    pub(crate) helper: Parker,
    pub(crate) state: Mutex<KeeperState>,
}

#[derive(Default)]
pub(crate) struct KeeperState {
    /// When each job is due, by `job as usize`.
    pub(crate) due: [Option<Instant>; KeeperJob::ALL.len()],
    /// The next pause of each job that asks for a refused thread, or less than [`PAUSE`].
    pub(crate) pauses: [Duration; KeeperJob::ALL.len()],
    /// Whether there is a keeper. Changes under the registry's lock.
    pub(crate) is_there: bool,
    /// Whether there is a helper.
    pub(crate) has_helper: bool,
    /// What the helper runs next.
    pub(crate) user_code: Vec<UserCode>,
    /// The futures that wait for the end of the pool. There is a keeper or a helper while there are
    /// any.
    pub(crate) ends: Vec<End>,
}

impl Keeper {
    /// Asks for a job at a certain time, or earlier if that was asked for before. The job is done
    /// once.
    pub(crate) fn ask(&self, job: KeeperJob, at: Instant) {
        // A model without a keeper has no time that passes.
        #[cfg(elastipool_loom)]
        if !crate::sync::models::STARTS_KEEPER.get() {
            return;
        }
        let mut state = self.state.lock();
        let first = state.due.iter().flatten().min().copied();
        let due = &mut state.due[job as usize];
        *due = Some(due.map_or(at, |due| cmp::min(due, at)));
        drop(state);
        if first.is_none_or(|first| at < first) {
            // Race 42: asked for first. The keeper looks before it parks, or the signal ends the
            // park.
            self.parker.recheck();
        }
    }

    /// Makes both threads look whether the pool has a worker, and is over.
    pub(crate) fn recheck(&self) {
        self.parker.recheck();
        self.helper.recheck();
    }

    /// Whether a thread for queued tasks was refused, and was not asked for again since.
    pub(crate) fn is_starved(&self) -> bool {
        self.state.lock().due[KeeperJob::Threads as usize].is_some()
    }
}

impl KeeperState {
    /// Whether there is user code, and no helper to run it.
    pub(crate) fn lacks_helper(&self) -> bool {
        !self.user_code.is_empty() && !self.has_helper
    }

    /// A model has no time: there, a job is due when a sleep was `late`.
    pub(crate) fn take_if_due(&mut self, job: KeeperJob, is_late: bool) -> bool {
        let due = &mut self.due[job as usize];
        let is_due = match *due {
            Some(_) if cfg!(elastipool_loom) => is_late,
            Some(at) => at <= Instant::now(),
            None => false,
        };
        if is_due {
            *due = None;
        }
        is_due
    }
}

/// What the keeper knows of the queued work. See `stall.rs`.
#[derive(Default)]
pub(crate) struct Stall {
    /// Whether a look is asked for. Set under the lock of `progress`.
    pub(crate) is_asked: AtomicBool,
    /// `None` while no look is asked for.
    pub(crate) progress: Mutex<Option<Progress>>,
}

/// How the workers get on between two looks.
pub(crate) struct Progress {
    /// How many jobs the workers had begun at the last look.
    taken: usize,
    /// How many workers the next look starts, if there was no progress.
    step: usize,
    /// How many of the workers that were started have taken no task yet. Their first ones are no
    /// progress of the others.
    expected: usize,
    /// Whether there was progress between the two looks before.
    had_progress: bool,
}

impl Progress {
    pub(crate) fn since(taken: usize) -> Self {
        Progress { taken, step: 1, expected: 0, had_progress: false }
    }

    /// Returns how many workers a look starts that finds `taken` jobs begun and `queued` tasks.
    pub(crate) fn count_starts(&mut self, taken: usize, queued: usize) -> usize {
        let progress = taken.wrapping_sub(mem::replace(&mut self.taken, taken));
        if progress > self.expected {
            // The first time it may be that of the new workers alone, whose first tasks were short.
            if mem::replace(&mut self.had_progress, true) {
                self.step = 1;
            }
            self.expected = 0;
            return 0;
        }
        self.had_progress = false;
        let expected = self.expected - progress;
        let starts = cmp::min(self.step, queued.saturating_sub(expected));
        self.step = self.step.saturating_mul(2);
        // Halved each time: a worker that takes nothing must not hide the others' progress for
        // ever.
        self.expected = expected / 2 + starts;
        starts
    }
}

/// What the keeper knows of the workers under [`Growth::Measured`](crate::Growth::Measured). See
/// `measured.rs`.
#[derive(Default)]
pub(crate) struct Sizing {
    /// Whether a measurement is asked for.
    pub(crate) is_asked: AtomicBool,
    /// Whether a task was rejected for capacity since the last measurement. A rejection that is
    /// overlooked is followed by others, if more workers are needed.
    pub(crate) has_rejected: Hint,
    /// Not before this.
    pub(crate) earliest: Mutex<Option<Instant>>,
    /// Who slept at the last measurement.
    pub(crate) asleep: Mutex<Asleep>,
    /// Only the keeper locks it.
    pub(crate) state: Mutex<SizingState>,
}

#[derive(Default)]
pub(crate) struct SizingState {
    pub(crate) controller: Controller,
    /// How many measurements there were.
    pub(crate) number: usize,
    pub(crate) last: Option<Previous>,
    /// Whether the workers that were allowed are still starting.
    pub(crate) is_growing: bool,
    /// How many measurements in a row have left the number as it is.
    pub(crate) calm: u32,
}

/// A measurement that later ones compare with.
pub(crate) struct Previous {
    pub(crate) at: Instant,
    /// How many jobs the workers had begun, and how many tasks ended.
    pub(crate) taken: usize,
    pub(crate) ended: usize,
    pub(crate) running: usize,
}

impl Sizing {
    /// The measurement that was asked for is done. The next one comes at `earliest`.
    pub(crate) fn end_request(&self, earliest: Instant) {
        *self.earliest.lock() = Some(earliest);
        self.is_asked.store(false, Ordering::Relaxed);
    }
}

/// What the keeper knows of woken futures that wait for the end of a poll. See `deferred.rs`.
#[derive(Default)]
pub(crate) struct Deferred {
    /// Whether a future was left behind since the last look.
    pub(crate) has_come: Hint,
    /// The workers with woken futures at the last look: their places in the list of
    /// local queues, and the numbers of their requests.
    pub(crate) seen: Mutex<Vec<(usize, usize)>>,
}

/// A deadline, and the address of what has it.
pub(super) type DeadlineKey = (Instant, usize);

/// What the keeper ends, on the helper, at a certain time, whatever the workers do and whether a
/// thread waits: groups with a deadline. In the order of the keys: equal times in that of the
/// addresses.
#[derive(Default)]
pub(crate) struct Deadlines(Mutex<Vec<(DeadlineKey, Weak<dyn AnyGroup>)>>);

impl Deadlines {
    pub(crate) fn add(&self, key: DeadlineKey, what: Weak<dyn AnyGroup>) {
        let mut deadlines = self.0.lock();
        let index = deadlines.partition_point(|(other, _)| *other < key);
        deadlines.insert(index, (key, what));
    }

    pub(crate) fn remove(&self, key: DeadlineKey) {
        let mut deadlines = self.0.lock();
        if let Ok(index) = deadlines.binary_search_by_key(&key, |(key, _)| *key) {
            deadlines.remove(index);
        }
    }

    /// Takes those that are due. Returns when the first one of the others is.
    pub(crate) fn take_due(&self) -> (Vec<Weak<dyn AnyGroup>>, Option<Instant>) {
        let now = Instant::now();
        let mut deadlines = self.0.lock();
        // A model has no time: all are due.
        let count = deadlines.partition_point(|((at, _), _)| cfg!(elastipool_loom) || *at <= now);
        let due = deadlines.drain(..count).map(|(_, what)| what).collect();
        (due, deadlines.first().map(|((at, _), _)| *at))
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
