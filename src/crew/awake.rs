//! The controller of [`Growth::Measured`](crate::Growth::Measured): how many workers may run, so
//! that enough of them are awake.
//!
//! A function of measurements: it has no clock and asks no thread. Let `n` workers be wanted awake.
//!
//! - **Raised** while tasks wait for a worker, fewer than `n` are awake on average, and they have
//!   used fewer than `n` CPUs since the last measurement: by the ratio of `n` to the larger of
//!   these, and doubled at most. Of a load of which a constant share is awake, that is the right
//!   number, so it approaches this from below. A raise waits until the workers of the last one run,
//!   so it does not act twice on one measurement.
//! - **Lowered** at the end of a [`Turn`] in which more were awake than `n` and a [slack]: to those
//!   that slept on average, `n`, and half of the slack.
//! - **Settled** when it has stood for a turn. From then on it changes only at the end of a turn,
//!   by what was found in all of it, and turns become longer: at a moment a herd of workers may
//!   sleep, or wake up together, and only a few are asked what they do. It is raised to those that
//!   sleep, `n`, and the slack, and not by a ratio: if the CPUs are used by others more workers
//!   only wait for them, and it would be lowered next. That ends if half of the CPUs are unused for
//!   twice as long as a task has slept: other tasks have come.
//! - **Kept** otherwise. Between the two thresholds lies the slack, so under a constant load the
//!   number comes to rest.
//!
//! After a change from tasks that sleep to tasks that compute, too many run for a turn at most.
//!
//! # Sleepers that contend
//! A disk's queue gets no shorter by workers: sixteen for each of `n` may be in it. The number is
//! not raised above that, and lowered from twice as many.
//!
//! What sleeps until another thread wakes it may wait for something that more workers do not bring,
//! such as a lock, or for something that they do, such as a reply. If an eighth of the sleepers do,
//! the rate at which tasks end decides: see [`Climb`].
//!
//! Each of several pools in a process counts its own workers as awake: with tasks that compute,
//! each keeps `n` of them, and they share the CPUs.
//!
//! Where the system tells only how much CPU time each worker has used, those that have used some
//! since the last measurement are awake. Where it does not tell that either, none is awake if no
//! worker has taken a task since then, and all are otherwise: the number grows when the tasks
//! stall.

use std::mem;
use std::time::Duration;

/// Tasks that compute keep a few workers more than `n` before the number is lowered: a worker that
/// ends its task and one that begins are both awake. Speed only.
const SLACK: f64 = 2.0;

/// The average of workers awake from which the CPUs count as used, as a share of `n`: a worker
/// between two tasks sleeps at times.
const USED: f64 = 0.95;

/// What a measurement found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measurement {
    /// Workers that run tasks, and are not in declared regions.
    pub(crate) running: usize,
    /// How many of these are awake, by estimation.
    pub(crate) awake: f64,
    /// How many sleep until another thread wakes them, and how many in the queue of a disk.
    pub(crate) on: [f64; 2],
    /// How many CPUs they have used on average since the last measurement. While workers start,
    /// which takes a CPU too: as `awake`.
    pub(crate) used: f64,
    /// How many tasks have ended since the last measurement, and how long ago it was.
    pub(crate) ended: usize,
    pub(crate) elapsed: Duration,
    /// Whether a task is queued.
    pub(crate) has_work: bool,
    /// Whether one waits because as many workers run as may.
    pub(crate) is_short: bool,
}

impl Measurement {
    fn asleep(&self) -> f64 {
        (self.running as f64 - self.awake).max(0.0)
    }

    pub(crate) fn sleepers(&self) -> Asleep {
        let [all, on_threads, on_disks] =
            [self.asleep(), self.on[0], self.on[1]].map(|number| number.round() as usize);
        Asleep { all, on_threads, on_disks }
    }
}

/// How many of the running workers sleep, and of these how many until another thread wakes them, or
/// in the queue of a disk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asleep {
    pub(crate) all: usize,
    pub(crate) on_threads: usize,
    pub(crate) on_disks: usize,
}

/// What earlier measurements have found, as far as the next decision depends on it.
#[derive(Debug, Default)]
pub(crate) struct Controller {
    /// The averages of workers awake, of those asleep, of those that wait for another thread, and
    /// for a disk. `None` before the first measurement.
    means: Option<[f64; 4]>,
    /// Whether too few were, while a task was queued.
    was_under: bool,
    turn: Turn,
    climb: Climb,
}

/// A time since the last change in which at least as many tasks end as run: what it shows holds for
/// all tasks, and not only for a herd that wakes up together.
#[derive(Debug, Default)]
struct Turn {
    ended: usize,
    seconds: f64,
    /// The seconds times the workers awake, where more than `n` count as `n`, times the CPUs used,
    /// the workers awake, and those asleep.
    sums: [f64; 4],
    /// How many seconds it lasts at least.
    least: f64,
    /// If the number goes by turns: twice the seconds for which a task has slept.
    settled: Option<f64>,
    /// For how many seconds half of the CPUs have been unused.
    idle: f64,
    /// For how many seconds workers above a lowered number have run their tasks.
    lowered: f64,
}

impl Turn {
    /// If that ends the turn, begins the next one, and returns the averages.
    fn add(&mut self, found: [f64; 4], measured: &Measurement) -> Option<[f64; 4]> {
        let seconds = measured.elapsed.as_secs_f64();
        self.ended += measured.ended;
        self.seconds += seconds;
        self.sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found * seconds);
        let is_whole = self.ended >= measured.running.max(1) && self.seconds >= self.least;
        if !is_whole && self.seconds < LONGEST {
            return None;
        }
        let settled = Some(2.0 * self.sums[3] / self.ended.max(1) as f64);
        let ended = mem::replace(self, Turn { least: self.seconds, settled, ..Turn::default() });
        Some(ended.sums.map(|sum| sum / ended.seconds))
    }
}

/// By how many more than `n` the workers awake may be without a change. The more others sleep, the
/// more wake up at the same time, and the less a few more threads matter.
fn slack(asleep: f64) -> f64 {
    SLACK + asleep / 2.0
}

impl Controller {
    /// Forgets earlier measurements: they were long ago. The turn goes on: in bursts of a few tasks
    /// that compute it would have no end otherwise, and the number would not fall.
    pub(crate) fn begin(&mut self) {
        let Turn { ended, seconds, sums, .. } = self.turn;
        let turn = Turn { ended, seconds, sums, ..Turn::default() };
        *self = Controller { turn, ..Controller::default() };
    }

    /// Returns how many workers may run, so that `n` are awake. So far `allowed` may. The pool's
    /// sizes bound the number: it is not raised above `max_size`.
    pub(crate) fn next(
        &mut self,
        allowed: usize,
        n: usize,
        (core_size, max_size): (usize, usize),
        measured: Measurement,
    ) -> usize {
        let wanted = n as f64;
        let [on_threads, on_disks] = measured.on;
        let awake = measured.awake.min(wanted);
        let found = [awake, measured.asleep(), on_threads, on_disks];
        let mut means = self.means.unwrap_or(found);
        means.iter_mut().zip(found).for_each(|(mean, found)| *mean = (*mean + found) / 2.0);
        self.means = Some(means);
        let [mean, asleep, on_threads, on_disks] = means;
        let (floor, least) = (core_size.max(n), core_size.max(2 * n));
        // Fewer may be the estimate's noise, or locks that are held for a moment.
        // As few as the search has led to wait for each other rarely.
        let contends = match allowed < least {
            true => allowed == self.climb.number,
            false => {
                // Beside many that are awake a few that sleep say nothing.
                let is_over = measured.awake > wanted + slack(measured.asleep());
                on_threads > asleep / 8.0 && !is_over
            }
        };
        let used = measured.used.min(wanted);
        let (mut level, mut asleep) = (mean.max(used), asleep);
        let turn = &mut self.turn;
        let is_idle = measured.is_short && level < wanted / 2.0;
        self.was_under = is_idle;
        turn.idle = if is_idle { turn.idle + measured.elapsed.as_secs_f64() } else { 0.0 };
        // A herd sleeps for less time. These are others.
        turn.settled = turn.settled.filter(|time| turn.idle <= *time);
        // Those above a lowered number still run their tasks, which may be long.
        let is_lowered = measured.running > allowed + 1;
        turn.lowered += if is_lowered { measured.elapsed.as_secs_f64() } else { 0.0 };
        let mut is_over = false;
        if contends {
            *turn = Turn::default();
        } else if is_lowered && turn.lowered <= LONGEST {
            return allowed;
        } else if let Some([capped, used, awake, sleepers]) =
            turn.add([found[0], used, measured.awake, measured.asleep()], &measured)
        {
            (level, asleep) = (capped.max(used), sleepers);
            is_over = awake > wanted + slack(asleep);
        } else if turn.settled.is_some() {
            return allowed;
        }
        let fitting = |part: f64| (wanted + asleep + part * slack(asleep)).ceil() as usize;
        if is_over {
            return allowed.min(fitting(0.5));
        }
        // A disk serves some requests at a time, and each brings a buffer.
        let disk = 8.0 * least as f64;
        let queued = on_disks.min(measured.on[1]);
        if queued > 2.0 * disk {
            let others = measured.running.saturating_sub((queued - disk) as usize);
            return allowed.min(others.max(least));
        }
        let is_under = measured.has_work && level < USED * wanted;
        let mut raised = allowed;
        if measured.is_short && is_under {
            let factor = (wanted / level).min(2.0);
            raised = match turn.settled.is_some() {
                true => fitting(1.0).clamp(allowed, 2 * allowed),
                false => (allowed as f64 * factor).ceil() as usize,
            };
            if on_disks > 0.0 {
                let room = (disk - on_disks.max(measured.on[1])).max(0.0);
                raised = raised.min(allowed + room as usize);
            }
            raised = raised.min(max_size.max(allowed));
        }
        if raised > allowed && turn.settled.is_none() {
            *turn = Turn { lowered: turn.lowered, ..Turn::default() };
        }
        // A full queue of a disk decides.
        self.was_under = is_under && (raised > allowed || !measured.is_short);
        if !contends {
            self.climb = Climb::default();
            return raised;
        }
        self.climb.next(allowed, raised, floor, measured)
    }

    /// Whether the next measurement may change the number, if it finds the same. `may_rise`: the
    /// number is not the largest one.
    pub(crate) fn is_undecided(&self, may_rise: bool) -> bool {
        self.climb.before.is_some() || (may_rise && self.was_under && self.climb.stands == 0)
    }
}

/// How many tasks end in a round at least: fewer may be chance. Also for how many rounds a number
/// stands at most.
const MANY: usize = 32;

/// While no task ends at all: the pause before the next raise, for each worker. A task that 64
/// others wait for starts after some 8 milliseconds, and one that waits in a lock for less than
/// that gets few companions.
const BLIND: f64 = 50e-6;

/// The longest time without an end, in seconds, after which tasks may wait for queued ones. So such
/// a wait ends within a second. After twice as long fewer tasks are enough for a round: five
/// hundred tasks under one lock end after each other. After four times as long a number stands no
/// longer: the rounds of slow tasks are long, and other tasks may by chance end as often.
const LONGEST: f64 = 0.5;

/// How many tasks for each worker end in a round after the first change that has not paid.
const TURNS: usize = 4;

/// The search for the number while many of the sleepers wait for another thread.
///
/// It compares the rates at which tasks end in *rounds*, in each of which about as many tasks end
/// as workers run. Once a change has not paid, some times as many: then time matters less than that
/// trials of a mixture of tasks do not pay by chance.
/// - A change to a larger number **pays** if the rate grows with the fourth root of the number, or
///   more: 1.19 times the ends for twice the workers, since less cannot be told from chance. After
///   a change that pays comes the next one in the same direction.
/// - After a larger number that does not pay, half of the number before is tried: each worker in
///   line for a lock makes its way from hand to hand longer. It pays if it loses no more than the
///   eighth root: 8 %. It may be `n`.
/// - After that, the number **stands** for some rounds, twice as many each time up to a bound, also
///   of time: under a constant load the trials become rare. If tasks end half as often as before,
///   or twice, they are other tasks, and it stands no longer.
/// - If **no task ends** for a time that is long for these tasks, they may wait for queued ones:
///   the number doubles without evidence until one ends, after pauses that grow with it. The first
///   end gives a bound of the rate of fewer workers, which the next round is compared with. If more
///   do not pay, the number before stands for one round only, since no round has measured it.
/// - If the **queue becomes empty** during a trial, the number before comes back.
#[derive(Debug, Default)]
struct Climb {
    number: usize,
    /// Whether a task has ended with this number. How many have ended in this round since then, and
    /// in how many seconds: so tasks that end together are counted for the time that they have
    /// taken.
    is_open: bool,
    ended: usize,
    seconds: f64,
    /// The number before a change, and the rate at which tasks ended then. While none has ended
    /// since: the seconds since then.
    before: Option<(usize, f64)>,
    /// Whether no task has ended since the change, and whether none had before it.
    is_blind: bool,
    was_blind: bool,
    /// The seconds with queued tasks since one has ended, or the number was raised since none had.
    /// The most of these so far.
    gap: f64,
    longest: f64,
    /// Whether the queue was empty at the last measurement.
    was_idle: bool,
    is_down: bool,
    /// For how many rounds the number stands, the rate then, and for how many seconds it has stood.
    /// How many rounds it stands the next time.
    stands: usize,
    rate: f64,
    stood: f64,
    rounds: usize,
}

impl Climb {
    fn begin_round(&mut self, number: usize, before: Option<(usize, f64)>) -> usize {
        self.is_open &= number == self.number;
        (self.number, self.before) = (number, before);
        (self.ended, self.seconds) = (0, 0.0);
        number
    }

    /// `raised`: what the number would be if nothing contended.
    fn next(
        &mut self,
        allowed: usize,
        raised: usize,
        floor: usize,
        measured: Measurement,
    ) -> usize {
        if self.number != allowed {
            // A large number is that of other sleepers.
            let is_down = allowed > 4 * floor;
            *self = Climb { number: allowed, is_down, ..Climb::default() };
        }
        // All tasks run: nothing is to be found out.
        if !measured.has_work {
            // A trial that has not paid yet is no evidence. After many short bursts the number
            // would be large.
            let before = self.before.filter(|_| !self.was_blind);
            (self.is_blind, self.was_blind, self.was_idle, self.gap) = (false, false, true, 0.0);
            self.is_open = false;
            return self.begin_round(before.map_or(allowed, |before| before.0), None);
        }
        // No task could end in an idle pool.
        let was_idle = mem::take(&mut self.was_idle);
        let seconds = if was_idle { 0.0 } else { measured.elapsed.as_secs_f64() };
        self.gap += seconds;
        self.stood += seconds;
        if self.is_blind {
            self.before = self.before.map(|(number, since)| (number, since + seconds));
        }
        if measured.ended > 0 {
            self.longest = self.longest.max(mem::take(&mut self.gap));
            if mem::take(&mut self.is_blind) {
                // As if each had ended a task just now.
                self.before = self.before.map(|(number, since)| (number, number as f64 / since));
            }
        }
        // None has ended for long already if the last raise was blind.
        let usual = if self.is_blind { 0.0 } else { (4.0 * self.longest).min(LONGEST) };
        if self.gap >= usual.max(BLIND * allowed as f64) && raised > allowed {
            let before = self.before.filter(|_| self.is_blind).unwrap_or((allowed, self.gap));
            (self.is_blind, self.was_blind, self.gap) = (true, true, 0.0);
            (self.is_down, self.stands) = (false, 0);
            return self.begin_round(raised, Some(before));
        }
        // Some are still starting, or have to end their tasks first.
        if !measured.is_short || measured.running > allowed + 1 || self.is_blind {
            return allowed;
        }
        if !self.is_open {
            self.is_open = measured.ended > 0;
            return allowed;
        }
        self.ended += measured.ended;
        self.seconds += seconds;
        let (number, rate) = self.before.unwrap_or((allowed, self.rate / 2.0));
        let root = (allowed as f64 / number as f64).sqrt().sqrt();
        let needed = rate * if self.is_down { root.sqrt() } else { root };
        // A round that begins with the short tasks of a mixture has too high a rate.
        let turns = if self.rounds > 0 { TURNS } else { 1 };
        let is_long = self.seconds >= 2.0 * LONGEST;
        let round = if is_long { MANY } else { MANY.max(turns * allowed.max(number)) };
        let ends = (self.ended as f64).max(self.seconds * needed);
        if measured.ended == 0 || ends < round as f64 {
            return allowed;
        }
        let mut rate = self.ended as f64 / self.seconds;
        if self.stands > 0 && (needed..=4.0 * needed).contains(&rate) {
            self.stands = if self.stood < 2.0 * LONGEST { self.stands - 1 } else { 0 };
            self.rate = (self.rate + rate) / 2.0;
            if self.stands > 0 {
                return self.begin_round(allowed, None);
            }
            rate = self.rate;
        } else if self.stands > 0 {
            // Other tasks.
            (self.stands, self.rounds) = (0, 0);
        } else if let Some((number, before)) = self.before {
            let was_blind = mem::take(&mut self.was_blind);
            if rate < needed {
                if !self.is_down && !was_blind && number > floor {
                    (self.is_down, self.rounds) = (true, self.rounds.max(MANY / 8));
                    return self.begin_round((number / 2).max(floor), self.before);
                }
                let next = self.stand(number, before);
                if was_blind {
                    self.stands = 1;
                }
                return next;
            }
        }
        for _ in 0..2 {
            let next = if self.is_down { (allowed / 2).max(floor) } else { raised };
            if next != allowed {
                return self.begin_round(next, Some((allowed, rate)));
            }
            if self.before.is_some() {
                break;
            }
            self.is_down = !self.is_down;
        }
        self.stand(allowed, rate)
    }

    fn stand(&mut self, number: usize, rate: f64) -> usize {
        self.is_down = false;
        self.rounds = (2 * self.rounds).clamp(MANY / 4, MANY);
        (self.stands, self.rate, self.stood) = (self.rounds, rate, 0.0);
        self.begin_round(number, None)
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
