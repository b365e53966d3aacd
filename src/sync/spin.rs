//! Spins for a moment before a thread blocks: blocking and waking takes longer than many tasks.
//!
//! [`LIMIT`] is about the time of a wake-up. With a shorter one, two threads that wait for each other in turn would
//! park every time: each one's wake-up takes longer than the other one spins. A longer one wastes CPU time (law 5) on
//! an event that is not near. A submitter that waits for capacity spins for a shorter time: it needs no answer from one
//! thread, but CPUs for the workers.
//!
//! On a virtual machine a wake-up can take 50 microseconds. So a worker that has rested for a short time only spins for up to
//! [`LONG_LIMIT`] the next time, the sum of [`LIMIT`] and such a wake-up: see [`WorkSpin`].
//!
//! A worker that has caught up with a dense stream of tasks lets some gather before it looks for the next one: see [`Gather`].
//!
//! A worker that stands by on the idle stack looks for a condition that lasts: see [`spin_until_lasting`].
//!
//! A spin may give way: it ends once another thread of the process waits for the CPU. That one may be needed for what the
//! thread spins for: see [`Waking`]. These do not: a submitter that waits for a permit, a worker that lets tasks gather or
//! stands by.
//!
//! A spinning thread does not yield. Beside another busy process `sched_yield` can give up the CPU for a time slice of
//! about 3 ms, while submitters rely on the searching worker.

use std::mem;
use std::time::Duration;

use crate::sync::cpu::Cpu;
#[cfg(not(elastipool_loom))]
use crate::sync::cpu::cpus;
use crate::sync::waking::Waking;

/// Bounds the time of spinning. Linux 6 takes about this long to wake a parked thread on a CPU that sleeps.
const LIMIT: Duration = Duration::from_micros(25);

/// Bounds the time of a worker's spin after a short rest.
const LONG_LIMIT: Duration = Duration::from_micros(75);

/// The longest time that each task of a stream of short ones may take on average, the spin after them included.
#[cfg(not(elastipool_loom))]
const STREAM_INTERVAL: Duration = Duration::from_micros(5);

/// Tasks are long if they take this long on average, the spin after them included. About ten wake-ups.
#[cfg(not(elastipool_loom))]
const LONG_TASK: Duration = Duration::from_micros(200);

/// How long a worker must have been in a blocking region before a standby worker takes its place. Long enough for a region
/// that waits for nothing to end, and short beside a wake-up.
#[cfg(not(elastipool_loom))]
const GRACE: Duration = Duration::from_micros(2);

/// A stream may be dense if the worker finds the next task this soon after it has begun to look. About two cache misses.
const SOON: Duration = Duration::from_nanos(150);

/// How many tasks in a row must come [`SOON`] before the worker tries whether the stream is dense. A try delays a caller that
/// awaits one task after another, so it must be rare.
const SOON_IN_A_ROW: u32 = 16;

/// How long a worker lets the tasks of a dense stream gather.
const GATHER: Duration = Duration::from_micros(1);

/// A stream is not dense if the worker has run fewer tasks since its last spin.
const MIN_GATHERED: usize = 4;

/// The time between two looks of a standby worker. Each takes a cache line from the worker that enters and leaves regions.
#[cfg(not(elastipool_loom))]
const LOOK_INTERVAL: Duration = Duration::from_micros(1);

/// How long a worker spins for work the next time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WorkSpin {
    /// For [`LIMIT`].
    #[default]
    Short,
    /// For [`LONG_LIMIT`]: its last rest was short, or its last spin was a long one and not in vain.
    Long,
    /// For [`LIMIT`], even if its next rest is short: the last spin was a long one and in vain, or gave way. Otherwise work that
    /// always comes just after a long spin would keep a CPU busy.
    ShortAfterLong,
}

impl WorkSpin {
    /// The worker runs again, that long after it has begun to rest.
    pub(crate) fn resumed_after(&mut self, rest: Duration) {
        *self = match self {
            WorkSpin::Short | WorkSpin::Long if rest < LONG_LIMIT => WorkSpin::Long,
            _ => WorkSpin::Short,
        };
    }

    /// As [`spin_until`], for this long. Returns after which time the condition held.
    pub(crate) fn until(&mut self, condition: impl Fn() -> bool) -> Option<Duration> {
        let is_long = *self == WorkSpin::Long;
        let limit = if is_long { LONG_LIMIT } else { LIMIT };
        let time = spin_to_time_or_give_way(limit, condition);
        *self = match (is_long, time.is_some()) {
            (true, true) => WorkSpin::Long,
            (true, false) => WorkSpin::ShortAfterLong,
            (false, _) => WorkSpin::Short,
        };
        time
    }
}

/// Lets the tasks of a dense stream gather while a worker that has caught up with it does not look at the queue.
///
/// Each look takes a cache line from the submitter, and so does each task that is taken. A worker that takes every task as soon
/// as it comes makes each submission about twice as expensive.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Gather {
    /// How many tasks in a row came soon. At [`SOON_IN_A_ROW`] the stream is taken to be dense.
    soon: u32,
    /// How many tasks the worker had run before the last spin.
    run_before: usize,
}

impl Gather {
    /// The worker is about to spin for work, and has run that many tasks so far. Waits if the stream is dense.
    pub(crate) fn before_spin(&mut self, run_count: usize) {
        // Too small after the quota was renewed, which affects only speed.
        let gathered = run_count.saturating_sub(mem::replace(&mut self.run_before, run_count));
        if self.soon < SOON_IN_A_ROW {
            return;
        }
        if gathered < MIN_GATHERED {
            self.soon = 0;
        } else {
            spin_for(GATHER, || false);
        }
    }

    /// The spin has found work after this time, or has ended in vain.
    pub(crate) fn after_spin(&mut self, found: Option<Duration>) {
        if self.soon < SOON_IN_A_ROW {
            self.soon = if found.is_some_and(|time| time < SOON) { self.soon + 1 } else { 0 };
        }
    }
}

/// Whether `tasks` tasks in this time are a stream of short ones.
#[cfg(not(elastipool_loom))]
pub(crate) fn is_stream(time: Duration, tasks: usize) -> bool {
    time < STREAM_INTERVAL * u32::try_from(tasks).unwrap_or(u32::MAX)
}

/// A model has no time.
#[cfg(elastipool_loom)]
pub(crate) fn is_stream(_time: Duration, _tasks: usize) -> bool {
    false
}

/// Whether `tasks` tasks in this time are long ones.
#[cfg(not(elastipool_loom))]
pub(crate) fn are_long(time: Duration, tasks: usize) -> bool {
    time >= LONG_TASK * u32::try_from(tasks).unwrap_or(u32::MAX)
}

/// A model has no time.
#[cfg(elastipool_loom)]
pub(crate) fn are_long(_time: Duration, _tasks: usize) -> bool {
    false
}

/// Whether a worker's rest, its wake-up included, was longer than a short spin.
#[cfg(not(elastipool_loom))]
pub(crate) fn outlasts_spin(rest: Duration) -> bool {
    rest >= LIMIT
}

/// A model has no time.
#[cfg(elastipool_loom)]
pub(crate) fn outlasts_spin(_rest: Duration) -> bool {
    true
}

/// Evaluates `condition` until it holds, some microseconds have passed, or the spin gives way. Returns whether it held. With a
/// single CPU, evaluates it once.
pub(crate) fn spin_until(condition: impl FnMut() -> bool) -> bool {
    spin_to_time_or_give_way(LIMIT, condition).is_some()
}

/// As [`spin_until`], for the time of a long spin, and without giving way.
pub(crate) fn spin_long_until(condition: impl FnMut() -> bool) -> bool {
    spin_for(LONG_LIMIT, condition)
}

/// As [`spin_until`], for `limit` at most, and without giving way.
pub(crate) fn spin_for(limit: Duration, condition: impl FnMut() -> bool) -> bool {
    spin_to_time(limit, condition, || false).is_some()
}

/// As [`spin_to_time`], but gives way.
fn spin_to_time_or_give_way(limit: Duration, condition: impl FnMut() -> bool) -> Option<Duration> {
    // Asked at each look: the thread may have moved to another CPU.
    spin_to_time(limit, condition, || Cpu::current().is_some_and(Waking::is_any))
}

/// As [`spin_for`], but ends early once `must_end` holds. Returns about after which time the condition held.
#[cfg(not(elastipool_loom))]
fn spin_to_time(
    limit: Duration,
    mut condition: impl FnMut() -> bool,
    must_end: impl Fn() -> bool,
) -> Option<Duration> {
    use std::hint;
    use std::time::Instant;

    if condition() {
        return Some(Duration::ZERO);
    }
    if cpus() == 1 {
        return None;
    }
    let begin = Instant::now();
    let mut time = Duration::ZERO;
    while time < limit && !must_end() {
        hint::spin_loop();
        if condition() {
            return Some(time);
        }
        time = begin.elapsed();
    }
    None
}

/// Looks at `condition` every [`LOOK_INTERVAL`], until it has held for [`GRACE`] without interruption, and returns `true` then.
/// Returns `false` once it has not held for [`LIMIT`], or once `must_end` holds. With a single CPU, returns `false` at once.
#[cfg(not(elastipool_loom))]
pub(crate) fn spin_until_lasting(
    condition: impl Fn() -> bool,
    must_end: impl Fn() -> bool,
) -> bool {
    use std::time::Instant;

    if cpus() == 1 {
        return false;
    }
    let mut held_last = Instant::now();
    let mut holds_since = None;
    while !spin_for(LOOK_INTERVAL, &must_end) {
        let holds = condition();
        let now = Instant::now();
        if holds {
            held_last = now;
            if now - *holds_since.get_or_insert(now) >= GRACE {
                return true;
            }
        } else {
            holds_since = None;
            if now - held_last >= LIMIT {
                return false;
            }
        }
    }
    false
}

/// A model has no time: looks once, and lets other threads run, as a spin does.
#[cfg(elastipool_loom)]
pub(crate) fn spin_until_lasting(
    condition: impl Fn() -> bool,
    _must_end: impl Fn() -> bool,
) -> bool {
    let holds = condition();
    crate::sync::yield_now();
    holds
}

/// A model has no time: evaluates `condition` once.
#[cfg(elastipool_loom)]
fn spin_to_time(
    _limit: Duration,
    mut condition: impl FnMut() -> bool,
    _must_end: impl Fn() -> bool,
) -> Option<Duration> {
    condition().then_some(Duration::ZERO)
}

#[cfg(all(test, not(elastipool_loom)))]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use super::{
        GATHER, Gather, LIMIT, LONG_LIMIT, MIN_GATHERED, SOON, SOON_IN_A_ROW, WorkSpin, are_long,
        cpus, is_stream, spin_for, spin_until, spin_until_lasting,
    };
    use crate::sync::cpu::Cpu;
    use crate::sync::waking::Waking;

    /// Whether a vain spin ends before its limit while another thread waits for the CPU. Tried often: the thread may move to
    /// another CPU meanwhile, and may lose its CPU.
    pub(crate) fn gives_way(mut spin: impl FnMut()) -> bool {
        (0..100).any(|_| {
            let _waking = Cpu::current().map(Waking::begin);
            let begin = Instant::now();
            spin();
            begin.elapsed() < LIMIT
        })
    }

    #[test]
    fn a_spin_gives_way_to_a_thread_that_waits_for_its_cpu() {
        // With a single CPU there is no spin.
        let expected = Cpu::current().is_some() || cpus() == 1;
        for spin in [WorkSpin::Short, WorkSpin::ShortAfterLong, WorkSpin::Long] {
            // A copy each time: a spin in vain may change it.
            assert_eq!(gives_way(|| _ = { spin }.until(|| false)), expected);
        }
        assert_eq!(gives_way(|| assert!(!spin_until(|| false))), expected);
        assert_eq!(gives_way(|| assert!(!spin_for(LIMIT, || false))), cpus() == 1);
    }

    #[test]
    fn a_stream_is_of_tasks_of_less_than_five_microseconds() {
        let at = |nanos, tasks| is_stream(Duration::from_nanos(nanos), tasks);
        assert_eq!([at(4_999, 1), at(5_000, 1)], [true, false]);
        assert_eq!([at(49_999, 10), at(50_000, 10)], [true, false]);
    }

    #[test]
    fn long_tasks_take_two_hundred_microseconds() {
        let at = |micros, tasks| are_long(Duration::from_micros(micros), tasks);
        assert_eq!([at(199, 1), at(200, 1)], [false, true]);
        assert_eq!([at(1_999, 10), at(2_000, 10)], [false, true]);
    }

    /// Waits for a condition that holds at its evaluation number `holds_at`. Returns the outcome and the number of
    /// evaluations.
    fn evaluations(holds_at: u32, wait: impl Fn(&dyn Fn() -> bool) -> bool) -> (bool, u32) {
        let count = Cell::new(0);
        let is_met = wait(&|| {
            count.set(count.get() + 1);
            count.get() == holds_at
        });
        (is_met, count.get())
    }

    #[test]
    fn spinning_evaluates_first_and_ends() {
        let in_vain = || evaluations(u32::MAX, |condition| spin_until(condition));
        let second = || evaluations(2, |condition| spin_until(condition)) == (true, 2);
        assert_eq!(evaluations(1, |condition| spin_until(condition)), (true, 1));
        assert!(!in_vain().0);
        // Tried often: it may give way.
        assert_eq!((0..100).any(|_| in_vain().1 > 1), cpus() > 1);
        assert_eq!((0..100).any(|_| second()), cpus() > 1);
    }

    #[test]
    fn a_condition_lasts_if_it_holds_at_each_look() {
        let never = || false;
        let lasts = |condition: &dyn Fn() -> bool| spin_until_lasting(condition, never);
        assert_eq!(lasts(&|| true), cpus() > 1);
        assert!(!lasts(&never));
        // At every other look: each time the grace begins anew.
        let looks = Cell::new(0);
        assert!(!lasts(&|| {
            looks.set(looks.get() + 1);
            looks.get() % 2 == 0 && looks.get() < 1_000
        }));
        assert!(!spin_until_lasting(|| true, || true));
    }

    #[test]
    fn a_worker_that_resumes_soon_spins_longer_until_that_is_in_vain() {
        let soon = LONG_LIMIT - Duration::from_nanos(1);
        let mut spin = WorkSpin::default();
        assert!(spin.until(|| false).is_none());
        assert_eq!(spin, WorkSpin::Short);
        spin.resumed_after(LONG_LIMIT);
        assert_eq!(spin, WorkSpin::Short);
        spin.resumed_after(soon);
        assert_eq!(spin, WorkSpin::Long);
        let lasts = || {
            let begin = Instant::now();
            { spin }.until(|| false);
            begin.elapsed() >= LONG_LIMIT
        };
        // Tried often: it may give way.
        assert_eq!((0..100).any(|_| lasts()), cpus() > 1);
        assert!(spin.until(|| true).is_some());
        assert_eq!(spin, WorkSpin::Long);
        // In vain: the next one is a short one, and only the one after that may be long again.
        assert!(spin.until(|| false).is_none());
        spin.resumed_after(soon);
        assert_eq!(spin, WorkSpin::Short);
        assert!(spin.until(|| false).is_none());
        spin.resumed_after(soon);
        assert_eq!(spin, WorkSpin::Long);
        spin.resumed_after(LONG_LIMIT);
        assert_eq!(spin, WorkSpin::Short);
        assert!(spin.until(|| true).is_some());
        assert_eq!(spin, WorkSpin::Short);
    }

    #[test]
    fn a_worker_lets_the_tasks_of_a_dense_stream_gather() {
        let mut gather = Gather::default();
        let mut run = 0;
        // Whether it waits, after so many tasks.
        let mut waits = |gather: &mut Gather, tasks| {
            run += tasks;
            let begin = Instant::now();
            gather.before_spin(run);
            begin.elapsed() >= GATHER
        };
        let soon = Some(SOON - Duration::from_nanos(1));
        for late in [None, Some(SOON)] {
            (1..SOON_IN_A_ROW).for_each(|_| gather.after_spin(soon));
            gather.after_spin(late);
        }
        assert_eq!(gather.soon, 0, "the streak begins anew");
        for _ in 0..2 {
            (0..SOON_IN_A_ROW).for_each(|_| gather.after_spin(soon));
            for _ in 0..2 {
                assert_eq!(waits(&mut gather, MIN_GATHERED), cpus() > 1);
                gather.after_spin(None);
            }
            // Few have come: the stream has ended.
            waits(&mut gather, MIN_GATHERED - 1);
            assert_eq!(gather.soon, 0);
        }
    }
}
