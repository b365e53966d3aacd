//! How often a worker that always has local tasks checks the injector, and one of the other workers; and how long its tasks
//! take.
//!
//! A check of the injector costs little beside a few dozen short tasks. Beside long tasks the same number would delay what
//! it finds: 61 tasks of 10 ms take more than half a second. So a worker measures how long its tasks take, and checks about
//! every [`PERIOD`]. It reads the clock once in an interval. Tokio's workers tune
//! their interval like this, with twice that period. When its tasks become long, the interval that it is in still ends after as
//! many of them as before. When they become short, an interval has at most [`MAX_GROWTH`] times as many as the one before: two
//! polls among tasks that block do not make it the longest.
//!
//! From the same times it keeps an exponential moving average of the time that a task takes. Here a task that another one has
//! waited for, and that has run inside of it, counts as well: the tasks of a recursion are short.
//!
//! The other workers are checked by number alone. A worker that has lost its CPU for a while takes its tasks for long ones,
//! and would soon find each other worker stalled.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The most requests between two checks of the injector, and the number between two checks for a stalled worker. The number
/// is tokio's and Go's. It is prime, so that it does not fall into step with a pattern in the tasks.
pub(super) const MAX_INTERVAL: usize = 61;

/// The fewest: every other request takes from the injector first.
const MIN_INTERVAL: usize = 2;

/// The longest interval of a worker that is new, or has rested or spun: its tasks may be short or long. With 16, the workers
/// learn later that their tasks block: the row stages has a p99 1.13 times as long. With 4, workers that often spin read the clock
/// more often: a task that submits many short ones takes up to 1.05 times as long.
const FIRST_INTERVAL: usize = 8;

/// How many times as many requests an interval has, at most, as the one before. From [`FIRST_INTERVAL`], a worker of short tasks
/// reaches [`MAX_INTERVAL`] in two steps.
const MAX_GROWTH: usize = 4;

/// The longest time that counts as that of a task, in nanoseconds: so the average is back at a few microseconds after a hundred
/// short tasks, however long one took or a worker had no CPU.
const MAX_TASK_NANOS: u32 = 320_000;

/// The time between two checks of the injector, unless that is more than [`MAX_INTERVAL`] requests. A check that finds nothing
/// takes a few nanoseconds, and reading the clock about 30, so it could be shorter. But a worker whose tasks fill an interval
/// takes them for long ones, and shares woken futures before each new task.
const PERIOD: Duration = Duration::from_micros(100);

/// What a worker does first at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It looks for a stalled worker.
    Stalled,
    /// It begins a turn of the injector's tasks.
    Injector,
}

/// See the [module's documentation](self).
pub(super) struct Pacing {
    /// Requests until the next check.
    left: Cell<usize>,
    /// Requests from one check of the injector to the next.
    interval: Cell<usize>,
    /// When the interval began. `None` if the worker has rested or spun since.
    since: Cell<Option<Instant>>,
    /// Requests until a check for a stalled worker is due. It comes with the next check of the injector, just before it.
    until_stalled: Cell<usize>,
    /// How many tasks the worker had run when the interval began. `usize::MAX` if the interval tells nothing of their time.
    run_before: Cell<usize>,
    /// How many nanoseconds a task takes, on average. Zero if that is not known. A number, since each submission compares it.
    task_nanos: Cell<u32>,
}

impl Pacing {
    pub(super) fn new() -> Self {
        let interval = in_model().unwrap_or(FIRST_INTERVAL);
        Pacing {
            left: Cell::new(interval / 2),
            interval: Cell::new(interval),
            since: Cell::new(None),
            until_stalled: Cell::new(0),
            run_before: Cell::new(usize::MAX),
            task_nanos: Cell::new(0),
        }
    }

    /// Counts a request, and returns the check that it begins with, if any. `run_count` is how many tasks the worker has run.
    #[inline]
    pub(super) fn next_check(&self, run_count: usize) -> Option<Check> {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left - 1);
            return None;
        }
        Some(self.begin_check(run_count))
    }

    #[cold]
    fn begin_check(&self, run_count: usize) -> Check {
        if self.until_stalled.get() == 0 {
            self.until_stalled.set(in_model().unwrap_or(MAX_INTERVAL));
            self.left.set(1);
            return Check::Stalled;
        }
        self.adapt(run_count);
        let interval = self.interval.get();
        self.left.set(interval);
        self.until_stalled.set(self.until_stalled.get().saturating_sub(interval));
        Check::Injector
    }

    /// Measures the time since the last check.
    fn adapt(&self, run_count: usize) {
        if in_model().is_some() {
            return;
        }
        let now = Instant::now();
        // Zero after the quota was renewed, too.
        let run = run_count.saturating_sub(self.run_before.replace(run_count));
        if let Some(since) = self.since.replace(Some(now)) {
            self.record(now - since, run);
        }
    }

    /// Chooses the interval by the time that the requests of the last one took, in which the worker has run `run` tasks.
    fn record(&self, taken: Duration, run: usize) {
        let last = self.interval.get();
        self.interval.set(fitting(taken, last).min(MAX_GROWTH * last));
        if run > 0 {
            let mean = taken.as_nanos() / run as u128;
            let now = u32::try_from(mean).map_or(MAX_TASK_NANOS, |mean| mean.min(MAX_TASK_NANOS));
            let before = self.task_nanos.get();
            self.task_nanos.set(if before == 0 { now } else { (before + now) / 2 });
        }
    }

    /// Whether the worker's tasks may be long, by those that it has run since it rested.
    #[cfg(feature = "async")]
    pub(super) fn are_tasks_long(&self) -> bool {
        #[cfg(elastipool_loom)]
        return !crate::queue::model::SHORT_TASKS.get();
        #[cfg(not(elastipool_loom))]
        return self.interval.get() < MAX_INTERVAL;
    }

    /// Returns how many nanoseconds the worker's tasks take, on average. Zero if that is not known.
    #[inline]
    pub(super) fn task_nanos(&self) -> u32 {
        #[cfg(elastipool_loom)]
        return if crate::queue::model::COARSE_TASKS.get() { u32::MAX } else { 0 };
        #[cfg(not(elastipool_loom))]
        return self.task_nanos.get();
    }

    /// Forgets how long the tasks take. The interval that the worker is in tells nothing of that either.
    pub(super) fn forget_task_time(&self) {
        self.task_nanos.set(0);
        self.run_before.set(usize::MAX);
    }

    /// The worker rests or has spun: the time until the next request is not that of tasks, and what comes then may be longer.
    pub(super) fn rest(&self) {
        self.since.set(None);
        self.forget_task_time();
        if in_model().is_none() {
            self.interval.set(self.interval.get().min(FIRST_INTERVAL));
            self.left.set(self.left.get().min(FIRST_INTERVAL));
        }
    }
}

/// Returns the interval for requests of which `count` took that long.
fn fitting(taken: Duration, count: usize) -> usize {
    let mean = (taken.as_nanos() / count as u128).max(1);
    let fitting = PERIOD.as_nanos() / mean;
    usize::try_from(fitting).map_or(MAX_INTERVAL, |fit| fit.clamp(MIN_INTERVAL, MAX_INTERVAL))
}

/// Returns the interval in a model, which has no clock. Mostly no check comes: it would find the tasks that a lost notification
/// leaves behind.
fn in_model() -> Option<usize> {
    #[cfg(elastipool_loom)]
    return Some(crate::queue::model::SHORT_INTERVAL.get().unwrap_or(usize::MAX));
    #[cfg(not(elastipool_loom))]
    None
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_interval_fits_the_time_that_tasks_take() {
        let of_mean = |nanos| fitting(Duration::from_nanos(nanos) * 10, 10);
        assert_eq!(of_mean(0), MAX_INTERVAL);
        assert_eq!(of_mean(50), MAX_INTERVAL);
        assert_eq!(of_mean(10_000), 10);
        assert_eq!(of_mean(10_000_000), MIN_INTERVAL);
    }

    #[test]
    fn both_checks_come_at_their_intervals() {
        for interval in [MIN_INTERVAL, 7, MAX_INTERVAL] {
            let pacing = Pacing::new();
            pacing.interval.set(interval);
            let mut counts = [0_usize; 2];
            for _ in 0..20 * MAX_INTERVAL {
                if let Some(check) = pacing.next_check(0) {
                    counts[usize::from(check == Check::Stalled)] += 1;
                }
                // Without a time the interval stays as it is.
                pacing.since.set(None);
            }
            let [injector, stalled] = counts;
            assert!(injector.abs_diff(20 * MAX_INTERVAL / interval) <= 21, "{counts:?}");
            assert!((9..=20).contains(&stalled), "{counts:?}");
        }
    }

    #[test]
    fn a_rest_is_no_long_task_and_forgets_the_short_ones() {
        let pacing = Pacing::new();
        (0..10 * MAX_INTERVAL).for_each(|_| _ = pacing.next_check(0));
        pacing.interval.set(MAX_INTERVAL);
        pacing.rest();
        assert_eq!(pacing.interval.get(), FIRST_INTERVAL);
        // As long as many tasks, if the rest counted as one.
        std::thread::sleep(Duration::from_millis(20));
        while pacing.next_check(0) != Some(Check::Injector) {}
        assert_eq!(pacing.interval.get(), FIRST_INTERVAL);
        assert!(pacing.left.get() <= FIRST_INTERVAL);
    }

    #[test]
    fn long_tasks_shorten_the_interval_and_short_ones_lengthen_it() {
        let pacing = Pacing::new();
        let checks = |requests: usize, pause: Duration| {
            let check = |_| {
                // Stands for a task: their time is the subject.
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                pacing.next_check(0)
            };
            (0..requests).filter(|request| check(*request) == Some(Check::Injector)).count()
        };
        // Of requests that take no time, a few come before the interval is known.
        let short = checks(50 * MAX_INTERVAL, Duration::ZERO);
        assert!((50..200).contains(&short), "{short}");
        // The interval in which they begin ends after at most as many, and a check for a stalled worker.
        checks(MAX_INTERVAL + 1, Duration::from_millis(1));
        let long = checks(10, Duration::from_millis(1));
        // One of them may be such a check.
        assert!((4..=5).contains(&long), "{long}");
    }

    #[test]
    fn a_few_short_requests_do_not_make_the_interval_the_longest() {
        let pacing = Pacing::new();
        pacing.interval.set(MIN_INTERVAL);
        let intervals = [0; 3].map(|_| {
            pacing.record(Duration::ZERO, 0);
            pacing.interval.get()
        });
        assert_eq!(
            intervals,
            [MAX_GROWTH * MIN_INTERVAL, MAX_GROWTH.pow(2) * MIN_INTERVAL, MAX_INTERVAL]
        );
    }

    #[test]
    fn the_time_of_a_task_is_an_average() {
        let (pacing, micros) = (Pacing::new(), Duration::from_micros);
        assert_eq!(pacing.task_nanos(), 0, "nothing is known");
        pacing.record(micros(400), 4);
        assert_eq!(pacing.task_nanos(), 100_000);
        pacing.record(micros(60), 3);
        assert_eq!(pacing.task_nanos(), 60_000);
        // Of a request with 99 tasks inside of its own.
        pacing.record(micros(1_000), 100);
        assert_eq!(pacing.task_nanos(), 35_000);
        pacing.record(Duration::from_secs(9), 1);
        assert!(pacing.task_nanos() < MAX_TASK_NANOS, "a worker may lose its CPU");
        let before = pacing.task_nanos();
        pacing.record(micros(500), 0);
        assert_eq!(pacing.task_nanos(), before, "there is nothing to learn");
        pacing.rest();
        assert_eq!(pacing.task_nanos(), 0, "what comes next may be short");
    }

    #[test]
    fn what_says_nothing_of_the_time_of_tasks_is_not_measured() {
        let pacing = Pacing::new();
        let adapt = |run_count| {
            // Stands for tasks: their time is the subject.
            std::thread::sleep(Duration::from_millis(1));
            pacing.adapt(run_count);
            pacing.task_nanos()
        };
        assert!([5, 7].map(adapt)[1] > 0);
        pacing.forget_task_time();
        assert_eq!(adapt(8), 0, "it has waited since the last check");
        assert!(adapt(9) > 0);
        pacing.task_nanos.set(1);
        assert_eq!(adapt(3), 1, "its quota was renewed");
    }
}
